//! The hand-over of segments and the index of names in all interleavings, by loom: see `../tests/model/main.rs`.

#[allow(dead_code, reason = "interruptions.rs uses the rest")]
#[path = "../tests/model/arena.rs"]
mod arena;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use weftline_recorder::handover::{Number, Word};
use weftline_recorder::names;

use arena::{Arena, Drain, Fault, Memory, Name, Program};

/// Loom's memory, with a fault in it.
#[derive(Clone, Copy)]
struct Loom(Fault);

/// A word of it.
struct Faulty<A> {
    word: A,
    name: Name,
    fault: Fault,
}

impl<A> Faulty<A> {
    fn order(&self, order: Ordering) -> Ordering {
        if self.fault == Fault::Relaxed(self.name) { Ordering::Relaxed } else { order }
    }

    fn is_split(&self) -> bool {
        self.fault == Fault::Split(self.name)
    }
}

macro_rules! faulty_words {
    ($($atomic:ty: $value:ty),*) => { $(
        impl Word for Faulty<$atomic> {
            type Value = $value;

            fn load(&self, order: Ordering) -> $value {
                self.word.load(self.order(order))
            }

            fn store(&self, value: $value, order: Ordering) {
                self.word.store(value, self.order(order));
            }

            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.word.swap(value, self.order(order))
            }
        }

        impl Number for Faulty<$atomic> {
            fn compare_exchange(&self, current: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value> {
                if self.is_split() {
                    let found = self.word.load(Ordering::Acquire);
                    if found != current {
                        return Err(found);
                    }
                    self.word.store(new, Ordering::Release);
                    return Ok(found);
                }
                self.word.compare_exchange(current, new, self.order(success), self.order(failure))
            }

            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                if self.is_split() {
                    let found = self.word.load(Ordering::Acquire);
                    self.word.store(found.wrapping_add(value), Ordering::Release);
                    return found;
                }
                self.word.fetch_add(value, self.order(order))
            }

            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                if self.is_split() {
                    let found = self.word.load(Ordering::Acquire);
                    self.word.store(found & value, Ordering::Release);
                    return found;
                }
                self.word.fetch_and(value, self.order(order))
            }

            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                if self.is_split() {
                    let found = self.word.load(Ordering::Acquire);
                    self.word.store(found | value, Ordering::Release);
                    return found;
                }
                self.word.fetch_or(value, self.order(order))
            }
        }
    )* };
}
faulty_words!(AtomicU32: u32, AtomicU64: u64);

impl Memory for Loom {
    type Half = Faulty<AtomicU32>;
    type Full = Faulty<AtomicU64>;
    type Body = UnsafeCell<[u32; 2]>;

    fn fault(self) -> Fault {
        self.0
    }

    fn half(self, name: Name, value: u32) -> Self::Half {
        Faulty { word: AtomicU32::new(value), name, fault: self.0 }
    }

    fn full(self, name: Name, value: u64) -> Self::Full {
        Faulty { word: AtomicU64::new(value), name, fault: self.0 }
    }

    fn body(self) -> Self::Body {
        UnsafeCell::new([0; 2])
    }

    fn write(body: &Self::Body, word: usize, value: u32) {
        // SAFETY: loom runs one thread at a time, and fails where two could be here.
        body.with_mut(|body| unsafe { (*body)[word] = value });
    }

    fn read(body: &Self::Body) -> [u32; 2] {
        // SAFETY: as above.
        body.with(|body| unsafe { *body })
    }
}

type Shared = Arc<Arena<Loom>>;

/// Runs a thread of a program that records `values` and ends; how many it lost.
fn program(arena: &Shared, values: &'static [u32]) -> loom::thread::JoinHandle<(Vec<(u32, u32)>, u32)> {
    let arena = Shared::clone(arena);
    loom::thread::spawn(move || {
        let program = Program::new(&*arena);
        finish(&program, values)
    })
}

/// Records and ends; what should be in the arena then, and how much of it is lost.
fn finish(program: &Program<'_, Loom>, values: &[u32]) -> (Vec<(u32, u32)>, u32) {
    for value in values {
        program.record(*value);
    }
    program.close();
    (values.iter().map(|value| (program.slot(), *value)).collect(), program.lost.get())
}

fn add(total: (Vec<(u32, u32)>, u32), more: (Vec<(u32, u32)>, u32)) -> (Vec<(u32, u32)>, u32) {
    ([total.0, more.0].concat(), total.1 + more.1)
}

/// One program records through more segments than there are, while the drain empties them.
fn recycling(memory: Loom) {
    let arena = Shared::new(Arena::new(memory, 2, 1));
    let running = program(&arena, &[1, 2, 3, 4, 5]);
    let mut drain = Drain::default();
    drain.poll(&arena);
    drain.poll(&arena);
    let (expected, lost) = running.join().unwrap();
    drain.retire(&arena);
    drain.check(&expected, lost);
    arena.assert_clean();
}

/// Two programs take segments at the same time.
fn two_programs(memory: Loom) {
    let arena = Shared::new(Arena::new(memory, 2, 2));
    let running = [program(&arena, &[1]), program(&arena, &[2])];
    let mut drain = Drain::default();
    drain.poll(&arena);
    let (expected, lost) = running.map(|running| running.join().unwrap()).into_iter().reduce(add).unwrap();
    assert_ne!(expected[0].0, expected[1].0, "one slot for two processes");
    drain.retire(&arena);
    drain.check(&expected, lost);
    arena.assert_clean();
}

/// A program is looked at while it records.
fn looked_at(memory: Loom) {
    let arena = Shared::new(Arena::new(memory, 1, 1));
    let running = program(&arena, &[1, 2]);
    Drain::glance(&arena);
    let (expected, lost) = running.join().unwrap();
    let mut drain = Drain::default();
    drain.retire(&arena);
    drain.check(&expected, lost);
    arena.assert_clean();
}

/// A process forks in the middle of a segment, and both go on.
fn forked(memory: Loom) {
    let arena = Shared::new(Arena::new(memory, 3, 2));
    let parent = Program::new(&*arena);
    parent.record(1);
    let child = loom::thread::spawn({
        let arena = Shared::clone(&arena);
        // The first segment was the parent's.
        move || finish(&Program::child(&arena, 0), &[11, 12])
    });
    let before = vec![(parent.slot(), 1)];
    let (expected, lost) = add(add((before, 0), finish(&parent, &[2])), child.join().unwrap());
    let child_slots = expected.iter().filter(|(_, value)| *value > 10).all(|(slot, _)| *slot == 1);
    assert!(child_slots, "a child with its parent's slot: {expected:?}");
    let mut drain = Drain::default();
    drain.retire(&arena);
    drain.check(&expected, lost);
    arena.assert_clean();
}

/// Processes intern names at the same time: equal ones get one id, different ones different ids, and whoever finds one finds its bytes.
fn interning(memory: Loom) {
    struct Names {
        index: Vec<Faulty<AtomicU64>>,
        top: Faulty<AtomicU32>,
        heap: Vec<UnsafeCell<[u32; 2]>>,
    }
    let names = Arc::new(Names {
        index: (0..2).map(|_| memory.full(Name::Index, 0)).collect(),
        top: memory.half(Name::Top, 0),
        heap: (0..4).map(|_| memory.body()).collect(),
    });
    // All names have one hash, so that they meet in the index.
    const HASH: u64 = 7 << 32;
    let intern = |names: &Names, name: u32| {
        let is_same = |id: u32| Loom::read(&names.heap[id as usize - 1])[0] == name;
        let add = || {
            let at = names::reserve(&names.top, 1, names.heap.len())?;
            Loom::write(&names.heap[at], 0, name);
            Some(at as u32 + 1)
        };
        names::find_or_insert(&names.index, HASH, is_same, add).expect("there is room")
    };
    let other = loom::thread::spawn({
        let names = Arc::clone(&names);
        move || [intern(&names, 1), intern(&names, 2)]
    });
    let [two, one] = [intern(&names, 2), intern(&names, 1)];
    assert_eq!(other.join().unwrap(), [one, two]);
    assert_ne!(one, two);
}

/// Tries a scenario in all interleavings with up to three preemptions; what went wrong, if anything did.
fn try_all(scenario: Scenario, fault: Fault) -> Result<(), String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    let tried = catch_unwind(AssertUnwindSafe(|| model.check(move || scenario(Loom(fault)))));
    tried.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

type Scenario = fn(Loom);

const SCENARIOS: [(&str, Scenario); 5] = [
    ("recycling", recycling),
    ("two programs", two_programs),
    ("looked at", looked_at),
    ("forked", forked),
    ("interning", interning),
];

#[test]
fn nothing_is_lost_doubled_or_torn() {
    for (name, scenario) in SCENARIOS {
        assert_eq!(try_all(scenario, Fault::None), Ok(()), "{name}");
    }
}

/// Each of these orderings and steps is needed, and a scenario finds its absence.
#[test]
fn faults_are_found() {
    let faults: [(Fault, Scenario); 9] = [
        (Fault::Relaxed(Name::Free), recycling),
        (Fault::Relaxed(Name::Closed), recycling),
        (Fault::NotWiped, recycling),
        (Fault::Split(Name::Free), two_programs),
        (Fault::Split(Name::Slot), two_programs),
        (Fault::Relaxed(Name::Head), looked_at),
        (Fault::Relaxed(Name::State), looked_at),
        (Fault::OwnerKept, forked),
        (Fault::Relaxed(Name::Index), interning),
    ];
    let missed: Vec<Fault> = faults
        .into_iter()
        .filter(|(fault, scenario)| try_all(*scenario, *fault).is_ok())
        .map(|(fault, _)| fault)
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
