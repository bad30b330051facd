//! Profiles: records in which the tracer itself summed up the calls of a period.
//!
//! A record belongs to its period as a whole. Periods start at round times of the clock, buckets at the trace's origin, so a period
//! belongs to the bucket that holds its middle: that is the one it shares most time with, as long as buckets are as long as periods.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use weftline_format::Value;
use weftline_format::quick::members;
use weftline_index::{Batch, Column, Filter, Request, Run};

use crate::Result;
use crate::classify::{Classes, Rules, SizeKind};
use crate::group::host_text;
use crate::group::scan::number;
use crate::records::{CALL_COUNTS, Record, as_number, record_filter, record_of, text, time_unit};
use crate::statistics::seconds;
use crate::table::{Table, clamp};

/// What is asked.
#[derive(Debug, Clone)]
pub struct ProfileQuestion {
    /// Width of time buckets.
    pub width_ns: i64,
    /// How long a record's period is. The tracer's default, and ours, is a second.
    pub period_ns: i64,
    /// The origin of time; by default the trace's.
    pub origin: Option<i64>,
    /// Which records.
    pub filter: Filter,
    /// How they are classified.
    pub rules: Rules,
}

impl Default for ProfileQuestion {
    fn default() -> Self {
        let second = 1_000_000_000;
        ProfileQuestion {
            width_ns: second,
            period_ns: second,
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

/// A number that a record gives as one value or as sum and extremes.
#[derive(Default, Clone, Copy)]
struct Spread {
    one: Option<i64>,
    sum: Option<i64>,
    min: Option<i64>,
    max: Option<i64>,
}

impl Spread {
    fn set(&mut self, part: &str, value: &Value) {
        let number = as_number(value).map(|number| number as i64);
        match part {
            "" => self.one = number,
            "_sum" => self.sum = number,
            "_min" => self.min = number,
            "_max" => self.max = number,
            _ => {}
        }
    }

    fn sum(&self) -> Option<i64> {
        self.sum.or(self.one)
    }

    fn range(&self) -> Option<(i64, i64)> {
        Some((self.min.or(self.one)?, self.max.or(self.one)?))
    }
}

fn widen(all: &mut Option<(i64, i64)>, more: Option<(i64, i64)>) {
    *all = match (*all, more) {
        (Some(all), Some(more)) => Some((all.0.min(more.0), all.1.max(more.1))),
        (all, more) => all.or(more),
    };
}

/// A record by ids, its times in the tracer's unit.
#[derive(PartialEq, Eq, Hash)]
struct Ids {
    cat: u32,
    name: u32,
    process: u32,
    tid: i64,
    file: Option<u32>,
    epoch: Option<i64>,
    step: Option<i64>,
    start: i64,
}

struct State {
    records: FxHashMap<Ids, Profile>,
    units: FxHashMap<u32, i64>,
}

impl Profiles {
    /// Reads the records of a run.
    pub fn of(run: &Run, question: &ProfileQuestion) -> Result<Profiles> {
        run.prepare()?;
        let dictionary = run.dictionary();
        let classes = Classes::new(&question.rules, &dictionary);
        let integers = ["ret", "offset", "epoch", "step"].into_iter().filter_map(Column::integer);
        let mut columns = vec![
            Column::Phase,
            Column::Ts,
            Column::Cat,
            Column::Name,
            Column::Process,
            Column::Tid,
            Column::File,
            Column::Rest,
        ];
        columns.extend(integers);
        let request = Request::of(columns).with(record_filter(&question.filter));
        let make = || State { records: FxHashMap::default(), units: FxHashMap::default() };
        let (states, _) = run.scan(&request, make, |state, batch| fold(state, batch, &classes))?;
        let mut units: FxHashMap<u32, i64> = FxHashMap::default();
        states.iter().for_each(|state| units.extend(&state.units));
        let mut rows: BTreeMap<ProfileKey, Profile> = BTreeMap::new();
        for (ids, mut profile) in states.into_iter().flat_map(|state| state.records) {
            let unit = units.get(&ids.process).copied().unwrap_or(1_000);
            profile.time *= i128::from(unit);
            profile.time_range =
                profile.time_range.map(|(min, max)| (min.saturating_mul(unit), max.saturating_mul(unit)));
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
        Ok(Profiles { rows, origin, width_ns: question.width_ns.max(1), period_ns: question.period_ns.max(1) })
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
        table.ints("pid", keys().map(|key| Some(key.pid)));
        table.ints("tid", keys().map(|key| Some(key.tid)));
        table.ints("io_cat", each().map(|row| Some(i64::from(row.io_cat))));
        table.texts("file_name", keys().map(|key| key.file.clone()));
        table.texts("host_name", keys().map(|key| Some(key.host.clone())));
        table.texts("proc_name", keys().map(|key| Some(format!("app#{}#{}#{}", key.host, key.pid, key.tid))));
        table.ints("epoch", keys().map(|key| key.epoch));
        table.ints("step", keys().map(|key| key.step));
        table.ints("acc_pat", each().map(|_| Some(0)));
        table.ints("count", each().map(|row| Some(clamp(row.count))));
        table.floats("time", each().map(|row| Some(seconds(row.time))));
        table.floats("time_min", each().map(|row| row.time_range.map(|range| seconds(range.0.into()))));
        table.floats("time_max", each().map(|row| row.time_range.map(|range| seconds(range.1.into()))));
        let some = |number: i64| (number != 0).then_some(number);
        table.ints("size", each().map(|row| some(clamp(row.size))));
        table.ints("size_min", each().map(|row| row.size_range.and_then(|range| some(range.0))));
        table.ints("size_max", each().map(|row| row.size_range.and_then(|range| some(range.1))));
        table.ints("offset_min", each().map(|row| row.offset_range.map(|range| range.0)));
        table.ints("offset_max", each().map(|row| row.offset_range.map(|range| range.1)));
        table.ints("time_range", keys().map(|key| Some(self.bucket(key.start))));
        table.ints("time_start", keys().map(|key| Some(key.start - self.origin)));
        table.ints("time_end", keys().map(|key| Some(key.start - self.origin + self.period_ns)));
        table
    }
}

impl Profile {
    fn merge(&mut self, other: &Profile) {
        self.count += other.count;
        self.io_cat = self.io_cat.max(other.io_cat);
        self.time += other.time;
        self.size += other.size;
        widen(&mut self.time_range, other.time_range);
        widen(&mut self.size_range, other.size_range);
        widen(&mut self.offset_range, other.offset_range);
    }
}

fn fold(state: &mut State, batch: &Batch, classes: &Classes) {
    use arrow_array::Array as _;
    let integer = |name: &str, row: usize| Column::integer(name).and_then(|column| number(batch.ints(column), row));
    let (cats, names) = (batch.ids(Column::Cat), batch.ids(Column::Name));
    let (people, files) = (batch.ids(Column::Process), batch.ids(Column::File));
    for row in 0..batch.rows() {
        let rest = text(batch, Column::Rest, row);
        let phase = batch.phases().value(row);
        let process = people.value(row);
        if let (None, Some(unit)) = (record_of(phase, rest), time_unit(rest)) {
            state.units.insert(process, unit);
        }
        if record_of(phase, rest) != Some(Record::Profile) {
            continue;
        }
        let [mut dur, mut ret, mut size, mut offset] = [Spread::default(); 4];
        (ret.one, offset.one) = (integer("ret", row), integer("offset", row));
        let (mut count, mut epoch, mut step) = (None, integer("epoch", row), integer("step", row));
        for (key, value) in members(rest) {
            let whole = || as_number(&value).map(|number| number as i64);
            match &*key {
                "epoch" => epoch = whole(),
                "step" => step = whole(),
                key if CALL_COUNTS.contains(&key) => count = whole().filter(|count| *count > 0).or(count),
                key => {
                    for (name, spread) in
                        [("dur", &mut dur), ("ret", &mut ret), ("size", &mut size), ("offset", &mut offset)]
                    {
                        if let Some(part) = key.strip_prefix(name) {
                            spread.set(part, &value);
                        }
                    }
                }
            }
        }
        let (cat, name) = (cats.value(row), names.value(row));
        let returned = if classes.size_kind(cat, name) == SizeKind::Returned { ret } else { Spread::default() };
        let size = if size.sum.is_some() { size } else { returned };
        let ids = Ids {
            cat,
            name,
            process,
            tid: batch.ints(Column::Tid).value(row),
            file: files.is_valid(row).then(|| files.value(row)),
            epoch,
            step,
            start: number(batch.ints(Column::Ts), row).unwrap_or(0),
        };
        let profile = Profile {
            count: count.unwrap_or(1) as u64,
            io_cat: classes.io_cat(cat, name) as u8,
            time: dur.sum().unwrap_or(0).into(),
            time_range: dur.range(),
            size: size.sum().unwrap_or(0).into(),
            size_range: size.range(),
            offset_range: offset.range(),
        };
        state.records.entry(ids).or_default().merge(&profile);
    }
}
