//! What a machine, its processes and its devices did meanwhile: samples beside the trace.
//!
//! | module | holds |
//! |---|---|
//! | [`cgroup`] | control groups, and the containers that they stand for |
//! | [`clock`] | when to sample, and which stretch of time a sample describes |
//! | [`collector`] | the loop: what `weft collect` runs, and `weft run` in a thread |
//! | [`energy`] | energy meters |
//! | `exits` | the kernel's records of processes that end |
//! | [`follow`] | which processes |
//! | [`gpu`] | GPUs: NVIDIA by library or command, AMD by sysfs |
//! | [`host`] | processors, memory, disks, network, file systems, pressure |
//! | `kernel` | what the kernel saw: system calls, page faults, io_uring, block devices (feature `kernel`) |
//! | [`node`] | facts about the machine |
//! | [`own`] | the collecting process |
//! | [`process`] | one process: who it is, what it uses |
//! | `read` | kept-open files of the kernel, and numbers in them |
//! | [`roots`] | where `/proc` and `/sys` are |
//! | [`sample`] | one sample: the interval that it describes, its values; where samples go |
//! | `schedule` | how the sampling thread asks to be woken in time |
//! | [`usage`] | what the kernel says of some processes since the last question |
//! | [`writer`] | samples to files, and what killed collectors left |
#![deny(unsafe_code)]

pub mod cgroup;
pub mod clock;
pub mod collector;
pub mod energy;
pub mod error;
mod exits;
pub mod follow;
pub mod gpu;
pub mod host;
#[cfg(feature = "kernel")]
pub mod kernel;
pub mod node;
pub mod own;
pub mod process;
mod read;
pub mod roots;
pub mod sample;
mod schedule;
pub mod usage;
pub mod writer;

pub use read::raise_open_files;
