//! A run directory is somebody else's input, and a traced program may attack whoever traces it.

mod programs;
mod runs;
mod soak;
