//! For tests: writes into an arena what a traced process would write, one store at a time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weftline_recorder::annotation::{self, INLINE, Kind, PER_RECORD};
use weftline_recorder::calls::Call;
use weftline_recorder::layout::{
    KernelIo, Loss, NO_OFFSET, POOL_SLOTS, Record, piece_use, pool_state, process_state, segment_state,
};
use weftline_recorder::{clock, names, sys};

use super::{Arena, ControlPage, RecordFacts, SegmentAt};

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
    /// Claims a ready arena and a slot in it, as a new image with this pid.
    pub(crate) fn start(live: &Path, pid: u32) -> Program {
        let control = ControlPage::open(&live.join("ctl")).expect("a control page").expect("of this layout");
        let words = &control.get().pool;
        let number =
            words.iter().position(|word| word.load(Ordering::Acquire) == pool_state::READY).expect("a ready arena");
        words[number].store(pool_state::CLAIMED | u64::from(pid), Ordering::Release);
        let arena = Arc::new(Arena::open(live, number as u64).expect("an arena").expect("of this layout"));
        Program::in_arena(arena, pid, 0)
    }

    /// Makes an arena in a live directory without a supervisor, as a new image with this pid.
    pub(crate) fn start_alone(live: &Path, pid: u32) -> Program {
        let control = ControlPage::open(&live.join("ctl")).expect("a control page").expect("of this layout");
        let number = POOL_SLOTS as u64 + control.get().own_arenas.fetch_add(1, Ordering::AcqRel);
        Arena::create(live, number, control.get().clock).expect("an arena");
        let arena = Arc::new(Arena::open(live, number).expect("an arena").expect("of this layout"));
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
        self.piece = index;
        self.current.clear();
    }

    /// Reserves a slot for a child that is about to be forked; the child's pid once the parent knows it.
    pub(crate) fn reserve_slot(&self, child: u32) {
        let slot = (0..).find(|slot| self.arena.slot_state(*slot) == process_state::FREE).expect("a free slot");
        self.arena.header().generations.fetch_add(1, Ordering::AcqRel);
        let at = self.arena.slot(slot).expect("inside the arena");
        // SAFETY: the test owns the slot.
        unsafe {
            (*at).ppid = self.arena.slot_facts(self.slot).pid;
            (*at).pid_outside.store(child, Ordering::Relaxed);
            (*at).state.store(process_state::CLAIMED, Ordering::Release);
        }
    }

    /// A forked child in the same arena.
    pub(crate) fn fork(&self, pid: u32) -> Program {
        Program::in_arena(Arc::clone(&self.arena), pid, self.slot + 1)
    }

    fn in_arena(arena: Arc<Arena>, pid: u32, parent_slot: u32) -> Program {
        let slot = (0..).find(|slot| arena.slot_state(*slot) == process_state::FREE).expect("a free slot");
        let generation = arena.header().generations.fetch_add(1, Ordering::AcqRel) + 1;
        let at = arena.slot(slot).expect("inside the arena");
        let (exe, command, cwd) =
            (intern(&arena, 0, b"/bin/test"), intern(&arena, 0, b"test\0-x\0"), intern(&arena, 0, b"/home/u"));
        // SAFETY: the test owns the slot until its state is LIVE.
        unsafe {
            (*at).pid = pid;
            (*at).ppid = 1;
            (*at).generation = generation;
            (*at).pid_namespace = crate::procfs::Host::here().pid_namespace;
            (*at).nonce = 0x1234_5678_9abc_def0 ^ arena.number();
            (*at).born_ticks = clock::ticks();
            (*at).born_mono = clock::monotonic();
            (*at).born_real = clock::read(libc::CLOCK_REALTIME);
            (*at).born_boot = clock::read(libc::CLOCK_BOOTTIME);
            (*at).exe = exe;
            (*at).command = command;
            (*at).cwd = cwd;
            (*at).parent_slot = parent_slot;
            (*at).rank = -1;
            (*at).io_start = KernelIo::default();
            (*at).io_end = KernelIo::UNKNOWN;
            (*at).exit_status.store(-1, Ordering::Relaxed);
            (*at).state.store(process_state::LIVE, Ordering::Release);
        }
        Program { arena, slot, generation, piece: 0, current: std::collections::HashMap::new() }
    }

    pub(crate) fn intern(&self, base: u32, bytes: &[u8]) -> u32 {
        intern(&self.arena, base, bytes)
    }

    /// The directory it was started in.
    pub(crate) fn cwd(&self) -> u32 {
        self.arena.slot_facts(self.slot).cwd
    }

    /// Takes `count` records in a row for a thread, from another segment when they do not fit; what is left of the old one is marked as
    /// meaning nothing.
    fn slots(&mut self, tid: u32, count: u32) -> *mut Record {
        loop {
            let at = *self
                .current
                .entry(tid)
                .or_insert_with(|| take_segment(&self.arena, self.piece, self.slot, self.generation, tid));
            let segment = self.arena.segment(at).expect("a segment");
            // SAFETY: the test is the only writer of this segment, and stays below its end.
            unsafe {
                let records = segment.cast::<Record>().add(1);
                let index = (*segment).next.fetch_add(count, Ordering::Relaxed);
                if index + count <= super::RECORDS_PER_SEGMENT {
                    return records.add(index as usize);
                }
                for left in index..super::RECORDS_PER_SEGMENT {
                    (*records.add(left as usize)).head.store(annotation::SKIPPED, Ordering::Release);
                }
            }
            self.close(tid);
        }
    }

    /// Records one event of a thread.
    pub(crate) fn record(&mut self, tid: u32, record: &RecordFacts) {
        let place = self.slots(tid, 1);
        // SAFETY: `slots` gave the record to us alone.
        unsafe { store(place, record) };
    }

    /// Records one annotation, as much of it as `told` says.
    pub(crate) fn annotate(&mut self, tid: u32, annotation: &Annotation<'_>, told: Told) {
        let (inline, rest) = annotation.payload.split_at(annotation.payload.len().min(INLINE));
        let parts: Vec<&[u8]> = rest.chunks(PER_RECORD).collect();
        let first = self.slots(tid, 1 + parts.len() as u32);
        let mut words = [0; INLINE];
        words[..inline.len()].copy_from_slice(inline);
        let word = |at: usize| i64::from_ne_bytes(std::array::from_fn(|byte| words[at + byte]));
        // SAFETY: `slots` gave these records to us alone; the payload of a record that continues another lies behind its head.
        unsafe {
            for (index, part) in parts.iter().enumerate() {
                let record = first.add(1 + index);
                std::ptr::copy_nonoverlapping(part.as_ptr(), record.cast::<u8>().add(4), part.len());
                (*record).head.store(annotation::CONTINUED, Ordering::Release);
            }
            if told == Told::WithoutHead {
                return;
            }
            let head = RecordFacts {
                head: annotation::ANNOTATION | annotation.kind as u32 | annotation.flags,
                path: annotation.name,
                start: annotation.start,
                end: annotation.end,
                fd: annotation.category.cast_signed(),
                detail: annotation.payload.len() as u32,
                size: word(0),
                ret: word(8),
                offset: word(16),
                extra: annotation.id,
            };
            store(first, &head);
        }
    }

    /// Takes a record without ever finishing it.
    pub(crate) fn begin_record(&mut self, tid: u32) {
        self.slots(tid, 1);
    }

    /// Records that fit into the thread's segment.
    pub(crate) fn room(&self, tid: u32) -> u32 {
        let taken = self.current.get(&tid).and_then(|at| self.arena.segment_facts(*at)).map_or(0, |facts| facts.taken);
        super::RECORDS_PER_SEGMENT - taken
    }

    /// The thread ends.
    pub(crate) fn close(&mut self, tid: u32) {
        let Some(at) = self.current.remove(&tid) else { return };
        let segment = self.arena.segment(at).expect("a segment");
        // SAFETY: the test is the only writer of this segment.
        unsafe { (*segment).state.store(segment_state::CLOSED, Ordering::Release) };
        self.arena.header().pieces[usize::from(at.piece)].closed.fetch_or(1 << at.index, Ordering::Release);
    }

    /// The process announces its end.
    pub(crate) fn end(&self, status: i32, io: KernelIo) {
        let at = self.arena.slot(self.slot).expect("inside the arena");
        // SAFETY: the test is the only writer of this slot.
        unsafe {
            (*at).io_end = io;
            (*at).exit_status.store(status, Ordering::Relaxed);
            (*at).ended_ticks.store(clock::ticks(), Ordering::Relaxed);
            (*at).state.store(process_state::ENDED, Ordering::Release);
        }
    }

    /// Counts records that could not be kept.
    pub(crate) fn lose(&self, reason: Loss, count: u64) {
        let at = self.arena.slot(self.slot).expect("inside the arena");
        // SAFETY: a slot in mapped memory; the counters are atomic.
        unsafe { (&(*at).losses)[reason as usize].fetch_add(count, Ordering::Relaxed) };
    }

    /// From now on the process is one that does not exist.
    pub(crate) fn vanish(&self) {
        let at = self.arena.slot(self.slot).expect("inside the arena");
        // SAFETY: the test is the only writer of this slot.
        unsafe { (*at).pid = NOBODY };
    }

    /// The process is about to become a program that cannot be traced.
    pub(crate) fn exec_untraced(&self, verdict: u32, path: u32) {
        let at = self.arena.slot(self.slot).expect("inside the arena");
        // SAFETY: the test is the only writer of this slot.
        unsafe {
            (*at).exec_verdict.store(verdict, Ordering::Relaxed);
            (*at).exec_path.store(path, Ordering::Relaxed);
            (*at).ended_ticks.store(clock::ticks(), Ordering::Relaxed);
            (*at).state.store(process_state::EXECUTING, Ordering::Release);
        }
    }
}

/// Stores a record, its head last.
///
/// # Safety
/// `place` must be a record that the caller alone writes.
unsafe fn store(place: *mut Record, record: &RecordFacts) {
    // SAFETY: the caller's word.
    unsafe {
        (*place).path = record.path;
        (*place).start = record.start;
        (*place).end = record.end;
        (*place).fd = record.fd;
        (*place).detail = record.detail;
        (*place).size = record.size;
        (*place).ret = record.ret;
        (*place).offset = record.offset;
        (*place).extra = record.extra;
        (*place).head.store(record.head, Ordering::Release);
    }
}

/// An annotation to record.
#[derive(Clone, Copy)]
pub(crate) struct Annotation<'p> {
    pub kind: Kind,
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
pub(crate) enum Told {
    Whole,
    /// The process was killed before the record that the others continue was complete.
    WithoutHead,
}

/// A call that took a moment just now.
pub(crate) fn call(call: Call) -> RecordFacts {
    let start = clock::ticks();
    let head = u32::from(call as u16);
    RecordFacts {
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

fn take_segment(arena: &Arena, index: usize, slot: u32, generation: u64, tid: u32) -> SegmentAt {
    let piece = &arena.header().pieces[index];
    let at_piece = index as u16;
    let free = piece.free.load(Ordering::Acquire);
    assert_ne!(free, 0, "the arena is full");
    let index = free.trailing_zeros() as u8;
    piece.free.fetch_and(!(1 << index), Ordering::AcqRel);
    let at = SegmentAt { piece: at_piece, index };
    let segment = arena.segment(at).expect("a segment");
    let (anchor_ticks, anchor_mono) = clock::anchor();
    // SAFETY: the bitmap gave the segment to this test alone.
    unsafe {
        (*segment).slot = slot;
        (*segment).tid = tid;
        (*segment).generation = generation;
        (*segment).anchor_ticks = anchor_ticks;
        (*segment).anchor_mono = anchor_mono;
        (*segment).sequence = arena.header().segments_taken.fetch_add(1, Ordering::Relaxed);
        (*segment).taken_by.store(0, Ordering::Relaxed);
        (*segment).next.store(0, Ordering::Relaxed);
        (*segment).state.store(segment_state::ACTIVE, Ordering::Release);
    }
    // Time passes between two segments.
    sys::nap(1_000);
    at
}
