//! Aggregated records as a run holds them: by ids, with times in nanoseconds.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use weftline_format::quick::fields;
use weftline_format::{Phase, Value};
use weftline_index::column::phase_code;
use weftline_index::{Batch, Column, Filter, Request, Run};

use super::Profile;
use crate::Result;
use crate::classify::{Classes, SizeKind};
use crate::group::scan::number;
use crate::records::{CALL_COUNTS, Record, as_number, record_of, text, time_unit};

/// What a record is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Ids {
    /// Start of its period, ns since the epoch.
    pub(crate) start: i64,
    /// How long its period is, ns, where it tells: other records have the one of the trace.
    pub(crate) length: Option<i64>,
    pub(crate) cat: u32,
    pub(crate) name: u32,
    pub(crate) process: u32,
    pub(crate) tid: i64,
    pub(crate) file: Option<u32>,
    pub(crate) epoch: Option<i64>,
    pub(crate) step: Option<i64>,
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

/// The records that pass a filter, in the order of their ids; those that are about the same are one. The run must be prepared.
pub(crate) fn records(run: &Run, filter: &Filter, classes: &Classes) -> Result<Vec<(Ids, Profile)>> {
    let phases = [Phase::Aggregated, Phase::Counter].map(phase_code);
    let times = run.times();
    if phases.iter().all(|phase| times.count(*phase) == 0) {
        return Ok(Vec::new());
    }
    let columns = [
        Column::Phase,
        Column::Ts,
        Column::Dur,
        Column::Cat,
        Column::Name,
        Column::Process,
        Column::Tid,
        Column::File,
        Column::Rest,
        Column::RET,
        Column::OFFSET,
        Column::EPOCH,
        Column::STEP,
    ];
    let request = Request::of(columns).with(filter.clone().with_phases(&phases));
    let (states, _) = run.scan(&request, FxHashMap::default, |state, batch| fold(state, batch, classes))?;
    let mut all: FxHashMap<Ids, Profile> = FxHashMap::default();
    for (ids, profile) in states.into_iter().flatten() {
        all.entry(ids).or_default().merge(&profile);
    }
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let units = units(run)?;
    let mut records: Vec<(Ids, Profile)> = all.into_iter().collect();
    for (ids, profile) in &mut records {
        // Times of a record are in the tracer's unit, which is a microsecond where it does not tell.
        let unit = units.get(&ids.process).copied().unwrap_or(1_000);
        profile.time *= i128::from(unit);
        profile.time_range = profile.time_range.map(|(min, max)| (min.saturating_mul(unit), max.saturating_mul(unit)));
    }
    records.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(records)
}

/// The units of time that processes tell, ns.
fn units(run: &Run) -> Result<FxHashMap<u32, i64>> {
    let request = Request::of([Column::Phase, Column::Process, Column::Rest])
        .with(Filter::default().with_phases(&[phase_code(Phase::Metadata)]));
    let (states, _) = run.scan(&request, FxHashMap::default, |state: &mut FxHashMap<u32, i64>, batch| {
        let process_ids = batch.ids(Column::Process);
        let rows = (0..batch.rows()).filter_map(|row| Some((row, time_unit(text(batch, Column::Rest, row))?)));
        state.extend(rows.map(|(row, unit)| (process_ids.value(row), unit)));
    })?;
    Ok(states.into_iter().flatten().collect())
}

fn fold(state: &mut FxHashMap<Ids, Profile>, batch: &Batch, classes: &Classes) {
    use arrow_array::Array as _;
    let integer = |column: Column, row: usize| number(batch.ints(column), row);
    let (cats, names) = (batch.ids(Column::Cat), batch.ids(Column::Name));
    let (process_ids, files) = (batch.ids(Column::Process), batch.ids(Column::File));
    for row in 0..batch.rows() {
        let rest = text(batch, Column::Rest, row);
        if record_of(batch.phases().value(row), rest) != Some(Record::Profile) {
            continue;
        }
        let [mut dur, mut ret, mut size, mut offset] = [Spread::default(); 4];
        (ret.one, offset.one) = (integer(Column::RET, row), integer(Column::OFFSET, row));
        let (mut count, mut epoch, mut step) = (None, integer(Column::EPOCH, row), integer(Column::STEP, row));
        for (key, value) in fields(rest) {
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
            start: number(batch.ints(Column::Ts), row).unwrap_or(0),
            length: number(batch.ints(Column::Dur), row).filter(|length| *length > 0),
            cat,
            name,
            process: process_ids.value(row),
            tid: batch.ints(Column::Tid).value(row),
            file: files.is_valid(row).then(|| files.value(row)),
            epoch,
            step,
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
        state.entry(ids).or_default().merge(&profile);
    }
}
