//! Ids that all threads share, and how a thread's own ids become these.

use rustc_hash::FxHashMap;

use crate::dictionary::{Kind, Process, Strings};
use crate::rows::Collector;

/// The common tables.
#[derive(Default)]
pub(crate) struct Tables {
    pub names: Strings,
    pub cats: Strings,
    /// Hashes of files.
    pub hashes: Strings,
    pub processes: Vec<Process>,
    by_key: FxHashMap<String, u32>,
    /// What hashes mean; the first definition counts.
    pub meanings: FxHashMap<(u8, String), String>,
    /// The same, in the order of their coming.
    pub defined: Vec<(Kind, String)>,
}

/// A thread's ids → common ones.
#[derive(Default)]
pub(crate) struct Maps {
    pub names: Vec<u32>,
    pub cats: Vec<u32>,
    pub hashes: Vec<u32>,
    pub processes: Vec<u32>,
}

impl Tables {
    /// Takes up what a collector has met since the last time.
    pub(crate) fn merge(&mut self, collector: &mut Collector, maps: &mut Maps) {
        extend(&mut self.names, &collector.names, &mut maps.names);
        extend(&mut self.cats, &collector.cats, &mut maps.cats);
        extend(&mut self.hashes, &collector.hashes, &mut maps.hashes);
        for process in &collector.people.processes[maps.processes.len()..] {
            maps.processes.push(self.process(process));
        }
        for changed in std::mem::take(&mut collector.people.changed) {
            let known = maps.processes[changed as usize];
            self.processes[known as usize].complete(&collector.people.processes[changed as usize]);
        }
        for definition in std::mem::take(&mut collector.definitions) {
            self.define(definition.kind, definition.hash, definition.name);
        }
    }

    fn process(&mut self, process: &Process) -> u32 {
        let key = process.key();
        if let Some(id) = self.by_key.get(&key) {
            self.processes[*id as usize].complete(process);
            return *id;
        }
        let id = self.processes.len() as u32;
        self.processes.push(process.clone());
        self.by_key.insert(key, id);
        id
    }

    pub(crate) fn define(&mut self, kind: Kind, hash: String, name: String) {
        let key = (kind as u8, hash);
        if !self.meanings.contains_key(&key) {
            self.defined.push((kind, key.1.clone()));
            self.meanings.insert(key, name);
        }
    }

    pub(crate) fn meaning(&self, kind: Kind, hash: &str) -> Option<&str> {
        self.meanings.get(&(kind as u8, hash.to_owned())).map(String::as_str)
    }
}

fn extend(all: &mut Strings, own: &Strings, map: &mut Vec<u32>) {
    for id in map.len()..own.len() {
        map.push(all.intern(own.get(id as u32)));
    }
}
