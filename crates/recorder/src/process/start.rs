//! Start and stop: a process begins to record, and announces its end.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::slot::{self, Birth, claim_slot, end_now, kernel_io, pid_namespace, publish_slot, slot_at};
use super::{
    ACTIVE, CWD, EPOCH, OFF, OWNER, SLOT, STARTING, STATE, UNBORN, UNOWNED, forget_names, own_names, own_slot,
};
use crate::arena;
use crate::clock::{self, ClockGettime};
use crate::layout::{options, process_state};
use crate::{identity, sys, table, thread};

/// What the front-end knows about the image.
pub struct Start<'a> {
    /// The live directory, from [`super::LIVE_VARIABLE`].
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

/// Ends the recording of this process with all its events complete; a later [`start`] begins a new one.
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
    thread::record(weftline_calls::Call::end, now, now, &fields);
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
    clock::set(arena::rules().clock, given.gettime);
    if given.late {
        clock::look_for_counter();
    }
    thread::learn_tid_place();
    if arena::wants(options::SPAN_USAGE) {
        table::local().wants_usage.store(table::wants::ALL, Ordering::Relaxed);
    }

    let claimed = arena::claim(control).map_err(|why| arena::refuse(control, why)).ok()?;
    arena::settle_in(&claimed);
    let owner = owner_page()?;
    let epoch = EPOCH.fetch_add(1, Ordering::Relaxed) + 1;
    forget_names();

    let (cwd, exe, command) = own_names(arena::base());
    CWD.store(cwd, Ordering::Relaxed);

    let index = claim_slot()?;
    let place = identity::place(given.variable);
    let slot = slot_at(index)?;
    let birth = Birth {
        pid: sys::getpid(),
        ppid: sys::getppid(),
        pid_namespace: pid_namespace(),
        // SAFETY: the caller gives sixteen bytes.
        nonce: unsafe { given.random.cast::<u64>().read_unaligned() },
        exe,
        command,
        cwd,
        parent_slot: 0,
        rank: place.rank,
        world_size: place.world_size,
        local_rank: place.local_rank,
        launcher: place.launcher as u32,
        io_start: kernel_io(),
    };
    // SAFETY: the slot was claimed by us alone; OWNER's page is never unmapped.
    unsafe {
        publish_slot(slot, &birth);
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

pub(super) fn note_birth() {
    let now = clock::ticks();
    let fields = thread::Fields { path: own_slot().map_or(0, |slot| slot.exe), ..thread::Fields::NONE };
    thread::record(weftline_calls::Call::start, now, now, &fields);
}

fn end(status: i32) {
    if let Some(slot) = own_slot() {
        // SAFETY: the process's own slot.
        unsafe { slot::end((&raw const *slot).cast_mut(), &end_now(status)) };
    }
}
