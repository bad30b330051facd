//! What an import leaves in its run: `run.d/<mark>.import`, read by `weft info`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weftline_format::files;
use weftline_format::manifest::RECORD_DIR;

use crate::clock::Clock;
use crate::{ImportError, Result};

/// How the names of records end.
const RECORD_END: &str = "import";

/// One import.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportRecord {
    /// What tells the imported bytes from others: importing them again adds nothing.
    pub mark: String,
    /// What was imported.
    pub sources: Vec<SourceRecord>,
    /// Files that no format recognised.
    pub unknown: Vec<String>,
    /// What was found without being told.
    pub notes: Vec<String>,
}

/// One imported file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRecord {
    /// Its name, with the archive that it was in.
    pub name: String,
    /// Its format.
    pub kind: String,
    /// Its trace files in the run.
    pub files: Vec<String>,
    /// Events that came of it.
    pub events: u64,
    /// Events of the trace files, metadata not counted: one that crosses others is written as two.
    pub written: u64,
    /// When the first of them began, and the last one ended; ns since the epoch.
    pub first_ns: i64,
    /// See `first_ns`.
    pub last_ns: i64,
    /// What was left out: how often, and where first.
    pub skipped: BTreeMap<String, Skipped>,
    /// Its clock; none where it has no times.
    pub clock: Option<Clock>,
}

/// Something that was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Skipped {
    /// How often.
    pub count: u64,
    /// The first place, in bytes of the unpacked file.
    pub first: u64,
}

impl ImportRecord {
    /// Where it lies within a run.
    pub fn path(&self, run: &Path) -> PathBuf {
        run.join(RECORD_DIR).join(format!("{}.{RECORD_END}", self.mark))
    }

    /// Writes it.
    pub fn write(&self, run: &Path) -> Result<()> {
        let path = self.path(run);
        let directory = run.join(RECORD_DIR);
        files::directory(&directory).map_err(ImportError::io(&directory))?;
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| ImportError::Io { name: path.display().to_string(), source: error.into() })?;
        text.push(b'\n');
        files::replace(&path, &text).map_err(ImportError::io(&path))
    }

    /// All of a run, in the order of their names. What cannot be read is none.
    pub fn read_all(run: &Path) -> Vec<ImportRecord> {
        let Ok(entries) = fs::read_dir(run.join(RECORD_DIR)) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == RECORD_END));
        paths.sort();
        let texts = paths.iter().filter_map(|path| files::read(path).ok());
        texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect()
    }

    /// Events of its trace files.
    pub fn written(&self) -> u64 {
        self.sources.iter().map(|source| source.written).sum()
    }

    /// Events of all its sources.
    pub fn events(&self) -> u64 {
        self.sources.iter().map(|source| source.events).sum()
    }
}
