//! Finds what killed processes left, writes it to files and publishes them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Result;
use crate::host::Owner;
use crate::publish::{self, How, Publication, Published};

/// The hidden directories that a path means: itself, those in a directory, or those whose files would begin with this prefix.
pub fn find(path: &Path) -> Result<Vec<PathBuf>> {
    if Publication::read(path)?.is_some() {
        return Ok(vec![path.to_owned()]);
    }
    if path.is_dir() {
        return publish::hidden_directories(path, b"");
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match path.file_name() {
        Some(prefix) if directory.is_dir() => publish::hidden_directories(directory, prefix.as_bytes()),
        _ => Ok(Vec::new()),
    }
}

/// Publishes what the dead processes of a hidden directory have recorded. With `ended`, the caller's parent is believed to have ended if it
/// said so.
pub fn finish(hidden: &Path, ended: bool) -> Result<Published> {
    let patience = if ended { Duration::from_secs(30) } else { Duration::ZERO };
    publish::finish_directory(hidden, How { believe_ended: ended, patience })
}

/// So much shared memory, a second or two of work, is published while a program waits to begin; more is left to `weft recover`.
const SWEEP_LIMIT: u64 = 256 << 20;

/// Publishes what dead processes of the same program left beside a hidden directory, which may be gone by now.
pub(crate) fn sweep_beside(hidden: &Path) -> Vec<String> {
    let name = hidden.file_name().map(|name| common_part(name.as_bytes())).unwrap_or_default();
    match hidden.parent() {
        Some(directory) if !name.is_empty() => sweep(directory, OsStr::from_bytes(name)),
        _ => Vec::new(),
    }
}

/// Of the name `.<base>-<app>-<pid>…` what workers of one program have in common: all but the numbers at the end.
fn common_part(name: &[u8]) -> &[u8] {
    let mut name = name.strip_prefix(b".").unwrap_or(name);
    name = name.strip_suffix(publish::HIDDEN_END.as_bytes()).unwrap_or(name);
    while let Some(at) = name.iter().rposition(|byte| !byte.is_ascii_digit())
        && name[at] == b'-'
        && at + 1 < name.len()
    {
        name = &name[..at];
    }
    name
}

/// Publishes what processes that are dead now left at a place; what the user should hear of that. Costs one look at the directory when
/// there is nothing.
pub(crate) fn sweep(directory: &Path, base: &OsStr) -> Vec<String> {
    let mut prefix = base.as_bytes().to_vec();
    prefix.push(b'-');
    let Ok(found) = publish::hidden_directories(directory, &prefix) else { return Vec::new() };
    if found.is_empty() {
        return Vec::new();
    }
    let here = Owner::here();
    let mut messages = Vec::new();
    for hidden in found {
        let abandoned =
            Publication::read(&hidden).map(|publication| publication.is_some_and(|p| !p.owner.may_live(&here)));
        let outcome = match abandoned {
            Ok(true) if size_below(&hidden) > SWEEP_LIMIT => {
                let place = hidden.display();
                messages.push(format!("a killed process left a long trace; `weft recover {place}` writes its files"));
                continue;
            }
            Ok(true) => finish(&hidden, false),
            Ok(false) => continue,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(published) => messages.extend(published.messages),
            Err(error) => messages.push(format!("the trace of a killed process cannot be written: {error}")),
        }
    }
    messages
}

/// Bytes of all files below a directory.
fn size_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size_below(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_one_program_are_known_by_their_name() {
        for (name, common) in [
            (".out-app-123.weft", "out-app"),
            (".out-app-123-2.weft", "out-app"),
            (".a-b-train.v2-9.weft", "a-b-train.v2"),
            (".perfflow-x--7.weft", "perfflow-x-"),
            (".1-2-3.weft", "1"),
        ] {
            assert_eq!(common_part(name.as_bytes()), common.as_bytes(), "{name}");
        }
    }

    #[test]
    fn files_are_summed_up() {
        let place = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir_all(place.path().join("a/b")).expect("made");
        std::fs::write(place.path().join("a/b/c"), [0; 100]).expect("written");
        std::fs::write(place.path().join("a/d"), [0; 11]).expect("written");
        assert_eq!(size_below(place.path()), 111);
        assert_eq!(size_below(&place.path().join("nowhere")), 0);
    }
}
