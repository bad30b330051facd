//! Run directories: which directories are runs, which of them is the newest, and what their files are.
//!
//! What `weft` and other readers take for the runs of a place is decided here; what a path means to a question is [`crate::input`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weftline_format::manifest::{KERNEL_END, RUN_FILE, RunManifest, SAMPLES_END};
use weftline_format::reader::is_trace_name;

use crate::{IndexError, Result};

/// Where runs lie for which nobody named a place.
pub const RUNS: &str = "weft-runs";

/// Whether a directory was made as a run.
pub fn is_run(path: &Path) -> bool {
    path.join(RUN_FILE).is_file()
}

/// What has a manifest directly in a directory, also one that cannot be read: the list of runs reports it. Nothing where there is no such directory.
pub fn runs_in(place: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(IndexError::Io { path: place.to_owned(), source }),
    };
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.join(RUN_FILE).exists()).collect())
}

/// The run that was begun last. Names begin with the second; two runs may begin within one, and a run may have any name.
pub fn newest_of(runs: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let begun = |path: &PathBuf| RunManifest::read(path).map_or(i64::MIN, |manifest| manifest.created_ns);
    runs.max_by_key(|path| (begun(path), path.clone()))
}

/// What has the name of a trace directly in a directory, in order of names; whether it can be read shows when somebody tries to.
pub fn traces_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).map_err(|source| IndexError::Io { path: directory.to_owned(), source })?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_trace_name(path)).collect();
    files.sort();
    Ok(files)
}

fn ends_with(path: &Path, end: &str) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(end.as_bytes()))
}

/// Whether a file holds samples, which are no events of a program.
pub fn is_samples(path: &Path) -> bool {
    ends_with(path, SAMPLES_END)
}

/// Whether a file holds what the kernel told.
pub fn is_kernel(path: &Path) -> bool {
    ends_with(path, KERNEL_END)
}

/// Bytes of all trace files in a run, without samples.
pub fn trace_bytes(run: &Path) -> u64 {
    traces_in(run)
        .unwrap_or_default()
        .iter()
        .filter(|path| !is_samples(path))
        .filter_map(|path| path.metadata().ok())
        .filter(fs::Metadata::is_file)
        .fold(0, |sum, data| sum.saturating_add(data.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that began at this time.
    fn begun(place: &Path, name: &str, created_ns: i64) -> PathBuf {
        let run = place.join(name);
        fs::create_dir(&run).expect("made");
        let manifest = RunManifest { id: name.to_owned(), created_ns, ..RunManifest::default() };
        manifest.create(&run).expect("written");
        run
    }

    #[test]
    fn the_newest_run_is_the_one_that_began_last() {
        let place = tempfile::tempdir().expect("a directory");
        let runs = [("c", 5), ("a", 7), ("b", 6)].map(|(name, ns)| begun(place.path(), name, ns));
        assert_eq!(newest_of(runs.iter().cloned()).as_ref(), Some(&runs[1]));
        let same = ["y", "z", "x"].map(|name| begun(place.path(), name, 8));
        assert_eq!(newest_of(runs.into_iter().chain(same.clone())).as_ref(), Some(&same[1]));
        assert_eq!(newest_of(std::iter::empty()), None);
        fs::create_dir(place.path().join("no run")).expect("made");
        assert_eq!(runs_in(place.path()).expect("listed").len(), 6);
        assert!(runs_in(&place.path().join("nowhere")).expect("nothing is there").is_empty());
        runs_in(&place.path().join("a/run.json")).expect_err("a file holds no runs");
    }

    #[test]
    fn samples_are_no_part_of_a_traces_size() {
        let run = tempfile::tempdir().expect("a directory");
        for (name, bytes) in [("vm-1-2.pfw.gz", 7), ("vm-1-2.kernel.pfw.gz", 5), ("vm-1-2.samples.pfw.gz", 3), ("x", 9)]
        {
            fs::write(run.path().join(name), vec![b' '; bytes]).expect("written");
        }
        assert_eq!(trace_bytes(run.path()), 12);
        let found = traces_in(run.path()).expect("listed");
        assert_eq!(
            found.iter().map(|path| (is_kernel(path), is_samples(path))).collect::<Vec<_>>(),
            [(true, false), (false, false), (false, true)]
        );
    }
}
