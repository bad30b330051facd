//! One process's life in an arena: start, fork, exec, exit, and the segments in between.
//!
//! States of the private side (`STATE`): `UNBORN` until the first event or the library's constructor, `STARTING` while one
//! thread sets up, then `ACTIVE` or, for good, `OFF`. `OFF` costs a caller one load.
//!
//! Ownership after fork: [`owned`] reads a word in a page that the kernel zeroes in every child (MADV_WIPEONFORK), whoever made
//! the child and however. A child that finds it zero calls [`enter`] before it writes anything.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::clock::{self, ClockGettime};
use crate::layout::{
    ARENA_MAGIC, ArenaHeader, BASE_SEGMENTS, BASE_SEGMENTS_AT, CONTROL_MAGIC, CONTROL_SIZE, Control, GROWN_SEGMENTS,
    KernelIo, LAYOUT_VERSION, Loss, MAX_PIECES, PIECE_SIZE, POOL_SLOTS, PROCESS_SLOTS, PROCESSES_AT, ProcessSlot,
    SEGMENT_SIZE, SegmentHeader, options, piece_use, pool_state, process_state, segment_state,
};
use crate::thread::{self, ThreadState};
use crate::{identity, names, scratch, sys};

const UNBORN: u32 = 0;
const STARTING: u32 = 1;
const ACTIVE: u32 = 2;
const OFF: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(UNBORN);
static CONTROL: AtomicPtr<Control> = AtomicPtr::new(core::ptr::null_mut());
static SLOT: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// A seccomp filter is in force: no system call that a program of this kind might not make itself.
static RESTRICTED: AtomicU32 = AtomicU32::new(0);
/// Set after `unshare` or `setns`: children must look at their pid namespace again.
static NAMESPACE_CHANGED: AtomicU32 = AtomicU32::new(0);
/// Name id of the working directory.
static CWD: AtomicU32 = AtomicU32::new(0);
/// Earliest time (CLOCK_MONOTONIC) of the next nap or attempt to grow, after one that did not help.
static NEXT_TRY: AtomicU64 = AtomicU64::new(0);
static PIECES: [AtomicPtr<u8>; MAX_PIECES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_PIECES];

/// The word that tells parent from child. Until the wiped page exists it points at a zero: not owned.
static OWNER: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const UNOWNED).cast_mut());
static UNOWNED: AtomicU32 = AtomicU32::new(0);

/// Longest path of a live directory; longer ones are refused by `weft run` as well.
pub const LIVE_PATH_MAX: usize = 3900;
struct LiveDir(core::cell::UnsafeCell<[u8; LIVE_PATH_MAX + 64]>);
// SAFETY: written once, by the thread that is in state STARTING, and read only in state ACTIVE.
unsafe impl Sync for LiveDir {}
static LIVE_DIR: LiveDir = LiveDir(core::cell::UnsafeCell::new([0; LIVE_PATH_MAX + 64]));
static LIVE_DIR_LENGTH: AtomicU32 = AtomicU32::new(0);

/// Environment variable that names the live directory: the only thing besides LD_PRELOAD that a traced program needs.
pub const LIVE_VARIABLE: &str = "WEFT_LIVE";

/// What the front-end knows about the image.
pub struct Start<'a> {
    /// The live directory, from [`LIVE_VARIABLE`].
    pub live: &'a [u8],
    /// `clock_gettime`.
    pub gettime: Option<ClockGettime>,
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<&'a [u8]>,
    /// Sixteen random bytes from the kernel (AT_RANDOM), new for every image.
    pub random: *const u8,
}

/// Does the calling process own what its memory says? False before the start and in a child that has not entered yet.
#[inline(always)]
pub fn owned() -> bool {
    // SAFETY: OWNER points at a static, or at a page that is never unmapped.
    unsafe { (*OWNER.load(Ordering::Relaxed)).load(Ordering::Relaxed) != 0 }
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
    control().is_some_and(|control| control.options & options::NO_IO != 0)
}

fn control() -> Option<&'static Control> {
    // SAFETY: either null or the control page, which stays mapped.
    unsafe { CONTROL.load(Ordering::Acquire).as_ref() }
}

fn header() -> Option<&'static ArenaHeader> {
    // SAFETY: either null or the base piece, which stays mapped and begins with its header.
    unsafe { PIECES[0].load(Ordering::Acquire).cast::<ArenaHeader>().as_ref() }
}

fn slot_at(index: u32) -> Option<*mut ProcessSlot> {
    let base = PIECES[0].load(Ordering::Acquire);
    // SAFETY: slots lie inside the base piece.
    (!base.is_null() && (index as usize) < PROCESS_SLOTS)
        .then(|| unsafe { base.add(PROCESSES_AT).cast::<ProcessSlot>().add(index as usize) })
}

/// The process's own slot; null-safe because a refused process has none.
fn own_slot() -> Option<&'static ProcessSlot> {
    if !owned() {
        return None;
    }
    // SAFETY: slots are valid memory for the life of the mapping; shared fields are atomics.
    slot_at(SLOT.load(Ordering::Relaxed)).map(|slot| unsafe { &*slot })
}

/// A seccomp filter was installed, or is about to be.
pub fn restrict() {
    RESTRICTED.store(1, Ordering::Relaxed);
    note_habit(crate::layout::habits::SECCOMP);
}

/// May the recorder make system calls that the program itself might not make?
pub fn unrestricted() -> bool {
    RESTRICTED.load(Ordering::Relaxed) == 0
}

/// `unshare` or `setns` succeeded.
pub fn namespace_changed() {
    NAMESPACE_CHANGED.store(1, Ordering::Relaxed);
}

/// Remembers something that explains bytes which hooks do not see.
pub fn note_habit(habit: u32) {
    if let Some(slot) = own_slot()
        && slot.habits.load(Ordering::Relaxed) & habit == 0
    {
        slot.habits.fetch_or(habit, Ordering::Relaxed);
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

/// Name id for `bytes`, relative to the name `base` (0: stands alone). 0 when it could not be kept, which is counted.
pub fn intern(base: u32, bytes: &[u8]) -> u32 {
    if !owned() {
        enter(thread::state());
    }
    let arena = PIECES[0].load(Ordering::Acquire);
    if !owned() || arena.is_null() {
        return 0;
    }
    // SAFETY: pieces in PIECES are mapped for the life of the image.
    let id = unsafe { names::intern(arena, base, bytes, piece, || grow(piece_use::NAMES)) };
    if id == 0 {
        count_loss(Loss::NameLost);
    }
    id
}

/// Sets the process up. Called by the library's constructor, or by whichever hook comes first.
pub fn start(given: &Start<'_>) {
    if STATE.compare_exchange(UNBORN, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    let ready = set_up(given).is_some();
    STATE.store(if ready { ACTIVE } else { OFF }, Ordering::Release);
    if ready {
        note_birth();
    }
}

fn set_up(given: &Start<'_>) -> Option<()> {
    if given.live.is_empty() || given.live.len() > LIVE_PATH_MAX || given.live[0] != b'/' {
        return None;
    }
    // SAFETY: only the one thread in state STARTING gets here, and nobody reads before ACTIVE.
    unsafe { (&mut *LIVE_DIR.0.get())[..given.live.len()].copy_from_slice(given.live) };
    LIVE_DIR_LENGTH.store(given.live.len() as u32, Ordering::Relaxed);

    let fd = with_live_path(b"ctl", None, |path| sys::open(path, libc::O_RDWR, 0))?.ok()?;
    let mapped = sys::map_shared(fd, CONTROL_SIZE);
    sys::close(fd);
    let control_at = mapped?.cast::<Control>();
    // SAFETY: the mapping is CONTROL_SIZE bytes long, which holds a Control.
    let control = unsafe { &*control_at };
    if control.magic != CONTROL_MAGIC || control.version != LAYOUT_VERSION {
        return None;
    }
    CONTROL.store(control_at, Ordering::Release);
    clock::set(control.clock, given.gettime);

    let Some(base) = claim(control) else {
        count_loss(Loss::NoArena);
        return None;
    };
    PIECES[0].store(base, Ordering::Release);
    let owner = sys::map_private(4096)?;
    // Without the kernel's help (before 4.14) forks are still noticed by the fork hooks, raw clones are not.
    sys::wipe_on_fork(owner, 4096);
    let owner = owner.cast::<AtomicU32>();

    let header = header()?;
    let (cwd, exe, command) = own_names(PIECES[0].load(Ordering::Acquire));
    CWD.store(cwd, Ordering::Relaxed);

    let index = claim_slot(header)?;
    let place = identity::place(given.variable);
    let slot = slot_at(index)?;
    // SAFETY: the slot was claimed by us alone; the drain reads it only once its state is LIVE.
    unsafe {
        (*slot).exe = exe;
        (*slot).command = command;
        (*slot).cwd = cwd;
        (*slot).parent_slot = 0;
        (*slot).nonce = given.random.cast::<u64>().read_unaligned();
        (*slot).rank = place.rank;
        (*slot).world_size = place.world_size;
        (*slot).local_rank = place.local_rank;
        (*slot).launcher = place.launcher as u32;
        (*slot).io_start = kernel_io();
        (*slot).pid_namespace = pid_namespace();
        publish_slot(slot, sys::getpid(), sys::getppid());
        (*owner).store(1, Ordering::Relaxed);
    }
    SLOT.store(index, Ordering::Relaxed);
    OWNER.store(owner, Ordering::Release);
    Some(())
}

/// Takes an arena from the pool, or makes one when the pool is empty.
fn claim(control: &Control) -> Option<*mut u8> {
    let me = pool_state::CLAIMED | u64::from(sys::getpid());
    for (number, word) in control.pool.iter().enumerate() {
        if word.load(Ordering::Relaxed) == pool_state::READY
            && word.compare_exchange(pool_state::READY, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            if let Some(base) = map_piece(number as u64, 0) {
                return Some(base);
            }
            // Cannot be opened from here (descriptors, permissions, another root): let another process have it.
            word.store(pool_state::READY, Ordering::Release);
            break;
        }
    }
    let number = POOL_SLOTS as u64 + control.own_arenas.fetch_add(1, Ordering::Relaxed);
    let base = make_piece(number, 0)?;
    let arena = base.cast::<ArenaHeader>();
    // SAFETY: a new file of PIECE_SIZE zero bytes that nobody else has claimed.
    unsafe { init_arena(arena, number, control.clock) };
    Some(base)
}

/// Makes a zeroed base piece an empty arena.
///
/// # Safety
/// `arena` must be a zeroed, mapped base piece that no process uses.
pub unsafe fn init_arena(arena: *mut ArenaHeader, number: u64, clock: u32) {
    // SAFETY: the caller owns the piece.
    unsafe {
        (*arena).version = LAYOUT_VERSION;
        (*arena).clock = clock;
        (*arena).number = number;
        (*arena).pieces_used.store(1, Ordering::Relaxed);
        (*arena).pieces[0].used_for.store(piece_use::SEGMENTS, Ordering::Relaxed);
        (*arena).pieces[0].free.store(u64::MAX >> (64 - BASE_SEGMENTS), Ordering::Relaxed);
        (*arena).magic.store(ARENA_MAGIC, Ordering::Release);
    }
}

fn map_piece(number: u64, index: usize) -> Option<*mut u8> {
    let fd = with_live_path(b"a", Some((number, index)), |path| sys::open(path, libc::O_RDWR, 0))?.ok()?;
    let at = sys::map_shared(fd, PIECE_SIZE);
    sys::close(fd);
    at
}

/// Makes the file of a piece, fully allocated so that stores into it cannot fault for lack of space.
fn make_piece(number: u64, index: usize) -> Option<*mut u8> {
    // Growing a file past RLIMIT_FSIZE would raise SIGXFSZ in the program.
    if sys::limit(libc::RLIMIT_FSIZE) < PIECE_SIZE as u64 {
        return None;
    }
    with_live_path(b"a", Some((number, index)), |path| {
        let fd = sys::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o600).ok()?;
        let at = sys::allocate(fd, PIECE_SIZE).ok().and_then(|_| sys::map_shared(fd, PIECE_SIZE));
        sys::close(fd);
        if at.is_none() {
            sys::unlink(path);
        }
        at
    })?
}

/// Calls `f` with `<live>/<stem>[<number>[.<piece>]]` as a C string.
fn with_live_path<R>(stem: &[u8], number: Option<(u64, usize)>, f: impl FnOnce(&CStr) -> R) -> Option<R> {
    scratch::FILES.with(|path| {
        let mut at = LIVE_DIR_LENGTH.load(Ordering::Relaxed) as usize;
        // SAFETY: written before this thread's STARTING or ACTIVE state, never again.
        path[..at].copy_from_slice(unsafe { &(&*LIVE_DIR.0.get())[..at] });
        let mut push = |bytes: &[u8]| {
            path[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        push(b"/");
        push(stem);
        if let Some((number, piece)) = number {
            let mut digits = [0u8; 20];
            push(decimal(number, &mut digits));
            if piece > 0 {
                push(b".");
                push(decimal(piece as u64, &mut digits));
            }
        }
        push(b"\0");
        f(CStr::from_bytes_until_nul(path).unwrap_or_default())
    })
}

/// Decimal digits of `n`.
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

/// Is the control page's directory reachable and writable from here, for the image that comes after an exec?
pub fn live_directory_reachable() -> bool {
    with_live_path(b"ctl", None, |path| sys::accessible(path, libc::R_OK | libc::W_OK)).unwrap_or(false)
}

/// The live directory, for the environment of children.
pub fn live_directory() -> &'static [u8] {
    let length = LIVE_DIR_LENGTH.load(Ordering::Relaxed) as usize;
    // SAFETY: written once before the state became ACTIVE.
    unsafe { &(&*LIVE_DIR.0.get())[..length] }
}

fn claim_slot(header: &ArenaHeader) -> Option<u32> {
    (0..PROCESS_SLOTS as u32).find(|index| {
        slot_at(*index).is_some_and(|slot| {
            // SAFETY: slots are valid memory; `state` is atomic, and the swap gives the rest of the slot to us.
            unsafe {
                let taken = (*slot)
                    .state
                    .compare_exchange(process_state::FREE, process_state::CLAIMED, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok();
                if taken {
                    (*slot).pid = 0;
                    (*slot).ppid = sys::getpid();
                    (*slot).generation = header.generations.fetch_add(1, Ordering::Relaxed) + 1;
                }
                taken
            }
        })
    })
}

/// # Safety
/// `slot` must be claimed by the caller and filled in except for what is set here.
unsafe fn publish_slot(slot: *mut ProcessSlot, pid: u32, ppid: u32) {
    // SAFETY: the caller owns the slot until its state is LIVE.
    unsafe {
        (*slot).pid = pid;
        (*slot).ppid = ppid;
        (*slot).pid_outside.store(0, Ordering::Relaxed);
        (*slot).born_ticks = clock::ticks();
        (*slot).born_mono = clock::monotonic();
        (*slot).born_real = clock::read(libc::CLOCK_REALTIME);
        (*slot).born_boot = clock::read(libc::CLOCK_BOOTTIME);
        (*slot).ended_ticks.store(0, Ordering::Relaxed);
        (*slot).exit_status.store(-1, Ordering::Relaxed);
        (*slot).exec_verdict.store(0, Ordering::Relaxed);
        (*slot).exec_path.store(0, Ordering::Relaxed);
        (*slot).habits.store(0, Ordering::Relaxed);
        (*slot).io_end = KernelIo::UNKNOWN;
        for loss in &(*slot).losses {
            loss.store(0, Ordering::Relaxed);
        }
        GENERATION.store((*slot).generation, Ordering::Relaxed);
        (*slot).state.store(process_state::LIVE, Ordering::Release);
    }
}

fn note_birth() {
    let now = clock::ticks();
    let fields = thread::Fields { path: own_slot().map_or(0, |slot| slot.exe), ..thread::Fields::NONE };
    thread::record(crate::calls::Call::start, now, now, &fields);
}

/// Called before `fork`: reserves the child's slot, so that the parent can write the child's pid as it sees it.
pub fn before_fork() {
    let thread = thread::state();
    if let Some(header) = header().filter(|_| owned()) {
        thread.reserved_slot.store(claim_slot(header).map_or(0, |index| index + 1), Ordering::Relaxed);
    }
}

/// Called in the parent after `fork`.
pub fn after_fork_in_parent(child: i32) {
    let reserved = thread::state().reserved_slot.swap(0, Ordering::Relaxed);
    if let Some(slot) = reserved.checked_sub(1).and_then(slot_at) {
        // SAFETY: slots are valid memory; only atomics are touched.
        unsafe {
            if child > 0 {
                (*slot).pid_outside.store(child as u32, Ordering::Release);
            } else {
                (*slot).state.store(process_state::FREE, Ordering::Release);
            }
        }
    }
}

/// Makes a child that was just forked (by whatever means) a process of its own in the shared arena.
#[cold]
pub fn enter(thread: &ThreadState) {
    if STATE.load(Ordering::Acquire) != ACTIVE || owned() {
        return;
    }
    let Some(header) = header() else { return };
    let reserved = thread.reserved_slot.swap(0, Ordering::Relaxed);
    thread.forget();
    scratch::forked();
    let parent = SLOT.load(Ordering::Relaxed);
    let Some(parent_slot) = slot_at(parent) else { return };
    let (index, moved) = match reserved.checked_sub(1).or_else(|| claim_slot(header)) {
        Some(index) => (Some(index), None),
        None => {
            let moved = move_to_own_arena();
            (moved.map(|moved| moved.slot), moved)
        }
    };
    let Some((index, slot)) = index.and_then(|index| Some((index, slot_at(index)?))) else {
        count_loss(Loss::NoProcessSlot);
        return;
    };
    // SAFETY: the child's slot is claimed by us; of the parent's only fields that never change are read.
    unsafe {
        (*slot).exe = moved.map_or((*parent_slot).exe, |moved| moved.exe);
        (*slot).command = moved.map_or((*parent_slot).command, |moved| moved.command);
        (*slot).cwd = CWD.load(Ordering::Relaxed);
        (*slot).parent_slot = if moved.is_some() { 0 } else { parent + 1 };
        (*slot).nonce = (*parent_slot).nonce;
        (*slot).rank = (*parent_slot).rank;
        (*slot).world_size = (*parent_slot).world_size;
        (*slot).local_rank = (*parent_slot).local_rank;
        (*slot).launcher = (*parent_slot).launcher;
        (*slot).pid_namespace = if NAMESPACE_CHANGED.load(Ordering::Relaxed) != 0 && unrestricted() {
            pid_namespace()
        } else {
            (*parent_slot).pid_namespace
        };
        // The kernel gives a new process fresh counters.
        (*slot).io_start = KernelIo::default();
        sys::OWN_READS.store(0, Ordering::Relaxed);
        let outside = (*slot).pid_outside.load(Ordering::Relaxed);
        publish_slot(slot, sys::getpid(), (*parent_slot).pid);
        if outside != 0 {
            (*slot).pid_outside.store(outside, Ordering::Relaxed);
        }
        SLOT.store(index, Ordering::Relaxed);
        (*OWNER.load(Ordering::Relaxed)).store(1, Ordering::Release);
    }
    note_birth();
}

/// A child's place in an arena of its own.
#[derive(Clone, Copy)]
struct Moved {
    slot: u32,
    exe: u32,
    command: u32,
}

/// For a child whose family has used up its process slots. The old mapping stays where it is: the parent's slot is still read.
#[cold]
fn move_to_own_arena() -> Option<Moved> {
    let control = control().filter(|_| unrestricted())?;
    let base = claim(control)?;
    for piece in &PIECES {
        piece.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
    PIECES[0].store(base, Ordering::Release);
    let header = header()?;
    let (cwd, exe, command) = own_names(PIECES[0].load(Ordering::Acquire));
    CWD.store(cwd, Ordering::Relaxed);
    let forget = NAMES_MOVED.load(Ordering::Relaxed);
    if forget != 0 {
        // SAFETY: only `watch_names` stores here, and only an `extern "C" fn()`.
        unsafe { core::mem::transmute::<usize, extern "C" fn()>(forget)() };
    }
    Some(Moved { slot: claim_slot(header)?, exe, command })
}

static NAMES_MOVED: AtomicUsize = AtomicUsize::new(0);

/// `forget` is called when all name ids have become invalid, because the process moved to another arena.
pub fn watch_names(forget: extern "C" fn()) {
    NAMES_MOVED.store(forget as usize, Ordering::Relaxed);
}

/// Name ids of the working directory, the executable and the command line.
fn own_names(arena: *mut u8) -> (u32, u32, u32) {
    let name = |read: fn(&mut [u8]) -> sys::SysResult| {
        let intern = |buf: &mut [u8; scratch::SIZE]| {
            // SAFETY: callers pass the base piece that was just mapped.
            read(buf).map_or(0, |n| unsafe { names::intern(arena, 0, &buf[..n], piece, || false) })
        };
        scratch::NAMES.with(intern).unwrap_or(0)
    };
    let exe = name(|buf| sys::readlink(c"/proc/self/exe", buf));
    (name(sys::getcwd), exe, name(|buf| sys::read_file(c"/proc/self/cmdline", buf)))
}

/// The process announces its end; what it still records after this is kept as well.
pub fn end(status: i32) {
    let Some(index) = own_slot().map(|_| SLOT.load(Ordering::Relaxed)) else { return };
    settle(index, status);
    if let Some(slot) = own_slot() {
        slot.ended_ticks.store(clock::ticks(), Ordering::Relaxed);
        slot.state.store(process_state::ENDED, Ordering::Release);
    }
}

/// Called before exec with what the next image will be (see [`crate::elf::Verdict`]).
pub fn before_exec(verdict: u32, path: u32) {
    let Some(slot) = own_slot() else { return };
    if thread::state().in_vfork() {
        return;
    }
    settle(SLOT.load(Ordering::Relaxed), -1);
    slot.exec_verdict.store(verdict, Ordering::Relaxed);
    slot.exec_path.store(path, Ordering::Relaxed);
    slot.ended_ticks.store(clock::ticks(), Ordering::Relaxed);
    slot.state.store(process_state::EXECUTING, Ordering::Release);
}

/// The exec failed: the image lives on.
pub fn exec_failed() {
    if let Some(slot) = own_slot()
        && !thread::state().in_vfork()
    {
        slot.exec_verdict.store(0, Ordering::Relaxed);
        slot.state.store(process_state::LIVE, Ordering::Release);
    }
}

/// Final counters of the image.
fn settle(index: u32, status: i32) {
    let Some(slot) = slot_at(index) else { return };
    let io = kernel_io();
    let (user, system, peak) = if unrestricted() { sys::usage() } else { (0, 0, 0) };
    // SAFETY: these fields are written by this process only; the drain reads them once the state says so.
    unsafe {
        (*slot).io_end = io;
        (*slot).cpu_user = user;
        (*slot).cpu_system = system;
        (*slot).max_rss = peak;
        (*slot).exit_status.store(status, Ordering::Relaxed);
    }
}

/// The kernel's counters, without what the recorder itself has read since the image started.
fn kernel_io() -> KernelIo {
    if !unrestricted() {
        return KernelIo::UNKNOWN;
    }
    let own = sys::OWN_READS.load(Ordering::Relaxed);
    let mut buf = [0u8; 256];
    let Ok(n) = sys::read_file(c"/proc/self/io", &mut buf) else { return KernelIo::UNKNOWN };
    let Some(io) = parse_io(&buf[..n]) else { return KernelIo::UNKNOWN };
    KernelIo { rchar: io.rchar.saturating_sub(own), wchar: io.wchar }
}

/// The first two lines of `/proc/PID/io`.
pub fn parse_io(text: &[u8]) -> Option<KernelIo> {
    let number = |key: &[u8]| {
        let at = text.windows(key.len()).position(|window| window == key)? + key.len();
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit());
        Some(digits.fold(0u64, |n, digit| n.wrapping_mul(10) + u64::from(digit - b'0')))
    };
    Some(KernelIo { rchar: number(b"rchar: ")?, wchar: number(b"wchar: ")? })
}

fn pid_namespace() -> u64 {
    sys::stat(c"/proc/self/ns/pid").map_or(0, |stat| stat.st_ino)
}

/// Address of a piece, mapping it if another process of the family made it.
fn piece(index: usize) -> Option<*mut u8> {
    let at = PIECES[index].load(Ordering::Acquire);
    if !at.is_null() {
        return Some(at);
    }
    if !unrestricted() {
        return None;
    }
    let new = map_piece(header()?.number, index)?;
    match PIECES[index].compare_exchange(core::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(new),
        Err(other) => {
            // SAFETY: nobody has seen this second mapping.
            unsafe { sys::unmap(new, PIECE_SIZE) };
            Some(other)
        }
    }
}

/// Adds a piece. Only one process makes a given piece; whoever loses the race uses the winner's.
fn grow(used_for: u32) -> bool {
    let (Some(header), Some(control)) = (header(), control()) else { return false };
    if !unrestricted() {
        header.growth_refused.fetch_or(4, Ordering::Relaxed);
        return false;
    }
    let limit = (control.max_pieces as usize).clamp(1, MAX_PIECES);
    let taken = |index: &usize| {
        let used = &header.pieces[*index].used_for;
        used.compare_exchange(piece_use::NONE, piece_use::MAKING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let Some(index) = (1..limit).find(taken) else {
        header.growth_refused.fetch_or(1, Ordering::Relaxed);
        return false;
    };
    let Some(at) = make_piece(header.number, index) else {
        header.growth_refused.fetch_or(2, Ordering::Relaxed);
        header.pieces[index].used_for.store(piece_use::NONE, Ordering::Release);
        return false;
    };
    PIECES[index].store(at, Ordering::Release);
    if used_for == piece_use::SEGMENTS {
        header.pieces[index].free.store(u64::MAX >> (64 - GROWN_SEGMENTS), Ordering::Relaxed);
    }
    header.pieces_used.fetch_max(index as u32 + 1, Ordering::Relaxed);
    header.pieces[index].used_for.store(used_for, Ordering::Release);
    true
}

/// Gives a segment to the drain.
pub(crate) fn close_segment(segment: *mut SegmentHeader) {
    let Some(header) = header() else { return };
    // SAFETY: callers hand over a segment of a mapped piece that they own.
    unsafe { (*segment).state.store(segment_state::CLOSED, Ordering::Release) };
    for (index, start) in PIECES.iter().enumerate() {
        let start = start.load(Ordering::Acquire) as usize;
        let at = segment as usize;
        if start != 0 && (start..start + PIECE_SIZE).contains(&at) {
            let first = if index == 0 { BASE_SEGMENTS_AT } else { 0 };
            header.pieces[index].closed.fetch_or(1 << ((at - start - first) / SEGMENT_SIZE), Ordering::Release);
            return;
        }
    }
}

/// A fresh segment for a thread; `None` when there is none, which is counted as a loss by reason.
pub(crate) fn take_segment(tid: u32) -> Option<*mut SegmentHeader> {
    let header = header().filter(|_| owned())?;
    let control = control()?;
    let found = take_free(header).or_else(|| {
        let now = clock::monotonic();
        let supervised = control.options & options::UNSUPERVISED == 0
            && now.saturating_sub(control.heartbeat.load(Ordering::Relaxed)) < 1_000_000_000;
        if now < NEXT_TRY.load(Ordering::Relaxed) {
            return None;
        }
        // The drain is a little behind: let it have the processor before memory is grown.
        if supervised && unrestricted() {
            for _ in 0..4 {
                sys::nap(250_000);
                if let Some(found) = take_free(header) {
                    return Some(found);
                }
            }
        }
        if grow(piece_use::SEGMENTS) {
            return take_free(header);
        }
        if control.options & options::WAIT_WHEN_FULL != 0 && supervised && unrestricted() {
            while clock::monotonic().saturating_sub(now) < control.wait_limit {
                sys::nap(1_000_000);
                if let Some(found) = take_free(header) {
                    return Some(found);
                }
            }
        }
        NEXT_TRY.store(clock::monotonic() + 100_000_000, Ordering::Relaxed);
        None
    });
    match found {
        Some(segment) => {
            let sequence = header.segments_taken.fetch_add(1, Ordering::Relaxed);
            thread::open_segment(
                segment,
                SLOT.load(Ordering::Relaxed),
                GENERATION.load(Ordering::Relaxed),
                tid,
                sequence,
            );
        }
        None => count_loss(Loss::ArenaFull),
    }
    found
}

fn take_free(header: &ArenaHeader) -> Option<*mut SegmentHeader> {
    let pieces = header.pieces_used.load(Ordering::Acquire) as usize;
    for index in 0..pieces.min(MAX_PIECES) {
        let piece_info = &header.pieces[index];
        if piece_info.used_for.load(Ordering::Acquire) != piece_use::SEGMENTS {
            continue;
        }
        loop {
            let free = piece_info.free.load(Ordering::Acquire);
            if free == 0 {
                break;
            }
            let bit = free & free.wrapping_neg();
            let Some(start) = piece(index) else { break };
            if piece_info.free.compare_exchange(free, free & !bit, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                piece_info.touched.fetch_or(bit, Ordering::Relaxed);
                let first = if index == 0 { BASE_SEGMENTS_AT } else { 0 };
                // SAFETY: the bit stands for a segment inside the piece.
                return Some(unsafe { start.add(first + bit.trailing_zeros() as usize * SEGMENT_SIZE).cast() });
            }
        }
    }
    None
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
