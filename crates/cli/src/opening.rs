//! Opens what is to be analysed: finds the run, finishes what a killed one left, builds the index with a bar on the terminal.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use weftline_format::manifest::SupervisorRecord;
use weftline_index::progress::Bar;
use weftline_index::{IndexError, OpenOptions, Run};

use crate::args::OpenArgs;
use crate::commands::recover;
use crate::{memory, rundir, summary, terminal};

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
    Run::open(&named, &options).map_err(explained).context("cannot open")
}

/// A run without events has a reason, and its supervisors know it.
fn explained(error: IndexError) -> anyhow::Error {
    let IndexError::NoTraces { path } = &error else { return error.into() };
    let (records, _) = SupervisorRecord::read_all(path);
    let totals = summary::Totals::of(&records);
    let reasons = if totals.failures.is_empty() { totals.untraced } else { totals.failures };
    match (rundir::is_run(path), reasons.is_empty()) {
        (true, false) => anyhow!("{} holds no events: {}", path.display(), terminal::printable(&reasons.join("; "))),
        (true, true) => anyhow!("{} holds no events; `weft check` tells what is known of it", path.display()),
        (false, _) => error.into(),
    }
}

/// Columns of the terminal.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(120, |(width, _)| usize::from(width.0))
}
