//! System metrics: samples of processors and memory per host and time bucket, on the trace's own time axis.
//!
//! Samples from before the first span have negative buckets. A bucket's value is the mean of its samples; those of single cores are
//! averaged per core first, then the largest and the 95th percentile over cores are taken.

use std::collections::BTreeMap;

use weftline_format::quick::fields;
use weftline_index::{Batch, Column, Filter, Request, Run};

use crate::Result;
use crate::group::host_text;
use crate::group::scan::number;
use crate::records::{Record, as_number, record_filter, record_of, text};
use crate::table::{ColumnValues, Table};
use crate::units::Unit;

/// What is asked.
#[derive(Debug, Clone)]
pub struct SystemQuestion {
    /// Width of time buckets.
    pub width_ns: i64,
    /// The origin of time; by default the trace's.
    pub origin: Option<i64>,
    /// Which samples.
    pub filter: Filter,
}

impl Default for SystemQuestion {
    fn default() -> Self {
        SystemQuestion { width_ns: 1_000_000_000, origin: None, filter: Filter::default() }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Columns that are plain means: the sample's name, its argument, the column, its unit. Tracers differ in the unit of memory.
const MEANS: [(&str, &str, &str, Unit); 7] = [
    ("cpu", "iowait_pct", "sys_cpu_iowait_pct", Unit::Percent),
    ("cpu", "user_pct", "sys_cpu_user_pct", Unit::Percent),
    ("cpu", "system_pct", "sys_cpu_system_pct", Unit::Percent),
    ("cpu", "idle_pct", "sys_cpu_idle_pct", Unit::Percent),
    ("memory", "Dirty", "sys_mem_dirty", Unit::Number),
    ("memory", "Cached", "sys_mem_cached", Unit::Number),
    ("memory", "MemAvailable", "sys_mem_available", Unit::Number),
];

#[derive(Debug, Clone, Default)]
struct Bucket {
    hash: String,
    means: [Mean; MEANS.len()],
    cores: BTreeMap<String, Mean>,
}

/// The metrics of a run's hosts.
#[derive(Debug, Clone, Default)]
pub struct SystemMetrics {
    /// By host and time bucket.
    rows: BTreeMap<(String, i64), Bucket>,
}

impl SystemMetrics {
    /// Reads the samples of a run.
    pub fn of(run: &Run, question: &SystemQuestion) -> Result<SystemMetrics> {
        run.prepare()?;
        let dictionary = run.dictionary();
        let origin = question.origin.or_else(|| run.times().origin()).unwrap_or(0);
        let width = question.width_ns.max(1);
        let columns = [Column::Phase, Column::Ts, Column::Cat, Column::Name, Column::Process, Column::Rest];
        let request = Request::of(columns).with(record_filter(&question.filter));
        let mut rows: BTreeMap<(String, i64), Bucket> = BTreeMap::new();
        // In the order of the files, because sums of floats depend on it.
        run.scan_in_order(&request, |batch: &Batch| {
            for row in 0..batch.rows() {
                let rest = text(batch, Column::Rest, row);
                if record_of(batch.phases().value(row), rest) != Some(Record::Sample)
                    || !dictionary.cat(batch.ids(Column::Cat).value(row)).eq_ignore_ascii_case("sys")
                {
                    continue;
                }
                let Some(ts) = number(batch.ints(Column::Ts), row) else { continue };
                let process = dictionary.process(batch.ids(Column::Process).value(row));
                let name = dictionary.name(batch.ids(Column::Name).value(row));
                let bucket = (ts - origin).div_euclid(width);
                let bucket = rows.entry((host_text(process).to_owned(), bucket)).or_default();
                bucket.hash.clone_from(&process.hhash);
                for (key, value) in fields(rest) {
                    let Some(value) = as_number(&value) else { continue };
                    let found = MEANS.iter().position(|(sample, argument, ..)| *sample == name && *argument == key);
                    if let Some(place) = found {
                        bucket.means[place].add(value);
                    } else if name.starts_with("cpu-") && key == "iowait_pct" {
                        bucket.cores.entry(name.to_owned()).or_default().add(value);
                    }
                }
            }
        })?;
        Ok(SystemMetrics { rows })
    }

    /// As a table.
    pub fn table(&self) -> Table {
        let mut table = Table::with_rows(self.rows.len());
        let buckets = || self.rows.values();
        let hash = |bucket: &Bucket| (!bucket.hash.is_empty()).then(|| bucket.hash.clone());
        table.texts("host_hash", buckets().map(hash));
        table.texts("host_name", self.rows.keys().map(|(host, _)| Some(host.clone())));
        table.ints("time_range", Unit::Id, self.rows.keys().map(|(_, bucket)| Some(*bucket)));
        for (place, (_, _, column, unit)) in MEANS.iter().enumerate() {
            table.floats(*column, *unit, buckets().map(|bucket| bucket.means[place].value()));
        }
        let cores = |bucket: &Bucket| -> Vec<f64> {
            let mut means: Vec<f64> = bucket.cores.values().filter_map(Mean::value).collect();
            means.sort_by(f64::total_cmp);
            means
        };
        table.floats("sys_core_iowait_pct_max", Unit::Percent, buckets().map(|bucket| cores(bucket).last().copied()));
        table.floats("sys_core_iowait_pct_p95", Unit::Percent, buckets().map(|bucket| quantile(&cores(bucket), 0.95)));
        table
    }
}

/// Adds the metrics to a table of time buckets: the mean over hosts, the most for what is a most. Buckets without samples have none.
pub fn join(table: &mut Table, metrics: &SystemMetrics) {
    let integers = |table: &Table| match table.column("time_range").map(|column| &column.values) {
        Some(ColumnValues::Int(values)) => Some(values.clone()),
        _ => None,
    };
    let all = metrics.table();
    let (Some(buckets), Some(sampled)) = (integers(table), integers(&all)) else { return };
    let mut rows: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (row, bucket) in sampled.iter().enumerate() {
        if let Some(bucket) = bucket {
            rows.entry(*bucket).or_default().push(row);
        }
    }
    for column in all.columns.iter().filter(|column| column.name.starts_with("sys_")) {
        let joined = |bucket: &Option<i64>| {
            let numbers = rows.get(bucket.as_ref()?)?.iter().filter_map(|row| column.values.get(*row).number());
            if column.name.ends_with("_max") {
                return numbers.max_by(f64::total_cmp);
            }
            let mut mean = Mean::default();
            numbers.for_each(|number| mean.add(number));
            mean.value()
        };
        let values: Vec<Option<f64>> = buckets.iter().map(joined).collect();
        table.floats(column.name.clone(), column.unit, values.into_iter());
    }
}

/// A quantile of sorted values, between two of them where it falls there.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_to_their_buckets() {
        let bucket = |idle: f64, cores: &[f64]| {
            let mut bucket = Bucket::default();
            bucket.means[3].add(idle);
            for (core, value) in cores.iter().enumerate() {
                bucket.cores.entry(format!("cpu-{core}")).or_default().add(*value);
            }
            bucket
        };
        let rows = [
            (("a".to_owned(), 1), bucket(10.0, &[1.0, 2.0])),
            (("b".to_owned(), 1), bucket(30.0, &[5.0])),
            (("a".to_owned(), -1), bucket(90.0, &[])),
        ];
        let metrics = SystemMetrics { rows: rows.into_iter().collect() };
        let mut table = Table::with_rows(2);
        table.ints("time_range", Unit::Id, [Some(0), Some(1)].into_iter());
        join(&mut table, &metrics);
        let value = |row, name| table.get(row, name).number();
        assert_eq!((value(0, "sys_cpu_idle_pct"), value(1, "sys_cpu_idle_pct")), (None, Some(20.0)));
        assert_eq!(value(1, "sys_core_iowait_pct_max"), Some(5.0));
        assert_eq!(value(1, "sys_mem_dirty"), None);
    }
}
