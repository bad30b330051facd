//! Finds the process's one recorder.
//!
//! Under `weft run` the preload library is in every process and records; its table is found by name. Where there is none this
//! crate's own recorder stays off until somebody starts it: a session of `weftline-standalone`, which may also load
//! the preload library first ([`load`]) so that I/O calls are recorded as well.
#![allow(unsafe_code, reason = "the dynamic loader's functions, and the table's")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use weftline_recorder::process::{self, Start};
use weftline_recorder::table::{self, Table, on};
use weftline_recorder::{clock, thread};

/// The recorder, if it records at the moment.
#[inline(always)]
pub fn recording() -> Option<&'static Table> {
    let table = table::current();
    match table.on.load(Ordering::Relaxed) {
        on::OFF => None,
        on::ON => Some(table),
        _ => first_look(),
    }
}

#[cold]
fn first_look() -> Option<&'static Table> {
    let table = find();
    (table.on.load(Ordering::Relaxed) == on::ON).then_some(table)
}

/// The recorder of this process: that of a library which came earlier, or this crate's own. It may be off.
pub fn find() -> &'static Table {
    let table = table::current();
    if table.on.load(Ordering::Relaxed) != on::UNKNOWN {
        return table;
    }
    // SAFETY: a look-up of a symbol by name.
    let cell = unsafe { libc::dlsym(libc::RTLD_DEFAULT, table::SYMBOL.as_ptr()) };
    // SAFETY: a symbol of this name is such a cell; libraries that carry one are never unloaded.
    let found = unsafe { table::in_cell(cell.cast_const().cast()) };
    let table = found.unwrap_or_else(own);
    table::adopt(table);
    table
}

/// Loads the preload library, so that its recorder and its hooks are this process's. Does nothing where something records already.
pub fn load(library: &Path) -> Result<&'static Table, String> {
    let known = find();
    if known.on.load(Ordering::Relaxed) == on::ON {
        return Ok(known);
    }
    let path = CString::new(library.as_os_str().as_bytes()).map_err(|_| "a path with a NUL in it".to_owned())?;
    // SAFETY: loads a library whose constructor only looks at the environment.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        return Err(loader_says());
    }
    // SAFETY: a look-up in a library that stays loaded: the handle is never closed.
    let cell = unsafe { libc::dlsym(handle, table::SYMBOL.as_ptr()) };
    // SAFETY: a symbol of this name is such a cell.
    let found = unsafe { table::in_cell(cell.cast_const().cast()) };
    let table = found.ok_or_else(|| format!("{} is not a library of this version", library.display()))?;
    table::adopt(table);
    Ok(table)
}

fn loader_says() -> String {
    // SAFETY: `dlerror` gives null or a string that stays until the thread's next call of the loader.
    let text = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
    text.map_or_else(|| "the library cannot be loaded".to_owned(), |text| text.to_string_lossy().into_owned())
}

/// This crate's own recorder, ready to be started.
fn own() -> &'static Table {
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
    process::start(&Start { live, gettime, variable: &variable, random });
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
