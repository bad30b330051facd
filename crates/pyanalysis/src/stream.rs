//! A stream of batches through Arrow's PyCapsule interface.

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failure;

/// Something that can be read, from its beginning, as often as one likes.
pub(crate) trait Source: Send + Sync {
    fn schema(&self) -> SchemaRef;
    fn open(&self) -> PyResult<Box<dyn RecordBatchReader + Send>>;
}

/// A result that is read batch by batch; pyarrow, pandas, Polars and DuckDB accept it. It can be read several times.
#[pyclass(frozen, module = "weftline._analysis")]
pub(crate) struct Stream {
    source: Box<dyn Source>,
}

impl Stream {
    pub(crate) fn new(source: impl Source + 'static) -> Stream {
        Stream { source: Box::new(source) }
    }
}

#[pymethods]
impl Stream {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.source.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Arrow's C stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Consumers may ask for another form; the protocol lets a producer keep its own.
        drop(requested_schema);
        stream_capsule(py, py.detach(|| self.source.open())?)
    }

    /// Arrow's C schema interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.source.schema())
    }

    /// A `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_arrow(slf.as_any())
    }

    /// A `pandas.DataFrame`, made by pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_pandas(slf.as_any())
    }

    /// A `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        to_polars(slf.as_any())
    }

    fn __repr__(&self) -> String {
        format!("<weftline stream of {}>", self.columns().join(", "))
    }
}

/// A reader in a capsule. The consumer that takes the stream releases it; else the capsule's destructor does.
pub(crate) fn stream_capsule(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| failure::of_arrow(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

pub(crate) fn to_arrow<'py>(any: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    any.py().import("pyarrow")?.call_method1("table", (any,))
}

pub(crate) fn to_pandas<'py>(any: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    to_arrow(any)?.call_method0("to_pandas")
}

pub(crate) fn to_polars<'py>(any: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    any.py().import("polars")?.call_method1("DataFrame", (any,))
}
