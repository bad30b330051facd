//! Processes are told to the sink before their first event; what overlaps on one of them is laid in lanes.

use std::collections::{HashMap, HashSet};

use super::facts::Set;
use crate::Result;
use crate::event::{Arg, Event, Process, Shape};
use crate::sink::Sink;

/// Threads that exist have smaller numbers: the kernel's own limit is 2^22.
const FIRST_LANE: u32 = 1 << 30;
/// Lanes of one process and kind. The last one takes what is left.
const MOST_LANES: usize = 256;

/// Tells a source's processes.
pub(super) struct Teller<'a> {
    set: &'a Set,
    named: HashSet<u32>,
    /// Ends of what lies in the lanes of a process.
    lanes: HashMap<u32, Vec<i64>>,
    /// What the lanes are called.
    kind: &'static str,
    /// Whether the first lane is the process's own thread.
    own_first: bool,
    first_lane: u32,
}

impl<'a> Teller<'a> {
    /// For files whose events are on threads of their processes as far as they do not overlap.
    pub(super) fn threads(set: &'a Set, sink: &mut dyn Sink) -> Result<Teller<'a>> {
        Teller::new(set, sink, "thread", true, 0)
    }

    /// For files whose events are on no thread.
    pub(super) fn apart(set: &'a Set, sink: &mut dyn Sink, kind: &'static str, place: u32) -> Result<Teller<'a>> {
        Teller::new(set, sink, kind, false, place)
    }

    fn new(set: &'a Set, sink: &mut dyn Sink, kind: &'static str, own_first: bool, place: u32) -> Result<Teller<'a>> {
        if !set.host.is_empty() {
            sink.host(&set.host)?;
        }
        let first_lane = FIRST_LANE + place * MOST_LANES as u32;
        Ok(Teller { set, named: HashSet::new(), lanes: HashMap::new(), kind, own_first, first_lane })
    }

    /// Says who a process is, once.
    pub(super) fn process(&mut self, pid: u32, comm: &[u8], sink: &mut dyn Sink) -> Result<()> {
        if pid == 0 || !self.named.insert(pid) {
            return Ok(());
        }
        match self.set.people.get(&pid) {
            Some(person) => {
                let command: Vec<&str> = person.command.iter().map(String::as_str).collect();
                let exe = command.first().copied().unwrap_or_default();
                sink.process(&Process {
                    pid,
                    name: &person.name,
                    ppid: person.ppid,
                    exe,
                    command: &command,
                    rank: person.rank,
                    ..Process::default()
                })
            }
            None => {
                let comm = String::from_utf8_lossy(comm);
                let name = if comm.is_empty() { format!("pid {pid}") } else { format!("{comm} {pid}") };
                sink.process(&Process { pid, name: &name, exe: &comm, ..Process::default() })
            }
        }
    }

    /// The thread, or lane in its place, for something that lasted. Events come nearly in the order of their ends.
    pub(super) fn lane(&mut self, pid: u32, start_ns: i64, end_ns: i64, sink: &mut dyn Sink) -> Result<u32> {
        let ends = self.lanes.entry(pid).or_default();
        let free = ends.iter().position(|end| *end <= start_ns);
        let (place, new) = match free {
            Some(place) => (place, false),
            None if ends.len() < MOST_LANES => {
                ends.push(i64::MIN);
                (ends.len() - 1, true)
            }
            None => (ends.len() - 1, false),
        };
        ends[place] = ends[place].max(end_ns);
        if self.own_first && place == 0 {
            return Ok(pid);
        }
        let tid = self.first_lane + place as u32;
        if new {
            let name = format!("{} {}", self.kind, place + 1);
            let args = [("name", Arg::Text(name.as_bytes()))];
            let shape = Shape::Metadata;
            sink.event(&Event { shape, name: "thread_name", cat: "PROCESS", pid, tid, start_ns, args: &args })?;
        }
        Ok(tid)
    }
}
