//! Errors. None may reach the traced program: a front-end prints the message and the program continues untraced.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use weftline_drain::DrainError;
use weftline_format::manifest::ManifestError;

use weftline_dropin::perfflow::WriteError;
use weftline_format::members::MemberError;

/// Why a session could not begin, or its files could not be made.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The recorder could not be started; the trace directory may lie where it cannot be mapped.
    #[error("the recorder cannot start with {}", live.display())]
    NotStarted {
        /// The live directory that it was told to use.
        live: PathBuf,
    },
    /// Another thread began or finishes a session, for too long.
    #[error("another thread is starting or finishing a recording")]
    Busy,
    /// What was recorded could not be turned into files.
    #[error(transparent)]
    Drain(#[from] DrainError),
    /// A manifest could not be read or written.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A trace file could not be read.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// A trace file could not be converted.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl SessionError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> SessionError + '_ {
        |source| SessionError::Io { path: path.to_owned(), source }
    }
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, SessionError>;
