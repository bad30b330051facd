//! Foreign traces and logs in, on one clock: files that other tools wrote become a run directory that every verb reads.
//!
//! | module | holds |
//! |---|---|
//! | [`import()`] | what was named → a run: finds the files, asks each for facts about all, then writes its events |
//! | [`registry`] | the formats: one line each |
//! | [`config`] | the file of `--config` |
//! | [`custom`] | formats that users describe in it |
//! | [`formats`] | the readers, one module per format |
//! | [`input`] | one file as a stream of bytes or lines that knows its place |
//! | [`walk`] | folders, archives and packed files → inputs, with limits |
//! | [`clock`] | clocks of sources, and their maps to UTC |
//! | [`event`] | what readers give: processes and events, borrowed |
//! | [`sink`] | where it goes: trace files of a run, with what was skipped |
//! | [`resolve`] | any foreign file or folder as a run in the cache directory, for verbs that read |
//! | [`record`] | what an import leaves in its run for `weft info` |
//!
//! A reader sees its input twice: once to tell what concerns other files too (`survey`: how a clock runs, who a process is, in which
//! time zone a log was written), and once to give its events (`read`). Both are one pass over a stream, and neither keeps events: memory does
//! not grow with the file. The crate stands on `format`; `index` asks it for whatever is no trace by itself.
#![forbid(unsafe_code)]

pub mod clock;
pub mod config;
pub mod custom;
mod error;
pub mod event;
pub mod formats;
pub mod import;
pub mod input;
mod json;
pub mod record;
pub mod registry;
pub mod resolve;
pub mod sink;
pub mod survey;
pub mod walk;

pub use error::{ImportError, Result};
pub use import::{Options, import};
