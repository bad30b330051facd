//! Converts the kernel's monotonic clock, which stamps records, to nanoseconds since the epoch.
//!
//! Both clocks are read together about once a second; times between two such anchors are interpolated, so that slewing or stepping
//! a clock does not change earlier times.

use rustix::time::{ClockId, clock_gettime};

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Anchor {
    monotonic: i64,
    realtime: i64,
}

impl Anchor {
    /// Read thrice; the pair whose readings lie closest together counts.
    fn now() -> Anchor {
        let mut best = (i64::MAX, Anchor { monotonic: 0, realtime: 0 });
        for _ in 0..3 {
            let before = read(ClockId::Monotonic);
            let realtime = read(ClockId::Realtime);
            let after = read(ClockId::Monotonic);
            if after - before < best.0 {
                best = (after - before, Anchor { monotonic: before + (after - before) / 2, realtime });
            }
        }
        best.1
    }
}

fn read(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The conversion.
#[derive(Debug)]
pub(super) struct Anchors {
    before: Anchor,
    last: Anchor,
}

impl Anchors {
    pub(super) fn new() -> Anchors {
        let anchor = Anchor::now();
        Anchors { before: anchor, last: anchor }
    }

    /// Takes an anchor if the last one is old.
    pub(super) fn refresh(&mut self) {
        if read(ClockId::Monotonic) - self.last.monotonic >= 1_000_000_000 {
            self.before = self.last;
            self.last = Anchor::now();
        }
    }

    pub(super) fn realtime(&self, monotonic: u64) -> i64 {
        let (before, last) = (self.before, self.last);
        let monotonic = monotonic as i64;
        let span = last.monotonic - before.monotonic;
        if span == 0 || monotonic <= before.monotonic {
            return before.realtime + (monotonic - before.monotonic);
        }
        if monotonic >= last.monotonic {
            return last.realtime + (monotonic - last.monotonic);
        }
        let part = i128::from(monotonic - before.monotonic) * i128::from(last.realtime - before.realtime);
        before.realtime + (part / i128::from(span)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_on_the_line_between_anchors() {
        let anchors = Anchors {
            before: Anchor { monotonic: 1_000, realtime: 50_000 },
            last: Anchor { monotonic: 2_000, realtime: 51_010 },
        };
        for (monotonic, realtime) in [(900, 49_900), (1_000, 50_000), (1_500, 50_505), (2_000, 51_010), (2_100, 51_110)]
        {
            assert_eq!(anchors.realtime(monotonic), realtime, "{monotonic}");
        }
    }

    #[test]
    fn now_is_now() {
        let anchors = Anchors::new();
        let (monotonic, realtime) = (read(ClockId::Monotonic), read(ClockId::Realtime));
        let off = (anchors.realtime(monotonic as u64) - realtime).abs();
        assert!(off < 50_000_000, "{off} ns");
    }
}
