//! Recipes of POSIX calls: one per shape in the table, with the same names.
//!
//! A recipe is built before the real call (there `close` forgets its descriptor) and evaluated after it.

use core::ffi::{c_char, c_int, c_uint, c_void};

use libc::{aiocb, iovec, siginfo_t};
use weftline_calls::Call;
use weftline_recorder::layout::{NO_OFFSET, record_flags, unseen_io};
use weftline_recorder::thread::Fields;
use weftline_recorder::{process, scratch, sys};

use crate::files::Noted;
use crate::hooks::Recipe;
use crate::{files, mappings};

/// A recipe that is a closure over what was noted before the call.
struct After<F>(F);

#[inline(always)]
pub(crate) fn after(store: impl FnOnce(i64, usize) -> Option<Fields>) -> impl Recipe {
    After(store)
}

impl<F: FnOnce(i64, usize) -> Option<Fields>> Recipe for After<F> {
    #[inline(always)]
    fn after(self, ret: i64, bits: usize) -> Option<Fields> {
        self.0(ret, bits)
    }
}

const EFAULT: i64 = -(libc::EFAULT as i64);
const EBADF: i64 = -(libc::EBADF as i64);
const EAGAIN: i64 = -(libc::EAGAIN as i64);

/// Name of a path argument; none if the kernel could not read it, for then neither can we.
#[inline(always)]
fn path_id(ret: i64, directory: c_int, path: *const c_char) -> u32 {
    // SAFETY: the real call has read the string, or the C library would have crashed on it.
    if ret == EFAULT { 0 } else { unsafe { files::path(directory, path) } }
}

/// Name of a descriptor argument, looked up only if the call proved it open.
#[inline(always)]
fn fd_id(ret: i64, fd: c_int) -> u32 {
    if ret == EBADF { 0 } else { files::name(fd) }
}

pub(crate) fn open_at(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> impl Recipe {
    Open { directory, path, flags, mode }
}

/// What was given to an `open`. Not a closure: those are in line only where the compiler likes to.
struct Open {
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
}

impl Recipe for Open {
    #[inline(always)]
    fn after(self, ret: i64, _bits: usize) -> Option<Fields> {
        let name = path_id(ret, self.directory, self.path);
        if ret >= 0 {
            // An unnamed temporary file has no path of its own: its directory's would be wrong.
            if self.flags & libc::O_TMPFILE == libc::O_TMPFILE {
                files::fresh(ret as c_int);
            } else {
                files::opened(ret as c_int, name, self.flags & libc::O_APPEND == 0);
            }
        }
        Some(Fields {
            path: name,
            fd: ret.max(-1) as i32,
            detail: self.flags as u32,
            ret,
            extra: u64::from(self.mode),
            ..Fields::NONE
        })
    }
}

/// A call that returns a descriptor without a path.
pub(crate) fn new_fd() -> impl Recipe {
    after(|ret, _| {
        if ret >= 0 {
            files::fresh(ret as c_int);
        }
        Some(Fields {
            fd: ret.max(-1) as i32,
            path: if ret >= 0 { files::name(ret as c_int) } else { 0 },
            ret,
            ..Fields::NONE
        })
    })
}

pub(crate) fn new_pair(fds: *mut c_int) -> impl Recipe {
    after(move |ret, _| {
        let mut pair = [-1; 2];
        if ret == 0 {
            // SAFETY: the call succeeded, so the program's array holds two descriptors.
            pair = unsafe { [*fds, *fds.add(1)] };
            files::fresh(pair[0]);
            files::fresh(pair[1]);
        }
        let path = if ret == 0 { files::name(pair[0]) } else { 0 };
        Some(Fields { fd: pair[0], detail: pair[1] as u32, path, ret, ..Fields::NONE })
    })
}

#[inline(always)]
fn sequential(fd: c_int, size: i64, detail: u32) -> impl Recipe {
    after(move |ret: i64, _| {
        let path = fd_id(ret, fd);
        let offset = if ret >= 0 { files::advance(fd, ret) } else { NO_OFFSET };
        Some(Fields { flags: 0, path, fd, detail, size, ret, offset, extra: 0 })
    })
}

#[inline(always)]
fn positioned(fd: c_int, size: i64, offset: i64) -> impl Recipe {
    after(move |ret: i64, _| {
        Some(Fields { flags: 0, path: fd_id(ret, fd), fd, detail: 0, size, ret, offset, extra: 0 })
    })
}

pub(crate) fn read_next(fd: c_int, n: usize) -> impl Recipe {
    sequential(fd, n as i64, 0)
}

pub(crate) fn write_next(fd: c_int, n: usize) -> impl Recipe {
    sequential(fd, n as i64, 0)
}

pub(crate) fn read_at(fd: c_int, n: usize, offset: i64) -> impl Recipe {
    positioned(fd, n as i64, offset)
}

pub(crate) fn write_at(fd: c_int, n: usize, offset: i64) -> impl Recipe {
    positioned(fd, n as i64, offset)
}

/// Sum of the lengths of an iovec that the kernel accepted.
fn iovec_bytes(ret: i64, iov: *const iovec, count: usize) -> i64 {
    if ret < 0 || iov.is_null() || count > 1024 {
        return -1;
    }
    // SAFETY: the kernel has read these `count` entries, at most IOV_MAX.
    (0..count).map(|i| unsafe { (*iov.add(i)).iov_len as i64 }).sum()
}

fn vector(fd: c_int, iov: *const iovec, count: c_int, offset: Option<i64>) -> impl Recipe {
    after(move |ret, _| {
        let size = iovec_bytes(ret, iov, count.max(0) as usize);
        let path = fd_id(ret, fd);
        let offset = match offset {
            // preadv2 and pwritev2 take -1 for "the current position".
            Some(offset) if offset >= 0 => offset,
            _ if ret >= 0 => files::advance(fd, ret),
            _ => NO_OFFSET,
        };
        Some(Fields { path, fd, detail: count as u32, size, ret, offset, ..Fields::NONE })
    })
}

pub(crate) fn readv_next(fd: c_int, iov: *const iovec, count: c_int) -> impl Recipe {
    vector(fd, iov, count, None)
}

pub(crate) fn writev_next(fd: c_int, iov: *const iovec, count: c_int) -> impl Recipe {
    vector(fd, iov, count, None)
}

pub(crate) fn readv_at(fd: c_int, iov: *const iovec, count: c_int, offset: i64) -> impl Recipe {
    vector(fd, iov, count, Some(offset))
}

pub(crate) fn writev_at(fd: c_int, iov: *const iovec, count: c_int, offset: i64) -> impl Recipe {
    vector(fd, iov, count, Some(offset))
}

pub(crate) fn seek(fd: c_int, offset: i64, whence: c_int) -> impl Recipe {
    after(move |ret, _| {
        let path = fd_id(ret, fd);
        if ret >= 0 {
            files::positioned(fd, ret);
        }
        Some(Fields { path, fd, detail: whence as u32, ret, offset, ..Fields::NONE })
    })
}

pub(crate) fn close_fd(fd: c_int) -> impl Recipe {
    let path = files::closing(fd);
    after(move |ret, _| Some(Fields { path: path.name(), fd, ret, ..Fields::NONE }))
}

pub(crate) fn close_many(first: c_uint, last: c_uint, flags: c_int) -> impl Recipe {
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    if flags & CLOSE_RANGE_CLOEXEC == 0 {
        files::closing_range(first, last);
    }
    after(move |ret, _| Some(Fields { fd: first as i32, detail: last, ret, ..Fields::NONE }))
}

pub(crate) fn duplicate(fd: c_int, to: c_int) -> impl Recipe {
    after(move |ret, _| {
        let path = fd_id(ret, fd);
        if ret >= 0 {
            files::duplicated(fd, ret as c_int);
        }
        Some(Fields { path, fd, detail: to as u32, ret, ..Fields::NONE })
    })
}

pub(crate) fn control(fd: c_int, command: c_int) -> impl Recipe {
    after(move |ret, _| {
        let path = fd_id(ret, fd);
        if ret >= 0 && (command == libc::F_DUPFD || command == libc::F_DUPFD_CLOEXEC) {
            files::duplicated(fd, ret as c_int);
        }
        Some(Fields { path, fd, detail: command as u32, ret, ..Fields::NONE })
    })
}

pub(crate) fn on_fd(fd: c_int, detail: u32) -> impl Recipe {
    after(move |ret, _| Some(Fields { path: fd_id(ret, fd), fd, detail, ret, ..Fields::NONE }))
}

/// A call without a file.
pub(crate) fn whole() -> impl Recipe {
    after(|ret, _| Some(Fields { ret, ..Fields::NONE }))
}

pub(crate) fn on_range(fd: c_int, offset: i64, size: i64, detail: u32) -> impl Recipe {
    after(move |ret, _| Some(Fields { path: fd_id(ret, fd), fd, detail, size, ret, offset, ..Fields::NONE }))
}

/// Like [`on_range`] for calls that return their errno.
pub(crate) fn on_range_direct(fd: c_int, offset: i64, size: i64, detail: u32) -> impl Recipe {
    after(move |ret, bits| {
        let ret = if bits as i32 == -1 { ret } else { -ret };
        Some(Fields { path: fd_id(ret, fd), fd, detail, size, ret, offset, ..Fields::NONE })
    })
}

pub(crate) fn truncate_path(path: *const c_char, size: i64) -> impl Recipe {
    after(move |ret, _| Some(Fields { path: path_id(ret, libc::AT_FDCWD, path), size, ret, ..Fields::NONE }))
}

pub(crate) fn on_path(directory: c_int, path: *const c_char, detail: u32) -> impl Recipe {
    after(move |ret, _| Some(Fields { path: path_id(ret, directory, path), detail, ret, ..Fields::NONE }))
}

pub(crate) fn two_paths(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char) -> impl Recipe {
    after(move |ret, _| {
        let path = path_id(ret, from_dir, from);
        let second = path_id(ret, to_dir, to);
        if ret == 0 && process::unrestricted() {
            files::forget_names();
        }
        Some(Fields { flags: record_flags::SECOND_PATH, path, ret, extra: u64::from(second), ..Fields::NONE })
    })
}

pub(crate) fn symlink_at(target: *const c_char, directory: c_int, path: *const c_char) -> impl Recipe {
    after(move |ret, _| {
        let path = path_id(ret, directory, path);
        let second = path_id(ret, libc::AT_FDCWD, target);
        Some(Fields { flags: record_flags::SECOND_PATH, path, ret, extra: u64::from(second), ..Fields::NONE })
    })
}

/// The working directory as the kernel names it; `fallback` where we may not ask.
fn note_cwd(fallback: u32) {
    let asked = || {
        let named = scratch::NAMES.with(|buf| sys::getcwd(buf).map(|length| process::intern(0, &buf[..length])));
        named.and_then(Result::ok)
    };
    let id = process::unrestricted().then(asked).flatten().unwrap_or(fallback);
    if !weftline_recorder::thread::state().in_vfork() {
        process::set_cwd(id);
    }
}

pub(crate) fn change_root(path: *const c_char) -> impl Recipe {
    process::prepare_for_sandbox();
    on_path(libc::AT_FDCWD, path, 0)
}

pub(crate) fn change_dir(path: *const c_char) -> impl Recipe {
    after(move |ret, _| {
        let name = path_id(ret, libc::AT_FDCWD, path);
        if ret == 0 {
            note_cwd(name);
        }
        Some(Fields { path: name, ret, ..Fields::NONE })
    })
}

pub(crate) fn change_dir_fd(fd: c_int) -> impl Recipe {
    after(move |ret, _| {
        let name = fd_id(ret, fd);
        if ret == 0 {
            note_cwd(name);
        }
        Some(Fields { path: name, fd, ret, ..Fields::NONE })
    })
}

/// Descriptor of a directory stream.
fn directory_fd(stream: *mut c_void) -> c_int {
    // glibc keeps the descriptor in the first word of a DIR; its `dirfd` does just this load.
    // SAFETY: a non-null stream that the program got from opendir.
    if stream.is_null() { -1 } else { unsafe { *stream.cast::<c_int>() } }
}

pub(crate) fn open_dir(path: *const c_char) -> impl Recipe {
    after(move |ret, bits| {
        let name = path_id(ret, libc::AT_FDCWD, path);
        let fd = directory_fd(if ret == 0 { bits as *mut c_void } else { core::ptr::null_mut() });
        if fd >= 0 {
            files::opened(fd, name, false);
        }
        Some(Fields { path: name, fd, ret: if fd >= 0 { i64::from(fd) } else { ret }, ..Fields::NONE })
    })
}

pub(crate) fn on_dir(stream: *mut c_void) -> impl Recipe {
    let fd = directory_fd(stream);
    // A null result is the end of the directory; errno then is whatever an earlier call left.
    after(move |_, bits| Some(Fields { path: files::name(fd), fd, ret: i64::from(bits != 0), ..Fields::NONE }))
}

pub(crate) fn close_dir(stream: *mut c_void) -> impl Recipe {
    let fd = directory_fd(stream);
    let path = files::closing(fd);
    after(move |ret, _| Some(Fields { path: path.name(), fd, ret, ..Fields::NONE }))
}

pub(crate) fn map(size: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> impl Recipe {
    after(move |ret, bits| {
        if flags & libc::MAP_ANONYMOUS != 0 {
            return None;
        }
        let path = fd_id(ret, fd);
        if ret == 0 {
            process::note_unseen_io(unseen_io::MMAP);
            mappings::mapped(bits, size, path);
        }
        Some(Fields { path, fd, detail: prot as u32, size: size as i64, ret, offset, ..Fields::NONE })
    })
}

pub(crate) fn unmap(address: *mut c_void, size: usize) -> impl Recipe {
    let name = mappings::unmapping(address as usize, size).map(Noted::new);
    after(move |ret, _| Some(Fields { path: name?.name(), size: size as i64, ret, ..Fields::NONE }))
}

pub(crate) fn on_mapping(address: *mut c_void, size: usize, detail: u32) -> impl Recipe {
    after(move |ret, _| {
        let path = mappings::file_at(address as usize)?;
        Some(Fields { path, detail, size: size as i64, ret, ..Fields::NONE })
    })
}

/// Data that the kernel moves between two files: the event's file is the target, the second path the source.
pub(crate) fn transfer(to: c_int, from: c_int, size: usize) -> impl Recipe {
    after(move |ret, _| {
        let (path, second) = (fd_id(ret, to), fd_id(ret, from));
        if ret > 0 {
            // Offsets may have been given by pointer, so the positions are only known to have changed.
            files::positioned(to, i64::MIN / 2);
            files::positioned(from, i64::MIN / 2);
        }
        let flags = record_flags::SECOND_PATH;
        Some(Fields {
            flags,
            path,
            fd: to,
            detail: from as u32,
            size: size as i64,
            ret,
            offset: NO_OFFSET,
            extra: u64::from(second),
        })
    })
}

pub(crate) fn splice_pipe(to: c_int, from: c_int, size: usize) -> impl Recipe {
    process::note_unseen_io(unseen_io::SPLICE);
    transfer(to, from, size)
}

pub(crate) fn splice_memory(fd: c_int, iov: *const iovec, count: usize) -> impl Recipe {
    process::note_unseen_io(unseen_io::SPLICE);
    vector(fd, iov, count as c_int, Some(0))
}

pub(crate) fn aio_submit(request: *mut aiocb) -> impl Recipe {
    after(move |ret, _| aio(ret, ret, request))
}

/// The bytes of an asynchronous request are known when its result is taken.
pub(crate) fn aio_result(request: *mut aiocb) -> impl Recipe {
    after(move |ret, _| aio(ret, ret, request))
}

fn aio(ret: i64, shown: i64, request: *const aiocb) -> Option<Fields> {
    // SAFETY: the C library has read and written the program's request.
    let (fd, size, offset) = unsafe { ((*request).aio_fildes, (*request).aio_nbytes as i64, (*request).aio_offset) };
    Some(Fields { path: fd_id(ret, fd), fd, size, ret: shown, offset, ..Fields::NONE })
}

/// A call that waits for somebody else, which is recorded only if it did: event loops and MPI's progress loops ask millions of times whether
/// something is there.
struct Waiting<R>(R);

/// Ticks within which a call has not waited: some 10 µs by the TSC of today's machines, 20 µs where ticks are nanoseconds.
const AT_ONCE: u64 = 20_000;

impl<R: Recipe> Recipe for Waiting<R> {
    #[inline(always)]
    fn after(self, ret: i64, bits: usize) -> Option<Fields> {
        self.0.after(ret, bits)
    }

    #[inline(always)]
    fn store(self, call: Call, start: u64, end: u64, ret: i64, bits: usize) {
        if waited(start, end) {
            self.0.store(call, start, end, ret, bits);
        }
    }
}

#[inline(always)]
fn waited(start: u64, end: u64) -> bool {
    end.wrapping_sub(start) >= AT_ONCE
}

pub(crate) fn pause() -> impl Recipe {
    Waiting(whole())
}

pub(crate) fn pause_on(fd: c_int) -> impl Recipe {
    Waiting(on_fd(fd, 0))
}

/// Bytes through a socket.
pub(crate) fn exchange(fd: c_int, size: usize) -> impl Recipe {
    Exchange { fd, size }
}

struct Exchange {
    fd: c_int,
    size: usize,
}

impl Recipe for Exchange {
    #[inline(always)]
    fn after(self, ret: i64, _bits: usize) -> Option<Fields> {
        Some(Fields { path: fd_id(ret, self.fd), fd: self.fd, size: self.size as i64, ret, ..Fields::NONE })
    }

    #[inline(always)]
    fn store(self, call: Call, start: u64, end: u64, ret: i64, bits: usize) {
        // "Nothing there yet" of a socket that does not block is no event either.
        if ret != EAGAIN || waited(start, end) {
            After(move |ret, bits| self.after(ret, bits)).store(call, start, end, ret, bits);
        }
    }
}

/// `system`: the shell's own image tells what it ran.
pub(crate) fn run_shell(_command: *const c_char) -> impl Recipe {
    whole()
}

/// A wait call: the result is the child's pid.
pub(crate) fn reap() -> impl Recipe {
    whole()
}

pub(crate) fn reap_info(info: *mut siginfo_t) -> impl Recipe {
    after(move |ret, _| {
        // SAFETY: on success the kernel has filled in the program's structure.
        let pid = if ret == 0 && !info.is_null() { i64::from(unsafe { (*info).si_pid() }) } else { ret };
        Some(Fields { ret: pid, ..Fields::NONE })
    })
}
