//! What can go wrong, with file and place.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ImportError>;

/// Why an import failed.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The system refused.
    #[error("{name}: {source}")]
    Io {
        /// The file, with the archive that it is in.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{name}, at byte {offset}: {why}")]
    Invalid {
        /// The file, with the archive that it is in.
        name: String,
        /// Where, in the unpacked file.
        offset: u64,
        /// Why, in words.
        why: String,
    },
    /// No format recognises anything of what was named.
    #[error("{}: no known format; `weft import --list` shows the formats, and --kind forces one", path.display())]
    Unknown {
        /// What was named.
        path: PathBuf,
    },
    /// There is no such format.
    #[error("there is no format {kind:?}; there are {known}")]
    NoKind {
        /// What was asked for.
        kind: String,
        /// The formats, with commas.
        known: String,
    },
    /// A limit for archives was reached.
    #[error("{name}: {what}; unpack it yourself if you trust it")]
    Limit {
        /// The archive.
        name: String,
        /// Which limit, in words.
        what: String,
    },
    /// Nothing was found that is an event.
    #[error("{}: {why}", path.display())]
    Empty {
        /// What was named.
        path: PathBuf,
        /// Why, in words.
        why: String,
    },
    /// The place of the new run is taken.
    #[error("{}: there is something already; --into adds to a run", path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
    /// The run's own files.
    #[error(transparent)]
    Manifest(#[from] weftline_format::manifest::ManifestError),
    /// The file of `--config`.
    #[error("{name}, line {line}: {why}")]
    Config {
        /// The file.
        name: String,
        /// Which line, from 1.
        line: usize,
        /// What is wrong and what to do, in words.
        why: String,
    },
    /// An option that does not fit.
    #[error("{0}")]
    Option(String),
}

impl ImportError {
    /// An error of the system about a path.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> ImportError + '_ {
        move |source| ImportError::Io { name: path.display().to_string(), source }
    }
}
