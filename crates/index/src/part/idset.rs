//! The ids that occur in a column: exact while they are few, everything when they are many.

use arrow_array::{Array as _, UInt32Array};
use serde::{Deserialize, Serialize};

/// Runs of ids that are kept at most; with more, nothing can be passed over by this column.
const MOST_RUNS: usize = 512;

/// A set of ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct IdSet {
    /// First and last id of each run, in order; nothing: any id may occur.
    runs: Option<Vec<(u32, u32)>>,
}

impl IdSet {
    /// The ids of a column.
    pub(crate) fn of(ids: &UInt32Array) -> IdSet {
        if ids.null_count() == ids.len() {
            return IdSet { runs: Some(Vec::new()) };
        }
        // A row without an id has 0 there.
        let most = ids.values().iter().copied().max().unwrap_or(0);
        let mut seen = vec![0u64; most as usize / 64 + 1];
        if ids.null_count() == 0 {
            for id in ids.values() {
                seen[*id as usize / 64] |= 1 << (id % 64);
            }
        } else {
            for id in ids.nulls().into_iter().flat_map(|nulls| nulls.valid_indices()).map(|row| ids.value(row)) {
                seen[id as usize / 64] |= 1 << (id % 64);
            }
        }
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for (word, bits) in seen.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let id = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                match runs.last_mut() {
                    Some((_, last)) if *last + 1 == id => *last = id,
                    _ => runs.push((id, id)),
                }
            }
            if runs.len() > MOST_RUNS {
                return IdSet { runs: None };
            }
        }
        IdSet { runs: Some(runs) }
    }

    /// Whether it is a set of ids below `known`, as [`IdSet::of`] makes it: then to look at all of them takes no longer than the table is.
    pub(crate) fn is_within(&self, known: usize) -> bool {
        let Some(runs) = &self.runs else { return true };
        runs.len() <= MOST_RUNS
            && runs.iter().all(|(first, last)| first <= last && (*last as usize) < known)
            && runs.is_sorted_by(|before, after| before.1 < after.0)
    }

    /// Its ids; nothing where any may occur.
    pub(crate) fn ids(&self) -> Option<impl Iterator<Item = u32> + '_> {
        self.runs.as_ref().map(|runs| runs.iter().flat_map(|(first, last)| *first..=*last))
    }

    /// Whether one of its ids is wanted.
    pub(crate) fn any(&self, wanted: impl Fn(u32) -> bool) -> bool {
        self.runs.as_ref().is_none_or(|runs| runs.iter().any(|(first, last)| (*first..=*last).any(&wanted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ids: &[Option<u32>], runs: Option<&[(u32, u32)]>) {
        let set = IdSet::of(&UInt32Array::from(ids.to_vec()));
        assert_eq!(set.runs.as_deref(), runs, "{ids:?}");
        for id in ids.iter().flatten() {
            assert!(set.any(|other| other == *id));
        }
        let listed = set.ids().map(|listed| listed.count());
        assert_eq!(listed, runs.map(|_| ids.iter().flatten().collect::<std::collections::BTreeSet<_>>().len()));
    }

    #[test]
    fn runs_are_found() {
        check(&[], Some(&[]));
        check(&[None, None], Some(&[]));
        check(&[Some(3), None, Some(4), Some(3), Some(64), Some(0)], Some(&[(0, 0), (3, 4), (64, 64)]));
        check(&(0..2000).map(|id| Some(id * 2)).collect::<Vec<_>>(), None);
        let few = IdSet::of(&UInt32Array::from(vec![1, 5]));
        assert!(!few.any(|id| id == 3));
    }

    /// A forged set of four billion ids, or of a million runs of them, would be looked at id by id.
    #[test]
    fn only_small_sets_of_known_ids_are_believed() {
        let of = |runs: &[(u32, u32)]| IdSet { runs: Some(runs.to_vec()) };
        for (set, within) in [
            (IdSet { runs: None }, true),
            (of(&[]), true),
            (of(&[(0, 3), (5, 9)]), true),
            (of(&[(0, 3), (5, 10)]), false),
            (of(&[(0, u32::MAX)]), false),
            (of(&[(5, 4)]), false),
            (of(&[(0, 3), (3, 4)]), false),
            (of(&[(1, 1); 600]), false),
        ] {
            assert_eq!(set.is_within(10), within, "{set:?}");
        }
    }
}
