//! What the events of a decorated function record: made once by the decorator, used by every call.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use weftline::front::{self, EventKind, Table, Usage};

use crate::name::{Name, Site};
use crate::values::Args;

/// How an argument may be passed to a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    PositionOnly,
    Either,
    KeywordOnly,
}

/// A parameter of the function.
pub(crate) struct Parameter {
    passing: Passing,
    wanted: bool,
    key: Name,
    name: Py<PyString>,
}

/// Which arguments are recorded.
#[derive(Default)]
pub(crate) struct Capture {
    parameters: Vec<Parameter>,
    /// How many of them take positions.
    positions: usize,
    /// Key of the arguments that `*args` takes.
    rest: Option<Name>,
    /// Are those that `**kwargs` takes recorded?
    others: bool,
}

/// A parameter as the decorator gives it: name, how it is passed (0 by position, 1 either way, 2 by keyword), whether it is recorded.
pub(crate) type Given<'py> = (Bound<'py, PyString>, u8, bool);

impl Capture {
    pub(crate) fn new(parameters: Vec<Given<'_>>, rest: Option<String>, others: bool) -> PyResult<Capture> {
        let parameters = parameters
            .into_iter()
            .map(|(name, passing, wanted)| {
                let passing =
                    [Passing::PositionOnly, Passing::Either, Passing::KeywordOnly][usize::from(passing.min(2))];
                Ok(Parameter { passing, wanted, key: Name::new(name.to_cow()?.into_owned()), name: name.unbind() })
            })
            .collect::<PyResult<Vec<_>>>()?;
        let positions = parameters.iter().filter(|parameter| parameter.passing != Passing::KeywordOnly).count();
        Ok(Capture { parameters, positions, rest: rest.map(Name::new), others })
    }

    fn wants_anything(&self) -> bool {
        self.rest.is_some() || self.others || self.parameters.iter().any(|parameter| parameter.wanted)
    }
}

/// The arguments of one call, however the interpreter passes them.
pub(crate) trait Passed<'py> {
    /// How many have a position.
    fn positions(&self) -> usize;
    /// One of those.
    fn at(&self, index: usize) -> Option<Bound<'py, PyAny>>;
    /// One that has a name.
    fn named(&self, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>>;
    /// All that have.
    fn all_named(&self) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;
}

/// What every call of a decorated function records.
pub(crate) struct Plan {
    pub(crate) site: Site,
    pub(crate) kind: EventKind,
    /// Id of async events; each call makes its own where there is none.
    pub(crate) id: Option<u64>,
    pub(crate) usage: bool,
    pub(crate) capture: Option<Capture>,
    /// EventHead with every event.
    pub(crate) extra: Option<Py<PyDict>>,
    /// Makes a generator or coroutine out of [`crate::steps::Steps`]; for functions that return such a thing.
    pub(crate) driver: Option<Py<PyAny>>,
    /// Is every step of it a span by itself?
    pub(crate) steps: bool,
}

impl Plan {
    pub(crate) fn new(site: Site, kind: EventKind) -> Plan {
        Plan { site, kind, id: None, usage: false, capture: None, extra: None, driver: None, steps: false }
    }

    /// Is a span with a name and two times all there is to a call? Then the fast path will do.
    pub(crate) fn is_plain(&self) -> bool {
        self.kind == EventKind::Span
            && !self.usage
            && self.extra.is_none()
            && self.driver.is_none()
            && !self.capture.as_ref().is_some_and(Capture::wants_anything)
    }

    /// A reading at the start, if this function's events or all events want it.
    pub(crate) fn usage(&self, table: &Table) -> Option<Usage> {
        if self.usage { Some(front::usage(table)) } else { front::wanted_usage(table) }
    }

    pub(crate) fn async_id(&self) -> u64 {
        match (self.kind, self.id) {
            (_, Some(id)) => id,
            (EventKind::AsyncSpan, None) => front::new_id(),
            _ => 0,
        }
    }

    /// The arguments that a call's events tell, as they are before the call.
    pub(crate) fn capture<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        function: &Bound<'py, PyAny>,
        passed: &impl Passed<'py>,
    ) -> Args {
        let mut args = Args::new();
        if let Some(extra) = &self.extra {
            args.add_all(table, extra.bind(py));
        }
        if let Some(capture) = &self.capture {
            capture.add(py, table, function, passed, &mut args);
        }
        args
    }
}

impl Capture {
    fn add<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        function: &Bound<'py, PyAny>,
        passed: &impl Passed<'py>,
        args: &mut Args,
    ) {
        for (index, parameter) in self.parameters.iter().enumerate().filter(|(_, parameter)| parameter.wanted) {
            let by_position = (parameter.passing != Passing::KeywordOnly).then(|| passed.at(index)).flatten();
            let value = by_position
                .or_else(|| {
                    let name = (parameter.passing != Passing::PositionOnly).then(|| parameter.name.bind(py));
                    name.and_then(|name| passed.named(name))
                })
                .or_else(|| self.default(py, function, index));
            if let Some(value) = value {
                args.add(parameter.key.id(table), &value);
            }
        }
        if let Some(rest) = &self.rest {
            let values: Vec<_> = (self.positions..passed.positions()).filter_map(|index| passed.at(index)).collect();
            if let Ok(values) = PyTuple::new(py, values)
                && !values.is_empty()
            {
                args.add(rest.id(table), values.as_any());
            }
        }
        if self.others {
            for (name, value) in passed.all_named() {
                if !self.has_keyword(&name) {
                    args.add_named(table, &name, &value);
                }
            }
        }
    }

    fn has_keyword(&self, name: &Bound<'_, PyAny>) -> bool {
        let Ok(name) = name.cast::<PyString>() else { return false };
        self.parameters
            .iter()
            .any(|parameter| parameter.passing != Passing::PositionOnly && name == parameter.key.as_str())
    }

    /// What a parameter is when nothing was passed, as the function says at the moment.
    fn default<'py>(&self, py: Python<'py>, function: &Bound<'py, PyAny>, index: usize) -> Option<Bound<'py, PyAny>> {
        let parameter = &self.parameters[index];
        if parameter.passing == Passing::KeywordOnly {
            let defaults = function.getattr("__kwdefaults__").ok()?;
            return defaults.cast_exact::<PyDict>().ok()?.get_item(parameter.name.bind(py)).ok()?;
        }
        let defaults = function.getattr("__defaults__").ok()?;
        let defaults = defaults.cast_exact::<PyTuple>().ok()?;
        defaults.get_item((index + defaults.len()).checked_sub(self.positions)?).ok()
    }
}
