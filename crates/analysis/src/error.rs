//! Errors of an analysis.

use std::path::PathBuf;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, AnalysisError>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// The run could not be read.
    #[error(transparent)]
    Index(#[from] weftline_index::IndexError),
    /// What shards of the run told cannot be put together.
    #[error(transparent)]
    State(#[from] crate::pass::StateError),
    /// The time granularity is too fine for the length of the run.
    #[error("{buckets} time buckets of {width_ns} ns are too many (at most 4294967294); use a coarser --time")]
    TooManyBuckets {
        /// The buckets that the run would have.
        buckets: i128,
        /// The width of one.
        width_ns: i64,
    },
    /// A word that is not known.
    #[error("unknown {what} `{name}`; known are {known}")]
    Unknown {
        /// What kind of thing.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Strings that Arrow's arrays cannot hold.
    #[error(
        "the run has {bytes} bytes of {what}, more than a column can hold; leave that column out, or select a part of the run"
    )]
    TooLong {
        /// Which strings.
        what: &'static str,
        /// Their size.
        bytes: usize,
    },
    /// A file of the user could not be read.
    #[error("{}: {why}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        why: String,
    },
}
