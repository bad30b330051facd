//! Answers from an indexed run: views, metrics, findings. Typed kernels over the index's batches.
#![forbid(unsafe_code)]

pub mod classify;
pub mod findings;
