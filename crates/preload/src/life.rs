//! The library's own life in the process: constructor, first use, starts and stops, thread ends, destructor.
//!
//! A program with [`LIVE_VARIABLE`] in its environment records from the constructor on, and so do its children. Otherwise the
//! library does nothing until a front-end calls the table's `start` ([`start_late`]). That applies to this process and its
//! forks, not to the programs that it executes: those decide by their own environment.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use weftline_recorder::layout::Loss;
use weftline_recorder::process::{self, LIVE_VARIABLE, Start};
use weftline_recorder::table::{self, Table, on};
use weftline_recorder::{clock, thread};

use crate::exclusive::Exclusive;
use crate::object::{self, Object};
use crate::{bind, files, foreign, mappings, resolve};

/// What hooks of I/O calls do.
const UNDECIDED: u32 = 0;
const RECORD: u32 = 1;
const PASS: u32 = 2;
/// As [`RECORD`], while some child may run on thread storage of its own ([`foreign`]).
const LOOK: u32 = 3;
static MODE: AtomicU32 = AtomicU32::new(UNDECIDED);
/// Not 0 when the newest start was asked for by the environment, not by a call.
static FROM_ENVIRONMENT: AtomicU32 = AtomicU32::new(0);
static EXIT_STATUS: AtomicU32 = AtomicU32::new(0);
/// The pthread key whose destructor closes a thread's segment, plus one.
static THREAD_KEY: AtomicU32 = AtomicU32::new(0);
/// Not 0 once it was tried to create that key.
static THREAD_KEY_TRIED: AtomicU32 = AtomicU32::new(0);
static SET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);

type KeyCreate = unsafe extern "C" fn(*mut u32, extern "C" fn(*mut c_void)) -> c_int;
type SetSpecific = unsafe extern "C" fn(u32, *const c_void) -> c_int;

unsafe extern "C" {
    fn getauxval(kind: u64) -> u64;
}

/// Is this call to be recorded?
#[inline(always)]
pub(crate) fn recording() -> bool {
    let mode = MODE.load(Ordering::Relaxed);
    // The usual case is asked for first.
    if mode == RECORD { thread::has_state() || pass_foreign() } else { mode != PASS && decide() }
}

/// Is the process traced at all, even if without I/O calls?
pub(crate) fn traced() -> bool {
    if !own_thread() {
        return false;
    }
    if MODE.load(Ordering::Relaxed) == UNDECIDED {
        first_use();
    }
    !process::is_off()
}

/// Does the calling thread have the C library's storage, in which its state lies? What needs the state may be used only then.
pub(crate) fn own_thread() -> bool {
    thread::has_state() && !foreign::here()
}

/// A call of a child that has storage of its own: counted, and not recorded.
#[cold]
#[inline(never)]
fn pass_foreign() -> bool {
    process::count_loss(Loss::OwnStorage);
    false
}

#[cold]
#[inline(never)]
fn decide() -> bool {
    match MODE.load(Ordering::Relaxed) {
        UNDECIDED => own_thread() && first_use(),
        LOOK => own_thread() || pass_foreign(),
        mode => mode == RECORD,
    }
}

/// Calls `make`, which makes a child that runs on the storage at `base`. It is gone when the call is back if it `suspends` its parent.
pub(crate) fn with_foreign_child(base: *mut c_void, suspends: bool, make: impl FnOnce() -> c_int) -> c_int {
    let expected = foreign::expect(base);
    let _ = MODE.compare_exchange(RECORD, LOOK, Ordering::AcqRel, Ordering::Relaxed);
    let child = make();
    if suspends || child < 0 {
        expected.forget();
        if !foreign::any() {
            let _ = MODE.compare_exchange(LOOK, RECORD, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
    child
}

/// Are the programs that this one executes to be traced as well?
pub(crate) fn follows_children() -> bool {
    FROM_ENVIRONMENT.load(Ordering::Relaxed) != 0
}

/// Had the program a life before its recording began, in which it may have opened files?
pub(crate) fn started_late() -> bool {
    !process::is_off() && !follows_children()
}

/// A hook ran before the constructor: some library's own constructor does I/O.
#[cold]
#[inline(never)]
fn first_use() -> bool {
    begin(environment());
    matches!(MODE.load(Ordering::Relaxed), RECORD | LOOK)
}

/// Decides by the environment whether this process is traced.
fn begin(environment: *const *const c_char) {
    // SAFETY: the environment array of the running process.
    match unsafe { process::variable(environment, LIVE_VARIABLE) } {
        Some(live) => {
            FROM_ENVIRONMENT.store(1, Ordering::Relaxed);
            record_into(live, environment);
        }
        None => {
            process::turn_off();
            MODE.store(PASS, Ordering::Relaxed);
        }
    }
}

/// The table's `start`: records from now on. Not for signal handlers; see [`object::each_loaded`].
unsafe extern "C" fn start_late(live: *const u8, length: usize) -> c_int {
    if thread::state().in_vfork() {
        return -1;
    }
    let Some(_alone) = Exclusive::take() else { return -1 };
    if process::is_off() {
        FROM_ENVIRONMENT.store(0, Ordering::Relaxed);
        // SAFETY: the caller passes a path of this length.
        record_into(unsafe { core::slice::from_raw_parts(live, length) }, environment());
    }
    if process::is_off() { -1 } else { 0 }
}

fn record_into(live: &[u8], environment: *const *const c_char) {
    // SAFETY: the environment array of the running process.
    let lookup = |name: &str| unsafe { process::variable(environment, name) };
    // SAFETY: the address of a function with this name has this type.
    let gettime =
        resolve::next(c"clock_gettime").map(|at| unsafe { core::mem::transmute::<usize, clock::ClockGettime>(at) });
    watch_thread_ends();
    files::prepare();
    // What was known from an earlier recording, the program has changed unseen since.
    files::forget();
    mappings::forget();
    process::watch_names(forget_names);
    process::watch_stop(stopped);
    // SAFETY: AT_RANDOM is the address of sixteen bytes that the kernel gave every process.
    let random = unsafe { getauxval(libc::AT_RANDOM) } as *const u8;
    process::start(&Start { live, gettime, variable: &lookup, random, late: !follows_children() });
    let records = !process::is_off();
    let mode = match records && !process::without_io() {
        false => PASS,
        true if foreign::any() => LOOK,
        true => RECORD,
    };
    MODE.store(mode, Ordering::Relaxed);
    if records {
        announce();
    }
}

/// Tells every loaded object that carries a recorder that this one records.
fn announce() {
    let hash = object::hash(table::SYMBOL);
    object::each_loaded(|info| {
        // SAFETY: the loader's description of an object that stays loaded while its callback runs; the symbol is a cell wherever it
        // is defined.
        unsafe {
            if let Some(object) = Object::of(info)
                && let Some(symbol) = object.find(table::SYMBOL, hash)
            {
                table::announce(table::local(), object.address(symbol) as *const AtomicPtr<Table>);
            }
        }
        true
    });
}

/// Recording has stopped: hooks pass calls on.
extern "C" fn stopped() {
    MODE.store(PASS, Ordering::Relaxed);
}

/// Name ids are of another arena now.
extern "C" fn forget_names() {
    files::forget_names();
    mappings::forget_names();
}

fn watch_thread_ends() {
    if THREAD_KEY_TRIED.swap(1, Ordering::Relaxed) != 0 {
        return;
    }
    let create = resolve::global(c"pthread_key_create").or_else(|| resolve::global(c"__pthread_key_create"));
    let (Some(create), Some(set)) = (create, resolve::global(c"pthread_setspecific")) else { return };
    let mut key = 0;
    // SAFETY: addresses of the functions with these names; glibc's first 32 keys need no allocation to be set.
    let made = unsafe { core::mem::transmute::<usize, KeyCreate>(create)(&raw mut key, thread_ends) } == 0;
    if made && key < 32 {
        SET_SPECIFIC.store(set, Ordering::Relaxed);
        THREAD_KEY.store(key + 1, Ordering::Release);
        thread::watch_threads(thread_begins);
    }
}

extern "C" fn thread_begins() {
    let set = SET_SPECIFIC.load(Ordering::Relaxed);
    if let Some(key) = THREAD_KEY.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the address of pthread_setspecific, with a key that was created; any non-null value makes the destructor run.
        unsafe { core::mem::transmute::<usize, SetSpecific>(set)(key, core::ptr::without_provenance(1)) };
    }
}

extern "C" fn thread_ends(_value: *mut c_void) {
    thread::state().close();
}

extern "C" fn constructor(_argc: c_int, _argv: *const *const c_char, environment: *const *const c_char) {
    resolve::prepare();
    // The cell may be shared with a library that came earlier and records by itself.
    if table::current().on.load(Ordering::Relaxed) != on::ON {
        table::adopt(table::local());
    }
    // And if it is shared, this library's own copy is the one that its loader will find by name.
    let own = resolve::own();
    if let Some(symbol) = own.find(table::SYMBOL, object::hash(table::SYMBOL)) {
        // SAFETY: this library's own cell.
        unsafe { table::announce(table::local(), own.address(symbol) as *const AtomicPtr<Table>) };
    }
    table::offer_start(start_late);
    table::offer_binding(bind::bind);
    if process::is_unborn() {
        begin(environment);
    }
}

extern "C" fn destructor() {
    ending(EXIT_STATUS.load(Ordering::Relaxed) as i32, false);
}

/// `exit(status)` was called; the destructor will run.
pub(crate) fn exit_called(status: c_int) {
    EXIT_STATUS.store(status as u32, Ordering::Relaxed);
}

/// `_exit` or one of its kind was called: nothing of the C library will run any more.
pub(crate) fn ends_suddenly(status: c_int) {
    ending(status, true);
}

/// The process ends here, unless this is a `vfork` child, whose memory is its parent's.
fn ending(status: c_int, sudden: bool) {
    if !own_thread() || thread::state().in_vfork() {
        return;
    }
    if traced() {
        process::note_end(status);
    }
    process::run_at_end(sudden);
}

/// The environment that `exec*` without an environment argument would pass on.
pub(crate) fn environment() -> *const *const c_char {
    // SAFETY: `environ` is the C library's variable.
    resolve::global(c"environ").map_or(core::ptr::null(), |at| unsafe { *(at as *const *const *const c_char) })
}

/// Path of this library as a C string.
pub(crate) fn library() -> Option<&'static CStr> {
    resolve::own_path()
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = constructor;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
