//! Global ids, and the remapping of a thread's local ids to them.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::dictionary::{DefinitionKind, Process, Strings};
use crate::rows::{Collector, Definition, Meaning, OfFile, key_of, meaning_of, open_key};

/// The common tables.
#[derive(Default)]
pub(crate) struct Tables {
    pub names: Strings,
    pub cats: Strings,
    /// Hashes of files, each with what it means where it stands: keys of [`crate::rows`].
    pub files: Strings,
    pub processes: Vec<Process>,
    by_key: FxHashMap<String, u32>,
    /// What hashes mean; the first definition counts.
    pub definitions: FxHashMap<(u8, String), String>,
    /// The same, in the order of their coming.
    pub defined: Vec<(DefinitionKind, String)>,
    /// The key that a hash has at this place of a file.
    current: FxHashMap<(usize, String), u32>,
    /// What hashes mean that were used before their file defined them, by their keys.
    behind: FxHashMap<u32, String>,
    /// Facts that files state about all their processes.
    of_files: FxHashMap<String, Vec<OfFile>>,
}

/// A thread's ids → common ones.
#[derive(Default)]
pub(crate) struct Maps {
    pub names: Vec<u32>,
    pub cats: Vec<u32>,
    pub files: Vec<u32>,
    pub processes: Vec<u32>,
}

impl Tables {
    /// Takes up what a collector has met since the last time.
    pub(crate) fn merge(&mut self, collector: &mut Collector, maps: &mut Maps) {
        extend(&mut self.names, &collector.names, &mut maps.names);
        extend(&mut self.cats, &collector.cats, &mut maps.cats);
        for id in maps.files.len()..collector.files.keys.len() {
            maps.files.push(self.file(collector.files.keys.get(id as u32)));
        }
        for process in &collector.process_table.processes[maps.processes.len()..] {
            maps.processes.push(self.process(process));
        }
        for changed in std::mem::take(&mut collector.process_table.changed) {
            let known = maps.processes[changed as usize];
            self.processes[known as usize].complete(&collector.process_table.processes[changed as usize]);
        }
        for (file, of_file) in std::mem::take(&mut collector.process_table.files) {
            let known = self.of_files.entry(file).or_default();
            if !known.contains(&of_file) {
                known.push(of_file);
            }
        }
        for Definition { file, kind, hash, name } in std::mem::take(&mut collector.definitions) {
            if let Some(file) = file {
                self.define_in_file(file, &hash, &name);
            }
            self.define(kind, hash, name);
        }
    }

    /// The common number of a key. A hash that is used before this stretch of its file defines it means what the stretches before said last.
    fn file(&mut self, key: &str) -> u32 {
        if let (hash, Meaning::Open(file)) = meaning_of(key)
            && let Some(known) = self.current.get(&(file, hash.to_owned()))
        {
            return *known;
        }
        self.files.intern(key)
    }

    fn define_in_file(&mut self, file: usize, hash: &str, path: &str) {
        if let Some(open) = self.files.find(&open_key(hash, file)) {
            self.behind.entry(open).or_insert_with(|| path.to_owned());
        }
        let key = self.files.intern(&key_of(hash, path));
        self.current.insert((file, hash.to_owned()), key);
    }

    /// All keys of files, in the order of their numbers, with what is known now that everything is read.
    pub(crate) fn file_keys(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.files.iter().zip(0..).map(|(key, id)| match (meaning_of(key), self.behind.get(&id)) {
            ((hash, Meaning::Open(_)), Some(path)) => Cow::Owned(key_of(hash, path)),
            ((hash, Meaning::Open(_)), None) => Cow::Borrowed(hash),
            _ => Cow::Borrowed(key),
        })
    }

    /// The path of a key; nothing if it is undefined.
    pub(crate) fn path<'t>(&'t self, key: &'t str) -> Option<&'t str> {
        match meaning_of(key) {
            (_, Meaning::Path(path)) => Some(path),
            (hash, _) => self.definition(DefinitionKind::Path, hash),
        }
    }

    /// Everything is read: processes of unknown host are on the host that their file names, and have its rank.
    pub(crate) fn settle(&mut self) {
        for process in self.processes.iter_mut().filter(|process| !process.file.is_empty()) {
            let Some(notes) = self.of_files.get(&process.file) else { continue };
            process.rank = process.rank.or_else(|| {
                notes.iter().find_map(|of_file| if let OfFile::Rank(rank) = of_file { Some(*rank) } else { None })
            });
            let name = |of_file: &OfFile| match of_file {
                OfFile::Host(name) => Some(name.clone()),
                OfFile::HostHash(hash) => {
                    Some(self.definitions.get(&(DefinitionKind::Host as u8, hash.clone())).unwrap_or(hash).clone())
                }
                OfFile::Rank(_) => None,
            };
            let mut names: Vec<String> = notes.iter().filter_map(name).collect();
            names.sort_unstable();
            names.dedup();
            if let [host] = names.as_slice() {
                host.clone_into(&mut process.host);
                process.file.clear();
            }
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

    pub(crate) fn define(&mut self, kind: DefinitionKind, hash: String, name: String) {
        let key = (kind as u8, hash);
        if !self.definitions.contains_key(&key) {
            self.defined.push((kind, key.1.clone()));
            self.definitions.insert(key, name);
        }
    }

    pub(crate) fn definition(&self, kind: DefinitionKind, hash: &str) -> Option<&str> {
        self.definitions.get(&(kind as u8, hash.to_owned())).map(String::as_str)
    }
}

fn extend(all: &mut Strings, own: &Strings, map: &mut Vec<u32>) {
    for id in map.len()..own.len() {
        map.push(all.intern(own.get(id as u32)));
    }
}
