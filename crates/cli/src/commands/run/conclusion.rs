//! The end of `weft run`: the summary of the run and its findings.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use weftline_analysis::findings::{Config, Verdict, WallTime, findings};
use weftline_format::manifest::{State, SupervisorRecord};
use weftline_index::{OpenOptions, Run};
use weftline_report::kept;

use super::say;
use crate::args::RunArgs;
use crate::bar::Bar;
use crate::terminal::Terminal;
use crate::{opening, rundir, summary, terminal};

/// What an event costs to index and to judge, on one processor: two million take one to two seconds on two, which is the upper end of that.
const EVENT_NS: u64 = 2_000;
/// Everybody waits so long for a verdict; after a long run, for this part of it …
const PATIENCE_NS: u64 = 2_000_000_000;
const PATIENCE_PART: u64 = 50;
/// … but not longer than this.
const MOST_PATIENCE_NS: u64 = 30_000_000_000;
/// Nobody tunes a program that takes less, unless it is plain where the time goes …
const LONG_NS: u64 = 1_000_000_000;
/// … and it takes at least this long.
const SHORT_NS: u64 = 100_000_000;

/// The verdict on a run that has just ended.
enum Judgement {
    Judged(Box<Verdict>),
    /// Why nothing is.
    Unjudged(String),
    /// There is nothing to say.
    Nothing,
}

/// How long a run of so many events takes to be judged, on so many processors.
fn cost_ns(events: u64, processors: usize) -> u64 {
    events.saturating_mul(EVENT_NS) / processors.max(1) as u64
}

/// Whether the verdict takes little time compared with the program.
fn is_worth(cost_ns: u64, wall_ns: u64) -> bool {
    cost_ns <= (wall_ns / PATIENCE_PART).clamp(PATIENCE_NS, MOST_PATIENCE_NS)
}

/// Whether a short program has something to say: most of its time went to something else than computing.
fn speaks(record: &SupervisorRecord) -> bool {
    let wall = WallTime::of_records(std::slice::from_ref(record));
    record.wall_ns >= SHORT_NS && wall.is_some_and(|wall| wall.file_io + wall.waiting >= 0.5)
}

/// The findings of a run that has just ended, if they can be computed quickly. The index that this builds stays for the next query.
fn verdict(run: &Path, record: &SupervisorRecord) -> Judgement {
    let events: u64 = record.processes.iter().map(|process| process.events).sum();
    if events == 0 || record.state == State::Open || record.wall_ns < LONG_NS && !speaks(record) {
        return Judgement::Nothing;
    }
    let cost = cost_ns(events, std::thread::available_parallelism().map_or(1, usize::from));
    if !is_worth(cost, record.wall_ns) {
        let took = terminal::time(cost);
        return Judgement::Unjudged(format!("not yet: it takes about {took}; run `weft report`"));
    }
    let options = OpenOptions { progress: Arc::new(Bar::default()), ..OpenOptions::default() };
    let judged = Run::open(&[run.to_owned()], &options)
        .map_err(anyhow::Error::from)
        .and_then(|opened| Ok(findings(&opened, &Config::default())?));
    match judged {
        Ok(verdict) => {
            kept::write(run, rundir::trace_bytes(run), &verdict);
            Judgement::Judged(Box::new(verdict))
        }
        Err(error) => Judgement::Unjudged(terminal::printable(&format!("none: {}", terminal::chain(&error)))),
    }
}

/// Prints the summary.
pub(super) fn conclude(run: &Path, record: SupervisorRecord, args: &RunArgs, terminal: Terminal) {
    let lost: u64 = record.processes.iter().flat_map(|process| process.drops.values()).sum();
    let paint = terminal.stderr();
    if args.quiet {
        if let Some(why) = &record.failure {
            say(&paint.bad(&format!("the program ran untraced: {why}")));
        }
        if lost > 0 {
            say(&paint.bad(&format!(
                "{} lost; `weft check {}` tells why",
                terminal::counted(lost, "event was", "events were"),
                run.display()
            )));
        }
        return;
    }
    let shown = match args.output {
        Some(_) => run.display().to_string(),
        None => std::env::current_dir()
            .ok()
            .and_then(|cwd| run.strip_prefix(cwd).ok().map(|run| run.display().to_string()))
            .unwrap_or_else(|| run.display().to_string()),
    };
    let judgement = verdict(run, &record);
    let judged = match &judgement {
        Judgement::Judged(verdict) => (Some(&**verdict), None),
        Judgement::Unjudged(why) => (None, Some(why.as_str())),
        Judgement::Nothing => (None, None),
    };
    let text =
        summary::text(&shown, rundir::trace_bytes(run), &[record], judged, opening::width(std::io::stderr()), paint);
    let _ = write!(std::io::stderr(), "\n{text}");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weftline_format::manifest::ProcessRecord;

    use super::*;

    #[test]
    fn a_verdict_costs_no_more_than_it_is_worth() {
        const SECOND: u64 = 1_000_000_000;
        for (events, processors, wall, expected) in [
            (1_000_000, 2, 2, true),
            (2_000_000, 2, 2, true),
            (3_000_000, 2, 2, false),
            // More processors, or a long run.
            (3_000_000, 4, 2, true),
            (3_000_000, 2, 200, true),
            (25_000_000, 2, 3_600, true),
            (40_000_000, 2, 36_000, false),
        ] {
            assert_eq!(is_worth(cost_ns(events, processors), wall * SECOND), expected, "{events} in {wall} s");
        }
    }

    #[test]
    fn short_programs_speak_where_their_time_went_elsewhere() {
        const MS: u64 = 1_000_000;
        for (wall, cpu, file, expected) in
            [(800, 50, 700, true), (800, 700, 50, false), (90, 5, 80, false), (100, 5, 80, true)]
        {
            let process = ProcessRecord {
                pid: 1,
                started_ns: 1,
                ended_ns: (wall * MS) as i64,
                cpu_ns: cpu * MS,
                main_cpu_ns: cpu * MS,
                main_ns: BTreeMap::from([("file_io".to_owned(), file * MS)]),
                ..ProcessRecord::default()
            };
            let record =
                SupervisorRecord { wall_ns: wall * MS, processes: vec![process], ..SupervisorRecord::default() };
            assert_eq!(speaks(&record), expected, "{wall} ms");
        }
    }
}
