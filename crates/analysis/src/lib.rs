//! Answers from an indexed run: views, metrics, findings. Typed kernels over the index's batches.
//!
//! | module | holds |
//! |---|---|
//! | [`arguments`] | the arguments of events, whole again |
//! | [`events`] | events as a table: the columns of the index's schema, for SQL and Python |
//! | [`classify`] | what an event is: I/O category, size, effective category, left out or not |
//! | [`group`] | exact group-by over the spans of a run |
//! | [`hlm`] | high-level metrics: events by all that views ask for |
//! | [`layers`], [`presets`] | the levels of a job, and those of known kinds of jobs |
//! | [`views`] | a row per time bucket, process, file … of a layer |
//! | [`flat`] | all layers of a view side by side, with shares |
//! | [`statistics`] | means and deviations from exact sums |
//! | [`intervals`], [`histogram`] | wall time; percentiles |
//! | [`profiles`], [`system`] | records that the tracer summed up; samples of hosts |
//! | [`samples`] | what hosts, devices and programs used over time; samples as rows |
//! | [`breakdown`] | where the wall time of the processes that matter went |
//! | [`program`] | what a person calls a program |
//! | [`pass`] | what a report asks of a run, in one planned pass, which several machines can share |
//! | [`summary`] | what `weft report` shows |
//! | [`table`] | results as columns with names and units |
//! | [`units`] | how numbers are printed, everywhere |
//! | [`coverage`] | what the trace accounts for against what the kernel counted; what was lost |
//! | [`condition`] | which events a question is about, in SQL's words |
//! | [`findings`] | what is wrong, with evidence |
#![forbid(unsafe_code)]

pub mod arguments;
pub mod breakdown;
pub mod classify;
pub mod condition;
pub mod coverage;
mod error;
pub mod events;
pub mod findings;
pub mod flat;
pub mod group;
pub mod histogram;
pub mod hlm;
pub mod intervals;
pub mod layers;
pub mod pass;
pub mod presets;
pub mod profiles;
pub mod program;
mod records;
pub mod samples;
pub mod statistics;
pub mod summary;
pub mod system;
pub mod table;
pub mod units;
pub mod views;
mod wire;

pub use error::{AnalysisError, Result};
pub use table::Table;
