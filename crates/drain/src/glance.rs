//! Reads a run in progress from outside, for `weft top`.
//!
//! A [`Glance`] maps the arenas of a run read-only and reads the records since its last look. It costs the run nothing: the
//! supervisor does not know of it, and the programs make no calls for it. In return, it misses a
//! segment that was filled, drained and reused between two looks. The arena counts its segments, so the
//! number of events stays right, but the calls and files in missed segments are unknown. [`Seen::unseen`] is the
//! number of events that were only counted.
//!
//! ```text
//! Glance::open(run) ─▶ look() … look()     each: processes as they are, what was recorded since the look before
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `directory` | one live directory: its control page, its arenas, its journal |
//! | `reader` | one arena: what was read of each segment, what is new in it |
//! | `sums` | what was seen, summed up by call, file and process |
//! | [`window`] | the last seconds: looks in frames, frames in a window that slides |
//! | [`picture`] | all of it as rates: what is shown |
//!
//! Data of other processes is copied and checked before use, as in [`arena`](crate::arena); memory is bounded
//! whatever they write.

mod directory;
pub mod picture;
mod reader;
mod sums;
pub mod window;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weftline_calls::IoSums;
use weftline_format::manifest::RECORD_DIR;
use weftline_recorder::clock;

use crate::live::Pointer;
use crate::procfs::Host;
use crate::{DrainError, Result};

use directory::Watching;
use sums::Sums;

/// How it is with a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It records.
    Running,
    /// It becomes another program.
    Executing,
    /// It announced its end, or is gone; the rest of its events is being written.
    Ending,
}

/// A process image that records.
#[derive(Clone, Debug)]
pub struct ProcessSeen {
    /// Its pid, as this process sees it; 0 when it cannot be seen from this pid namespace.
    pub pid: u32,
    /// Its pid, as it sees itself.
    pub own_pid: u32,
    /// Its parent's, as it sees it.
    pub ppid: u32,
    /// The command line as one text, the program without its directory.
    pub name: Arc<str>,
    /// Its executable.
    pub exe: Arc<str>,
    /// Its command line.
    pub command: Arc<[String]>,
    /// Rank within a parallel job.
    pub rank: Option<u32>,
    /// How it is.
    pub state: ProcessState,
    /// Events that were read since the last look.
    pub events: u64,
    /// Events that were made since, and recycled before they could be read: counted by segments.
    pub unseen: u64,
    /// What the calls among the events did.
    pub activity: IoSums,
    /// Records that could not be kept since the image began, by reason; only reasons that occurred.
    pub drops: Vec<(&'static str, u64)>,
    /// What tells this image from all others of its run on this host, for as long as it records.
    pub key: u128,
}

/// A call or an annotation.
#[derive(Clone, Debug)]
pub struct CallSeen {
    /// Its name.
    pub name: Arc<str>,
    /// Its category.
    pub category: Arc<str>,
    /// What was done by it since the last look.
    pub activity: IoSums,
}

/// A file.
#[derive(Clone, Debug)]
pub struct FileSeen {
    /// Its path; [`OTHERS`] for files beyond the limit.
    pub path: Arc<str>,
    /// What was done to it since the last look.
    pub activity: IoSums,
}

/// The path that stands for all files of a look beyond the first thousands, and the name for as many annotations.
pub const OTHERS: &str = "(others)";

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// A supervisor drains it.
    Running,
    /// Its processes record by themselves; `weft recover` writes the trace later.
    Unsupervised,
    /// Its supervisor was killed, ended before its processes, or is stopped.
    Abandoned,
    /// Nothing of it runs on this host any more.
    Ended,
}

/// What one look saw.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When it was, on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Since the last look; nothing at the first one.
    pub elapsed_ns: u64,
    /// When the run began, in nanoseconds since the epoch.
    pub started_ns: i64,
    /// Whether it goes on.
    pub state: RunState,
    /// Process images that record, in the order of their pids.
    pub processes: Vec<ProcessSeen>,
    /// Process images that ended since the run began and are in its files.
    pub ended: u64,
    /// Events that were read since the last look.
    pub events: u64,
    /// Events that were only counted.
    pub unseen: u64,
    /// Calls and annotations since the last look.
    pub calls: Vec<CallSeen>,
    /// Files since the last look.
    pub files: Vec<FileSeen>,
    /// Records that could not be kept since the run began, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Parts of the run that cannot be seen, and why.
    pub notes: Vec<String>,
}

/// Looks at a run in progress.
pub struct Glance {
    run: PathBuf,
    host: Host,
    directories: BTreeMap<PathBuf, Watching>,
    last_ns: Option<u64>,
    started_ns: Option<i64>,
    /// Of directories that are gone.
    drops: BTreeMap<String, u64>,
    ended: u64,
}

impl Glance {
    /// Finds what runs on this host. What was recorded up to now is passed over; the first [`look`](Glance::look) tells what came after.
    pub fn open(run: &Path) -> Result<Glance> {
        let mut glance = Glance {
            run: run.to_owned(),
            host: Host::here(),
            directories: BTreeMap::new(),
            last_ns: None,
            started_ns: None,
            drops: BTreeMap::new(),
            ended: 0,
        };
        let first = glance.look()?;
        if first.state == RunState::Ended {
            return Err(DrainError::NothingToWatch { path: run.to_owned(), why: glance.why_nothing(&first.notes) });
        }
        Ok(glance)
    }

    fn why_nothing(&self, notes: &[String]) -> String {
        if !notes.is_empty() {
            return notes.join("; ");
        }
        let recorded = std::fs::read_dir(self.run.join(RECORD_DIR)).is_ok_and(|entries| {
            entries.flatten().any(|entry| Path::new(&entry.file_name()).extension().is_some_and(|end| end == "json"))
        });
        match (recorded, self.directories.is_empty()) {
            (true, _) => "the run has ended; `weft info` and `weft report` show it".to_owned(),
            (false, true) => "nothing has been recorded yet".to_owned(),
            (false, false) => "none of its processes is running; `weft recover` completes it".to_owned(),
        }
    }

    /// What is new since the last look.
    pub fn look(&mut self) -> Result<Seen> {
        let mut notes = Vec::new();
        self.find_directories(&mut notes)?;
        let at_ns = clock::monotonic();
        let mut sums = Sums::default();
        let (mut supervised, mut unsupervised, mut alive) = (false, false, false);
        for watching in self.directories.values_mut() {
            watching.look(&self.host, self.last_ns.is_some(), &mut sums, &mut notes);
            supervised |= watching.is_drained(at_ns);
            unsupervised |= watching.is_unsupervised();
            alive |= watching.anybody_runs();
        }
        let state = match (supervised, alive) {
            (true, _) => RunState::Running,
            (false, false) => RunState::Ended,
            (false, true) if unsupervised => RunState::Unsupervised,
            (false, true) => RunState::Abandoned,
        };
        let mut drops = self.drops.clone();
        let mut ended = self.ended;
        for watching in self.directories.values() {
            watching.add_drops(&mut drops);
            ended += watching.ended();
        }
        let elapsed_ns = self.last_ns.map_or(0, |last| at_ns.saturating_sub(last));
        self.last_ns = Some(at_ns);
        let started_ns = self.started_ns.unwrap_or_default();
        Ok(sums.into_seen(Seen {
            at_ns,
            elapsed_ns,
            started_ns,
            state,
            processes: Vec::new(),
            ended,
            events: 0,
            unseen: 0,
            calls: Vec::new(),
            files: Vec::new(),
            drops,
            notes,
        }))
    }

    /// Opens live directories that came, and lets those go that are gone.
    fn find_directories(&mut self, notes: &mut Vec<String>) -> Result<()> {
        let pointers = Pointer::read_all(&self.run)?;
        let mut there = Vec::new();
        if !pointers.unreadable.is_empty() {
            notes.push("one of its pointers to shared memory cannot be read".into());
        }
        for (_, pointer) in pointers.known {
            let directory = pointer.directory();
            if pointer.host != self.host.name {
                notes.push(format!("a part of it runs on host {}: use `weft top` there", pointer.host));
                continue;
            }
            // What an earlier boot left holds no process.
            if pointer.boot != self.host.boot {
                continue;
            }
            if !self.directories.contains_key(&directory) {
                match Watching::open(&directory) {
                    Ok(Some(watching)) => drop(self.directories.insert(directory.clone(), watching)),
                    Ok(None) => {
                        notes.push("another version of weft started it: use the `weft top` of that version".into());
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        notes.push("it belongs to another user: use `weft top` as that user or as root".into());
                    }
                    // It is being made, or being removed.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(DrainError::io(&directory, error)),
                }
            }
            let started = self.started_ns.get_or_insert(pointer.started_ns);
            *started = pointer.started_ns.min(*started);
            there.push(directory);
        }
        let gone: Vec<PathBuf> = self.directories.keys().filter(|path| !there.contains(path)).cloned().collect();
        for path in gone {
            if let Some(watching) = self.directories.remove(&path) {
                watching.add_drops(&mut self.drops);
                self.ended += watching.ended() + watching.images();
            }
        }
        notes.dedup();
        Ok(())
    }
}
