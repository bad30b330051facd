//! One process's life in an arena: start, fork, exec, exit.
//!
//! States of the private side (`STATE`): `UNBORN` until the first event or the library's constructor, `STARTING` while one
//! thread sets up, then `ACTIVE` or `OFF`. `OFF` costs a caller one load; only an explicit [`start`] leads out of it. Each start
//! begins an *epoch*: segments and name ids of an earlier one are not used any more.
//!
//! Ownership after fork: [`owned`] reads a word in a page that the kernel zeroes in every child (MADV_WIPEONFORK), whoever made
//! the child and however. A child that finds it zero calls [`enter`] before it writes anything.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::arena::{self, control, grow, header, piece};
use crate::clock::{self, ClockGettime};
use crate::layout::{
    ArenaHeader, KernelIo, Loss, PROCESS_SLOTS, PROCESSES_AT, ProcessSlot, options, piece_use, process_state,
};
use crate::thread::{self, ThreadState};
use crate::{identity, names, scratch, sys, table};

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
    /// The program has run for a while, and may have changed what it is allowed.
    pub late: bool,
}

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
    control().is_some_and(|control| control.options & options::NO_IO != 0)
}

fn slot_at(index: u32) -> Option<*mut ProcessSlot> {
    let base = arena::base();
    // SAFETY: slots lie inside the base piece.
    (!base.is_null() && (index as usize) < PROCESS_SLOTS)
        .then(|| unsafe { base.add(PROCESSES_AT).cast::<ProcessSlot>().add(index as usize) })
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
    let slow = || control().is_some_and(|control| control.options & options::SLOW_CLOCK != 0);
    if unrestricted() && owned() && slow() {
        clock::use_source(clock::Source::Coarse);
    }
    RESTRICTED.fetch_add(1, Ordering::Relaxed);
    note_habit(crate::layout::habits::SECCOMP);
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

/// Name id for `bytes`, relative to the name `base` (0: stands alone). 0 when it could not be kept, which is counted.
pub fn intern(base: u32, bytes: &[u8]) -> u32 {
    if !owned() {
        enter(thread::state());
    }
    let base_piece = arena::base();
    if !owned() || base_piece.is_null() {
        return 0;
    }
    // SAFETY: pieces of our arena are mapped for the life of the image.
    let id = unsafe { names::intern(base_piece, base, bytes, piece, || grow(piece_use::NAMES)) };
    if id == 0 {
        count_loss(Loss::NameLost);
    }
    id
}

/// Sets the process up. Called by the library's constructor, by whichever hook comes first, or late by a program that wants to
/// be recorded from now on. Does nothing while the process records.
pub fn start(given: &Start<'_>) {
    let take = |from| STATE.compare_exchange(from, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if !take(UNBORN) && !take(OFF) {
        return;
    }
    let ready = set_up(given).is_some();
    STATE.store(if ready { ACTIVE } else { OFF }, Ordering::Release);
    table::set_on(ready);
    if ready {
        note_birth();
    }
}

/// Ends the recording of this process with all its events complete; a later [`start`] begins anew.
pub fn stop(status: i32) {
    if STATE.load(Ordering::Acquire) != ACTIVE || thread::state().in_vfork() {
        return;
    }
    table::set_on(false);
    tell_stop();
    // An exit that hooks have seen was announced by them, with its status.
    if own_slot().is_none_or(|slot| slot.state.load(Ordering::Acquire) != process_state::ENDED) {
        note_end(status);
    }
    if STATE.compare_exchange(ACTIVE, OFF, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        // SAFETY: OWNER points at a static, or at a page that is never unmapped.
        unsafe { (*OWNER.load(Ordering::Relaxed)).store(0, Ordering::Release) };
    }
}

static STOPPING: AtomicUsize = AtomicUsize::new(0);

/// `then` is called when [`stop`] ends the recording: hooks need not look any more.
pub fn watch_stop(then: extern "C" fn()) {
    STOPPING.store(then as usize, Ordering::Release);
}

fn tell_stop() {
    let then = STOPPING.load(Ordering::Acquire);
    if then != 0 {
        // SAFETY: only `watch_stop` stores here, and only a function of this type.
        unsafe { core::mem::transmute::<usize, extern "C" fn()>(then)() };
    }
}

/// The process ends here: its last event, and its final counters. What it still records after this is kept as well.
pub fn note_end(status: i32) {
    let now = clock::ticks();
    let fields = thread::Fields { ret: i64::from(status), ..thread::Fields::NONE };
    thread::record(crate::calls::Call::end, now, now, &fields);
    end(status);
}

static AT_END: AtomicUsize = AtomicUsize::new(0);

/// `then` is called when the process announces its end, by [`run_at_end`].
pub fn call_at_end(then: Option<extern "C" fn(i32)>) {
    AT_END.store(then.map_or(0, |then| then as usize), Ordering::Release);
}

/// For the front-end that sees the end: `sudden` where the C library's exit handlers will not run.
pub fn run_at_end(sudden: bool) {
    let then = AT_END.load(Ordering::Acquire);
    if then != 0 {
        // SAFETY: only `call_at_end` stores here, and only a function of this type.
        unsafe { core::mem::transmute::<usize, extern "C" fn(i32)>(then)(i32::from(sudden)) };
    }
}

fn set_up(given: &Start<'_>) -> Option<()> {
    let control = arena::connect(given.live)?;
    clock::set(control.clock, given.gettime);
    if given.late {
        clock::look_for_counter();
    }
    thread::learn_tid_place();
    if control.options & options::SPAN_USAGE != 0 {
        table::local().wants_usage.store(table::wants::ALL, Ordering::Relaxed);
    }

    let base = arena::claim(control).map_err(|why| arena::refuse(control, why)).ok()?;
    arena::settle_in(base);
    let owner = owner_page()?;
    let epoch = EPOCH.fetch_add(1, Ordering::Relaxed) + 1;
    forget_names();

    let header = header()?;
    let (cwd, exe, command) = own_names(arena::base());
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
        SLOT.store(index, Ordering::Relaxed);
        (*owner).store(epoch, Ordering::Release);
    }
    OWNER.store(owner, Ordering::Release);
    Some(())
}

/// The page that the kernel wipes in every child; made once.
fn owner_page() -> Option<*mut AtomicU32> {
    let known = OWNER.load(Ordering::Acquire);
    if !core::ptr::eq(known, &raw const UNOWNED) {
        return Some(known);
    }
    let page = sys::map_private(4096)?;
    // Without the kernel's help (before 4.14) forks are still noticed by the fork hooks, raw clones are not.
    sys::wipe_on_fork(page, 4096);
    Some(page.cast::<AtomicU32>())
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
                    (*slot).pid_outside.store(0, Ordering::Relaxed);
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
        (*slot).born_ticks = clock::shared_ticks();
        (*slot).born_mono = clock::monotonic();
        (*slot).born_real = clock::read(libc::CLOCK_REALTIME);
        (*slot).born_boot = clock::read(libc::CLOCK_BOOTTIME);
        (*slot).ended_ticks.store(0, Ordering::Relaxed);
        (*slot).exit_status.store(-1, Ordering::Relaxed);
        (*slot).exec_verdict.store(0, Ordering::Relaxed);
        (*slot).exec_path.store(0, Ordering::Relaxed);
        (*slot).habits.store(0, Ordering::Relaxed);
        (*slot).own_name.store(0, Ordering::Relaxed);
        (*slot).io_end = KernelIo::UNKNOWN;
        (*slot).own_reads = 0;
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

/// Called in a child just made by `fork`. Kernels before 4.14 do not wipe the owner's page by themselves.
pub fn forked() {
    // SAFETY: OWNER points at a static, or at a page that is never unmapped; this process has one thread.
    unsafe { (*OWNER.load(Ordering::Relaxed)).store(0, Ordering::Relaxed) };
    enter(thread::state());
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
    arena::forked();
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
        (*slot).pid_namespace = match NAMESPACE_CHANGED.load(Ordering::Relaxed) != 0 {
            true if unrestricted() => pid_namespace(),
            // Unknown is better than wrong: the drain finds the process by its start then.
            true => 0,
            false => (*parent_slot).pid_namespace,
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
        (*OWNER.load(Ordering::Relaxed)).store(EPOCH.load(Ordering::Relaxed), Ordering::Release);
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
    arena::settle_in(arena::claim(control).ok()?);
    let header = header()?;
    let (cwd, exe, command) = own_names(arena::base());
    CWD.store(cwd, Ordering::Relaxed);
    forget_names();
    Some(Moved { slot: claim_slot(header)?, exe, command })
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

fn end(status: i32) {
    let Some(index) = own_slot().map(|_| SLOT.load(Ordering::Relaxed)) else { return };
    settle(index, status);
    if let Some(slot) = own_slot() {
        slot.ended_ticks.store(clock::shared_ticks(), Ordering::Relaxed);
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
    slot.ended_ticks.store(clock::shared_ticks(), Ordering::Relaxed);
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
        (*slot).own_reads = sys::OWN_READS.load(Ordering::Relaxed);
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
