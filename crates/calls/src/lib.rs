//! What each libc and kernel call means, in one table, and the sums over calls.
//!
//! All crates look calls up here: the preload (which hooks to make), the drain (what a record's line holds and
//! which way its bytes went), the kernel tracepoints, the reports, the findings and `docs/hooks.md`.
//!
//! | module | holds |
//! |---|---|
//! | [`operation`] | the typed columns: what a call does, which way it moves bytes, DFAnalyzer's category |
//! | [`hooked`] | the calls that the preload hooks: C signature, recipe, meaning; their numbers |
//! | [`kernel`] | the system calls that the kernel tracepoints report, and where their arguments stand |
//! | [`foreign`] | names that only kernel events and traces of other tracers have |
//! | [`activity`] | what a thread does during a call: file I/O, or waiting, and for what; what a path names |
//! | [`sums`] | [`IoSums`]: counts, times and bytes of calls |
//!
//! Hot paths look a call up by its number ([`CallInfo::of`]); code that has names looks each name up once ([`find()`]).
#![no_std]
#![forbid(unsafe_code)]

pub mod activity;
mod find;
pub mod foreign;
pub mod hooked;
pub mod kernel;
pub mod operation;
pub mod sums;

pub use activity::{Activity, ActivitySums, FileKind};
pub use find::{find, number_of};
pub use hooked::{CALLS, Call, Shape, WATCHED, fingerprint};
pub use operation::{Family, Flow, IoCat, Operation};
pub use sums::{Calls, IoSums, Side};

/// The table's entry of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// The C name, or the kernel's.
    pub name: &'static str,
    /// The call that a user would say was made: `open` for `open64` and `__open_2`.
    pub canonical: &'static str,
    /// The part of the C library that it belongs to.
    pub family: Family,
    /// What it does.
    pub operation: Operation,
    /// What `Record::detail` is called in the trace; nothing when the call does not use it.
    pub detail: Option<&'static str>,
    /// The recipe that records it.
    pub shape: Shape,
}

impl CallInfo {
    /// The hooked call with this number.
    #[inline]
    pub fn of(number: u16) -> Option<&'static CallInfo> {
        CALLS.get(usize::from(number)).filter(|call| !call.name.is_empty())
    }

    /// The category of its events in a trace.
    #[inline]
    pub const fn category(&self) -> &'static str {
        self.family.category()
    }

    /// Which way it moves bytes.
    #[inline]
    pub const fn flow(&self) -> Flow {
        self.operation.flow()
    }

    /// Whether it works on a stream, whose buffer stands between it and the file. `dprintf` and its kin are of the family and write at once.
    pub const fn on_stream(&self) -> bool {
        matches!(self.family, Family::Stdio) && !matches!(self.operation, Operation::Write)
    }
}

#[cfg(test)]
extern crate std;
#[cfg(test)]
mod tests;
