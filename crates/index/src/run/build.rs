//! Builds an index, or updates the existing one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use weftline_format::files;

use crate::catalog::{Catalog, FORMAT, PartEntry, SourceEntry, Stat, mark_of};
use crate::input::TraceSet;
use crate::part::{PartWriter, rows_path, strings_path};
use crate::pipeline;
use crate::progress::Progress;
use crate::rows::Wanted;
use crate::source::TraceFile;
use crate::{IndexError, Result};

/// Bytes of trace files that share a part, and how many files at most. A file that changes costs its whole part.
const PART_BYTES: u64 = 256 << 20;
const PART_FILES: usize = 16 << 10;

/// A complete index.
pub(super) struct Built {
    pub directory: PathBuf,
    pub catalog: Catalog,
    /// Trace files that had to be read.
    pub read: usize,
}

/// The index of a part, if there is one: beside the traces, or in the cache.
pub(super) fn find(set: &TraceSet) -> Option<(PathBuf, Catalog)> {
    find_but(set, &[])
}

/// The same, but for those that are known to be damaged and could not be taken away.
fn find_but(set: &TraceSet, damaged: &[PathBuf]) -> Option<(PathBuf, Catalog)> {
    let mut places = set.places().filter(|place| !damaged.contains(place));
    places.find_map(|place| Catalog::read(&place).map(|catalog| (place, catalog)))
}

/// Whether there is an index of a part; whether it is any good is not looked at.
pub(super) fn exists(set: &TraceSet) -> bool {
    set.places().any(|place| place.join(crate::catalog::FILE).exists())
}

/// An index that was only looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peeked {
    /// Where it is; nothing when there is none.
    pub directory: Option<PathBuf>,
    /// What it covers.
    pub catalog: Catalog,
    /// Trace files that the next question would have to read.
    pub to_read: usize,
    /// Trace files that there are.
    pub files: usize,
}

/// Looks at the index of a part.
pub(super) fn peek(set: &TraceSet) -> Peeked {
    let (directory, catalog) = find(set).map_or_else(Default::default, |(place, catalog)| (Some(place), catalog));
    let to_read = plan(set, &stats_of(set), &catalog).read.len();
    Peeked { directory, catalog, to_read, files: set.files.len() }
}

fn stats_of(set: &TraceSet) -> BTreeMap<PathBuf, Stat> {
    set.files.iter().map(|file| (file.clone(), Stat::of(&set.path(file)))).collect()
}

/// A part's file, or what is new of it.
struct FileRange {
    file: PathBuf,
    stat: Stat,
    from: u64,
}

/// What must be read, and which parts stay.
struct Plan {
    keep: Vec<PartEntry>,
    read: Vec<FileRange>,
}

/// Makes sure that the index covers all files of a part as they are now. `damaged`: indexes that count for nothing though they are there.
pub(super) fn complete(set: &TraceSet, damaged: &[PathBuf], threads: usize, progress: &dyn Progress) -> Result<Built> {
    let stats = stats_of(set);
    if let Some((directory, catalog)) = find_but(set, damaged) {
        let plan = plan(set, &stats, &catalog);
        if plan.read.is_empty() && plan.keep.len() == catalog.parts.len() {
            return Ok(Built { directory, catalog, read: 0 });
        }
    }
    let directory = writable(set)?;
    // Two builders at once do the work once. Where locks do not work both do it, and the later one's catalog counts.
    let lock = files::change_or_create(&directory.join("lock")).map_err(IndexError::io(&directory))?;
    let _ = lock.lock();
    let catalog = Catalog::read(&directory).filter(|_| !damaged.contains(&directory)).unwrap_or_default();
    let Plan { mut keep, read } = plan(set, &stats, &catalog);
    let count = read.iter().map(|range| &range.file).collect::<BTreeSet<_>>().len();
    let bytes = read.iter().map(|range| range.stat.size - range.from).sum();
    if bytes > 0 {
        progress.begin("index", bytes);
    }
    let mut unfinished = Unfinished { directory: &directory, names: Vec::new() };
    for ranges in share(read) {
        keep.push(write_part(set, &mut unfinished, &ranges, threads, progress)?);
    }
    if bytes > 0 {
        progress.end();
    }
    keep.sort_by(|a, b| first_file(a).cmp(&first_file(b)));
    let tool = concat!("weftline ", env!("CARGO_PKG_VERSION")).to_owned();
    let catalog = Catalog { format: FORMAT, tool, parts: keep };
    catalog.write(&directory)?;
    unfinished.names.clear();
    drop(unfinished);
    sweep(&directory, &catalog);
    Ok(Built { directory, catalog, read: count })
}

/// Parts that no catalog names yet. What a builder could not finish must not fill a disk that is full already.
struct Unfinished<'d> {
    directory: &'d Path,
    names: Vec<String>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = fs::remove_file(rows_path(self.directory, name));
            let _ = fs::remove_file(strings_path(self.directory, name));
        }
    }
}

fn first_file(part: &PartEntry) -> Option<(&str, u64)> {
    part.sources.first().map(|source| (source.file.as_str(), source.from))
}

fn plan(set: &TraceSet, stats: &BTreeMap<PathBuf, Stat>, catalog: &Catalog) -> Plan {
    let mut known: BTreeMap<&str, Vec<&SourceEntry>> = BTreeMap::new();
    for source in catalog.sources() {
        known.entry(&source.file).or_default().push(source);
    }
    let mut stale: BTreeSet<&str> = BTreeSet::new();
    let mut grown: BTreeMap<&str, u64> = BTreeMap::new();
    let mut fresh: BTreeSet<&Path> = BTreeSet::new();
    for (file, stat) in stats {
        let path = set.path(file);
        let Some((name, sources)) = known.get_key_value(&*file.to_string_lossy()) else { continue };
        let Some(last) = sources.iter().max_by_key(|source| source.size) else { continue };
        if last.is_current(&path, *stat) {
            fresh.insert(file);
        } else if last.dialect == "Weftline" && last.has_grown(&path, *stat) {
            // A member is written whole: what was there ended with one.
            grown.insert(name, last.size);
        } else {
            stale.insert(name);
        }
    }
    for name in known.keys() {
        if !stats.contains_key(Path::new(name)) {
            stale.insert(name);
        }
    }
    let is_stale = |part: &PartEntry| part.sources.iter().any(|source| stale.contains(&*source.file));
    // Files of a part that goes are read again, in all parts.
    let again: BTreeSet<&str> = catalog
        .parts
        .iter()
        .filter(|part| is_stale(part))
        .flat_map(|part| part.sources.iter().map(|source| source.file.as_str()))
        .collect();
    let keeps = |part: &&PartEntry| !part.sources.iter().any(|source| again.contains(&*source.file));
    let keep: Vec<PartEntry> = catalog.parts.iter().filter(keeps).cloned().collect();
    let kept: BTreeSet<&str> = keep.iter().flat_map(|part| part.sources.iter().map(|s| s.file.as_str())).collect();
    let mut read = Vec::new();
    for (file, stat) in stats {
        let name = &*file.to_string_lossy();
        let from = match (kept.contains(name), grown.get(name)) {
            (true, Some(from)) => *from,
            (true, None) if fresh.contains(file.as_path()) => continue,
            _ => 0,
        };
        read.push(FileRange { file: file.clone(), stat: *stat, from });
    }
    Plan { keep, read }
}

/// Files that share a part.
fn share(read: Vec<FileRange>) -> Vec<Vec<FileRange>> {
    let mut shares: Vec<Vec<FileRange>> = Vec::new();
    let mut bytes = u64::MAX;
    for range in read {
        let full = bytes >= PART_BYTES || shares.last().is_some_and(|share| share.len() >= PART_FILES);
        if full {
            shares.push(Vec::new());
            bytes = 0;
        }
        bytes = bytes.saturating_add(range.stat.size);
        if let Some(share) = shares.last_mut() {
            share.push(range);
        }
    }
    shares
}

fn write_part(
    set: &TraceSet,
    unfinished: &mut Unfinished<'_>,
    ranges: &[FileRange],
    threads: usize,
    progress: &dyn Progress,
) -> Result<PartEntry> {
    // Marks are taken before the files are read: what changes meanwhile is noticed the next time.
    let mut marks = Vec::with_capacity(ranges.len());
    let mut files = Vec::with_capacity(ranges.len());
    for range in ranges {
        let path = set.path(&range.file);
        // An unreadable file has none; the code that reads it reports why.
        marks.push(mark_of(&path, range.stat.size).unwrap_or(0));
        files.push(TraceFile { path, size: range.stat.size, from: range.from });
    }
    let directory = unfinished.directory;
    let stem = tempfile::Builder::new()
        .prefix("s-")
        .rand_bytes(8)
        .tempfile_in(directory)
        .map_err(IndexError::io(directory))?;
    let name = stem.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    unfinished.names.push(name.clone());
    let writer = PartWriter::create(directory, &name)?;
    let gathered = pipeline::run(&files, threads, Wanted::ALL, &writer, progress)?;
    let (rows, bytes) = writer.finish(directory, &name, &gathered.tables, &gathered.late)?;
    let sources: Vec<SourceEntry> = ranges
        .iter()
        .zip(&marks)
        .zip(&gathered.files)
        .map(|((range, mark), info)| SourceEntry::new(&range.file, range.from, range.stat, *mark, info))
        .collect();
    Ok(PartEntry { name, rows, bytes, sources })
}

/// A directory for the index that can be written: beside the traces, or in the cache.
fn writable(set: &TraceSet) -> Result<PathBuf> {
    let mut refusal = None;
    for place in set.places() {
        match make(&place) {
            Ok(()) => return Ok(place),
            Err(source) => {
                let refused = [std::io::ErrorKind::PermissionDenied, std::io::ErrorKind::ReadOnlyFilesystem];
                if !refused.contains(&source.kind()) {
                    return Err(IndexError::Io { path: place, source });
                }
                refusal.get_or_insert((place, source));
            }
        }
    }
    let none = || std::io::Error::other("no cache directory; set XDG_CACHE_HOME or HOME");
    let (path, source) = refusal.unwrap_or_else(|| (set.beside(), none()));
    Err(IndexError::Io { path, source })
}

/// Makes the directory of an index and looks whether files can be made in it.
fn make(place: &Path) -> std::io::Result<()> {
    let parent = place.parent().unwrap_or(place);
    match files::directory(parent) {
        // In the cache, the directories above it may be missing too; only the user can write there.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => private_directories(parent)?,
        other => other?,
    }
    files::directory(place)?;
    tempfile::NamedTempFile::new_in(place).map(|_| ())
}

fn private_directories(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes the catalogs of parts: their parts count no more. Those that are still there, because nothing can be written there.
pub(super) fn discard(sets: &[TraceSet]) -> Vec<PathBuf> {
    let places: Vec<PathBuf> = sets.iter().flat_map(TraceSet::places).collect();
    places.iter().for_each(|place| Catalog::remove(place));
    places.into_iter().filter(|place| Catalog::read(place).is_some()).collect()
}

/// Whether the index of a part could be replaced, beside the traces or in the cache.
pub(super) fn is_replaceable(set: &TraceSet) -> bool {
    set.places().any(|place| place.ancestors().find(|path| path.exists()).is_some_and(files::is_writable))
}

/// Whether a name is one that an index gives its files: the catalog, the lock, parts and what a killed builder left of them.
pub(super) fn is_name_of_index(name: &str) -> bool {
    // Up to version 1 they were Parquet.
    let ends = [".rows", ".strings", ".parquet", ".tmp"];
    let is_part = name.starts_with("s-") || name.starts_with(".tmp") || ends.iter().any(|end| name.ends_with(end));
    is_part || [crate::catalog::FILE, "lock"].contains(&name)
}

/// Removes files of parts that are not in the catalog any more.
fn sweep(directory: &Path, catalog: &Catalog) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".parquet").unwrap_or(&name);
        let part = stem.strip_suffix(".rows").or_else(|| stem.strip_suffix(".strings"));
        if let Some(part) = part
            && !catalog.parts.iter().any(|entry| entry.name == part)
        {
            let _ = fs::remove_file(&path);
        }
    }
}
