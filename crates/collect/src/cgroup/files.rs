//! A control group's files, in either version's layout.
//!
//! Version 2 has one tree; version 1 one per controller, several of which may share a mount (`cpu,cpuacct`) or have one each. A machine
//! may have both, with the controllers in version 1 and an empty version 2 tree below `unified`.

use std::io;
use std::path::{Path, PathBuf};

use crate::host::pressure;
use crate::read::{Kept, keyed, lines, number, words};
use crate::roots::Roots;

use super::Usage;

/// Version 1 says "unlimited" as the largest multiple of a page.
const UNLIMITED: u64 = 1 << 62;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    CpuStat,
    CpuMax,
    MemoryCurrent,
    MemoryMax,
    MemoryPeak,
    MemoryStat,
    MemoryEvents,
    SwapCurrent,
    IoStat,
    Tasks,
    CpuPressure,
    MemoryPressure,
    IoPressure,
    Usage1,
    Stat1,
    Throttling1,
    Quota1,
    Period1,
    MemoryStat1,
    MemoryAndSwap1,
    OomControl1,
    ServiceBytes1,
    Serviced1,
}

const VERSION_2: [(&str, FileKind); 13] = [
    ("cpu.stat", FileKind::CpuStat),
    ("cpu.max", FileKind::CpuMax),
    ("memory.current", FileKind::MemoryCurrent),
    ("memory.max", FileKind::MemoryMax),
    ("memory.peak", FileKind::MemoryPeak),
    ("memory.stat", FileKind::MemoryStat),
    ("memory.events", FileKind::MemoryEvents),
    ("memory.swap.current", FileKind::SwapCurrent),
    ("io.stat", FileKind::IoStat),
    ("pids.current", FileKind::Tasks),
    ("cpu.pressure", FileKind::CpuPressure),
    ("memory.pressure", FileKind::MemoryPressure),
    ("io.pressure", FileKind::IoPressure),
];

const VERSION_1: [(&str, &str, FileKind); 14] = [
    ("cpuacct", "cpuacct.usage", FileKind::Usage1),
    ("cpuacct", "cpuacct.stat", FileKind::Stat1),
    ("cpu", "cpu.stat", FileKind::Throttling1),
    ("cpu", "cpu.cfs_quota_us", FileKind::Quota1),
    ("cpu", "cpu.cfs_period_us", FileKind::Period1),
    ("memory", "memory.usage_in_bytes", FileKind::MemoryCurrent),
    ("memory", "memory.limit_in_bytes", FileKind::MemoryMax),
    ("memory", "memory.max_usage_in_bytes", FileKind::MemoryPeak),
    ("memory", "memory.stat", FileKind::MemoryStat1),
    ("memory", "memory.memsw.usage_in_bytes", FileKind::MemoryAndSwap1),
    ("memory", "memory.oom_control", FileKind::OomControl1),
    ("blkio", "blkio.throttle.io_service_bytes", FileKind::ServiceBytes1),
    ("blkio", "blkio.throttle.io_serviced", FileKind::Serviced1),
    ("pids", "pids.current", FileKind::Tasks),
];

#[derive(Debug)]
pub(super) struct Files {
    files: Vec<(FileKind, Kept)>,
}

impl Files {
    /// Opens the files of the groups that `path` gives for each controller; the empty name is version 2.
    pub(super) fn open(mount: &Path, path: &dyn Fn(&str) -> Option<PathBuf>) -> io::Result<Files> {
        let mut files = Vec::new();
        let unified = if mount.join("cgroup.controllers").exists() { mount.to_owned() } else { mount.join("unified") };
        if let Some(path) = path("") {
            let directory = below(&unified, &path);
            for (name, kind) in VERSION_2 {
                files.extend(Kept::open(directory.join(name)).ok().map(|file| (kind, file)));
            }
        }
        for (controller, name, kind) in VERSION_1 {
            let Some(path) = path(controller) else { continue };
            // Both controllers of processors are mostly one mount, under either order of their names.
            let mounts: &[&str] =
                if controller.starts_with("cpu") { &[controller, "cpu,cpuacct", "cpuacct,cpu"] } else { &[controller] };
            let found = mounts.iter().find_map(|point| Kept::open(below(&mount.join(point), &path).join(name)).ok());
            files.extend(found.map(|file| (kind, file)));
        }
        if files.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("no such control group below {}", mount.display()),
            ));
        }
        Ok(Files { files })
    }

    /// Reads all of them. A removed group fails with ENODEV.
    pub(super) fn read(&self, buffer: &mut Vec<u8>) -> io::Result<Usage> {
        let mut usage = Usage::default();
        let (mut quota, mut period, mut with_swap) = (None, None, None);
        let mut failed = None;
        let mut readable = false;
        for (kind, file) in &self.files {
            // Each of them is one record.
            let text = match file.read_record(buffer) {
                Ok(text) => text,
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            };
            readable = true;
            let single = || words(text).next().and_then(number);
            match kind {
                FileKind::Quota1 => quota = single(),
                FileKind::Period1 => period = single(),
                FileKind::MemoryAndSwap1 => with_swap = single(),
                _ => read_into(&mut usage, *kind, text),
            }
        }
        if let (Some(quota), Some(period)) = (quota, period)
            && period > 0
        {
            usage.cpu_limit = Some(quota as f64 / period as f64);
        }
        if let (Some(both), Some(memory)) = (with_swap, usage.memory_bytes) {
            usage.swap_bytes = Some(both.saturating_sub(memory));
        }
        match failed {
            Some(error) if !readable => Err(error),
            _ => Ok(usage),
        }
    }
}

fn read_into(usage: &mut Usage, kind: FileKind, text: &[u8]) {
    let single = || words(text).next().and_then(number);
    let table =
        |wanted: &str| lines(text).filter_map(keyed).find(|(key, _)| *key == wanted.as_bytes()).map(|(_, value)| value);
    let micros = |wanted: &str| table(wanted).map(|us| us.saturating_mul(1000));
    match kind {
        FileKind::CpuStat => {
            usage.cpu_ns = micros("usage_usec");
            usage.user_ns = micros("user_usec");
            usage.system_ns = micros("system_usec");
            usage.periods = table("nr_periods");
            usage.throttled_periods = table("nr_throttled");
            usage.throttled_ns = micros("throttled_usec");
        }
        FileKind::CpuMax => {
            let mut both = words(text).map(number);
            if let (Some(Some(quota)), Some(Some(period))) = (both.next(), both.next())
                && period > 0
            {
                usage.cpu_limit = Some(quota as f64 / period as f64);
            }
        }
        FileKind::MemoryCurrent => usage.memory_bytes = single(),
        FileKind::MemoryMax => usage.memory_limit_bytes = single().filter(|limit| *limit < UNLIMITED),
        FileKind::MemoryPeak => usage.memory_peak_bytes = single(),
        FileKind::MemoryStat => {
            usage.anonymous_bytes = table("anon");
            usage.file_bytes = table("file");
        }
        FileKind::MemoryStat1 => {
            usage.anonymous_bytes = table("total_rss");
            usage.file_bytes = table("total_cache");
        }
        FileKind::MemoryEvents | FileKind::OomControl1 => usage.oom_kills = table("oom_kill"),
        FileKind::SwapCurrent => usage.swap_bytes = single(),
        FileKind::Tasks => usage.tasks = single(),
        FileKind::IoStat => {
            let [read, written, reads, writes] =
                ["rbytes", "wbytes", "rios", "wios"].map(|key| io_sum(text, key.as_bytes()));
            (usage.read_bytes, usage.write_bytes) = (Some(read), Some(written));
            (usage.read_operations, usage.write_operations) = (Some(reads), Some(writes));
        }
        FileKind::CpuPressure => usage.cpu_stall_ns = pressure::parse(text).some_ns,
        FileKind::MemoryPressure => usage.memory_stall_ns = pressure::parse(text).some_ns,
        FileKind::IoPressure => usage.io_stall_ns = pressure::parse(text).some_ns,
        FileKind::Usage1 => usage.cpu_ns = single(),
        FileKind::Stat1 => {
            let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
            usage.user_ns = table("user").map(|ticks| ticks.saturating_mul(tick));
            usage.system_ns = table("system").map(|ticks| ticks.saturating_mul(tick));
        }
        FileKind::Throttling1 => {
            usage.periods = table("nr_periods");
            usage.throttled_periods = table("nr_throttled");
            usage.throttled_ns = table("throttled_time");
        }
        FileKind::ServiceBytes1 => {
            (usage.read_bytes, usage.write_bytes) =
                (Some(service_sum(text, b"Read")), Some(service_sum(text, b"Write")));
        }
        FileKind::Serviced1 => {
            (usage.read_operations, usage.write_operations) =
                (Some(service_sum(text, b"Read")), Some(service_sum(text, b"Write")));
        }
        // Taken by `read`, which needs two of them at once.
        FileKind::Quota1 | FileKind::Period1 | FileKind::MemoryAndSwap1 => {}
    }
}

/// Sum over devices of `8:0 rbytes=1 wbytes=2 …`.
fn io_sum(text: &[u8], key: &[u8]) -> u64 {
    let value = |word: &[u8]| number(word.strip_prefix(key)?.strip_prefix(b"=")?);
    words(text).filter_map(value).fold(0, u64::saturating_add)
}

/// Sum over devices of `8:0 Read 1`.
fn service_sum(text: &[u8], what: &[u8]) -> u64 {
    let value = |line| {
        let mut words = words(line).skip(1);
        if words.next()? == what { number(words.next()?) } else { None }
    };
    lines(text).filter_map(value).fold(0, u64::saturating_add)
}

/// `path` below `directory`, also when it begins with a slash. Components that lead upwards are left out.
fn below(directory: &Path, path: &Path) -> PathBuf {
    let mut joined = directory.to_owned();
    joined.extend(path.components().filter(|component| matches!(component, std::path::Component::Normal(_))));
    joined
}

/// A group's path without the mount, and without the controller's directory of version 1.
pub(super) fn within(path: &Path, mount: &Path) -> PathBuf {
    let Ok(rest) = path.strip_prefix(mount) else { return path.to_owned() };
    let mut parts = rest.components();
    let first = parts.next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let controllers = [
        "unified",
        "cpu,cpuacct",
        "cpuacct,cpu",
        "cpu",
        "cpuacct",
        "memory",
        "blkio",
        "pids",
        "systemd",
        "cpuset",
        "freezer",
        "devices",
    ];
    let version_1 = !mount.join("cgroup.controllers").exists();
    let rest = if version_1 && first.is_some_and(|first| controllers.contains(&first.as_str())) {
        parts.as_path()
    } else {
        rest
    };
    Path::new("/").join(rest)
}

/// Controllers and paths of a process's groups; the empty name is version 2.
pub fn paths_of(roots: &Roots, pid: u32) -> io::Result<Vec<(String, PathBuf)>> {
    let mut buffer = Vec::new();
    let file = Kept::open(roots.proc.join(pid.to_string()).join("cgroup"))?;
    Ok(parse_paths(file.read(&mut buffer)?))
}

/// Lines of `NUMBER:CONTROLLER,CONTROLLER:PATH`. Named hierarchies (`name=systemd`) count as controllers.
fn parse_paths(text: &[u8]) -> Vec<(String, PathBuf)> {
    let mut paths = Vec::new();
    for line in lines(text) {
        let line = String::from_utf8_lossy(line);
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        for controller in controllers.split(',') {
            paths.push((controller.to_owned(), PathBuf::from(path)));
        }
    }
    paths
}
