//! `weft check`: verifies that a run is valid and complete, and shows its coverage.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use weftline_analysis::coverage::{self, KernelLine, Ledger, Line, RunTotals};
use weftline_format::damage::What;
use weftline_format::event::Phase;
use weftline_format::manifest::{State, SupervisorRecord};
use weftline_format::reader;

use crate::args::ReadArgs;
use crate::commands::recover;
use crate::opening;
use crate::rundir::{self, Source};
use crate::terminal::{self, Paint, Terminal};

/// What was found in one file.
#[derive(Serialize)]
struct FileCheck {
    #[serde(serialize_with = "terminal::path_as_text")]
    path: PathBuf,
    events: u64,
    /// Samples of the host and of processes, counted apart.
    #[serde(skip_serializing_if = "is_zero")]
    samples: u64,
    /// Kernel events, counted separately.
    #[serde(skip_serializing_if = "is_zero")]
    kernel_events: u64,
    damage: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The verdict on a run.
#[derive(Serialize)]
struct Report {
    /// Traced as it was asked for, nothing lost, nothing damaged, all that was recorded is there.
    complete: bool,
    /// Why programs ran untraced though they could have been traced.
    failures: Vec<String>,
    /// Programs that ran untraced because there was no shared memory for them.
    refused: Vec<String>,
    /// Why there is nothing to be judged: no event, sample or event of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    empty: Option<String>,
    /// Processes are still running.
    open: bool,
    events: u64,
    /// Events that the manifest says were written; nothing for foreign traces.
    events_expected: Option<u64>,
    /// Samples of the host and of processes.
    samples: u64,
    /// Samples that there was no room for.
    samples_lost: u64,
    /// Processes that should have been followed and were not.
    not_followed: u64,
    /// Processes that ended unseen after their last samples, and the time in between.
    unseen_ends: u64,
    unseen_ns: u64,
    /// Kernel events.
    kernel_events: u64,
    /// Of those that it did not tell, how many, per reason.
    kernel_lost: BTreeMap<String, u64>,
    lost: BTreeMap<String, u64>,
    dropped_events: u64,
    /// What could not be taken in before: shared memory that is elsewhere, is not believed, or cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_taken_in: Vec<String>,
    files: Vec<FileCheck>,
    coverage: Ledger,
}

/// Runs the verb.
pub(crate) fn execute(args: &ReadArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let source = rundir::find(&args.run)?;
    let report = match &source {
        Source::Run(run) => of_run(run)?,
        Source::Files(files) => {
            let mut report = judge(files, &[]);
            if report.is_empty() {
                let place = rundir::place_of(files);
                report.empty = Some(weftline_index::run::no_events(place, files).to_string());
                report.complete = false;
            }
            report
        }
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&report, terminal.stdout()).as_bytes())?;
    }
    Ok(if report.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn of_run(run: &Path) -> anyhow::Result<Report> {
    let not_taken_in = recover::before_reading(run);
    let (records, errors) = SupervisorRecord::read_all(run);
    let mut report = judge(&rundir::traces_in(run)?, &records);
    if report.is_empty() && !report.open && !records.is_empty() {
        report.empty = Some(opening::without_events(run));
        report.complete = false;
    }
    report.complete &= not_taken_in.is_empty();
    report.not_taken_in = not_taken_in;
    for error in errors {
        report.complete = false;
        report.files.push(FileCheck {
            path: run.to_owned(),
            events: 0,
            samples: 0,
            kernel_events: 0,
            damage: vec![error.to_string()],
        });
    }
    if records.is_empty() {
        report.complete = false;
        let what = "no supervisor record: the run is still in progress, or was started on another host".to_owned();
        report.files.push(FileCheck {
            path: run.to_owned(),
            events: 0,
            samples: 0,
            kernel_events: 0,
            damage: vec![what],
        });
    }
    Ok(report)
}

impl Report {
    fn is_empty(&self) -> bool {
        self.events + self.samples + self.kernel_events == 0
    }
}

fn judge(files: &[PathBuf], records: &[SupervisorRecord]) -> Report {
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
    let expected = (!records.is_empty()).then(|| totals.events.saturating_sub(totals.dropped_events));
    let damaged = files.iter().any(|file| !file.damage.is_empty());
    let open = records.iter().any(|record| record.state == State::Open);
    Report {
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

/// `pruned`: members that `--max-size` dropped are missing on purpose, and counted elsewhere.
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

fn text(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    let mut say = |line: String| {
        out.push_str(&line);
        out.push('\n');
    };
    let verdict = match (report.complete, report.open) {
        (true, false) => paint.good("complete"),
        (true, true) => paint.strong("open: processes of this run are still running; nothing is missing so far"),
        (false, _) => paint.bad("not complete"),
    };
    let events = terminal::counted(report.events, "event", "events");
    say(format!("{verdict}: {events} in {}", terminal::counted(report.files.len() as u64, "file", "files")));
    if let Some(why) = &report.empty {
        say(paint.bad(&format!("  {}", terminal::printable(why))));
    }
    for failure in &report.failures {
        say(paint.bad(&format!("  {}", terminal::printable(failure))));
    }
    for refused in &report.refused {
        say(paint.bad(&format!("  not traced: {}", terminal::printable(refused))));
    }
    if let Some(expected) = report.events_expected.filter(|expected| *expected != report.events) {
        say(paint.bad(&format!(
            "  {} events were written, {} are in the files",
            terminal::count(expected),
            terminal::count(report.events)
        )));
    }
    if report.samples > 0 {
        say(format!("  and {} samples of the host and of processes", terminal::count(report.samples)));
    }
    if report.samples_lost > 0 {
        say(paint.bad(&format!("  {} samples lost: no room to write them", terminal::count(report.samples_lost))));
    }
    if report.not_followed > 0 {
        let processes = terminal::counted(report.not_followed, "process was", "processes were");
        say(paint.strong(&format!("  {processes} not sampled: too many open files")));
    }
    if report.unseen_ends > 0 {
        say(format!(
            "  {} ended without a last sample; {} unseen in all",
            terminal::counted(report.unseen_ends, "process", "processes"),
            terminal::time(report.unseen_ns)
        ));
    }
    if report.kernel_events > 0 {
        say(format!("  and {} kernel events", terminal::count(report.kernel_events)));
    }
    for (reason, count) in &report.kernel_lost {
        say(paint.bad(&format!("  {} kernel events lost: {reason}", terminal::count(*count))));
    }
    for (reason, count) in &report.lost {
        say(paint.bad(&format!("  {} lost: {reason}", terminal::counted(*count, "event", "events"))));
    }
    if report.dropped_events > 0 {
        say(format!(
            "  {} of the oldest events were dropped to keep within --max-size",
            terminal::count(report.dropped_events)
        ));
    }
    for what in &report.not_taken_in {
        say(paint.bad(&format!("  {what}")));
    }
    for file in report.files.iter().filter(|file| !file.damage.is_empty()) {
        // What is no trace at all has a flaw in every line.
        let most = if report.empty.is_some() { 1 } else { usize::MAX };
        for damage in file.damage.iter().take(most) {
            say(paint.bad(&terminal::printable(&format!("  {}: {damage}", file.path.display()))));
        }
    }
    if !report.coverage.lines.is_empty() {
        say(String::new());
        say(format!("coverage: {}", report.coverage.sentence()));
        out.push_str(&ledger_table(&report.coverage.lines));
    }
    out.push_str(&kernel_table(&report.coverage.kernel));
    out
}

/// What the kernel saw of programs and hooks did not; nothing where it was not asked.
fn kernel_table(lines: &[KernelLine]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["program", "kernel read", "not seen by hooks", "kernel written", "not seen by hooks", "page faults read"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for line in lines.iter().filter(|line| line.is_notable() || line.faulted > 0) {
        rows.push(vec![
            terminal::printable(&line.program),
            terminal::bytes(line.read.kernel),
            terminal::bytes(line.read.gap()),
            terminal::bytes(line.write.kernel),
            terminal::bytes(line.write.gap()),
            terminal::bytes(line.faulted),
        ]);
    }
    if rows.len() == 1 {
        return format!("\nkernel events: hooks saw all I/O of all {} programs\n", lines.len());
    }
    format!("\nkernel events:\n{}", terminal::table(&rows, "  "))
}

/// One line per process; those with a reason first, at most a screenful of the others.
fn ledger_table(lines: &[Line]) -> String {
    const QUIET_LINES: usize = 20;
    let mut rows = vec![["process", "kernel read", "traced", "kernel written", "traced"].map(str::to_owned).to_vec()];
    let mut notes = Vec::new();
    let mut quiet = 0;
    for line in lines {
        if line.reasons.is_empty() {
            quiet += 1;
            if quiet > QUIET_LINES {
                continue;
            }
        }
        let name = match (line.pid, line.program.as_str()) {
            (0, "") => "others".to_owned(),
            (pid, program) => format!("{pid} {}", terminal::printable(program)),
        };
        let mut row = vec![name.clone()];
        for direction in [line.read, line.write] {
            match direction {
                Some(direction) => row.extend([terminal::bytes(direction.kernel), terminal::bytes(direction.traced)]),
                None => row.extend(["?".to_owned(), "?".to_owned()]),
            }
        }
        rows.push(row);
        notes.extend(line.reasons.iter().map(|reason| format!("  {name}: {reason}\n")));
    }
    let mut out = terminal::table(&rows, "  ");
    if quiet > QUIET_LINES {
        out.push_str(&format!("  … and {} more processes without a gap (--json lists all)\n", quiet - QUIET_LINES));
    }
    out.extend(notes);
    out
}
