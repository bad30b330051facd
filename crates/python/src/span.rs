//! `with span("name", key=value):` — the context manager.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use weftline::front::{self, EventHead, EventKind, Table, Usage};
use weftline::locate;

use crate::events::default_category;
use crate::values::{Args, text_id};

/// A block whose time is recorded. It may be entered again while it is open, and after it was left.
#[pyclass(subclass, frozen, weakref, module = "weftline._native")]
pub(crate) struct Span {
    name: Py<PyString>,
    category: Py<PyString>,
    given: Option<Py<PyDict>>,
    open: Mutex<Open>,
}

/// The innermost entry is apart: nearly always there is just one.
#[derive(Default)]
struct Open {
    innermost: Option<Entry>,
    outer: Vec<Entry>,
}

struct Entry {
    start: u64,
    kind: EventKind,
    usage: Option<Usage>,
    args: Args,
}

impl Span {
    /// Python code never runs while this is held.
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, py: Python<'_>, kind: EventKind) {
        if let Some(table) = locate::recording() {
            let mut args = Args::new();
            if let Some(given) = &self.given {
                args.add_all(table, given.bind(py));
            }
            let usage = front::wanted_usage(table);
            let mut open = self.open();
            let entry = Entry { start: front::now(table), kind, usage, args };
            if let Some(outer) = open.innermost.replace(entry) {
                open.outer.push(outer);
            }
        }
    }

    fn leave(&self, py: Python<'_>, error: &Bound<'_, PyAny>) {
        let mut open = self.open();
        let Some(entry) = open.innermost.take() else { return };
        if !open.outer.is_empty() {
            open.innermost = open.outer.pop();
        }
        drop(open);
        if let Some(table) = locate::recording() {
            self.tell(py, table, entry, error);
        }
    }

    fn tell(&self, py: Python<'_>, table: &Table, mut entry: Entry, error: &Bound<'_, PyAny>) {
        let end = front::now(table);
        if let Some(usage) = entry.usage {
            entry.args.put_usage(table, usage);
        }
        if !error.is_none() {
            entry.args.add_error(table, error);
        }
        let (name, category) = (text_id(table, self.name.bind(py)), text_id(table, self.category.bind(py)));
        let id = if entry.kind == EventKind::AsyncSpan { front::new_id() } else { 0 };
        let head = EventHead { kind: entry.kind, name, category, start: entry.start, end, id };
        front::emit(table, &head, entry.args.as_bytes());
    }
}

#[pymethods]
impl Span {
    #[new]
    #[pyo3(signature = (name, /, category=None, **args))]
    fn new(py: Python<'_>, name: Py<PyString>, category: Option<Py<PyString>>, args: Option<Py<PyDict>>) -> Span {
        let category = category.unwrap_or_else(|| default_category(py).clone().unbind());
        Span { name, category, given: args, open: Mutex::default() }
    }

    /// Its name.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyString> {
        self.name.clone_ref(py)
    }

    /// Its category.
    #[getter]
    fn category(&self, py: Python<'_>) -> Py<PyString> {
        self.category.clone_ref(py)
    }

    /// The arguments that it was made with.
    #[getter]
    fn args(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        self.given.as_ref().map(|given| given.clone_ref(py))
    }

    /// Is a block open, and recorded?
    #[getter]
    fn is_recorded(&self) -> bool {
        self.open().innermost.is_some()
    }

    /// Adds arguments to the innermost open block.
    #[pyo3(signature = (**args))]
    fn update(&self, args: Option<&Bound<'_, PyDict>>) {
        let (Some(table), Some(args)) = (locate::recording(), args) else { return };
        let mut added = Args::new();
        added.add_all(table, args);
        if let Some(entry) = &mut self.open().innermost {
            entry.args.append(&added);
        }
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this.enter(this.py(), EventKind::Span);
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        error: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.leave(py, error);
    }

    /// Enters a block that may overlap others, as `async with` does.
    fn enter_async(&self, py: Python<'_>) {
        self.enter(py, EventKind::AsyncSpan);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.given)
    }
}
