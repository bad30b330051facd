//! Errors of a collector as a whole. A single kernel file that cannot be read is not an error.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a collector cannot work.
#[derive(Debug, Error)]
pub enum CollectError {
    /// The system refused a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused something that has no name.
    #[error("cannot set up {what}: {source}")]
    System {
        /// What was wanted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The manifest could not be written.
    #[error(transparent)]
    Manifest(#[from] weftline_format::manifest::ManifestError),
    /// The file of samples could not be looked at.
    #[error(transparent)]
    Tail(#[from] weftline_format::member::TailError),
    /// The interval is nothing, or too short to be kept.
    #[error("an interval of {0:?} is too short: 1 ms is the shortest")]
    Interval(std::time::Duration),
    /// The process that was to be followed is not there.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// No process at all could be followed.
    #[error("a limit of {0} open files is too low to follow any process; raise it (`ulimit -n`)")]
    NoRoom(u64),
    /// The control group that was to be followed is not there.
    #[error("there is no control group {}", .0.display())]
    NoGroup(PathBuf),
}

impl CollectError {
    pub(crate) fn io(path: &Path, source: impl Into<io::Error>) -> CollectError {
        CollectError::Io { path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> CollectError {
        move |source| CollectError::System { what, source: source.into() }
    }
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, CollectError>;
