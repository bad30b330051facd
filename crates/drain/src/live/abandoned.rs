//! Live directories in memory without a drain: their supervisor was killed, and no verb has read the run since. They hold memory
//! until one does, so `weft doctor` lists them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use weftline_format::files;

use super::{MEMORY, RUN, of_user};
use crate::system;

/// A live directory that is left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// Where it lies.
    pub directory: PathBuf,
    /// The run that it says it belongs to; reading that run takes it away.
    pub run: PathBuf,
    /// Memory that it takes.
    pub bytes: u64,
}

/// Those of the calling user on this machine.
pub fn abandoned() -> Vec<Abandoned> {
    let all = [false, true].map(|shared| in_directory(&Path::new(MEMORY).join(of_user(shared))));
    all.into_iter().flatten().collect()
}

fn in_directory(parent: &Path) -> Vec<Abandoned> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<Abandoned> = entries.filter_map(|entry| look(&entry.path())).collect();
    found.sort_by(|a, b| a.directory.cmp(&b.directory));
    found
}

fn look(directory: &Path) -> Option<Abandoned> {
    let lock = files::change(&directory.join("lock")).ok()?;
    // Taken and given back at once: a drain that begins now would be told that another one is at it, so only its own may be asked for.
    if !system::lock(&lock).is_ok_and(|free| free) {
        return None;
    }
    let run = files::read(&directory.join(RUN)).unwrap_or_default();
    let size =
        |entry: std::fs::DirEntry| entry.metadata().ok().filter(|data| data.is_file()).map(|data| data.blocks() * 512);
    let bytes = std::fs::read_dir(directory).ok()?.flatten().filter_map(size).sum();
    Some(Abandoned { directory: directory.to_owned(), run: OsStr::from_bytes(&run).into(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{Live, LiveOptions, Place};

    #[test]
    fn directories_without_a_drain_are_found() {
        let run = tempfile::tempdir().expect("a temporary directory");
        let live =
            Live::create(run.path(), &LiveOptions { place: Place::Memory, ..LiveOptions::default() }).expect("made");
        let directory = live.directory().to_owned();
        let parent = directory.parent().expect("a parent").to_owned();
        let mine = || in_directory(&parent).into_iter().find(|found| found.directory == directory);
        assert_eq!(mine(), None, "somebody drains it");
        live.leave();
        let found = mine().expect("left over");
        assert_eq!(found.run, run.path().canonicalize().expect("there"));
        assert!(found.bytes > 0);
        crate::recover(run.path(), &crate::RecoverOptions { believe_ended: true, ..Default::default() })
            .expect("recovered");
        assert_eq!(mine(), None, "it is gone");
    }
}
