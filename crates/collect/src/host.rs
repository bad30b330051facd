//! The machine: processors, load, memory, pressure, disks, network, file systems.
//!
//! Each part reads its own files independently; [`HostSampler`] calls them in turn. Kernel counters count since
//! boot; samples hold their growth in the interval, so the first reading of a part yields no counters.

mod cpu;
mod disk;
mod filesystem;
mod load;
mod memory;
mod network;
pub(crate) mod pressure;

use crate::read::Kept;
use crate::roots::Roots;
use crate::sample::{Interval, Sink};

use cpu::Processors;
use disk::Disks;
use filesystem::FileSystems;
use load::Load;
use memory::Memory;
use network::Network;
use pressure::Pressure;

/// Samples what belongs to no process.
#[derive(Debug)]
pub struct HostSampler {
    buffer: Vec<u8>,
    absent: Vec<String>,
    processors: Option<Processors>,
    load: Option<Load>,
    memory: Memory,
    pressure: Vec<Pressure>,
    disks: Option<Disks>,
    network: Option<Network>,
    file_systems: Option<FileSystems>,
}

impl HostSampler {
    /// Opens what exists.
    pub fn new(roots: &Roots) -> HostSampler {
        let mut absent = Vec::new();
        let mut open = |path: &str| {
            let path = roots.proc.join(path);
            Kept::open(&path).inspect_err(|_| absent.push(path.display().to_string())).ok()
        };
        let mut pressure = Vec::new();
        for (file, name) in [("cpu", "pressure-cpu"), ("memory", "pressure-memory"), ("io", "pressure-io")] {
            pressure.extend(open(&format!("pressure/{file}")).map(|file| Pressure::new(file, name)));
        }
        let processors = open("stat").map(Processors::new);
        let load = open("loadavg").map(Load::new);
        let memory = Memory::new(open("meminfo"), open("vmstat"));
        let disks = open("diskstats").map(|file| Disks::new(file, roots));
        let network = open("net/dev").map(Network::new);
        let file_systems = open("self/mountinfo").map(FileSystems::new);
        HostSampler { buffer: Vec::new(), absent, processors, load, memory, pressure, disks, network, file_systems }
    }

    /// Files that this machine does not have; nothing is emitted of what would be in them.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    /// Emits the values of an interval; rates only from the second call on. A file that cannot be read is passed over this time.
    pub fn sample(&mut self, at: Interval, sink: &mut dyn Sink) {
        let buffer = &mut self.buffer;
        if let Some(processors) = &mut self.processors {
            processors.sample(at, buffer, sink);
        }
        if let Some(load) = &mut self.load {
            load.sample(at, buffer, sink);
        }
        self.memory.sample(at, buffer, sink);
        for pressure in &mut self.pressure {
            pressure.sample(at, buffer, sink);
        }
        if let Some(disks) = &mut self.disks {
            disks.sample(at, buffer, sink);
        }
        if let Some(network) = &mut self.network {
            network.sample(at, buffer, sink);
        }
        if let Some(file_systems) = &mut self.file_systems {
            file_systems.sample(at, buffer, sink);
        }
    }
}
