//! Time ranges: unions and intersections. Wall time is the length of a union, never a sum of durations.

use serde::{Deserialize, Serialize};

/// A set of time ranges, ns. Ranges that touch are one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(i64, u64)>", into = "Vec<(i64, u64)>")]
pub struct Intervals {
    ranges: Vec<(i64, i64)>,
    /// Ranges from here on are in no order yet.
    sorted: usize,
}

/// Unsorted ranges that may wait; settling them costs a pass over all. There is a set per layer, process and thread.
const ROOM: usize = 1 << 12;

impl Intervals {
    /// Adds a range. An empty or negative one adds nothing.
    #[inline]
    pub fn add(&mut self, start: i64, end: i64) {
        if end <= start {
            return;
        }
        if let Some(last) = self.ranges.last_mut()
            && start >= last.0
        {
            // The usual case: events come nearly in the order of time.
            if start <= last.1 {
                last.1 = last.1.max(end);
                return;
            }
            let in_order = self.sorted == self.ranges.len();
            self.ranges.push((start, end));
            self.sorted += usize::from(in_order);
        } else {
            let first = self.ranges.is_empty();
            self.ranges.push((start, end));
            self.sorted += usize::from(first);
        }
        if self.ranges.len() - self.sorted > ROOM.max(self.sorted) {
            self.settle();
        }
    }

    /// Sorts, and joins what touches. All that follows needs it.
    pub fn settle(&mut self) {
        if self.sorted == self.ranges.len() {
            return;
        }
        // Stable sorting makes use of the runs that are in order.
        self.ranges.sort();
        let mut kept = 0;
        for place in 1..self.ranges.len() {
            let (start, end) = self.ranges[place];
            let last = &mut self.ranges[kept];
            if start <= last.1 {
                last.1 = last.1.max(end);
            } else {
                kept += 1;
                self.ranges[kept] = (start, end);
            }
        }
        self.ranges.truncate(kept + 1);
        self.sorted = self.ranges.len();
    }

    /// Adds all ranges of another set.
    pub fn join(&mut self, mut other: Intervals) {
        if self.ranges.is_empty() {
            *self = other;
        } else if let Some(first) = other.ranges.first() {
            let settled = [&*self, &other].iter().all(|set| set.sorted == set.ranges.len());
            // Window behind window: nothing needs to be sorted.
            let behind = settled && self.ranges.last().is_some_and(|last| first.0 > last.1);
            self.ranges.append(&mut other.ranges);
            if behind {
                self.sorted = self.ranges.len();
            } else {
                self.settle_all();
            }
        }
    }

    fn settle_all(&mut self) {
        self.sorted = 0;
        self.settle();
    }

    /// The union of several sets.
    pub fn union<'i>(sets: impl IntoIterator<Item = &'i Intervals>) -> Intervals {
        let mut all = Intervals::default();
        for set in sets {
            all.ranges.extend_from_slice(&set.ranges);
        }
        all.settle_all();
        all
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> &[(i64, i64)] {
        &self.ranges
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The length of the union.
    pub fn length(&self) -> i128 {
        self.ranges.iter().map(|(start, end)| i128::from(*end) - i128::from(*start)).sum()
    }

    /// What both cover.
    #[must_use]
    pub fn intersection(&self, other: &Intervals) -> Intervals {
        let mut common = Vec::new();
        self.walk(other, |start, end| common.push((start, end)));
        Intervals { sorted: common.len(), ranges: common }
    }

    /// The length of what both cover.
    pub fn overlap(&self, other: &Intervals) -> i128 {
        let mut sum = 0;
        self.walk(other, |start, end| sum += i128::from(end) - i128::from(start));
        sum
    }

    fn walk(&self, other: &Intervals, mut each: impl FnMut(i64, i64)) {
        let (mut left, mut right) = (0, 0);
        while let (Some(a), Some(b)) = (self.ranges.get(left), other.ranges.get(right)) {
            let (start, end) = (a.0.max(b.0), a.1.min(b.1));
            if start < end {
                each(start, end);
            }
            if a.1 <= b.1 {
                left += 1;
            } else {
                right += 1;
            }
        }
    }

    /// Lengths per bucket: a range that crosses bounds counts in each bucket with its part there.
    pub fn per_bucket(&self, origin: i64, width: i64, mut each: impl FnMut(i64, i64)) {
        let width = width.max(1);
        for (start, end) in &self.ranges {
            let mut at = *start;
            while at < *end {
                let bucket = (at - origin).div_euclid(width);
                let next = origin.saturating_add((bucket + 1).saturating_mul(width)).min(*end);
                each(bucket, next - at);
                at = next;
            }
        }
    }
}

/// Each range as its distance from the end of the one before and its length: a few bytes where calls follow each other.
impl From<Intervals> for Vec<(i64, u64)> {
    fn from(mut set: Intervals) -> Self {
        set.settle();
        let mut before = 0;
        let pair = |(start, end): (i64, i64)| {
            let gap = start.wrapping_sub(std::mem::replace(&mut before, end));
            (gap, end.wrapping_sub(start) as u64)
        };
        set.ranges.into_iter().map(pair).collect()
    }
}

impl TryFrom<Vec<(i64, u64)>> for Intervals {
    type Error = &'static str;

    fn try_from(pairs: Vec<(i64, u64)>) -> Result<Intervals, Self::Error> {
        let mut ranges: Vec<(i64, i64)> = Vec::with_capacity(pairs.len());
        let mut before = 0i64;
        for (gap, length) in pairs {
            let start = before.wrapping_add(gap);
            let end = start.wrapping_add(length as i64);
            if end <= start || ranges.last().is_some_and(|last| start <= last.1) {
                return Err("time ranges that are not in order");
            }
            ranges.push((start, end));
            before = end;
        }
        Ok(Intervals { sorted: ranges.len(), ranges })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(ranges: &[(i64, i64)]) -> Intervals {
        let mut intervals = Intervals::default();
        ranges.iter().for_each(|(start, end)| intervals.add(*start, *end));
        intervals.settle();
        intervals
    }

    /// One flag per unit of time.
    fn painted(ranges: &[(i64, i64)]) -> Vec<bool> {
        let mut line = vec![false; 200];
        for (start, end) in ranges {
            (*start..*end).for_each(|at| line[at as usize] = true);
        }
        line
    }

    fn count(line: impl Iterator<Item = bool>) -> i128 {
        line.filter(|covered| *covered).count() as i128
    }

    fn ranges() -> impl Strategy<Value = Vec<(i64, i64)>> {
        prop::collection::vec((0i64..150, -5i64..50).prop_map(|(start, dur)| (start, start + dur)), 0..40)
    }

    proptest! {
        #[test]
        fn lengths_are_those_of_a_painted_line(left in ranges(), right in ranges(), width in 1i64..30) {
            let (a, b) = (of(&left), of(&right));
            let (line, other) = (painted(&left), painted(&right));
            prop_assert_eq!(a.length(), count(line.iter().copied()));
            let both = || line.iter().zip(&other).map(|(a, b)| *a && *b);
            prop_assert_eq!(a.overlap(&b), count(both()));
            prop_assert_eq!(a.intersection(&b).length(), a.overlap(&b));
            let either = count(line.iter().zip(&other).map(|(a, b)| *a || *b));
            prop_assert_eq!(Intervals::union([&a, &b]).length(), either);
            let mut joined = a.clone();
            joined.join(b);
            prop_assert_eq!(joined.length(), either);
            let mut parts = vec![0i128; 300];
            a.per_bucket(0, width, |bucket, length| parts[bucket as usize] += i128::from(length));
            for (bucket, part) in parts.iter().enumerate() {
                let from = bucket * width as usize;
                prop_assert_eq!(*part, count(line.iter().copied().skip(from).take(width as usize)));
            }
        }
    }
}
