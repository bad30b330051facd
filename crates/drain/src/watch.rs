//! A running image in the poll loop: whether its process is alive, and its sampled counters.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weftline_recorder::clock;
use weftline_recorder::layout::{KernelIo, process_state, unseen_io};

use crate::arena::{Arena, SegmentAt};
use crate::image::Image;
use crate::overlap::Tail;
use crate::procfs::{self, Host};

/// The kernel's start times are this coarse, and the clock at birth is read a little later than the process starts.
const START_SLACK_NS: u64 = 20_000_000;
/// Between two looks at a process that announced its end or an exec; doubled each time.
const SOON: Duration = Duration::from_millis(1);
/// Between two looks at one that did not.
const SELDOM: Duration = Duration::from_millis(50);
const SAMPLE: Duration = Duration::from_millis(250);
/// Between two looks for an io_uring: the first comes early, since many programs are short; doubled each time.
const RINGS_FIRST: Duration = Duration::from_millis(20);
const RINGS_LAST: Duration = Duration::from_secs(1);

/// An image that is not finished yet.
pub(crate) struct Watched {
    pub image: Arc<Image>,
    pub dead: bool,
    /// Jobs under way.
    pub open_jobs: usize,
    /// Its last job was given out.
    pub closing: bool,
    /// Closed segments that wait for company, and the records in them.
    pub waiting: Vec<SegmentAt>,
    pub waiting_records: u32,
    /// What each thread's latest segment ended with.
    pub tails: HashMap<u32, Tail>,
    pub sampled: Option<KernelIo>,
    /// When it was last seen alive, on the monotonic clock: a process that is killed in a call leaves no later trace of its end.
    pub seen_alive: Option<u64>,
    /// The pid by which we see the process.
    seen_as: Option<u32>,
    last_state: u32,
    next_look: Instant,
    gap: Duration,
    next_sample: Instant,
    next_ring_look: Instant,
    ring_gap: Duration,
}

impl Watched {
    pub(crate) fn new(image: Arc<Image>, now: Instant) -> Watched {
        Watched {
            image,
            dead: false,
            open_jobs: 0,
            closing: false,
            waiting: Vec::new(),
            waiting_records: 0,
            tails: HashMap::new(),
            sampled: None,
            seen_alive: None,
            seen_as: None,
            last_state: process_state::LIVE,
            next_look: now + SOON,
            gap: SELDOM,
            next_sample: now + SAMPLE,
            next_ring_look: now + RINGS_FIRST,
            ring_gap: RINGS_FIRST,
        }
    }

    /// Looks whether the process is still there, if it is time. True when it was found dead just now.
    pub(crate) fn look(&mut self, host: &Host, live: &Path, now: Instant) -> bool {
        if self.dead {
            return false;
        }
        let state = self.image.arena.slot_state(self.image.key.slot);
        if state != self.last_state {
            self.last_state = state;
            // The image after an exec usually registers itself before we must ask the kernel.
            (self.gap, self.next_look) = match state {
                process_state::LIVE => (SELDOM, now),
                process_state::EXECUTING => (SOON, now + 4 * SOON),
                _ => (SOON, now),
            };
        }
        if now < self.next_look {
            return false;
        }
        self.next_look = now + self.gap;
        self.gap = (self.gap * 2).min(SELDOM);
        // Before the look: what is found then was there at this time.
        let time = clock::read(libc::CLOCK_MONOTONIC);
        self.dead = !self.is_alive(host, live, false);
        if !self.dead {
            self.seen_alive = Some(time);
        }
        self.dead
    }

    /// Whether the image still runs. `thorough`: also when nothing was announced, an exec may have replaced it.
    pub(crate) fn is_alive(&mut self, host: &Host, live: &Path, thorough: bool) -> bool {
        if self.dead {
            return false;
        }
        let Some(mut pid) = self.pid(host) else { return false };
        if !is_process(pid, self.image.info.born_boot, host) {
            // Of a process in another namespace it may have been the wrong one.
            self.seen_as = None;
            match self.pid(host).filter(|again| *again != pid && is_process(*again, self.image.info.born_boot, host)) {
                Some(again) => pid = again,
                None => return false,
            }
        }
        let arena = &self.image.arena;
        let doubtful = thorough || arena.slot_state(self.image.key.slot) == process_state::EXECUTING;
        !doubtful || procfs::maps(pid, arena.inode(), &Arena::path(live, arena.number()))
    }

    /// The pid by which we see the process.
    pub(crate) fn pid(&mut self, host: &Host) -> Option<u32> {
        if self.seen_as.is_none() {
            self.seen_as = seen_as(&self.image.arena, self.image.key.slot, host);
        }
        self.seen_as
    }

    /// Whether a thread of the living process is gone. In another pid namespace thread ids cannot be compared.
    pub(crate) fn has_lost_thread(&mut self, host: &Host, tid: u32) -> bool {
        let own = self.image.info.birth.pid;
        !self.dead && self.pid(host) == Some(own) && procfs::stat(own).is_some() && !procfs::has_thread(own, tid)
    }

    /// Reads what may be gone the next time: counters, and whether the process has an io_uring.
    pub(crate) fn sample(&mut self, host: &Host, now: Instant) {
        if self.dead || now < self.next_sample.min(self.next_ring_look) {
            return;
        }
        let Some(pid) = self.pid(host).filter(|pid| self.image.arena.may_tell_of(*pid)) else { return };
        if now >= self.next_sample {
            self.next_sample = now + SAMPLE;
            if let Some(io) = procfs::io(pid) {
                self.sampled = Some(io);
            }
        }
        if now >= self.next_ring_look {
            self.ring_gap = (self.ring_gap * 2).min(RINGS_LAST);
            self.next_ring_look = now + self.ring_gap;
            if procfs::uses_io_uring(pid) {
                self.image.arena.note_unseen_io(self.image.key.slot, unseen_io::IO_URING);
            }
        }
    }

    /// Whether `newer` is what this process became: the same pid in the same namespace, born later.
    pub(crate) fn is_replaced_by(&self, newer: &Image) -> bool {
        let (old, new) = (&self.image.info, &newer.info);
        old.birth.pid == new.birth.pid
            && old.birth.pid_namespace == new.birth.pid_namespace
            && old.birth.pid_namespace != 0
            && old.born_mono < new.born_mono
    }
}

/// Is `pid` a running process that was there when the image was born?
pub(crate) fn is_process(pid: u32, born_boot: u64, host: &Host) -> bool {
    let tick = 1_000_000_000 / host.clock_ticks.max(1);
    procfs::stat(pid).is_some_and(|stat| stat.runs() && stat.start * tick <= born_boot.saturating_add(START_SLACK_NS))
}

/// Start of the process in a slot, in clock ticks since boot, if it is still there.
pub(crate) fn start_of(arena: &Arena, slot: u32, host: &Host) -> Option<u64> {
    seen_as(arena, slot, host).and_then(procfs::stat).map(|stat| stat.start)
}

/// The pid by which we see the process in a slot.
pub(crate) fn seen_as(arena: &Arena, slot: u32, host: &Host) -> Option<u32> {
    let info = arena.slot_info(slot);
    if info.birth.pid_namespace == host.pid_namespace {
        return Some(info.birth.pid);
    }
    // The parent said by which pid it knows the child; that helps if we share the parent's namespace.
    let outside = arena.pid_outside(slot);
    let parent_namespace =
        info.birth.parent_slot.checked_sub(1).map(|parent| arena.slot_info(parent).birth.pid_namespace);
    if outside != 0 && parent_namespace == Some(host.pid_namespace) {
        return Some(outside);
    }
    let tick = 1_000_000_000 / host.clock_ticks.max(1);
    procfs::find_in_namespace(
        info.birth.pid,
        info.birth.pid_namespace,
        (info.born_boot.saturating_add(START_SLACK_NS)) / tick,
    )
}
