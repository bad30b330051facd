//! Answers from an indexed run: views, metrics, findings. Typed kernels over the index's batches.
//!
//! | module | holds |
//! |---|---|
//! | [`classify`] | what an event is: I/O category, size, effective category, left out or not |
//! | [`group`] | exact group-by over the spans of a run |
//! | [`findings`] | what is wrong, with evidence |
#![forbid(unsafe_code)]

pub mod classify;
mod error;
pub mod findings;
pub mod group;

pub use error::{AnalysisError, Result};
