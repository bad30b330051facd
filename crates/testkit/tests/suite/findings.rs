//! Findings on real traces: every seeded anti-pattern is found, ordinary programs raise no alarm.
//!
//! Programs are traced by the product and judged by the library that `weft report` uses, with the default thresholds.

pub(crate) mod ordinary;
mod seeded;

use std::path::Path;

use weftline_analysis::findings::{Config, Finding, Severity, findings};
use weftline_index::{OpenOptions, Run};
use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::run::Job;

/// Traces a command in a directory and judges the run.
fn judge(command: &[&str], work: &Path, scratch: &Scratch) -> Vec<Finding> {
    let run = scratch.join("run");
    let outcome = Job::new(command.iter().copied(), work).traced(&run).run();
    assert_eq!(outcome.status, 0, "{command:?}: {}", excerpt(&outcome.stderr));
    let run = Run::open(&[run], &OpenOptions::default()).expect("a run");
    let verdict = findings(&run, &Config::default()).expect("judged");
    assert!(verdict.skipped.is_empty(), "{command:?}: {:?}", verdict.skipped);
    verdict.findings
}

/// Findings that somebody would act upon.
fn serious(found: &[Finding]) -> Vec<&Finding> {
    found.iter().filter(|finding| finding.severity >= Severity::Medium).collect()
}
