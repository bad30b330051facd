//! Writes samples to a file of the run directory, so that a killed collector loses the last interval at most.
//!
//! `<host>-<pid>-<start>.samples.pfw.gz` is a trace file like any other: gzip members that start with the identity of what they are
//! about, the host, and name each process before its first sample. A member holds ten seconds, because small members
//! compress badly. The content of the open member is plain text in a
//! hidden *tail* beside it, which grows by one write at the end of each interval. Recovery turns the tail of a dead writer
//! into a member ([`mod@recover`]); the number of the open member is in the tail, so that happens exactly once.
//!
//! If the disk is full, intervals are kept in memory up to a limit, then dropped and counted, until there is room again.

mod recover;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use weftline_format::files;
use weftline_format::identity::{CATEGORY, Identity};
use weftline_format::line::LineBuf;
use weftline_format::manifest::SAMPLES_END;
use weftline_format::member::{self, Deflater};

use crate::error::{CollectError, Result};
use crate::own::Own;
use crate::sample::{Fact, Facts, Interval, Sink, Subject, Value, Values};

pub use recover::{Recovered, recover};

/// Text at which a member is closed.
const MEMBER_TEXT: usize = 256 << 10;
/// But not before it holds so many times what the names of its processes take, since the next one names them all again; of 1,000
/// processes a single tick is longer than a member, and naming them each time took more than half of it.
const NAMES_IN_MEMBER: usize = 8;
/// And then at the latest: readers take a member as a whole.
const MOST_MEMBER_TEXT: usize = 4 << 20;
/// Age at which it is closed: readers of a live run are behind by no more.
const MEMBER_AGE_NS: i64 = 10_000_000_000;
/// Text that is kept in memory while it cannot be written.
const HELD_TEXT: usize = 4 << 20;
/// How the names of tails end.
const TAIL_END: &str = ".samples.tail";

/// Writes the samples of one collector.
#[derive(Debug)]
pub struct SampleWriter {
    path: PathBuf,
    tail_path: PathBuf,
    /// The hidden text file, locked for as long as this process lives.
    tail: File,
    /// What a member is about: the host, as a process 0.
    about: Identity,
    /// Processes that samples may speak of.
    pids: HashMap<u32, Identity>,
    /// Those of them that the open member has named.
    named: HashSet<u32>,
    lines: LineBuf,
    /// Bytes of `lines` that name processes.
    names_text: usize,
    /// Bytes of `lines` that are in the tail.
    in_tail: usize,
    events: u32,
    /// When the open member's first interval ended, on the steady clock.
    opened_ns: Option<i64>,
    interval: OpenInterval,
    sequence: u64,
    /// Bytes of whole members.
    length: u64,
    deflater: Deflater,
    sealed: Vec<u8>,
    counts: Counts,
    trouble: Option<String>,
}

/// What the interval at hand has added, so that it can be taken back.
#[derive(Debug, Default)]
struct OpenInterval {
    start: usize,
    events: u32,
    named: Vec<u32>,
}

/// What became of the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples in the file or its tail.
    pub samples: u64,
    /// Samples that there was no room for.
    pub lost: u64,
}

impl SampleWriter {
    /// A writer whose file nobody else writes. `session` is what its name has behind the process's start, where one process samples
    /// several times for a run. The file itself appears with its first member.
    pub fn create(run: &Path, own: &Own, command: &[String], at_ns: i64) -> Result<(SampleWriter, u32)> {
        for session in 0..u32::MAX {
            let stem = own.stem(session);
            let path = run.join(format!("{stem}{SAMPLES_END}"));
            let tail_path = run.join(format!(".{stem}{TAIL_END}"));
            if path.exists() {
                continue;
            }
            let tail = match files::create(&tail_path) {
                Ok(tail) => tail,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(CollectError::io(&tail_path, error)),
            };
            // File systems without locks: nobody takes such a tail before its writer has removed it.
            let _ = flock(&tail, FlockOperation::NonBlockingLockExclusive);
            let about = Identity {
                pid: 0,
                at_ns,
                name: own.host.clone(),
                host: own.host.clone(),
                boot: own.boot.clone(),
                start: 0,
                nonce: format!("samples-{}-{}-{session}", own.pid, own.start),
                cmd: command.to_vec(),
                ..Identity::default()
            };
            let writer = SampleWriter {
                path,
                tail_path,
                tail,
                about,
                pids: HashMap::new(),
                named: HashSet::new(),
                lines: LineBuf::new(),
                names_text: 0,
                in_tail: 0,
                events: 0,
                opened_ns: None,
                interval: OpenInterval::default(),
                sequence: 0,
                length: 0,
                deflater: Deflater::new(),
                sealed: Vec::new(),
                counts: Counts::default(),
                trouble: None,
            };
            return Ok((writer, session));
        }
        Err(CollectError::io(run, io::Error::from(io::ErrorKind::AlreadyExists)))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What became of the samples so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The last write error; reported once.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Who a process is, or has become, for the line that names it in each member.
    pub fn introduce(&mut self, process: Identity) {
        self.named.remove(&process.pid);
        self.pids.insert(process.pid, process);
    }

    /// Metadata of the host that is more than a list of values.
    pub fn host_metadata(&mut self, name: &str, at_ns: i64, fields: &serde_json::Map<String, serde_json::Value>) {
        self.name(Subject::Host);
        self.lines.metadata_at(name, CATEGORY, 0, 0, at_ns);
        for (key, value) in fields {
            self.lines.arg_json(key, &value.to_string());
        }
        self.lines.finish();
    }

    /// No more samples of this process will come.
    pub fn forget(&mut self, pid: u32) {
        self.pids.remove(&pid);
    }

    /// Ends an interval at a steady time: what it added is safe from SIGKILL when this returns.
    pub fn end_interval(&mut self, now_ns: i64) {
        if !self.lines.is_empty() {
            self.opened_ns.get_or_insert(now_ns);
        }
        let is_old = self.opened_ns.is_some_and(|opened_ns| now_ns.saturating_sub(opened_ns) >= MEMBER_AGE_NS);
        let flushed = self.flush();
        if flushed.is_err() && self.lines.len() - self.in_tail > HELD_TEXT {
            self.take_back();
        }
        let enough = MEMBER_TEXT.max((self.names_text * NAMES_IN_MEMBER).min(MOST_MEMBER_TEXT));
        if flushed.is_ok() && (self.lines.len() >= enough || is_old) {
            // A member that cannot be written stays in the tail, and is tried again at the end of the next interval.
            let _ = self.close_member();
        }
        self.interval = OpenInterval { start: self.lines.len(), ..OpenInterval::default() };
    }

    /// Writes what is left and removes the tail. What cannot be written is counted as lost; the tail then stays if it holds anything.
    pub fn finish(mut self) -> Counts {
        if self.counts == Counts::default() {
            self.discard();
            return Counts::default();
        }
        self.end_interval(self.opened_ns.unwrap_or(0));
        let closed = self.close_member();
        if closed.is_ok() {
            // Nothing is in it.
            let _ = std::fs::remove_file(&self.tail_path);
        } else if self.flush().is_err() {
            let missing = count_events(&self.lines.as_bytes()[self.in_tail..]);
            self.counts.samples = self.counts.samples.saturating_sub(missing);
            self.counts.lost += missing;
        }
        self.counts
    }

    /// Leaves nothing behind, for a collector that had no time for anything worth keeping.
    pub fn discard(self) {
        for path in [&self.path, &self.tail_path] {
            // What was never made cannot be removed.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Drops the interval at hand.
    fn take_back(&mut self) {
        let interval = std::mem::take(&mut self.interval);
        self.lines.truncate(interval.start);
        self.events -= interval.events;
        self.counts.samples -= u64::from(interval.events);
        self.counts.lost += u64::from(interval.events);
        for pid in interval.named {
            self.named.remove(&pid);
        }
        if self.lines.is_empty() {
            self.opened_ns = None;
        }
    }

    /// Appends the new text to the tail.
    fn flush(&mut self) -> io::Result<()> {
        let text = &self.lines.as_bytes()[self.in_tail..];
        if text.is_empty() {
            return Ok(());
        }
        let written = self.tail.write_all_at(text, self.in_tail as u64);
        match written {
            Ok(()) => self.in_tail = self.lines.len(),
            Err(error) => {
                // Half a line must not stay; if this fails too, recovery cuts it.
                let _ = self.tail.set_len(self.in_tail as u64);
                self.note_trouble(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Turns the open text into a member.
    fn close_member(&mut self) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.sealed.clear();
        member::seal(self.lines.as_bytes(), self.events, self.sequence, &mut self.sealed, &mut self.deflater);
        if let Err(error) = append(&self.path, self.length, &self.sealed) {
            self.note_trouble(&error);
            return Err(error);
        }
        self.length += self.sealed.len() as u64;
        self.sequence += 1;
        // Should this fail, the next flush writes over it from the start, and its number says that the rest is stale.
        let _ = self.tail.set_len(0);
        self.lines.clear();
        self.named.clear();
        (self.names_text, self.in_tail, self.events, self.opened_ns) = (0, 0, 0, None);
        Ok(())
    }

    fn note_trouble(&mut self, error: &io::Error) {
        if self.trouble.is_none() {
            self.trouble =
                Some(format!("{}: {error}; samples stay in memory; the excess is dropped", self.path.display()));
        }
    }

    /// The lines that every member begins with.
    fn open_member(&mut self) {
        if self.sequence == 0 {
            self.lines.open_array();
        }
        self.about.seq = self.sequence;
        self.about.write(&mut self.lines);
    }

    /// The pid of a subject, named in the open member.
    fn name(&mut self, subject: Subject) -> u32 {
        if self.lines.is_empty() {
            self.open_member();
        }
        let Subject::Process(pid) = subject else { return 0 };
        if !self.named.contains(&pid)
            && let Some(identity) = self.pids.get_mut(&pid)
        {
            identity.seq = self.sequence;
            let before = self.lines.len();
            identity.write(&mut self.lines);
            self.names_text += self.lines.len() - before;
            self.named.insert(pid);
            self.interval.named.push(pid);
        }
        pid
    }

    fn put(&mut self, key: &str, value: Value) {
        match value {
            Value::Unsigned(number) => self.lines.arg_u64(key, number),
            Value::Signed(number) => self.lines.arg_i64(key, number),
            // Shares and rates are measured to a few digits; the others would be two thirds of the file.
            Value::Float(number) if number.is_finite() => self.lines.arg_f64(key, rounded(number)),
            Value::Float(_) => &mut self.lines,
        };
    }
}

impl Sink for SampleWriter {
    fn counter(&mut self, subject: Subject, category: &'static str, name: &str, at: Interval, values: Values<'_>) {
        let pid = self.name(subject);
        self.lines.counter_over(name, category, pid, pid, at.start_ns, at.end_ns.max(at.start_ns));
        for (key, value) in values {
            self.put(key, *value);
        }
        self.lines.finish();
        self.events += 1;
        self.interval.events += 1;
        self.counts.samples += 1;
    }

    fn metadata(&mut self, subject: Subject, name: &str, at_ns: i64, facts: Facts<'_>) {
        let pid = self.name(subject);
        self.lines.metadata_at(name, CATEGORY, pid, pid, at_ns);
        for (key, fact) in facts {
            match fact {
                Fact::Number(value) => self.put(key, *value),
                Fact::Text(text) => _ = self.lines.arg_str(key, text.as_bytes()),
            }
        }
        self.lines.finish();
    }
}

/// To a thousandth: shares and rates need no more, and digits cost space.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Appends to a file whose good part has that length; a write that fails leaves it as it was.
fn append(path: &Path, length: u64, bytes: &[u8]) -> io::Result<()> {
    let mut file = files::append(path)?;
    file.write_all(bytes).inspect_err(|_| {
        if length == 0 {
            let _ = std::fs::remove_file(path);
        } else {
            let _ = file.set_len(length);
        }
    })
}

/// Events among whole lines: all that is not metadata.
fn count_events(text: &[u8]) -> u64 {
    let mut events = 0;
    weftline_format::reader::scan_member(text, &mut |event| {
        events += u64::from(event.phase != weftline_format::Phase::Metadata);
    });
    events
}

#[cfg(test)]
mod tests;
