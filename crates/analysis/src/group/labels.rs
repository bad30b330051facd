//! The meaning of keys, and which ids mean the same.
//!
//! Several ids may mean the same: a path under two hashes, `POSIX` and `posix`, two images of one process. Groups are made by
//! meaning, so [`Labels`] numbers the meanings in the order of their strings: comparing label numbers is comparing strings.

use rustc_hash::{FxHashMap, FxHashSet};
use weftline_index::{Dictionary, Process};

use super::scan::NONE;

/// Texts in order, and which of them each id means.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// The meanings, sorted, each once.
    pub texts: Vec<String>,
    /// By id: the place of its meaning, or `u32::MAX` for none.
    pub of: Vec<u32>,
}

impl Labels {
    /// Numbers what ids mean.
    pub fn new<'t>(meanings: impl Iterator<Item = Option<std::borrow::Cow<'t, str>>>) -> Labels {
        let mut first: FxHashMap<std::borrow::Cow<'t, str>, u32> = FxHashMap::default();
        let mut of = Vec::new();
        for meaning in meanings {
            let next = first.len() as u32;
            of.push(meaning.map_or(NONE, |meaning| *first.entry(meaning).or_insert(next)));
        }
        let mut sorted: Vec<_> = first.into_iter().collect();
        sorted.sort_unstable();
        let mut place = vec![0; sorted.len()];
        for (at, (_, number)) in sorted.iter().enumerate() {
            place[*number as usize] = at as u32;
        }
        for label in of.iter_mut().filter(|label| **label != NONE) {
            *label = place[*label as usize];
        }
        Labels { texts: sorted.into_iter().map(|(text, _)| text.into_owned()).collect(), of }
    }

    /// The label of an id.
    #[inline]
    pub fn label(&self, id: u32) -> u32 {
        self.of.get(id as usize).copied().unwrap_or(NONE)
    }

    /// Whether no two ids mean the same, and none means nothing.
    pub fn is_one_to_one(&self) -> bool {
        self.texts.len() == self.of.len()
    }

    /// The text of a label.
    pub fn text(&self, label: u32) -> Option<&str> {
        self.texts.get(label as usize).map(String::as_str)
    }
}

/// The host of a process as tables show it.
pub fn host_text(process: &Process) -> &str {
    match (process.host.is_empty(), process.hhash.is_empty()) {
        (false, _) => &process.host,
        (true, false) => &process.hhash,
        (true, true) => "unknown",
    }
}

/// The pattern of a path: digits are all alike.
pub fn path_pattern(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len() + 16);
    for character in path.chars() {
        if character.is_ascii_digit() { pattern.push_str("[0-9]") } else { pattern.push(character) }
    }
    pattern
}

/// The directory of a path; of one without any, the empty text.
pub fn directory_of(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) => "/",
        Some(at) => &path[..at],
        None => "",
    }
}

pub(super) fn names(dictionary: &Dictionary) -> Labels {
    Labels::new(dictionary.names.iter().map(|name| Some(name.into())))
}

pub(super) fn cats(dictionary: &Dictionary) -> Labels {
    Labels::new(dictionary.cats.iter().map(|cat| Some(cat.to_lowercase().into())))
}

/// `unknown`: the label of files with only a known hash.
pub(super) fn files(dictionary: &Dictionary, unknown: bool) -> Labels {
    Labels::new(
        (0..dictionary.files.len() as u32)
            .map(|id| dictionary.path(id).or_else(|| unknown.then(|| dictionary.file(id))).map(Into::into)),
    )
}

pub(super) fn paths(dictionary: &Dictionary, of: impl Fn(&str) -> String) -> Labels {
    Labels::new((0..dictionary.files.len() as u32).map(|id| dictionary.path(id).map(|path| of(path).into())))
}

/// What tables call the processes, by their entries: host and pid; where several processes share both, with the file or the namespace of pids that tells them apart.
pub fn process_labels(dictionary: &Dictionary) -> Vec<String> {
    let identities = dictionary.identities();
    let plain = |process: &Process| format!("{}#{}", host_text(process), process.pid);
    let mut first: FxHashMap<String, Option<u32>> = FxHashMap::default();
    let mut shared: FxHashSet<String> = FxHashSet::default();
    for (process, identity) in dictionary.processes.iter().zip(&identities) {
        let label = plain(process);
        if *first.entry(label.clone()).or_insert(*identity) != *identity {
            shared.insert(label);
        }
    }
    let label = |(process, identity): (&Process, &Option<u32>)| {
        let label = plain(process);
        // Entries of one process have one name.
        let named = identity.map_or(process, |first| dictionary.process(first));
        let place = match (named.file.rsplit('/').next(), named.pidns) {
            _ if !shared.contains(&label) => return label,
            (Some(file), _) if !file.is_empty() => file.to_owned(),
            (_, Some(namespace)) => namespace.to_string(),
            _ => return label,
        };
        format!("{label}@{place}")
    };
    dictionary.processes.iter().zip(&identities).map(label).collect()
}

pub(super) fn processes(dictionary: &Dictionary) -> Labels {
    Labels::new(process_labels(dictionary).into_iter().map(|label| Some(label.into())))
}

pub(super) fn hosts(dictionary: &Dictionary) -> Labels {
    Labels::new(dictionary.processes.iter().map(|process| Some(host_text(process).into())))
}
