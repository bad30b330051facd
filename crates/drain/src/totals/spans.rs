//! Sums of the program's own spans, by name and category; bounded.

use std::collections::BTreeMap;

use weftline_format::manifest::SpanTotal;

/// Spans that have sums of their own; the rest is summed up as one.
const MAX_SPANS: usize = 2_000;
/// Under this name, without a category.
const OTHER_SPANS: &str = "…";

/// Sums of one span. Those told at their end are simply added up. Of those whose start and end are told apart, on whatever
/// threads and in whatever order, the ends less the starts are the time of all of them, once as many are closed as were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpanSum {
    count: u64,
    time_ns: u64,
    opened: u64,
    closed: u64,
    balance_ns: i128,
}

impl SpanSum {
    /// One that was told as a whole.
    pub(crate) fn add(&mut self, time_ns: i64) {
        self.count += 1;
        self.time_ns += time_ns.max(0) as u64;
    }

    pub(crate) fn open(&mut self, at_ns: i64) {
        self.opened += 1;
        self.balance_ns -= i128::from(at_ns);
    }

    pub(crate) fn close(&mut self, at_ns: i64) {
        self.closed += 1;
        self.balance_ns += i128::from(at_ns);
    }

    fn merge(&mut self, other: &SpanSum) {
        self.count += other.count;
        self.time_ns += other.time_ns;
        self.opened += other.opened;
        self.closed += other.closed;
        self.balance_ns += other.balance_ns;
    }

    /// Count and time. What was never closed lasted until `last_ns`; of ends without a start the time is not known.
    fn total(&self, last_ns: i64) -> (u64, u64) {
        let apart = match self.opened.checked_sub(self.closed) {
            Some(open) => self.balance_ns + i128::from(open) * i128::from(last_ns),
            None => 0,
        };
        let apart = u64::try_from(apart.max(0)).unwrap_or(0);
        (self.count + self.opened.max(self.closed), self.time_ns.saturating_add(apart))
    }
}

/// Sums by category and name.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpanSums {
    sums: BTreeMap<String, BTreeMap<String, SpanSum>>,
    count: usize,
}

impl SpanSums {
    /// The sums of a span, those of the others when there are too many.
    pub(crate) fn of(&mut self, name: &str, category: &str) -> &mut SpanSum {
        let is_known = self.sums.get(category).is_some_and(|names| names.contains_key(name));
        let has_room = self.count < MAX_SPANS;
        let (name, category) = if is_known || has_room { (name, category) } else { (OTHER_SPANS, "") };
        // The sum of all others is one more.
        self.count += usize::from(!is_known && has_room && (name, category) != (OTHER_SPANS, ""));
        self.sums.entry(category.to_owned()).or_default().entry(name.to_owned()).or_default()
    }

    pub(crate) fn merge(&mut self, name: &str, category: &str, sum: &SpanSum) {
        self.of(name, category).merge(sum);
    }

    pub(crate) fn merge_all(&mut self, others: &SpanSums) {
        for (category, names) in &others.sums {
            for (name, sum) in names {
                self.merge(name, category, sum);
            }
        }
    }

    /// Adds what was summed up before.
    pub(crate) fn merge_totals(&mut self, totals: &[SpanTotal]) {
        for total in totals {
            let sum = self.of(&total.name, &total.cat);
            sum.count += total.count;
            sum.time_ns += total.time_ns;
        }
    }

    /// All of them, longest first; the same for the same sums. `last_ns` is the latest time of any event.
    pub(crate) fn totals(&self, last_ns: i64) -> Vec<SpanTotal> {
        let each = |cat: &str, name: &str, sum: &SpanSum| {
            let (count, time_ns) = sum.total(last_ns);
            SpanTotal { name: name.to_owned(), cat: cat.to_owned(), count, time_ns }
        };
        let mut totals: Vec<SpanTotal> =
            self.sums.iter().flat_map(|(cat, names)| names.iter().map(|(name, sum)| each(cat, name, sum))).collect();
        totals.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| (&a.cat, &a.name).cmp(&(&b.cat, &b.name))));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fill: impl Fn(&mut SpanSum), expected: (u64, u64)) {
        let mut sum = SpanSum::default();
        fill(&mut sum);
        assert_eq!(sum.total(1_000), expected, "{sum:?}");
    }

    #[test]
    fn starts_and_ends_add_up_in_any_order() {
        check(|_| {}, (0, 0));
        check(|sum| sum.add(7), (1, 7));
        check(
            |sum| {
                sum.add(7);
                sum.open(100);
                sum.close(150);
            },
            (2, 57),
        );
        // Two that overlap, and the second end before the first start is known.
        check(
            |sum| {
                sum.close(500);
                sum.open(300);
                sum.open(200);
                sum.close(400);
            },
            (2, 400),
        );
        // Killed inside.
        check(|sum| sum.open(400), (1, 600));
        check(|sum| sum.close(400), (1, 0));
    }

    #[test]
    fn spans_are_bounded() {
        let mut sums = SpanSums::default();
        for number in 0..5_000 {
            sums.of(&format!("span {number}"), "app").add(1);
            sums.of("span 0", "app").add(1);
        }
        let totals = sums.totals(0);
        assert!(totals.len() <= MAX_SPANS + 1, "{}", totals.len());
        assert_eq!(totals.iter().map(|total| total.count).sum::<u64>(), 10_000);
        assert_eq!((totals[0].name.as_str(), totals[0].count), ("span 0", 5_001));
        assert_eq!(totals[1].name, OTHER_SPANS);
        let mut again = SpanSums::default();
        again.merge_totals(&totals);
        again.merge_all(&SpanSums::default());
        assert_eq!(again.totals(0), totals);
    }
}
