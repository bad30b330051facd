//! Manifests: the facts about an image when it ends, and about the run when the drain ends.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use weftline_format::identity::held;
use weftline_format::manifest::{CallTotal, Exit, IoCount, IoSpan, ProcessRecord, SupervisorRecord};
use weftline_format::text::path_bytes;
use weftline_recorder::elf::VERDICT_NAMES;
use weftline_recorder::layout::{Control, KernelIo, LOSS_NAMES, Loss, REFUSAL_NAMES, unseen_io};

use crate::budget::lock;
use crate::image::Image;
use crate::journal::Entry;
use crate::paths;
use crate::procfs;
use crate::runtime;
use crate::timeline::Timeline;
use crate::totals::{FileSums, SpanSums, TOP_FILES, Totals};

/// Reason under which events are counted that the disk had no room for.
pub(crate) const DISK_FULL: &str = "disk-full";
/// Reason under which records are counted that made no sense.
pub(crate) const DAMAGED: &str = "damaged-record";

/// Reason for an arena with missing pages: the number of lost events is unknown, so it counts once per image.
pub(crate) const CUT: &str = "shared-memory-damaged";

/// Reason for a whole live directory that vanished.
pub(crate) const GONE: &str = "live-directory-gone";

const UNSEEN_IO: [(u32, &str); 9] = [
    (unseen_io::IO_URING, "io_uring"),
    (unseen_io::MMAP, "mmap"),
    (unseen_io::SECCOMP, "seccomp"),
    (unseen_io::RAW_SYSCALLS, "raw syscalls"),
    (unseen_io::NATIVE_AIO, "native aio"),
    (unseen_io::STREAMS, "streams"),
    (unseen_io::SHARED_MEMORY, "shared memory"),
    (unseen_io::SOCKETS, "sockets"),
    (unseen_io::SPLICE, "splice"),
];

/// What a mapped io_uring is called.
const RING: &[u8] = b"anon_inode:[io_uring]";
/// The way of programs that Go linked.
const GO: &str = "go";

/// What the drain saw of a process from outside before it was gone.
#[derive(Clone, Debug)]
pub(crate) struct LastLook {
    /// The kernel's counters when they were last read.
    pub sampled: Option<KernelIo>,
    /// When it was last seen alive, on the monotonic clock.
    pub seen_alive: Option<u64>,
    /// Turns the slot's ticks into time.
    pub timeline: Timeline,
    /// Whether the image is still alive: then this is an interim record.
    pub alive: bool,
}

/// The journal entry of an image.
pub(crate) fn entry(image: &Image, last: &LastLook) -> Entry {
    let totals = lock(&image.totals).clone();
    let file = {
        let file = lock(&image.file);
        if totals.events + totals.metadata > 0 { file.name.clone() } else { String::new() }
    };
    Entry {
        tag: image.tag.clone(),
        process: process_record(image, last, &totals, file),
        calls: totals.call_totals(),
        files: totals.files.top(TOP_FILES),
        spans: totals.spans.totals(totals.last_ns),
        reaped: totals.reaped,
        filtered: totals.filtered,
    }
}

fn process_record(image: &Image, last: &LastLook, totals: &Totals, file: String) -> ProcessRecord {
    let identity = &image.identity;
    let mut process = ProcessRecord {
        pid: identity.pid,
        ppid: identity.ppid,
        start: identity.start,
        nonce: identity.nonce.clone(),
        pidns: identity.pidns,
        host: identity.host.clone(),
        forked: image.info.birth.parent_slot != 0,
        exe: identity.exe.clone(),
        command: identity.cmd.clone(),
        rank: identity.rank,
        file,
        events: totals.events,
        drops: drops(totals),
        traced: totals.traced(),
        reaped_children: totals.reaped_children,
        started_ns: identity.at_ns,
        main_ns: totals.main.largest_first().map(|(activity, ns)| (activity.key().to_owned(), ns)).collect(),
        ..ProcessRecord::default()
    };
    let Some(end) = image.arena.slot_end(image.key.slot) else { return process };
    for (name, count) in LOSS_NAMES.iter().zip(end.losses).filter(|(_, count)| *count > 0) {
        *process.drops.entry((*name).to_owned()).or_default() += count;
    }
    if image.arena.is_damaged() {
        *process.drops.entry(CUT.to_owned()).or_default() += 1;
    }
    // The ring is mapped like a file, which hooks may see before anybody finds its descriptor.
    let ring = if totals.files.has(RING) { unseen_io::IO_URING } else { 0 };
    let found = UNSEEN_IO.iter().filter(|(bit, _)| (end.unseen_io | ring) & bit != 0);
    process.unseen_io = found.map(|(_, name)| (*name).to_owned()).collect();
    process.sampled_io = end.io_end == KernelIo::UNKNOWN;
    process.recorder_read = end.own_reads;
    // Of a process that was killed before anybody looked, its own look at the start is the last one.
    let counted = if process.sampled_io { last.sampled.or(Some(image.info.birth.io_start)) } else { Some(end.io_end) };
    if let (Some(start), Some(end)) = (procfs::counted(image.info.birth.io_start), counted.and_then(procfs::counted)) {
        process.io = Some(IoSpan { start, end });
    }
    if !last.alive {
        process.ended_ns = match end.ended_ticks {
            // Killed: it ended after its last event and after it was last seen.
            0 => last.seen_alive.map_or(totals.last_ns, |seen| last.timeline.at_monotonic(seen).max(totals.last_ns)),
            ticks => last.timeline.at(ticks),
        };
        process.exit = (end.exit_status >= 0).then_some(Exit { code: Some(end.exit_status), signal: None });
    }
    process.cpu_ns = end.cpu_ns;
    process.main_cpu_ns = end.main_cpu_ns;
    process.main_queued_ns = end.main_queued_ns;
    process.max_rss = end.max_rss_kib * 1024;
    process
}

fn drops(totals: &Totals) -> BTreeMap<String, u64> {
    let known = [
        (DISK_FULL, totals.disk_full),
        (DAMAGED, totals.damaged),
        (LOSS_NAMES[Loss::InSignal as usize], totals.unfinished),
    ];
    known.iter().filter(|(_, count)| *count > 0).map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// The programs that could not be traced: that the image became by exec, and that it started as children.
pub(crate) fn untraced(image: &Image, last: &LastLook) -> Vec<Entry> {
    let identity = &image.identity;
    let children = lock(&image.totals).untraced.clone().into_iter().map(|child| {
        let process = ProcessRecord {
            pid: child.pid,
            ppid: identity.pid,
            nonce: format!("{}-{}-{}", image.tag, child.pid, child.at_ns),
            pidns: identity.pidns,
            host: identity.host.clone(),
            exe: held(&child.exe),
            rank: identity.rank,
            sampled_io: true,
            untraced: Some(child.reason.to_owned()),
            started_ns: child.at_ns,
            ..ProcessRecord::default()
        };
        Entry { tag: process.nonce.clone(), process, ..Entry::default() }
    });
    untraced_exec(image, last).into_iter().chain(children).collect()
}

fn untraced_exec(image: &Image, last: &LastLook) -> Option<Entry> {
    let end = image.arena.slot_end(image.key.slot).filter(|end| end.exec_verdict != 0)?;
    let exe = paths::resolve(|id| image.arena.name(id), end.exec_path).map(|path| held(&path)).unwrap_or_default();
    let reason = VERDICT_NAMES.get(end.exec_verdict as usize).copied().unwrap_or("not known");
    let identity = &image.identity;
    let before = procfs::counted(end.io_end);
    let process = ProcessRecord {
        pid: identity.pid,
        ppid: identity.ppid,
        start: identity.start,
        nonce: format!("{}-x", image.tag),
        pidns: identity.pidns,
        host: identity.host.clone(),
        exe,
        rank: identity.rank,
        io: before.map(|start| IoSpan { start, end: start }),
        sampled_io: true,
        untraced: Some(reason.to_owned()),
        started_ns: last.timeline.at(end.ended_ticks),
        ..ProcessRecord::default()
    };
    Some(Entry { tag: process.nonce.clone(), process, ..Entry::default() })
}

/// Losses of processes that had no slot, as the record of a process that is none. `ownerless`: records of which nobody knows whose they were;
/// `damaged`: arenas that could not be read at all.
pub(crate) fn without_owner(host: &str, losses: &[u64], ownerless: u64, damaged: u64) -> Option<Entry> {
    let known = LOSS_NAMES.iter().copied().zip(losses.iter().copied());
    let drops: BTreeMap<String, u64> = known
        .chain([(DAMAGED, ownerless), (CUT, damaged)])
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    let reason = "images that found no room in shared memory".to_owned();
    (!drops.is_empty()).then(|| Entry {
        tag: "no-owner".to_owned(),
        process: ProcessRecord { host: host.to_owned(), drops, untraced: Some(reason), ..ProcessRecord::default() },
        ..Entry::default()
    })
}

/// The programs that could not have an arena, each once for a reason. Two places may have the same one, if its processes came at the same time.
pub(crate) fn refused(host: &str, control: &Control, timeline: &Timeline) -> Vec<Entry> {
    let mut found: BTreeMap<(usize, Vec<u8>), Entry> = BTreeMap::new();
    for place in &control.refused {
        let why = place.reason.load(Ordering::Acquire) as usize;
        let Some(reason) = REFUSAL_NAMES.get(why).filter(|_| why != 0) else { continue };
        let path = place.path.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|byte| *byte != 0);
        let path: Vec<u8> = path.collect();
        let count = place.count.load(Ordering::Relaxed).max(1);
        if let Some(known) = found.get_mut(&(why, path.clone())) {
            known.process.refused = known.process.refused.saturating_add(count);
            continue;
        }
        let at_mono = place.at_mono.load(Ordering::Relaxed);
        let process = ProcessRecord {
            pid: place.pid.load(Ordering::Relaxed),
            nonce: format!("refused-{at_mono}"),
            host: host.to_owned(),
            exe: held(&path),
            untraced: Some((*reason).to_owned()),
            refused: count,
            started_ns: timeline.at_monotonic(at_mono),
            ..ProcessRecord::default()
        };
        found.insert((why, path), Entry { tag: process.nonce.clone(), process, ..Entry::default() });
    }
    found.into_values().collect()
}

/// The mark of a live directory that was gone before anyone recovered it.
pub(crate) fn gone(host: &str) -> Option<Entry> {
    let reason = "shared memory was removed before it was written to files".to_owned();
    let drops = BTreeMap::from([(GONE.to_owned(), 1)]);
    let process = ProcessRecord { host: host.to_owned(), drops, untraced: Some(reason), ..ProcessRecord::default() };
    Some(Entry { tag: GONE.to_owned(), process, ..Entry::default() })
}

/// Fills processes, calls, files and spans of a manifest.
pub(crate) fn fill(
    record: &mut SupervisorRecord,
    entries: &[Entry],
    mut calls: Vec<CallTotal>,
    files: &FileSums,
    spans: &SpanSums,
) {
    record.spans = spans.totals(0);
    calls.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| a.name.cmp(&b.name)));
    record.calls = calls;
    record.files = files.top(TOP_FILES);
    // What the supervisor itself knew of processes stays: a program that could not be traced has no arena. Processes that
    // an earlier manifest took from the journal are there again.
    let known: HashSet<(u32, &str)> = entries.iter().map(|e| (e.process.pid, e.process.nonce.as_str())).collect();
    let mut given = std::mem::take(&mut record.processes);
    given.retain(|process| !known.contains(&(process.pid, process.nonce.as_str())));
    record.processes = entries.iter().map(|entry| entry.process.clone()).collect();
    let mut by_pid: HashMap<u32, Vec<&ProcessRecord>> = HashMap::new();
    for entry in entries {
        by_pid.entry(entry.process.pid).or_default().push(&entry.process);
    }
    let mut go: HashMap<String, bool> = HashMap::new();
    let children: Vec<Vec<&ProcessRecord>> = entries.iter().map(|entry| reaped(entry, &by_pid)).collect();
    let waited_for: HashSet<(u32, &str)> =
        children.iter().flatten().map(|child| (child.pid, child.nonce.as_str())).collect();
    for ((process, entry), children) in record.processes.iter_mut().zip(entries).zip(&children) {
        process.waited_for = waited_for.contains(&(process.pid, process.nonce.as_str()));
        process.reaped_io = (!entry.reaped.is_empty()).then(|| sum_of(children));
        if has_gap(process) && *go.entry(process.exe.clone()).or_insert_with(|| is_go(&process.exe)) {
            process.unseen_io.push(GO.to_owned());
        }
    }
    record.processes.extend(given);
    record.processes.sort_by(|a, b| (a.started_ns, a.pid, &a.nonce).cmp(&(b.started_ns, b.pid, &b.nonce)));
}

/// Whether the kernel counted more for a process itself than its trace holds.
fn has_gap(process: &ProcessRecord) -> bool {
    let Some(io) = process.io else { return false };
    let (reaped, traced) = (process.reaped_io.unwrap_or_default(), process.traced);
    let gap =
        |start: u64, end: u64, reaped: u64, traced: u64| end.saturating_sub(start).saturating_sub(reaped) > traced;
    let read = traced.posix_read.saturating_add(traced.stdio_read);
    let write = traced.posix_write.saturating_add(traced.stdio_write);
    process.untraced.is_none()
        && !process.unseen_io.iter().any(|way| way == GO)
        && (gap(io.start.rchar, io.end.rchar, reaped.rchar, read)
            || gap(io.start.wchar, io.end.wchar, reaped.wchar, write))
}

fn is_go(exe: &str) -> bool {
    let path = path_bytes(exe);
    exe.starts_with('/') && runtime::is_go(Path::new(OsStr::from_bytes(&path)))
}

/// The children that a process waited for, each as its last image before that.
fn reaped<'e>(parent: &Entry, by_pid: &HashMap<u32, Vec<&'e ProcessRecord>>) -> Vec<&'e ProcessRecord> {
    // A wait that reports a stop, or does not reap, returns a child that a later wait returns again.
    let mut seen: HashSet<(u32, &str)> = HashSet::new();
    let mut found = Vec::new();
    for reaped in parent.reaped.iter().rev() {
        let images = by_pid.get(&reaped.pid).map_or(&[][..], |images| images);
        let is_child =
            |child: &&&ProcessRecord| child.nonce != parent.process.nonce && child.started_ns <= reaped.at_ns;
        let last = images.iter().filter(is_child).max_by_key(|child| child.started_ns);
        found.extend(last.filter(|child| seen.insert((child.pid, child.nonce.as_str()))));
    }
    found
}

/// What the kernel added to a process's counters for the children that it waited for: each child's counters at its end,
/// which hold its own children's.
fn sum_of(children: &[&ProcessRecord]) -> IoCount {
    let mut sum = IoCount::default();
    for child in children {
        let end = child.io.map(|io| io.end).unwrap_or_default();
        sum.rchar = sum.rchar.saturating_add(end.rchar).saturating_add(child.recorder_read);
        sum.wchar = sum.wchar.saturating_add(end.wchar);
    }
    sum
}
