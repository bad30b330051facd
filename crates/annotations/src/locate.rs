//! Finds the process's one recorder.
//!
//! Under `weft run` the preload library is in every process and records; its table is found by name. Without it, nothing
//! is recorded until a front-end starts recording: a session of `weftline-session` loads the preload library ([`load`]), so that I/O
//! calls are recorded as well, or starts this crate's own recorder (feature `own-recorder`).
#![allow(unsafe_code, reason = "the dynamic loader's functions, and the table's")]

#[cfg(feature = "own-recorder")]
mod own;

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use weftline_recorder::table::{self, Table, on};

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
    let table = found.unwrap_or_else(own_or_none);
    table::adopt(table);
    table
}

#[cfg(feature = "own-recorder")]
fn own_or_none() -> &'static Table {
    own::ready()
}

#[cfg(not(feature = "own-recorder"))]
fn own_or_none() -> &'static Table {
    table::absent()
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
    let table = found.ok_or_else(|| format!("{} is not a weft library of this version", library.display()))?;
    table::adopt(table);
    Ok(table)
}

/// Is a library of this name in the process? Nothing is loaded.
#[cfg(feature = "gpu")]
pub(crate) fn is_loaded(name: &CStr) -> bool {
    // SAFETY: asks the loader for a library that is there already, and gives it back.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        !handle.is_null() && libc::dlclose(handle) == 0
    }
}

fn loader_says() -> String {
    // SAFETY: `dlerror` gives null or a string that stays until the thread's next call of the loader.
    let text = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
    text.map_or_else(|| "the library cannot be loaded".to_owned(), |text| text.to_string_lossy().into_owned())
}
