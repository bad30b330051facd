//! An opened run: its trace files, their index, and what their ids mean.

mod build;
mod facts;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use crate::catalog::SourceEntry;
use crate::dictionary::Dictionary;
use crate::input::{self, Part};
use crate::pipeline;
use crate::progress::{Progress, Silent};
use crate::rows::{Late, Wanted};
use crate::scan::Renumber;
use crate::segment::Segment;
use crate::source::TraceFile;
use crate::{IndexError, Result};

pub use build::Peeked;
pub use facts::{Source, Times};

/// How a run is to be opened.
#[derive(Clone)]
pub struct OpenOptions {
    /// Without an index: every question reads the traces again, and nothing is written.
    pub no_index: bool,
    /// Only these groups of a directory with a `manifest.json`.
    pub groups: Vec<String>,
    /// Threads; by default one per processor.
    pub threads: Option<usize>,
    /// Who is told how far long work is.
    pub progress: Arc<dyn Progress>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { no_index: false, groups: Vec::new(), threads: None, progress: Arc::new(Silent) }
    }
}

/// Where the rows come from.
pub(crate) enum Content {
    Indexed(Vec<(Segment, Renumber)>),
    Streamed(Streamed),
}

pub(crate) struct Streamed {
    pub files: Vec<TraceFile>,
    /// Traces of some dialects have spans whose two ends are two events: the durations are known after a first pass.
    pub may_have_pairs: bool,
}

/// What a first pass over a run without an index finds out.
#[derive(Default)]
struct Learned {
    dictionary: Arc<Dictionary>,
    late: Arc<Vec<Late>>,
    times: Times,
    sources: Vec<Source>,
    known: bool,
}

/// An opened run.
pub struct Run {
    pub(crate) content: Content,
    pub(crate) threads: usize,
    pub(crate) progress: Arc<dyn Progress>,
    parts: Vec<Part>,
    learned: RwLock<Learned>,
    index: Vec<IndexState>,
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

impl Run {
    /// Opens what was named: directories, files, globs. Builds or completes the index.
    pub fn open(named: &[PathBuf], options: &OpenOptions) -> Result<Run> {
        let parts = input::locate(named, &options.groups)?;
        let threads = options.threads.unwrap_or_else(pipeline::threads).max(1);
        if options.no_index {
            return Run::streamed(parts, threads, options);
        }
        match Run::indexed(&parts, threads, options) {
            // Somebody damaged the index, or another builder has just replaced it: it is only a copy.
            Err(IndexError::Damaged { .. }) => build::discard(&parts),
            Err(IndexError::Io { path, .. }) if build::is_of_index(&path) => {}
            other => return other,
        }
        Run::indexed(&parts, threads, options)
    }

    fn indexed(parts: &[Part], threads: usize, options: &OpenOptions) -> Result<Run> {
        let (mut segments, mut index, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            let built = build::complete(part, threads, &*options.progress)?;
            index.push(IndexState {
                directory: built.directory.clone(),
                bytes: built.catalog.bytes(),
                rows: built.catalog.rows(),
                read: built.read,
                kept: part.files.len() - built.read,
            });
            for entry in &built.catalog.segments {
                segments.push((built.directory.clone(), entry.name.clone()));
            }
            sources.extend(built.catalog.sources().map(|entry| Source::new(part, entry)));
        }
        let facts::Joined { segments, dictionary, times } = facts::join(&segments)?;
        let learned = Learned { dictionary: Arc::new(dictionary), late: Arc::default(), times, sources, known: true };
        Ok(Run {
            content: Content::Indexed(segments),
            threads,
            progress: Arc::clone(&options.progress),
            parts: parts.to_vec(),
            learned: RwLock::new(learned),
            index,
        })
    }

    fn streamed(parts: Vec<Part>, threads: usize, options: &OpenOptions) -> Result<Run> {
        let mut files = Vec::new();
        for part in &parts {
            for file in &part.files {
                let path = part.path(file);
                let size = crate::catalog::Stat::of(&path)?.size;
                files.push(TraceFile { path, size, from: 0 });
            }
        }
        let may_have_pairs = facts::may_have_pairs(&files);
        Ok(Run {
            content: Content::Streamed(Streamed { files, may_have_pairs }),
            threads,
            progress: Arc::clone(&options.progress),
            parts,
            learned: RwLock::default(),
            index: Vec::new(),
        })
    }

    /// Removes the index of what was named, wherever it lies. How many there were.
    pub fn remove_index(named: &[PathBuf], groups: &[String]) -> Result<usize> {
        let mut removed = 0;
        for part in input::locate(named, groups)? {
            for directory in part.places() {
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
        let parts = input::locate(named, groups)?;
        parts.iter().map(build::peek).collect()
    }

    /// The parts: what was named, as directories and files.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The state of the index, one entry per part; nothing when the run is read without.
    pub fn index(&self) -> &[IndexState] {
        &self.index
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

    pub(crate) fn late(&self) -> Arc<Vec<Late>> {
        Arc::clone(&self.read().late)
    }

    /// Makes sure that the dictionary is known: of a run without an index that takes a pass over its traces.
    pub fn prepare(&self) -> Result<()> {
        let Content::Streamed(streamed) = &self.content else { return Ok(()) };
        if self.read().known {
            return Ok(());
        }
        let gathered = pipeline::run(&streamed.files, self.threads, Wanted::SURVEY, &facts::Survey, &*self.progress)?;
        let metas: Vec<_> = gathered.states.into_iter().flatten().collect();
        self.learn(&gathered.tables, &metas, &gathered.files, gathered.late, true);
        Ok(())
    }

    /// Takes up what a pass found out. `whole`: it looked at times and files, so that no other pass is needed to know them.
    pub(crate) fn learn(
        &self,
        tables: &pipeline::Tables,
        metas: &[crate::segment::GroupMeta],
        files: &[pipeline::FileFacts],
        late: Vec<Late>,
        whole: bool,
    ) {
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        if learned.known {
            return;
        }
        let mut times = Times::default();
        metas.iter().for_each(|meta| times.add(meta));
        late.iter().for_each(|late| times.end_at(late.end));
        let names = self.parts.iter().flat_map(|part| part.files.iter().map(move |file| (part, file)));
        let sources = names.zip(files).map(|((part, file), facts)| {
            let stat = crate::catalog::Stat { size: 0, mtime_ns: 0, inode: 0 };
            Source::new(part, &SourceEntry::new(file, 0, stat, 0, facts))
        });
        *learned = Learned {
            dictionary: Arc::new(facts::dictionary_of(tables)),
            late: Arc::new(late),
            times,
            sources: sources.collect(),
            known: whole,
        };
    }
}
