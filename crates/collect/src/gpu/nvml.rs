//! NVIDIA's GPUs by its management library, which comes with the driver and is loaded at run time.
//!
//! Utilisation is the driver's own mean over its last sampling period (a sixth of a second to a second); energy is a counter, so its
//! difference is the interval's.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;

use super::DeviceSampler;
use crate::read::growth;
use crate::roots::Roots;
use crate::sample::{Fact, Interval, Sink, Subject, Value};

#[derive(Debug)]
struct Card {
    index: u32,
    /// `gpu0`.
    name: String,
    model: String,
    uuid: String,
    energy_mj: Option<u64>,
    /// The driver's stamp of the last per-process reading.
    seen_us: u64,
    described: bool,
}

/// All GPUs that the library knows.
#[derive(Debug)]
pub(super) struct Library {
    nvml: Nvml,
    cards: Vec<Card>,
}

impl Library {
    pub(super) fn load(roots: &Roots) -> Option<Library> {
        let nvml = match &roots.nvml {
            Some(path) => Nvml::builder().lib_path(path.as_os_str()).init().ok()?,
            // Packages for programs to run have the name with the version only.
            None => ["libnvidia-ml.so.1", "libnvidia-ml.so"]
                .into_iter()
                .find_map(|name| Nvml::builder().lib_path(name.as_ref()).init().ok())?,
        };
        let mut cards = Vec::new();
        for index in 0..nvml.device_count().ok()? {
            let Ok(device) = nvml.device_by_index(index) else { continue };
            cards.push(Card {
                index,
                name: format!("gpu{index}"),
                model: device.name().unwrap_or_default(),
                uuid: device.uuid().unwrap_or_default(),
                energy_mj: None,
                seen_us: 0,
                described: false,
            });
        }
        (!cards.is_empty()).then_some(Library { nvml, cards })
    }
}

impl DeviceSampler for Library {
    fn describe(&self) -> String {
        format!("{} NVIDIA GPU(s) by NVML", self.cards.len())
    }

    fn sample(&mut self, at: Interval, followed: &dyn Fn(u32) -> bool, sink: &mut dyn Sink) {
        for card in &mut self.cards {
            // A device may fall off the bus and come back.
            let Ok(device) = self.nvml.device_by_index(card.index) else { continue };
            if !card.described {
                card.described = true;
                let values = [("model", Fact::Text(&card.model)), ("uuid", Fact::Text(&card.uuid))];
                sink.metadata(Subject::Host, &card.name, at.end_ns, &values);
            }
            let mut values: Vec<(&'static str, Value)> = Vec::with_capacity(10);
            if let Ok(busy) = device.utilization_rates() {
                values.push(("busy_pct", Value::Float(f64::from(busy.gpu))));
                values.push(("memory_busy_pct", Value::Float(f64::from(busy.memory))));
            }
            if let Ok(memory) = device.memory_info() {
                values.push(("memory_used_bytes", Value::Unsigned(memory.used)));
                values.push(("memory_total_bytes", Value::Unsigned(memory.total)));
            }
            if let Ok(power) = device.power_usage() {
                values.push(("power_w", Value::Float(f64::from(power) / 1e3)));
            }
            if let Ok(energy) = device.total_energy_consumption() {
                if let Some(before) = card.energy_mj {
                    values.push(("energy_uj", Value::Unsigned(growth(energy, before).saturating_mul(1000))));
                }
                card.energy_mj = Some(energy);
            }
            if let Ok(degrees) = device.temperature(TemperatureSensor::Gpu) {
                values.push(("temperature_c", Value::Unsigned(u64::from(degrees))));
            }
            if let Ok(clock) = device.clock_info(Clock::SM) {
                values.push(("clock_mhz", Value::Unsigned(u64::from(clock))));
            }
            if !values.is_empty() {
                sink.counter(Subject::Host, "gpu", &card.name, at, &values);
            }

            // The newest reading of each process counts; the driver keeps several.
            let mut shares = device.process_utilization_stats(card.seen_us).unwrap_or_default();
            shares.sort_unstable_by_key(|share| (share.pid, std::cmp::Reverse(share.timestamp)));
            shares.dedup_by_key(|share| share.pid);
            card.seen_us = shares.iter().map(|share| share.timestamp).max().unwrap_or(card.seen_us);
            let mut users = device.running_compute_processes().unwrap_or_default();
            users.extend(device.running_graphics_processes().unwrap_or_default());
            let mut pids: Vec<u32> =
                users.iter().map(|user| user.pid).chain(shares.iter().map(|share| share.pid)).collect();
            pids.sort_unstable();
            pids.dedup();
            for pid in pids.into_iter().filter(|pid| followed(*pid)) {
                let mut values: Vec<(&'static str, Value)> = Vec::with_capacity(5);
                if let Some(share) = shares.iter().find(|share| share.pid == pid) {
                    values.push(("busy_pct", Value::Float(f64::from(share.sm_util))));
                    values.push(("memory_busy_pct", Value::Float(f64::from(share.mem_util))));
                    values.push(("encoder_pct", Value::Float(f64::from(share.enc_util))));
                    values.push(("decoder_pct", Value::Float(f64::from(share.dec_util))));
                }
                let used = users.iter().filter(|user| user.pid == pid).filter_map(|user| match user.used_gpu_memory {
                    UsedGpuMemory::Used(bytes) => Some(bytes),
                    UsedGpuMemory::Unavailable => None,
                });
                // One that computes and draws is in both lists, with the same amount.
                if let Some(bytes) = used.max() {
                    values.push(("memory_used_bytes", Value::Unsigned(bytes)));
                }
                if !values.is_empty() {
                    sink.counter(Subject::Process(pid), "gpu", &card.name, at, &values);
                }
            }
        }
    }
}
