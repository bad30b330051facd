//! One process, one recorder: the table through which every front-end reaches it.
//!
//! Several libraries in a process may carry this crate: the preload library, an annotated program, an extension module. Each exports
//! one symbol, [`weft_recorder_v1`]: a cell with the table that it uses. The library that records first fills the cells of all
//! others ([`announce`]'s callers walk the loaded objects), and a library that is loaded later finds the cell of an earlier
//! one by name. So a span of a Python extension and the `write` inside it go into one arena, on one clock.
//!
//! The table's layout is an interface between builds of different versions: fields are added at the end, never changed. The layout
//! of records is not part of it.

use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::annotation::{Event, Usage};
use crate::{clock, process, thread, usage};

/// First word of every table.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weftTBL1");

/// Values of [`Table::on`].
pub mod on {
    /// Nothing is recorded.
    pub const OFF: u32 = 0;
    /// Events are recorded.
    pub const ON: u32 = 1;
    /// Nobody has looked for a recorder yet.
    pub const UNKNOWN: u32 = 2;
}

/// The flags of [`Table::bind`] and [`Table::start`].
pub mod binding {
    /// Take all hooks out again.
    pub const NONE: u32 = 0;
    /// Only the calls by which a process ends.
    pub const LIFE: u32 = 1;
    /// Every call of the table of hooks.
    pub const ALL: u32 = 2;
}

/// Bits of [`Table::wants_usage`]. A front-end of an earlier version tells processor time and memory for any of them.
pub mod wants {
    /// Processor time and memory.
    pub const PROCESSOR: u32 = 1;
    /// The use of GPUs, in a process that has loaded what knows them.
    pub const GPU_IF_USED: u32 = 2;
    /// The use of GPUs, in any process.
    pub const GPU: u32 = 4;
    /// What `weft run --span-usage` asks for.
    pub const ALL: u32 = PROCESSOR | GPU_IF_USED;
}

/// The recorder's entry points.
#[repr(C)]
pub struct Table {
    /// [`MAGIC`].
    pub magic: u64,
    /// Bytes of the table: a reader of a later version sees what is missing.
    pub size: u32,
    /// See [`on`]. What a front-end looks at first: a load and a branch.
    pub on: AtomicU32,
    /// Changes whenever name ids have become invalid.
    pub epoch: AtomicU32,
    /// Not zero: spans should tell what they used ([`Table::usage`]); see [`wants`].
    pub wants_usage: AtomicU32,
    /// The clock.
    pub ticks: extern "C" fn() -> u64,
    /// Name id of a text; 0 when it could not be kept.
    pub intern: unsafe extern "C" fn(text: *const u8, length: usize) -> u32,
    /// Stores an event.
    pub event: unsafe extern "C" fn(event: *const Event<'_>),
    /// Reads what thread and process have used.
    pub usage: unsafe extern "C" fn(out: *mut Usage),
    /// Begins to record into the live directory at this path; 0 when it does now. Does nothing where something is recorded.
    pub start: unsafe extern "C" fn(live: *const u8, length: usize) -> c_int,
    /// Nothing more is recorded; all of the process's events are complete.
    pub stop: extern "C" fn(status: c_int),
    /// Puts hooks into the loaded objects, late: see [`binding`]. The number of places, or -1 where this recorder has no hooks.
    pub bind: extern "C" fn(binding: u32) -> c_int,
    /// Calls `then` when the process announces its end; `sudden` is 1 where the C library's exit handlers will not run, and nothing
    /// but async-signal-safe functions may be called.
    pub at_end: extern "C" fn(then: Option<extern "C" fn(sudden: c_int)>),
}

// SAFETY: functions and atomics.
unsafe impl Sync for Table {}

static LOCAL: Table = Table {
    magic: MAGIC,
    size: size_of::<Table>() as u32,
    on: AtomicU32::new(on::OFF),
    epoch: AtomicU32::new(1),
    wants_usage: AtomicU32::new(0),
    ticks,
    intern,
    event,
    usage: read_usage,
    start,
    stop,
    bind,
    at_end,
};

/// Stands in every cell until somebody has looked: its `on` sends the first caller to do so. It refers to nothing of the recorder, so a
/// library that always uses another one's does not even contain it, nor its thread-local storage, of which a process has little.
static UNKNOWN: Table = nothing::table(on::UNKNOWN);
/// Stands there after a look that found none.
static ABSENT: Table = nothing::table(on::OFF);

/// The table that this library uses. The dynamic linker may let all libraries of the process share one such cell; it makes no difference.
#[allow(non_upper_case_globals, reason = "a C symbol")]
#[unsafe(no_mangle)]
pub static weft_recorder_v1: AtomicPtr<Table> = AtomicPtr::new((&raw const UNKNOWN).cast_mut());

/// Name of the cell's symbol.
pub const SYMBOL: &core::ffi::CStr = c"weft_recorder_v1";

/// The table in use by this library.
#[inline(always)]
pub fn current() -> &'static Table {
    // SAFETY: the cell holds the address of a static table, of this library or of one that is never unloaded.
    unsafe { &*weft_recorder_v1.load(Ordering::Relaxed) }
}

/// This library's own recorder.
pub fn local() -> &'static Table {
    &LOCAL
}

/// A recorder that records nothing and cannot be started: for a library that carries none and has found none.
pub fn absent() -> &'static Table {
    &ABSENT
}

/// Makes `table` the one that this library uses.
pub fn adopt(table: &'static Table) {
    weft_recorder_v1.store((&raw const *table).cast_mut(), Ordering::Release);
}

/// Makes `table` the one that the library with this cell uses, unless that records by itself.
///
/// # Safety
/// `cell` must be the address of a `weft_recorder_v1` in a loaded object.
pub unsafe fn announce(table: &'static Table, cell: *const AtomicPtr<Table>) {
    // SAFETY: the caller's word; the cell holds the address of a table.
    unsafe {
        let theirs = (*cell).load(Ordering::Acquire);
        if is_table(theirs) && (*theirs).on.load(Ordering::Relaxed) != on::ON {
            (*cell).store((&raw const *table).cast_mut(), Ordering::Release);
        }
    }
}

/// The table in another library's cell, if it is set already.
///
/// # Safety
/// `cell` must be null or the address of a `weft_recorder_v1` in a loaded object that stays loaded.
pub unsafe fn in_cell(cell: *const AtomicPtr<Table>) -> Option<&'static Table> {
    // SAFETY: the caller's word.
    unsafe {
        let table = cell.as_ref()?.load(Ordering::Acquire);
        (is_table(table) && (*table).on.load(Ordering::Relaxed) != on::UNKNOWN).then(|| &*table)
    }
}

/// # Safety
/// `table` must be null or readable.
unsafe fn is_table(table: *const Table) -> bool {
    // SAFETY: the caller's word.
    unsafe { !table.is_null() && (*table).magic == MAGIC && (*table).size as usize >= size_of::<Table>() }
}

/// Keeps the table in step with the process's state.
pub(crate) fn set_on(recording: bool) {
    LOCAL.on.store(if recording { on::ON } else { on::OFF }, Ordering::Release);
}

/// All name ids have become invalid.
pub(crate) fn next_epoch() {
    LOCAL.epoch.fetch_add(1, Ordering::Release);
}

static BINDER: AtomicUsize = AtomicUsize::new(0);
static STARTER: AtomicUsize = AtomicUsize::new(0);

/// The front-end that carries hooks says how to bind them.
pub fn offer_binding(binder: extern "C" fn(u32) -> c_int) {
    BINDER.store(binder as usize, Ordering::Release);
}

/// How a process starts to record: the front-end knows the environment and finds the C library's functions.
pub type Starter = unsafe extern "C" fn(live: *const u8, length: usize) -> c_int;

/// The front-end that carries this recorder says how to start it.
pub fn offer_start(starter: Starter) {
    STARTER.store(starter as usize, Ordering::Release);
}

extern "C" fn ticks() -> u64 {
    clock::ticks()
}

unsafe extern "C" fn intern(text: *const u8, length: usize) -> u32 {
    // SAFETY: the caller passes a text of this length.
    process::intern(0, unsafe { core::slice::from_raw_parts(text, length) })
}

unsafe extern "C" fn event(event: *const Event<'_>) {
    // SAFETY: the caller passes a complete event whose payload is as long as it says.
    thread::record_annotation(unsafe { &*event });
}

unsafe extern "C" fn read_usage(out: *mut Usage) {
    // SAFETY: the caller passes room for a reading.
    unsafe { *out = usage::now() };
}

unsafe extern "C" fn start(live: *const u8, length: usize) -> c_int {
    match STARTER.load(Ordering::Acquire) {
        0 => -1,
        // SAFETY: only `offer_start` stores here, and only a `Starter`; the caller passes a path of this length.
        starter => unsafe { core::mem::transmute::<usize, Starter>(starter)(live, length) },
    }
}

extern "C" fn stop(status: c_int) {
    process::stop(status);
}

extern "C" fn bind(binding: u32) -> c_int {
    match BINDER.load(Ordering::Acquire) {
        0 => -1,
        // SAFETY: only `offer_binding` stores here, and only a function of this type.
        binder => unsafe { core::mem::transmute::<usize, extern "C" fn(u32) -> c_int>(binder)(binding) },
    }
}

extern "C" fn at_end(then: Option<extern "C" fn(c_int)>) {
    process::call_at_end(then);
}

/// Entry points of a recorder that is not there.
mod nothing {
    use super::{AtomicU32, Event, MAGIC, Table, Usage, c_int};

    pub(super) const fn table(on: u32) -> Table {
        Table {
            magic: MAGIC,
            size: size_of::<Table>() as u32,
            on: AtomicU32::new(on),
            epoch: AtomicU32::new(0),
            wants_usage: AtomicU32::new(0),
            ticks,
            intern,
            event,
            usage,
            start,
            stop,
            bind,
            at_end,
        }
    }

    extern "C" fn ticks() -> u64 {
        0
    }

    unsafe extern "C" fn intern(_: *const u8, _: usize) -> u32 {
        0
    }

    unsafe extern "C" fn event(_: *const Event<'_>) {}

    unsafe extern "C" fn usage(_: *mut Usage) {}

    unsafe extern "C" fn start(_: *const u8, _: usize) -> c_int {
        -1
    }

    extern "C" fn stop(_: c_int) {}

    extern "C" fn bind(_: u32) -> c_int {
        -1
    }

    extern "C" fn at_end(_: Option<extern "C" fn(c_int)>) {}
}
