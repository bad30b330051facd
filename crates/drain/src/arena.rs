//! Arenas and control pages as mapped memory: the only place that touches what traced processes write.
//!
//! Another process may write at any time, may have died half-way, and may have scribbled over anything. So this module
//! copies before it reads, reads plain fields only after the atomic that publishes them, and checks every index and length.

mod growth;
pub(crate) mod guard;
mod mapping;
pub(crate) mod view;
#[cfg(test)]
pub(crate) mod writer;

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use weftline_format::files;
use weftline_recorder::arena as recorder_arena;
use weftline_recorder::handover::{self, Mapped, Segment as _};
use weftline_recorder::layout::{
    ARENA_MAGIC, ArenaHeader, BASE_HEAP_AT, BASE_INDEX_AT, BASE_INDEX_SLOTS, BASE_SEGMENTS, BASE_SEGMENTS_AT,
    FIRST_SEGMENTS, GROWN_SEGMENTS, KernelIo, LAYOUT_VERSION, LOSS_REASONS, MAX_PIECES, PIECE_SIZE, POOL_SLOTS,
    PROCESS_SLOTS, PROCESSES_AT, Piece, ProcessSlot, RECORDS_PER_SEGMENT, Record, SEGMENT_SIZE, piece_use,
    process_state, segment_state,
};
use weftline_recorder::names::{self, NameHeader};
use weftline_recorder::process::slot::{Birth, slot_in};
use weftline_recorder::sys;

use crate::{procfs, system};
pub(crate) use mapping::{ControlPage, ControlSettings};
use mapping::{Mapping, reserve};

/// Copies a plain field that another process may be writing.
macro_rules! copy {
    ($at:ident . $field:ident) => {
        // A volatile read keeps the compiler from assuming that two reads agree.
        (&raw const (*$at).$field).read_volatile()
    };
}

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
pub(crate) struct SegmentInfo {
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
pub(crate) type RecordCopy = Record<u32>;

/// The records of one segment.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    segment: Mapped<'a>,
}

impl Records<'_> {
    /// A record, or nothing when it was never finished.
    #[inline]
    pub(crate) fn get(self, index: u32) -> Option<RecordCopy> {
        if index >= RECORDS_PER_SEGMENT {
            return None;
        }
        let record = self.segment.record(index).cast_const();
        // SAFETY: the segment stays mapped while the arena is borrowed, and the index was checked; plain fields were published by
        // `head`.
        unsafe {
            handover::read(&(*record).head, |head| Record {
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
pub(crate) struct SlotInfo {
    pub birth: Birth,
    pub generation: u64,
    pub born_ticks: u64,
    pub born_mono: u64,
    pub born_real: u64,
    pub born_boot: u64,
}

/// What a process slot says at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotEnd {
    pub ended_ticks: u64,
    pub exit_status: i32,
    pub exec_verdict: u32,
    pub exec_path: u32,
    pub unseen_io: u32,
    pub io_end: KernelIo,
    pub own_reads: u64,
    /// CPU time of the main thread, 0 when not known.
    pub main_cpu_ns: u64,
    /// Time that it waited for a processor, likewise.
    pub main_queued_ns: u64,
    pub cpu_ns: u64,
    pub max_rss_kib: u64,
    pub losses: [u64; LOSS_REASONS],
}

/// One arena: its base piece, and growth pieces as far as they were needed.
pub(crate) struct Arena {
    number: u64,
    directory: PathBuf,
    inode: u64,
    owner: u32,
    base: Mapping,
    /// Mapped to be looked at: see [`view`].
    only_to_look: bool,
    /// All of the base piece is reserved, not only the first segments. Not what the header says, which programs can write.
    is_complete: AtomicBool,
    /// Made when the first one is needed, which in most arenas is never.
    grown: OnceLock<Box<[OnceLock<Mapping>]>>,
    /// A piece whose segments are in use could not be mapped.
    piece_lost: AtomicBool,
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

    /// Makes an empty arena with [`FIRST_SEGMENTS`], which only `owner` and root can open. Its header is written, not mapped: a fault would make the kernel read ahead, which for a file
    /// of unwritten blocks means to fill pages with zeros that may never be used.
    pub(crate) fn create(directory: &Path, number: u64, clock: u32, owner: u32) -> io::Result<()> {
        let path = Arena::path(directory, number);
        let file = reserve(&path, BASE_SEGMENTS_AT + FIRST_SEGMENTS * SEGMENT_SIZE)?;
        let mut head = vec![0u64; PROCESSES_AT / size_of::<u64>()];
        // SAFETY: the buffer is zero, aligned and large enough for the header, and nobody else knows it.
        unsafe { recorder_arena::init_arena(head.as_mut_ptr().cast(), number, clock, FIRST_SEGMENTS as u32) };
        // What is written of the header lies in its first page; the rest of the file is zero anyway.
        let bytes: Vec<u8> = head[..512].iter().flat_map(|word| word.to_ne_bytes()).collect();
        // The rest is address space until it is reserved.
        let filled = file.set_len(PIECE_SIZE as u64).and_then(|()| file.write_all_at(&bytes, 0));
        let given =
            if owner == system::user() { filled } else { filled.and_then(|()| fchown(&file, Some(owner), None)) };
        given.inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        })
    }

    /// Segments that the base piece has by now, as its header says.
    fn base_segments(&self) -> usize {
        (self.header().base_segments.load(Ordering::Acquire) as usize).min(BASE_SEGMENTS)
    }

    /// Reserves the rest of the base piece and makes its segments free ones. Does nothing where that was done, and fails where there is no room.
    pub(crate) fn complete(&self) -> io::Result<()> {
        let first = self.base_segments();
        if first >= BASE_SEGMENTS || self.is_complete.load(Ordering::Relaxed) {
            return Ok(());
        }
        let file = files::change(&Arena::path(&self.directory, self.number))?;
        sys::allocate(file.as_raw_fd(), PIECE_SIZE).map_err(io::Error::from_raw_os_error)?;
        self.is_complete.store(true, Ordering::Relaxed);
        let header = self.header();
        header.base_segments.store(BASE_SEGMENTS as u32, Ordering::Release);
        let added = u64::MAX >> (64 - BASE_SEGMENTS) & !(u64::MAX >> (64 - first.max(1)));
        header.pieces[0].free.fetch_or(added, Ordering::Release);
        Ok(())
    }

    /// Maps an existing arena; nothing when it is not (yet) one of this layout.
    pub(crate) fn open(directory: &Path, number: u64) -> io::Result<Option<Arena>> {
        let arena = Arena::around(directory, number, Mapping::open(&Arena::path(directory, number), PIECE_SIZE)?)?;
        let header = arena.header();
        let known = header.magic.load(Ordering::Acquire) == ARENA_MAGIC && header.version == LAYOUT_VERSION;
        Ok(known.then_some(arena))
    }

    fn around(directory: &Path, number: u64, base: Mapping) -> io::Result<Arena> {
        let data = std::fs::metadata(Arena::path(directory, number))?;
        let (inode, owner) = (data.ino(), data.uid());
        let directory = directory.to_owned();
        let is_complete = AtomicBool::new(false);
        let piece_lost = AtomicBool::new(false);
        Ok(Arena {
            number,
            directory,
            inode,
            owner,
            base,
            only_to_look: false,
            is_complete,
            grown: OnceLock::new(),
            piece_lost,
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Inode of the base piece, by which `/proc/PID/maps` shows it.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether we may query the kernel about processes that this arena names. An arena of another user could name any process, and the run would show what we read.
    pub(crate) fn may_tell_of(&self, pid: u32) -> bool {
        self.owner == system::user() || procfs::is_of(pid, self.owner)
    }

    /// Whether a part of it is gone: its file was cut while it was mapped, a piece is not there, or somebody wrote over its head. What it
    /// held cannot be known.
    pub(crate) fn is_damaged(&self) -> bool {
        let grown = self.grown.get().into_iter().flatten().filter_map(OnceLock::get);
        self.base.is_torn()
            || self.piece_lost.load(Ordering::Relaxed)
            || grown.into_iter().any(Mapping::is_torn)
            || self.header().magic.load(Ordering::Acquire) != ARENA_MAGIC
    }

    /// Records in segments that belong to no known image, by their heads: `is_known` checks slot and generation.
    pub(crate) fn ownerless(&self, is_known: impl Fn(u32, u64) -> bool) -> u64 {
        let segments = self.used_segments().into_iter().filter_map(|at| self.segment_info(at));
        let lost = segments.filter(|info| info.state != segment_state::FREE && !is_known(info.slot, info.generation));
        lost.map(|info| u64::from(info.taken)).sum()
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
            // A second mapping of the same piece, made by another thread at the same time, is simply dropped.
            let _ = cell.set(self.map_piece(index).ok()?);
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
            .map(|index| (index, if index == 0 { self.base_segments() } else { GROWN_SEGMENTS }))
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

    fn segment(&self, at: SegmentAt) -> Option<Mapped<'_>> {
        let piece = usize::from(at.piece);
        let Some(start) = self.piece(piece) else {
            self.piece_lost.store(true, Ordering::Relaxed);
            return None;
        };
        // SAFETY: the piece stays mapped as long as the arena.
        unsafe { recorder_arena::segment_at(start, piece, u32::from(at.index)) }
    }

    /// The header of a segment; nothing when its piece cannot be mapped.
    pub(crate) fn segment_info(&self, at: SegmentAt) -> Option<SegmentInfo> {
        let segment = self.segment(at)?.header();
        // SAFETY: a segment header in mapped memory; plain fields were published by `state`.
        unsafe {
            Some(SegmentInfo {
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
        Some(Records { segment: self.segment(at)? })
    }

    /// A record, or nothing when it was never finished.
    pub(crate) fn record(&self, at: SegmentAt, index: u32) -> Option<RecordCopy> {
        self.records(at)?.get(index)
    }

    /// Notes in a segment which member its records go to; 0 takes it back.
    pub(crate) fn set_taken_by(&self, at: SegmentAt, taken_by: u64) {
        if let Some(segment) = self.segment(at) {
            segment.taken_by().store(taken_by, Ordering::Release);
        }
    }

    /// Gives a segment back, which is closed or of a dead process: see [`handover::release`].
    pub(crate) fn release(&self, at: SegmentAt) {
        let Some(segment) = self.segment(at) else { return };
        let piece = &self.header().pieces[usize::from(at.piece)];
        handover::release(segment, &piece.closed, &piece.free, u32::from(at.index));
    }

    fn slot(&self, index: u32) -> Option<*mut ProcessSlot> {
        // SAFETY: the base piece stays mapped as long as the arena.
        unsafe { slot_in(self.base.at.as_ptr(), index) }
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

    pub(crate) fn slot_info(&self, index: u32) -> SlotInfo {
        let Some(slot) = self.slot(index) else { return SlotInfo::default() };
        // SAFETY: a slot in mapped memory; plain fields were published by its state.
        unsafe {
            SlotInfo {
                birth: Birth {
                    pid: copy!(slot.pid),
                    ppid: copy!(slot.ppid),
                    pid_namespace: copy!(slot.pid_namespace),
                    nonce: copy!(slot.nonce),
                    exe: copy!(slot.exe),
                    command: copy!(slot.command),
                    cwd: copy!(slot.cwd),
                    parent_slot: copy!(slot.parent_slot),
                    rank: copy!(slot.rank),
                    world_size: copy!(slot.world_size),
                    local_rank: copy!(slot.local_rank),
                    launcher: copy!(slot.launcher),
                    io_start: copy!(slot.io_start),
                },
                generation: copy!(slot.generation),
                born_ticks: copy!(slot.born_ticks),
                born_mono: copy!(slot.born_mono),
                born_real: copy!(slot.born_real),
                born_boot: copy!(slot.born_boot),
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
                unseen_io: (*slot).unseen_io.load(Ordering::Relaxed),
                io_end: copy!(slot.io_end),
                own_reads: copy!(slot.own_reads),
                main_cpu_ns: copy!(slot.main_cpu),
                main_queued_ns: copy!(slot.main_queued),
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
    pub(crate) fn note_unseen_io(&self, index: u32, way: u32) {
        if let Some(slot) = self.slot(index) {
            // SAFETY: a slot in mapped memory; the field is atomic.
            unsafe { (*slot).unseen_io.fetch_or(way, Ordering::Relaxed) };
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
        let segments = if *self.is_complete.get_mut() { BASE_SEGMENTS } else { FIRST_SEGMENTS };
        let slots = self.slots_used() as usize;
        let heap =
            (self.header().pieces[0].heap_top.load(Ordering::Relaxed) as usize).min(BASE_SEGMENTS_AT - BASE_HEAP_AT);
        let header = std::mem::offset_of!(ArenaHeader, pieces) + self.pieces_touched() * size_of::<Piece>();
        let base = self.base.at.as_ptr();
        // SAFETY: no process uses the arena (all its slots are free), and these parts lie inside the base piece. The header
        // goes first: a reader of a half-reset arena sees none.
        unsafe {
            base.write_bytes(0, header);
            base.add(PROCESSES_AT).write_bytes(0, slots * size_of::<ProcessSlot>());
            self.wipe_index(heap);
            base.add(BASE_HEAP_AT).write_bytes(0, heap);
            recorder_arena::init_arena(base.cast(), self.number, clock, segments as u32);
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
}
