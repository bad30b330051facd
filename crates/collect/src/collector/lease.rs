//! The lease on sampling a host: one collector per node and run holds it, by the lock of a file in the run directory.
//!
//! Several ranks of a job, or a collector beside `weft run`, would all write the same numbers. The lock ends with its holder, so another
//! collector takes over then.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use weftline_format::files;
use weftline_format::manifest::RECORD_DIR;

/// The lease of this collector. Released when dropped.
#[derive(Debug)]
pub(super) struct SamplerLease {
    path: PathBuf,
    _file: File,
}

impl SamplerLease {
    /// Takes the lease if it is free.
    pub(super) fn take(run: &Path, host: &str) -> Option<SamplerLease> {
        let directory = run.join(RECORD_DIR);
        files::directory(&directory).ok()?;
        let path = directory.join(format!(".{}.sampler", host.replace(['/', '\0'], "_")));
        let file = files::change_or_create(&path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        // Its holder may have removed the file between the two calls: then this is the lock of nothing.
        let current = std::fs::metadata(&path).ok()?;
        let own = file.metadata().ok()?;
        (current.ino() == own.ino() && current.dev() == own.dev()).then_some(SamplerLease { path, _file: file })
    }
}

impl Drop for SamplerLease {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let run = tempfile::tempdir().expect("a directory");
        let first = SamplerLease::take(run.path(), "vm").expect("free");
        assert!(SamplerLease::take(run.path(), "vm").is_none(), "held");
        let other = SamplerLease::take(run.path(), "vm2").expect("another node's");
        drop(first);
        let second = SamplerLease::take(run.path(), "vm").expect("free again");
        drop((second, other));
        assert_eq!(std::fs::read_dir(run.path().join(RECORD_DIR)).expect("there").count(), 0);
    }
}
