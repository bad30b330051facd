//! The readers, one module per format.

pub mod nginx;
mod time;
