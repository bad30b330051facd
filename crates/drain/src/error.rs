//! Errors, each with the path where it occurred.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use weftline_format::manifest::ManifestError;
use weftline_format::member::TailError;

/// Why a live directory could not be made, drained or recovered.
#[derive(Debug, Error)]
pub enum DrainError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No directory on a local file system could be used for shared memory.
    #[error("no local directory can hold shared memory: {}", tried.join("; "))]
    NoLocalDirectory {
        /// What was tried, each with the reason.
        tried: Vec<String>,
    },
    /// Arenas have taken all the memory that they may.
    #[error(
        "{}: arenas have reached their memory limit (2 GiB, a sixteenth of the free memory of host and control group, half of the free space there)",
        path.display()
    )]
    NoRoom {
        /// The live directory.
        path: PathBuf,
    },
    /// Another process drains the same live directory.
    #[error("{}: another process drains this directory", path.display())]
    Locked {
        /// The live directory.
        path: PathBuf,
    },
    /// A file of shared memory is not what this version makes.
    #[error("{}: {what}", path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A pattern of `--include` or `--exclude` is not one.
    #[error("pattern `{pattern}`: {source}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Where and why.
        source: globset::Error,
    },
    /// A record of the run could not be read or written.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A trace file could not be inspected or cut.
    #[error(transparent)]
    Tail(#[from] TailError),
    /// The run to watch has no running processes on this host.
    #[error("{}: {why}", path.display())]
    NothingToWatch {
        /// The run directory.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// Only in tests: the drain stopped where it was told to, as if it had been killed.
    #[error("stopped as if killed")]
    Stopped,
}

impl DrainError {
    pub(crate) fn io(path: &Path, source: io::Error) -> DrainError {
        DrainError::Io { path: path.to_owned(), source }
    }

    /// Whether the disk, or the user's share of it, is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, DrainError::Io { source, .. } if is_disk_full(source))
    }
}

pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
