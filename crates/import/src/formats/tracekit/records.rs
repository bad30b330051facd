//! JSON lines: invocations, samples of processes, hosts and links, placement, statistics.

use std::collections::HashMap;

use weftline_format::metrics::PROCESS_CATEGORY;

use super::{Folder, MOST_PROCESSES, Role, Topic};
use crate::Result;
use crate::clock::Clock;
use crate::event::{Arg, Event, Shape};
use crate::formats::time::DAY_NS;
use crate::input::Input;
use crate::json::{Fields, Scalar};
use crate::sink::Sink;

/// The category of what only Tracekit tells.
const CATEGORY: &str = "tracekit";
/// Nanoseconds of a clock tick: Linux tells programs of 100 per second, whatever the kernel's own are.
const TICK_NS: i64 = 10_000_000;
/// Processes, links and metrics whose last sample is remembered.
const MOST_SERIES: usize = 1 << 20;
/// The interval of a rate that is the first of its series: the collectors' own.
const SECOND_NS: i64 = 1_000_000_000;

const ELSEWHERE: &str = "told by another file of the folder";
const NO_TIME: &str = "record without a time";

/// What the other files of a folder need: its first time, and who its processes are.
pub(super) fn survey(role: Role, input: &mut Input<'_>, line: &mut Vec<u8>, folder: &mut Folder) -> Result<()> {
    let rank = role.tells(input.name())[0].map_or(0, |(_, rank)| usize::from(rank));
    loop {
        if let Some(fields) = Fields::parse(line.trim_ascii()) {
            let first = ["ts_start", "ts_ms", "ts"].iter().find_map(|key| milliseconds(&fields, key));
            // Times of host metrics are those of their making.
            if let Some(first) = first.filter(|_| role != Role::Host) {
                folder.first_ns = Some(folder.first_ns.map_or(first, |known| known.min(first)));
                folder.day = folder.day.or(Some(first.div_euclid(DAY_NS)));
            }
            if role != Role::Invocations {
                return Ok(());
            }
            let pid = fields.int("pid").and_then(|pid| u32::try_from(pid).ok());
            if let Some(pid) =
                pid.filter(|pid| folder.workers.contains_key(pid) || folder.workers.len() < MOST_PROCESSES)
            {
                let worker = folder.workers.entry(pid).or_default();
                let told = |key| fields.text(key).unwrap_or("").to_owned();
                if worker.node.is_empty() {
                    worker.node = told("node");
                }
                if worker.name.is_empty() {
                    worker.name = told("module_id");
                }
                worker.invocations[rank.min(3)] = worker.invocations[rank.min(3)].saturating_add(1);
            }
        }
        if input.next_line(line)?.is_none() {
            return Ok(());
        }
    }
}

/// A time in milliseconds, as nanoseconds.
fn milliseconds(fields: &Fields<'_>, key: &str) -> Option<i64> {
    fields.int(key)?.checked_mul(1_000_000)
}

/// The last sample of a series.
#[derive(Debug, Clone, Copy)]
struct Last {
    at_ns: i64,
    user: i64,
    system: i64,
}

pub(super) struct Reader<'a> {
    role: Role,
    folder: &'a Folder,
    sink: &'a mut dyn Sink,
    clock: Clock,
    is_read: [bool; super::TOPICS],
    last: HashMap<u32, Last>,
    named: HashMap<String, i64>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(role: Role, folder: &'a Folder, reads: &dyn Fn(Topic) -> bool, sink: &'a mut dyn Sink) -> Self {
        let topics = [
            Topic::Invocations,
            Topic::Processes,
            Topic::HostCpu,
            Topic::HostMemory,
            Topic::Links,
            Topic::Statistics,
            Topic::Placement,
            Topic::Nodes,
            Topic::LinkFacts,
            Topic::Facts,
        ];
        let clock = super::epoch_clock(sink);
        Reader { role, folder, sink, clock, is_read: topics.map(reads), last: HashMap::new(), named: HashMap::new() }
    }

    fn reads(&self, topic: Topic) -> bool {
        self.is_read[topic as usize]
    }

    /// Reads the line that is in the buffer, and those behind it.
    pub(super) fn read(mut self, input: &mut Input<'_>, line: &mut Vec<u8>) -> Result<()> {
        let mut offset = 0;
        let mut unfinished = false;
        loop {
            let text = line.trim_ascii();
            if !text.is_empty() {
                let told = match Fields::parse(text) {
                    Some(fields) => self.record(&fields)?,
                    None => Some(if unfinished { "torn line" } else { "not a record" }),
                };
                if let Some(reason) = told {
                    self.sink.skip(reason, offset);
                }
            }
            match input.next_line(line)? {
                Some(about) => (offset, unfinished) = (about.offset, about.unfinished || about.cut),
                None => return Ok(()),
            }
        }
    }

    /// Gives a record's events; a reason where it has none.
    fn record(&mut self, fields: &Fields<'_>) -> Result<Option<&'static str>> {
        match self.role {
            Role::Invocations if self.reads(Topic::Invocations) => self.invocation(fields),
            Role::Ticks | Role::Windows | Role::Memory if self.reads(Topic::Processes) => self.sample(fields),
            Role::Host => self.host(fields),
            Role::Links if self.reads(Topic::Links) => self.link(fields),
            Role::Statistics if self.reads(Topic::Statistics) => self.statistic(fields),
            Role::Placement if self.reads(Topic::Placement) => self.placement(fields),
            _ => Ok(Some(ELSEWHERE)),
        }
    }

    fn invocation(&mut self, fields: &Fields<'_>) -> Result<Option<&'static str>> {
        let (Some(start), Some(end)) = (milliseconds(fields, "ts_start"), milliseconds(fields, "ts_end")) else {
            return Ok(Some(NO_TIME));
        };
        let Some(pid) = fields.int("pid").and_then(|pid| u32::try_from(pid).ok()) else {
            return Ok(Some("record without a process"));
        };
        if let Some(node) = fields.text("node").or_else(|| self.folder.node_of(pid)) {
            self.sink.host(node)?;
        }
        if !self.last.contains_key(&pid) && self.last.len() < MOST_SERIES {
            self.last.insert(pid, Last { at_ns: 0, user: 0, system: 0 });
            self.folder.introduce(pid, self.sink)?;
        }
        // Requests have a path each, commands a module.
        let request = fields.text("method").filter(|method| *method != "CLI").and(fields.text("path"));
        let name = request.or_else(|| fields.text("module_id")).unwrap_or("invocation");
        let rank = usize::from(self.folder.best[Topic::Invocations as usize]).min(3);
        let times = self.folder.workers.get(&pid).map_or(2, |worker| worker.invocations[rank]);
        let utc = |ns| self.clock.to_utc(ns);
        let (start_ns, end_ns) = (utc(start), utc(end));
        let told = ["ts_start", "ts_end", "node", "pid"];
        let rest = fields.0.iter().filter(|(key, _)| !told.contains(&key.as_ref()));
        let args: Vec<_> = rest.filter_map(|(key, value)| Some((key.as_ref(), value.arg()?))).collect();
        let enqueued = milliseconds(fields, "ts_enqueue").filter(|enqueued| *enqueued < start);
        if let Some(enqueued) = enqueued {
            let trace = fields.get("trace_id").and_then(Scalar::arg).map(|id| ("trace_id", id));
            let (shape, start_ns) = (Shape::Async { end_ns: start_ns }, utc(enqueued));
            let args: Vec<_> = trace.into_iter().collect();
            self.sink.event(&Event { shape, name: "queue", cat: CATEGORY, pid, tid: pid, start_ns, args: &args })?;
        }
        // A process that serves one after the other, or several at once, has spans that cross.
        let shape = if times > 1 { Shape::Async { end_ns } } else { Shape::Span { end_ns } };
        self.sink.event(&Event { shape, name, cat: CATEGORY, pid, tid: pid, start_ns, args: &args })?;
        Ok(None)
    }

    fn sample(&mut self, fields: &Fields<'_>) -> Result<Option<&'static str>> {
        let Some(at) = milliseconds(fields, "ts_ms") else { return Ok(Some(NO_TIME)) };
        let Some(pid) = fields.int("pid").and_then(|pid| u32::try_from(pid).ok()) else {
            return Ok(Some("record without a process"));
        };
        if let Some(node) = self.folder.node_of(pid) {
            self.sink.host(node)?;
        }
        let ticks = (fields.int("utime").unwrap_or(0), fields.int("stime").unwrap_or(0));
        let now = Last { at_ns: at, user: ticks.0, system: ticks.1 };
        let last = self.last.get(&pid).copied();
        if last.is_none() {
            if self.last.len() >= MOST_SERIES {
                return Ok(Some("sample of a process: too many of them"));
            }
            self.folder.introduce(pid, self.sink)?;
        }
        self.last.insert(pid, now);
        let mut args: Vec<(&str, Arg<'_>)> = Vec::with_capacity(6);
        let mut start = at;
        if self.role == Role::Ticks {
            match last {
                Some(last) if last.at_ns == at => return Ok(Some("second sample at the same time")),
                // A process id that another process has now begins anew.
                Some(last) if last.at_ns < at && now.user >= last.user && now.system >= last.system => {
                    start = last.at_ns;
                    let user = now.user.saturating_sub(last.user).saturating_mul(TICK_NS);
                    let system = now.system.saturating_sub(last.system).saturating_mul(TICK_NS);
                    args.push(("cpu_ns", Arg::Int(user.saturating_add(system))));
                    args.push(("user_ns", Arg::Int(user)));
                    args.push(("system_ns", Arg::Int(system)));
                }
                _ => {}
            }
        } else if let Some(window) = milliseconds(fields, "dt_ms").filter(|window| *window > 0) {
            start = at.saturating_sub(window);
            args.extend(milliseconds(fields, "cpu_ms").map(|cpu_ns| ("cpu_ns", Arg::Int(cpu_ns))));
        }
        args.extend(fields.int("rss_kb").map(|kib| ("rss_bytes", Arg::Int(kib.saturating_mul(1024)))));
        let told = ["ts_ms", "pid", "utime", "stime", "dt_ms", "cpu_ms", "rss_kb"];
        for (key, value) in fields.0.iter().filter(|(key, _)| !told.contains(&key.as_ref())) {
            args.extend(number(value).map(|value| (key.as_ref(), value)));
        }
        if args.is_empty() {
            return Ok(Some("sample without a value"));
        }
        self.counter(PROCESS_CATEGORY, "process", pid, (start, at), &args)?;
        Ok(None)
    }

    fn counter(&mut self, cat: &str, name: &str, pid: u32, at: (i64, i64), args: &[(&str, Arg<'_>)]) -> Result<()> {
        let (start_ns, end_ns) = (self.clock.to_utc(at.0), self.clock.to_utc(at.1));
        self.sink.event(&Event { shape: Shape::Counter { end_ns }, name, cat, pid, tid: pid, start_ns, args })
    }

    fn go_to(&mut self, node: Option<&str>) -> Result<()> {
        match node.or(self.folder.node.as_deref()) {
            Some(node) => self.sink.host(node),
            None => Ok(()),
        }
    }

    /// The time of a series before this one.
    fn before(&mut self, series: String, at_ns: i64) -> Option<i64> {
        if self.named.len() >= MOST_SERIES && !self.named.contains_key(&series) {
            return None;
        }
        self.named.insert(series, at_ns)
    }

    fn host(&mut self, fields: &Fields<'_>) -> Result<Option<&'static str>> {
        let Some(at) = milliseconds(fields, "ts_ms") else { return Ok(Some(NO_TIME)) };
        let node = fields.text("node");
        self.go_to(node)?;
        let memory = fields.get("mem_free_mb").and_then(Scalar::float);
        let cpu = fields.get("cpu_util").and_then(Scalar::float);
        let memory = memory.filter(|_| self.reads(Topic::HostMemory));
        let cpu = cpu.filter(|_| self.reads(Topic::HostCpu));
        if memory.is_none() && cpu.is_none() {
            return Ok(Some(ELSEWHERE));
        }
        // All rows of memory carry the time at which the file was made: one of them can be true.
        let series = format!("{} {}", node.unwrap_or(""), if memory.is_some() { "memory" } else { "cpu" });
        let before = self.before(series, at);
        if before == Some(at) {
            return Ok(Some("second sample at the same time"));
        }
        if let Some(megabytes) = memory {
            // `vmstat -Sm`: units of 1000 · 1000 bytes.
            let free = Arg::Int((megabytes * 1e6 / 1024.0).round() as i64);
            self.counter("sys", "memory", 0, (at, at), &[("MemFree", free)])?;
        }
        if let Some(busy) = cpu {
            let start = before.filter(|before| *before < at).unwrap_or(at.saturating_sub(SECOND_NS));
            self.counter("sys", "cpu", 0, (start, at), &[("idle_pct", Arg::Float(100.0 - busy))])?;
        }
        Ok(None)
    }

    fn link(&mut self, fields: &Fields<'_>) -> Result<Option<&'static str>> {
        let Some(at) = milliseconds(fields, "ts_ms") else { return Ok(Some(NO_TIME)) };
        let (node, link) = (fields.text("node"), fields.text("link").unwrap_or("link"));
        self.go_to(node)?;
        let before = self.before(format!("{} {link}", node.unwrap_or("")), at);
        let start = before.unwrap_or(at.saturating_sub(SECOND_NS));
        if start >= at {
            return Ok(Some("second sample at the same time"));
        }
        let moved = |key| fields.get(key).and_then(Scalar::float).map(|rate| Arg::Int(bytes(rate, at - start)));
        let (received, sent) = (moved("rx_Bps"), moved("tx_Bps"));
        let args: Vec<_> = [("bytes_recv", received), ("bytes_sent", sent)]
            .into_iter()
            .filter_map(|(key, arg)| Some((key, arg?)))
            .collect();
        self.counter("net", link, 0, (start, at), &args)?;
        Ok(None)
    }

    fn statistic(&mut self, fields: &Fields<'_>) -> Result<Option<&'static str>> {
        let Some(at) = milliseconds(fields, "ts_ms") else { return Ok(Some(NO_TIME)) };
        self.go_to(fields.text("node"))?;
        let Some(value) = fields.get("value").and_then(number) else { return Ok(Some("sample without a value")) };
        let metric = fields.text("metric").unwrap_or("value");
        let name = match fields.text("instance_id") {
            Some(instance) => format!("{metric} {instance}"),
            None => metric.to_owned(),
        };
        self.counter(CATEGORY, &name, 0, (at, at), &[("value", value)])?;
        Ok(None)
    }

    fn placement(&mut self, fields: &Fields<'_>) -> Result<Option<&'static str>> {
        let Some(at) = milliseconds(fields, "ts") else { return Ok(Some(NO_TIME)) };
        self.go_to(fields.text("node_id"))?;
        let rest = fields.0.iter().filter(|(key, _)| !["ts", "node_id"].contains(&key.as_ref()));
        let args: Vec<_> = rest.filter_map(|(key, value)| Some((key.as_ref(), value.arg()?))).collect();
        let (shape, start_ns) = (Shape::Instant, self.clock.to_utc(at));
        self.sink.event(&Event { shape, name: "placement", cat: CATEGORY, pid: 0, tid: 0, start_ns, args: &args })?;
        Ok(None)
    }
}

/// Bytes of a rate over a time.
pub(super) fn bytes(per_second: f64, over_ns: i64) -> i64 {
    // Conversion from floats is cut to what fits.
    (per_second * (over_ns as f64 / 1e9)) as i64
}

fn number<'a>(value: &Scalar<'_>) -> Option<Arg<'a>> {
    Some(match value {
        Scalar::Int(number) => Arg::Int(*number),
        Scalar::Unsigned(number) => Arg::Unsigned(*number),
        Scalar::Float(number) => Arg::Float(*number),
        Scalar::Bool(flag) => Arg::Int(i64::from(*flag)),
        _ => return None,
    })
}
