//! Rules about names, attributes and positions of files.

use weftline_calls::IoCat;

use super::Case;
use crate::findings::Finding;
use crate::findings::calls::Call;
use crate::findings::evidence::{Op, Tally};
use crate::findings::thresholds::Limit;
use crate::findings::weigh::Part;
use crate::units;

pub(super) fn open_storm(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut opens, mut failed) = (Vec::new(), 0, 0);
    for (process, file, tally) in evidence.per_file(Op::OPENS) {
        if tally.calls < config.count(Limit::OpenPerFile) {
            continue;
        }
        opens += tally.calls;
        failed += evidence.sum(process, file, Op::OpenFailed).calls;
        // The first one was needed; what goes with each open would have been spared with it.
        let mut again = tally.part(tally.calls - 1, 0);
        for op in [Op::Close, Op::StatOpen] {
            let with = evidence.sum(process, file, op);
            again.ns += with.part(with.calls.saturating_sub(1), 0).ns;
        }
        parts.push(Part { process, file: Some(file), tally: again });
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let what = format!(
        "{} opened {} {} times ({} of them in vain); all but the first opens, with what goes along, cost {}.",
        weighed.processes(),
        weighed.files(),
        units::count(opens),
        units::count(failed),
        weighed.cost(),
    );
    case.finding("open-storm", weighed, what, counted(case, &[Call::Open], config.count(Limit::OpenPerFile)))
        .into_iter()
        .collect()
}

/// Calls per process and path, where there are at least so many.
fn counted(case: &Case<'_>, calls: &[Call], least: u64) -> String {
    format!(
        "SELECT host, pid, path, count(*) AS calls, sum(CASE WHEN ret < 0 THEN 1 ELSE 0 END) AS failed, sum(dur_ns) / 1e9 AS seconds \
         FROM events WHERE name IN ({}) GROUP BY host, pid, path HAVING count(*) >= {least} ORDER BY calls DESC LIMIT 20",
        case.evidence.name_table.sql_names(calls),
    )
}

pub(super) fn stat_storm(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut calls) = (Vec::new(), 0);
    for (process, file, tally) in evidence.per_file(&[Op::StatPath]) {
        if tally.calls >= config.count(Limit::StatPerFile) {
            calls += tally.calls;
            parts.push(Part { process, file: Some(file), tally: tally.part(tally.calls - 1, 0) });
        }
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let what = format!(
        "{} looked up {} {} times; all but the first times cost {}.",
        weighed.processes(),
        weighed.files(),
        units::count(calls),
        weighed.cost(),
    );
    case.finding(
        "stat-storm",
        weighed,
        what,
        counted(case, &[Call::StatPath, Call::Access], config.count(Limit::StatPerFile)),
    )
    .into_iter()
    .collect()
}

pub(super) fn seek_storm(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut transfers, mut idle) = (Vec::new(), 0, 0);
    let moving = [Op::Read, Op::SmallRead, Op::Write, Op::SmallWrite, Op::StreamRead, Op::StreamWrite];
    for (process, file, tally) in evidence.per_file(&[Op::Seek]) {
        let moved: u64 = moving.iter().map(|op| evidence.sum(process, file, *op).calls).sum();
        if (tally.calls as f64) < config.get(Limit::SeekPart) * moved as f64 {
            continue;
        }
        transfers += moved;
        let patterns = &case.sequences.patterns;
        if let Ok(place) = patterns.binary_search_by_key(&(process, file), |(key, _)| *key) {
            idle += patterns[place].1.idle_seeks;
        }
        parts.push(Part { process, file: Some(file), tally });
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    let what = format!(
        "{} seeks for {} transfers on {} by {} ({} of them to where the file was) cost {}.",
        units::count(impact.calls),
        units::count(transfers),
        weighed.files(),
        weighed.processes(),
        units::count(idle),
        weighed.cost(),
    );
    case.finding("seek-storm", weighed, what, counted(case, &[Call::Seek, Call::Tell], 1)).into_iter().collect()
}

/// What one process does with names, and with content.
#[derive(Default)]
struct Shares {
    process: u32,
    names: Tally,
    content: Tally,
    files: u64,
    last_file: Option<u32>,
}

pub(super) fn metadata_bound(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut parts: Vec<Part> = Vec::new();
    let (mut moved, mut other, mut metadata): (u64, Tally, Tally) = (0, Tally::default(), Tally::default());
    let mut per_process: Vec<Shares> = Vec::new();
    for ((process, file, op), tally) in &evidence.sums {
        if per_process.last().is_none_or(|last| last.process != *process) {
            per_process.push(Shares { process: *process, ..Shares::default() });
        }
        if let Some(shares) = per_process.last_mut() {
            (if op.is_metadata() { &mut shares.names } else { &mut shares.content }).add(tally);
            shares.files += u64::from(shares.last_file.replace(*file) != Some(*file));
        }
    }
    for Shares { process, names, content, files, .. } in per_process {
        // Programs that never touch content have no other job than names.
        let is_bound = names.ns as f64 >= config.get(Limit::MetadataPart) * (names.ns + content.ns) as f64;
        let is_more = names.calls as f64 >= config.get(Limit::MetadataPerFile) * files as f64;
        if is_bound && is_more && content.bytes > 0 {
            moved += content.bytes;
            other.add(&content);
            metadata.add(&names);
            parts.push(Part { process, file: None, tally: names });
        }
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    if impact.seconds() < config.get(Limit::MetadataSeconds) {
        return Vec::new();
    }
    let what = format!(
        "{} calls about names and attributes by {} take {}, {} of the I/O time there and {} of the time, to move {}.",
        units::count(impact.calls),
        weighed.processes(),
        units::time(impact.time_ns as u64),
        units::percent(metadata.ns as f64 / (metadata.ns + other.ns).max(1) as f64),
        units::percent(impact.share),
        units::bytes(moved),
    );
    let calls = [
        Call::Open,
        Call::Close,
        Call::StatPath,
        Call::StatOpen,
        Call::Access,
        Call::Seek,
        Call::Tell,
        Call::Lock,
        Call::ChangeDirectory,
        Call::Metadata,
    ];
    debug_assert!(calls.iter().all(|call| call.io_cat() == IoCat::Metadata));
    let query = format!(
        "SELECT host, pid, name, count(*) AS calls, count(DISTINCT path) AS paths, sum(dur_ns) / 1e9 AS seconds FROM events \
         WHERE name IN ({}) GROUP BY host, pid, name ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&calls),
    );
    case.finding("metadata-bound", weighed, what, query).into_iter().collect()
}
