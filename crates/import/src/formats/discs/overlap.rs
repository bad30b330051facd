//! The time zone of a host: the whole quarter of an hour that best lays its devices' activity over an application log's.

use super::activity::Activity;

const QUARTER: i64 = 900;
/// From 12 hours behind UTC to 14 before it.
const FIRST: i64 = -48;
const LAST: i64 = 56;
/// Less in common than this says nothing.
const LEAST: f64 = 0.1;

/// A shift that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shift {
    /// Seconds that the devices' local time is ahead of the log's.
    pub seconds: i64,
    /// What they have in common then, 0 to 1.
    pub likeness: f64,
    /// Whether another shift would be nearly as good.
    pub unclear: bool,
}

/// The shift that lays devices best over a log; none where none does.
pub(super) fn shift(devices: &Activity, log: &Activity) -> Option<Shift> {
    let log = log.moved(0);
    let (Some(first), Some(log_first)) = (devices.first(), log.first()) else { return None };
    let mut found: Vec<(f64, i64)> = (FIRST..=LAST)
        .map(|quarters| (devices.moved(-quarters * QUARTER).likeness(&log), quarters * QUARTER))
        .collect();
    // Equal ones: the one whose begins are nearest.
    let apart = |shift: i64| (first - shift).abs_diff(log_first);
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(apart(a.1).cmp(&apart(b.1))));
    let (likeness, seconds) = found[0];
    let unclear = found.get(1).is_some_and(|second| second.0 >= likeness * 0.95);
    (likeness >= LEAST).then_some(Shift { seconds, likeness, unclear })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(devices: &[(i64, i64)], log: &[(i64, i64)], expected: Option<(i64, bool)>) {
        let of = |runs: &[(i64, i64)]| {
            let mut activity = Activity::default();
            runs.iter().for_each(|(from, to)| activity.span(*from, *to));
            activity
        };
        let found = shift(&of(devices), &of(log));
        assert_eq!(found.map(|found| (found.seconds, found.unclear)), expected);
    }

    #[test]
    fn zones() {
        let day = 19_231 * 86_400;
        check(&[(day, day + 900)], &[(day + 14_400, day + 15_290)], Some((-14_400, false)));
        check(&[(day, day + 900)], &[(day + 1, day + 880)], Some((0, false)));
        check(&[(day + 20_700, day + 22_000)], &[(day, day + 1300)], Some((20_700, false)));
        check(&[(day, day + 60)], &[(day + 86_400 * 3, day + 86_400 * 3 + 60)], None);
        check(&[], &[(0, 10)], None);
        // A log of a minute within a day of activity fits anywhere.
        check(&[(day, day + 86_000)], &[(day + 40_000, day + 40_060)], None);
        // An hour within two fits in several places: the one that begins together, and said so.
        check(&[(day, day + 7200)], &[(day, day + 3600)], Some((0, true)));
    }
}
