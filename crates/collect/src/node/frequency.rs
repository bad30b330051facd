//! The frequency of a processor, also in virtual machines.
//!
//! Capacity calculations need the nominal frequency, not a core's current one and not its short-term maximum.
//! Most virtual machines have no cpufreq, and `lscpu` then shows no "max MHz" at all. Sources, the best first:
//!
//! | source | frequency |
//! |---|---|
//! | `base_frequency` of cpufreq | nominal (Intel) |
//! | `nominal_freq` of ACPI's CPPC | nominal (AMD, Arm) |
//! | `@ 2.40GHz` in the model's name | nominal; host's own in a virtual machine too |
//! | `cpu MHz` of `/proc/cpuinfo`, without cpufreq | in a virtual machine that of the time stamp counter, which is nominal |
//! | `cpuinfo_max_freq` of cpufreq | the highest, where nothing tells the nominal one |
//! | `clock-frequency` of the device tree | Arm, RISC-V |
//! | half of `bogomips` | x86: calibrated by the time stamp counter |

use serde::Serialize;

use crate::read::{number, text};
use crate::roots::Roots;

/// A frequency and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Frequency {
    /// In hertz.
    pub hz: u64,
    /// `cpufreq base`, `cppc`, `model name`, `cpuinfo`, `cpufreq max`, `device tree`, `bogomips`.
    pub source: &'static str,
}

pub(super) fn find(roots: &Roots, info: &str) -> Option<Frequency> {
    let cpu = roots.sys.join("devices/system/cpu/cpu0");
    let file = |name: &str| text(cpu.join(name)).and_then(|text| number(text.as_bytes()));
    let kilohertz = |name: &str| file(name).and_then(|value| value.checked_mul(1000));
    let has_cpufreq = cpu.join("cpufreq").exists();
    let from_info = |key: &str| super::value(info, key).and_then(|value| hertz(value, 1_000_000));
    let candidates = [
        ("cpufreq base", kilohertz("cpufreq/base_frequency")),
        ("cppc", file("acpi_cppc/nominal_freq").and_then(|megahertz| megahertz.checked_mul(1_000_000))),
        ("model name", super::value(info, "model name").and_then(from_name)),
        ("cpuinfo", if has_cpufreq { None } else { from_info("cpu MHz") }),
        ("cpufreq max", kilohertz("cpufreq/cpuinfo_max_freq")),
        ("device tree", device_tree(roots)),
        ("bogomips", if cfg!(target_arch = "x86_64") { from_info("bogomips").map(|twice| twice / 2) } else { None }),
    ];
    let plausible = |hz: &u64| (10_000_000..100_000_000_000).contains(hz);
    candidates.into_iter().find_map(|(source, hz)| Some(Frequency { hz: hz.filter(plausible)?, source }))
}

/// `Intel(R) Xeon(R) CPU E5-2673 v3 @ 2.40GHz`.
fn from_name(name: &str) -> Option<u64> {
    let (_, tail) = name.rsplit_once('@')?;
    let tail = tail.trim();
    match (tail.strip_suffix("GHz"), tail.strip_suffix("MHz")) {
        (Some(number), _) => hertz(number, 1_000_000_000),
        (_, Some(number)) => hertz(number, 1_000_000),
        _ => None,
    }
}

/// A decimal fraction of a unit, exactly.
fn hertz(word: &str, unit: u64) -> Option<u64> {
    let word = word.trim();
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    let mut hz = number(whole.as_bytes())?.checked_mul(unit)?;
    let mut digit_worth = unit / 10;
    for digit in part.bytes() {
        hz = hz.checked_add(number(&[digit])?.checked_mul(digit_worth)?)?;
        digit_worth /= 10;
    }
    Some(hz)
}

/// Big-endian, of four or eight bytes.
fn device_tree(roots: &Roots) -> Option<u64> {
    let cpus = roots.proc.join("device-tree/cpus");
    let first = crate::read::names(&cpus).into_iter().find(|name| name.starts_with("cpu@"))?;
    let bytes = std::fs::read(cpus.join(first).join("clock-frequency")).ok()?;
    match bytes.len() {
        4 => Some(u64::from(u32::from_be_bytes(bytes.try_into().ok()?))),
        8 => Some(u64::from_be_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models() {
        for (name, expected) in [
            ("Intel(R) Xeon(R) CPU E5-2673 v3 @ 2.40GHz", Some(2_400_000_000)),
            ("Intel(R) Pentium(R) III CPU @ 866MHz", Some(866_000_000)),
            ("Intel Xeon Processor (Cascadelake) @ 3.0 GHz", Some(3_000_000_000)),
            ("AMD EPYC 7763 64-Core Processor", None),
            ("QEMU Virtual CPU version 2.5+", None),
            ("odd @ xGHz", None),
            ("odd @", None),
        ] {
            assert_eq!(from_name(name), expected, "{name}");
        }
    }

    #[test]
    fn fractions_are_exact() {
        for (word, expected) in [
            ("2445.434", Some(2_445_434_000)),
            ("2399", Some(2_399_000_000)),
            ("0.0000001", Some(0)),
            ("1.x", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(hertz(word, 1_000_000), expected, "{word}");
        }
    }
}
