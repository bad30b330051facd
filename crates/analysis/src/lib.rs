//! Answers from an indexed run: views, metrics, findings. Typed kernels over the index's batches.
//!
//! | module | holds |
//! |---|---|
//! | [`arguments`] | rebuilds the arguments of events |
//! | [`events`] | events as a table: the columns of the index's schema, for SQL and Python |
//! | [`classify`] | I/O category, size and effective category of events; which are left out |
//! | [`group`] | exact group-by over the spans of a run |
//! | [`hlm`] | high-level metrics: events by all keys of views |
//! | [`layers`], [`presets`] | the levels of a job, and those of known kinds of jobs |
//! | [`views`] | a row per time bucket, process, file … of a layer |
//! | [`flat`] | all layers of a view side by side, with shares |
//! | [`statistics`] | means and deviations from exact sums |
//! | [`intervals`], [`histogram`] | wall time; percentiles |
//! | [`profiles`], [`system`] | aggregated records of the tracer; samples of hosts |
//! | [`samples`] | usage of hosts, devices and programs over time; samples as rows |
//! | [`breakdown`] | where the wall time of the processes that matter went |
//! | [`program`] | short names of programs |
//! | [`pass`] | everything that a report needs from a run, in one planned pass, which several machines can share |
//! | [`summary`] | the content of `weft report` |
//! | [`table`] | results as columns with names and units |
//! | [`units`] | how numbers are printed, everywhere |
//! | [`coverage`] | the bytes in the trace against the kernel's count; losses |
//! | [`check`] | whether a run is valid, complete and covered |
//! | [`inventory`] | what a trace file holds |
//! | [`condition`] | selects events by a condition in SQL syntax |
//! | [`findings`] | what is wrong, with evidence |
#![forbid(unsafe_code)]

pub mod arguments;
pub mod breakdown;
pub mod check;
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
pub mod inventory;
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
