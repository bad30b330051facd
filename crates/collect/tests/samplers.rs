//! Samplers against stub trees, against a stub of NVIDIA's library, and against this machine's own `/proc`.

#[path = "samplers/devices.rs"]
mod devices;
#[path = "samplers/groups.rs"]
mod groups;
#[path = "samplers/host.rs"]
mod host;
#[path = "samplers/nonsense.rs"]
mod nonsense;
#[path = "samplers/own.rs"]
mod own;
#[path = "samplers/process.rs"]
mod process;
#[path = "samplers/still.rs"]
mod still;
#[path = "samplers/stub.rs"]
mod stub;
