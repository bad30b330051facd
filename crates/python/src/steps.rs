//! Generators and coroutines: their work between two suspensions is a *step*; from the first step to the end is their *life*.
//!
//! A life may cross other lives of its thread, so it is an async span, with the number of steps and the time spent in them
//! (`steps`, `busy_ns`). The object that the user gets is a real generator or coroutine, made by a function of
//! `weftline._drive` that passes everything on through [`Steps`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use weftline::front::{self, Argument, EventKind, Table};
use weftline::locate;

use crate::name::Name;
use crate::plan::Plan;
use crate::values::Args;

static STEPS: Name = Name::fixed("steps");
static BUSY: Name = Name::fixed("busy_ns");
static CLOSED: Name = Name::fixed("closed");

/// The life of one generator, coroutine or async generator.
#[pyclass(frozen, module = "weftline._native")]
pub(crate) struct Life {
    plan: Arc<Plan>,
    progress: Mutex<Progress>,
    /// What the function returned, until the first step.
    made: Mutex<Option<Py<PyAny>>>,
}

struct Progress {
    start: Option<u64>,
    steps: u64,
    busy: u64,
    ended: bool,
    args: Args,
}

/// How a life ended.
enum End<'a> {
    Returned,
    Raised(&'a PyErr),
    Closed,
}

/// Python code never runs while one of these is held, and every holder is short.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Life {
    /// Passes what a function returned to the driver of its plan.
    pub(crate) fn begin(made: Bound<'_, PyAny>, plan: Arc<Plan>, args: Args) -> PyResult<Bound<'_, PyAny>> {
        let py = made.py();
        let Some(driver) = plan.driver.as_ref().map(|driver| driver.clone_ref(py)) else { return Ok(made) };
        let progress = Mutex::new(Progress { start: None, steps: 0, busy: 0, ended: false, args });
        let life = Life { plan, progress, made: Mutex::new(Some(made.unbind())) };
        driver.into_bound(py).call1((life,))
    }

    fn add_step(&self, table: &Table, from: u64, to: u64) {
        let mut progress = hold(&self.progress);
        progress.start.get_or_insert(from);
        progress.steps += 1;
        progress.busy += to.saturating_sub(from);
        drop(progress);
        if self.plan.steps {
            self.plan.site.emit(table, EventKind::Span, from, to, 0, &[]);
        }
    }

    fn end(&self, py: Python<'_>, how: &End<'_>) {
        let Some(table) = locate::recording() else { return };
        let mut added = Args::new();
        if let End::Raised(error) = how {
            added.add_error(table, error.get_type(py).as_any());
        }
        let mut progress = hold(&self.progress);
        let Some(start) = progress.start.filter(|_| !progress.ended) else { return };
        progress.ended = true;
        let mut args = std::mem::replace(&mut progress.args, Args::new());
        args.put(STEPS.id(table), Argument::UInt(progress.steps));
        args.put(BUSY.id(table), Argument::Ticks(progress.busy));
        if let End::Closed = how {
            args.put(CLOSED.id(table), Argument::Bool(true));
        }
        drop(progress);
        args.append(&added);
        self.plan.site.emit(table, EventKind::AsyncSpan, start, front::now(table), front::new_id(), args.as_bytes());
    }
}

#[pymethods]
impl Life {
    /// What the function returned, until it is taken.
    #[getter]
    fn made(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        hold(&self.made).as_ref().map(|made| made.clone_ref(py))
    }

    /// What the function returned, to go through it; once.
    fn take(&self) -> Option<Py<PyAny>> {
        hold(&self.made).take()
    }

    /// Goes through `iterator`, whose end is the end of this life.
    fn through(this: &Bound<'_, Life>, iterator: Py<PyAny>) -> Steps {
        Steps { iterator, life: this.clone().unbind(), whole: true }
    }

    /// Goes through `iterator`, which is a part of this life.
    fn part(this: &Bound<'_, Life>, iterator: Py<PyAny>) -> Steps {
        Steps { iterator, life: this.clone().unbind(), whole: false }
    }

    /// The generator or coroutine has ended: by itself, by an exception, or closed early.
    #[pyo3(signature = (error=None, *, closed=false))]
    fn over(&self, py: Python<'_>, error: Option<Bound<'_, PyAny>>, closed: bool) {
        match error.map(PyErr::from_value) {
            Some(error) => self.end(py, &End::Raised(&error)),
            None if closed => self.end(py, &End::Closed),
            None => self.end(py, &End::Returned),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.made.try_lock().map_or(Ok(()), |made| visit.call(&*made))
    }

    fn __clear__(&self) {
        let made = hold(&self.made).take();
        drop(made);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        Python::attach(|py| {
            self.end(py, &End::Closed);
            // Never started: closing it here keeps Python from warning twice about a coroutine that was never awaited.
            if let Some(made) = hold(&self.made).take() {
                let _ = made.call_method0(py, "close");
            }
        });
    }
}

/// Passes on to a generator or to the iterator of an awaitable, and times each step.
#[pyclass(frozen, module = "weftline._native")]
pub(crate) struct Steps {
    iterator: Py<PyAny>,
    life: Py<Life>,
    /// Does the life end with it?
    whole: bool,
}

impl Steps {
    fn step<'py>(
        &self,
        py: Python<'py>,
        take: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(table) = locate::recording() else { return take(self.iterator.bind(py)) };
        let from = front::now(table);
        let result = take(self.iterator.bind(py));
        let to = front::now(table);
        let life = self.life.get();
        life.add_step(table, from, to);
        if let (Err(error), true) = (&result, self.whole) {
            let normal =
                error.is_instance_of::<PyStopIteration>(py) || error.is_instance_of::<PyStopAsyncIteration>(py);
            life.end(py, &if normal { End::Returned } else { End::Raised(error) });
        }
        result
    }
}

#[pymethods]
impl Steps {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __await__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, |iterator| iterator.call_method1(pyo3::intern!(py, "send"), (py.None(),)))
    }

    fn send<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, |iterator| iterator.call_method1(pyo3::intern!(py, "send"), (value,)))
    }

    #[pyo3(signature = (*error))]
    fn throw<'py>(&self, py: Python<'py>, error: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, |iterator| iterator.call_method1(pyo3::intern!(py, "throw"), error))
    }

    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let result = self.step(py, |iterator| iterator.call_method0(pyo3::intern!(py, "close")));
        if self.whole {
            self.life.get().end(py, &End::Closed);
        }
        result
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.iterator)?;
        visit.call(&self.life)
    }
}
