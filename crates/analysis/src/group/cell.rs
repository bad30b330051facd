//! The sums of a group: exact integers, so that the order of events does not matter.

use serde::{Deserialize, Serialize};

use crate::classify::{SIZE_BINS, bin_of};

/// What a cell takes of an event.
#[derive(Debug, Clone, Copy)]
pub struct Values {
    /// Its start, ns since the epoch.
    pub start: i64,
    /// Its duration, ns.
    pub dur: i64,
    /// The bytes that it moved.
    pub size: Option<u64>,
    /// Where in the file.
    pub offset: Option<i64>,
}

/// Values of a group. `merge` must be commutative and associative.
pub trait Cell: Clone + Send + Sync + 'static {
    /// Whether it looks at starts.
    const START: bool;
    /// Whether it looks at offsets.
    const OFFSET: bool;
    /// A group without events.
    fn empty() -> Self;
    /// Takes up an event.
    fn add(&mut self, values: Values);
    /// Takes up the size of an event that was added without one.
    fn add_size(&mut self, size: u64);
    /// Forgets sizes: it turned out that these events have none.
    fn drop_sizes(&mut self);
    /// Takes up another part of the same group.
    fn merge(&mut self, other: &Self);
    /// Events in it.
    fn count(&self) -> u64;
}

/// Count, time and bytes: what the fast questions need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// Events.
    pub count: u64,
    /// Sum of durations, ns.
    pub dur: i128,
    /// Shortest duration.
    pub dur_min: i64,
    /// Longest duration.
    pub dur_max: i64,
    /// Sum of sizes.
    pub size: u128,
}

impl Cell for Sums {
    const START: bool = false;
    const OFFSET: bool = false;

    fn empty() -> Self {
        Sums { count: 0, dur: 0, dur_min: i64::MAX, dur_max: i64::MIN, size: 0 }
    }

    #[inline]
    fn add(&mut self, values: Values) {
        self.count += 1;
        self.dur += i128::from(values.dur);
        self.dur_min = self.dur_min.min(values.dur);
        self.dur_max = self.dur_max.max(values.dur);
        self.size += u128::from(values.size.unwrap_or(0));
    }

    fn add_size(&mut self, size: u64) {
        self.size += u128::from(size);
    }

    fn drop_sizes(&mut self) {
        self.size = 0;
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.dur += other.dur;
        self.dur_min = self.dur_min.min(other.dur_min);
        self.dur_max = self.dur_max.max(other.dur_max);
        self.size += other.size;
    }

    fn count(&self) -> u64 {
        self.count
    }
}

/// All that the tables of high-level metrics hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Events.
    pub count: u64,
    /// Events that have a size.
    pub sized: u64,
    /// Sum of durations, ns.
    pub dur: i128,
    /// Sum of their squares.
    pub dur_sq: u128,
    /// Sum of sizes.
    pub size: u128,
    /// Sum of their squares.
    pub size_sq: u128,
    /// Shortest duration; `i64::MAX` in an empty group.
    pub dur_min: i64,
    /// Longest duration.
    pub dur_max: i64,
    /// Smallest size; `u64::MAX` where none has a size.
    pub size_min: u64,
    /// Largest size.
    pub size_max: u64,
    /// First start.
    pub first: i64,
    /// Last end.
    pub last: i64,
    /// Lowest offset; `i64::MAX` where none has one.
    pub offset_min: i64,
    /// Highest offset.
    pub offset_max: i64,
    /// Events per size bin; most groups have no sizes, so they have no bins either.
    pub bins: Option<Box<[u64; SIZE_BINS]>>,
    /// What is not known, because the tracer kept only the totals of some calls; nothing where it kept all of them one by one.
    pub unknown: Option<Box<Unknown>>,
}

/// Calls of a group of which only totals are known, and how many of those leave open what. What is open for one call is for its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Unknown {
    /// All calls that are known only as totals.
    pub calls: u64,
    /// How long each took.
    pub durations: u64,
    /// How long the shortest and the longest took.
    pub extremes: u64,
    /// How many moved bytes.
    pub sized: u64,
    /// How many bytes each moved.
    pub sizes: u64,
    /// Which bins their sizes are in.
    pub bins: u64,
    /// The smallest size.
    pub size_min: u64,
    /// The largest size.
    pub size_max: u64,
}

/// Sums of forged states (`crate::pass`) stop at the largest number.
fn grow(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl Unknown {
    fn merge(&mut self, other: &Unknown) {
        grow(&mut self.calls, other.calls);
        grow(&mut self.durations, other.durations);
        grow(&mut self.extremes, other.extremes);
        grow(&mut self.sized, other.sized);
        grow(&mut self.sizes, other.sizes);
        grow(&mut self.bins, other.bins);
        grow(&mut self.size_min, other.size_min);
        grow(&mut self.size_max, other.size_max);
    }
}

impl Stats {
    /// Whether something is known of all calls.
    fn all_know(&self, of: impl Fn(&Unknown) -> u64) -> bool {
        self.unknown.as_deref().is_none_or(|unknown| of(unknown) == 0)
    }

    /// Calls that are known only as totals.
    pub fn totals(&self) -> u64 {
        self.unknown.as_deref().map_or(0, |unknown| unknown.calls)
    }

    /// Bins, zeros where there are none.
    pub fn bins(&self) -> Option<[u64; SIZE_BINS]> {
        self.all_know(|unknown| unknown.bins).then(|| self.bins.as_deref().copied().unwrap_or([0; SIZE_BINS]))
    }

    /// The smallest size.
    pub fn size_min(&self) -> Option<u64> {
        (self.sized > 0 && self.all_know(|unknown| unknown.size_min)).then_some(self.size_min)
    }

    /// The largest size.
    pub fn size_max(&self) -> Option<u64> {
        (self.sized > 0 && self.all_know(|unknown| unknown.size_max)).then_some(self.size_max)
    }

    /// Events that have a size.
    pub fn sized(&self) -> Option<u64> {
        self.all_know(|unknown| unknown.sized).then_some(self.sized)
    }

    /// Sum of the squares of sizes.
    pub fn size_sq(&self) -> Option<u128> {
        self.all_know(|unknown| unknown.sizes).then_some(self.size_sq)
    }

    /// Sum of the squares of durations.
    pub fn dur_sq(&self) -> Option<u128> {
        self.all_know(|unknown| unknown.durations).then_some(self.dur_sq)
    }

    /// Shortest and longest duration.
    pub fn dur_range(&self) -> Option<(i64, i64)> {
        (self.count > 0 && self.all_know(|unknown| unknown.extremes)).then_some((self.dur_min, self.dur_max))
    }
}

/// The square of a duration cannot be more than this for `u128` to hold 2^64 of them.
#[inline]
fn square(value: i64) -> u128 {
    u128::from(value.unsigned_abs()).pow(2)
}

impl Cell for Stats {
    const START: bool = true;
    const OFFSET: bool = true;

    fn empty() -> Self {
        Stats {
            count: 0,
            sized: 0,
            dur: 0,
            dur_sq: 0,
            size: 0,
            size_sq: 0,
            dur_min: i64::MAX,
            dur_max: i64::MIN,
            size_min: u64::MAX,
            size_max: 0,
            first: i64::MAX,
            last: i64::MIN,
            offset_min: i64::MAX,
            offset_max: i64::MIN,
            bins: None,
            unknown: None,
        }
    }

    #[inline]
    fn add(&mut self, values: Values) {
        self.count += 1;
        self.dur += i128::from(values.dur);
        self.dur_sq = self.dur_sq.saturating_add(square(values.dur));
        self.dur_min = self.dur_min.min(values.dur);
        self.dur_max = self.dur_max.max(values.dur);
        self.first = self.first.min(values.start);
        self.last = self.last.max(values.start.saturating_add(values.dur));
        if let Some(size) = values.size {
            self.add_size(size);
        }
        if let Some(offset) = values.offset {
            self.offset_min = self.offset_min.min(offset);
            self.offset_max = self.offset_max.max(offset);
        }
    }

    #[inline]
    fn add_size(&mut self, size: u64) {
        self.sized += 1;
        self.size += u128::from(size);
        self.size_sq = self.size_sq.saturating_add(u128::from(size) * u128::from(size));
        self.size_min = self.size_min.min(size);
        self.size_max = self.size_max.max(size);
        self.bins.get_or_insert_default()[bin_of(size)] += 1;
    }

    fn drop_sizes(&mut self) {
        (self.sized, self.size, self.size_sq, self.size_min, self.size_max) = (0, 0, 0, u64::MAX, 0);
        self.bins = None;
    }

    fn merge(&mut self, other: &Self) {
        grow(&mut self.count, other.count);
        grow(&mut self.sized, other.sized);
        self.dur = self.dur.saturating_add(other.dur);
        self.dur_sq = self.dur_sq.saturating_add(other.dur_sq);
        self.size = self.size.saturating_add(other.size);
        self.size_sq = self.size_sq.saturating_add(other.size_sq);
        self.dur_min = self.dur_min.min(other.dur_min);
        self.dur_max = self.dur_max.max(other.dur_max);
        self.size_min = self.size_min.min(other.size_min);
        self.size_max = self.size_max.max(other.size_max);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.offset_min = self.offset_min.min(other.offset_min);
        self.offset_max = self.offset_max.max(other.offset_max);
        if let Some(bins) = &other.bins {
            let own = self.bins.get_or_insert_default();
            own.iter_mut().zip(bins.iter()).for_each(|(own, other)| grow(own, *other));
        }
        if let Some(unknown) = &other.unknown {
            self.unknown.get_or_insert_default().merge(unknown);
        }
    }

    fn count(&self) -> u64 {
        self.count
    }
}
