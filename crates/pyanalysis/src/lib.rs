//! `weftline._analysis`: runs, views, reports and events for Python.
//!
//! Users see the Python module around it (`weftline/analysis.py` in `crates/python`); this crate has the parts that need the index and the analysis:
//!
//! - `run`: an opened run and its queries.
//! - `report`, `table`: small results, held in memory.
//! - `stream`: large results, passed on batch by batch; `events` makes them from the index, `sql` from the output of `weft-sql`.
//! - `progress`, `times`, `failure`: progress reports, durations and errors in Python's types.
//!
//! All work releases the interpreter's lock. Tables and streams use Arrow's PyCapsule interface, so that pyarrow, pandas,
//! Polars and DuckDB read the columns without copies.
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
