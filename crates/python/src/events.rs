//! Events with explicit times, for the drop-in modules and for what the decorators do not cover.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use weftline::front::{self, Argument, EventHead, EventKind, wants};
use weftline::locate;

use crate::values::{Args, text_id};

/// CPU time and memory of thread and process at the start of a span.
#[pyclass(frozen, module = "weftline._native")]
pub(crate) struct Usage(front::Usage);

/// The names of kinds, in the order of their numbers.
const KINDS: [(&str, EventKind); 13] = [
    ("SPAN", EventKind::Span),
    ("BEGIN", EventKind::Begin),
    ("END", EventKind::End),
    ("ASYNC_SPAN", EventKind::AsyncSpan),
    ("ASYNC_BEGIN", EventKind::AsyncBegin),
    ("ASYNC_END", EventKind::AsyncEnd),
    ("ASYNC_INSTANT", EventKind::AsyncInstant),
    ("INSTANT", EventKind::Instant),
    ("COUNTER", EventKind::Counter),
    ("META", EventKind::Meta),
    ("FLOW_START", EventKind::FlowStart),
    ("FLOW_STEP", EventKind::FlowStep),
    ("FLOW_END", EventKind::FlowEnd),
];

pub(crate) fn add_kinds(module: &Bound<'_, PyModule>) -> PyResult<()> {
    KINDS.iter().try_for_each(|(name, kind)| module.add(*name, *kind as u32))
}

/// Whether anything is recorded now.
#[pyfunction]
pub(crate) fn is_on() -> bool {
    locate::recording().is_some()
}

/// The recorder's clock; 0 when nothing is recorded.
#[pyfunction]
pub(crate) fn now() -> u64 {
    locate::recording().map_or(0, front::now)
}

/// An id for an async span, unique in this process.
#[pyfunction]
pub(crate) fn new_id() -> u64 {
    front::new_id()
}

/// An id made from a string: any thread that knows the string can end the span.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn id_of(text: &str) -> u64 {
    front::id_of(text)
}

/// CPU time and memory for a span that begins, if spans record their usage, or `always`.
#[pyfunction]
#[pyo3(signature = (*, always=false))]
pub(crate) fn usage(always: bool) -> Option<Usage> {
    let table = locate::recording()?;
    let reading = if always { Some(front::usage(table)) } else { front::wanted_usage(table) };
    reading.map(Usage)
}

/// What the program wants of [`set_usage`], also for a recorder that starts later.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Turns the usage of CPU time and memory in spans of this process on or off.
#[pyfunction]
#[pyo3(signature = (wanted, /))]
pub(crate) fn set_usage(wanted: bool) {
    WANTED.store(wanted, Ordering::Relaxed);
    locate::find().wants_usage.store(if wanted { wants::ALL } else { 0 }, Ordering::Relaxed);
}

/// From now on spans of this process record the usage of NVIDIA GPUs; `False` if NVML finds none.
#[pyfunction]
pub(crate) fn ask_gpu() -> bool {
    locate::recording().is_some_and(front::ask_gpu)
}

/// A recorder has started.
pub(crate) fn apply_usage() {
    if WANTED.load(Ordering::Relaxed) {
        locate::find().wants_usage.store(wants::ALL, Ordering::Relaxed);
    }
}

fn emit_now(kind: EventKind, name: &Bound<'_, PyAny>, category: &Bound<'_, PyAny>, args: Option<&Bound<'_, PyDict>>) {
    let Some(table) = locate::recording() else { return };
    let mut payload = Args::new();
    if let Some(args) = args {
        payload.add_all(table, args);
    }
    let (name, category) = (text_id(table, name), text_id(table, category));
    let now = front::now(table);
    front::emit(table, &EventHead { kind, name, category, start: now, end: now, id: 0 }, payload.as_bytes());
}

/// Records that something happened now: `instant("cache miss", key=path)`.
#[pyfunction]
#[pyo3(signature = (name, /, category=None, **args))]
pub(crate) fn instant(
    name: &Bound<'_, PyString>,
    category: Option<&Bound<'_, PyString>>,
    args: Option<&Bound<'_, PyDict>>,
) {
    emit_now(EventKind::Instant, name, category.unwrap_or(default_category(name.py())), args);
}

/// Records values as they are now: `counter("queue", length=len(queue))`.
#[pyfunction]
#[pyo3(signature = (name, /, category=None, **values))]
pub(crate) fn counter(
    name: &Bound<'_, PyString>,
    category: Option<&Bound<'_, PyString>>,
    values: Option<&Bound<'_, PyDict>>,
) {
    emit_now(EventKind::Counter, name, category.unwrap_or(default_category(name.py())), values);
}

/// Records metadata of the process: `meta("model", layers=23)`.
#[pyfunction]
#[pyo3(signature = (name, /, category=None, **metadata))]
pub(crate) fn meta(
    name: &Bound<'_, PyString>,
    category: Option<&Bound<'_, PyString>>,
    metadata: Option<&Bound<'_, PyDict>>,
) {
    emit_now(EventKind::Meta, name, category.unwrap_or(default_category(name.py())), metadata);
}

/// The category of events that were given none.
pub(crate) fn default_category(py: Python<'_>) -> &Bound<'_, PyString> {
    pyo3::intern!(py, "app")
}

/// Stores an event. Does nothing when nothing is recorded. `at` has its times in nanoseconds since 1970 if the recorder's clock cannot express them.
#[pyfunction]
#[pyo3(signature = (kind, name, category, start, end, id=0, args=None, usage=None, at=None))]
#[allow(clippy::too_many_arguments, reason = "a Python function with keyword arguments")]
pub(crate) fn emit(
    kind: u32,
    name: &Bound<'_, PyAny>,
    category: &Bound<'_, PyAny>,
    start: u64,
    end: u64,
    id: u64,
    args: Option<&Bound<'_, PyDict>>,
    usage: Option<&Bound<'_, Usage>>,
    at: Option<(i64, i64)>,
) -> PyResult<()> {
    let Some(kind) = EventKind::ALL.get(kind as usize).copied() else {
        return Err(PyValueError::new_err(format!("unknown kind of event: {kind}")));
    };
    let Some(table) = locate::recording() else { return Ok(()) };
    let mut payload = Args::new();
    if let Some((start, end)) = at {
        payload.put(0, Argument::At(start, end));
    }
    if let Some(args) = args {
        payload.add_all(table, args);
    }
    if let Some(usage) = usage {
        payload.put_usage(table, usage.get().0);
    }
    let (name, category) = (text_id(table, name), text_id(table, category));
    front::emit(table, &EventHead { kind, name, category, start, end, id }, payload.as_bytes());
    Ok(())
}
