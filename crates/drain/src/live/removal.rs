//! Removes a live directory after everything is written: file by file, and only files that this program makes.
//!
//! A run may be in a directory where others can write, or be open to others itself. So everything is removed relative to directories that are held open, none of
//! them a symlink, and the owner and mode of the live directory are checked again through the descriptor by which it is emptied.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use weftline_format::files::Held;

use super::{RULES, RUN, give_room, mode_of};
use crate::Result;
use crate::error::DrainError;

/// Files of a live directory besides arenas.
const FILES: [&str; 7] = ["ctl", RULES, "lock", "clock", "settings", "journal", RUN];

/// The name of a live directory before its removal: under this name nothing in it is needed.
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
/// else stays, and so does one that somebody put in its place.
pub(crate) fn remove(directory: &Path, pointer: &Path) -> Result<Option<String>> {
    give_room(pointer);
    let done = done_path(directory);
    let kept = match retire(directory, &done) {
        Ok(Outcome::Gone) => None,
        Ok(Outcome::Holds) => {
            Some(format!("{} holds files that weft did not make, so it was not removed", done.display()))
        }
        Ok(Outcome::Exchanged) => {
            return Ok(Some(format!(
                "{} is not the shared memory that was read, so it was not removed",
                directory.display()
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(DrainError::io(&done, error)),
    };
    // `.live` or `weft-<uid>`, when nobody else uses it.
    let _ = directory.parent().map(std::fs::remove_dir);
    let records = pointer.parent().unwrap_or(Path::new("."));
    let removed = Held::open(records).and_then(|records| records.remove_file(name_of(pointer)));
    missing_is_fine(removed).map_err(|error| DrainError::io(pointer, error))?;
    Ok(kept)
}

/// What became of a live directory.
enum Outcome {
    Gone,
    /// It has more in it than this program makes.
    Holds,
    /// Something else has its name, or lies where it lay.
    Exchanged,
}

/// Gives a live directory its last name, and removes what this program put into it, then itself.
fn retire(directory: &Path, done: &Path) -> io::Result<Outcome> {
    let parent = match Held::open(directory.parent().unwrap_or(Path::new("/"))) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Outcome::Exchanged),
        other => other?,
    };
    let done = name_of(done);
    missing_is_fine(parent.rename(name_of(directory), done))?;
    let held = match parent.below(done) {
        // A symlink of this name is removed as such: what it leads to is not ours.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return missing_is_fine(parent.remove_file(done)).map(|()| Outcome::Gone);
        }
        other => other?,
    };
    if !held.is_own(mode_of(true))? {
        return Ok(Outcome::Exchanged);
    }
    if !held.clear(is_ours, false)? {
        return Ok(Outcome::Holds);
    }
    match parent.remove_directory(done) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(Outcome::Holds),
        other => missing_is_fine(other).map(|()| Outcome::Gone),
    }
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// Another process may have removed it already.
fn missing_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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
    use std::fs;
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};

    use super::{is_ours, remove};

    fn private(path: &std::path::Path) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).expect("made");
        for name in ["ctl", "a1", "journal"] {
            fs::write(path.join(name), "x").expect("written");
        }
    }

    /// Between a look at a live directory and its removal somebody puts something else in its place: nothing of that goes.
    #[test]
    fn what_was_exchanged_is_left_alone() {
        type Exchange = fn(&std::path::Path);
        let cases: [(&str, Option<&str>, Exchange); 4] = [
            ("nothing", None, |_| {}),
            (".live is a link", Some("not the shared memory"), |place| {
                fs::rename(place.join("run/.live"), place.join("run/aside")).expect("moved");
                symlink(place.join("victim"), place.join("run/.live")).expect("linked");
            }),
            ("the directory is a link", None, |place| {
                fs::rename(place.join("run/.live/n-1-2"), place.join("run/aside")).expect("moved");
                symlink(place.join("victim/n-1-2"), place.join("run/.live/n-1-2")).expect("linked");
            }),
            ("others can write to it", Some("not the shared memory"), |place| {
                let path = place.join("run/.live/n-1-2");
                fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("set");
            }),
        ];
        for (name, expected, exchange) in cases {
            let place = tempfile::tempdir().expect("a directory");
            let at = |name: &str| place.path().join(name);
            private(&at("run/.live/n-1-2"));
            private(&at("victim/n-1-2"));
            fs::create_dir(at("run/run.d")).expect("made");
            fs::write(at("run/run.d/n-1-2.live"), "{}").expect("written");
            exchange(place.path());
            let reported = remove(&at("run/.live/n-1-2"), &at("run/run.d/n-1-2.live")).expect(name);
            assert_eq!(fs::read_dir(at("victim/n-1-2")).expect("there").count(), 3, "{name}");
            match (expected, reported) {
                (None, None) => assert!(!at("run/.live").exists() && !at("run/run.d/n-1-2.live").exists(), "{name}"),
                // The pointer stays, so that the user can repair it.
                (Some(expected), Some(reported)) => {
                    assert!(reported.contains(expected) && at("run/run.d/n-1-2.live").exists(), "{reported}");
                }
                (_, reported) => panic!("{name}: {reported:?}"),
            }
        }
    }

    #[test]
    fn only_names_that_weft_gives_are_removed() {
        for name in
            ["ctl", "lock", "clock", "settings", "journal", "run", "rules", "a0", "a123", "a64.17", ".settings.0f.tmp"]
        {
            assert!(is_ours(name), "{name}");
        }
        for name in ["a", "a.", "a1.", "a.1", "a1.2.3", "a1b", "A1", "ctl2", "thesis.tex", ".bashrc", "", ".", ".."] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
