//! An opened run and its queries. `weftline/analysis.py` has the defaults of their arguments.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use weftline_analysis::condition::Condition;
use weftline_analysis::findings::Config;
use weftline_analysis::hlm::{Hlm, HlmQuestion, ViewType};
use weftline_analysis::pass;
use weftline_analysis::presets::Preset;
use weftline_analysis::profiles::{ProfileQuestion, Profiles};
use weftline_analysis::samples::Samples;
use weftline_analysis::summary::{Question, view_tables};
use weftline_analysis::system::{SystemMetrics, SystemQuestion};
use weftline_index::{Filter, OpenOptions};

use crate::events::Events;
use crate::progress::Callback;
use crate::report::{Report, to_python};
use crate::sql::Answer;
use crate::stream::Stream;
use crate::table::Table;
use crate::{failure, times};

/// Width of time buckets where the user says none.
const SECOND: i64 = 1_000_000_000;

/// An opened run.
#[pyclass(frozen, module = "weftline._analysis")]
pub(crate) struct Run {
    run: Arc<weftline_index::Run>,
    progress: Arc<Callback>,
    paths: Vec<PathBuf>,
    groups: Vec<String>,
    index: bool,
    threads: Option<usize>,
}

/// The presets by name.
#[pyfunction]
pub(crate) fn presets() -> Vec<&'static str> {
    Preset::ALL.map(Preset::name).to_vec()
}

/// The views by name.
#[pyfunction]
pub(crate) fn views() -> Vec<&'static str> {
    ViewType::ALL.map(ViewType::name).to_vec()
}

/// A condition as a filter.
fn filter_of(condition: Option<&str>) -> PyResult<Filter> {
    let Some(text) = condition else { return Ok(Filter::default()) };
    let condition = Condition::parse(text).map_err(|error| failure::of_condition(&error))?;
    Ok(condition.filter(Filter::default()))
}

/// A width of time buckets.
fn width(time: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Option<i64>> {
    let width = times::maybe(time, what)?;
    if width.is_some_and(|width| width <= 0) {
        return Err(PyValueError::new_err(format!("{what} is the width of time buckets and must be above zero")));
    }
    Ok(width)
}

/// What is asked, of what Python gave.
fn question(
    preset: Option<&str>,
    views: Vec<String>,
    time: Option<&Bound<'_, PyAny>>,
    condition: Option<&str>,
    from: Option<&Bound<'_, PyAny>>,
    to: Option<&Bound<'_, PyAny>>,
) -> PyResult<Question> {
    let width_ns = width(time, "time")?;
    let views: Result<Vec<ViewType>, _> = views.into_iter().map(|name| ViewType::parse(&name)).collect();
    Ok(Question {
        preset: preset.map(Preset::parse).transpose().map_err(|error| failure::of_analysis(&error))?,
        views: views.map_err(|error| failure::of_analysis(&error))?,
        width_ns,
        from: times::maybe(from, "from_")?,
        to: times::maybe(to, "to")?,
        filter: filter_of(condition)?,
        ..Question::default()
    })
}

#[pymethods]
impl Run {
    #[new]
    #[pyo3(signature = (paths, *, groups=Vec::new(), index=true, threads=None, progress=None))]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        groups: Vec<String>,
        index: bool,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Run> {
        if paths.is_empty() {
            return Err(PyValueError::new_err("name a run directory, a trace file or a glob"));
        }
        if threads == Some(0) {
            return Err(PyValueError::new_err("threads must be at least 1"));
        }
        let progress = Arc::new(Callback::new(progress));
        let shared: Arc<Callback> = Arc::clone(&progress);
        let options = OpenOptions { no_index: !index, groups: groups.clone(), threads, progress: shared };
        let opened =
            py.detach(|| weftline_index::Run::open(&paths, &options).and_then(|run| run.prepare().map(|()| run)));
        if let Some(error) = progress.failure() {
            return Err(error);
        }
        let run = Arc::new(opened.map_err(|error| failure::of_index(&error))?);
        Ok(Run { run, progress, paths, groups, index, threads })
    }

    /// What was named.
    #[getter]
    fn title(&self) -> String {
        self.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
    }

    /// What `weft report` shows.
    #[pyo3(signature = (*, preset=None, views=Vec::new(), time=None, r#where=None, from_=None, to=None))]
    #[expect(clippy::too_many_arguments, reason = "these are the arguments of the Python method")]
    fn report(
        &self,
        py: Python<'_>,
        preset: Option<&str>,
        views: Vec<String>,
        time: Option<&Bound<'_, PyAny>>,
        r#where: Option<&str>,
        from_: Option<&Bound<'_, PyAny>>,
        to: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Report> {
        let question = question(preset, views, time, r#where, from_, to)?;
        let runs: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
        py.detach(|| {
            let run = &*self.run;
            let answer = pass::report(run, &question, Some(&Config::default()));
            let (summary, verdict) = answer.map_err(|error| failure::of_analysis(&error))?;
            let views = view_tables(run, &question).map_err(|error| failure::of_analysis(&error))?;
            let samples = Samples::of(run, &question.window(run)).map_err(|error| failure::of_analysis(&error))?;
            let mut report = weftline_report::make::report(&runs, run, &summary, views, &verdict);
            weftline_report::sampled::add(&mut report, run, &summary, &samples);
            Ok(Report::new(report))
        })
    }

    /// A view of one layer, or of all layers side by side.
    #[pyo3(signature = (view, *, preset=None, layer=None, time=None, r#where=None, from_=None, to=None))]
    #[expect(clippy::too_many_arguments, reason = "these are the arguments of the Python method")]
    fn view(
        &self,
        py: Python<'_>,
        view: &str,
        preset: Option<&str>,
        layer: Option<&str>,
        time: Option<&Bound<'_, PyAny>>,
        r#where: Option<&str>,
        from_: Option<&Bound<'_, PyAny>>,
        to: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let question = question(preset, vec![view.to_owned()], time, r#where, from_, to)?;
        let preset = question.preset.unwrap_or_else(|| Preset::detect(&self.run.dictionary()));
        if let Some(layer) = layer {
            let layers = preset.layers(&self.run.dictionary());
            if !layers.iter().any(|known| known.name == layer) {
                let known: Vec<_> = layers.iter().map(|layer| layer.name.as_ref()).collect();
                return Err(PyValueError::new_err(format!(
                    "the preset {} has no layer {layer:?}; it has {}",
                    preset.name(),
                    known.join(", ")
                )));
            }
        }
        let wanted = format!("{}_{view}", layer.unwrap_or("flat"));
        let tables = py.detach(|| view_tables(&self.run, &question)).map_err(|error| failure::of_analysis(&error))?;
        let found = tables.into_iter().find(|(name, _)| *name == wanted).map(|(_, table)| table);
        // A layer without events has no table.
        Table::new(found.unwrap_or_default())
    }

    /// Events grouped by views, category, operation and name, from which views are made.
    #[pyo3(signature = (views, *, time=None, r#where=None))]
    fn metrics(
        &self,
        py: Python<'_>,
        views: Vec<String>,
        time: Option<&Bound<'_, PyAny>>,
        r#where: Option<&str>,
    ) -> PyResult<Table> {
        let asked = question(None, views, time, r#where, None, None)?;
        let views = asked.views;
        let metrics = HlmQuestion {
            width_ns: asked.width_ns.unwrap_or(SECOND),
            filter: asked.filter,
            files: [ViewType::FileName, ViewType::FileDir, ViewType::FilePattern]
                .iter()
                .any(|view| views.contains(view)),
            ..HlmQuestion::new(views.clone())
        };
        let table = py.detach(|| Hlm::of(&self.run, &metrics).map(|hlm| hlm.table(&views)));
        Table::new(table.map_err(|error| failure::of_analysis(&error))?)
    }

    /// Totals of DFTracer's aggregation.
    #[pyo3(signature = (*, time=None, period=None))]
    fn profiles(
        &self,
        py: Python<'_>,
        time: Option<&Bound<'_, PyAny>>,
        period: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let mut asked = ProfileQuestion::default();
        asked.width_ns = width(time, "time")?.unwrap_or(asked.width_ns);
        asked.period_ns = width(period, "period")?;
        let table = py.detach(|| Profiles::of(&self.run, &asked).map(|profiles| profiles.table()));
        Table::new(table.map_err(|error| failure::of_analysis(&error))?)
    }

    /// Samples of hosts per time bucket.
    #[pyo3(signature = (*, time=None))]
    fn system(&self, py: Python<'_>, time: Option<&Bound<'_, PyAny>>) -> PyResult<Table> {
        let mut asked = SystemQuestion::default();
        asked.width_ns = width(time, "time")?.unwrap_or(asked.width_ns);
        let table = py.detach(|| SystemMetrics::of(&self.run, &asked).map(|metrics| metrics.table()));
        Table::new(table.map_err(|error| failure::of_analysis(&error))?)
    }

    /// Samples of hosts and processes, one row per value, as a stream of batches.
    #[pyo3(signature = (*, r#where=None, from_=None, to=None))]
    fn samples(
        &self,
        py: Python<'_>,
        r#where: Option<&str>,
        from_: Option<&Bound<'_, PyAny>>,
        to: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Stream> {
        let filter = self.filter(r#where, from_, to)?;
        let (run, progress) = (Arc::clone(&self.run), Arc::clone(&self.progress));
        py.detach(|| Ok(Stream::new(Events::of_samples(run, progress, self.threads(), filter)?)))
    }

    /// Events, as a stream of batches.
    #[pyo3(signature = (*, columns=None, r#where=None, from_=None, to=None))]
    fn events(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        r#where: Option<&str>,
        from_: Option<&Bound<'_, PyAny>>,
        to: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Stream> {
        let filter = self.filter(r#where, from_, to)?;
        let (run, progress) = (Arc::clone(&self.run), Arc::clone(&self.progress));
        py.detach(|| Ok(Stream::new(Events::new(run, progress, self.threads(), columns, filter)?)))
    }

    /// The result of a query by `weft-sql`.
    fn sql(&self, py: Python<'_>, program: PathBuf, query: &str) -> PyResult<Stream> {
        let mut words: Vec<OsString> = vec!["--format".into(), "arrow".into()];
        if !self.index {
            words.push("--no-index".into());
        }
        self.groups.iter().for_each(|group| words.extend([OsString::from("--group"), group.into()]));
        if let Some(threads) = self.threads {
            words.extend(["--threads".into(), threads.to_string().into()]);
        }
        words.push("--".into());
        words.extend(self.paths.iter().map(|path| path.clone().into_os_string()));
        words.push(query.into());
        py.detach(|| Ok(Stream::new(Answer::of(program, words)?)))
    }

    /// What the run holds, and the state of its index.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &py.detach(|| self.properties()))
    }

    fn __repr__(&self) -> String {
        let events: u64 = self.run.times().per_phase.iter().map(|(_, count)| count).sum();
        format!("<weftline run {}: {events} events>", self.title())
    }
}

impl Run {
    /// A condition within a window of time.
    fn filter(
        &self,
        condition: Option<&str>,
        from: Option<&Bound<'_, PyAny>>,
        to: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Filter> {
        let origin = self.run.times().origin().unwrap_or(0);
        let on_clock = |time: Option<i64>| time.map(|time| origin.saturating_add(time));
        let from = on_clock(times::maybe(from, "from_")?);
        let to = on_clock(times::maybe(to, "to")?);
        Ok(filter_of(condition)?.with_time(from, to))
    }

    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn properties(&self) -> Value {
        let (dictionary, times) = (self.run.dictionary(), self.run.times());
        let phases: serde_json::Map<String, Value> =
            times.per_phase.iter().map(|(code, count)| (char::from(*code).to_string(), (*count).into())).collect();
        let files = self.run.sources().into_iter().map(|source| {
            json!({
                "path": source.path.display().to_string(),
                "dialect": source.dialect,
                "events": source.events,
                "bytes": source.bytes,
                "flaws": source.flaws,
                "lost_bytes": source.lost_bytes,
                "unreadable": source.unreadable,
            })
        });
        let index = self.run.index().iter().map(|index| {
            json!({
                "directory": index.directory.display().to_string(),
                "bytes": index.bytes,
                "rows": index.rows,
                "files_read": index.read,
                "files_kept": index.kept,
            })
        });
        let preset = Preset::detect(&dictionary);
        json!({
            "origin_ns": times.origin(),
            "first_ns": times.all.map(|(first, _)| first),
            "last_ns": times.all.map(|(_, last)| last),
            "events": times.per_phase.iter().map(|(_, count)| count).sum::<u64>(),
            "phases": phases,
            "preset": preset.name(),
            "layers": preset.layers(&dictionary).iter().map(|layer| layer.name.to_string()).collect::<Vec<_>>(),
            "processes": dictionary.processes,
            "categories": dictionary.cats.iter().collect::<Vec<_>>(),
            "names": dictionary.names.len(),
            "paths": dictionary.files.len(),
            "files": files.collect::<Vec<_>>(),
            "index": index.collect::<Vec<_>>(),
        })
    }
}
