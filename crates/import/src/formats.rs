//! The readers, one module per format.

pub mod nginx;
pub mod strace;
pub(crate) mod time;
pub mod tracekit;
