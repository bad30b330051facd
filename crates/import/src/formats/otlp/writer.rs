//! Resources → processes, spans and their events → events. Both forms write through here.

use std::collections::HashMap;
use std::hash::Hasher as _;

use twox_hash::XxHash64;
use weftline_format::text::from_bytes;

use super::Signal;
use crate::Result;
use crate::clock::Clock;
use crate::event::{Arg, Event, Process, Shape};
use crate::formats::bag::Bag;
use crate::sink::Sink;

/// Resources that name no process get numbers from here on, which Linux gives to none.
const FIRST_PID: u32 = 1 << 22;
/// Resources that are told apart.
const MOST_RESOURCES: usize = 100_000;

/// A span in the making.
#[derive(Debug, Default)]
pub(super) struct Span {
    /// Name and arguments.
    pub(super) bag: Bag,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) trace_id: String,
    pub(super) span_id: String,
    /// Its events: when, and their names and arguments.
    pub(super) events: Vec<(u64, Bag)>,
}

/// The process of the spans at hand.
#[derive(Debug, Default)]
struct Current {
    pid: u32,
    /// The resource, until its first span.
    about: Option<Bag>,
}

/// Writes what both forms find.
pub(super) struct Writer<'s> {
    sink: &'s mut dyn Sink,
    clock: Clock,
    current: Current,
    /// Name, version and attributes of what made the spans.
    scope: Bag,
    /// Numbers of resources without one.
    numbers: HashMap<u64, u32>,
    /// What was said of a process, so that it is said once.
    said: HashMap<u64, u64>,
    host_said: bool,
}

impl<'s> Writer<'s> {
    pub(super) fn new(sink: &'s mut dyn Sink) -> Writer<'s> {
        let clock = sink.clock(Clock::utc("as written"));
        Writer {
            sink,
            clock,
            current: Current::default(),
            scope: Bag::default(),
            numbers: HashMap::new(),
            said: HashMap::new(),
            host_said: false,
        }
    }

    pub(super) fn skip(&mut self, reason: &str, offset: u64) {
        self.sink.skip(reason, offset);
    }

    /// Something that is not a span.
    pub(super) fn count(&mut self, signal: Signal, offset: u64) {
        match signal {
            Signal::Traces => self.sink.skip("span that is none", offset),
            Signal::Metrics => self.sink.skip("metric", offset),
            Signal::Logs => self.sink.skip("log record", offset),
        }
    }

    /// The following spans are of nobody yet.
    pub(super) fn no_resource(&mut self) {
        self.current = Current::default();
    }

    /// Who the following spans are of.
    pub(super) fn resource(&mut self, about: Bag) -> Result<()> {
        let args = about.args();
        let text = |key: &str| {
            let found = args.iter().find(|(name, _)| *name == key);
            found.and_then(|(_, arg)| if let Arg::Text(text) = arg { Some(from_bytes(text)) } else { None })
        };
        let number = |key: &str| {
            let found = args.iter().find(|(name, _)| *name == key);
            found.and_then(|(_, arg)| match arg {
                Arg::Int(number) => u32::try_from(*number).ok(),
                Arg::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
                _ => None,
            })
        };
        let host = text("host.name").or_else(|| text("host.id")).filter(|host| !host.is_empty());
        match &host {
            Some(host) => self.sink.host(host)?,
            // Files that tell the hosts of some resources only.
            None if self.host_said => self.sink.host("unknown")?,
            None => {}
        }
        self.host_said |= host.is_some();
        let name = text("service.name").or_else(|| text("process.executable.name")).unwrap_or("unknown".into());
        let exe = text("process.executable.path").or_else(|| text("process.executable.name")).unwrap_or_default();
        let words: Vec<String> = match args.iter().find(|(name, _)| *name == "process.command_args") {
            Some((_, Arg::Json(list))) => serde_json::from_str(list).unwrap_or_default(),
            _ => text("process.command_line").iter().map(|line| line.to_string()).collect(),
        };
        let pid = match number("process.pid").filter(|pid| *pid != 0) {
            Some(pid) => pid,
            None => {
                let key = hash(&(&host, &name, text("service.namespace"), text("service.instance.id")));
                let next = FIRST_PID + u32::try_from(self.numbers.len()).unwrap_or(u32::MAX - FIRST_PID);
                match self.numbers.get(&key) {
                    Some(pid) => *pid,
                    None if self.numbers.len() < MOST_RESOURCES => *self.numbers.entry(key).or_insert(next),
                    None => next,
                }
            }
        };
        let what = args
            .iter()
            .fold(0, |sum: u64, (key, arg)| sum.wrapping_mul(31).wrapping_add(hash(&(key, format!("{arg:?}")))));
        let known = self.said.get(&hash(&(&host, pid))) == Some(&what);
        if !known {
            let command: Vec<&str> = words.iter().map(String::as_str).collect();
            let ppid = number("process.parent_pid").unwrap_or(0);
            self.sink.process(&Process {
                pid,
                name: &name,
                ppid,
                exe: &exe,
                command: &command,
                ..Process::default()
            })?;
            if self.said.len() < MOST_RESOURCES {
                self.said.insert(hash(&(&host, pid)), what);
            }
        }
        let empty = args.is_empty();
        self.current = Current { pid, about: (!known && !empty).then_some(about) };
        Ok(())
    }

    /// What made the following spans.
    pub(super) fn scope(&mut self, scope: Bag) {
        self.scope = scope;
    }

    /// A span and its events.
    pub(super) fn span(&mut self, mut span: Span, offset: u64) -> Result<()> {
        if self.current.pid == 0 {
            self.resource(Bag::default())?;
        }
        if span.start_ns == 0 {
            self.sink.skip("span without a start", offset);
            return Ok(());
        }
        if span.end_ns == 0 {
            self.sink.skip("span without end", offset);
        } else if span.end_ns < span.start_ns {
            self.sink.skip("span that ends before it begins: it is written without a duration", offset);
        }
        let end_ns = span.end_ns.max(span.start_ns);
        let (Ok(start_ns), Ok(end_ns)) = (i64::try_from(span.start_ns), i64::try_from(end_ns)) else {
            self.sink.skip("time beyond the year 2262", offset);
            return Ok(());
        };
        let (start_ns, end_ns) = (self.clock.to_utc(start_ns), self.clock.to_utc(end_ns));
        let pid = self.current.pid;
        if let Some(about) = self.current.about.take() {
            let shape = Shape::Metadata;
            let args = &hidden(about.args());
            self.sink.event(&Event { shape, name: "resource", cat: "otlp", pid, tid: pid, start_ns, args })?;
        }
        let thread = span.bag.args().iter().find_map(|(key, arg)| match arg {
            Arg::Int(number) if *key == "thread.id" => u32::try_from(*number).ok(),
            _ => None,
        });
        let tid = thread.unwrap_or(pid);
        let cat = if self.scope.name().is_empty() { "otlp" } else { self.scope.name() };
        let name_of = |bag: &Bag| if bag.name().is_empty() { "unnamed".to_owned() } else { bag.name().to_owned() };
        let mut refused = span.bag.refused.saturating_add(self.scope.refused);
        span.bag.join(&self.scope);
        let (shape, name) = (Shape::Async { end_ns }, name_of(&span.bag));
        self.sink.event(&Event { shape, name: &name, cat, pid, tid, start_ns, args: &span.bag.args() })?;
        for (at, bag) in &mut span.events {
            bag.put(b"trace_id", Arg::Text(span.trace_id.as_bytes()));
            bag.put(b"span_id", Arg::Text(span.span_id.as_bytes()));
            refused = refused.saturating_add(bag.refused);
            let Ok(at) = i64::try_from(*at) else {
                self.sink.skip("time beyond the year 2262", offset);
                continue;
            };
            let (start_ns, name) = (self.clock.to_utc(at), name_of(bag));
            let shape = Shape::Instant;
            self.sink.event(&Event { shape, name: &name, cat, pid, tid, start_ns, args: &bag.args() })?;
        }
        for _ in 0..refused {
            self.sink.skip(
                "attribute, event or link beyond the limits: 1024 attributes, 65536 events or links, 32 MiB",
                offset,
            );
        }
        Ok(())
    }
}

/// Attributes of a resource without its command line, which may hold secrets: the process has it, and they are masked there.
fn hidden<'a>(args: Vec<(&'a str, Arg<'a>)>) -> Vec<(&'a str, Arg<'a>)> {
    args.into_iter().filter(|(key, _)| !matches!(*key, "process.command_args" | "process.command_line")).collect()
}

/// What a kind of span is called.
pub(super) fn kind(number: u64) -> Option<&'static str> {
    Some(match number {
        0 => return None,
        1 => "internal",
        2 => "server",
        3 => "client",
        4 => "producer",
        5 => "consumer",
        _ => "unknown",
    })
}

/// What a status is called.
pub(super) fn status(number: u64) -> Option<&'static str> {
    Some(match number {
        0 => return None,
        1 => "ok",
        2 => "error",
        _ => "unknown",
    })
}

fn hash(of: &impl std::hash::Hash) -> u64 {
    let mut hasher = XxHash64::with_seed(0);
    of.hash(&mut hasher);
    hasher.finish()
}
