//! The library's own life in the process: constructor, first use, thread ends, destructor.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use weftline_recorder::process::{self, LIVE_VARIABLE, Start};
use weftline_recorder::{clock, thread};

use crate::resolve;

/// What hooks of I/O calls do.
const UNDECIDED: u32 = 0;
const RECORD: u32 = 1;
const PASS: u32 = 2;
static MODE: AtomicU32 = AtomicU32::new(UNDECIDED);
static EXIT_STATUS: AtomicU32 = AtomicU32::new(0);
/// The pthread key whose destructor closes a thread's segment, plus one.
static THREAD_KEY: AtomicU32 = AtomicU32::new(0);
static SET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);

type KeyCreate = unsafe extern "C" fn(*mut u32, extern "C" fn(*mut c_void)) -> c_int;
type SetSpecific = unsafe extern "C" fn(u32, *const c_void) -> c_int;

unsafe extern "C" {
    fn getauxval(kind: u64) -> u64;
}

/// Is this call to be recorded?
#[inline(always)]
pub(crate) fn recording() -> bool {
    match MODE.load(Ordering::Relaxed) {
        RECORD => true,
        PASS => false,
        _ => first_use(),
    }
}

/// Is the process traced at all, even if without I/O calls?
pub(crate) fn traced() -> bool {
    if MODE.load(Ordering::Relaxed) == UNDECIDED {
        first_use();
    }
    !process::is_off()
}

/// A hook ran before the constructor: some library's own constructor does I/O.
#[cold]
#[inline(never)]
fn first_use() -> bool {
    // SAFETY: `environ` is the C library's variable, a null-terminated array of strings.
    let environment =
        resolve::global(c"environ").map_or(core::ptr::null(), |at| unsafe { *(at as *const *const *const c_char) });
    begin(environment);
    MODE.load(Ordering::Relaxed) == RECORD
}

fn begin(environment: *const *const c_char) {
    // SAFETY: the environment array of the running process.
    let lookup = |name: &str| unsafe { process::variable(environment, name) };
    let Some(live) = lookup(LIVE_VARIABLE) else {
        process::turn_off();
        MODE.store(PASS, Ordering::Relaxed);
        return;
    };
    // SAFETY: the address of a function with this name has this type.
    let gettime =
        resolve::next(c"clock_gettime").map(|at| unsafe { core::mem::transmute::<usize, clock::ClockGettime>(at) });
    watch_thread_ends();
    crate::files::prepare();
    process::watch_names(crate::files::forget_names);
    // SAFETY: AT_RANDOM is the address of sixteen bytes that the kernel gave every process.
    let random = unsafe { getauxval(libc::AT_RANDOM) } as *const u8;
    process::start(&Start { live, gettime, variable: &lookup, random });
    MODE.store(if process::is_off() || process::without_io() { PASS } else { RECORD }, Ordering::Relaxed);
}

fn watch_thread_ends() {
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
    if process::is_unborn() {
        begin(environment);
    }
}

extern "C" fn destructor() {
    ending(EXIT_STATUS.load(Ordering::Relaxed) as i32);
}

/// `exit(status)` was called; the destructor will run.
pub(crate) fn exit_called(status: c_int) {
    EXIT_STATUS.store(status as u32, Ordering::Relaxed);
}

/// The process ends here, unless this is a `vfork` child, whose memory is its parent's.
pub(crate) fn ending(status: c_int) {
    if process::is_off() || thread::state().in_vfork() {
        return;
    }
    process::note_end(status);
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
