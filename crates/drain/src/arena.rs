//! Arenas and control pages as mapped memory: the only place that touches what traced processes write.
//!
//! Another process may write at any time, may have died half-way, and may have scribbled over anything. So everything is
//! read by copy, plain fields only after the atomic that publishes them, and no index or length is believed unchecked.

pub(crate) mod guard;
mod mapping;
pub(crate) mod view;
#[cfg(test)]
pub(crate) mod writer;

use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use weftline_recorder::arena as recorder_arena;
use weftline_recorder::layout::{
    ARENA_MAGIC, ArenaHeader, BASE_HEAP_AT, BASE_INDEX_AT, BASE_INDEX_SLOTS, BASE_SEGMENTS, BASE_SEGMENTS_AT,
    GROWN_SEGMENTS, KernelIo, LAYOUT_VERSION, LOSS_REASONS, MAX_PIECES, PIECE_SIZE, POOL_SLOTS, PROCESS_SLOTS,
    PROCESSES_AT, Piece, ProcessSlot, RECORDS_PER_SEGMENT, Record, SEGMENT_SIZE, SegmentHeader, piece_use,
    process_state, segment_state,
};
use weftline_recorder::names::{self, NameHeader};

pub(crate) use mapping::{ControlFacts, ControlPage};
use mapping::{Mapping, reserve};

/// Copies a plain field that another process may be writing.
macro_rules! copy {
    ($at:ident . $field:ident) => {
        // A volatile read keeps the compiler from assuming that two reads agree.
        (&raw const (*$at).$field).read_volatile()
    };
}

/// Processes of one family that make growth pieces at the same moment, at most; of more some would leave traces.
const MADE_AT_ONCE: usize = 64;

/// Bytes of a name at most. The kernel knows no longer path, and the recorder's buffer for command lines is no larger; texts of annotations are cut
/// here. Without a limit each of thousands of records could name four megabytes.
const NAME_MAX: usize = 64 << 10;

/// Arenas that processes made themselves, of a live directory, at most: a program can make files without end, and mappings of a process are few.
const OWN_AT_MOST: usize = 1024;

/// Which segment of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SegmentAt {
    pub piece: u16,
    pub index: u8,
}

/// A segment's header, copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFacts {
    pub state: u32,
    /// Records that were begun.
    pub taken: u32,
    pub slot: u32,
    pub tid: u32,
    pub generation: u64,
    pub anchor_ticks: u64,
    pub anchor_mono: u64,
    pub taken_by: u64,
    pub sequence: u64,
    /// See [`weftline_recorder::layout::segment_clock`].
    pub clock: u32,
}

/// A record, copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordFacts {
    pub head: u32,
    pub path: u32,
    pub start: u64,
    pub end: u64,
    pub fd: i32,
    pub detail: u32,
    pub size: i64,
    pub ret: i64,
    pub offset: i64,
    pub extra: u64,
}

/// The records of one segment.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    first: *const Record,
    arena: std::marker::PhantomData<&'a Arena>,
}

impl Records<'_> {
    /// A record, or nothing when it was never finished.
    #[inline]
    pub(crate) fn get(self, index: u32) -> Option<RecordFacts> {
        if index >= RECORDS_PER_SEGMENT {
            return None;
        }
        // SAFETY: the segment stays mapped while the arena is borrowed, and the index was checked; plain fields were published by
        // `head`.
        unsafe {
            let record = self.first.add(index as usize);
            let head = (*record).head.load(Ordering::Acquire);
            (head != 0).then(|| RecordFacts {
                head,
                path: copy!(record.path),
                start: copy!(record.start),
                end: copy!(record.end),
                fd: copy!(record.fd),
                detail: copy!(record.detail),
                size: copy!(record.size),
                ret: copy!(record.ret),
                offset: copy!(record.offset),
                extra: copy!(record.extra),
            })
        }
    }
}

/// What a process slot says from its birth on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotFacts {
    pub pid: u32,
    pub ppid: u32,
    pub generation: u64,
    pub pid_namespace: u64,
    pub nonce: u64,
    pub born_ticks: u64,
    pub born_mono: u64,
    pub born_real: u64,
    pub born_boot: u64,
    pub exe: u32,
    pub command: u32,
    pub cwd: u32,
    pub parent_slot: u32,
    pub rank: i32,
    pub io_start: KernelIo,
}

/// What a process slot says at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotEnd {
    pub ended_ticks: u64,
    pub exit_status: i32,
    pub exec_verdict: u32,
    pub exec_path: u32,
    pub habits: u32,
    pub io_end: KernelIo,
    pub own_reads: u64,
    pub cpu_ns: u64,
    pub max_rss_kib: u64,
    pub losses: [u64; LOSS_REASONS],
}

/// One arena: its base piece, and growth pieces as far as they were needed.
pub(crate) struct Arena {
    number: u64,
    directory: PathBuf,
    inode: u64,
    base: Mapping,
    /// Mapped to be looked at: see [`view`].
    only_to_look: bool,
    /// Made when the first one is needed, which in most arenas is never.
    grown: OnceLock<Box<[OnceLock<Mapping>]>>,
}

impl Arena {
    pub(crate) fn path(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("a{number}"))
    }

    /// The arenas that a directory holds, by the names of their files.
    pub(crate) fn numbers(directory: &Path) -> io::Result<Vec<u64>> {
        let names = std::fs::read_dir(directory)?.flatten().map(|entry| entry.file_name());
        let number = |name: std::ffi::OsString| name.to_str()?.strip_prefix('a')?.parse().ok();
        Ok(names.filter_map(number).collect())
    }

    /// Those among them that processes made themselves, because the pool was empty or nobody fills it.
    pub(crate) fn own_numbers(directory: &Path) -> Vec<u64> {
        let mut own = Arena::numbers(directory).unwrap_or_default();
        own.retain(|number| *number >= POOL_SLOTS as u64);
        // They are numbered in the order in which they were made.
        own.sort_unstable();
        own.truncate(OWN_AT_MOST);
        own
    }

    /// Makes an empty arena. Its header is written, not mapped: a fault would make the kernel read ahead, which for a file
    /// of unwritten blocks means to fill pages with zeros that may never be used.
    pub(crate) fn create(directory: &Path, number: u64, clock: u32) -> io::Result<()> {
        let path = Arena::path(directory, number);
        let file = reserve(&path, PIECE_SIZE)?;
        let mut head = vec![0u64; PROCESSES_AT / size_of::<u64>()];
        // SAFETY: the buffer is zero, aligned and large enough for the header, and nobody else knows it.
        unsafe { recorder_arena::init_arena(head.as_mut_ptr().cast(), number, clock) };
        // What is written of the header lies in its first page; the rest of the file is zero anyway.
        let bytes: Vec<u8> = head[..512].iter().flat_map(|word| word.to_ne_bytes()).collect();
        file.write_all_at(&bytes, 0).inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        })
    }

    /// Maps an existing arena; nothing when it is not (yet) one of this layout.
    pub(crate) fn open(directory: &Path, number: u64) -> io::Result<Option<Arena>> {
        let arena = Arena::around(directory, number, Mapping::open(&Arena::path(directory, number), PIECE_SIZE)?)?;
        let header = arena.header();
        let known = header.magic.load(Ordering::Acquire) == ARENA_MAGIC && header.version == LAYOUT_VERSION;
        Ok(known.then_some(arena))
    }

    fn around(directory: &Path, number: u64, base: Mapping) -> io::Result<Arena> {
        let inode = std::fs::metadata(Arena::path(directory, number))?.ino();
        let directory = directory.to_owned();
        Ok(Arena { number, directory, inode, base, only_to_look: false, grown: OnceLock::new() })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Inode of the base piece, by which `/proc/PID/maps` shows it.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether a part of it is gone: its file was cut while it was mapped, or somebody wrote over its head. What it held cannot be known.
    pub(crate) fn is_damaged(&self) -> bool {
        let grown = self.grown.get().into_iter().flatten().filter_map(OnceLock::get);
        self.base.is_torn()
            || grown.into_iter().any(Mapping::is_torn)
            || self.header().magic.load(Ordering::Acquire) != ARENA_MAGIC
    }

    /// Records in segments that no image has taken to be its own, by what their heads say: `is_known` tells of slot and generation.
    pub(crate) fn ownerless(&self, is_known: impl Fn(u32, u64) -> bool) -> u64 {
        let facts = self.used_segments().into_iter().filter_map(|at| self.segment_facts(at));
        let lost = facts.filter(|facts| facts.state != segment_state::FREE && !is_known(facts.slot, facts.generation));
        lost.map(|facts| u64::from(facts.taken)).sum()
    }

    pub(crate) fn header(&self) -> &ArenaHeader {
        // SAFETY: the base piece begins with its header; fields that change are atomics.
        unsafe { self.base.at.cast::<ArenaHeader>().as_ref() }
    }

    /// Address of a piece, mapping it when a process made it meanwhile.
    fn piece(&self, index: usize) -> Option<*mut u8> {
        if index == 0 {
            return Some(self.base.at.as_ptr());
        }
        let grown = self.grown.get_or_init(|| (1..MAX_PIECES).map(|_| OnceLock::new()).collect());
        let cell = grown.get(index - 1)?;
        if cell.get().is_none() {
            let path = self.directory.join(format!("a{}.{index}", self.number));
            let open = if self.only_to_look { Mapping::open_to_look } else { Mapping::open };
            // A second mapping of the same piece, made by another thread at the same time, is simply dropped.
            let _ = cell.set(open(&path, PIECE_SIZE).ok()?);
        }
        cell.get().map(|mapping| mapping.at.as_ptr())
    }

    /// Pieces that the arena has, the base included.
    pub(crate) fn pieces_used(&self) -> usize {
        (self.header().pieces_used.load(Ordering::Acquire) as usize).clamp(1, MAX_PIECES)
    }

    /// Pieces that hold segments, with the number of segments of each.
    pub(crate) fn segment_pieces(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.pieces_used())
            .filter(|index| self.header().pieces[*index].used_for.load(Ordering::Acquire) == piece_use::SEGMENTS)
            .map(|index| (index, if index == 0 { BASE_SEGMENTS } else { GROWN_SEGMENTS }))
    }

    /// Segments that a process could take at once.
    pub(crate) fn free_segments(&self) -> u32 {
        self.segment_pieces()
            .map(|(piece, _)| self.header().pieces[piece].free.load(Ordering::Relaxed).count_ones())
            .sum()
    }

    /// Segments that were handed out and not freed yet, whatever their state.
    pub(crate) fn used_segments(&self) -> Vec<SegmentAt> {
        let mut used = Vec::new();
        for (piece, count) in self.segment_pieces() {
            let free = self.header().pieces[piece].free.load(Ordering::Acquire);
            used.extend(
                (0..count)
                    .filter(|index| free >> index & 1 == 0)
                    .map(|index| SegmentAt { piece: piece as u16, index: index as u8 }),
            );
        }
        used
    }

    fn segment(&self, at: SegmentAt) -> Option<*mut SegmentHeader> {
        let (piece, index) = (usize::from(at.piece), usize::from(at.index));
        let (first, count) = if piece == 0 { (BASE_SEGMENTS_AT, BASE_SEGMENTS) } else { (0, GROWN_SEGMENTS) };
        let start = self.piece(piece)?;
        // SAFETY: the index was checked against the number of segments that fit into the mapped piece.
        (index < count).then(|| unsafe { start.add(first + index * SEGMENT_SIZE).cast() })
    }

    /// The header of a segment; nothing when its piece cannot be mapped.
    pub(crate) fn segment_facts(&self, at: SegmentAt) -> Option<SegmentFacts> {
        let segment = self.segment(at)?;
        // SAFETY: a segment header in mapped memory; plain fields were published by `state`.
        unsafe {
            Some(SegmentFacts {
                state: (*segment).state.load(Ordering::Acquire),
                taken: (*segment).next.load(Ordering::Relaxed).min(RECORDS_PER_SEGMENT),
                slot: copy!(segment.slot),
                tid: copy!(segment.tid),
                generation: copy!(segment.generation),
                anchor_ticks: copy!(segment.anchor_ticks),
                anchor_mono: copy!(segment.anchor_mono),
                taken_by: (*segment).taken_by.load(Ordering::Acquire),
                sequence: copy!(segment.sequence),
                clock: copy!(segment.clock),
            })
        }
    }

    /// The records of a segment; nothing when its piece cannot be mapped.
    pub(crate) fn records(&self, at: SegmentAt) -> Option<Records<'_>> {
        let segment = self.segment(at)?;
        // SAFETY: records lie directly behind the header, inside the segment.
        Some(Records { first: unsafe { segment.cast::<Record>().add(1) }, arena: std::marker::PhantomData })
    }

    /// A record, or nothing when it was never finished.
    pub(crate) fn record(&self, at: SegmentAt, index: u32) -> Option<RecordFacts> {
        self.records(at)?.get(index)
    }

    /// Notes in a segment which member its records go to; 0 takes it back.
    pub(crate) fn set_taken_by(&self, at: SegmentAt, taken_by: u64) {
        if let Some(segment) = self.segment(at) {
            // SAFETY: a segment header in mapped memory; only the drain writes this word while the segment is in use.
            unsafe { (*segment).taken_by.store(taken_by, Ordering::Release) };
        }
    }

    /// Gives a segment back: its records are zeroed, since a process takes zero for "not written".
    ///
    /// The order matters to whoever comes after a kill in between: `taken_by` stays until nothing is left to encode.
    pub(crate) fn release(&self, at: SegmentAt) {
        let Some(segment) = self.segment(at) else { return };
        let piece = &self.header().pieces[usize::from(at.piece)];
        let bit = 1u64 << at.index;
        // SAFETY: the segment is closed or its process is dead, so nobody writes into it until the free bit is set.
        unsafe {
            let used = (*segment).next.load(Ordering::Relaxed).min(RECORDS_PER_SEGMENT) as usize;
            let records = segment.cast::<Record>().add(1).cast::<u8>();
            records.write_bytes(0, used * size_of::<Record>());
            (*segment).state.store(segment_state::FREE, Ordering::Release);
            (*segment).next.store(0, Ordering::Relaxed);
            (*segment).taken_by.store(0, Ordering::Release);
        }
        piece.closed.fetch_and(!bit, Ordering::AcqRel);
        piece.free.fetch_or(bit, Ordering::Release);
    }

    fn slot(&self, index: u32) -> Option<*mut ProcessSlot> {
        // SAFETY: the slots lie inside the base piece, and the index is checked.
        ((index as usize) < PROCESS_SLOTS)
            .then(|| unsafe { self.base.at.as_ptr().add(PROCESSES_AT).cast::<ProcessSlot>().add(index as usize) })
    }

    /// Slots that were ever used: the first free one is taken, so there are no more than there were generations.
    pub(crate) fn slots_used(&self) -> u32 {
        self.header().generations.load(Ordering::Acquire).min(PROCESS_SLOTS as u64) as u32
    }

    /// See [`process_state`].
    pub(crate) fn slot_state(&self, index: u32) -> u32 {
        // SAFETY: a slot in mapped memory; the state is atomic.
        self.slot(index).map_or(process_state::FREE, |slot| unsafe { (*slot).state.load(Ordering::Acquire) })
    }

    pub(crate) fn slot_facts(&self, index: u32) -> SlotFacts {
        let Some(slot) = self.slot(index) else { return SlotFacts::default() };
        // SAFETY: a slot in mapped memory; plain fields were published by its state.
        unsafe {
            SlotFacts {
                pid: copy!(slot.pid),
                ppid: copy!(slot.ppid),
                generation: copy!(slot.generation),
                pid_namespace: copy!(slot.pid_namespace),
                nonce: copy!(slot.nonce),
                born_ticks: copy!(slot.born_ticks),
                born_mono: copy!(slot.born_mono),
                born_real: copy!(slot.born_real),
                born_boot: copy!(slot.born_boot),
                exe: copy!(slot.exe),
                command: copy!(slot.command),
                cwd: copy!(slot.cwd),
                parent_slot: copy!(slot.parent_slot),
                rank: copy!(slot.rank),
                io_start: copy!(slot.io_start),
            }
        }
    }

    /// Pid that the parent saw, 0 when it did not say.
    pub(crate) fn pid_outside(&self, index: u32) -> u32 {
        // SAFETY: a slot in mapped memory; the field is atomic.
        self.slot(index).map_or(0, |slot| unsafe { (*slot).pid_outside.load(Ordering::Acquire) })
    }

    pub(crate) fn slot_end(&self, index: u32) -> Option<SlotEnd> {
        let slot = self.slot(index)?;
        // SAFETY: a slot in mapped memory; plain fields were published by its state.
        unsafe {
            Some(SlotEnd {
                ended_ticks: (*slot).ended_ticks.load(Ordering::Acquire),
                exit_status: (*slot).exit_status.load(Ordering::Relaxed),
                exec_verdict: (*slot).exec_verdict.load(Ordering::Relaxed),
                exec_path: (*slot).exec_path.load(Ordering::Relaxed),
                habits: (*slot).habits.load(Ordering::Relaxed),
                io_end: copy!(slot.io_end),
                own_reads: copy!(slot.own_reads),
                cpu_ns: copy!(slot.cpu_user).saturating_add(copy!(slot.cpu_system)),
                max_rss_kib: copy!(slot.max_rss),
                losses: std::array::from_fn(|reason| (&(*slot).losses)[reason].load(Ordering::Relaxed)),
            })
        }
    }

    /// Name id of what the process in a slot calls itself, 0 when it says nothing.
    pub(crate) fn own_name(&self, index: u32) -> u32 {
        // SAFETY: a slot in mapped memory; the field is atomic.
        self.slot(index).map_or(0, |slot| unsafe { (*slot).own_name.load(Ordering::Relaxed) })
    }

    /// Adds to what is known of a living process from outside.
    pub(crate) fn note_habit(&self, index: u32, habit: u32) {
        if let Some(slot) = self.slot(index) {
            // SAFETY: a slot in mapped memory; the field is atomic.
            unsafe { (*slot).habits.fetch_or(habit, Ordering::Relaxed) };
        }
    }

    pub(crate) fn free_slot(&self, index: u32) {
        if let Some(slot) = self.slot(index) {
            // SAFETY: a slot in mapped memory; the field is atomic, and its process is dead.
            unsafe { (*slot).state.store(process_state::FREE, Ordering::Release) };
        }
    }

    /// Base id and bytes of a name; nothing when the id cannot be one.
    pub(crate) fn name(&self, id: u32) -> Option<(u32, &[u8])> {
        let piece = names::piece_of(id);
        if id == 0 || piece >= MAX_PIECES {
            return None;
        }
        // SAFETY: the piece is mapped for as long as `self` lives, and `entry` checks offset and length against it.
        // Published names never change.
        let (base, bytes) = self.piece(piece).map(|start| unsafe { names::entry(start, id) })?;
        Some((base, &bytes[..bytes.len().min(NAME_MAX)]))
    }

    /// Makes an arena that no process uses any more an empty one, as new. Growth pieces are removed.
    pub(crate) fn reset(&mut self) {
        self.remove_growth();
        for at in self.used_segments() {
            // Handed out to a process that died before it could say so.
            self.release(at);
        }
        let clock = self.header().clock;
        let slots = self.slots_used() as usize;
        let heap =
            (self.header().pieces[0].heap_top.load(Ordering::Relaxed) as usize).min(BASE_SEGMENTS_AT - BASE_HEAP_AT);
        let header = std::mem::offset_of!(ArenaHeader, pieces) + self.pieces_touched() * size_of::<Piece>();
        let base = self.base.at.as_ptr();
        // SAFETY: no process uses the arena (all its slots are free), and these parts lie inside the base piece. The header
        // goes first: whoever looks at a half-reset arena sees none.
        unsafe {
            base.write_bytes(0, header);
            base.add(PROCESSES_AT).write_bytes(0, slots * size_of::<ProcessSlot>());
            self.wipe_index(heap);
            base.add(BASE_HEAP_AT).write_bytes(0, heap);
            recorder_arena::init_arena(base.cast(), self.number, clock);
        }
    }

    /// Zeroes the words of the name index that stand for names in the first `heap` bytes of the heap: most pages of the
    /// index were never touched and need not be now.
    ///
    /// # Safety
    /// No process may use the arena.
    unsafe fn wipe_index(&self, heap: usize) {
        let base = self.base.at.as_ptr();
        let mut at = 0;
        while at + size_of::<NameHeader>() <= heap {
            // SAFETY: the header lies inside the used heap; entries are 8-byte aligned.
            let (hash, length) = unsafe {
                let entry = base.add(BASE_HEAP_AT + at).cast::<NameHeader>();
                (copy!(entry.hash), copy!(entry.length) as usize)
            };
            let size = (size_of::<NameHeader>() + length).next_multiple_of(8);
            if hash == 0 || at + size > heap {
                // A process died while it added a name: what follows cannot be found.
                // SAFETY: the index lies inside the base piece, and the caller vouches that nobody uses it.
                unsafe { base.add(BASE_INDEX_AT).write_bytes(0, BASE_HEAP_AT - BASE_INDEX_AT) };
                return;
            }
            let id = ((BASE_HEAP_AT + at) / 8) as u32;
            for probe in 0..names::PROBES {
                let slot = (hash as usize).wrapping_add(probe) & (BASE_INDEX_SLOTS - 1);
                // SAFETY: the slot number is masked to the index, and the caller vouches that nobody uses it.
                unsafe {
                    let word = base.add(BASE_INDEX_AT).cast::<u64>().add(slot);
                    if word.read_volatile() as u32 == id {
                        word.write_volatile(0);
                        break;
                    }
                }
            }
            at += size;
        }
    }

    /// Unmaps and removes all growth pieces.
    fn remove_growth(&mut self) {
        let mapped = self.grown.take().unwrap_or_default();
        let touched = self.pieces_touched();
        let is_there = |index: &usize| {
            let made =
                *index < touched && self.header().pieces[*index].used_for.load(Ordering::Acquire) != piece_use::NONE;
            made || mapped.get(index - 1).is_some_and(|piece| piece.get().is_some())
        };
        for index in (1..touched.max(mapped.len() + 1)).filter(is_there) {
            // It may never have come into being; what is left over goes with the directory.
            let _ = std::fs::remove_file(self.directory.join(format!("a{}.{index}", self.number)));
        }
    }

    /// Pieces of the header's list that were ever touched: those in use, and some that processes may have been making when they
    /// died. Pages of the list that nobody touched need not be.
    fn pieces_touched(&self) -> usize {
        (self.pieces_used() + MADE_AT_ONCE).min(MAX_PIECES)
    }

    /// Removes the arena's files.
    pub(crate) fn remove(mut self) {
        self.remove_growth();
        let _ = std::fs::remove_file(Arena::path(&self.directory, self.number));
    }
}
