//! The table of sampled values: category, name, key, unit and kind. `weft collect` writes counters from this table; reports, SQL and
//! Python look up here what a value measures. A test of `collect` checks its samplers against the table.

use crate::unit::Unit;

use Counters::{Any, Named, Starting};
use Unit::{Bytes, Celsius, Count, Kibibytes, Megahertz, Microjoules, Nanoseconds, Number, Percent, Watts};

/// How a value relates to the interval that its sample describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// It held at the end of the interval.
    Gauge,
    /// It was the mean of the interval.
    Mean,
    /// It grew by this much in the interval.
    Delta,
    /// It is the sum since the beginning, told at the end.
    Total,
}

impl Measure {
    /// Its name, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Gauge => "gauge",
            Measure::Mean => "mean",
            Measure::Delta => "delta",
            Measure::Total => "total",
        }
    }
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The key among the arguments of the sample; empty for all keys.
    pub key: &'static str,
    /// What it measures.
    pub unit: Unit,
    /// How it relates to the interval.
    pub measure: Measure,
}

/// Which counters of a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// All: they are named by device, interface, path.
    Any,
    /// The one of this name.
    Named(&'static str),
    /// Those whose names begin so.
    Starting(&'static str),
}

impl Counters {
    /// Whether a counter is meant.
    pub fn hold(self, name: &str) -> bool {
        match self {
            Any => true,
            Named(wanted) => name == wanted,
            Starting(start) => name.starts_with(start),
        }
    }
}

/// Metrics of some counters.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Their category.
    pub category: &'static str,
    /// Which of it.
    pub counters: Counters,
    /// What they tell.
    pub metrics: &'static [Metric],
}

const fn gauge(key: &'static str, unit: Unit) -> Metric {
    Metric { key, unit, measure: Measure::Gauge }
}

const fn mean(key: &'static str, unit: Unit) -> Metric {
    Metric { key, unit, measure: Measure::Mean }
}

const fn delta(key: &'static str, unit: Unit) -> Metric {
    Metric { key, unit, measure: Measure::Delta }
}

const fn total(key: &'static str, unit: Unit) -> Metric {
    Metric { key, unit, measure: Measure::Total }
}

/// The categories of samples of a host, among them those of DFTracer's service.
pub const HOST_CATEGORIES: [&str; 7] = ["sys", "io", "net", "fs", "cgroup", "gpu", "energy"];

/// The category of samples of processes. Those of GPUs by process are `gpu` as well.
pub const PROCESS_CATEGORY: &str = "process";

const SHARES: &[Metric] = &[
    mean("user_pct", Percent),
    mean("nice_pct", Percent),
    mean("system_pct", Percent),
    mean("idle_pct", Percent),
    mean("iowait_pct", Percent),
    mean("irq_pct", Percent),
    mean("softirq_pct", Percent),
    mean("steal_pct", Percent),
    // DFTracer's service has these two besides.
    mean("guest_pct", Percent),
    mean("guest_nice_pct", Percent),
];

/// All of them. The first group that holds a counter has its metrics.
pub const GROUPS: &[Group] = &[
    Group { category: "sys", counters: Named("cpu"), metrics: SHARES },
    Group { category: "sys", counters: Starting("cpu-"), metrics: SHARES },
    Group {
        category: "sys",
        counters: Named("kernel"),
        metrics: &[
            delta("interrupts", Count),
            delta("context_switches", Count),
            delta("forks", Count),
            gauge("running", Count),
            gauge("blocked", Count),
        ],
    },
    Group {
        category: "sys",
        counters: Named("load"),
        metrics: &[gauge("load1", Number), gauge("load5", Number), gauge("load15", Number), gauge("tasks", Count)],
    },
    Group {
        category: "sys",
        counters: Named("memory"),
        metrics: &[
            gauge("HugePages_Total", Count),
            gauge("HugePages_Free", Count),
            gauge("HugePages_Rsvd", Count),
            gauge("HugePages_Surp", Count),
            gauge("", Kibibytes),
        ],
    },
    Group {
        category: "sys",
        counters: Named("swap"),
        metrics: &[gauge("total_kb", Kibibytes), gauge("used_kb", Kibibytes), gauge("cached_kb", Kibibytes)],
    },
    Group {
        category: "sys",
        counters: Named("paging"),
        metrics: &[
            delta("paged_in_kb", Kibibytes),
            delta("paged_out_kb", Kibibytes),
            delta("swapped_in", Count),
            delta("swapped_out", Count),
            delta("faults", Count),
            delta("major_faults", Count),
            delta("oom_kills", Count),
        ],
    },
    Group {
        category: "sys",
        counters: Starting("pressure-"),
        metrics: &[
            delta("some_ns", Nanoseconds),
            mean("some_pct", Percent),
            delta("full_ns", Nanoseconds),
            mean("full_pct", Percent),
        ],
    },
    Group {
        category: "io",
        counters: Any,
        metrics: &[
            delta("reads_completed", Count),
            delta("reads_merged", Count),
            delta("bytes_read", Bytes),
            delta("read_ns", Nanoseconds),
            delta("writes_completed", Count),
            delta("writes_merged", Count),
            delta("bytes_written", Bytes),
            delta("write_ns", Nanoseconds),
            gauge("ios_in_progress", Count),
            delta("busy_ns", Nanoseconds),
            mean("busy_pct", Percent),
            mean("queue", Number),
            delta("discards_completed", Count),
            delta("bytes_discarded", Bytes),
            delta("flushes_completed", Count),
            delta("flush_ns", Nanoseconds),
        ],
    },
    Group {
        category: "net",
        counters: Any,
        metrics: &[
            delta("bytes_recv", Bytes),
            delta("packets_recv", Count),
            delta("rx_errors", Count),
            delta("rx_dropped", Count),
            delta("multicast_recv", Count),
            delta("bytes_sent", Bytes),
            delta("packets_sent", Count),
            delta("tx_errors", Count),
            delta("tx_dropped", Count),
            delta("collisions", Count),
        ],
    },
    Group {
        category: "fs",
        counters: Any,
        metrics: &[
            gauge("total_bytes", Bytes),
            gauge("used_bytes", Bytes),
            gauge("available_bytes", Bytes),
            gauge("used_pct", Percent),
            gauge("files", Count),
            gauge("files_free", Count),
        ],
    },
    Group {
        category: "cgroup",
        counters: Any,
        metrics: &[
            delta("cpu_ns", Nanoseconds),
            mean("cpu_pct", Percent),
            delta("user_ns", Nanoseconds),
            delta("system_ns", Nanoseconds),
            delta("periods", Count),
            delta("throttled_periods", Count),
            delta("throttled_ns", Nanoseconds),
            delta("oom_kills", Count),
            delta("read_bytes", Bytes),
            delta("write_bytes", Bytes),
            delta("read_operations", Count),
            delta("write_operations", Count),
            delta("cpu_stall_ns", Nanoseconds),
            delta("memory_stall_ns", Nanoseconds),
            delta("io_stall_ns", Nanoseconds),
            gauge("memory_bytes", Bytes),
            gauge("memory_limit_bytes", Bytes),
            gauge("memory_peak_bytes", Bytes),
            gauge("anonymous_bytes", Bytes),
            gauge("file_bytes", Bytes),
            gauge("swap_bytes", Bytes),
            gauge("tasks", Count),
            gauge("cpu_limit", Number),
        ],
    },
    Group {
        category: "gpu",
        counters: Any,
        metrics: &[
            mean("busy_pct", Percent),
            mean("memory_busy_pct", Percent),
            mean("encoder_pct", Percent),
            mean("decoder_pct", Percent),
            gauge("memory_used_bytes", Bytes),
            gauge("memory_total_bytes", Bytes),
            gauge("power_w", Watts),
            delta("energy_uj", Microjoules),
            gauge("temperature_c", Celsius),
            gauge("clock_mhz", Megahertz),
        ],
    },
    Group { category: "energy", counters: Any, metrics: &[delta("energy_uj", Microjoules), mean("power_w", Watts)] },
    Group {
        category: PROCESS_CATEGORY,
        counters: Named("process"),
        metrics: &[
            delta("cpu_ns", Nanoseconds),
            mean("cpu_pct", Percent),
            delta("user_ns", Nanoseconds),
            delta("system_ns", Nanoseconds),
            delta("minor_faults", Count),
            delta("major_faults", Count),
            delta("read_chars", Bytes),
            delta("write_chars", Bytes),
            delta("read_calls", Count),
            delta("write_calls", Count),
            delta("read_bytes", Bytes),
            delta("write_bytes", Bytes),
            delta("cancelled_write_bytes", Bytes),
            gauge("rss_bytes", Bytes),
            gauge("virtual_bytes", Bytes),
            gauge("threads", Count),
            gauge("running", Count),
            gauge("blocked", Count),
            gauge("stopped", Count),
        ],
    },
    Group {
        category: PROCESS_CATEGORY,
        counters: Named("detail"),
        metrics: &[
            delta("voluntary_switches", Count),
            delta("involuntary_switches", Count),
            gauge("pss_bytes", Bytes),
            gauge("swap_bytes", Bytes),
            gauge("open_files", Count),
        ],
    },
    Group {
        category: PROCESS_CATEGORY,
        counters: Named("end"),
        metrics: &[
            total("unseen_ns", Nanoseconds),
            total("bytes_unseen_ns", Nanoseconds),
            total("total_cpu_ns", Nanoseconds),
            total("total_read_chars", Bytes),
            total("total_write_chars", Bytes),
        ],
    },
];

/// The group of a counter; categories are compared as DFTracer writes them too, in any case.
pub fn group(category: &str, counter: &str) -> Option<&'static Group> {
    let counter = counter.trim();
    GROUPS.iter().find(|group| group.category.eq_ignore_ascii_case(category) && group.counters.hold(counter))
}

impl Group {
    /// What one of its values is; nothing for one that nobody has described. `timed`: whether the sample says which interval it describes, as
    /// all of ours do. DFTracer's does not, and tells memory in percent of the whole but for what is available.
    pub fn metric(&self, key: &str, timed: bool) -> Option<Metric> {
        let found = self.metrics.iter().find(|metric| metric.key == key || metric.key.is_empty()).copied();
        found.map(|metric| match metric.unit {
            Kibibytes if !timed && key != "MemAvailable" => Metric { unit: Percent, ..metric },
            _ => metric,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(category: &str, counter: &str, key: &str, expected: Option<(Unit, Measure)>) {
        let found = group(category, counter).and_then(|group| group.metric(key, true));
        assert_eq!(found.map(|metric| (metric.unit, metric.measure)), expected, "{category} {counter} {key}");
    }

    #[test]
    fn values_have_units() {
        check("sys", "cpu-11", "idle_pct", Some((Percent, Measure::Mean)));
        check("SYS", "memory", "Dirty", Some((Kibibytes, Measure::Gauge)));
        check("sys", "memory", "HugePages_Free", Some((Count, Measure::Gauge)));
        check("net", "net-    lo", "bytes_sent", Some((Bytes, Measure::Delta)));
        check("process", "process", "cpu_ns", Some((Nanoseconds, Measure::Delta)));
        check("process", "process", "state", None);
        check("sys", "uptime", "seconds", None);
        check("mine", "loss", "value", None);
        let theirs = |key| group("sys", "memory").and_then(|group| group.metric(key, false)).map(|metric| metric.unit);
        assert_eq!((theirs("Cached"), theirs("MemAvailable")), (Some(Percent), Some(Kibibytes)));
    }

    #[test]
    fn no_value_is_described_twice() {
        for group in GROUPS {
            for (place, metric) in group.metrics.iter().enumerate() {
                assert!(
                    group.metrics[..place].iter().all(|other| other.key != metric.key),
                    "{} {}",
                    group.category,
                    metric.key
                );
            }
        }
    }
}
