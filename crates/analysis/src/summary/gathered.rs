//! What the summary gathers of a shard: integers that can be added to those of other shards in any order, and travel (`crate::pass`).

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use weftline_calls::IoSums;

use super::layers::LayerWalls;
use crate::classify::SIZE_BINS;
use crate::group::{Cell as _, Stats};
use crate::histogram::Histogram;
use crate::pass::{Id, Maps};
use crate::wire;

/// Calls of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OperationStats {
    pub(super) stats: Stats,
    pub(super) durations: Histogram,
}

impl OperationStats {
    pub(super) fn merge(&mut self, other: &OperationStats) {
        self.stats.merge(&other.stats);
        self.durations.merge(&other.durations);
    }
}

/// Category, name, and whether somebody else was waited for: a `read` from a pipe is another thing than one from a file.
pub(super) type OperationKey = (u32, u32, bool);

/// Events of a layer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LayerSums {
    pub(super) count: u64,
    pub(super) time: i128,
    pub(super) size: u128,
    /// Of `count`: calls that are known only as totals, which are added when all shards are together.
    #[serde(skip)]
    pub(super) totals: u64,
    /// Processes of those.
    #[serde(skip)]
    pub(super) total_processes: FxHashSet<u32>,
}

/// What one thread has gathered, then one shard, then all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Gathered {
    /// By category and name, those that waited for others apart.
    #[serde(with = "wire::sorted")]
    pub(super) operations: FxHashMap<OperationKey, OperationStats>,
    #[serde(with = "wire::sums")]
    pub(super) files: Vec<IoSums>,
    #[serde(with = "wire::sums")]
    pub(super) processes: Vec<IoSums>,
    /// First start and last end of each process.
    pub(super) lives: Vec<Option<(i64, i64)>>,
    /// Which processes have spans or instants, those included that are left out of all sums.
    pub(super) seen: Vec<bool>,
    #[serde(with = "wire::sums_by_number")]
    pub(super) buckets: FxHashMap<u32, IoSums>,
    pub(super) read_bins: [u64; SIZE_BINS],
    pub(super) write_bins: [u64; SIZE_BINS],
    pub(super) layers: Vec<LayerSums>,
    pub(super) walls: LayerWalls,
    pub(super) ignored: u64,
    pub(super) events: u64,
    /// Calls that are known only as totals, which are added when all shards are together.
    #[serde(skip)]
    pub(super) totals: u64,
    /// Of those: reads and writes whose sizes are not known.
    #[serde(skip)]
    pub(super) unbinned: (u64, u64),
}

pub(super) fn grown<T: Default + Clone>(all: &mut Vec<T>, place: usize) -> &mut T {
    if place >= all.len() {
        all.resize(place + 1, T::default());
    }
    &mut all[place]
}

/// Puts what is listed by id in the places of other ids. Those without anything may have an id that nobody knows.
pub(super) fn moved<T: Default + Clone + PartialEq>(
    all: Vec<T>,
    map: impl Fn(u32) -> u32,
    merge: impl Fn(&mut T, T),
) -> Vec<T> {
    let (mut out, nothing) = (Vec::new(), T::default());
    for (id, one) in all.into_iter().enumerate().filter(|(_, one)| *one != nothing) {
        merge(grown(&mut out, map(id as u32) as usize), one);
    }
    out
}

/// The ids at which a list has anything.
pub(super) fn places<T: Default + PartialEq>(all: &[T]) -> impl Iterator<Item = u32> {
    let nothing = T::default();
    all.iter().enumerate().filter(move |(_, one)| **one != nothing).map(|(id, _)| id as u32)
}

pub(super) fn widen(own: &mut Option<(i64, i64)>, other: Option<(i64, i64)>) {
    *own = match (*own, other) {
        (Some(own), Some(other)) => Some((own.0.min(other.0), own.1.max(other.1))),
        (own, other) => own.or(other),
    };
}

fn grow(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl Gathered {
    pub(crate) fn merge(&mut self, other: Gathered) {
        for (key, operation) in other.operations {
            match self.operations.get_mut(&key) {
                Some(known) => known.merge(&operation),
                None => drop(self.operations.insert(key, operation)),
            }
        }
        for (place, traffic) in other.files.iter().enumerate() {
            grown(&mut self.files, place).merge(traffic);
        }
        for (place, traffic) in other.processes.iter().enumerate() {
            grown(&mut self.processes, place).merge(traffic);
        }
        for (place, life) in other.lives.into_iter().enumerate() {
            widen(grown(&mut self.lives, place), life);
        }
        for (place, seen) in other.seen.into_iter().enumerate() {
            *grown(&mut self.seen, place) |= seen;
        }
        for (bucket, traffic) in other.buckets {
            self.buckets.entry(bucket).or_default().merge(&traffic);
        }
        for bin in 0..SIZE_BINS {
            grow(&mut self.read_bins[bin], other.read_bins[bin]);
            grow(&mut self.write_bins[bin], other.write_bins[bin]);
        }
        for (own, other) in self.layers.iter_mut().zip(other.layers) {
            grow(&mut own.count, other.count);
            own.time = own.time.saturating_add(other.time);
            own.size = own.size.saturating_add(other.size);
        }
        self.walls.merge(other.walls);
        grow(&mut self.ignored, other.ignored);
        grow(&mut self.events, other.events);
    }

    /// Shows all ids that something is known of.
    pub(crate) fn each_id(&self, each: &mut dyn FnMut(Id)) {
        for (cat, name, _) in self.operations.keys() {
            each(Id::Cat(*cat));
            each(Id::Name(*name));
        }
        places(&self.files).for_each(|id| each(Id::File(id)));
        places(&self.processes).for_each(|id| each(Id::Process(id)));
        places(&self.lives).for_each(|id| each(Id::Process(id)));
        places(&self.seen).for_each(|id| each(Id::Process(id)));
        self.walls.each_process(&mut |id| each(Id::Process(id)));
    }

    /// Exchanges all ids. Several may become one.
    pub(crate) fn renumbered(self, maps: &Maps) -> Gathered {
        let mut operations: FxHashMap<OperationKey, OperationStats> = FxHashMap::default();
        for ((cat, name, waits), operation) in self.operations {
            match operations.entry((maps.cat(cat), maps.name(name), waits)) {
                std::collections::hash_map::Entry::Occupied(mut known) => known.get_mut().merge(&operation),
                std::collections::hash_map::Entry::Vacant(place) => drop(place.insert(operation)),
            }
        }
        let add = |own: &mut IoSums, other: IoSums| own.merge(&other);
        Gathered {
            operations,
            files: moved(self.files, |id| maps.file(id), add),
            processes: moved(self.processes, |id| maps.first(id), add),
            lives: moved(self.lives, |id| maps.first(id), widen),
            seen: moved(self.seen, |id| maps.first(id), |own, other| *own |= other),
            walls: self.walls.renumbered(maps),
            ..self
        }
    }

    /// Whether sums and times are such as a run can have.
    pub(crate) fn is_plausible(&self) -> bool {
        let wide = |number: u128| i128::try_from(number).is_ok_and(wire::is_wide_sum);
        let operation = |one: &OperationStats| wire::is_wide_sum(one.stats.dur) && wide(one.stats.size);
        self.operations.values().all(operation)
            && self.lives.iter().flatten().all(|(start, end)| wire::is_range(*start, *end))
            && self.layers.iter().all(|layer| wire::is_wide_sum(layer.time) && wide(layer.size))
            && wire::is_sum(self.operations.values().map(|one| one.stats.count))
            && wire::is_sum(self.read_bins.into_iter().chain(self.write_bins))
            && wire::is_sum(self.layers.iter().map(|layer| layer.count))
            && self.walls.is_plausible()
    }

    /// Whether it has as many layers as it should: all lists by layer are indexed by their places.
    pub(crate) fn has_layers(&self, count: usize) -> bool {
        self.layers.len() == count && self.walls.has_layers(count)
    }
}
