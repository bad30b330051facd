//! Unions and intersections of time ranges.

/// Time ranges of one kind. Kept as they come; sorted and merged when there are many, and at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Intervals {
    ranges: Vec<(i64, i64)>,
    /// Ranges that there were at the last merge.
    merged: usize,
    /// How many were added.
    pub(crate) count: u64,
}

/// Ranges that may be added before they are merged.
const ROOM: usize = 4096;

impl Intervals {
    pub(crate) fn push(&mut self, start: i64, end: i64) {
        self.ranges.push((start, end.max(start)));
        self.count += 1;
        if self.ranges.len() > 2 * self.merged + ROOM {
            self.settle();
        }
    }

    pub(crate) fn join(&mut self, other: Intervals) {
        self.ranges.extend(other.ranges);
        self.count += other.count;
        self.settle();
    }

    /// Sorts, and makes one range of those that touch.
    pub(crate) fn settle(&mut self) {
        self.ranges.sort_unstable();
        let mut out: Vec<(i64, i64)> = Vec::with_capacity(self.ranges.len());
        for (start, end) in self.ranges.drain(..) {
            match out.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => out.push((start, end)),
            }
        }
        self.merged = out.len();
        self.ranges = out;
    }

    /// The length of the union.
    pub(crate) fn ns(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| (end - start) as u64).sum()
    }

    /// From the first start to the last end.
    pub(crate) fn hull(&self) -> Option<(i64, i64)> {
        Some((self.ranges.first()?.0, self.ranges.last()?.1))
    }

    /// The length of what both cover.
    pub(crate) fn common_ns(&self, other: &Intervals) -> u64 {
        let (mut left, mut right, mut sum) = (self.ranges.iter().peekable(), other.ranges.iter().peekable(), 0);
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            sum += (a.1.min(b.1) - a.0.max(b.0)).max(0) as u64;
            if a.1 <= b.1 {
                left.next();
            } else {
                right.next();
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ranges: &[(i64, i64)]) -> Intervals {
        let mut intervals = Intervals::default();
        ranges.iter().for_each(|(start, end)| intervals.push(*start, *end));
        intervals.settle();
        intervals
    }

    #[test]
    fn unions_and_intersections_are_exact() {
        let (a, b) = (of(&[(10, 20), (0, 5), (15, 30)]), of(&[(4, 11), (25, 40)]));
        assert_eq!((a.ns(), a.count, a.hull()), (25, 3, Some((0, 30))));
        assert_eq!((a.common_ns(&b), b.common_ns(&a)), (7, 7));
        assert_eq!(a.common_ns(&Intervals::default()), 0);
    }
}
