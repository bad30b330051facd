//! The curves of hosts and devices in a report.

use weftline_format::metrics::{Counters, Measure, Metric, group};
use weftline_index::Unit;

/// What is as high as a curve can get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// Nothing in particular.
    Unknown,
    /// Hundred percent.
    Percent,
    /// What another value of the same sample says.
    Key(&'static str),
}

/// A curve: a sum over values of one counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chart {
    /// What it is about, for scripts.
    pub(super) kind: &'static str,
    /// What it measures, for scripts.
    pub(super) metric: &'static str,
    /// What people read; `{}` is the device.
    pub(super) label: &'static str,
    pub(super) category: &'static str,
    pub(super) counters: Counters,
    /// The sum begins with this.
    pub(super) base: f64,
    /// And adds these values so many times. Without the first there is none.
    pub(super) terms: &'static [(&'static str, f64)],
    pub(super) full: Full,
    /// It is drawn even where nothing happened.
    pub(super) always: bool,
}

/// Values of one counter that charts and their full scales need, at most.
pub(super) const MOST_KEYS: usize = 12;

use Counters::{Any, Named};

const fn chart(kind: &'static str, metric: &'static str, label: &'static str, category: &'static str) -> Chart {
    Chart { kind, metric, label, category, counters: Any, base: 0.0, terms: &[], full: Full::Unknown, always: false }
}

/// In the order in which people see them.
pub(super) const CHARTS: &[Chart] = &[
    Chart {
        counters: Named("cpu"),
        base: 100.0,
        terms: &[("idle_pct", -1.0), ("iowait_pct", -1.0)],
        full: Full::Percent,
        always: true,
        ..chart("cpu", "busy", "CPU", "sys")
    },
    Chart {
        counters: Named("cpu"),
        terms: &[("iowait_pct", 1.0)],
        full: Full::Percent,
        ..chart("cpu", "iowait", "I/O wait", "sys")
    },
    Chart {
        counters: Named("cpu"),
        terms: &[("steal_pct", 1.0)],
        full: Full::Percent,
        ..chart("cpu", "steal", "CPU stolen", "sys")
    },
    Chart {
        counters: Named("memory"),
        terms: &[("MemAvailable", -1.0), ("MemTotal", 1.0)],
        full: Full::Key("MemTotal"),
        always: true,
        ..chart("memory", "used", "memory used", "sys")
    },
    Chart {
        counters: Named("memory"),
        terms: &[("Cached", 1.0)],
        full: Full::Key("MemTotal"),
        ..chart("memory", "cached", "page cache", "sys")
    },
    Chart {
        counters: Named("memory"),
        terms: &[("Dirty", 1.0), ("Writeback", 1.0)],
        ..chart("memory", "dirty", "not yet on disk", "sys")
    },
    Chart {
        counters: Named("swap"),
        terms: &[("used_kb", 1.0)],
        full: Full::Key("total_kb"),
        ..chart("memory", "swap", "swap used", "sys")
    },
    Chart { terms: &[("bytes_read", 1.0)], ..chart("disk", "read", "disk {} read", "io") },
    Chart { terms: &[("bytes_written", 1.0)], ..chart("disk", "written", "disk {} written", "io") },
    Chart { terms: &[("busy_pct", 1.0)], full: Full::Percent, ..chart("disk", "busy", "disk {} busy", "io") },
    Chart { terms: &[("bytes_recv", 1.0)], ..chart("network", "received", "net {} received", "net") },
    Chart { terms: &[("bytes_sent", 1.0)], ..chart("network", "sent", "net {} sent", "net") },
    Chart {
        counters: Named("pressure-cpu"),
        terms: &[("some_pct", 1.0)],
        full: Full::Percent,
        ..chart("pressure", "cpu", "CPU pressure", "sys")
    },
    Chart {
        counters: Named("pressure-memory"),
        terms: &[("some_pct", 1.0)],
        full: Full::Percent,
        ..chart("pressure", "memory", "memory pressure", "sys")
    },
    Chart {
        counters: Named("pressure-io"),
        terms: &[("some_pct", 1.0)],
        full: Full::Percent,
        ..chart("pressure", "io", "I/O pressure", "sys")
    },
    Chart { terms: &[("busy_pct", 1.0)], full: Full::Percent, always: true, ..chart("gpu", "busy", "{} busy", "gpu") },
    Chart {
        terms: &[("memory_used_bytes", 1.0)],
        full: Full::Key("memory_total_bytes"),
        always: true,
        ..chart("gpu", "memory", "{} memory", "gpu")
    },
    Chart { terms: &[("power_w", 1.0)], ..chart("gpu", "power", "{} power", "gpu") },
    Chart { terms: &[("energy_uj", 1.0)], ..chart("energy", "energy", "power {}", "energy") },
    Chart { terms: &[("power_w", 1.0)], ..chart("energy", "power", "power {}", "energy") },
];

/// Kinds in the order in which people see them.
const KINDS: [&str; 7] = ["cpu", "memory", "disk", "network", "pressure", "gpu", "energy"];

impl Chart {
    /// The place of its kind among all.
    pub(super) fn kind_order(&self) -> usize {
        KINDS.iter().position(|kind| *kind == self.kind).unwrap_or(KINDS.len())
    }

    /// A counter that it is made of.
    pub(super) fn counter(&self) -> &'static str {
        match self.counters {
            Named(name) | Counters::Starting(name) => name,
            Any => "",
        }
    }

    /// What the first of its values is, in samples that say which interval they describe or do not.
    pub(super) fn source(&self, timed: bool) -> Option<Metric> {
        let (key, _) = self.terms.first()?;
        group(self.category, self.counter())?.metric(key, timed)
    }
}

/// The unit in which values of a source are shown, and the factor to it: growth becomes a rate, kibibytes bytes.
pub(super) fn unit_of(source: Metric) -> (Unit, f64) {
    match (source.unit, source.measure) {
        (Unit::Bytes, Measure::Delta) => (Unit::BytesPerSecond, 1.0),
        (Unit::Kibibytes, Measure::Delta) => (Unit::BytesPerSecond, 1024.0),
        (Unit::Microjoules, Measure::Delta) => (Unit::Watts, 1e-6),
        // Nanoseconds of CPU time in a second.
        (Unit::Nanoseconds, Measure::Delta) => (Unit::Percent, 1e-7),
        (Unit::Count, Measure::Delta) => (Unit::PerSecond, 1.0),
        (Unit::Kibibytes, _) => (Unit::Bytes, 1024.0),
        (unit, _) => (unit, 1.0),
    }
}

/// The unit of all growth together, and what one of the source's is in it.
pub(super) fn summed(source: Metric) -> (Unit, f64) {
    match source.unit {
        Unit::Kibibytes => (Unit::Bytes, 1024.0),
        Unit::Microjoules => (Unit::Joules, 1e-6),
        unit => (unit, 1.0),
    }
}

/// `net-    lo`, as DFTracer's service calls it.
pub(super) fn device(category: &str, counter: &str) -> String {
    let counter = counter.trim();
    let device = match category.to_ascii_lowercase().as_str() {
        "net" => counter.strip_prefix("net-").unwrap_or(counter).trim(),
        "sys" => "",
        _ => counter,
    };
    device.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_has_a_unit() {
        for chart in CHARTS {
            let source = chart.source(true).unwrap_or_else(|| panic!("{} {}", chart.kind, chart.metric));
            for (key, _) in chart.terms {
                let group = group(chart.category, chart.counter());
                assert_eq!(
                    group.and_then(|group| group.metric(key, true)).map(|other| other.unit),
                    Some(source.unit),
                    "{key}"
                );
            }
            assert!(chart.terms.len() < MOST_KEYS);
            let names: Vec<_> =
                CHARTS.iter().filter(|other| (other.kind, other.metric) == (chart.kind, chart.metric)).collect();
            assert_eq!(names.len(), 1, "{} {}", chart.kind, chart.metric);
        }
    }
}
