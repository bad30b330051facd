//! Samples over time: the usage of hosts, their devices and programs during a run.
//!
//! One pass over the counters of a run folds them into curves of at most 480 buckets (`samples/fold.rs`), whatever the number of samples; nothing is kept
//! per event. [`weftline_format::metrics`] defines what a value measures, `samples/charts.rs` which curves are drawn. [`rows`] has the samples
//! themselves, one row per value.

mod charts;
mod fold;
pub mod rows;

use rustc_hash::FxHashMap;
use weftline_format::Phase;
use weftline_format::metrics::{Measure, PROCESS_CATEGORY, group};
use weftline_format::quick::numbers;
use weftline_index::column::phase_code;
use weftline_index::{Batch, Column, Dictionary, Filter, Request, Run, Unit};

use crate::Result;
use crate::group::host_text;
use crate::group::scan::number;
use crate::program;
use crate::records::text;
use charts::{CHARTS, Chart, Full, MOST_KEYS, device, summed, unit_of};
use fold::{Axis, FEW_BUCKETS, Fold, Line, MOST_BUCKETS, Sample, thousandths};

/// Runs of more hosts than this have curves of fewer buckets.
const MANY_HOSTS: usize = 64;

/// A curve of a host or of one of its devices.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The host.
    pub host: String,
    /// What it is about: `cpu`, `memory`, `disk`, `network`, `pressure`, `gpu`, `energy`.
    pub kind: &'static str,
    /// Which disk, interface, GPU or meter; empty for the host itself.
    pub device: String,
    /// What it measures, such as `busy` or `read`.
    pub metric: &'static str,
    /// What people read.
    pub label: String,
    /// The unit of the numbers: growth is shown as a rate.
    pub unit: Unit,
    /// How many samples there are.
    pub samples: u64,
    /// Over the time that samples describe.
    pub average: Option<f64>,
    /// The highest sample.
    pub peak: Option<f64>,
    /// When that was, ns since the epoch.
    pub peak_ns: Option<i64>,
    /// All growth.
    pub total: Option<(f64, Unit)>,
    /// What is as high as it can get.
    pub full: Option<f64>,
    /// The mean of each step of time; nothing where there is no sample.
    pub points: Vec<Option<f64>>,
    /// It is worth showing even if nothing happened.
    pub always: bool,
}

impl Series {
    /// Whether anything happened.
    pub fn is_active(&self) -> bool {
        self.peak.or(self.average).is_some_and(|peak| peak > 0.0) || self.total.is_some_and(|(total, _)| total > 0.0)
    }
}

/// What the processes of a program used, all together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramSamples {
    /// The program.
    pub program: String,
    /// How many processes of it were sampled.
    pub processes: u64,
    /// CPU time, ns.
    pub cpu_ns: i64,
    /// CPU time in percent of one processor: while it ran, at most, and step by step.
    pub cpu: Curve,
    /// Resident memory in bytes, likewise.
    pub memory: Curve,
    /// The most resident memory that one of its processes had, bytes; and its pid.
    pub largest: Option<(i64, i64)>,
    /// Bytes that reading calls gave.
    pub read_bytes: i64,
    /// Bytes that writing calls took.
    pub written_bytes: i64,
    /// Bytes fetched from storage.
    pub storage_read_bytes: i64,
    /// Bytes sent to storage.
    pub storage_written_bytes: i64,
}

/// A curve of a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// While it ran.
    pub average: Option<f64>,
    /// The highest.
    pub peak: Option<f64>,
    /// The mean of each step of time.
    pub points: Vec<Option<f64>>,
}

/// What was sampled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    /// Samples: counter events of the categories that collectors write.
    pub samples: u64,
    /// The hosts that they are about.
    pub hosts: Vec<String>,
    /// How many processes they are about.
    pub processes: u64,
    /// Where the first begins and the last ends, ns since the epoch.
    pub range: Option<(i64, i64)>,
    /// What the curves are drawn over.
    pub axis: Option<(i64, i64)>,
    /// Of hosts, in the order of their names, and devices, in the order in which people look at them.
    pub series: Vec<Series>,
    /// Of programs, the one that used most CPU time first.
    pub programs: Vec<ProgramSamples>,
}

impl Samples {
    /// Folds the samples of a run that a filter lets through, within its times.
    pub fn of(run: &Run, filter: &Filter) -> Result<Samples> {
        run.prepare()?;
        let times = run.times();
        let Some((first, last)) = times.all.filter(|_| times.count(phase_code(Phase::Counter)) > 0) else {
            return Ok(Samples::default());
        };
        let from = filter.from_ns.unwrap_or(first).max(first);
        let to = filter.to_ns.unwrap_or(last).min(last);
        if from > to {
            return Ok(Samples::default());
        }
        let dictionary = run.dictionary();
        let names = Names::new(&dictionary);
        let most = if names.hosts.len() > MANY_HOSTS { FEW_BUCKETS } else { MOST_BUCKETS };
        let axis = Axis::new(from, to, most);
        let columns = [Column::Ts, Column::Dur, Column::Cat, Column::Name, Column::Process, Column::Rest];
        let request = Request::of(columns).with(filter.clone().with_phases(&[phase_code(Phase::Counter)]));
        let scan = |gathered: &mut Gathered, batch: &Batch| gathered.take(batch, &names, &axis);
        let (states, _) = run.scan(&request, Gathered::default, scan)?;
        let mut all = Gathered::default();
        states.into_iter().for_each(|state| all.join(state));
        Ok(all.finish(&names, &axis))
    }
}

/// What ids mean for samples.
struct Names<'d> {
    dictionary: &'d Dictionary,
    hosts: Vec<&'d str>,
    /// By process: its host.
    host_of: Vec<u32>,
    programs: Vec<String>,
    /// By process: its program.
    program_of: Vec<u32>,
}

impl<'d> Names<'d> {
    fn new(dictionary: &'d Dictionary) -> Names<'d> {
        let mut hosts: Vec<&str> = dictionary.processes.iter().map(host_text).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let place = |host: &str| hosts.binary_search(&host).unwrap_or(0) as u32;
        let host_of = dictionary.processes.iter().map(|process| place(host_text(process))).collect();
        let labels: Vec<String> = dictionary
            .processes
            .iter()
            .map(|process| program::label(&process.command, &process.exe, &process.name))
            .collect();
        let mut programs = labels.clone();
        programs.sort_unstable();
        programs.dedup();
        let program_of = labels.iter().map(|label| programs.binary_search(label).unwrap_or(0) as u32).collect();
        Names { dictionary, hosts, host_of, programs, program_of }
    }
}

/// What is taken from the events of one counter.
#[derive(Debug, Clone, Default)]
struct Plan {
    /// Somebody samples this.
    known: bool,
    /// It is that of a process.
    process: bool,
    /// The charts that it is part of, with how their values relate to intervals: of samples that say which they describe, and of others.
    charts: Vec<(usize, [Option<Measure>; 2])>,
    keys: Vec<&'static str>,
}

/// The values of processes that are taken, in the order of [`ProgramFold::sums`] behind the first two.
const PROCESS_KEYS: [&str; 6] = ["cpu_ns", "rss_bytes", "read_chars", "write_chars", "read_bytes", "write_bytes"];

impl Plan {
    fn new(category: &str, counter: &str) -> Plan {
        let Some(group) = group(category, counter) else { return Plan::default() };
        if group.category == PROCESS_CATEGORY {
            let keys = if counter == "process" { PROCESS_KEYS.to_vec() } else { Vec::new() };
            return Plan { known: true, process: true, charts: Vec::new(), keys };
        }
        let is_of = |chart: &Chart| chart.category == group.category && chart.counters.hold(counter.trim());
        let measures = |chart: &Chart| {
            [true, false].map(|timed| chart.source(timed).filter(|_| agrees(chart, timed)).map(|source| source.measure))
        };
        let of = (0..CHARTS.len()).filter(|place| is_of(&CHARTS[*place]));
        let charts: Vec<_> = of.map(|place| (place, measures(&CHARTS[place]))).collect();
        let mut keys: Vec<&'static str> = Vec::new();
        for chart in charts.iter().map(|(place, _)| &CHARTS[*place]) {
            keys.extend(chart.terms.iter().map(|(key, _)| *key));
            if let Full::Key(key) = chart.full {
                keys.push(key);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys.truncate(MOST_KEYS);
        Plan { known: true, process: false, charts, keys }
    }

    fn value(&self, values: &[Option<f64>; MOST_KEYS], key: &str) -> Option<f64> {
        values[self.keys.iter().position(|known| *known == key)?]
    }
}

#[derive(Debug, Clone, Default)]
struct ProgramFold {
    cpu: Fold,
    memory: Fold,
    /// CPU time, bytes read and written by calls, from and to storage.
    sums: [i64; 5],
    /// By process: the most resident memory.
    largest: FxHashMap<u32, i64>,
}

/// Which curve: host, name of the counter, chart, and whether samples say which interval they describe.
type Key = (u32, u32, usize, bool);

/// What a thread has folded.
#[derive(Debug, Default)]
struct Gathered {
    plans: FxHashMap<(u32, u32), Plan>,
    samples: u64,
    range: Option<(i64, i64)>,
    hosts: Vec<bool>,
    processes: rustc_hash::FxHashSet<u32>,
    series: FxHashMap<Key, Fold>,
    programs: FxHashMap<u32, ProgramFold>,
}

impl Gathered {
    fn take(&mut self, batch: &Batch, names: &Names<'_>, axis: &Axis) {
        let (cats, counters) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
        let processes = batch.ids(Column::Process).values();
        self.hosts.resize(names.hosts.len(), false);
        for row in 0..batch.rows() {
            let Some(start) = number(batch.ints(Column::Ts), row) else { continue };
            let (cat, counter, process) = (cats[row], counters[row], processes[row]);
            let plan = self
                .plans
                .entry((cat, counter))
                .or_insert_with(|| Plan::new(names.dictionary.cat(cat), names.dictionary.name(counter)));
            if !plan.known {
                continue;
            }
            let length = number(batch.ints(Column::Dur), row);
            let end = start.saturating_add(length.unwrap_or(0).max(0));
            let host = names.host_of[process as usize];
            self.samples += 1;
            self.hosts[host as usize] = true;
            let (from, to) = (start.max(axis.from), end.min(axis.to));
            self.range = Some(self.range.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
            let of_process = names.dictionary.process(process).pid != 0;
            if of_process {
                self.processes.insert(process);
            }
            if plan.keys.is_empty() || of_process != plan.process {
                continue;
            }
            let mut values = [None; MOST_KEYS];
            for (key, value) in numbers(text(batch, Column::Rest, row)) {
                if let Some(place) = plan.keys.iter().position(|known| *known == key) {
                    values[place] = Some(value);
                }
            }
            let sample = |value| Sample { start, length, value };
            if plan.process {
                let program = self.programs.entry(names.program_of[process as usize]).or_default();
                program.take(process, &values, axis, sample);
                continue;
            }
            for (place, measures) in &plan.charts {
                let chart = &CHARTS[*place];
                let measure = measures[usize::from(length.is_none())];
                let first = chart.terms.first().and_then(|(key, _)| plan.value(&values, key));
                let (Some(measure), Some(_)) = (measure, first) else { continue };
                let value = chart
                    .terms
                    .iter()
                    .fold(chart.base, |sum, (key, times)| sum + times * plan.value(&values, key).unwrap_or(0.0));
                let fold = self.series.entry((host, counter, *place, length.is_some())).or_default();
                fold.add(axis, measure, sample(value.max(0.0)));
                if let Full::Key(key) = chart.full {
                    fold.full = fold.full.max(plan.value(&values, key).map_or(0, thousandths));
                }
            }
        }
    }

    fn join(&mut self, other: Gathered) {
        self.samples += other.samples;
        if let Some((from, to)) = other.range {
            self.range = Some(self.range.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
        }
        self.hosts.resize(self.hosts.len().max(other.hosts.len()), false);
        self.hosts.iter_mut().zip(&other.hosts).for_each(|(own, other)| *own |= *other);
        self.processes.extend(other.processes);
        for (key, fold) in other.series {
            self.series.entry(key).or_default().join(&fold);
        }
        for (program, fold) in other.programs {
            self.programs.entry(program).or_default().join(fold);
        }
    }

    fn finish(self, names: &Names<'_>, axis: &Axis) -> Samples {
        if self.samples == 0 {
            return Samples::default();
        }
        let mut keys: Vec<&Key> = self.series.keys().collect();
        let counter = |id: u32| names.dictionary.name(id);
        keys.sort_by_key(|(host, name, chart, timed)| {
            (*host, CHARTS[*chart].kind_order(), counter(*name), *chart, *timed)
        });
        let mut series: Vec<Series> = Vec::with_capacity(keys.len());
        for (host, name, chart, timed) in keys {
            let fold = &self.series[&(*host, *name, *chart, *timed)];
            series.extend(one_series(names.hosts[*host as usize], counter(*name), &CHARTS[*chart], *timed, fold, axis));
        }
        // Meters of energy tell power as well.
        let metered: Vec<(String, String)> = series
            .iter()
            .filter(|series| (series.kind, series.metric) == ("energy", "energy"))
            .map(|series| (series.host.clone(), series.device.clone()))
            .collect();
        series.retain(|series| {
            (series.kind, series.metric) != ("energy", "power")
                || !metered.iter().any(|(host, device)| *host == series.host && *device == series.device)
        });
        let mut programs: Vec<ProgramSamples> =
            self.programs.into_iter().map(|(program, fold)| fold.finish(program, names, axis)).collect();
        programs.sort_by(|a, b| {
            let weight = |program: &ProgramSamples| (program.cpu_ns, program.largest.map_or(0, |(most, _)| most));
            weight(b).cmp(&weight(a)).then_with(|| a.program.cmp(&b.program))
        });
        let sampled = names.hosts.iter().zip(&self.hosts).filter(|(_, seen)| **seen);
        Samples {
            samples: self.samples,
            hosts: sampled.map(|(host, _)| (*host).to_owned()).collect(),
            processes: self.processes.len() as u64,
            range: self.range,
            axis: Some((axis.from, axis.to)),
            series,
            programs,
        }
    }
}

/// Whether the values of a chart have one unit; those of DFTracer's memory have two.
fn agrees(chart: &Chart, timed: bool) -> bool {
    let unit = |key: &str| {
        group(chart.category, chart.counter()).and_then(|group| group.metric(key, timed)).map(|metric| metric.unit)
    };
    timed || chart.terms.iter().all(|(key, _)| unit(key) == chart.source(timed).map(|source| source.unit))
}

fn one_series(host: &str, counter: &str, chart: &Chart, timed: bool, fold: &Fold, axis: &Axis) -> Option<Series> {
    let source = chart.source(timed)?;
    let Line { average, peak, total, points } = fold.finish(axis, source.measure, false);
    let (unit, times) = unit_of(source);
    let device = device(chart.category, counter);
    let full = match chart.full {
        Full::Unknown => None,
        Full::Percent => Some(100.0),
        Full::Key(_) if unit == Unit::Percent => Some(100.0),
        Full::Key(_) => Some(fold.full as f64 / 1000.0 * times).filter(|full| *full > 0.0),
    };
    Some(Series {
        host: host.to_owned(),
        kind: chart.kind,
        metric: chart.metric,
        label: chart.label.replace("{}", &device),
        device,
        unit,
        samples: fold.samples,
        average: average.map(|average| average * times),
        peak: peak.map(|(peak, _)| peak * times),
        peak_ns: peak.map(|(_, at)| at),
        total: total.map(|total| (total * summed(source).1, summed(source).0)),
        full,
        points: points.into_iter().map(|point| point.map(|point| point * times)).collect(),
        always: chart.always,
    })
}

impl ProgramFold {
    fn take(&mut self, process: u32, values: &[Option<f64>; MOST_KEYS], axis: &Axis, sample: impl Fn(f64) -> Sample) {
        let largest = self.largest.entry(process).or_default();
        if let Some(cpu) = values[0] {
            self.cpu.add(axis, Measure::Delta, sample(cpu));
        }
        if let Some(rss) = values[1] {
            self.memory.add(axis, Measure::Gauge, sample(rss));
            *largest = (*largest).max(rss as i64);
        }
        let grown = [values[0], values[2], values[3], values[4], values[5]];
        for (sum, value) in self.sums.iter_mut().zip(grown) {
            *sum = sum.saturating_add(value.unwrap_or(0.0) as i64);
        }
    }

    fn join(&mut self, other: ProgramFold) {
        self.cpu.join(&other.cpu);
        self.memory.join(&other.memory);
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum = sum.saturating_add(more);
        }
        for (process, most) in other.largest {
            let largest = self.largest.entry(process).or_default();
            *largest = (*largest).max(most);
        }
    }

    fn finish(self, program: u32, names: &Names<'_>, axis: &Axis) -> ProgramSamples {
        let curve = |fold: &Fold, measure, times: f64| {
            let line = fold.finish(axis, measure, true);
            Curve {
                average: line.average.map(|average| average * times),
                peak: line.peak.map(|(peak, _)| peak * times),
                points: line.points.into_iter().map(|point| point.map(|point| point * times)).collect(),
            }
        };
        let pid = |process: u32| names.dictionary.process(process).pid;
        let [cpu_ns, read_bytes, written_bytes, storage_read_bytes, storage_written_bytes] = self.sums;
        ProgramSamples {
            program: names.programs[program as usize].clone(),
            processes: self.largest.len() as u64,
            cpu_ns,
            cpu: curve(&self.cpu, Measure::Delta, 1e-7),
            memory: curve(&self.memory, Measure::Gauge, 1.0),
            largest: self
                .largest
                .iter()
                .map(|(process, most)| (*most, pid(*process)))
                .max_by_key(|(most, pid)| (*most, std::cmp::Reverse(*pid)))
                .filter(|(most, _)| *most > 0),
            read_bytes,
            written_bytes,
            storage_read_bytes,
            storage_written_bytes,
        }
    }
}

#[cfg(test)]
mod tests;
