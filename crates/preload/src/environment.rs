//! The environment of the next image: restores our two variables if a program removed them, and removes LD_PRELOAD
//! if the target cannot load our library.
//!
//! A process that started recording by a call ([`life::follows_children`]) passes every environment on unchanged.
//!
//! It is built on the stack: a hook may run in a `vfork` child, where allocated memory would leak in the parent.

use core::ffi::{CStr, c_char};

use weftline_recorder::arena;
use weftline_recorder::elf::{self, Verdict};
use weftline_recorder::process::{self, LIVE_VARIABLE};

use crate::life;

/// Entries of a usual environment, and of the largest that is rewritten; a larger one is passed on as it is.
const USUAL: usize = 512;
const LARGEST: usize = 16384;
/// Longest LD_PRELOAD value that is rewritten.
const VALUE: usize = 8192;
const PRELOAD: &[u8] = b"LD_PRELOAD=";

/// What will become of the program at `path`, our own reachability included.
pub(crate) fn verdict(path: &CStr) -> Verdict {
    let reachable = life::library().is_some_and(|library| weftline_recorder::sys::accessible(library, libc::R_OK))
        && arena::live_directory_reachable();
    if reachable { elf::inspect(path) } else { Verdict::NotReachable }
}

enum Change {
    /// Pass the environment on.
    None,
    Add,
    Remove,
}

/// Calls `run` with `environment` changed as `verdict` needs it.
///
/// # Safety
/// `environment` must be null or a null-terminated array of C strings.
pub(crate) unsafe fn with_environment<R>(
    environment: *const *const c_char,
    verdict: Verdict,
    run: impl FnOnce(*const *const c_char) -> R,
) -> R {
    if !life::follows_children() {
        return run(environment);
    }
    // SAFETY: the caller vouches for the array.
    let (count, preload, has_live) = unsafe { survey(environment) };
    let library = life::library().map(CStr::to_bytes).unwrap_or_default();
    let has_library = preload.is_some_and(|value| parts(value).any(|part| part == library));
    let change = if verdict.forbids_preload() {
        if has_library { Change::Remove } else { Change::None }
    } else if has_library && has_live {
        Change::None
    } else {
        Change::Add
    };
    match change {
        Change::None => run(environment),
        // SAFETY: as above.
        _ if count < USUAL => unsafe {
            rewrite::<{ USUAL + 4 }, R>(environment, preload, has_live, &change, library, run)
        },
        // SAFETY: as above.
        _ if count < LARGEST => unsafe {
            rewrite::<{ LARGEST + 4 }, R>(environment, preload, has_live, &change, library, run)
        },
        _ => run(environment),
    }
}

/// Number of entries, value of LD_PRELOAD, and whether the live directory is named. A program that names another one
/// (a run inside a run) is left alone.
unsafe fn survey<'a>(environment: *const *const c_char) -> (usize, Option<&'a [u8]>, bool) {
    let mut count = 0;
    // SAFETY: a null-terminated array of C strings.
    unsafe {
        while !environment.is_null() && !(*environment.add(count)).is_null() {
            count += 1;
        }
        let preload = process::variable(environment, "LD_PRELOAD");
        (count, preload, process::variable(environment, LIVE_VARIABLE).is_some())
    }
}

/// LD_PRELOAD is separated by colons or spaces.
fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b':' || *byte == b' ').filter(|part| !part.is_empty())
}

#[inline(never)]
unsafe fn rewrite<const ROOM: usize, R>(
    environment: *const *const c_char,
    preload: Option<&[u8]>,
    has_live: bool,
    change: &Change,
    library: &[u8],
    run: impl FnOnce(*const *const c_char) -> R,
) -> R {
    let mut entries = [core::ptr::null::<c_char>(); ROOM];
    let mut value = [0u8; VALUE];
    let mut live = [0u8; arena::LIVE_PATH_MAX + 64];
    let mut used = 0;
    let mut text = Text { buf: &mut value, at: 0, fits: true };
    text.push(PRELOAD);
    let mut first = true;
    let kept = preload.into_iter().flat_map(parts).filter(|part| *part != library);
    let added = matches!(change, Change::Add).then_some(library);
    for part in kept.chain(added) {
        if !first {
            text.push(b":");
        }
        first = false;
        text.push(part);
    }
    let (fits, empty) = (text.fits, first);
    if !fits {
        return run(environment);
    }
    // SAFETY: a null-terminated array of C strings with fewer than ROOM - 3 entries, as the caller counted.
    unsafe {
        let mut at = environment;
        while !at.is_null() && !(*at).is_null() {
            if !CStr::from_ptr(*at).to_bytes().starts_with(PRELOAD) {
                entries[used] = *at;
                used += 1;
            }
            at = at.add(1);
        }
    }
    if !empty {
        entries[used] = value.as_ptr().cast();
        used += 1;
    }
    if matches!(change, Change::Add) && !has_live {
        let mut text = Text { buf: &mut live, at: 0, fits: true };
        text.push(LIVE_VARIABLE.as_bytes());
        text.push(b"=");
        text.push(arena::live_directory());
        entries[used] = live.as_ptr().cast();
    }
    run(entries.as_ptr())
}

/// Appends to a buffer that always keeps a NUL at its end.
struct Text<'a> {
    buf: &'a mut [u8],
    at: usize,
    fits: bool,
}

impl Text<'_> {
    fn push(&mut self, bytes: &[u8]) {
        if self.at + bytes.len() < self.buf.len() {
            self.buf[self.at..self.at + bytes.len()].copy_from_slice(bytes);
            self.at += bytes.len();
        } else {
            self.fits = false;
        }
    }
}
