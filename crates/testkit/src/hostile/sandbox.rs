//! A place for one trial: a run, and around it what no verb that reads the run may change.
//!
//! ```text
//! run/      the run; verbs may write into it
//! cache/    XDG_CACHE_HOME; verbs may write into it
//! decoy/    files of the user's, named like files of a run or not
//! home/ tmp/ cwd/    HOME, TMPDIR and the working directory; tmp holds live directories of other runs
//! ```

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::hash::Hasher as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use weftline_recorder::layout::{CONTROL_MAGIC, Control, LAYOUT_VERSION};

use super::bounded::{Bounds, Ended, run};
use crate::scratch::Scratch;

/// The name that the seeds' supervisor has in file names: pointers and live directories are called so.
pub const STEM: &str = "node-4711-99";

/// The user who has nothing.
const NOBODY: u32 = 65534;

/// A trial's place.
#[derive(Debug)]
pub struct Sandbox {
    scratch: Scratch,
    /// The run belongs to somebody else: then nobody may change it either.
    foreign: bool,
}

/// What is known of files that must not change.
pub type Snapshot = BTreeMap<PathBuf, String>;

impl Sandbox {
    /// Makes one below a directory, without a run.
    pub fn within(parent: &Path) -> Sandbox {
        let sandbox = Sandbox { scratch: Scratch::within(parent, "hostile"), foreign: false };
        for name in ["decoy/deep", "decoy.done", "home", "cache", "cwd", "tmp"] {
            directory(&sandbox.path(name));
        }
        for name in ["thesis.tex", "deep/data", "journal", "ctl", "a1", "index.json", "lock"] {
            file(&sandbox.path("decoy").join(name), b"kept");
            if !name.contains('/') {
                file(&sandbox.path("decoy.done").join(name), b"kept");
            }
        }
        fs::set_permissions(sandbox.path("decoy/thesis.tex"), fs::Permissions::from_mode(0o640)).expect("set");
        let own = sandbox.of_user();
        let other = own.join(format!("other-{STEM}"));
        let bare = own.join(format!("bare-{STEM}"));
        for live in [&other, &bare] {
            directory(live);
            for name in ["a0", "journal", "lock", "clock"] {
                file(&live.join(name), b"of another run");
            }
        }
        file(&other.join("ctl"), &control_of("another-run"));
        directory(&own.join(format!("old-{STEM}.done")));
        file(&own.join(format!("old-{STEM}.done/thesis.tex")), b"kept");
        sandbox
    }

    /// A path in it.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.join(name)
    }

    /// The run.
    pub fn run(&self) -> PathBuf {
        self.path("run")
    }

    /// The directory of the user's live directories.
    pub fn of_user(&self) -> PathBuf {
        self.path(format!("tmp/weft-{}", geteuid().as_raw()))
    }

    /// Places that a hostile file may name: none of them is outside.
    pub fn targets(&self) -> Vec<PathBuf> {
        let own = self.of_user();
        let mut found: Vec<PathBuf> = [
            "decoy",
            "decoy/deep",
            "decoy/thesis.tex",
            "decoy/deep/data",
            "decoy/new",
            "decoy/x-",
            "home",
            "home/.bashrc",
            "tmp",
            "cwd",
            "run",
            "run/..",
            "run/../decoy",
            "cache",
            "nowhere/at/all",
        ]
        .iter()
        .map(|name| self.path(name))
        .collect();
        found.extend(["other", "bare", "old", "new"].map(|name| own.join(format!("{name}-{STEM}"))));
        found.push(own);
        found
    }

    /// Runs a command in `cwd` with its variables pointing into the sandbox.
    pub fn command(&self, command: &[OsString], bounds: &Bounds) -> Ended {
        let variables =
            [("HOME", self.path("home")), ("XDG_CACHE_HOME", self.path("cache")), ("TMPDIR", self.path("tmp"))];
        run(command, &self.path("cwd"), self.scratch.path(), &variables, bounds)
    }

    /// Makes the run somebody else's.
    ///
    /// # Panics
    /// When we are not root.
    pub fn give_away(&mut self) {
        assert!(geteuid().is_root(), "giving a run to another user needs root");
        let given = std::os::unix::fs::chown(self.run(), Some(NOBODY), Some(NOBODY));
        given.unwrap_or_else(|error| panic!("{}: {error}", self.run().display()));
        self.foreign = true;
    }

    /// What must be the same afterwards: all but the run, the cache and the run's own live directory. A run of somebody else is among it.
    pub fn snapshot(&self) -> Snapshot {
        let mut found = Snapshot::new();
        self.visit(self.scratch.path(), &mut found);
        found
    }

    fn visit(&self, directory: &Path, found: &mut Snapshot) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let of_run = path == self.run() || self.is_own_live(&path);
            if path == self.path("cache") || (of_run && !self.foreign) {
                continue;
            }
            let Ok(data) = fs::symlink_metadata(&path) else { continue };
            let mut metadata = format!("mode {:o}, owner {}", data.mode(), data.uid());
            // The run's own live directory comes and goes in there.
            if path != self.of_user() && path != self.path("tmp") {
                metadata += &format!(", changed {}.{:09}", data.mtime(), data.mtime_nsec());
            }
            if data.is_file() {
                let mut hasher = DefaultHasher::new();
                hasher.write(&fs::read(&path).unwrap_or_default());
                metadata += &format!(", {} bytes {:016x}", data.len(), hasher.finish());
            } else if data.is_symlink() {
                metadata += &format!(", to {:?}", fs::read_link(&path).ok());
            } else if data.is_dir() {
                self.visit(&path, found);
            }
            found.insert(path, metadata);
        }
    }

    /// `tmp/weft-<uid>/run-<stem>`, where seeds may have their shared memory, and what it becomes while it is removed.
    fn is_own_live(&self, path: &Path) -> bool {
        let own = self.own_live();
        path == own || path == own.with_file_name(format!("run-{STEM}.done"))
    }

    /// See above.
    pub fn own_live(&self) -> PathBuf {
        self.of_user().join(format!("run-{STEM}"))
    }

    /// Keeps the place, for whoever looks into a failure; where it is.
    pub fn keep(self) -> PathBuf {
        let path = self.scratch.path().to_owned();
        std::mem::forget(self.scratch);
        path
    }
}

/// What differs, in at most five lines.
pub fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let absent = || "not there".to_owned();
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| {
            let (before, after) = (before.get(path), after.get(path));
            let shown = |metadata: Option<&String>| metadata.cloned().unwrap_or_else(absent);
            format!("{}: was {}, is {}", path.display(), shown(before), shown(after))
        })
        .take(5)
        .collect()
}

/// A control page that names a run.
pub fn control_of(run_id: &str) -> Vec<u8> {
    let mut page = vec![0; size_of::<Control>()];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(std::mem::offset_of!(Control, magic), &CONTROL_MAGIC.to_ne_bytes());
    put(std::mem::offset_of!(Control, version), &LAYOUT_VERSION.to_ne_bytes());
    put(std::mem::offset_of!(Control, run_id), run_id.as_bytes());
    page.resize(weftline_recorder::layout::CONTROL_SIZE, 0);
    page
}

/// A private directory with its parents.
pub(crate) fn directory(path: &Path) {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A file.
pub(crate) fn file(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a run of somebody else, each change inside as well.
    #[test]
    fn changes_in_a_foreign_run_are_seen() {
        let mut place = Sandbox::within(&crate::scratch::base());
        directory(&place.run().join("run.d"));
        place.give_away();
        let before = place.snapshot();
        file(&place.run().join("run.d/x.json"), b"x");
        assert_eq!(differences(&before, &place.snapshot()).len(), 2);
    }

    /// Each change that a verb could make outside is seen; what it may do is not.
    #[test]
    fn changes_outside_are_seen() {
        type Change = fn(&Sandbox);
        let cases: [(&str, usize, Change); 10] = [
            ("nothing", 0, |_| {}),
            ("a file in the run", 0, |place| file(&place.path("run/x"), b"x")),
            ("a file in the cache", 0, |place| file(&place.path("cache/x"), b"x")),
            ("the run's own live directory", 0, |place| directory(&place.own_live())),
            // The directory's time changes as well.
            ("a new file", 2, |place| file(&place.path("decoy/new"), b"x")),
            ("a file less", 2, |place| fs::remove_file(place.path("decoy/thesis.tex")).expect("removed")),
            ("other bytes of the same length", 1, |place| file(&place.path("decoy/thesis.tex"), b"lost")),
            ("another mode", 1, |place| {
                fs::set_permissions(place.path("decoy/deep"), fs::Permissions::from_mode(0o755)).expect("set");
            }),
            ("a directory of another run", 1, |place| {
                fs::remove_file(place.of_user().join(format!("bare-{STEM}/a0"))).expect("removed");
                let bare = place.of_user().join(format!("bare-{STEM}"));
                let moved = place.path("cache/bare");
                fs::rename(&bare, &moved).and_then(|()| fs::rename(moved, bare)).expect("moved");
            }),
            ("a file beside the run", 1, |place| file(&place.path("beside"), b"x")),
        ];
        for (name, least, change) in cases {
            let place = Sandbox::within(&crate::scratch::base());
            directory(&place.run());
            let before = place.snapshot();
            change(&place);
            let found = differences(&before, &place.snapshot());
            assert!(if least == 0 { found.is_empty() } else { found.len() >= least }, "{name}: {found:?}");
        }
    }
}
