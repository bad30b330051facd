//! The time-align trace: `nsecs since boot` beside `HH:MM:SS` of the host, many lines a second; and the clock that its second changes make.
//!
//! Where the second changes between two lines, its begin lies between their time stamps. bpftrace counts on the monotonic clock, which is slewed with the
//! wall clock, so an offset is constant unless somebody steps or the stamps are of another clock: then the changes show a drift, which is fitted.

use super::fields::{SECOND, Words, integer, nearest, time_of_day};
use crate::Result;
use crate::clock::{Anchor, ClockKind};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "bpftrace-time",
    title: "bpftrace time-align trace (DISCS)",
    carries: "no event: the clock of the bpftrace files beside it, from every change of the second",
    example: "trace_time_align.out",
    detect,
    survey: Some(survey),
    read,
};

/// Changes that are kept: as many seconds are a week.
const MOST_CHANGES: usize = 604_800;
/// Changes that a fit looks at.
const MOST_FITTED: usize = 4096;
/// The tightest changes, through pairs of which lines are laid.
const TIGHTEST: usize = 48;
/// No clock is off by more: a step is no drift.
const MOST_DRIFT: f64 = 1e-3;

/// A second that began between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    /// The last stamp before.
    pub before: i64,
    /// The first stamp within the second.
    pub after: i64,
    /// The second, as a time of day in nanoseconds.
    pub of_day: i64,
}

fn parse(line: &[u8]) -> Option<(i64, i64)> {
    let mut words = Words::new(line);
    let stamp = integer(words.next()?).filter(|stamp| *stamp >= 0)?;
    let of_day = time_of_day(words.next()?)?;
    words.rest().is_empty().then_some((stamp, of_day))
}

fn detect(head: &Head<'_>) -> Confidence {
    let lines = head.lines().filter(|line| !line.is_empty()).take(50);
    let (good, all) = lines.fold((0, 0), |(good, all), line| (good + u32::from(parse(line).is_some()), all + 1));
    if good > 0 && good + 5 >= all { Confidence::Certain } else { Confidence::No }
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let folder = survey.discs.folder(input.name());
    folder.traced = true;
    let (mut line, mut last) = (Vec::new(), None::<(i64, i64)>);
    while input.next_line(&mut line)?.is_some() {
        let Some((stamp, of_day)) = parse(&line) else { continue };
        last = match last {
            Some((before, second)) if second == of_day => Some((before.max(stamp), second)),
            // Processors print one after the other: a line of the second before is no change back.
            Some((before, second)) if nearest(of_day, second) < second => Some((before, second)),
            Some((before, _)) => {
                if folder.changes.len() < MOST_CHANGES && stamp >= before {
                    folder.changes.push(Change { before, after: stamp, of_day });
                }
                Some((stamp, of_day))
            }
            None => Some((stamp, of_day)),
        };
    }
    Ok(())
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    sink.clock(set.clock(survey, ClockKind::Monotonic));
    let mut line = Vec::new();
    while let Some(about) = input.next_line(&mut line)? {
        if !line.is_empty() && parse(&line).is_none() && !is_heading(&line) {
            sink.skip("torn line", about.offset);
        }
    }
    Ok(())
}

/// What bpftrace and the scripts print before the first line.
pub(super) fn is_heading(line: &[u8]) -> bool {
    line.starts_with(b"Attaching ") || line.starts_with(b"TIMESTAMP")
}

/// A fitted clock, towards the host's wall time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fitted {
    /// One where the offset is constant, two where it drifts; `utc_ns` is wall time.
    pub anchors: Vec<Anchor>,
    pub error_ns: u64,
    pub how: String,
}

/// A change with its day.
#[derive(Debug, Clone, Copy)]
struct Dated {
    before: i64,
    after: i64,
    local: i64,
}

impl Dated {
    fn width(&self) -> i64 {
        self.after.saturating_sub(self.before)
    }

    /// Half of the interval before the later stamp, as the DISCS scripts have it.
    fn middle(&self) -> i64 {
        self.after - self.width() / 2
    }

    /// How far a line's begin of this second is outside of what the stamps allow.
    fn outside(&self, line: Line) -> f64 {
        let begin = line.source(self.local);
        let (before, after) = ((self.before - line.source_ns) as f64, (self.after - line.source_ns) as f64);
        (before - begin).max(begin - after).max(0.0)
    }
}

/// A straight map through a point.
#[derive(Debug, Clone, Copy)]
struct Line {
    source_ns: i64,
    local_ns: i64,
    /// Source seconds per second of wall time.
    rate: f64,
}

impl Line {
    /// The stamp of a wall time, counted from the point.
    fn source(&self, local: i64) -> f64 {
        (local - self.local_ns) as f64 * self.rate
    }
}

/// The clock that changes make. The first of them is on the day on which it is nearest to `near_ns`.
pub(super) fn fit(changes: &[Change], near_ns: i64) -> Option<Fitted> {
    let mut last = nearest(changes.first()?.of_day, near_ns);
    let dated: Vec<Dated> = changes
        .iter()
        .map(|change| {
            last = nearest(change.of_day, last);
            Dated { before: change.before, after: change.after, local: last }
        })
        .collect();
    // Evenly thinned out; the tightest stay.
    let mut order: Vec<usize> = (0..dated.len()).collect();
    order.sort_by_key(|place| dated[*place].width());
    order.truncate(TIGHTEST);
    let step = dated.len().div_ceil(MOST_FITTED);
    let looked: Vec<Dated> = dated.iter().step_by(step).copied().collect();
    let tightest = dated[order[0]];
    let half = (tightest.width() as u64).div_ceil(2);
    let constant = Line { source_ns: tightest.middle(), local_ns: tightest.local, rate: 1.0 };
    let misses = |line: Line, slack: u64| looked.iter().filter(|change| change.outside(line) > slack as f64).count();
    let missed = misses(constant, half);
    let seen = format!("{} changes of the second", changes.len());
    let one = |missed: usize| {
        let mut how = format!("time-align trace: the tightest of {seen}, {} ns wide", tightest.width());
        if missed > 0 {
            how += &format!("; {missed} of {} looked at disagree", looked.len());
        }
        Fitted {
            anchors: vec![Anchor { source_ns: constant.source_ns, utc_ns: constant.local_ns }],
            error_ns: half,
            how,
        }
    };
    // Printing is late at times; a drift moves whole stretches.
    if missed * 10 <= looked.len() {
        return Some(one(missed));
    }
    let (begin, end) = (dated[0].local, dated.last()?.local);
    let mut best: Option<(usize, u64, Line, [Dated; 2])> = None;
    for (place, first) in order.iter().enumerate() {
        for second in &order[..place] {
            let (a, b) = (dated[*first.min(second)], dated[*first.max(second)]);
            let between = b.local - a.local;
            if between < ((end - begin) / 8).max(SECOND) {
                continue;
            }
            let rate = (b.middle() - a.middle()) as f64 / between as f64;
            if (rate - 1.0).abs() > MOST_DRIFT {
                continue;
            }
            // Beyond the two, what they may be wrong by grows with the distance.
            let (half_a, half_b) = ((a.width() as u64).div_ceil(2) as f64, (b.width() as u64).div_ceil(2) as f64);
            let beyond = (a.local - begin).max(end - b.local).max(0) as f64 / between as f64;
            let error = (half_a.max(half_b) + (half_a + half_b) * beyond).ceil() as u64;
            let line = Line { source_ns: a.middle(), local_ns: a.local, rate };
            let missed = misses(line, error);
            if best.as_ref().is_none_or(|best| (missed, error) < (best.0, best.1)) {
                best = Some((missed, error, line, [a, b]));
            }
        }
    }
    match best {
        Some((left, error_ns, line, pair)) if left * 2 <= missed => {
            let anchors = pair.map(|change| Anchor { source_ns: change.middle(), utc_ns: change.local }).to_vec();
            let ppm = (1.0 / line.rate - 1.0) * 1e6;
            let how = format!(
                "time-align trace: a drift of {ppm:.1} ppm fitted to {seen}, {left} of {} disagree",
                looked.len()
            );
            Some(Fitted { anchors, error_ns, how })
        }
        _ => Some(one(missed)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::DAY;
    use super::*;
    use crate::clock::Clock;

    /// Second changes of a clock, with widths that vary.
    fn changes(count: i64, start_of_day: i64, source: impl Fn(i64) -> i64) -> Vec<Change> {
        let width = |place: i64| 20_000 + (place * 7919 % 61) * 900_000;
        (0..count)
            .map(|place| {
                let begin = source(place * SECOND);
                let early = width(place) * (place % 5 + 1) / 7;
                Change {
                    before: begin - early,
                    after: begin - early + width(place),
                    of_day: (start_of_day + place * SECOND).rem_euclid(DAY),
                }
            })
            .collect()
    }

    #[test]
    fn a_constant_offset_is_the_tightest_interval() {
        let changes = changes(120, 100 * SECOND, |at| 5_000_000_000_000 + at);
        let fitted = fit(&changes, 20_000 * DAY + 50 * SECOND).expect("changes");
        assert_eq!(fitted.anchors.len(), 1);
        assert_eq!(fitted.anchors[0].utc_ns, 20_000 * DAY + 100 * SECOND);
        assert_eq!(fitted.error_ns, 10_000);
        let tight = changes[0];
        assert_eq!(fitted.anchors[0].source_ns, tight.after - (tight.after - tight.before) / 2);
    }

    #[test]
    fn a_drift_is_fitted_and_late_lines_do_not_count() {
        let mut changes = changes(4000, DAY - 60 * SECOND, |at| 77 * SECOND + at + at / 1000 * 30 / 1000);
        for late in (7..4000).step_by(40) {
            changes[late].before += 900_000_000;
            changes[late].after += 900_000_000;
        }
        let fitted = fit(&changes, 20_000 * DAY).expect("changes");
        let clock = Clock::through(ClockKind::Monotonic, fitted.anchors, Some(fitted.error_ns), "").expect("anchors");
        assert!((clock.drift_ppm().expect("two anchors") + 30.0).abs() < 0.5, "{:?}", clock.drift_ppm());
        // Across midnight, and right to the error bar at both ends.
        for at in [0, 2000 * SECOND, 3999 * SECOND] {
            let error = clock.to_utc(77 * SECOND + at + at / 1000 * 30 / 1000) - (20_000 * DAY - 60 * SECOND + at);
            assert!(error.unsigned_abs() <= fitted.error_ns + 1000, "{error} at {at}");
        }
    }

    #[test]
    fn nothing_and_little() {
        assert_eq!(fit(&[], 0), None);
        let one = Change { before: 0, after: 10, of_day: 5 * SECOND };
        assert_eq!(fit(&[one], 0).expect("one").anchors, [Anchor { source_ns: 5, utc_ns: 5 * SECOND }]);
        let absurd = [
            Change { before: 0, after: i64::MAX, of_day: 0 },
            Change { before: i64::MAX - 1, after: i64::MAX, of_day: SECOND },
        ];
        assert!(fit(&absurd, i64::MAX).is_some());
    }

    #[test]
    fn detection() {
        let detect = |text: &str| detect(&Head { name: "x", bytes: text.as_bytes() });
        assert_eq!(
            detect("Attaching 334 probes...\nTIMESTAMP       TIME    \n1380330127458684  22:34:30\n"),
            Confidence::Certain
        );
        assert_eq!(detect("1380330127458684  22:34:30 x\n"), Confidence::No);
    }
}
