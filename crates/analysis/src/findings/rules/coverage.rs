//! What the trace itself lacks: damage, drops, programs that could not be traced, bytes that only the kernel saw.

use weftline_format::manifest::{ProcessRecord, State, SupervisorRecord};

use super::Case;
use crate::findings::Finding;
use crate::findings::thresholds::Limit;
use crate::findings::weigh::{Weighed, human_bytes, human_count, human_time, percent};
use crate::findings::{Place, Stake, Who};

/// A loss is at least worth a look, however small.
const LOSS: f64 = 0.3;
/// What is known to be missing without being a loss.
const NOTE: f64 = 0.1;

const FILES_NAMED: usize = 5;

pub(super) fn lost_coverage(case: &Case<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = damaged(case).into_iter().collect();
    let mut records = Vec::new();
    let mut seen = Vec::new();
    for part in case.run.parts() {
        if seen.contains(&&part.base) {
            continue;
        }
        seen.push(&part.base);
        records.extend(SupervisorRecord::read_all(&part.base).0);
    }
    found.extend(dropped(case, &records));
    found.extend(unseen(case, &records));
    found.extend(unsampled(case, &records));
    found.extend(unfinished(case, &records));
    found
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
    let part = (lost as f64 / all.max(1) as f64).min(1.0);
    let mut files: Vec<String> = hurt.iter().map(|source| source.path.display().to_string()).collect();
    files.sort();
    files.truncate(FILES_NAMED);
    let what = format!(
        "{} of {} trace files are damaged in {} places; {} could not be used.",
        human_count(hurt.len() as u64),
        human_count(sources.len() as u64),
        human_count(flaws),
        human_bytes(lost),
    );
    let place = Place { files, file_count: hurt.len() as u64, ..Place::default() };
    let stake = Stake { bytes: lost, calls: flaws, ..Stake::default() };
    let weighed = Weighed { stake, place, score: (LOSS + part).min(1.0) };
    case.finding("lost-coverage", weighed, what, "SELECT * FROM damage".to_owned())
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
        "{} events, {:.2} % of all, were not kept ({}).",
        human_count(drops),
        part * 100.0,
        reasons.join(", "),
    );
    let place = Place { processes, process_count, ..Place::default() };
    let stake = Stake { calls: drops, ..Stake::default() };
    let weighed = Weighed { stake, place, score: (LOSS + part).min(1.0) };
    case.finding(
        "lost-coverage",
        weighed,
        what,
        "SELECT host, pid, count(*) AS kept FROM events GROUP BY host, pid".to_owned(),
    )
}

/// Bytes that the kernel counted for whole trees of processes and the trace does not hold, and programs that could not be traced.
fn unseen(case: &Case<'_>, records: &[SupervisorRecord]) -> Option<Finding> {
    let (mut kernel, mut gap) = (0u64, 0u64);
    for record in records {
        let Some(tree) = record.tree_io else { continue };
        let (mut read, mut written, mut loader) = (0, 0, 0);
        let mut images: Vec<&ProcessRecord> = record.processes.iter().collect();
        images.sort_by_key(|process| (process.pid, process.started_ns));
        let mut before: Option<&ProcessRecord> = None;
        for process in images {
            let bytes = process.traced;
            read += bytes.posix_read + bytes.stdio_read + bytes.other_read;
            written += bytes.posix_write + bytes.stdio_write + bytes.other_write;
            // What passed before the hooks were there; counters go on across exec.
            let same = before.filter(|other| (other.pid, other.pidns) == (process.pid, process.pidns));
            let since = same.and_then(|other| other.io).map_or(0, |io| io.end.rchar);
            loader += process.io.map_or(0, |io| io.start.rchar.saturating_sub(since));
            before = Some(process);
        }
        kernel += tree.rchar.saturating_sub(loader) + tree.wchar;
        gap += tree.rchar.saturating_sub(read + loader) + tree.wchar.saturating_sub(written);
    }
    let untraced = || {
        let all = records.iter().flat_map(|record| &record.processes);
        all.filter(|process| process.untraced.is_some()).map(|process| (process.cpu_ns, process))
    };
    let part = gap as f64 / kernel.max(1) as f64;
    let large = gap >= case.config.count(Limit::LostBytes) && part >= case.config.get(Limit::LostPart);
    let (processes, process_count) = named(untraced());
    if !large && process_count == 0 {
        return None;
    }
    let mut reasons: Vec<&str> = untraced().filter_map(|(_, process)| process.untraced.as_deref()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let what = match (large, process_count) {
        (true, 0) => {
            format!("The trace lacks {} of the {} that the kernel counted.", human_bytes(gap), human_bytes(kernel))
        }
        (true, count) => format!(
            "The trace lacks {} of the {} that the kernel counted; {count} programs were not traced ({}).",
            human_bytes(gap),
            human_bytes(kernel),
            reasons.join(", "),
        ),
        (false, count) => format!(
            "{count} programs were not traced ({}); {} of the bytes that the kernel counted are missing.",
            reasons.join(", "),
            percent(part),
        ),
    };
    let place = Place { processes, process_count, ..Place::default() };
    let stake = Stake { bytes: gap, ..Stake::default() };
    let score = if large { (LOSS + 0.5 * part).min(1.0) } else { NOTE };
    let query = "SELECT host, pid, sum(ret) AS traced_bytes FROM io WHERE ret > 0 GROUP BY host, pid ORDER BY traced_bytes DESC";
    case.finding("lost-coverage", Weighed { stake, place, score }, what, query.to_owned())
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
            "{} processes ended unseen: the last {} of their lives, in all, are in no sample",
            human_count(ends),
            human_time(ns),
        )
    });
    let crowded =
        (missing > 0).then(|| format!("{} processes were not sampled: too many open files", human_count(missing)));
    let parts: Vec<String> = unseen.into_iter().chain(crowded).collect();
    if parts.is_empty() {
        return None;
    }
    let stake = Stake { calls: ends + missing, ..Stake::default() };
    let weighed = Weighed { stake, place: Place::default(), score: NOTE };
    let query = "SELECT host, pid, ts_ns, value AS unseen_ns FROM counters WHERE name = 'end' AND key = 'unseen_ns' AND value > 0 ORDER BY value DESC LIMIT 20";
    case.finding("lost-coverage", weighed, format!("{}.", parts.join("; ")), query.to_owned())
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
    let weighed = Weighed { stake: Stake::default(), place: Place::default(), score: NOTE };
    let query = "SELECT host, pid, max(ts_ns) AS last_ns FROM events GROUP BY host, pid ORDER BY last_ns DESC LIMIT 20";
    case.finding("lost-coverage", weighed, what, query.to_owned())
}
