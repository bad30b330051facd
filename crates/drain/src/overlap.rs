//! Finds spans of a thread that cross others.
//!
//! Viewers stack the spans of a thread and drop one that begins inside another and ends after it. Calls of one thread nest or
//! follow each other, so this is rare (clocks that disagree between cores, folded calls), but a dropped event is a lost one:
//! crossing spans are written as async pairs instead, which may overlap.
//!
//! Spans come in the order of their ends, so one pass with a small stack finds the crossing ones; segments of one thread
//! are joined by the [`Tail`] of the segment before.

/// A span in ticks.
pub(crate) type Span = (u64, u64);

/// Spans remembered from a segment for the next one of the same thread.
pub(crate) const TAIL: usize = 16;

/// The latest spans of a thread that nothing encloses yet, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail(Vec<Span>);

impl Tail {
    /// Looks at a span that ended after all before it. Whether it crosses one of them.
    #[inline]
    fn push(&mut self, (start, end): Span) -> bool {
        // An instant crosses nothing, and instants would soon take the place of all spans.
        if start == end {
            return false;
        }
        let enclosed = self.0.iter().rev().take_while(|before| before.0 >= start && before.1 <= end).count();
        let left = self.0.len() - enclosed;
        if let Some(before) = left.checked_sub(1).map(|index| self.0[index])
            && before.1 > start
        {
            // Ends that are equal nest.
            return before.1 < end;
        }
        self.0.truncate(left);
        if left == 2 * TAIL {
            self.0.drain(..TAIL);
        }
        self.0.push((start, end));
        false
    }

    /// The tail after the last spans of a segment, which need not be in order.
    pub(crate) fn of(mut last_spans: Vec<Span>) -> Tail {
        last_spans.sort_unstable_by_key(|span| (span.1, std::cmp::Reverse(span.0)));
        let mut tail = Tail::default();
        for span in last_spans {
            tail.push(span);
        }
        tail
    }
}

/// Marks the spans that cross another one. `crossing` is cleared first; `tail` is the segment's before.
pub(crate) fn find(spans: &[Span], tail: &Tail, crossing: &mut Vec<bool>, order: &mut Vec<u32>) {
    crossing.clear();
    crossing.resize(spans.len(), false);
    let mut stack = tail.clone();
    // Of two that end together the enclosing one comes last.
    if spans.is_sorted_by_key(|span| (span.1, std::cmp::Reverse(span.0))) {
        for (span, crosses) in spans.iter().zip(crossing) {
            *crosses = stack.push(*span);
        }
        return;
    }
    order.clear();
    order.extend(0..spans.len() as u32);
    order.sort_by_key(|index| {
        let (start, end) = spans[*index as usize];
        (end, std::cmp::Reverse(start))
    });
    for index in order {
        crossing[*index as usize] = stack.push(spans[*index as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(before: &[Span], spans: &[Span], expected: &[bool]) {
        let mut crossing = Vec::new();
        find(spans, &Tail::of(before.to_vec()), &mut crossing, &mut Vec::new());
        assert_eq!(crossing, expected, "{before:?} {spans:?}");
    }

    #[test]
    fn crossing_spans_are_found() {
        check(&[], &[], &[]);
        check(&[], &[(1, 2), (2, 3), (3, 9)], &[false; 3]);
        check(&[], &[(2, 3), (4, 5), (1, 6)], &[false; 3]);
        check(&[], &[(1, 5), (3, 8), (8, 9)], &[false, true, false]);
        check(&[], &[(20, 21), (1, 5), (3, 8)], &[false, false, true]);
        check(&[], &[(5, 5), (5, 5), (5, 5)], &[false; 3]);
        check(&[], &[(1, 8), (3, 8), (2, 9)], &[false, false, true]);
        check(&[], &[(3, 8), (3, 21), (7, 21)], &[false, false, true]);
        check(&[(1, 5)], &[(3, 8)], &[true]);
        check(&[(1, 5), (6, 7)], &[(0, 8)], &[false]);
        check(&[(1, 5), (6, 7)], &[(3, 8)], &[true]);
    }

    proptest! {
        /// No two spans that are left cross each other, however they came.
        #[test]
        fn what_is_left_nests(ends in prop::collection::vec((0u64..60, 0u64..20), 0..30)) {
            let spans: Vec<Span> = ends.iter().map(|(start, length)| (*start, start + length)).collect();
            let mut crossing = Vec::new();
            find(&spans, &Tail::default(), &mut crossing, &mut Vec::new());
            let left: Vec<Span> = spans.iter().zip(&crossing).filter(|(_, crosses)| !**crosses).map(|(span, _)| *span).collect();
            for (index, a) in left.iter().enumerate() {
                for b in &left[index + 1..] {
                    let (first, second) = if a <= b { (a, b) } else { (b, a) };
                    prop_assert!(!(first.0 < second.0 && second.0 < first.1 && first.1 < second.1), "{:?} {:?}", a, b);
                }
            }
        }
    }
}
