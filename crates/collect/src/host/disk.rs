//! Disks: bytes, operations, time and queue of each block device.
//!
//! Whole devices only, since they include their partitions. Devices without any activity (loop devices, RAM disks) are left out.

use std::path::PathBuf;

use crate::read::{Kept, growth, growth_32, lines, number, percent, words};
use crate::roots::Roots;
use crate::sample::{Interval, Sink, Subject, Value};

/// The kernel's unit, whatever sectors the device has.
const SECTOR: u64 = 512;
/// Statistics behind the name: eleven since 2.6, discards since 4.18, flushes since 5.5.
const FIELDS: usize = 17;

#[derive(Debug)]
struct Disk {
    name: String,
    whole: bool,
    before: Option<[u64; FIELDS]>,
}

#[derive(Debug)]
pub(super) struct Disks {
    file: Kept,
    /// `/sys/block`, which lists whole devices.
    block: PathBuf,
    disks: Vec<Disk>,
}

impl Disks {
    pub(super) fn new(file: Kept, roots: &Roots) -> Disks {
        Disks { file, block: roots.sys.join("block"), disks: Vec::new() }
    }

    pub(super) fn sample(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        let Ok(text) = self.file.read_short_records(buffer) else { return };
        let mut next = 0;
        for line in lines(text) {
            let mut words = words(line).skip(2);
            let Some(name) = words.next().and_then(|name| std::str::from_utf8(name).ok()) else { continue };
            let mut now = [0; FIELDS];
            let mut known = 0;
            for (field, word) in now.iter_mut().zip(words) {
                let Some(value) = number(word) else { break };
                *field = value;
                known += 1;
            }
            if known < 11 {
                continue;
            }
            // Devices keep their order, so each is mostly where the last search ended.
            let place = match self.disks.get(next).filter(|disk| disk.name == name) {
                Some(_) => next,
                None => self.disks.iter().position(|disk| disk.name == name).unwrap_or_else(|| {
                    // Devices of drivers with directories: `cciss/c0d0` is `cciss!c0d0` there.
                    let whole = self.block.join(name.replace('/', "!")).exists() || !self.block.exists();
                    self.disks.push(Disk { name: name.to_owned(), whole, before: None });
                    self.disks.len() - 1
                }),
            };
            next = place + 1;
            let disk = &mut self.disks[place];
            if !disk.whole || (now[0] == 0 && now[4] == 0) {
                continue;
            }
            if let Some(before) = disk.before {
                emit(&disk.name, &now, &before, known, at, sink);
            }
            disk.before = Some(now);
        }
    }
}

fn emit(name: &str, now: &[u64; FIELDS], before: &[u64; FIELDS], known: usize, at: Interval, sink: &mut dyn Sink) {
    let count = |place: usize| growth(now[place], before[place]);
    // Milliseconds are kept in 32 bits: the weighted ones run over after weeks of a busy device.
    let time = |place: usize| growth_32(now[place], before[place]).saturating_mul(1_000_000);
    let bytes = |place: usize| Value::Unsigned(count(place).saturating_mul(SECTOR));
    let busy = time(9);
    let length = at.length_ns();
    let queue = if length == 0 { 0.0 } else { time(10) as f64 / length as f64 };
    let values = [
        ("reads_completed", Value::Unsigned(count(0))),
        ("reads_merged", Value::Unsigned(count(1))),
        ("bytes_read", bytes(2)),
        ("read_ns", Value::Unsigned(time(3))),
        ("writes_completed", Value::Unsigned(count(4))),
        ("writes_merged", Value::Unsigned(count(5))),
        ("bytes_written", bytes(6)),
        ("write_ns", Value::Unsigned(time(7))),
        ("ios_in_progress", Value::Unsigned(now[8])),
        ("busy_ns", Value::Unsigned(busy)),
        ("busy_pct", Value::Float(percent(busy, length).min(100.0))),
        ("queue", Value::Float(queue)),
        ("discards_completed", Value::Unsigned(count(11))),
        ("bytes_discarded", bytes(13)),
        ("flushes_completed", Value::Unsigned(count(15))),
        ("flush_ns", Value::Unsigned(time(16))),
    ];
    let shown = if known >= 17 {
        16
    } else if known >= 15 {
        14
    } else {
        12
    };
    sink.counter(Subject::Host, "io", name, at, &values[..shown]);
}
