//! The readers, one module per format.

pub mod discs;
pub mod nginx;
mod time;
