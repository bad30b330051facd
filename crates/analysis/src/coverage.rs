//! Coverage: the totals of all supervisors' records ([`RunTotals`]), and the ledger that compares the bytes in the trace with the kernel's count.
//!
//! The kernel keeps `rchar` and `wchar` per process (`/proc/PID/io`): bytes that passed through read-like and write-like calls,
//! including those of children that the process waited for. A process's own bytes are the difference between the end and
//! the start of its image, minus the bytes of its reaped children. The whole run's total ([`total`]) is what the
//! supervisor got when it waited for the program; it contains static, untraced and short-lived programs as well.
//!
//! Streams count the bytes that the program requested (`fread`, `fprintf`), not those that filled their buffers, so they may differ
//! from the kernel's count in either direction; the ledger then names them. It always names I/O that the kernel does not count at all
//! ([`unseen`]).
//!
//! With kernel events (`--kernel`), [`kernel`] compares each program's bytes with those of the hooks.

mod empty;
mod kernel;
mod run_totals;
mod total;
mod unseen;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use weftline_format::manifest::{IoCount, ProcessRecord, State, SupervisorRecord};
use weftline_index::Run;

use crate::units;
pub use empty::without_events;
pub use kernel::KernelLine;
pub use run_totals::RunTotals;
pub use unseen::Unseen;

/// What the supervisors of each run directory wrote; other directories of traces have nothing of the kind.
pub fn records(run: &Run) -> Vec<Vec<SupervisorRecord>> {
    let bases: BTreeSet<&PathBuf> = run.sets().iter().map(|set| &set.base).collect();
    bases.into_iter().map(|base| SupervisorRecord::read_all(base).0).filter(|records| !records.is_empty()).collect()
}

/// Bytes in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// What the kernel counted.
    pub kernel: u64,
    /// What the trace holds.
    pub traced: u64,
    /// What went through before the hooks were there: the loader reading libraries.
    pub before: u64,
}

impl Direction {
    /// Bytes that the kernel counted and the trace does not explain.
    pub fn gap(self) -> u64 {
        self.kernel.saturating_sub(self.traced.saturating_add(self.before))
    }

    /// What the kernel counted while the hooks were there; nothing where its numbers contradict each other, or what is in the trace.
    pub fn countable(self) -> Option<u64> {
        match self.kernel.saturating_sub(self.before) {
            0 if self.traced > 0 || self.before - self.kernel > SLACK => None,
            countable => Some(countable),
        }
    }

    /// Share of the kernel's count that was seen, in percent; nothing where there is no count to have a share of.
    pub fn percent(self) -> Option<f64> {
        let countable = self.countable().filter(|bytes| *bytes > 0)?;
        Some((self.traced.min(countable) as f64 / countable as f64) * 100.0)
    }
}

/// One process's line.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The process.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// Nothing when the kernel's counters could not be read in time.
    pub read: Option<Direction>,
    /// The same for bytes written.
    pub write: Option<Direction>,
    /// Why bytes are missing.
    pub reasons: Vec<String>,
}

/// The whole ledger.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ledger {
    /// Each process.
    pub lines: Vec<Line>,
    /// Bytes read by all processes together; nothing while the run is open.
    pub tree_read: Option<Direction>,
    /// Bytes written.
    pub tree_write: Option<Direction>,
    /// What programs did past the hooks, whether or not bytes are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Unseen>,
    /// Kernel events of each program (`--kernel`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<KernelLine>,
    /// Processes of the run may still be running.
    #[serde(skip)]
    pub open: bool,
}

impl Ledger {
    /// Programs whose transfers no counter shows: the share of the bytes that was seen is not known.
    pub fn uncounted(&self) -> impl Iterator<Item = &Unseen> {
        self.unseen.iter().filter(|unseen| unseen.uncounted)
    }

    /// The shares in percent of bytes read and written; nothing where they are not known.
    pub fn percent(&self) -> (Option<f64>, Option<f64>) {
        let known = self.uncounted().next().is_none();
        let share = |direction: Option<Direction>| direction.filter(|_| known).and_then(Direction::percent);
        (share(self.tree_read), share(self.tree_write))
    }

    /// `99.8 % of 1.2 GiB read, 100 % of 34.0 MiB written (of the bytes in /proc/PID/io)`
    pub fn sentence(&self) -> String {
        let part = |direction: Option<Direction>, verb: &str| {
            direction.map(|direction| match (direction.countable(), direction.percent()) {
                (Some(countable), Some(percent)) => {
                    format!("{} of {} {verb}", units::percent_floor(percent / 100.0), units::bytes(countable))
                }
                (Some(_), None) => format!("nothing {verb}"),
                (None, _) => format!("bytes {verb} unknown"),
            })
        };
        let (Some(read), Some(write)) = (part(self.tree_read, "read"), part(self.tree_write, "written")) else {
            let why = if self.open { "until the run is complete" } else { "because `weft run` was killed" };
            return format!("unknown {why}");
        };
        match self.uncounted().next() {
            Some(_) => format!("unknown: some bytes are in no kernel counter; of the rest {read}, {write}"),
            None => format!("{read}, {write} (of the bytes in /proc/PID/io)"),
        }
    }
}

/// By so much counters that were read one after the other may contradict each other.
const SLACK: u64 = 1024;
/// Below this, a gap is the noise of programs that look into /proc or read a few lines at their start.
const NOTABLE: u64 = 64 << 10;

fn traced(process: &ProcessRecord) -> (u64, u64) {
    (process.traced.read(), process.traced.written())
}

/// Makes the ledger of all supervisors' records.
pub fn ledger(records: &[SupervisorRecord]) -> Ledger {
    let mut out = Ledger {
        kernel: kernel::lines(records),
        unseen: unseen::of(records),
        open: records.iter().any(|record| record.state == State::Open),
        ..Ledger::default()
    };
    for record in records {
        let mut images: Vec<&ProcessRecord> = record.processes.iter().collect();
        images.sort_by_key(|process| (process.pid, process.started_ns));
        let unlisted = total::unlisted(&images);
        out.lines.extend(images.iter().map(|process| {
            let inside = unlisted.get(&(process.pid, process.nonce.as_str())).copied().unwrap_or_default();
            line(process, inside, &record.processes)
        }));
        if let Some((read, write)) = total::of(record, &images) {
            for (slot, more) in [(&mut out.tree_read, read), (&mut out.tree_write, write)] {
                let sum = slot.get_or_insert_default();
                *sum = Direction {
                    kernel: sum.kernel.saturating_add(more.kernel),
                    traced: sum.traced.saturating_add(more.traced),
                    before: sum.before.saturating_add(more.before),
                };
            }
        }
    }
    out
}

/// `unlisted`: what children brought in that the C library itself waited for.
fn line(process: &ProcessRecord, unlisted: IoCount, all: &[ProcessRecord]) -> Line {
    let (read, write) = traced(process);
    let mut reaped = process.reaped_io.unwrap_or_default();
    reaped.rchar = reaped.rchar.saturating_add(unlisted.rchar);
    reaped.wchar = reaped.wchar.saturating_add(unlisted.wchar);
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

/// The program of a process, as [`crate::program`] labels it.
pub fn program(process: &ProcessRecord) -> String {
    crate::program::label(&process.command, &process.exe, "")
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
    out.extend(unseen::always(process).map(|way| way.words.to_owned()));
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
    out.extend(unseen::of_gaps(process));
    if process.traced.stdio_read + process.traced.stdio_write > 0 {
        out.push("stdio buffers: the kernel moved more or less than the program requested".into());
    }
    for child in all.iter().filter(|child| child.ppid == process.pid && child.untraced.is_some()) {
        out.push(format!(
            "contains an untraced child: {} ({})",
            program(child),
            child.untraced.as_deref().unwrap_or_default()
        ));
    }
    if process.sampled_io {
        out.push("killed: the kernel's counters are from the last sample before that".into());
    }
    if out.is_empty() {
        out.push("I/O that does not go through the C library (raw system calls, the loader)".into());
    }
    out
}

#[cfg(test)]
mod tests;
