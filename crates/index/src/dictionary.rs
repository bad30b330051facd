//! The dictionary of a run: names, categories, paths and processes by id.

use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Strings and their ids: 0, 1, 2 … in the order of their first use.
#[derive(Debug, Clone, Default)]
pub struct Strings {
    text: String,
    ends: Vec<u32>,
    table: HashTable<u32>,
    recent: Recent,
}

/// Short strings that were met lately, by a few of their bits. Events have few names and categories: to compare two words here is
/// several times as fast as to look into the table.
#[derive(Debug, Clone, Default)]
struct Recent {
    places: Vec<Option<(Short, u32)>>,
}

/// A string of at most sixteen bytes: its first and its last eight, which may overlap, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Short {
    first: u64,
    last: u64,
    len: u8,
}

impl Short {
    #[inline]
    fn of(text: &str) -> Option<Short> {
        let bytes = text.as_bytes();
        let len = bytes.len();
        let (first, last) = if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
        } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
            (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into())
        } else {
            let byte = |at: usize| u64::from(bytes.get(at).copied().unwrap_or(0));
            (byte(0) | byte(1) << 8 | byte(2) << 16, 0)
        };
        (len <= 16).then_some(Short { first, last, len: len as u8 })
    }

    #[inline]
    fn place(self) -> usize {
        let mixed = (self.first ^ self.last.rotate_left(23) ^ u64::from(self.len)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - RECENT.ilog2())) as usize
    }
}

/// How many short strings are remembered: those of the files that a hundred processes work on at a time, too.
const RECENT: usize = 1024;

/// A table beyond this size would overflow its offsets; strings that come later share one id.
const MOST_TEXT: usize = u32::MAX as usize - (1 << 20);
/// What they are called.
const BEYOND: &str = "(too many different strings)";

fn hash(text: &str) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

impl Strings {
    /// The id of a string; a new one when it has none yet.
    #[inline]
    pub fn intern(&mut self, text: &str) -> u32 {
        let Some(short) = Short::of(text) else { return self.find_or_add(text) };
        if let Some(Some((known, id))) = self.recent.places.get(short.place())
            && *known == short
        {
            return *id;
        }
        let id = self.find_or_add(text);
        self.recent.places.resize(RECENT, None);
        self.recent.places[short.place()] = Some((short, id));
        id
    }

    fn find_or_add(&mut self, text: &str) -> u32 {
        let hash_of = hash(text);
        if let Some(id) = self.table.find(hash_of, |id| self.get(*id) == text) {
            return *id;
        }
        if self.text.len() + text.len() > MOST_TEXT && text != BEYOND {
            return self.find_or_add(BEYOND);
        }
        let id = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        let (ends, all) = (&self.ends, &self.text);
        self.table.insert_unique(hash_of, id, |id| hash(slice(all, ends, *id)));
        id
    }

    /// Adds a string under the next id, even one that is there already.
    pub(crate) fn push(&mut self, text: &str) {
        let id = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        let (ends, all) = (&self.ends, &self.text);
        self.table.insert_unique(hash(text), id, |id| hash(slice(all, ends, *id)));
    }

    /// The id of a string that is there.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.table.find(hash(text), |id| self.get(*id) == text).copied()
    }

    /// The string of an id.
    pub fn get(&self, id: u32) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|id| self.get(id))
    }
}

fn slice<'t>(text: &'t str, ends: &[u32], id: u32) -> &'t str {
    let id = id as usize;
    let Some(end) = ends.get(id) else { return "" };
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &text[start as usize..*end as usize]
}

/// A process as the trace describes it. Only `pid` is always present.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its number on its host.
    pub pid: i64,
    /// The hash by which its events name their host; empty where they do not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hhash: String,
    /// Its host; empty where the trace does not tell.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The trace file of the process, if nothing names its host: equal pids in two such files are two processes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Its namespace of pids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pidns: Option<u64>,
    /// Distinguishes this image from others with the same pid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// The kernel's boot id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot: String,
    /// Its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ppid: Option<i64>,
    /// Its start, clock ticks since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Its rank within a parallel job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<i64>,
    /// What viewers call it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its executable.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub exe: String,
    /// Its command line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Its working directory at the start.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    /// All that the kernel told of it are requests of block devices.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_requests: bool,
}

impl Process {
    /// The scope of its pid: its host, or else its trace file.
    fn place(&self) -> &str {
        [&self.host, &self.hhash, &self.file].into_iter().find(|place| !place.is_empty()).map_or("", String::as_str)
    }

    /// Whether it is none: as pid 0 stand the host, whose samples these are, or a device.
    pub fn is_host_or_device(&self) -> bool {
        self.pid == 0
    }

    /// Whether it is a thread of the kernel's own: a child of kthreadd (pid 2), or that one itself, without a program.
    fn is_kernel_thread(&self) -> bool {
        (self.ppid == Some(2) || self.pid == 2 && self.ppid == Some(0))
            && self.exe.is_empty()
            && self.command.is_empty()
    }

    /// Whether it is no process: the host, a device, a thread of the kernel.
    fn is_none(&self) -> bool {
        self.is_host_or_device() || self.is_kernel_thread()
    }

    /// What makes two records the same exec of a process; no two entries of a dictionary have the same.
    pub fn key(&self) -> String {
        let (place, pidns) = (self.place(), self.pidns.unwrap_or(0));
        match self.start.filter(|_| self.is_only_sampled()) {
            // A long collection meets several processes of one pid.
            Some(start) => format!("{place}\n{pidns}\n{}\nstart {start}", self.pid),
            None => format!("{place}\n{pidns}\n{}\n{}", self.pid, self.nonce),
        }
    }

    /// Whether a collector alone speaks of it: it does not see which image a process runs, only its latest command.
    pub(crate) fn is_only_sampled(&self) -> bool {
        self.nonce.is_empty() && !self.boot.is_empty()
    }

    /// Takes over what the other record knows and this one does not.
    pub(crate) fn complete(&mut self, other: &Process) {
        let text = |own: &mut String, other: &str| {
            if own.is_empty() {
                other.clone_into(own);
            }
        };
        text(&mut self.host, &other.host);
        text(&mut self.hhash, &other.hhash);
        text(&mut self.boot, &other.boot);
        text(&mut self.name, &other.name);
        text(&mut self.exe, &other.exe);
        text(&mut self.cwd, &other.cwd);
        self.ppid = self.ppid.or(other.ppid);
        self.pidns = self.pidns.or(other.pidns);
        self.start = self.start.or(other.start);
        self.rank = self.rank.or(other.rank);
        self.only_requests &= other.only_requests;
        if self.is_only_sampled() && !other.command.is_empty() {
            // It may have called exec since.
            self.command.clone_from(&other.command);
            self.exe.clone_from(&other.exe);
            self.name.clone_from(&other.name);
        } else if self.command.is_empty() {
            self.command.clone_from(&other.command);
        }
    }
}

/// What a hash means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DefinitionKind {
    /// A path (`FH`).
    Path,
    /// A host (`HH`).
    Host,
    /// Any other text (`SH`).
    Text,
}

/// The meaning of all ids of a run.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    /// Names of events.
    pub names: Strings,
    /// Categories of events, as they were written.
    pub cats: Strings,
    /// Files: paths, or hashes whose path the trace does not tell.
    pub files: Strings,
    /// Per file: whether its path is known.
    pub known: Vec<bool>,
    /// Processes, by their id.
    pub processes: Vec<Process>,
    /// What the other hashes mean.
    pub texts: FxHashMap<String, String>,
}

impl Dictionary {
    /// A name.
    pub fn name(&self, id: u32) -> &str {
        self.names.get(id)
    }

    /// A category as it was written.
    pub fn cat(&self, id: u32) -> &str {
        self.cats.get(id)
    }

    /// A file's path; nothing where only its hash is known.
    pub fn path(&self, id: u32) -> Option<&str> {
        self.known.get(id as usize).copied().unwrap_or(false).then(|| self.files.get(id))
    }

    /// A file's path, or else its hash.
    pub fn file(&self, id: u32) -> &str {
        self.files.get(id)
    }

    /// A process.
    pub fn process(&self, id: u32) -> &Process {
        &self.processes[id as usize]
    }

    /// Which process each entry is: entries differ by what a process executed, and by who tells of it. A process is told by its host, its namespace of pids,
    /// its pid and, since pids are used again, its start; numbers are those of its first entry.
    ///
    /// The host itself, devices and threads of the kernel are none. Nor is whoever did nothing but issue requests to block devices: the kernel tells those of
    /// everybody, and they are of its own threads, which write back what others wrote, or of processes that have nothing to do with the run.
    pub fn identities(&self) -> Vec<Option<u32>> {
        // What does not know its namespace or its start (a child between vfork and exec) has those of the first that does.
        let mut namespaces: FxHashMap<(&str, i64), u64> = FxHashMap::default();
        let mut starts: FxHashMap<(&str, u64, i64), u64> = FxHashMap::default();
        let namespace = |known: &FxHashMap<(&str, i64), u64>, process: &Process| {
            process.pidns.or_else(|| known.get(&(process.place(), process.pid)).copied()).unwrap_or(0)
        };
        for process in &self.processes {
            if let Some(pidns) = process.pidns {
                namespaces.entry((process.place(), process.pid)).or_insert(pidns);
            }
        }
        for process in &self.processes {
            if let Some(start) = process.start {
                starts.entry((process.place(), namespace(&namespaces, process), process.pid)).or_insert(start);
            }
        }
        // The first entry of each process, and whether one of its entries tells of a process.
        let mut firsts: FxHashMap<(&str, u64, i64, u64), (u32, bool)> = FxHashMap::default();
        let mut keys = Vec::with_capacity(self.processes.len());
        for (process, id) in self.processes.iter().zip(0..) {
            let (place, pidns) = (process.place(), namespace(&namespaces, process));
            let start = process.start.or_else(|| starts.get(&(place, pidns, process.pid)).copied()).unwrap_or(0);
            let key = (place, pidns, process.pid, start);
            firsts.entry(key).or_insert((id, false)).1 |= !process.only_requests && !process.is_none();
            keys.push(key);
        }
        keys.iter().map(|key| firsts.get(key).filter(|(_, is_told)| *is_told).map(|(first, _)| *first)).collect()
    }

    /// The name of a process's host; where only a hash is known, nothing.
    pub fn host(&self, id: u32) -> Option<&str> {
        let process = self.processes.get(id as usize)?;
        (!process.host.is_empty()).then_some(process.host.as_str())
    }

    /// What a hash of a string (`SH`) means.
    pub fn text(&self, hash: &str) -> Option<&str> {
        self.texts.get(hash).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of one host, and which of them are one process.
    fn check(entries: &[Process], expected: &[Option<u32>]) {
        let on_host = |process: &Process| Process { host: "vm".into(), ..process.clone() };
        let dictionary = Dictionary { processes: entries.iter().map(on_host).collect(), ..Dictionary::default() };
        assert_eq!(dictionary.identities(), expected, "{entries:#?}");
    }

    #[test]
    fn who_tells_of_a_process_makes_no_other() {
        let exec = |nonce: &str| Process {
            pid: 90,
            pidns: Some(4_026_531_836),
            start: Some(7),
            nonce: nonce.into(),
            ..Process::default()
        };
        let by_kernel = Process { pid: 90, boot: "b".into(), ..Process::default() };
        let sampled = Process { start: Some(7), ..by_kernel.clone() };
        let earlier = Process { start: Some(3), ..by_kernel.clone() };
        check(&[by_kernel, exec("a"), exec("b"), sampled, earlier], &[Some(0), Some(0), Some(0), Some(0), Some(4)]);
    }

    #[test]
    fn threads_of_the_kernel_are_no_processes() {
        let of = |pid: i64, ppid: i64| Process { pid, ppid: Some(ppid), ..Process::default() };
        let told = |process: Process| Process { exe: "/bin/sh".into(), ..process };
        let named = |process: Process| Process { command: vec!["sh".into()], ..process };
        check(&[of(0, 0), of(2, 0), of(35, 2), of(1, 0)], &[None, None, None, Some(3)]);
        // In a namespace of its own pid 2 is a program like any other.
        check(&[told(of(2, 0)), named(of(35, 2))], &[Some(0), Some(1)]);
    }

    #[test]
    fn who_only_issued_requests_is_no_process() {
        let issuer = |pid: i64| Process { pid, only_requests: true, ..Process::default() };
        let exec = Process { pid: 90, nonce: "a".into(), ..Process::default() };
        let worker = Process { pid: 35, ppid: Some(2), start: Some(7), ..Process::default() };
        check(&[issuer(44), issuer(90), exec, worker, issuer(35)], &[None, Some(1), Some(1), None, None]);
    }
}
