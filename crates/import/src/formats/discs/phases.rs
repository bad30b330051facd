//! Phases of application logs: begins and ends that are paired, and where they are shown.

use std::collections::HashMap;

use super::facts::Set;
use super::tell::Teller;
use crate::Result;
use crate::event::{Arg, Event, Process, Shape};
use crate::sink::Sink;

/// Begun and not ended phases at most; a log with more is no log of phases.
const MOST_OPEN: usize = 1000;
/// The process of logs whose writer is unknown: logs tell ranks, not pids.
const LOG_PID: u32 = 1;

/// What a key of a log is: its name here, its category, and the phase that it belongs to.
pub(super) struct Meaning {
    pub name: String,
    pub cat: &'static str,
    pub phase: Option<String>,
}

/// What a key of a log means.
pub(super) fn meaning(key: &str, told: &std::collections::BTreeMap<String, String>) -> Meaning {
    let phase = match key {
        "init" => Some("init"),
        "epoch" | "block" | "training" | "train" | "run" => Some("training"),
        "eval" | "evaluation" | "validation" => Some("eval"),
        "checkpoint" | "save_checkpoint" | "checkpointing" => Some("checkpoint"),
        _ => None,
    };
    let phase = told.get(key).cloned().or_else(|| phase.map(str::to_owned));
    let (name, cat) = match key {
        "training" => ("train", "pipeline"),
        "step_end" => ("step", "pipeline"),
        "load_batch_mem" => ("fetch", "dataloader"),
        "all_compute" => ("compute", "compute"),
        key if phase.as_deref() == Some("checkpoint") => (key, "checkpoint"),
        key => (key, "pipeline"),
    };
    Meaning { name: name.to_owned(), cat, phase }
}

/// A phase that has begun.
struct Open {
    rank: u32,
    key: String,
    start_ns: i64,
    /// Its other arguments, as the log has them.
    args: Vec<(String, String)>,
}

/// Pairs begins and ends, and gives spans.
pub(super) struct Phases<'a> {
    set: &'a Set,
    overrides: &'a super::Overrides,
    open: Vec<Open>,
    named: HashMap<u32, u32>,
    teller: Teller<'a>,
}

/// One of the log's own values, as JSON.
pub(super) type Args = Vec<(String, String)>;

impl<'a> Phases<'a> {
    pub(super) fn new(set: &'a Set, overrides: &'a super::Overrides, sink: &mut dyn Sink) -> Result<Phases<'a>> {
        let teller = Teller::apart(set, sink, "phases", 2)?;
        Ok(Phases { set, overrides, open: Vec::new(), named: HashMap::new(), teller })
    }

    /// The process of a rank: the worker that has it, else one that stands for the log.
    fn pid(&mut self, rank: u32, sink: &mut dyn Sink) -> Result<u32> {
        if let Some(pid) = self.named.get(&rank) {
            return Ok(*pid);
        }
        let pid = match self.set.of_rank(rank) {
            Some(pid) => {
                self.teller.process(pid, b"", sink)?;
                pid
            }
            None => {
                let pid = LOG_PID.saturating_add(rank);
                let name = if self.set.workload.is_empty() { "application log" } else { &self.set.workload };
                let name = if rank == 0 { name.to_owned() } else { format!("{name}, rank {rank}") };
                sink.process(&Process { pid, name: &name, rank: Some(rank), ..Process::default() })?;
                pid
            }
        };
        if self.named.len() < MOST_OPEN {
            self.named.insert(rank, pid);
        }
        Ok(pid)
    }

    /// A phase begins. False where too many have.
    pub(super) fn begin(&mut self, rank: u32, key: &str, at_ns: i64, args: Args) -> bool {
        let room = self.open.len() < MOST_OPEN;
        if room {
            self.open.push(Open { rank, key: key.to_owned(), start_ns: at_ns, args });
        }
        room
    }

    /// A phase ends: the first that began of those with its key. False where none did.
    pub(super) fn end(&mut self, rank: u32, key: &str, at_ns: i64, args: Args, sink: &mut dyn Sink) -> Result<bool> {
        let Some(place) = self.open.iter().position(|open| open.rank == rank && open.key == key) else {
            return Ok(false);
        };
        let mut open = self.open.remove(place);
        for (name, value) in args {
            if !open.args.iter().any(|(known, _)| *known == name) {
                open.args.push((name, value));
            }
        }
        self.span(rank, key, (open.start_ns, at_ns), &open.args, sink)?;
        Ok(true)
    }

    /// Something that lasted.
    pub(super) fn span(
        &mut self,
        rank: u32,
        key: &str,
        (start_ns, end_ns): (i64, i64),
        more: &[(String, String)],
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let pid = self.pid(rank, sink)?;
        let meaning = meaning(key, &self.overrides.phases);
        let tid = self.teller.lane(pid, start_ns, end_ns, sink)?;
        let mut args: Vec<(&str, Arg<'_>)> = Vec::with_capacity(more.len() + 2);
        if meaning.name != key {
            args.push(("key", Arg::Text(key.as_bytes())));
        }
        if let Some(phase) = &meaning.phase {
            args.push(("phase", Arg::Text(phase.as_bytes())));
        }
        args.extend(more.iter().map(|(name, value)| (epoch(name), Arg::Json(value))));
        let end_ns = end_ns.max(start_ns);
        sink.event(&Event {
            shape: Shape::Span { end_ns },
            name: &meaning.name,
            cat: meaning.cat,
            pid,
            tid,
            start_ns,
            args: &args,
        })
    }

    /// A moment.
    pub(super) fn instant(
        &mut self,
        rank: u32,
        key: &str,
        at_ns: i64,
        more: &[(String, String)],
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let pid = self.pid(rank, sink)?;
        let args: Vec<_> = more.iter().map(|(name, value)| (epoch(name), Arg::Json(value))).collect();
        sink.event(&Event {
            shape: Shape::Instant,
            name: key,
            cat: "pipeline",
            pid,
            tid: pid,
            start_ns: at_ns,
            args: &args,
        })
    }

    /// The log is over: what has not ended lasted until then.
    pub(super) fn finish(&mut self, at_ns: i64, sink: &mut dyn Sink) -> Result<()> {
        for mut open in std::mem::take(&mut self.open) {
            open.args.push(("unfinished".to_owned(), "true".to_owned()));
            self.span(open.rank, &open.key, (open.start_ns, at_ns), &open.args, sink)?;
        }
        Ok(())
    }
}

/// The key that analyses group by.
fn epoch(name: &str) -> &str {
    if name == "epoch_num" { "epoch" } else { name }
}
