//! Raw system calls.
//!
//! The recorder never calls libc's I/O functions: those are hooked, may be replaced by the program, and change `errno`. These
//! functions call the kernel directly and return a negative errno, so a hook that uses them does not change `errno`.

use core::arch::asm;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

/// Result of a raw call: the value, or the (positive) errno.
pub type SysResult = Result<usize, i32>;

/// One system call with up to six arguments.
///
/// # Safety
/// The arguments must be right for the call `number`, as for `syscall(2)`.
#[inline(always)]
pub unsafe fn syscall(number: i64, args: [usize; 6]) -> SysResult {
    let ret: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller vouches for the arguments; rcx and r11 are the registers that the instruction clobbers.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => ret,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller vouches for the arguments; svc clobbers nothing but x0.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") args[0] as isize => ret,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4], in("x5") args[5], options(nostack));
    }
    if (-4095..0).contains(&ret) { Err(-ret as i32) } else { Ok(ret as usize) }
}

macro_rules! call {
    ($number:ident $(, $arg:expr)*) => {{
        let given = [$($arg as usize),*];
        let mut args = [0usize; 6];
        args[..given.len()].copy_from_slice(&given);
        syscall(libc::$number, args)
    }};
}

/// Opens `path` relative to the working directory; close-on-exec is always added.
pub fn open(path: &CStr, flags: c_int, mode: u32) -> Result<c_int, i32> {
    // SAFETY: `path` is a C string that lives through the call.
    unsafe { call!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags | libc::O_CLOEXEC, mode) }.map(|fd| fd as c_int)
}

/// Closes a descriptor that this module opened.
pub fn close(fd: c_int) {
    // SAFETY: no memory is involved; the descriptor is ours.
    let _ = unsafe { call!(SYS_close, fd) };
}

/// Bytes that this module has read in the program's name: the kernel counts them as the program's, the ledger must not.
pub static OWN_READS: AtomicU64 = AtomicU64::new(0);

fn counted(result: SysResult) -> SysResult {
    if let Ok(bytes) = result {
        OWN_READS.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    result
}

/// Reads once into `buf`.
pub fn read(fd: c_int, buf: &mut [u8]) -> SysResult {
    // SAFETY: the kernel writes at most `buf.len()` bytes into `buf`.
    counted(unsafe { call!(SYS_read, fd, buf.as_mut_ptr(), buf.len()) })
}

/// Reads at `offset` into `buf`.
pub fn pread(fd: c_int, buf: &mut [u8], offset: u64) -> SysResult {
    // SAFETY: the kernel writes at most `buf.len()` bytes into `buf`.
    counted(unsafe { call!(SYS_pread64, fd, buf.as_mut_ptr(), buf.len(), offset) })
}

/// Reads the start of a small file; the number of bytes read.
pub fn read_file(path: &CStr, buf: &mut [u8]) -> SysResult {
    let fd = open(path, libc::O_RDONLY, 0)?;
    let got = read(fd, buf);
    close(fd);
    got
}

/// Target of a symbolic link, not terminated.
pub fn readlink(path: &CStr, buf: &mut [u8]) -> SysResult {
    // SAFETY: the kernel writes at most `buf.len()` bytes into `buf`.
    unsafe { call!(SYS_readlinkat, libc::AT_FDCWD, path.as_ptr(), buf.as_mut_ptr(), buf.len()) }
}

/// May the effective user open `path` with `mode`?
pub fn accessible(path: &CStr, mode: c_int) -> bool {
    // SAFETY: `path` is a C string that lives through the call.
    unsafe { call!(SYS_faccessat, libc::AT_FDCWD, path.as_ptr(), mode) }.is_ok()
}

/// Mode bits and inode of a file; follows links.
pub fn stat(path: &CStr) -> Option<libc::stat> {
    let mut out = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel fills in one `struct stat`, which for these two architectures is libc's own layout.
    unsafe {
        call!(SYS_newfstatat, libc::AT_FDCWD, path.as_ptr(), out.as_mut_ptr(), 0).ok()?;
        Some(out.assume_init())
    }
}

/// The user whom an open file belongs to.
pub fn owner(fd: c_int) -> Option<u32> {
    let mut out = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel fills in one `struct stat`, which for these two architectures is libc's own layout.
    unsafe {
        call!(SYS_fstat, fd, out.as_mut_ptr()).ok()?;
        Some(out.assume_init().st_uid)
    }
}

/// Maps the first `length` bytes of `fd` shared and writable.
pub fn map_shared(fd: c_int, length: usize) -> Option<*mut u8> {
    map_shared_at(fd, 0, length)
}

/// Maps `length` bytes of `fd` from a page on, shared and writable.
pub fn map_shared_at(fd: c_int, from: usize, length: usize) -> Option<*mut u8> {
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let at =
        unsafe { call!(SYS_mmap, 0, length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, from) }.ok()?;
    // Without this the first store makes the kernel read ahead, which on a disk file means to fill megabytes of pages with zeros:
    // 1,300 µs instead of 90 for the few pages of a short process (ext4, read-ahead 8 MiB). Failure costs only that time.
    // SAFETY: advice on the mapping that was just made changes no contents.
    let _ = unsafe { call!(SYS_madvise, at, length, libc::MADV_RANDOM) };
    Some(at as *mut u8)
}

/// Maps private zeroed memory that costs nothing until it is touched.
pub fn map_private(length: usize) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let at = unsafe { call!(SYS_mmap, 0, length, libc::PROT_READ | libc::PROT_WRITE, flags, -1isize, 0) };
    at.ok().map(|at| at as *mut u8)
}

/// Gives a mapping back.
///
/// # Safety
/// Nothing may use the mapping any more.
pub unsafe fn unmap(at: *mut u8, length: usize) {
    // SAFETY: the caller gives the mapping up.
    let _ = unsafe { call!(SYS_munmap, at, length) };
}

/// Asks the kernel to hand children a zeroed copy of these pages. False on kernels before 4.14.
pub fn wipe_on_fork(at: *mut u8, length: usize) -> bool {
    const MADV_WIPEONFORK: c_int = 18;
    // SAFETY: only the contents that a *child* sees change.
    unsafe { call!(SYS_madvise, at, length, MADV_WIPEONFORK) }.is_ok()
}

/// Has the calling thread been forbidden to read the time-stamp counter (`prctl(PR_SET_TSC)`)?
pub fn counter_forbidden() -> bool {
    let mut state: c_int = 0;
    // SAFETY: the kernel writes one int; on processors without such a counter it refuses.
    let asked = unsafe { call!(SYS_prctl, libc::PR_GET_TSC, &raw mut state) };
    asked.is_ok() && state == libc::PR_TSC_SIGSEGV
}

/// Makes the pages of a mapping present and writable at once. False where the kernel cannot (before 5.14).
pub fn populate(at: *mut u8, length: usize) -> bool {
    const MADV_POPULATE_WRITE: c_int = 23;
    // SAFETY: the contents of the pages stay what they are.
    unsafe { call!(SYS_madvise, at, length, MADV_POPULATE_WRITE) }.is_ok()
}

/// Reserves blocks for the first `length` bytes of a file, so that stores into its mapping cannot fail.
pub fn allocate(fd: c_int, length: usize) -> SysResult {
    allocate_at(fd, 0, length)
}

/// The same for a part of the file, which grows if it ends before.
pub fn allocate_at(fd: c_int, from: usize, length: usize) -> SysResult {
    // SAFETY: no memory is involved.
    unsafe { call!(SYS_fallocate, fd, 0, from, length) }
}

/// Removes a file.
pub fn unlink(path: &CStr) {
    // SAFETY: `path` is a C string that lives through the call.
    let _ = unsafe { call!(SYS_unlinkat, libc::AT_FDCWD, path.as_ptr(), 0) };
}

/// Soft limit of a resource; `u64::MAX` when unlimited or unknown.
pub fn limit(resource: u32) -> u64 {
    limits(resource).0
}

/// Soft and hard limit of a resource.
pub fn limits(resource: u32) -> (u64, u64) {
    let mut out = [u64::MAX; 2];
    // SAFETY: the kernel writes two 64-bit limits.
    let _ = unsafe { call!(SYS_prlimit64, 0, resource, 0, out.as_mut_ptr()) };
    (out[0], out[1])
}

/// The calling process.
pub fn getpid() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call!(SYS_getpid) }.unwrap_or(0) as u32
}

/// The user by whose rights the calling thread opens files, as its namespace calls it.
pub fn effective_user() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call!(SYS_geteuid) }.unwrap_or(0) as u32
}

/// The parent of the calling process.
pub fn getppid() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call!(SYS_getppid) }.unwrap_or(0) as u32
}

/// The calling thread.
pub fn gettid() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call!(SYS_gettid) }.unwrap_or(0) as u32
}

/// Effective user and group.
pub fn effective_ids() -> (u32, u32) {
    // SAFETY: both calls take no arguments.
    unsafe { (call!(SYS_geteuid).unwrap_or(0) as u32, call!(SYS_getegid).unwrap_or(0) as u32) }
}

/// Working directory, with the terminating NUL; the length without it.
pub fn getcwd(buf: &mut [u8]) -> SysResult {
    // SAFETY: the kernel writes at most `buf.len()` bytes into `buf`.
    unsafe { call!(SYS_getcwd, buf.as_mut_ptr(), buf.len()) }.map(|n| n.saturating_sub(1))
}

fn resource_usage(whose: c_int) -> libc::rusage {
    let mut out = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills in one `struct rusage`; zeroed is a valid one should it fail.
    unsafe {
        let _ = call!(SYS_getrusage, whose, out.as_mut_ptr());
        out.assume_init()
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// CPU time (user, system, in ns) and peak resident set (KiB) of the process so far.
pub fn usage() -> (u64, u64, u64) {
    let usage = resource_usage(libc::RUSAGE_SELF);
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime), usage.ru_maxrss as u64)
}

/// CPU time in user mode, in ns, of `RUSAGE_SELF` or `RUSAGE_THREAD`.
pub fn user_time(whose: c_int) -> u64 {
    nanoseconds(resource_usage(whose).ru_utime)
}

/// Sleeps, or returns early on a signal.
pub fn nap(nanoseconds: i64) {
    let time = libc::timespec { tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000 };
    // SAFETY: the kernel reads one timespec.
    let _ = unsafe { call!(SYS_nanosleep, &raw const time, core::ptr::null::<c_void>()) };
}

/// A clock, by a real system call: for the rare places where no vdso function is known.
pub fn clock(id: c_int) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    let _ = unsafe { call!(SYS_clock_gettime, id, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Decimal digits of `n`, for paths.
pub fn decimal(mut n: u64, buf: &mut [u8; 20]) -> &[u8] {
    let mut at = buf.len();
    loop {
        at -= 1;
        buf[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return &buf[at..];
        }
    }
}
