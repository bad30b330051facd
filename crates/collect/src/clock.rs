//! When to sample: absolute deadlines that do not drift, and the interval that a sample really describes.
//!
//! The timer is periodic and kept by the kernel, so a late tick does not move the ones after it. A tick that comes so late that others
//! were due meanwhile stands for all of them; they are counted, and its interval is as long as it really was.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};

use crate::sample::Interval;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since some point in the past; never steps.
    pub steady_ns: i64,
    /// Nanoseconds since the epoch.
    pub real_ns: i64,
}

impl Moment {
    /// Reads the clocks.
    pub fn now() -> Moment {
        Moment { steady_ns: read(ClockId::Monotonic), real_ns: read(ClockId::Realtime) }
    }

    /// The interval that ends now and began at an earlier moment. Somebody may have set the clock meanwhile: the length is that of the
    /// steady clock then, since counters grow with that one.
    pub fn since(&self, earlier: &Moment) -> Interval {
        let steady = self.steady_ns - earlier.steady_ns;
        let stepped = (self.real_ns - earlier.real_ns - steady).abs() > STEP_NS;
        let start_ns = if stepped { self.real_ns - steady } else { earlier.real_ns };
        Interval { start_ns, end_ns: self.real_ns }
    }
}

/// Clocks that are slewed differ by less than this over an interval.
const STEP_NS: i64 = 20_000_000;

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A tick of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// When it was taken.
    pub at: Moment,
    /// How long after its deadline that was.
    pub late_ns: u64,
    /// Deadlines that passed before it and had no tick of their own.
    pub skipped: u64,
}

/// A periodic timer.
#[derive(Debug)]
pub struct Clock {
    timer: OwnedFd,
    interval_ns: i64,
    /// The deadline that is still to come.
    next_ns: i64,
}

impl Clock {
    /// A clock whose first tick comes after `first`, and the others every `interval` from then.
    pub fn start(first: Duration, interval: Duration) -> io::Result<Clock> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let interval_ns = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX).max(1);
        let next_ns = read(ClockId::Monotonic).saturating_add(first.as_nanos().max(1) as i64);
        let times = Itimerspec { it_interval: timespec(interval_ns), it_value: timespec(next_ns) };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &times)?;
        Ok(Clock { timer, interval_ns, next_ns })
    }

    /// Takes the tick that is due; nothing when none is.
    pub fn tick(&mut self) -> io::Result<Option<Tick>> {
        let mut count = [0; 8];
        match rustix::io::read(&self.timer, &mut count) {
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let due = u64::from_ne_bytes(count).max(1);
        let at = Moment::now();
        let deadline = self.next_ns.saturating_add(self.interval_ns.saturating_mul((due - 1) as i64));
        self.next_ns = deadline.saturating_add(self.interval_ns);
        Ok(Some(Tick { at, late_ns: at.steady_ns.saturating_sub(deadline).max(0) as u64, skipped: due - 1 }))
    }
}

impl AsFd for Clock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn wait(clock: &Clock) {
        poll(&mut [PollFd::new(clock, PollFlags::IN)], None).expect("polled");
    }

    #[test]
    fn ticks_keep_to_their_deadlines() {
        let interval = Duration::from_millis(20);
        let mut clock = Clock::start(interval, interval).expect("a timer");
        assert_eq!(clock.tick().expect("read"), None, "none is due yet");
        let mut deadlines = Vec::new();
        for round in 0..10 {
            if round == 4 {
                // Three deadlines and a half: the third is taken late, two are skipped.
                std::thread::sleep(Duration::from_millis(70));
            }
            wait(&clock);
            let tick = clock.tick().expect("read").expect("due");
            if round == 4 {
                assert!(tick.skipped >= 2, "{tick:?}");
            }
            deadlines.push(tick.at.steady_ns - tick.late_ns as i64);
        }
        let first = deadlines[0];
        for deadline in deadlines {
            assert_eq!((deadline - first) % 20_000_000, 0, "on the grid of the first one");
        }
    }

    #[test]
    fn a_clock_that_was_set_does_not_stretch_an_interval() {
        let at = |steady_ns, real_ns| Moment { steady_ns, real_ns };
        for (earlier, later, start, end) in [
            (at(0, 1_000), at(500_000_000, 500_001_000), 1_000, 500_001_000),
            (at(0, 1_000), at(500_000_000, 500_002_000), 1_000, 500_002_000),
            (at(0, 0), at(500_000_000, 3_600_000_000_000), 3_599_500_000_000, 3_600_000_000_000),
            (at(0, 3_600_000_000_000), at(500_000_000, 0), -500_000_000, 0),
        ] {
            assert_eq!(later.since(&earlier), Interval { start_ns: start, end_ns: end });
        }
    }
}
