//! Statistics that fall out of encoding: per call, per file, per span, per process.

mod spans;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use weftline_format::hash::path_hash;
use weftline_format::identity::held;
use weftline_format::manifest::{CallTotal, FileTotal, TracedBytes};
use weftline_recorder::calls::{CALLS, Flow};

pub(crate) use spans::{SpanSum, SpanSums};

/// Files that are told apart; the rest is summed up as one.
const MAX_FILES: usize = 50_000;
/// Under this name.
const OTHER_FILES: &[u8] = b"other files";
/// Files in a manifest.
pub(crate) const TOP_FILES: usize = 50;
/// Waits (and children that cannot be traced) that are remembered for sorting out whose bytes the kernel counted where.
const MAX_REAPED: usize = 10_000;

/// Sums of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallSum {
    pub count: u64,
    pub time_ns: u64,
    pub bytes: u64,
}

/// Sums of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileSum {
    pub path: Vec<u8>,
    pub calls: u64,
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub time_ns: u64,
}

impl FileSum {
    pub(crate) fn add(&mut self, flow: Flow, calls: u64, bytes: u64, time_ns: u64) {
        self.calls += calls;
        self.time_ns += time_ns;
        if matches!(flow, Flow::Read | Flow::Both) {
            self.reads += calls;
            self.read_bytes += bytes;
        }
        if matches!(flow, Flow::Write | Flow::Both) {
            self.writes += calls;
            self.write_bytes += bytes;
        }
    }

    fn merge(&mut self, other: &FileSum) {
        self.calls += other.calls;
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.time_ns += other.time_ns;
    }

    fn total(&self) -> FileTotal {
        FileTotal {
            path: held(&self.path),
            reads: self.reads,
            writes: self.writes,
            read_bytes: self.read_bytes,
            write_bytes: self.write_bytes,
            time_ns: self.time_ns,
        }
    }
}

/// Sums per file, by the hash of its path; bounded.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileSums(HashMap<u64, FileSum>);

impl FileSums {
    pub(crate) fn merge(&mut self, hash: u64, sum: &FileSum) {
        if self.0.len() < MAX_FILES || self.0.contains_key(&hash) {
            let known = self.0.entry(hash).or_insert_with(|| FileSum { path: sum.path.clone(), ..FileSum::default() });
            known.merge(sum);
        } else {
            // No path hashes to 0 but by chance; then its sums stand under the other name.
            let other = self.0.entry(0).or_insert_with(|| FileSum { path: OTHER_FILES.to_vec(), ..FileSum::default() });
            other.merge(sum);
        }
    }

    /// Whether there was a call on this file.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.0.contains_key(&path_hash(path))
    }

    pub(crate) fn merge_all(&mut self, others: &FileSums) {
        for (hash, sum) in &others.0 {
            self.merge(*hash, sum);
        }
    }

    /// Adds what an earlier drain summed up.
    pub(crate) fn merge_total(&mut self, total: &FileTotal) {
        let path = weftline_format::text::path_bytes(&total.path).into_owned();
        let sum = FileSum {
            calls: total.reads + total.writes,
            reads: total.reads,
            writes: total.writes,
            read_bytes: total.read_bytes,
            write_bytes: total.write_bytes,
            time_ns: total.time_ns,
            path,
        };
        self.merge(path_hash(&sum.path), &sum);
    }

    /// The files that took most time, then bytes; the same for the same sums.
    pub(crate) fn top(&self, count: usize) -> Vec<FileTotal> {
        let mut sums: Vec<&FileSum> = self.0.values().collect();
        sums.sort_by(|a, b| {
            // Files before pipes and sockets, of which a shell script makes thousands.
            let weight = |sum: &FileSum| (sum.path.starts_with(b"/"), sum.time_ns, sum.read_bytes + sum.write_bytes);
            weight(b).cmp(&weight(a)).then_with(|| a.path.cmp(&b.path))
        });
        sums.iter().take(count).map(|sum| sum.total()).collect()
    }
}

/// A child that a process waited for: its pid, and when the wait returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reaped {
    pub pid: u32,
    pub at_ns: i64,
}

/// A child that runs a program which cannot be traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UntracedChild {
    pub pid: u32,
    pub exe: Vec<u8>,
    pub reason: &'static str,
    pub at_ns: i64,
}

/// Everything that is summed up for one process image.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// By call number.
    pub calls: Vec<CallSum>,
    pub files: FileSums,
    pub spans: SpanSums,
    pub traced: TracedBytes,
    /// Lines that are not metadata.
    pub events: u64,
    /// Metadata that the program told.
    pub metadata: u64,
    /// Events on paths that were not wanted.
    pub filtered: u64,
    /// Records that made no sense.
    pub damaged: u64,
    /// Records of a living process that were begun and not finished.
    pub unfinished: u64,
    /// Events that the disk had no room for.
    pub disk_full: u64,
    pub reaped_children: u64,
    pub reaped: Vec<Reaped>,
    pub untraced: Vec<UntracedChild>,
    /// Latest end of an event.
    pub last_ns: i64,
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            calls: vec![CallSum::default(); CALLS.len()],
            files: FileSums::default(),
            spans: SpanSums::default(),
            traced: TracedBytes::default(),
            events: 0,
            metadata: 0,
            filtered: 0,
            damaged: 0,
            unfinished: 0,
            disk_full: 0,
            reaped_children: 0,
            reaped: Vec::new(),
            untraced: Vec::new(),
            last_ns: 0,
        }
    }
}

impl Totals {
    /// Adds up what a call moved, at the stream or at the kernel.
    pub(crate) fn add_bytes(&mut self, flow: Flow, stream: bool, bytes: u64) {
        let traced = &mut self.traced;
        let (read, write) = if stream {
            (&mut traced.stdio_read, &mut traced.stdio_write)
        } else {
            (&mut traced.posix_read, &mut traced.posix_write)
        };
        if matches!(flow, Flow::Read | Flow::Both) {
            *read += bytes;
        }
        if matches!(flow, Flow::Write | Flow::Both) {
            *write += bytes;
        }
    }

    pub(crate) fn add_reaped(&mut self, pid: u32, at_ns: i64) {
        self.reaped_children += 1;
        if self.reaped.len() < MAX_REAPED {
            self.reaped.push(Reaped { pid, at_ns });
        }
    }

    pub(crate) fn add_untraced(&mut self, child: UntracedChild) {
        if self.untraced.len() < MAX_REAPED {
            self.untraced.push(child);
        }
    }

    pub(crate) fn merge(&mut self, other: &Totals) {
        for (sum, more) in self.calls.iter_mut().zip(&other.calls) {
            sum.count += more.count;
            sum.time_ns += more.time_ns;
            sum.bytes += more.bytes;
        }
        self.files.merge_all(&other.files);
        self.spans.merge_all(&other.spans);
        self.traced = sum_traced(&self.traced, &other.traced);
        self.events += other.events;
        self.metadata += other.metadata;
        self.filtered += other.filtered;
        self.damaged += other.damaged;
        self.unfinished += other.unfinished;
        self.disk_full += other.disk_full;
        self.reaped_children += other.reaped_children;
        let room = MAX_REAPED.saturating_sub(self.reaped.len());
        self.reaped.extend(other.reaped.iter().take(room));
        let room = MAX_REAPED.saturating_sub(self.untraced.len());
        self.untraced.extend(other.untraced.iter().take(room).cloned());
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// Totals per call, for the manifest.
    pub(crate) fn call_totals(&self) -> Vec<CallTotal> {
        let used = CALLS.iter().zip(&self.calls).filter(|(_, sum)| sum.count > 0);
        used.map(|(call, sum)| CallTotal {
            name: call.name.to_owned(),
            cat: call.category.to_owned(),
            count: sum.count,
            time_ns: sum.time_ns,
            bytes: sum.bytes,
        })
        .collect()
    }
}

fn sum_traced(a: &TracedBytes, b: &TracedBytes) -> TracedBytes {
    TracedBytes {
        posix_read: a.posix_read + b.posix_read,
        posix_write: a.posix_write + b.posix_write,
        stdio_read: a.stdio_read + b.stdio_read,
        stdio_write: a.stdio_write + b.stdio_write,
        other_read: a.other_read + b.other_read,
        other_write: a.other_write + b.other_write,
    }
}

/// Adds totals per call to a list, by name and category.
pub(crate) fn merge_calls(into: &mut Vec<CallTotal>, more: &[CallTotal]) {
    for total in more {
        match into.iter_mut().find(|known| known.name == total.name && known.cat == total.cat) {
            Some(known) => {
                known.count += total.count;
                known.time_ns += total.time_ns;
                known.bytes += total.bytes;
            }
            None => into.push(total.clone()),
        }
    }
}
