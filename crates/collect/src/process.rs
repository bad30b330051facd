//! One process: its identity, and its usage in an interval.
//!
//! | what | from | how often |
//! |---|---|---|
//! | CPU time | the process's CPU clock (see `process/cpu.rs`) | every sample |
//! | user and system time, faults, threads, sizes, whether it runs, is blocked or stopped | `stat` | every sample of a process that ran, else once a second |
//! | bytes and calls | `io`; only of processes that we may trace | every sample of a process that ran |
//! | context switches, open files, proportional set size | `task/*/status`, `fd`, `smaps_rollup` (see `process/detail.rs`) | at most once a second |
//!
//! If the CPU clock of a process has not advanced, the process has not run: it made no calls, no faults and no threads, and did not exec. The clock is
//! one call of half a microsecond, the files are three of five to ten each, and most processes of a machine sleep. So the sample repeats the
//! previous numbers. Others can only take memory from a sleeping process, or wake it for a processor that is not free yet;
//! for these, `stat` is still read once a second. The clock of a running thread lags by up to one scheduler tick (4 ms
//! at 250 Hz), so work of a process in that time may appear in the next sample, with its CPU time. The last sample of a
//! process reads everything.
//!
//! `io` also counts the bytes of reaped children, since the kernel adds them to their parent: [`ProcessSampler::discount`] subtracts them.

mod cpu;
mod detail;
mod identity;
mod stat;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use weftline_format::secrets::Arguments;

use crate::read::{Kept, growth, keyed, lines, percent, within};
use crate::roots::Roots;
use crate::sample::{Interval, Sink, Subject, Value};

pub(crate) use cpu::CpuClock;
use cpu::CpuTime;
use detail::Details;
pub use identity::Identity;
use stat::{Stat, State};

/// What a process has used since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// CPU time of all its threads, past ones too.
    pub cpu_ns: u64,
    /// CPU time in user mode, at the resolution of a clock tick.
    pub user_ns: u64,
    /// CPU time in the kernel, at the resolution of a clock tick.
    pub system_ns: u64,
    /// Page faults without input.
    pub minor_faults: u64,
    /// Page faults with input.
    pub major_faults: u64,
    /// Bytes that reading calls gave. This and the rest are zero where `io` may not be read.
    pub read_chars: u64,
    /// Bytes that writing calls took.
    pub write_chars: u64,
    /// Reading calls.
    pub read_calls: u64,
    /// Writing calls.
    pub write_calls: u64,
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes sent to storage.
    pub write_bytes: u64,
    /// Bytes of them that were given up before they were written.
    pub cancelled_write_bytes: u64,
}

/// Samples one process.
#[derive(Debug)]
pub struct ProcessSampler {
    identity: Identity,
    roots: Roots,
    arguments: Arguments,
    /// `/proc/PID`; files opened below it belong to this process or fail, even if its id is reused.
    directory: OwnedFd,
    /// None when descriptors ran out: then it is opened each time.
    stat: Option<Kept>,
    io: Option<Kept>,
    cpu: CpuTime,
    details: Details,
    buffer: Vec<u8>,
    image: stat::Image,
    totals: Totals,
    before: Option<Totals>,
    /// What reaped children did, and is still to be taken out.
    children: Totals,
    last: Option<Reading>,
    execs: u32,
}

/// What the files said last.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The CPU clock, read before the files: as long as it stays there, they do too.
    clock_ns: Option<u64>,
    stat: Stat,
    has_io: bool,
    /// When `stat` was read.
    at_ns: i64,
}

/// How long the files of a process that does nothing are taken to be as they were.
const STANDSTILL_NS: i64 = 1_000_000_000;

impl ProcessSampler {
    /// Opens the process's files.
    pub fn open(roots: &Roots, pid: u32) -> io::Result<ProcessSampler> {
        ProcessSampler::open_keeping(roots, pid, Arguments::Masked)
    }

    /// Opens the process's files; so much of its command line is kept.
    pub fn open_keeping(roots: &Roots, pid: u32, arguments: Arguments) -> io::Result<ProcessSampler> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(roots.proc.join(pid.to_string()), flags, Mode::empty())?;
        let mut buffer = vec![0; 4096];
        let stat = keep(&directory, "stat")?;
        let first = read_stat(stat.as_ref(), &directory, &mut buffer)?;
        let image = first.image;
        let identity = identity::read(roots, pid, &directory, &first, arguments);
        Ok(ProcessSampler {
            cpu: CpuTime::new(roots, pid),
            identity,
            roots: roots.clone(),
            arguments,
            // Absent where the kernel was built without it, refused for other users' processes.
            io: keep(&directory, "io").ok().flatten(),
            stat,
            directory,
            details: Details::default(),
            buffer,
            image,
            totals: Totals::default(),
            before: None,
            children: Totals::default(),
            last: None,
            execs: 0,
        })
    }

    /// Who it is, or has become: an exec is noticed at the next sample.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How often [`ProcessSampler::identity`] has changed.
    pub fn execs(&self) -> u32 {
        self.execs
    }

    /// Lets the first sample tell everything since the process started; for processes that began after the sample before.
    pub fn count_from_birth(&mut self) {
        self.before.get_or_insert_default();
    }

    /// Takes what a child did out of the next differences of bytes and calls; to be called with the child's last totals once it is reaped.
    pub fn discount(&mut self, child: &Totals) {
        for (sum, part) in self.children.inputs_mut().into_iter().zip(child.inputs()) {
            *sum = sum.saturating_add(part);
        }
    }

    /// What it had used at the last sample.
    pub fn last_totals(&self) -> Totals {
        self.totals
    }

    /// Emits who the process is.
    pub fn describe(&self, at_ns: i64, sink: &mut dyn Sink) {
        self.identity.emit(at_ns, sink);
    }

    /// Emits the values of an interval; differences only from the second call on. An error says that the process is gone.
    /// After an exec, who it has become is emitted first.
    pub fn sample(&mut self, at: Interval, sink: &mut dyn Sink) -> io::Result<()> {
        // The clock goes by number. It was this process's if its files, read afterwards, still answer; and if it stands where it stood,
        // since no other process has used the same nanoseconds.
        let clock_ns = self.cpu.clock_ns();
        let still = self.last.filter(|last| clock_ns.is_some() && last.clock_ns == clock_ns);
        match still {
            Some(last) if within(last.at_ns, at.end_ns, STANDSTILL_NS) => self.tell(&last, true, at, sink),
            _ => self.read(clock_ns, still, at, sink)?,
        }
        Ok(())
    }

    /// [`ProcessSampler::sample`] of a process that has ended, or will not be asked again: all files are read, whatever the clock says.
    pub fn sample_last(&mut self, at: Interval, sink: &mut dyn Sink) -> io::Result<()> {
        let clock_ns = self.cpu.clock_ns();
        self.read(clock_ns, None, at, sink)
    }

    /// Reads the files. Where the clock stands `still`, `stat` shows whether it is right.
    fn read(
        &mut self,
        clock_ns: Option<u64>,
        still: Option<Reading>,
        at: Interval,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let stat = read_stat(self.stat.as_ref(), &self.directory, &mut self.buffer)?;
        if let Some(before) = still
            && before.stat == (Stat { rss_bytes: before.stat.rss_bytes, ..stat })
        {
            let reading = Reading { stat, at_ns: at.end_ns, ..before };
            self.last = Some(reading);
            self.tell(&reading, true, at, sink);
            return Ok(());
        }
        if stat.image != self.image && !stat.has_ended() {
            self.image = stat.image;
            self.execs = self.execs.wrapping_add(1);
            self.identity = identity::read(&self.roots, self.identity.pid, &self.directory, &stat, self.arguments);
            self.describe(at.end_ns, sink);
        }
        self.totals.user_ns = stat.user_ns;
        self.totals.system_ns = stat.system_ns;
        self.totals.minor_faults = stat.minor_faults;
        self.totals.major_faults = stat.major_faults;
        self.totals.cpu_ns = match clock_ns {
            Some(clock) => clock,
            None => self.cpu.by_threads(self.directory.as_fd(), &stat, &mut self.buffer),
        };
        let has_io = self.read_io();
        let reading = Reading { clock_ns, stat, has_io, at_ns: at.end_ns };
        self.last = Some(reading);
        self.tell(&reading, false, at, sink);
        Ok(())
    }

    fn tell(&mut self, reading: &Reading, still: bool, at: Interval, sink: &mut dyn Sink) {
        self.emit(at, &reading.stat, reading.has_io, sink);
        let of = detail::Of { pid: self.identity.pid, directory: self.directory.as_fd(), stat: &reading.stat, still };
        self.details.sample(&of, at, &mut self.buffer, sink);
        self.before = Some(self.totals);
    }

    /// Emits the CPU time of the last interval of a process that is gone, from the kernel's record of its end. The rest is unknown.
    pub fn sample_gone(&mut self, total_cpu_ns: u64, at: Interval, sink: &mut dyn Sink) {
        let cpu = growth(total_cpu_ns, self.totals.cpu_ns);
        self.totals.cpu_ns += cpu;
        let values = [("cpu_ns", Value::Unsigned(cpu)), ("cpu_pct", Value::Float(percent(cpu, at.length_ns())))];
        sink.counter(Subject::Process(self.identity.pid), "process", "process", at, &values);
    }

    /// Takes the numbers of `io`; whether there are any. A zombie has none any more and keeps those of before.
    fn read_io(&mut self) -> bool {
        let Some(Ok(text)) = self.io.as_ref().map(|file| file.read_record(&mut self.buffer)) else { return false };
        let mut found = false;
        for (key, value) in lines(text).filter_map(keyed) {
            let place = match key {
                b"rchar" => &mut self.totals.read_chars,
                b"wchar" => &mut self.totals.write_chars,
                b"syscr" => &mut self.totals.read_calls,
                b"syscw" => &mut self.totals.write_calls,
                b"read_bytes" => &mut self.totals.read_bytes,
                b"write_bytes" => &mut self.totals.write_bytes,
                b"cancelled_write_bytes" => &mut self.totals.cancelled_write_bytes,
                _ => continue,
            };
            *place = value;
            found = true;
        }
        found
    }

    fn emit(&mut self, at: Interval, stat: &Stat, has_io: bool, sink: &mut dyn Sink) {
        let mut values = [("", Value::Unsigned(0)); 20];
        let mut known = 0;
        let mut put = |name: &'static str, value: Value| {
            values[known] = (name, value);
            known += 1;
        };
        let now = &self.totals;
        if let Some(before) = &self.before {
            let cpu = growth(now.cpu_ns, before.cpu_ns);
            put("cpu_ns", Value::Unsigned(cpu));
            if at.length_ns() > 0 {
                put("cpu_pct", Value::Float(percent(cpu, at.length_ns())));
            }
            put("user_ns", Value::Unsigned(growth(now.user_ns, before.user_ns)));
            put("system_ns", Value::Unsigned(growth(now.system_ns, before.system_ns)));
            put("minor_faults", Value::Unsigned(growth(now.minor_faults, before.minor_faults)));
            put("major_faults", Value::Unsigned(growth(now.major_faults, before.major_faults)));
            if has_io {
                let grown = now.inputs().into_iter().zip(before.inputs());
                let children = self.children.inputs_mut();
                for (name, ((now, before), children)) in INPUTS.iter().zip(grown.zip(children)) {
                    let grown = growth(now, before);
                    let theirs = grown.min(*children);
                    *children -= theirs;
                    put(name, Value::Unsigned(grown - theirs));
                }
            }
        }
        put("rss_bytes", Value::Unsigned(stat.rss_bytes));
        put("virtual_bytes", Value::Unsigned(stat.virtual_bytes));
        put("threads", Value::Unsigned(stat.threads));
        for (name, state) in [("running", State::Running), ("blocked", State::Blocked), ("stopped", State::Stopped)] {
            put(name, Value::Unsigned(u64::from(stat.state == state)));
        }
        sink.counter(Subject::Process(self.identity.pid), "process", "process", at, &values[..known]);
    }
}

const INPUTS: [&str; 7] =
    ["read_chars", "write_chars", "read_calls", "write_calls", "read_bytes", "write_bytes", "cancelled_write_bytes"];

impl Totals {
    /// What `io` counts, in the order of [`INPUTS`].
    fn inputs(&self) -> [u64; INPUTS.len()] {
        [
            self.read_chars,
            self.write_chars,
            self.read_calls,
            self.write_calls,
            self.read_bytes,
            self.write_bytes,
            self.cancelled_write_bytes,
        ]
    }

    fn inputs_mut(&mut self) -> [&mut u64; INPUTS.len()] {
        [
            &mut self.read_chars,
            &mut self.write_chars,
            &mut self.read_calls,
            &mut self.write_calls,
            &mut self.read_bytes,
            &mut self.write_bytes,
            &mut self.cancelled_write_bytes,
        ]
    }
}

/// A file below the process's directory, kept open unless descriptors ran out.
fn keep(directory: &OwnedFd, name: &str) -> io::Result<Option<Kept>> {
    let out_of_descriptors =
        [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    match Kept::open_at(directory.as_fd(), name) {
        Ok(kept) => Ok(Some(kept)),
        Err(error) if out_of_descriptors.contains(&error.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_stat(kept: Option<&Kept>, directory: &OwnedFd, buffer: &mut Vec<u8>) -> io::Result<Stat> {
    let text = match kept {
        Some(kept) => kept.read_record(buffer)?,
        None => Kept::open_at(directory.as_fd(), "stat")?.read_record(buffer)?,
    };
    stat::parse(text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its stat file is invalid"))
}
