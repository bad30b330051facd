//! An opened run: its trace files, their index, and the dictionary of its ids.

mod build;
mod empty;
mod overview;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::catalog::SourceEntry;
use crate::dictionary::Dictionary;
use crate::input::{self, TraceSet};
use crate::part::Part;
use crate::pipeline;
use crate::progress::{Progress, Silent};
use crate::rows::{Late, Wanted};
use crate::scan::Renumber;
use crate::source::TraceFile;
use crate::{IndexError, Result};

pub use build::Peeked;
pub use empty::no_events;
pub use overview::{Source, Times};

/// How a run is to be opened.
#[derive(Clone)]
pub struct OpenOptions {
    /// Without an index: every question reads the traces again, and nothing is written.
    pub no_index: bool,
    /// Only these groups of a directory with a `manifest.json`.
    pub groups: Vec<String>,
    /// Threads; by default one per processor.
    pub threads: Option<usize>,
    /// Receives progress reports of long work.
    pub progress: Arc<dyn Progress>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { no_index: false, groups: Vec::new(), threads: None, progress: Arc::new(Silent) }
    }
}

/// The parts of an index, each with what its ids are in the run.
pub(crate) type Parts = Vec<(Part, Renumber)>;

/// Where the rows come from.
pub(crate) enum Content {
    /// Replaced by new parts when one turns out to be damaged.
    Indexed(Mutex<Arc<Parts>>),
    Streamed(Streamed),
}

pub(crate) struct Streamed {
    pub files: Vec<TraceFile>,
    /// Traces of some dialects have spans whose two ends are two events: the durations are known after a first pass.
    pub may_have_pairs: bool,
    /// What ids of a pass are in the run, where it began with an index.
    pub renumber: Renumber,
}

impl Streamed {
    fn new(sets: &[TraceSet]) -> Streamed {
        let paths = sets.iter().flat_map(|set| set.files.iter().map(|file| set.path(file)));
        let files: Vec<_> =
            paths.map(|path| TraceFile { size: crate::catalog::Stat::of(&path).size, path, from: 0 }).collect();
        Streamed { may_have_pairs: overview::may_have_pairs(&files), files, renumber: Renumber::default() }
    }
}

/// What a run is read from after its index turned out to be damaged and could not be replaced.
struct Fallback {
    streamed: Streamed,
    why: IndexError,
}

/// What a first pass over a run without an index finds out.
#[derive(Default)]
struct Learned {
    dictionary: Arc<Dictionary>,
    late: Arc<Vec<Late>>,
    times: Times,
    sources: Vec<Source>,
    /// Row groups of a pass over the traces.
    groups: usize,
    known: bool,
}

/// An opened run.
pub struct Run {
    pub(crate) content: Content,
    pub(crate) threads: usize,
    pub(crate) progress: Arc<dyn Progress>,
    sets: Vec<TraceSet>,
    learned: RwLock<Learned>,
    index: Vec<IndexState>,
    /// Why there is no index though one was asked for.
    refused: Option<IndexError>,
    fallback: OnceLock<Fallback>,
}

/// The index of one part of a run, as `weft info` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexState {
    /// Its directory.
    pub directory: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
    /// Trace files that had to be read this time.
    pub read: usize,
    /// Trace files whose rows were there.
    pub kept: usize,
}

/// An index that was completed and opened.
struct Opened {
    joined: overview::Joined,
    index: Vec<IndexState>,
    sources: Vec<Source>,
}

/// Whether the system refused something of an index, not of a trace.
fn is_of_index(sets: &[TraceSet], error: &IndexError) -> bool {
    let IndexError::Io { path, .. } = error else { return false };
    let places = |set: &TraceSet| [Some(set.beside()), set.in_cache()].into_iter().flatten();
    sets.iter().flat_map(places).any(|place| path.starts_with(place))
}

impl Run {
    /// Opens what was named: directories, files, globs. Builds or completes the index; where that cannot be written, the run is read without one
    /// ([`Run::refused`] says why).
    pub fn open(named: &[PathBuf], options: &OpenOptions) -> Result<Run> {
        let sets = input::resolve(named, &options.groups, &*options.progress)?;
        let threads = options.threads.unwrap_or_else(pipeline::threads).max(1);
        // Nothing is written beside what is no trace.
        if options.no_index || !sets.iter().any(build::exists) {
            empty::refuse(&sets)?;
        }
        let (mut refused, mut damaged) = (None, Vec::new());
        for _ in 0..if options.no_index { 0 } else { 2 } {
            match Run::indexed(&sets, &damaged, threads, options) {
                // Somebody damaged the index: it is only a copy.
                Err(error @ IndexError::Damaged { .. }) => {
                    damaged = build::discard(&sets);
                    refused = Some(error);
                }
                Err(error) if is_of_index(&sets, &error) => {
                    // Another builder may have replaced it just now; anything else will not change.
                    let replaced = matches!(&error, IndexError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
                    refused = Some(error);
                    if !replaced {
                        break;
                    }
                }
                Ok(run) if run.read().sources.iter().all(|source| source.events == 0) => {
                    return empty::refuse(&sets).map(|()| run);
                }
                other => return other,
            }
        }
        Ok(Run::streamed(sets, threads, options, refused))
    }

    /// Refuses a run without events, for whoever has nothing to say of one. [`Run::open`] refuses only what is no run either.
    pub fn require_events(&self) -> Result<()> {
        self.prepare()?;
        match self.read().sources.iter().all(|source| source.events == 0) {
            true => Err(empty::error(&self.sets)),
            false => Ok(()),
        }
    }

    fn indexed(sets: &[TraceSet], damaged: &[PathBuf], threads: usize, options: &OpenOptions) -> Result<Run> {
        let Opened { joined, index, sources } =
            Run::complete(sets, damaged, threads, &*options.progress, &Dictionary::default())?;
        let overview::Joined { parts, dictionary, times } = joined;
        let learned = Learned { dictionary: Arc::new(dictionary), times, sources, known: true, ..Learned::default() };
        Ok(Run {
            content: Content::Indexed(Mutex::new(Arc::new(parts))),
            threads,
            progress: Arc::clone(&options.progress),
            sets: sets.to_vec(),
            learned: RwLock::new(learned),
            index,
            refused: None,
            fallback: OnceLock::new(),
        })
    }

    /// Completes the index of all parts and opens it.
    fn complete(
        sets: &[TraceSet],
        damaged: &[PathBuf],
        threads: usize,
        progress: &dyn Progress,
        known: &Dictionary,
    ) -> Result<Opened> {
        let (mut parts, mut index, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        // A run that recorded nothing needs no index.
        for set in sets.iter().filter(|set| !set.files.is_empty()) {
            let built = build::complete(set, damaged, threads, progress)?;
            index.push(IndexState {
                directory: built.directory.clone(),
                bytes: built.catalog.bytes(),
                rows: built.catalog.rows(),
                read: built.read,
                kept: set.files.len() - built.read,
            });
            for entry in &built.catalog.parts {
                parts.push((built.directory.clone(), entry.name.clone(), entry.rows));
            }
            sources.extend(built.catalog.sources().map(|entry| Source::new(set, entry)));
        }
        Ok(Opened { joined: overview::join(&parts, known)?, index, sources })
    }

    /// The parts as they are now; of a run without an index, none.
    pub(crate) fn parts(&self) -> Arc<Parts> {
        match &self.content {
            Content::Indexed(parts) => Arc::clone(&parts.lock().unwrap_or_else(PoisonError::into_inner)),
            Content::Streamed(_) => Arc::default(),
        }
    }

    /// Builds the index again, because a page of these parts is damaged; one thread does it, the others wait. What ids mean stays as it
    /// was: whoever asked has the dictionary already. Where no index can be written the error stands, and from then on the run is read
    /// from its traces ([`Run::read_from_traces`]).
    pub(crate) fn heal(&self, damaged: &Arc<Parts>) -> Result<Arc<Parts>> {
        let Content::Indexed(parts) = &self.content else { return Ok(Arc::default()) };
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fallback) = self.fallback.get() {
            return Err(fallback.why.again());
        }
        if Arc::ptr_eq(&parts, damaged) {
            let bad = build::discard(&self.sets);
            let known = self.dictionary();
            let completed = match Run::complete(&self.sets, &bad, self.threads, &*self.progress, &known) {
                Err(error) if matches!(error, IndexError::Damaged { .. }) || is_of_index(&self.sets, &error) => {
                    let why = error.again();
                    self.fall_back(error)?;
                    return Err(why);
                }
                completed => completed?,
            };
            let Opened { joined, sources, .. } = completed;
            let overview::Joined { parts: new, dictionary, times } = joined;
            let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
            *learned = Learned { dictionary: Arc::new(dictionary), times, sources, known: true, ..Learned::default() };
            *parts = Arc::new(new);
        }
        Ok(Arc::clone(&parts))
    }

    /// Rows were handed on before a page turned out to make no sense, though its sum is right: only a forged index is so. The answer is lost, the next
    /// one comes from a new index.
    pub(crate) fn doubt(&self, error: &IndexError) {
        if matches!(error, IndexError::Damaged { .. }) {
            build::discard(&self.sets);
        }
    }

    /// Reads the run from its traces from now on. Their ids are exchanged for those of the index, which whoever asks has already.
    fn fall_back(&self, why: IndexError) -> Result<()> {
        let mut streamed = Streamed::new(&self.sets);
        let gathered =
            pipeline::run(&streamed.files, self.threads, Wanted::SURVEY, &overview::Survey, &*self.progress)?;
        let (dictionary, mut renumbers) = overview::number(&[&gathered.tables], &self.dictionary());
        streamed.renumber = renumbers.pop().unwrap_or_default();
        {
            let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
            learned.dictionary = Arc::new(dictionary);
            learned.late = Arc::new(gathered.late);
            learned.groups = gathered.groups;
        }
        // Only the thread that holds the parts' lock comes here.
        let _ = self.fallback.set(Fallback { streamed, why });
        Ok(())
    }

    /// What is to be read where there is no index, or none any more.
    pub(crate) fn read_from_traces(&self) -> Option<&Streamed> {
        match &self.content {
            Content::Streamed(streamed) => Some(streamed),
            Content::Indexed(_) => self.fallback.get().map(|fallback| &fallback.streamed),
        }
    }

    /// Why the run is read without an index though one was asked for. An index may turn out to be damaged when it is read, and no other can be
    /// written: so this is told best after the last question.
    pub fn refused(&self) -> Option<&IndexError> {
        self.refused.as_ref().or_else(|| self.fallback.get().map(|fallback| &fallback.why))
    }

    /// Whether a damaged index would be replaced.
    pub(crate) fn is_replaceable(&self) -> bool {
        self.sets.iter().all(build::is_replaceable)
    }

    fn streamed(sets: Vec<TraceSet>, threads: usize, options: &OpenOptions, refused: Option<IndexError>) -> Run {
        Run {
            content: Content::Streamed(Streamed::new(&sets)),
            threads,
            progress: Arc::clone(&options.progress),
            sets,
            learned: RwLock::default(),
            index: Vec::new(),
            refused,
            fallback: OnceLock::new(),
        }
    }

    /// Removes the indexes of the named runs and returns their number.
    pub fn remove_index(named: &[PathBuf], groups: &[String]) -> Result<usize> {
        let mut removed = 0;
        for set in input::resolve(named, groups, &Silent)? {
            for directory in set.places() {
                // Files that are not of an index stay, and the directory with them.
                match weftline_format::files::remove_known(&directory, build::is_name_of_index) {
                    Ok(_) => removed += 1,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(source) => return Err(IndexError::Io { path: directory, source }),
                }
            }
        }
        Ok(removed)
    }

    /// What the index of something that was named covers, without building it.
    pub fn peek(named: &[PathBuf], groups: &[String]) -> Result<Vec<Peeked>> {
        let sets = input::resolve(named, groups, &Silent)?;
        Ok(sets.iter().map(build::peek).collect())
    }

    /// What was named, as sets of trace files.
    pub fn sets(&self) -> &[TraceSet] {
        &self.sets
    }

    /// The state of the index, one entry per part; nothing when the run is read without.
    pub fn index(&self) -> &[IndexState] {
        if self.fallback.get().is_some() { &[] } else { &self.index }
    }

    /// What ids mean. Of a run without an index it is known after [`Run::prepare`] or the first scan.
    pub fn dictionary(&self) -> Arc<Dictionary> {
        Arc::clone(&self.read().dictionary)
    }

    /// When the run's events were; known when the dictionary is.
    pub fn times(&self) -> Times {
        self.read().times.clone()
    }

    /// The trace files, with what was wrong with them; known when the dictionary is.
    pub fn sources(&self) -> Vec<Source> {
        self.read().sources.clone()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Learned> {
        self.learned.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Row groups of the last pass over the traces.
    pub(crate) fn groups_of_traces(&self) -> usize {
        self.read().groups
    }

    pub(crate) fn late(&self) -> Arc<Vec<Late>> {
        Arc::clone(&self.read().late)
    }

    /// Makes sure that the dictionary is known: of a run without an index that takes a pass over its traces.
    pub fn prepare(&self) -> Result<()> {
        let Content::Streamed(streamed) = &self.content else { return Ok(()) };
        if self.read().known {
            return Ok(());
        }
        let gathered =
            pipeline::run(&streamed.files, self.threads, Wanted::SURVEY, &overview::Survey, &*self.progress)?;
        let metas: Vec<_> = gathered.states.into_iter().flatten().collect();
        self.learn(&gathered.tables, &metas, &gathered.files, gathered.late, true);
        Ok(())
    }

    /// Takes up what a pass found out. `whole`: it looked at times and files, so that no other pass is needed to know them.
    pub(crate) fn learn(
        &self,
        tables: &pipeline::Tables,
        metas: &[crate::part::GroupMeta],
        files: &[pipeline::FileInfo],
        late: Vec<Late>,
        whole: bool,
    ) {
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        if learned.known {
            return;
        }
        let mut times = Times::default();
        metas.iter().for_each(|meta| times.add(meta));
        late.iter().for_each(|late| times.add_late(late));
        let names = self.sets.iter().flat_map(|set| set.files.iter().map(move |file| (set, file)));
        let sizes = self.read_from_traces().into_iter().flat_map(|streamed| &streamed.files).map(|file| file.size);
        let sources = names.zip(sizes).zip(files).map(|(((set, file), size), info)| {
            let stat = crate::catalog::Stat { size, ..Default::default() };
            Source::new(set, &SourceEntry::new(file, 0, stat, 0, info))
        });
        *learned = Learned {
            dictionary: Arc::new(overview::dictionary_of(tables)),
            late: Arc::new(late),
            times,
            sources: sources.collect(),
            groups: metas.len(),
            known: whole,
        };
    }
}
