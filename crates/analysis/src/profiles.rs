//! Profiles: aggregated records, in which the tracer summed up the calls of a period.
//!
//! A record belongs to its period as a whole. Periods start at round times of the clock, buckets at the trace's origin, so a period
//! belongs to the bucket that holds its middle: it overlaps that bucket most, if buckets are as long as periods.
//! The table here has the records unchanged; `totals` prepares them to be counted beside single calls.

mod read;
pub(crate) mod totals;

use std::collections::BTreeMap;

pub(crate) use read::Ids;
use weftline_index::{Filter, Run};

use crate::Result;
use crate::classify::{Classes, Rules};
use crate::group::host_text;
use crate::table::{Table, clamp};
use crate::units::Unit;

/// The length of periods if unknown, in ns: the tracer's default.
pub const DEFAULT_PERIOD: i64 = 1_000_000_000;

/// What is asked.
#[derive(Debug, Clone)]
pub struct ProfileQuestion {
    /// Width of time buckets.
    pub width_ns: i64,
    /// How long a record's period is; by default as the trace tells, else a second, which is the tracer's default.
    pub period_ns: Option<i64>,
    /// The origin of time; by default the trace's.
    pub origin: Option<i64>,
    /// Which records.
    pub filter: Filter,
    /// How they are classified.
    pub rules: Rules,
}

impl Default for ProfileQuestion {
    fn default() -> Self {
        ProfileQuestion {
            width_ns: DEFAULT_PERIOD,
            period_ns: None,
            origin: None,
            filter: Filter::default(),
            rules: Rules::default(),
        }
    }
}

/// Calls of one kind of one thread in one period.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileKey {
    /// The category, lower case.
    pub cat: String,
    /// The function.
    pub name: String,
    /// The host's name, or its hash.
    pub host: String,
    /// The process.
    pub pid: i64,
    /// The thread.
    pub tid: i64,
    /// The file, where records tell it.
    pub file: Option<String>,
    /// The epoch.
    pub epoch: Option<i64>,
    /// The step.
    pub step: Option<i64>,
    /// Start of the period, ns since the epoch.
    pub start: i64,
}

/// What is known of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Calls.
    pub count: u64,
    /// What kind of I/O.
    pub io_cat: u8,
    /// Sum of durations, ns.
    pub time: i128,
    /// Shortest and longest call, ns.
    pub time_range: Option<(i64, i64)>,
    /// Bytes.
    pub size: i128,
    /// Fewest and most bytes of a call.
    pub size_range: Option<(i64, i64)>,
    /// Lowest and highest offset.
    pub offset_range: Option<(i64, i64)>,
}

/// All profiles of a run.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    /// The rows, in the order of their keys.
    pub rows: BTreeMap<ProfileKey, Profile>,
    origin: i64,
    width_ns: i64,
    period_ns: i64,
}

fn widen(all: &mut Option<(i64, i64)>, more: Option<(i64, i64)>) {
    *all = match (*all, more) {
        (Some(all), Some(more)) => Some((all.0.min(more.0), all.1.max(more.1))),
        (all, more) => all.or(more),
    };
}

impl Profiles {
    /// Reads the records of a run.
    pub fn of(run: &Run, question: &ProfileQuestion) -> Result<Profiles> {
        run.prepare()?;
        let dictionary = run.dictionary();
        let classes = Classes::new(&question.rules, &dictionary);
        let mut rows: BTreeMap<ProfileKey, Profile> = BTreeMap::new();
        for (ids, profile) in read::records(run, &question.filter, &classes)? {
            let process = dictionary.process(ids.process);
            let key = ProfileKey {
                cat: dictionary.cat(ids.cat).to_lowercase(),
                name: dictionary.name(ids.name).to_owned(),
                host: host_text(process).to_owned(),
                pid: process.pid,
                tid: ids.tid,
                file: ids.file.and_then(|file| dictionary.path(file)).map(str::to_owned),
                epoch: ids.epoch,
                step: ids.step,
                start: ids.start,
            };
            rows.entry(key).or_default().merge(&profile);
        }
        let origin = question.origin.or_else(|| run.times().origin()).unwrap_or(0);
        let recorded = || if rows.is_empty() { Ok(None) } else { totals::recorded_period(run) };
        let period = question.period_ns.map_or_else(recorded, |period| Ok(Some(period)))?;
        let period_ns = period.unwrap_or(DEFAULT_PERIOD).max(1);
        Ok(Profiles { rows, origin, width_ns: question.width_ns.max(1), period_ns })
    }

    /// The bucket of a period.
    pub fn bucket(&self, start: i64) -> i64 {
        (start + self.period_ns / 2 - self.origin).div_euclid(self.width_ns)
    }

    /// As a table.
    pub fn table(&self) -> Table {
        let mut table = Table::with_rows(self.rows.len());
        let keys = || self.rows.keys();
        let each = || self.rows.values();
        table.texts("cat", keys().map(|key| Some(key.cat.clone())));
        table.texts("func_name", keys().map(|key| Some(key.name.clone())));
        table.ints("pid", Unit::Id, keys().map(|key| Some(key.pid)));
        table.ints("tid", Unit::Id, keys().map(|key| Some(key.tid)));
        table.ints("io_cat", Unit::Id, each().map(|row| Some(i64::from(row.io_cat))));
        table.texts("file_name", keys().map(|key| key.file.clone()));
        table.texts("host_name", keys().map(|key| Some(key.host.clone())));
        table.texts("proc_name", keys().map(|key| Some(format!("app#{}#{}#{}", key.host, key.pid, key.tid))));
        table.ints("epoch", Unit::Id, keys().map(|key| key.epoch));
        table.ints("step", Unit::Id, keys().map(|key| key.step));
        // As in the metrics: named by DFAnalyzer, never filled.
        table.ints("acc_pat", Unit::Id, each().map(|_| Some(0)));
        table.ints("count", Unit::Count, each().map(|row| Some(clamp(row.count))));
        table.times("time", each().map(|row| Some(row.time)));
        table.times("time_min", each().map(|row| row.time_range.map(|range| range.0.into())));
        table.times("time_max", each().map(|row| row.time_range.map(|range| range.1.into())));
        let some = |number: i64| (number != 0).then_some(number);
        table.ints("size", Unit::Bytes, each().map(|row| some(clamp(row.size))));
        table.ints("size_min", Unit::Bytes, each().map(|row| row.size_range.and_then(|range| some(range.0))));
        table.ints("size_max", Unit::Bytes, each().map(|row| row.size_range.and_then(|range| some(range.1))));
        table.ints("offset_min", Unit::Bytes, each().map(|row| row.offset_range.map(|range| range.0)));
        table.ints("offset_max", Unit::Bytes, each().map(|row| row.offset_range.map(|range| range.1)));
        table.ints("time_range", Unit::Id, keys().map(|key| Some(self.bucket(key.start))));
        table.ints("time_start", Unit::Nanoseconds, keys().map(|key| Some(key.start - self.origin)));
        table.ints("time_end", Unit::Nanoseconds, keys().map(|key| Some(key.start - self.origin + self.period_ns)));
        table
    }
}

impl Profile {
    pub(crate) fn merge(&mut self, other: &Profile) {
        self.count += other.count;
        self.io_cat = self.io_cat.max(other.io_cat);
        self.time += other.time;
        self.size += other.size;
        widen(&mut self.time_range, other.time_range);
        widen(&mut self.size_range, other.size_range);
        widen(&mut self.offset_range, other.offset_range);
    }
}
