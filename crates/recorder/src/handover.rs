//! The hand-over of segments between threads and the drain: free, taken by a thread, filled, closed, emptied by the drain, free again.
//!
//! ```text
//!        take_free        open            take, publish …           close                 read            release
//! free ───────────▶ taken ────▶ ACTIVE ───────────────────▶ full ────────▶ CLOSED ────────────▶ encoded ──────────▶ free
//!  bit of `free`                 Writer, one thread                         bit of `closed`      the drain
//! ```
//!
//! Every step that orders memory between a thread and the drain is here, for both sides, and nowhere else. The steps are written over
//! abstract words ([`Word`], [`Number`], [`Segment`]): in production these are the atomics of the mapped arena ([`Mapped`]); in
//! `loom/interleavings.rs` they are loom's, which tries all interleavings and all values that the orderings permit; in `tests/model` they are plain
//! memory of a thread that is killed or interrupted at each step, and production atomics on the heap, where Miri can check them.
//!
//! The drain may rely on this: a record with a nonzero head is complete; a segment in `closed` gets no further records, except those that its
//! thread has begun and a signal handler interrupted. A thread may rely on this: a segment that it took is its own until it closes it, and all heads in
//! it are zero.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::annotation::SKIPPED;
use crate::layout::{RECORDS_PER_SEGMENT, Record, SegmentHeader, process_state, segment_state};

/// A word that is read and written atomically.
pub trait Word {
    /// What it holds.
    type Value: Copy;
    /// As for `core`'s atomics.
    fn load(&self, order: Ordering) -> Self::Value;
    /// As for `core`'s atomics.
    fn store(&self, value: Self::Value, order: Ordering);
    /// As for `core`'s atomics.
    fn swap(&self, value: Self::Value, order: Ordering) -> Self::Value;
}

/// A word that holds a number.
pub trait Number: Word {
    /// As for `core`'s atomics.
    fn compare_exchange(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
    /// As for `core`'s atomics.
    fn fetch_add(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// As for `core`'s atomics.
    fn fetch_and(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// As for `core`'s atomics.
    fn fetch_or(&self, value: Self::Value, order: Ordering) -> Self::Value;
}

macro_rules! core_words {
    ($($atomic:ty: $value:ty),*) => { $(
        impl Word for $atomic {
            type Value = $value;
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }
            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }
        }
        impl Number for $atomic {
            #[inline(always)]
            fn compare_exchange(&self, current: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value, order)
            }
            #[inline(always)]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.fetch_and(value, order)
            }
            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.fetch_or(value, order)
            }
        }
    )* };
}
core_words!(AtomicU32: u32, AtomicU64: u64);

/// The words of a segment.
pub trait Segment: Copy {
    /// A word of 32 bits.
    type Half: Number<Value = u32>;
    /// A word of 64 bits.
    type Full: Number<Value = u64>;
    /// A record of it.
    type Record;
    /// Records that it has room for.
    const RECORDS: u32;
    /// See [`segment_state`].
    fn state(&self) -> &Self::Half;
    /// Next record to take.
    fn next(&self) -> &Self::Half;
    /// See [`SegmentHeader::taken_by`].
    fn taken_by(&self) -> &Self::Full;
    /// First word of a record, below [`Self::RECORDS`].
    fn head(&self, record: u32) -> &Self::Half;
    /// A record, below [`Self::RECORDS`].
    fn record(&self, record: u32) -> Self::Record;
    /// Zeroes the first `used` records with plain stores: the caller has exclusive access to the segment.
    fn wipe(&self, used: u32);
}

/// A segment of a mapped arena.
#[derive(Clone, Copy)]
pub struct Mapped<'a> {
    at: NonNull<SegmentHeader>,
    arena: PhantomData<&'a SegmentHeader>,
}

impl Mapped<'_> {
    /// The segment at this address; nothing for null.
    ///
    /// # Safety
    /// `at` must be null or the start of a segment that stays mapped, or allocated, for the lifetime, and that is only accessed through atomics,
    /// or by whoever this module gave it to.
    #[inline(always)]
    pub const unsafe fn new(at: *mut SegmentHeader) -> Option<Self> {
        match NonNull::new(at) {
            Some(at) => Some(Mapped { at, arena: PhantomData }),
            None => None,
        }
    }

    /// Its address.
    #[inline(always)]
    pub fn header(self) -> *mut SegmentHeader {
        self.at.as_ptr()
    }
}

impl Segment for Mapped<'_> {
    type Half = AtomicU32;
    type Full = AtomicU64;
    type Record = *mut Record;
    const RECORDS: u32 = RECORDS_PER_SEGMENT;

    #[inline(always)]
    fn state(&self) -> &AtomicU32 {
        // SAFETY: `new`'s caller vouches for the segment; this word is accessed atomically only.
        unsafe { &(*self.at.as_ptr()).state }
    }

    #[inline(always)]
    fn next(&self) -> &AtomicU32 {
        // SAFETY: as for `state`.
        unsafe { &(*self.at.as_ptr()).next }
    }

    #[inline(always)]
    fn taken_by(&self) -> &AtomicU64 {
        // SAFETY: as for `state`.
        unsafe { &(*self.at.as_ptr()).taken_by }
    }

    #[inline(always)]
    fn head(&self, record: u32) -> &AtomicU32 {
        debug_assert!(record < RECORDS_PER_SEGMENT);
        // SAFETY: as for `state`; callers keep to the segment's records.
        unsafe { &(*self.record(record)).head }
    }

    #[inline(always)]
    fn record(&self, record: u32) -> *mut Record {
        // Records lie directly behind the header.
        self.at.as_ptr().cast::<Record>().wrapping_add(1 + record as usize)
    }

    fn wipe(&self, used: u32) {
        // SAFETY: the records lie inside the segment, and `release` calls this when nobody else uses it.
        unsafe { self.record(0).write_bytes(0, used.min(RECORDS_PER_SEGMENT) as usize) };
    }
}

/// A thread's own word for its segment; zero when it has none.
#[repr(transparent)]
#[derive(Default)]
pub struct Held(AtomicPtr<SegmentHeader>);

impl Word for Held {
    type Value = Option<Mapped<'static>>;

    #[inline(always)]
    fn load(&self, order: Ordering) -> Self::Value {
        // SAFETY: only `Mapped` segments are stored here.
        unsafe { Mapped::new(self.0.load(order)) }
    }

    #[inline(always)]
    fn store(&self, value: Self::Value, order: Ordering) {
        self.0.store(value.map_or(core::ptr::null_mut(), Mapped::header), order);
    }

    #[inline(always)]
    fn swap(&self, value: Self::Value, order: Ordering) -> Self::Value {
        // SAFETY: only `Mapped` segments are stored here.
        unsafe { Mapped::new(self.0.swap(value.map_or(core::ptr::null_mut(), Mapped::header), order)) }
    }
}

// --- the thread's side ---

/// Takes a free segment out of a piece's bitmap; its index.
pub fn take_free<W: Number<Value = u64>>(free: &W) -> Option<u32> {
    loop {
        // Acquire: what the drain zeroed before it set the bit is zero for us too.
        let bits = free.load(Ordering::Acquire);
        if bits == 0 {
            return None;
        }
        let bit = bits & bits.wrapping_neg();
        if free.compare_exchange(bits, bits & !bit, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return Some(bit.trailing_zeros());
        }
    }
}

/// Makes a segment that was just taken the caller's, with a header that `fill` writes.
pub fn open<S: Segment>(segment: S, fill: impl FnOnce()) {
    fill();
    segment.taken_by().store(0, Ordering::Relaxed);
    segment.next().store(0, Ordering::Relaxed);
    segment.state().store(segment_state::ACTIVE, Ordering::Release);
}

/// Takes `count` records in a row, of the caller's own segment; the first one's index. `None` when it is full: what was left of it is marked as
/// meaning nothing.
///
/// The counter is what makes signal handlers safe: a handler that interrupts a half-written record gets the next one.
#[inline(always)]
pub fn take<S: Segment>(segment: S, count: u32) -> Option<u32> {
    let index = segment.next().fetch_add(count, Ordering::Relaxed);
    if index <= S::RECORDS - count {
        return Some(index);
    }
    for unused in index..S::RECORDS {
        segment.head(unused).store(SKIPPED, Ordering::Release);
    }
    None
}

/// Completes a record: `fill` stores its fields, then its head says that it is there.
#[inline(always)]
pub fn publish<W: Word<Value = u32>>(head: &W, value: u32, fill: impl FnOnce()) {
    fill();
    head.store(value, Ordering::Release);
}

/// Gives a segment to the drain; `index` is its bit in the piece's bitmap.
pub fn close<S: Segment, W: Number<Value = u64>>(segment: S, closed: &W, index: u32) {
    segment.state().store(segment_state::CLOSED, Ordering::Release);
    closed.fetch_or(1 << index, Ordering::Release);
}

// --- the drain's side ---

/// Segments of a piece that wait for the drain, one bit each.
pub fn closed<W: Word<Value = u64>>(closed: &W) -> u64 {
    closed.load(Ordering::Acquire)
}

/// Reads a record: its head, and what `copy` makes of its fields. `None` when it is not complete (yet).
#[inline(always)]
pub fn read<W: Word<Value = u32>, T>(head: &W, copy: impl FnOnce(u32) -> T) -> Option<T> {
    let value = head.load(Ordering::Acquire);
    (value != 0).then(|| copy(value))
}

/// Gives a segment back: its records are zeroed, since a thread takes a zero head for "not written". Only for a segment whose records are all complete,
/// or whose thread is gone.
///
/// The order matters to whoever comes after a kill in between: `taken_by` stays until nothing is left to encode. The counter stays full until the
/// segment is opened again: a thread that loaded the segment's address, and was interrupted by a handler which filled and closed it, finds no room.
pub fn release<S: Segment, W: Number<Value = u64>>(segment: S, closed: &W, free: &W, index: u32) {
    segment.wipe(segment.next().load(Ordering::Relaxed).min(S::RECORDS));
    segment.state().store(segment_state::FREE, Ordering::Release);
    segment.next().store(S::RECORDS, Ordering::Relaxed);
    segment.taken_by().store(0, Ordering::Release);
    closed.fetch_and(!(1 << index), Ordering::AcqRel);
    free.fetch_or(1 << index, Ordering::Release);
}

// --- places that one of many takes ---

/// Takes a process slot; false if another process has it.
pub fn claim_slot<W: Number<Value = u32>>(state: &W) -> bool {
    state.compare_exchange(process_state::FREE, process_state::CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Lets the drain see a process slot that the caller has claimed and `fill` fills in.
pub fn publish_slot<W: Word<Value = u32>>(state: &W, fill: impl FnOnce()) {
    fill();
    state.store(process_state::LIVE, Ordering::Release);
}

// --- a thread and its segments ---

/// What a thread's writing needs of its process.
pub trait Process: Copy {
    /// Its segments.
    type Segment: Segment;
    /// Number of the recording that the process is in; 0 when it does not own what its memory says, as in a child that was just forked.
    fn epoch(&self) -> u32;
    /// Makes a process that does not own its memory one that does, if it can. What it cannot record is counted.
    fn enter(&self);
    /// A fresh, open segment. `again`: the thread had one before. `None` is counted as a loss.
    fn obtain(&self, again: bool) -> Option<Self::Segment>;
    /// Closes a segment of the calling thread.
    fn give_up(&self, segment: Self::Segment);
    /// The thread's records so far are out of its reach.
    fn moved_on(&self);
    /// A record could not be kept, because a handler interrupted the change of segments.
    fn interrupted(&self);
}

/// A thread's hold on its segment. Zero at the thread's start. Atomic only because signal handlers, and children that share memory, see it too.
#[repr(C)]
pub struct Writer<P, H> {
    segment: P,
    /// [`Process::epoch`] when the segment was taken: one of an earlier epoch is not ours any more.
    epoch: H,
    /// The thread is changing segments; a handler that interrupts it must not.
    changing: H,
}

impl<S: Segment, P: Word<Value = Option<S>>, H: Number<Value = u32>> Writer<P, H> {
    /// A writer without a segment, of these words.
    pub const fn new(segment: P, epoch: H, changing: H) -> Self {
        Writer { segment, epoch, changing }
    }

    /// Was the segment, if there is one, taken in the epoch that the process is in now? No in a child that has not entered yet: its epoch is 0, and
    /// none is taken in that.
    #[inline(always)]
    pub fn is_current(&self, process: impl Process<Segment = S>) -> bool {
        process.epoch() == self.epoch.load(Ordering::Relaxed)
    }

    /// Takes `count` records in a row, from a new segment if need be. `None`: the loss has been counted.
    #[inline(always)]
    pub fn take(&self, process: impl Process<Segment = S>, count: u32) -> Option<S::Record> {
        match self.take_here(process, count) {
            None => self.take_after_change(process, count),
            some => some,
        }
    }

    /// Takes `count` records in a row from the segment that the thread has.
    #[inline(always)]
    pub fn take_here(&self, process: impl Process<Segment = S>, count: u32) -> Option<S::Record> {
        let segment = self.segment.load(Ordering::Relaxed)?;
        if !self.is_current(process) {
            return None;
        }
        take(segment, count).map(|index| segment.record(index))
    }

    /// Takes `count` records in a row from a new segment, when [`Self::take_here`] has found no room. `None`: the loss has been counted.
    #[cold]
    #[inline(never)]
    pub fn take_after_change(&self, process: impl Process<Segment = S>, count: u32) -> Option<S::Record> {
        if process.epoch() == 0 {
            // A fork that no hook saw, or the very first event.
            process.enter();
        }
        // A handler may fill the new segment before this thread comes to it.
        for _ in 0..3 {
            if self.changing.swap(1, Ordering::Relaxed) != 0 {
                process.interrupted();
                return None;
            }
            let old = self.segment.swap(None, Ordering::Relaxed);
            process.moved_on();
            if let Some(old) = old
                && self.is_current(process)
            {
                process.give_up(old);
            }
            // Asked before: another thread may stop the recording while this one takes a segment.
            let epoch = process.epoch();
            let new = if epoch == 0 { None } else { process.obtain(old.is_some()) };
            if new.is_some() {
                self.epoch.store(epoch, Ordering::Relaxed);
                self.segment.store(new, Ordering::Relaxed);
            }
            self.changing.store(0, Ordering::Relaxed);
            let new = new?;
            if let Some(index) = take(new, count) {
                return Some(new.record(index));
            }
        }
        process.interrupted();
        None
    }

    /// Hands the segment over to the drain: the thread is about to end, or goes on with another clock.
    pub fn close(&self, process: impl Process<Segment = S>) {
        let segment = self.segment.swap(None, Ordering::Relaxed);
        process.moved_on();
        if let Some(segment) = segment
            && self.is_current(process)
        {
            process.give_up(segment);
        }
    }

    /// Forgets what a forked child inherited: the segment is its parent's.
    pub fn forget(&self, process: impl Process<Segment = S>) {
        self.segment.store(None, Ordering::Relaxed);
        self.changing.store(0, Ordering::Relaxed);
        process.moved_on();
    }
}
