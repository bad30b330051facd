//! Turns run directories into prunable columnar batches: Arrow in memory, checksummed pages of columns on disk.
//!
//! | module | holds |
//! |---|---|
//! | [`input`] | what the user named (a directory, a file, a glob, several) → trace files and the place of their index |
//! | [`rundir`] | run directories: which are runs, which is the newest, what their files are |
//! | [`mod@column`] | the columns of an event as they are stored |
//! | [`schema`] | the columns of an event as SQL, Python and conditions show them: names, types, units, meanings |
//! | [`run`] | [`Run`]: an opened run, with its index built or updated |
//! | [`scan`] | all events that a query needs, in batches, in parallel or in order |
//! | [`filter`] | selects these events; row groups without any are not read |
//! | [`dictionary`] | names, categories, paths and processes by id |
//! | [`catalog`] | the files that the index covers, and whether they are unchanged |
//! | [`progress`] | progress reports of long work (of `format`) |
//!
//! `Run::lines` (`lines`) rebuilds the original lines: only the order of members and the definitions of hashes are lost.
//!
//! Inside: `source` cuts files into tasks, `pipeline` gives them to threads, `rows` collects the columns of one task, `part` writes and
//! reads them. A run without an index goes through the same pipeline, directly to the consumer instead of a file.
//!
//! All strings are dictionary-encoded except in `rest` and `extra`: a part has one table of strings, a run one table over all its
//! parts, so that kernels compare and group integers, and a name may be defined after its first use.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod column;
pub mod dictionary;
mod error;
pub mod filter;
pub mod inflate;
pub mod input;
mod lines;
mod part;
mod pipeline;
mod rows;
pub mod run;
pub mod rundir;
pub mod scan;
pub mod schema;
mod source;

pub use column::Column;
pub use dictionary::{Dictionary, Process};
pub use error::{IndexError, Result};
pub use filter::Filter;
pub use run::{OpenOptions, Run};
pub use scan::{Batch, Request, Shard};
pub use schema::Unit;
pub use weftline_format::progress;
