//! The lists of a summary: calls, the largest files, directories and processes, and who is out of line. Groups become one by meaning.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use weftline_calls::IoSums;
use weftline_index::Dictionary;

use super::gathered::{Gathered, OperationStats};
use super::outliers::{Outlier, Peer, outliers};
use super::{OperationRow, TopRow};
use crate::classify::{Classes, IoCat};
use crate::group::{directory_of, host_text, process_labels};
use crate::program;

/// The lists of operations.
pub(super) struct Operations {
    /// All kinds of events by their names.
    pub all: Vec<OperationRow>,
    /// Calls on files, by the names that people know.
    pub calls: Vec<OperationRow>,
    /// Calls that waited for others, likewise.
    pub waits: Vec<OperationRow>,
    /// Spans of the program itself.
    pub spans: Vec<OperationRow>,
}

type Merged = BTreeMap<(String, String), (Option<IoCat>, OperationStats)>;

pub(super) fn operations(gathered: &Gathered, dictionary: &Dictionary, classes: &Classes) -> Operations {
    let [mut all, mut calls, mut waits, mut spans]: [Merged; 4] = Default::default();
    for ((cat, name, waited), operation) in &gathered.operations {
        let io_cat = classes.is_io(*cat).then(|| classes.io_cat(*cat, *name));
        // Categories that differ in case only are one.
        let (label, written) = (dictionary.cat(*cat).to_lowercase(), dictionary.name(*name));
        merge(&mut all, (label.clone(), written.to_owned()), io_cat, operation);
        if !classes.is_of_calls(*cat) {
            merge(&mut spans, (label, written.to_owned()), io_cat, operation);
            continue;
        }
        let known = weftline_calls::find(written).map_or(written, |call| call.canonical);
        merge(if *waited { &mut waits } else { &mut calls }, (label, known.to_owned()), io_cat, operation);
    }
    let mut lists = [all, calls, waits, spans].map(|merged| merged.into_iter().map(row).collect::<Vec<_>>());
    lists[0].sort_by_key(|row| (row.io_cat.is_none(), -row.time));
    lists[1..].iter_mut().for_each(|rows| rows.sort_by_key(|row| -row.time));
    let [all, calls, waits, spans] = lists;
    Operations { all, calls, waits, spans }
}

fn merge(into: &mut Merged, key: (String, String), io_cat: Option<IoCat>, operation: &OperationStats) {
    match into.get_mut(&key) {
        Some((_, known)) => known.merge(operation),
        None => drop(into.insert(key, (io_cat, operation.clone()))),
    }
}

fn row(((cat, name), (io_cat, operation)): ((String, String), (Option<IoCat>, OperationStats))) -> OperationRow {
    OperationRow {
        cat,
        name,
        io_cat,
        count: operation.stats.count,
        size: operation.stats.size,
        sized: operation.stats.sized(),
        moved: operation.stats.sized > 0,
        totals: operation.stats.totals(),
        time: operation.stats.dur,
        extremes: operation.stats.dur_range(),
        percentiles: operation.stats.dur_sq().map(|_| {
            [0.5, 0.95, 0.99].map(|share| {
                let value = operation.durations.quantile(share).unwrap_or(0.0);
                // Bins of a histogram are wider than what fell into them.
                operation.stats.dur_range().map_or(value, |(min, max)| value.clamp(min as f64, max.max(min) as f64))
            })
        }),
    }
}

/// I/O per path: a path under several hashes is one file.
pub(super) fn files_by_path<'d>(
    gathered: &Gathered,
    dictionary: &'d Dictionary,
    wanted: impl Fn(u32) -> bool,
) -> FxHashMap<&'d str, IoSums> {
    let mut files: FxHashMap<&str, IoSums> = FxHashMap::default();
    let used = gathered.files.iter().enumerate().filter(|(id, traffic)| traffic.calls > 0 && wanted(*id as u32));
    for (id, traffic) in used {
        files.entry(dictionary.file(id as u32)).or_default().merge(traffic);
    }
    files
}

/// Most time first; what takes equally long in the order of names.
pub(super) fn top(rows: impl Iterator<Item = TopRow>, most: usize) -> Vec<TopRow> {
    let mut rows: Vec<TopRow> = rows.collect();
    let by = |left: &TopRow, right: &TopRow| {
        right.traffic.time_ns.cmp(&left.traffic.time_ns).then_with(|| left.name.cmp(&right.name))
    };
    if most > 0 && most < rows.len() {
        rows.select_nth_unstable_by(most - 1, by);
        rows.truncate(most);
    }
    rows.sort_by(by);
    rows.truncate(most);
    rows
}

/// Files with most time. Pipes, sockets and terminals are none: time there is spent waiting for somebody.
pub(super) fn top_files(gathered: &Gathered, dictionary: &Dictionary, classes: &Classes, most: usize) -> Vec<TopRow> {
    let files = files_by_path(gathered, dictionary, |file| classes.has_content(file));
    top(
        files.into_iter().map(|(name, traffic)| TopRow {
            name: name.to_owned(),
            traffic,
            files: 1,
            ..TopRow::default()
        }),
        most,
    )
}

pub(super) fn top_directories(
    gathered: &Gathered,
    dictionary: &Dictionary,
    classes: &Classes,
    most: usize,
) -> Vec<TopRow> {
    let files = files_by_path(gathered, dictionary, |file| classes.has_content(file));
    let mut directories: FxHashMap<&str, TopRow> = FxHashMap::default();
    for (path, traffic) in &files {
        let directory = directory_of(path);
        let row =
            directories.entry(directory).or_insert_with(|| TopRow { name: directory.to_owned(), ..TopRow::default() });
        row.traffic.merge(traffic);
        row.files += 1;
    }
    top(directories.into_values(), most)
}

/// I/O per process, whatever it executed, by its first entry.
pub(super) fn process_ids(gathered: &Gathered, dictionary: &Dictionary) -> BTreeMap<u32, TopRow> {
    let mut process_ids: BTreeMap<u32, TopRow> = BTreeMap::new();
    let (identities, labels) = (dictionary.identities(), process_labels(dictionary));
    let lived = |first: u32| gathered.lives.get(first as usize).is_some_and(Option::is_some);
    for (process, (id, identity)) in dictionary.processes.iter().zip(identities.iter().enumerate()) {
        let Some(identity) = identity.filter(|first| lived(*first)) else { continue };
        let row = process_ids.entry(identity).or_insert_with(|| TopRow {
            name: labels[id].clone(),
            pid: Some(process.pid),
            ..TopRow::default()
        });
        row.rank = process.rank.or(row.rank);
        // What a process executed last is what it was started for. What the kernel told of it has no program.
        let label = program::label(&process.command, &process.exe, &process.name);
        row.program = Some(label).filter(|label| !label.is_empty()).or(row.program.take());
        if let Some(traffic) = gathered.processes.get(id) {
            row.traffic.merge(traffic);
        }
    }
    process_ids
}

/// Processes that must be alike for one of them to be out of line.
const PEERS: usize = 4;
/// Of the job's time: whoever lies above the median by less than this delays nobody.
const LEAST_SHARE: i128 = 100;

/// Processes out of line among those of the same program and role, and hosts among hosts. A shell that waits for its children is no straggler among
/// them, nor is a program that waits for its own workers.
pub(super) fn stragglers(gathered: &Gathered, dictionary: &Dictionary, job_ns: i128) -> Vec<Outlier> {
    let process_ids = process_ids(gathered, dictionary);
    let programs: FxHashMap<(&str, Option<u64>, i64), &str> = process_ids
        .iter()
        .filter_map(|(id, row)| {
            let process = dictionary.process(*id);
            Some(((host_text(process), process.pidns, process.pid), row.program.as_deref()?))
        })
        .collect();
    let mut hosts: BTreeMap<&str, i128> = BTreeMap::new();
    let mut cohorts: BTreeMap<(&str, bool), Vec<Peer>> = BTreeMap::new();
    for (id, row) in &process_ids {
        let process = dictionary.process(*id);
        let host = host_text(process);
        *hosts.entry(host).or_default() += i128::from(row.traffic.time_ns);
        if row.traffic.calls > 0 {
            let program = row.program.as_deref().unwrap_or_default();
            let parent = process.ppid.and_then(|parent| programs.get(&(host, process.pidns, parent)).copied());
            let peer = Peer {
                name: row.name.clone(),
                program: row.program.clone(),
                pid: row.pid,
                time: row.traffic.time_ns.into(),
            };
            cohorts.entry((program, parent == Some(program))).or_default().push(peer);
        }
    }
    let least = job_ns / LEAST_SHARE;
    let cohorts = cohorts.into_values().filter(|peers| peers.len() >= PEERS);
    let mut all: Vec<Outlier> = cohorts.flat_map(|peers| outliers("process", &peers, least)).collect();
    all.sort_by(|left, right| right.ratio.total_cmp(&left.ratio).then_with(|| left.name.cmp(&right.name)));
    let host = |(host, time): (&str, i128)| Peer { name: host.to_owned(), program: None, pid: None, time };
    all.extend(outliers("host", &hosts.into_iter().map(host).collect::<Vec<_>>(), least));
    all
}
