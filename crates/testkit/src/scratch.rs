//! Directories for tests, on a disk that every user can traverse, removed unless the test failed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where everything of the testkit lives: `WEFT_TEST_DIR`, else `/var/tmp/weft-testkit` (on a disk, unlike `/tmp` on
/// many machines, and open to processes that dropped their privileges, unlike most home directories).
pub fn base() -> PathBuf {
    std::env::var_os("WEFT_TEST_DIR").map_or_else(|| "/var/tmp/weft-testkit".into(), PathBuf::from)
}

/// Makes a directory and its parents, passable for everybody.
pub(crate) fn make(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, open).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A directory of its own. Kept, and named in the panic's words by those who use it, when the test fails.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A fresh directory on disk.
    pub fn new(name: &str) -> Scratch {
        Scratch::within(&base(), name)
    }

    /// A fresh directory below `parent`, for instance on a tmpfs.
    pub fn within(parent: &Path, name: &str) -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{name}-{}-{number}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        make(&path);
        Scratch { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// A new directory inside.
    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.join(name);
        make(&path);
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // A leftover is an untidiness, not a failure of the test that ran in it.
            let _ = fs::remove_dir_all(&self.path);
            remove_live_directories(&self.path);
        }
    }
}

/// Shared memory of runs that lay in a directory and are gone with it: tests kill supervisors, and then nobody takes it in.
fn remove_live_directories(gone: &Path) {
    let users = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let own = users.filter(|user| user.file_name().to_string_lossy().starts_with("weft-"));
    for live in own.filter_map(|user| fs::read_dir(user.path()).ok()).flatten().flatten() {
        let run = fs::read(live.path().join("run")).unwrap_or_default();
        if Path::new(OsStr::from_bytes(&run)).starts_with(gone) {
            let _ = fs::remove_dir_all(live.path());
        }
    }
}
