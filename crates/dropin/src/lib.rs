//! Compatibility with DFTracer and PerfFlowAspect: their options, file names and file contents.
//!
//! | module | holds |
//! |---|---|
//! | [`dftracer`] | `DFTRACER_*` and their YAML file |
//! | [`perfflow`] | `PERFFLOW_OPTIONS`, and the writer of PerfFlowAspect's JSON |
//!
//! `weftline-session` records with these options and publishes these files; front-ends read the options.
#![forbid(unsafe_code)]

pub mod dftracer;
pub mod perfflow;
mod truth;
