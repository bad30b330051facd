//! `libperfflow_runtime.so`: the functions that code woven for PerfFlowAspect calls, on top of Weftline.
//!
//! The weaver puts a call of [`perfflow_weave_before`] at the beginning of an annotated function and one of [`perfflow_weave_after`] at each of its
//! ends; these two symbols are all that this library exports, besides the recorder's.
//!
//! | `pcut` | `log-event=Verbose` | `log-event=Compact` |
//! |---|---|---|
//! | `before`, `after` | B, E | B, E |
//! | `around` | B and E | X |
//! | `*_async` | b, e | b, e |
//!
//! | module | holds |
//! |---|---|
//! | `session` | `PERFFLOW_OPTIONS`, and the beginning of recording |
//! | `stack` | the functions that a thread is in |
//! | `function` | the name of a function: demangled, without parameters |
//!
//! NULL is allowed for every pointer; nothing panics, and nothing waits for another thread.

mod function;
mod session;
mod stack;

use std::ffi::{c_char, c_int};

use weftline::front::c::{pairs, text};
use weftline::front::{self, Args, Argument, EventHead, EventKind, Table};

use stack::Frame;

/// What the weaver hands over when a scope or a flow was not given.
const NOT_GIVEN: &[u8] = b"NA";

/// One call of the weaver, with its names known to the recorder.
struct Call<'a> {
    table: &'static Table,
    name: u32,
    category: u32,
    scope: &'a [u8],
    flow: &'a [u8],
    pointcut: &'a [u8],
    is_async: bool,
}

impl<'a> Call<'a> {
    /// `None` when nothing is recorded.
    ///
    /// # Safety
    /// Every text must be NULL or a C string.
    unsafe fn new(is_async: c_int, texts: [*const c_char; 5]) -> Option<Call<'a>> {
        let table = session::recording()?;
        // SAFETY: the caller's word.
        let [module, function, scope, flow, pointcut] = texts.map(|text| unsafe { text::bytes::<'a>(text) });
        let name = function::with_name(function?, |name| text::name(table, name));
        let category = module.map_or(0, |module| text::name(table, module));
        let scope = scope.unwrap_or(NOT_GIVEN);
        let flow = flow.unwrap_or_default();
        Some(Call {
            table,
            name,
            category,
            scope,
            flow,
            pointcut: pointcut.unwrap_or_default(),
            is_async: is_async != 0,
        })
    }

    fn is_around(&self) -> bool {
        self.pointcut.starts_with(b"around")
    }

    fn tell(&self, kind: EventKind, id: u64, args: &Args) {
        let now = front::now(self.table);
        let head = EventHead { kind, name: self.name, category: self.category, start: now, end: now, id };
        front::emit(self.table, &head, args.as_bytes());
    }

    /// One end of an async span. Besides the id that no other process has, it tells its number in this one.
    fn tell_async(&self, kind: EventKind, id: u64) {
        let mut args = Args::new();
        args.put(text::name(self.table, b"scope"), Argument::Text(self.scope));
        args.put(text::name(self.table, b"id"), Argument::UInt(pairs::number(id)));
        self.tell(kind, id, &args);
    }

    /// One end of an arrow between functions.
    fn tell_flow(&self, kind: EventKind) {
        let id = if kind == EventKind::FlowStart { pairs::flow_out() } else { pairs::flow_in() };
        let flow = text::name(self.table, b"flow");
        let now = front::now(self.table);
        let head = EventHead { kind, name: flow, category: flow, start: now, end: now, id };
        front::emit(self.table, &head, &[]);
    }
}

/// The functions that woven code calls, each with what it does.
macro_rules! woven {
    ($($name:ident => $tell:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            is_async: c_int,
            module: *const c_char,
            function: *const c_char,
            scope: *const c_char,
            flow: *const c_char,
            pcut: *const c_char,
        ) {
            // SAFETY: the weaver passes C strings.
            if let Some(call) = unsafe { Call::new(is_async, [module, function, scope, flow, pcut]) } {
                $tell(&call);
            }
        }
    )* };
}

woven! {
    perfflow_weave_before => begins;
    perfflow_weave_after => ends;
}

/// A function begins. `flow` says `in` where an arrow ends here, `out` where one starts, `inout` and `outin` for one of each, the second
/// one at the function's end.
fn begins(call: &Call<'_>) {
    match (call.is_around(), call.is_async) {
        (true, _) => stack::enter(Frame::begin(call)),
        (false, true) => call.tell_async(EventKind::AsyncBegin, pairs::begin(call.scope)),
        (false, false) => call.tell(EventKind::Begin, 0, &Args::new()),
    }
    match call.flow {
        b"in" | b"inout" => call.tell_flow(EventKind::FlowEnd),
        b"out" | b"outin" => call.tell_flow(EventKind::FlowStart),
        _ => {}
    }
}

/// A function ends.
fn ends(call: &Call<'_>) {
    match (call.flow, call.is_around()) {
        (b"outin", _) | (b"in", false) => call.tell_flow(EventKind::FlowEnd),
        (b"inout", _) | (b"out", false) => call.tell_flow(EventKind::FlowStart),
        _ => {}
    }
    match (call.is_around(), call.is_async) {
        (true, _) => stack::leave(call),
        (false, true) => call.tell_async(EventKind::AsyncEnd, pairs::end(call.scope)),
        (false, false) => call.tell(EventKind::End, 0, &Args::new()),
    }
}
