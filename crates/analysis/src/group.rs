//! Exact group-by over the spans of a run.
//!
//! A pass over the events groups by the ids in the batches; the meaning of the ids — effective category, host, directory — is determined
//! per group afterwards, and groups with the same meaning are merged. So no row needs work on strings, and a run without an index
//! (its dictionary is complete only after the pass) needs no second pass for queries without time or files.

mod cell;
mod labels;
mod row;
pub(crate) mod scan;
mod table;

use std::sync::Arc;

use weftline_index::{Dictionary, Filter, Run};

pub use cell::{Cell, Stats, Sums, Unknown, Values};
pub use labels::{Labels, directory_of, host_text, path_pattern, process_labels};
pub use scan::{NO_NUMBER, NONE};
pub use table::{Groups, Shard};

use crate::classify::{Classes, Rules, SizeKind};
use crate::profiles::Ids;
use crate::{AnalysisError, Result};
use scan::{KeyPart, Pass, Sizing, from_two, size_from};

/// What events are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// The time bucket of the start, counted from the trace's origin.
    Bucket,
    /// The category in lower case.
    Cat,
    /// The same with what the rules append for the file.
    EffectiveCat,
    /// The name.
    Name,
    /// Host and pid.
    Process,
    /// The thread's number.
    Thread,
    /// The file by its path; those without a known path have none.
    File,
    /// The same, but a file without a known path goes by its hash.
    FileOrHash,
    /// The directory of the file.
    Directory,
    /// The path with `[0-9]` for every digit.
    Pattern,
    /// The host.
    Host,
    /// The rank of the process.
    Rank,
    /// The argument `epoch`.
    Epoch,
    /// The argument `step`.
    Step,
    /// The I/O category, as its number.
    IoCat,
}

impl Key {
    const NAMES: [(&str, Key); 14] = [
        ("bucket", Key::Bucket),
        ("cat", Key::Cat),
        ("name", Key::Name),
        ("pid", Key::Process),
        ("process", Key::Process),
        ("thread", Key::Thread),
        ("file", Key::FileOrHash),
        ("directory", Key::Directory),
        ("pattern", Key::Pattern),
        ("host", Key::Host),
        ("rank", Key::Rank),
        ("epoch", Key::Epoch),
        ("step", Key::Step),
        ("io_cat", Key::IoCat),
    ];

    /// The key of a word that users write.
    pub fn parse(word: &str) -> Result<Key> {
        let found = Key::NAMES.iter().find(|(name, _)| *name == word);
        found.map(|(_, key)| *key).ok_or_else(|| AnalysisError::Unknown {
            what: "key",
            name: word.to_owned(),
            known: Key::NAMES.map(|(name, _)| name).join(", "),
        })
    }

    fn parts(self) -> &'static [KeyPart] {
        match self {
            Key::Bucket => &[KeyPart::Bucket],
            Key::Cat => &[KeyPart::Cat],
            Key::EffectiveCat => &[KeyPart::Cat, KeyPart::FileClass],
            Key::Name => &[KeyPart::Name],
            Key::Process | Key::Host | Key::Rank => &[KeyPart::Process],
            Key::Thread => &[KeyPart::Thread],
            Key::File | Key::FileOrHash | Key::Directory | Key::Pattern => &[KeyPart::File],
            Key::Epoch => &[KeyPart::Epoch],
            Key::Step => &[KeyPart::Step],
            Key::IoCat => &[KeyPart::Cat, KeyPart::Name],
        }
    }

    /// Words that it has in [`Grouped::groups`].
    pub fn words(self) -> usize {
        if matches!(self, Key::Thread | Key::Epoch | Key::Step | Key::Rank) { 2 } else { 1 }
    }
}

/// A question.
#[derive(Debug, Clone)]
pub struct GroupBy {
    /// The keys, in the order of the answer.
    pub keys: Vec<Key>,
    /// Width of time buckets.
    pub width_ns: i64,
    /// Which events.
    pub filter: Filter,
    /// How they are classified.
    pub rules: Arc<Rules>,
    /// Whether the rules' ignored names and files are left out.
    pub ignore: bool,
    /// Whether sizes and epochs that stand as text among the other arguments count. Reading those costs about as much as all else.
    pub rest: bool,
}

impl GroupBy {
    /// All events by these keys, in buckets of one second.
    pub fn new(keys: impl Into<Vec<Key>>) -> GroupBy {
        GroupBy {
            keys: keys.into(),
            width_ns: 1_000_000_000,
            filter: Filter::default(),
            rules: Arc::new(Rules::default()),
            ignore: false,
            rest: false,
        }
    }

    /// The answer.
    pub fn run<C: Cell>(&self, run: &Run) -> Result<Grouped<C>> {
        self.run_with(run, &|_, _| ())
    }

    /// The answer, with groups that do not come from spans: `more` adds them by ids.
    pub(crate) fn run_with<C: Cell>(
        &self,
        run: &Run,
        more: &dyn Fn(&mut Groups<C>, &KeyOfIds<'_>),
    ) -> Result<Grouped<C>> {
        let mut parts: Vec<KeyPart> = Vec::new();
        let needed = self.keys.iter().flat_map(|key| key.parts()).copied();
        let ignored: &[KeyPart] = if self.ignore { &[KeyPart::Name, KeyPart::FileClass] } else { &[] };
        for part in needed.chain(ignored.iter().copied()) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        if parts.contains(&KeyPart::File) {
            // The file determines its class.
            parts.retain(|part| *part != KeyPart::FileClass);
        }
        let streamed = run.index().is_empty();
        let ahead = parts.contains(&KeyPart::Bucket) || parts.contains(&KeyPart::FileClass);
        if streamed && !ahead {
            return self.without_dictionary(run, parts, more);
        }
        run.prepare()?;
        let dictionary = run.dictionary();
        let classes = Arc::new(Classes::new(&self.rules, &dictionary));
        let origin = run.times().origin().unwrap_or(0);
        self.check_buckets(run, &parts)?;
        let pass = self.pass(parts, Sizing::Known(&classes), origin);
        let mut groups = pass.run::<C>(run)?;
        more(&mut groups, &KeyOfIds { pass: &pass, classes: Some(&classes) });
        Ok(self.by_meaning(groups, &pass, dictionary, Arc::clone(&classes), origin))
    }

    /// A pass over a run whose dictionary is known when it is over.
    fn without_dictionary<C: Cell>(
        &self,
        run: &Run,
        mut parts: Vec<KeyPart>,
        more: &dyn Fn(&mut Groups<C>, &KeyOfIds<'_>),
    ) -> Result<Grouped<C>> {
        for part in [KeyPart::Cat, KeyPart::Name, KeyPart::SizeFrom] {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        let pass = self.pass(parts, Sizing::Later, 0);
        let mut groups = pass.run::<C>(run)?;
        more(&mut groups, &KeyOfIds { pass: &pass, classes: None });
        let dictionary = run.dictionary();
        let classes = Arc::new(Classes::new(&self.rules, &dictionary));
        let origin = run.times().origin().unwrap_or(0);
        Ok(self.by_meaning(groups, &pass, dictionary, classes, origin))
    }

    fn pass<'c>(&self, parts: Vec<KeyPart>, sizing: Sizing<'c>, origin: i64) -> Pass<'c> {
        let numbers = parts.contains(&KeyPart::Epoch) || parts.contains(&KeyPart::Step);
        Pass { parts, sizing, origin, width_ns: self.width_ns, filter: self.filter.clone(), rest: self.rest || numbers }
    }

    fn check_buckets(&self, run: &Run, parts: &[KeyPart]) -> Result<()> {
        let Some((start, end)) = run.times().spans else { return Ok(()) };
        let buckets = (i128::from(end) - i128::from(start)) / i128::from(self.width_ns.max(1)) + 1;
        if parts.contains(&KeyPart::Bucket) && buckets >= i128::from(NONE) {
            return Err(AnalysisError::TooManyBuckets { buckets, width_ns: self.width_ns });
        }
        Ok(())
    }

    /// Groups by ids become groups by what those mean.
    fn by_meaning<C: Cell>(
        &self,
        groups: Groups<C>,
        pass: &Pass<'_>,
        dictionary: Arc<Dictionary>,
        classes: Arc<Classes>,
        origin: i64,
    ) -> Grouped<C> {
        let name_table: Vec<Meaning> =
            self.keys.iter().map(|key| Meaning::new(*key, pass, &dictionary, &classes)).collect();
        let width = self.keys.iter().map(|key| key.words()).sum();
        let (cat, name) = (pass.at(KeyPart::Cat), pass.at(KeyPart::Name));
        let (file, class) = (pass.at(KeyPart::File), pass.at(KeyPart::FileClass));
        let size_from = pass.at(KeyPart::SizeFrom);
        let class_of = |words: &[u32]| match (file, class) {
            (Some(at), _) => classes.file_class((words[at] != NONE).then_some(words[at])),
            (None, Some(at)) => words[at],
            (None, None) => 0,
        };
        let rekey = |from: &[u32], cell: &mut C, to: &mut [u32]| {
            let file_class = class_of(from);
            if self.ignore && (file_class == NONE || name.is_some_and(|at| classes.ignores_name(from[at]))) {
                return false;
            }
            if let (Some(at), Some(cat), Some(name)) = (size_from, cat, name) {
                settle_size(cell, from[at], classes.size_kind(from[cat], from[name]));
            }
            let mut rest = to;
            for meaning in &name_table {
                let (mine, others) = rest.split_at_mut(meaning.key.words());
                meaning.write(from, mine, &|cat| classes.effective_cat(cat, file_class as u8), &|cat, name| {
                    classes.io_cat(cat, name) as u32
                });
                rest = others;
            }
            true
        };
        let mut groups = groups;
        // Where every word has a meaning of its own, groups stay what they are.
        let same = !self.ignore
            && width == groups.width
            && size_from.is_none()
            && name_table.iter().all(Meaning::is_one_to_one);
        if same {
            groups.relabel(|words| {
                let mut at = 0;
                for meaning in &name_table {
                    if let Some(labels) = &meaning.labels {
                        words[at] = labels.label(words[at]);
                    }
                    at += meaning.key.words();
                }
            });
        } else {
            groups = groups.regroup(width, rekey);
        }
        let labels = name_table.into_iter().map(|meaning| meaning.labels).collect();
        Grouped { keys: self.keys.clone(), groups, labels, dictionary, classes, origin, width_ns: self.width_ns }
    }
}

/// Key words of groups that do not come from spans.
pub(crate) struct KeyOfIds<'p> {
    pass: &'p Pass<'p>,
    /// Where the dictionary was known before the pass.
    classes: Option<&'p Classes>,
}

impl KeyOfIds<'_> {
    /// The words of what a record is about, in a bucket.
    pub(crate) fn words(&self, ids: &Ids, bucket: u32) -> Vec<u32> {
        let mut words = Vec::new();
        for part in &self.pass.parts {
            let number = match part {
                KeyPart::Bucket => i64::from(bucket),
                KeyPart::Cat => ids.cat.into(),
                KeyPart::Name => ids.name.into(),
                KeyPart::Process => ids.process.into(),
                KeyPart::FileClass => match self.classes {
                    Some(classes) => classes.file_class(ids.file).into(),
                    None => ids.file.unwrap_or(NONE).into(),
                },
                KeyPart::File => ids.file.unwrap_or(NONE).into(),
                KeyPart::SizeFrom => size_from::NOTHING.into(),
                KeyPart::Thread => ids.tid,
                KeyPart::Epoch => ids.epoch.unwrap_or(NO_NUMBER),
                KeyPart::Step => ids.step.unwrap_or(NO_NUMBER),
            };
            words.push(number as u32);
            words.extend((part.words() == 2).then_some((number >> 32) as u32));
        }
        words
    }
}

/// Of two candidates for a size, the one that the event's kind has counts.
fn settle_size<C: Cell>(cell: &mut C, from: u32, kind: SizeKind) {
    let counts = match from {
        size_from::RETURNED | size_from::BOTH => kind == SizeKind::Returned,
        size_from::IMAGE | size_from::BOTH_IMAGE => kind == SizeKind::Image,
        _ => true,
    };
    if !counts {
        cell.drop_sizes();
    }
}

/// How a key's words are made of those of the pass.
struct Meaning {
    key: Key,
    at: Vec<usize>,
    labels: Option<Labels>,
    /// By process.
    ranks: Vec<i64>,
}

impl Meaning {
    fn new(key: Key, pass: &Pass<'_>, dictionary: &Dictionary, classes: &Classes) -> Meaning {
        let at = key.parts().iter().filter_map(|part| pass.at(*part)).collect();
        let labels = match key {
            Key::Cat => Some(labels::cats(dictionary)),
            Key::EffectiveCat => {
                Some(Labels::new(classes.cat_labels().iter().map(|label| Some(label.as_str().into()))))
            }
            Key::Name => Some(labels::names(dictionary)),
            Key::Process => Some(labels::processes(dictionary)),
            Key::Host => Some(labels::hosts(dictionary)),
            Key::File => Some(labels::files(dictionary, false)),
            Key::FileOrHash => Some(labels::files(dictionary, true)),
            Key::Directory => Some(labels::paths(dictionary, |path| directory_of(path).to_owned())),
            Key::Pattern => Some(labels::paths(dictionary, path_pattern)),
            Key::Bucket | Key::Thread | Key::Rank | Key::Epoch | Key::Step | Key::IoCat => None,
        };
        let ranks = match key {
            Key::Rank => dictionary.processes.iter().map(|process| process.rank.unwrap_or(NO_NUMBER)).collect(),
            _ => Vec::new(),
        };
        Meaning { key, at, labels, ranks }
    }

    #[inline]
    fn write(&self, from: &[u32], to: &mut [u32], effective: &impl Fn(u32) -> u32, io_cat: &impl Fn(u32, u32) -> u32) {
        let word = from[self.at[0]];
        match self.key {
            Key::Bucket => to[0] = word,
            Key::IoCat => to[0] = io_cat(word, from[self.at[1]]),
            Key::EffectiveCat => to[0] = self.label(effective(word)),
            Key::Thread | Key::Epoch | Key::Step => to.copy_from_slice(&from[self.at[0]..self.at[0] + 2]),
            Key::Rank => {
                let rank = self.ranks[word as usize];
                (to[0], to[1]) = (rank as u32, (rank >> 32) as u32);
            }
            _ => to[0] = self.label(word),
        }
    }

    /// Whether its words are those of the pass, at the same place among them, perhaps with other numbers.
    fn is_one_to_one(&self) -> bool {
        match self.key {
            Key::Bucket | Key::Thread | Key::Epoch | Key::Step => true,
            Key::Cat | Key::Name | Key::Process | Key::FileOrHash => {
                self.labels.as_ref().is_some_and(Labels::is_one_to_one)
            }
            _ => false,
        }
    }

    #[inline]
    fn label(&self, id: u32) -> u32 {
        self.labels.as_ref().map_or(id, |labels| labels.label(id))
    }
}

/// A key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyValue<'g> {
    /// The event has none.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(&'g str),
}

/// The answer: groups, and what their words mean.
#[derive(Debug, Clone)]
pub struct Grouped<C> {
    /// The keys that were asked for.
    pub keys: Vec<Key>,
    /// The groups. Words of texts are numbered in the order of the texts, so sorting words sorts texts.
    pub groups: Groups<C>,
    labels: Vec<Option<Labels>>,
    /// What ids mean.
    pub dictionary: Arc<Dictionary>,
    /// How events were classified.
    pub classes: Arc<Classes>,
    /// The origin of time buckets, ns since the epoch.
    pub origin: i64,
    /// Their width.
    pub width_ns: i64,
}

impl<C: Cell> Grouped<C> {
    /// The labels of a key that is a text.
    pub fn labels(&self, place: usize) -> Option<&Labels> {
        self.labels[place].as_ref()
    }

    /// The values of a group's key.
    pub fn values<'g>(&'g self, words: &[u32]) -> Vec<KeyValue<'g>> {
        let mut at = 0;
        let mut values = Vec::with_capacity(self.keys.len());
        for (key, labels) in self.keys.iter().zip(&self.labels) {
            let mine = &words[at..at + key.words()];
            at += key.words();
            values.push(match (labels, key.words()) {
                (Some(labels), _) => labels.text(mine[0]).map_or(KeyValue::Null, KeyValue::Text),
                (None, 2) => match from_two(mine) {
                    NO_NUMBER => KeyValue::Null,
                    number => KeyValue::Int(number),
                },
                (None, _) if mine[0] == NONE => KeyValue::Null,
                (None, _) => KeyValue::Int(i64::from(mine[0])),
            });
        }
        values
    }

    /// All groups by their values, in order.
    pub fn sorted(&self) -> Vec<(Vec<KeyValue<'_>>, &C)> {
        let mut all: Vec<_> = self.groups.iter().map(|(words, cell)| (self.values(words), cell)).collect();
        all.sort_by(|(left, _), (right, _)| left.cmp(right));
        all
    }

    /// Events in all groups.
    pub fn events(&self) -> u64 {
        self.groups.iter().map(|(_, cell)| cell.count()).sum()
    }
}
