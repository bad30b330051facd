//! Opens what is to be analysed: finds the run, finishes what a killed one left, builds the index with a bar on the terminal.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use weftline_index::progress::Progress;
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

/// A bar on stderr, when that is a terminal.
#[derive(Default)]
struct Bar(Mutex<Option<ProgressBar>>);

impl Bar {
    fn with(&self, then: impl FnOnce(&mut Option<ProgressBar>)) {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Progress for Bar {
    fn begin(&self, what: &str, bytes: u64) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let style = ProgressStyle::with_template("{msg} {bar:30} {bytes} of {total_bytes}, {eta} to go");
        let bar = ProgressBar::new(bytes).with_message(what.to_owned());
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.with(|shown| *shown = Some(bar));
    }

    fn advance(&self, bytes: u64) {
        self.with(|shown| {
            if let Some(bar) = shown {
                bar.inc(bytes);
            }
        });
    }

    fn end(&self) {
        self.with(|shown| {
            if let Some(bar) = shown.take() {
                bar.finish_and_clear();
            }
        });
    }
}
