//! Removing a live directory of which everything is written: file by file, and only what this program makes.

use std::io;
use std::path::{Path, PathBuf};

use super::{RUN, give_room};
use crate::Result;
use crate::error::DrainError;

/// Files of a live directory besides arenas.
const FILES: [&str; 6] = ["ctl", "lock", "clock", "settings", "journal", RUN];

/// Where a live directory goes before it is removed: whoever finds it there knows that nothing in it is needed.
fn done_path(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(".done");
    PathBuf::from(name)
}

/// Whether a removal of this live directory was begun.
pub(crate) fn removal_begun(directory: &Path) -> bool {
    done_path(directory).exists()
}

/// Removes a live directory and the pointer to it. May be repeated after a kill. What the user should hear: a directory that holds something
/// else stays.
pub(crate) fn remove(directory: &Path, pointer: &Path) -> Result<Option<String>> {
    give_room(pointer);
    let missing_is_fine = |path: &Path, result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DrainError::io(path, error)),
        _ => Ok(()),
    };
    let done = done_path(directory);
    missing_is_fine(directory, std::fs::rename(directory, &done))?;
    let kept = match clear(&done) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Some(format!("{} holds files that weft did not make; they are left there", done.display()))
        }
        other => missing_is_fine(&done, other).map(|()| None)?,
    };
    // `.live` or `weft-<uid>`, when nobody else uses it.
    let _ = directory.parent().map(std::fs::remove_dir);
    missing_is_fine(pointer, std::fs::remove_file(pointer))?;
    Ok(kept)
}

/// Removes what this program put into a live directory, then the directory.
fn clear(done: &Path) -> io::Result<()> {
    // A symlink of this name is removed as such: what it leads to is not ours.
    if std::fs::symlink_metadata(done)?.is_symlink() {
        return std::fs::remove_file(done);
    }
    for entry in std::fs::read_dir(done)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_ours) && !entry.file_type()?.is_dir() {
            std::fs::remove_file(entry.path())?;
        }
    }
    std::fs::remove_dir(done)
}

/// Whether a name is one that this program gives.
fn is_ours(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_arena = |rest: &str| match rest.split_once('.') {
        Some((number, piece)) => is_number(number) && is_number(piece),
        None => is_number(rest),
    };
    // Half a file of settings: its writer was killed.
    let is_temporary = name.starts_with(".settings.") && name.ends_with(".tmp");
    FILES.contains(&name) || name.strip_prefix('a').is_some_and(is_arena) || is_temporary
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn only_names_that_weft_gives_are_removed() {
        for name in ["ctl", "lock", "clock", "settings", "journal", "run", "a0", "a123", "a64.17", ".settings.0f.tmp"] {
            assert!(is_ours(name), "{name}");
        }
        for name in ["a", "a.", "a1.", "a.1", "a1.2.3", "a1b", "A1", "ctl2", "thesis.tex", ".bashrc", "", ".", ".."] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
