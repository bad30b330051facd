//! A table of an analysis: a view, or a section of a report.

use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use weftline_analysis::statistics::seconds;
use weftline_analysis::table::ColumnValues;
use weftline_analysis::units::counted;

use crate::failure;
use crate::stream::{schema_capsule, stream_capsule, to_arrow, to_pandas, to_polars};

/// A table in memory: columns by name, values may be `None`. pyarrow, pandas, Polars and DuckDB take it as it is.
#[pyclass(frozen, module = "weftline._analysis")]
pub(crate) struct Table {
    table: weftline_analysis::Table,
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(table: weftline_analysis::Table) -> PyResult<Table> {
        let batch = weftline_report::parquet::batch(&table).map_err(|error| failure::of_arrow(&error))?;
        Ok(Table { table, batch })
    }

    fn values<'py>(&self, py: Python<'py>, values: &ColumnValues) -> PyResult<Bound<'py, PyList>> {
        match values {
            ColumnValues::Int(values) => PyList::new(py, values),
            ColumnValues::Time(values) => PyList::new(py, values.iter().map(|ns| ns.map(|ns| seconds(ns.into())))),
            ColumnValues::Float(values) => PyList::new(py, values),
            ColumnValues::Text(values) => PyList::new(py, values),
            ColumnValues::Measured(values) => {
                PyList::new(py, values.iter().map(|value| value.map(|(number, _)| number)))
            }
            ColumnValues::Curve(values) => {
                PyList::new(py, values.iter().map(|curve| curve.as_ref().map(|curve| curve.points.clone())))
            }
        }
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.table.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// What each column measures: `s`, `ns`, `bytes`, `bytes/s`, `1/s`, `count`, `share`, `percent`, `id`, `number` …, by name.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for column in &self.table.columns {
            units.set_item(&column.name, column.unit.name())?;
        }
        Ok(units)
    }

    fn __len__(&self) -> usize {
        self.table.rows
    }

    fn __contains__(&self, column: &str) -> bool {
        self.table.column(column).is_some()
    }

    /// The values of a column.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.table.column(column).ok_or_else(|| {
            PyKeyError::new_err(format!(
                "there is no column {column:?}; .columns lists the {}",
                self.table.columns.len()
            ))
        })?;
        self.values(py, &column.values)
    }

    /// The rows, each as a dictionary.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let columns = self.table.columns.iter().map(|column| Ok((&column.name, self.values(py, &column.values)?)));
        let columns: Vec<_> = columns.collect::<PyResult<_>>()?;
        let rows = PyList::empty(py);
        for row in 0..self.table.rows {
            let made = PyDict::new(py);
            for (name, values) in &columns {
                made.set_item(name, values.get_item(row)?)?;
            }
            rows.append(made)?;
        }
        Ok(rows)
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
        let schema = self.batch.schema();
        stream_capsule(py, Box::new(RecordBatchIterator::new([Ok(self.batch.clone())], schema)))
    }

    /// Arrow's C schema interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.batch.schema())
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
        let (rows, columns) = (self.table.rows as u64, self.table.columns.len() as u64);
        format!("<weftline table: {}, {}>", counted(rows, "row", "rows"), counted(columns, "column", "columns"))
    }
}
