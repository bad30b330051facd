//! What a trace says of its tracks, processes and threads. Packets tell it anywhere in the file, also behind the events that it is about, so the first
//! pass collects it.

use std::collections::{BTreeMap, HashMap};

use weftline_format::text::from_bytes;

use crate::formats::wire::{Fields, Value};

/// Tracks, processes or threads that are kept of each.
const MOST: usize = 1 << 20;
/// Bytes of all their names.
const MOST_NAMES: usize = 128 << 20;
/// Tracks above a track.
const DEEPEST: usize = 64;
/// Words of a command line.
const MOST_WORDS: usize = 4096;

/// One track, as described.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Track {
    pub(super) name: String,
    parent: u64,
    thread: Option<(u32, u32)>,
    process: Option<u32>,
    pub(super) counter: Option<Counter>,
}

/// How a counter counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counter {
    /// What its values are called.
    pub(super) unit: String,
    pub(super) multiplier: i64,
    /// Values are what is added.
    pub(super) incremental: bool,
    /// What it is called where nothing else is said.
    builtin: &'static str,
}

/// Who a process is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) name: String,
    pub(super) ppid: u32,
    pub(super) command: Vec<String>,
}

/// Where events of a track belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// A thread's own track: what is on it is nested.
    Thread { pid: u32, tid: u32 },
    /// A track by its number.
    Track(u64),
    /// Events that belong together by an id, of a process where the id is the process's.
    Id { hash: u64, pid: u32 },
}

/// All of one trace.
#[derive(Debug, Clone, Default)]
pub(super) struct Tracks {
    tracks: HashMap<u64, Track>,
    pub(super) processes: BTreeMap<u32, Who>,
    threads: HashMap<(u32, u32), String>,
    bytes: usize,
    /// What did not fit.
    pub(super) refused: u64,
}

impl Tracks {
    pub(super) fn get(&self, uuid: u64) -> Option<&Track> {
        self.tracks.get(&uuid)
    }

    pub(super) fn thread_name(&self, pid: u32, tid: u32) -> Option<&str> {
        self.threads.get(&(pid, tid)).map(String::as_str)
    }

    /// Where events of a track belong.
    pub(super) fn place(&self, uuid: u64) -> Place {
        match self.tracks.get(&uuid).and_then(|track| track.thread) {
            Some((pid, tid)) => Place::Thread { pid, tid },
            None => Place::Track(uuid),
        }
    }

    /// Process and thread of a track: its own, or those of the tracks above it. 0 for none.
    pub(super) fn owner(&self, uuid: u64) -> (u32, u32) {
        let mut at = uuid;
        for _ in 0..DEEPEST {
            let Some(track) = self.tracks.get(&at) else { break };
            match (track.thread, track.process) {
                (Some(thread), _) => return thread,
                (None, Some(pid)) => return (pid, pid),
                (None, None) if track.parent == 0 => break,
                (None, None) => at = track.parent,
            }
        }
        (0, 0)
    }

    /// `TrackDescriptor`. Said again, it adds to what is known.
    pub(super) fn track(&mut self, bytes: &[u8]) {
        let mut uuid = 0;
        let mut new = Track::default();
        let (mut name, mut static_name) = (None, None);
        let (mut process, mut thread) = (None, None);
        for (field, value) in Fields::new(bytes) {
            match (field, value) {
                (1, _) => uuid = value.number().unwrap_or(0),
                (5, _) => new.parent = value.number().unwrap_or(0),
                (2, Value::Bytes(text)) => name = Some(text),
                (10 | 13, Value::Bytes(text)) => static_name = Some(text),
                (3, Value::Bytes(bytes)) => process = Some(bytes),
                (4, Value::Bytes(bytes)) => thread = Some(bytes),
                (8, Value::Bytes(bytes)) => new.counter = Some(counter(bytes)),
                // How a viewer sorts and merges it, and what Chrome says of processes besides.
                _ => {}
            }
        }
        let name = name.or(static_name).unwrap_or_default();
        if let Some(process) = process {
            new.process = self.process(process, name);
        }
        if let Some(thread) = thread {
            new.thread = self.thread(thread, name);
        }
        let builtin = new.counter.as_ref().map_or("", |counter| counter.builtin);
        let name = if name.is_empty() { builtin.into() } else { from_bytes(name) };
        // Traces say the same again and again, for readers that come in late.
        let known = self.tracks.get(&uuid);
        if known.is_none_or(|track| track.name != name) && !self.room(known.is_none(), self.tracks.len(), name.len()) {
            return;
        }
        let known = self.tracks.entry(uuid).or_default();
        if !name.is_empty() && known.name != name {
            known.name = name.into_owned();
        }
        if new.parent != 0 {
            known.parent = new.parent;
        }
        known.thread = new.thread.or(known.thread);
        known.process = new.process.or(known.process);
        known.counter = new.counter.or(known.counter.take());
    }

    /// `ProcessDescriptor`, and what its track is called.
    pub(super) fn process(&mut self, bytes: &[u8], track: &[u8]) -> Option<u32> {
        let (mut pid, mut name, mut command) = (None, &b""[..], Vec::new());
        for (field, value) in Fields::new(bytes) {
            match (field, value) {
                (1, _) => pid = value.low(),
                (2, Value::Bytes(word)) => add_word(&mut command, word),
                (6, Value::Bytes(text)) => name = text,
                _ => {}
            }
        }
        let pid = pid?;
        self.say_process(pid, if name.is_empty() { track } else { name }, 0, command);
        Some(pid)
    }

    /// `ThreadDescriptor`, and what its track is called.
    pub(super) fn thread(&mut self, bytes: &[u8], track: &[u8]) -> Option<(u32, u32)> {
        let (mut pid, mut tid, mut name) = (None, None, &b""[..]);
        for (field, value) in Fields::new(bytes) {
            match (field, value) {
                (1, _) => pid = value.low(),
                (2, _) => tid = value.low(),
                (5, Value::Bytes(text)) => name = text,
                _ => {}
            }
        }
        let (pid, tid) = (pid?, tid?);
        self.say_thread(pid, tid, if name.is_empty() { track } else { name });
        Some((pid, tid))
    }

    /// `ProcessTree`.
    pub(super) fn tree(&mut self, bytes: &[u8]) {
        for (field, value) in Fields::new(bytes) {
            let Value::Bytes(bytes) = value else { continue };
            let (mut first, mut second, mut third, mut name, mut words) = (None, None, None, &b""[..], Vec::new());
            for (inner, value) in Fields::new(bytes) {
                match (inner, value) {
                    (1, _) => first = value.low(),
                    (2, Value::Bytes(text)) => name = text,
                    (2, _) => second = value.low(),
                    (3, Value::Bytes(word)) => add_word(&mut words, word),
                    (3, _) => third = value.low(),
                    _ => {}
                }
            }
            match (field, first, third) {
                (1, Some(pid), _) => {
                    let name = words.first().cloned().unwrap_or_default();
                    self.say_process(pid, name.as_bytes(), second.unwrap_or(0), words);
                }
                (2, Some(tid), Some(pid)) => self.say_thread(pid, tid, name),
                _ => {}
            }
        }
    }

    fn say_process(&mut self, pid: u32, name: &[u8], ppid: u32, command: Vec<String>) {
        let name = from_bytes(name);
        let length = name.len() + command.iter().map(|word| word.len() + size_of::<String>()).sum::<usize>();
        let known = self.processes.get(&pid);
        if known.is_none_or(|who| who.name != name || who.command != command)
            && !self.room(known.is_none(), self.processes.len(), length)
        {
            return;
        }
        let who = self.processes.entry(pid).or_default();
        if !name.is_empty() {
            who.name = name.into_owned();
        }
        if ppid != 0 {
            who.ppid = ppid;
        }
        if !command.is_empty() {
            who.command = command;
        }
    }

    fn say_thread(&mut self, pid: u32, tid: u32, name: &[u8]) {
        let name = from_bytes(name);
        let known = self.threads.get(&(pid, tid));
        if !name.is_empty()
            && known.is_none_or(|known| *known != name)
            && self.room(known.is_none(), self.threads.len(), name.len())
        {
            self.threads.insert((pid, tid), name.into_owned());
        }
    }

    fn room(&mut self, new: bool, count: usize, bytes: usize) -> bool {
        let room = (!new || count < MOST) && self.bytes + bytes <= MOST_NAMES;
        if room {
            self.bytes += bytes;
        } else {
            self.refused += 1;
        }
        room
    }
}

fn add_word(words: &mut Vec<String>, word: &[u8]) {
    if words.len() < MOST_WORDS {
        words.push(from_bytes(word).into_owned());
    }
}

fn counter(bytes: &[u8]) -> Counter {
    let (mut kind, mut unit, mut name, mut multiplier, mut incremental) = (0, 0, None, 1, false);
    for (field, value) in Fields::new(bytes) {
        match (field, value) {
            (1, _) => kind = value.number().unwrap_or(0),
            (3, _) => unit = value.number().unwrap_or(0),
            (6, Value::Bytes(text)) => name = Some(from_bytes(text).into_owned()),
            (4, _) => multiplier = value.signed().unwrap_or(1),
            (5, _) => incremental = value.number().is_some_and(|flag| flag != 0),
            _ => {}
        }
    }
    let named = match (kind, unit) {
        (1, _) | (_, 1) => "ns",
        (_, 3) => "bytes",
        (2, _) | (_, 2) => "count",
        _ => "value",
    };
    let builtin = match kind {
        1 => "thread_time",
        2 => "thread_instruction_count",
        _ => "",
    };
    let unit = name.filter(|name| !name.is_empty()).unwrap_or_else(|| named.to_owned());
    // None at all is the same as one.
    Counter { unit, multiplier: if multiplier == 0 { 1 } else { multiplier }, incremental, builtin }
}
