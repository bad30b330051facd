//! `weft report`: where the time and the bytes went, and what to fix.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use weftline_analysis::findings::{self, Config, Verdict};
use weftline_analysis::samples::Samples;
use weftline_analysis::summary::{Question, Summary, view_tables};
use weftline_analysis::{AnalysisError, Table, pass};
use weftline_index::{Filter, IndexError, Run};
use weftline_report::{Report, csv, html, json, kept, make, parquet, sampled, sqlite, text};

use crate::args::ReportArgs;
use crate::terminal::{self, Terminal};
use crate::usage::Usage;
use crate::{opening, rundir};

/// Runs the verb.
pub(crate) fn execute(args: &ReportArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    if args.from.zip(args.to).is_some_and(|(from, to)| from >= to) {
        return Err(Usage::error("--from must be earlier than --to"));
    }
    let (question, config) = (question(args), config(args)?);
    let Answered { run, warned, answer, verdict, views } = match answered(args, &question, &config) {
        // Found out only when it was half read: it is gone by now, and the next one is built from the traces.
        Err(error) if is_damaged_index(&error) => answered(args, &question, &config)?,
        other => other?,
    };
    let shown = opening::named(&args.open)?;
    let runs: Vec<String> = shown.iter().map(|path| path.display().to_string()).collect();
    if let [path] = shown.as_slice()
        && rundir::is_run(path)
        && asks_all(args)
    {
        kept::write(path, rundir::trace_bytes(path), &verdict);
    }
    // A page may turn out to be damaged when it is read.
    if !warned {
        opening::tell_refused(&run)?;
    }
    if answer.job.events == 0 && (args.from.is_some() || args.to.is_some() || args.condition.is_some()) {
        let (first, last) = run.times().spans.unwrap_or_default();
        let length = terminal::time(last.saturating_sub(first).unsigned_abs());
        writeln!(std::io::stderr(), "weft: no span matches --from, --to and --where; the spans take {length} in all")?;
    }
    let mut report = make::report(&runs, &run, &answer, views, &verdict);
    sampled::add(&mut report, &run, &answer, &Samples::of(&run, &question.window(&run))?);
    match &args.explain {
        Some(rule) => explain(&report, rule, terminal)?,
        None => write(&report, args, terminal)?,
    }
    let gate = args.fail_on.map(findings::Severity::from);
    let failed = gate.is_some_and(|gate| verdict.worst().is_some_and(|worst| worst >= gate));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// All that a report is made of.
struct Answered {
    run: Run,
    /// It was said why there is no index.
    warned: bool,
    answer: Summary,
    verdict: Verdict,
    views: Vec<(String, Table)>,
}

fn answered(args: &ReportArgs, question: &Question, config: &Config) -> anyhow::Result<Answered> {
    let run = opening::open(&args.open)?;
    let warned = run.refused().is_some();
    let (answer, verdict) = pass::report(&run, question, (!args.no_findings).then_some(config))?;
    let views = view_tables(&run, question)?;
    Ok(Answered { run, warned, answer, verdict, views })
}

fn is_damaged_index(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(AnalysisError::Index(IndexError::Damaged { .. })))
}

/// Whether a report is about the whole run, by the rules that everybody has.
fn asks_all(args: &ReportArgs) -> bool {
    let whole = args.from.is_none() && args.to.is_none() && args.condition.is_none() && args.open.group.is_empty();
    whole && !args.no_findings && args.set.is_empty() && args.rules.is_empty()
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

/// Prints the findings of a rule in full.
fn explain(report: &Report, rule: &str, terminal: Terminal) -> anyhow::Result<()> {
    let mut known = findings::rules().iter().map(|info| info.id);
    let found: Vec<_> = report.findings.iter().filter(|finding| finding.rule == rule).collect();
    let mut out = std::io::stdout().lock();
    for finding in &found {
        writeln!(
            out,
            "{}",
            text::explanation(finding, &report.runs, opening::width(std::io::stdout()), &terminal.stdout())
        )?;
    }
    match found.is_empty() {
        false => Ok(()),
        true if known.any(|id| id == rule) => {
            writeln!(out, "{rule} found nothing in {}", report.title)?;
            Ok(())
        }
        true => {
            anyhow::bail!("no rule {rule}; docs/findings.md lists all rules, `weft report --json` those with findings")
        }
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
        write!(out, "{}", text::text(report, opening::width(std::io::stdout()), &terminal.stdout()))?;
    }
    Ok(())
}
