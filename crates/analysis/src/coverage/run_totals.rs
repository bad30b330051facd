//! The totals of all supervisors' records of a run: what `weft run` prints at its end, and what was lost.

use std::collections::{BTreeMap, BTreeSet};

use weftline_calls::Flow;
use weftline_format::manifest::{CallTotal, FileTotal, SpanTotal, State, SupervisorRecord};

/// All supervisors' records of a run, added up.
#[derive(Debug, Clone)]
pub struct RunTotals {
    /// Processes.
    pub processes: usize,
    /// Programs that they executed; a fork executes none.
    pub execs: usize,
    /// Events in the trace.
    pub events: u64,
    /// The longest wall time of a supervisor, ns.
    pub wall_ns: u64,
    /// CPU time of the programs, ns.
    pub cpu_ns: u64,
    /// CPU time of tracing beside them, ns.
    pub drain_cpu_ns: u64,
    /// Calls of the C library, most time first.
    pub calls: Vec<CallTotal>,
    /// Annotations, most time first.
    pub spans: Vec<SpanTotal>,
    /// Files, most time first.
    pub files: Vec<FileTotal>,
    /// Events that are missing, by reason.
    pub losses: BTreeMap<String, u64>,
    /// Members that `--max-size` dropped.
    pub dropped_members: u64,
    /// Events in those.
    pub dropped_events: u64,
    /// Programs that could not be traced, with the reason.
    pub untraced: Vec<String>,
    /// Those among them that could have been traced, had there been shared memory for them.
    pub refused: Vec<String>,
    /// Why tracing failed on our side.
    pub failures: Vec<String>,
    /// Processes of the run are still running.
    pub open: bool,
}

impl RunTotals {
    /// Adds up records.
    pub fn of(records: &[SupervisorRecord]) -> RunTotals {
        let mut calls: BTreeMap<(String, String, bool), CallTotal> = BTreeMap::new();
        let mut spans: BTreeMap<(String, String), SpanTotal> = BTreeMap::new();
        let mut files: BTreeMap<String, FileTotal> = BTreeMap::new();
        let mut losses = BTreeMap::new();
        let mut pids = BTreeSet::new();
        let mut untraced = BTreeMap::<String, u64>::new();
        let mut refused = BTreeMap::<String, u64>::new();
        let mut alike = 0_usize;
        for record in records {
            for call in &record.calls {
                // `open` for `open64`: the names that people know.
                let name = weftline_calls::find(&call.name).map_or(call.name.as_str(), |known| known.canonical);
                let key = (call.cat.clone(), name.to_owned(), call.waits);
                let sum = calls.entry(key).or_insert_with(|| CallTotal {
                    name: name.to_owned(),
                    cat: call.cat.clone(),
                    waits: call.waits,
                    ..CallTotal::default()
                });
                sum.merge(call);
            }
            for span in &record.spans {
                let sum = spans.entry((span.cat.clone(), span.name.clone())).or_insert_with(|| SpanTotal {
                    name: span.name.clone(),
                    cat: span.cat.clone(),
                    ..SpanTotal::default()
                });
                sum.merge(span);
            }
            for file in &record.files {
                let sum = files
                    .entry(file.path.clone())
                    .or_insert_with(|| FileTotal { path: file.path.clone(), ..FileTotal::default() });
                sum.merge(file);
            }
            for process in &record.processes {
                pids.insert((process.host.clone(), process.pidns, process.pid, process.start));
                for (reason, count) in &process.drops {
                    let lost: &mut u64 = losses.entry(reason.clone()).or_default();
                    *lost = lost.saturating_add(*count);
                }
                if let Some(reason) = &process.untraced {
                    // Programs that found no room to say who they are have one record together.
                    let what = match super::program(process) {
                        name if name.is_empty() => reason.clone(),
                        name => format!("{name}: {reason}"),
                    };
                    let processes = process.refused.max(1);
                    alike = alike.saturating_add(usize::try_from(processes - 1).unwrap_or(usize::MAX));
                    let list = (process.refused > 0).then_some(&mut refused);
                    for list in list.into_iter().chain([&mut untraced]) {
                        let sum = list.entry(what.clone()).or_default();
                        *sum = sum.saturating_add(processes);
                    }
                }
            }
        }
        let mut calls: Vec<CallTotal> = calls.into_values().collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.time_ns));
        let mut spans: Vec<SpanTotal> = spans.into_values().collect();
        spans.sort_by_key(|span| std::cmp::Reverse(span.time_ns));
        let mut files: Vec<FileTotal> = files.into_values().collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.time_ns));
        let sum = |part: fn(&SupervisorRecord) -> u64| records.iter().map(part).fold(0, u64::saturating_add);
        RunTotals {
            processes: pids.len().saturating_add(alike),
            execs: alike.saturating_add(
                records.iter().flat_map(|record| &record.processes).filter(|image| !image.forked).count(),
            ),
            events: records
                .iter()
                .flat_map(|record| &record.processes)
                .map(|process| process.events)
                .fold(0, u64::saturating_add),
            wall_ns: records.iter().map(|record| record.wall_ns).max().unwrap_or(0),
            cpu_ns: sum(|record| record.cpu_ns),
            drain_cpu_ns: sum(|record| record.drain_cpu_ns),
            calls,
            spans,
            files,
            losses,
            dropped_members: sum(|record| record.dropped_members),
            dropped_events: sum(|record| record.dropped_events),
            untraced: sentences(untraced),
            refused: sentences(refused),
            failures: records.iter().filter_map(failure).collect(),
            open: records.iter().any(|record| record.state == State::Open),
        }
    }

    /// Bytes read and written by all calls of the trace, those on pipes, terminals and system files among them. What is copied from file to file was
    /// read and written. A report, which leaves system files out and says so, counts the rest in the same way.
    pub fn bytes(&self) -> (u64, u64) {
        self.calls.iter().fold((0, 0), |(read, written): (u64, u64), call| {
            let flow = weftline_calls::find(&call.name).map_or(Flow::None, |known| known.operation.flow());
            let of = |moves: bool| if moves { call.bytes } else { 0 };
            (read.saturating_add(of(flow.reads())), written.saturating_add(of(flow.writes())))
        })
    }

    /// Calls of the trace.
    pub fn call_count(&self) -> u64 {
        self.calls.iter().map(|call| call.count).sum()
    }

    /// Events that are missing from the trace.
    pub fn lost(&self) -> u64 {
        self.losses.values().fold(0, |all, lost| all.saturating_add(*lost))
    }
}

/// Programs with how many there were of each.
fn sentences(counted: BTreeMap<String, u64>) -> Vec<String> {
    counted.into_iter().map(|(what, n)| if n > 1 { format!("{what} (×{n})") } else { what }).collect()
}

/// Why a supervisor's program was not traced though it should have been. Besides what the supervisor says of itself: a program that ended without
/// a word, traced or not, is one that the library never came to.
fn failure(record: &SupervisorRecord) -> Option<String> {
    let silent = || {
        let ended = record.exit.is_some() && record.state == State::Complete;
        let known = record.processes.iter().any(|process| process.ppid == record.pid || process.untraced.is_some());
        (ended && !known).then(|| {
            "the program left no record: it ended before its first call, or its loader refused the library".to_owned()
        })
    };
    record.failure.clone().or_else(silent)
}
