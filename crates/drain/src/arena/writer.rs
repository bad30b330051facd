//! For tests: programs that record into an arena, with any pid, thread ids and end.
//!
//! The recorder's own code stores the records; the test chooses only arena, slot owner and time. `tests/family.rs` tests the process's one real
//! recorder, with forks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weftline_calls::Call;
use weftline_recorder::annotation::{Event, EventHead, EventKind};
use weftline_recorder::handover::{self, Segment as _};
use weftline_recorder::layout::{KernelIo, Loss, NO_OFFSET, POOL_SLOTS, ProcessSlot, Record, piece_use, pool_state};
use weftline_recorder::process::slot::{self, Birth, End};
use weftline_recorder::thread::{self, Fields, Owner};
use weftline_recorder::{clock, names, sys};

use super::{Arena, ControlPage, RecordCopy, SegmentAt};

/// A pid that no process has.
pub(crate) const NOBODY: u32 = 4_000_000_000;

/// A program that records into an arena of a live directory.
pub(crate) struct Program {
    pub arena: Arc<Arena>,
    pub slot: u32,
    generation: u64,
    /// The piece that segments are taken from.
    piece: usize,
    /// The segment that each thread writes into.
    current: std::collections::HashMap<u32, SegmentAt>,
}

impl Program {
    /// Claims a ready arena and a slot in it, as a new image with this pid, and all segments, as if a drain had added them.
    pub(crate) fn start(live: &Path, pid: u32) -> Program {
        let program = Program::start_small(live, pid);
        program.arena.complete().expect("room");
        program
    }

    /// The same with the first segments only.
    pub(crate) fn start_small(live: &Path, pid: u32) -> Program {
        Program::start_as(live, pid, crate::system::user())
    }

    /// The same as another user, who has asked for arenas.
    pub(crate) fn start_as(live: &Path, pid: u32, user: u32) -> Program {
        let control = ControlPage::open(&live.join("ctl")).expect("a control page").expect("of this layout");
        let words = &control.get().pool;
        let is_ready = |number: &usize| words[*number].load(Ordering::Acquire) == pool_state::READY;
        let is_own = |number: &usize| control.get().owners[*number].load(Ordering::Acquire) == user;
        let number = (0..words.len()).find(|number| is_ready(number) && is_own(number)).expect("a ready arena");
        words[number].store(pool_state::CLAIMED | u64::from(pid), Ordering::Release);
        let arena = Arc::new(Arena::open(live, number as u64).expect("an arena").expect("of this layout"));
        Program::in_arena(arena, pid, 0)
    }

    /// Makes an arena in a live directory without a supervisor, as a new image with this pid.
    pub(crate) fn start_alone(live: &Path, pid: u32) -> Program {
        let control = ControlPage::open(&live.join("ctl")).expect("a control page").expect("of this layout");
        let number = POOL_SLOTS as u64 + control.get().own_arenas.fetch_add(1, Ordering::AcqRel);
        Arena::create(live, number, control.get().clock, crate::system::user()).expect("an arena");
        let arena = Arc::new(Arena::open(live, number).expect("an arena").expect("of this layout"));
        arena.complete().expect("room");
        Program::in_arena(arena, pid, 0)
    }

    /// Adds a growth piece and goes on in it, as if all before it were full.
    pub(crate) fn grow_to(&mut self, live: &Path, index: usize) {
        let file = live.join(format!("a{}.{index}", self.arena.number()));
        super::mapping::reserve(&file, super::PIECE_SIZE).expect("a piece");
        let header = self.arena.header();
        header.pieces[index].free.store(u64::MAX >> (64 - super::GROWN_SEGMENTS), Ordering::Relaxed);
        header.pieces_used.store(index as u32 + 1, Ordering::Relaxed);
        header.pieces[index].used_for.store(piece_use::SEGMENTS, Ordering::Release);
        self.go_on_in(index);
    }

    /// Goes on in a growth piece that is there, as if all before it were full.
    pub(crate) fn go_on_in(&mut self, index: usize) {
        self.piece = index;
        self.current.clear();
    }

    /// Asks the supervisor for a piece.
    pub(crate) fn ask(&self, used_for: u32) {
        self.arena.header().asked.fetch_or(1 << used_for, Ordering::AcqRel);
    }

    /// Its arena.
    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Reserves a slot for a child that is about to be forked; the child's pid once the parent knows it.
    pub(crate) fn reserve_slot(&self, child: u32) {
        let slot = claim(&self.arena, self.arena.slot_info(self.slot).birth.pid);
        // SAFETY: a slot in mapped memory; the field is atomic.
        unsafe { (*self.arena.slot(slot).expect("inside the arena")).pid_outside.store(child, Ordering::Relaxed) };
    }

    /// A forked child in the same arena.
    pub(crate) fn fork(&self, pid: u32) -> Program {
        Program::in_arena(Arc::clone(&self.arena), pid, self.slot + 1)
    }

    fn in_arena(arena: Arc<Arena>, pid: u32, parent_slot: u32) -> Program {
        let slot = claim(&arena, 1);
        let birth = Birth {
            pid,
            ppid: 1,
            pid_namespace: crate::procfs::Host::here().pid_namespace,
            nonce: 0x1234_5678_9abc_def0 ^ arena.number(),
            exe: intern(&arena, 0, b"/bin/test"),
            command: intern(&arena, 0, b"test\0-x\0"),
            cwd: intern(&arena, 0, b"/home/u"),
            parent_slot,
            rank: -1,
            world_size: -1,
            local_rank: -1,
            launcher: 0,
            io_start: KernelIo::default(),
        };
        // SAFETY: the slot was just claimed.
        let generation = unsafe { slot::publish(arena.slot(slot).expect("inside the arena"), &birth) };
        Program { arena, slot, generation, piece: 0, current: std::collections::HashMap::new() }
    }

    fn own_slot(&self) -> *mut ProcessSlot {
        self.arena.slot(self.slot).expect("inside the arena")
    }

    pub(crate) fn intern(&self, base: u32, bytes: &[u8]) -> u32 {
        intern(&self.arena, base, bytes)
    }

    /// The directory it was started in.
    pub(crate) fn cwd(&self) -> u32 {
        self.arena.slot_info(self.slot).birth.cwd
    }

    /// Takes `count` records in a row for a thread, from another segment when they do not fit.
    fn slots(&mut self, tid: u32, count: u32) -> *mut Record {
        loop {
            let owner = Owner { slot: self.slot, generation: self.generation, tid };
            let at = *self.current.entry(tid).or_insert_with(|| take_segment(&self.arena, self.piece, &owner));
            let segment = self.arena.segment(at).expect("a segment");
            if let Some(index) = handover::take(segment, count) {
                return segment.record(index);
            }
            self.close(tid);
        }
    }

    /// Records one event of a thread.
    pub(crate) fn record(&mut self, tid: u32, record: &RecordCopy) {
        let RecordCopy { head, path, start, end, fd, detail, size, ret, offset, extra } = *record;
        let place = self.slots(tid, 1);
        let fields = Fields { flags: 0, path, fd, size, ret, offset, detail, extra };
        // SAFETY: `slots` gave the record to us alone.
        unsafe { thread::store(place, head, start, end, &fields) };
    }

    /// Records one annotation, as much of it as `told` says.
    pub(crate) fn annotate(&mut self, tid: u32, annotation: &Annotation<'_>, completeness: Completeness) {
        let Annotation { kind, flags, name, category, start, end, id, payload } = *annotation;
        let first = self.slots(tid, thread::annotation_records(payload.len()));
        let event = Event::new(&EventHead { kind, name, category, start, end, id }, payload);
        // SAFETY: `slots` gave these records to us alone.
        unsafe {
            thread::continue_annotation(first, payload);
            if completeness == Completeness::Whole {
                thread::begin_annotation(first, &event, payload, flags);
            }
        }
    }

    /// Takes a record without ever finishing it.
    pub(crate) fn begin_record(&mut self, tid: u32) {
        self.slots(tid, 1);
    }

    /// Records that fit into the thread's segment.
    pub(crate) fn room(&self, tid: u32) -> u32 {
        let taken = self.current.get(&tid).and_then(|at| self.arena.segment_info(*at)).map_or(0, |info| info.taken);
        super::RECORDS_PER_SEGMENT - taken
    }

    /// The thread ends.
    pub(crate) fn close(&mut self, tid: u32) {
        let Some(at) = self.current.remove(&tid) else { return };
        let closed = &self.arena.header().pieces[usize::from(at.piece)].closed;
        handover::close(self.arena.segment(at).expect("a segment"), closed, u32::from(at.index));
    }

    /// The process announces its end.
    pub(crate) fn end(&self, status: i32, io: KernelIo) {
        // SAFETY: the test is the only writer of this slot.
        unsafe { slot::end(self.own_slot(), &End { status, io, usage: (0, 0, 0), own_reads: 0, main: (0, 0) }) };
    }

    /// Counts records that could not be kept.
    pub(crate) fn lose(&self, reason: Loss, count: u64) {
        let at = self.own_slot();
        // SAFETY: a slot in mapped memory; the counters are atomic.
        unsafe { (&(*at).losses)[reason as usize].fetch_add(count, Ordering::Relaxed) };
    }

    /// From now on the process is one that does not exist.
    pub(crate) fn vanish(&self) {
        let at = self.own_slot();
        // SAFETY: the test is the only writer of this slot.
        unsafe { (*at).pid = NOBODY };
    }

    /// The process is about to become a program that cannot be traced.
    pub(crate) fn exec_untraced(&self, verdict: u32, path: u32) {
        let how = End { status: -1, io: KernelIo::UNKNOWN, usage: (0, 0, 0), own_reads: 0, main: (0, 0) };
        // SAFETY: the test is the only writer of this slot.
        unsafe { slot::execute(self.own_slot(), &how, verdict, path) };
    }
}

/// An annotation to record.
#[derive(Clone, Copy)]
pub(crate) struct Annotation<'p> {
    pub kind: EventKind,
    pub flags: u32,
    pub name: u32,
    pub category: u32,
    pub start: u64,
    pub end: u64,
    pub id: u64,
    pub payload: &'p [u8],
}

/// How far a thread came with an annotation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    Whole,
    /// The process was killed before the record that the others continue was complete.
    WithoutHead,
}

/// A call that took a moment just now.
pub(crate) fn call(call: Call) -> RecordCopy {
    let start = clock::ticks();
    let head = u32::from(call as u16);
    RecordCopy {
        head,
        path: 0,
        start,
        end: clock::ticks(),
        fd: -1,
        detail: 0,
        size: -1,
        ret: 0,
        offset: NO_OFFSET,
        extra: 0,
    }
}

fn intern(arena: &Arena, base: u32, bytes: &[u8]) -> u32 {
    let Some(start) = arena.piece(0) else { return 0 };
    // SAFETY: the arena's pieces stay mapped as long as it lives.
    unsafe { names::intern(start, base, bytes, |piece| arena.piece(piece), || false) }
}

fn claim(arena: &Arena, parent: u32) -> u32 {
    // SAFETY: the base piece of a mapped arena.
    unsafe { slot::claim(arena.piece(0).expect("mapped"), parent) }.expect("a free slot")
}

fn take_segment(arena: &Arena, piece: usize, owner: &Owner) -> SegmentAt {
    let index = handover::take_free(&arena.header().pieces[piece].free).expect("the arena is full");
    let at = SegmentAt { piece: piece as u16, index: index as u8 };
    let sequence = arena.header().segments_taken.fetch_add(1, Ordering::Relaxed);
    thread::open_segment(arena.segment(at).expect("a segment"), owner, sequence);
    // Time passes between two segments.
    sys::nap(1_000);
    at
}
