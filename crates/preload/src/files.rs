//! The file of each descriptor, and the position of its next read or write.
//!
//! There is one entry per descriptor in private memory, which `fork` copies with the descriptors themselves. An unknown name
//! (inherited, from a pipe, a socket, a call we do not hook) is read once, at the first use, from
//! `/proc/self/fd`, which names pipes and sockets too and is always right.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use weftline_recorder::layout::{NO_OFFSET, unseen_io};
use weftline_recorder::{process, scratch, sys, table, thread};

use crate::life;

/// Set in entries whose name was looked up, even if none was found.
const KNOWN: u64 = 1 << 32;
/// `Entry::position` of files whose offset is not known; adding any number of bytes keeps it negative.
const UNKNOWN: i64 = i64::MIN / 2;

#[repr(C)]
struct Entry {
    /// Name id and [`KNOWN`]; 0: not looked up.
    name: AtomicU64,
    /// Offset of the next sequential read or write, or negative.
    position: AtomicI64,
}

static TABLE: AtomicPtr<Entry> = AtomicPtr::new(core::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Highest descriptor with an entry.
static HIGHEST: AtomicU32 = AtomicU32::new(0);

/// Reserves the table: address space only, a page costs memory when a descriptor in it is used.
pub(crate) fn prepare() {
    if LENGTH.load(Ordering::Relaxed) != 0 {
        return;
    }
    let (_, hard) = sys::limits(libc::RLIMIT_NOFILE);
    let wanted = hard.clamp(1 << 16, 1 << 24) as usize;
    for entries in [wanted, 1 << 16, 1 << 12] {
        if let Some(at) = sys::map_private(entries * size_of::<Entry>()) {
            TABLE.store(at.cast(), Ordering::Relaxed);
            LENGTH.store(entries, Ordering::Release);
            return;
        }
    }
}

#[inline(always)]
fn entry(fd: c_int) -> Option<&'static Entry> {
    let length = LENGTH.load(Ordering::Relaxed);
    let fd = fd as u32 as usize;
    // SAFETY: the index is checked against the table, which is there once it has a length and is never unmapped; entries are atomics, valid when zero.
    (fd < length).then(|| unsafe { NonNull::new_unchecked(TABLE.load(Ordering::Relaxed)).add(fd).as_ref() })
}

/// Name id of an open descriptor; 0 when it cannot be had. Call only after a call that proved the descriptor open.
#[inline(always)]
pub(crate) fn name(fd: c_int) -> u32 {
    if thread::in_vfork()
        && let Some(name) = thread::state().borrowed_name(fd)
    {
        return name;
    }
    match entry(fd) {
        Some(entry) => match entry.name.load(Ordering::Relaxed) {
            0 => look_up(fd, entry),
            name => name as u32,
        },
        None => 0,
    }
}

#[cold]
#[inline(never)]
fn look_up(fd: c_int, entry: &Entry) -> u32 {
    if !process::unrestricted() || thread::in_vfork() {
        return 0;
    }
    let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0u8; 20];
    let digits = sys::decimal(fd as u64, &mut digits);
    path[14..14 + digits.len()].copy_from_slice(digits);
    let path = CStr::from_bytes_until_nul(&path).unwrap_or_default();
    let found = scratch::NAMES.with(|target| {
        let length = sys::readlink(path, target).unwrap_or(0);
        if target[..length].starts_with(b"socket:") {
            process::note_unseen_io(unseen_io::SOCKETS);
        }
        if length == 0 { 0 } else { process::intern(0, &target[..length]) }
    });
    let Some(id) = found else { return 0 };
    if entry.position.load(Ordering::Relaxed) == 0 {
        entry.position.store(UNKNOWN, Ordering::Relaxed);
    }
    entry.name.store(KNOWN | u64::from(id), Ordering::Relaxed);
    HIGHEST.fetch_max(fd as u32, Ordering::Relaxed);
    id
}

/// The program opened `name` as `fd`. A position is kept one too high, so that zero can mean "never set".
#[inline(always)]
pub(crate) fn opened(fd: c_int, name: u32, at_start: bool) {
    if thread::in_vfork() {
        thread::state().borrow_name(fd, name);
    } else if let Some(entry) = entry(fd) {
        entry.position.store(if at_start { 1 } else { UNKNOWN }, Ordering::Relaxed);
        entry.name.store(KNOWN | u64::from(name), Ordering::Relaxed);
        if HIGHEST.load(Ordering::Relaxed) < fd as u32 {
            HIGHEST.fetch_max(fd as u32, Ordering::Relaxed);
        }
    }
}

/// `fd` is new, its name will be looked up when it is used.
pub(crate) fn fresh(fd: c_int) {
    if thread::in_vfork() {
        thread::state().borrow_name(fd, 0);
    } else if let Some(entry) = entry(fd) {
        entry.position.store(UNKNOWN, Ordering::Relaxed);
        entry.name.store(0, Ordering::Relaxed);
    }
}

/// A name that was noted before a call, for use after it. The call may have taken long: in another recording ids mean other names.
pub(crate) struct Noted {
    name: u32,
    epoch: u32,
}

impl Noted {
    #[inline(always)]
    pub(crate) fn new(name: u32) -> Noted {
        Noted { name, epoch: table::local().epoch.load(Ordering::Relaxed) }
    }

    /// The name id; 0 if it is not valid any more.
    #[inline(always)]
    pub(crate) fn name(&self) -> u32 {
        if self.epoch == table::local().epoch.load(Ordering::Relaxed) { self.name } else { 0 }
    }
}

/// Forgets a descriptor *before* it is closed (another thread may get its number at once); what it was.
#[inline(always)]
pub(crate) fn closing(fd: c_int) -> Noted {
    if !thread::in_vfork()
        && let was @ 1.. = take_out(fd)
    {
        return Noted::new(was);
    }
    closing_unknown(fd)
}

#[cold]
#[inline(never)]
fn closing_unknown(fd: c_int) -> Noted {
    if thread::in_vfork() {
        let was = name(fd);
        thread::state().borrow_name(fd, 0);
        return Noted::new(was);
    }
    // A descriptor from before a late start, of which nothing was seen, still has its name now.
    if life::started_late() {
        name(fd);
    }
    Noted::new(take_out(fd))
}

/// Empties an entry; the name id in it.
#[inline(always)]
fn take_out(fd: c_int) -> u32 {
    match entry(fd) {
        Some(entry) => {
            entry.position.store(0, Ordering::Relaxed);
            entry.name.swap(0, Ordering::Relaxed) as u32
        }
        None => 0,
    }
}

/// Forgets all descriptors in a range.
pub(crate) fn closing_range(first: u32, last: u32) {
    let last = last.min(HIGHEST.load(Ordering::Relaxed));
    for fd in first..=last {
        if thread::in_vfork() {
            closing(fd as c_int);
        } else {
            take_out(fd as c_int);
        }
    }
}

/// Forgets all descriptors, before a recording begins.
pub(crate) fn forget() {
    for fd in 0..=HIGHEST.swap(0, Ordering::Relaxed) {
        take_out(fd as c_int);
    }
}

/// `to` is now the same open file as `from`. Both share one position from here on, so neither is known.
pub(crate) fn duplicated(from: c_int, to: c_int) {
    if from == to {
        return;
    }
    let name = name(from);
    if let Some(entry) = entry(from)
        && !thread::in_vfork()
    {
        entry.position.store(UNKNOWN, Ordering::Relaxed);
    }
    opened(to, name, false);
}

/// Moves the position by `bytes`; the offset at which they were, or [`NO_OFFSET`].
#[inline(always)]
pub(crate) fn advance(fd: c_int, bytes: i64) -> i64 {
    let Some(entry) = entry(fd) else { return NO_OFFSET };
    // Position and descriptor are the parent's; a `vfork` child moves it only if it uses an open file of the parent's.
    let stored = entry.position.fetch_add(bytes, Ordering::Relaxed);
    if stored > 0 { stored - 1 } else { NO_OFFSET }
}

/// The position is now `offset`.
pub(crate) fn positioned(fd: c_int, offset: i64) {
    if let Some(entry) = entry(fd)
        && !thread::in_vfork()
    {
        entry.position.store(offset + 1, Ordering::Relaxed);
    }
}

/// A child was forked: it shares positions with its parent. In the parent only the standard streams are likely to be used by
/// both.
pub(crate) fn forked(in_child: bool) {
    let last = if in_child { HIGHEST.load(Ordering::Relaxed) } else { 2 };
    for fd in 0..=last {
        if let Some(entry) = entry(fd as c_int)
            && entry.name.load(Ordering::Relaxed) != 0
        {
            entry.position.store(UNKNOWN, Ordering::Relaxed);
        }
    }
}

/// Names are not valid any more (a file was renamed, the arena changed): all are asked again at their next use.
pub(crate) fn forget_names() {
    for fd in 0..=HIGHEST.load(Ordering::Relaxed) {
        if let Some(entry) = entry(fd as c_int) {
            entry.name.store(0, Ordering::Relaxed);
        }
    }
}

/// Name id of `path` as seen from `directory` (AT_FDCWD or a descriptor); 0 for null.
///
/// # Safety
/// `path` must be null or a C string: callers pass only pointers that the real call accepted.
#[inline(always)]
pub(crate) unsafe fn path(directory: c_int, path: *const c_char) -> u32 {
    if path.is_null() {
        return 0;
    }
    // SAFETY: the caller vouches for the string.
    let first = unsafe { *path.cast::<u8>() };
    let base = match first {
        b'/' => 0,
        _ if directory == libc::AT_FDCWD => process::cwd(),
        // An empty path means the directory descriptor itself (AT_EMPTY_PATH).
        0 => return known_or_looked_up(directory),
        _ => known_or_looked_up(directory),
    };
    // SAFETY: as above.
    unsafe { process::intern_text(base, path) }
}

fn known_or_looked_up(fd: c_int) -> u32 {
    if fd >= 0 { name(fd) } else { 0 }
}
