//! Memory: `/proc/meminfo` under its own keys, in its own unit; what was paged and swapped meanwhile.
//!
//! `/proc/vmstat` costs the kernel as much as all else here together (30 µs), so it is read once a second; its sample's interval is that of its
//! readings. Most keys are zero on most machines, but readers of DFTracer's files expect all of them.

use crate::read::{Kept, growth, keyed, lines, within};
use crate::sample::{Interval, Sink, Subject, Value};

/// In the order of the file. Keys that are not here (they come and go with kernels) are left out; values are kB, `HugePages_…` are pages.
const KEYS: [&str; 52] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapCached",
    "Active",
    "Inactive",
    "Active(anon)",
    "Inactive(anon)",
    "Active(file)",
    "Inactive(file)",
    "Unevictable",
    "Mlocked",
    "SwapTotal",
    "SwapFree",
    "Zswap",
    "Zswapped",
    "Dirty",
    "Writeback",
    "AnonPages",
    "Mapped",
    "Shmem",
    "KReclaimable",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "KernelStack",
    "PageTables",
    "SecPageTables",
    "NFS_Unstable",
    "Bounce",
    "WritebackTmp",
    "CommitLimit",
    "Committed_AS",
    "VmallocTotal",
    "VmallocUsed",
    "VmallocChunk",
    "Percpu",
    "HardwareCorrupted",
    "AnonHugePages",
    "ShmemHugePages",
    "ShmemPmdMapped",
    "FileHugePages",
    "FilePmdMapped",
    "CmaTotal",
    "CmaFree",
    "HugePages_Total",
    "HugePages_Free",
    "HugePages_Rsvd",
    "HugePages_Surp",
    "Hugetlb",
];

/// Keys of `/proc/vmstat` and what they are called here. Pages, but for `pgpgin` and `pgpgout`, which the kernel counts in kB.
const PAGING: [(&str, &str); 7] = [
    ("pgpgin", "paged_in_kb"),
    ("pgpgout", "paged_out_kb"),
    ("pswpin", "swapped_in"),
    ("pswpout", "swapped_out"),
    ("pgfault", "faults"),
    ("pgmajfault", "major_faults"),
    ("oom_kill", "oom_kills"),
];

const PAGING_PERIOD_NS: i64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Memory {
    amounts: Option<Kept>,
    paging: Option<Kept>,
    /// When paging was read last, and what was there.
    before: Option<(i64, [Option<u64>; PAGING.len()])>,
}

impl Memory {
    pub(super) fn new(amounts: Option<Kept>, paging: Option<Kept>) -> Memory {
        Memory { amounts, paging, before: None }
    }

    pub(super) fn sample(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        self.amounts(at, buffer, sink);
        self.paging(at, buffer, sink);
    }

    fn amounts(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        let Some(Ok(text)) = self.amounts.as_ref().map(|file| file.read_record(buffer)) else { return };
        let mut values = [("", Value::Unsigned(0)); KEYS.len()];
        let mut known = 0;
        let mut next = 0;
        let (mut total, mut free, mut cached) = (None, None, None);
        for (key, amount) in lines(text).filter_map(keyed) {
            // The file is in the order of the table, so the search starts where the last one ended.
            let Some(place) = KEYS[next..].iter().position(|known| known.as_bytes() == key) else { continue };
            next += place + 1;
            let key = KEYS[next - 1];
            match key {
                "SwapTotal" => total = Some(amount),
                "SwapFree" => free = Some(amount),
                "SwapCached" => cached = Some(amount),
                _ => {}
            }
            values[known] = (key, Value::Unsigned(amount));
            known += 1;
        }
        if known > 0 {
            sink.counter(Subject::Host, "sys", "memory", at, &values[..known]);
        }
        if let (Some(total), Some(free), Some(cached)) = (total, free, cached)
            && total > 0
        {
            let values = [
                ("total_kb", Value::Unsigned(total)),
                ("used_kb", Value::Unsigned(total.saturating_sub(free))),
                ("cached_kb", Value::Unsigned(cached)),
            ];
            sink.counter(Subject::Host, "sys", "swap", at, &values);
        }
    }

    fn paging(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        if self.before.is_some_and(|(last, _)| within(last, at.end_ns, PAGING_PERIOD_NS)) {
            return;
        }
        let Some(Ok(text)) = self.paging.as_ref().map(|file| file.read_short_records(buffer)) else { return };
        let mut now = [None; PAGING.len()];
        let mut missing = PAGING.len();
        for line in lines(text) {
            // Two hundred lines, seven of them wanted: the first letters tell most of the others apart.
            if !(line.starts_with(b"pg") || line.starts_with(b"psw") || line.starts_with(b"oom")) {
                continue;
            }
            let Some((key, count)) = keyed(line) else { continue };
            if let Some(place) = PAGING.iter().position(|(known, _)| known.as_bytes() == key) {
                now[place] = Some(count);
                missing -= usize::from(missing > 0);
                if missing == 0 {
                    break;
                }
            }
        }
        if let Some((last, before)) = self.before {
            let mut values = [("", Value::Unsigned(0)); PAGING.len()];
            let mut known = 0;
            for (place, (_, name)) in PAGING.iter().enumerate() {
                if let (Some(now), Some(before)) = (now[place], before[place]) {
                    values[known] = (name, Value::Unsigned(growth(now, before)));
                    known += 1;
                }
            }
            if known > 0 {
                sink.counter(Subject::Host, "sys", "paging", Interval { start_ns: last, ..at }, &values[..known]);
            }
        }
        self.before = Some((at.end_ns, now));
    }
}
