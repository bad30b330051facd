//! Clocks of sources, and their maps to UTC: piecewise linear, with an error bar and the way they were found.

use serde::{Deserialize, Serialize};

/// What a source's times count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// Nanoseconds since boot, with sleep: `nsecs` of bpftrace counts without it, which is [`ClockKind::Monotonic`].
    Boot,
    /// Nanoseconds since boot, without sleep.
    Monotonic,
    /// Time since the epoch.
    Realtime,
    /// Text of a wall clock in a time zone.
    LocalText,
    /// Time since the trace began.
    TraceRelative,
}

impl ClockKind {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            ClockKind::Boot => "boot",
            ClockKind::Monotonic => "monotonic",
            ClockKind::Realtime => "realtime",
            ClockKind::LocalText => "local wall text",
            ClockKind::TraceRelative => "trace-relative",
        }
    }
}

/// One moment on both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// On the source's clock.
    pub source_ns: i64,
    /// In UTC, ns since the epoch.
    pub utc_ns: i64,
}

/// A source's clock and its map to UTC. Between two anchors it is a straight line, and beyond them the nearest line goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// What the source's times count.
    pub kind: ClockKind,
    /// At least one, in the order of the source's clock; no two at the same time of it.
    anchors: Vec<Anchor>,
    /// By how much a time may be wrong; none where nothing is known of it.
    pub error_ns: Option<u64>,
    /// How the map was found, in words.
    pub how: String,
}

impl Clock {
    /// A clock that differs from UTC by a constant.
    pub fn offset(kind: ClockKind, offset_ns: i64, error_ns: Option<u64>, how: impl Into<String>) -> Clock {
        Clock { kind, anchors: vec![Anchor { source_ns: 0, utc_ns: offset_ns }], error_ns, how: how.into() }
    }

    /// A clock that is UTC.
    pub fn utc(how: impl Into<String>) -> Clock {
        Clock::offset(ClockKind::Realtime, 0, None, how)
    }

    /// A clock through anchors, in any order; where two are at the same time of the source, the first counts. None without any.
    pub fn through(
        kind: ClockKind,
        mut anchors: Vec<Anchor>,
        error_ns: Option<u64>,
        how: impl Into<String>,
    ) -> Option<Clock> {
        anchors.sort_by_key(|anchor| anchor.source_ns);
        anchors.dedup_by_key(|anchor| anchor.source_ns);
        (!anchors.is_empty()).then(|| Clock { kind, anchors, error_ns, how: how.into() })
    }

    /// A time of the source in UTC. What is beyond the years that fit becomes the last that does.
    pub fn to_utc(&self, source_ns: i64) -> i64 {
        let behind = self.anchors.partition_point(|anchor| anchor.source_ns <= source_ns);
        let place = behind.saturating_sub(1).min(self.anchors.len().saturating_sub(2));
        let first = self.anchors[place];
        let since = i128::from(source_ns) - i128::from(first.source_ns);
        let passed = match self.anchors.get(place + 1) {
            None => since,
            Some(next) => {
                let source = i128::from(next.source_ns) - i128::from(first.source_ns);
                // Rounded down, so that the order of times stays.
                (since * (i128::from(next.utc_ns) - i128::from(first.utc_ns))).div_euclid(source.max(1))
            }
        };
        let utc = i128::from(first.utc_ns) + passed;
        i64::try_from(utc).unwrap_or(if utc < 0 { i64::MIN } else { i64::MAX })
    }

    /// UTC less the source's clock, at its first anchor.
    pub fn offset_ns(&self) -> i128 {
        i128::from(self.anchors[0].utc_ns) - i128::from(self.anchors[0].source_ns)
    }

    /// By how many parts in a million the source's clock is slower than UTC, from the first anchor to the last; none where one is all there is.
    pub fn drift_ppm(&self) -> Option<f64> {
        let (first, last) = (self.anchors.first()?, self.anchors.last()?);
        let source = i128::from(last.source_ns) - i128::from(first.source_ns);
        let utc = i128::from(last.utc_ns) - i128::from(first.utc_ns);
        (source > 0).then(|| (utc - source) as f64 / source as f64 * 1e6)
    }

    /// The same clock, moved.
    #[must_use]
    pub fn moved(mut self, by_ns: i64, how: &str) -> Clock {
        for anchor in &mut self.anchors {
            anchor.utc_ns = anchor.utc_ns.saturating_add(by_ns);
        }
        self.how = format!("{}, {how}", self.how);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_between_and_beyond_anchors() {
        let anchors = [(1_000, 11_000), (2_000, 12_100), (3_000, 13_100)];
        let anchors = anchors.map(|(source_ns, utc_ns)| Anchor { source_ns, utc_ns });
        let clock =
            Clock::through(ClockKind::Boot, anchors.into_iter().rev().collect(), Some(5), "test").expect("some");
        for (source, utc) in
            [(1_000, 11_000), (1_500, 11_550), (2_000, 12_100), (2_500, 12_600), (4_000, 14_100), (0, 9_900)]
        {
            assert_eq!(clock.to_utc(source), utc, "{source}");
        }
        assert_eq!(clock.drift_ppm(), Some(50_000.0));
        assert_eq!(clock.offset_ns(), 10_000);
        assert!(Clock::through(ClockKind::Boot, vec![], None, "").is_none());
    }

    #[test]
    fn constants_move_and_do_not_overflow() {
        let clock = Clock::offset(ClockKind::LocalText, 5, None, "by hand").moved(-2, "--align x");
        assert_eq!((clock.to_utc(10), clock.drift_ppm(), clock.how.as_str()), (13, None, "by hand, --align x"));
        assert_eq!(clock.to_utc(i64::MAX), i64::MAX);
        assert_eq!(Clock::offset(ClockKind::Boot, -5, None, "").to_utc(i64::MIN), i64::MIN);
    }
}
