//! The parts of a training job: how long each process computed, waited for batches, loaded and saved.
//!
//! Times are lengths of unions, so the ranges of many spans are needed together. They are kept while there are few; most runs with very many spans have
//! few of these. Where there are more than fit, a window of time is gathered after the other: lengths add up, and memory does not grow with the run.

use arrow_array::Array as _;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use weftline_index::{Batch, Column, Filter, Request, Run, Shard};

use super::calls::{NameTable, Role};
use crate::group::scan::span_phases;
use crate::intervals::Intervals;
use crate::pass::Maps;
use crate::wire;

/// One part of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RoleTime {
    /// Spans.
    pub count: u64,
    /// First start and last end.
    pub start: i64,
    pub end: i64,
    /// The length of their union.
    pub ns: u64,
    /// What that has in common with the process's computing, and with its waiting for batches.
    pub computing_ns: u64,
    pub fetching_ns: u64,
}

impl RoleTime {
    const NONE: RoleTime =
        RoleTime { count: 0, start: i64::MAX, end: i64::MIN, ns: 0, computing_ns: 0, fetching_ns: 0 };

    #[inline]
    fn join(&mut self, other: &RoleTime) {
        self.count = self.count.saturating_add(other.count);
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.ns = self.ns.saturating_add(other.ns);
        self.computing_ns = self.computing_ns.saturating_add(other.computing_ns);
        self.fetching_ns = self.fetching_ns.saturating_add(other.fetching_ns);
    }
}

type Times = FxHashMap<(u32, Role), RoleTime>;
type Ranges = FxHashMap<(u32, Role), Intervals>;

/// What one thread has seen, then one shard, then all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Without lengths as long as there are ranges.
    #[serde(with = "wire::sorted")]
    times: Times,
    /// Ranges that are not summed up yet because there are few, or because other shards have ranges of the process too.
    #[serde(with = "wire::sorted")]
    ranges: Ranges,
    /// Spans whose ranges were taken up.
    #[serde(skip)]
    pub(crate) kept: u64,
    /// There were too many, so that all were given up.
    #[serde(skip)]
    gave_up: bool,
}

impl Seen {
    pub(crate) fn add(&mut self, key: (u32, Role), start: i64, end: i64, keep: bool) {
        self.times.entry(key).or_insert(RoleTime::NONE).join(&RoleTime { count: 1, start, end, ..RoleTime::NONE });
        if keep && !self.gave_up {
            self.ranges.entry(key).or_default().add(start, end);
            self.kept += 1;
        } else {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.gave_up = true;
        self.ranges = Ranges::default();
    }

    /// Whether there are no ranges because there were too many.
    pub(crate) fn has_given_up(&self) -> bool {
        self.gave_up
    }

    pub(crate) fn join(&mut self, other: Seen) {
        for (key, time) in other.times {
            self.times.entry(key).or_insert(RoleTime::NONE).join(&time);
        }
        join(&mut self.ranges, other.ranges);
        if self.gave_up || other.gave_up {
            self.give_up();
        }
    }

    pub(crate) fn each_process(&self, each: &mut dyn FnMut(u32)) {
        let all = self.times.keys().chain(self.ranges.keys());
        all.for_each(|(process, _)| each(*process));
    }

    pub(crate) fn is_plausible(&self) -> bool {
        let time = |time: &RoleTime| {
            wire::is_range(time.start, time.end) && time.computing_ns <= time.ns && time.fetching_ns <= time.ns
        };
        // Ranges without a count are of no part that is told.
        self.times.values().all(time)
            && wire::is_sum(self.times.values().map(|time| time.count))
            && wire::is_sum(self.times.values().map(|time| time.ns))
            && self.ranges.values().flat_map(Intervals::ranges).all(|(start, end)| wire::is_range(*start, *end))
    }

    pub(crate) fn renumbered(self, maps: &Maps) -> Seen {
        let mut new = Seen::default();
        for ((process, role), time) in self.times {
            new.times.entry((maps.process(process), role)).or_insert(RoleTime::NONE).join(&time);
        }
        join(
            &mut new.ranges,
            self.ranges.into_iter().map(|((process, role), set)| ((maps.process(process), role), set)),
        );
        new
    }

    /// Sums up ranges that were not kept, a window of time after the other. `most`: spans whose ranges are kept at once; `cut`: processes whose
    /// ranges are kept after all, since other shards have some too.
    pub(crate) fn sum_up(&mut self, spans: &Spans<'_>, most: u64, cut: Option<&[bool]>) -> weftline_index::Result<()> {
        let count = self.times.values().fold(0u64, |sum, time| sum.saturating_add(time.count));
        let is_cut = |process: u32| cut.is_some_and(|cut| cut[process as usize]);
        let (kept, mut times): (Times, Times) =
            std::mem::take(&mut self.times).into_iter().partition(|((process, _), _)| is_cut(*process));
        let computing = computing(&times);
        settle_steps(&mut times, &computing);
        let start = times.values().chain(kept.values()).map(|time| time.start).min().unwrap_or(0);
        let end = times.values().chain(kept.values()).map(|time| time.end).max().unwrap_or(start);
        let windows = count.div_ceil(most.max(1)) as i64;
        let length = end.saturating_sub(start) / windows.max(1) + 1;
        for window in 0..windows {
            let from = start + window * length;
            let mut ranges = spans.ranges_within(from, from.saturating_add(length))?;
            join(&mut self.ranges, ranges.extract_if(|(process, _), _| is_cut(*process)));
            settle_steps(&mut ranges, &computing);
            add_lengths(&mut times, ranges);
        }
        times.extend(kept);
        (self.times, self.gave_up) = (times, false);
        Ok(())
    }
}

fn join(all: &mut Ranges, found: impl IntoIterator<Item = ((u32, Role), Intervals)>) {
    found.into_iter().for_each(|(key, ranges)| all.entry(key).or_default().join(ranges));
}

/// Processes that say what computing is.
fn computing(times: &Times) -> FxHashSet<u32> {
    times.keys().filter(|(_, role)| *role == Role::Compute).map(|(process, _)| *process).collect()
}

/// The parts of all processes.
pub(crate) struct Roles(Vec<((u32, Role), RoleTime)>);

impl Roles {
    /// Works out the lengths, when all shards are together.
    pub(crate) fn of(seen: Seen) -> Roles {
        let Seen { mut times, mut ranges, .. } = seen;
        let computing = computing(&times);
        settle_steps(&mut times, &computing);
        settle_steps(&mut ranges, &computing);
        add_lengths(&mut times, ranges);
        let mut all: Vec<_> = times.into_iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        Roles(all)
    }

    /// A part of a process; nothing when it has no spans of it.
    pub(crate) fn get(&self, process: u32, role: Role) -> Option<&RoleTime> {
        let found = self.0.binary_search_by_key(&(process, role), |(key, _)| *key);
        found.ok().map(|place| &self.0[place].1)
    }
}

/// The part that a span belongs to. Calls on files are told by what they do.
pub(crate) fn role_of(name_table: &NameTable, name: u32, cat: u32, file: Option<u32>) -> Option<Role> {
    let is_call = name_table.call(name, cat).is_some() && file.is_some_and(|file| name_table.has_content(file));
    if is_call { None } else { name_table.role(name, cat) }
}

/// Where a process says what computing is, its steps do not count; where it does not, they are its computing.
fn settle_steps<T>(parts: &mut FxHashMap<(u32, Role), T>, computing: &FxHashSet<u32>) {
    let steps: Vec<u32> = parts.keys().filter(|(_, role)| *role == Role::Step).map(|(process, _)| *process).collect();
    for process in steps {
        if let Some(step) = parts.remove(&(process, Role::Step)).filter(|_| !computing.contains(&process)) {
            parts.insert((process, Role::Compute), step);
        }
    }
}

/// The spans of a shard that a question is about.
pub(crate) struct Spans<'s> {
    pub run: &'s Run,
    pub shard: &'s Shard,
    pub filter: &'s Filter,
    pub name_table: &'s NameTable,
}

impl Spans<'_> {
    /// The ranges of a window, clipped to it.
    fn ranges_within(&self, from: i64, to: i64) -> weftline_index::Result<Ranges> {
        let columns =
            [Column::Phase, Column::Ts, Column::Dur, Column::Name, Column::Cat, Column::Process, Column::File];
        let filter = Filter {
            from_ns: Some(self.filter.from_ns.map_or(from, |known| known.max(from))),
            to_ns: Some(self.filter.to_ns.map_or(to, |known| known.min(to))),
            ..self.filter.clone()
        }
        .with_phases(&span_phases());
        // What began before the time that is asked for or ends behind it counts as far as it lies in it.
        let first = filter.from_ns.unwrap_or(from).max(from);
        let last = filter.to_ns.unwrap_or(to).min(to);
        let request = Request::of(columns).with(filter).within(self.shard.clone());
        let (states, _) = self.run.scan(&request, Ranges::default, |found, batch: &Batch| {
            let (names, cats) = (batch.ids(Column::Name).values(), batch.ids(Column::Cat).values());
            let (process_ids, files) = (batch.ids(Column::Process).values(), batch.ids(Column::File));
            let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
            for row in batch.spans().rows() {
                let file = files.is_valid(row).then(|| files.value(row));
                if let Some(role) = role_of(self.name_table, names[row], cats[row], file) {
                    let end = ts.value(row).saturating_add(dur.value(row));
                    found.entry((process_ids[row], role)).or_default().add(ts.value(row).max(first), end.min(last));
                }
            }
        })?;
        let mut all = Ranges::default();
        states.into_iter().for_each(|found| join(&mut all, found));
        all.values_mut().for_each(Intervals::settle);
        Ok(all)
    }
}

fn add_lengths(times: &mut Times, mut ranges: Ranges) {
    ranges.values_mut().for_each(Intervals::settle);
    let nothing = Intervals::default();
    for (&(process, role), time) in times {
        let Some(own) = ranges.get(&(process, role)) else { continue };
        let common = |other| own.overlap(ranges.get(&(process, other)).unwrap_or(&nothing)) as u64;
        time.ns = time.ns.saturating_add(own.length() as u64);
        time.computing_ns = time.computing_ns.saturating_add(common(Role::Compute));
        time.fetching_ns = time.fetching_ns.saturating_add(common(Role::Fetch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::evidence::Setting;
    use crate::findings::tests::builder::Trace;
    use crate::findings::thresholds::Config;

    #[test]
    fn windows_add_up_to_the_whole() {
        let parts = [("compute", "forward"), ("data_loader", "fetch.iter"), ("reader", "open"), ("checkpoint", "save")];
        let mut trace = Trace::new();
        let mut random = 7u64;
        for place in 0..400i64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (cat, name) = parts[(random >> 40) as usize % parts.len()];
            // Some span several windows, some have no length.
            let dur = if place % 50 == 0 { 900_000 } else { (random >> 50) as i64 % 9_000 };
            trace = trace.span(1 + place % 3, cat, name, place * 5_000 + (random >> 33) as i64 % 20_000, dur, "");
        }
        let directory = trace.write();
        let run = Run::open(&[directory.path().to_owned()], &weftline_index::OpenOptions::default()).expect("opened");
        run.prepare().expect("prepared");
        let setting = Setting::new(&run, &Config::default(), Filter::default());
        let whole = Shard::whole();
        let spans = Spans { run: &run, shard: &whole, filter: &setting.filter, name_table: &setting.name_table };
        let gathered = setting.alone(&run, &Config::default()).expect("gathered");
        let expected = Roles::of(gathered.roles.clone()).0;
        assert_eq!(expected.len(), 12);
        for (most, cut) in [(400, None), (200, None), (58, None), (4, None), (50, Some([false, true, false]))] {
            let mut seen = Seen { times: gathered.roles.times.clone(), ..Seen::default() };
            seen.sum_up(&spans, most, cut.as_ref().map(|cut| &cut[..])).expect("gathered");
            assert_eq!(seen.ranges.len(), if cut.is_some() { 4 } else { 0 });
            assert_eq!(Roles::of(seen).0, expected, "{most} at once");
        }
    }
}
