//! Findings on real traces: ordinary programs raise no alarm. That seeded anti-patterns are found is judged by shares of wall time, which a machine
//! that others use does not give: those are among the live tests (`live::seeded`, `live::verdicts`).
//!
//! Programs are traced by the product and judged by the library that `weft report` uses, with the default thresholds.

pub(crate) mod ordinary;

use std::path::Path;

use weftline_analysis::findings::{Config, Finding, Severity, Verdict, findings};
use weftline_index::{OpenOptions, Run};
use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::run::Job;

/// Traces a command in a directory and judges the run; what it printed, and the verdict.
pub(crate) fn trace(command: &[&str], work: &Path, scratch: &Scratch) -> (Vec<u8>, Verdict) {
    let run = scratch.join("run");
    let outcome = Job::new(command.iter().copied(), work).traced(&run).run();
    assert_eq!(outcome.status, 0, "{command:?}: {}", excerpt(&outcome.stderr));
    let run = Run::open(&[run], &OpenOptions::default()).expect("a run");
    let verdict = findings(&run, &Config::default()).expect("judged");
    assert!(verdict.skipped.is_empty(), "{command:?}: {:?}", verdict.skipped);
    (outcome.stdout, verdict)
}

/// The findings on a command.
pub(crate) fn judge(command: &[&str], work: &Path, scratch: &Scratch) -> Vec<Finding> {
    trace(command, work, scratch).1.findings
}

/// Findings that somebody would act upon.
pub(crate) fn serious(found: &[Finding]) -> Vec<&Finding> {
    found.iter().filter(|finding| finding.severity >= Severity::Medium).collect()
}
