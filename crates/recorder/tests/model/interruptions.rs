//! A thread that is killed, or interrupted by a signal handler, at each of its steps in turn.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use weftline_recorder::handover::{Number, Word};

use crate::arena::{Arena, Drain, Fault, Memory, Name, Program};

/// What happens at a step.
#[derive(Clone)]
enum Event {
    Kill,
    Signal(Rc<dyn Fn()>),
}

/// The panic of a thread that is killed.
struct Killed;

thread_local! {
    /// Steps until the event.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    static EVENT: RefCell<Option<Event>> = const { RefCell::new(None) };
}

/// Before each access to memory. Whoever runs while no event is set is the drain, or a handler.
fn step() {
    let due = EVENT.with_borrow_mut(|event| {
        let left = LEFT.get();
        LEFT.set(left.saturating_sub(1));
        if left == 0 { event.take() } else { None }
    });
    match due {
        Some(Event::Kill) => resume_unwind(Box::new(Killed)),
        Some(Event::Signal(handler)) => handler(),
        None => {}
    }
}

/// Lets the drain work between two steps of the thread.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    let event = EVENT.take();
    let done = work();
    EVENT.set(event);
    done
}

/// Plain memory of one thread, every access of which is a step.
#[derive(Clone, Copy)]
struct Stepped(Fault);

struct Steps<T> {
    word: Cell<T>,
    is_split: bool,
}

impl<T: Copy + PartialEq> Steps<T> {
    /// One step, or two.
    fn change(&self, change: impl FnOnce(T) -> T) -> T {
        step();
        let before = self.word.get();
        if self.is_split {
            step();
        }
        self.word.set(change(before));
        before
    }
}

macro_rules! stepping_words {
    ($($value:ty),*) => { $(
        impl Word for Steps<$value> {
            type Value = $value;

            fn load(&self, _: Ordering) -> $value {
                step();
                self.word.get()
            }

            fn store(&self, value: $value, _: Ordering) {
                step();
                self.word.set(value);
            }

            fn swap(&self, value: $value, _: Ordering) -> $value {
                self.change(|_| value)
            }
        }

        impl Number for Steps<$value> {
            fn compare_exchange(&self, current: $value, new: $value, _: Ordering, _: Ordering) -> Result<$value, $value> {
                let before = self.change(|now| if now == current { new } else { now });
                if before == current { Ok(before) } else { Err(before) }
            }

            fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                self.change(|now| now.wrapping_add(value))
            }

            fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                self.change(|now| now & value)
            }

            fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                self.change(|now| now | value)
            }
        }
    )* };
}
stepping_words!(u32, u64);

impl Memory for Stepped {
    type Half = Steps<u32>;
    type Full = Steps<u64>;
    type Body = [Cell<u32>; 2];

    fn fault(self) -> Fault {
        self.0
    }

    fn half(self, name: Name, value: u32) -> Self::Half {
        Steps { word: Cell::new(value), is_split: self.0 == Fault::Split(name) }
    }

    fn full(self, name: Name, value: u64) -> Self::Full {
        Steps { word: Cell::new(value), is_split: self.0 == Fault::Split(name) }
    }

    fn body(self) -> Self::Body {
        [Cell::new(0), Cell::new(0)]
    }

    fn write(body: &Self::Body, word: usize, value: u32) {
        step();
        body[word].set(value);
    }

    fn read(body: &Self::Body) -> [u32; 2] {
        body.each_ref().map(Cell::get)
    }
}

/// Values that a program records by itself.
const OWN: u32 = 7;
/// The first value of a handler.
const HANDLED: u32 = 100;

/// Records [`OWN`] values, with the drain looking after each; false when the event, set to come after `steps` steps, did not come any more.
fn record_all(
    program: &Program<'_, Stepped>,
    drain: &RefCell<Drain>,
    arena: &Arena<Stepped>,
    steps: u32,
    event: Event,
) -> bool {
    LEFT.set(steps);
    EVENT.set(Some(event));
    for value in 1..=OWN {
        program.record(value);
        aside(|| drain.borrow_mut().poll(arena));
    }
    program.close();
    EVENT.take().is_none()
}

/// Kills a program at a step; whether it came so far.
fn kill_at(steps: u32) -> bool {
    let arena = Arena::new(Stepped(Fault::None), 3, 1);
    let program = Program::new(&arena);
    let drain = RefCell::new(Drain::default());
    let ended = catch_unwind(AssertUnwindSafe(|| record_all(&program, &drain, &arena, steps, Event::Kill)));
    let mut drain = drain.into_inner();
    drain.retire(&arena);
    arena.assert_clean();
    // A record is safe once the call that made it has returned; the one under way may be there.
    let recorded = program.recorded.get();
    let whole = drain.seen.iter().any(|(_, value)| *value == recorded + 1);
    let expected: Vec<_> = (1..=recorded + u32::from(whole)).map(|value| (0, value)).collect();
    drain.check(&expected, program.lost.get());
    assert_eq!(program.lost.get(), 0);
    ended.is_err()
}

#[test]
fn a_kill_costs_no_record_that_was_made() {
    let tried = (0..).take_while(|steps| kill_at(*steps)).count();
    assert!(tried > 60, "{tried} steps");
}

/// Interrupts a program at a step by a handler that records `count` values, after which the drain looks; whether it came so far.
fn interrupt_at(fault: Fault, steps: u32, count: u32) -> bool {
    // Handlers are `'static`; what they see is freed with the test's process.
    let arena: &'static Arena<Stepped> = Box::leak(Box::new(Arena::new(Stepped(fault), 4, 2)));
    let program: &'static Program<'static, Stepped> = Box::leak(Box::new(Program::new(arena)));
    let drain = Rc::new(RefCell::new(Drain::default()));
    let handler = {
        let drain = Rc::clone(&drain);
        Rc::new(move || {
            for value in HANDLED..HANDLED + count {
                program.record(value);
                drain.borrow_mut().poll(arena);
            }
        })
    };
    let came = record_all(program, &drain, arena, steps, Event::Signal(handler));
    drain.borrow_mut().retire(arena);
    arena.assert_clean();
    let handled = if came { HANDLED..HANDLED + count } else { 0..0 };
    let expected: Vec<_> = (1..=OWN).chain(handled).map(|value| (0, value)).collect();
    let mut drain = drain.take();
    // A handler that interrupts the first record enters before the thread does, with a slot of its own.
    drain.seen.iter_mut().for_each(|(slot, _)| *slot = 0);
    drain.check(&expected, program.lost.get());
    came
}

/// Interrupts at every step, by handlers that record little or fill several segments.
fn interrupt_everywhere(fault: Fault) -> usize {
    let steps = |count: u32| (0..).take_while(|steps| interrupt_at(fault, *steps, count)).count();
    [1, 2, 3, 5].into_iter().map(steps).sum()
}

#[test]
fn handlers_may_record_anywhere() {
    let tried = interrupt_everywhere(Fault::None);
    assert!(tried > 240, "{tried} steps");
}

#[test]
fn faults_are_found() {
    let found = |fault| {
        let tried = catch_unwind(AssertUnwindSafe(|| interrupt_everywhere(fault))).is_err();
        EVENT.take();
        tried
    };
    let faults = [Fault::Split(Name::Next), Fault::Impatient, Fault::FreeHasRoom];
    let missed: Vec<Fault> = faults.into_iter().filter(|fault| !found(*fault)).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
