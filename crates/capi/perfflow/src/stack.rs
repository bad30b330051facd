//! The functions that a thread is in: each `around` is entered when it begins and left when it ends.
//!
//! An exception or a `longjmp` may leave functions without the weaver's call at their end. The next function that does end finds
//! them above itself on the stack and ends them too; those that remain end with their thread.

use std::cell::RefCell;

use weftline::front::c::{pairs, text};
use weftline::front::{self, Args, Argument, EventKind, OpenSpan, Table};

use crate::{Call, session};

/// A function that has begun.
pub(crate) struct Frame {
    span: OpenSpan,
    how: How,
}

/// What was recorded of its beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// A beginning; its end is recorded separately.
    Verbose,
    /// Nothing yet.
    Compact,
    /// The beginning of the async span with this id.
    Async(u64),
}

impl Frame {
    /// Records the beginning, if it is recorded separately.
    pub(crate) fn begin(call: &Call<'_>) -> Frame {
        let how = match (call.is_async, session::is_compact()) {
            (true, _) => How::Async(pairs::fresh()),
            (false, true) => How::Compact,
            (false, false) => How::Verbose,
        };
        let usage = |table: &Table| match session::wants_usage() {
            true => Some(front::usage(table)),
            false => front::wanted_usage(table),
        };
        let span = OpenSpan::begin(call.table, front::epoch(call.table), (call.name, call.category), usage);
        match how {
            How::Verbose => span.tell(EventKind::Begin, (span.start, span.start), 0, &Args::new()),
            How::Async(id) => call.tell_async(EventKind::AsyncBegin, id),
            How::Compact => {}
        }
        Frame { span, how }
    }

    /// Tells the end of a span on the thread's stack.
    fn end(&self, unwound: bool) {
        let span = &self.span;
        if !span.is_current() {
            return;
        }
        let mut args = Args::new();
        if unwound {
            args.put(text::name(span.table, b"unwound"), Argument::Bool(true));
        }
        span.put_usage(&mut args);
        let end = front::now(span.table);
        match self.how {
            How::Verbose => span.tell(EventKind::End, (end, end), 0, &args),
            How::Compact => span.tell(EventKind::Span, (span.start, end), 0, &args),
            How::Async(id) => span.tell(EventKind::AsyncEnd, (end, end), id, &args),
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
        stack.0.retain(|frame| frame.span.epoch == epoch);
        let is_it = |frame: &Frame| frame.span.name == call.name && matches!(frame.how, How::Async(_)) == call.is_async;
        let Some(at) = stack.0.iter().rposition(is_it) else { return };
        while stack.0.len() > at + 1 {
            if let Some(frame) = stack.0.pop() {
                frame.end(true);
            }
        }
        match stack.0.pop() {
            Some(Frame { how: How::Async(id), .. }) => call.tell_async(EventKind::AsyncEnd, id),
            Some(frame) => frame.end(false),
            None => {}
        }
    });
}
