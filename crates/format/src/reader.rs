//! Reads traces: one file, bytes, or all files of a run; as owned events, or as a scan in bounded memory.
//!
//! Damage is data, not an error: a [`ReadError`] means that a file could not be opened or read at all. Members of our
//! own files are inflated and split side by side and delivered in the order of the file; so is other text, cut at line
//! ends.

mod assemble;
mod sniff;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::damage::Damage;
use crate::dialect::Dialect;
use crate::event::{Event, Value};
use crate::files;
use crate::names::Names;
use crate::source::{Input, OpenFile};
use crate::threads::{self, map_all};
use crate::view::EventView;

/// A file could not be opened or read.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct ReadError {
    /// The file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// What a trace holds besides its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Events that were delivered, metadata included.
    pub events: u64,
    /// What was wrong.
    pub damage: Damage,
    /// The names of hashes.
    pub names: Names,
    /// Who wrote it.
    pub dialect: Dialect,
    /// What stands beside the list of events in an object file, in order.
    pub aside: Vec<(String, Value)>,
}

/// A trace in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// The events in the order of the file.
    pub events: Vec<Event>,
    /// What was wrong.
    pub damage: Damage,
    /// The names of hashes.
    pub names: Names,
    /// Who wrote it; for a run, who wrote its first file.
    pub dialect: Dialect,
    /// What stands beside the list of events in an object file, in order.
    pub aside: Vec<(String, Value)>,
}

impl Trace {
    /// The path that an event is about.
    pub fn path_of<'t>(&'t self, event: &'t Event) -> Option<&'t str> {
        self.names.path_of(event)
    }

    fn new(events: Vec<Event>, summary: Summary) -> Trace {
        let Summary { damage, names, dialect, aside, .. } = summary;
        Trace { events, damage, names, dialect, aside }
    }
}

/// Reads one file, plain or compressed, of any dialect.
pub fn read_file(path: &Path) -> Result<Trace, ReadError> {
    read_file_on(path, threads::available())
}

fn read_file_on(path: &Path, threads: usize) -> Result<Trace, ReadError> {
    let wrap = |source| ReadError { path: path.to_owned(), source };
    let input = open(path).map_err(wrap)?;
    read_input(&input, threads).map_err(wrap)
}

/// Reads a trace that is in memory.
pub fn read_bytes(bytes: &[u8]) -> Trace {
    // Memory has no errors.
    read_input(&bytes, threads::available()).unwrap_or_default()
}

/// Reads all trace files that lie directly in a directory, in the order of their names.
pub fn read_run(run: &Path) -> Result<Trace, ReadError> {
    let files = trace_files(run)?;
    // Many files are read side by side, few one after the other with all threads at each.
    let threads = threads::available();
    let (outer, inner) = if files.len() >= threads { (threads, 1) } else { (1, threads) };
    let traces = map_all(outer, &files, |file| read_file_on(file, inner));
    let mut all = Trace::default();
    for (place, (file, trace)) in files.iter().zip(traces).enumerate() {
        let trace = trace?;
        if place == 0 {
            all.dialect = trace.dialect;
        }
        all.events.extend(trace.events);
        all.damage.absorb(trace.damage, file);
        all.names.absorb(trace.names);
        all.aside.extend(trace.aside);
    }
    Ok(all)
}

/// Calls `each` for every event of a file, in order, while holding no more than a few blocks of it.
pub fn scan_file(path: &Path, each: &mut dyn FnMut(&EventView<'_>)) -> Result<Summary, ReadError> {
    scan_file_on(path, threads::available(), each)
}

/// The same on the calling thread alone: for programs that look at what they recorded themselves, where a thread of ours has no place.
pub fn scan_file_here(path: &Path, each: &mut dyn FnMut(&EventView<'_>)) -> Result<Summary, ReadError> {
    scan_file_on(path, 1, each)
}

fn scan_file_on(path: &Path, threads: usize, each: &mut dyn FnMut(&EventView<'_>)) -> Result<Summary, ReadError> {
    let wrap = |source| ReadError { path: path.to_owned(), source };
    let input = open(path).map_err(wrap)?;
    scan_input(&input, threads, each).map_err(wrap)
}

/// The same for a trace that is in memory.
pub fn scan_bytes(bytes: &[u8], each: &mut dyn FnMut(&EventView<'_>)) -> Summary {
    // Memory has no errors.
    scan_input(&bytes, threads::available(), each).unwrap_or_default()
}

/// The same for the inflated text of one of our own members, on the calling thread alone: for programs that look at what they
/// recorded themselves, where a thread of ours has no place.
pub fn scan_member(text: &[u8], each: &mut dyn FnMut(&EventView<'_>)) {
    assemble::scan_member(text, each);
}

/// The trace files that lie directly in a directory, in the order of their names: `*.pfw`, `*.json`, both also with
/// `.gz`; not hidden ones, and not the manifest.
pub fn trace_files(run: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let wrap = |source| ReadError { path: run.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(run).map_err(wrap)? {
        let path = entry.map_err(wrap)?.path();
        if is_trace_name(&path) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file holds an event that is more than metadata. Reads no further than the first one.
pub fn holds_events(path: &Path) -> Result<bool, ReadError> {
    let wrap = |source| ReadError { path: path.to_owned(), source };
    sniff::holds_events(&open(path).map_err(wrap)?).map_err(wrap)
}

/// Whether a file's name is that of a trace.
pub fn is_trace_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let stem = name.strip_suffix(b".gz").unwrap_or(name);
    (stem.ends_with(b".pfw") || stem.ends_with(b".json"))
        && !name.starts_with(b".")
        && name != crate::manifest::RUN_FILE.as_bytes()
}

/// Opens a regular file: a pipe would be waited for for ever.
fn open(path: &Path) -> io::Result<OpenFile> {
    OpenFile::new(files::open(path)?)
}

fn read_input<I: Input + ?Sized>(input: &I, threads: usize) -> io::Result<Trace> {
    let mut events = Vec::new();
    let summary = assemble::assemble(input, threads, &mut |pieces| {
        let owned: Vec<Vec<Event>> = map_all(threads, pieces, |piece| piece.iter().map(EventView::to_event).collect());
        events.extend(owned.into_iter().flatten());
    })?;
    Ok(Trace::new(events, summary))
}

fn scan_input<I: Input + ?Sized>(
    input: &I,
    threads: usize,
    each: &mut dyn FnMut(&EventView<'_>),
) -> io::Result<Summary> {
    assemble::assemble(input, threads, &mut |pieces| {
        for event in pieces.iter().flatten() {
            each(event);
        }
    })
}
