//! Whether a run is valid, complete and covered: what `weft check` says, as data.
//!
//! Every line of every file is read, not the index: an index leaves out what it could not use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weftline_format::Phase;
use weftline_format::damage::What;
use weftline_format::manifest::{State, SupervisorRecord};
use weftline_format::reader;
use weftline_import::record::ImportRecord;
use weftline_index::{Result, run, rundir};

use crate::coverage::{self, Ledger, RunTotals, without_events};
use crate::units::path_as_text;

/// What was found in one file.
#[derive(Debug, Clone, Serialize)]
pub struct FileCheck {
    /// The file.
    #[serde(serialize_with = "path_as_text")]
    pub path: PathBuf,
    /// Events of programs.
    pub events: u64,
    /// Samples of the host and of processes, counted apart.
    #[serde(skip_serializing_if = "is_zero")]
    pub samples: u64,
    /// Events that the kernel told, counted apart.
    #[serde(skip_serializing_if = "is_zero")]
    pub kernel_events: u64,
    /// What is wrong with it, in words.
    pub damage: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The verdict on a run.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Traced as it was asked for, nothing lost, nothing damaged, all that was recorded is there.
    pub complete: bool,
    /// Why programs ran untraced though they could have been traced; records of the run that are missing or cannot be read.
    pub failures: Vec<String>,
    /// Programs that ran untraced because there was no shared memory for them.
    pub refused: Vec<String>,
    /// Why there is nothing to be judged: no event, sample or event of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<String>,
    /// Processes are still running.
    pub open: bool,
    /// Events of programs in the files.
    pub events: u64,
    /// Events that the manifest says were written; nothing for foreign traces.
    pub events_expected: Option<u64>,
    /// Samples of the host and of processes.
    pub samples: u64,
    /// Samples that there was no room for.
    pub samples_lost: u64,
    /// Processes that should have been followed and were not.
    pub not_followed: u64,
    /// Processes that ended unseen after their last samples …
    pub unseen_ends: u64,
    /// … and the time in between.
    pub unseen_ns: u64,
    /// Events that the kernel told.
    pub kernel_events: u64,
    /// Of those that it did not tell, how many, per reason.
    pub kernel_lost: BTreeMap<String, u64>,
    /// Events that could not be kept, per reason.
    pub lost: BTreeMap<String, u64>,
    /// Events that a limit on the size left out.
    pub dropped_events: u64,
    /// What could not be taken in before: shared memory that is elsewhere, is not believed, or cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_taken_in: Vec<String>,
    /// File by file.
    pub files: Vec<FileCheck>,
    /// What the trace holds of the bytes that the kernel counted.
    pub coverage: Ledger,
}

/// Of a run directory. `not_taken_in`: what whoever recovered it before could not take in.
pub fn of_run(run: &Path, not_taken_in: Vec<String>) -> Result<Check> {
    let (records, errors) = SupervisorRecord::read_all(run);
    let imports = ImportRecord::read_all(run);
    let mut check = judge(&rundir::traces_in(run)?, &records, &imports);
    if check.is_empty() && !check.open && !records.is_empty() {
        check.empty = Some(without_events(run));
        check.complete = false;
    }
    check.complete &= not_taken_in.is_empty();
    check.not_taken_in = not_taken_in;
    let unrecorded = (records.is_empty() && imports.is_empty())
        .then(|| "no supervisor record: the run is still in progress, or was started on another host".to_owned());
    let missing: Vec<String> = errors.iter().map(ToString::to_string).chain(unrecorded).collect();
    check.complete &= missing.is_empty();
    check.failures.extend(missing);
    Ok(check)
}

/// Of trace files of any kind.
pub fn of_files(files: &[PathBuf]) -> Check {
    let mut check = judge(files, &[], &[]);
    if check.is_empty() {
        let place = files.first().and_then(|first| first.parent()).unwrap_or(Path::new("."));
        check.empty = Some(run::no_events(place, files).to_string());
        check.complete = false;
    }
    check
}

impl Check {
    fn is_empty(&self) -> bool {
        self.events + self.samples + self.kernel_events == 0
    }
}

fn judge(files: &[PathBuf], records: &[SupervisorRecord], imports: &[ImportRecord]) -> Check {
    let totals = RunTotals::of(records);
    let pruned = totals.dropped_members > 0;
    let files: Vec<FileCheck> = files.iter().map(|path| check_file(path, pruned)).collect();
    let events = files.iter().map(|file| file.events).sum();
    let samples = files.iter().map(|file| file.samples).sum();
    let samplers = || records.iter().filter_map(|record| record.samples.as_ref());
    let samples_lost = samplers().flat_map(|samples| samples.lost.values()).sum();
    let kernel_events = files.iter().map(|file| file.kernel_events).sum();
    let mut kernel_lost = BTreeMap::new();
    for (reason, count) in records.iter().filter_map(|record| record.kernel.as_ref()).flat_map(|kernel| &kernel.lost) {
        *kernel_lost.entry(reason.clone()).or_default() += count;
    }
    let told = !records.is_empty() || !imports.is_empty();
    let imported = imports.iter().map(ImportRecord::written).sum::<u64>();
    let expected = told.then(|| totals.events.saturating_sub(totals.dropped_events).saturating_add(imported));
    let damaged = files.iter().any(|file| !file.damage.is_empty());
    let open = records.iter().any(|record| record.state == State::Open);
    Check {
        empty: None,
        complete: !damaged
            && totals.failures.is_empty()
            && totals.refused.is_empty()
            && totals.lost() == 0
            && samples_lost == 0
            && kernel_lost.is_empty()
            && expected.is_none_or(|expected| expected == events),
        failures: totals.failures,
        refused: totals.refused,
        open,
        events,
        events_expected: expected,
        samples,
        samples_lost,
        not_followed: samplers().map(|samples| samples.not_followed).sum(),
        unseen_ends: samplers().map(|samples| samples.unseen_ends).sum(),
        unseen_ns: samplers().map(|samples| samples.unseen_ns).sum(),
        kernel_events,
        kernel_lost,
        lost: totals.losses,
        dropped_events: totals.dropped_events,
        not_taken_in: Vec::new(),
        files,
        coverage: coverage::ledger(records),
    }
}

/// `pruned`: members that a limit on the size dropped are missing on purpose, and counted elsewhere.
fn check_file(path: &Path, pruned: bool) -> FileCheck {
    let mut events = 0;
    let scanned = reader::scan_file(path, &mut |event| events += u64::from(event.phase != Phase::Metadata));
    let (scanned, unreadable) = match scanned {
        Ok(scanned) => (scanned, None),
        Err(error) => (reader::Summary::default(), Some(format!("could not be read: {}", error.source))),
    };
    let flaws = scanned.damage.flaws.iter().filter(|flaw| !(pruned && flaw.what == What::MissingSequence));
    let (events, samples, kernel_events) = match path {
        path if rundir::is_samples(path) => (0, events, 0),
        path if rundir::is_kernel(path) => (0, 0, events),
        _ => (events, 0, 0),
    };
    FileCheck {
        path: path.to_owned(),
        events,
        samples,
        kernel_events,
        damage: unreadable.into_iter().chain(flaws.map(ToString::to_string)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weftline_format::manifest::{ProcessRecord, RunManifest};

    use super::*;

    const LINES: &str =
        "[\n{\"name\":\"read\",\"cat\":\"POSIX\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":2,\"args\":{}}\n";

    /// A run with one event in each of these files, and the record of a supervisor who wrote as many as he says.
    fn check(files: &[&str], written: u64, complete: bool) -> Check {
        let run = tempfile::tempdir().expect("a directory");
        RunManifest::default().create(run.path()).expect("written");
        files.iter().for_each(|name| fs::write(run.path().join(name), LINES).expect("written"));
        let process = ProcessRecord { pid: 1, events: written, ..ProcessRecord::default() };
        let record =
            SupervisorRecord { state: State::Complete, processes: vec![process], ..SupervisorRecord::default() };
        record.write(run.path()).expect("written");
        let found = of_run(run.path(), Vec::new()).expect("judged");
        assert_eq!(found.complete, complete, "{found:#?}");
        found
    }

    #[test]
    fn a_run_is_complete_where_all_that_was_written_is_there() {
        check(&["a.pfw"], 1, true);
        assert_eq!(check(&["a.pfw"], 2, false).events_expected, Some(2));
        let none = check(&[], 0, false);
        assert!(none.empty.is_some_and(|why| why.contains("holds no events")));
    }

    #[test]
    fn what_could_not_be_taken_in_is_missing() {
        let run = tempfile::tempdir().expect("a directory");
        fs::write(run.path().join("a.pfw"), LINES).expect("written");
        let found = of_run(run.path(), vec!["arenas on another host".to_owned()]).expect("judged");
        assert!(!found.complete && found.not_taken_in.len() == 1, "{found:#?}");
        assert!(found.failures.iter().any(|what| what.contains("no supervisor")), "{found:#?}");
        assert_eq!(found.files.len(), 1, "a file is what holds events: {found:#?}");
    }

    #[test]
    fn files_of_others_are_judged_by_themselves() {
        let place = tempfile::tempdir().expect("a directory");
        let (good, torn, none) = (place.path().join("a.pfw"), place.path().join("b.pfw"), place.path().join("c.pfw"));
        fs::write(&good, LINES).expect("written");
        fs::write(&torn, format!("{LINES}{{\"name\":\"to")).expect("written");
        fs::write(&none, "").expect("written");
        assert!(of_files(std::slice::from_ref(&good)).complete);
        let found = of_files(&[good, torn]);
        assert!(!found.complete && found.events == 2 && !found.files[1].damage.is_empty(), "{found:#?}");
        let found = of_files(&[none]);
        assert!(!found.complete && found.empty.is_some(), "{found:#?}");
    }
}
