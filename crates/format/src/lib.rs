//! What a Weftline trace is, and how it is read and written.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | the event model: phases, typed arguments, one [`Event`] |
//! | [`mod@line`] | the writer of trace lines, without allocation per event |
//! | [`identity`] | the line that says which process image a member belongs to |
//! | [`member`] | gzip members with an index in their header; torn tails |
//! | [`members`] | files of our own members, one after the other, without threads |
//! | [`gunzip`] | where the members of foreign gzip files may start |
//! | [`reader`] | files, bytes and runs to events, in memory or as a scan |
//! | [`source`] | where the text of a trace comes from: blocks of members or of text |
//! | [`secrets`] | command lines without the secrets in them |
//! | [`sequences`] | whether all members of a process image are there |
//! | [`view`] | one event of a scan, borrowed from the text |
//! | [`quick`] | the same for whole blocks of lines, with the common arguments as columns, several times as fast |
//! | [`dialect`] | who wrote a trace and what its lines mean |
//! | [`names`] | which path, string or host a hash means |
//! | [`damage`] | what was wrong with a trace |
//! | [`text`] | JSON strings both ways, and bytes that are not UTF-8 |
//! | [`hash`] | the fixed 64-bit hash that names paths and strings |
//! | [`files`] | opening and making files of a run, so that nothing planted in it leads elsewhere |
//! | [`manifest`] | `run.json` and `run.d/*.json` |
//! | [`metrics`] | what the values of samples measure |
//! | [`mod@unit`] | units of numbers |
//!
//! The crate is pure: bytes in, values out, files only where a function takes a path. It holds no `unsafe` and knows
//! nothing of processes, clocks or columns.
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
