//! The functions that a thread is in: each `around` is entered when it begins and left when it ends.
//!
//! An exception or a `longjmp` may leave functions without the weaver's call at their end. Then the next function that does end finds
//! them above itself, and they are told as ended with it; a thread's last ones are told when it ends.

use std::cell::RefCell;

use weftline::front::{self, Args, Argument, Kind, Table, Told, Usage};
use weftline_capi_entry::{pairs, text};

use crate::{Call, session};

/// A function that has begun.
pub(crate) struct Frame {
    table: &'static Table,
    epoch: u32,
    name: u32,
    category: u32,
    start: u64,
    usage: Option<Usage>,
    told: How,
}

/// What was told of its beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// A beginning; its end is told by itself.
    Verbose,
    /// Nothing yet.
    Compact,
    /// The beginning of the async span with this id.
    Async(u64),
}

impl Frame {
    /// Tells the beginning, if it is told by itself.
    pub(crate) fn begin(call: &Call<'_>) -> Frame {
        let table = call.table;
        let told = match (call.is_async, session::is_compact()) {
            (true, _) => How::Async(pairs::fresh()),
            (false, true) => How::Compact,
            (false, false) => How::Verbose,
        };
        let (epoch, start) = (front::epoch(table), front::now(table));
        // Readings lie inside the span, so that it never uses more than there was.
        let usage = match session::wants_usage() {
            true => Some(front::usage(table)),
            false => front::wanted_usage(table),
        };
        let frame = Frame { table, epoch, name: call.name, category: call.category, start, usage, told };
        match told {
            How::Verbose => frame.tell(Kind::Begin, start, &Args::new()),
            How::Async(id) => call.tell_async(Kind::AsyncBegin, id),
            How::Compact => {}
        }
        frame
    }

    fn tell(&self, kind: Kind, end: u64, args: &Args) {
        let start = if kind == Kind::End { end } else { self.start };
        let told = Told { kind, name: self.name, category: self.category, start, end, id: 0 };
        front::emit(self.table, &told, args.as_bytes());
    }

    /// Tells the end of a span on the thread's stack.
    fn end(&self, unwound: bool) {
        if !front::still(self.table, self.epoch) {
            return;
        }
        let mut args = Args::new();
        if unwound {
            args.put(text::name(self.table, b"unwound"), Argument::Bool(true));
        }
        if let Some(from) = self.usage {
            front::used_since(self.table, from, |key, value| args.put(key, value));
        }
        let end = front::now(self.table);
        match self.told {
            How::Verbose => self.tell(Kind::End, end, &args),
            How::Compact => self.tell(Kind::Span, end, &args),
            How::Async(id) => {
                let (name, category) = (self.name, self.category);
                let told = Told { kind: Kind::AsyncEnd, name, category, start: end, end, id };
                front::emit(self.table, &told, args.as_bytes());
            }
        }
    }
}

/// The frames of one thread, the innermost last.
struct Stack(Vec<Frame>);

impl Drop for Stack {
    fn drop(&mut self) {
        while let Some(frame) = self.0.pop() {
            frame.end(true);
        }
    }
}

thread_local! {
    static STACK: RefCell<Stack> = const { RefCell::new(Stack(Vec::new())) };
}

/// Enters a function.
pub(crate) fn enter(frame: Frame) {
    // A handler that interrupts this very function, or runs at the end of its thread, tells only beginnings.
    let _ = STACK.try_with(|stack| {
        if let Ok(mut stack) = stack.try_borrow_mut() {
            stack.0.push(frame);
        }
    });
}

/// Leaves a function. What began before the recorder was on is not told.
pub(crate) fn leave(call: &Call<'_>) {
    let _ = STACK.try_with(|stack| {
        let Ok(mut stack) = stack.try_borrow_mut() else { return };
        let epoch = front::epoch(call.table);
        // Frames of an earlier recording have names that mean something else now.
        stack.0.retain(|frame| frame.epoch == epoch);
        let is_it = |frame: &Frame| frame.name == call.name && matches!(frame.told, How::Async(_)) == call.is_async;
        let Some(at) = stack.0.iter().rposition(is_it) else { return };
        while stack.0.len() > at + 1 {
            if let Some(frame) = stack.0.pop() {
                frame.end(true);
            }
        }
        match stack.0.pop() {
            Some(Frame { told: How::Async(id), .. }) => call.tell_async(Kind::AsyncEnd, id),
            Some(frame) => frame.end(false),
            None => {}
        }
    });
}
