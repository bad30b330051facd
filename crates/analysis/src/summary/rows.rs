//! The lists of a summary: calls, the largest files, directories and processes, and who is out of line. Groups become one by meaning.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use weftline_index::Dictionary;

use super::outliers::{Outlier, outliers};
use super::pass::{Gathered, Operation, Traffic};
use super::{OperationRow, TopRow};
use crate::classify::{Classes, IoCat};
use crate::group::{directory_of, host_text};

pub(super) fn operations(gathered: &Gathered, dictionary: &Dictionary, classes: &Classes) -> Vec<OperationRow> {
    // Categories that differ in case only are one.
    let mut merged: BTreeMap<(String, String), (Option<IoCat>, Operation)> = BTreeMap::new();
    for ((cat, name), operation) in &gathered.operations {
        let key = (dictionary.cat(*cat).to_lowercase(), dictionary.name(*name).to_owned());
        let io_cat = classes.is_io(*cat).then(|| classes.io_cat(*cat, *name));
        match merged.get_mut(&key) {
            Some((_, known)) => {
                crate::group::Cell::merge(&mut known.stats, &operation.stats);
                known.durations.merge(&operation.durations);
            }
            None => drop(merged.insert(key, (io_cat, operation.clone()))),
        }
    }
    let mut rows: Vec<OperationRow> = merged
        .into_iter()
        .map(|((cat, name), (io_cat, operation))| OperationRow {
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
            percentiles: operation
                .stats
                .dur_sq()
                .map(|_| [0.5, 0.95, 0.99].map(|share| operation.durations.quantile(share).unwrap_or(0.0))),
        })
        .collect();
    rows.sort_by(|left, right| {
        (left.io_cat.is_none(), -left.time, &left.cat, &left.name).cmp(&(
            right.io_cat.is_none(),
            -right.time,
            &right.cat,
            &right.name,
        ))
    });
    rows
}

/// I/O per path: a path under several hashes is one file.
pub(super) fn files_by_path<'d>(gathered: &Gathered, dictionary: &'d Dictionary) -> FxHashMap<&'d str, Traffic> {
    let mut files: FxHashMap<&str, Traffic> = FxHashMap::default();
    for (id, traffic) in gathered.files.iter().enumerate().filter(|(_, traffic)| traffic.calls > 0) {
        files.entry(dictionary.file(id as u32)).or_default().merge(traffic);
    }
    files
}

/// Most time first; what takes equally long in the order of names.
pub(super) fn top(rows: impl Iterator<Item = TopRow>, most: usize) -> Vec<TopRow> {
    let mut rows: Vec<TopRow> = rows.collect();
    let by = |left: &TopRow, right: &TopRow| {
        right.traffic.time.cmp(&left.traffic.time).then_with(|| left.name.cmp(&right.name))
    };
    if most > 0 && most < rows.len() {
        rows.select_nth_unstable_by(most - 1, by);
        rows.truncate(most);
    }
    rows.sort_by(by);
    rows.truncate(most);
    rows
}

pub(super) fn top_files(gathered: &Gathered, dictionary: &Dictionary, most: usize) -> Vec<TopRow> {
    let files = files_by_path(gathered, dictionary);
    top(files.into_iter().map(|(name, traffic)| TopRow { name: name.to_owned(), traffic, files: 1 }), most)
}

pub(super) fn top_directories(gathered: &Gathered, dictionary: &Dictionary, most: usize) -> Vec<TopRow> {
    let files = files_by_path(gathered, dictionary);
    let mut directories: FxHashMap<&str, TopRow> = FxHashMap::default();
    for (path, traffic) in &files {
        let directory = directory_of(path);
        let row = directories.entry(directory).or_insert_with(|| TopRow {
            name: directory.to_owned(),
            traffic: Traffic::default(),
            files: 0,
        });
        row.traffic.merge(traffic);
        row.files += 1;
    }
    top(directories.into_values(), most)
}

/// I/O per process: images with one pid on one host are one.
pub(super) fn people(gathered: &Gathered, dictionary: &Dictionary) -> BTreeMap<(String, i64), TopRow> {
    let mut people: BTreeMap<(String, i64), TopRow> = BTreeMap::new();
    for (id, _) in gathered.lives.iter().enumerate().filter(|(_, life)| life.is_some()) {
        let process = dictionary.process(id as u32);
        let host = host_text(process);
        let row = people.entry((host.to_owned(), process.pid)).or_insert_with(|| TopRow {
            name: format!("{host}#{}", process.pid),
            traffic: Traffic::default(),
            files: 0,
        });
        if let Some(traffic) = gathered.processes.get(id) {
            row.traffic.merge(traffic);
        }
    }
    people
}

pub(super) fn stragglers(gathered: &Gathered, dictionary: &Dictionary) -> Vec<Outlier> {
    let people = people(gathered, dictionary);
    let mut hosts: BTreeMap<&str, i128> = BTreeMap::new();
    for ((host, _), row) in &people {
        *hosts.entry(host).or_default() += row.traffic.time;
    }
    let processes: Vec<(String, i128)> =
        people.values().filter(|row| row.traffic.calls > 0).map(|row| (row.name.clone(), row.traffic.time)).collect();
    let hosts: Vec<(String, i128)> = hosts.into_iter().map(|(host, time)| (host.to_owned(), time)).collect();
    let mut all = outliers("process", &processes);
    all.extend(outliers("host", &hosts));
    all
}
