//! Run directories become prunable columnar batches: Arrow in memory, checksummed pages of columns on disk.
//!
//! | module | holds |
//! |---|---|
//! | [`input`] | what the user named (a directory, a file, a glob, several) → trace files, and where their index lies |
//! | [`mod@column`] | the columns of an event as they are stored |
//! | [`schema`] | the columns of an event as SQL, Python and conditions show them: names, types, units, meanings |
//! | [`run`] | [`Run`]: an opened run. Its index was built or completed on the way |
//! | [`scan`] | all events that a question needs, in batches, side by side or in order |
//! | [`filter`] | which events those are; row groups without any are not read |
//! | [`dictionary`] | what the ids in a batch mean: names, categories, paths, processes |
//! | [`catalog`] | what the index covers and whether that is still true |
//! | [`progress`] | how long work tells how far it is |
//!
//! `Run::lines` (`lines`) gives back the original lines: nothing but the order of members and the definitions of hashes is lost.
//!
//! Inside: `source` cuts files into tasks, `pipeline` gives them to threads, `rows` collects the columns of one task, `part` writes and
//! reads them. A run without an index goes through the same pipeline, into the consumer's hands in place of a file.
//!
//! Strings are small integers everywhere but in `rest` and `extra`: a part has one table of strings, a run one table over all its
//! parts, so that kernels compare and group integers, and a name that is defined after its first use is known all the same.
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
pub mod progress;
mod rows;
pub mod run;
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
