//! Energy: RAPL meters of powercap, meters and power sensors of hwmon, and `energy_uj` files as Scaphandre gives them to virtual machines.
//!
//! A meter counts microjoules and wraps at its `max_energy_range_uj`; within an interval it does so at most once (a socket of 500 W
//! with the usual range of 262 kJ wraps every nine minutes). Since Linux 5.10 only root may read RAPL: others get no meters, and no error.

use std::path::Path;

use crate::read::{Kept, growth, names, number, text};
use crate::roots::Roots;
use crate::sample::{Interval, Sink, Subject, Value};

/// How deep below a directory of [`Roots::energy`] files are looked for: a machine's directory, a domain's, a part's.
const DEEPEST: usize = 3;

#[derive(Debug)]
enum MeterKind {
    /// Microjoules, up to a range.
    Energy { range: Option<u64>, before: Option<u64> },
    /// Microwatts at this moment.
    Power,
}

#[derive(Debug)]
struct Meter {
    name: String,
    file: Kept,
    kind: MeterKind,
}

/// Samples energy meters.
#[derive(Debug)]
pub struct EnergySampler {
    meters: Vec<Meter>,
    refused: usize,
    buffer: Vec<u8>,
}

impl EnergySampler {
    /// Opens the meters that this machine has and that we may read.
    pub fn new(roots: &Roots) -> EnergySampler {
        let mut sampler = EnergySampler { meters: Vec::new(), refused: 0, buffer: Vec::new() };
        let powercap = roots.sys.join("class/powercap");
        for zone in names(&powercap) {
            let directory = powercap.join(&zone);
            // `intel-rapl-mmio` shows the package a second time.
            if zone.starts_with("intel-rapl-mmio") {
                continue;
            }
            let label = text(directory.join("name")).unwrap_or_default();
            sampler.energy(&directory, "energy_uj", named("rapl", &zone, &label));
        }
        sampler.sensors(&roots.sys.join("class/hwmon"));
        for root in &roots.energy {
            sampler.below(root, root, DEEPEST);
        }
        sampler
    }

    /// Whether there is no meter.
    pub fn is_empty(&self) -> bool {
        self.meters.is_empty()
    }

    /// How many meters there are that we may not read.
    pub fn refused(&self) -> usize {
        self.refused
    }

    fn add(&mut self, path: &Path, name: String, kind: MeterKind) {
        match Kept::open(path) {
            Ok(file) => self.meters.push(Meter { name, file, kind }),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => self.refused += 1,
            Err(_) => {}
        }
    }

    fn energy(&mut self, directory: &Path, file: &str, name: String) {
        let range = text(directory.join("max_energy_range_uj")).and_then(|text| number(text.as_bytes()));
        let kind = MeterKind::Energy { range: range.filter(|range| *range > 0), before: None };
        self.add(&directory.join(file), name, kind);
    }

    fn sensors(&mut self, class: &Path) {
        for chip in names(class) {
            let directory = class.join(&chip);
            let label = text(directory.join("name")).unwrap_or_default();
            // `gpu` samples these.
            if label == "amdgpu" {
                continue;
            }
            for file in names(&directory) {
                let sensor = file.strip_suffix("_input").or_else(|| file.strip_suffix("_average"));
                let Some(sensor) = sensor else { continue };
                let sensor_label = text(directory.join(format!("{sensor}_label"))).unwrap_or_else(|| sensor.to_owned());
                let name = named("hwmon", &chip, &format!("{label}-{sensor_label}"));
                if sensor.starts_with("energy") {
                    self.add(&directory.join(&file), name, MeterKind::Energy { range: None, before: None });
                } else if sensor.starts_with("power") {
                    self.add(&directory.join(&file), name, MeterKind::Power);
                }
            }
        }
    }

    fn below(&mut self, root: &Path, directory: &Path, depth: usize) {
        let below_root = directory.strip_prefix(root).unwrap_or(directory).to_string_lossy().into_owned();
        for entry in names(directory) {
            if entry == "energy_uj" {
                let label = text(directory.join("name")).unwrap_or_default();
                self.energy(directory, &entry, named("scaphandre", &below_root, &label));
            } else if depth > 0 && directory.join(&entry).is_dir() {
                self.below(root, &directory.join(&entry), depth - 1);
            }
        }
    }

    /// Emits what was used in an interval; of energy nothing at the first call.
    pub fn sample(&mut self, at: Interval, sink: &mut dyn Sink) {
        for meter in &mut self.meters {
            let Ok(bytes) = meter.file.read_record(&mut self.buffer) else { continue };
            let Some(now) = number(bytes.trim_ascii()) else { continue };
            match &mut meter.kind {
                MeterKind::Power => {
                    let values = [("power_w", Value::Float(now as f64 / 1e6))];
                    sink.counter(Subject::Host, "energy", &meter.name, at, &values);
                }
                MeterKind::Energy { range, before } => {
                    if let Some(before) = *before {
                        let used = used(now, before, *range);
                        let mut values = [("energy_uj", Value::Unsigned(used)), ("power_w", Value::Float(0.0))];
                        let mut known = 1;
                        if at.length_ns() > 0 {
                            values[1].1 = Value::Float(used as f64 * 1e3 / at.length_ns() as f64);
                            known = 2;
                        }
                        sink.counter(Subject::Host, "energy", &meter.name, at, &values[..known]);
                    }
                    *before = Some(now);
                }
            }
        }
    }
}

/// What a meter counted. One that went backwards has started again: behind its range where that is known. A file that was reset looks
/// the same; it is taken for a reset when the range would mean that more than half of it was used.
fn used(now: u64, before: u64, range: Option<u64>) -> u64 {
    if now >= before {
        return growth(now, before);
    }
    match range {
        Some(range) if before <= range => {
            let around = (range - before).saturating_add(now);
            if around <= range / 2 { around } else { 0 }
        }
        _ => growth(now, before),
    }
}

/// `rapl:intel-rapl:0 package-0`, without what is empty.
fn named(source: &str, place: &str, label: &str) -> String {
    let mut name = source.to_owned();
    if !place.is_empty() {
        name.push(':');
        name.push_str(place);
    }
    if !label.is_empty() {
        name.push(' ');
        name.push_str(label);
    }
    name
}
