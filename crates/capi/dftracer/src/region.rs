//! Functions and regions: `initialize_region`, `update_metadata_*`, `finalize_region`.
//!
//! Programs hold a region by a pointer. Regions come from a small pool of the thread and return to one, so that beginning one
//! usually allocates nothing, and ending one twice finds it closed instead of freed.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use weftline::front::c::text;
use weftline::front::{self, Args, Argument, EventKind, OpenSpan};

use crate::{metadata, session};

/// `DF_METADATA_EVENT` of the header: not a region but metadata.
const METADATA_EVENT: c_int = 1;
/// Regions that a thread keeps for later ones.
const POOL: usize = 64;

/// `struct DFTracerData`, and behind it what the header does not tell.
#[repr(C)]
pub(crate) struct Region {
    /// The region's own address while it is open.
    profiler: *mut c_void,
    open: Option<Open>,
}

struct Open {
    span: OpenSpan,
    args: Args,
}

thread_local! {
    /// Boxed: programs hold their addresses.
    #[allow(clippy::vec_box, reason = "the boxes are what is kept")]
    static CLOSED: RefCell<Vec<Box<Region>>> = const { RefCell::new(Vec::new()) };
}

fn take() -> Box<Region> {
    let kept = CLOSED.try_with(|pool| pool.try_borrow_mut().ok()?.pop());
    kept.ok().flatten().unwrap_or_else(|| Box::new(Region { profiler: ptr::null_mut(), open: None }))
}

fn give_back(region: Box<Region>) {
    // At the end of a thread there is no pool any more, and the region is freed.
    let _ = CLOSED.try_with(|pool| {
        if let Ok(mut pool) = pool.try_borrow_mut()
            && pool.len() < POOL
        {
            pool.push(region);
        }
    });
}

/// Begins a region, or tells metadata: then `name` is its key and `cat` its value. NULL when nothing is recorded.
#[unsafe(no_mangle)]
unsafe extern "C" fn initialize_region(name: *const c_char, cat: *const c_char, event_type: c_int) -> *mut Region {
    let Some(table) = session::recording() else { return ptr::null_mut() };
    // SAFETY: the caller passes NULL or C strings.
    let (name, category) = unsafe { (text::bytes(name), text::bytes(cat)) };
    if event_type == METADATA_EVENT {
        metadata::tell(table, name.unwrap_or_default(), Argument::Text(category.unwrap_or_default()));
        return ptr::null_mut();
    }
    let epoch = front::epoch(table);
    let name = text::name(table, name.unwrap_or(b"unnamed"));
    let category = category.map_or(0, |category| text::name(table, category));
    let mut region = take();
    let span = OpenSpan::begin(table, epoch, (name, category), front::wanted_usage);
    region.open = Some(Open { span, args: Args::new() });
    let region = Box::into_raw(region);
    // SAFETY: the region that was just made.
    unsafe { (*region).profiler = region.cast() };
    region
}

/// Ends a region. One that has ended already, and NULL, are left alone.
#[unsafe(no_mangle)]
unsafe extern "C" fn finalize_region(data: *mut Region) {
    // SAFETY: the caller passes NULL or what `initialize_region` returned.
    let Some(region) = (unsafe { data.as_mut() }) else { return };
    let Some(mut open) = region.open.take() else { return };
    let Open { span, args } = &mut open;
    let end = front::now(span.table);
    if span.is_current() {
        span.put_usage(args);
        span.tell(EventKind::Span, (span.start, end), 0, args);
    }
    region.profiler = ptr::null_mut();
    // SAFETY: made by `Box::into_raw`, and open until now: nobody else has given it back.
    give_back(unsafe { Box::from_raw(data) });
}

/// What the C macros leave a block with: ends the region unless `DFTRACER_C_*_END` has.
#[unsafe(no_mangle)]
unsafe extern "C" fn finalize_region_cleanup(data: *mut *mut Region) {
    // SAFETY: the caller passes NULL or a variable that holds NULL or an open region.
    unsafe {
        if let Some(data) = data.as_mut() {
            finalize_region(ptr::replace(data, ptr::null_mut()));
        }
    }
}

unsafe fn add(data: *mut Region, key: *const c_char, value: Argument<'_>) {
    // SAFETY: the caller passes NULL or what `initialize_region` returned, and NULL or a C string.
    let (open, key) = unsafe { (data.as_mut().and_then(|region| region.open.as_mut()), text::bytes(key)) };
    if let (Some(open), Some(key)) = (open, key)
        && open.span.is_current()
    {
        open.args.put(text::name(open.span.table, key), value);
    }
}

/// Adds an integer to a region.
#[unsafe(no_mangle)]
unsafe extern "C" fn update_metadata_int(data: *mut Region, key: *const c_char, value: c_int) {
    // SAFETY: as the header demands.
    unsafe { add(data, key, Argument::Int(i64::from(value))) };
}

/// Adds a text to a region.
#[unsafe(no_mangle)]
unsafe extern "C" fn update_metadata_string(data: *mut Region, key: *const c_char, value: *const c_char) {
    // SAFETY: the caller passes NULL or a C string.
    let value = unsafe { text::bytes(value) }.map_or(Argument::Null, Argument::Text);
    // SAFETY: as the header demands.
    unsafe { add(data, key, value) };
}

/// As `update_metadata_int`. What a value is in an aggregation does not matter: nothing is aggregated here, every event is kept.
#[unsafe(no_mangle)]
unsafe extern "C" fn update_metadata_int_type(data: *mut Region, key: *const c_char, value: c_int, _type: c_int) {
    // SAFETY: as the header demands.
    unsafe { update_metadata_int(data, key, value) };
}

/// As `update_metadata_string`.
#[unsafe(no_mangle)]
unsafe extern "C" fn update_metadata_string_type(
    data: *mut Region,
    key: *const c_char,
    value: *const c_char,
    _type: c_int,
) {
    // SAFETY: as the header demands.
    unsafe { update_metadata_string(data, key, value) };
}
