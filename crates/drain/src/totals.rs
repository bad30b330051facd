//! Statistics collected during encoding: per call, per file, per span, per process.

mod spans;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use weftline_calls::{Activity, ActivitySums, CALLS, Calls, FileKind, IoSums};
use weftline_format::hash::path_hash;
use weftline_format::identity::held;
use weftline_format::manifest::{CallTotal, FileTotal, TracedBytes};

pub(crate) use spans::{SpanSum, SpanSums};

/// Files that have sums of their own; the rest is summed up as one.
const MAX_FILES: usize = 50_000;
/// Under this name.
const OTHER_FILES: &[u8] = b"other files";
/// Files in a manifest.
pub(crate) const TOP_FILES: usize = 50;
/// Waits (and children that cannot be traced) that are remembered for sorting out whose bytes the kernel counted where.
const MAX_REAPED: usize = 10_000;

/// Sums of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileSum {
    pub path: Vec<u8>,
    pub io: IoSums,
}

impl FileSum {
    fn total(&self) -> FileTotal {
        FileTotal {
            path: held(&self.path),
            reads: self.io.reads,
            writes: self.io.writes,
            read_bytes: self.io.read_bytes,
            write_bytes: self.io.write_bytes,
            time_ns: self.io.time_ns,
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
            known.io.merge(&sum.io);
        } else {
            // No path hashes to 0 but by chance; then its sums stand under the other name.
            let other = self.0.entry(0).or_insert_with(|| FileSum { path: OTHER_FILES.to_vec(), ..FileSum::default() });
            other.io.merge(&sum.io);
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
        let io = IoSums {
            calls: total.reads.saturating_add(total.writes),
            reads: total.reads,
            writes: total.writes,
            read_bytes: total.read_bytes,
            write_bytes: total.write_bytes,
            time_ns: total.time_ns,
            ..IoSums::default()
        };
        let sum = FileSum { path, io };
        self.merge(path_hash(&sum.path), &sum);
    }

    /// The files that took most time, then bytes; the same for the same sums.
    pub(crate) fn top(&self, count: usize) -> Vec<FileTotal> {
        let mut sums: Vec<&FileSum> = self.0.values().collect();
        sums.sort_by(|a, b| {
            // Files before pipes and sockets, of which a shell script makes thousands.
            let weight = |sum: &FileSum| (sum.path.starts_with(b"/"), sum.io.time_ns, sum.io.bytes());
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
    /// By call number, without those that waited for others.
    pub calls: Vec<IoSums>,
    /// Those, likewise.
    pub waits: Vec<IoSums>,
    /// What the main thread did during calls.
    pub main: ActivitySums,
    pub files: FileSums,
    pub spans: SpanSums,
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
            calls: vec![IoSums::default(); CALLS.len()],
            waits: vec![IoSums::default(); CALLS.len()],
            main: ActivitySums::default(),
            files: FileSums::default(),
            spans: SpanSums::default(),
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
    /// Adds calls on a file of a kind.
    #[inline]
    pub(crate) fn add_calls(&mut self, number: usize, file: FileKind, calls: Calls) -> Option<Activity> {
        let operation = CALLS[number].operation;
        let activity = Activity::of(operation, file);
        let waits = activity.is_some_and(Activity::is_waiting);
        let sums = if waits { &mut self.waits } else { &mut self.calls };
        sums[number].add(operation, calls);
        activity
    }

    /// What the calls moved, at the stream or at the kernel, for comparison with the kernel's counters.
    pub(crate) fn traced(&self) -> TracedBytes {
        let mut traced = TracedBytes::default();
        let all = CALLS.iter().zip(&self.calls).chain(CALLS.iter().zip(&self.waits));
        let counted = all.filter(|(call, _)| call.operation.is_counted_by_kernel());
        for (call, sums) in counted {
            let (read, write) = match call.operation.is_buffered() {
                true => (&mut traced.stdio_read, &mut traced.stdio_write),
                false => (&mut traced.posix_read, &mut traced.posix_write),
            };
            *read = read.saturating_add(sums.read_bytes);
            *write = write.saturating_add(sums.write_bytes);
        }
        traced
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

    /// What is known besides the events, which are not in the trace: processes that ended or could not be traced, what the main thread was busy with.
    #[must_use]
    pub(crate) fn without_events(mut self) -> Totals {
        self.calls.fill(IoSums::default());
        self.waits.fill(IoSums::default());
        self.files = FileSums::default();
        self.spans = SpanSums::default();
        self
    }

    pub(crate) fn merge(&mut self, other: &Totals) {
        let pairs = self.calls.iter_mut().zip(&other.calls).chain(self.waits.iter_mut().zip(&other.waits));
        pairs.for_each(|(sum, more)| sum.merge(more));
        self.main.merge(&other.main);
        self.files.merge_all(&other.files);
        self.spans.merge_all(&other.spans);
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
        let all = [(false, &self.calls), (true, &self.waits)];
        let used = all.into_iter().flat_map(|(waits, sums)| CALLS.iter().zip(sums).map(move |pair| (waits, pair)));
        let used = used.filter(|(_, (_, sum))| sum.calls > 0);
        used.map(|(waits, (call, sum))| CallTotal {
            name: call.name.to_owned(),
            cat: call.category().to_owned(),
            waits,
            count: sum.calls,
            time_ns: sum.time_ns,
            // What is copied is read and written once each.
            bytes: sum.read_bytes.max(sum.write_bytes),
        })
        .collect()
    }
}

/// Adds totals per call to a list, by name and category.
pub(crate) fn merge_calls(into: &mut Vec<CallTotal>, more: &[CallTotal]) {
    for total in more {
        let same =
            |known: &&mut CallTotal| (&known.name, &known.cat, known.waits) == (&total.name, &total.cat, total.waits);
        match into.iter_mut().find(same) {
            Some(known) => known.merge(total),
            None => into.push(total.clone()),
        }
    }
}
