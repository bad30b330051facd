//! What the trace itself lacks: damage, drops, programs that could not be traced, bytes that only the kernel saw.

use std::collections::HashSet;

use weftline_format::manifest::{ProcessRecord, State, SupervisorRecord};

use super::{Case, Kind, RuleInfo};
use crate::coverage::{self, Direction};
use crate::findings::weigh::Weighed;
use crate::findings::{Finding, Impact, Place, Severity, Threshold, Who};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "lost-coverage",
    title: "the trace does not show everything",
    when: "Trace files are damaged, events were dropped, programs could not be traced, or the kernel counted many more bytes than the trace holds.",
    advice: "`weft check` says per process what is missing and why; other findings may be understated.",
    thresholds: &[PART, BYTES],
    kind: Kind::Plain,
    ask,
};

const PART: Threshold = Threshold::new(
    "lost-coverage.part",
    0.1,
    "of the bytes",
    "The loader and locale files are never seen; a tenth is more than they are.",
);
const BYTES: Threshold =
    Threshold::new("lost-coverage.bytes", 16777216.0, "bytes", "Programs move less than that when they start.");

/// A loss is at least worth a look, however small.
const LOSS: f64 = 0.3;
/// What is known to be missing without being a loss.
const NOTE: f64 = 0.1;

const FILES_NAMED: usize = 5;

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = damaged(case).into_iter().collect();
    let records = coverage::records(case.run).concat();
    if case.evidence.partial {
        // Nobody knows whether what is missing is among the events that were asked for. What is known is who lost some.
        found.iter_mut().for_each(note);
        found.extend(dropped(case, &of_answer(case, &records)));
        found.retain(|_| case.evidence.alive().next().is_some());
        return found;
    }
    found.extend(dropped(case, &records));
    found.extend(unseen(case, &records));
    found.extend(unsampled(case, &records));
    found.extend(unfinished(case, &records));
    found
}

/// Makes a note of a loss.
fn note(finding: &mut Finding) {
    (finding.score, finding.severity) = (NOTE, Severity::Low);
}

/// The records without processes that have no event in the answer, and without what is known only of whole trees.
fn of_answer(case: &Case<'_>, records: &[SupervisorRecord]) -> Vec<SupervisorRecord> {
    let known: HashSet<(i64, &str)> = case
        .evidence
        .alive()
        .map(|(id, _)| case.evidence.dictionary.process(id))
        .map(|process| (process.pid, process.nonce.as_str()))
        .collect();
    let in_answer = |process: &&ProcessRecord| known.contains(&(i64::from(process.pid), process.nonce.as_str()));
    let each = records.iter().map(|record| SupervisorRecord {
        processes: record.processes.iter().filter(in_answer).cloned().collect(),
        ..SupervisorRecord::default()
    });
    each.collect()
}

fn damaged(case: &Case<'_>) -> Option<Finding> {
    let sources = case.run.sources();
    let hurt: Vec<_> = sources.iter().filter(|source| source.flaws > 0 || source.unreadable.is_some()).collect();
    if hurt.is_empty() {
        return None;
    }
    let (lost, all): (u64, u64) =
        (hurt.iter().map(|source| source.lost_bytes).sum(), sources.iter().map(|source| source.bytes).sum());
    let flaws: u64 = hurt.iter().map(|source| source.flaws.max(u64::from(source.unreadable.is_some()))).sum();
    // Of traces that are read without an index nobody knows the size.
    let part = if all == 0 { 0.0 } else { (lost as f64 / all as f64).min(1.0) };
    let mut files: Vec<String> = hurt.iter().map(|source| source.path.display().to_string()).collect();
    files.sort();
    files.truncate(FILES_NAMED);
    let what = format!(
        "{} of {} trace files are damaged in {} places; {} could not be used.",
        units::count(hurt.len() as u64),
        units::count(sources.len() as u64),
        units::count(flaws),
        units::bytes(lost),
    );
    let place = Place { files, file_count: hurt.len() as u64, ..Place::default() };
    let impact = Impact { bytes: lost, calls: flaws, ..Impact::default() };
    let weighed = Weighed { impact, place, score: (LOSS + part).min(1.0) };
    case.finding(&RULE, weighed, what, "SELECT * FROM damage".to_owned())
}

fn who(process: &ProcessRecord) -> Who {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    Who {
        host: process.host.clone(),
        pid: i64::from(process.pid),
        rank: process.rank.map(i64::from),
        program: process.command.first().map_or_else(|| base(&process.exe), |first| base(first)),
    }
}

fn named<'p>(processes: impl Iterator<Item = (u64, &'p ProcessRecord)>) -> (Vec<Who>, u64) {
    let mut all: Vec<(u64, Who)> = processes.map(|(cost, process)| (cost, who(process))).collect();
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let count = all.len() as u64;
    all.truncate(FILES_NAMED);
    (all.into_iter().map(|(_, who)| who).collect(), count)
}

fn dropped(case: &Case<'_>, records: &[SupervisorRecord]) -> Option<Finding> {
    let all = || records.iter().flat_map(|record| &record.processes);
    let lost = |process: &ProcessRecord| process.drops.values().sum::<u64>();
    let whole: u64 = records.iter().map(|record| record.dropped_events).sum();
    let events: u64 = all().map(|process| process.events).sum();
    let drops: u64 = all().map(lost).sum::<u64>() + whole;
    if drops == 0 {
        return None;
    }
    let (processes, process_count) =
        named(all().filter(|process| lost(process) > 0).map(|process| (lost(process), process)));
    let mut reasons: Vec<&str> = all().flat_map(|process| process.drops.keys().map(String::as_str)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    if whole > 0 {
        reasons.push("the size limit");
    }
    let part = drops as f64 / (events + drops) as f64;
    let what = format!(
        "Not kept: {}, {} of all ({}).",
        units::counted(drops, "event", "events"),
        units::percent(part),
        reasons.join(", "),
    );
    let place = Place { processes, process_count, ..Place::default() };
    let impact = Impact { calls: drops, ..Impact::default() };
    let weighed = Weighed { impact, place, score: (LOSS + part).min(1.0) };
    case.finding(&RULE, weighed, what, "SELECT host, pid, count(*) AS kept FROM events GROUP BY host, pid".to_owned())
}

/// Bytes that the kernel counted for whole trees of processes and the trace does not hold, and programs that could not be traced.
fn unseen(case: &Case<'_>, records: &[SupervisorRecord]) -> Option<Finding> {
    let ledger = coverage::ledger(records);
    let both = || [ledger.tree_read, ledger.tree_write].into_iter().flatten();
    let kernel: u64 = both().filter_map(Direction::countable).fold(0, u64::saturating_add);
    let gap: u64 = both().map(Direction::gap).fold(0, u64::saturating_add);
    let untraced = || {
        let all = records.iter().flat_map(|record| &record.processes);
        all.filter(|process| process.untraced.is_some()).map(|process| (process.cpu_ns, process))
    };
    let part = gap as f64 / kernel.max(1) as f64;
    let large = gap >= case.config.count(BYTES) && part >= case.config.get(PART);
    let (processes, process_count) = named(untraced());
    if !large && process_count == 0 {
        return None;
    }
    let mut reasons: Vec<&str> = untraced().filter_map(|(_, process)| process.untraced.as_deref()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let what = match (large, process_count) {
        (true, 0) => {
            format!("The trace lacks {} of the {} that the kernel counted.", units::bytes(gap), units::bytes(kernel))
        }
        (true, count) => format!(
            "The trace lacks {} of the {} that the kernel counted; {} not traced ({}).",
            units::bytes(gap),
            units::bytes(kernel),
            units::counted(count, "program was", "programs were"),
            reasons.join(", "),
        ),
        (false, count) => format!(
            "{} not traced ({}); {} of the bytes that the kernel counted are missing.",
            units::counted(count, "program was", "programs were"),
            reasons.join(", "),
            units::percent(part),
        ),
    };
    let place = Place { processes, process_count, ..Place::default() };
    let impact = Impact { bytes: gap, ..Impact::default() };
    let score = if large { (LOSS + 0.5 * part).min(1.0) } else { NOTE };
    let query = "SELECT host, pid, sum(ret) AS traced_bytes FROM io WHERE ret > 0 GROUP BY host, pid ORDER BY traced_bytes DESC";
    case.finding(&RULE, Weighed { impact, place, score }, what, query.to_owned())
}

/// What collectors say that they did not see. Where a program is traced its recorder has told everything, whatever the samples lack.
fn unsampled(case: &Case<'_>, records: &[SupervisorRecord]) -> Option<Finding> {
    let samplers =
        || records.iter().filter(|record| record.only_samples()).filter_map(|record| record.samples.as_ref());
    let (ends, ns): (u64, u64) =
        samplers().fold((0, 0), |sums, found| (sums.0 + found.unseen_ends, sums.1 + found.unseen_ns));
    let missing: u64 = samplers().map(|found| found.not_followed).sum();
    let unseen = (ends > 0).then(|| {
        format!(
            "{} ended unseen: {} of their time, in all, is in no sample",
            units::counted(ends, "process", "processes"),
            units::time(ns),
        )
    });
    let crowded = (missing > 0).then(|| {
        format!("{} not sampled: too many open files", units::counted(missing, "process was", "processes were"))
    });
    let parts: Vec<String> = unseen.into_iter().chain(crowded).collect();
    if parts.is_empty() {
        return None;
    }
    let impact = Impact { calls: ends + missing, ..Impact::default() };
    let weighed = Weighed { impact, place: Place::default(), score: NOTE };
    let query = "SELECT host, pid, ts_ns, value AS unseen_ns FROM counters WHERE name = 'end' AND key = 'unseen_ns' AND value > 0 ORDER BY value DESC LIMIT 20";
    case.finding(&RULE, weighed, format!("{}.", parts.join("; ")), query.to_owned())
}

fn unfinished(case: &Case<'_>, records: &[SupervisorRecord]) -> Option<Finding> {
    let open = records.iter().filter(|record| record.state == State::Open).count();
    if open == 0 {
        return None;
    }
    let what = format!(
        "{open} of {} parts of the run are still open: processes may be writing, or their supervisor died (`weft recover`).",
        records.len(),
    );
    let weighed = Weighed { impact: Impact::default(), place: Place::default(), score: NOTE };
    let query = "SELECT host, pid, max(ts_ns) AS last_ns FROM events GROUP BY host, pid ORDER BY last_ns DESC LIMIT 20";
    case.finding(&RULE, weighed, what, query.to_owned())
}
