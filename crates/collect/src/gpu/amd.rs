//! AMD's GPUs by the files of their driver in sysfs.

use std::path::Path;

use super::DeviceSampler;
use crate::read::{Kept, growth, names, number, text};
use crate::roots::Roots;
use crate::sample::{Fact, Interval, Sink, Subject, Value};

const VENDOR: &str = "0x1002";

/// A file, the value that it holds, and what one of its units is worth.
const DEVICE: [(&str, &str, f64); 4] = [
    ("gpu_busy_percent", "busy_pct", 1.0),
    ("mem_busy_percent", "memory_busy_pct", 1.0),
    ("mem_info_vram_used", "memory_used_bytes", 1.0),
    ("mem_info_vram_total", "memory_total_bytes", 1.0),
];
/// Older cards tell the mean power, newer ones the instantaneous one: the first that exists is taken.
const SENSORS: [(&str, &str, f64); 4] = [
    ("power1_average", "power_w", 1e-6),
    ("power1_input", "power_w", 1e-6),
    ("temp1_input", "temperature_c", 1e-3),
    ("freq1_input", "clock_mhz", 1e-6),
];

#[derive(Debug)]
struct Meter {
    file: Kept,
    value: &'static str,
    unit: f64,
}

/// One card.
#[derive(Debug)]
pub(super) struct Card {
    name: String,
    model: String,
    meters: Vec<Meter>,
    energy: Option<Kept>,
    energy_uj: Option<u64>,
    buffer: Vec<u8>,
    described: bool,
}

/// The cards of this machine. They are numbered by the kernel, together with those of other makers: `card1`.
pub(super) fn cards(roots: &Roots) -> Vec<Card> {
    let class = roots.sys.join("class/drm");
    let is_card = |name: &String| name.strip_prefix("card").is_some_and(|rest| number(rest.as_bytes()).is_some());
    let found = names(&class).into_iter().filter(is_card);
    found.filter_map(|name| card(&class.join(&name).join("device"), name)).collect()
}

fn card(device: &Path, name: String) -> Option<Card> {
    if text(device.join("vendor"))? != VENDOR {
        return None;
    }
    let mut meters: Vec<Meter> = Vec::new();
    let mut energy = None;
    let mut add = |directory: &Path, table: &[(&str, &'static str, f64)]| {
        for (file, value, unit) in table {
            if meters.iter().all(|meter| meter.value != *value)
                && let Ok(file) = Kept::open(directory.join(file))
            {
                meters.push(Meter { file, value, unit: *unit });
            }
        }
    };
    add(device, &DEVICE);
    for sensors in names(device.join("hwmon")) {
        let sensors = device.join("hwmon").join(sensors);
        add(&sensors, &SENSORS);
        energy = energy.or_else(|| Kept::open(sensors.join("energy1_input")).ok());
    }
    let model = text(device.join("product_name")).or_else(|| text(device.join("device"))).unwrap_or_default();
    let useful = !meters.is_empty() || energy.is_some();
    useful.then(|| Card { name, model, meters, energy, energy_uj: None, buffer: Vec::new(), described: false })
}

impl DeviceSampler for Card {
    fn describe(&self) -> String {
        format!("AMD GPU {} by sysfs", self.name)
    }

    fn sample(&mut self, at: Interval, _followed: &dyn Fn(u32) -> bool, sink: &mut dyn Sink) {
        if !self.described {
            self.described = true;
            sink.metadata(Subject::Host, &self.name, at.end_ns, &[("model", Fact::Text(&self.model))]);
        }
        let mut values: Vec<(&'static str, Value)> = Vec::with_capacity(8);
        let mut read = |file: &Kept| {
            let bytes = file.read_record(&mut self.buffer).ok()?;
            number(bytes.trim_ascii())
        };
        for meter in &self.meters {
            let Some(raw) = read(&meter.file) else { continue };
            let value = if meter.value.ends_with("_bytes") {
                Value::Unsigned(raw)
            } else {
                Value::Float(raw as f64 * meter.unit)
            };
            values.push((meter.value, value));
        }
        if let Some(now) = self.energy.as_ref().and_then(&mut read) {
            if let Some(before) = self.energy_uj {
                values.push(("energy_uj", Value::Unsigned(growth(now, before))));
            }
            self.energy_uj = Some(now);
        }
        if !values.is_empty() {
            sink.counter(Subject::Host, "gpu", &self.name, at, &values);
        }
    }
}
