//! The recorder that is part of this crate: for programs that record without any library of ours installed.

use std::ffi::{c_char, c_int, c_void};

use weftline_recorder::process::{self, Start};
use weftline_recorder::table::{self, Table};
use weftline_recorder::{clock, thread};

/// This crate's recorder, ready to be started.
pub(super) fn ready() -> &'static Table {
    table::offer_start(start_own);
    table::local()
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

unsafe extern "C" fn start_own(live: *const u8, length: usize) -> c_int {
    // SAFETY: the caller passes a path of this length.
    let live = unsafe { std::slice::from_raw_parts(live, length) };
    // SAFETY: the environment as it is now, which the program does not change while it starts to record.
    let variable = |name: &str| unsafe { process::variable(environ, name) };
    // SAFETY: AT_RANDOM is the address of sixteen bytes that the kernel gave every process.
    let random = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const u8;
    let gettime: Option<clock::ClockGettime> = Some(libc::clock_gettime);
    thread::watch_threads(thread_begins);
    process::start(&Start { live, gettime, variable: &variable, random, late: true });
    if process::is_off() {
        return -1;
    }
    promote();
    0
}

/// Makes this library's symbols visible to those that look for a recorder later: an extension module is loaded so that
/// nobody else sees its symbols.
fn promote() {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address of a function of this library; `info` is filled in when the result is not zero, and its path is
    // the loader's own.
    unsafe {
        if libc::dladdr(start_own as *const c_void, info.as_mut_ptr()) != 0 {
            let path = (*info.as_ptr()).dli_fname;
            libc::dlopen(path, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_GLOBAL);
        }
    }
}

/// Gives a thread's segment back when the thread ends.
struct ThreadEnd;

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        thread::state().close();
    }
}

thread_local! {
    static THREAD_END: ThreadEnd = const { ThreadEnd };
}

extern "C" fn thread_begins() {
    // A thread that is ending already has no storage left: its segment is found by the drain.
    let _ = THREAD_END.try_with(|_| ());
}
