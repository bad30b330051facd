//! When recording begins and ends: `DFTRACER_INIT` and the functions behind `DFTRACER_C_INIT` and `DFTRACER_C_FINI`.
//!
//! | `DFTRACER_INIT` | begins |
//! |---|---|
//! | `FUNCTION` | with the program's call of `initialize_main` |
//! | `PRELOAD`, `HYBRID` | when the library is loaded; the program's annotations join |
//!
//! Under `weft run` everything joins the run and no variable is needed. No finalize call is needed: the end of the process does it.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use weftline::front::Table;
use weftline::front::c::session::{Ask, ask, is_supervised};
use weftline::front::c::text;
use weftline::locate;

/// Did `initialize_*` begin this process's session? Then `finalize` ends it.
static BEGUN_BY_PROGRAM: AtomicBool = AtomicBool::new(false);

const UNKNOWN: u32 = 0;
const ALLOWED: u32 = 1;
const REFUSED: u32 = 2;
static ANNOTATIONS: AtomicU32 = AtomicU32::new(UNKNOWN);

/// The recorder, if the program's annotations are to be recorded. Whoever sets `DFTRACER_ENABLE=0` means it, under `weft run` too:
/// then the calls of the C library are recorded and annotations are not.
#[inline(always)]
pub(crate) fn recording() -> Option<&'static Table> {
    locate::recording().filter(|_| match ANNOTATIONS.load(Ordering::Relaxed) {
        UNKNOWN => first_look(),
        known => known == ALLOWED,
    })
}

#[cold]
fn first_look() -> bool {
    let value = std::env::var("DFTRACER_ENABLE").unwrap_or_default();
    let refused = ["0", "false", "no", "off"].iter().any(|word| value.trim().eq_ignore_ascii_case(word));
    ANNOTATIONS.store(if refused { REFUSED } else { ALLOWED }, Ordering::Relaxed);
    !refused
}

/// Whether the environment enables this library. Most processes that load it are not to be recorded.
fn asked(names: &[&str]) -> bool {
    let given = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    names.iter().any(given) && !weftline::is_on() && !is_supervised()
}

unsafe fn begin(what: Ask, log_file: *const c_char, data_dirs: *const c_char) {
    if !asked(&["DFTRACER_ENABLE", "DFTRACER_CONFIGURATION"]) {
        return;
    }
    // SAFETY: the caller passes NULL or C strings.
    let [log_file, data_dirs] = [log_file, data_dirs].map(|text| unsafe { text::c_string(text) });
    if ask(what, log_file, data_dirs) != 0 {
        BEGUN_BY_PROGRAM.store(true, Ordering::Relaxed);
    }
}

/// Begins to record annotations and calls of the C library. The process id is known; the third parameter is not looked at.
#[unsafe(no_mangle)]
unsafe extern "C" fn initialize_main(log_file: *const c_char, data_dirs: *const c_char, _process_id: *const c_int) {
    // SAFETY: as the header demands.
    unsafe { begin(Ask::DftracerBegin, log_file, data_dirs) };
}

/// Begins to record annotations alone.
#[unsafe(no_mangle)]
unsafe extern "C" fn initialize_no_bind(log_file: *const c_char, data_dirs: *const c_char, _process_id: *const c_int) {
    // SAFETY: as the header demands.
    unsafe { begin(Ask::DftracerBeginWithoutIo, log_file, data_dirs) };
}

/// Ends what `initialize_*` began and writes its file. Recording that the preloaded library or `weft run` began goes on.
#[unsafe(no_mangle)]
extern "C" fn finalize() {
    if BEGUN_BY_PROGRAM.swap(false, Ordering::Relaxed) {
        ask(Ask::Finish, None, None);
    }
}

extern "C" fn constructor() {
    if asked(&["DFTRACER_INIT", "DFTRACER_CONFIGURATION"]) {
        ask(Ask::DftracerLoaded, None, None);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
