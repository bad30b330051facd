//! What `weft report` shows of a run, gathered in one pass over its events.

mod gathered;
mod layers;
mod outliers;
mod pass;
mod rows;
mod setting;
mod tables;
mod totals;
mod wall;

use std::collections::BTreeMap;
use std::sync::Arc;

use weftline_calls::IoSums;
use weftline_index::{Filter, Run};

pub(crate) use gathered::Gathered;

pub use layers::LayerTimes;
pub use outliers::{Outlier, Peer, RATIO, SCORE, outliers};
pub(crate) use setting::{Ranges, Setting};
pub use wall::{Wall, WallTimes, wall_times};

use crate::classify::{IoCat, Rules, SIZE_BINS};
use crate::flat::flat_view;
use crate::hlm::{Hlm, HlmQuestion, ViewType};
use crate::presets::Preset;
use crate::profiles::{ProfileQuestion, Profiles};
use crate::system::{self, SystemMetrics, SystemQuestion};
use crate::views::Views;
use crate::{Result, Table};

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
    /// How long the periods are of which the tracer kept only totals; by default as the trace tells, else a second.
    pub period_ns: Option<i64>,
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
            period_ns: None,
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
    /// Calls of which only totals are known; they are not among `events`.
    pub total_calls: u64,
    /// Calls of which totals are known and which were recorded one by one too; they count once.
    pub recorded_twice: u64,
    /// The periods of those totals, ns.
    pub period_ns: i64,
    /// Rows of the whole run by phase, as its letter.
    pub per_phase: Vec<(u8, u64)>,
    /// Processes with events in the answer.
    pub processes: u64,
    /// Their hosts.
    pub hosts: u64,
    /// Files that I/O calls were about.
    pub files: u64,
    /// All I/O.
    pub traffic: IoSums,
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
    /// Calls that moved any; nothing where totals do not tell.
    pub sized: Option<u64>,
    /// Whether any moved bytes.
    pub moved: bool,
    /// Of `count`: calls of which only totals are known.
    pub totals: u64,
    /// Sum of durations, ns.
    pub time: i128,
    /// Shortest and longest, ns; nothing where totals do not tell.
    pub extremes: Option<(i64, i64)>,
    /// Percentiles 50, 95 and 99 of the durations, ns, within [`crate::histogram::RELATIVE_ERROR`]; nothing where totals do not tell.
    pub percentiles: Option<[f64; 3]>,
}

impl OperationRow {
    /// Whether its time is more than what a clock of microseconds leaves of nothing: a rate would else tell of the clock alone.
    fn is_measurable(&self) -> bool {
        const TICK: i128 = 1000;
        let whole = |ns: i128| ns % TICK == 0;
        let coarse = self.extremes.is_some_and(|(min, max)| whole(min.into()) && whole(max.into())) && whole(self.time);
        !coarse || self.time >= TICK * i128::from(self.count)
    }
}

/// A row of a list of the largest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopRow {
    /// Path, directory or process.
    pub name: String,
    /// Its I/O.
    pub traffic: IoSums,
    /// Files in it; 1 for a file.
    pub files: u64,
    /// Its program, if it is a process.
    pub program: Option<String>,
    /// Its pid, likewise.
    pub pid: Option<i64>,
    /// Its rank within a parallel job, likewise.
    pub rank: Option<i64>,
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
    /// All kinds of events by name, I/O first, most time first.
    pub operations: Vec<OperationRow>,
    /// Calls on files by the names that people know (`open` for `open64`), most time first.
    pub calls: Vec<OperationRow>,
    /// Calls that waited for others: children, pipes, sockets, descriptors, time.
    pub waits: Vec<OperationRow>,
    /// Spans of the program itself.
    pub spans: Vec<OperationRow>,
    /// Reads and writes per size bin.
    pub sizes: [(u64, u64); SIZE_BINS],
    /// Reads and writes whose sizes totals do not tell.
    pub unknown_sizes: (u64, u64),
    /// Files with most time.
    pub top_files: Vec<TopRow>,
    /// Directories with most time.
    pub top_directories: Vec<TopRow>,
    /// Processes with most time.
    pub top_processes: Vec<TopRow>,
    /// Width of the time line's buckets, ns.
    pub width_ns: i64,
    /// I/O per bucket, counted from the origin; a call belongs to the bucket of its start.
    pub timeline: BTreeMap<u32, IoSums>,
    /// Whether buckets are shorter than the periods of totals, whose calls are then taken to be evenly apart.
    pub spread: bool,
    /// Processes and hosts whose time in I/O is out of line.
    pub stragglers: Vec<Outlier>,
}

/// Spans whose ranges of time are kept at once. More are gathered window by window, so that memory stays bounded.
pub(crate) const SPANS_AT_ONCE: u64 = 2 << 20;
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
    /// Sums up a run.
    pub fn of(run: &Run, question: &Question) -> Result<Summary> {
        Ok(crate::pass::report(run, question, None)?.0)
    }
}

impl Question {
    /// The events that a question is about, on the run's clock.
    pub fn window(&self, run: &Run) -> Filter {
        let times = run.times();
        time_filter(self, times.spans.or(times.all).map_or(0, |(origin, _)| origin))
    }
}

/// The question's filter with its times on the clock of the trace.
pub(crate) fn time_filter(question: &Question, origin: i64) -> Filter {
    let on_clock = |time: Option<i64>| time.map(|time| origin.saturating_add(time));
    question.filter.clone().with_time(on_clock(question.from), on_clock(question.to))
}

/// The views that a question asks for: their names (`LAYER_VIEW`, and `flat_VIEW` for all layers side by side) and tables. Samples of hosts
/// are beside the layers in a view by time; these and calls that the tracer aggregated are tables of their own as well.
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
        period_ns: question.period_ns,
        ..HlmQuestion::new(question.views.clone())
    };
    let hlm = Hlm::of(run, &asked)?;
    let views = Views::new(&hlm);
    let layers = preset.layers(&dictionary);
    let metrics = SystemMetrics::of(run, &SystemQuestion { width_ns: asked.width_ns, ..SystemQuestion::default() })?;
    let has_samples = metrics.table().rows > 0;
    let mut tables = Vec::new();
    for view in &question.views {
        for layer in &layers {
            let table = views.of(layer, *view).table("");
            if table.rows > 0 {
                tables.push((format!("{}_{}", layer.name, view.name()), table));
            }
        }
        let wall = wall_times(run, question, *view)?;
        let mut flat = flat_view(&views, &layers, *view, Some(&wall));
        if *view == ViewType::TimeRange && has_samples {
            system::join(&mut flat, &metrics);
        }
        tables.push((format!("flat_{}", view.name()), flat));
    }
    let asked =
        ProfileQuestion { width_ns: asked.width_ns, period_ns: question.period_ns, ..ProfileQuestion::default() };
    let profiles = Profiles::of(run, &asked)?.table();
    for (name, table) in [("profiles", profiles), ("system", metrics.table())] {
        if table.rows > 0 {
            tables.push((name.to_owned(), table));
        }
    }
    Ok(tables)
}
