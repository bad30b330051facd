//! The readers, one module per format.

pub mod nginx;
pub mod strace;
mod time;
pub mod tracekit;
