//! The coverage ledger: what the trace accounts for against what the kernel counted.
//!
//! The kernel keeps `rchar` and `wchar` per process (`/proc/PID/io`): bytes that passed through read-like and write-like calls,
//! including those of children that the process waited for. A process's own bytes are the difference between the end and
//! the start of its image, less what its reaped children brought in. The whole tree's total is what arrived at the
//! supervisor when it waited for the program; it contains static, untraced and short-lived programs as well.
//!
//! Streams are accounted where the program asked (`fread`, `fprintf`), not where their buffers were filled, so they may differ
//! from the kernel's count in either direction; the ledger names them when they do.
//!
//! Where the kernel was asked as well (`--kernel`), [`kernel`] holds each program's bytes against those of the hooks.

mod kernel;

use serde::Serialize;
use weftline_format::manifest::{ProcessRecord, SupervisorRecord};

pub(crate) use kernel::KernelLine;

/// Bytes in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Direction {
    /// What the kernel counted.
    pub(crate) kernel: u64,
    /// What the trace holds.
    pub(crate) traced: u64,
    /// What went through before the hooks were there: the loader reading libraries.
    pub(crate) before: u64,
}

impl Direction {
    /// Bytes that the kernel counted and the trace does not explain.
    pub(crate) fn gap(self) -> u64 {
        self.kernel.saturating_sub(self.traced + self.before)
    }

    /// Share of the kernel's count that was seen, in percent.
    pub(crate) fn percent(self) -> f64 {
        let countable = self.kernel.saturating_sub(self.before);
        if countable == 0 { 100.0 } else { (self.traced.min(countable) as f64 / countable as f64) * 100.0 }
    }
}

/// One process's line.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) pid: u32,
    pub(crate) program: String,
    /// Nothing when the kernel's counters could not be read in time.
    pub(crate) read: Option<Direction>,
    pub(crate) write: Option<Direction>,
    pub(crate) reasons: Vec<String>,
}

/// The whole ledger.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Ledger {
    pub(crate) lines: Vec<Line>,
    /// The tree as the supervisor saw it; nothing while the run is open.
    pub(crate) tree_read: Option<Direction>,
    pub(crate) tree_write: Option<Direction>,
    /// What the kernel told of each program (`--kernel`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) kernel: Vec<KernelLine>,
}

/// Below this, a gap is the noise of programs that look into /proc or read a few lines at their start.
const NOTABLE: u64 = 64 << 10;

fn traced(process: &ProcessRecord) -> (u64, u64) {
    let bytes = process.traced;
    (bytes.posix_read + bytes.stdio_read + bytes.other_read, bytes.posix_write + bytes.stdio_write + bytes.other_write)
}

/// Makes the ledger of all supervisors' records.
pub(crate) fn ledger(records: &[SupervisorRecord]) -> Ledger {
    let mut out = Ledger { kernel: kernel::lines(records), ..Ledger::default() };
    for record in records {
        let mut read = Direction::default();
        let mut write = Direction::default();
        let mut images: Vec<&ProcessRecord> = record.processes.iter().collect();
        images.sort_by_key(|process| (process.pid, process.started_ns));
        let mut previous: Option<&ProcessRecord> = None;
        for process in images {
            let bytes = traced(process);
            read.traced += bytes.0;
            write.traced += bytes.1;
            // Counters go on across exec: what lies between two images of one process is the loader's. A new process starts at zero.
            let since = previous
                .filter(|before| before.pid == process.pid && before.pidns == process.pidns)
                .and_then(|before| before.io);
            if let Some(io) = process.io {
                read.before += io.start.rchar.saturating_sub(since.map_or(0, |io| io.end.rchar));
                write.before += io.start.wchar.saturating_sub(since.map_or(0, |io| io.end.wchar));
            }
            previous = Some(process);
            out.lines.push(line(process, &record.processes));
        }
        if let Some(tree) = record.tree_io {
            for (slot, kernel, seen) in
                [(&mut out.tree_read, tree.rchar, read), (&mut out.tree_write, tree.wchar, write)]
            {
                let sum = slot.get_or_insert_default();
                *sum = Direction {
                    kernel: sum.kernel + kernel,
                    traced: sum.traced + seen.traced,
                    before: sum.before + seen.before,
                };
            }
        }
    }
    out
}

fn line(process: &ProcessRecord, all: &[ProcessRecord]) -> Line {
    let (read, write) = traced(process);
    let reaped = process.reaped_io.unwrap_or_default();
    let own = |end: u64, start: u64, reaped: u64| end.saturating_sub(start).saturating_sub(reaped);
    let read = process.io.map(|io| Direction {
        kernel: own(io.end.rchar, io.start.rchar, reaped.rchar),
        traced: read,
        before: 0,
    });
    let write = process.io.map(|io| Direction {
        kernel: own(io.end.wchar, io.start.wchar, reaped.wchar),
        traced: write,
        before: 0,
    });
    Line { pid: process.pid, program: program(process), reasons: reasons(process, all, read, write), read, write }
}

/// The program as a person would name it.
pub(crate) fn program(process: &ProcessRecord) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match process.command.split_first() {
        Some((first, rest)) => {
            let script = rest.first().filter(|word| !word.starts_with('-') && name(first).starts_with("python"));
            script.map_or_else(|| name(first), |script| format!("{} {}", name(first), name(script)))
        }
        None => name(&process.exe),
    }
}

fn reasons(
    process: &ProcessRecord,
    all: &[ProcessRecord],
    read: Option<Direction>,
    write: Option<Direction>,
) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(reason) = &process.untraced {
        out.push(format!("not traced: {reason}"));
        return out;
    }
    for (name, count) in &process.drops {
        out.push(format!("{count} events lost: {name}"));
    }
    if read.is_none() {
        out.push("the kernel's counters could not be read (killed, restricted, or no /proc)".into());
        return out;
    }
    let notable = [read, write].into_iter().flatten().any(|direction| {
        direction.gap() > NOTABLE.max(direction.kernel / 100)
            || direction.traced > direction.kernel + NOTABLE.max(direction.kernel / 100)
    });
    if !notable {
        return out;
    }
    for habit in &process.habits {
        out.push(habit.clone());
    }
    if process.traced.stdio_read + process.traced.stdio_write > 0 {
        out.push("streams are counted where the program asked, not where their buffers were filled".into());
    }
    for child in all.iter().filter(|child| child.ppid == process.pid && child.untraced.is_some()) {
        out.push(format!(
            "contains an untraced child: {} ({})",
            program(child),
            child.untraced.as_deref().unwrap_or_default()
        ));
    }
    if process.sampled_io {
        out.push("killed: the kernel's counters are from the last look before that".into());
    }
    if out.is_empty() {
        out.push("I/O that does not go through the C library (raw system calls, the loader)".into());
    }
    out
}

#[cfg(test)]
mod tests {
    use weftline_format::manifest::{IoCount, IoSpan, TracedBytes};

    use super::*;

    fn process(pid: u32, start: u64, end: u64, read: u64) -> ProcessRecord {
        ProcessRecord {
            pid,
            started_ns: start as i64,
            io: Some(IoSpan { start: IoCount { rchar: start, wchar: 0 }, end: IoCount { rchar: end, wchar: 0 } }),
            traced: TracedBytes { posix_read: read, ..TracedBytes::default() },
            ..ProcessRecord::default()
        }
    }

    #[test]
    fn bytes_of_children_and_of_the_loader_are_not_gaps() {
        let mut parent = process(1, 1_000, 3_000_000, 500_000);
        parent.reaped_io = Some(IoCount { rchar: 2_499_000, wchar: 0 });
        // One process, two images: the second's loader read 1,500 bytes.
        let first = process(2, 0, 10_000, 10_000);
        let second = process(2, 11_500, 2_499_000, 2_487_500);
        let record = SupervisorRecord {
            processes: vec![parent, first, second],
            tree_io: Some(IoCount { rchar: 3_000_000, wchar: 0 }),
            ..SupervisorRecord::default()
        };
        let ledger = ledger(&[record]);
        let gaps: Vec<u64> = ledger.lines.iter().map(|line| line.read.expect("counted").gap()).collect();
        assert_eq!(gaps, [0, 0, 0]);
        let tree = ledger.tree_read.expect("counted");
        assert_eq!((tree.before, tree.gap(), tree.percent()), (2_500, 0, 100.0));
        assert!(ledger.lines.iter().all(|line| line.reasons.is_empty()));
    }

    #[test]
    fn a_gap_has_a_reason() {
        let mut mapped = process(3, 0, 1 << 20, 0);
        mapped.habits = vec!["io_uring".into()];
        let plain = process(4, 0, 1 << 20, 0);
        let ledger = ledger(&[SupervisorRecord { processes: vec![mapped, plain], ..SupervisorRecord::default() }]);
        assert_eq!(ledger.lines[0].reasons, ["io_uring"]);
        assert_eq!(ledger.lines[1].reasons.len(), 1);
    }
}
