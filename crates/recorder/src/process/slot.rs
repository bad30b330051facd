//! Process slots: one per process that records into the arena, from its birth to its final counters.

use core::sync::atomic::Ordering;

use super::{GENERATION, unrestricted};
use crate::layout::{ArenaHeader, KernelIo, PROCESS_SLOTS, PROCESSES_AT, ProcessSlot, process_state};
use crate::{arena, clock, handover, sys};

/// The facts about a process that its slot holds from the start. See the fields of [`ProcessSlot`].
#[allow(missing_docs, reason = "see layout::ProcessSlot, whose fields these are")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Birth {
    pub pid: u32,
    pub ppid: u32,
    pub pid_namespace: u64,
    pub nonce: u64,
    pub exe: u32,
    pub command: u32,
    pub cwd: u32,
    pub parent_slot: u32,
    pub rank: i32,
    pub world_size: i32,
    pub local_rank: i32,
    pub launcher: u32,
    pub io_start: KernelIo,
}

/// How an image ended, or became another one.
#[derive(Clone, Copy)]
pub struct End {
    /// Exit status, -1 when there is none.
    pub status: i32,
    /// Kernel counters.
    pub io: KernelIo,
    /// Processor time (user, system) in nanoseconds and peak memory in KiB.
    pub usage: (u64, u64, u64),
    /// What the recorder itself has read.
    pub own_reads: u64,
    /// Of the main thread: processor time, and time that it waited for a processor, in nanoseconds; 0 when not known.
    pub main: (u64, u64),
}

/// Address of a slot in the base piece at `base`; nothing beyond the last one.
///
/// # Safety
/// `base` must be null or a mapped base piece.
pub unsafe fn slot_in(base: *mut u8, index: u32) -> Option<*mut ProcessSlot> {
    // SAFETY: slots lie inside the base piece.
    (!base.is_null() && (index as usize) < PROCESS_SLOTS)
        .then(|| unsafe { base.add(PROCESSES_AT).cast::<ProcessSlot>().add(index as usize) })
}

pub(super) fn slot_at(index: u32) -> Option<*mut ProcessSlot> {
    // SAFETY: the process's own arena.
    unsafe { slot_in(arena::base(), index) }
}

/// Takes a free slot for a child of `parent`, or for a new image that has this pid; its index.
///
/// # Safety
/// `base` must be a mapped base piece.
pub unsafe fn claim(base: *mut u8, parent: u32) -> Option<u32> {
    (0..PROCESS_SLOTS as u32).find(|index| {
        // SAFETY: slots are valid memory; `state` is atomic, and the claim gives the rest of the slot to us.
        unsafe {
            let Some(slot) = slot_in(base, *index).filter(|slot| handover::claim_slot(&(**slot).state)) else {
                return false;
            };
            (*slot).pid = 0;
            (*slot).ppid = parent;
            (*slot).pid_outside.store(0, Ordering::Relaxed);
            let generations = &(*base.cast::<ArenaHeader>()).generations;
            (*slot).generation = generations.fetch_add(1, Ordering::Relaxed) + 1;
            true
        }
    })
}

pub(super) fn claim_slot() -> Option<u32> {
    let base = arena::base();
    // SAFETY: the process's own arena.
    if base.is_null() { None } else { unsafe { claim(base, sys::getpid()) } }
}

/// Fills a slot in, with the clocks of this moment, and lets the drain see it; its generation. The pid that a parent has noted meanwhile stays.
///
/// # Safety
/// `slot` must be one that the caller has claimed.
pub unsafe fn publish(slot: *mut ProcessSlot, birth: &Birth) -> u64 {
    // SAFETY: the caller owns the slot until its state is LIVE.
    unsafe {
        handover::publish_slot(&(*slot).state, || {
            (*slot).pid = birth.pid;
            (*slot).ppid = birth.ppid;
            (*slot).pid_namespace = birth.pid_namespace;
            (*slot).nonce = birth.nonce;
            (*slot).exe = birth.exe;
            (*slot).command = birth.command;
            (*slot).cwd = birth.cwd;
            (*slot).parent_slot = birth.parent_slot;
            (*slot).rank = birth.rank;
            (*slot).world_size = birth.world_size;
            (*slot).local_rank = birth.local_rank;
            (*slot).launcher = birth.launcher;
            (*slot).io_start = birth.io_start;
            let born = clock::readings();
            (*slot).born_ticks = born.ticks;
            (*slot).born_mono = born.monotonic;
            (*slot).born_real = born.realtime;
            (*slot).born_boot = born.boottime;
            (*slot).ended_ticks.store(0, Ordering::Relaxed);
            (*slot).exit_status.store(-1, Ordering::Relaxed);
            (*slot).exec_verdict.store(0, Ordering::Relaxed);
            (*slot).exec_path.store(0, Ordering::Relaxed);
            (*slot).unseen_io.store(0, Ordering::Relaxed);
            (*slot).own_name.store(0, Ordering::Relaxed);
            (*slot).io_end = KernelIo::UNKNOWN;
            (*slot).own_reads = 0;
            ((*slot).main_cpu, (*slot).main_queued) = (0, 0);
            for loss in &(*slot).losses {
                loss.store(0, Ordering::Relaxed);
            }
        });
        (*slot).generation
    }
}

pub(super) unsafe fn publish_slot(slot: *mut ProcessSlot, birth: &Birth) {
    // SAFETY: the caller's word.
    GENERATION.store(unsafe { publish(slot, birth) }, Ordering::Relaxed);
}

/// The process ends.
///
/// # Safety
/// `slot` must be the process's own.
pub unsafe fn end(slot: *mut ProcessSlot, how: &End) {
    // SAFETY: the caller's word.
    unsafe {
        settle(slot, how);
        (*slot).ended_ticks.store(clock::shared_ticks(), Ordering::Relaxed);
        (*slot).state.store(process_state::ENDED, Ordering::Release);
    }
}

/// The process is about to become another program: see [`ProcessSlot::exec_verdict`].
///
/// # Safety
/// `slot` must be the process's own.
pub unsafe fn execute(slot: *mut ProcessSlot, how: &End, verdict: u32, path: u32) {
    // SAFETY: the caller's word.
    unsafe {
        settle(slot, how);
        (*slot).exec_verdict.store(verdict, Ordering::Relaxed);
        (*slot).exec_path.store(path, Ordering::Relaxed);
        (*slot).ended_ticks.store(clock::shared_ticks(), Ordering::Relaxed);
        (*slot).state.store(process_state::EXECUTING, Ordering::Release);
    }
}

/// Final counters of the image.
///
/// # Safety
/// `slot` must be the process's own.
unsafe fn settle(slot: *mut ProcessSlot, how: &End) {
    // SAFETY: these fields are written by this process only; the drain reads them once the state says so.
    unsafe {
        (*slot).io_end = how.io;
        (*slot).own_reads = how.own_reads;
        ((*slot).main_cpu, (*slot).main_queued) = how.main;
        ((*slot).cpu_user, (*slot).cpu_system, (*slot).max_rss) = how.usage;
        (*slot).exit_status.store(how.status, Ordering::Relaxed);
    }
}

/// The calling process's counters now.
pub(super) fn end_now(status: i32) -> End {
    let io = kernel_io();
    let may_ask = unrestricted();
    let usage = if may_ask { sys::usage() } else { (0, 0, 0) };
    let main = if may_ask { main_thread() } else { (0, 0) };
    End { status, io, usage, own_reads: sys::OWN_READS.load(Ordering::Relaxed), main }
}

/// Processor time of the main thread, and time that it waited for a processor: the file of a process in `/proc` is about its first thread.
fn main_thread() -> (u64, u64) {
    let mut text = [0u8; 64];
    let Ok(length) = sys::read_file(c"/proc/self/schedstat", &mut text) else { return (0, 0) };
    parse_schedstat(&text[..length])
}

fn parse_schedstat(text: &[u8]) -> (u64, u64) {
    let number = |word: &[u8]| {
        word.iter()
            .filter(|byte| byte.is_ascii_digit())
            .fold(0u64, |n, digit| n.wrapping_mul(10) + u64::from(digit - b'0'))
    };
    let mut words = text.split(|byte| *byte == b' ');
    (words.next().map_or(0, number), words.next().map_or(0, number))
}

/// The kernel's counters, without what the recorder itself has read since the image started.
pub(super) fn kernel_io() -> KernelIo {
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

pub(super) fn pid_namespace() -> u64 {
    sys::stat(c"/proc/self/ns/pid").map_or(0, |stat| stat.st_ino)
}
