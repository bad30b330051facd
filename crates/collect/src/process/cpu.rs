//! CPU time of a process in nanoseconds.
//!
//! The kernel keeps it per thread (`sum_exec_runtime`, the first number of `schedstat`) and for threads that ended in their process.
//! `/proc/PID/schedstat` shows only the main thread. This module uses the process's CPU clock (`clock_getcpuclockid`), which is the sum of both, by one call and
//! without the right to trace. It lags by at most one scheduler tick for a running thread.
//!
//! If the ids in `/proc` are not our own (another pid namespace's mount), the clock would be another process's. Then the threads'
//! `schedstat` files are summed up. What threads did between their last reading and their end is missing there; but `utime + stime` is the
//! same sum cut to ticks, twice, so the total is held between it and two ticks more. Beyond [`MOST_THREADS`] it is `utime + stime` alone.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use super::stat::{Stat, tick_ns};
use crate::read::{Kept, number, words};
use crate::roots::Roots;

/// A reading costs about three microseconds per thread.
const MOST_THREADS: u64 = 64;

/// The CPU clock of a process: stands still while none of its threads runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuClock {
    clock: Option<ClockId>,
}

impl CpuClock {
    /// No clock without a pid, or for one that is not there.
    pub(crate) fn of(pid: Option<u32>) -> CpuClock {
        let number = pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
        CpuClock { clock: number.and_then(|pid| clock_getcpuclockid(Pid::from_raw(pid)).ok()) }
    }

    /// Nothing where there is no clock, or no process any more.
    pub(crate) fn now_ns(self) -> Option<u64> {
        let time = self.clock?.now().ok()?;
        let seconds = u64::try_from(time.tv_sec()).ok()?;
        seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec()).ok()?)
    }
}

#[derive(Debug)]
pub(super) struct CpuTime {
    clock: CpuClock,
    /// Last reading of each live thread.
    threads: HashMap<u32, u64>,
    /// What threads had used that are gone.
    gone_ns: u64,
    last_ns: u64,
}

impl CpuTime {
    pub(super) fn new(roots: &Roots, pid: u32) -> CpuTime {
        let clock = CpuClock::of(roots.own_pids().then_some(pid));
        CpuTime { clock, threads: HashMap::new(), gone_ns: 0, last_ns: 0 }
    }

    /// By the process's clock.
    pub(super) fn clock_ns(&self) -> Option<u64> {
        self.clock.now_ns()
    }

    /// By the threads' files.
    pub(super) fn by_threads(&mut self, directory: BorrowedFd<'_>, stat: &Stat, buffer: &mut Vec<u8>) -> u64 {
        let by_ticks = stat.user_ns.saturating_add(stat.system_ns);
        let exact = if stat.threads <= MOST_THREADS { self.sum_of_threads(directory, buffer) } else { None };
        let total = match exact {
            Some(sum) => sum.clamp(by_ticks, by_ticks.saturating_add(2 * tick_ns())),
            None => by_ticks,
        };
        // What the sum lacks was used by threads that are gone.
        if let Some(sum) = exact {
            self.gone_ns = self.gone_ns.saturating_add(total.saturating_sub(sum));
        }
        self.last_ns = self.last_ns.max(total);
        self.last_ns
    }

    fn sum_of_threads(&mut self, directory: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Option<u64> {
        let mut now = HashMap::with_capacity(self.threads.len());
        for thread in super::detail::threads(directory)? {
            let Ok(file) = Kept::open_at(directory, &format!("task/{thread}/schedstat")) else { continue };
            let Ok(text) = file.read_record(buffer) else { continue };
            if let Some(used) = words(text).next().and_then(number) {
                now.insert(thread, used);
            }
        }
        if now.is_empty() {
            return None;
        }
        for (thread, used) in &self.threads {
            // A thread that has used less than before is another one with the same id.
            if now.get(thread).is_none_or(|now| now < used) {
                self.gone_ns = self.gone_ns.saturating_add(*used);
            }
        }
        self.threads = now;
        Some(self.threads.values().fold(self.gone_ns, |sum, used| sum.saturating_add(*used)))
    }
}
