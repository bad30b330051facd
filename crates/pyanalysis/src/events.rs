//! Events of the index as Arrow batches. The columns are those of the table `events` of `weft query` (`docs/schema.md`).
//!
//! Names, categories, hosts and paths are dictionary arrays: their keys are the index's ids as they lie in memory, their values one array per
//! run. Keys are signed, because pandas takes no others.

mod columns;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use weftline_index::scan::Pull;
use weftline_index::{Batch, Filter, Request, Run};

use crate::failure;
use crate::progress::Callback;
use crate::stream::Source;
use columns::Assembler;

pub(crate) use columns::event_columns;

/// Batches that wait for a slow reader of a run without an index.
const AHEAD: usize = 4;

/// Which events, and which of their columns.
pub(crate) struct Events {
    run: Arc<Run>,
    progress: Arc<Callback>,
    threads: usize,
    filter: Filter,
    assembler: Arc<Assembler>,
}

impl Events {
    pub(crate) fn new(
        run: Arc<Run>,
        progress: Arc<Callback>,
        threads: usize,
        columns: Option<Vec<String>>,
        filter: Filter,
    ) -> PyResult<Events> {
        let assembler = Arc::new(Assembler::new(&run.dictionary(), columns)?);
        Ok(Events { run, progress, threads, filter, assembler })
    }
}

impl Source for Events {
    fn schema(&self) -> SchemaRef {
        self.assembler.schema()
    }

    fn open(&self) -> PyResult<Box<dyn RecordBatchReader + Send>> {
        let request = Request::of(self.assembler.needs()).with(self.filter.clone());
        let assembler = Arc::clone(&self.assembler);
        Ok(match self.run.pull(request.clone()) {
            Some(pull) => Box::new(Groups { pull, next: 0, threads: self.threads, assembler, ready: VecDeque::new() }),
            None => Box::new(Scanned::start(Arc::clone(&self.run), Arc::clone(&self.progress), request, assembler)?),
        })
    }
}

type Item = Result<RecordBatch, ArrowError>;

/// Reads the row groups of an index, some at a time, and hands them on in order.
struct Groups {
    pull: Pull,
    next: usize,
    threads: usize,
    assembler: Arc<Assembler>,
    ready: VecDeque<Item>,
}

impl Groups {
    fn read(&self, number: usize) -> Vec<Item> {
        let mut items = Vec::new();
        let read = self.pull.read(number, &mut |batch: &Batch| items.push(self.assembler.assemble(batch)));
        if let Err(error) = read {
            items.push(Err(ArrowError::ExternalError(Box::new(error))));
        }
        items
    }

    fn refill(&mut self) -> bool {
        let end = self.pull.effort().groups_read.min(self.next + self.threads.max(1));
        let numbers = self.next..end;
        if numbers.is_empty() {
            return false;
        }
        self.next = end;
        let read: Vec<Vec<Item>> = std::thread::scope(|scope| {
            let this = &*self;
            let threads: Vec<_> = numbers.map(|number| scope.spawn(move || this.read(number))).collect();
            let gone = || ArrowError::ComputeError("a thread that read events panicked".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| vec![Err(gone())])).collect()
        });
        self.ready.extend(read.into_iter().flatten());
        true
    }
}

impl Iterator for Groups {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if !self.refill() {
                return None;
            }
        }
    }
}

impl RecordBatchReader for Groups {
    fn schema(&self) -> SchemaRef {
        self.assembler.schema()
    }
}

/// Events of a run without an index: a thread reads the traces, a few batches ahead.
struct Scanned {
    items: Receiver<Item>,
    schema: SchemaRef,
}

impl Scanned {
    fn start(run: Arc<Run>, progress: Arc<Callback>, request: Request, assembler: Arc<Assembler>) -> PyResult<Scanned> {
        let schema = assembler.schema();
        let (sender, items) = sync_channel(AHEAD);
        let read = move || {
            progress.silence();
            // A reader who has gone does not stop the scan, but nothing is made for them any more.
            let mut wanted = true;
            let scanned = run.scan_in_order(&request, |batch| {
                if wanted {
                    wanted = sender.send(assembler.assemble(batch)).is_ok();
                }
            });
            if let Err(error) = scanned {
                // Nobody is left to tell when this fails.
                let _ = sender.send(Err(ArrowError::ExternalError(Box::new(error))));
            }
            progress.speak();
        };
        let started = std::thread::Builder::new().name("weftline-events".to_owned()).spawn(read);
        started.map_err(|error| failure::Error::new_err(format!("no thread can be started: {error}")))?;
        Ok(Scanned { items, schema })
    }
}

impl Iterator for Scanned {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.items.recv().ok()
    }
}

impl RecordBatchReader for Scanned {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}
