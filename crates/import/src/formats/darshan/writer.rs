//! Writes logs for tests, of any version, byte order and packing: nobody else's files are in the tree.

use std::io::Write as _;

use super::bytes::{Order, Packing};
use super::header::name_of;
use super::layout::Layout;

/// A log.
#[derive(Debug, Clone)]
pub(super) struct Log {
    pub(super) order: Order,
    pub(super) packing: Packing,
    /// 41 for 3.41.
    pub(super) minor: u32,
    pub(super) processes: i64,
    pub(super) trailer: &'static str,
    pub(super) names: Vec<(u64, &'static str)>,
    /// Name, version, records, whether some are missing.
    pub(super) modules: Vec<(&'static str, u32, Vec<u8>, bool)>,
}

pub(super) const START: i64 = 1_700_000_000;

/// Bytes of one order.
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    pub(super) order: Order,
    pub(super) bytes: Vec<u8>,
}

impl Bytes {
    pub(super) fn new(order: Order) -> Bytes {
        Bytes { order, bytes: Vec::new() }
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.bytes.extend(match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        });
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.bytes.extend(match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        });
    }

    pub(super) fn i64s(&mut self, numbers: &[i64]) {
        numbers.iter().for_each(|number| self.u64(*number as u64));
    }

    pub(super) fn f64(&mut self, number: f64) {
        self.u64(number.to_bits());
    }

    pub(super) fn text(&mut self, text: &[u8], room: usize) {
        self.bytes.extend_from_slice(text);
        self.bytes.resize(self.bytes.len() + room - text.len(), 0);
    }
}

impl Log {
    pub(super) fn new(order: Order, packing: Packing, minor: u32) -> Log {
        let trailer = "/bin/ior -a --password=geheim\next4\t/\nlustre\t/scratch";
        let names = vec![(11, "/scratch/out"), (12, "/etc/conf"), (13, "/scratch/out:/set"), (14, "heatmap:POSIX")];
        Log { order, packing, minor, processes: 4, trailer, names, modules: Vec::new() }
    }

    /// Adds a module.
    pub(super) fn with(mut self, name: &'static str, version: u32, records: &[Vec<u8>]) -> Log {
        self.modules.push((name, version, records.concat(), false));
        self
    }

    /// Says of the last module that some of its records are missing.
    pub(super) fn partly(mut self) -> Log {
        self.modules.last_mut().expect("a module").3 = true;
        self
    }

    /// A record of counters. `known`: without the module's prefix.
    pub(super) fn record(&self, module: &str, version: u32, head: (u64, i64), known: &[(&str, f64)]) -> Vec<u8> {
        let layout = Layout::of(module, version).expect("a layout");
        for (name, _) in known {
            assert!(layout.integers.iter().chain(&layout.reals).any(|other| other == name), "no {name}");
        }
        let value = |name: &str| known.iter().find(|(other, _)| *other == name).map_or(0.0, |(_, value)| *value);
        let mut bytes = Bytes::new(self.order);
        bytes.u64(head.0);
        bytes.i64s(&[head.1]);
        if layout.part {
            bytes.u64(11);
        }
        layout.integers.iter().for_each(|name| bytes.i64s(&[value(name) as i64]));
        layout.reals.iter().for_each(|name| bytes.f64(value(name)));
        bytes.bytes
    }

    /// A record in which every counter has another value, but those of streams in version 1 of POSIX: other readers leave such records out.
    pub(super) fn filled(&self, module: &str, version: u32, head: (u64, i64)) -> Vec<u8> {
        let layout = Layout::of(module, version).expect("a layout");
        let mut value = 100.0_f64;
        let names: Vec<String> = layout.integers.iter().chain(&layout.reals).cloned().collect();
        let known: Vec<(&str, f64)> = names
            .iter()
            .map(|name| {
                value += 1.25;
                let is_real = layout.reals.contains(name);
                (name.as_str(), if is_real { value } else { value.floor() })
            })
            .filter(|(name, _)| !["FOPENS", "FREADS", "FWRITES", "FSEEKS"].contains(name))
            .collect();
        self.record(module, version, head, &known)
    }

    /// Segments of DXT: writes, then reads, as offset, length, start, end.
    pub(super) fn segments(&self, head: (u64, i64), writes: &[Segment], reads: &[Segment]) -> Vec<u8> {
        let mut bytes = Bytes::new(self.order);
        bytes.u64(head.0);
        bytes.i64s(&[head.1, 0]);
        bytes.text(b"node7", 64);
        bytes.i64s(&[writes.len() as i64, reads.len() as i64]);
        for (offset, length, start, end) in writes.iter().chain(reads) {
            bytes.i64s(&[*offset, *length]);
            bytes.f64(*start);
            bytes.f64(*end);
        }
        bytes.bytes
    }

    /// A Lustre record: of version 1 with `[osts, mdts, offset, size, width]` and servers, of version 2 with one component.
    pub(super) fn lustre(&self, version: u32, head: (u64, i64), counters: &[i64], osts: &[i64]) -> Vec<u8> {
        let mut bytes = Bytes::new(self.order);
        bytes.u64(head.0);
        bytes.i64s(&[head.1]);
        if version == 2 {
            bytes.i64s(&[1, osts.len() as i64]);
        }
        bytes.i64s(counters);
        if version == 2 {
            bytes.text(b"pool", 16);
        }
        bytes.i64s(osts);
        bytes.bytes
    }

    pub(super) fn heatmap(&self, head: (u64, i64), width: f64, written: &[i64], read: &[i64]) -> Vec<u8> {
        let mut bytes = Bytes::new(self.order);
        bytes.u64(head.0);
        bytes.i64s(&[head.1]);
        bytes.f64(width);
        bytes.i64s(&[written.len() as i64, 0x7fff_0000_0000, 0]);
        bytes.i64s(written);
        bytes.i64s(read);
        bytes.bytes
    }

    fn pack(&self, bytes: &[u8]) -> Vec<u8> {
        match self.packing {
            Packing::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(bytes).expect("memory");
                encoder.finish().expect("memory")
            }
            Packing::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(bytes).expect("memory");
                encoder.finish().expect("memory")
            }
            Packing::None => bytes.to_vec(),
        }
    }

    fn job(&self) -> Vec<u8> {
        let mut job = Bytes::new(self.order);
        if self.minor < 41 {
            job.i64s(&[1000, START, START + 9, self.processes, 77]);
        } else {
            job.i64s(&[1000, START, 500, START + 9, 250, self.processes, 77]);
        }
        job.text(b"lib_ver=3.4.6\nh=romio_no_indep_rw=true\n", 1024);
        job.text(self.trailer.as_bytes(), 4096 - job.bytes.len());
        job.bytes
    }

    /// The file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let count = if self.minor < 41 { 16 } else { 64 };
        let header = if self.minor < 41 { 360 } else { 1328 };
        let mut body = self.pack(&self.job());
        let mut names = Bytes::new(self.order);
        for (id, name) in &self.names {
            names.u64(*id);
            if self.minor < 10 {
                names.u32(name.len() as u32);
                names.text(name.as_bytes(), name.len());
            } else {
                names.text(name.as_bytes(), name.len() + 1);
            }
        }
        let name_map = (header + body.len() as u64, self.pack(&names.bytes));
        body.extend(&name_map.1);
        let mut maps = vec![(0, 0, 0); count];
        let mut partial = 0u64;
        let number = |name: &str| (0..count).find(|number| name_of(*number, self.minor) == name).expect("a module");
        let mut modules = self.modules.clone();
        modules.sort_by_key(|(name, ..)| number(name));
        for (name, version, records, partly) in &modules {
            // As two processes would write it, without regard to records.
            let (first, second) = records.split_at(records.len() / 3);
            let packed = [self.pack(first), self.pack(second)].concat();
            maps[number(name)] = (header + body.len() as u64, packed.len() as u64, *version);
            partial |= u64::from(*partly) << number(name);
            body.extend(packed);
        }
        let mut file = Bytes::new(self.order);
        file.text(format!("3.{:02}", self.minor).as_bytes(), 8);
        file.u64(6_567_223);
        file.text(&[self.packing as u8], 4);
        if self.minor < 41 {
            file.u32(partial as u32);
        } else {
            file.u32(0);
            file.u64(partial);
        }
        file.u64(name_map.0);
        file.u64(name_map.1.len() as u64);
        for (offset, length, _) in &maps {
            file.u64(*offset);
            file.u64(*length);
        }
        maps.iter().for_each(|(_, _, version)| file.u32(*version));
        assert_eq!(file.bytes.len() as u64, header);
        file.bytes.extend(body);
        file.bytes
    }
}

/// Offset, length, start, end.
pub(super) type Segment = (i64, i64, f64, f64);
