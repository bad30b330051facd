//! The followed processes: opened when they are found, sampled at every tick and at their ends.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use weftline_format::identity;
use weftline_format::secrets::Arguments;

use super::descriptors::DescriptorBudget;
use crate::clock::{Clock, ClockReading};
use crate::exits::Exits;
use crate::own::Own;
use crate::process::{Identity, ProcessSampler};
use crate::roots::Roots;
use crate::sample::{Sink as _, Subject, Value};
use crate::writer::SampleWriter;

/// A process that started within this time of the collector's own start began after it: starts are in clock ticks.
const TICK_NS: i64 = 10_000_000;

#[derive(Debug)]
struct Target {
    sampler: ProcessSampler,
    /// How often it had exec'd when it was introduced.
    introduced: u32,
    /// Tells of its end; kept open for that alone.
    _end: Option<OwnedFd>,
    last: ClockReading,
    /// By the kernel's record of its end.
    reported_cpu_ns: Option<u64>,
}

/// Whether the kernel reports ends. It is asked when the first process is followed.
#[derive(Debug)]
enum ExitRecords {
    NotAsked,
    On(Exits),
    /// Not requested, or the kernel does not provide it.
    Off,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Targets {
    by_pid: BTreeMap<u32, Target>,
    roots: Roots,
    own: Own,
    began: ClockReading,
    /// How much of command lines is kept.
    arguments: Arguments,
    pub(super) descriptors: DescriptorBudget,
    exits: ExitRecords,
    /// Processes that were followed so far.
    pub(super) followed: u64,
    /// Processes that vanished before their last sample and have the kernel's CPU time.
    pub(super) told_ends: u64,
    /// How many others were gone before the last look, and their time since the one before it.
    pub(super) unseen_ends: u64,
    pub(super) unseen_ns: u64,
}

impl Targets {
    pub(super) fn new(
        roots: &Roots,
        own: &Own,
        began: ClockReading,
        descriptors: DescriptorBudget,
        exits: bool,
        arguments: Arguments,
    ) -> Targets {
        Targets {
            by_pid: BTreeMap::new(),
            roots: roots.clone(),
            own: own.clone(),
            began,
            arguments,
            descriptors,
            exits: if exits { ExitRecords::NotAsked } else { ExitRecords::Off },
            told_ends: 0,
            followed: 0,
            unseen_ends: 0,
            unseen_ns: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_pid.is_empty()
    }

    #[cfg(feature = "kernel")]
    pub(super) fn pids(&self) -> Vec<u32> {
        self.by_pid.keys().copied().collect()
    }

    pub(super) fn has(&self, pid: u32) -> bool {
        self.by_pid.contains_key(&pid)
    }

    /// Opens a process and takes its first sample; its end is told by the queue, with the number beside it. An error says that it has ended meanwhile, or may not be looked at, or that there is no
    /// room for it.
    pub(super) fn add(
        &mut self,
        pid: u32,
        (ends, data): (&OwnedFd, u64),
        clock: &impl Clock,
        writer: &mut SampleWriter,
    ) -> std::io::Result<()> {
        if self.descriptors.is_full() {
            return Err(Errno::MFILE.into());
        }
        let mut sampler = ProcessSampler::open_keeping(&self.roots, pid, self.arguments)?;
        let end = if self.roots.own_pids() { end_of(pid)? } else { None };
        if !self.descriptors.has_room(ends) {
            return Err(Errno::MFILE.into());
        }
        if let Some(end) = &end {
            // Without it the end is noticed at the next tick.
            let _ = epoll::add(ends, end, EventData::new_u64(data), EventFlags::IN);
        }
        if matches!(self.exits, ExitRecords::NotAsked) {
            self.exits = Exits::listen(&self.roots).map_or(ExitRecords::Off, ExitRecords::On);
        }
        // A record that is there already is about an earlier process of that number.
        self.take_exits();
        let now = clock.now();
        let start_ns = sampler.identity().start_ns;
        let mut last = now;
        if start_ns >= self.began.real_ns - TICK_NS {
            sampler.count_from_birth();
            let age = (now.real_ns - start_ns).max(0);
            last = ClockReading { steady_ns: now.steady_ns - age, real_ns: now.real_ns - age };
        }
        let introduced = sampler.execs();
        writer.introduce(self.introduction(sampler.identity(), now.real_ns));
        sampler.describe(now.real_ns, writer);
        sampler.sample(now.since(&last), writer)?;
        self.by_pid.insert(pid, Target { sampler, introduced, _end: end, last: now, reported_cpu_ns: None });
        self.followed += 1;
        self.descriptors.admit(pid);
        Ok(())
    }

    /// Samples all that were not sampled since `tick`; those that are gone.
    pub(super) fn sample(&mut self, tick: &ClockReading, clock: &impl Clock, writer: &mut SampleWriter) -> Vec<u32> {
        self.take_exits();
        let mut gone = Vec::new();
        let mut renamed = Vec::new();
        for (pid, target) in &mut self.by_pid {
            if target.last.steady_ns >= tick.steady_ns {
                continue;
            }
            let now = clock.now();
            if target.sampler.sample(now.since(&target.last), writer).is_err() {
                gone.push(*pid);
                continue;
            }
            target.last = now;
            if target.sampler.execs() != target.introduced {
                target.introduced = target.sampler.execs();
                renamed.push(*pid);
            }
        }
        for pid in renamed {
            if let Some(target) = self.by_pid.get(&pid) {
                writer.introduce(self.introduction(target.sampler.identity(), target.last.real_ns));
            }
        }
        gone
    }

    /// The last sample of a process that has ended: until its parent waits for it, its numbers can still be read.
    pub(super) fn end(&mut self, pid: u32, now: ClockReading, writer: &mut SampleWriter) {
        self.take_exits();
        let Some(mut target) = self.by_pid.remove(&pid) else { return };
        self.descriptors.released();
        let at = now.since(&target.last);
        let seen = target.sampler.sample_last(at, writer).is_ok();
        let reported = target.reported_cpu_ns.filter(|_| !seen);
        if let Some(cpu_ns) = reported {
            target.sampler.sample_gone(cpu_ns, at, writer);
        }
        let unseen_ns = if seen || reported.is_some() { 0 } else { at.length_ns() };
        let totals = target.sampler.last_totals();
        let values = [
            ("unseen_ns", Value::Unsigned(unseen_ns)),
            ("total_cpu_ns", Value::Unsigned(totals.cpu_ns)),
            ("total_read_chars", Value::Unsigned(totals.read_chars)),
            ("total_write_chars", Value::Unsigned(totals.write_chars)),
            ("bytes_unseen_ns", Value::Unsigned(at.length_ns())),
        ];
        // The kernel reports only the CPU time: what the process read and wrote meanwhile was not seen.
        let shown = if reported.is_some() { 5 } else { 4 };
        writer.counter(Subject::Process(pid), "process", "end", at, &values[..shown]);
        writer.forget(pid);
        if reported.is_some() {
            self.told_ends += 1;
        } else if !seen {
            self.unseen_ends += 1;
            self.unseen_ns += unseen_ns;
        }
        if let Some(parent) = self.by_pid.get_mut(&target.sampler.identity().ppid) {
            parent.sampler.discount(&totals);
        }
    }

    /// Takes the kernel's records of processes that have ended.
    fn take_exits(&mut self) {
        if let ExitRecords::On(exits) = &mut self.exits {
            let by_pid = &mut self.by_pid;
            exits.take(&mut |exit| {
                if let Some(target) = by_pid.get_mut(&exit.pid) {
                    target.reported_cpu_ns = Some(exit.cpu_ns);
                }
            });
        }
    }

    fn introduction(&self, process: &Identity, at_ns: i64) -> identity::Identity {
        let name = process.command.first().map_or(process.comm.clone(), |_| process.command.join(" "));
        identity::Identity {
            pid: process.pid,
            at_ns,
            name: name.chars().take(120).collect(),
            host: self.own.host.clone(),
            boot: self.own.boot.clone(),
            start: process.start_ticks,
            ppid: process.ppid,
            exe: process.exe.clone().unwrap_or_default(),
            cmd: process.command.clone(),
            ..identity::Identity::default()
        }
    }
}

/// A descriptor that signals a process's end; nothing if the kernel has none. An error means that no descriptor is free.
fn end_of(pid: u32) -> std::io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(end) => Ok(Some(end)),
        Err(error @ (Errno::MFILE | Errno::NFILE)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}
