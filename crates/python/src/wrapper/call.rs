//! Calls of a wrapped function: the hot path.

use std::ptr::null_mut;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use weftline::front::{self, EventKind, Table};
use weftline::locate;

use super::Wrapper;
use crate::plan::{Passed, Plan};
use crate::steps::Life;
use crate::values::Args;

/// How the interpreter passed the arguments of this call: an array of objects, the last ones of which have names.
#[cfg(Py_3_12)]
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    first: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
}

/// How the interpreter passed the arguments of this call: a tuple, and perhaps a dictionary.
#[cfg(not(Py_3_12))]
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    positions: *mut ffi::PyObject,
    names: *mut ffi::PyObject,
}

#[cfg(Py_3_12)]
pub(super) unsafe extern "C" fn vectorcall(
    callable: *mut ffi::PyObject,
    first: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with a complete object of our type and the arguments of a call.
    unsafe { record(callable, Arguments { first, count, names }) }
}

#[cfg(not(Py_3_12))]
pub(super) unsafe extern "C" fn call(
    callable: *mut ffi::PyObject,
    positions: *mut ffi::PyObject,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as for vectorcall.
    unsafe { record(callable, Arguments { positions, names }) }
}

impl Arguments {
    /// # Safety
    /// They must be those of the call under way, and `function` a callable object.
    #[cfg(Py_3_12)]
    #[inline(always)]
    unsafe fn call(self, function: *mut ffi::PyObject) -> *mut ffi::PyObject {
        // SAFETY: the caller's word.
        unsafe { ffi::PyObject_Vectorcall(function, self.first, self.count, self.names) }
    }

    /// # Safety
    /// They must be those of the call under way, and `function` a callable object.
    #[cfg(not(Py_3_12))]
    #[inline(always)]
    unsafe fn call(self, function: *mut ffi::PyObject) -> *mut ffi::PyObject {
        // SAFETY: the caller's word.
        unsafe { ffi::PyObject_Call(function, self.positions, self.names) }
    }
}

/// # Safety
/// `callable` must be a complete `Wrapper`, and `arguments` those of its call.
#[inline(always)]
unsafe fn record(callable: *mut ffi::PyObject, arguments: Arguments) -> *mut ffi::PyObject {
    // SAFETY: whoever calls an object keeps it for the call, and with it the function and the plan.
    unsafe {
        let wrapper = callable.cast::<Wrapper>();
        let function = (*wrapper).function;
        if function.is_null() {
            ffi::PyErr_SetString(ffi::PyExc_ReferenceError, c"the traced function no longer exists".as_ptr());
            return null_mut();
        }
        let Some(table) = locate::recording() else { return arguments.call(function) };
        if !(*wrapper).plain || table.wants_usage.load(std::sync::atomic::Ordering::Relaxed) != 0 {
            return record_more(table, (*wrapper).plan, function, arguments);
        }
        let plan = &*(*wrapper).plan;
        let start = front::now(table);
        let result = arguments.call(function);
        let end = front::now(table);
        if result.is_null() {
            record_failure(table, plan, start, end, &mut Args::new());
        } else {
            plan.site.emit(table, EventKind::Span, start, end, 0, &[]);
        }
        result
    }
}

/// A call that records more than its name and times.
///
/// # Safety
/// `plan` must be that of a wrapper, `function` a callable object and `arguments` those of the call under way.
#[inline(never)]
unsafe fn record_more(
    table: &'static Table,
    plan: *const Plan,
    function: *mut ffi::PyObject,
    arguments: Arguments,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls with the interpreter attached.
    let py = unsafe { Python::assume_attached() };
    let shared = plan;
    // SAFETY: the caller's word.
    let plan = unsafe { &*shared };
    // SAFETY: the caller's word.
    let mut args = plan.capture(py, table, &unsafe { Bound::from_borrowed_ptr(py, function) }, &arguments);
    if plan.driver.is_some() {
        // SAFETY: the caller's word; the result is null or a new reference.
        let made = unsafe { Bound::from_owned_ptr_or_opt(py, arguments.call(function)) };
        let Some(made) = made else { return null_mut() };
        // SAFETY: the plan came from an `Arc` of which the wrapper holds a share.
        let plan = unsafe {
            Arc::increment_strong_count(shared);
            Arc::from_raw(shared)
        };
        return match Life::begin(made, plan, args) {
            Ok(driven) => driven.into_ptr(),
            Err(error) => {
                error.restore(py);
                null_mut()
            }
        };
    }
    let id = plan.async_id();
    let (before, after) = match plan.kind {
        EventKind::Begin | EventKind::AsyncBegin => (true, false),
        EventKind::End | EventKind::AsyncEnd => (false, true),
        _ => (false, false),
    };
    let usage = plan.usage(table).filter(|_| !before);
    let start = front::now(table);
    if before {
        plan.site.emit(table, plan.kind, start, start, id, args.as_bytes());
    }
    // SAFETY: the caller's word.
    let result = unsafe { arguments.call(function) };
    let end = front::now(table);
    if before {
        return result;
    }
    if let Some(usage) = usage {
        args.put_usage(table, usage);
    }
    if result.is_null() {
        // SAFETY: the call failed, so an exception is set.
        unsafe { add_failure(table, &mut args) };
    }
    plan.site.emit(table, plan.kind, if after { end } else { start }, end, id, args.as_bytes());
    result
}

/// A plain call that raised.
///
/// # Safety
/// An exception must be set, and the interpreter attached.
#[cold]
unsafe fn record_failure(table: &Table, plan: &Plan, start: u64, end: u64, args: &mut Args) {
    // SAFETY: the caller's word.
    unsafe { add_failure(table, args) };
    plan.site.emit(table, EventKind::Span, start, end, 0, args.as_bytes());
}

/// Tells the type of the exception that is set, and leaves it set.
///
/// # Safety
/// The interpreter must be attached.
#[cold]
unsafe fn add_failure(table: &Table, args: &mut Args) {
    // SAFETY: the caller's word.
    let py = unsafe { Python::assume_attached() };
    // The exception is taken out while its type is looked at, and put back.
    if let Some(error) = PyErr::take(py) {
        args.add_error(table, error.get_type(py).as_any());
        error.restore(py);
    }
}

#[cfg(Py_3_12)]
impl<'py> Passed<'py> for Arguments {
    fn positions(&self) -> usize {
        self.count & !ffi::PY_VECTORCALL_ARGUMENTS_OFFSET
    }

    fn at(&self, index: usize) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the array holds so many objects for the length of the call, with the interpreter attached.
        (index < self.positions())
            .then(|| unsafe { Bound::from_borrowed_ptr(Python::assume_attached(), *self.first.add(index)) })
    }

    fn named(&self, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
        let index = (0..self.names()).find(|index| {
            // SAFETY: the names are a tuple of texts.
            unsafe {
                let known = ffi::PyTuple_GetItem(self.names, *index as ffi::Py_ssize_t);
                known == name.as_ptr() || ffi::PyUnicode_Compare(known, name.as_ptr()) == 0
            }
        })?;
        Some(self.named_at(name.py(), index))
    }

    fn all_named(&self) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        // SAFETY: CPython calls with the interpreter attached.
        let py = unsafe { Python::assume_attached() };
        let name = |index: usize| {
            // SAFETY: the names are a tuple of texts.
            unsafe { Bound::from_borrowed_ptr(py, ffi::PyTuple_GetItem(self.names, index as ffi::Py_ssize_t)) }
        };
        (0..self.names()).map(|index| (name(index), self.named_at(py, index))).collect()
    }
}

#[cfg(Py_3_12)]
impl Arguments {
    fn names(&self) -> usize {
        // SAFETY: null or a tuple.
        if self.names.is_null() { 0 } else { (unsafe { ffi::PyTuple_Size(self.names) }) as usize }
    }

    fn named_at<'py>(&self, py: Python<'py>, index: usize) -> Bound<'py, PyAny> {
        // SAFETY: the values of the names follow those that have a position.
        unsafe { Bound::from_borrowed_ptr(py, *self.first.add(self.positions() + index)) }
    }
}

#[cfg(not(Py_3_12))]
impl<'py> Passed<'py> for Arguments {
    fn positions(&self) -> usize {
        // SAFETY: a tuple.
        (unsafe { ffi::PyTuple_Size(self.positions) }) as usize
    }

    fn at(&self, index: usize) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the tuple has so many items, and the interpreter is attached.
        (index < self.positions()).then(|| unsafe {
            let item = ffi::PyTuple_GetItem(self.positions, index as ffi::Py_ssize_t);
            Bound::from_borrowed_ptr(Python::assume_attached(), item)
        })
    }

    fn named(&self, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
        self.dictionary().and_then(|names| names.get_item(name).ok().flatten())
    }

    fn all_named(&self) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let items = self.dictionary().map(|names| names.items());
        items.into_iter().flatten().filter_map(|item| item.extract().ok()).collect()
    }
}

#[cfg(not(Py_3_12))]
impl Arguments {
    fn dictionary<'py>(&self) -> Option<Bound<'py, pyo3::types::PyDict>> {
        // SAFETY: null or a dictionary with texts as keys, for the length of the call, with the interpreter attached.
        unsafe {
            let names = Bound::from_borrowed_ptr_or_opt(Python::assume_attached(), self.names)?;
            Some(names.cast_into_unchecked())
        }
    }
}
