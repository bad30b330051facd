//! Prepares calls that are known only as totals to be counted beside those that were recorded one by one.
//!
//! Three problems have to be solved. First, a trace may hold the same calls twice, one by one and as totals: a record is left out
//! if the same thread has calls of the same name that began in the record's period. Second, a record has a period (its own length, where it has one,
//! else the one of all), but no times of its calls:
//! it belongs to the bucket of its period, and if buckets are shorter than periods its calls are assumed to be evenly spaced. Third,
//! single values are known only if the totals determine them (one call, two calls with extremes, equal calls); all else is
//! [`Unknown`].

use rustc_hash::{FxHashMap, FxHashSet};
use weftline_index::{Batch, Column, Dictionary, Filter, Request, Run, Shard};

use super::read::{Ids, records};
use super::{DEFAULT_PERIOD, Profile};
use crate::classify::{Classes, bin_of};
use crate::group::scan::{NONE, number, span_phases};
use crate::group::{Cell as _, Stats, Unknown};
use crate::records::text;
use crate::{AnalysisError, Result};

/// Where the calls of records lie in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The origin of buckets.
    pub(crate) origin: i64,
    /// When the job ended, as far as the trace shows.
    pub(crate) end: i64,
    /// How long the periods of records are that do not tell.
    pub(crate) period: i64,
    /// The longest of all periods.
    pub(crate) longest: i64,
}

/// Calls `from..to` of a record that are in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketCalls {
    pub(crate) bucket: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Axis {
    /// The part of a period in which the job ran; the whole of it where the spans do not tell.
    pub(crate) fn range(&self, start: i64, length: Option<i64>) -> (i64, i64) {
        let end = start.saturating_add(length.unwrap_or(self.period));
        let inside = (start.max(self.origin), end.min(self.end));
        if inside.0 < inside.1 { inside } else { (start, end) }
    }

    /// Whether records are spread over several buckets.
    pub(crate) fn spreads(&self, width: i64) -> bool {
        width < self.longest
    }

    /// Which calls of a record are in which bucket. Calls before the origin are in the first.
    pub(crate) fn parts(&self, start: i64, length: Option<i64>, calls: u64, width: i64) -> Vec<BucketCalls> {
        let (width, period) = (width.max(1), length.unwrap_or(self.period));
        let bucket = |time: i64| time.saturating_sub(self.origin).div_euclid(width).max(0);
        if width >= period {
            let middle = start.saturating_add(period / 2);
            return vec![BucketCalls { bucket: bucket(middle) as u32, from: 0, to: calls }];
        }
        let (from, to) = self.range(start, length);
        let (length, all) = (i128::from(to) - i128::from(from), i128::from(calls));
        let mut parts = Vec::new();
        let mut call: i128 = 0;
        while call < all {
            // Call `k` of `n` is taken to be in the middle of the k-th of n equal pieces of the period.
            let time = i128::from(from) + (2 * call + 1) * length / (2 * all);
            let bucket = bucket(i64::try_from(time).unwrap_or(i64::MAX));
            let end = i128::from(self.origin) + (i128::from(bucket) + 1) * i128::from(width);
            let behind = 2 * all * (end - i128::from(from)) - length;
            let next = (behind + 2 * length - 1).div_euclid(2 * length).clamp(call + 1, all);
            parts.push(BucketCalls { bucket: bucket as u32, from: call as u64, to: next as u64 });
            call = next;
        }
        parts
    }

    pub(crate) fn check_buckets(&self, width_ns: i64) -> Result<()> {
        let buckets = (i128::from(self.end) - i128::from(self.origin)) / i128::from(width_ns.max(1)) + 1;
        let fits = buckets < i128::from(NONE);
        if fits { Ok(()) } else { Err(AnalysisError::TooManyBuckets { buckets, width_ns }) }
    }
}

/// A part `from..to` of a sum over `all`, so that the parts of it add up to it.
fn share(sum: i128, from: u64, to: u64, all: u64) -> i128 {
    let upto = |calls: u64| sum * i128::from(calls) / i128::from(all.max(1));
    upto(to) - upto(from)
}

/// What totals imply for single sizes.
struct Sizes {
    /// Calls that moved bytes.
    sized: Option<u64>,
    /// The least and the most that one of those can have moved.
    bounds: Option<(u64, u64)>,
    /// The smallest size.
    min: Option<u64>,
    /// The largest.
    max: Option<u64>,
    /// All of them, as sizes and how often each occurs.
    each: Option<Vec<(u64, u64)>>,
}

impl Profile {
    /// Bytes that its calls moved. Results of calls that failed are negative and no bytes.
    pub(crate) fn bytes(&self) -> u128 {
        u128::try_from(self.size).unwrap_or(0)
    }

    /// Durations and how often each occurs, where the totals leave no choice.
    pub(crate) fn durations(&self) -> Option<Vec<(i64, u64)>> {
        let time = i64::try_from(self.time).ok()?;
        match (self.count, self.time_range) {
            (1, Some(_)) => Some(vec![(time, 1)]),
            (count, Some((min, max))) if min == max => Some(vec![(min, count)]),
            (2, Some((min, max))) => Some(vec![(min, 1), (max, 1)]),
            _ => None,
        }
    }

    fn sizes(&self) -> Sizes {
        let bytes = self.bytes();
        let known = |each: Vec<(u64, u64)>| {
            let each: Vec<(u64, u64)> = each.into_iter().filter(|(_, often)| *often > 0).collect();
            let sizes = || each.iter().map(|(size, _)| *size);
            let (min, max) = (sizes().min(), sizes().max());
            Sizes {
                sized: Some(each.iter().map(|(_, often)| often).sum()),
                bounds: min.zip(max),
                min,
                max,
                each: Some(each),
            }
        };
        let nothing = Sizes { sized: None, bounds: None, min: None, max: None, each: None };
        let Ok(bytes) = u64::try_from(bytes) else { return nothing };
        if bytes == 0 {
            return known(Vec::new());
        }
        if self.count == 1 {
            return known(vec![(bytes, 1)]);
        }
        let Some((min, max)) = self.size_range.filter(|range| range.1 > 0) else { return nothing };
        let max = max as u64;
        // Of calls that failed the sum holds negative results, so it does not tell how many moved bytes.
        let (fewest, most) = match min {
            1.. => (self.count, self.count),
            0 => (bytes.div_ceil(max), self.count - 1),
            _ => return Sizes { max: Some(max), ..nothing },
        };
        if fewest != most {
            return Sizes { max: Some(max), ..nothing };
        }
        let sized = most;
        if u128::from(bytes) == u128::from(sized) * u128::from(max) {
            return known(vec![(max, sized)]);
        }
        if sized == 2 {
            return known(vec![(bytes.saturating_sub(max), 1), (max, 1)]);
        }
        // If all others were as large as can be, the smallest would be what is left.
        let least = (u128::from(bytes)).saturating_sub(u128::from(sized - 1) * u128::from(max)) as u64;
        let smallest = (min > 0).then_some(min as u64);
        Sizes {
            sized: Some(sized),
            bounds: Some((least.max(smallest.unwrap_or(1)), max)),
            min: smallest,
            max: Some(max),
            each: None,
        }
    }

    /// How many transfers are in which size bin, if it is known.
    pub(crate) fn bins(&self) -> Option<Vec<(usize, u64)>> {
        let sizes = self.sizes();
        if let Some(each) = sizes.each {
            return Some(each.into_iter().map(|(size, often)| (bin_of(size), often)).collect());
        }
        let (least, most) = sizes.bounds?;
        (bin_of(least) == bin_of(most)).then_some(vec![(bin_of(least), sizes.sized?)])
    }

    /// Calls `from..to` of it as a group's values; `life` is when they can have been.
    pub(crate) fn stats(&self, from: u64, to: u64, life: (i64, i64)) -> Stats {
        let whole = from == 0 && to == self.count;
        let calls = to - from;
        let mut stats = Stats::empty();
        let mut unknown = Unknown { calls, ..Unknown::default() };
        stats.count = calls;
        stats.dur = share(self.time, from, to, self.count);
        (stats.first, stats.last) = life;
        // Which of the calls are in this part is known only where all are alike.
        let alike = |values: usize| whole || values <= 1;
        match self.durations().filter(|each| alike(each.len())) {
            Some(each) => {
                let square = |dur: i64, often: u64| u128::from(dur.unsigned_abs()).pow(2).saturating_mul(often.into());
                let often = |often: u64| if whole { often } else { calls };
                stats.dur_sq = each.iter().map(|(dur, count)| square(*dur, often(*count))).sum();
            }
            None => unknown.durations = calls,
        }
        match self.time_range.filter(|(min, max)| whole || min == max) {
            Some((min, max)) => (stats.dur_min, stats.dur_max) = (min, max),
            None => unknown.extremes = calls,
        }
        let sizes = self.sizes();
        stats.size = share(self.bytes() as i128, from, to, self.count) as u128;
        let all_sized = sizes.sized == Some(self.count) || sizes.sized == Some(0);
        match sizes.sized.filter(|_| whole || all_sized) {
            Some(sized) => stats.sized = if whole { sized } else { calls * u64::from(sized > 0) },
            None => (stats.sized, unknown.sized) = (calls, calls),
        }
        let certain = unknown.sized == 0;
        match sizes.each.as_ref().filter(|each| certain && alike(each.len())) {
            Some(each) => {
                let squares = each.iter().map(|(size, often)| {
                    u128::from(*size).pow(2).saturating_mul(u128::from(if whole { *often } else { calls }))
                });
                stats.size_sq = squares.sum();
            }
            None => unknown.sizes = calls,
        }
        match self.bins().filter(|bins| certain && alike(bins.len())) {
            Some(bins) => {
                for (bin, often) in bins {
                    stats.bins.get_or_insert_default()[bin] += if whole { often } else { calls };
                }
            }
            None => unknown.bins = calls,
        }
        let same = sizes.min == sizes.max;
        match sizes.min.filter(|_| whole || same) {
            Some(min) => stats.size_min = min,
            None => unknown.size_min = if stats.sized > 0 { calls } else { 0 },
        }
        match sizes.max.filter(|_| whole || same) {
            Some(max) => stats.size_max = max,
            None => unknown.size_max = if stats.sized > 0 { calls } else { 0 },
        }
        if let Some((min, max)) = self.offset_range.filter(|(min, max)| whole || min == max) {
            (stats.offset_min, stats.offset_max) = (min, max);
        }
        stats.unknown = Some(Box::new(unknown));
        stats
    }
}

/// The records of a question.
#[derive(Debug, Clone)]
pub(crate) struct Totals {
    /// What is counted, in the order of ids.
    pub(crate) records: Vec<(Ids, Profile)>,
    /// Calls of records that were left out because the trace holds them one by one.
    pub(crate) recorded_singly: u64,
    pub(crate) axis: Axis,
}

/// The same before anybody has looked which of them the trace holds one by one.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    /// In the order of ids, each of which is there once.
    pub(crate) records: Vec<(Ids, Profile)>,
    pub(crate) axis: Axis,
}

/// By process, thread, category in lower case and name: places of records, by the start of their period.
type Places = FxHashMap<(u32, i64, u32, u32), Vec<(i64, usize)>>;

/// The period of a record.
fn length_of(ids: &Ids, period: i64) -> i64 {
    ids.length.unwrap_or(period)
}

impl Totals {
    /// Reads the records of a run that pass a filter. `period` is asked of the trace where it is not given; the run must be prepared.
    pub(crate) fn of(run: &Run, filter: &Filter, classes: &Classes, period: Option<i64>) -> Result<Totals> {
        let records = Records::of(run, filter, classes, period)?;
        let singly = records.recorded_singly(run, &Shard::whole(), classes)?;
        Ok(records.without(&singly))
    }
}

impl Records {
    /// See [`Totals::of`].
    pub(crate) fn of(run: &Run, filter: &Filter, classes: &Classes, period: Option<i64>) -> Result<Records> {
        let times = run.times();
        let (origin, spans_end) = times.spans.or(times.all).unwrap_or((0, 0));
        let anytime = filter.clone().with_time(None, None);
        let mut records = records(run, &anytime, classes)?;
        if records.is_empty() {
            let axis = Axis { origin, end: spans_end, period: DEFAULT_PERIOD, longest: DEFAULT_PERIOD };
            return Ok(Records { records, axis });
        }
        let period = period.map_or_else(|| recorded_period(run), |period| Ok(Some(period)))?.unwrap_or(DEFAULT_PERIOD);
        let period = period.max(1);
        let last = records.iter().map(|(ids, _)| ids.start).max().unwrap_or(origin);
        // Spans tell when the job ended, unless there are calls after the last of them, or none that lasts.
        let spans_tell = times.spans.is_some() && spans_end > origin && last < spans_end;
        let ends = records.iter().map(|(ids, _)| ids.start.saturating_add(length_of(ids, period)));
        let end = if spans_tell { spans_end } else { ends.max().unwrap_or(last) };
        let longest = records.iter().map(|(ids, _)| length_of(ids, period)).max().unwrap_or(period);
        let axis = Axis { origin, end, period, longest };
        // As with spans: what overlaps the time that was asked for is in.
        records.retain(|(ids, _)| {
            let range = axis.range(ids.start, ids.length);
            filter.from_ns.is_none_or(|from| range.1 >= from) && filter.to_ns.is_none_or(|to| range.0 < to)
        });
        Ok(Records { records, axis })
    }

    /// The shortest time that may be shown unasked: of the time within a period of the trace nothing is known. Records with periods of their own have the
    /// time in which their calls were made.
    pub(crate) fn finest(&self) -> i64 {
        if self.records.iter().all(|(ids, _)| ids.length.is_some()) { 1 } else { self.axis.period }
    }

    /// Those whose calls a shard of the trace holds one by one as well.
    pub(crate) fn recorded_singly(&self, run: &Run, shard: &Shard, classes: &Classes) -> Result<FxHashSet<Ids>> {
        if self.records.is_empty() {
            return Ok(FxHashSet::default());
        }
        let places = recorded_singly(run, shard, &self.records, &run.dictionary(), classes, self.axis.period)?;
        Ok(places.into_iter().map(|place| self.records[place].0.clone()).collect())
    }

    /// Leaves these out.
    pub(crate) fn without(mut self, singly: &FxHashSet<Ids>) -> Totals {
        let mut left_out = 0;
        self.records.retain(|(ids, profile)| {
            let double = singly.contains(ids);
            left_out += if double { profile.count } else { 0 };
            !double
        });
        Totals { records: self.records, recorded_singly: left_out, axis: self.axis }
    }
}

/// The first entry of each process, by entry. The host and devices stand for themselves.
pub(crate) fn process_ids(dictionary: &Dictionary) -> Vec<u32> {
    dictionary.identities().into_iter().zip(0..).map(|(identity, id)| identity.unwrap_or(id)).collect()
}

/// Places of records whose calls the trace holds one by one as well.
fn recorded_singly(
    run: &Run,
    shard: &Shard,
    records: &[(Ids, Profile)],
    dictionary: &Dictionary,
    classes: &Classes,
    period: i64,
) -> Result<FxHashSet<usize>> {
    use arrow_array::Array as _;
    let longest = records.iter().map(|(ids, _)| length_of(ids, period)).max().unwrap_or(period);
    let process_ids = process_ids(dictionary);
    let key = |process: u32, tid: i64, cat: u32, name: u32| {
        (process_ids[process as usize], tid, classes.effective_cat(cat, 0), name)
    };
    let mut places: Places = FxHashMap::default();
    for (place, (ids, _)) in records.iter().enumerate() {
        places.entry(key(ids.process, ids.tid, ids.cat, ids.name)).or_default().push((ids.start, place));
    }
    places.values_mut().for_each(|starts| starts.sort_unstable());
    let names: FxHashSet<String> = records.iter().map(|(ids, _)| dictionary.name(ids.name).to_owned()).collect();
    let mut filter = Filter::default().with_phases(&span_phases());
    filter.names = Some(std::sync::Arc::new(move |name: &str| names.contains(name)));
    let columns = [Column::Phase, Column::Ts, Column::Cat, Column::Name, Column::Process, Column::Tid, Column::File];
    let each = |found: &mut FxHashSet<usize>, batch: &Batch| {
        let (cats, names) = (batch.ids(Column::Cat), batch.ids(Column::Name));
        let (processes, tids, files) = (batch.ids(Column::Process), batch.ints(Column::Tid), batch.ids(Column::File));
        for row in 0..batch.rows() {
            let Some(start) = number(batch.ints(Column::Ts), row) else { continue };
            let key = key(processes.value(row), tids.value(row), cats.value(row), names.value(row));
            let Some(starts) = places.get(&key) else { continue };
            let file = files.is_valid(row).then(|| files.value(row));
            let from = starts.partition_point(|(known, _)| known.saturating_add(longest) <= start);
            for (known, place) in starts[from..].iter().take_while(|(known, _)| *known <= start) {
                if known.saturating_add(length_of(&records[*place].0, period)) <= start {
                    continue;
                }
                // A record with a file is about calls on that file only.
                let same = records[*place].0.file.is_none_or(|known| {
                    file.is_some_and(|file| file == known || dictionary.file(file) == dictionary.file(known))
                });
                if same {
                    found.insert(*place);
                }
            }
        }
    };
    let request = Request::of(columns).with(filter).within(shard.clone());
    let (states, _) = run.scan(&request, FxHashSet::default, each)?;
    Ok(states.into_iter().flatten().collect())
}

/// The period of records, as processes tell it when they end; the longest where they differ.
pub(crate) fn recorded_period(run: &Run) -> Result<Option<i64>> {
    const KEY: &str = "\"trace_interval_ms\":";
    let mut filter = Filter::default().with_phases(&span_phases());
    filter.names = Some(std::sync::Arc::new(|name: &str| name == "end"));
    let each = |longest: &mut Option<i64>, batch: &Batch| {
        for row in 0..batch.rows() {
            let rest = text(batch, Column::Rest, row);
            let Some((_, after)) = rest.split_once(KEY) else { continue };
            let digits: String = after.trim_start().chars().take_while(char::is_ascii_digit).collect();
            let period = digits.parse::<i64>().ok().filter(|ms| *ms > 0).and_then(|ms| ms.checked_mul(1_000_000));
            *longest = (*longest).max(period);
        }
    };
    let request = Request::of([Column::Phase, Column::Name, Column::Rest]).with(filter);
    let (states, _) = run.scan(&request, || None, each)?;
    Ok(states.into_iter().flatten().max())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every call where a plain loop puts it.
        #[test]
        fn calls_are_evenly_apart(
            start in -50i64..300, calls in 1u64..40, width in 1i64..120, period in 1i64..100, end in 1i64..350,
            own in any::<bool>(),
        ) {
            // A record's own length counts, not that of the others.
            let (length, of_others) = if own { (Some(period), 1) } else { (None, period) };
            let axis = Axis { origin: 0, end, period: of_others, longest: period };
            let (from, to) = axis.range(start, length);
            let mut expected: std::collections::BTreeMap<u32, u64> = Default::default();
            for call in 0..calls as i64 {
                let time = if width < period {
                    from + (2 * call + 1) * (to - from) / (2 * calls as i64)
                } else {
                    start + period / 2
                };
                *expected.entry(time.div_euclid(width).max(0) as u32).or_default() += 1;
            }
            let parts = axis.parts(start, length, calls, width);
            let found = parts.iter().map(|part| (part.bucket, part.to - part.from)).collect();
            prop_assert_eq!(expected, found);
            prop_assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].bucket < pair[1].bucket));
            prop_assert_eq!((parts[0].from, parts[parts.len() - 1].to), (0, calls));
        }
    }
}
