//! The paths of open files: from the calls that opened them, or, for files that were open before, from `/proc/PID/fd`.
//!
//! Files are identified by their kernel object, not by descriptor, so that duplicated, inherited and passed descriptors need no
//! bookkeeping, and a reused descriptor is never taken for the previous file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::Identity;

/// A path, shared by all events that name it.
pub(super) type SharedPath = Arc<[u8]>;

/// When this many files are known, those whose processes are gone are too many: all are forgotten and found again.
const MOST: usize = 1 << 20;

#[derive(Debug, Default)]
struct Process {
    cwd: Option<SharedPath>,
    /// Descriptors at the time it was first followed, for when `/proc` no longer has them.
    at_start: Arc<HashMap<i32, SharedPath>>,
}

/// Paths of files and working directories.
#[derive(Debug)]
pub(super) struct Files {
    proc: PathBuf,
    paths: HashMap<Identity, Option<SharedPath>>,
    /// The newest path of each inode: what page faults go by.
    inodes: HashMap<u64, SharedPath>,
    processes: HashMap<u32, Process>,
}

impl Files {
    pub(super) fn new(proc: &Path) -> Files {
        let (paths, inodes, processes) = Default::default();
        Files { proc: proc.to_owned(), paths, inodes, processes }
    }

    /// A process is followed from now on: its working directory and open descriptors.
    pub(super) fn follow(&mut self, pid: u32) {
        let directory = self.proc.join(pid.to_string());
        let mut at_start = HashMap::new();
        for entry in std::fs::read_dir(directory.join("fd")).into_iter().flatten().flatten() {
            let fd = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let (Some(fd), Some(path)) = (fd, link(&entry.path())) {
                at_start.insert(fd, path);
            }
        }
        self.processes.insert(pid, Process { cwd: link(&directory.join("cwd")), at_start: Arc::new(at_start) });
    }

    pub(super) fn forked(&mut self, parent: u32, child: u32) {
        let process = match self.processes.get(&parent) {
            Some(known) => Process { cwd: known.cwd.clone(), at_start: Arc::clone(&known.at_start) },
            None => Process { cwd: link(&self.proc.join(child.to_string()).join("cwd")), ..Process::default() },
        };
        self.processes.insert(child, process);
    }

    /// Descriptors that close on exec are gone.
    pub(super) fn executed(&mut self, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.at_start = Arc::default();
        }
    }

    pub(super) fn exited(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    pub(super) fn changed_directory(&mut self, pid: u32, to: SharedPath) {
        self.processes.entry(pid).or_default().cwd = Some(to);
    }

    /// A file was opened.
    pub(super) fn opened(&mut self, identity: Identity, path: SharedPath) {
        if self.paths.len() >= MOST {
            self.paths.clear();
            self.inodes.clear();
        }
        self.inodes.insert(identity.inode, Arc::clone(&path));
        self.paths.insert(identity, Some(path));
    }

    /// The path of an open file.
    pub(super) fn path(&mut self, identity: Identity, pid: u32, fd: Option<i32>) -> Option<SharedPath> {
        let identity = identity.known()?;
        match self.paths.entry(identity) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => {
                let fd = fd?;
                let process = self.processes.get(&pid);
                let found = link(&self.proc.join(format!("{pid}/fd/{fd}")))
                    .or_else(|| process.and_then(|process| process.at_start.get(&fd).cloned()));
                if let Some(path) = &found {
                    self.inodes.entry(identity.inode).or_insert_with(|| Arc::clone(path));
                }
                unknown.insert(found).clone()
            }
        }
    }

    pub(super) fn path_of_inode(&self, inode: u64) -> Option<SharedPath> {
        self.inodes.get(&inode).cloned()
    }

    /// A path as a process gave it, from the root: a relative one starts at `directory`, or at the working directory.
    pub(super) fn resolve(&self, path: &[u8], pid: u32, directory: Option<&[u8]>) -> SharedPath {
        if path.first() == Some(&b'/') {
            return path.into();
        }
        let base = directory.or_else(|| self.processes.get(&pid)?.cwd.as_deref());
        let Some(base) = base else { return path.into() };
        let mut path = path;
        while let Some(rest) = path.strip_prefix(b"./") {
            path = rest;
        }
        if path.is_empty() || path == b"." {
            return base.into();
        }
        let mut whole = base.to_vec();
        if whole.last() != Some(&b'/') {
            whole.push(b'/');
        }
        whole.extend_from_slice(path);
        whole.into()
    }
}

fn link(path: &Path) -> Option<SharedPath> {
    std::fs::read_link(path).ok().map(|target| target.into_os_string().into_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let mut files = Files::new(Path::new("/nowhere"));
        files.changed_directory(7, b"/home/u"[..].into());
        files
    }

    #[test]
    fn relative_paths_start_somewhere() {
        let mut files = files();
        files.forked(7, 8);
        for (pid, directory, path, whole) in [
            (7, None, "/etc/x", "/etc/x"),
            (7, None, "a", "/home/u/a"),
            (8, None, "././a/b", "/home/u/a/b"),
            (8, None, ".", "/home/u"),
            (7, Some("/"), "a", "/a"),
            (7, Some("/data"), "a", "/data/a"),
            (7, Some("/data"), "", "/data"),
            (9, None, "a", "a"),
        ] {
            let found = files.resolve(path.as_bytes(), pid, directory.map(str::as_bytes));
            assert_eq!(String::from_utf8_lossy(&found), whole, "{path}");
        }
    }

    #[test]
    fn a_file_is_known_until_its_address_means_another() {
        let mut files = files();
        let identity = Identity { file: 1, inode: 2 };
        files.opened(identity, b"/a"[..].into());
        assert_eq!(files.path(identity, 9, Some(3)).as_deref(), Some(&b"/a"[..]));
        assert_eq!(files.path_of_inode(2).as_deref(), Some(&b"/a"[..]));
        assert_eq!(files.path(Identity { file: 1, inode: 3 }, 9, Some(3)), None);
        assert_eq!(files.path(Identity::default(), 9, Some(3)), None);
    }

    #[test]
    fn descriptors_from_before_are_found() {
        let own = std::process::id();
        let file = std::fs::File::open("/etc/passwd").expect("there is always one");
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let mut files = Files::new(Path::new("/proc"));
        files.follow(own);
        assert_eq!(files.path(Identity { file: 5, inode: 6 }, own, Some(fd)).as_deref(), Some(&b"/etc/passwd"[..]));
        files.forked(own, 4_000_000_000);
        let inherited = files.path(Identity { file: 7, inode: 6 }, 4_000_000_000, Some(fd));
        assert_eq!(inherited.as_deref(), Some(&b"/etc/passwd"[..]));
    }
}
