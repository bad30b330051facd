//! `for item in trace.iter(items):` — one span for getting each item, and one for what the loop's body does with it.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use weftline::front::{self, Argument, EventKind, Table};
use weftline::locate;

use crate::name::{Name, Site};
use crate::values::Args;

/// An iterator whose items are recorded.
#[pyclass(frozen, weakref, module = "weftline._native")]
pub(crate) struct Items {
    iterator: Py<PyIterator>,
    fetch: Site,
    body: Site,
    /// Key of the item's number.
    count: Name,
    extra: Option<Py<PyDict>>,
    next: AtomicU64,
    /// When the body of the newest item began; 0 when none is open.
    body_start: AtomicU64,
}

impl Items {
    fn tell(&self, py: Python<'_>, table: &Table, site: &Site, times: (u64, u64), index: u64, error: Option<&PyErr>) {
        let mut args = Args::new();
        args.put(self.count.id(table), Argument::UInt(index));
        if let Some(extra) = &self.extra {
            args.add_all(table, extra.bind(py));
        }
        if let Some(error) = error {
            args.add_error(table, error.get_type(py).as_any());
        }
        site.emit(table, EventKind::Span, times.0, times.1, 0, args.as_bytes());
    }

    /// The body of the newest item is over.
    #[inline]
    fn end_body(&self, py: Python<'_>, table: &Table, now: u64) {
        let start = self.body_start.swap(0, Ordering::Relaxed);
        if start != 0 {
            let index = self.next.load(Ordering::Relaxed).wrapping_sub(1);
            self.tell(py, table, &self.body, (start, now), index, None);
        }
    }
}

#[pymethods]
impl Items {
    #[new]
    #[pyo3(signature = (items, name, category, *, body=None, count="index", first=0, extra=None))]
    fn new(
        items: &Bound<'_, PyAny>,
        name: String,
        category: String,
        body: Option<String>,
        count: &str,
        first: u64,
        extra: Option<Py<PyDict>>,
    ) -> PyResult<Items> {
        let body = body.unwrap_or_else(|| format!("{name}.body"));
        Ok(Items {
            iterator: items.try_iter()?.unbind(),
            body: Site::new(body, category.clone()),
            fetch: Site::new(name, category),
            count: Name::new(count.to_owned()),
            extra,
            next: AtomicU64::new(first),
            body_start: AtomicU64::new(0),
        })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut iterator = self.iterator.bind(py).clone();
        let Some(table) = locate::recording() else {
            self.body_start.store(0, Ordering::Relaxed);
            self.next.fetch_add(1, Ordering::Relaxed);
            return iterator.next().transpose();
        };
        let start = front::now(table);
        self.end_body(py, table, start);
        let item = iterator.next();
        let end = front::now(table);
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        match &item {
            Some(Ok(_)) => {
                self.tell(py, table, &self.fetch, (start, end), index, None);
                self.body_start.store(front::now(table), Ordering::Relaxed);
            }
            Some(Err(error)) => self.tell(py, table, &self.fetch, (start, end), index, Some(error)),
            None => {}
        }
        item.transpose()
    }

    fn __length_hint__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let hint = self.iterator.bind(py).getattr("__length_hint__").and_then(|hint| hint.call0());
        Ok(hint.map_or_else(|_| py.NotImplemented(), Bound::unbind))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.iterator)?;
        visit.call(&self.extra)
    }
}

impl Drop for Items {
    /// A loop that was left early ends the body of its last item when it lets go of the iterator.
    fn drop(&mut self) {
        if self.body_start.load(Ordering::Relaxed) != 0
            && let Some(table) = locate::recording()
        {
            Python::attach(|py| self.end_body(py, table, front::now(table)));
        }
    }
}
