//! A program that records without a supervisor.
//!
//! The program makes a live directory of its own ([`open_unsupervised`]) and starts its recorder on it. Its arena grows on disk. When
//! the program ends it calls [`recover()`](crate::recover()) on itself; after a kill, a later session or `weft recover` does.

use std::path::{Path, PathBuf};

use crate::filter::{Filter, Patterns};
use crate::live::{Live, LiveOptions, Settings};
use crate::{DrainError, Result};

/// How a program records itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsupervised {
    /// The run's id, part of the live directory's name where it cannot lie inside the run directory.
    pub run_id: String,
    /// Record annotations and process life only, no I/O calls.
    pub no_io: bool,
    /// Only events on these paths (globs), and events without a path.
    pub include: Vec<String>,
    /// No events on these paths.
    pub exclude: Vec<String>,
    /// No calls of these categories.
    pub without: Vec<String>,
    /// Every image gets a file of its own, however few events it has: none goes to the file that short images share.
    pub separate_files: bool,
    /// A text for whoever publishes the files: it comes back in [`FinishedFile::note`](crate::FinishedFile::note), and stands in the
    /// record of the run (`SupervisorRecord::note`).
    pub note: String,
}

/// Makes a live directory of this process for a run, and the run directory if there is none. The recorder is to be started on
/// the path that comes back. A process may do this again: each time it gets another directory.
pub fn open_unsupervised(run: &Path, options: &Unsupervised) -> Result<PathBuf> {
    std::fs::create_dir_all(run).map_err(|error| DrainError::io(run, error))?;
    let patterns = Patterns {
        include: options.include.clone(),
        exclude: options.exclude.clone(),
        without: options.without.clone(),
    };
    // An invalid pattern must be reported now: it is not used before the end.
    Filter::new(&patterns)?;
    let given = LiveOptions {
        run_id: options.run_id.clone(),
        no_io: options.no_io,
        unsupervised: true,
        ..LiveOptions::default()
    };
    let settings = Settings {
        patterns,
        separate_files: options.separate_files,
        note: options.note.clone(),
        ..Settings::default()
    };
    let live = Live::create_with(run, &given, &settings)?;
    let directory = live.directory().to_owned();
    live.leave();
    Ok(directory)
}
