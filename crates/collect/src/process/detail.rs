//! Values that are too expensive for every sample: context switches, which the kernel counts per thread, open files, and the proportional set size.
//!
//! `status` of a thread costs about ten microseconds, so at most sixteen threads' worth is read per second: a process of up to sixteen
//! threads every second, one of 160 every ten. `smaps_rollup` walks the page tables and holds the process's memory map meanwhile, against
//! its own page faults; it is read every five seconds, and only of processes up to 64 MiB, where the walk takes some 100 µs.
//! The sample's interval is that of the readings. What a thread did after its last reading is not seen when it ends.
//!
//! A process that has not run since the last reading has switched and opened nothing, so it is not read again. Its proportional set size may
//! still change, since other processes share its pages; it is then read once a minute.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

use super::stat::Stat;
use crate::read::{Kept, growth, keyed, lines, within};
use crate::sample::{Interval, Sink, Subject, Value};

const PERIOD_NS: i64 = 1_000_000_000;
const THREADS_PER_PERIOD: u64 = 16;
const SET_SIZE_PERIOD_NS: i64 = 5_000_000_000;
const STILL_SET_SIZE_PERIOD_NS: i64 = 60_000_000_000;
const LARGEST_SET: u64 = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct Details {
    last_ns: Option<i64>,
    last_set_ns: Option<i64>,
    threads: HashMap<u32, (u64, u64)>,
    /// Whether the process has run since the last reading.
    moved: bool,
    open_files: Option<u64>,
    /// Whether the directory is one of the kernel's; asked once.
    on_proc: Option<bool>,
}

/// The process at hand.
pub(super) struct Of<'p> {
    pub(super) pid: u32,
    pub(super) directory: BorrowedFd<'p>,
    pub(super) stat: &'p Stat,
    /// It has not run since the sample before.
    pub(super) still: bool,
}

impl Details {
    pub(super) fn sample(&mut self, of: &Of<'_>, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        self.moved |= !of.still;
        let threads = i64::try_from(of.stat.threads.div_ceil(THREADS_PER_PERIOD).clamp(1, 1 << 20)).unwrap_or(1);
        if self.last_ns.is_some_and(|last| within(last, at.end_ns, PERIOD_NS.saturating_mul(threads))) {
            return;
        }
        let interval = Interval { start_ns: self.last_ns.unwrap_or(at.start_ns), end_ns: at.end_ns };
        let first = self.last_ns.is_none();
        self.last_ns = Some(at.end_ns);
        let moved = std::mem::take(&mut self.moved);
        let mut values = [("", Value::Unsigned(0)); 5];
        let mut known = 0;
        let mut put = |name: &'static str, value: u64| {
            values[known] = (name, Value::Unsigned(value));
            known += 1;
        };
        let switches = if moved { self.switches(of, buffer) } else { (!self.threads.is_empty()).then_some((0, 0)) };
        if let Some((voluntary, involuntary)) = switches
            && !first
        {
            put("voluntary_switches", voluntary);
            put("involuntary_switches", involuntary);
        }
        let set_period = if moved { SET_SIZE_PERIOD_NS } else { STILL_SET_SIZE_PERIOD_NS };
        let set_due = !self.last_set_ns.is_some_and(|last| within(last, at.end_ns, set_period));
        if set_due && of.stat.rss_bytes > 0 && of.stat.rss_bytes <= LARGEST_SET {
            self.last_set_ns = Some(at.end_ns);
            let (proportional, swapped) = set_size(of.directory, buffer);
            if let Some(proportional) = proportional {
                put("pss_bytes", proportional);
            }
            if let Some(swapped) = swapped {
                put("swap_bytes", swapped);
            }
        }
        if moved {
            self.open_files = self.count_open_files(of.directory);
        }
        if let Some(files) = self.open_files {
            put("open_files", files);
        }
        if known > 0 {
            sink.counter(Subject::Process(of.pid), "process", "detail", interval, &values[..known]);
        }
    }

    /// The number of open files. Linux 6.2 and later tell it as the size of the directory; before, they are counted.
    fn count_open_files(&mut self, directory: BorrowedFd<'_>) -> Option<u64> {
        let found = rustix::fs::statat(directory, "fd", AtFlags::empty()).ok()?;
        let on_proc = *self.on_proc.get_or_insert_with(|| {
            rustix::fs::fstatfs(directory).is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
        });
        match u64::try_from(found.st_size) {
            Ok(size) if size > 0 && on_proc => Some(size),
            _ => Some(numbers_in(directory, "fd")?.len() as u64),
        }
    }

    /// Switches of all threads since the last reading; those of a thread that was not there count from its start.
    fn switches(&mut self, of: &Of<'_>, buffer: &mut Vec<u8>) -> Option<(u64, u64)> {
        let alone = of.stat.threads <= 1;
        let threads = if alone { vec![of.pid] } else { threads(of.directory)? };
        let mut now = HashMap::with_capacity(threads.len());
        let (mut voluntary, mut involuntary) = (0u64, 0u64);
        for thread in threads {
            let name = if alone { "status".to_owned() } else { format!("task/{thread}/status") };
            let Ok(file) = Kept::open_at(of.directory, &name) else { continue };
            let Ok(text) = file.read_record(buffer) else { continue };
            // They are the last lines of a long file.
            let Some(start) = memchr::memmem::rfind(text, b"\nvoluntary_ctxt_switches") else { continue };
            let mut found = lines(&text[start..]).filter_map(keyed);
            let (Some((_, first)), Some((_, second))) = (found.next(), found.next()) else { continue };
            let before = self.threads.get(&thread).copied().unwrap_or_default();
            voluntary = voluntary.saturating_add(growth(first, before.0));
            involuntary = involuntary.saturating_add(growth(second, before.1));
            now.insert(thread, (first, second));
        }
        if now.is_empty() {
            return None;
        }
        self.threads = now;
        Some((voluntary, involuntary))
    }
}

fn set_size(directory: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> (Option<u64>, Option<u64>) {
    let Ok(file) = Kept::open_at(directory, "smaps_rollup") else { return (None, None) };
    let Ok(text) = file.read_record(buffer) else { return (None, None) };
    let find = |wanted: &[u8]| {
        let found = lines(text).filter_map(keyed).find(|(key, _)| *key == wanted);
        found.map(|(_, kilobytes)| kilobytes.saturating_mul(1024))
    };
    (find(b"Pss"), find(b"Swap"))
}

fn numbers_in(directory: BorrowedFd<'_>, name: &str) -> Option<Vec<u32>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    let entries = Dir::new(opened).ok()?;
    Some(entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok()).collect())
}

/// Ids of a process's threads.
pub(super) fn threads(directory: BorrowedFd<'_>) -> Option<Vec<u32>> {
    numbers_in(directory, "task")
}
