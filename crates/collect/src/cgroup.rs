//! Control groups, version 1 and 2, and their containers.
//!
//! `container` recognises runtimes by the paths that they make; `files` finds a group's files in either version's layout and reads them
//! into one [`Usage`], so that callers need not distinguish versions.

mod container;
mod files;

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::read::{growth, percent};
use crate::roots::Roots;
use crate::sample::{Interval, Sink, Subject, Value};

pub use container::{Container, container_of};
use files::Files;
pub use files::paths_of;

/// What a group has used since it was made, and what it holds now. Absent is what its controllers do not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Usage {
    /// CPU time.
    pub cpu_ns: Option<u64>,
    /// CPU time in user mode.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel.
    pub system_ns: Option<u64>,
    /// Periods of its quota that passed.
    pub periods: Option<u64>,
    /// Periods in which it was stopped for having used its quota.
    pub throttled_periods: Option<u64>,
    /// Time for which it was stopped, summed over processors.
    pub throttled_ns: Option<u64>,
    /// Processors that its quota amounts to; none when unlimited.
    pub cpu_limit: Option<f64>,
    /// Memory that it holds, page cache included.
    pub memory_bytes: Option<u64>,
    /// The most it may hold; none when unlimited.
    pub memory_limit_bytes: Option<u64>,
    /// The most it ever held.
    pub memory_peak_bytes: Option<u64>,
    /// Memory of its processes themselves.
    pub anonymous_bytes: Option<u64>,
    /// Page cache.
    pub file_bytes: Option<u64>,
    /// What is swapped out.
    pub swap_bytes: Option<u64>,
    /// Processes killed for want of memory.
    pub oom_kills: Option<u64>,
    /// Bytes read from devices.
    pub read_bytes: Option<u64>,
    /// Bytes written to devices.
    pub write_bytes: Option<u64>,
    /// Reads from devices.
    pub read_operations: Option<u64>,
    /// Writes to devices.
    pub write_operations: Option<u64>,
    /// Its tasks.
    pub tasks: Option<u64>,
    /// Time that some tasks waited for a processor.
    pub cpu_stall_ns: Option<u64>,
    /// Time that some tasks waited for memory.
    pub memory_stall_ns: Option<u64>,
    /// Time that some tasks waited for input and output.
    pub io_stall_ns: Option<u64>,
}

/// Of the groups of a process, the one that says most.
fn longest(paths: &[(String, PathBuf)]) -> PathBuf {
    let longest = paths.iter().map(|(_, path)| path).max_by_key(|path| path.as_os_str().len());
    longest.cloned().unwrap_or_else(|| PathBuf::from("/"))
}

/// Samples one control group.
#[derive(Debug)]
pub struct CgroupSampler {
    name: String,
    files: Files,
    buffer: Vec<u8>,
    before: Option<Usage>,
}

impl CgroupSampler {
    /// Opens a control group: a path as `/proc/PID/cgroup` has it, or a directory below `/sys/fs/cgroup`.
    pub fn open(roots: &Roots, path: &Path) -> io::Result<CgroupSampler> {
        let mount = roots.sys.join("fs/cgroup");
        let path = files::within(path, &mount);
        CgroupSampler::with(Files::open(&mount, &|_| Some(path.clone()))?, &path)
    }

    /// Opens the groups of a process, which in version 1 are one per controller.
    pub fn of_process(roots: &Roots, pid: u32) -> io::Result<CgroupSampler> {
        let paths = paths_of(roots, pid)?;
        let name = longest(&paths);
        // A process that is in a group for one controller is not in one for those where it is at the root: that is the machine's.
        let is_own = |path: &PathBuf| name.as_path() == Path::new("/") || path.as_path() != Path::new("/");
        let find = |controller: &str| {
            paths
                .iter()
                .find(|(known, _)| known == controller)
                .map(|(_, path)| path)
                .filter(|path| is_own(path))
                .cloned()
        };
        CgroupSampler::with(Files::open(&roots.sys.join("fs/cgroup"), &find)?, &name)
    }

    /// The name that [`CgroupSampler::of_process`] would have.
    pub fn name_of_process(roots: &Roots, pid: u32) -> io::Result<PathBuf> {
        paths_of(roots, pid).map(|paths| longest(&paths))
    }

    fn with(files: Files, path: &Path) -> io::Result<CgroupSampler> {
        let name = path.to_string_lossy().into_owned();
        Ok(CgroupSampler { name, files, buffer: Vec::new(), before: None })
    }

    /// Its path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Emits the values of an interval; differences only from the second call on. An error says that the group is gone.
    pub fn sample(&mut self, at: Interval, sink: &mut dyn Sink) -> io::Result<()> {
        let now = self.files.read(&mut self.buffer)?;
        let mut values = [("", Value::Unsigned(0)); 26];
        let mut known = 0;
        let mut put = |name: &'static str, value: Value| {
            values[known] = (name, value);
            known += 1;
        };
        if let Some(before) = &self.before {
            let counters = [
                ("cpu_ns", now.cpu_ns, before.cpu_ns),
                ("user_ns", now.user_ns, before.user_ns),
                ("system_ns", now.system_ns, before.system_ns),
                ("periods", now.periods, before.periods),
                ("throttled_periods", now.throttled_periods, before.throttled_periods),
                ("throttled_ns", now.throttled_ns, before.throttled_ns),
                ("oom_kills", now.oom_kills, before.oom_kills),
                ("read_bytes", now.read_bytes, before.read_bytes),
                ("write_bytes", now.write_bytes, before.write_bytes),
                ("read_operations", now.read_operations, before.read_operations),
                ("write_operations", now.write_operations, before.write_operations),
                ("cpu_stall_ns", now.cpu_stall_ns, before.cpu_stall_ns),
                ("memory_stall_ns", now.memory_stall_ns, before.memory_stall_ns),
                ("io_stall_ns", now.io_stall_ns, before.io_stall_ns),
            ];
            for (name, now, before) in counters {
                if let (Some(now), Some(before)) = (now, before) {
                    put(name, Value::Unsigned(growth(now, before)));
                }
            }
            if let (Some(now), Some(before)) = (now.cpu_ns, before.cpu_ns)
                && at.length_ns() > 0
            {
                put("cpu_pct", Value::Float(percent(growth(now, before), at.length_ns())));
            }
        }
        let gauges = [
            ("memory_bytes", now.memory_bytes),
            ("memory_limit_bytes", now.memory_limit_bytes),
            ("memory_peak_bytes", now.memory_peak_bytes),
            ("anonymous_bytes", now.anonymous_bytes),
            ("file_bytes", now.file_bytes),
            ("swap_bytes", now.swap_bytes),
            ("tasks", now.tasks),
        ];
        for (name, value) in gauges {
            if let Some(value) = value {
                put(name, Value::Unsigned(value));
            }
        }
        if let Some(limit) = now.cpu_limit {
            put("cpu_limit", Value::Float(limit));
        }
        if known > 0 {
            sink.counter(Subject::Host, "cgroup", &self.name, at, &values[..known]);
        }
        self.before = Some(now);
        Ok(())
    }
}
