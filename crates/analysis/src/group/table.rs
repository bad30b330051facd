//! Groups by their key words: one table per thread while events come in, then all tables merged side by side.
//!
//! A table is cut into shards by the hash of the key. Shards of the same number hold the same keys in every thread, so they can be merged
//! independently of each other, and each is freed as soon as it was.

use hashbrown::HashTable;
use rayon::prelude::*;

use super::cell::Cell;

/// A power of two: enough for the threads of a large machine, few enough that small tables stay small.
const SHARDS: usize = 32;

/// The hash of key words. Its low bits choose the place in a table, its highest seven are hashbrown's tag, bits 40–44 the shard.
#[inline]
fn hash(words: &[u32]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = 0x243f_6a88_85a3_08d3u64;
    for word in words {
        let wide = u128::from(state ^ u64::from(*word)) * u128::from(ODD);
        state = wide as u64 ^ (wide >> 64) as u64;
    }
    state
}

#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

/// An entry keeps half of its hash, so that growing a table does not touch the keys.
#[derive(Debug, Clone, Copy)]
struct Entry {
    half: u32,
    group: u32,
}

/// The hash that a table works with is made of the half that entries keep.
#[inline]
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Groups whose keys have the same shard.
#[derive(Debug, Clone)]
pub struct Shard<C> {
    entries: HashTable<Entry>,
    /// Key words of all groups, one after the other.
    pub keys: Vec<u32>,
    /// Their cells.
    pub cells: Vec<C>,
}

impl<C: Cell> Shard<C> {
    fn new() -> Shard<C> {
        Shard { entries: HashTable::new(), keys: Vec::new(), cells: Vec::new() }
    }

    #[inline]
    fn find(&mut self, hash: u64, words: &[u32]) -> usize {
        let half = hash as u32;
        let width = words.len();
        let keys = &self.keys;
        let equal = |entry: &Entry| {
            let at = entry.group as usize * width;
            entry.half == half && keys[at..at + width] == *words
        };
        if let Some(entry) = self.entries.find(spread(half), equal) {
            return entry.group as usize;
        }
        let group = self.cells.len();
        self.keys.extend_from_slice(words);
        self.cells.push(C::empty());
        self.entries.insert_unique(spread(half), Entry { half, group: group as u32 }, |entry| spread(entry.half));
        group
    }
}

/// A place in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) shard: u32,
    pub(super) group: u32,
}

/// The groups that one thread has met.
#[derive(Debug, Clone)]
pub struct Groups<C> {
    /// Words of a key.
    pub width: usize,
    /// The groups, by shard.
    pub shards: Vec<Shard<C>>,
}

impl<C: Cell> Groups<C> {
    /// No groups.
    pub(super) fn new(width: usize) -> Groups<C> {
        Groups { width, shards: (0..SHARDS).map(|_| Shard::new()).collect() }
    }

    #[inline]
    pub(super) fn slot(&mut self, words: &[u32]) -> Slot {
        let hash = hash(words);
        let shard = shard_of(hash);
        Slot { shard: shard as u32, group: self.shards[shard].find(hash, words) as u32 }
    }

    #[inline]
    pub(super) fn at(&mut self, slot: Slot) -> &mut C {
        &mut self.shards[slot.shard as usize].cells[slot.group as usize]
    }

    /// The cell of a key.
    #[inline]
    pub(crate) fn cell(&mut self, words: &[u32]) -> &mut C {
        let slot = self.slot(words);
        self.at(slot)
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.cells.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All groups, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u32], &C)> {
        self.shards.iter().flat_map(|shard| shard.keys.chunks_exact(self.width).zip(&shard.cells))
    }

    /// The groups of all threads as one.
    pub fn merge(parts: Vec<Groups<C>>, width: usize) -> Groups<C> {
        let mut parts = parts;
        if parts.len() < 2 {
            return parts.pop().unwrap_or_else(|| Groups::new(width));
        }
        // By shard: the tables of all threads, the largest first, because the others go into it.
        let mut columns: Vec<Vec<Shard<C>>> = (0..SHARDS).map(|_| Vec::with_capacity(parts.len())).collect();
        for part in parts {
            for (column, shard) in columns.iter_mut().zip(part.shards) {
                column.push(shard);
            }
        }
        let shards = columns.into_par_iter().map(|mut column| {
            column.sort_by_key(|shard| shard.cells.len());
            let mut all = column.pop().unwrap_or_else(Shard::new);
            for other in column {
                for (words, cell) in other.keys.chunks_exact(width).zip(&other.cells) {
                    let group = all.find(hash(words), words);
                    all.cells[group].merge(cell);
                }
            }
            all
        });
        Groups { width, shards: shards.collect() }
    }

    /// Changes the words of all keys in place. Different keys must stay different; groups cannot be looked up by key any more.
    pub(super) fn relabel(&mut self, change: impl Fn(&mut [u32]) + Sync) {
        let width = self.width;
        self.shards.par_iter_mut().for_each(|shard| {
            shard.entries = HashTable::new();
            shard.keys.chunks_exact_mut(width).for_each(&change);
        });
    }

    /// Groups by another key, made of the one that they have; groups for which `rekey` says no are left out. It may change the cell.
    pub fn regroup(self, width: usize, rekey: impl Fn(&[u32], &mut C, &mut [u32]) -> bool + Sync) -> Groups<C> {
        let old = self.width;
        let parts: Vec<Groups<C>> = self
            .shards
            .into_par_iter()
            .fold(
                || Groups::new(width),
                |mut all: Groups<C>, shard| {
                    let mut words = vec![0; width];
                    for (from, mut cell) in shard.keys.chunks_exact(old).zip(shard.cells) {
                        if rekey(from, &mut cell, &mut words) {
                            all.cell(&words).merge(&cell);
                        }
                    }
                    all
                },
            )
            .collect();
        Groups::merge(parts, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::cell::{Sums, Values};

    fn filled(values: impl Iterator<Item = (u32, u32, i64)>) -> Groups<Sums> {
        let mut groups: Groups<Sums> = Groups::new(2);
        for (a, b, dur) in values {
            groups.cell(&[a, b]).add(Values { start: 0, dur, size: Some(1), offset: None });
        }
        groups
    }

    fn listed(groups: &Groups<Sums>) -> std::collections::BTreeMap<Vec<u32>, Sums> {
        groups.iter().map(|(words, cell)| (words.to_vec(), cell.clone())).collect()
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let values = || (0..20_000u32).map(|number| (number % 97, number % 101, i64::from(number)));
        let whole = filled(values());
        let parts = (0..3).map(|part| filled(values().skip(part).step_by(3))).collect();
        let merged = Groups::merge(parts, 2);
        assert_eq!(merged.len(), 97 * 101);
        assert_eq!(listed(&merged), listed(&whole));
    }

    #[test]
    fn another_key_keeps_the_sums() {
        let groups = filled((0..5000u32).map(|number| (number % 50, number % 7, 1)));
        let by_first = groups.regroup(1, |from, _, to| {
            to[0] = from[0];
            from[1] != 6
        });
        let listed = listed(&by_first);
        assert_eq!(listed.len(), 50);
        let kept = (0..5000u32).filter(|number| number % 7 != 6).count() as u64;
        assert_eq!(listed.values().map(|cell| cell.count).sum::<u64>(), kept);
    }
}
