//! The readers, one module per format.

pub mod darshan;
pub mod nginx;
mod time;
