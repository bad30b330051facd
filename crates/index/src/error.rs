//! Errors of an index. Damage of the traces themselves is data, not an error: see [`crate::catalog`].

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, IndexError>;

/// Why a run cannot be opened or read.
#[derive(Debug, Error)]
pub enum IndexError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing to read.
    #[error("{}: no trace files (*.pfw, *.json, also with .gz) here; name a run directory, a trace file or a glob", path.display())]
    NoTraces {
        /// Where they were looked for.
        path: PathBuf,
    },
    /// Files, and not one event in them.
    #[error("{}: {why}; name a run directory, or a trace (*.pfw, or JSON as Chrome writes it, also with .gz)", path.display())]
    NoEvents {
        /// What was to be read.
        path: PathBuf,
        /// What was found in its place.
        why: String,
    },
    /// A foreign file that could not be turned into a run.
    #[error(transparent)]
    Import(#[from] weftline_import::ImportError),
    /// A group that the manifest does not have.
    #[error("{}: no group {name:?}; there are {}", manifest.display(), known.join(", "))]
    NoGroup {
        /// The file `manifest.json`.
        manifest: PathBuf,
        /// The group that was asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A pattern that cannot be understood.
    #[error("{pattern:?} is not a glob: {why}")]
    BadGlob {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// The index cannot be read, and could not be built again either.
    #[error("{}: the index is damaged ({why}) and could not be rebuilt; try again, or read the traces with --no-index", path.display())]
    Damaged {
        /// The file of the index.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl IndexError {
    /// The same once more, for another who asks.
    pub(crate) fn again(&self) -> IndexError {
        let damaged = |path: &PathBuf, why: String| IndexError::Damaged { path: path.clone(), why };
        match self {
            IndexError::Io { path, source } => {
                IndexError::Io { path: path.clone(), source: io::Error::new(source.kind(), source.to_string()) }
            }
            IndexError::Damaged { path, why } => damaged(path, why.clone()),
            other => damaged(&PathBuf::new(), other.to_string()),
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> IndexError {
        move |source| IndexError::Io { path: path.to_owned(), source }
    }
}
