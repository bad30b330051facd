//! The parts of a training job: how long each process computed, waited for batches, loaded and saved.
//!
//! Times are lengths of unions, so the ranges of many spans are needed together. Where there are more than fit, a window of time is gathered
//! after the other: lengths add up, and memory does not grow with the run.

use arrow_array::Array as _;
use rustc_hash::{FxHashMap, FxHashSet};
use weftline_index::{Batch, Column, Filter, Request, Run};

use super::calls::{NameTable, Role};
use crate::group::scan::span_phases;
use crate::intervals::Intervals;
use crate::summary::SPANS_AT_ONCE;

/// One part of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    fn join(&mut self, other: &RoleTime) {
        self.count += other.count;
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }
}

type Times = FxHashMap<(u32, Role), RoleTime>;
type Ranges = FxHashMap<(u32, Role), Intervals>;

/// What one thread has seen, and then all: everything but lengths, and the ranges if they are few.
#[derive(Default)]
pub(crate) struct Seen {
    times: Times,
    ranges: Ranges,
}

impl Seen {
    pub(crate) fn add(&mut self, key: (u32, Role), start: i64, end: i64, keep: bool) {
        self.times.entry(key).or_insert(RoleTime::NONE).join(&RoleTime { count: 1, start, end, ..RoleTime::NONE });
        if keep {
            self.ranges.entry(key).or_default().add(start, end);
        }
    }

    pub(crate) fn join(&mut self, other: Seen) {
        for (key, time) in other.times {
            self.times.entry(key).or_insert(RoleTime::NONE).join(&time);
        }
        join(&mut self.ranges, other.ranges);
    }
}

fn join(all: &mut Ranges, found: Ranges) {
    found.into_iter().for_each(|(key, ranges)| all.entry(key).or_default().join(ranges));
}

/// The parts of all processes.
pub(crate) struct Roles(Vec<((u32, Role), RoleTime)>);

impl Roles {
    /// Whether the ranges of all spans may be kept while everything else is gathered. Without an index every window would cost a pass
    /// over the trace.
    pub(crate) fn fit(run: &Run) -> bool {
        let times = run.times();
        run.index().is_empty() || span_phases().iter().map(|code| times.count(*code)).sum::<u64>() <= SPANS_AT_ONCE
    }

    /// Works out the lengths. `fit`: what [`Roles::fit`] said, so that the ranges were kept.
    pub(crate) fn of(
        seen: Seen,
        fit: bool,
        run: &Run,
        name_table: &NameTable,
        filter: &Filter,
    ) -> weftline_index::Result<Roles> {
        let Seen { mut times, mut ranges } = seen;
        let computing: FxHashSet<u32> =
            times.keys().filter(|(_, role)| *role == Role::Compute).map(|(process, _)| *process).collect();
        settle_steps(&mut times, &computing);
        if fit {
            settle_steps(&mut ranges, &computing);
            add_lengths(&mut times, ranges);
        } else {
            let spans: u64 = times.values().map(|time| time.count).sum();
            add_windows(&mut times, &computing, spans.div_ceil(SPANS_AT_ONCE), run, name_table, filter)?;
        }
        let mut all: Vec<_> = times.into_iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        Ok(Roles(all))
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

/// Adds the lengths of as many windows.
fn add_windows(
    times: &mut Times,
    computing: &FxHashSet<u32>,
    windows: u64,
    run: &Run,
    name_table: &NameTable,
    filter: &Filter,
) -> weftline_index::Result<()> {
    let start = times.values().map(|time| time.start).min().unwrap_or(0);
    let end = times.values().map(|time| time.end).max().unwrap_or(start);
    let length = end.saturating_sub(start) / windows.max(1) as i64 + 1;
    for window in 0..windows as i64 {
        let from = start + window * length;
        let mut ranges = ranges_within(run, name_table, filter, from, from.saturating_add(length))?;
        settle_steps(&mut ranges, computing);
        add_lengths(times, ranges);
    }
    Ok(())
}

/// The ranges of a window, clipped to it.
fn ranges_within(
    run: &Run,
    name_table: &NameTable,
    filter: &Filter,
    from: i64,
    to: i64,
) -> weftline_index::Result<Ranges> {
    let columns = [Column::Phase, Column::Ts, Column::Dur, Column::Name, Column::Cat, Column::Process, Column::File];
    let filter = Filter {
        from_ns: Some(filter.from_ns.map_or(from, |known| known.max(from))),
        to_ns: Some(filter.to_ns.map_or(to, |known| known.min(to))),
        ..filter.clone()
    }
    .with_phases(&span_phases());
    let (states, _) = run.scan(&Request::of(columns).with(filter), Ranges::default, |found, batch: &Batch| {
        let (names, cats) = (batch.ids(Column::Name).values(), batch.ids(Column::Cat).values());
        let (process_ids, files) = (batch.ids(Column::Process).values(), batch.ids(Column::File));
        let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
        for row in batch.spans().rows() {
            let file = files.is_valid(row).then(|| files.value(row));
            if let Some(role) = role_of(name_table, names[row], cats[row], file) {
                let end = ts.value(row).saturating_add(dur.value(row));
                found.entry((process_ids[row], role)).or_default().add(ts.value(row).max(from), end.min(to));
            }
        }
    })?;
    let mut all = Ranges::default();
    states.into_iter().for_each(|found| join(&mut all, found));
    Ok(all)
}

fn add_lengths(times: &mut Times, mut ranges: Ranges) {
    ranges.values_mut().for_each(Intervals::settle);
    let nothing = Intervals::default();
    for (&(process, role), time) in times {
        let Some(own) = ranges.get(&(process, role)) else { continue };
        let common = |other| own.overlap(ranges.get(&(process, other)).unwrap_or(&nothing)) as u64;
        time.ns += own.length() as u64;
        time.computing_ns += common(Role::Compute);
        time.fetching_ns += common(Role::Fetch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::evidence::Gathering;
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
        let gathering = Gathering::new(&run, &Config::default(), Filter::default());
        let (evidence, _) = gathering.alone(&run).expect("gathered");
        assert_eq!(evidence.roles.0.len(), 12);
        for windows in [1, 2, 7, 100] {
            let bare = |(key, time): &((u32, Role), RoleTime)| {
                (*key, RoleTime { ns: 0, computing_ns: 0, fetching_ns: 0, ..*time })
            };
            let mut times: Times = evidence.roles.0.iter().map(bare).collect();
            let computing = times.keys().map(|(process, _)| *process).collect();
            add_windows(&mut times, &computing, windows, &run, &evidence.name_table, &Filter::default())
                .expect("gathered");
            assert_eq!(times, evidence.roles.0.iter().copied().collect(), "{windows} windows");
        }
    }
}
