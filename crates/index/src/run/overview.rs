//! Facts about a whole run: over all its parts, or after a pass over its traces.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use weftline_format::dialect::Dialect;
use weftline_format::source::Source as Text;

use crate::Result;
use crate::catalog::{FlawEntry, SourceEntry};
use crate::dictionary::{DefinitionKind, Dictionary, Process};
use crate::input::TraceSet;
use crate::part::{Columns, GroupMeta, Part, widen};
use crate::pipeline::{Sink, Tables};
use crate::rows::{Late, Meaning, meaning_of};
use crate::scan::Renumber;
use crate::source::{self, TraceFile};

/// When the events of a run were, and how many of each phase there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// Earliest start and latest end of spans: the start is the origin of time buckets.
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
                Some((_, all)) => *all = all.saturating_add(*count),
                None => self.per_phase.push((*code, *count)),
            }
        }
        self.per_phase.sort_unstable();
    }

    /// A span whose end was found later.
    pub(super) fn add_late(&mut self, late: &Late) {
        for range in [&mut self.spans, &mut self.all] {
            widen(range, late.end.saturating_sub(late.dur), late.end);
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
    pub(super) fn new(set: &TraceSet, entry: &SourceEntry) -> Source {
        Source {
            path: set.path(Path::new(&entry.file)),
            dialect: entry.dialect.clone(),
            events: entry.events,
            bytes: entry.size.saturating_sub(entry.from),
            flaws: entry.flaws,
            lost_bytes: entry.lost_bytes,
            damage: entry.damage.clone(),
            unreadable: entry.unreadable.clone(),
        }
    }
}

/// The parts of a run with common ids.
pub(super) struct Joined {
    pub parts: Vec<(Part, Renumber)>,
    pub dictionary: Dictionary,
    pub times: Times,
}

/// Opens parts, of which each is said to have so many rows, and gives their ids common numbers. What `known` numbers already keeps its number.
pub(super) fn join(named: &[(PathBuf, String, u64)], known: &Dictionary) -> Result<Joined> {
    let mut opened = Vec::with_capacity(named.len());
    let mut times = Times::default();
    for (directory, name, rows) in named {
        let (part, tables) = Part::open(directory, name, *rows)?;
        part.meta.groups.iter().for_each(|meta| times.add(meta));
        opened.push((part, tables));
    }
    let (dictionary, renumbers) = number(&opened.iter().map(|(_, tables)| tables).collect::<Vec<_>>(), known);
    let parts = opened.into_iter().zip(renumbers).map(|((part, _), renumber)| (part, renumber)).collect();
    Ok(Joined { parts, dictionary, times })
}

/// Gives the ids of several tables common numbers, and says how each is renumbered.
pub(super) fn number(opened: &[&Tables], known: &Dictionary) -> (Dictionary, Vec<Renumber>) {
    let mut all = known.clone();
    // Hashes may be defined in another file than the one that uses them.
    let mut definitions: FxHashMap<(u8, &str), &str> = FxHashMap::default();
    for tables in opened {
        for (kind, hash) in &tables.defined {
            if let Some(name) = tables.definition(*kind, hash) {
                definitions.entry((*kind as u8, hash)).or_insert(name);
            }
        }
    }
    let mut known: FxHashMap<String, u32> = all.processes.iter().map(Process::key).zip(0..).collect();
    let mut renumbers = Vec::with_capacity(opened.len());
    for tables in opened {
        let map = |into: &mut crate::dictionary::Strings, from: &crate::dictionary::Strings| {
            shorten(from.iter().map(|text| into.intern(text)).collect())
        };
        let names = map(&mut all.names, &tables.names);
        let cats = map(&mut all.cats, &tables.cats);
        let mut files = Vec::with_capacity(tables.files.len());
        for key in tables.files.iter() {
            let (hash, meaning) = meaning_of(key);
            let path = match meaning {
                Meaning::Path(path) => Some(path),
                _ => definitions.get(&(DefinitionKind::Path as u8, hash)).copied(),
            };
            let id = all.files.intern(path.unwrap_or(hash));
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
            let host = definitions.get(&(DefinitionKind::Host as u8, process.hhash.as_str())).copied();
            resolve_host(&mut process, host);
            let next = all.processes.len() as u32;
            let id = *known.entry(process.key()).or_insert(next);
            if id == next {
                all.processes.push(process);
            } else {
                all.processes[id as usize].complete(&process);
            }
            processes.push(id);
        }
        renumbers.push(Renumber { names, cats, files: shorten(files), processes: shorten(processes) });
    }
    for ((kind, hash), name) in &definitions {
        if *kind == DefinitionKind::Text as u8 {
            all.texts.insert((*hash).to_owned(), (*name).to_owned());
        }
    }
    (all, renumbers)
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
    for key in tables.file_keys() {
        let path = tables.path(&key);
        all.files.push(path.unwrap_or(meaning_of(&key).0));
        all.known.push(path.is_some());
    }
    for process in &tables.processes {
        let mut process = process.clone();
        let host = tables.definition(DefinitionKind::Host, &process.hhash);
        resolve_host(&mut process, host);
        all.processes.push(process);
    }
    for (kind, hash) in &tables.defined {
        if let (DefinitionKind::Text, Some(name)) = (kind, tables.definition(*kind, hash)) {
            all.texts.insert(hash.clone(), name.to_owned());
        }
    }
    all
}

/// Whether spans may be written as two events: DFTracer and Weftline never do that.
pub(super) fn may_have_pairs(files: &[TraceFile]) -> bool {
    files.iter().any(|file| {
        let sniffed = source::open(file).ok().and_then(|input| Text::new(&input).ok()?.reading().ok());
        sniffed.is_none_or(|reading| matches!(reading.dialect, Dialect::Chrome | Dialect::PerfFlowAspect))
    })
}

/// Keeps only the metadata of row groups.
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
