//! The functions that woven code calls at the beginning and end of a function, with a static description of that function.
//!
//! Woven code reads the recorder's table itself (`weft_recorder_v1`, then `Table::on`) and calls only if that is not zero, so a
//! woven function costs two loads and two branches while nothing is recorded. Between its beginning and its end a function
//! keeps one word in a register, the *token*: nothing is allocated, and a `longjmp` leaks nothing.
//!
//! ```text
//! token: bits 63..57 the epoch's lowest bits   56 a reading of what was used is on the heap   55..0 when it began, or that reading's address
//! ```

use std::ffi::c_char;

use weftline::front::c::{pairs, text};
use weftline::front::{self, Args, Argument, EventHead, EventKind, Table, Usage};
use weftline::locate;

use crate::site::Site;

/// `weft_woven`: a function that was woven, or one annotation of it.
#[repr(C)]
pub(crate) struct Woven {
    site: Site,
    /// NULL when there is none.
    scope: *const c_char,
    /// Where the function stands; the recorder is not told.
    file: *const c_char,
    line: u32,
    pointcut: u8,
    is_async: u8,
    flow: u8,
    version: u8,
    reserved: u64,
}

// The plugin writes such descriptions into the programs that it weaves.
const _: () = assert!(size_of::<Woven>() == 64 && align_of::<Woven>() == 8);
const _: () = assert!(std::mem::offset_of!(Woven, line) == 48 && std::mem::offset_of!(Woven, version) == 55);

/// Values of [`Woven::pointcut`]; everything else is `around`.
mod pointcut {
    pub(super) const BEFORE: u8 = 0;
    pub(super) const AFTER: u8 = 1;
}

/// Values of [`Woven::flow`].
mod flow {
    pub(super) const IN: u8 = 1;
    pub(super) const OUT: u8 = 2;
    pub(super) const INOUT: u8 = 3;
    pub(super) const OUTIN: u8 = 4;
}

/// Bits of a token that hold the time or an address.
const VALUE_BITS: u32 = 56;
const VALUE: u64 = (1 << VALUE_BITS) - 1;
/// The value is the address of a [`Reading`].
const ON_HEAP: u64 = 1 << VALUE_BITS;
const EPOCH_SHIFT: u32 = VALUE_BITS + 1;

/// The beginning of a function with a span that records its usage.
struct Reading {
    start: u64,
    usage: Usage,
}

fn epoch_bits(epoch: u32) -> u64 {
    u64::from(epoch) << EPOCH_SHIFT
}

/// The time at which something began, from its lowest bits: less than the 278 days ago after which 56 bits of a 3 GHz clock repeat.
fn started(value: u64, now: u64) -> u64 {
    now.wrapping_sub(now.wrapping_sub(value) & VALUE)
}

#[inline(always)]
fn begin(table: &'static Table) -> u64 {
    match front::wanted_usage(table) {
        Some(usage) => begin_with(table, usage),
        // Zero would mean that there is nothing to end.
        None => (epoch_bits(front::epoch(table)) | front::now(table) & VALUE).max(1),
    }
}

#[cold]
fn begin_with(table: &Table, usage: Usage) -> u64 {
    let reading = Box::into_raw(Box::new(Reading { start: front::now(table), usage }));
    epoch_bits(front::epoch(table)) | ON_HEAP | reading.expose_provenance() as u64 & VALUE
}

/// How a function was left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Returned,
    Thrown,
}

impl Woven {
    /// Tells the span of a function that began with this token.
    ///
    /// # Safety
    /// The texts must be NULL or C strings, and the token one of [`begin`] that was not ended.
    #[inline(always)]
    unsafe fn end(&self, token: u64, way: Way) {
        let table = locate::recording();
        if token & ON_HEAP != 0 {
            // SAFETY: the caller's word.
            return unsafe { self.end_with(table, token, way) };
        }
        let Some(table) = table else { return };
        // Another recording has begun: what began in the one before cannot be told here.
        if (epoch_bits(front::epoch(table)) ^ token) >> EPOCH_SHIFT != 0 {
            return;
        }
        let now = front::now(table);
        let start = started(token & VALUE, now);
        if self.is_async == 0 && self.scope.is_null() && way == Way::Returned {
            // SAFETY: the caller's word.
            let (name, category) = unsafe { self.names(table) };
            front::emit(table, &EventHead { kind: EventKind::Span, name, category, start, end: now, id: 0 }, &[]);
        } else {
            // SAFETY: the caller's word.
            unsafe { self.tell_span(table, start, now, way, None) };
        }
    }

    #[cold]
    unsafe fn end_with(&self, table: Option<&'static Table>, token: u64, way: Way) {
        // SAFETY: `begin_with` made the token from the address of such a box, and it is ended once.
        let reading =
            unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Reading>((token & VALUE) as usize)) };
        if let Some(table) = table.filter(|table| (epoch_bits(front::epoch(table)) ^ token) >> EPOCH_SHIFT == 0) {
            // SAFETY: the caller's word.
            unsafe { self.tell_span(table, reading.start, front::now(table), way, Some(reading.usage)) };
        }
    }

    #[inline(never)]
    unsafe fn tell_span(&self, table: &Table, start: u64, end: u64, way: Way, used_since: Option<Usage>) {
        // SAFETY: the caller's word.
        let ((name, category), mut args) = unsafe { (self.names(table), self.scope_argument(table)) };
        if way == Way::Thrown {
            args.put(text::name(table, b"error"), Argument::Text(b"exception"));
        }
        if let Some(from) = used_since {
            front::used_since(table, from, |key, value| args.put(key, value));
        }
        let (kind, id) = match self.is_async {
            0 => (EventKind::Span, 0),
            _ => (EventKind::AsyncSpan, pairs::fresh()),
        };
        front::emit(table, &EventHead { kind, name, category, start, end, id }, args.as_bytes());
    }

    /// # Safety
    /// The texts must be NULL or C strings.
    #[inline(always)]
    unsafe fn names(&self, table: &Table) -> (u32, u32) {
        let epoch = front::epoch(table);
        // SAFETY: the caller's word.
        unsafe { (self.site.name.id(table, epoch, b"unnamed"), self.site.category.id(table, epoch, b"app")) }
    }

    unsafe fn scope_argument(&self, table: &Table) -> Args {
        let mut args = Args::new();
        // SAFETY: the caller's word.
        if let Some(scope) = unsafe { text::bytes(self.scope) } {
            args.put(text::name(table, b"scope"), Argument::Text(scope));
        }
        args
    }

    /// A lone beginning or a lone end: a `before` or an `after`.
    unsafe fn tell_one_end(&self, table: &Table, is_beginning: bool) {
        // SAFETY: the caller's word.
        let ((name, category), args, scope) =
            unsafe { (self.names(table), self.scope_argument(table), text::bytes(self.scope).unwrap_or_default()) };
        let (kind, id) = match (self.is_async != 0, is_beginning) {
            (false, true) => (EventKind::Begin, 0),
            (false, false) => (EventKind::End, 0),
            (true, true) => (EventKind::AsyncBegin, pairs::begin(scope)),
            (true, false) => (EventKind::AsyncEnd, pairs::end(scope)),
        };
        let now = front::now(table);
        front::emit(table, &EventHead { kind, name, category, start: now, end: now, id }, args.as_bytes());
    }

    /// What happens to the arrows of the function at its beginning (`true`) or its end. An `around` with `in` or `out` has one at its beginning.
    fn arrow(&self, is_beginning: bool) -> Option<EventKind> {
        let at_this_side = is_beginning != (self.pointcut == pointcut::AFTER);
        match (self.flow, is_beginning) {
            (flow::IN, _) if at_this_side => Some(EventKind::FlowEnd),
            (flow::OUT, _) if at_this_side => Some(EventKind::FlowStart),
            (flow::INOUT, true) | (flow::OUTIN, false) => Some(EventKind::FlowEnd),
            (flow::INOUT, false) | (flow::OUTIN, true) => Some(EventKind::FlowStart),
            _ => None,
        }
    }

    fn tell_arrow(&self, table: &Table, is_beginning: bool) {
        let Some(kind) = self.arrow(is_beginning) else { return };
        let id = if kind == EventKind::FlowStart { pairs::flow_out() } else { pairs::flow_in() };
        let (flow, now) = (text::name(table, b"flow"), front::now(table));
        front::emit(table, &EventHead { kind, name: flow, category: flow, start: now, end: now, id }, &[]);
    }
}

/// A function begins. Returns the token for `weft_weave_end`, or 0 if that need not be called.
#[unsafe(no_mangle)]
extern "C" fn weft_weave_begin(function: *mut Woven) -> u64 {
    // Its names are looked at when it ends: then the recorder is asked for them once.
    let _ = function;
    locate::recording().map_or(0, begin)
}

/// A function returns, or is about to call one that does not return.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_weave_end(function: *mut Woven, token: u64) {
    // SAFETY: woven code passes a description with C strings, and a token once.
    if let Some(function) = unsafe { function.as_ref() } {
        // SAFETY: as above.
        unsafe { function.end(token, Way::Returned) };
    }
}

/// An exception leaves a function.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_weave_thrown(function: *mut Woven, token: u64) {
    // SAFETY: woven code passes a description with C strings, and a token once.
    if let Some(function) = unsafe { function.as_ref() } {
        // SAFETY: as above.
        unsafe { function.end(token, Way::Thrown) };
    }
}

/// A function with more than a plain span begins: `before`, an async span, or arrows.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_weave_enter(function: *mut Woven) -> u64 {
    // SAFETY: woven code passes a description with C strings.
    let (Some(function), Some(table)) = (unsafe { function.as_ref() }, locate::recording()) else { return 0 };
    let token = match function.pointcut {
        pointcut::BEFORE => {
            // SAFETY: as above.
            unsafe { function.tell_one_end(table, true) };
            0
        }
        pointcut::AFTER => 0,
        _ => begin(table),
    };
    function.tell_arrow(table, true);
    token
}

/// Its end, with the token of `weft_weave_enter`, or 0 for an `after`.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_weave_leave(function: *mut Woven, token: u64) {
    // SAFETY: woven code passes a description with C strings.
    let Some(function) = (unsafe { function.as_ref() }) else { return };
    if let Some(table) = locate::recording() {
        function.tell_arrow(table, false);
        if function.pointcut == pointcut::AFTER {
            // SAFETY: as above.
            unsafe { function.tell_one_end(table, false) };
        }
    }
    if token != 0 {
        // SAFETY: as above, and a token once.
        unsafe { function.end(token, Way::Returned) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `before` must be earlier than `after` by less than 56 bits tell.
    fn check(before: u64, after: u64) {
        assert_eq!(started(before & VALUE, after), before, "{before:x} {after:x}");
    }

    #[test]
    fn times_are_put_together_again() {
        check(1, 1);
        check(1_000_000, 2_000_000);
        check(VALUE - 5, VALUE + 10);
        check(0x1234_5678_9abc_def0, 0x1234_5678_9abc_def0 + VALUE);
        check((7 << VALUE_BITS) - 1, 7 << VALUE_BITS);
    }

    #[test]
    fn arrows_are_at_the_side_where_the_original_has_them() {
        let check = |pointcut: u8, flow: u8, at_begin: Option<EventKind>, at_end: Option<EventKind>| {
            // SAFETY: a description of zeros is one of a `before` without texts.
            let mut woven: Woven = unsafe { std::mem::zeroed() };
            (woven.pointcut, woven.flow) = (pointcut, flow);
            assert_eq!((woven.arrow(true), woven.arrow(false)), (at_begin, at_end), "{pointcut} {flow}");
        };
        let (starts, ends) = (Some(EventKind::FlowStart), Some(EventKind::FlowEnd));
        let around = 2;
        check(around, 0, None, None);
        check(around, flow::IN, ends, None);
        check(around, flow::OUT, starts, None);
        check(around, flow::INOUT, ends, starts);
        check(around, flow::OUTIN, starts, ends);
        assert_eq!(woven_at_end(flow::IN), ends);
        assert_eq!(woven_at_end(flow::OUT), starts);
    }

    /// What an `after` does with its arrow.
    fn woven_at_end(flow: u8) -> Option<EventKind> {
        // SAFETY: as above.
        let mut woven: Woven = unsafe { std::mem::zeroed() };
        (woven.pointcut, woven.flow) = (pointcut::AFTER, flow);
        woven.arrow(false)
    }
}
