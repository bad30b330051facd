//! High-level metrics: events grouped by all keys of the requested views, with exact sums.
//!
//! One pass over the events; all requested views are made from the same groups, so a view does not read the run again.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use weftline_index::{Filter, Process, Run};

use crate::classify::{Classes, IoCat, Rules, SIZE_BINS, bin_label};
use crate::group::{
    Cell as _, GroupBy, Grouped, Groups, Key, KeyOfIds, KeyValue, Stats, directory_of, host_text, path_pattern,
};
use crate::profiles::totals::Totals;
use crate::table::{Table, clamp};
use crate::units::Unit;
use crate::{AnalysisError, Result};

/// What a row of a view is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ViewType {
    /// A time bucket.
    TimeRange,
    /// A thread of a process: `app#HOST#PID#TID`.
    ProcName,
    /// A file.
    FileName,
    /// The directory of a file.
    FileDir,
    /// Files whose paths differ in digits only.
    FilePattern,
    /// A host.
    HostName,
    /// A process on any host, by its pid.
    ProcId,
    /// A thread by its number.
    ThreadId,
    /// A rank.
    Rank,
    /// An epoch.
    Epoch,
    /// A step.
    Step,
}

impl ViewType {
    /// All of them.
    pub const ALL: [ViewType; 11] = [
        ViewType::TimeRange,
        ViewType::ProcName,
        ViewType::FileName,
        ViewType::FileDir,
        ViewType::FilePattern,
        ViewType::HostName,
        ViewType::ProcId,
        ViewType::ThreadId,
        ViewType::Rank,
        ViewType::Epoch,
        ViewType::Step,
    ];

    /// The column of a view.
    pub fn name(self) -> &'static str {
        match self {
            ViewType::TimeRange => "time_range",
            ViewType::ProcName => "proc_name",
            ViewType::FileName => "file_name",
            ViewType::FileDir => "file_dir",
            ViewType::FilePattern => "file_pattern",
            ViewType::HostName => "host_name",
            ViewType::ProcId => "proc_id",
            ViewType::ThreadId => "thread_id",
            ViewType::Rank => "rank",
            ViewType::Epoch => "epoch",
            ViewType::Step => "step",
        }
    }

    /// The view of a name.
    pub fn parse(name: &str) -> Result<ViewType> {
        ViewType::ALL.into_iter().find(|view| view.name() == name).ok_or_else(|| AnalysisError::Unknown {
            what: "view",
            name: name.to_owned(),
            known: ViewType::ALL.map(ViewType::name).join(", "),
        })
    }

    /// Whether its rows are processes or parts or unions of them.
    pub fn is_process_based(self) -> bool {
        matches!(self, ViewType::ProcName | ViewType::HostName | ViewType::ProcId | ViewType::ThreadId | ViewType::Rank)
    }

    fn extra_key(self) -> Option<Key> {
        match self {
            ViewType::TimeRange => Some(Key::Bucket),
            ViewType::Rank => Some(Key::Rank),
            ViewType::Epoch => Some(Key::Epoch),
            ViewType::Step => Some(Key::Step),
            _ => None,
        }
    }
}

/// What the metrics are to tell apart.
#[derive(Debug, Clone)]
pub struct HlmQuestion {
    /// The views that will be made of them.
    pub views: Vec<ViewType>,
    /// Width of time buckets.
    pub width_ns: i64,
    /// Which events.
    pub filter: Filter,
    /// How they are classified.
    pub rules: Arc<Rules>,
    /// Whether to group by file. Without it no view can count files.
    pub files: bool,
    /// Whether sizes that stand as text among the other arguments count.
    pub rest: bool,
    /// The length of periods with only totals; by default that of the trace.
    pub period_ns: Option<i64>,
}

impl HlmQuestion {
    /// All events, in buckets of a second.
    pub fn new(views: impl Into<Vec<ViewType>>) -> HlmQuestion {
        HlmQuestion {
            views: views.into(),
            width_ns: 1_000_000_000,
            filter: Filter::default(),
            rules: Arc::new(Rules::default()),
            files: true,
            rest: true,
            period_ns: None,
        }
    }
}

/// The metrics.
#[derive(Debug, Clone)]
pub struct Hlm {
    grouped: Grouped<Stats>,
    files: bool,
    /// By the word of a process in the groups: one of its entries in the dictionary.
    entries: Vec<u32>,
}

/// One group of the metrics, by meaning.
#[derive(Debug, Clone, Copy)]
pub struct HlmRow<'h> {
    pub(crate) values: &'h [u32],
    /// The effective category.
    pub cat: &'h str,
    /// The function.
    pub name: &'h str,
    /// Its I/O category.
    pub io_cat: IoCat,
    /// What is kept of its events.
    pub stats: &'h Stats,
}

/// A value of a view's key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowKey {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

/// Which row each group belongs to.
#[derive(Debug, Clone)]
pub struct Dimension {
    /// The rows, in order.
    pub rows: Vec<RowKey>,
    /// By group: its row, or `u32::MAX`.
    pub of: Vec<u32>,
}

impl Hlm {
    /// Groups the events of a run.
    pub fn of(run: &Run, question: &HlmQuestion) -> Result<Hlm> {
        let mut keys = vec![Key::EffectiveCat, Key::Name, Key::IoCat, Key::Process, Key::Thread];
        if question.files {
            keys.push(Key::File);
        }
        for key in question.views.iter().filter_map(|view| view.extra_key()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let by = GroupBy {
            keys,
            width_ns: question.width_ns,
            filter: question.filter.clone(),
            rules: Arc::clone(&question.rules),
            ignore: true,
            rest: question.rest,
        };
        run.prepare()?;
        let classes = Classes::new(&question.rules, &run.dictionary());
        let totals = Totals::of(run, &question.filter, &classes, question.period_ns)?;
        let by_time = by.keys.contains(&Key::Bucket);
        if by_time && !totals.records.is_empty() {
            totals.axis.check_buckets(by.width_ns)?;
        }
        // Where time is not asked for, a record is one group.
        let width = if by_time { by.width_ns } else { i64::MAX };
        let add = |groups: &mut Groups<Stats>, key: &KeyOfIds<'_>| {
            for (ids, profile) in &totals.records {
                let life = totals.axis.range(ids.start, ids.length);
                for part in totals.axis.parts(ids.start, ids.length, profile.count, width) {
                    groups.cell(&key.words(ids, part.bucket)).merge(&profile.stats(part.from, part.to, life));
                }
            }
        };
        let grouped = by.run_with(run, &add)?;
        let place = grouped.keys.iter().position(|key| *key == Key::Process);
        let labels = place.and_then(|place| grouped.labels(place));
        let mut entries = vec![u32::MAX; labels.map_or(0, |labels| labels.texts.len())];
        for (entry, label) in labels.iter().flat_map(|labels| labels.of.iter().enumerate()).rev() {
            entries.get_mut(*label as usize).into_iter().for_each(|known| *known = entry as u32);
        }
        Ok(Hlm { grouped, files: question.files, entries })
    }

    /// The origin of time buckets.
    pub fn origin(&self) -> i64 {
        self.grouped.origin
    }

    /// The width of time buckets.
    pub fn width_ns(&self) -> i64 {
        self.grouped.width_ns
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.grouped.groups.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All groups, in the order of [`Dimension::of`].
    pub fn rows(&self) -> impl Iterator<Item = HlmRow<'_>> {
        let text = |place: usize, words: &[u32]| {
            self.grouped.labels(place).and_then(|labels| labels.text(words[place])).unwrap_or("")
        };
        self.grouped.groups.iter().map(move |(words, stats)| HlmRow {
            values: words,
            cat: text(0, words),
            name: text(1, words),
            io_cat: IoCat::from_number(words[2]),
            stats,
        })
    }

    /// The rows of a view.
    pub fn dimension(&self, view: ViewType) -> Dimension {
        // Many groups have the same words, which are turned into text once.
        let places = self.places(view);
        let mut known: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let mut firsts: Vec<Option<RowKey>> = Vec::new();
        let mut of = Vec::with_capacity(self.len());
        let mut part = Vec::new();
        for (words, _) in self.grouped.groups.iter() {
            part.clear();
            part.extend(places.iter().map(|place| words[*place]));
            let next = firsts.len() as u32;
            let number = match known.get(&part) {
                Some(number) => *number,
                None => {
                    known.insert(part.clone(), next);
                    firsts.push(self.row_key(view, words));
                    next
                }
            };
            of.push(number);
        }
        let mut rows: Vec<RowKey> = firsts.iter().flatten().cloned().collect();
        rows.sort_unstable();
        rows.dedup();
        let places: Vec<u32> = firsts
            .iter()
            .map(|first| first.as_ref().and_then(|key| rows.binary_search(key).ok()).map_or(u32::MAX, |at| at as u32))
            .collect();
        of.iter_mut().for_each(|number| *number = places[*number as usize]);
        Dimension { rows, of }
    }

    /// Places of the words that a view's rows follow from.
    fn places(&self, view: ViewType) -> Vec<usize> {
        let mut at = 0;
        let mut places = Vec::new();
        for key in &self.grouped.keys {
            let wanted = match view {
                ViewType::ProcName | ViewType::ThreadId => matches!(key, Key::Process | Key::Thread),
                ViewType::HostName | ViewType::ProcId => *key == Key::Process,
                ViewType::FileName | ViewType::FileDir | ViewType::FilePattern => *key == Key::File,
                other => other.extra_key() == Some(*key),
            };
            if wanted {
                places.extend(at..at + key.words());
            }
            at += key.words();
        }
        places
    }

    /// The process of a group.
    fn process(&self, words: &[u32]) -> Option<&Process> {
        let word = words[*self.places(ViewType::ProcId).first()?];
        self.grouped.dictionary.processes.get(*self.entries.get(word as usize)? as usize)
    }

    fn row_key(&self, view: ViewType, words: &[u32]) -> Option<RowKey> {
        let values = self.grouped.values(words);
        let value = |key: Key| self.grouped.keys.iter().position(|found| *found == key).map(|place| values[place]);
        let text = |key: Key| match value(key) {
            Some(KeyValue::Text(text)) => Some(text),
            _ => None,
        };
        let number = |key: Key| match value(key) {
            Some(KeyValue::Int(number)) => Some(RowKey::Int(number)),
            _ => None,
        };
        match view {
            ViewType::ProcName => {
                let Some(KeyValue::Int(thread)) = value(Key::Thread) else { return None };
                Some(RowKey::Text(format!("app#{}#{thread}", text(Key::Process)?)))
            }
            ViewType::HostName => Some(RowKey::Text(host_text(self.process(words)?).to_owned())),
            ViewType::ProcId => Some(RowKey::Int(self.process(words)?.pid)),
            ViewType::ThreadId => number(Key::Thread),
            ViewType::FileName => Some(RowKey::Text(text(Key::File)?.to_owned())),
            ViewType::FileDir => Some(RowKey::Text(directory_of(text(Key::File)?).to_owned())),
            ViewType::FilePattern => Some(RowKey::Text(path_pattern(text(Key::File)?))),
            ViewType::TimeRange => number(Key::Bucket),
            ViewType::Rank => number(Key::Rank),
            ViewType::Epoch => number(Key::Epoch),
            ViewType::Step => number(Key::Step),
        }
    }

    /// The metrics as a table, with the columns that DFAnalyzer's have.
    pub fn table(&self, views: &[ViewType]) -> Table {
        let mut keys: Vec<ViewType> = views.to_vec();
        keys.push(ViewType::ProcName);
        keys.retain(|view| self.files || *view != ViewType::FileName);
        keys.sort_by_key(|view| view.name());
        keys.dedup();
        let dimensions: Vec<Dimension> = keys.iter().map(|view| self.dimension(*view)).collect();
        let rows: Vec<HlmRow<'_>> = self.rows().collect();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        let key = |group: usize| -> Vec<u32> { dimensions.iter().map(|dimension| dimension.of[group]).collect() };
        order.sort_by_cached_key(|group| {
            let row = &rows[*group];
            (key(*group), row.cat, row.io_cat as u8, row.name)
        });
        let mut table = Table::with_rows(rows.len());
        for (view, dimension) in keys.iter().zip(&dimensions) {
            add_keys(
                &mut table,
                view.name(),
                order.iter().map(|group| dimension.rows.get(dimension.of[*group] as usize)),
            );
        }
        let sorted = || order.iter().map(|group| &rows[*group]);
        table.texts("cat", sorted().map(|row| Some(row.cat.to_owned())));
        table.ints("io_cat", Unit::Id, sorted().map(|row| Some(row.io_cat as i64)));
        // DFAnalyzer names this column and never fills it; kept so that its tables compare.
        table.ints("acc_pat", Unit::Id, sorted().map(|_| Some(0)));
        table.texts("func_name", sorted().map(|row| Some(row.name.to_owned())));
        let stats = || sorted().map(|row| row.stats);
        table.times("time", stats().map(|stats| Some(stats.dur)));
        table.ints("count", Unit::Count, stats().map(|stats| Some(clamp(stats.count))));
        table.ints("size", Unit::Bytes, stats().map(|stats| Some(clamp(stats.size))));
        table.floats("time_sq", Unit::Number, stats().map(|stats| stats.dur_sq().map(|sum| sum as f64 / 1e18)));
        table.floats("size_sq", Unit::Number, stats().map(|stats| stats.size_sq().map(|sum| sum as f64)));
        table.times("time_call_min", stats().map(|stats| stats.dur_range().map(|range| range.0.into())));
        table.times("time_call_max", stats().map(|stats| stats.dur_range().map(|range| range.1.into())));
        table.ints("size_call_min", Unit::Bytes, stats().map(|stats| stats.size_min().map(clamp)));
        table.ints("size_call_max", Unit::Bytes, stats().map(|stats| stats.size_max().map(clamp)));
        for bin in 0..SIZE_BINS {
            table.ints(
                format!("size_bin_{}", bin_label(bin)),
                Unit::Count,
                stats().map(|stats| stats.bins().map(|bins| clamp(bins[bin]))),
            );
        }
        table.ints(
            "offset_min",
            Unit::Bytes,
            stats().map(|stats| (stats.offset_min != i64::MAX).then_some(stats.offset_min)),
        );
        table.ints(
            "offset_max",
            Unit::Bytes,
            stats().map(|stats| (stats.offset_max != i64::MIN).then_some(stats.offset_max)),
        );
        table
    }
}

/// Adds the column of a view's keys.
pub(crate) fn add_keys<'k>(table: &mut Table, name: &str, keys: impl Iterator<Item = Option<&'k RowKey>> + Clone) {
    if keys.clone().flatten().all(|key| matches!(key, RowKey::Int(_))) && keys.clone().flatten().next().is_some() {
        table.ints(
            name,
            Unit::Id,
            keys.map(|key| match key {
                Some(RowKey::Int(number)) => Some(*number),
                _ => None,
            }),
        );
    } else {
        table.texts(
            name,
            keys.map(|key| match key {
                Some(RowKey::Text(text)) => Some(text.clone()),
                Some(RowKey::Int(number)) => Some(number.to_string()),
                None => None,
            }),
        );
    }
}
