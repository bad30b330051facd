//! The trace format of Weftline, its reader and its writer.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | the event model: phases, typed arguments, one [`Event`] |
//! | [`mod@line`] | the writer of trace lines, without allocation per event |
//! | [`identity`] | the line that says which process image a member belongs to |
//! | [`member`] | gzip members with an index in their header; torn tails |
//! | [`members`] | files of our own members, one after the other, without threads |
//! | [`gunzip`] | finds where the members of foreign gzip files may start |
//! | [`reader`] | files, bytes and runs to events, in memory or as a scan |
//! | [`source`] | the input of a reader: blocks of members or of text |
//! | [`secrets`] | masking of secrets in command lines |
//! | [`sequences`] | whether all members of a process image are there |
//! | [`view`] | one event of a scan, borrowed from the text |
//! | [`quick`] | the same for whole blocks of lines, with the common arguments as columns, several times as fast |
//! | [`dialect`] | which tool wrote a trace, and what its lines mean |
//! | [`names`] | the path, string or host of a hash |
//! | [`damage`] | damage of a trace |
//! | [`text`] | JSON strings both ways, and bytes that are not UTF-8 |
//! | [`hash`] | the fixed 64-bit hash that names paths and strings |
//! | [`files`] | opens and creates files of a run, safely against planted links |
//! | [`manifest`] | `run.json` and `run.d/*.json` |
//! | [`metrics`] | units and meaning of sampled values |
//! | [`progress`] | progress reports of long work |
//! | [`mod@unit`] | units of numbers |
//!
//! The crate is pure: bytes in, values out, files only where a function takes a path. It has no `unsafe` code and does not
//! deal with processes, clocks or columns.
#![forbid(unsafe_code)]

pub mod damage;
pub mod deflate;
pub mod dialect;
pub mod event;
pub mod files;
pub mod gunzip;
pub mod hash;
pub mod identity;
pub mod line;
pub mod manifest;
pub mod member;
pub mod members;
pub mod metrics;
pub mod names;
pub mod progress;
pub mod quick;
pub mod reader;
pub mod secrets;
pub mod sequences;
pub mod source;
pub mod text;
pub mod unit;
pub mod view;

mod decimal;
mod json;
mod objects;
mod store;
mod threads;

pub use event::{Event, Phase, Value};
