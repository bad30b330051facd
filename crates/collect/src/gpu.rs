//! GPUs: NVIDIA's by its management library, or by `nvidia-smi` if the library cannot be loaded; AMD's by sysfs.
//!
//! No GPU is no error. Values that a device or driver does not provide are left out of its samples.

mod amd;
mod nvml;
mod smi;

use crate::roots::Roots;
use crate::sample::{Interval, Sink};

/// Samples one device, or all that one library knows.
pub trait DeviceSampler: std::fmt::Debug + Send {
    /// What it samples, for the line that a collector starts with.
    fn describe(&self) -> String;

    /// Emits the values of an interval. Per-process values are emitted for those processes alone for which `followed` says so.
    fn sample(&mut self, at: Interval, followed: &dyn Fn(u32) -> bool, sink: &mut dyn Sink);
}

/// Finds GPUs.
#[derive(Debug)]
pub struct GpuSampler;

impl GpuSampler {
    /// All that this machine has.
    pub fn detect(roots: &Roots) -> Vec<Box<dyn DeviceSampler>> {
        let mut found: Vec<Box<dyn DeviceSampler>> = Vec::new();
        if let Some(nvml) = nvml::Library::load(roots) {
            found.push(Box::new(nvml));
        } else if let Some(command) = smi::Command::start(roots) {
            found.push(Box::new(command));
        }
        for card in amd::cards(roots) {
            found.push(Box::new(card));
        }
        found
    }
}
