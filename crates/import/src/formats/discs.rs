//! The result folders of the DISCS tracing tools: bpftrace traces, samplers of the host, lists of processes, application logs.
//!
//! | module | holds |
//! |---|---|
//! | [`bpftrace`] | traces of calls and block requests of all generations |
//! | [`align`] | the time-align trace, and the clock that it makes |
//! | [`pids`] | lists of processes and threads |
//! | [`mpstat`], [`vmstat`], [`ifstat`], [`iostat`], [`pmon`] | samplers |
//! | [`mllog`], [`dlio`] | application logs |
//! | [`Facts`], [`Set`] | what files of a folder tell about each other, and what is concluded of it |
//! | [`Overrides`] | what a user says against it |
//!
//! Every format stands alone too. In a folder their first pass collects facts (`survey`), `Survey::conclude` makes one conclusion of them, and the
//! second pass gives events: on one clock, with each process called by its part.

mod activity;
pub mod align;
pub mod bpftrace;
mod command;
mod conclude;
pub mod dlio;
mod facts;
mod fields;
pub mod ifstat;
pub mod iostat;
mod layout;
pub mod mllog;
pub mod mpstat;
mod overlap;
mod overrides;
mod phases;
pub mod pids;
pub mod pmon;
mod roles;
mod tell;
pub mod vmstat;

pub use facts::{Facts, Person, Set};
pub use fields::DateOrder;
pub use overrides::{CommandName, Overrides};
pub use roles::Role;
