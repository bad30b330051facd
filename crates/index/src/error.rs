//! What can go wrong with an index. Damage of the traces themselves is data, not an error: see [`crate::catalog`].

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
    /// The index cannot be read. It is only a copy: deleting it is safe.
    #[error("{}: the index is damaged ({why}); delete it, it will be built again", path.display())]
    Damaged {
        /// The file of the index.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl IndexError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> IndexError {
        move |source| IndexError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path) -> impl Fn(parquet::errors::ParquetError) -> IndexError {
        move |error| IndexError::Damaged { path: path.to_owned(), why: error.to_string() }
    }
}
