//! What programs do past the hooks, in plain words: the habits that the recorder noted (`ProcessRecord::habits`).

use std::collections::BTreeMap;

use serde::Serialize;
use weftline_format::manifest::{ProcessRecord, SupervisorRecord};

use super::program;

/// A habit, and what it means for the trace.
pub(super) struct Habit {
    /// As the manifest has it.
    name: &'static str,
    pub(super) words: &'static str,
    /// Named always, because no missing byte would betray it. Others are named where bytes are missing.
    always: bool,
    /// No counter of the kernel shows what went this way.
    uncounted: bool,
}

const HABITS: [Habit; 8] = [
    Habit {
        name: "io_uring",
        words: "used io_uring: its transfers are not seen, and no counter of the kernel shows their bytes",
        always: true,
        uncounted: true,
    },
    Habit {
        name: "native aio",
        words: "used Linux's native AIO: its transfers are not seen, and no counter of the kernel shows their bytes",
        always: true,
        uncounted: true,
    },
    Habit {
        name: "mmap",
        words: "mapped files into memory: what it read and wrote there is not seen",
        always: true,
        uncounted: false,
    },
    Habit {
        name: "go",
        words: "is a Go program, whose runtime makes system calls itself: only calls of C libraries are seen",
        always: true,
        uncounted: false,
    },
    Habit {
        name: "raw syscalls",
        words: "made raw system calls by syscall(2): those are not seen",
        always: false,
        uncounted: false,
    },
    Habit {
        name: "shared memory",
        words: "had a child that shares its memory (clone with CLONE_VM)",
        always: false,
        uncounted: false,
    },
    Habit { name: "sockets", words: "read and wrote sockets", always: false, uncounted: false },
    Habit {
        name: "splice",
        words: "moved data within the kernel (splice, tee, vmsplice), whose counters leave that out",
        always: false,
        uncounted: false,
    },
];

fn habits(process: &ProcessRecord) -> impl Iterator<Item = &'static Habit> {
    HABITS.iter().filter(|habit| process.habits.iter().any(|name| name == habit.name))
}

/// What is to be said of a process in any case.
pub(super) fn always(process: &ProcessRecord) -> impl Iterator<Item = &'static Habit> {
    habits(process).filter(|habit| habit.always)
}

/// What may be why bytes are missing. Habits that this version does not know are named as they are.
pub(super) fn of_gaps(process: &ProcessRecord) -> Vec<String> {
    let known = habits(process).filter(|habit| !habit.always).map(|habit| habit.words.to_owned());
    let unknown = process.habits.iter().filter(|name| HABITS.iter().all(|habit| habit.name != **name)).cloned();
    known.chain(unknown).collect()
}

/// One program and one thing that it did past the hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Unseen {
    pub(crate) program: String,
    pub(crate) what: &'static str,
    /// How many processes of that program did it.
    pub(crate) processes: usize,
    /// No counter of the kernel shows the bytes.
    pub(crate) uncounted: bool,
}

impl Unseen {
    /// `fio (×4) used io_uring: …`
    pub(crate) fn sentence(&self) -> String {
        let times = if self.processes > 1 { format!(" (×{})", self.processes) } else { String::new() };
        format!("{}{times} {}", self.program, self.what)
    }
}

/// Everything of a run; what no counter shows comes first.
pub(super) fn of(records: &[SupervisorRecord]) -> Vec<Unseen> {
    let mut found: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for process in records.iter().flat_map(|record| &record.processes) {
        for (rank, habit) in HABITS.iter().enumerate().filter(|(_, habit)| habit.always) {
            if process.habits.iter().any(|name| name == habit.name) {
                *found.entry((rank, program(process))).or_default() += 1;
            }
        }
    }
    let told = |((rank, program), processes): ((usize, String), usize)| Unseen {
        program,
        what: HABITS[rank].words,
        processes,
        uncounted: HABITS[rank].uncounted,
    };
    found.into_iter().map(told).collect()
}
