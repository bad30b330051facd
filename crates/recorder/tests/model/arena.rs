//! A small arena over abstract words: a few segments of [`RECORDS`] records, process slots, and a drain that empties it.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use weftline_recorder::annotation::SKIPPED;
use weftline_recorder::handover::{self, Number, Segment, Word, Writer};
use weftline_recorder::layout::segment_state;

/// Records of a segment.
pub(crate) const RECORDS: u32 = 2;

/// A word of the arena, so that a fault can be put into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Free,
    Closed,
    State,
    Next,
    TakenBy,
    Head,
    Slot,
    Index,
    Top,
}

/// What is wrong, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Accesses of this word order nothing.
    Relaxed(Name),
    /// Read-modify-write of this word is a load and a store.
    Split(Name),
    /// Segments are freed as they are.
    NotWiped,
    /// A free segment's counter says that there is room.
    FreeHasRoom,
    /// The drain frees segments with records that a living thread has begun.
    Impatient,
    /// A forked child believes that it is its parent.
    OwnerKept,
}

/// The memory that an arena is made of.
pub(crate) trait Memory: Copy {
    type Half: Number<Value = u32>;
    type Full: Number<Value = u64>;
    /// Two plain words.
    type Body;
    fn fault(self) -> Fault;
    fn half(self, name: Name, value: u32) -> Self::Half;
    fn full(self, name: Name, value: u64) -> Self::Full;
    fn body(self) -> Self::Body;
    /// Stores one of the words.
    fn write(body: &Self::Body, word: usize, value: u32);
    fn read(body: &Self::Body) -> [u32; 2];
}

pub(crate) struct Arena<M: Memory> {
    memory: M,
    free: M::Full,
    closed: M::Full,
    segments: Vec<Cells<M>>,
    slots: Vec<M::Half>,
}

struct Cells<M: Memory> {
    memory: M,
    state: M::Half,
    next: M::Half,
    taken_by: M::Full,
    /// The owner's slot.
    header: M::Body,
    records: Vec<(M::Half, M::Body)>,
}

impl<M: Memory> Arena<M> {
    pub(crate) fn new(memory: M, segments: u32, slots: u32) -> Self {
        let cells = || Cells {
            memory,
            state: memory.half(Name::State, segment_state::FREE),
            next: memory.half(Name::Next, 0),
            taken_by: memory.full(Name::TakenBy, 0),
            header: memory.body(),
            records: (0..RECORDS).map(|_| (memory.half(Name::Head, 0), memory.body())).collect(),
        };
        Arena {
            memory,
            free: memory.full(Name::Free, (1 << segments) - 1),
            closed: memory.full(Name::Closed, 0),
            segments: (0..segments).map(|_| cells()).collect(),
            slots: (0..slots).map(|_| memory.half(Name::Slot, 0)).collect(),
        }
    }

    /// Whoever takes a free segment relies on this.
    pub(crate) fn assert_clean(&self) {
        let free = self.free.load(Ordering::Acquire);
        for (index, cells) in self.segments.iter().enumerate().filter(|(index, _)| free >> index & 1 != 0) {
            let heads = cells.records.iter().map(|(head, _)| head.load(Ordering::Relaxed));
            assert!(heads.into_iter().all(|head| head == 0), "a record in the free segment {index}");
        }
    }

    fn at(&self, index: u32) -> At<'_, M> {
        At { cells: &self.segments[index as usize], index }
    }
}

/// A segment of an [`Arena`].
pub(crate) struct At<'a, M: Memory> {
    cells: &'a Cells<M>,
    index: u32,
}

impl<M: Memory> Clone for At<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Memory> Copy for At<'_, M> {}

impl<'a, M: Memory> Segment for At<'a, M> {
    type Half = M::Half;
    type Full = M::Full;
    type Record = &'a (M::Half, M::Body);
    const RECORDS: u32 = RECORDS;

    fn state(&self) -> &M::Half {
        &self.cells.state
    }

    fn next(&self) -> &M::Half {
        &self.cells.next
    }

    fn taken_by(&self) -> &M::Full {
        &self.cells.taken_by
    }

    fn head(&self, record: u32) -> &M::Half {
        &self.cells.records[record as usize].0
    }

    fn record(&self, record: u32) -> Self::Record {
        &self.cells.records[record as usize]
    }

    fn wipe(&self, used: u32) {
        if self.cells.memory.fault() == Fault::NotWiped {
            return;
        }
        for (head, body) in &self.cells.records[..used as usize] {
            head.store(0, Ordering::Relaxed);
            M::write(body, 0, 0);
            M::write(body, 1, 0);
        }
    }
}

/// A thread's own word: nobody else sees it.
pub(crate) struct Private<T>(Cell<T>);

impl<T: Copy> Word for Private<T> {
    type Value = T;

    fn load(&self, _: Ordering) -> T {
        self.0.get()
    }

    fn store(&self, value: T, _: Ordering) {
        self.0.set(value);
    }

    fn swap(&self, value: T, _: Ordering) -> T {
        self.0.replace(value)
    }
}

/// One process with one thread that records.
pub(crate) struct Program<'a, M: Memory> {
    arena: &'a Arena<M>,
    /// Steps of the private side count as well where a thread can be interrupted.
    writer: Writer<Private<Option<At<'a, M>>>, M::Half>,
    /// The word that the kernel wipes in a child.
    owner: M::Half,
    slot: Cell<u32>,
    pub(crate) lost: Cell<u32>,
    /// Values whose recording is done, as far as the program knows.
    pub(crate) recorded: Cell<u32>,
}

/// The epoch of all recordings here.
const EPOCH: u32 = 1;
const NO_SLOT: u32 = u32::MAX;

impl<'a, M: Memory> Program<'a, M> {
    pub(crate) fn new(arena: &'a Arena<M>) -> Self {
        Program::with(arena, None, 0)
    }

    fn with(arena: &'a Arena<M>, segment: Option<At<'a, M>>, owner: u32) -> Self {
        let half = |value| arena.memory.half(Name::Top, value);
        let epoch = if segment.is_some() { EPOCH } else { 0 };
        Program {
            arena,
            writer: Writer::new(Private(Cell::new(segment)), half(epoch), half(0)),
            owner: half(owner),
            slot: Cell::new(NO_SLOT),
            lost: Cell::new(0),
            recorded: Cell::new(0),
        }
    }

    /// What a forked child finds in its memory: all that its parent had, but not the owner's word. `held`: the parent's segment.
    pub(crate) fn child(arena: &'a Arena<M>, held: u32) -> Self {
        let kept = arena.memory.fault() == Fault::OwnerKept;
        let child = Program::with(arena, Some(arena.at(held)), if kept { EPOCH } else { 0 });
        child.slot.set(0);
        child
    }

    /// Records a value, which is not 0.
    pub(crate) fn record(&self, value: u32) {
        if let Some((head, body)) = self.writer.take(self, 1) {
            handover::publish(head, value, || {
                M::write(body, 0, value);
                M::write(body, 1, !value);
            });
        }
        self.recorded.set(self.recorded.get() + 1);
    }

    /// The thread ends.
    pub(crate) fn close(&self) {
        self.writer.close(self);
    }

    pub(crate) fn slot(&self) -> u32 {
        self.slot.get()
    }
}

impl<'a, M: Memory> handover::Process for &Program<'a, M> {
    type Segment = At<'a, M>;

    fn epoch(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    fn enter(&self) {
        self.writer.forget(*self);
        let Some(slot) = self.arena.slots.iter().position(handover::claim_slot) else { return self.interrupted() };
        handover::publish_slot(&self.arena.slots[slot], || self.slot.set(slot as u32));
        self.owner.store(EPOCH, Ordering::Relaxed);
    }

    fn obtain(&self, _again: bool) -> Option<At<'a, M>> {
        let found = handover::take_free(&self.arena.free).map(|index| self.arena.at(index));
        match found {
            Some(segment) => handover::open(segment, || M::write(&segment.cells.header, 0, self.slot.get())),
            None => self.interrupted(),
        }
        found
    }

    fn give_up(&self, segment: At<'a, M>) {
        handover::close(segment, &self.arena.closed, segment.index);
    }

    fn moved_on(&self) {}

    fn interrupted(&self) {
        self.lost.set(self.lost.get() + 1);
    }
}

/// Empties an arena.
#[derive(Default)]
pub(crate) struct Drain {
    /// Slot and value of each record.
    pub(crate) seen: Vec<(u32, u32)>,
    /// Records that a living thread had begun and not finished: counted as lost.
    pub(crate) unfinished: u32,
    /// Segments that are encoded and wait for such a record.
    retained: u64,
}

impl Drain {
    /// Takes the segments that were closed.
    pub(crate) fn poll<M: Memory>(&mut self, arena: &Arena<M>) {
        self.take(arena, handover::closed(&arena.closed) & !self.retained, true);
    }

    /// Takes everything: no thread lives any more.
    pub(crate) fn retire<M: Memory>(&mut self, arena: &Arena<M>) {
        let free = arena.free.load(Ordering::Acquire);
        let used = !free & ((1 << arena.segments.len()) - 1);
        self.take(arena, used & !self.retained, false);
    }

    fn take<M: Memory>(&mut self, arena: &Arena<M>, mut bits: u64, alive: bool) {
        while bits != 0 {
            let index = bits.trailing_zeros();
            bits &= bits - 1;
            let segment = arena.at(index);
            if segment.state().load(Ordering::Acquire) == segment_state::FREE {
                continue;
            }
            let unfinished = self.encode(segment);
            if alive && unfinished > 0 {
                self.unfinished += unfinished;
                if arena.memory.fault() != Fault::Impatient {
                    self.retained |= 1 << index;
                    continue;
                }
            }
            handover::release(segment, &arena.closed, &arena.free, index);
            if arena.memory.fault() == Fault::FreeHasRoom {
                segment.next().store(0, Ordering::Relaxed);
            }
        }
    }

    /// Reads what is there; how many records are not complete.
    fn encode<M: Memory>(&mut self, segment: At<'_, M>) -> u32 {
        let slot = M::read(&segment.cells.header)[0];
        let used = segment.next().load(Ordering::Relaxed).min(RECORDS);
        let mut unfinished = 0;
        for record in 0..used {
            let (head, body) = segment.record(record);
            match handover::read(head, |value| (value, if value == SKIPPED { [0; 2] } else { M::read(body) })) {
                Some((SKIPPED, _)) => {}
                Some((value, body)) => {
                    assert_eq!(body, [value, !value], "a torn record");
                    self.seen.push((slot, value));
                }
                None => unfinished += 1,
            }
        }
        unfinished
    }

    /// Looks at an arena from outside, as `weft top` does: whatever is there is whole.
    pub(crate) fn glance<M: Memory>(arena: &Arena<M>) {
        for index in 0..arena.segments.len() as u32 {
            let segment = arena.at(index);
            if segment.state().load(Ordering::Acquire) == segment_state::ACTIVE {
                Drain::default().encode(segment);
            }
        }
    }

    /// Every value of `expected` is there once, or among the `lost`; nothing else is.
    pub(crate) fn check(mut self, expected: &[(u32, u32)], lost: u32) {
        self.seen.sort_unstable();
        let doubled = self.seen.windows(2).any(|pair| pair[0] == pair[1]);
        assert!(!doubled, "read twice: {:?}", self.seen);
        let strange: Vec<_> = self.seen.iter().filter(|seen| !expected.contains(seen)).collect();
        assert!(strange.is_empty(), "never recorded: {strange:?}");
        let missing = expected.len() as u32 - self.seen.len() as u32;
        assert_eq!(missing, lost + self.unfinished, "lost, of {expected:?}: {:?}", self.seen);
    }
}
