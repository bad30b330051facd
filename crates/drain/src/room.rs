//! The memory limit of a supervisor's arenas on a tmpfs.
//!
//! Shared memory is charged to the job, cannot be written back, and exists as long as the file: a program close to its
//! limit must not be killed for it. So all arenas together take at most 2 GiB and at most a sixteenth of the memory that host and control group have
//! left, checked every second. At the limit an arena cannot grow: `--on-full` decides whether threads wait or records are dropped.

use std::fs;
use std::path::{Path, PathBuf};

use weftline_recorder::layout::PIECE_SIZE;

use crate::system;

/// All arenas together, whatever the machine has.
const MOST: u64 = 2 << 30;
/// One part of so many of what is left.
const SHARE: u64 = 16;
/// A tmpfs with less for arenas is too small: 64 processes need this much for their base pieces.
pub(crate) const LEAST: u64 = 64 * PIECE_SIZE as u64;

/// The kernel's files about memory.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    proc: PathBuf,
    cgroups: PathBuf,
}

impl Machine {
    /// The one we are on.
    pub(crate) fn here() -> Machine {
        Machine { proc: "/proc".into(), cgroups: "/sys/fs/cgroup".into() }
    }

    /// Bytes that all arenas in a directory on a tmpfs may take together, those included that it has (`used`).
    pub(crate) fn allowance(&self, directory: &Path, used: u64) -> u64 {
        let free = system::file_system(directory).map_or(0, |found| found.free);
        let left = self.headroom().map_or(u64::MAX, |left| left.saturating_add(used) / SHARE);
        // Others use the file system as well.
        MOST.min(left).min(used.saturating_add(free / 2))
    }

    /// Bytes that programs can still take before the kernel must find some: of the host, or of the tightest control group above us.
    /// Nothing when neither says.
    fn headroom(&self) -> Option<u64> {
        let meminfo = fs::read_to_string(self.proc.join("meminfo")).unwrap_or_default();
        let host = field(&meminfo, "MemAvailable:").map(|kib| kib.saturating_mul(1024));
        let groups = fs::read_to_string(self.proc.join("self/cgroup")).unwrap_or_default();
        host.into_iter().chain(groups.lines().flat_map(|line| self.group(line))).min()
    }

    /// What is left in each group that a line of `/proc/self/cgroup` leads to: the one it names and those above it.
    fn group(&self, line: &str) -> Vec<u64> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
        let (root, files) = match controllers {
            "" => (self.cgroups.clone(), ["memory.max", "memory.current", "inactive_file"]),
            list if list.split(',').any(|name| name == "memory") => {
                (self.cgroups.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"])
            }
            _ => return Vec::new(),
        };
        let path = Path::new(path.trim_start_matches('/'));
        // A path with `..` shows a group outside of our own tree, which we cannot see.
        let inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let groups = path.ancestors().filter(|_| inside);
        groups.filter_map(|group| left_in(&root.join(group), files)).collect()
    }
}

/// The memory that a group may still take, if it has a limit. The kernel reclaims unused file pages before it kills a process.
fn left_in(group: &Path, [limit, usage, reclaimable]: [&str; 3]) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let used = number(usage)?.saturating_sub(field(&stat, reclaimable).unwrap_or(0));
    Some(number(limit)?.saturating_sub(used))
}

/// The number behind a word at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix([' ', '\t']))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// Paths and texts.
    type Files<'a> = &'a [(&'a str, &'a str)];

    /// A machine with these files; paths begin with `proc` or `cgroup`.
    fn headroom(files: Files<'_>) -> Option<u64> {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("written");
        }
        Machine { proc: root.path().join("proc"), cgroups: root.path().join("cgroup") }.headroom()
    }

    #[test]
    fn the_tightest_limit_counts() {
        let host = ("proc/meminfo", "MemTotal:  99999999 kB\nMemAvailable:    8388608 kB\n");
        let cases: &[(Files<'_>, Option<u64>)] = &[
            (&[], None),
            (&[host], Some(8 * GIB)),
            // Version 2: the group itself has no limit, the one above it has, and half of what it uses can be given up.
            (
                &[
                    host,
                    ("proc/self/cgroup", "0::/job/step\n"),
                    ("cgroup/job/step/memory.max", "max\n"),
                    ("cgroup/job/step/memory.current", "1000\n"),
                    ("cgroup/job/memory.max", "4294967296\n"),
                    ("cgroup/job/memory.current", "2147483648\n"),
                    ("cgroup/job/memory.stat", "anon 1073741824\ninactive_file 1073741824\n"),
                ],
                Some(3 * GIB),
            ),
            // Version 1, beside controllers that say nothing of memory.
            (
                &[
                    host,
                    ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n2:cpuset:/\n0::/\n"),
                    ("cgroup/memory/job/memory.limit_in_bytes", "536870912"),
                    ("cgroup/memory/job/memory.usage_in_bytes", "536870912"),
                    ("cgroup/memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 4096\n"),
                    ("cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
                    ("cgroup/memory/memory.usage_in_bytes", "536870912"),
                ],
                Some(4096),
            ),
            // A group that is outside of what this namespace shows.
            (
                &[
                    host,
                    ("proc/self/cgroup", "0::/../other\n"),
                    ("cgroup/memory.max", "1\n"),
                    ("cgroup/memory.current", "0\n"),
                ],
                Some(8 * GIB),
            ),
        ];
        for (files, expected) in cases {
            assert_eq!(headroom(files), *expected, "{files:?}");
        }
    }

    #[test]
    fn arenas_get_a_small_part() {
        let root = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(root.path().join("proc")).expect("made");
        let allowance = |available_kib: u64, used| {
            fs::write(root.path().join("proc/meminfo"), format!("MemAvailable: {available_kib} kB\n"))
                .expect("written");
            let machine = Machine { proc: root.path().join("proc"), cgroups: root.path().join("none") };
            machine.allowance(Path::new("/dev/shm"), used)
        };
        assert_eq!(allowance(1 << 20, 0), GIB / 16);
        assert_eq!(allowance(1 << 20, GIB), GIB / 8, "what is taken already does not count against itself");
        assert!(allowance(1 << 40, 0) <= MOST);
    }
}
