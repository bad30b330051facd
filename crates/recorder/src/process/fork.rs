//! Fork and exec: a child becomes a process of its own in the inherited arena, and an image gives way to the next one.

use core::sync::atomic::Ordering;

use super::slot::{self, Birth, claim_slot, end_now, pid_namespace, publish_slot, slot_at};
use super::start::note_birth;
use super::{
    ACTIVE, CWD, EPOCH, NAMESPACE_CHANGED, OWNER, SLOT, STATE, count_loss, forget_names, own_names, own_slot, owned,
    unrestricted,
};
use crate::arena::{self, control};
use crate::layout::{KernelIo, Loss, process_state};
use crate::thread::{self, ThreadState};
use crate::{scratch, sys};

/// Called before `fork`: reserves the child's slot, so that the parent can write the child's pid as it sees it.
pub fn before_fork() {
    let thread = thread::state();
    if owned() {
        thread.reserved_slot.store(claim_slot().map_or(0, |index| index + 1), Ordering::Relaxed);
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
    let reserved = thread.reserved_slot.swap(0, Ordering::Relaxed);
    thread.forget();
    scratch::forked();
    arena::forked();
    let parent = SLOT.load(Ordering::Relaxed);
    let Some(parent_slot) = slot_at(parent) else { return };
    let (index, moved) = match reserved.checked_sub(1).or_else(claim_slot) {
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
    let namespace = |known| match NAMESPACE_CHANGED.load(Ordering::Relaxed) != 0 {
        true if unrestricted() => pid_namespace(),
        // Unknown is better than wrong: the drain finds the process by its start then.
        true => 0,
        false => known,
    };
    // SAFETY: the child's slot is claimed by us; of the parent's only fields that never change are read.
    unsafe {
        let birth = Birth {
            pid: sys::getpid(),
            ppid: (*parent_slot).pid,
            pid_namespace: namespace((*parent_slot).pid_namespace),
            nonce: (*parent_slot).nonce,
            exe: moved.map_or((*parent_slot).exe, |moved| moved.exe),
            command: moved.map_or((*parent_slot).command, |moved| moved.command),
            cwd: CWD.load(Ordering::Relaxed),
            parent_slot: if moved.is_some() { 0 } else { parent + 1 },
            rank: (*parent_slot).rank,
            world_size: (*parent_slot).world_size,
            local_rank: (*parent_slot).local_rank,
            launcher: (*parent_slot).launcher,
            // The kernel gives a new process fresh counters.
            io_start: KernelIo::default(),
        };
        sys::OWN_READS.store(0, Ordering::Relaxed);
        publish_slot(slot, &birth);
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
    arena::settle_in(&arena::claim(control).ok()?);
    let (cwd, exe, command) = own_names(arena::base());
    CWD.store(cwd, Ordering::Relaxed);
    forget_names();
    Some(Moved { slot: claim_slot()?, exe, command })
}

/// Called before exec with what the next image will be (see [`crate::elf::Verdict`]).
pub fn before_exec(verdict: u32, path: u32) {
    let Some(slot) = own_slot() else { return };
    if thread::state().in_vfork() {
        return;
    }
    // SAFETY: the process's own slot.
    unsafe { slot::execute((&raw const *slot).cast_mut(), &end_now(-1), verdict, path) };
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
