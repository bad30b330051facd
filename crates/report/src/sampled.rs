//! The sections made from samples: usage of hosts, devices and programs over time, and, for a run of samples only, what was sampled.

use serde_json::json;
use weftline_analysis::Table;
use weftline_analysis::coverage;
use weftline_analysis::samples::{ProgramSamples, Samples, Series};
use weftline_analysis::summary::Summary;
use weftline_analysis::table::{Curve, clamp};
use weftline_analysis::units::{Unit, bytes, count, counted, number, percent, printable, time};
use weftline_format::manifest::SampleRecord;
use weftline_index::Run;

use crate::{Property, Report, Section, Shape};

/// Programs that a terminal shows.
const PROGRAMS: usize = 10;
/// Devices of a kind that a terminal shows, the busiest.
const DEVICES: usize = 4;
/// Curves of all hosts that a terminal shows, if that leaves each a few.
const CURVES: usize = 48;
/// Curves of a host that a terminal shows at least.
const FEWEST: usize = 3;
/// Hosts that a terminal shows.
const HOSTS: usize = 12;
/// Idle things that are named.
const NAMED: usize = 6;

/// Adds what samples tell. A report of nothing but samples says what was sampled instead of a verdict.
pub fn add(report: &mut Report, run: &Run, summary: &Summary, samples: &Samples) {
    if samples.samples == 0 {
        return;
    }
    let records = coverage::records(run);
    let collectors: Vec<&SampleRecord> =
        records.iter().flatten().filter_map(|record| record.samples.as_ref()).collect();
    let property = property(samples, &collectors);
    let job = &summary.job;
    if job.events == 0 && job.total_calls == 0 && report.headline.is_none() {
        report.headline = Some(headline(samples));
        // Findings that remain are about the collection, such as ends that nobody saw.
        report.checked = report.findings.len();
        report.skipped.clear();
        for property in &mut report.properties {
            match property.name {
                // There was no program with time and processes to show.
                "time_ns" | "processes" => property.shown.clear(),
                "traces" => {
                    property.shown =
                        property.shown.replacen("0 spans", &counted(samples.samples, "sample", "samples"), 1);
                }
                _ => {}
            }
        }
        report.properties.insert(0, property);
    } else {
        let behind = report
            .properties
            .iter()
            .position(|property| property.name == "traces")
            .map_or(report.properties.len(), |at| at + 1);
        report.properties.insert(behind, property);
    }
    let behind = report.sections.iter().position(|section| section.key == "timeline").map(|at| at + 1);
    let behind = behind.unwrap_or(report.sections.len());
    report.sections.splice(behind..behind, [hosts(samples, job.origin), programs(samples)]);
}

/// How long was sampled.
fn length(samples: &Samples) -> u64 {
    samples.range.map_or(0, |(first, last)| clamp(last.saturating_sub(first)).max(0) as u64)
}

/// `vm`, `3 hosts`
fn whom(samples: &Samples) -> String {
    match samples.hosts.as_slice() {
        [host] => printable(host),
        hosts => counted(hosts.len() as u64, "host", "hosts"),
    }
}

/// What was sampled, for how long, how often; and what is missing.
fn property(samples: &Samples, collectors: &[&SampleRecord]) -> Property {
    let processes = match samples.processes {
        0 => String::new(),
        processes => format!(" and {}", counted(processes, "process", "processes")),
    };
    let of_hosts = if samples.series.is_empty() {
        format!("{} on {}", counted(samples.processes, "process", "processes"), whom(samples))
    } else {
        format!("{}{processes}", whom(samples))
    };
    let mut intervals: Vec<u64> = collectors.iter().map(|record| record.interval_ns).collect();
    intervals.sort_unstable();
    intervals.dedup();
    let every: Vec<String> = intervals.iter().filter(|ns| **ns > 0).map(|ns| time(*ns)).collect();
    let every = if every.is_empty() { String::new() } else { format!(", every {}", every.join(" or ")) };
    let mut shown =
        format!("{of_hosts} for {}{every}; {}", time(length(samples)), counted(samples.samples, "sample", "samples"));
    let sum = |of: fn(&SampleRecord) -> u64| collectors.iter().map(|record| of(record)).fold(0, u64::saturating_add);
    let lost = sum(|record| record.lost.values().fold(0, |sum, lost| sum.saturating_add(*lost)));
    let (unseen, unseen_ns) = (sum(|record| record.unseen_ends), sum(|record| record.unseen_ns));
    let outside = sum(|record| record.not_followed);
    if outside > 0 {
        let processes = counted(outside, "process", "processes");
        shown.push_str(&format!("; {processes} not followed: too many open files"));
    }
    if lost > 0 {
        shown.push_str(&format!("; {} lost", counted(lost, "sample", "samples")));
    }
    let value = json!({
        "samples": samples.samples, "hosts": samples.hosts, "processes": samples.processes, "time_ns": length(samples),
        "from_ns": samples.range.map(|(first, _)| first), "to_ns": samples.range.map(|(_, last)| last), "interval_ns": intervals,
        "lost": lost, "unseen_ends": unseen, "unseen_ns": unseen_ns, "not_followed": outside,
    });
    Property { name: "samples", label: "sampled", value, shown, alarming: lost > 0 || outside > 0 }
}

/// The first sentence of a report of nothing but samples. It judges nothing.
fn headline(samples: &Samples) -> String {
    let mut words = Vec::new();
    let of = |kind: &str, metric: &str| {
        let found = samples.series.iter().filter(move |series| (series.kind, series.metric) == (kind, metric));
        found.collect::<Vec<&Series>>()
    };
    let most = |series: &[&Series]| series.iter().filter_map(|series| series.peak).reduce(f64::max);
    let busy = of("cpu", "busy");
    let averages: Vec<f64> = busy.iter().filter_map(|series| series.average).collect();
    if let (Some(peak), false) = (most(&busy), averages.is_empty()) {
        let mean = averages.iter().sum::<f64>() / averages.len() as f64;
        words.push(format!("CPU {} on average, {} at most", percent(mean / 100.0), percent(peak / 100.0)));
    }
    let used = of("memory", "used");
    if let Some(peak) = most(&used) {
        let all = used.iter().filter_map(|series| series.full).reduce(f64::max).filter(|_| used.len() == 1);
        let all = all.map(|all| format!(" of {}", number(Unit::Bytes, all))).unwrap_or_default();
        words.push(format!("at most {}{all} memory used", number(Unit::Bytes, peak)));
    }
    if let (true, Some(first)) = (words.is_empty(), samples.programs.first()) {
        let memory = first.memory.peak.map_or(0, |peak| peak as u64);
        let cpu = time(u64::try_from(first.cpu_ns).unwrap_or(0));
        words.push(format!("{} used {cpu} CPU and at most {} of memory", printable(&first.program), bytes(memory)));
    }
    let tail = if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) };
    format!("Sampled {} for {}{tail}", whom(samples), time(length(samples)))
}

/// The curves of hosts and devices.
fn hosts(samples: &Samples, origin: i64) -> Section {
    let all = &samples.series;
    let each = || all.iter();
    let mut table = Table::with_rows(all.len());
    table.texts("host", each().map(|series| Some(series.host.clone())));
    table.texts("what", each().map(|series| Some(series.label.clone())));
    table.texts("kind", each().map(|series| Some(series.kind.to_owned())));
    table.texts("device", each().map(|series| Some(series.device.clone()).filter(|device| !device.is_empty())));
    table.texts("metric", each().map(|series| Some(series.metric.to_owned())));
    table.texts("unit", each().map(|series| Some(series.unit.name().to_owned())));
    table.measured("average", each().map(|series| Some((series.average?, series.unit))));
    table.measured("peak", each().map(|series| Some((series.peak?, series.unit))));
    table.times("peak_at", each().map(|series| Some(i128::from(series.peak_ns?) - i128::from(origin))));
    table.measured("total", each().map(|series| series.total));
    table.texts("total_unit", each().map(|series| Some(series.total?.1.name().to_owned())));
    table.measured("full", each().map(|series| Some((series.full?, series.unit))));
    table.ints("samples", Unit::Count, each().map(|series| Some(clamp(series.samples))));
    let curve = |series: &Series| Curve { points: series.points.clone(), full: series.full };
    table.curves("points", Unit::Number, each().map(|series| Some(curve(series))));
    let (shown, notes) = worth_showing(samples);
    let (from, to) = samples.axis.unwrap_or((0, 0));
    let elapsed = |at: i64| time(at.saturating_sub(origin).max(0) as u64);
    let mut note = format!(
        "curves go from {} to {}; a full bar is 100 %, or all memory, or else the highest value",
        elapsed(from),
        elapsed(to)
    );
    for more in notes {
        note.push_str("; ");
        note.push_str(&more);
    }
    let mut columns = vec!["what", "points", "average", "peak", "total"];
    let title = match samples.hosts.as_slice() {
        [host] => format!("host {} over time", printable(host)),
        _ => {
            columns.insert(0, "host");
            "hosts over time".to_owned()
        }
    };
    Section {
        key: "samples".to_owned(),
        title,
        shape: Shape::Table,
        table,
        columns,
        rows: usize::MAX,
        shown_rows: Some(shown),
        note: Some(note),
    }
}

/// The displayed curves, and a note about the others.
fn worth_showing(samples: &Samples) -> (Vec<usize>, Vec<String>) {
    let all = &samples.series;
    let active = |series: &Series| series.always || series.is_active();
    let (mut shown, mut idle, mut smaller) = (Vec::new(), Vec::new(), 0u64);
    let allowed = (CURVES / samples.hosts.len().max(1)).max(FEWEST);
    for host in samples.hosts.iter().take(HOSTS) {
        let mut left = allowed;
        let places: Vec<usize> = (0..all.len()).filter(|place| all[*place].host == *host).collect();
        for place in &places {
            let series = &all[*place];
            if !active(series) {
                let alike = |other: &&Series| (other.kind, &other.device) == (series.kind, &series.device);
                let of_device = places.iter().map(|place| &all[*place]).filter(alike);
                idle.push(if series.device.is_empty() || of_device.into_iter().any(active) {
                    series.label.clone()
                } else {
                    // Nothing of the device: `disk loop0`.
                    series.label.rsplit_once(' ').map_or(series.label.as_str(), |(device, _)| device).to_owned()
                });
            } else if left == 0 || !is_large(series, places.iter().map(|place| &all[*place])) {
                smaller += 1;
            } else {
                shown.push(*place);
                left -= 1;
            }
        }
    }
    let mut notes = Vec::new();
    idle.sort_unstable();
    idle.dedup();
    if !idle.is_empty() {
        let more = idle.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
        idle.truncate(NAMED);
        notes.push(format!("always 0: {}{more}", printable(&idle.join(", "))));
    }
    let hosts = samples.hosts.len().saturating_sub(HOSTS) as u64;
    if smaller > 0 || hosts > 0 {
        let hosts = if hosts > 0 { format!("{} and ", counted(hosts, "host", "hosts")) } else { String::new() };
        notes.push(format!("{hosts}{} not shown; --json has all", counted(smaller, "curve", "curves")));
    }
    (shown, notes)
}

/// Whether a device is among the busiest of its kind on its host.
fn is_large<'s>(series: &Series, all: impl Iterator<Item = &'s Series>) -> bool {
    let weight = |series: &Series| series.average.unwrap_or(0.0);
    let like = |other: &&Series| (other.kind, other.metric) == (series.kind, series.metric);
    all.filter(like).filter(|other| weight(other) > weight(series)).count() < DEVICES
}

/// The programs whose processes were sampled.
fn programs(samples: &Samples) -> Section {
    let all = &samples.programs;
    let each = || all.iter();
    let mut table = Table::with_rows(all.len());
    let label = |program: &ProgramSamples| {
        if program.program.is_empty() { "(not known)".to_owned() } else { program.program.clone() }
    };
    let curve = |curve: &weftline_analysis::samples::Curve| Curve { points: curve.points.clone(), full: None };
    table.texts("program", each().map(|program| Some(label(program))));
    table.ints("processes", Unit::Count, each().map(|program| Some(clamp(program.processes))));
    table.ints("cpu_ns", Unit::Nanoseconds, each().map(|program| Some(program.cpu_ns)));
    table.floats("cpu_average_pct", Unit::Percent, each().map(|program| program.cpu.average));
    table.floats("cpu_peak_pct", Unit::Percent, each().map(|program| program.cpu.peak));
    table.curves("cpu_points", Unit::Percent, each().map(|program| Some(curve(&program.cpu))));
    table.floats("memory_average_bytes", Unit::Bytes, each().map(|program| program.memory.average));
    table.floats("memory_peak_bytes", Unit::Bytes, each().map(|program| program.memory.peak));
    table.curves("memory_points", Unit::Bytes, each().map(|program| Some(curve(&program.memory))));
    table.ints("largest_bytes", Unit::Bytes, each().map(|program| Some(program.largest?.0)));
    table.ints("largest_pid", Unit::Id, each().map(|program| Some(program.largest?.1)));
    table.ints("read_bytes", Unit::Bytes, each().map(|program| Some(program.read_bytes)));
    table.ints("written_bytes", Unit::Bytes, each().map(|program| Some(program.written_bytes)));
    table.ints("storage_read_bytes", Unit::Bytes, each().map(|program| Some(program.storage_read_bytes)));
    table.ints("storage_written_bytes", Unit::Bytes, each().map(|program| Some(program.storage_written_bytes)));
    Section {
        key: "sampled_programs".to_owned(),
        title: "programs over time".to_owned(),
        shape: Shape::Table,
        table,
        columns: vec![
            "program",
            "cpu_points",
            "cpu_ns",
            "memory_peak_bytes",
            "read_bytes",
            "written_bytes",
            "cpu_peak_pct",
            "processes",
            "memory_points",
            "cpu_average_pct",
        ],
        rows: PROGRAMS,
        shown_rows: None,
        note: Some(
            "all sampled processes of a program together; memory: peak resident; read, written: bytes of calls; 100 % CPU is one processor"
                .into(),
        ),
    }
}
