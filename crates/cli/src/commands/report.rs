//! `weft report`: where the time and the bytes went, and what to fix.

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use weftline_analysis::findings::{self, Config};
use weftline_analysis::summary::{Question, Summary, view_tables};
use weftline_format::manifest::SupervisorRecord;
use weftline_index::{Filter, Run};
use weftline_report::text::Paint;
use weftline_report::{Fact, Report, csv, html, json, make, parquet, sqlite, text};

use crate::args::ReportArgs;
use crate::terminal::{self, Terminal};
use crate::{ledger, opening, rundir, summary};

/// Runs the verb.
pub(crate) fn execute(args: &ReportArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let (question, config) = (question(args), config(args)?);
    let run = opening::open(&args.open)?;
    let shown = opening::named(&args.open)?;
    let title = shown.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
    let answer = Summary::of(&run, &question)?;
    let views = view_tables(&run, &question)?;
    let verdict = if args.no_findings { findings::Verdict::default() } else { findings::findings(&run, &config)? };
    let mut report = make::report(&title, &run, &answer, views, &verdict);
    add_coverage(&mut report, &run);
    write(&report, args, terminal)?;
    let gate = args.fail_on.map(findings::Severity::from);
    let failed = gate.is_some_and(|gate| verdict.worst().is_some_and(|worst| worst >= gate));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn question(args: &ReportArgs) -> Question {
    let nanoseconds = |time: &std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let filter = args.condition.as_ref().map(|condition| condition.filter(Filter::default()));
    Question {
        preset: args.preset,
        views: args.view.clone(),
        width_ns: args.time.as_ref().map(nanoseconds),
        from: args.from.as_ref().map(nanoseconds),
        to: args.to.as_ref().map(nanoseconds),
        filter: filter.unwrap_or_default(),
        top: args.top,
        ..Question::default()
    }
}

fn config(args: &ReportArgs) -> anyhow::Result<Config> {
    let mut config = Config::default();
    for file in &args.rules {
        config.read(file)?;
    }
    for setting in &args.set {
        config.set(setting)?;
    }
    Ok(config)
}

/// What only the supervisors know: events that were lost, and how much of the I/O was seen.
fn add_coverage(report: &mut Report, run: &Run) {
    let runs = run.parts().iter().map(|part| part.base.as_path()).filter(|base| rundir::is_run(base));
    for base in runs {
        let (records, _) = SupervisorRecord::read_all(base);
        if records.is_empty() {
            continue;
        }
        let totals = summary::Totals::of(&records);
        let mut list = |name, label, value: serde_json::Value, sentences: &[String], alarming| {
            if !sentences.is_empty() {
                let shown = terminal::printable(&sentences.join("; "));
                report.facts.push(Fact { name, label, value, shown, alarming });
            }
        };
        list("not_traced", "not traced", serde_json::json!(totals.failures), &totals.failures, true);
        let ledger = ledger::ledger(&records);
        let unseen: Vec<String> = ledger.unseen.iter().map(ledger::Unseen::sentence).collect();
        let uncounted = ledger.uncounted().next().is_some();
        list("unseen", "unseen", serde_json::json!(ledger.unseen), &unseen, uncounted);
        let lost = totals.lost();
        let shown = if lost == 0 {
            "nothing".to_owned()
        } else {
            format!("{} events; weft check tells why", terminal::count(lost))
        };
        report.facts.push(Fact { name: "lost_events", label: "lost", value: lost.into(), shown, alarming: lost > 0 });
        let (read, written) = ledger.percent();
        let value = serde_json::json!({ "read": read, "written": written });
        let shown = summary::coverage(&ledger);
        report.facts.push(Fact { name: "coverage_percent", label: "coverage", value, shown, alarming: false });
    }
}

/// Writes all forms that were asked for; the terminal's when none was.
fn write(report: &Report, args: &ReportArgs, terminal: Terminal) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let files = [args.csv.as_deref(), args.sqlite.as_deref(), args.parquet.as_deref(), args.html.as_deref()];
    if let Some(directory) = &args.csv {
        csv::write(report, directory)?;
    }
    if let Some(file) = &args.sqlite {
        sqlite::write(report, file)?;
    }
    if let Some(directory) = &args.parquet {
        parquet::write(report, directory)?;
    }
    if let Some(file) = &args.html {
        let page = html::page(report);
        if file == Path::new("-") {
            out.write_all(page.as_bytes())?;
        } else {
            fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    if args.json {
        serde_json::to_writer_pretty(&mut out, &json::value(report))?;
        writeln!(out)?;
    } else if files.iter().all(Option::is_none) {
        let width = if std::io::stdout().is_terminal() { opening::width() } else { 120 };
        write!(out, "{}", text::text(report, width, &Painted(terminal.stdout())))?;
    }
    Ok(())
}

struct Painted(terminal::Paint);

impl Paint for Painted {
    fn strong(&self, text: &str) -> String {
        self.0.strong(text)
    }
    fn dim(&self, text: &str) -> String {
        self.0.dim(text)
    }
    fn bad(&self, text: &str) -> String {
        self.0.bad(text)
    }
}
