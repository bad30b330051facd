//! Reports the progress of long work to a Python function: `progress(what, done, total)`, in bytes of trace files.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use weftline_index::progress::Progress;

/// Faster updates cannot be read, and every call waits for the interpreter's lock.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Default)]
struct State {
    what: String,
    total: u64,
    done: u64,
    reported: Option<Instant>,
    failed: Option<PyErr>,
}

/// Tells a function of Python.
pub(crate) struct Callback {
    function: Option<Py<PyAny>>,
    state: Mutex<State>,
    silent: AtomicUsize,
}

impl Callback {
    pub(crate) fn new(function: Option<Py<PyAny>>) -> Callback {
        Callback { function, state: Mutex::default(), silent: AtomicUsize::new(0) }
    }

    /// From now on nothing is reported. A reader of a stream may hold the interpreter's lock meanwhile, and would wait for ever.
    pub(crate) fn silence(&self) {
        self.silent.fetch_add(1, Ordering::SeqCst);
    }

    /// What [`Callback::silence`] began is over.
    pub(crate) fn speak(&self) {
        self.silent.fetch_sub(1, Ordering::SeqCst);
    }

    /// The exception that the function raised, if it did.
    pub(crate) fn failure(&self) -> Option<PyErr> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failed.take()
    }

    fn update(&self, always: bool, change: impl FnOnce(&mut State)) {
        let Some(function) = &self.function else { return };
        let reported = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut state);
            let due = always || state.reported.is_none_or(|reported| reported.elapsed() >= PAUSE);
            if !due || state.failed.is_some() || self.silent.load(Ordering::SeqCst) > 0 {
                return;
            }
            state.reported = Some(Instant::now());
            (state.what.clone(), state.done, state.total)
        };
        // The state is not locked here: the function may take long, and other threads go on.
        let called = Python::attach(|py| function.call1(py, reported).map(drop));
        if let Err(error) = called {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).failed = Some(error);
        }
    }
}

impl Progress for Callback {
    fn begin(&self, what: &str, bytes: u64) {
        self.update(true, |state| {
            what.clone_into(&mut state.what);
            (state.total, state.done) = (bytes, 0);
        });
    }

    fn advance(&self, bytes: u64) {
        self.update(false, |state| state.done += bytes);
    }

    fn end(&self) {
        self.update(true, |state| state.done = state.total);
    }
}
