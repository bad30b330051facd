//! Python objects as arguments of events.
//!
//! Numbers, strings and `None` are read without running any code. `weftline._values.describe` describes other objects: it runs
//! only `__repr__` of the user's code, limits the length, and never raises.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString, PyTuple};
use weftline::front::{self, Argument, MAX_PAYLOAD, Payload, Table, Usage};

use crate::name::Name;

/// Bytes of arguments that are kept on the stack; more are kept in a box. A recursive function has many such frames.
const SMALL: usize = 104;
/// Characters that a text keeps.
const TEXT: usize = 512;

static ERROR: Name = Name::fixed("error");

/// The arguments of one event in the making.
pub(crate) struct Args {
    small: Payload<SMALL>,
    large: Option<Box<Payload<MAX_PAYLOAD>>>,
}

impl Args {
    pub(crate) const fn new() -> Args {
        Args { small: Payload::new(), large: None }
    }

    /// Adds a value; what does not fit any more is left out, and texts are cut.
    #[inline]
    pub(crate) fn put(&mut self, key: u32, argument: Argument<'_>) {
        match &mut self.large {
            None if self.small.add_whole(key, argument) => {}
            Some(large) => {
                large.add(key, argument);
            }
            None => self.grow(key, argument),
        }
    }

    #[cold]
    fn grow(&mut self, key: u32, argument: Argument<'_>) {
        let mut large = Box::new(Payload::new());
        large.append(&self.small);
        large.add(key, argument);
        self.large = Some(large);
    }

    /// Adds what others tell.
    pub(crate) fn append(&mut self, other: &Args) {
        let large = self.large.get_or_insert_with(|| {
            let mut large = Box::new(Payload::new());
            large.append(&self.small);
            large
        });
        match &other.large {
            Some(more) => large.append(more),
            None => large.append(&other.small),
        };
    }

    pub(crate) fn put_usage(&mut self, table: &Table, from: Usage) {
        front::used_since(table, from, |key, value| self.put(key, value));
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.large {
            None => self.small.as_bytes(),
            Some(large) => large.as_bytes(),
        }
    }

    /// Adds a Python object.
    #[inline]
    pub(crate) fn add(&mut self, key: u32, value: &Bound<'_, PyAny>) {
        if let Ok(number) = value.cast_exact::<PyInt>() {
            if let Ok(number) = number.extract::<i64>() {
                return self.put(key, Argument::Int(number));
            }
        } else if let Ok(text) = value.cast_exact::<PyString>() {
            if text.code_point_len().is_ok_and(|length| length <= TEXT)
                && let Ok(text) = text.to_cow()
            {
                return self.put(key, Argument::Text(text.as_bytes()));
            }
        } else if let Ok(number) = value.cast_exact::<PyFloat>() {
            return self.put(key, Argument::Float(number.value()));
        } else if let Ok(truth) = value.cast_exact::<PyBool>() {
            return self.put(key, Argument::Bool(truth.is_true()));
        } else if value.is_none() {
            return self.put(key, Argument::Null);
        }
        self.add_described(key, value);
    }

    #[cold]
    fn add_described(&mut self, key: u32, value: &Bound<'_, PyAny>) {
        let described = describe(value);
        match &described {
            Ok(described) => self.add_description(key, described),
            Err(error) => {
                if error.is_instance_of::<PyKeyboardInterrupt>(value.py()) {
                    interrupt_again(value.py());
                }
                self.put(key, Argument::Null);
            }
        }
    }

    /// Adds what `describe` made: a number, a text, bytes of a text, or a text that was cut with its whole length.
    fn add_description(&mut self, key: u32, described: &Bound<'_, PyAny>) {
        if let Ok(truth) = described.cast_exact::<PyBool>() {
            self.put(key, Argument::Bool(truth.is_true()));
        } else if let Ok((text, whole)) = described.extract::<(Bound<'_, PyBytes>, u32)>() {
            self.put(key, Argument::CutText(text.as_bytes(), whole));
        } else if let Ok(text) = described.cast_exact::<PyBytes>() {
            self.put(key, Argument::Text(text.as_bytes()));
        } else if let Ok(number) = described.cast_exact::<PyFloat>() {
            self.put(key, Argument::Float(number.value()));
        } else if let Ok(number) = described.extract::<i64>() {
            self.put(key, Argument::Int(number));
        } else if let Ok(number) = described.extract::<u64>() {
            self.put(key, Argument::UInt(number));
        } else {
            self.put(key, Argument::Null);
        }
    }

    /// Adds all of a dictionary. It is copied first: describing a value may change it.
    pub(crate) fn add_all(&mut self, table: &Table, values: &Bound<'_, PyDict>) {
        for item in values.items() {
            if let Ok(pair) = item.cast_exact::<PyTuple>()
                && let (Ok(key), Ok(value)) = (pair.get_item(0), pair.get_item(1))
            {
                self.add_named(table, &key, &value);
            }
        }
    }

    /// Adds a value whose key is a Python object too.
    pub(crate) fn add_named(&mut self, table: &Table, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
        self.add(text_id(table, key), value);
    }

    /// Adds the name of an exception's type.
    #[cold]
    pub(crate) fn add_error(&mut self, table: &Table, kind: &Bound<'_, PyAny>) {
        if let Ok(name) = kind.getattr("__name__") {
            self.add(ERROR.id(table), &name);
        }
    }
}

/// Name id of a text that is not kept; what is no text is described.
pub(crate) fn text_id(table: &Table, text: &Bound<'_, PyAny>) -> u32 {
    if let Ok(text) = text.cast::<PyString>()
        && let Ok(text) = text.to_cow()
    {
        return if text.is_empty() { 0 } else { front::intern(table, text.as_bytes()) };
    }
    let Ok(described) = describe(text) else { return front::intern(table, b"?") };
    match described.cast::<PyBytes>() {
        Ok(described) => front::intern(table, described.as_bytes()),
        // A number, or nothing.
        Err(_) => front::intern(table, described.to_string().as_bytes()),
    }
}

fn describe<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static DESCRIBE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    DESCRIBE.import(value.py(), "weftline._values", "describe")?.call1((value,))
}

/// The user pressed Ctrl-C while a value was described: that is for the program, a little later.
fn interrupt_again(py: Python<'_>) {
    // Where this fails there is no main thread to interrupt any more.
    let _ = py.import("_thread").and_then(|threads| threads.call_method0("interrupt_main"));
}
