//! What ids mean away from the dictionary that gave them: the texts by which another process finds its own ids.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use weftline_index::Dictionary;

use super::StateError;

/// An id, with what it is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Id {
    Name(u32),
    Cat(u32),
    File(u32),
    Process(u32),
}

/// Old ids → new ones. Ids that nobody uses have none.
#[derive(Debug)]
pub(crate) struct Maps {
    names: Vec<u32>,
    cats: Vec<u32>,
    files: Vec<u32>,
    processes: Vec<u32>,
    /// New ids of processes → those that stand for them where all execs of a process are one; nothing where everybody still stands for itself.
    firsts: Option<Vec<u32>>,
}

impl Maps {
    pub(crate) fn name(&self, id: u32) -> u32 {
        self.names[id as usize]
    }

    pub(crate) fn cat(&self, id: u32) -> u32 {
        self.cats[id as usize]
    }

    pub(crate) fn file(&self, id: u32) -> u32 {
        self.files[id as usize]
    }

    pub(crate) fn process(&self, id: u32) -> u32 {
        self.processes[id as usize]
    }

    /// The process that stands for it.
    pub(crate) fn first(&self, id: u32) -> u32 {
        let id = self.process(id);
        self.firsts.as_ref().map_or(id, |firsts| firsts[id as usize])
    }

    /// The same, and of all execs of a process the one that stands for it.
    pub(super) fn with_firsts(mut self, firsts: &[u32]) -> Maps {
        self.firsts = Some(firsts.to_vec());
        self
    }
}

/// A text, and how many equal ones have a smaller id: without an index several ids may mean the same path.
type Key = (String, u32);

/// The meaning of a state's own ids: 0, 1, 2 … in each list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keys {
    names: Vec<Key>,
    cats: Vec<Key>,
    files: Vec<Key>,
    /// [`weftline_index::Process::key`].
    processes: Vec<Key>,
}

const NONE: u32 = u32::MAX;

/// Which ids of a dictionary are used.
struct Used([Vec<bool>; 4]);

fn place(id: Id) -> (usize, usize) {
    match id {
        Id::Name(id) => (0, id as usize),
        Id::Cat(id) => (1, id as usize),
        Id::File(id) => (2, id as usize),
        Id::Process(id) => (3, id as usize),
    }
}

/// All keys of a dictionary by id.
fn all(dictionary: &Dictionary) -> [Vec<Key>; 4] {
    fn numbered(texts: impl Iterator<Item = String>) -> Vec<Key> {
        let mut seen: FxHashMap<String, u32> = FxHashMap::default();
        let number = |text: String| {
            let count = seen.entry(text.clone()).or_insert(0);
            let earlier = *count;
            *count += 1;
            (text, earlier)
        };
        texts.map(number).collect()
    }
    [
        numbered(dictionary.names.iter().map(str::to_owned)),
        numbered(dictionary.cats.iter().map(str::to_owned)),
        numbered(dictionary.files.iter().map(str::to_owned)),
        numbered(dictionary.processes.iter().map(weftline_index::Process::key)),
    ]
}

fn by_key<K: Eq + Hash>(keys: impl IntoIterator<Item = K>) -> FxHashMap<K, u32> {
    keys.into_iter().zip(0..).collect()
}

impl Keys {
    /// Keys of those ids of a dictionary that `each_id` shows, and how they are renumbered.
    pub(super) fn of(dictionary: &Dictionary, each_id: impl FnOnce(&mut dyn FnMut(Id))) -> (Keys, Maps) {
        let all = all(dictionary);
        let mut used = Used(std::array::from_fn(|kind| vec![false; all[kind].len()]));
        each_id(&mut |id| {
            let (kind, id) = place(id);
            used.0[kind][id] = true;
        });
        let mut kept = all.into_iter().zip(used.0).map(|(keys, used)| {
            let mut next = 0;
            let number = |used: &bool| {
                let id = if *used { next } else { NONE };
                next += u32::from(*used);
                id
            };
            let map: Vec<u32> = used.iter().map(number).collect();
            let keys: Vec<Key> = keys.into_iter().zip(used).filter(|(_, used)| *used).map(|(key, _)| key).collect();
            (keys, map)
        });
        let mut next = || kept.next().unwrap_or_default();
        let ((names, name_map), (cats, cat_map), (files, file_map), (processes, process_map)) =
            (next(), next(), next(), next());
        let maps = Maps { names: name_map, cats: cat_map, files: file_map, processes: process_map, firsts: None };
        (Keys { names, cats, files, processes }, maps)
    }

    fn lists(&self) -> [&[Key]; 4] {
        [&self.names, &self.cats, &self.files, &self.processes]
    }

    /// Whether an id is one of these.
    pub(super) fn has(&self, id: Id) -> bool {
        let (kind, id) = place(id);
        id < self.lists()[kind].len()
    }

    /// Takes up the keys of others; how their ids are renumbered.
    pub(super) fn add(&mut self, other: Keys) -> Maps {
        fn join(own: &mut Vec<Key>, other: Vec<Key>) -> Vec<u32> {
            let mut known = by_key(own.iter().cloned());
            let find = |key: Key| {
                *known.entry(key).or_insert_with_key(|key| {
                    own.push(key.clone());
                    own.len() as u32 - 1
                })
            };
            other.into_iter().map(find).collect()
        }
        Maps {
            names: join(&mut self.names, other.names),
            cats: join(&mut self.cats, other.cats),
            files: join(&mut self.files, other.files),
            processes: join(&mut self.processes, other.processes),
            firsts: None,
        }
    }

    /// The ids that a dictionary has for these.
    pub(super) fn within(&self, dictionary: &Dictionary) -> Result<Maps, StateError> {
        let all = all(dictionary);
        let find = |kind: usize| {
            let known = by_key(all[kind].iter());
            let each = self.lists()[kind].iter().map(|key| {
                let unknown = || StateError::OtherRun { what: format!("{:?}", key.0) };
                known.get(key).copied().ok_or_else(unknown)
            });
            each.collect::<Result<Vec<u32>, StateError>>()
        };
        Ok(Maps { names: find(0)?, cats: find(1)?, files: find(2)?, processes: find(3)?, firsts: None })
    }
}
