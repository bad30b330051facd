//! A run directory is untrusted input, and a traced program may attack its tracer.

mod programs;
mod runs;
mod soak;
