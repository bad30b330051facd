//! Segments to trace lines.
//!
//! An [`Encoder`] belongs to one worker and fills one member at a time: the identity line, then for each record the
//! definition of its paths where this member has none yet, and its line. Nothing is allocated per event. Records of calls are
//! written here, those of annotations in [`annotations`]; [`kinds`] knows the calls, [`gather`] what is not simply a call.

mod annotations;
mod gather;
pub(crate) mod kinds;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use weftline_calls::{Calls, FileKind, Flow, Side};
use weftline_format::hash::path_hash;
use weftline_format::identity::Identity;
use weftline_format::line::LineBuf;
use weftline_recorder::annotation::ANNOTATION;
use weftline_recorder::layout::{NO_OFFSET, record_flags, segment_clock};

use crate::arena::{Arena, RecordCopy, SegmentAt};
use crate::filter::Filter;
use crate::image::Image;
use crate::overlap::{self, Span, Tail};
use crate::paths;
use crate::timeline::Timeline;
use crate::totals::{FileSum, Totals, UntracedChild};

use annotations::Annotations;
use gather::means_nothing;
use kinds::{CallKind, Role, creates, kind_of, untraced_reason};

/// Text of a member: beyond it the member is closed at the next end of a segment.
pub(crate) const MEMBER_TEXT: usize = 1 << 20;

/// Bytes of names that are kept for a job. The records of a job could name each a path of its own, all as long as paths get.
pub(crate) const NAMES_MAX: usize = 64 << 20;

/// A path of the job at hand.
struct Name {
    hash: u64,
    /// The member that defines it.
    defined_in: u64,
    wanted: bool,
    kind: FileKind,
    sum: FileSum,
}

/// Ids are small numbers with little pattern: one multiplication spreads them.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(self.0 as u32 ^ u32::from(*byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// What a finished member holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberStats {
    /// Lines that are not metadata.
    pub events: u32,
    /// Metadata that the program told.
    pub metadata: u32,
    pub from_ns: i64,
    pub to_ns: i64,
}

/// Turns segments into the text of members.
pub(crate) struct Encoder {
    lines: LineBuf,
    stats: MemberStats,
    /// Members begun by this encoder: tells which names the current one defines.
    member: u64,
    ids: HashMap<u32, u32, BuildHasherDefault<IdHasher>>,
    names: Vec<Name>,
    /// Bytes that more names of the job may have.
    names_room: usize,
    totals: Totals,
    records: Vec<RecordCopy>,
    annotations: Annotations,
    /// The latest record of a living process that was waited for in vain.
    late: Option<(SegmentAt, u32)>,
    /// How often that happened in the segment at hand.
    late_times: u32,
    spans: Vec<Span>,
    crossing: Vec<bool>,
    order: Vec<u32>,
    /// The clock of the records at hand, where it is not the run's: one that moves every few milliseconds only, or one that takes a system call.
    clock: Option<&'static str>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder {
            lines: LineBuf::with_capacity(64 << 10),
            stats: MemberStats::default(),
            member: 0,
            ids: HashMap::default(),
            names: Vec::new(),
            names_room: NAMES_MAX,
            totals: Totals::default(),
            records: Vec::new(),
            annotations: Annotations::new(),
            late: None,
            late_times: 0,
            spans: Vec::new(),
            crossing: Vec::new(),
            order: Vec::new(),
            clock: None,
        }
    }

    /// Begins a member of an image; `again` where its file has the process's name already.
    pub(crate) fn begin(&mut self, identity: &Identity, sequence: u64, again: bool) {
        self.lines.clear();
        self.stats = MemberStats { from_ns: i64::MAX, ..MemberStats::default() };
        self.member += 1;
        let identity = Identity { seq: sequence, ..identity.clone() };
        match again {
            true => identity.write_again(&mut self.lines),
            false => identity.write(&mut self.lines),
        }
    }

    /// The member's text so far.
    pub(crate) fn text(&self) -> &[u8] {
        self.lines.as_bytes()
    }

    pub(crate) fn stats(&self) -> MemberStats {
        self.stats
    }

    /// Forgets the names of the arena, and gives what was summed up since the last call: for each member, whose events count only if it was written.
    pub(crate) fn take_totals(&mut self) -> Totals {
        self.ids.clear();
        self.names_room = NAMES_MAX;
        let mut totals = std::mem::take(&mut self.totals);
        for name in self.names.drain(..).filter(|name| name.sum.io.calls > 0) {
            totals.files.merge(name.hash, &name.sum);
        }
        self.annotations.take_sums(&mut totals.spans);
        totals
    }

    /// Appends the records of a segment. `tail` is what the thread's segment before ended with; of a `dead` process a
    /// record that is not finished never will be.
    pub(crate) fn segment(
        &mut self,
        image: &Image,
        at: SegmentAt,
        tail: &Tail,
        timeline: &Timeline,
        filter: &Filter,
        dead: bool,
    ) {
        let (Some(info), Some(stored)) = (image.arena.segment_info(at), image.arena.records(at)) else { return };
        // A thread without the run's clock counts nanoseconds; spans of before cannot be compared with its own.
        let own_clock = info.clock != segment_clock::SHARED;
        let (counted, nothing) = (own_clock.then(|| timeline.of_monotonic()), Tail::default());
        let (timeline, tail) = (counted.as_ref().unwrap_or(timeline), if own_clock { &nothing } else { tail });
        self.clock = match info.clock {
            segment_clock::COARSE => Some("coarse"),
            segment_clock::MONOTONIC => Some("system-call"),
            _ => None,
        };
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        self.annotations.begin();
        self.late = None;
        self.late_times = 0;
        let mut index = 0;
        while index < info.taken {
            match stored.get(index) {
                Some(record) if record.head & ANNOTATION == 0 => {
                    records.push(record);
                    index += 1;
                }
                found => index += self.other_record(image, at, index, &info, dead, found, &mut records),
            }
        }
        let vfork_pids = vfork_pids(&records);

        self.spans.clear();
        self.spans.extend(records.iter().map(span));
        overlap::find(&self.spans, tail, &mut self.crossing, &mut self.order);

        let mut annotations = 0;
        for (index, record) in records.iter().enumerate() {
            let (pid, tid) = match vfork_pids.get(index).copied().flatten() {
                Some(child) => (child, child),
                None => (image.info.birth.pid, info.tid),
            };
            let crossing = self.crossing[index];
            if let Some(kind) = kind_of(record.head) {
                self.record(&image.arena, kind, record, pid, tid, crossing, timeline, filter);
            } else if record.head & ANNOTATION != 0 {
                self.annotation(&image.arena, record, annotations, pid, tid, crossing, timeline);
                annotations += 1;
            } else {
                self.totals.damaged += 1;
            }
        }
        self.records = records;
    }

    /// The member reaches so far.
    #[inline]
    fn cover(&mut self, start: i64, end: i64) {
        self.stats.from_ns = self.stats.from_ns.min(start);
        self.stats.to_ns = self.stats.to_ns.max(end);
        self.totals.last_ns = self.totals.last_ns.max(end);
    }

    #[allow(clippy::too_many_arguments, reason = "one call site; a struct of these would only rename them")]
    #[inline]
    fn record(
        &mut self,
        arena: &Arena,
        kind: &CallKind,
        record: &RecordCopy,
        pid: u32,
        tid: u32,
        crossing: bool,
        timeline: &Timeline,
        filter: &Filter,
    ) {
        if kind.role == Role::Name {
            return self.thread_name(arena, record, pid, timeline);
        }
        if !filter.takes_family(kind.call.family) {
            self.totals.filtered += 1;
            return;
        }
        let path = self.name(arena, record.path, filter);
        let second = match record.head & record_flags::SECOND_PATH {
            0 => None,
            _ => self.name(arena, record.extra as u32, filter),
        };
        let unwanted = |name: Option<usize>| name.map(|name| !self.names[name].wanted);
        // The start of a process is recorded whatever its program's name.
        if kind.role != Role::Mark
            && let (Some(true), Some(true) | None) | (None, Some(true)) = (unwanted(path), unwanted(second))
        {
            self.totals.filtered += 1;
            return;
        }
        for name in [path, second].into_iter().flatten() {
            let name = &mut self.names[name];
            if name.defined_in != self.member {
                name.defined_in = self.member;
                self.lines.define_path(pid, tid, name.hash, &name.sum.path);
            }
        }

        let start = timeline.at(record.start);
        let end = timeline.at(record.end).max(start);
        self.sum_up(kind, record, path, second, (pid, tid), start, end, timeline);
        let lines = &mut self.lines;
        if kind.role == Role::Mark {
            lines.instant(kind.call.name, kind.category, pid, tid, start);
            if let Some(path) = path {
                lines.arg_hash("fhash", self.names[path].hash);
            }
            lines.finish();
            self.stats.events += 1;
            return;
        }
        let id = made_up_id(start, pid, tid);
        if crossing {
            lines.async_begin(kind.call.name, kind.category, pid, tid, start, id);
        } else {
            lines.complete(kind.call.name, kind.category, pid, tid, start, end);
        }
        if record.fd >= 0 {
            lines.arg_i64("fd", i64::from(record.fd));
        }
        if let Some(path) = path {
            lines.arg_hash("fhash", self.names[path].hash);
        }
        if let Some(second) = second {
            lines.arg_hash("fhash2", self.names[second].hash);
        }
        if record.size >= 0 {
            lines.arg_i64("size", record.size);
        }
        lines.arg_i64("ret", record.ret);
        if record.offset != NO_OFFSET {
            lines.arg_i64("offset", record.offset);
        }
        if record.head & record_flags::FOLDED != 0 {
            lines.arg_u64("calls", u64::from(record.detail)).arg_i64("busy", busy(record, timeline));
        } else if let Some(detail) = kind.call.detail {
            // `dup` has no descriptor to duplicate to.
            if detail != "to" || record.detail != u32::MAX {
                lines.arg_u64(detail, u64::from(record.detail));
            }
            if kind.role == Role::Open && creates(record.detail) {
                lines.arg_u64("mode", record.extra & 0o7777);
            }
        } else if let Some(reason) = untraced_reason(kind, record) {
            lines.arg_str("untraced", reason.as_bytes());
        }
        if record.head & record_flags::VFORK_CHILD != 0 {
            lines.arg_u64("vfork", 1);
        }
        if let Some(clock) = self.clock {
            lines.arg_str("clock", clock.as_bytes());
        }
        lines.finish();
        self.stats.events += 1;
        if crossing {
            lines.async_end(kind.call.name, kind.category, pid, tid, end, id).finish();
            self.stats.events += 1;
        }
    }

    /// The name that a thread was given.
    #[cold]
    fn thread_name(&mut self, arena: &Arena, record: &RecordCopy, pid: u32, timeline: &Timeline) {
        let (Some((_, name)), Ok(tid)) = (arena.name(record.path), u32::try_from(record.fd)) else { return };
        let at = timeline.at(record.start);
        self.cover(at, at);
        self.lines.metadata_at("thread_name", "PROCESS", pid, tid, at).arg_str("name", name).finish();
        self.stats.metadata += 1;
    }

    #[allow(clippy::too_many_arguments, reason = "one call site; a struct of these would only rename them")]
    fn sum_up(
        &mut self,
        kind: &CallKind,
        record: &RecordCopy,
        path: Option<usize>,
        second: Option<usize>,
        (pid, tid): (u32, u32),
        start: i64,
        end: i64,
        timeline: &Timeline,
    ) {
        self.cover(start, end);
        if kind.role == Role::Mark {
            return;
        }
        let folded = record.head & record_flags::FOLDED != 0;
        let (count, time_ns) =
            if folded { (u64::from(record.detail), busy(record, timeline) as u64) } else { (1, (end - start) as u64) };
        let calls = Calls { count, time_ns, bytes: u64::try_from(record.ret).unwrap_or(0) };
        let operation = kind.call.operation;
        let file = path.map_or(FileKind::Unknown, |path| self.names[path].kind);
        let activity = self.totals.add_calls((record.head & 0xFFFF) as usize, file, calls);
        // While a child of vfork runs on the thread, the parent is in vfork.
        if let Some(activity) = activity
            && tid == pid
            && record.head & record_flags::VFORK_CHILD == 0
        {
            self.totals.main.add(activity, time_ns);
        }
        if kind.role == Role::Reap
            && let Ok(pid @ 1..) = u32::try_from(record.ret)
        {
            self.totals.add_reaped(pid, end);
        }
        if let Some(path) = path {
            self.names[path].sum.io.add_to(Side::File, operation, calls);
        }
        if let (Some(second), Flow::Both) = (second, operation.flow()) {
            self.names[second].sum.io.add_to(Side::SecondFile, operation, calls);
        }
        if let Some(reason) = untraced_reason(kind, record) {
            let child = match kind.role {
                Role::Spawn => u32::try_from(record.ret).unwrap_or(0),
                // The image's own exec is in its slot.
                _ if record.head & record_flags::VFORK_CHILD != 0 && record.ret == 0 => pid,
                _ => 0,
            };
            if child != 0 {
                let exe = path.map(|path| self.names[path].sum.path.clone()).unwrap_or_default();
                self.totals.add_untraced(UntracedChild { pid: child, exe, reason, at_ns: start });
            }
        }
    }

    /// The name with this id, resolved when it is met for the first time in a job.
    #[inline]
    fn name(&mut self, arena: &Arena, id: u32, filter: &Filter) -> Option<usize> {
        if id == 0 {
            return None;
        }
        match self.ids.get(&id) {
            Some(index) => Some(*index as usize),
            None => self.add_name(arena, id, filter),
        }
    }

    #[cold]
    fn add_name(&mut self, arena: &Arena, id: u32, filter: &Filter) -> Option<usize> {
        if self.names_room == 0 {
            // Only a program that makes names up has so many.
            self.totals.damaged += 1;
            return None;
        }
        let path = paths::resolve(|id| arena.name(id), id)?;
        self.names_room = self.names_room.saturating_sub(path.len());
        let index = self.names.len();
        self.ids.insert(id, index as u32);
        self.names.push(Name {
            hash: path_hash(&path),
            defined_in: 0,
            wanted: filter.takes_all() || filter.takes(&path),
            kind: FileKind::of(&path),
            sum: FileSum { path, ..FileSum::default() },
        });
        Some(index)
    }
}

/// Time spent in the calls that a folded record stands for.
fn busy(record: &RecordCopy, timeline: &Timeline) -> i64 {
    timeline.at(record.end) - timeline.at(record.end.saturating_sub(record.extra))
}

/// Joins the two lines of a span that is written as an async one and has no id of its own.
fn made_up_id(start: i64, pid: u32, tid: u32) -> u64 {
    start as u64 ^ u64::from(tid) << 40 ^ u64::from(pid) << 20
}

/// The record as a span for [`overlap`]. Calls of a `vfork` child stand on a track of their own; of annotations only those of the first
/// kind, [`Span`](weftline_recorder::annotation::EventKind::Span), are on the thread's stack with a start and an end.
#[inline]
fn span(record: &RecordCopy) -> Span {
    let elsewhere = record.head & record_flags::VFORK_CHILD != 0 || record.head & 0xFFFF > ANNOTATION;
    if elsewhere { (record.end, record.end) } else { (record.start, record.end) }
}

/// The spans at the end of a segment, for the next segment of the same thread.
pub(crate) fn tail_of(arena: &Arena, at: SegmentAt, taken: u32) -> Tail {
    let shared = arena.segment_info(at).is_some_and(|info| info.clock == segment_clock::SHARED);
    let Some(stored) = arena.records(at).filter(|_| shared) else { return Tail::default() };
    let backwards = (0..taken).rev().filter_map(|index| stored.get(index));
    let spans = backwards.filter(|record| !means_nothing(record.head)).map(|record| span(&record));
    Tail::of(spans.filter(|(start, end)| start != end).take(overlap::TAIL).collect())
}

/// For each record that a `vfork` child made, the pid of that child: it stands in the thread's next `vfork` record. Empty
/// when there is none, which is nearly always.
fn vfork_pids(records: &[RecordCopy]) -> Vec<Option<u32>> {
    if !records.iter().any(|record| record.head & record_flags::VFORK_CHILD != 0) {
        return Vec::new();
    }
    let mut pids = vec![None; records.len()];
    let mut child = None;
    for (record, pid) in records.iter().zip(&mut pids).rev() {
        if record.head & record_flags::VFORK_CHILD != 0 {
            *pid = child;
        } else if kind_of(record.head).is_some_and(|kind| kind.role == Role::Vfork) {
            child = u32::try_from(record.ret).ok().filter(|pid| *pid > 0);
        }
    }
    pids
}
