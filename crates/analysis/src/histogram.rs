//! A histogram of durations with bounded relative error, for percentiles.
//!
//! Values below 128 have a bin each; above, every power of two is cut into 128 bins, and a value is represented by the middle of its bin: at
//! most 0.4 % off ([`RELATIVE_ERROR`] is the guaranteed bound). Only the bins between the smallest and the largest value
//! are kept.

use serde::{Deserialize, Serialize};

/// A percentile is off by no more than this share of it.
pub const RELATIVE_ERROR: f64 = 0.005;

const BITS: u32 = 7;

/// Counts per bin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u32, u64)>", into = "Vec<(u32, u64)>")]
pub struct Histogram {
    /// The number of the first bin that is kept.
    first: u32,
    counts: Vec<u64>,
    total: u64,
}

#[inline]
fn bin(value: u64) -> u32 {
    let octave = (63 - (value | 1).leading_zeros()).saturating_sub(BITS);
    ((octave) << BITS) + (value >> octave) as u32
}

fn middle(bin: u32) -> f64 {
    if bin < 2 << BITS {
        return f64::from(bin);
    }
    let octave = (bin >> BITS) - 1;
    let low = u64::from(bin - (octave << BITS)) << octave;
    low as f64 + ((1u64 << octave) - 1) as f64 / 2.0
}

impl Histogram {
    /// Takes up a value; negative ones count as 0.
    #[inline]
    pub fn add(&mut self, value: i64) {
        self.add_many(value, 1);
    }

    /// Takes up a value that occurs so many times.
    #[inline]
    pub fn add_many(&mut self, value: i64, times: u64) {
        *self.at(bin(value.max(0) as u64)) += times;
        self.total += times;
    }

    #[inline]
    fn at(&mut self, bin: u32) -> &mut u64 {
        if self.counts.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            let more = (self.first - bin) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bin;
        }
        let place = (bin - self.first) as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        &mut self.counts[place]
    }

    /// Takes up another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (place, count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let own = self.at(other.first + place as u32);
            *own = own.saturating_add(*count);
        }
        self.total = self.total.saturating_add(other.total);
    }

    /// The value that a share of all values does not exceed.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.total == 0 {
            return None;
        }
        let rank = ((share * self.total as f64).ceil() as u64).clamp(1, self.total);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen = count.saturating_add(seen);
            if seen >= rank {
                return Some(middle(self.first + place as u32));
            }
        }
        None
    }
}

/// The bins that are not empty: how many stand between each and the one before, and its count.
impl From<Histogram> for Vec<(u32, u64)> {
    fn from(histogram: Histogram) -> Self {
        let mut next = 0;
        let bins = (histogram.first..).zip(histogram.counts).filter(|(_, count)| *count > 0);
        bins.map(|(bin, count)| (bin - std::mem::replace(&mut next, bin + 1), count)).collect()
    }
}

impl TryFrom<Vec<(u32, u64)>> for Histogram {
    type Error = &'static str;

    fn try_from(bins: Vec<(u32, u64)>) -> Result<Histogram, Self::Error> {
        let mut histogram = Histogram::default();
        let mut next = 0u32;
        for (skipped, count) in bins {
            let place = next.saturating_add(skipped);
            if place > bin(u64::MAX) {
                return Err("a bin that no duration falls into");
            }
            *histogram.at(place) = count;
            histogram.total = histogram.total.saturating_add(count);
            next = place + 1;
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_within_the_bound(
            mut values in prop::collection::vec((0u32..62).prop_flat_map(|bits| 0i64..(2i64 << bits)), 1..200),
            share in 0.0f64..=1.0,
        ) {
            let (mut whole, mut left, mut right) = (Histogram::default(), Histogram::default(), Histogram::default());
            for (place, value) in values.iter().enumerate() {
                whole.add(*value);
                if place % 2 == 0 { left.add(*value) } else { right.add(*value) }
            }
            left.merge(&right);
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (truth, found) = (values[rank - 1] as f64, whole.quantile(share).expect("a value"));
            prop_assert!((found - truth).abs() <= RELATIVE_ERROR * truth, "{found} {truth}");
            prop_assert_eq!(left.quantile(share), Some(found));
        }
    }
}
