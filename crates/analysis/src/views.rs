//! Views: one row per time bucket, process, file, host …, for the events of one layer.
//!
//! `*_call_*` are statistics over single events, `*_proc_*` over what the processes (their threads) that took part in the row sum up to.
//! Rates are ratios of sums. DFAnalyzer's own are not (its `_proc_` statistics change with the other views that were asked for, its rates
//! are sums of ratios); these are the ones that its documentation describes.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::classify::{SIZE_BINS, bin_label};
use crate::group::{Cell as _, Stats};
use crate::hlm::{Dimension, Hlm, HlmRow, RowKey, ViewType, add_keys};
use crate::layers::Layer;
use crate::statistics::{Sample, mean, population_deviation, ratio, seconds};
use crate::table::{Table, clamp};
use crate::units::Unit;

/// The values of one metric in a row of a view.
#[derive(Debug, Clone)]
pub struct Metric {
    /// Over its events.
    pub stats: Stats,
    /// Time per process, ns.
    pub time: Sample,
    /// Bytes per process.
    pub size: Sample,
    /// Events per process.
    pub count: Sample,
    /// Processes in it.
    pub processes: u64,
    /// Files in it.
    pub files: u64,
}

/// A view of a layer.
#[derive(Debug, Clone)]
pub struct LayerView {
    /// The layer.
    pub layer: String,
    /// What rows are.
    pub view: ViewType,
    /// The rows, in order.
    pub rows: Vec<RowKey>,
    /// Per metric: the prefix of its columns (empty for the layer as a whole), and its values by row.
    pub metrics: Vec<(&'static str, Vec<Option<Metric>>)>,
}

/// Makes views of high-level metrics.
pub struct Views<'h> {
    hlm: &'h Hlm,
    groups: Vec<HlmRow<'h>>,
    processes: Dimension,
    files: Dimension,
}

impl<'h> Views<'h> {
    /// Prepares what all views need.
    pub fn new(hlm: &'h Hlm) -> Views<'h> {
        Views {
            hlm,
            groups: hlm.rows().collect(),
            processes: hlm.dimension(ViewType::ProcName),
            files: hlm.dimension(ViewType::FileName),
        }
    }

    /// Per group: bit 0, it is in the layer; bit `i + 1`, it is in the layer's metric `i`.
    fn bits(&self, layer: &Layer) -> Vec<u32> {
        let mut known: FxHashMap<&[u32], u32> = FxHashMap::default();
        let bits_of = |row: &HlmRow<'_>| {
            if !layer.test.holds(row.cat, row.name, row.io_cat) {
                return 0;
            }
            let holds = |test: &crate::layers::Test| test.holds(row.cat, row.name, row.io_cat);
            let derived = layer.derived.iter().enumerate();
            derived.fold(1, |bits, (place, derived)| bits | u32::from(holds(&derived.test)) << (place + 1))
        };
        // Category, name and I/O category are the first three words.
        self.groups.iter().map(|row| *known.entry(&row.values[..3]).or_insert_with(|| bits_of(row))).collect()
    }

    /// Whether a layer has calls that are known only as totals.
    pub(crate) fn has_totals(&self, layer: &Layer) -> bool {
        self.groups.iter().zip(self.bits(layer)).any(|(row, bits)| bits != 0 && row.stats.totals() > 0)
    }

    /// A view.
    pub fn of(&self, layer: &Layer, view: ViewType) -> LayerView {
        let bits = self.bits(layer);
        let dimension = self.hlm.dimension(view);
        // Only rows that the layer has.
        let mut place = vec![u32::MAX; dimension.rows.len()];
        for (row, _) in dimension.of.iter().zip(&bits).filter(|(row, bits)| **row != u32::MAX && **bits != 0) {
            place[*row as usize] = 0;
        }
        let mut rows = Vec::new();
        for (at, row) in place.iter_mut().zip(&dimension.rows).filter(|(at, _)| **at == 0) {
            *at = rows.len() as u32;
            rows.push(row.clone());
        }
        let names: Vec<&'static str> =
            std::iter::once("").chain(layer.derived.iter().map(|derived| derived.name)).collect();
        let metrics = names
            .into_par_iter()
            .enumerate()
            .map(|(bit, name)| {
                let chosen =
                    (0..self.groups.len()).filter(|group| bits[*group] & (1 << bit) != 0).filter_map(|group| {
                        let row = *dimension.of.get(group)?;
                        (row != u32::MAX).then(|| (group, place[row as usize]))
                    });
                (name, self.metric(chosen, rows.len()))
            })
            .collect();
        LayerView { layer: layer.name.to_string(), view, rows, metrics }
    }

    fn metric(&self, chosen: impl Iterator<Item = (usize, u32)>, rows: usize) -> Vec<Option<Metric>> {
        let mut metrics: Vec<Option<Metric>> = vec![None; rows];
        let mut process_ids: FxHashMap<(u32, u32), (i128, u128, u64)> = FxHashMap::default();
        let mut files: FxHashSet<(u32, u32)> = FxHashSet::default();
        for (group, row) in chosen {
            let stats = self.groups[group].stats;
            let metric = metrics[row as usize].get_or_insert_with(|| Metric {
                stats: Stats::empty(),
                time: Sample::default(),
                size: Sample::default(),
                count: Sample::default(),
                processes: 0,
                files: 0,
            });
            metric.stats.merge(stats);
            let person = process_ids.entry((row, self.processes.of[group])).or_default();
            person.0 += stats.dur;
            person.1 += stats.size;
            person.2 += stats.count;
            let file = self.files.of[group];
            if file != u32::MAX && files.insert((row, file)) {
                metric.files += 1;
            }
        }
        for ((row, _), (time, size, count)) in process_ids {
            if let Some(metric) = &mut metrics[row as usize] {
                metric.processes += 1;
                metric.time.add(time);
                metric.size.add(size as i128);
                metric.count.add(i128::from(count));
            }
        }
        metrics
    }
}

impl LayerView {
    /// As a table. `prefix` goes before all columns but the key.
    pub fn table(&self, prefix: &str) -> Table {
        let mut table = Table::with_rows(self.rows.len());
        add_keys(&mut table, self.view.name(), self.rows.iter().map(Some));
        for (name, metrics) in &self.metrics {
            let prefix = if name.is_empty() { prefix.to_owned() } else { format!("{prefix}{name}_") };
            add_metric(&mut table, &prefix, metrics);
        }
        table
    }
}

/// Adds the columns of a metric.
pub(crate) fn add_metric(table: &mut Table, prefix: &str, metrics: &[Option<Metric>]) {
    let each = || metrics.iter().map(Option::as_ref);
    let mut float = |name: &str, unit: Unit, of: &dyn Fn(&Metric) -> Option<f64>| {
        table.floats(format!("{prefix}{name}"), unit, each().map(|metric| metric.and_then(of)));
    };
    float("time_sum", Unit::Seconds, &|metric| Some(seconds(metric.stats.dur)));
    float("time_call_min", Unit::Seconds, &|metric| metric.stats.dur_range().map(|range| seconds(range.0.into())));
    float("time_call_max", Unit::Seconds, &|metric| metric.stats.dur_range().map(|range| seconds(range.1.into())));
    float("time_call_mean", Unit::Seconds, &|metric| mean(seconds(metric.stats.dur), metric.stats.count));
    float("time_call_std", Unit::Seconds, &|metric| {
        population_deviation(metric.stats.count, metric.stats.dur, metric.stats.dur_sq()?).map(|ns| ns / 1e9)
    });
    float("size_call_mean", Unit::Bytes, &|metric| mean(metric.stats.size as f64, metric.stats.sized()?));
    float("size_call_std", Unit::Bytes, &|metric| {
        population_deviation(metric.stats.sized()?, metric.stats.size as i128, metric.stats.size_sq()?)
    });
    float("time_proc_min", Unit::Seconds, &|metric| Some(seconds(metric.time.min)));
    float("time_proc_max", Unit::Seconds, &|metric| Some(seconds(metric.time.max)));
    float("time_proc_mean", Unit::Seconds, &|metric| metric.time.mean().map(|ns| ns / 1e9));
    float("time_proc_std", Unit::Seconds, &|metric| metric.time.deviation().map(|ns| ns / 1e9));
    float("size_proc_mean", Unit::Bytes, &|metric| metric.size.mean());
    float("size_proc_std", Unit::Bytes, &|metric| metric.size.deviation());
    float("count_proc_mean", Unit::Count, &|metric| metric.count.mean());
    float("count_proc_std", Unit::Count, &|metric| metric.count.deviation());
    float("bw", Unit::BytesPerSecond, &|metric| ratio(metric.stats.size as f64, seconds(metric.stats.dur)));
    float("ops", Unit::PerSecond, &|metric| ratio(metric.stats.count as f64, seconds(metric.stats.dur)));
    float("intensity", Unit::Number, &|metric| ratio(metric.stats.count as f64, metric.stats.size as f64));
    let mut int = |name: &str, unit: Unit, of: &dyn Fn(&Metric) -> Option<i64>| {
        table.ints(format!("{prefix}{name}"), unit, each().map(|metric| metric.and_then(of)));
    };
    int("count_sum", Unit::Count, &|metric| Some(clamp(metric.stats.count)));
    int("size_sum", Unit::Bytes, &|metric| Some(clamp(metric.stats.size)));
    int("size_call_min", Unit::Bytes, &|metric| metric.stats.size_min().map(clamp));
    int("size_call_max", Unit::Bytes, &|metric| metric.stats.size_max().map(clamp));
    int("size_proc_min", Unit::Bytes, &|metric| Some(clamp(metric.size.min)));
    int("size_proc_max", Unit::Bytes, &|metric| Some(clamp(metric.size.max)));
    int("count_proc_min", Unit::Count, &|metric| Some(clamp(metric.count.min)));
    int("count_proc_max", Unit::Count, &|metric| Some(clamp(metric.count.max)));
    for bin in 0..SIZE_BINS {
        int(&format!("size_bin_{}_sum", bin_label(bin)), Unit::Count, &|metric| Some(clamp(metric.stats.bins()?[bin])));
    }
    int("proc_name_nunique", Unit::Count, &|metric| Some(clamp(metric.processes)));
    int("file_name_nunique", Unit::Count, &|metric| Some(clamp(metric.files)));
    int("offset_min", Unit::Bytes, &|metric| (metric.stats.offset_min != i64::MAX).then_some(metric.stats.offset_min));
    int("offset_max", Unit::Bytes, &|metric| (metric.stats.offset_max != i64::MIN).then_some(metric.stats.offset_max));
}
