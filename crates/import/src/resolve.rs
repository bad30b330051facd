//! Any foreign file or folder as a run: imported once into the cache directory, under a mark of what it holds.

use std::fs;
use std::hash::Hasher as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use twox_hash::XxHash64;
use weftline_format::manifest::RunManifest;
use weftline_format::progress::{Progress, Silent};
use weftline_format::reader::{holds_events, is_trace_name};

use crate::import::{Options, Target, import};
use crate::input::{Head, file_name};
use crate::registry::{Confidence, detect};
use crate::walk::{Limits, is_hidden, walk};
use crate::{ImportError, Result};

/// Changes when an importer reads the same bytes otherwise: runs in the cache are then made anew.
const REVISION: u32 = 1;
/// Directories below a folder in which the index looks for traces.
const DEPTH: u32 = 4;
/// Files of a folder or archive that are looked at to see what it is.
const MOST_LOOKED_AT: u32 = 200;

/// Whether something is of a format that only this crate reads. A folder that holds traces which the index reads by itself is not.
pub fn is_foreign(path: &Path) -> bool {
    if path.is_dir() && (RunManifest::read(path).is_ok() || holds_traces(path, DEPTH)) {
        return false;
    }
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    if name.ends_with(b".pfw") || name.ends_with(b".pfw.gz") {
        return false;
    }
    let (mut foreign, mut looked_at) = (false, 0);
    let _ = walk(path, Limits::default(), &Silent, &mut |found, _| {
        looked_at += 1;
        let head = Head { name: file_name(found.name), bytes: found.head };
        foreign |= detect(&head).is_some_and(|(_, sure)| sure > Confidence::Possible);
        match foreign || looked_at >= MOST_LOOKED_AT {
            true => Err(ImportError::Option("seen enough".to_owned())),
            false => Ok(()),
        }
    });
    foreign
}

/// Whether there are traces that the index reads by itself, so many directories deep.
fn holds_traces(folder: &Path, depth: u32) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let here: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| !path.is_symlink()).collect();
    let is_trace = |path: &PathBuf| is_trace_name(path) && path.is_file() && holds_events(path).unwrap_or(false);
    here.iter().any(is_trace) || depth > 0 && here.iter().any(|path| path.is_dir() && holds_traces(path, depth - 1))
}

/// The run of a foreign file or folder, made if the cache does not have it. None where there is nothing foreign.
pub fn cached(path: &Path, cache: &Path, progress: &dyn Progress) -> Result<Option<PathBuf>> {
    if !is_foreign(path) {
        return Ok(None);
    }
    let place = place(path, cache)?;
    if place.is_dir() {
        return Ok(Some(place));
    }
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).map_err(ImportError::io(parent))?;
    }
    match import(&[path.to_owned()], Target::New(&place), &Options::default(), progress) {
        Ok(_) => Ok(Some(place)),
        // Somebody else was first.
        Err(_) if place.is_dir() => Ok(Some(place)),
        Err(error) => Err(error),
    }
}

/// Where the run of something lies, by its path, and by the sizes and times of its files.
pub fn place(path: &Path, cache: &Path) -> Result<PathBuf> {
    let whole = fs::canonicalize(path).map_err(ImportError::io(path))?;
    let mut mark = XxHash64::with_seed(u64::from(REVISION));
    mark.write(env!("CARGO_PKG_VERSION").as_bytes());
    let mut pending = vec![whole];
    while let Some(path) = pending.pop() {
        let data = fs::symlink_metadata(&path).map_err(ImportError::io(&path))?;
        mark.write(path.as_os_str().as_encoded_bytes());
        for number in [data.len(), data.mtime() as u64, data.mtime_nsec() as u64, data.ino(), u64::from(data.mode())] {
            mark.write_u64(number);
        }
        if data.is_dir() {
            let entries = fs::read_dir(&path).map_err(ImportError::io(&path))?;
            let mut below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            below.sort();
            pending.extend(below.into_iter().filter(|path| !is_hidden(&path.to_string_lossy())));
        }
    }
    Ok(cache.join("import").join(format!("{:016x}", mark.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "10.0.0.7 - - [18/Nov/2026:09:05:00 +0100] \"GET /a HTTP/1.1\" 200 612 \"-\" \"curl\" 3 0.5 -\n";

    #[test]
    fn once_and_again_when_it_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let elsewhere = tempfile::tempdir().expect("a directory");
        let (log, cache) = (directory.path().join("access.log"), elsewhere.path().join("cache"));
        fs::write(&log, LOG).expect("written");
        let first = cached(&log, &cache, &Silent).expect("imported").expect("foreign");
        assert_eq!(cached(&log, &cache, &Silent).expect("known"), Some(first.clone()));
        fs::write(&log, LOG.repeat(2)).expect("written");
        let second = cached(&log, &cache, &Silent).expect("imported").expect("foreign");
        assert_ne!(first, second);
        let folder =
            cached(directory.path(), &cache, &Silent).expect("imported").expect("a folder with a log is foreign");
        assert!(folder.join("run.json").is_file());
        assert_eq!(fs::read_dir(cache.join("import")).expect("listed").count(), 3, "no staging directory is left");
    }

    #[test]
    fn what_the_index_reads_is_not_copied() {
        let directory = tempfile::tempdir().expect("a directory");
        let event = "{\"name\":\"a\",\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}\n";
        let trace = directory.path().join("t.json");
        fs::write(&trace, event).expect("written");
        fs::write(directory.path().join("access.log"), LOG).expect("written");
        for path in [&trace, directory.path()] {
            assert!(!is_foreign(path), "{}", path.display());
        }
        assert!(!is_foreign(&directory.path().join("nothing")));
    }
}
