//! Per-thread writing: the hot path.
//!
//! A thread owns one segment at a time. Storing a record is a fetch-and-add on the segment's counter, nine plain stores
//! and one Release store; nothing is shared with other threads. How segments come and go is in [`crate::handover`].

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::annotation::{self, Event, INLINE, MAX_PAYLOAD, PER_RECORD};
use crate::clock;
use crate::handover::{self, Held, Mapped, Writer};
use crate::layout::{Loss, NO_OFFSET, Record, segment_clock};
use crate::{arena, names, process};
use weftline_calls::Call;

/// Streams whose character-level calls a thread folds at a time.
pub const FOLDS: usize = 4;

/// A thread's state. Lives in thread-local storage, zero at thread start; atomics only because signal handlers and
/// `clone` children with shared memory see it too.
#[repr(C)]
pub struct ThreadState {
    writer: Writer<Held, AtomicU32>,
    tid: AtomicU32,
    /// How many `vfork`s deep this thread runs as a child, in its parent's memory.
    vfork: AtomicU32,
    /// Slot reserved for the child of a `fork` under way, plus one.
    pub(crate) reserved_slot: AtomicU32,
    next_fold: AtomicU32,
    /// The last name that was interned from a C string, in the base piece: epoch in the upper half, id in the lower. One word, because handlers
    /// change it too.
    last_name: AtomicU64,
    /// Ticks when the innermost `vfork` under way began.
    vfork_started: AtomicU64,
    folds: [Fold; FOLDS],
    buffers: [Buffer; FOLDS],
    next_buffer: AtomicU32,
    /// A [`clock::Source`].
    clock: AtomicU32,
    /// Descriptors that a `vfork` child changed, each with its name: the parent's table must not change with them.
    borrowed: [Borrowed; BORROWED],
}

/// Descriptors that a `vfork` child may change before its further ones go nameless.
const BORROWED: usize = 16;

/// A descriptor as a `vfork` child sees it.
#[repr(C)]
struct Borrowed {
    /// The descriptor plus one; 0 when unused.
    fd: AtomicU32,
    name: AtomicU32,
}

/// Character-level calls of one stream and direction that share a record.
#[repr(C)]
struct Fold {
    stream: AtomicPtr<u8>,
    record: AtomicPtr<Record>,
    call: AtomicU32,
}

/// Where a stream's buffer pointers were after this thread's last call on it. What they moved since, inlined code did.
#[repr(C)]
pub struct Buffer {
    /// The stream; null when unused.
    pub stream: AtomicPtr<u8>,
    /// Its read pointer then …
    pub read: AtomicUsize,
    /// … and its write pointer.
    pub write: AtomicUsize,
}

/// Alignment of the variable below. A library that `dlopen` brings gets no more than the thread block itself has: on aarch64 that is 16
/// unless the program's own storage asks for more, and a cache line's 64 is refused ("cannot allocate memory in static TLS block").
const ALIGNMENT: usize = if cfg!(target_arch = "aarch64") { 16 } else { 64 };

// The variable itself: initial-exec storage, which costs two instructions to reach where the dynamic model costs a call. Rust's own
// `thread_local!` has no such model on stable, so the symbol is laid out by hand.
core::arch::global_asm!(
    ".pushsection .tbss.weft_thread,\"awT\",%nobits",
    ".balign {alignment}",
    ".hidden weft_thread",
    ".globl weft_thread",
    ".type weft_thread,%object",
    ".size weft_thread,{size}",
    "weft_thread:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<ThreadState>(),
    alignment = const ALIGNMENT,
);

/// The calling thread's state.
#[inline(always)]
pub fn state() -> &'static ThreadState {
    let at: *const ThreadState;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the thread pointer and a link-time constant; `weft_thread` is a ThreadState in this thread's storage, all of
    // whose fields are atomics that are valid when zero.
    unsafe {
        core::arch::asm!("mov {0}, qword ptr [rip + weft_thread@GOTTPOFF]", "add {0}, qword ptr fs:[0]", out(reg) at,
            options(pure, readonly, nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        let offset: usize;
        core::arch::asm!("adrp {1}, :gottprel:weft_thread", "ldr {1}, [{1}, :gottprel_lo12:weft_thread]", "mrs {0}, tpidr_el0",
            out(reg) at, out(reg) offset, options(pure, readonly, nostack));
        return &*at.byte_add(offset);
    }
    // SAFETY: as above; the storage lives as long as the thread, and no reference leaves it.
    #[cfg(not(target_arch = "aarch64"))]
    unsafe {
        &*at
    }
}

/// Is there a state at all? It lies in the storage that the C library gives its threads. A child that `clone` gave another base
/// (CLONE_SETTLS) has none; a base whose first word, which points at itself in the C library's, is zero is recognised for two instructions.
#[inline(always)]
pub fn has_state() -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the word at the thread pointer, which any code that calls the C library can.
    unsafe {
        core::arch::asm!("cmp qword ptr fs:[0], 0", "je {}", label { return false }, options(nostack, readonly));
    }
    true
}

/// Where the C library keeps a thread's id in its block, as far as it was seen to be true; 0 otherwise.
static TID_AT: AtomicUsize = AtomicUsize::new(0);

/// Learns [`TID_AT`] in the thread that starts. The place has been the same in all versions of glibc that there are.
pub(crate) fn learn_tid_place() {
    #[cfg(target_arch = "x86_64")]
    {
        const PLACE: usize = 720;
        // SAFETY: glibc's thread block is longer than this (2304 bytes in 2.36); callers run in a thread of it.
        if unsafe { block().byte_add(PLACE).cast::<u32>().read_volatile() } == crate::sys::gettid() {
            TID_AT.store(PLACE, Ordering::Relaxed);
        }
    }
}

/// The calling thread's block.
#[cfg(target_arch = "x86_64")]
fn block() -> *const u8 {
    let at: *const u8;
    // SAFETY: reads the word at the thread pointer, by which glibc's block points at itself.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) at, options(pure, readonly, nostack, preserves_flags));
    }
    at
}

/// The id of a thread of this process by its `pthread_t`; 0 when it cannot be told. Without a system call.
///
/// # Safety
/// `thread` must be a `pthread_t` of a thread that was not joined yet.
pub unsafe fn id_of(thread: usize) -> u32 {
    match TID_AT.load(Ordering::Relaxed) {
        0 => 0,
        // SAFETY: the caller vouches for the block, and the place was seen to hold the id.
        place => unsafe { ((thread + place) as *const u32).read_volatile() },
    }
}

/// The calling thread's id where the kernel must not be asked.
fn known_tid() -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the calling thread's own block.
    return unsafe { id_of(block() as usize) };
    #[cfg(not(target_arch = "x86_64"))]
    crate::sys::gettid()
}

/// At least the number of threads that run as `vfork` children: while it is 0, which it nearly always is, a hook need not look at its thread. In the child
/// of a process with such a thread it stays above 0.
static VFORKS: AtomicU32 = AtomicU32::new(0);

/// Does the calling thread run as a `vfork` child at the moment?
#[inline(always)]
pub fn in_vfork() -> bool {
    VFORKS.load(Ordering::Relaxed) != 0 && is_child()
}

#[cold]
#[inline(never)]
fn is_child() -> bool {
    state().in_vfork()
}

static THREAD_WATCH: AtomicUsize = AtomicUsize::new(0);

/// `watch` is called once in every thread that records, before its first record: a front-end arranges there to be told of the
/// thread's end.
pub fn watch_threads(watch: extern "C" fn()) {
    THREAD_WATCH.store(watch as usize, Ordering::Relaxed);
}

/// The parts of a record that differ from call to call.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "see layout::Record, whose fields these are")]
pub struct Fields {
    pub flags: u32,
    pub path: u32,
    pub fd: i32,
    pub size: i64,
    pub ret: i64,
    pub offset: i64,
    pub detail: u32,
    pub extra: u64,
}

impl Fields {
    /// Nothing but a result.
    pub const NONE: Fields =
        Fields { flags: 0, path: 0, fd: -1, size: -1, ret: 0, offset: NO_OFFSET, detail: 0, extra: 0 };
}

impl ThreadState {
    /// The thread's memory of a stream's buffer, if it has any.
    #[inline(always)]
    pub fn buffer(&self, stream: *mut u8) -> Option<&Buffer> {
        // Unused places hold null, and `fflush(NULL)` is a call.
        self.buffers.iter().find(|buffer| buffer.stream.load(Ordering::Relaxed) == stream).filter(|_| !stream.is_null())
    }

    /// A place to remember a stream's buffer; the oldest makes room.
    pub fn new_buffer(&self, stream: *mut u8) -> &Buffer {
        let buffer = &self.buffers[self.next_buffer.fetch_add(1, Ordering::Relaxed) as usize % FOLDS];
        buffer.stream.store(stream, Ordering::Relaxed);
        buffer
    }

    /// The last name of [`Self::remember_name`], if it is of this epoch and in the base piece.
    #[inline(always)]
    pub(crate) fn last_name(&self, epoch: u32) -> Option<u32> {
        let id = self.last_name.load(Ordering::Relaxed) ^ u64::from(epoch) << 32;
        // Of another epoch there is something in the upper half; none is 0 in all of them.
        (id.wrapping_sub(1) < names::BASE_IDS - 1).then_some(id as u32)
    }

    /// Remembers a name that may well be used next again.
    pub(crate) fn remember_name(&self, epoch: u32, id: u32) {
        self.last_name.store(u64::from(epoch) << 32 | u64::from(id), Ordering::Relaxed);
    }

    /// Does this thread run as a `vfork` child at the moment?
    #[inline(always)]
    pub fn in_vfork(&self) -> bool {
        VFORKS.load(Ordering::Relaxed) != 0 && self.vfork.load(Ordering::Relaxed) != 0
    }

    /// Called just before `vfork`: until [`Self::leave_vfork`], records are the child's.
    pub fn enter_vfork(&self) {
        for place in &self.borrowed {
            place.fd.store(0, Ordering::Relaxed);
        }
        self.vfork_started.store(clock::ticks(), Ordering::Relaxed);
        VFORKS.fetch_add(1, Ordering::Relaxed);
        self.vfork.fetch_add(1, Ordering::Relaxed);
    }

    /// The parent goes on; the ticks when its `vfork` began.
    pub fn leave_vfork(&self) -> u64 {
        self.vfork.fetch_sub(1, Ordering::Relaxed);
        VFORKS.fetch_sub(1, Ordering::Relaxed);
        self.vfork_started.load(Ordering::Relaxed)
    }

    /// What a `vfork` child calls a descriptor, if it has changed it.
    pub fn borrowed_name(&self, fd: i32) -> Option<u32> {
        let place = self.borrowed.iter().find(|place| place.fd.load(Ordering::Relaxed) == fd as u32 + 1)?;
        Some(place.name.load(Ordering::Relaxed))
    }

    /// A `vfork` child opened or closed a descriptor; 0 for closed or nameless.
    pub fn borrow_name(&self, fd: i32, name: u32) {
        let key = fd as u32 + 1;
        let place = self.borrowed.iter().find(|place| [key, 0].contains(&place.fd.load(Ordering::Relaxed)));
        if let Some(place) = place {
            place.name.store(name, Ordering::Relaxed);
            place.fd.store(key, Ordering::Relaxed);
        }
    }

    /// The thread's id, asked once per thread.
    pub fn tid(&self) -> u32 {
        match self.tid.load(Ordering::Relaxed) {
            0 => {
                let tid = if process::unrestricted() { crate::sys::gettid() } else { known_tid() };
                self.tid.store(tid, Ordering::Relaxed);
                let watch = THREAD_WATCH.load(Ordering::Relaxed);
                if watch != 0 {
                    // SAFETY: only `watch_threads` stores here, and only an `extern "C" fn()`.
                    unsafe { core::mem::transmute::<usize, extern "C" fn()>(watch)() };
                }
                tid
            }
            tid => tid,
        }
    }

    /// Forgets everything inherited from the parent's thread: called in a forked child before its first record.
    pub(crate) fn forget(&self) {
        self.writer.forget(Here(self));
        self.last_name.store(0, Ordering::Relaxed);
        self.tid.store(0, Ordering::Relaxed);
        self.vfork.store(0, Ordering::Relaxed);
    }

    fn forget_folds(&self) {
        for fold in &self.folds {
            fold.stream.store(core::ptr::null_mut(), Ordering::Relaxed);
        }
    }

    /// Hands the segment over to the drain; the thread is about to end.
    pub fn close(&self) {
        self.writer.close(Here(self));
    }

    /// The thread's clock, as far as it was looked up.
    pub(crate) fn clock(&self) -> clock::Source {
        match self.clock.load(Ordering::Relaxed) {
            1 => clock::Source::Shared,
            2 => clock::Source::Syscall,
            3 => clock::Source::Coarse,
            _ => clock::Source::Unknown,
        }
    }

    /// Goes on with another clock: the records of a segment all count the same one.
    pub(crate) fn change_clock(&self, source: clock::Source) {
        // It will be needed, and in strict seccomp it cannot be asked.
        self.tid();
        let before = self.clock.swap(source as u32, Ordering::Relaxed);
        if before != source as u32 && (before, source) != (clock::Source::Unknown as u32, clock::Source::Shared) {
            self.close();
        }
    }

    /// Was the segment taken in the epoch that the process is in now? No in a child that has not entered yet.
    #[inline(always)]
    fn is_current(&self) -> bool {
        self.writer.is_current(Here(self))
    }
}

/// The process that a thread is of, as its [`Writer`] sees it.
#[derive(Clone, Copy)]
struct Here<'a>(&'a ThreadState);

impl handover::Process for Here<'_> {
    type Segment = Mapped<'static>;

    #[inline(always)]
    fn epoch(&self) -> u32 {
        process::epoch()
    }

    fn enter(&self) {
        process::enter(self.0);
    }

    fn obtain(&self, again: bool) -> Option<Mapped<'static>> {
        arena::take_segment(self.0.tid(), again)
    }

    fn give_up(&self, segment: Mapped<'static>) {
        arena::close_segment(segment);
    }

    fn moved_on(&self) {
        self.0.forget_folds();
    }

    fn interrupted(&self) {
        process::count_loss(Loss::InSignal);
    }
}

/// Stores an annotation: its record, and behind it as many more as its payload needs.
pub fn record_annotation(event: &Event<'_>) {
    let length = (event.length as usize).min(MAX_PAYLOAD);
    // SAFETY: the event's maker vouches for the payload.
    let payload = unsafe { core::slice::from_raw_parts(event.payload, length) };
    let thread = state();
    let Some(first) = thread.writer.take(Here(thread), annotation_records(length)) else { return };
    let vfork = if thread.in_vfork() { crate::layout::record_flags::VFORK_CHILD } else { 0 };
    // SAFETY: the writer gave us these records.
    unsafe {
        continue_annotation(first, payload);
        begin_annotation(first, event, payload, vfork);
    }
}

/// Records that an annotation with a payload of this length takes: there is always a segment that could hold so many.
pub fn annotation_records(length: usize) -> u32 {
    1 + length.saturating_sub(INLINE).div_ceil(PER_RECORD) as u32
}

/// Stores what does not fit into an annotation's first record into those behind it.
///
/// # Safety
/// The caller must have taken [`annotation_records`] records of a mapped segment from `first` on.
pub unsafe fn continue_annotation(first: *mut Record, payload: &[u8]) {
    let (_, rest) = payload.split_at(payload.len().min(INLINE));
    for (index, part) in (1..).zip(rest.chunks(PER_RECORD)) {
        // SAFETY: the caller's records; the payload lies behind the head, PER_RECORD bytes at most.
        unsafe {
            let record = first.add(index);
            handover::publish(&(*record).head, annotation::CONTINUED, || {
                core::ptr::copy_nonoverlapping(part.as_ptr(), record.cast::<u8>().add(4), part.len());
            });
        }
    }
}

/// Stores an annotation's first record, after which it is complete.
///
/// # Safety
/// As for [`continue_annotation`].
pub unsafe fn begin_annotation(record: *mut Record, event: &Event<'_>, payload: &[u8], flags: u32) {
    let inline = &payload[..payload.len().min(INLINE)];
    // SAFETY: the caller's record; `size`, `ret` and `offset` are INLINE bytes in a row.
    unsafe {
        handover::publish(&(*record).head, annotation::ANNOTATION | event.kind | flags, || {
            (*record).path = event.name;
            (*record).start = event.start;
            (*record).end = event.end;
            (*record).fd = event.category.cast_signed();
            (*record).detail = payload.len() as u32;
            core::ptr::copy_nonoverlapping(inline.as_ptr(), (&raw mut (*record).size).cast::<u8>(), inline.len());
            (*record).extra = event.id;
        });
    }
}

const _: () = assert!(
    core::mem::offset_of!(Record, extra) - core::mem::offset_of!(Record, size) == INLINE
        && size_of::<Record>() - core::mem::offset_of!(Record, path) == PER_RECORD
);

/// Stores one record.
#[inline(always)]
pub fn record(call: Call, start: u64, end: u64, fields: &Fields) -> Option<*mut Record> {
    let thread = state();
    // In these words the usual case has the fewest instructions.
    let record = match thread.writer.take_here(Here(thread), 1) {
        Some(record) => record,
        None => thread.writer.take_after_change(Here(thread), 1)?,
    };
    let head = call as u32 | fields.flags;
    // SAFETY: the writer gave us a record in a mapped segment that nobody else writes.
    unsafe {
        if in_vfork() {
            // A copy, so that fields which are only known to registers need not go to memory in the usual case.
            store_in_vfork(record, head, start, end, &Fields { ..*fields });
        } else {
            store(record, head, start, end, fields);
        }
    }
    Some(record)
}

/// As [`store`], for a `vfork` child.
///
/// # Safety
/// As for [`store`].
#[cold]
#[inline(never)]
unsafe fn store_in_vfork(record: *mut Record, head: u32, start: u64, end: u64, fields: &Fields) {
    // SAFETY: the caller's word.
    unsafe { store(record, head | crate::layout::record_flags::VFORK_CHILD, start, end, fields) };
}

/// Stores the fields of a record, its head last.
///
/// # Safety
/// The caller must have taken the record, in a mapped segment.
#[inline(always)]
pub unsafe fn store(record: *mut Record, head: u32, start: u64, end: u64, fields: &Fields) {
    // SAFETY: the caller's record; readers wait for `head`.
    unsafe {
        handover::publish(&(*record).head, head, || {
            (*record).path = fields.path;
            (*record).start = start;
            (*record).end = end;
            (*record).fd = fields.fd;
            (*record).detail = fields.detail;
            (*record).size = fields.size;
            (*record).ret = fields.ret;
            (*record).offset = fields.offset;
            (*record).extra = fields.extra;
        });
    }
}

/// Character-level calls on one stream that are recorded together.
pub struct Characters {
    /// The stream they were made on.
    pub stream: *mut u8,
    /// Its descriptor, or -1, and the name of that.
    pub file: (i32, u32),
    /// How many calls.
    pub calls: u32,
    /// Bytes that they moved.
    pub bytes: i64,
}

/// Records character-level calls, together with the thread's earlier ones on the same stream while it stands for the same file.
///
/// The shared record stands for all of them: its time is the last call's, so it never overlaps what the thread did in
/// between; `detail` counts calls, `size` and `ret` bytes, `extra` the time spent. It is updated in place in the
/// segment, so folding loses nothing when the process is killed.
#[inline(always)]
pub fn record_folded(call: Call, start: u64, end: u64, made: &Characters) {
    let thread = state();
    let time = end.wrapping_sub(start);
    if thread.is_current() {
        for fold in &thread.folds {
            if fold.stream.load(Ordering::Relaxed) == made.stream && fold.call.load(Ordering::Relaxed) == call as u32 {
                let record = fold.record.load(Ordering::Relaxed);
                // SAFETY: folds are forgotten whenever the thread's segment changes, so the record is in our current segment.
                let record = unsafe { &mut *record };
                if (record.fd, record.path) != made.file {
                    break;
                }
                record.start = start;
                record.end = end;
                record.detail = record.detail.saturating_add(made.calls);
                record.size += made.bytes;
                record.ret += made.bytes;
                record.extra += time;
                return;
            }
        }
    }
    let (fd, path) = made.file;
    let flags = crate::layout::record_flags::FOLDED | crate::layout::record_flags::STREAM;
    let (detail, size) = (made.calls, made.bytes);
    if let Some(record) =
        record(call, start, end, &Fields { flags, path, fd, detail, size, ret: size, offset: NO_OFFSET, extra: time })
    {
        let known = thread.folds.iter().find(|fold| {
            fold.stream.load(Ordering::Relaxed) == made.stream && fold.call.load(Ordering::Relaxed) == call as u32
        });
        let fold =
            known.unwrap_or_else(|| &thread.folds[thread.next_fold.fetch_add(1, Ordering::Relaxed) as usize % FOLDS]);
        fold.record.store(record, Ordering::Relaxed);
        fold.call.store(call as u32, Ordering::Relaxed);
        fold.stream.store(made.stream, Ordering::Relaxed);
    }
}

/// Whose a segment is.
pub struct Owner {
    /// Index of the process slot.
    pub slot: u32,
    /// Its generation.
    pub generation: u64,
    /// The thread.
    pub tid: u32,
}

/// Makes a segment that was just taken from the free bitmap its owner's; `sequence` counts those of the arena.
pub fn open_segment(segment: Mapped<'_>, owner: &Owner, sequence: u64) {
    let (anchor_ticks, anchor_mono) = clock::anchor();
    let clock = match clock::source() {
        clock::Source::Syscall => segment_clock::MONOTONIC,
        clock::Source::Coarse => segment_clock::COARSE,
        clock::Source::Shared | clock::Source::Unknown => segment_clock::SHARED,
    };
    let header = segment.header();
    // SAFETY: the bitmap gave the segment to the caller alone; the drain looks at these only once `state` says so.
    handover::open(segment, || unsafe {
        (*header).slot = owner.slot;
        (*header).tid = owner.tid;
        (*header).generation = owner.generation;
        (*header).anchor_ticks = anchor_ticks;
        (*header).anchor_mono = anchor_mono;
        (*header).sequence = sequence;
        (*header).clock = clock;
    });
}
