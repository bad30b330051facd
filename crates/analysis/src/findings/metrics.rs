//! What users' rules can ask for: tables of named metrics, one per view.
//!
//! Names follow DFAnalyzer's where there is one: `posix_read_time_frac_parent`, `posix_ops_slope`. Times are seconds, sizes bytes.

use std::collections::BTreeMap;

use super::calls::Role;
use super::evidence::{Evidence, Op, Tally};
use super::sequences::Sequences;

/// The views.
pub(crate) const VIEWS: [&str; 5] = ["job", "proc_name", "file_name", "host_name", "time_range"];

/// A view's rows.
pub(crate) struct Table {
    pub view: &'static str,
    pub rows: Vec<Row>,
}

/// One row: what it is, what it has, and whose it is.
pub(crate) struct Row {
    pub label: String,
    pub values: BTreeMap<String, f64>,
    pub parts: Vec<(u32, Option<u32>, Tally)>,
}

const CLASSES: [(&str, &[Op]); 9] = [
    ("read", Op::READS),
    ("write", Op::WRITES),
    ("data", &[Op::Read, Op::SmallRead, Op::StreamRead, Op::Write, Op::SmallWrite, Op::StreamWrite, Op::Copy]),
    (
        "metadata",
        &[
            Op::Open,
            Op::OpenCreate,
            Op::OpenFailed,
            Op::OpenSync,
            Op::Close,
            Op::StatPath,
            Op::StatOpen,
            Op::Seek,
            Op::Metadata,
        ],
    ),
    ("open", Op::OPENS),
    ("close", &[Op::Close]),
    ("stat", &[Op::StatPath, Op::StatOpen]),
    ("seek", &[Op::Seek]),
    ("sync", &[Op::Sync, Op::Flush]),
];

const RATIOS: [&str; 4] = ["time_frac_total", "count_frac_total", "size_frac_total", "ops_slope"];
const SPANS: [(&str, Role); 4] =
    [("compute", Role::Compute), ("fetch", Role::Fetch), ("load", Role::Load), ("checkpoint", Role::Checkpoint)];

/// The metrics that a view's rows may have; a row leaves out those without a value.
pub(crate) fn names(view: &str) -> Vec<String> {
    let mut names: Vec<String> =
        ["count", "time", "size", "size_mean"].iter().chain(&RATIOS).map(|end| format!("posix_{end}")).collect();
    if view == "time_range" {
        names.push("time_range".to_owned());
        return names;
    }
    for (class, _) in CLASSES {
        names.extend(
            ["count", "time", "size", "size_mean", "call_mean", "time_frac_parent"]
                .iter()
                .map(|end| format!("posix_{class}_{end}")),
        );
    }
    names.extend(["posix_random_count", "posix_random_frac"].map(str::to_owned));
    if view != "file_name" {
        names.push("wall_time".to_owned());
        names.push("processes".to_owned());
        for (span, _) in SPANS {
            names.extend(["time", "time_max", "time_min", "frac"].map(|end| format!("{span}_{end}")));
        }
        names.push("workers".to_owned());
    }
    names
}

/// All tables of a run.
pub(crate) fn tables(evidence: &Evidence, sequences: &Sequences) -> Vec<Table> {
    VIEWS
        .into_iter()
        .map(|view| {
            let mut rows = match view {
                "time_range" => slices(evidence),
                _ => grouped(evidence, sequences, view),
            };
            let mut all = Tally::default();
            rows.iter().flat_map(|row| &row.parts).for_each(|(_, _, tally)| all.add(tally));
            rows.iter_mut().for_each(|row| ratios(row, &all));
            rows.sort_by(|a, b| a.label.cmp(&b.label));
            Table { view, rows }
        })
        .collect()
}

fn sum(row: &Row) -> Tally {
    let mut sum = Tally::default();
    row.parts.iter().for_each(|(_, _, tally)| sum.add(tally));
    sum
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn ratios(row: &mut Row, all: &Tally) {
    let own = sum(row);
    let part = |own: u64, all: u64| (all > 0).then(|| own as f64 / all as f64);
    let (time, count) = (part(own.ns, all.ns), part(own.calls, all.calls));
    let slope = time.zip(count.filter(|count| *count > 0.0)).map(|(time, count)| time / count);
    for (name, value) in RATIOS.iter().zip([time, count, part(own.bytes, all.bytes), slope]) {
        row.values.extend(value.map(|value| (format!("posix_{name}"), value)));
    }
    row.values.insert("posix_count".to_owned(), own.calls as f64);
    row.values.insert("posix_time".to_owned(), seconds(own.ns));
    row.values.insert("posix_size".to_owned(), own.bytes as f64);
    row.values.extend(part(own.bytes, own.calls).map(|mean| ("posix_size_mean".to_owned(), mean)));
}

fn slices(evidence: &Evidence) -> Vec<Row> {
    let Some((whose, _)) = evidence.alive().next() else { return Vec::new() };
    let mut sums: BTreeMap<u32, Tally> = BTreeMap::new();
    for ((slice, _, _), tally) in &evidence.slices {
        sums.entry(*slice).or_default().add(tally);
    }
    let row = |(slice, tally): (u32, Tally)| Row {
        label: format!("{:>6} s", i64::from(slice) * evidence.slice_ns / 1_000_000_000),
        values: BTreeMap::from([("time_range".to_owned(), f64::from(slice))]),
        parts: vec![(whose, None, tally)],
    };
    sums.into_iter().map(row).collect()
}

/// A row in the making: what its operations did, and the processes that are in it.
type Group = (Row, BTreeMap<Op, Tally>, Vec<u32>);

fn grouped(evidence: &Evidence, sequences: &Sequences, view: &str) -> Vec<Row> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let label = |process: u32, file: Option<u32>| match view {
        "job" => Some("job".to_owned()),
        "host_name" => Some(evidence.who(process).host),
        "file_name" => file.map(|file| evidence.dictionary.file(file).to_owned()),
        _ => {
            let who = evidence.who(process);
            Some(format!("{}#{}#{}", who.program, who.host, who.pid))
        }
    };
    let empty = |label: &str| {
        (Row { label: label.to_owned(), values: BTreeMap::new(), parts: Vec::new() }, BTreeMap::new(), Vec::new())
    };
    for (process, _) in evidence.alive() {
        if let Some(label) = label(process, None) {
            groups.entry(label.clone()).or_insert_with(|| empty(&label)).2.push(process);
        }
    }
    for ((process, file, op), tally) in &evidence.sums {
        let Some(label) = label(*process, Some(*file)) else { continue };
        let (row, ops, _) = groups.entry(label.clone()).or_insert_with(|| empty(&label));
        ops.entry(*op).or_insert_with(Tally::default).add(tally);
        row.parts.push((*process, Some(*file), *tally));
    }
    for ((process, file), pattern) in &sequences.patterns {
        let Some((row, ..)) = label(*process, Some(*file)).and_then(|label| groups.get_mut(&label)) else { continue };
        let (jumps, all) = (pattern.random_reads + pattern.random_writes, pattern.reads + pattern.writes);
        *row.values.entry("posix_random_count".to_owned()).or_default() += jumps as f64;
        // The divisor, replaced by the ratio below.
        *row.values.entry("posix_random_frac".to_owned()).or_default() += all as f64;
    }
    groups
        .into_values()
        .map(|(mut row, ops, processes)| {
            classes(&mut row, &ops);
            let jumps = row.values.get("posix_random_count").copied();
            if let Some(all) = row.values.remove("posix_random_frac").filter(|all| *all > 0.0) {
                row.values.extend(jumps.map(|jumps| ("posix_random_frac".to_owned(), jumps / all)));
            }
            if view != "file_name" {
                spans(&mut row, evidence, &processes);
            }
            row
        })
        .collect()
}

fn classes(row: &mut Row, ops: &BTreeMap<Op, Tally>) {
    let all = sum(row);
    for (class, operations) in CLASSES {
        let mut own = Tally::default();
        operations.iter().filter_map(|op| ops.get(op)).for_each(|tally| own.add(tally));
        let mut put = |end: &str, value: Option<f64>| {
            row.values.extend(value.map(|value| (format!("posix_{class}_{end}"), value)));
        };
        let ratio = |a: f64, b: u64| (b > 0).then(|| a / b as f64);
        put("count", Some(own.calls as f64));
        put("time", Some(seconds(own.ns)));
        put("size", Some(own.bytes as f64));
        put("size_mean", ratio(own.bytes as f64, own.calls));
        put("call_mean", ratio(seconds(own.ns), own.calls));
        put("time_frac_parent", ratio(own.ns as f64, all.ns));
    }
}

fn spans(row: &mut Row, evidence: &Evidence, processes: &[u32]) {
    row.values.insert("wall_time".to_owned(), seconds(evidence.wall_ns));
    row.values.insert("processes".to_owned(), processes.len() as f64);
    let trains = |process: &&u32| evidence.role(**process, Role::Compute).is_some();
    let workers =
        processes.iter().filter(|process| !trains(process) && evidence.role(**process, Role::Load).is_some()).count();
    row.values.insert("workers".to_owned(), workers as f64);
    let lived: u64 = processes
        .iter()
        .filter(trains)
        .filter_map(|process| evidence.lives[*process as usize])
        .map(|life| life.ns())
        .sum();
    for (name, role) in SPANS {
        let times: Vec<u64> =
            processes.iter().filter_map(|process| evidence.role(*process, role)).map(|own| own.ns).collect();
        let (Some(most), Some(least)) = (times.iter().max(), times.iter().min()) else { continue };
        let all: u64 = times.iter().sum();
        row.values.insert(format!("{name}_time"), seconds(all));
        row.values.insert(format!("{name}_time_max"), seconds(*most));
        row.values.insert(format!("{name}_time_min"), seconds(*least));
        if lived > 0 {
            row.values.insert(format!("{name}_frac"), all as f64 / lived as f64);
        }
    }
}
