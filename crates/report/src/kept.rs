//! The verdict on a run, stored beside its index so that a list of runs can show it: `.weft/verdict.json`. It is a copy of the report's verdict, safe to delete,
//! and valid for a trace of one size: a run that grows is judged again.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weftline_analysis::findings::{Severity, Verdict};
use weftline_format::files;

const DIRECTORY: &str = ".weft";
const FILE: &str = "verdict.json";
const SCHEMA: u32 = 1;

/// What is kept of a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    schema: u32,
    /// Bytes of the trace files that were judged.
    trace_bytes: u64,
    /// The first sentence of the report.
    pub headline: String,
    /// The rule of the worst finding; nothing where there is none.
    pub rule: Option<String>,
    /// How severe it is.
    pub severity: Option<String>,
    /// The part of the wall time that it costs, between 0 and 1.
    pub share: Option<f64>,
}

fn path(run: &Path) -> PathBuf {
    run.join(DIRECTORY).join(FILE)
}

/// Stores the verdict on a complete run of the caller. If that fails, nothing is stored: it is only a cache.
pub fn write(run: &Path, trace_bytes: u64, verdict: &Verdict) {
    let Some(headline) = verdict.headline() else { return };
    let worst = verdict.leading();
    let kept = Kept {
        schema: SCHEMA,
        trace_bytes,
        headline,
        rule: worst.map(|finding| finding.rule.clone()),
        severity: worst.map(|finding| finding.severity.word().to_owned()),
        share: worst.map(|finding| finding.at_stake.share),
    };
    if !files::is_own(run) || files::in_place(&run.join(DIRECTORY)).is_err() {
        return;
    }
    if let Ok(text) = serde_json::to_vec(&kept) {
        let _ = files::replace(&path(run), &text);
    }
}

/// The verdict that was kept for a trace of this size.
pub fn read(run: &Path, trace_bytes: u64) -> Option<Kept> {
    let kept: Kept = serde_json::from_slice(&files::read(&path(run)).ok()?).ok()?;
    let known = kept.severity.as_ref().is_none_or(|word| word.parse::<Severity>().is_ok());
    (kept.schema == SCHEMA && kept.trace_bytes == trace_bytes && known).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftline_analysis::findings::{Class, WallTime};

    #[test]
    fn a_verdict_belongs_to_a_trace_of_one_size() {
        let run = tempfile::tempdir().expect("a directory");
        let wall = WallTime {
            wall_ns: 12_000_000_000,
            compute: 0.94,
            file_io: 0.06,
            waiting: 0.0,
            data: 0.0,
            queued: 0.0,
            outside: 0.0,
            other: 0.0,
            process: None,
            processes: 1,
            waits: Vec::new(),
            dominant: Class::Compute,
            mostly: String::new(),
        };
        let verdict = Verdict { wall: Some(wall), checked: 22, ..Verdict::default() };
        write(run.path(), 7, &verdict);
        assert_eq!(read(run.path(), 7), None, "there is no index beside which it could lie");
        std::fs::create_dir(run.path().join(DIRECTORY)).expect("made");
        write(run.path(), 7, &verdict);
        let kept = read(run.path(), 7).expect("kept");
        assert_eq!(
            (kept.headline.as_str(), kept.rule),
            ("Healthy: 94.0 % of 12.00 s is compute; 22 rules checked", None)
        );
        assert_eq!(read(run.path(), 8), None, "the run has grown");
        std::fs::write(path(run.path()), "{}").expect("written");
        assert_eq!(read(run.path(), 7), None, "something else");
    }
}
