//! Opens what is to be analysed: finds the run, finishes what a killed one left, builds the index with a bar on the terminal.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use weftline_index::progress::Bar;
use weftline_index::{OpenOptions, Run};

use crate::args::OpenArgs;
use crate::commands::recover;
use crate::{memory, rundir};

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
    Run::open(&named, &options).context("cannot open")
}

/// Columns of the terminal.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(120, |(width, _)| usize::from(width.0))
}
