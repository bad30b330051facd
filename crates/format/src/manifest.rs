//! The run manifest: facts about a run besides its events.
//!
//! `run.json` is written once, by the process that starts the run, and never rewritten. Every supervisor and collector owns one file
//! `run.d/<host>-<pid>-<start>.json` and replaces it as a whole (temporary file, then rename), so no reader ever sees
//! half of one and no two writers share one; readers merge. Unknown fields are ignored and missing ones get their
//! default, so that old and new versions can read each other's files. [`crate::text`] describes how strings are stored.

mod records;
mod sums;
pub mod utc;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::files;

pub use records::{
    CallTotal, ClockAnchor, Exit, FileTotal, IoCount, IoSpan, KernelRecord, KernelTotals, Launcher, ProcessRecord,
    RunManifest, SampleRecord, SpanTotal, State, SupervisorRecord, TracedBytes,
};

/// The version of both kinds of files. It changes when an old reader would misunderstand a new file.
pub const SCHEMA: u32 = 1;
/// The file made once per run.
pub const RUN_FILE: &str = "run.json";
/// The directory of the files that supervisors own.
pub const RECORD_DIR: &str = "run.d";
/// How the names of files with samples end; what is before it is [`record_stem`].
pub const SAMPLES_END: &str = ".samples.pfw.gz";
/// The same of files with what the kernel told.
pub const KERNEL_END: &str = ".kernel.pfw.gz";

/// A manifest file could not be read or written.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why, with line and column.
        source: serde_json::Error,
    },
}

impl ManifestError {
    fn io(path: &Path, source: io::Error) -> ManifestError {
        ManifestError::Io { path: path.to_owned(), source }
    }

    /// Whether the file is simply not there (or, for [`RunManifest::create`], already there).
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            ManifestError::Io { source, .. } => Some(source.kind()),
            ManifestError::Json { .. } => None,
        }
    }
}

impl RunManifest {
    /// Writes `run.json` into the run directory unless there is one. A nested or parallel start that comes second gets
    /// an error of the kind `AlreadyExists` and finds the first one's file untouched.
    pub fn create(&self, run: &Path) -> Result<(), ManifestError> {
        let path = run.join(RUN_FILE);
        let fail = |source| ManifestError::io(&path, source);
        let text = text_of(&path, self)?;
        let (temporary, mut file) = files::create_beside(&path).map_err(fail)?;
        if let Err(source) = file.write_all(&text) {
            // A full disk leaves a part of it; the error says more than a failed removal would.
            let _ = fs::remove_file(&temporary);
            return Err(fail(source));
        }
        // A link fails when the name is taken; a rename would replace. Not every file system has links.
        let linked = match fs::hard_link(&temporary, &path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists && !path.exists() => fs::rename(&temporary, &path),
            other => other,
        };
        // Gone already when it was renamed.
        let _ = fs::remove_file(&temporary);
        linked.map_err(fail)
    }

    /// Reads the `run.json` of a run directory.
    pub fn read(run: &Path) -> Result<RunManifest, ManifestError> {
        read_json(&run.join(RUN_FILE))
    }
}

impl SupervisorRecord {
    /// Where the record lies within a run directory.
    pub fn path(&self, run: &Path) -> PathBuf {
        let host: String = self.host.chars().map(|c| if c == '/' || c == '\0' { '_' } else { c }).collect();
        run.join(RECORD_DIR).join(format!("{}.json", record_stem(&host, self.pid, self.start, self.session)))
    }

    /// Writes the record, or replaces the one written before.
    pub fn write(&self, run: &Path) -> Result<(), ManifestError> {
        let path = self.path(run);
        let dir = run.join(RECORD_DIR);
        files::directory(&dir).map_err(|source| ManifestError::io(&dir, source))?;
        files::replace(&path, &text_of(&path, self)?).map_err(|source| ManifestError::io(&path, source))
    }

    /// Reads one record.
    pub fn read(path: &Path) -> Result<SupervisorRecord, ManifestError> {
        read_json(path)
    }

    /// Reads all records of a run, in the order of their file names, and what could not be read.
    pub fn read_all(run: &Path) -> (Vec<SupervisorRecord>, Vec<ManifestError>) {
        let dir = run.join(RECORD_DIR);
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return (Vec::new(), Vec::new()),
            Err(e) => return (Vec::new(), vec![ManifestError::io(&dir, e)]),
        };
        let mut paths: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|e| e == "json") && !is_hidden(path))
            .collect();
        paths.sort();
        let (mut records, mut errors) = (Vec::new(), Vec::new());
        for path in paths {
            match SupervisorRecord::read(&path) {
                Ok(record) => records.push(record),
                Err(error) => errors.push(error),
            }
        }
        (records, errors)
    }
}

/// `<host>-<pid>-<start>`, and the session where it is not the first: what the files of one supervisor begin with.
pub fn record_stem(host: &str, pid: u32, start: u64, session: u32) -> String {
    match session {
        0 => format!("{host}-{pid}-{start}"),
        session => format!("{host}-{pid}-{start}-{session}"),
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn text_of<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>, ManifestError> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|source| ManifestError::Json { path: path.to_owned(), source })?;
    text.push(b'\n');
    Ok(text)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ManifestError> {
    let text = files::read(path).map_err(|source| ManifestError::io(path, source))?;
    serde_json::from_slice(&text).map_err(|source| ManifestError::Json { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn sample() -> SupervisorRecord {
        SupervisorRecord {
            host: "vm".into(),
            pid: 7,
            start: 99,
            exit: Some(Exit { code: None, signal: Some(9) }),
            state: State::Complete,
            clocks: vec![ClockAnchor { tsc: u64::MAX, monotonic_ns: 1, realtime_ns: -1 }],
            processes: vec![ProcessRecord {
                pid: 8,
                exe: crate::identity::held(b"/bin/\xff"),
                drops: BTreeMap::from([("arena full".to_owned(), 3)]),
                io: Some(IoSpan { start: IoCount { rchar: 1, wchar: 2 }, end: IoCount { rchar: 3, wchar: 4 } }),
                ..ProcessRecord::default()
            }],
            ..SupervisorRecord::default()
        }
    }

    #[test]
    fn records_come_back_and_are_replaced_whole() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut record = sample();
        record.write(dir.path()).expect("written");
        record.wall_ns = 5;
        record.write(dir.path()).expect("replaced");
        fs::write(dir.path().join("run.d/broken.json"), "{").expect("written");
        fs::write(dir.path().join("run.d/.left.json"), "{").expect("written");
        let (records, errors) = SupervisorRecord::read_all(dir.path());
        assert_eq!(records, [record]);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].to_string().contains("broken.json"), "{}", errors[0]);
    }

    #[test]
    fn a_run_is_created_once() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let first = RunManifest { id: "a".into(), ..RunManifest::default() };
        first.create(dir.path()).expect("created");
        let second = RunManifest { id: "b".into(), ..RunManifest::default() };
        let refused = second.create(dir.path()).expect_err("the name is taken");
        assert_eq!(refused.kind(), Some(io::ErrorKind::AlreadyExists));
        assert_eq!(RunManifest::read(dir.path()).expect("read"), first);
        assert_eq!(fs::read_dir(dir.path()).expect("listed").count(), 1, "no temporary file is left");
    }

    #[test]
    fn other_versions_are_read() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join(RUN_FILE);
        fs::write(&path, r#"{"schema":1,"id":"x","from_the_future":{"a":[1]},"launcher":{"kind":"slurm"}}"#)
            .expect("written");
        let run = RunManifest::read(dir.path()).expect("read");
        assert_eq!((run.id.as_str(), run.launcher.kind.as_str(), run.launcher.rank), ("x", "slurm", None));
        let record: SupervisorRecord = serde_json::from_str(r#"{"processes":[{"pid":3,"io":null}]}"#).expect("read");
        assert_eq!((record.processes[0].pid, record.state), (3, State::Open));
        assert!(SupervisorRecord::read_all(&dir.path().join("nowhere")).1.is_empty());
    }
}
