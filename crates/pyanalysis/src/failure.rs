//! Errors as exceptions of Python, each with the one sentence that the command line would print.

use std::io::ErrorKind;

use arrow_schema::ArrowError;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyPermissionError, PyValueError};
use pyo3::prelude::*;
use weftline_analysis::AnalysisError;
use weftline_analysis::condition::ConditionError;
use weftline_index::IndexError;

pyo3::create_exception!(weftline, Error, PyException, "A run cannot be analysed; the message says why and what to do.");

pub(crate) fn of_index(error: &IndexError) -> PyErr {
    let text = error.to_string();
    match error {
        IndexError::Io { source, .. } if source.kind() == ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
        IndexError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            PyPermissionError::new_err(text)
        }
        IndexError::NoGroup { .. } | IndexError::BadGlob { .. } => PyValueError::new_err(text),
        _ => Error::new_err(text),
    }
}

pub(crate) fn of_analysis(error: &AnalysisError) -> PyErr {
    match error {
        AnalysisError::Index(error) => of_index(error),
        AnalysisError::TooManyBuckets { .. } | AnalysisError::Unknown { .. } => {
            PyValueError::new_err(error.to_string())
        }
        _ => Error::new_err(error.to_string()),
    }
}

pub(crate) fn of_condition(error: &ConditionError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn of_arrow(error: &ArrowError) -> PyErr {
    Error::new_err(error.to_string())
}
