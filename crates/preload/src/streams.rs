//! Recipes of stdio calls.
//!
//! Streams are buffered: what a call moves between program and buffer is not what the kernel sees. Events carry the stream's
//! bytes and [`record_flags::STREAM`], and the coverage ledger says so. `ret` is in bytes for every call that moves some,
//! also where C returns items, a pointer or a mere success.

use core::ffi::{CStr, c_char, c_int};

use libc::FILE;
use weftline_recorder::calls::Call;
use weftline_recorder::layout::{NO_OFFSET, record_flags};
use weftline_recorder::thread::{self, Fields};

use crate::hooks::Recipe;
use crate::recipes::after;
use crate::{files, resolve};

/// Offset of `_fileno` in glibc's `struct _IO_FILE`, part of its public headers and never moved on 64-bit systems.
const FILENO_AT: usize = 112;

/// Descriptor of a stream; negative for streams without one. Not through `fileno`, which would set errno for those.
pub(crate) fn descriptor(stream: *mut FILE) -> c_int {
    if stream.is_null() {
        return -1;
    }
    // SAFETY: a stream that the program passed to a stdio function is a glibc FILE.
    unsafe { *stream.byte_add(FILENO_AT).cast::<c_int>() }
}

fn named(stream: *mut FILE) -> (c_int, u32) {
    let fd = descriptor(stream);
    if fd >= 0 { (fd, files::name(fd)) } else { (-1, 0) }
}

/// Fields of an event on a stream.
#[inline(always)]
fn on(stream: *mut FILE, size: i64, ret: i64) -> Fields {
    let (fd, path) = named(stream);
    Fields { flags: record_flags::STREAM, path, fd, detail: 0, size, ret, offset: NO_OFFSET, extra: 0 }
}

/// The standard stream `stdin` or `stdout`, as the program sees the variable.
fn standard(name: &'static CStr) -> *mut FILE {
    // SAFETY: the C library's variable holds a stream pointer.
    resolve::global(name).map_or(core::ptr::null_mut(), |at| unsafe { *(at as *const *mut FILE) })
}

/// `files::path` for stdio, which dereferences its paths itself.
fn path_of(path: *const c_char) -> u32 {
    // SAFETY: the C library has already used the string.
    unsafe { files::path(libc::AT_FDCWD, path) }
}

pub(crate) fn open_stream(path: *const c_char) -> impl Recipe {
    after(move |ret, bits| {
        let name = path_of(path);
        let fd = descriptor(bits as *mut FILE);
        if fd >= 0 {
            files::opened(fd, name, false);
        }
        let ret = if fd >= 0 { i64::from(fd) } else { ret };
        Some(Fields { flags: record_flags::STREAM, path: name, fd, ret, ..Fields::NONE })
    })
}

pub(crate) fn reopen_stream(path: *const c_char, stream: *mut FILE) -> impl Recipe {
    thread::end_folds();
    let old = descriptor(stream);
    if old >= 0 && !path.is_null() {
        files::closing(old);
    }
    open_stream(path)
}

pub(crate) fn temp_stream() -> impl Recipe {
    after(|ret, bits| {
        let fd = descriptor(bits as *mut FILE);
        if fd >= 0 {
            files::fresh(fd);
        }
        Some(Fields { flags: record_flags::STREAM, ret: if fd >= 0 { i64::from(fd) } else { ret }, fd, ..Fields::NONE })
    })
}

pub(crate) fn open_process(_command: *const c_char) -> impl Recipe {
    temp_stream()
}

pub(crate) fn close_stream(stream: *mut FILE) -> impl Recipe {
    thread::end_folds();
    let fd = descriptor(stream);
    let path = if fd >= 0 { files::closing(fd) } else { 0 };
    after(move |ret, _| Some(Fields { flags: record_flags::STREAM, path, fd, ret, ..Fields::NONE }))
}

#[inline(always)]
fn items(stream: *mut FILE, size: usize, n: usize) -> impl Recipe {
    after(move |ret, _| Some(on(stream, size.wrapping_mul(n) as i64, ret.wrapping_mul(size as i64))))
}

pub(crate) fn read_items(stream: *mut FILE, size: usize, n: usize) -> impl Recipe {
    items(stream, size, n)
}

pub(crate) fn write_items(stream: *mut FILE, size: usize, n: usize) -> impl Recipe {
    items(stream, size, n)
}

/// Bytes of a C string that the C library has just read or written.
fn length(text: *const c_char) -> i64 {
    // SAFETY: see above.
    if text.is_null() { 0 } else { unsafe { CStr::from_ptr(text) }.to_bytes().len() as i64 }
}

pub(crate) fn read_text(stream: *mut FILE, n: c_int) -> impl Recipe {
    after(move |_, bits| Some(on(stream, i64::from(n), length(bits as *const c_char))))
}

pub(crate) fn write_text(stream: *mut FILE, text: *const c_char) -> impl Recipe {
    after(move |ret, _| {
        let bytes = length(text);
        Some(on(stream, bytes, if ret >= 0 { bytes } else { ret }))
    })
}

pub(crate) fn write_line(text: *const c_char) -> impl Recipe {
    after(move |ret, _| {
        let bytes = length(text) + 1;
        Some(on(standard(c"stdout"), bytes, if ret >= 0 { bytes } else { ret }))
    })
}

/// Calls that return the bytes they read; -1 at the end of the file is not an error.
pub(crate) fn read_bytes(stream: *mut FILE) -> impl Recipe {
    after(move |_, bits| Some(on(stream, -1, (bits as isize as i64).max(0))))
}

/// Calls that return the bytes they wrote.
pub(crate) fn write_bytes(stream: *mut FILE) -> impl Recipe {
    after(move |ret, _| Some(on(stream, -1, ret)))
}

pub(crate) fn write_standard() -> impl Recipe {
    after(|ret, _| Some(on(standard(c"stdout"), -1, ret)))
}

/// `dprintf`: written to the descriptor at once.
pub(crate) fn write_formatted(fd: c_int) -> impl Recipe {
    after(move |ret, _| {
        let path = if ret >= 0 { files::name(fd) } else { 0 };
        let offset = if ret >= 0 { files::advance(fd, ret) } else { NO_OFFSET };
        Some(Fields { path, fd, ret, offset, ..Fields::NONE })
    })
}

/// Items converted; the bytes consumed are not known.
pub(crate) fn scan(stream: *mut FILE) -> impl Recipe {
    after(move |_, bits| Some(on(stream, -1, i64::from(bits as i32))))
}

pub(crate) fn scan_standard() -> impl Recipe {
    after(|_, bits| Some(on(standard(c"stdin"), -1, i64::from(bits as i32))))
}

pub(crate) fn seek_stream(stream: *mut FILE, offset: i64, whence: c_int) -> impl Recipe {
    after(move |ret, _| Some(Fields { detail: whence as u32, offset, ..on(stream, -1, ret) }))
}

pub(crate) fn on_stream(stream: *mut FILE) -> impl Recipe {
    after(move |ret, _| Some(on(stream, -1, ret)))
}

pub(crate) fn set_buffer(stream: *mut FILE, size: usize, mode: c_int) -> impl Recipe {
    after(move |ret, _| Some(Fields { detail: mode as u32, ..on(stream, size as i64, ret) }))
}

/// A character-level call: folded with its neighbours.
pub(crate) struct Character(*mut FILE);

impl Recipe for Character {
    fn after(self, _ret: i64, _bits: usize) -> Option<Fields> {
        None
    }

    #[inline(always)]
    fn store(self, call: Call, start: u64, end: u64, _ret: i64, bits: usize) {
        let stream = self.0;
        let bytes = i64::from(bits as i32 != libc::EOF);
        thread::record_folded(call, stream.cast(), start, end, bytes, || named(stream));
    }
}

pub(crate) fn read_char(stream: *mut FILE) -> Character {
    Character(stream)
}

pub(crate) fn write_char(stream: *mut FILE) -> Character {
    Character(stream)
}

pub(crate) fn read_char_standard() -> Character {
    Character(standard(c"stdin"))
}

pub(crate) fn write_char_standard() -> Character {
    Character(standard(c"stdout"))
}
