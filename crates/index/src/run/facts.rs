//! What is known of a whole run: over all its segments, or after a pass over its traces.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use weftline_format::dialect::Dialect;
use weftline_format::source::Source as Text;

use crate::Result;
use crate::catalog::{FlawEntry, SourceEntry};
use crate::dictionary::{Dictionary, Kind, Process};
use crate::input::Part;
use crate::pipeline::{Sink, Tables};
use crate::scan::Renumber;
use crate::segment::{Columns, GroupMeta, Segment, strings_of, widen};
use crate::source::{self, TraceFile};

/// When the events of a run were, and how many of each phase there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// Earliest start and latest end of spans (`X`, and `B` with its `E`): the start is the origin of time buckets.
    pub spans: Option<(i64, i64)>,
    /// The same, of all events that have a time.
    pub all: Option<(i64, i64)>,
    /// Rows per phase, by its code.
    pub per_phase: Vec<(u8, u64)>,
}

impl Times {
    pub(super) fn add(&mut self, meta: &GroupMeta) {
        if let Some((start, end)) = meta.spans {
            widen(&mut self.spans, start, end);
        }
        if let Some((start, end)) = meta.time {
            widen(&mut self.all, start, end);
        }
        for (code, count) in &meta.per_phase {
            match self.per_phase.iter_mut().find(|(known, _)| known == code) {
                Some((_, all)) => *all += count,
                None => self.per_phase.push((*code, *count)),
            }
        }
        self.per_phase.sort_unstable();
    }

    /// A span that was open ended then.
    pub(super) fn end_at(&mut self, end: i64) {
        for range in [&mut self.spans, &mut self.all] {
            *range = range.map(|(start, known)| (start, known.max(end)));
        }
    }

    /// Rows of a phase.
    pub fn count(&self, code: u8) -> u64 {
        self.per_phase.iter().find(|(known, _)| *known == code).map_or(0, |(_, count)| *count)
    }

    /// The origin of time: the start of the first span, or of anything when there are no spans.
    pub fn origin(&self) -> Option<i64> {
        self.spans.or(self.all).map(|(start, _)| start)
    }
}

/// A trace file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    /// Who wrote it.
    pub dialect: String,
    /// Events in it, metadata not counted.
    pub events: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Things that were wrong with it.
    pub flaws: u64,
    /// Bytes that could not be used.
    pub lost_bytes: u64,
    /// The first of those things.
    pub damage: Vec<FlawEntry>,
    /// Why it could not be read.
    pub unreadable: Option<String>,
}

impl Source {
    pub(super) fn new(part: &Part, entry: &SourceEntry) -> Source {
        Source {
            path: part.path(Path::new(&entry.file)),
            dialect: entry.dialect.clone(),
            events: entry.events,
            bytes: entry.size - entry.from,
            flaws: entry.flaws,
            lost_bytes: entry.lost_bytes,
            damage: entry.damage.clone(),
            unreadable: entry.unreadable.clone(),
        }
    }
}

/// The segments of a run with common ids.
pub(super) struct Joined {
    pub segments: Vec<(Segment, Renumber)>,
    pub dictionary: Dictionary,
    pub times: Times,
}

/// Opens segments, and gives their ids common numbers.
pub(super) fn join(names: &[(PathBuf, String)]) -> Result<Joined> {
    let mut opened = Vec::with_capacity(names.len());
    let mut times = Times::default();
    for (directory, name) in names {
        let segment = Segment::open(directory, name)?;
        segment.meta.groups.iter().for_each(|meta| times.add(meta));
        let mut tables = strings_of(directory, name)?;
        tables.processes.clone_from(&segment.meta.processes);
        opened.push((segment, tables));
    }
    let mut all = Dictionary::default();
    // Hashes may be defined in another file than the one that uses them.
    let mut meanings: FxHashMap<(u8, &str), &str> = FxHashMap::default();
    for (_, tables) in &opened {
        for (kind, hash) in &tables.defined {
            if let Some(name) = tables.meaning(*kind, hash) {
                meanings.entry((*kind as u8, hash)).or_insert(name);
            }
        }
    }
    let mut people: FxHashMap<String, u32> = FxHashMap::default();
    let mut renumbers = Vec::with_capacity(opened.len());
    for (_, tables) in &opened {
        let map = |into: &mut crate::dictionary::Strings, from: &crate::dictionary::Strings| {
            shorten(from.iter().map(|text| into.intern(text)).collect())
        };
        let names = map(&mut all.names, &tables.names);
        let cats = map(&mut all.cats, &tables.cats);
        let mut files = Vec::with_capacity(tables.hashes.len());
        for hash in tables.hashes.iter() {
            let path = meanings.get(&(Kind::Path as u8, hash));
            let id = all.files.intern(path.unwrap_or(&hash));
            if id as usize >= all.known.len() {
                all.known.push(path.is_some());
            } else if path.is_some() {
                all.known[id as usize] = true;
            }
            files.push(id);
        }
        let mut processes = Vec::with_capacity(tables.processes.len());
        for process in &tables.processes {
            let mut process = process.clone();
            let host = meanings.get(&(Kind::Host as u8, process.hhash.as_str())).copied();
            resolve_host(&mut process, host);
            let next = all.processes.len() as u32;
            let id = *people.entry(process.key()).or_insert(next);
            if id == next {
                all.processes.push(process);
            } else {
                all.processes[id as usize].complete(&process);
            }
            processes.push(id);
        }
        renumbers.push(Renumber { names, cats, files: shorten(files), processes: shorten(processes) });
    }
    for ((kind, hash), name) in &meanings {
        if *kind == Kind::Text as u8 {
            all.texts.insert((*hash).to_owned(), (*name).to_owned());
        }
    }
    let segments = opened.into_iter().zip(renumbers).map(|((segment, _), renumber)| (segment, renumber)).collect();
    Ok(Joined { segments, dictionary: all, times })
}

fn resolve_host(process: &mut Process, name: Option<&str>) {
    if process.host.is_empty()
        && let Some(name) = name
    {
        process.host = name.to_owned();
    }
}

/// A map that changes nothing is none.
fn shorten(map: Vec<u32>) -> Option<Vec<u32>> {
    let same = map.iter().enumerate().all(|(place, id)| place == *id as usize);
    (!same).then_some(map)
}

/// The dictionary of a run without an index: its files are numbered by their hashes.
pub(super) fn dictionary_of(tables: &Tables) -> Dictionary {
    let mut all = Dictionary { names: tables.names.clone(), cats: tables.cats.clone(), ..Dictionary::default() };
    for hash in tables.hashes.iter() {
        let path = tables.meaning(Kind::Path, hash);
        all.files.push(path.unwrap_or(hash));
        all.known.push(path.is_some());
    }
    for process in &tables.processes {
        let mut process = process.clone();
        let host = tables.meaning(Kind::Host, &process.hhash);
        resolve_host(&mut process, host);
        all.processes.push(process);
    }
    for (kind, hash) in &tables.defined {
        if let (Kind::Text, Some(name)) = (kind, tables.meaning(*kind, hash)) {
            all.texts.insert(hash.clone(), name.to_owned());
        }
    }
    all
}

/// Whether spans may be written as two events: DFTracer and Weftline never do that.
pub(super) fn may_have_pairs(files: &[TraceFile]) -> bool {
    files.iter().any(|file| {
        let sniffed = source::open(file).ok().and_then(|input| Text::new(&input).ok()?.sniff().ok());
        sniffed.is_none_or(|sniff| matches!(sniff.dialect, Dialect::Chrome | Dialect::PerfFlowAspect))
    })
}

/// Keeps what row groups say of themselves, and nothing else.
pub(super) struct Survey;

impl Sink for Survey {
    type State = Vec<GroupMeta>;

    fn begin(&self) -> Self::State {
        Vec::new()
    }

    fn take(&self, state: &mut Self::State, _: usize, columns: Columns, meta: GroupMeta) -> Result<Columns> {
        state.push(meta);
        Ok(columns)
    }
}
