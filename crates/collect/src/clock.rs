//! The clock of a collector: absolute deadlines that do not drift, and the interval that a sample really covers.
//!
//! The timer is periodic and kept by the kernel, so a late tick does not move later ones. If a tick is so late that others
//! were due meanwhile, it replaces them; they are counted, and its interval has its real length.

use std::fmt;
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
pub struct ClockReading {
    /// Nanoseconds since some point in the past; never steps.
    pub steady_ns: i64,
    /// Nanoseconds since the epoch.
    pub real_ns: i64,
}

impl ClockReading {
    /// Reads the clocks.
    pub fn now() -> ClockReading {
        ClockReading { steady_ns: read(ClockId::Monotonic), real_ns: read(ClockId::Realtime) }
    }

    /// The interval that ends now and began at an earlier moment. Somebody may have set the clock meanwhile: the length is that of the
    /// steady clock then, since counters grow with that one.
    pub fn since(&self, earlier: &ClockReading) -> Interval {
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
    pub at: ClockReading,
    /// How long after its deadline that was.
    pub late_ns: u64,
    /// Deadlines that passed before it and had no tick of their own.
    pub skipped: u64,
}

/// Where a collector has the time from, and what wakes it: [`KernelClock`], or one that a test moves by hand. Collectors are generic in it
/// and hold no object, so that reading the time for each process costs what the clocks themselves cost.
///
/// Its descriptor is readable while a tick is due.
pub trait Clock: AsFd + fmt::Debug {
    /// Both clocks now.
    fn now(&self) -> ClockReading;

    /// Lets it tick every `interval`, the first time when one has passed.
    fn start(&mut self, interval: Duration) -> io::Result<()>;

    /// Takes the tick that is due; nothing when none is.
    fn tick(&mut self) -> io::Result<Option<Tick>>;
}

/// The deadlines of a clock: a grid that stays where its first deadline put it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From one to the next.
    pub interval_ns: i64,
    /// The one that is still to come, on the steady clock.
    pub next_ns: i64,
}

impl Deadlines {
    /// From a steady time on.
    pub fn new(now_ns: i64, interval: Duration) -> Deadlines {
        let interval_ns = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX).max(1);
        Deadlines { interval_ns, next_ns: now_ns.saturating_add(interval_ns) }
    }

    /// The tick that stands for the next `due` of them, taken `at` that moment.
    pub fn take(&mut self, due: u64, at: ClockReading) -> Tick {
        let skipped = due.saturating_sub(1);
        let passed_ns = self.interval_ns.saturating_mul(i64::try_from(skipped).unwrap_or(i64::MAX));
        let deadline = self.next_ns.saturating_add(passed_ns);
        self.next_ns = deadline.saturating_add(self.interval_ns);
        Tick { at, late_ns: at.steady_ns.saturating_sub(deadline).max(0) as u64, skipped }
    }
}

/// The machine's clocks, and a periodic timer that the kernel keeps.
#[derive(Debug)]
pub struct KernelClock {
    timer: OwnedFd,
    deadlines: Deadlines,
}

impl KernelClock {
    /// A clock that does not tick yet.
    pub fn new() -> io::Result<KernelClock> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(KernelClock { timer, deadlines: Deadlines::new(0, Duration::MAX) })
    }
}

impl Clock for KernelClock {
    fn now(&self) -> ClockReading {
        ClockReading::now()
    }

    fn start(&mut self, interval: Duration) -> io::Result<()> {
        self.deadlines = Deadlines::new(read(ClockId::Monotonic), interval);
        let Deadlines { interval_ns, next_ns } = self.deadlines;
        let times = Itimerspec { it_interval: timespec(interval_ns), it_value: timespec(next_ns) };
        Ok(timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &times).map(drop)?)
    }

    fn tick(&mut self) -> io::Result<Option<Tick>> {
        let mut count = [0; 8];
        match rustix::io::read(&self.timer, &mut count) {
            Ok(_) => Ok(Some(self.deadlines.take(u64::from_ne_bytes(count), ClockReading::now()))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for KernelClock {
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

    fn at(steady_ns: i64) -> ClockReading {
        ClockReading { steady_ns, real_ns: steady_ns / 2 }
    }

    #[test]
    fn deadlines_stay_on_their_grid() {
        let mut deadlines = Deadlines::new(1_000, Duration::from_nanos(100));
        // Taken at, deadlines that had passed; late, skipped, the deadline to come.
        for (now, due, late, skipped, next) in [
            (1_100, 1, 0, 0, 1_200),
            (1_290, 1, 90, 0, 1_300),
            // Three deadlines and a half: the third is taken late, two are skipped.
            (1_550, 3, 50, 2, 1_600),
            (1_600, 1, 0, 0, 1_700),
            // The timer fires before the clock has reached the deadline, which can happen between two processors.
            (1_699, 1, 0, 0, 1_800),
        ] {
            assert_eq!(deadlines.take(due, at(now)), Tick { at: at(now), late_ns: late, skipped }, "at {now}");
            assert_eq!(deadlines.next_ns, next, "after {now}");
        }
        let mut endless = Deadlines::new(i64::MAX - 5, Duration::MAX);
        assert_eq!(endless.take(u64::MAX, at(i64::MAX)).late_ns, 0, "no overflow");
    }

    /// The kernel's timer is armed for that grid, and counts missed ticks.
    #[test]
    fn the_kernels_timer_keeps_to_the_deadlines() {
        let mut clock = KernelClock::new().expect("a timer");
        assert_eq!(clock.tick().expect("read"), None, "it was not started");
        clock.start(Duration::from_secs(3600)).expect("armed");
        assert_eq!(clock.tick().expect("read"), None, "none is due yet");
        clock.start(Duration::from_millis(2)).expect("armed");
        let first = clock.deadlines.next_ns;
        for round in 0..5 {
            // Some deadlines pass before anybody looks.
            let wanted = clock.deadlines.next_ns + round * 2_000_000;
            while clock.now().steady_ns < wanted {
                std::hint::spin_loop();
            }
            poll(&mut [PollFd::new(&clock, PollFlags::IN)], None).expect("polled");
            let tick = clock.tick().expect("read").expect("due");
            let deadline = tick.at.steady_ns - tick.late_ns as i64;
            assert!(tick.skipped >= round as u64 && deadline >= wanted - 2_000_000, "{round}: {tick:?}");
            assert_eq!((deadline - first) % 2_000_000, 0, "on the grid of the first one");
        }
    }

    #[test]
    fn a_clock_that_was_set_does_not_stretch_an_interval() {
        let at = |steady_ns, real_ns| ClockReading { steady_ns, real_ns };
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
