//! The shared-memory layout that the traced process writes and the drain reads.
//!
//! Everything here is `repr(C)`, versioned by [`LAYOUT_VERSION`], and valid when all bytes are zero: a fresh or reset file
//! is an empty arena.
//!
//! ```text
//! <live>/rules      Rules: in a run that is shared with other users, what they must not change
//! <live>/ctl        Control: one page per supervisor; options, heartbeat, the pool of arenas, losses without an owner
//! <live>/a<N>       Arena N, base piece (PIECE_SIZE): header | process slots | name index | name heap | segments
//! <live>/a<N>.<K>   growth piece K ≥ 1 of arena N (PIECE_SIZE): segments only, or name index + heap only
//!
//! In a run that is shared with other users, a pooled arena grows within its own file, piece K at K × PIECE_SIZE: a process
//! maps all of that when it claims the arena, and needs no right to open anything later (`recorder/src/arena/sharing.rs`).
//!
//! Segment (SEGMENT_SIZE): SegmentHeader (64 bytes) | Record × RECORDS_PER_SEGMENT
//! ```
//!
//! The traced process writes its process slot, segments and names; the drain writes `taken_by`, the state
//! `FREE` and the pool words. The two synchronise only through atomics.

use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64};

/// Bump whenever a field moves or changes its meaning.
const LAYOUT: u32 = 7;
/// What a control page and an arena must say: the layout and the numbers of the calls. A library and a `weft` of different builds, or
/// leftovers of an older version, are refused instead of misread.
pub const LAYOUT_VERSION: u32 = LAYOUT.wrapping_add(weftline_calls::fingerprint());
/// First word of a control page (`weftCTL` and a newline).
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"weftCTL\n");
/// First word of an arena (`weftARN` and a newline).
pub const ARENA_MAGIC: u64 = u64::from_le_bytes(*b"weftARN\n");

/// Size of the control file.
pub const CONTROL_SIZE: usize = 16384;
/// Size of an arena's base piece and of each growth piece.
pub const PIECE_SIZE: usize = 4 << 20;
/// Size of a segment; the unit that moves between a thread and the drain.
pub const SEGMENT_SIZE: usize = 128 << 10;
/// Records that fit behind a segment's header.
pub const RECORDS_PER_SEGMENT: u32 = (SEGMENT_SIZE / size_of::<Record>()) as u32 - 1;
/// Process slots of an arena: one image and the children it forked that are alive or not yet drained.
pub const PROCESS_SLOTS: usize = 128;
/// Pieces of an arena, the base included: 4 GiB, 64 million events of a program without a drain. A name id has 12 bits for its piece.
pub const MAX_PIECES: usize = 1024;
/// Arenas in the pool that the supervisor keeps ready.
pub const POOL_SLOTS: usize = 256;
/// Users besides the supervisor's own that have arenas in a shared run, at most.
pub const USERS: usize = 16;
/// Pieces of an arena whose growth lies in its own file, the base included: 512 MiB of address space, which is mapped at once.
pub const PIECES_IN_FILE: usize = 128;

/// Where the parts of the base piece begin: process slots behind the header, from a page of their own on.
pub const PROCESSES_AT: usize = size_of::<ArenaHeader>().next_multiple_of(4096);
/// Name index of the base piece.
pub const BASE_INDEX_AT: usize = PROCESSES_AT + PROCESS_SLOTS * size_of::<ProcessSlot>();
/// Slots of the base piece's name index.
pub const BASE_INDEX_SLOTS: usize = 16384;
/// Name heap of the base piece.
pub const BASE_HEAP_AT: usize = BASE_INDEX_AT + BASE_INDEX_SLOTS * 8;
/// First segment of the base piece.
pub const BASE_SEGMENTS_AT: usize = 512 << 10;
/// Segments that the base piece of a pooled arena has at first: enough for a short program, and a third of the memory to be made and given back. A
/// supervisor adds the others when they are needed.
pub const FIRST_SEGMENTS: usize = 8;
/// Segments in the base piece.
pub const BASE_SEGMENTS: usize = (PIECE_SIZE - BASE_SEGMENTS_AT) / SEGMENT_SIZE;
/// Segments in a growth piece that holds segments.
pub const GROWN_SEGMENTS: usize = PIECE_SIZE / SEGMENT_SIZE;
/// Slots of a growth piece's name index (the first half of the piece's index area of 512 KiB).
pub const GROWN_INDEX_SLOTS: usize = 65536;
/// Name heap of a growth piece.
pub const GROWN_HEAP_AT: usize = GROWN_INDEX_SLOTS * 8;

const _: () = assert!(BASE_SEGMENTS_AT - BASE_HEAP_AT >= 256 << 10 && MAX_PIECES <= 1 << 12);
const _: () = assert!(size_of::<Record>() == 64 && size_of::<SegmentHeader>() == 64 && size_of::<ProcessSlot>() == 512);
const _: () = assert!(size_of::<Control>() <= CONTROL_SIZE && GROWN_SEGMENTS <= 64 && BASE_SEGMENTS <= 64);

/// One event. 64 bytes, one cache line.
///
/// `head` is stored last, with Release: zero means that the slot is empty, or that the process died between taking the slot
/// and finishing the record (the call had not returned to its caller). A copy of a finished record is a `Record<u32>`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Record<Head = AtomicU32> {
    /// Call number in the low half ([`weftline_calls::Call`], or the kind of an [annotation](crate::annotation)), [`record_flags`] in the
    /// high half.
    pub head: Head,
    /// Name id of the file, 0 when unknown.
    pub path: u32,
    /// Clock ticks at the start of the call.
    pub start: u64,
    /// Clock ticks at its end.
    pub end: u64,
    /// Descriptor, or -1.
    pub fd: i32,
    /// Meaning depends on the call: flags, mode, whence, second descriptor, count of folded calls.
    pub detail: u32,
    /// Bytes asked for, or a length; -1 when the call has none.
    pub size: i64,
    /// The call's result, or -errno.
    pub ret: i64,
    /// File offset; [`NO_OFFSET`] when unknown or meaningless.
    pub offset: i64,
    /// Second name id, child pid, folded time: by call.
    pub extra: u64,
}

/// `Record::offset` when there is none.
pub const NO_OFFSET: i64 = i64::MIN;

/// Flags in the high half of `Record::head`.
pub mod record_flags {
    /// Made by a `vfork` child while it ran in its parent's memory: belongs to the pid of the thread's next `vfork` record.
    pub const VFORK_CHILD: u32 = 1 << 16;
    /// `Record::extra` holds a second name id.
    pub const SECOND_PATH: u32 = 1 << 17;
    /// The record stands for `detail` calls; `size` is their bytes, `extra` their time in ticks.
    pub const FOLDED: u32 = 1 << 18;
    /// The descriptor is a stream's: bytes were accounted at the stream, not at the kernel.
    pub const STREAM: u32 = 1 << 19;
}

/// States of a segment.
pub mod segment_state {
    /// In the free bitmap; all records zero.
    pub const FREE: u32 = 0;
    /// A live thread writes into it.
    pub const ACTIVE: u32 = 1;
    /// No thread writes into it any more: full, or its thread ended.
    pub const CLOSED: u32 = 2;
}

/// Head of a segment.
#[repr(C, align(64))]
pub struct SegmentHeader {
    /// See [`segment_state`].
    pub state: AtomicU32,
    /// Next record to take; grows past [`RECORDS_PER_SEGMENT`] when the segment is full.
    pub next: AtomicU32,
    /// Index of the owner's process slot.
    pub slot: u32,
    /// The thread that writes.
    pub tid: u32,
    /// `ProcessSlot::generation` of the owner.
    pub generation: u64,
    /// Clock anchor when the segment was taken: ticks …
    pub anchor_ticks: u64,
    /// … and CLOCK_MONOTONIC at the same moment.
    pub anchor_mono: u64,
    /// Written by the drain before it writes the member that holds these records: 1 + member sequence number, with
    /// [`TAKEN_SHORT`] when that member lies in the shared file of short images. Zero: not encoded yet.
    pub taken_by: AtomicU64,
    /// Order in which segments were taken in this arena.
    pub sequence: u64,
    /// What the records count: see [`segment_clock`].
    pub clock: u32,
    _reserved: u32,
}

/// Clocks of a segment.
pub mod segment_clock {
    /// The arena's.
    pub const SHARED: u32 = 0;
    /// Nanoseconds of CLOCK_MONOTONIC: the thread was forbidden to read the counter.
    pub const MONOTONIC: u32 = 1;
    /// The same to the timer tick only.
    pub const COARSE: u32 = 2;
}

/// Bit of `SegmentHeader::taken_by`.
pub const TAKEN_SHORT: u64 = 1 << 63;

/// States of a process slot.
pub mod process_state {
    /// Not in use.
    pub const FREE: u32 = 0;
    /// Being filled in.
    pub const CLAIMED: u32 = 1;
    /// In use by a process that should be alive.
    pub const LIVE: u32 = 2;
    /// About to exec; if that fails the slot goes back to LIVE.
    pub const EXECUTING: u32 = 3;
    /// The process announced its end (exit, `_exit`, …).
    pub const ENDED: u32 = 4;
}

/// Why a record could not be kept. The order is part of the layout; names are in [`LOSS_NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Loss {
    /// Every segment was full and the arena could not grow.
    ArenaFull = 0,
    /// A signal handler recorded while the interrupted code was taking a segment.
    InSignal = 1,
    /// No free process slot in the arena for a forked child.
    NoProcessSlot = 2,
    /// No arena was available at all.
    NoArena = 3,
    /// The name of a file could not be kept (the event is there, its path is not).
    NameLost = 4,
    /// A child that shares its parent's memory without being a thread recorded through its parent's slot.
    SharedMemory = 5,
    /// A child with thread storage of its own (`clone` with CLONE_SETTLS) made a call: the recorder's storage is not there.
    OwnStorage = 6,
}

/// Number of [`Loss`] reasons that have a counter.
pub const LOSS_REASONS: usize = 8;
/// Names of the reasons, as they appear in manifests and reports.
pub const LOSS_NAMES: [&str; LOSS_REASONS] = [
    "arena-full",
    "in-signal-handler",
    "no-process-slot",
    "no-arena",
    "name-lost",
    "shared-memory-child",
    "own-storage-child",
    "reserved-7",
];

/// I/O counters as the kernel keeps them in `/proc/PID/io`. `rchar == u64::MAX` means that they could not be read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelIo {
    /// Bytes returned by read-like calls.
    pub rchar: u64,
    /// Bytes given to write-like calls.
    pub wchar: u64,
}

impl KernelIo {
    /// Counters that could not be read.
    pub const UNKNOWN: Self = Self { rchar: u64::MAX, wchar: u64::MAX };
}

/// One process image (or forked child) that records into this arena.
#[repr(C, align(64))]
pub struct ProcessSlot {
    /// See [`process_state`].
    pub state: AtomicU32,
    /// Pid in the process's own namespace.
    pub pid: u32,
    /// Parent's pid, as the process sees it.
    pub ppid: u32,
    /// Pid as the parent saw it from `fork`; 0 when the parent did not say. Differs from `pid` across pid namespaces.
    pub pid_outside: AtomicU32,
    /// New for each use of the slot.
    pub generation: u64,
    /// Inode of the pid namespace, 0 when unknown.
    pub pid_namespace: u64,
    /// First bytes of AT_RANDOM: new for every image, kept by fork.
    pub nonce: u64,
    /// Clock at the image's first event: ticks, monotonic, realtime and boot-time nanoseconds.
    pub born_ticks: u64,
    /// CLOCK_MONOTONIC at birth.
    pub born_mono: u64,
    /// CLOCK_REALTIME at birth.
    pub born_real: u64,
    /// CLOCK_BOOTTIME at birth; `/proc/PID/stat` start times count from boot.
    pub born_boot: u64,
    /// Ticks when the process announced its end.
    pub ended_ticks: AtomicU64,
    /// Name ids: executable, command line (arguments separated by NUL), working directory at birth.
    pub exe: u32,
    /// Command line.
    pub command: u32,
    /// Working directory at birth.
    pub cwd: u32,
    /// Slot index of the forking parent plus one; 0 for an image that came by exec.
    pub parent_slot: u32,
    /// From the launcher's variables; -1 when unknown.
    pub rank: i32,
    /// Number of ranks, -1 when unknown.
    pub world_size: i32,
    /// Rank on this node, -1 when unknown.
    pub local_rank: i32,
    /// See [`crate::identity::Launcher`].
    pub launcher: u32,
    /// Exit status given to exit/_exit, -1 while unknown.
    pub exit_status: AtomicI32,
    /// What the next image will be if it cannot be traced: see [`crate::elf::Verdict`]; 0 = will be traced.
    pub exec_verdict: AtomicU32,
    /// Name id of the program given to exec.
    pub exec_path: AtomicU32,
    /// Things seen that explain missing bytes: [`unseen_io`].
    pub unseen_io: AtomicU32,
    /// Kernel counters when the image started …
    pub io_start: KernelIo,
    /// … and when it ended or executed something else.
    pub io_end: KernelIo,
    /// CPU time in nanoseconds (user, system) at the end.
    pub cpu_user: u64,
    /// System time at the end.
    pub cpu_system: u64,
    /// Peak resident set in KiB at the end.
    pub max_rss: u64,
    /// Records that could not be kept, by [`Loss`].
    pub losses: [AtomicU64; LOSS_REASONS],
    /// Name id of what the process calls itself (`prctl(PR_SET_NAME)` of its main thread); 0 while it says nothing.
    pub own_name: AtomicU32,
    _reserved_name: u32,
    /// Bytes that the recorder itself has read in the image: `io_end` excludes them, but the kernel adds them to the counters of the parent that waits.
    pub own_reads: u64,
    /// CPU time of the main thread in nanoseconds at the end; 0 if unknown.
    pub main_cpu: u64,
    /// Time in nanoseconds that the main thread could have run and had no processor; 0 likewise.
    pub main_queued: u64,
    _reserved: [u64; 29],
}

/// Bits of `ProcessSlot::unseen_io`: I/O that hooks cannot see byte for byte.
pub mod unseen_io {
    /// io_uring was set up.
    pub const IO_URING: u32 = 1;
    /// A file was mapped into memory.
    pub const MMAP: u32 = 2;
    /// A seccomp filter was installed.
    pub const SECCOMP: u32 = 4;
    /// `syscall()` was used for file I/O.
    pub const RAW_SYSCALLS: u32 = 8;
    /// Linux native AIO was set up.
    pub const NATIVE_AIO: u32 = 16;
    /// Streams were used: bytes are counted at the stream.
    pub const STREAMS: u32 = 32;
    /// A child shares our memory (`clone` with CLONE_VM).
    pub const SHARED_MEMORY: u32 = 64;
    /// Sockets were read or written with read/write.
    pub const SOCKETS: u32 = 128;
    /// Kernel-side copies were made (splice, tee, vmsplice) which the kernel does not count as rchar/wchar.
    pub const SPLICE: u32 = 256;
}

/// What a growth piece is for.
pub mod piece_use {
    /// Not there.
    pub const NONE: u32 = 0;
    /// Someone is making it.
    pub const MAKING: u32 = 1;
    /// Segments.
    pub const SEGMENTS: u32 = 2;
    /// Name index and heap.
    pub const NAMES: u32 = 3;
}

/// Bookkeeping of one piece, kept in the base piece.
#[repr(C)]
pub struct Piece {
    /// See [`piece_use`].
    pub used_for: AtomicU32,
    /// Bytes of the name heap in use (from the piece's start); may run past the end when it is full.
    pub heap_top: AtomicU32,
    /// Free segments, one bit each.
    pub free: AtomicU64,
    /// Segments that a thread has closed and that wait for the drain.
    pub closed: AtomicU64,
}

/// Head of an arena's base piece.
#[repr(C)]
pub struct ArenaHeader {
    /// [`ARENA_MAGIC`], stored last when an arena is made ready.
    pub magic: AtomicU64,
    /// [`LAYOUT_VERSION`].
    pub version: u32,
    /// Kind of clock: see [`crate::clock::ClockKind`].
    pub clock: u32,
    /// The file's number: `a<number>`.
    pub number: u64,
    /// Sequence of segments handed out.
    pub segments_taken: AtomicU64,
    /// Generations handed to process slots.
    pub generations: AtomicU64,
    /// Pieces in use, at least 1.
    pub pieces_used: AtomicU32,
    /// Segments of the base piece whose memory is reserved; the others are no segments yet. At most [`BASE_SEGMENTS`].
    pub base_segments: AtomicU32,
    /// Growth that the supervisor is asked for, one bit for each [`piece_use`]: by a process that may not grow the file itself. The
    /// supervisor takes a bit away when it has answered; the same bit of the upper half says that there was nothing to be had.
    pub asked: AtomicU32,
    _reserved: u32,
    /// Bookkeeping of the pieces; index 0 is the base piece.
    pub pieces: [Piece; MAX_PIECES],
}

/// States of a pool word in the control page; anything else is the pid of the process that claimed it.
pub mod pool_state {
    /// No arena with this number.
    pub const ABSENT: u64 = 0;
    /// Ready to be claimed.
    pub const READY: u64 = 1;
    /// Being made ready by the supervisor.
    pub const RESERVED: u64 = 2;
    /// Added to the pid of the claiming process.
    pub const CLAIMED: u64 = 1 << 32;
}

/// Words of `Control::wanted`: a user's number in the low half, and these.
pub mod wanted {
    /// Programs of this user need arenas.
    pub const ASKED: u64 = 1 << 32;
    /// None are available for now: waiting does not help.
    pub const REFUSED: u64 = 1 << 33;
}

/// Bits of `Control::options`.
pub mod options {
    /// Record process life only, no I/O calls.
    pub const NO_IO: u32 = 1;
    /// Wait (bounded) for the drain instead of dropping when the arena is full.
    pub const WAIT_WHEN_FULL: u32 = 2;
    /// No supervisor will come: grow at once, never nap.
    pub const UNSUPERVISED: u32 = 4;
    /// Spans tell what processor time and memory they used.
    pub const SPAN_USAGE: u32 = 8;
    /// CLOCK_MONOTONIC costs a system call, which a seccomp filter may forbid.
    pub const SLOW_CLOCK: u32 = 16;
    /// Programs of other users record as well: each user has arenas of its own.
    pub const OTHER_USERS: u32 = 32;
}

/// The control page of a supervisor, mapped by every traced process.
#[repr(C)]
pub struct Control {
    /// [`CONTROL_MAGIC`].
    pub magic: u64,
    /// [`LAYOUT_VERSION`].
    pub version: u32,
    /// See [`crate::clock::ClockKind`].
    pub clock: u32,
    /// See [`options`].
    pub options: u32,
    /// Growth limit: pieces per arena, at most [`MAX_PIECES`].
    pub max_pieces: u32,
    /// CLOCK_MONOTONIC of the supervisor's last poll; stale means that nothing is drained.
    pub heartbeat: AtomicU64,
    /// Longest time a thread waits for room with [`options::WAIT_WHEN_FULL`], in nanoseconds.
    pub wait_limit: u64,
    /// Numbers for arenas that processes make themselves when the pool is empty (they start at [`POOL_SLOTS`]).
    pub own_arenas: AtomicU64,
    /// Losses of processes that have no slot.
    pub losses: [AtomicU64; LOSS_REASONS],
    /// The pool: see [`pool_state`].
    pub pool: [AtomicU64; POOL_SLOTS],
    /// The id of the run that the directory belongs to, filled up with zeros: recovery takes no other run's.
    pub run_id: [u8; RUN_ID_MAX],
    /// Pieces that may still be made, by the supervisor and by processes; below 1 there is no room.
    pub room: AtomicI64,
    /// Programs that could not have an arena: each with its reason, once, as many as there are places for.
    pub refused: [Refused; REFUSED],
    /// How many there were.
    pub refusals: AtomicU32,
    /// With [`options::OTHER_USERS`]: the intended user of each arena in the pool. A process that claims one checks the file's owner.
    pub owners: [AtomicU32; POOL_SLOTS],
    /// Users whose programs need arenas: see [`wanted`].
    pub wanted: [AtomicU64; USERS],
}

/// What the supervisor has decided for all programs, once and for all. In a run that is shared with other users, programs read it from
/// `<live>/rules`, which only the supervisor's user can write; any user can write the same facts in the control page.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// [`LAYOUT_VERSION`].
    pub version: u32,
    /// See [`crate::clock::ClockKind`].
    pub clock: u32,
    /// See [`options`].
    pub options: u32,
    /// Growth limit: pieces per arena.
    pub max_pieces: u32,
    /// Longest wait of a thread in nanoseconds.
    pub wait_limit: u64,
}

impl Rules {
    /// Bytes of the file.
    pub const SIZE: usize = 24;

    /// As the file has them.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        for (place, word) in bytes.chunks_exact_mut(4).zip([self.version, self.clock, self.options, self.max_pieces]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[16..].copy_from_slice(&self.wait_limit.to_le_bytes());
        bytes
    }

    /// From the file; nothing when they are of another version.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Option<Rules> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let wait_limit = u64::from(word(16)) | u64::from(word(20)) << 32;
        let rules = Rules { version: word(0), clock: word(4), options: word(8), max_pieces: word(12), wait_limit };
        (rules.version == LAYOUT_VERSION).then_some(rules)
    }
}

/// How a directory ends that holds live directories for several users.
pub const SHARED_SUFFIX: &str = "-shared";

/// Places for programs that could not have an arena; of further ones only the number is known. A job with more programs than this, each of which
/// has no room, is none that anybody has shown.
pub const REFUSED: usize = 64;
/// What is kept of the path of such a program: its end.
pub const REFUSED_PATH: usize = 112;

/// A program that could not have an arena.
#[repr(C)]
pub struct Refused {
    /// See [`Refusal`]; stored last. [`BEING_WRITTEN`] before that.
    pub reason: AtomicU32,
    /// The pid of the first one, as it sees itself.
    pub pid: AtomicU32,
    /// CLOCK_MONOTONIC when that was refused.
    pub at_mono: AtomicU64,
    /// How many processes of this program were refused for this reason.
    pub count: AtomicU64,
    /// The executable, filled up with zeros.
    pub path: [AtomicU8; REFUSED_PATH],
}

/// A place that some process has taken and not filled yet.
pub const BEING_WRITTEN: u32 = u32::MAX;

/// Why a program could not have an arena. The order is part of the layout; words are in [`REFUSAL_NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Refusal {
    /// The shared memory cannot be opened.
    Unreachable = 1,
    /// It cannot be mapped.
    AddressSpace = 2,
    /// There is no descriptor to open it with.
    Descriptors = 3,
    /// No file may be so large.
    FileSize = 4,
    /// There is no more shared memory.
    Room = 5,
    /// The supervisor did not have one ready in time: a burst of programs of another user, or too many users.
    NotReady = 6,
}

/// The message for a program that was refused, by [`Refusal`].
pub const REFUSAL_NAMES: [&str; 7] = [
    "",
    "the run's shared memory is not reachable",
    "its address space is limited (RLIMIT_AS)",
    "it may open no file (RLIMIT_NOFILE)",
    "its files may not be large enough (RLIMIT_FSIZE)",
    "no shared memory was left",
    "no shared memory was ready for its user within a second",
];

/// What is kept of a run's id in the control page.
pub const RUN_ID_MAX: usize = 64;
