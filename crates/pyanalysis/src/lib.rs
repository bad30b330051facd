//! `weftline._analysis`: runs, views, reports and events for Python.
//!
//! The Python module around it (`weftline/analysis.py` in `crates/python`) is what users see; here is what needs the index and the kernels:
//!
//! - `run`: an opened run and the questions that can be put to it.
//! - `report`, `table`: answers that are small: they lie in memory.
//! - `stream`: answers that may be large, handed on batch by batch; `events` makes them of the index, `sql` of what `weft-sql` prints.
//! - `progress`, `times`, `failure`: how far work is, lengths of time, errors, as Python knows them.
//!
//! All work is done without the interpreter's lock. Tables and streams leave through Arrow's PyCapsule interface, so that pyarrow, pandas,
//! Polars and DuckDB take the columns as they lie in memory.
#![forbid(unsafe_code)]

mod events;
mod failure;
mod progress;
mod report;
mod run;
mod sql;
mod stream;
mod table;
mod times;

/// `weftline._analysis`.
#[pyo3::pymodule(gil_used = true)]
mod _analysis {
    #[pymodule_export]
    use crate::{
        events::event_columns,
        failure::Error,
        report::Report,
        run::{Run, presets, views},
        stream::Stream,
        table::Table,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}
