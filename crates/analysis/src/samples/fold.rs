//! One curve: samples folded into buckets of time while they are read, so that a week of them takes no more memory than a minute.
//!
//! All sums are integers (thousandths of what was written), so the order in which threads see samples does not matter.

use weftline_format::metrics::Measure;

/// Buckets of a curve while it is folded.
pub(super) const MOST_BUCKETS: i64 = 480;
/// The same where there are many hosts.
pub(super) const FEW_BUCKETS: i64 = 120;
/// Points of a curve that is handed on.
pub(super) const MOST_POINTS: usize = 120;
/// What grew in less time than this gives no rate worth telling: clocks of processes go by ticks of up to 10 ms.
const SHORTEST_NS: i64 = 20_000_000;
/// Values are kept in thousandths: collectors write no more digits.
const THOUSAND: f64 = 1000.0;
/// Growth is dealt out to buckets in parts as small as this.
const FINE: i128 = 1_000_000;

/// Where the buckets lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) from: i64,
    pub(super) to: i64,
    width: i64,
}

impl Axis {
    /// Over a time range, in at most this many buckets. A trace may contain any time, so lengths need more than 64 bits.
    pub(super) fn new(from: i64, to: i64, most: i64) -> Axis {
        let to = to.max(from.saturating_add(1));
        let width = (i128::from(to) - i128::from(from) + i128::from(most) - 1) / i128::from(most);
        Axis { from, to, width: clamp(width).max(1) }
    }

    fn bucket(&self, time: i64) -> usize {
        ((i128::from(time) - i128::from(self.from)).max(0) / i128::from(self.width)) as usize
    }

    /// Where buckets begin and end.
    fn edges(&self, first: usize, behind: usize) -> (i64, i64) {
        let edge = |bucket: usize| clamp(i128::from(self.from) + i128::from(self.width) * bucket as i128).min(self.to);
        (edge(first), edge(behind))
    }

    fn buckets(&self) -> usize {
        self.bucket(self.to - 1) + 1
    }

    /// Buckets that make a point of the curve.
    fn per_point(&self) -> usize {
        self.buckets().div_ceil(MOST_POINTS)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cell {
    /// Growth, in [`FINE`] parts of a thousandth; of others, thousandths times nanoseconds, or times points in time.
    sum: i128,
    /// Nanoseconds that samples describe; of those that describe a point in time, how many.
    covered: i64,
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.sum = self.sum.saturating_add(other.sum);
        self.covered = self.covered.saturating_add(other.covered);
    }
}

/// A sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Where its interval begins.
    pub(super) start: i64,
    /// How long that is; nothing where the trace does not say.
    pub(super) length: Option<i64>,
    pub(super) value: f64,
}

/// A curve that is being folded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fold {
    first: usize,
    cells: Vec<Cell>,
    pub(super) samples: u64,
    /// The highest value of a sample, or rate of growth per second, in thousandths; and when.
    peak: Option<(i64, std::cmp::Reverse<i64>)>,
    /// Samples describe points in time.
    instantaneous: bool,
    /// What is as high as it can get, in thousandths.
    pub(super) full: i64,
}

impl Fold {
    /// Takes a sample.
    pub(super) fn add(&mut self, axis: &Axis, measure: Measure, sample: Sample) {
        let value = thousandths(sample.value);
        let end = sample.start.saturating_add(sample.length.unwrap_or(0).max(0));
        let (start, last) = (sample.start.max(axis.from), end.min(axis.to));
        if start > last || start >= axis.to && sample.start < end {
            return;
        }
        self.samples += 1;
        let grows = measure == Measure::Delta;
        let length = end.saturating_sub(sample.start);
        let height = match (grows, length) {
            (false, _) => Some(value),
            (true, SHORTEST_NS..) => Some(clamp(i128::from(value) * 1_000_000_000 / i128::from(length))),
            (true, _) => None,
        };
        if let Some(height) = height {
            self.peak = self.peak.max(Some((height, std::cmp::Reverse(end))));
        }
        if length == 0 {
            self.instantaneous |= sample.length.is_none();
            // A first sample of a process describes no time yet.
            let covered = i64::from(sample.length.is_none());
            let at = axis.bucket(start.min(axis.to - 1));
            let sum = match (grows, covered) {
                (true, _) => i128::from(value) * FINE,
                (false, 0) => 0,
                (false, _) => i128::from(value),
            };
            self.cell(at).add(&Cell { sum, covered });
            return;
        }
        let whole = i128::from(length);
        let grown = |until: i64| {
            let part = (i128::from(until) - i128::from(sample.start)).min(whole);
            i128::from(value).saturating_mul(FINE).saturating_mul(part) / whole
        };
        let mut at = start;
        while at < last {
            let bucket = axis.bucket(at);
            let until = axis.edges(bucket, bucket + 1).1.min(last).max(at + 1);
            // Differences of a sum: nothing is lost by rounding.
            let sum = if grows { grown(until) - grown(at) } else { i128::from(value) * i128::from(until - at) };
            self.cell(bucket).add(&Cell { sum, covered: until - at });
            at = until;
        }
    }

    fn cell(&mut self, bucket: usize) -> &mut Cell {
        if self.cells.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = self.first - bucket;
            self.cells.splice(0..0, std::iter::repeat_n(Cell::default(), missing));
            self.first = bucket;
        }
        let place = bucket - self.first;
        if place >= self.cells.len() {
            self.cells.resize(place + 1, Cell::default());
        }
        &mut self.cells[place]
    }

    /// Joins what another thread has folded.
    pub(super) fn join(&mut self, other: &Fold) {
        for (place, cell) in other.cells.iter().enumerate() {
            self.cell(other.first + place).add(cell);
        }
        self.samples += other.samples;
        self.peak = self.peak.max(other.peak);
        self.instantaneous |= other.instantaneous;
        self.full = self.full.max(other.full);
    }

    /// The curve. `together`: values of several processes at a time are added up.
    pub(super) fn finish(&self, axis: &Axis, measure: Measure, together: bool) -> Line {
        let grows = measure == Measure::Delta;
        let mut all = Cell::default();
        let mut busy = 0i64;
        for (place, cell) in self.cells.iter().enumerate() {
            all.add(cell);
            if *cell != Cell::default() {
                let (start, end) = axis.edges(self.first + place, self.first + place + 1);
                busy = busy.saturating_add(end.saturating_sub(start));
            }
        }
        // What is divided by: time, or the number of points in time. Growth that came without one is spread over the whole.
        let over = |cell: &Cell, time: i64| match (self.instantaneous, grows, together) {
            (true, true, _) => time,
            (false, _, true) => time,
            _ => cell.covered,
        };
        let whole = if grows { THOUSAND * FINE as f64 } else { THOUSAND };
        let value = |cell: &Cell, time: i64| {
            let over = over(cell, time);
            let per_second = if grows { 1e9 } else { 1.0 };
            (over > 0).then(|| cell.sum as f64 / whole * per_second / over as f64)
        };
        let step = axis.per_point();
        let point = |place: usize| {
            let (first, behind) = (place * step, (place + 1) * step);
            let from = first.max(self.first);
            let to = behind.min(self.first + self.cells.len());
            let cells = self.cells.get(from.checked_sub(self.first)?..to.checked_sub(self.first)?)?;
            let mut sum = Cell::default();
            cells.iter().for_each(|cell| sum.add(cell));
            let (start, end) = axis.edges(first, behind);
            value(&sum, end - start).filter(|_| sum != Cell::default())
        };
        let points: Vec<Option<f64>> = (0..axis.buckets().div_ceil(step)).map(point).collect();
        let highest = self.peak.map(|(height, at)| (height as f64 / THOUSAND, at.0));
        let steepest = self.cells.iter().enumerate().filter(|_| together).filter_map(|(place, cell)| {
            let (start, end) = axis.edges(self.first + place, self.first + place + 1);
            Some((value(cell, end - start)?, end))
        });
        let peak = steepest.chain(highest).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let time = if together { busy.min(all.covered.max(1)) } else { busy };
        Line {
            average: value(&all, time),
            peak,
            total: grows.then_some(all.sum as f64 / whole),
            points: if self.instantaneous { held(points) } else { points },
        }
    }
}

/// What describes points in time holds until the next one.
fn held(points: Vec<Option<f64>>) -> Vec<Option<f64>> {
    let last = points.iter().rposition(Option::is_some).unwrap_or(0);
    let mut before = None;
    let hold = |(place, point): (usize, Option<f64>)| {
        before = point.or(before.filter(|_| place < last));
        before
    };
    points.into_iter().enumerate().map(hold).collect()
}

/// A curve, folded.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Line {
    /// Per second where it grows.
    pub(super) average: Option<f64>,
    /// The highest, and when.
    pub(super) peak: Option<(f64, i64)>,
    /// All growth.
    pub(super) total: Option<f64>,
    pub(super) points: Vec<Option<f64>>,
}

pub(super) fn thousandths(value: f64) -> i64 {
    (value * THOUSAND).round() as i64
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn folded(axis: &Axis, measure: Measure, samples: &[(i64, i64, f64)]) -> Fold {
        let mut fold = Fold::default();
        for (start, length, value) in samples {
            fold.add(axis, measure, Sample { start: start * MS, length: Some(length * MS), value: *value });
        }
        fold
    }

    #[test]
    fn growth_becomes_a_rate() {
        let axis = Axis::new(0, 1000 * MS, MOST_BUCKETS);
        let line =
            folded(&axis, Measure::Delta, &[(0, 500, 1000.0), (500, 500, 3000.0)]).finish(&axis, Measure::Delta, false);
        assert_eq!((line.average, line.peak, line.total), (Some(4000.0), Some((6000.0, 1000 * MS)), Some(4000.0)));
        let ends = [line.points[0], line.points[line.points.len() - 1]].map(|point| point.map(f64::round));
        assert_eq!(ends, [Some(2000.0), Some(6000.0)]);
        assert!(line.points.len() <= MOST_POINTS);
    }

    #[test]
    fn means_are_weighted_by_time() {
        let axis = Axis::new(0, 1000 * MS, MOST_BUCKETS);
        let line =
            folded(&axis, Measure::Mean, &[(0, 900, 10.0), (900, 100, 90.0)]).finish(&axis, Measure::Mean, false);
        assert_eq!((line.average, line.peak.map(|peak| peak.0), line.total), (Some(18.0), Some(90.0), None));
    }

    #[test]
    fn what_nobody_sampled_has_no_points() {
        let axis = Axis::new(0, 1000 * MS, MOST_BUCKETS);
        let line =
            folded(&axis, Measure::Gauge, &[(0, 250, 7.0), (750, 250, 9.0)]).finish(&axis, Measure::Gauge, false);
        let middle = line.points.len() / 2;
        assert_eq!((line.points[middle], line.average), (None, Some(8.0)));
    }

    #[test]
    fn processes_of_a_program_add_up() {
        let axis = Axis::new(0, 1000 * MS, MOST_BUCKETS);
        let samples = [(0, 1000, 50.0), (0, 1000, 30.0), (0, 500, 20.0)];
        let line = folded(&axis, Measure::Gauge, &samples).finish(&axis, Measure::Gauge, true);
        assert_eq!((line.average, line.peak.map(|peak| peak.0)), (Some(90.0), Some(100.0)));
    }

    #[test]
    fn points_hold_until_the_next() {
        let axis = Axis::new(0, 1000 * MS, MOST_BUCKETS);
        let mut fold = Fold::default();
        for (start, value) in [(0, 4.0), (500, 8.0)] {
            fold.add(&axis, Measure::Mean, Sample { start: start * MS, length: None, value });
        }
        let line = fold.finish(&axis, Measure::Mean, false);
        assert_eq!((line.average, line.points[30], line.points[59]), (Some(6.0), Some(4.0), Some(8.0)));
    }

    /// A week at one sample a second, by two threads in any order.
    #[test]
    fn a_week_takes_no_more_memory_than_a_minute() {
        let second = 1_000_000_000;
        let axis = Axis::new(0, 600_000 * second, MOST_BUCKETS);
        let mut halves = [Fold::default(), Fold::default()];
        for at in 0..600_000 {
            let sample = Sample { start: at * second, length: Some(second), value: (at % 100) as f64 };
            halves[(at % 2) as usize].add(&axis, Measure::Delta, sample);
        }
        let mut joined = halves[0].clone();
        joined.join(&halves[1]);
        let mut other = halves[1].clone();
        other.join(&halves[0]);
        assert_eq!(joined, other);
        assert!(joined.cells.len() <= MOST_BUCKETS as usize);
        let line = joined.finish(&axis, Measure::Delta, false);
        assert_eq!((line.average, line.total, line.peak), (Some(49.5), Some(29_700_000.0), Some((99.0, 100 * second))));
    }

    /// A program may write any time into its arena.
    #[test]
    fn all_times_that_there_are() {
        for (from, to) in [(i64::MIN, i64::MAX), (i64::MIN, 0), (0, i64::MAX), (i64::MAX, i64::MAX)] {
            let axis = Axis::new(from, to, MOST_BUCKETS);
            assert!(axis.buckets() <= MOST_BUCKETS as usize, "{axis:?}");
            for measure in [Measure::Delta, Measure::Mean] {
                let mut fold = Fold::default();
                for start in [i64::MIN, -1, 0, i64::MAX] {
                    for length in [None, Some(0), Some(1), Some(i64::MAX)] {
                        fold.add(&axis, measure, Sample { start, length, value: f64::MAX });
                    }
                }
                assert!(fold.cells.len() <= MOST_BUCKETS as usize, "{axis:?}");
                fold.finish(&axis, measure, false);
            }
        }
    }

    #[test]
    fn only_what_lies_in_the_window_counts() {
        let axis = Axis::new(400 * MS, 600 * MS, MOST_BUCKETS);
        let line =
            folded(&axis, Measure::Delta, &[(0, 1000, 1000.0), (700, 100, 5.0)]).finish(&axis, Measure::Delta, false);
        assert_eq!((line.total, line.average), (Some(200.0), Some(1000.0)));
    }
}
