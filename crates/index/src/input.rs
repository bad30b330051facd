//! Resolves what the user named to trace files and the place of their index.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;
use weftline_format::files;
use weftline_format::hash::path_hash;
use weftline_format::manifest::{RECORD_DIR, RunManifest};
use weftline_format::progress::Progress;
use weftline_format::reader::is_trace_name;

use crate::{IndexError, Result};

/// Directories below the one that was named which are looked into when it holds no trace itself.
const DEPTH: usize = 4;
/// The directory of indexes, beside the traces.
pub const DIRECTORY: &str = ".weft";

/// Trace files that share an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSet {
    /// The directory that the files lie in or below.
    pub base: PathBuf,
    /// The files, relative to it, in order.
    pub files: Vec<PathBuf>,
    /// Name of the index within [`DIRECTORY`].
    pub index: String,
}

impl TraceSet {
    /// A file's path.
    pub fn path(&self, file: &Path) -> PathBuf {
        self.base.join(file)
    }

    /// The place of its index beside the traces.
    pub fn beside(&self) -> PathBuf {
        self.base.join(DIRECTORY).join(&self.index)
    }

    /// The places of its index, the better one first. Beside the traces only where their directory is the caller's, and nothing on the way there is
    /// a symlink: an index of somebody else is not believed, and nothing is written into the directory of another user.
    pub fn places(&self) -> impl Iterator<Item = PathBuf> {
        let beside = self.beside();
        let planted = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir());
        let usable = self.is_own() && !planted(&beside) && !beside.parent().is_some_and(planted);
        usable.then_some(beside).into_iter().chain(self.in_cache())
    }

    /// Whether the directory of the traces belongs to the caller.
    pub fn is_own(&self) -> bool {
        files::is_own(&self.base)
    }

    /// The place of its index if the traces' directory cannot be written.
    pub fn in_cache(&self) -> Option<PathBuf> {
        let whole = fs::canonicalize(&self.base).unwrap_or_else(|_| self.base.clone());
        let hash = path_hash(whole.as_os_str().as_encoded_bytes());
        Some(cache_directory()?.join("index").join(format!("{hash:016x}")).join(&self.index))
    }
}

/// Variables that say where the user's caches are, the first one first.
pub const CACHE_VARIABLES: [&str; 2] = ["XDG_CACHE_HOME", "HOME"];

/// `$XDG_CACHE_HOME/weftline`, or `~/.cache/weftline`.
pub fn cache_directory() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let [cache, home] = CACHE_VARIABLES.map(|name| env::var_os(name).map(PathBuf::from).and_then(absolute));
    cache.or_else(|| home.map(|home| home.join(".cache"))).map(|cache| cache.join("weftline"))
}

/// Finds the trace files of what was named: directories, files, globs. `groups`: only these of a directory with a `manifest.json`.
///
/// The one place where a path becomes a run: the command, SQL and Python open runs through [`Run::open`](crate::Run::open), which asks here first. What
/// the index does not read by itself is imported into the cache directory before anything else looks at it.
pub fn resolve(named: &[PathBuf], groups: &[String], progress: &dyn Progress) -> Result<Vec<TraceSet>> {
    let mut sets: Vec<TraceSet> = Vec::new();
    for path in named {
        let imported = imported(path, progress)?;
        let path = imported.as_ref().unwrap_or(path);
        let itself = || vec![set_of_files(std::slice::from_ref(path))];
        let among_others = named.len() > 1;
        let found = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => match in_directory(path, groups) {
                // A directory where a shell's `*` names files is as good as a file that cannot be read.
                Err(IndexError::NoTraces { .. }) if among_others && groups.is_empty() => itself(),
                found => found?,
            },
            Ok(_) => itself(),
            // A link that leads nowhere; a name that nothing has is a typing error.
            Err(_) if among_others && fs::symlink_metadata(path).is_ok() => itself(),
            Err(_) if is_glob(path) => by_glob(path)?,
            Err(source) => return Err(IndexError::Io { path: path.clone(), source }),
        };
        for set in found {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
    }
    Ok(sets)
}

/// The run in the cache that a foreign file or folder became. None for what is read as it is, and where there is no cache directory.
pub fn imported(path: &Path, progress: &dyn Progress) -> Result<Option<PathBuf>> {
    match cache_directory() {
        Some(cache) if path.exists() => Ok(weftline_import::resolve::cached(path, &cache, progress)?),
        _ => Ok(None),
    }
}

/// Whether a directory is a run of ours, whatever it holds.
pub(crate) fn is_run(directory: &Path) -> bool {
    RunManifest::read(directory).is_ok_and(|manifest| !manifest.id.is_empty())
}

fn in_directory(directory: &Path, groups: &[String]) -> Result<Vec<TraceSet>> {
    if !groups.is_empty() {
        return in_groups(directory, groups);
    }
    let mut files = Vec::new();
    collect(directory, Path::new(""), DEPTH, &mut BTreeSet::new(), &mut files)?;
    // A run that recorded nothing is still a run.
    if files.is_empty() && !is_run(directory) {
        return Err(IndexError::NoTraces { path: directory.to_owned() });
    }
    files.sort();
    Ok(vec![TraceSet { base: directory.to_owned(), files, index: "index".to_owned() }])
}

/// The traces of a directory; where it has none, those of the directories below. What has the name of a trace and is no file is among them:
/// whoever tries to read it says why that cannot be.
///
/// `seen`: directories by device and inode. A link back to one of them would name its traces again.
fn collect(
    base: &Path,
    below: &Path,
    depth: usize,
    seen: &mut BTreeSet<(u64, u64)>,
    files: &mut Vec<PathBuf>,
) -> Result<()> {
    let here = base.join(below);
    let itself = fs::metadata(&here).map_err(IndexError::io(&here))?;
    if !seen.insert((itself.dev(), itself.ino())) {
        return Ok(());
    }
    let (mut directories, mut others) = (Vec::new(), Vec::new());
    let before = files.len();
    // In order, so that of two ways to a directory it is always the same one that is taken.
    let entries = fs::read_dir(&here).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut entries = entries.map_err(IndexError::io(&here))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = PathBuf::from(entry.file_name());
        if name.as_os_str().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        let is_trace = is_trace_name(&path) && name.as_os_str() != MANIFEST;
        if path.is_dir() {
            // Records of a run's supervisors are no traces, though their names end alike.
            if name.as_os_str() != RECORD_DIR {
                directories.push((below.join(name), is_trace));
            }
        } else if is_trace {
            let found = if path.is_file() { &mut *files } else { &mut others };
            found.push(below.join(name));
        }
    }
    let look_below = files.len() == before && depth > 0;
    for (directory, is_trace) in directories {
        if look_below {
            // An unreadable directory does not hide those beside it.
            match collect(base, &directory, depth - 1, seen, files) {
                Err(IndexError::Io { .. }) => others.push(directory),
                other => other?,
            }
        } else if is_trace {
            others.push(directory);
        }
    }
    files.append(&mut others);
    Ok(())
}

const MANIFEST: &str = "manifest.json";

#[derive(Deserialize)]
struct Manifest {
    groups: BTreeMap<String, PathBuf>,
}

/// Traces that were sorted into groups: `{"groups": {name: subfolder}}`.
fn in_groups(directory: &Path, wanted: &[String]) -> Result<Vec<TraceSet>> {
    let path = directory.join(MANIFEST);
    let text = files::read(&path).map_err(IndexError::io(&path))?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| IndexError::Io { path: path.clone(), source: std::io::Error::other(error) })?;
    let mut sets = Vec::new();
    for name in wanted {
        let Some(folder) = manifest.groups.get(name) else {
            let known = manifest.groups.into_keys().collect();
            return Err(IndexError::NoGroup { manifest: path, name: name.clone(), known });
        };
        sets.extend(in_directory(&directory.join(folder), &[])?);
    }
    Ok(sets)
}

fn is_glob(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[{".contains(byte))
}

fn by_glob(pattern: &Path) -> Result<Vec<TraceSet>> {
    let text = pattern.to_string_lossy();
    let bad = |error: globset::Error| IndexError::BadGlob { pattern: text.to_string(), why: error.to_string() };
    let glob = globset::GlobBuilder::new(&text).literal_separator(true).build().map_err(bad)?.compile_matcher();
    let fixed: PathBuf = pattern.components().take_while(|part| !is_glob(Path::new(part))).collect();
    let start = if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed };
    let depth = pattern.components().count();
    let mut files = Vec::new();
    walk(&start, depth, &mut |path| {
        let shown = path.strip_prefix("./").unwrap_or(path);
        if glob.is_match(shown) || glob.is_match(path) {
            files.push(path.to_owned());
        }
    });
    if files.is_empty() {
        return Err(IndexError::NoTraces { path: pattern.to_owned() });
    }
    Ok(vec![set_of_files(&files)])
}

fn walk(directory: &Path, depth: usize, each: &mut impl FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_directory = path.is_dir();
        if !is_directory || is_trace_name(&path) {
            each(&path);
        }
        if is_directory && depth > 0 {
            walk(&path, depth - 1, each);
        }
    }
}

/// Files that were named themselves: their index is beside the first one.
fn set_of_files(files: &[PathBuf]) -> TraceSet {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut base = files.first().map_or_else(|| PathBuf::from("."), |first| parent(first));
    while !files.iter().all(|file| file.starts_with(&base) || base == Path::new(".")) {
        base = parent(&base);
    }
    let relative = |file: &PathBuf| file.strip_prefix(&base).unwrap_or(file).to_owned();
    let mut files: Vec<PathBuf> = files.iter().map(relative).collect();
    files.sort();
    let all: Vec<u8> = files.iter().flat_map(|file| [file.as_os_str().as_encoded_bytes(), b"\n"].concat()).collect();
    let stem = files.first().and_then(|file| file.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    let stem: String = stem.chars().take(80).collect();
    TraceSet { base, files, index: format!("{stem}-{:08x}", path_hash(&all) as u32) }
}

#[cfg(test)]
mod tests {
    use weftline_format::progress::Silent;

    use super::*;

    /// The trace files of a directory that holds these files.
    fn check(files: &[&str], expected: &[&str]) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().expect("below the directory")).expect("own directory");
            fs::write(path, "{}\n").expect("own directory");
        }
        let found = match resolve(&[directory.path().to_owned()], &[], &Silent) {
            Ok(sets) => sets.into_iter().flat_map(|set| set.files).collect(),
            Err(IndexError::NoTraces { .. }) => Vec::new(),
            Err(error) => panic!("{files:?}: {error}"),
        };
        assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{files:?}");
    }

    #[test]
    fn records_of_supervisors_are_no_traces() {
        check(&["run.json", "run.d/vm-1-2.json"], &[]);
        check(&["run.json", "run.d/vm-1-2.json", "a.pfw.gz"], &["a.pfw.gz"]);
        check(&["first/run.json", "first/run.d/vm-1-2.json", "first/b.pfw", "second/run.d/x.json"], &["first/b.pfw"]);
        check(&["a.json", "manifest.json", ".hidden.json", "notes.txt"], &["a.json"]);
    }

    #[test]
    fn links_to_directories_above_name_nothing_twice() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("deep")).expect("made");
        fs::write(directory.path().join("deep/a.pfw"), "{}\n").expect("written");
        for link in ["loop", "deep/loop", "again"] {
            std::os::unix::fs::symlink(directory.path(), directory.path().join(link)).expect("linked");
        }
        std::os::unix::fs::symlink("deep", directory.path().join("same")).expect("linked");
        let sets = resolve(&[directory.path().to_owned()], &[], &Silent).expect("found");
        assert_eq!(sets[0].files, [PathBuf::from("deep/a.pfw")]);
    }
}
