//! Opens a run for analysis: finds it, recovers it after a kill, and builds the index with a progress bar.

use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use weftline_analysis::coverage::without_events;
use weftline_index::{IndexError, OpenOptions, Run};

use crate::args::OpenArgs;
use crate::bar::Bar;
use crate::commands::recover;
use crate::{memory, rundir, terminal};

/// What was named, or the newest run.
pub(crate) fn named(args: &OpenArgs) -> anyhow::Result<Vec<PathBuf>> {
    if args.runs.is_empty() {
        return Ok(vec![rundir::newest()?]);
    }
    Ok(args.runs.clone())
}

/// Opens it.
pub(crate) fn open(args: &OpenArgs) -> anyhow::Result<Run> {
    memory::keep_large_blocks();
    let named = named(args)?;
    for run in named.iter().filter(|path| rundir::is_run(path)) {
        recover::before_reading(run);
    }
    let options = OpenOptions {
        no_index: args.no_index,
        groups: args.group.clone(),
        threads: args.threads.map(usize::from),
        progress: Arc::new(Bar::default()),
    };
    let run = Run::open(&named, &options).map_err(explained).context("cannot open")?;
    run.require_events().map_err(explained).context("cannot open")?;
    tell_refused(&run)?;
    Ok(run)
}

/// Says that a run is read without an index, if so.
pub(crate) fn tell_refused(run: &Run) -> anyhow::Result<()> {
    let why = match run.refused() {
        None => return Ok(()),
        Some(IndexError::Damaged { path, why }) => {
            format!("{} is damaged ({why}) and cannot be replaced", path.display())
        }
        Some(error) => format!("it cannot be written: {error}"),
    };
    writeln!(std::io::stderr(), "weft: reading the traces without an index: {}", terminal::printable(&why))?;
    Ok(())
}

/// Builds or completes the index of runs that another program is about to open, which draws no bar. That one says what is wrong with them.
pub(crate) fn index_for_others(runs: &[&Path], groups: &[String], threads: Option<usize>) {
    memory::keep_large_blocks();
    let named: Vec<PathBuf> = runs.iter().map(|run| (*run).to_owned()).collect();
    let options = OpenOptions { no_index: false, groups: groups.to_vec(), threads, progress: Arc::new(Bar::default()) };
    let _ = Run::open(&named, &options);
}

/// A run without events has a reason, and its supervisors know it.
fn explained(error: IndexError) -> anyhow::Error {
    let (IndexError::NoTraces { path } | IndexError::NoEvents { path, .. }) = &error else { return error.into() };
    let run = [Some(path.as_path()), path.parent()].into_iter().flatten().find(|path| rundir::is_run(path));
    match run.map(without_events) {
        Some(sentence) => anyhow!(sentence),
        None => error.into(),
    }
}

/// Columns of what is printed to a stream: those of the terminal, if it is one. A terminal behind another stream says nothing of it.
pub(crate) fn width(stream: impl AsFd) -> usize {
    terminal_size::terminal_size_of(stream).map_or(120, |(width, _)| usize::from(width.0))
}
