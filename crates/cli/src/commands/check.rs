//! `weft check`: verifies that a run is valid and complete, and shows its coverage.

use std::io::Write;
use std::process::ExitCode;

use weftline_analysis::check::{self, Check};
use weftline_analysis::coverage::{KernelLine, Line};

use crate::args::ReadArgs;
use crate::commands::recover;
use crate::rundir::{self, Source};
use crate::terminal::{self, Paint, Terminal};

/// Runs the verb.
pub(crate) fn execute(args: &ReadArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let source = rundir::find(&args.run)?;
    let report = match &source {
        Source::Run(run) => check::of_run(run, recover::before_reading(run))?,
        Source::Files(files) => check::of_files(files),
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

fn text(report: &Check, paint: Paint) -> String {
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
