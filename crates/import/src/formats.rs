//! The readers, one module per format.

mod bag;
pub mod darshan;
pub mod discs;
pub mod nginx;
pub mod otlp;
pub mod perfetto;
pub mod strace;
pub(crate) mod time;
pub mod tracekit;
mod wire;
