//! The production words and layout in memory of the heap: threads of the system record, intern names and are drained.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use weftline_recorder::arena::{init_arena, segment_at};
use weftline_recorder::handover::{self, Held, Mapped, Process, Segment as _, Writer};
use weftline_recorder::layout::{ArenaHeader, BASE_SEGMENTS, PIECE_SIZE, RECORDS_PER_SEGMENT};
use weftline_recorder::names;
use weftline_recorder::thread::{self, Fields};

const THREADS: u32 = 3;
/// Records of each thread; enough to go through all segments more than once.
const EACH: u32 = if cfg!(miri) { 300 } else { 40_000 };
const NAMES: u32 = 200;

/// An empty arena.
struct Piece(*mut u8);

const LAYOUT: Layout = match Layout::from_size_align(PIECE_SIZE, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

// SAFETY: threads meet in it at atomics only, by the hand-over.
unsafe impl Sync for Piece {}

impl Piece {
    fn new() -> Piece {
        // SAFETY: the size is not zero.
        let at = unsafe { std::alloc::alloc_zeroed(LAYOUT) };
        assert!(!at.is_null());
        // SAFETY: a zeroed piece that nobody else knows.
        unsafe { init_arena(at.cast(), 0, 0, BASE_SEGMENTS as u32) };
        Piece(at)
    }

    fn header(&self) -> &ArenaHeader {
        // SAFETY: the base piece begins with its header.
        unsafe { &*self.0.cast() }
    }

    fn segment(&self, index: u32) -> Mapped<'static> {
        // SAFETY: the piece is freed when all threads have ended.
        unsafe { segment_at(self.0, 0, index) }.expect("a segment")
    }

    fn intern(&self, name: &str) -> u32 {
        // SAFETY: the whole arena is this piece.
        unsafe { names::intern(self.0, 0, name.as_bytes(), |piece| (piece == 0).then_some(self.0), || false) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.0, LAYOUT) };
    }
}

#[derive(Clone, Copy)]
struct Program<'a> {
    piece: &'a Piece,
    tid: u32,
}

impl Process for Program<'_> {
    type Segment = Mapped<'static>;

    fn epoch(&self) -> u32 {
        1
    }

    fn enter(&self) {}

    fn obtain(&self, _again: bool) -> Option<Mapped<'static>> {
        let index = loop {
            match handover::take_free(&self.piece.header().pieces[0].free) {
                Some(index) => break index,
                None => std::thread::yield_now(),
            }
        };
        let segment = self.piece.segment(index);
        // SAFETY: the segment was just taken.
        handover::open(segment, || unsafe { (*segment.header()).tid = self.tid });
        Some(segment)
    }

    fn give_up(&self, segment: Mapped<'static>) {
        let index = (0..BASE_SEGMENTS as u32).find(|index| self.piece.segment(*index).header() == segment.header());
        handover::close(segment, &self.piece.header().pieces[0].closed, index.expect("of this piece"));
    }

    fn moved_on(&self) {}

    fn interrupted(&self) {
        panic!("there are no signals here");
    }
}

fn record_all(piece: &Piece, tid: u32) -> Vec<u32> {
    let writer = Writer::new(Held::default(), AtomicU32::new(0), AtomicU32::new(0));
    let program = Program { piece, tid };
    for value in 1..=EACH {
        let record = writer.take(program, 1).expect("there is room");
        let value = u64::from(value);
        let fields = Fields { offset: value as i64, extra: !value, ..Fields::NONE };
        // SAFETY: the writer gave us the record.
        unsafe { thread::store(record, 1, value, value + 1, &fields) };
    }
    writer.close(program);
    // Every thread begins elsewhere.
    (0..NAMES).map(|name| (name + tid * 50) % NAMES).map(|name| piece.intern(&format!("/data/{name}"))).collect()
}

/// Values of each thread, as often as they occur.
type Seen = BTreeMap<(u32, i64), u32>;

fn drain(piece: &Piece, seen: &mut Seen) {
    let info = &piece.header().pieces[0];
    let mut bits = handover::closed(&info.closed);
    while bits != 0 {
        let index = bits.trailing_zeros();
        bits &= bits - 1;
        let segment = piece.segment(index);
        // SAFETY: the header was filled in before the segment was closed.
        let tid = unsafe { (*segment.header()).tid };
        for index in 0..segment.next().load(Ordering::Relaxed).min(RECORDS_PER_SEGMENT) {
            let record = segment.record(index);
            // SAFETY: the fields are read once the head says that they are there.
            let value = handover::read(segment.head(index), |_| unsafe {
                assert_eq!(((*record).start, (*record).end), ((*record).offset as u64, (*record).offset as u64 + 1));
                assert_eq!(!(*record).extra, (*record).start);
                (*record).offset
            });
            *seen.entry((tid, value.expect("complete"))).or_default() += 1;
        }
        handover::release(segment, &info.closed, &info.free, index);
    }
}

#[test]
fn threads_record_into_memory_of_the_heap() {
    let piece = Piece::new();
    let mut seen = Seen::new();
    let ended = AtomicBool::new(false);
    let names = std::thread::scope(|scope| {
        let running: Vec<_> = (1..=THREADS)
            .map(|tid| {
                scope.spawn({
                    let piece = &piece;
                    move || record_all(piece, tid)
                })
            })
            .collect();
        let waiting = scope.spawn(|| {
            let names: Vec<_> = running.into_iter().map(|thread| thread.join().expect("recorded")).collect();
            ended.store(true, Ordering::Release);
            names
        });
        while !ended.load(Ordering::Acquire) {
            drain(&piece, &mut seen);
            std::thread::yield_now();
        }
        waiting.join().expect("waited")
    });
    drain(&piece, &mut seen);
    assert!(seen.values().all(|count| *count == 1), "something is there twice");
    assert_eq!(seen.len() as u32, THREADS * EACH);
    assert_eq!(piece.header().pieces[0].free.load(Ordering::Relaxed).count_ones() as usize, BASE_SEGMENTS);
    // One id for a name, whoever interned it.
    for (tid, ids) in (1..).zip(&names) {
        for (place, id) in (0..NAMES).zip(ids) {
            assert_ne!(*id, 0);
            let other = (place + tid * 50 + NAMES - 50) % NAMES;
            assert_eq!(names[0][other as usize], *id, "thread {tid}, name {place}");
            // SAFETY: the id is of this piece.
            let (base, bytes) = unsafe { names::entry(piece.0, *id) };
            assert_eq!((base, bytes), (0, format!("/data/{}", (place + tid * 50) % NAMES).as_bytes()));
        }
    }
}
