//! Events of the index as Arrow batches. The columns are those of the table `events` of `weft query` (`docs/schema.md`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weftline_analysis::events::{Assembler, Words};
use weftline_analysis::samples::rows::SampleRows;
use weftline_index::scan::Pull;
use weftline_index::schema::{EVENTS, EventColumn};
use weftline_index::{Batch, Column, Filter, Request, Run};

use crate::failure;
use crate::progress::Callback;
use crate::stream::Source;

/// The columns of events, in order.
#[pyfunction]
pub(crate) fn event_columns() -> Vec<&'static str> {
    EVENTS.iter().map(|column| column.name).collect()
}

/// The columns of these names; all of them by default.
fn chosen(names: Option<Vec<String>>) -> PyResult<Vec<&'static EventColumn>> {
    let Some(names) = names else { return Ok(EVENTS.iter().collect()) };
    if names.is_empty() {
        return Err(PyValueError::new_err("columns is empty; name some, or leave it out for all"));
    }
    let find = |name: &String| {
        EVENTS.iter().find(|column| column.name == name).ok_or_else(|| {
            let all = event_columns().join(", ");
            PyValueError::new_err(format!("events have no column {name:?}; they have {all}"))
        })
    };
    names.iter().map(find).collect()
}

/// Batches that wait for a slow reader of a run without an index.
const AHEAD: usize = 4;

/// Makes Arrow batches of those of the index.
trait Assemble: Send + Sync {
    fn schema(&self) -> SchemaRef;
    fn needs(&self) -> Vec<Column>;
    fn assemble(&self, batch: &Batch) -> Item;
}

impl Assemble for Assembler {
    fn schema(&self) -> SchemaRef {
        Assembler::schema(self)
    }

    fn needs(&self) -> Vec<Column> {
        Assembler::needs(self)
    }

    fn assemble(&self, batch: &Batch) -> Item {
        Assembler::assemble(self, batch)
    }
}

impl Assemble for SampleRows {
    fn schema(&self) -> SchemaRef {
        SampleRows::schema(self)
    }

    fn needs(&self) -> Vec<Column> {
        SampleRows::needs()
    }

    fn assemble(&self, batch: &Batch) -> Item {
        SampleRows::assemble(self, batch)
    }
}

/// Which events, and what is made of them.
pub(crate) struct Events {
    run: Arc<Run>,
    progress: Arc<Callback>,
    threads: usize,
    filter: Filter,
    assembler: Arc<dyn Assemble>,
}

impl Events {
    pub(crate) fn new(
        run: Arc<Run>,
        progress: Arc<Callback>,
        threads: usize,
        columns: Option<Vec<String>>,
        filter: Filter,
    ) -> PyResult<Events> {
        let columns = chosen(columns)?;
        let words = Words::new(run.dictionary()).map_err(|error| failure::of_analysis(&error))?;
        let assembler = Arc::new(Assembler::new(Arc::new(words), columns, false));
        Ok(Events { run, progress, threads, filter, assembler })
    }

    /// Samples, one row per value.
    pub(crate) fn of_samples(
        run: Arc<Run>,
        progress: Arc<Callback>,
        threads: usize,
        filter: Filter,
    ) -> PyResult<Events> {
        let assembler = Arc::new(SampleRows::new(run.dictionary()).map_err(|error| failure::of_analysis(&error))?);
        Ok(Events { run, progress, threads, filter: SampleRows::filter(filter), assembler })
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
    assembler: Arc<dyn Assemble>,
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
    fn start(
        run: Arc<Run>,
        progress: Arc<Callback>,
        request: Request,
        assembler: Arc<dyn Assemble>,
    ) -> PyResult<Scanned> {
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
                // If this fails, there is no caller left to report to.
                let _ = sender.send(Err(ArrowError::ExternalError(Box::new(error))));
            }
            progress.speak();
        };
        let started = std::thread::Builder::new().name("weftline-events".to_owned()).spawn(read);
        started.map_err(|error| failure::Error::new_err(format!("cannot start a thread: {error}")))?;
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
