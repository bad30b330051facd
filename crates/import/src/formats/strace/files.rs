//! Which file a descriptor is, where strace did not write it (`-y`): followed from open to close, per process, with a bound.

use std::collections::HashMap;
use std::rc::Rc;

/// Open files of all processes that are remembered.
const MOST_FILES: usize = 1 << 20;
/// Processes that are remembered.
const MOST_PROCESSES: usize = 1 << 18;

/// An open file.
#[derive(Debug, Clone)]
struct File {
    path: Rc<[u8]>,
    /// Whether `execve` closes it.
    closes: bool,
}

/// What is known of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    files: HashMap<i64, File>,
    /// The working directory.
    pub directory: Option<Rc<[u8]>>,
    /// What it is called.
    pub name: String,
    /// What it executes.
    pub exe: String,
}

/// All processes of a trace.
#[derive(Debug, Default)]
pub(super) struct Processes {
    all: HashMap<u32, Process>,
    files: usize,
}

impl Processes {
    /// The process of a pid.
    pub(super) fn get(&self, pid: u32) -> Option<&Process> {
        self.all.get(&pid)
    }

    /// The process of a pid; one that is new has the files of its parent. None where there are too many.
    pub(super) fn entry(&mut self, pid: u32, parent: Option<u32>) -> Option<&mut Process> {
        if !self.all.contains_key(&pid) {
            if self.all.len() >= MOST_PROCESSES {
                return None;
            }
            let inherited = parent.and_then(|parent| self.all.get(&parent));
            let inherited = inherited.filter(|parent| self.files + parent.files.len() <= MOST_FILES);
            let process = inherited.cloned().unwrap_or_default();
            self.files += process.files.len();
            self.all.insert(pid, process);
        }
        self.all.get_mut(&pid)
    }

    /// Forgets a process that has ended.
    pub(super) fn end(&mut self, pid: u32) {
        if let Some(process) = self.all.remove(&pid) {
            self.files -= process.files.len();
        }
    }

    /// The file of a descriptor.
    pub(super) fn path(&self, pid: u32, fd: i64) -> Option<&Rc<[u8]>> {
        Some(&self.all.get(&pid)?.files.get(&fd)?.path)
    }

    /// A descriptor is a file from now on.
    pub(super) fn open(&mut self, pid: u32, fd: i64, path: Rc<[u8]>, closes: bool) {
        let room = self.files < MOST_FILES;
        let Some(process) = self.all.get_mut(&pid) else { return };
        if room || process.files.contains_key(&fd) {
            self.files += usize::from(process.files.insert(fd, File { path, closes }).is_none());
        }
    }

    /// A descriptor is what another one is. Without a known file it is none.
    pub(super) fn duplicate(&mut self, pid: u32, from: i64, to: i64, closes: bool) {
        if from == to {
            return;
        }
        match self.path(pid, from).cloned() {
            Some(path) => self.open(pid, to, path, closes),
            None => self.close(pid, to, to),
        }
    }

    /// `FD_CLOEXEC` of a descriptor.
    pub(super) fn set_closes(&mut self, pid: u32, fd: i64, closes: bool) {
        if let Some(file) = self.all.get_mut(&pid).and_then(|process| process.files.get_mut(&fd)) {
            file.closes = closes;
        }
    }

    /// Descriptors from one to another are no files any more.
    pub(super) fn close(&mut self, pid: u32, first: i64, last: i64) {
        let Some(process) = self.all.get_mut(&pid) else { return };
        let before = process.files.len();
        if first == last {
            process.files.remove(&first);
        } else {
            process.files.retain(|fd, _| !(first..=last).contains(fd));
        }
        self.files -= before - process.files.len();
    }

    /// The process executes a program.
    pub(super) fn execute(&mut self, pid: u32) {
        let Some(process) = self.all.get_mut(&pid) else { return };
        let before = process.files.len();
        process.files.retain(|_, file| !file.closes);
        self.files -= before - process.files.len();
    }
}
