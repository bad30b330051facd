//! What is known of a run without a look at its events: a row of `weft list`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use weftline_analysis::coverage::RunTotals;
use weftline_analysis::units::path_as_text;
use weftline_format::manifest::{Exit, ManifestError, RunManifest, SupervisorRecord};
use weftline_index::rundir;

use crate::kept::{self, Kept};

/// A run, as scripts see it.
#[derive(Debug, Clone, Serialize)]
pub struct RunRow {
    /// Its directory.
    #[serde(serialize_with = "path_as_text")]
    pub directory: PathBuf,
    /// Its id.
    pub id: String,
    /// When it was begun, ns since the epoch.
    pub started_ns: i64,
    /// Its command line.
    pub command: Vec<String>,
    /// The host that it was begun on.
    pub host: String,
    /// Its job, where a resource manager started it.
    pub job_id: Option<String>,
    /// How its programs ended.
    pub exits: Vec<Exit>,
    /// Whether one of them did not end well.
    pub failed: bool,
    /// Processes of it are still running.
    pub open: bool,
    /// How long it took, ns.
    pub wall_ns: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
    /// Events that were recorded.
    pub events: u64,
    /// Events that could not be kept.
    pub lost: u64,
    /// Bytes of its trace files.
    pub trace_bytes: u64,
    /// The verdict of the last report on the whole run, if there was one.
    pub verdict: Option<Kept>,
}

impl RunRow {
    /// Reads it from a run directory.
    pub fn of(run: &Path) -> Result<RunRow, ManifestError> {
        let manifest = RunManifest::read(run)?;
        let (records, _) = SupervisorRecord::read_all(run);
        let totals = RunTotals::of(&records);
        let exits: Vec<Exit> = records.iter().filter_map(|record| record.exit).collect();
        let (read_bytes, written_bytes) = totals.bytes();
        let trace_bytes = rundir::trace_bytes(run);
        Ok(RunRow {
            directory: run.to_owned(),
            id: manifest.id,
            started_ns: manifest.created_ns,
            // What was imported has a name alone.
            command: if manifest.command.is_empty() { vec![manifest.name] } else { manifest.command },
            host: manifest.host,
            job_id: manifest.launcher.job_id,
            failed: exits.iter().any(|exit| exit.code != Some(0)),
            exits,
            open: totals.open,
            wall_ns: totals.wall_ns,
            read_bytes,
            written_bytes,
            events: totals.events,
            lost: totals.lost(),
            trace_bytes,
            verdict: kept::read(run, trace_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_how_a_run_ended() {
        let run = tempfile::tempdir().expect("a directory");
        RunRow::of(run.path()).expect_err("no manifest");
        let manifest = RunManifest { id: "7f3a".into(), created_ns: 5, ..RunManifest::default() };
        manifest.create(run.path()).expect("written");
        for (code, failed) in [(0, false), (3, true)] {
            let exit = Some(Exit { code: Some(code), ..Exit::default() });
            let record = SupervisorRecord { exit, wall_ns: 9, ..SupervisorRecord::default() };
            record.write(run.path()).expect("written");
            let row = RunRow::of(run.path()).expect("a row");
            assert_eq!((row.id.as_str(), row.started_ns, row.failed, row.wall_ns), ("7f3a", 5, failed, 9), "{row:?}");
        }
    }
}
