//! The bar of long work: on stderr, when that is a terminal.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use weftline_index::progress::Progress;

/// Draws how far an index is.
#[derive(Debug, Default)]
pub(crate) struct Bar(Mutex<Option<ProgressBar>>);

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
