//! System calls that the standard library does not have, each behind a safe function.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Kinds of file systems whose files can be shared memory: the kernel that maps them owns their pages.
const LOCAL: &[i64] = &[
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    BTRFS,
    TMPFS,
    0x794c_7630, // overlayfs
];
const BTRFS: i64 = 0x9123_683E;
const TMPFS: i64 = 0x0102_1994;

/// What matters about a file system for shared memory.
pub(crate) struct FileSystem {
    /// Files of it can be shared memory.
    pub local: bool,
    pub btrfs: bool,
    /// Its files are memory.
    pub tmpfs: bool,
    /// Bytes that this user can still write.
    pub free: u64,
}

/// The file system that a directory is on.
pub(crate) fn file_system(directory: &Path) -> io::Result<FileSystem> {
    let path = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
    let mut out = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the path is a C string, and the kernel fills in one `struct statfs`, for which zero is valid too.
    let found = unsafe {
        if libc::statfs(path.as_ptr(), out.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        out.assume_init()
    };
    let kind = found.f_type as i64 & 0xFFFF_FFFF;
    let free = (found.f_bavail as u64).saturating_mul(found.f_bsize as u64);
    Ok(FileSystem { local: LOCAL.contains(&kind), btrfs: kind == BTRFS, tmpfs: kind == TMPFS, free })
}

/// Asks btrfs not to copy pages of files made in this directory from now on: shared memory is rewritten all the time.
pub(crate) fn no_copy_on_write(directory: &File) {
    const FS_NOCOW_FL: libc::c_int = 0x0080_0000;
    let mut flags: libc::c_int = 0;
    // SAFETY: both requests take a pointer to one int; failure costs speed only.
    unsafe {
        if libc::ioctl(directory.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) == 0 {
            flags |= FS_NOCOW_FL;
            libc::ioctl(directory.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const flags);
        }
    }
}

/// Takes an exclusive lock that belongs to the open file: it ends with the last descriptor, however the process ends.
/// False when someone else holds it.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    // SAFETY: `flock` is plain data, valid when zero.
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    whole.l_type = libc::F_WRLCK as libc::c_short;
    whole.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the command takes a pointer to one `flock`.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        error => Err(error),
    }
}

/// Runs `f`, which starts threads, with all signals blocked, so that the new threads never take one that is meant for
/// the supervisor; but for those that a thread brings upon itself, which would end the process if they were blocked.
pub(crate) fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: signal sets are plain data that sigfillset and pthread_sigmask fill in.
    let before = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        for own in [libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP] {
            libc::sigdelset(&raw mut all, own);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let result = f();
    // SAFETY: `before` is the mask that was in force.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}

/// Clock ticks per second in `/proc/PID/stat`.
pub(crate) fn clock_ticks() -> u64 {
    // SAFETY: takes a number and returns a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|ticks| *ticks > 0).unwrap_or(100)
}

/// The effective user.
pub(crate) fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}
