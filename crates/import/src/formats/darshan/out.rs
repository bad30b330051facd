//! What all modules share while they give their events: the clock, the job, its processes and the names of files.

use std::collections::HashSet;

use super::bytes::nanoseconds;
use super::job::{Job, Names};
use crate::Result;
use crate::clock::Clock;
use crate::event::{Arg, Event, Process, Shape};
use crate::sink::Sink;

/// The category of facts about the job and its files.
pub(super) const ABOUT: &str = "darshan";
/// The thread of totals: they are of all threads of a process. Segments have the process's first thread, so that nobody takes them for the same calls.
const ALL_THREADS: u32 = 0;

/// See the module.
pub(super) struct Out<'o> {
    pub(super) sink: &'o mut dyn Sink,
    pub(super) clock: Clock,
    pub(super) job: Job,
    pub(super) names: Names,
    /// The process of rank 0; the others follow.
    first_pid: u32,
    told: HashSet<u32>,
}

/// Calls of one kind on one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) time_ns: u64,
    /// When the first began and the last ended, in UTC.
    pub(super) life: (i64, i64),
}

impl<'o> Out<'o> {
    pub(super) fn new(sink: &'o mut dyn Sink, clock: Clock, job: Job, pid: Option<u32>) -> Out<'o> {
        // A log of one process may tell its pid.
        let first_pid = pid.filter(|_| job.processes == 1).unwrap_or(1);
        Out { sink, clock, job, names: Names::default(), first_pid, told: HashSet::new() }
    }

    /// A moment of the log, in UTC. 0 and less is none.
    pub(super) fn moment(&self, seconds: f64) -> Option<i64> {
        let ns = if seconds > 0.0 { nanoseconds(seconds)? } else { return None };
        Some(self.clock.to_utc(ns))
    }

    /// When the job ran, in UTC.
    pub(super) fn life(&self) -> (i64, i64) {
        let start = self.clock.to_utc(0);
        (start, self.clock.to_utc(self.job.end_ns.saturating_sub(self.job.start_ns)).max(start))
    }

    /// The process of a rank: rank 0 is 1 and so on, and behind the last one is that of the job as a whole, whose records have rank -1. In a job of one
    /// process that is the process. None where the job has no such rank.
    pub(super) fn pid(&self, rank: i64) -> Option<u32> {
        let processes = i64::from(self.job.processes);
        let place = if rank == -1 && processes > 1 { processes } else { rank.max(0) };
        (rank >= -1 && rank < processes).then(|| self.first_pid + u32::try_from(place).unwrap_or(0))
    }

    /// Tells who a process is, and that the times of its totals are nanoseconds, before its first event.
    pub(super) fn tell(&mut self, rank: i64, pid: u32) -> Result<()> {
        if !self.told.insert(pid) {
            return Ok(());
        }
        let program = self.job.program();
        let all = rank == -1 && self.job.processes > 1;
        let name = if all { format!("{program} (all ranks)") } else { format!("{program} (rank {})", rank.max(0)) };
        let command: Vec<&str> = self.job.command.iter().map(String::as_str).collect();
        self.sink.process(&Process {
            pid,
            name: &name,
            exe: command.first().copied().unwrap_or(""),
            command: &command,
            rank: if all { None } else { u32::try_from(rank.max(0)).ok() },
            start: u64::try_from(self.job.start_ns / 1_000_000_000).unwrap_or(0),
            ..Process::default()
        })?;
        let unit = [("name", Arg::Text(b"time_metric")), ("value", Arg::Text(b"NS"))];
        self.about("unit", pid, &unit)
    }

    /// A fact about a process, or about one of its files.
    pub(super) fn about(&mut self, name: &str, pid: u32, args: &[(&str, Arg<'_>)]) -> Result<()> {
        let start_ns = self.life().0;
        self.sink.event(&Event { shape: Shape::Metadata, name, cat: ABOUT, pid, tid: pid, start_ns, args })
    }

    /// Calls that are known by their sums.
    pub(super) fn total(&mut self, cat: &str, name: &str, pid: u32, file: &[u8], total: &Total) -> Result<()> {
        if total.calls == 0 {
            return Ok(());
        }
        let (time, bytes) = (Arg::Unsigned(total.time_ns), Arg::Unsigned(total.bytes));
        let all = [
            ("fhash", Arg::Path(file)),
            ("dft_cnt", Arg::Unsigned(total.calls)),
            ("dur_sum", time),
            ("size_sum", bytes),
            // Of one call the sums are all there is to know.
            ("dur_min", time),
            ("dur_max", time),
            ("size_min", bytes),
            ("size_max", bytes),
        ];
        let args = if total.calls == 1 { &all[..] } else { &all[..4] };
        let (start_ns, end_ns) = total.life;
        // It says itself how long its time is, which is none without a length.
        let shape = Shape::Total { end_ns: end_ns.max(start_ns.saturating_add(1)) };
        self.sink.event(&Event { shape, name, cat, pid, tid: ALL_THREADS, start_ns, args })
    }
}
