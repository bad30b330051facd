//! Errors of writing a report.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, ReportError>;

/// Why a report could not be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The system refused.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that is there is not one of ours to replace.
    #[error("{} exists and is not an SQLite database of a report; name another file", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A library refused.
    #[error("cannot write {}: {why}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it said.
        why: String,
    },
}

impl ReportError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ReportError {
        move |source| ReportError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn format<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> ReportError {
        move |error| ReportError::Format { path: path.to_owned(), why: error.to_string() }
    }
}
