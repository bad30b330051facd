//! Where events go: trace files of a run, as members that stand alone; and what was left out, by reason.
//!
//! One source has one file per host. A member begins with the identity of its host, names each process before its first event, and defines each
//! path that it uses.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::path::PathBuf;

use weftline_format::files;
use weftline_format::hash::path_hash;
use weftline_format::identity::Identity;
use weftline_format::line::LineBuf;
use weftline_format::member::{self, Deflater};
use weftline_format::secrets::Arguments;
use weftline_format::text::from_bytes;

use crate::clock::Clock;
use crate::event::{Arg, Event, Process, Shape};
use crate::record::{Skipped, SourceRecord};
use crate::{ImportError, Result};

/// Text of a member.
const MEMBER_TEXT: usize = 1 << 20;
/// Reasons that are kept apart; more of them become one.
const MOST_REASONS: usize = 200;
/// Hosts of one source; a trace that names more is not believed.
const MOST_HOSTS: usize = 100_000;

/// Takes what a reader finds.
pub trait Sink {
    /// The host that the following processes and events are of.
    fn host(&mut self, name: &str) -> Result<()>;

    /// Who a process is. Said again, it has become another.
    fn process(&mut self, process: &Process<'_>) -> Result<()>;

    /// One event.
    fn event(&mut self, event: &Event<'_>) -> Result<()>;

    /// Something that is left out, and where it is.
    fn skip(&mut self, reason: &str, offset: u64);

    /// The clock of the source. To be called before its first event: `--align` is applied to what comes back.
    fn clock(&mut self, clock: Clock) -> Clock;
}

/// Writes trace files of a run.
#[derive(Debug)]
pub struct RunSink {
    directory: PathBuf,
    /// What its files are called.
    stem: String,
    /// What `--align` adds.
    align: Option<(i64, String)>,
    record: SourceRecord,
    outputs: BTreeMap<String, Output>,
    host: String,
    deflater: Deflater,
}

#[derive(Debug)]
struct Output {
    path: PathBuf,
    about: Identity,
    processes: HashMap<u32, Identity>,
    lines: LineBuf,
    named: HashSet<u32>,
    defined: HashSet<u64>,
    events: u32,
}

impl RunSink {
    /// A sink for one source. Its files lie in `directory` and begin with `stem`.
    pub fn new(
        directory: PathBuf,
        stem: String,
        host: &str,
        name: &str,
        kind: &str,
        align: Option<(i64, String)>,
    ) -> RunSink {
        RunSink {
            directory,
            stem,
            align,
            record: SourceRecord { name: name.to_owned(), kind: kind.to_owned(), ..SourceRecord::default() },
            outputs: BTreeMap::new(),
            host: host.to_owned(),
            deflater: Deflater::new(),
        }
    }

    /// Writes what is left, and tells what came of it.
    pub fn finish(mut self) -> Result<SourceRecord> {
        for output in self.outputs.values_mut() {
            output.close(&mut self.deflater)?;
            if output.about.seq > 0 {
                let name = output.path.file_name().unwrap_or_default();
                self.record.files.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(self.record)
    }

    fn output(&mut self) -> Result<&mut Output> {
        if !self.outputs.contains_key(&self.host) {
            if self.outputs.len() >= MOST_HOSTS {
                let what = format!("it names more than {MOST_HOSTS} hosts");
                return Err(ImportError::Limit { name: self.record.name.clone(), what });
            }
            let number = self.outputs.len();
            let path = match number {
                0 => self.directory.join(format!("{}.pfw.gz", self.stem)),
                number => self.directory.join(format!("{}-{number}.pfw.gz", self.stem)),
            };
            let about = Identity { name: self.host.clone(), host: self.host.clone(), ..Identity::default() };
            self.outputs.insert(self.host.clone(), Output::new(path, about));
        }
        Ok(self.outputs.get_mut(&self.host).expect("just made"))
    }
}

impl Sink for RunSink {
    fn host(&mut self, name: &str) -> Result<()> {
        name.clone_into(&mut self.host);
        Ok(())
    }

    fn process(&mut self, process: &Process<'_>) -> Result<()> {
        let host = self.host.clone();
        let command = Arguments::Masked.kept(process.command.iter().map(|word| (*word).to_owned()));
        let identity = Identity {
            pid: process.pid,
            name: process.name.to_owned(),
            host,
            ppid: process.ppid,
            exe: process.exe.to_owned(),
            cmd: command,
            rank: process.rank,
            start: process.start,
            ..Identity::default()
        };
        let output = self.output()?;
        output.named.remove(&process.pid);
        output.processes.insert(process.pid, identity);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let number = self.record.events;
        let end_ns = event.shape.end_ns().unwrap_or(event.start_ns);
        let begun = if number == 0 { (i64::MAX, i64::MIN) } else { (self.record.first_ns, self.record.last_ns) };
        (self.record.first_ns, self.record.last_ns) = (begun.0.min(event.start_ns), begun.1.max(end_ns));
        let output = self.output()?;
        output.write(event, number);
        let full = output.lines.len() >= MEMBER_TEXT;
        if full {
            let host = self.host.clone();
            let output = self.outputs.get_mut(&host).expect("written to");
            output.close(&mut self.deflater)?;
        }
        self.record.events += 1;
        self.record.written += match event.shape {
            Shape::Metadata => 0,
            Shape::Async { .. } => 2,
            _ => 1,
        };
        Ok(())
    }

    fn skip(&mut self, reason: &str, offset: u64) {
        let kept = &mut self.record.skipped;
        let reason = if kept.contains_key(reason) || kept.len() < MOST_REASONS { reason } else { "other reasons" };
        match kept.get_mut(reason) {
            Some(skipped) => skipped.count += 1,
            None => _ = kept.insert(reason.to_owned(), Skipped { count: 1, first: offset }),
        }
    }

    fn clock(&mut self, clock: Clock) -> Clock {
        let clock = match &self.align {
            Some((by_ns, how)) => clock.moved(*by_ns, how),
            None => clock,
        };
        self.record.clock = Some(clock.clone());
        clock
    }
}

impl Output {
    fn new(path: PathBuf, about: Identity) -> Output {
        Output {
            path,
            about,
            processes: HashMap::new(),
            lines: LineBuf::with_capacity(MEMBER_TEXT + (64 << 10)),
            named: HashSet::new(),
            defined: HashSet::new(),
            events: 0,
        }
    }

    fn write(&mut self, event: &Event<'_>, number: u64) {
        if self.lines.is_empty() {
            if self.about.seq == 0 {
                self.lines.open_array();
                self.about.at_ns = event.start_ns;
            }
            self.about.write(&mut self.lines);
        }
        if event.pid != 0 && self.named.insert(event.pid) {
            let about = &self.about;
            let identity = self.processes.entry(event.pid).or_insert_with(|| Identity {
                pid: event.pid,
                name: format!("pid {}", event.pid),
                host: about.host.clone(),
                ..Identity::default()
            });
            if identity.at_ns == 0 {
                identity.at_ns = event.start_ns;
            }
            identity.seq = about.seq;
            identity.write(&mut self.lines);
        }
        for (_, arg) in event.args {
            if let Arg::Path(path) = arg
                && self.defined.insert(path_hash(path))
            {
                self.lines.define_path(event.pid, event.tid, path_hash(path), path);
            }
        }
        let Event { name, cat, pid, tid, start_ns, .. } = *event;
        let lines = &mut self.lines;
        match event.shape {
            Shape::Span { end_ns } => lines.complete(name, cat, pid, tid, start_ns, end_ns.max(start_ns)),
            Shape::Async { end_ns } => {
                lines.async_begin(name, cat, pid, tid, start_ns, number);
                put_all(lines, event.args);
                lines.finish();
                self.events += 1;
                lines.async_end(name, cat, pid, tid, end_ns.max(start_ns), number).finish();
                self.events += 1;
                return;
            }
            Shape::Instant => lines.instant(name, cat, pid, tid, start_ns),
            Shape::Counter { end_ns } | Shape::Total { end_ns } => {
                lines.counter_over(name, cat, pid, tid, start_ns, end_ns.max(start_ns))
            }
            Shape::Metadata => lines.metadata_at(name, cat, pid, tid, start_ns),
        };
        put_all(lines, event.args);
        lines.finish();
        // A member tells how many events it has; metadata are none.
        self.events += u32::from(event.shape != Shape::Metadata);
    }

    /// Writes the open member behind the others.
    fn close(&mut self, deflater: &mut Deflater) -> Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let mut sealed = Vec::new();
        member::seal(self.lines.as_bytes(), self.events, self.about.seq, &mut sealed, deflater);
        let file = if self.about.seq == 0 { files::create(&self.path) } else { files::append(&self.path) };
        let written = file.and_then(|mut file| file.write_all(&sealed));
        written.map_err(ImportError::io(&self.path))?;
        self.about.seq += 1;
        self.lines.clear();
        self.named.clear();
        self.defined.clear();
        self.events = 0;
        Ok(())
    }
}

fn put_all(lines: &mut LineBuf, args: &[(&str, Arg<'_>)]) {
    for (key, arg) in args {
        match arg {
            Arg::Int(number) => lines.arg_i64(key, *number),
            Arg::Unsigned(number) => lines.arg_u64(key, *number),
            Arg::Float(number) if number.is_finite() => lines.arg_f64(key, *number),
            Arg::Float(_) => lines,
            Arg::Bool(flag) => lines.arg_bool(key, *flag),
            Arg::Text(text) => lines.arg_str(key, text),
            Arg::Path(path) => lines.arg_hash(key, path_hash(path)),
            Arg::Json(json) => lines.arg_json(key, json),
        };
    }
}

/// Remembers what it is given, for tests of readers.
#[derive(Debug, Default)]
pub struct Memory {
    /// Processes, as `pid name`.
    pub processes: Vec<String>,
    /// Events, one text each: `host|shape name cat pid/tid start..end key=value …`.
    pub events: Vec<String>,
    /// What was left out.
    pub skipped: BTreeMap<String, Skipped>,
    /// The clock.
    pub used: Option<Clock>,
    at: String,
}

impl Sink for Memory {
    fn host(&mut self, name: &str) -> Result<()> {
        name.clone_into(&mut self.at);
        Ok(())
    }

    fn process(&mut self, process: &Process<'_>) -> Result<()> {
        self.processes.push(format!("{} {}", process.pid, process.name));
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let shape = match event.shape {
            Shape::Span { .. } => "span",
            Shape::Async { .. } => "async",
            Shape::Instant => "instant",
            Shape::Counter { .. } => "counter",
            Shape::Total { .. } => "total",
            Shape::Metadata => "metadata",
        };
        let mut text = format!("{shape} {} {} {}/{} {}", event.name, event.cat, event.pid, event.tid, event.start_ns);
        if !self.at.is_empty() {
            text = format!("{}|{text}", self.at);
        }
        if let Some(end_ns) = event.shape.end_ns() {
            text += &format!("..{end_ns}");
        }
        for (key, arg) in event.args {
            text += &match arg {
                Arg::Int(number) => format!(" {key}={number}"),
                Arg::Unsigned(number) => format!(" {key}={number}"),
                Arg::Float(number) => format!(" {key}={number}"),
                Arg::Bool(flag) => format!(" {key}={flag}"),
                Arg::Text(bytes) | Arg::Path(bytes) => format!(" {key}={}", from_bytes(bytes)),
                Arg::Json(json) => format!(" {key}={json}"),
            };
        }
        self.events.push(text);
        Ok(())
    }

    fn skip(&mut self, reason: &str, offset: u64) {
        let skipped = self.skipped.entry(reason.to_owned()).or_insert(Skipped { count: 0, first: offset });
        skipped.count += 1;
    }

    fn clock(&mut self, clock: Clock) -> Clock {
        self.used = Some(clock.clone());
        clock
    }
}
