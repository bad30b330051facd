//! Turns arenas into trace files.
//!
//! A traced process stores records into an arena (crate `weftline-recorder`) and does not handle trace files. This crate is the
//! other side: it prepares the *live directory* that holds the arenas ([`Live`]), reads them from outside while the
//! program runs ([`Drain`]), encodes closed segments into trace files (crate `weftline-format`), hands the segments
//! back, and at the end writes what is known of each process to `run.d/<host>-<pid>-<start>.json`. What a killed supervisor or
//! a surviving daemon leaves is turned into files by [`recover()`], exactly once.
//!
//! ```text
//! Live::create ─▶ WEFT_LIVE=live.directory() for the program
//! Drain::new ─▶ poll() … poll() ─▶ finish()          the supervisor's loop; encoding is done by worker threads
//! recover(run) ─▶ RecoverReport                       later, any number of times
//! open_unsupervised ─▶ a live directory without a drain; the program that records itself calls recover() at its end
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `arena`, `system` | the only `unsafe` code: mapped memory, and system calls that std does not have |
//! | [`live`] | the live directory: where it may lie, its control page, its pointer file, its lock |
//! | `pool`, `room` | arenas kept ready, used again, removed; how much memory they may take |
//! | `drain`, `watch` | the poll loop; which process is alive, and what is sampled of it |
//! | `image` | one process image: identity, file name, what is written of it |
//! | `worker`, `encode`, `overlap`, `paths`, `filter` | segments to text |
//! | `output`, `budget` | members to files, the shared file of short images, the size limit |
//! | `timeline` | clock ticks to nanoseconds |
//! | `totals`, `journal`, `record` | statistics, per image on disk, and the manifest made of them |
//! | `procfs`, `runtime` | facts about processes from the kernel, and about programs from their files |
//! | `recover`, `written` | recovery of leftovers, and what is in files already |
//! | `unsupervised` | programs that record without a supervisor |
//! | [`glance`] | reads a run in progress without draining it |
//!
//! # Why each event is written exactly once
//! A segment belongs to one member. Before the member is written its number is stored in the segment (`taken_by`); after
//! the write the segment is zeroed and freed. If recovery finds a segment with a number, it checks whether that member is in the
//! file: if so, the segment is done; if not, it is encoded again. Members are appended whole; a torn tail is cut first.

mod arena;
mod budget;
mod drain;
mod encode;
mod error;
mod filter;
pub mod glance;
mod image;
mod journal;
pub mod live;
mod output;
mod overlap;
mod paths;
mod pool;
mod procfs;
mod record;
mod recover;
mod room;
mod runtime;
mod stop;
mod system;
mod timeline;
mod totals;
mod unsupervised;
mod watch;
mod worker;
mod written;

#[cfg(test)]
mod tests;

pub use arena::guard::install as survive_cut_files;
pub use drain::{Drain, DrainOptions, Outcome, Survivor};
pub use error::DrainError;
pub use filter::check_patterns;
pub use glance::Glance;
pub use live::{Live, LiveOptions, Place};
pub use procfs::tree_io;
pub use recover::{FinishedFile, LeftOpen, RecoverOptions, RecoverReport, WhyOpen, recover};
pub use unsupervised::{Unsupervised, open_unsupervised};
pub use weftline_format::manifest::SupervisorRecord;
pub use weftline_recorder::layout::KernelIo;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, DrainError>;
