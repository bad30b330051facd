//! A report for notebooks and scripts.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;
use weftline_analysis::units::counted;
use weftline_report::{html, json, text};

use crate::failure::Error;
use crate::table::Table;

/// Columns of the text form.
const WIDTH: usize = 100;

/// What `weft report` shows of a run.
#[pyclass(frozen, module = "weftline._analysis")]
pub(crate) struct Report {
    report: weftline_report::Report,
}

impl Report {
    pub(crate) fn new(report: weftline_report::Report) -> Report {
        Report { report }
    }
}

#[pymethods]
impl Report {
    /// What was analysed.
    #[getter]
    fn title(&self) -> &str {
        &self.report.title
    }

    /// Properties of the whole job by name.
    #[getter]
    fn job<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let job = PyDict::new(py);
        for property in &self.report.properties {
            job.set_item(property.name, to_python(py, &property.value)?)?;
        }
        Ok(job)
    }

    /// The tables by name.
    #[getter]
    fn sections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sections = PyDict::new(py);
        for section in &self.report.sections {
            sections.set_item(&section.key, Table::new(section.table.clone())?)?;
        }
        Ok(sections)
    }

    /// What is wrong, the worst first.
    #[getter]
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let findings = PyList::empty(py);
        for finding in &self.report.findings {
            let value = serde_json::to_value(finding).map_err(|error| Error::new_err(error.to_string()))?;
            findings.append(to_python(py, &value)?)?;
        }
        Ok(findings)
    }

    /// Rules that could not be judged, and why.
    #[getter]
    fn skipped(&self) -> Vec<String> {
        self.report.skipped.clone()
    }

    /// As `weft report` prints it.
    #[getter]
    fn text(&self) -> String {
        text::text(&self.report, WIDTH, &text::Plain)
    }

    /// A self-contained HTML page.
    #[getter]
    fn html(&self) -> String {
        html::page(&self.report)
    }

    /// As `weft report --json` prints it.
    fn to_json(&self) -> String {
        json::value(&self.report).to_string()
    }

    /// The page in a frame: its styles are not those of the notebook.
    fn _repr_html_(&self) -> String {
        let page = self.html().replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe sandbox srcdoc=\"{page}\" style=\"width:100%;height:40rem;border:0\"></iframe>")
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        let findings = counted(self.report.findings.len() as u64, "finding", "findings");
        format!("<weftline report of {}: {findings}>", self.report.title)
    }
}

/// JSON as objects of Python.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any(),
            _ => number.as_f64().into_pyobject(py)?,
        },
        Value::Array(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(to_python(py, value)?)?;
            }
            list.into_any()
        }
        Value::Object(fields) => {
            let made = PyDict::new(py);
            for (name, value) in fields {
                made.set_item(name, to_python(py, value)?)?;
            }
            made.into_any()
        }
    })
}
