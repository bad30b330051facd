//! Segments to trace lines.
//!
//! An [`Encoder`] belongs to one worker and fills one member at a time: the identity line, then for each record the
//! definition of its paths where this member has none yet, and its line. Nothing is allocated per event.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use weftline_format::hash::path_hash;
use weftline_format::identity::Identity;
use weftline_format::line::LineBuf;
use weftline_recorder::calls::{CALLS, Flow};
use weftline_recorder::elf::VERDICT_NAMES;
use weftline_recorder::layout::{NO_OFFSET, record_flags};

use crate::arena::{Arena, RecordFacts, SegmentAt};
use crate::filter::Filter;
use crate::image::Image;
use crate::overlap::{self, Span, Tail};
use crate::paths;
use crate::procfs;
use crate::timeline::Timeline;
use crate::totals::{FileSum, Totals, UntracedChild};

/// Text of a member: beyond it the member is closed at the next end of a segment.
pub(crate) const MEMBER_TEXT: usize = 1 << 20;

/// What a call's line looks like, made from the table once: the table's own answers compare texts.
struct Kind {
    name: &'static str,
    category: &'static str,
    flow: Flow,
    detail: Option<&'static str>,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Plain,
    /// Marks of the recorder itself.
    Mark,
    /// Opens a file: `extra` is the mode when it may create one.
    Open,
    /// Waits for a child: `ret` is its pid.
    Reap,
    Vfork,
    /// Replaces the image, `ret` is 0 unless it failed; `detail` says whether the new one can be traced.
    Exec,
    /// Makes a child with a new image: `ret` is its pid, `detail` as for exec.
    Spawn,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let role = |name: &str, shape: &str| match (name, shape) {
        (_, "mark") => Role::Mark,
        (_, "open_at") => Role::Open,
        (_, "reap" | "reap_info") => Role::Reap,
        ("vfork", _) => Role::Vfork,
        ("posix_spawn" | "posix_spawnp", _) => Role::Spawn,
        (name, "by hand") if name.starts_with("exec") || name == "fexecve" => Role::Exec,
        _ => Role::Plain,
    };
    CALLS
        .iter()
        .map(|call| Kind {
            name: call.name,
            category: call.category,
            flow: call.flow(),
            detail: call.detail_name(),
            role: role(call.name, call.shape),
        })
        .collect()
});

fn kind_of(head: u32) -> Option<&'static Kind> {
    KINDS.get((head & 0xFFFF) as usize).filter(|kind| !kind.name.is_empty())
}

/// A path of the job at hand.
struct Name {
    hash: u64,
    /// The member that defines it.
    defined_in: u64,
    wanted: bool,
    sum: FileSum,
}

/// Ids are small numbers with little pattern: one multiplication spreads them.
#[derive(Default)]
struct IdHasher(u64);

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
pub(crate) struct MemberFacts {
    /// Lines that are not metadata.
    pub events: u32,
    pub from_ns: i64,
    pub to_ns: i64,
}

/// Turns segments into the text of members.
pub(crate) struct Encoder {
    lines: LineBuf,
    facts: MemberFacts,
    /// Members begun by this encoder: tells which names the current one defines.
    member: u64,
    ids: HashMap<u32, u32, BuildHasherDefault<IdHasher>>,
    names: Vec<Name>,
    totals: Totals,
    records: Vec<RecordFacts>,
    spans: Vec<Span>,
    crossing: Vec<bool>,
    order: Vec<u32>,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder {
            lines: LineBuf::with_capacity(64 << 10),
            facts: MemberFacts::default(),
            member: 0,
            ids: HashMap::default(),
            names: Vec::new(),
            totals: Totals::default(),
            records: Vec::new(),
            spans: Vec::new(),
            crossing: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Begins a member of an image.
    pub(crate) fn begin(&mut self, identity: &Identity, sequence: u64) {
        self.lines.clear();
        self.facts = MemberFacts { from_ns: i64::MAX, ..MemberFacts::default() };
        self.member += 1;
        Identity { seq: sequence, ..identity.clone() }.write(&mut self.lines);
    }

    /// The member's text so far.
    pub(crate) fn text(&self) -> &[u8] {
        self.lines.as_bytes()
    }

    pub(crate) fn facts(&self) -> MemberFacts {
        self.facts
    }

    /// Forgets the names of the arena, and gives what was summed up since the last call.
    pub(crate) fn take_totals(&mut self) -> Totals {
        self.ids.clear();
        let mut totals = std::mem::take(&mut self.totals);
        for name in self.names.drain(..).filter(|name| name.sum.calls > 0) {
            totals.files.merge(name.hash, &name.sum);
        }
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
        let Some(facts) = image.arena.segment_facts(at) else { return };
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        for index in 0..facts.taken {
            match image.arena.record(at, index) {
                Some(record) => records.push(record),
                None if dead => {}
                None => match wait_for(&image.arena, at, index) {
                    Some(record) => records.push(record),
                    // A process that is ending loses its threads one by one; the call of one that is gone never returned.
                    None if thread_is_gone(image, facts.tid) => {}
                    None => self.totals.unfinished += 1,
                },
            }
        }
        let vfork_pids = vfork_pids(&records);

        self.spans.clear();
        self.spans.extend(records.iter().map(span));
        overlap::find(&self.spans, tail, &mut self.crossing, &mut self.order);

        for (index, record) in records.iter().enumerate() {
            let Some(kind) = kind_of(record.head) else {
                self.totals.damaged += 1;
                continue;
            };
            let (pid, tid) = match vfork_pids.get(index).copied().flatten() {
                Some(child) => (child, child),
                None => (image.facts.pid, facts.tid),
            };
            let crossing = self.crossing[index];
            self.record(&image.arena, kind, record, pid, tid, crossing, timeline, filter);
        }
        self.records = records;
    }

    #[allow(clippy::too_many_arguments, reason = "one call site; a struct of these would only rename them")]
    #[inline]
    fn record(
        &mut self,
        arena: &Arena,
        kind: &Kind,
        record: &RecordFacts,
        pid: u32,
        tid: u32,
        crossing: bool,
        timeline: &Timeline,
        filter: &Filter,
    ) {
        let path = self.name(arena, record.path, filter);
        let second = match record.head & record_flags::SECOND_PATH {
            0 => None,
            _ => self.name(arena, record.extra as u32, filter),
        };
        let unwanted = |name: Option<usize>| name.map(|name| !self.names[name].wanted);
        if let (Some(true), Some(true) | None) | (None, Some(true)) = (unwanted(path), unwanted(second)) {
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
        self.sum_up(kind, record, path, pid, start, end, timeline);
        let lines = &mut self.lines;
        if kind.role == Role::Mark {
            lines.instant(kind.name, kind.category, pid, tid, start);
            if let Some(path) = path {
                lines.arg_hash("fhash", self.names[path].hash);
            }
            lines.finish();
            self.facts.events += 1;
            return;
        }
        let id = start as u64 ^ u64::from(tid) << 40 ^ u64::from(pid) << 20;
        if crossing {
            lines.async_begin(kind.name, kind.category, pid, tid, start, id);
        } else {
            lines.complete(kind.name, kind.category, pid, tid, start, end);
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
        } else if let Some(detail) = kind.detail {
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
        lines.finish();
        self.facts.events += 1;
        if crossing {
            lines.async_end(kind.name, kind.category, pid, tid, end, id).finish();
            self.facts.events += 1;
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one call site; a struct of these would only rename them")]
    fn sum_up(
        &mut self,
        kind: &Kind,
        record: &RecordFacts,
        path: Option<usize>,
        pid: u32,
        start: i64,
        end: i64,
        timeline: &Timeline,
    ) {
        self.facts.from_ns = self.facts.from_ns.min(start);
        self.facts.to_ns = self.facts.to_ns.max(end);
        self.totals.last_ns = self.totals.last_ns.max(end);
        if kind.role == Role::Mark {
            return;
        }
        let folded = record.head & record_flags::FOLDED != 0;
        let (calls, time) =
            if folded { (u64::from(record.detail), busy(record, timeline) as u64) } else { (1, (end - start) as u64) };
        let bytes = if kind.flow == Flow::None { 0 } else { u64::try_from(record.ret).unwrap_or(0) };
        let sum = &mut self.totals.calls[(record.head & 0xFFFF) as usize];
        sum.count += calls;
        sum.time_ns += time;
        sum.bytes += bytes;
        if bytes > 0 {
            self.totals.add_bytes(kind.flow, record.head & record_flags::STREAM != 0, bytes);
        }
        if kind.role == Role::Reap
            && let Ok(pid @ 1..) = u32::try_from(record.ret)
        {
            self.totals.add_reaped(pid, end);
        }
        if let Some(path) = path {
            self.names[path].sum.add(kind.flow, calls, bytes, time);
        }
        if let Some(reason) = untraced_reason(kind, record) {
            let child = match kind.role {
                Role::Spawn => u32::try_from(record.ret).unwrap_or(0),
                // An exec of the image itself is told by its slot.
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
        let path = paths::resolve(|id| arena.name(id), id)?;
        let index = self.names.len();
        self.ids.insert(id, index as u32);
        self.names.push(Name {
            hash: path_hash(&path),
            defined_in: 0,
            wanted: filter.takes_all() || filter.takes(&path),
            sum: FileSum { path, ..FileSum::default() },
        });
        Some(index)
    }
}

/// A record that its thread began before a signal handler filled and closed the segment: it is finished as soon as the
/// handler returns. One that jumped away instead never returns, so the wait is short.
#[cold]
fn wait_for(arena: &Arena, at: SegmentAt, index: u32) -> Option<RecordFacts> {
    (0..20).find_map(|_| {
        weftline_recorder::sys::nap(50_000);
        arena.record(at, index)
    })
}

/// Whether the thread is gone. In another pid namespace thread ids cannot be compared: then it counts as there, and its record as lost.
#[cold]
fn thread_is_gone(image: &Image, tid: u32) -> bool {
    let same_namespace = procfs::pid_namespace("self") == Some(image.facts.pid_namespace);
    // A thread that is being killed stays visible for a moment.
    same_namespace
        && (0..20).any(|_| {
            let gone = !procfs::has_thread(image.facts.pid, tid);
            if !gone {
                weftline_recorder::sys::nap(1_000_000);
            }
            gone
        })
}

/// Time spent in the calls that a folded record stands for.
fn busy(record: &RecordFacts, timeline: &Timeline) -> i64 {
    timeline.at(record.end) - timeline.at(record.end.saturating_sub(record.extra))
}

/// Why the program that a call starts cannot be traced, if so.
fn untraced_reason(kind: &Kind, record: &RecordFacts) -> Option<&'static str> {
    if !matches!(kind.role, Role::Exec | Role::Spawn) || record.detail == 0 {
        return None;
    }
    VERDICT_NAMES.get(record.detail as usize).copied()
}

fn creates(flags: u32) -> bool {
    let flags = flags as i32;
    flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
}

/// The record as a span for [`overlap`]; calls of a `vfork` child stand on a track of their own, as do marks.
#[inline]
fn span(record: &RecordFacts) -> Span {
    if record.head & record_flags::VFORK_CHILD != 0 { (record.end, record.end) } else { (record.start, record.end) }
}

/// The spans at the end of a segment, for the next segment of the same thread.
pub(crate) fn tail_of(arena: &Arena, at: SegmentAt, taken: u32) -> Tail {
    let last = (taken.saturating_sub(16)..taken).filter_map(|index| arena.record(at, index));
    Tail::of(last.map(|record| span(&record)).collect())
}

/// For each record that a `vfork` child made, the pid of that child: it stands in the thread's next `vfork` record. Empty
/// when there is none, which is nearly always.
fn vfork_pids(records: &[RecordFacts]) -> Vec<Option<u32>> {
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
