//! What the files of a folder tell about each other, before and after the conclusion.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::activity::Activity;
use super::align::Change;
use super::fields::{DateOrder, Days, SECOND, Written};
use super::overrides::Overrides;
use super::roles::Role;
use crate::clock::{Clock, ClockKind};
use crate::survey::Survey;

/// Processes of one folder; further ones have their numbers as names.
const MOST_PROCESSES: usize = 50_000;
/// Names of files whose whole paths are remembered, and bytes of all of them.
const MOST_PATHS: usize = 200_000;
const MOST_PATH_BYTES: usize = 64 << 20;
/// Folders that are kept apart.
const MOST_FOLDERS: usize = 10_000;
/// Sentences about files.
const MOST_NOTES: usize = 200;
/// Command lines are kept up to here.
const MOST_COMMAND: usize = 2048;

/// All folders of an import.
#[derive(Debug, Default)]
pub struct Facts {
    /// What the user said.
    pub overrides: Overrides,
    pub(super) folders: BTreeMap<String, Folder>,
    pub(super) sets: Vec<Set>,
    /// Which set a folder is of.
    pub(super) set_of: BTreeMap<String, usize>,
    pub(super) nothing: Set,
}

/// What was seen of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub ppid: u32,
    /// The whole command line, from a list of processes.
    pub command: String,
    /// The short name, from traces.
    pub comm: String,
    pub gpus: BTreeSet<u32>,
    pub reads: u64,
    pub bytes_read: u64,
    pub calls: u64,
    /// The first and the last second since boot in which traces of calls saw it.
    pub calls_at: Option<(i64, i64)>,
}

impl Seen {
    /// It made a call in this second since boot.
    pub(super) fn called(&mut self, second: i64) {
        let (first, last) = self.calls_at.unwrap_or((second, second));
        self.calls_at = Some((first.min(second), last.max(second)));
    }
}

/// An application's log.
#[derive(Debug, Clone, Default)]
pub(super) struct AppLog {
    /// The file's name without its ending.
    pub stem: String,
    /// Whether its times are UTC for sure, or of an unknown zone.
    pub is_utc: bool,
    /// What it says it is a log of.
    pub benchmark: Option<String>,
    /// When it was written, in seconds.
    pub written: Activity,
    /// Seen phases.
    pub phases: BTreeMap<String, u64>,
}

/// What the files of one folder tell.
#[derive(Debug, Clone, Default)]
pub(super) struct Folder {
    /// Whether traces of the set's tools lie in it: other files in it and below belong to them.
    pub traced: bool,
    pub host: String,
    pub changes: Vec<Change>,
    pub processes: BTreeMap<u32, Seen>,
    /// When processes were on a GPU, in seconds of local time.
    pub gpu: Activity,
    pub logs: Vec<AppLog>,
    /// The first local time of each dated file.
    pub dated: Vec<i64>,
    /// Dates that could be read in two ways.
    pub unclear: Vec<Written>,
    /// A zone that a file names.
    pub zone: Option<(i32, String)>,
    pub has_mpstat: bool,
    /// Whole paths of file names; none for names that several files have.
    pub paths: HashMap<Box<[u8]>, Option<Box<[u8]>>>,
    pub path_bytes: usize,
    pub notes: Vec<String>,
}

impl Folder {
    /// A process, if there is room for it.
    pub(super) fn process(&mut self, pid: u32) -> Option<&mut Seen> {
        if pid == 0 || (self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid)) {
            return None;
        }
        Some(self.processes.entry(pid).or_default())
    }

    /// Remembers where a file lies.
    pub(super) fn path(&mut self, name: &[u8], full: &[u8]) {
        let bytes = name.len() + full.len();
        let room = self.paths.len() < MOST_PATHS && self.path_bytes + bytes <= MOST_PATH_BYTES;
        match self.paths.get_mut(name) {
            Some(Some(known)) if **known == *full => {}
            Some(several) => *several = None,
            None if room => {
                self.path_bytes += bytes;
                self.paths.insert(name.into(), Some(full.into()));
            }
            None => {}
        }
    }

    pub(super) fn note(&mut self, sentence: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(sentence);
        }
    }

    /// A command line of a process.
    pub(super) fn command(&mut self, pid: u32, ppid: u32, thread: u32, command: &[u8]) {
        let Some(seen) = self.process(pid) else { return };
        let command = String::from_utf8_lossy(&command[..command.len().min(MOST_COMMAND)]);
        // Threads may have names of their own: the process's is the first one's.
        if seen.command.is_empty() || thread == pid {
            seen.command = command.into_owned();
        }
        if ppid != 0 {
            seen.ppid = ppid;
        }
    }

    /// A date that a file begins with.
    pub(super) fn date(&mut self, written: Written, of_day: i64) {
        match written {
            Written::Day(days) => self.dated.push(Days::from_day(days).at(of_day)),
            unclear @ Written::Unclear(..) => {
                if self.unclear.len() < MOST_NOTES {
                    self.unclear.push(unclear);
                }
            }
        }
    }

    /// Takes what another folder of the same set tells.
    pub(super) fn join(&mut self, other: Folder) {
        self.traced |= other.traced;
        self.has_mpstat |= other.has_mpstat;
        if self.host.is_empty() {
            self.host = other.host;
        }
        self.changes.extend(other.changes);
        for (pid, seen) in other.processes {
            let Some(here) = self.process(pid) else { continue };
            if here.command.is_empty() {
                here.command = seen.command;
            }
            if here.comm.is_empty() {
                here.comm = seen.comm;
            }
            if here.ppid == 0 {
                here.ppid = seen.ppid;
            }
            here.gpus.extend(seen.gpus);
            here.reads += seen.reads;
            here.bytes_read = here.bytes_read.saturating_add(seen.bytes_read);
            here.calls += seen.calls;
            if let Some((first, last)) = seen.calls_at {
                here.called(first);
                here.called(last);
            }
        }
        self.gpu.add(&other.gpu);
        self.logs.extend(other.logs);
        self.dated.extend(other.dated);
        self.unclear.extend(other.unclear);
        self.zone = self.zone.take().or(other.zone);
        for (name, full) in other.paths {
            match full {
                Some(full) => self.path(&name, &full),
                None => _ = self.paths.insert(name, None),
            }
        }
        for note in other.notes {
            self.note(note);
        }
    }
}

/// Who a process of a set is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Person {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// The rank that its command line tells, or its place among the workers.
    pub rank: Option<u32>,
    /// The parent process.
    pub ppid: u32,
    /// The command line, or the short name.
    pub command: Vec<String>,
}

/// What was concluded about files that belong together.
#[derive(Debug, Default)]
pub struct Set {
    /// The host; empty where no file tells it.
    pub host: String,
    /// What was run; empty where nothing tells it.
    pub workload: String,
    /// The processes.
    pub people: BTreeMap<u32, Person>,
    /// Towards UTC, where the conclusion found them.
    pub(super) clocks: BTreeMap<ClockKind, Clock>,
    /// Logs without a zone: what is added to their times, in seconds.
    pub(super) log_shift: Option<i64>,
    pub(super) order: DateOrder,
    /// A local time that is known with its day.
    pub(super) near_ns: Option<i64>,
    pub(super) has_mpstat: bool,
    pub(super) paths: HashMap<Box<[u8]>, Option<Box<[u8]>>>,
}

impl Set {
    /// A clock of the set.
    pub fn clock(&self, survey: &Survey, kind: ClockKind) -> Clock {
        match self.clocks.get(&kind) {
            Some(clock) => clock.clone(),
            None if kind == ClockKind::LocalText => survey.local_clock(),
            None => survey.clock(kind),
        }
    }

    /// The clock of wall texts that are cut to a second.
    pub(super) fn seconds(&self, survey: &Survey) -> Clock {
        let mut clock = self.clock(survey, ClockKind::LocalText);
        clock.error_ns = clock.error_ns.map(|error| error.saturating_add(SECOND as u64));
        clock
    }

    /// A date as this set writes it, in days since 1970.
    pub(super) fn days(&self, written: Written) -> Option<i64> {
        written.days(self.order)
    }

    /// Days for lines that have only times of day.
    pub fn near_ns(&self) -> i64 {
        self.near_ns.unwrap_or(0)
    }

    /// The whole path of a file that a trace names without its folder.
    pub(super) fn path<'a>(&'a self, name: &'a [u8]) -> &'a [u8] {
        self.paths.get(name).and_then(|full| full.as_deref()).unwrap_or(name)
    }

    /// The process with a rank.
    pub(super) fn of_rank(&self, rank: u32) -> Option<u32> {
        let mut found =
            self.people.iter().filter(|(_, person)| person.role == Role::Worker && person.rank == Some(rank));
        found.next().map(|(pid, _)| *pid)
    }
}

impl Facts {
    /// The facts of the folder that a file lies in.
    pub(super) fn folder(&mut self, name: &str) -> &mut Folder {
        let folder = folder_of(name);
        let folder = if self.folders.len() < MOST_FOLDERS || self.folders.contains_key(folder) { folder } else { "" };
        self.folders.entry(folder.to_owned()).or_default()
    }

    /// What was concluded for a file.
    pub fn set(&self, name: &str) -> &Set {
        let place = self.set_of.get(folder_of(name)).and_then(|place| self.sets.get(*place));
        place.unwrap_or(&self.nothing)
    }

    /// All sets.
    pub fn sets(&self) -> &[Set] {
        &self.sets
    }
}

/// The name before the last `/` or `!`.
pub(super) fn folder_of(name: &str) -> &str {
    name.rfind(['/', '!']).map_or("", |end| &name[..end])
}

/// The file's own name without its last ending.
pub(super) fn stem_of(name: &str) -> &str {
    let name = crate::input::file_name(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
