//! Tracekit: the raw logs of a node, and the standard folders that it makes of them (`cctf`, later `CTS`).
//!
//! | module | holds |
//! |---|---|
//! | `records` | JSON lines: invocations, samples of processes, hosts and links, placement, statistics |
//! | `logs` | `cpu.log`, `mem.log` and `net.log`: texts of mpstat, vmstat and ifstat |
//! | `nodes` | JSON documents: what nodes and links are |
//!
//! A node's folder tells most things several times: raw logs, what was merged of them, a copy within the standard folder. Each is read once,
//! from the file that tells most; lines of the others are counted as told elsewhere. Every file is also read alone. Samples name no node: it is
//! the one of the process's invocation, else the one of the folder's `node_meta.json` or `nodes.json`.

mod logs;
mod nodes;
mod records;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::Result;
use crate::clock::{Clock, ClockKind};
use crate::event::Process;
use crate::input::{Head, Input};
use crate::json::Fields;
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "tracekit",
    title: "Tracekit logs, CCTF and CTS folders",
    carries: "a span per invocation with its time in the queue, status and bytes; samples of processes, hosts and links as counters; what nodes are",
    example: "tracekit",
    detect,
    survey: Some(survey),
    read,
};

/// Processes per folder whose node and name are remembered.
const MOST_PROCESSES: usize = 1 << 18;
/// Folders that are remembered.
const MOST_FOLDERS: usize = 1 << 16;
/// Documents are small.
const MOST_DOCUMENT: u64 = 16 << 20;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Samples of processes with ticks since their start.
    Ticks,
    /// Samples of processes with times of a window, with memory or without.
    Windows,
    /// Memory of processes alone.
    Memory,
    Invocations,
    Host,
    Links,
    Statistics,
    Placement,
    /// `node_meta.json`, `nodes.json`.
    Nodes,
    /// `link_meta.json`, `links.json`.
    LinkFacts,
    /// `module_inventory.json`, `run_meta.json`.
    Facts,
    Mpstat,
    Vmstat,
    Ifstat,
}

/// What files tell, each several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Topic {
    Invocations,
    Processes,
    HostCpu,
    HostMemory,
    Links,
    Statistics,
    Placement,
    Nodes,
    LinkFacts,
    Facts,
}
const TOPICS: usize = 10;

impl Role {
    /// What a JSON object's keys tell.
    fn of(fields: &Fields<'_>) -> Option<Role> {
        const KEYS: [(&[&str], Role); 13] = [
            (&["ts_ms", "pid", "utime", "stime"], Role::Ticks),
            (&["ts_ms", "pid", "cpu_ms", "dt_ms"], Role::Windows),
            (&["ts_ms", "pid", "rss_kb"], Role::Memory),
            (&["trace_id", "ts_start", "ts_end", "pid"], Role::Invocations),
            (&["ts_ms", "node", "link", "rx_Bps"], Role::Links),
            (&["ts_ms", "node", "metric", "value"], Role::Statistics),
            (&["ts_ms", "node", "mem_free_mb"], Role::Host),
            (&["ts_ms", "node", "cpu_util"], Role::Host),
            (&["ts", "node_id", "module_id", "event"], Role::Placement),
            (&["node", "cpu_cores", "mem_mb"], Role::Nodes),
            (&["node_id", "cpu_cores", "mem_mb"], Role::Nodes),
            (&["app_id", "module_id", "type", "resources"], Role::Facts),
            (&["run_id", "target_ip", "rate"], Role::Facts),
        ];
        let found = KEYS.iter().find(|(keys, _)| fields.has(keys)).map(|(_, role)| *role);
        let links = fields.has(&["BW_bps", "PR_s"]) && (fields.has(&["iface"]) || fields.has(&["u", "v"]));
        found.or(links.then_some(Role::LinkFacts))
    }

    /// What the first line of one of the logs tells. Many programs write such texts: the names are Tracekit's.
    fn of_log(name: &str, line: &[u8]) -> Option<Role> {
        match name {
            "cpu.log" if line.starts_with(b"Linux ") => Some(Role::Mpstat),
            "mem.log" if line.starts_with(b"procs ") => Some(Role::Vmstat),
            "net.log" if line.trim_ascii_start().starts_with(b"Time ") => Some(Role::Ifstat),
            _ => None,
        }
    }

    /// What it tells, and how much of it: the largest number is read.
    fn tells(self, name: &str) -> [Option<(Topic, u8)>; 2] {
        let (folder, file) = place(name);
        let standard = folder.is_standard;
        let copy = if standard { 1 } else { 2 };
        let one = |topic, rank| [Some((topic, rank)), None];
        match self {
            Role::Invocations if standard => one(Topic::Invocations, 1),
            Role::Invocations if file == "events.jsonl" => one(Topic::Invocations, 2),
            Role::Invocations => one(Topic::Invocations, 3),
            Role::Ticks => one(Topic::Processes, copy + 2),
            Role::Windows if file == "proc_cpu.jsonl" => one(Topic::Processes, 1),
            Role::Windows => one(Topic::Processes, 2),
            Role::Memory => one(Topic::Processes, 1),
            Role::Mpstat => one(Topic::HostCpu, 4),
            Role::Vmstat => [Some((Topic::HostMemory, 3)), Some((Topic::HostCpu, 3))],
            Role::Host => [Some((Topic::HostMemory, copy)), Some((Topic::HostCpu, copy))],
            Role::Ifstat => one(Topic::Links, 3),
            Role::Links => one(Topic::Links, copy),
            Role::Statistics => one(Topic::Statistics, copy),
            Role::Placement => one(Topic::Placement, copy),
            Role::Nodes => one(Topic::Nodes, if file == "nodes.json" { 1 } else { 2 }),
            Role::LinkFacts => one(Topic::LinkFacts, if file == "links.json" { 1 } else { 2 }),
            Role::Facts => one(Topic::Facts, copy),
        }
    }
}

/// What the files of a node's folder tell each other.
#[derive(Debug, Default)]
pub struct Folder {
    /// Per topic, the number of the file that tells most.
    best: [u8; TOPICS],
    /// The node that the folder is of.
    node: Option<String>,
    /// The day of the first record, in days since 1970-01-01.
    day: Option<i64>,
    /// The first time of any record, ns since the epoch.
    first_ns: Option<i64>,
    /// Whether a log says that its times are UTC.
    is_utc: bool,
    /// Processes of invocations.
    workers: BTreeMap<u32, Worker>,
}

/// A process with invocations.
#[derive(Debug, Default)]
struct Worker {
    node: String,
    name: String,
    /// How many, by the number of the file.
    invocations: [u32; 4],
}

/// Folders by path.
pub type Folders = BTreeMap<String, Folder>;

struct Place<'a> {
    path: &'a str,
    is_standard: bool,
}

/// A file's node folder, and its own name.
fn place(name: &str) -> (Place<'_>, &str) {
    let (path, file) = match name.rfind(['/', '!']) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => ("", name),
    };
    for standard in ["cctf", "CTS"] {
        if let Some(path) = path.strip_suffix(standard)
            && (path.is_empty() || path.ends_with(['/', '!']))
        {
            return (Place { path: path.trim_end_matches(['/', '!']), is_standard: true }, file);
        }
    }
    (Place { path, is_standard: false }, file)
}

fn detect(head: &Head<'_>) -> Confidence {
    let Some(first) = head.lines().find(|line| !line.trim_ascii().is_empty()) else { return Confidence::No };
    let first = first.trim_ascii();
    let role = match first.first() {
        Some(b'{' | b'[') => match Fields::parse(first) {
            Some(fields) => Role::of(&fields),
            // A document of several lines; one that is longer than what is seen here is none of ours.
            None => nodes::items(head.bytes).first().and_then(Role::of),
        },
        _ => Role::of_log(head.name, first),
    };
    if role.is_some() { Confidence::Certain } else { Confidence::No }
}

/// What is read, once its beginning is known.
enum Opened {
    /// Lines; the first one is in the buffer.
    Lines(Role),
    /// A whole document.
    Document(Role, Vec<u8>),
    /// Something else.
    Unknown,
}

/// Looks at the first line that is not empty.
fn open(input: &mut Input<'_>, line: &mut Vec<u8>) -> Result<Opened> {
    while input.next_line(line)?.is_some() {
        let first = line.trim_ascii();
        if first.is_empty() {
            continue;
        }
        if !matches!(first[0], b'{' | b'[') {
            return Ok(Role::of_log(input.file_name(), first).map_or(Opened::Unknown, Opened::Lines));
        }
        let role = Fields::parse(first).and_then(|fields| Role::of(&fields));
        return Ok(match role {
            Some(role @ (Role::Nodes | Role::LinkFacts | Role::Facts)) => Opened::Document(role, first.to_vec()),
            Some(role) => Opened::Lines(role),
            None => {
                let whole = nodes::rest_of_document(input, line)?;
                let role = nodes::items(&whole).first().and_then(Role::of);
                role.map_or(Opened::Unknown, |role| Opened::Document(role, whole))
            }
        });
    }
    Ok(Opened::Unknown)
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let mut line = Vec::new();
    let opened = open(input, &mut line)?;
    let (path, name) = (place(input.name()).0.path.to_owned(), input.name().to_owned());
    if survey.tracekit.len() >= MOST_FOLDERS && !survey.tracekit.contains_key(&path) {
        return Ok(());
    }
    let folder = survey.tracekit.entry(path).or_default();
    let (Opened::Lines(role) | Opened::Document(role, _)) = &opened else { return Ok(()) };
    for (topic, rank) in role.tells(&name).into_iter().flatten() {
        let best = &mut folder.best[topic as usize];
        *best = rank.max(*best);
    }
    match opened {
        Opened::Document(Role::Nodes, document) => nodes::survey(&document, folder),
        Opened::Lines(Role::Mpstat | Role::Vmstat) => logs::survey(input, &line, folder)?,
        Opened::Lines(role) => records::survey(role, input, &mut line, folder)?,
        _ => {}
    }
    Ok(())
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let mut line = Vec::new();
    let opened = open(input, &mut line)?;
    let none = Folder::default();
    let name = input.name().to_owned();
    let folder = survey.tracekit.get(place(&name).0.path).unwrap_or(&none);
    let (Opened::Lines(role) | Opened::Document(role, _)) = &opened else {
        let at = input.offset();
        return Err(input.invalid(at, "neither a log nor a record of Tracekit begins here"));
    };
    let tells = role.tells(&name);
    let reads = |topic: Topic| {
        tells.into_iter().flatten().any(|(known, rank)| known == topic && rank >= folder.best[topic as usize])
    };
    if let Some(node) = &folder.node {
        sink.host(node)?;
    }
    match opened {
        Opened::Document(role, document) => {
            let topic = tells[0].map_or(Topic::Facts, |(topic, _)| topic);
            nodes::read(role, &document, reads(topic), folder, sink)
        }
        Opened::Lines(Role::Mpstat) => logs::mpstat(input, &mut line, folder, survey, sink),
        Opened::Lines(Role::Vmstat) => {
            let topics = (reads(Topic::HostMemory), reads(Topic::HostCpu));
            logs::vmstat(input, &mut line, folder, survey, topics, sink)
        }
        Opened::Lines(Role::Ifstat) => logs::ifstat(input, &mut line, folder, survey, sink),
        Opened::Lines(role) => records::Reader::new(role, folder, &reads, sink).read(input, &mut line),
        Opened::Unknown => Ok(()),
    }
}

/// The clock of JSON records: milliseconds since the epoch.
fn epoch_clock(sink: &mut dyn Sink) -> Clock {
    sink.clock(Clock::offset(ClockKind::Realtime, 0, Some(1_000_000), "as written, in whole milliseconds"))
}

impl Folder {
    /// Introduces a process, on the host that it belongs to.
    fn introduce(&self, pid: u32, sink: &mut dyn Sink) -> Result<()> {
        match self.workers.get(&pid).filter(|worker| !worker.name.is_empty()) {
            Some(worker) => sink.process(&Process { pid, name: &worker.name, ..Process::default() }),
            None => Ok(()),
        }
    }

    /// The node of a process.
    fn node_of(&self, pid: u32) -> Option<&str> {
        let worker = self.workers.get(&pid).map(|worker| worker.node.as_str()).filter(|node| !node.is_empty());
        worker.or(self.node.as_deref())
    }
}
