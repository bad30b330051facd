//! Samples of a machine, its processes and its devices, beside the trace.
//!
//! | module | holds |
//! |---|---|
//! | [`cgroup`] | control groups, and their containers |
//! | [`clock`] | when to sample, and which interval a sample covers |
//! | [`collector`] | the loop: what `weft collect` runs, and `weft run` in a thread |
//! | [`energy`] | energy meters |
//! | `exits` | the kernel's records of processes that end |
//! | [`follow`] | which processes to sample |
//! | [`gpu`] | GPUs: NVIDIA by library or command, AMD by sysfs |
//! | [`host`] | processors, memory, disks, network, file systems, pressure |
//! | `kernel` | kernel tracepoints: system calls, page faults, io_uring, block devices (feature `kernel`) |
//! | [`node`] | facts about the machine |
//! | [`own`] | the collecting process |
//! | [`process`] | one process: its identity and its usage |
//! | `read` | kept-open files of the kernel, and numbers in them |
//! | [`roots`] | where `/proc` and `/sys` are |
//! | [`sample`] | one sample: its interval and its values; where samples go |
//! | `schedule` | short scheduler slices for the sampling thread |
//! | [`usage`] | what the kernel counted for some processes since the last question |
//! | [`writer`] | writes samples to files, and recovers those of killed collectors |
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
