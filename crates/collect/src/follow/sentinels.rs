//! Watches a directory: a file named by a pid requests that this process be followed.
//!
//! inotify reports a new file at once. Files are never removed here: they belong to their creator. A useless file (no such process,
//! or no match with the pattern) is reported once.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::error::{CollectError, Result};
use crate::read::number;

/// How long a process may be something else before its sentinel is reported: a wrapper makes the file, then becomes the program.
const PATIENCE_NS: i64 = 1_000_000_000;

/// The sentinels of a directory.
#[derive(Debug)]
pub(super) struct Sentinels {
    directory: PathBuf,
    events: OwnedFd,
    /// Sentinels that are not followed yet, and since when.
    waiting: BTreeMap<u32, i64>,
    /// Names that were reported.
    reported: BTreeSet<String>,
    pub(super) messages: Vec<String>,
    listed: bool,
}

impl Sentinels {
    /// Watches a directory, which is made if it is not there: the one who makes the files may come later.
    pub(super) fn watch(directory: &Path) -> Result<Sentinels> {
        let fail = |error: std::io::Error| CollectError::io(directory, error);
        std::fs::create_dir_all(directory).map_err(fail)?;
        let events =
            inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(CollectError::system("inotify"))?;
        let kinds = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&events, directory, kinds).map_err(|error| fail(error.into()))?;
        Ok(Sentinels {
            directory: directory.to_owned(),
            events,
            waiting: BTreeMap::new(),
            reported: BTreeSet::new(),
            messages: Vec::new(),
            listed: false,
        })
    }

    pub(super) fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// The processes to follow from now on. `look` checks whether a process matches; nothing if there is none.
    pub(super) fn take(&mut self, now_ns: i64, look: &mut dyn FnMut(u32) -> Option<bool>) -> Vec<u32> {
        self.read_events(now_ns);
        if !self.listed {
            self.listed = true;
            self.list(now_ns);
        }
        let mut chosen = Vec::new();
        let mut reports = Vec::new();
        self.waiting.retain(|pid, since| match look(*pid) {
            Some(true) => {
                chosen.push(*pid);
                false
            }
            answer => {
                if now_ns.saturating_sub(*since) >= PATIENCE_NS || answer.is_none() {
                    reports.push((*pid, answer));
                }
                answer.is_some()
            }
        });
        for (pid, answer) in reports {
            let why =
                if answer.is_none() { "there is no such process" } else { "its process does not match the pattern" };
            self.report(&pid.to_string(), why);
        }
        chosen
    }

    /// A followed process has ended; if its sentinel is still there, that is its maker's business.
    pub(super) fn ended(&mut self, pid: u32) {
        self.waiting.remove(&pid);
    }

    fn read_events(&mut self, now_ns: i64) {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut names: Vec<(String, bool)> = Vec::new();
        let mut reader = inotify::Reader::new(&self.events, &mut room);
        // EAGAIN ends it.
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                self.listed = false;
            }
            let gone = event.events().intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM);
            if let Some(name) = event.file_name() {
                names.push((name.to_string_lossy().into_owned(), gone));
            }
        }
        for (name, gone) in names {
            if gone {
                self.reported.remove(&name);
                name.parse().map(|pid: u32| self.waiting.remove(&pid)).ok();
            } else {
                self.note(&name, now_ns);
            }
        }
    }

    fn list(&mut self, now_ns: i64) {
        for name in crate::read::names(&self.directory) {
            self.note(&name, now_ns);
        }
    }

    fn note(&mut self, name: &str, now_ns: i64) {
        match number(name.as_bytes()).and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0) {
            Some(pid) => {
                self.waiting.entry(pid).or_insert(now_ns);
            }
            // Files of other tools and editors' temporary ones.
            None if name.starts_with('.') => {}
            None => self.report(name, "its name is not the number of a process"),
        }
    }

    fn report(&mut self, name: &str, why: &str) {
        /// A directory full of other things must not fill the memory.
        const MOST_REPORTS: usize = 1000;
        if self.reported.len() < MOST_REPORTS && self.reported.insert(name.to_owned()) {
            self.messages.push(format!("{}: {why}; the file is ignored", self.directory.join(name).display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn sentinels_come_go_and_are_foreign() {
        let place = tempfile::tempdir().expect("a directory");
        let pids = place.path().join("not/yet");
        let mut sentinels = Sentinels::watch(&pids).expect("watched");
        let make = |name: &str| fs::write(pids.join(name), "").expect("made");
        // 10 and 11 match, 20 does so only from 500 ms on, 30 never; others do not exist.
        let take = |sentinels: &mut Sentinels, at_ms: i64| {
            let chosen = sentinels.take(at_ms * 1_000_000, &mut |pid| match pid {
                10 | 11 => Some(true),
                20 => Some(at_ms >= 500),
                30 => Some(false),
                _ => None,
            });
            (chosen, std::mem::take(&mut sentinels.messages))
        };
        make("10");
        assert_eq!(take(&mut sentinels, 0), (vec![10], vec![]));
        for name in ["11", "20", "30", "99", "x", "-5", "4294967296", ".hidden"] {
            make(name);
        }
        let (chosen, messages) = take(&mut sentinels, 100);
        assert_eq!(chosen, [11]);
        assert_eq!(messages.len(), 4, "{messages:?}");
        for name in ["99: there is no such", "x: its name is not", "-5: its name", "4294967296: its name"] {
            assert!(messages.iter().any(|message| message.contains(name)), "{name}");
        }
        assert_eq!(take(&mut sentinels, 600), (vec![20], vec![]));
        let (chosen, messages) = take(&mut sentinels, 1200);
        assert_eq!((chosen, messages.len()), (vec![], 1), "{messages:?}");
        assert_eq!(take(&mut sentinels, 2400), (vec![], vec![]), "each thing once");
        assert_eq!(fs::read_dir(&pids).expect("there").count(), 9, "none is removed");
        fs::remove_file(pids.join("30")).expect("removed");
        take(&mut sentinels, 2500);
        assert!(sentinels.waiting.is_empty());
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        Sentinels::watch(file.path()).expect_err("refused");
    }
}
