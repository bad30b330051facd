//! The processes of a run, by program: people think of `python3 train.py` and its workers, not of numbers.

use std::collections::BTreeMap;

use serde::Serialize;
use weftline_calls::ActivitySums;

use super::evidence::{Evidence, Op};
use crate::units;

/// The processes of one program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProgramRow {
    /// The program: `python3 train.py`, `python3 train.py [4 ranks]`, `python3 train.py [4 workers]`; processes that gave themselves a name have
    /// it in the brackets: `python3 train.py [4 × pt_data_worker]`.
    pub program: String,
    /// How many processes.
    pub processes: u64,
    /// The pid of the one that lived longest.
    pub pid: i64,
    /// Its rank within a parallel job.
    pub rank: Option<i64>,
    /// How long that one lived, ns.
    pub longest_ns: u64,
    /// CPU time of all, ns; nothing where nobody knows it of any.
    pub cpu_ns: Option<u64>,
    /// Time of all threads in calls on files, ns.
    pub file_io_ns: u64,
    /// Time of all threads in calls that wait, ns.
    pub waiting_ns: u64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
}

/// The programs of a run, the one that took most time first.
pub(super) fn rows(evidence: &Evidence) -> Vec<ProgramRow> {
    let mut bytes = vec![(0u64, 0u64); evidence.family.processes.len()];
    for ((id, _, op), tally) in &evidence.sums {
        let Some(place) = evidence.family.places[*id as usize] else { continue };
        let (read, written) = &mut bytes[place];
        if Op::READS.contains(op) {
            *read = read.saturating_add(tally.bytes);
        }
        if Op::WRITES.contains(op) {
            *written = written.saturating_add(tally.bytes);
        }
    }
    let processes = &evidence.family.processes;
    let mut rows: BTreeMap<(&str, ProcessKind), ProgramRow> = BTreeMap::new();
    for (place, process) in processes.iter().enumerate() {
        let known = evidence.dictionary.process(evidence.family.ids[place]);
        let parent = process.parent.map(|parent| &processes[parent]);
        let kind = match own_name(&process.program, &known.name, &known.command) {
            Some(name) => ProcessKind::Named(name.to_owned()),
            None if parent.is_some_and(|parent| parent.program == process.program && parent.rank == process.rank) => {
                ProcessKind::Worker
            }
            None if process.rank.is_some() => ProcessKind::Rank,
            None => ProcessKind::Main,
        };
        let row = rows.entry((&process.program, kind)).or_default();
        let mut sums = ActivitySums::default();
        process.threads.iter().for_each(|thread| sums.merge(&thread.sums));
        let life = process.end.saturating_sub(process.start).max(0) as u64;
        if row.processes == 0 || life > row.longest_ns {
            (row.longest_ns, row.pid, row.rank) = (life, known.pid, known.rank);
        }
        row.processes += 1;
        row.cpu_ns = process.cpu_ns.map(|cpu| cpu.saturating_add(row.cpu_ns.unwrap_or(0))).or(row.cpu_ns);
        row.waiting_ns = row.waiting_ns.saturating_add(sums.waiting());
        row.file_io_ns = row.file_io_ns.saturating_add(sums.total().saturating_sub(sums.waiting()));
        row.read_bytes = row.read_bytes.saturating_add(bytes[place].0);
        row.written_bytes = row.written_bytes.saturating_add(bytes[place].1);
    }
    let named = |((program, kind), row): ((&str, ProcessKind), ProgramRow)| {
        let program = kind.label(program, row.processes);
        ProgramRow { program, ..row }
    };
    let mut rows: Vec<ProgramRow> = rows.into_iter().map(named).collect();
    let took = |row: &ProgramRow| row.cpu_ns.unwrap_or(0).saturating_add(row.file_io_ns);
    rows.sort_by_key(|row| std::cmp::Reverse((took(row), row.longest_ns)));
    rows
}

/// What a process is to its program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ProcessKind {
    Main,
    /// One of a parallel job.
    Rank,
    /// A process of the same program started it: a loader's worker, a pool's.
    Worker,
    /// It gave itself a name.
    Named(String),
}

impl ProcessKind {
    /// What people call so many of them.
    fn label(&self, program: &str, processes: u64) -> String {
        let many = |one: &str| units::counted(processes, one, &format!("{one}s"));
        match self {
            // Traces of others name no programs.
            _ if program.is_empty() => String::new(),
            ProcessKind::Main => program.to_owned(),
            ProcessKind::Rank => format!("{program} [{}]", many("rank")),
            ProcessKind::Worker => format!("{program} [{}]", many("worker")),
            ProcessKind::Named(name) if processes == 1 => format!("{program} [{name}]"),
            ProcessKind::Named(name) => format!("{program} [{} × {name}]", units::count(processes)),
        }
    }
}

/// The name that a process gave itself, where that says more than its command line.
fn own_name<'n>(program: &str, name: &'n str, command: &[String]) -> Option<&'n str> {
    let line = command.join(" ");
    let own = !name.is_empty() && name != program && !line.contains(name) && !name.contains(program);
    // What viewers call a process is its command line in short, unless it has a name of its own.
    let shortened = command.first().is_some_and(|first| {
        let base = first.rsplit('/').next().unwrap_or(first);
        name.starts_with(base)
    });
    (own && !shortened).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_their_own_names() {
        let command: Vec<String> = ["/usr/bin/python3", "/x/train.py"].map(str::to_owned).to_vec();
        for (name, expected) in [
            ("pt_data_worker", Some("pt_data_worker")),
            ("python3 /x/train.py", None),
            ("python3 /x/train.py (forked)", None),
            ("python3 train.py", None),
            ("", None),
        ] {
            assert_eq!(own_name("python3 train.py", name, &command), expected, "{name}");
        }
    }

    #[test]
    fn groups_are_named_by_what_they_are() {
        let worker = || ProcessKind::Named("pt_data_worker".to_owned());
        for (kind, processes, expected) in [
            (ProcessKind::Main, 1, "python3 train.py"),
            (ProcessKind::Main, 3, "python3 train.py"),
            (ProcessKind::Rank, 4, "python3 train.py [4 ranks]"),
            (ProcessKind::Worker, 1, "python3 train.py [1 worker]"),
            (ProcessKind::Worker, 4, "python3 train.py [4 workers]"),
            (worker(), 1, "python3 train.py [pt_data_worker]"),
            (worker(), 8, "python3 train.py [8 × pt_data_worker]"),
        ] {
            assert_eq!(kind.label("python3 train.py", processes), expected);
        }
        assert_eq!(ProcessKind::Rank.label("", 4), "", "traces of others name no programs");
    }
}
