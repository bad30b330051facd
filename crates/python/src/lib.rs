//! `weftline._native`: passes annotations of Python programs to the process's one recorder.
//!
//! Users see the Python package around it (`python/weftline`); this crate has the parts that must be fast or call the recorder:
//!
//! - `wrapper`: the callable that `@trace` puts in place of a function; the hot path. `plan` holds what its events record.
//! - `span`, `items`, `steps`: context manager, iterator, and the steps of generators and coroutines.
//! - `events`: events by hand, for the drop-in modules.
//! - `session`: recording without `weft run`.
//! - `values`: Python objects as arguments of events; `name`: strings and their ids.
//!
//! Tracing never raises an exception in the user's code. This library contains no recorder: it finds that of libweft_preload.so
//! in the process, or loads it.
#![deny(unsafe_code)]

mod events;
mod items;
mod name;
mod plan;
mod session;
mod span;
mod steps;
mod values;
mod wrapper;

/// `weftline._native`.
#[pyo3::pymodule(gil_used = true)]
mod _native {
    #[pymodule_export]
    use crate::events::{Usage, ask_gpu, counter, emit, id_of, instant, is_on, meta, new_id, now, set_usage, usage};
    #[pymodule_export]
    use crate::items::Items;
    #[pymodule_export]
    use crate::session::{Error, begin, dftracer_options, finish, perfflow_options, set_home};
    #[pymodule_export]
    use crate::span::Span;
    #[pymodule_export]
    use crate::steps::{Life, Steps};
    #[pymodule_export]
    use crate::wrapper::traced;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::wrapper::refuse_subinterpreters()?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        crate::events::add_kinds(module)?;
        crate::wrapper::add_types(module)
    }
}
