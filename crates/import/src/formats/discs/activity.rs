//! When something was going on: runs of seconds, few enough to compare many shifts of them.

/// Seconds between two signs of life that belong together.
const GAP: i64 = 5;
/// Runs that are kept; what comes later widens the last.
const MOST: usize = 1 << 14;

/// Runs of seconds, both ends within.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Activity {
    runs: Vec<(i64, i64)>,
}

impl Activity {
    /// Something happened in this second.
    pub(super) fn mark(&mut self, second: i64) {
        self.span(second, second);
    }

    /// Something went on from one second to another.
    pub(super) fn span(&mut self, from: i64, to: i64) {
        let (from, to) = (from.min(to), from.max(to));
        let full = self.runs.len() >= MOST;
        match self.runs.last_mut() {
            Some(last) if full || (from <= last.1.saturating_add(GAP) && to >= last.0.saturating_sub(GAP)) => {
                *last = (last.0.min(from), last.1.max(to));
            }
            _ => self.runs.push((from, to)),
        }
    }

    pub(super) fn add(&mut self, other: &Activity) {
        for (from, to) in &other.runs {
            self.span(*from, *to);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The first second.
    pub(super) fn first(&self) -> Option<i64> {
        self.runs.iter().map(|run| run.0).min()
    }

    /// The last second.
    pub(super) fn last(&self) -> Option<i64> {
        self.runs.iter().map(|run| run.1).max()
    }

    /// The same, in order and without overlaps, and all times moved.
    #[must_use]
    pub(super) fn moved(&self, by: i64) -> Activity {
        let mut runs: Vec<_> = self.runs.iter().map(|(a, b)| (a.saturating_add(by), b.saturating_add(by))).collect();
        runs.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::with_capacity(runs.len());
        for (from, to) in runs {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Activity { runs: joined }
    }

    /// How many seconds there are.
    fn seconds(&self) -> i64 {
        self.runs.iter().fold(0, |sum: i64, (from, to)| sum.saturating_add(to.saturating_sub(*from).saturating_add(1)))
    }

    /// What two of them have in common, as a share of what either has. Both in order.
    pub(super) fn likeness(&self, other: &Activity) -> f64 {
        let (mut here, mut there, mut common) = (0, 0, 0_i64);
        while let (Some(a), Some(b)) = (self.runs.get(here), other.runs.get(there)) {
            common = common.saturating_add((a.1.min(b.1).saturating_sub(a.0.max(b.0)).saturating_add(1)).max(0));
            if a.1 < b.1 { here += 1 } else { there += 1 }
        }
        let all = self.seconds().saturating_add(other.seconds()).saturating_sub(common);
        if all > 0 { common as f64 / all as f64 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_and_compare() {
        let mut busy = Activity::default();
        for second in [10, 11, 13, 100, 105, 12] {
            busy.mark(second);
        }
        assert_eq!(busy.moved(0).runs, [(10, 13), (100, 105)]);
        assert_eq!((busy.first(), busy.last()), (Some(10), Some(105)));
        assert!((busy.moved(0).likeness(&busy.moved(0)) - 1.0).abs() < 1e-9);
        let mut half = Activity::default();
        half.span(10, 11);
        assert!((half.likeness(&busy.moved(0)) - 0.2).abs() < 1e-9);
        assert!(half.moved(500).likeness(&busy.moved(0)).abs() < 1e-9);
    }

    #[test]
    fn memory_is_bounded() {
        let mut busy = Activity::default();
        for second in 0..(MOST as i64 * 3) {
            busy.mark(second * 100);
        }
        assert_eq!(busy.runs.len(), MOST);
        assert_eq!(busy.last(), Some((MOST as i64 * 3 - 1) * 100));
        busy.span(i64::MIN, i64::MAX);
        assert!(busy.moved(5).likeness(&busy.moved(-5)) >= 0.0);
    }
}
