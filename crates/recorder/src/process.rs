//! The life of one process in an arena: its state, and the words that hold it.
//!
//! [`start()`] and [`stop`] begin and end a recording, fork and exec pass it on (`fork.rs`), and the slot in the arena (`slot.rs`) describes the
//! process to the drain.
//!
//! States of the private side (`STATE`): `UNBORN` until the first event or the library's constructor, `STARTING` while one
//! thread sets up, then `ACTIVE` or `OFF`. `OFF` costs a caller one load; only an explicit [`start()`] leaves it. Each start
//! begins an *epoch*: segments and name ids of earlier epochs are invalid.
//!
//! Ownership after fork: [`owned`] reads a word in a page that the kernel zeroes in every child (MADV_WIPEONFORK), however the
//! child was made. A child that reads zero calls [`enter`] before it writes anything.

mod fork;
pub mod slot;
mod start;

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

pub use fork::{after_fork_in_parent, before_exec, before_fork, enter, exec_failed, forked};
pub use slot::parse_io;
use slot::slot_at;
pub use start::{Start, call_at_end, note_end, run_at_end, start, stop, watch_stop};

use crate::arena::{self, control, grow, piece};
use crate::clock;
use crate::layout::{Loss, ProcessSlot, options, piece_use};
use crate::{names, scratch, sys, table, thread};

const UNBORN: u32 = 0;
const STARTING: u32 = 1;
const ACTIVE: u32 = 2;
const OFF: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(UNBORN);
static SLOT: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// How many seccomp filters are in force: with any, no system call that a program of this kind might not make itself.
static RESTRICTED: AtomicU32 = AtomicU32::new(0);
/// Set after `unshare` or `setns`, and for clones into a new namespace: children must look at their pid namespace again.
static NAMESPACE_CHANGED: AtomicU32 = AtomicU32::new(0);
/// Name id of the working directory.
static CWD: AtomicU32 = AtomicU32::new(0);

/// Number of the newest start.
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// The word that tells parent from child: the epoch while the process records. Until the wiped page exists it points at a zero: not owned.
static OWNER: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const UNOWNED).cast_mut());
static UNOWNED: AtomicU32 = AtomicU32::new(0);

/// Environment variable that names the live directory: the only thing besides LD_PRELOAD that a traced program needs.
pub const LIVE_VARIABLE: &str = "WEFT_LIVE";

/// Does the calling process own what its memory says? False before the start and in a child that has not entered yet.
#[inline(always)]
pub fn owned() -> bool {
    epoch() != 0
}

/// The epoch that the calling process records in; 0 when it does not own what its memory says.
#[inline(always)]
pub(crate) fn epoch() -> u32 {
    // SAFETY: OWNER points at a static, or at a page that is never unmapped.
    unsafe { (*OWNER.load(Ordering::Relaxed)).load(Ordering::Relaxed) }
}

/// Is there any point in measuring? One load for programs that are not traced.
#[inline(always)]
pub fn is_off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Has nothing been decided yet?
pub fn is_unborn() -> bool {
    STATE.load(Ordering::Relaxed) == UNBORN
}

/// For a process that is not to be traced.
pub fn turn_off() {
    let _ = STATE.compare_exchange(UNBORN, OFF, Ordering::AcqRel, Ordering::Relaxed);
}

/// Only process life is recorded, no I/O.
pub fn without_io() -> bool {
    arena::wants(options::NO_IO)
}

/// Slot and generation that segments of this process carry.
pub(crate) fn place() -> (u32, u64) {
    (SLOT.load(Ordering::Relaxed), GENERATION.load(Ordering::Relaxed))
}

/// The process's own slot; null-safe because a refused process has none.
fn own_slot() -> Option<&'static ProcessSlot> {
    if !owned() {
        return None;
    }
    // SAFETY: slots are valid memory for the life of the mapping; shared fields are atomics.
    slot_at(SLOT.load(Ordering::Relaxed)).map(|slot| unsafe { &*slot })
}

/// A seccomp filter is about to be installed.
pub fn restrict() {
    prepare_for_sandbox();
    let slow = || arena::wants(options::SLOW_CLOCK);
    if unrestricted() && owned() && slow() {
        clock::use_source(clock::Source::Coarse);
    }
    RESTRICTED.fetch_add(1, Ordering::Relaxed);
    note_unseen_io(crate::layout::unseen_io::SECCOMP);
}

/// It was refused. Programs ask so whether there are filters at all.
pub fn restriction_failed() {
    RESTRICTED.fetch_sub(1, Ordering::Relaxed);
    if unrestricted() && clock::source() == clock::Source::Coarse {
        clock::use_source(clock::Source::Shared);
    }
}

/// May the recorder make system calls that the program itself might not make?
pub fn unrestricted() -> bool {
    RESTRICTED.load(Ordering::Relaxed) == 0
}

/// The process is about to give up its freedom to open files, or the sight of the live directory.
pub fn prepare_for_sandbox() {
    if owned() && !thread::state().in_vfork() {
        arena::prepare_for_sandbox();
    }
}

/// `unshare` or `setns` succeeded, or a child is about to be made in another pid namespace.
pub fn namespace_changed() {
    NAMESPACE_CHANGED.store(1, Ordering::Relaxed);
}

/// Remembers something that explains bytes which hooks do not see.
pub fn note_unseen_io(way: u32) {
    if let Some(slot) = own_slot()
        && slot.unseen_io.load(Ordering::Relaxed) & way == 0
    {
        slot.unseen_io.fetch_or(way, Ordering::Relaxed);
    }
}

/// Counts one record that could not be kept.
#[cold]
pub fn count_loss(loss: Loss) {
    match (own_slot(), control()) {
        (Some(slot), _) => slot.losses[loss as usize].fetch_add(1, Ordering::Relaxed),
        (None, Some(control)) => control.losses[loss as usize].fetch_add(1, Ordering::Relaxed),
        (None, None) => 0,
    };
}

/// Name id of the working directory.
pub fn cwd() -> u32 {
    CWD.load(Ordering::Relaxed)
}

/// The program changed its working directory.
pub fn set_cwd(id: u32) {
    CWD.store(id, Ordering::Relaxed);
}

/// The process's own pid, as its slot has it; 0 before there is one.
pub fn pid() -> u32 {
    own_slot().map_or(0, |slot| slot.pid)
}

/// What the process calls itself from now on.
pub fn set_own_name(id: u32) {
    if let Some(slot) = own_slot() {
        slot.own_name.store(id, Ordering::Relaxed);
    }
}

/// As [`intern`], for a C string. One that is used again at once (a file that is looked at and then opened) costs neither its length nor a hash.
///
/// # Safety
/// `text` must be a C string.
#[inline(never)]
pub unsafe fn intern_text(base: u32, text: *const c_char) -> u32 {
    if let Some(id) = thread::state().last_name(epoch())
        // SAFETY: a name of this epoch is in the arena of now, which is mapped.
        && unsafe { names::is_text(arena::base(), id, base, text.cast()) }
    {
        return id;
    }
    // SAFETY: the caller's word.
    unsafe { intern_new_text(base, text) }
}

#[inline(never)]
unsafe fn intern_new_text(base: u32, text: *const c_char) -> u32 {
    // SAFETY: the caller's word.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    let epoch = epoch();
    if epoch != 0
        // SAFETY: as in `intern`.
        && let Some(id) = unsafe { names::find(arena::base(), base, bytes) }
    {
        thread::state().remember_name(epoch, id);
        return id;
    }
    intern_anew(base, bytes)
}

/// Name id for `bytes`, relative to the name `base` (0: stands alone). 0 when it could not be kept, which is counted.
pub fn intern(base: u32, bytes: &[u8]) -> u32 {
    if owned()
        // SAFETY: there is an arena before anything is owned, and its pieces are mapped for the life of the image.
        && let Some(id) = unsafe { names::find(arena::base(), base, bytes) }
    {
        return id;
    }
    intern_anew(base, bytes)
}

/// For a name that is not where most are, and for a process that has not entered yet.
#[cold]
#[inline(never)]
fn intern_anew(base: u32, bytes: &[u8]) -> u32 {
    if !owned() {
        enter(thread::state());
        if !owned() {
            return 0;
        }
    }
    // SAFETY: as above.
    let id = unsafe { names::intern(arena::base(), base, bytes, piece, || grow(piece_use::NAMES)) };
    if id == 0 {
        count_loss(Loss::NameLost);
    }
    id
}

static NAMES_MOVED: AtomicUsize = AtomicUsize::new(0);

/// `forget` is called when all name ids have become invalid, because the process moved to another arena.
pub fn watch_names(forget: extern "C" fn()) {
    NAMES_MOVED.store(forget as usize, Ordering::Relaxed);
}

/// Name ids belong to an arena; this process uses another one now.
fn forget_names() {
    table::next_epoch();
    let forget = NAMES_MOVED.load(Ordering::Relaxed);
    if forget != 0 {
        // SAFETY: only `watch_names` stores here, and only an `extern "C" fn()`.
        unsafe { core::mem::transmute::<usize, extern "C" fn()>(forget)() };
    }
}

/// Name ids of the working directory, the executable and the command line.
fn own_names(base_piece: *mut u8) -> (u32, u32, u32) {
    let name = |read: fn(&mut [u8]) -> sys::SysResult| {
        let intern = |buf: &mut [u8; scratch::SIZE]| {
            // SAFETY: callers pass the base piece that was just mapped.
            read(buf).map_or(0, |n| unsafe { names::intern(base_piece, 0, &buf[..n], piece, || false) })
        };
        scratch::NAMES.with(intern).unwrap_or(0)
    };
    let exe = name(|buf| sys::readlink(c"/proc/self/exe", buf));
    (name(sys::getcwd), exe, name(|buf| sys::read_file(c"/proc/self/cmdline", buf)))
}

/// Finds a variable in a C environment.
///
/// # Safety
/// `environment` must be null or a null-terminated array of C strings that live as long as `'a`.
pub unsafe fn variable<'a>(environment: *const *const c_char, name: &str) -> Option<&'a [u8]> {
    if environment.is_null() {
        return None;
    }
    let mut at = environment;
    // SAFETY: the caller vouches for the array and its strings.
    unsafe {
        while !(*at).is_null() {
            let entry = CStr::from_ptr(*at).to_bytes();
            if let Some(value) = entry.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) {
                return Some(value);
            }
            at = at.add(1);
        }
    }
    None
}
