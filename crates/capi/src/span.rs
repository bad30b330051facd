//! `weft_span`: an open event, in memory of the caller.
//!
//! A span is on the caller's stack, so that beginning one allocates nothing. While it is open, its first word is a mark made from its own
//! address; otherwise it is anything else. So ending it twice, ending one that was never begun, and
//! ending a copy do nothing.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use weftline::front::c::text;
use weftline::front::{self, Args, Argument, EventHead, EventKind, Table, Usage};
use weftline::locate;

use crate::site::Site;

/// Words of `weft_span` in the header.
const SPAN_WORDS: usize = 32;
/// With the span's address, the first word of an open one.
const MARK: u64 = 0x7765_6674_5350_414e;

/// `weft_span`.
#[repr(C)]
pub(crate) struct Span {
    mark: u64,
    table: &'static Table,
    start: u64,
    epoch: u32,
    name: u32,
    category: u32,
    has_usage: u32,
    usage: MaybeUninit<Usage>,
    args: Args,
}

const _: () = assert!(size_of::<Span>() <= SPAN_WORDS * 8 && align_of::<Span>() <= 8);

fn mark_of(span: *const Span) -> u64 {
    MARK ^ span.addr() as u64
}

impl Span {
    /// # Safety
    /// `span` must be NULL or point at memory of a `weft_span` that nobody else uses during the call.
    #[inline(always)]
    unsafe fn open<'a>(span: *mut Span) -> Option<&'a mut Span> {
        // SAFETY: the caller's word; a span with its mark was written by `begin` at this address, all of it.
        unsafe { (!span.is_null() && (&raw const (*span).mark).read() == mark_of(span)).then(|| &mut *span) }
    }

    /// Tells the event and closes the span.
    #[inline(always)]
    fn finish(&mut self, kind: EventKind, end: u64, id: u64) {
        if front::still(self.table, self.epoch) {
            if self.has_usage != 0 && matches!(kind, EventKind::Span | EventKind::AsyncSpan) {
                self.put_usage();
            }
            let head = EventHead { kind, name: self.name, category: self.category, start: self.start, end, id };
            front::emit(self.table, &head, self.args.as_bytes());
        }
        self.close();
    }

    #[inline(always)]
    fn close(&mut self) {
        self.mark = 0;
        // Many arguments are on the heap.
        self.args = Args::new();
    }

    #[cold]
    fn put_usage(&mut self) {
        // SAFETY: `begin` took a reading where it set `has_usage`.
        let from = unsafe { self.usage.assume_init() };
        let args = &mut self.args;
        front::used_since(self.table, from, |key, value| args.put(key, value));
    }
}

/// Adds an argument if the span is open and the key is a string. Checks the span first: if nothing is recorded, nothing else
/// is read.
///
/// # Safety
/// As for the functions of the header: `span` NULL or a `weft_span`, `key` NULL or a C string.
#[inline(always)]
unsafe fn add(span: *mut Span, key: *const c_char, value: Argument<'_>) {
    // SAFETY: the caller's word.
    if let Some(span) = unsafe { Span::open(span) } {
        // SAFETY: the caller's word.
        unsafe { add_to(span, key, value) };
    }
}

#[inline(never)]
unsafe fn add_to(span: &mut Span, key: *const c_char, value: Argument<'_>) {
    // SAFETY: the caller passes NULL or a C string.
    if let Some(key) = unsafe { text::bytes(key) }
        && front::still(span.table, span.epoch)
    {
        let key = text::name(span.table, key);
        span.args.put(key, value);
    }
}

/// Whether anything is recorded now. Use it before computing costly arguments.
#[unsafe(no_mangle)]
extern "C" fn weft_is_on() -> c_int {
    c_int::from(weftline::is_on())
}

/// Begins an event at `site`; add arguments until `weft_end`. `span` is memory of the caller and
/// needs no initialisation; `site` is read during the call only.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_begin(span: *mut Span, site: *mut Site) {
    if span.is_null() {
        return;
    }
    match locate::recording() {
        // SAFETY: the caller passes memory of a `weft_span`, and NULL or a `weft_site`.
        Some(table) => unsafe { begin(span, site, table) },
        // SAFETY: the caller passes memory of a `weft_span`.
        None => unsafe { (&raw mut (*span).mark).write(0) },
    }
}

#[inline(never)]
unsafe fn begin(span: *mut Span, site: *const Site, table: &'static Table) {
    let epoch = front::epoch(table);
    // SAFETY: the caller passes NULL or a `weft_site`, whose texts are NULL or C strings.
    let (name, category) = unsafe {
        match site.as_ref() {
            Some(site) => (site.name.id(table, epoch, b"unnamed"), site.category.id(table, epoch, b"app")),
            None => (text::name(table, b"unnamed"), text::name(table, b"app")),
        }
    };
    let usage = front::wanted_usage(table);
    let has_usage = u32::from(usage.is_some());
    let usage = usage.map_or(const { MaybeUninit::uninit() }, MaybeUninit::new);
    let begun = Span {
        mark: mark_of(span),
        table,
        start: front::now(table),
        epoch,
        name,
        category,
        has_usage,
        usage,
        args: Args::new(),
    };
    // SAFETY: the caller passes memory of a `weft_span`; what it held before is nobody's.
    unsafe { span.write(begun) };
}

/// Ends a span: it lasted from `weft_begin` until now. Ending a span that is not open does nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_end(span: *mut Span) {
    // SAFETY: the caller passes NULL or a `weft_span`.
    if let Some(span) = unsafe { Span::open(span) } {
        let end = front::now(span.table);
        span.finish(EventKind::Span, end, 0);
    }
}

/// Closes a span as an event of another kind (see `weft_kind`), at the time of its `weft_begin`. `id` joins
/// the events of an async span or a flow, and is 0 otherwise. An unknown kind records nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_tell(span: *mut Span, kind: c_int, id: u64) {
    // SAFETY: the caller passes NULL or a `weft_span`.
    let Some(span) = (unsafe { Span::open(span) }) else { return };
    let kind = usize::try_from(kind).ok().and_then(|number| EventKind::ALL.get(number).copied());
    match kind {
        Some(kind @ (EventKind::Span | EventKind::AsyncSpan)) => {
            let end = front::now(span.table);
            span.finish(kind, end, id);
        }
        Some(kind) => span.finish(kind, span.start, id),
        None => span.close(),
    }
}

/// Adds an integer to an open span.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_int(span: *mut Span, key: *const c_char, value: i64) {
    // SAFETY: as the header demands.
    unsafe { add(span, key, Argument::Int(value)) };
}

/// Adds an unsigned integer to an open span.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_uint(span: *mut Span, key: *const c_char, value: u64) {
    // SAFETY: as the header demands.
    unsafe { add(span, key, Argument::UInt(value)) };
}

/// Adds a number to an open span.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_double(span: *mut Span, key: *const c_char, value: f64) {
    // SAFETY: as the header demands.
    unsafe { add(span, key, Argument::Float(value)) };
}

/// Adds `true` or `false` to an open span.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_bool(span: *mut Span, key: *const c_char, value: c_int) {
    // SAFETY: as the header demands.
    unsafe { add(span, key, Argument::Bool(value != 0)) };
}

/// Adds text of `length` bytes to an open span; the bytes are copied. A NULL `text` is recorded as `null`. Text that is longer
/// than about 3,800 bytes is cut, and its full length is recorded.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_bytes(span: *mut Span, key: *const c_char, text: *const c_char, length: usize) {
    let value = match text.is_null() {
        true => Argument::Null,
        // SAFETY: the caller passes so many readable bytes, an object of the program, and none is longer than `isize::MAX`.
        false => Argument::Text(unsafe { std::slice::from_raw_parts(text.cast(), length.min(isize::MAX as usize)) }),
    };
    // SAFETY: as the header demands.
    unsafe { add(span, key, value) };
}

/// Returns an id that is unique in the run, to join the events of an async span or a flow.
#[unsafe(no_mangle)]
extern "C" fn weft_new_id() -> u64 {
    front::new_id()
}
