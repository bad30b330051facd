//! What `weft report` shows of a run, gathered in one pass over its events.

mod layers;
mod outliers;
mod pass;
mod tables;
mod wall;

use std::collections::BTreeMap;
use std::sync::Arc;

use weftline_index::{Dictionary, Filter, Run};

pub use layers::LayerTimes;
pub use outliers::{Outlier, RATIO, SCORE, outliers};
pub use pass::Traffic;
pub use wall::{Wall, WallTimes, wall_times};

use crate::classify::{Classes, IoCat, Rules, SIZE_BINS};
use crate::flat::flat_view;
use crate::group::{directory_of, host_text};
use crate::hlm::{Hlm, HlmQuestion, ViewType};
use crate::presets::Preset;
use crate::views::Views;
use crate::{AnalysisError, Result, Table};
use layers::LayerSummer;
use pass::Pass;

/// What is asked of a run.
#[derive(Debug, Clone)]
pub struct Question {
    /// The layers; by default those that the run's categories speak for.
    pub preset: Option<Preset>,
    /// Views to be made beside the summary.
    pub views: Vec<ViewType>,
    /// Width of time buckets; by default one that cuts the run into about sixty.
    pub width_ns: Option<i64>,
    /// Only events that end at this time or later, ns since the run's origin.
    pub from: Option<i64>,
    /// Only events that start before this time, ns since the run's origin.
    pub to: Option<i64>,
    /// Which events; its times are set by `from` and `to`.
    pub filter: Filter,
    /// How events are classified and which are left out.
    pub rules: Arc<Rules>,
    /// Rows of each list of the largest.
    pub top: usize,
}

impl Default for Question {
    fn default() -> Self {
        Question {
            preset: None,
            views: Vec::new(),
            width_ns: None,
            from: None,
            to: None,
            filter: Filter::default(),
            rules: Arc::new(Rules::default()),
            top: 10,
        }
    }
}

/// The job as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Start of the first span, ns since the epoch.
    pub origin: i64,
    /// From there to the end of the last span, ns.
    pub time: i64,
    /// Spans in the answer.
    pub events: u64,
    /// Of those: left out by the rules (files of the system, calls that only wrap others).
    pub ignored: u64,
    /// Rows of the whole run by phase, as its letter.
    pub per_phase: Vec<(u8, u64)>,
    /// Processes with events in the answer.
    pub processes: u64,
    /// Their hosts.
    pub hosts: u64,
    /// Files that I/O calls were about.
    pub files: u64,
    /// All I/O.
    pub traffic: Traffic,
    /// Trace files.
    pub sources: u64,
    /// Their bytes.
    pub source_bytes: u64,
    /// Things that were wrong with them.
    pub flaws: u64,
    /// Bytes of them that could not be used.
    pub lost_bytes: u64,
    /// Trace files that could not be read, with the reason.
    pub unreadable: Vec<(String, String)>,
}

/// Calls of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationRow {
    /// The category, lower case.
    pub cat: String,
    /// The name.
    pub name: String,
    /// What kind of I/O; nothing where the category is not one of I/O.
    pub io_cat: Option<IoCat>,
    /// Calls.
    pub count: u64,
    /// Bytes.
    pub size: u128,
    /// Calls that moved any.
    pub sized: u64,
    /// Sum of durations, ns.
    pub time: i128,
    /// Shortest and longest, ns.
    pub extremes: (i64, i64),
    /// Percentiles 50, 95 and 99 of the durations, ns, within [`crate::histogram::RELATIVE_ERROR`].
    pub percentiles: [f64; 3],
}

/// A row of a list of the largest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopRow {
    /// Path, directory or process.
    pub name: String,
    /// Its I/O.
    pub traffic: Traffic,
    /// Files in it; 1 for a file.
    pub files: u64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The layers' preset.
    pub preset: Preset,
    /// The job.
    pub job: Job,
    /// Its layers, outermost first.
    pub layers: Vec<LayerTimes>,
    /// All kinds of calls, I/O first, most time first.
    pub operations: Vec<OperationRow>,
    /// Reads and writes per size bin.
    pub sizes: [(u64, u64); SIZE_BINS],
    /// Files with most time.
    pub top_files: Vec<TopRow>,
    /// Directories with most time.
    pub top_directories: Vec<TopRow>,
    /// Processes with most time.
    pub top_processes: Vec<TopRow>,
    /// Width of the time line's buckets, ns.
    pub width_ns: i64,
    /// I/O per bucket, counted from the origin; a call belongs to the bucket of its start.
    pub timeline: BTreeMap<u32, Traffic>,
    /// Processes and hosts whose time in I/O is out of line.
    pub stragglers: Vec<Outlier>,
}

/// Spans whose ranges of time are kept at once. More are gathered window by window, so that memory stays bounded.
const SPANS_AT_ONCE: u64 = 8 << 20;
/// Buckets that a run is cut into when the question does not say how wide they are.
const BUCKETS: i64 = 60;

/// A round width (1, 2 or 5 times a power of ten) for about [`BUCKETS`] buckets.
fn round_width(time: i64) -> i64 {
    let wanted = (time / BUCKETS).max(1);
    let mut unit = 1i64;
    loop {
        for step in [1, 2, 5] {
            if unit * step >= wanted {
                return unit * step;
            }
        }
        match unit.checked_mul(10) {
            Some(next) if next < i64::MAX / 10 => unit = next,
            _ => return wanted,
        }
    }
}

impl Summary {
    /// Reads the run once.
    pub fn of(run: &Run, question: &Question) -> Result<Summary> {
        run.prepare()?;
        let (dictionary, times) = (run.dictionary(), run.times());
        let classes = Classes::new(&question.rules, &dictionary);
        let preset = question.preset.unwrap_or_else(|| Preset::detect(&dictionary));
        let layers = preset.layers(&dictionary);
        let (origin, end) = times.spans.or(times.all).unwrap_or((0, 0));
        let filter = time_filter(question, origin);
        let whole = end.saturating_sub(origin);
        let width_ns = question.width_ns.unwrap_or_else(|| round_width(whole)).max(1);
        let buckets = i128::from(whole) / i128::from(width_ns) + 1;
        if buckets >= i128::from(u32::MAX) {
            return Err(AnalysisError::TooManyBuckets { buckets, width_ns });
        }
        let spans: u64 = crate::group::scan::span_phases().iter().map(|code| times.count(*code)).sum();
        let at_once = run.index().is_empty() || spans <= SPANS_AT_ONCE;
        let pass = Pass {
            dictionary: &dictionary,
            classes: &classes,
            layers: &layers,
            filter,
            origin,
            width_ns,
            rest: preset != Preset::Posix,
            intervals: at_once,
        };
        let gathered = pass.run(run)?;
        let mut summer = LayerSummer::new(&layers, &gathered.layers);
        if at_once {
            summer.add(&gathered.intervals);
        } else {
            let windows = spans.div_ceil(SPANS_AT_ONCE) as i64;
            let length = whole / windows + 1;
            for window in 0..windows {
                let from = origin + window * length;
                summer.add(&pass.window(run, from, from + length)?);
            }
        }
        let job = job(run, &gathered, origin);
        Ok(Summary {
            preset,
            job,
            layers: summer.finish(),
            operations: operations(&gathered, &dictionary, &classes),
            sizes: std::array::from_fn(|bin| (gathered.read_bins[bin], gathered.write_bins[bin])),
            top_files: top_files(&gathered, &dictionary, question.top),
            top_directories: top_directories(&gathered, &dictionary, question.top),
            top_processes: top(people(&gathered, &dictionary).into_values(), question.top),
            width_ns,
            timeline: gathered.buckets.iter().map(|(bucket, traffic)| (*bucket, *traffic)).collect(),
            stragglers: stragglers(&gathered, &dictionary),
        })
    }
}

/// The question's filter with its times on the clock of the trace.
fn time_filter(question: &Question, origin: i64) -> Filter {
    let on_clock = |time: Option<i64>| time.map(|time| origin.saturating_add(time));
    question.filter.clone().with_time(on_clock(question.from), on_clock(question.to))
}

/// The views that a question asks for: their names (`LAYER_VIEW`, and `flat_VIEW` for all layers side by side) and tables.
pub fn view_tables(run: &Run, question: &Question) -> Result<Vec<(String, Table)>> {
    if question.views.is_empty() {
        return Ok(Vec::new());
    }
    run.prepare()?;
    let dictionary = run.dictionary();
    let preset = question.preset.unwrap_or_else(|| Preset::detect(&dictionary));
    let asked = HlmQuestion {
        width_ns: question.width_ns.unwrap_or(1_000_000_000),
        filter: time_filter(question, run.times().origin().unwrap_or(0)),
        rules: Arc::clone(&question.rules),
        rest: preset != Preset::Posix,
        ..HlmQuestion::new(question.views.clone())
    };
    let hlm = Hlm::of(run, &asked)?;
    let views = Views::new(&hlm);
    let layers = preset.layers(&dictionary);
    let mut tables = Vec::new();
    for view in &question.views {
        for layer in &layers {
            let table = views.of(layer, *view).table("");
            if table.rows > 0 {
                tables.push((format!("{}_{}", layer.name, view.name()), table));
            }
        }
        let wall = wall_times(run, question, *view)?;
        tables.push((format!("flat_{}", view.name()), flat_view(&views, &layers, *view, wall.as_ref())));
    }
    Ok(tables)
}

fn job(run: &Run, gathered: &pass::Gathered, origin: i64) -> Job {
    let dictionary = run.dictionary();
    let mut traffic = Traffic::default();
    gathered.processes.iter().for_each(|one| traffic.merge(one));
    let seen = || gathered.lives.iter().enumerate().filter(|(_, life)| life.is_some());
    let ends = gathered.lives.iter().flatten().map(|life| life.1).max();
    let starts = gathered.lives.iter().flatten().map(|life| life.0).min();
    let people: std::collections::BTreeSet<_> = seen()
        .map(|(id, _)| {
            let process = dictionary.process(id as u32);
            (host_text(process).to_owned(), process.pid)
        })
        .collect();
    let hosts: std::collections::BTreeSet<_> = people.iter().map(|(host, _)| host).collect();
    let sources = run.sources();
    let unreadable = sources
        .iter()
        .filter_map(|source| source.unreadable.as_ref().map(|why| (source.path.display().to_string(), why.clone())));
    Job {
        origin,
        time: ends.unwrap_or(0).saturating_sub(starts.unwrap_or(0)),
        events: gathered.events,
        ignored: gathered.ignored,
        per_phase: run.times().per_phase,
        processes: people.len() as u64,
        hosts: hosts.len() as u64,
        files: files_by_path(gathered, &dictionary).len() as u64,
        traffic,
        sources: sources.len() as u64,
        source_bytes: sources.iter().map(|source| source.bytes).sum(),
        flaws: sources.iter().map(|source| source.flaws).sum(),
        lost_bytes: sources.iter().map(|source| source.lost_bytes).sum(),
        unreadable: unreadable.collect(),
    }
}

fn operations(gathered: &pass::Gathered, dictionary: &Dictionary, classes: &Classes) -> Vec<OperationRow> {
    // Categories that differ in case only are one.
    let mut merged: BTreeMap<(String, String), (Option<IoCat>, pass::Operation)> = BTreeMap::new();
    for ((cat, name), operation) in &gathered.operations {
        let key = (dictionary.cat(*cat).to_lowercase(), dictionary.name(*name).to_owned());
        let io_cat = classes.is_io(*cat).then(|| classes.io_cat(*cat, *name));
        match merged.get_mut(&key) {
            Some((_, known)) => {
                crate::group::Cell::merge(&mut known.stats, &operation.stats);
                known.durations.merge(&operation.durations);
            }
            None => drop(merged.insert(key, (io_cat, operation.clone()))),
        }
    }
    let mut rows: Vec<OperationRow> = merged
        .into_iter()
        .map(|((cat, name), (io_cat, operation))| OperationRow {
            cat,
            name,
            io_cat,
            count: operation.stats.count,
            size: operation.stats.size,
            sized: operation.stats.sized,
            time: operation.stats.dur,
            extremes: (operation.stats.dur_min, operation.stats.dur_max),
            percentiles: [0.5, 0.95, 0.99].map(|share| operation.durations.quantile(share).unwrap_or(0.0)),
        })
        .collect();
    rows.sort_by(|left, right| {
        (left.io_cat.is_none(), -left.time, &left.cat, &left.name).cmp(&(
            right.io_cat.is_none(),
            -right.time,
            &right.cat,
            &right.name,
        ))
    });
    rows
}

/// I/O per path: a path under several hashes is one file.
fn files_by_path<'d>(gathered: &pass::Gathered, dictionary: &'d Dictionary) -> rustc_hash::FxHashMap<&'d str, Traffic> {
    let mut files: rustc_hash::FxHashMap<&str, Traffic> = rustc_hash::FxHashMap::default();
    for (id, traffic) in gathered.files.iter().enumerate().filter(|(_, traffic)| traffic.calls > 0) {
        files.entry(dictionary.file(id as u32)).or_default().merge(traffic);
    }
    files
}

/// Most time first; what takes equally long in the order of names.
fn top(rows: impl Iterator<Item = TopRow>, most: usize) -> Vec<TopRow> {
    let mut rows: Vec<TopRow> = rows.collect();
    let by = |left: &TopRow, right: &TopRow| {
        right.traffic.time.cmp(&left.traffic.time).then_with(|| left.name.cmp(&right.name))
    };
    if most > 0 && most < rows.len() {
        rows.select_nth_unstable_by(most - 1, by);
        rows.truncate(most);
    }
    rows.sort_by(by);
    rows.truncate(most);
    rows
}

fn top_files(gathered: &pass::Gathered, dictionary: &Dictionary, most: usize) -> Vec<TopRow> {
    let files = files_by_path(gathered, dictionary);
    top(files.into_iter().map(|(name, traffic)| TopRow { name: name.to_owned(), traffic, files: 1 }), most)
}

fn top_directories(gathered: &pass::Gathered, dictionary: &Dictionary, most: usize) -> Vec<TopRow> {
    let files = files_by_path(gathered, dictionary);
    let mut directories: rustc_hash::FxHashMap<&str, TopRow> = rustc_hash::FxHashMap::default();
    for (path, traffic) in &files {
        let directory = directory_of(path);
        let row = directories.entry(directory).or_insert_with(|| TopRow {
            name: directory.to_owned(),
            traffic: Traffic::default(),
            files: 0,
        });
        row.traffic.merge(traffic);
        row.files += 1;
    }
    top(directories.into_values(), most)
}

/// I/O per process: images with one pid on one host are one.
fn people(gathered: &pass::Gathered, dictionary: &Dictionary) -> BTreeMap<(String, i64), TopRow> {
    let mut people: BTreeMap<(String, i64), TopRow> = BTreeMap::new();
    for (id, _) in gathered.lives.iter().enumerate().filter(|(_, life)| life.is_some()) {
        let process = dictionary.process(id as u32);
        let host = host_text(process);
        let row = people.entry((host.to_owned(), process.pid)).or_insert_with(|| TopRow {
            name: format!("{host}#{}", process.pid),
            traffic: Traffic::default(),
            files: 0,
        });
        if let Some(traffic) = gathered.processes.get(id) {
            row.traffic.merge(traffic);
        }
    }
    people
}

fn stragglers(gathered: &pass::Gathered, dictionary: &Dictionary) -> Vec<Outlier> {
    let people = people(gathered, dictionary);
    let mut hosts: BTreeMap<&str, i128> = BTreeMap::new();
    for ((host, _), row) in &people {
        *hosts.entry(host).or_default() += row.traffic.time;
    }
    let processes: Vec<(String, i128)> =
        people.values().filter(|row| row.traffic.calls > 0).map(|row| (row.name.clone(), row.traffic.time)).collect();
    let hosts: Vec<(String, i128)> = hosts.into_iter().map(|(host, time)| (host.to_owned(), time)).collect();
    let mut all = outliers("process", &processes);
    all.extend(outliers("host", &hosts));
    all
}
