//! Recipes of stdio calls.
//!
//! Streams are buffered: a call moves other amounts between program and buffer than the kernel moves. Events carry the stream's
//! bytes and [`record_flags::STREAM`], and the coverage ledger mentions it. `ret` is in bytes for every call that moves some,
//! also if C returns items, a pointer or only success.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};

use libc::FILE;
use weftline_calls::Call;
use weftline_recorder::clock;
use weftline_recorder::layout::{NO_OFFSET, record_flags};
use weftline_recorder::thread::{self, Buffer, Characters, Fields};

use crate::files::Noted;
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

/// Fields of an event on a stream, at the end of the call.
#[inline(always)]
fn on(stream: *mut FILE, size: i64, ret: i64) -> Fields {
    note_buffer(stream);
    let (fd, path) = named(stream);
    Fields { flags: record_flags::STREAM, path, fd, detail: 0, size, ret, offset: NO_OFFSET, extra: 0 }
}

/// The pointers into a stream's buffer, at the beginning of glibc's `struct _IO_FILE`; also part of its public headers.
#[repr(C)]
struct Pointers {
    _flags: usize,
    read: usize,
    _read_end: usize,
    read_base: usize,
    write_base: usize,
    write: usize,
}

/// Remembers where the buffer's pointers are, if inlined code is known to use the stream, so that the next call can tell what that
/// moved in between.
#[inline(always)]
fn note_buffer(stream: *mut FILE) {
    if let Some(buffer) = thread::state().buffer(stream.cast()) {
        watch_buffer(stream, buffer);
    }
}

fn watch_buffer(stream: *mut FILE, buffer: &Buffer) {
    // SAFETY: a glibc stream, whose memory begins with these pointers.
    let now = unsafe { &*stream.cast::<Pointers>() };
    buffer.read.store(now.read, Ordering::Relaxed);
    buffer.write.store(now.write, Ordering::Relaxed);
}

fn forget_buffer(stream: *mut FILE) {
    if let Some(buffer) = thread::state().buffer(stream.cast()) {
        buffer.stream.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
}

/// Optimised programs have `getc_unlocked` and `putc_unlocked` inlined, which move the buffer's pointers and call nothing but
/// [`refill`] and [`spill`] at its ends. Once a stream was seen there, what happened to it since the thread's last call is
/// recorded at its next one, as folded calls of those names. Streams that are never seen there cost a look at four words.
#[inline(always)]
fn inlined(stream: *mut FILE) {
    let Some(buffer) = thread::state().buffer(stream.cast()) else { return };
    // SAFETY: as above; `buffer` is there, so the stream is not null.
    let now = unsafe { &*stream.cast::<Pointers>() };
    let moved = |then: usize, now: usize, base: usize| if base <= then && then < now { now - then } else { 0 };
    let read = moved(buffer.read.load(Ordering::Relaxed), now.read, now.read_base);
    let written = moved(buffer.write.load(Ordering::Relaxed), now.write, now.write_base);
    if read | written != 0 {
        record_inlined(stream, read, written);
    }
}

#[cold]
#[inline(never)]
fn record_inlined(stream: *mut FILE, read: usize, written: usize) {
    let at = clock::ticks();
    for (call, bytes) in [(Call::getc_unlocked, read), (Call::putc_unlocked, written)] {
        if bytes > 0 {
            let made =
                Characters { stream: stream.cast(), file: named(stream), calls: bytes as u32, bytes: bytes as i64 };
            thread::record_folded(call, at, at, &made);
        }
    }
    note_buffer(stream);
}

/// A variable of the C library that holds a standard stream; its address is looked up once.
struct Standard {
    name: &'static CStr,
    address: AtomicUsize,
}

static STDIN: Standard = Standard { name: c"stdin", address: AtomicUsize::new(0) };
static STDOUT: Standard = Standard { name: c"stdout", address: AtomicUsize::new(0) };

impl Standard {
    /// The stream that the program sees now; it may have assigned another one.
    #[inline(always)]
    fn stream(&self) -> *mut FILE {
        let mut address = self.address.load(Ordering::Relaxed);
        if address == 0 {
            address = resolve::global(self.name).unwrap_or(0);
            self.address.store(address, Ordering::Relaxed);
        }
        // SAFETY: zero, or the address of the C library's variable, which holds a stream.
        if address == 0 { core::ptr::null_mut() } else { unsafe { *(address as *const *mut FILE) } }
    }
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
    inlined(stream);
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
    inlined(stream);
    forget_buffer(stream);
    let fd = descriptor(stream);
    let path = if fd >= 0 { files::closing(fd) } else { Noted::new(0) };
    after(move |ret, _| Some(Fields { flags: record_flags::STREAM, path: path.name(), fd, ret, ..Fields::NONE }))
}

#[inline(always)]
fn items(stream: *mut FILE, size: usize, n: usize) -> impl Recipe {
    inlined(stream);
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
    inlined(stream);
    after(move |_, bits| Some(on(stream, i64::from(n), length(bits as *const c_char))))
}

pub(crate) fn write_text(stream: *mut FILE, text: *const c_char) -> impl Recipe {
    inlined(stream);
    after(move |ret, _| {
        let bytes = length(text);
        Some(on(stream, bytes, if ret >= 0 { bytes } else { ret }))
    })
}

pub(crate) fn write_line(text: *const c_char) -> impl Recipe {
    inlined(STDOUT.stream());
    after(move |ret, _| {
        let bytes = length(text) + 1;
        Some(on(STDOUT.stream(), bytes, if ret >= 0 { bytes } else { ret }))
    })
}

/// Calls that return the bytes they read; -1 at the end of the file is not an error.
pub(crate) fn read_bytes(stream: *mut FILE) -> impl Recipe {
    inlined(stream);
    after(move |_, bits| Some(on(stream, -1, (bits as isize as i64).max(0))))
}

/// Calls that return the bytes they wrote.
pub(crate) fn write_bytes(stream: *mut FILE) -> impl Recipe {
    inlined(stream);
    after(move |ret, _| Some(on(stream, -1, ret)))
}

pub(crate) fn write_standard() -> impl Recipe {
    inlined(STDOUT.stream());
    after(|ret, _| Some(on(STDOUT.stream(), -1, ret)))
}

/// `dprintf`: written to the descriptor at once.
pub(crate) fn write_formatted(fd: c_int) -> impl Recipe {
    after(move |ret, _| {
        let path = if ret >= 0 { files::name(fd) } else { 0 };
        let offset = if ret >= 0 { files::advance(fd, ret) } else { NO_OFFSET };
        Some(Fields { path, fd, ret, offset, ..Fields::NONE })
    })
}

/// Items converted, 0 at the end of the file; the bytes consumed are not known.
pub(crate) fn scan(stream: *mut FILE) -> impl Recipe {
    inlined(stream);
    after(move |_, bits| Some(on(stream, -1, i64::from(bits as i32).max(0))))
}

pub(crate) fn scan_standard() -> impl Recipe {
    inlined(STDIN.stream());
    after(|_, bits| Some(on(STDIN.stream(), -1, i64::from(bits as i32).max(0))))
}

pub(crate) fn seek_stream(stream: *mut FILE, offset: i64, whence: c_int) -> impl Recipe {
    inlined(stream);
    after(move |ret, _| Some(Fields { detail: whence as u32, offset, ..on(stream, -1, ret) }))
}

pub(crate) fn on_stream(stream: *mut FILE) -> impl Recipe {
    inlined(stream);
    after(move |ret, _| Some(on(stream, -1, ret)))
}

pub(crate) fn set_buffer(stream: *mut FILE, size: usize, mode: c_int) -> impl Recipe {
    after(move |ret, _| Some(Fields { detail: mode as u32, ..on(stream, size as i64, ret) }))
}

/// A character-level call: folded with its neighbours.
pub(crate) struct Character {
    stream: *mut FILE,
}

impl Character {
    #[inline(always)]
    fn on(stream: *mut FILE) -> Character {
        inlined(stream);
        Character { stream }
    }
}

impl Recipe for Character {
    fn after(self, _ret: i64, _bits: usize) -> Option<Fields> {
        None
    }

    #[inline(always)]
    fn store(self, call: Call, start: u64, end: u64, _ret: i64, bits: usize) {
        let bytes = i64::from(bits as i32 != libc::EOF);
        let made = Characters { stream: self.stream.cast(), file: named(self.stream), calls: 1, bytes };
        thread::record_folded(call, start, end, &made);
        note_buffer(self.stream);
    }
}

pub(crate) fn read_char(stream: *mut FILE) -> impl Recipe {
    Character::on(stream)
}

pub(crate) fn write_char(stream: *mut FILE) -> impl Recipe {
    Character::on(stream)
}

pub(crate) fn read_char_standard() -> impl Recipe {
    Character::on(STDIN.stream())
}

pub(crate) fn write_char_standard() -> impl Recipe {
    Character::on(STDOUT.stream())
}

/// Called by inlined code at the end of a buffer, with one character of its own.
pub(crate) struct BufferEnd(Character);

impl Recipe for BufferEnd {
    fn after(self, _ret: i64, _bits: usize) -> Option<Fields> {
        None
    }

    fn store(self, call: Call, start: u64, end: u64, ret: i64, bits: usize) {
        let stream = self.0.stream;
        self.0.store(call, start, end, ret, bits);
        let thread = thread::state();
        watch_buffer(stream, thread.buffer(stream.cast()).unwrap_or_else(|| thread.new_buffer(stream.cast())));
    }
}

/// Inlined `getc_unlocked` found its buffer empty.
pub(crate) fn refill(stream: *mut FILE) -> impl Recipe {
    BufferEnd(Character::on(stream))
}

/// Inlined `putc_unlocked` found its buffer full.
pub(crate) fn spill(stream: *mut FILE) -> impl Recipe {
    BufferEnd(Character::on(stream))
}
