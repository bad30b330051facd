//! What programs do past the hooks, in plain words: the unseen_io that the recorder noted (`ProcessRecord::unseen_io`).

use std::collections::BTreeMap;

use serde::Serialize;
use weftline_format::manifest::{ProcessRecord, SupervisorRecord};

use super::program;

/// A way of doing I/O that the trace does not see whole, and what it means for the trace.
pub(super) struct Way {
    /// As the manifest has it.
    name: &'static str,
    pub(super) words: &'static str,
    /// Named always, because no missing byte would betray it. Others are named where bytes are missing.
    always: bool,
    /// No counter of the kernel shows what went this way.
    uncounted: bool,
}

const UNSEEN_IO: [Way; 8] = [
    Way {
        name: "io_uring",
        words: "used io_uring: its transfers are not seen, and no kernel counter has their bytes",
        always: true,
        uncounted: true,
    },
    Way {
        name: "native aio",
        words: "used Linux's native AIO: its transfers are not seen, and no kernel counter has their bytes",
        always: true,
        uncounted: true,
    },
    Way {
        name: "mmap",
        words: "mapped files into memory: its reads and writes there are not seen",
        always: true,
        uncounted: false,
    },
    Way {
        name: "go",
        words: "is a Go program: its runtime makes system calls itself, and only calls of C libraries are seen",
        always: true,
        uncounted: false,
    },
    Way {
        name: "raw syscalls",
        words: "made raw system calls by syscall(2): those are not seen",
        always: false,
        uncounted: false,
    },
    Way {
        name: "shared memory",
        words: "had a child that shares its memory (clone with CLONE_VM)",
        always: false,
        uncounted: false,
    },
    Way { name: "sockets", words: "read and wrote sockets", always: false, uncounted: false },
    Way {
        name: "splice",
        words: "moved data within the kernel (splice, tee, vmsplice), which the kernel's counters leave out",
        always: false,
        uncounted: false,
    },
];

fn unseen_io(process: &ProcessRecord) -> impl Iterator<Item = &'static Way> {
    UNSEEN_IO.iter().filter(|way| process.unseen_io.iter().any(|name| name == way.name))
}

/// What is always reported of a process.
pub(super) fn always(process: &ProcessRecord) -> impl Iterator<Item = &'static Way> {
    unseen_io(process).filter(|way| way.always)
}

/// What may be why bytes are missing. Habits that this version does not know are named as they are.
pub(super) fn of_gaps(process: &ProcessRecord) -> Vec<String> {
    let known = unseen_io(process).filter(|way| !way.always).map(|way| way.words.to_owned());
    let unknown = process.unseen_io.iter().filter(|name| UNSEEN_IO.iter().all(|way| way.name != **name)).cloned();
    known.chain(unknown).collect()
}

/// One program and one thing that it did past the hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The program.
    pub program: String,
    /// What it did, as the rest of a sentence about it.
    pub what: &'static str,
    /// How many processes of that program did it.
    pub processes: usize,
    /// No counter of the kernel shows the bytes.
    pub uncounted: bool,
}

impl Unseen {
    /// `fio (×4) used io_uring: …`
    pub fn sentence(&self) -> String {
        let times = if self.processes > 1 { format!(" (×{})", self.processes) } else { String::new() };
        format!("{}{times} {}", self.program, self.what)
    }
}

/// Everything of a run; what no counter shows comes first.
pub(super) fn of(records: &[SupervisorRecord]) -> Vec<Unseen> {
    let mut found: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for process in records.iter().flat_map(|record| &record.processes) {
        for (rank, way) in UNSEEN_IO.iter().enumerate().filter(|(_, way)| way.always) {
            if process.unseen_io.iter().any(|name| name == way.name) {
                *found.entry((rank, program(process))).or_default() += 1;
            }
        }
    }
    let unseen = |((rank, program), processes): ((usize, String), usize)| Unseen {
        program,
        what: UNSEEN_IO[rank].words,
        processes,
        uncounted: UNSEEN_IO[rank].uncounted,
    };
    found.into_iter().map(unseen).collect()
}
