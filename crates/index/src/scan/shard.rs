//! A part of a run's row groups, for one of several who share the work of reading it.
//!
//! Row groups are numbered in the order of the files. The numbers depend on the files alone as long as all who share the work read the same index, or
//! none. A row group may hold several small files; a large file has several row groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::run::Run;

/// Some of a run's row groups, or all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shard {
    groups: Option<Arc<BTreeSet<usize>>>,
}

impl Shard {
    /// All row groups.
    pub fn whole() -> Shard {
        Shard::default()
    }

    /// These row groups; numbers that the run does not have mean nothing.
    pub fn of(groups: impl IntoIterator<Item = usize>) -> Shard {
        Shard { groups: Some(Arc::new(groups.into_iter().collect())) }
    }

    /// Whether a row group is in it.
    pub fn contains(&self, group: usize) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.contains(&group))
    }

    /// Whether it was made as [`Shard::whole`].
    pub fn is_whole(&self) -> bool {
        self.groups.is_none()
    }
}

/// What one row group says of itself, as far as it matters for cutting a run.
struct Said {
    rows: u64,
    /// The processes in it by the first entry of each; nothing where they are too many to be told.
    processes: Option<BTreeSet<u32>>,
}

impl Run {
    /// How many row groups there are. Of a run without an index it is known when the dictionary is.
    pub fn row_groups(&self) -> usize {
        match self.read_from_traces() {
            Some(_) => self.groups_of_traces(),
            None => self.parts().iter().map(|(part, _)| part.meta.groups.len()).sum(),
        }
    }

    /// Rows of some phases in a shard; nothing where the run is read without an index.
    pub fn count_within(&self, shard: &Shard, phases: &[u8]) -> Option<u64> {
        if self.read_from_traces().is_some() {
            return None;
        }
        let parts = self.parts();
        let metas = parts.iter().flat_map(|(part, _)| &part.meta.groups).enumerate();
        let within = metas.filter(|(group, _)| shard.contains(*group));
        let counts = within.flat_map(|(_, meta)| &meta.per_phase).filter(|(code, _)| phases.contains(code));
        Some(counts.fold(0, |sum, (_, count)| sum.saturating_add(*count)))
    }

    /// By id: whether the process may have rows in a shard and in another row group as well, whichever of its execs they belong to. Nothing where the
    /// run is read without an index: then nobody knows.
    pub fn processes_cut_by(&self, shard: &Shard) -> Option<Vec<bool>> {
        let said = self.said()?;
        let identities = self.first_entries();
        let mut met = vec![[false; 2]; identities.len()];
        for (group, said) in said.iter().enumerate() {
            let side = usize::from(shard.contains(group));
            match &said.processes {
                Some(processes) => processes.iter().for_each(|id| met[*id as usize][side] = true),
                None => met.iter_mut().for_each(|met| met[side] = true),
            }
        }
        Some(identities.iter().map(|first| met[*first as usize] == [true; 2]).collect())
    }

    /// Cuts the run into at most so many shards with about the same number of rows each. All row groups of a process are in one of them, so there are
    /// fewer shards where few processes have most rows. A run without an index is not cut: whoever reads a part of it reads all of it.
    pub fn shards(&self, most: usize) -> Vec<Shard> {
        let Some(said) = self.said().filter(|_| most > 1) else { return vec![Shard::whole()] };
        let mut pieces: Vec<(u64, Vec<usize>)> = Vec::new();
        for groups in together(&said) {
            pieces.push((groups.iter().map(|group| said[*group].rows).sum(), groups));
        }
        // The largest first, each to whoever has least so far.
        pieces.sort_by_key(|(rows, groups)| (std::cmp::Reverse(*rows), groups[0]));
        let mut shards: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new()); most.min(pieces.len()).max(1)];
        for (rows, groups) in pieces {
            if let Some((sum, all)) = shards.iter_mut().min_by_key(|(sum, _)| *sum) {
                *sum += rows;
                all.extend(groups);
            }
        }
        shards.into_iter().map(|(_, groups)| Shard::of(groups)).collect()
    }

    fn first_entries(&self) -> Vec<u32> {
        let dictionary = self.dictionary();
        dictionary.identities().into_iter().zip(0..).map(|(identity, id)| identity.unwrap_or(id)).collect()
    }

    /// What all row groups say of themselves; nothing where the run is read without an index.
    fn said(&self) -> Option<Vec<Said>> {
        if self.read_from_traces().is_some() {
            return None;
        }
        let first = self.first_entries();
        let parts = self.parts();
        let of = |(part, renumber): &(crate::part::Part, super::Renumber)| {
            let each = part.meta.groups.iter().map(|meta| Said {
                rows: meta.rows,
                processes: meta.processes.ids().map(|ids| {
                    ids.filter_map(|id| first.get(renumber.process(id) as usize).copied()).collect::<BTreeSet<u32>>()
                }),
            });
            each.collect::<Vec<Said>>()
        };
        Some(parts.iter().flat_map(of).collect())
    }
}

/// Row groups that have a process in common, directly or by others between them.
fn together(said: &[Said]) -> Vec<Vec<usize>> {
    let mut above: Vec<usize> = (0..said.len()).collect();
    fn root(above: &mut [usize], mut group: usize) -> usize {
        while above[group] != group {
            above[group] = above[above[group]];
            group = above[group];
        }
        group
    }
    let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
    for (group, said) in said.iter().enumerate() {
        let Some(processes) = &said.processes else {
            // Any process may be in it.
            return vec![(0..above.len()).collect()];
        };
        for process in processes {
            let other = *owners.entry(*process).or_insert(group);
            let (a, b) = (root(&mut above, other), root(&mut above, group));
            above[a.max(b)] = a.min(b);
        }
    }
    let mut all: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for group in 0..above.len() {
        all.entry(root(&mut above, group)).or_default().push(group);
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(groups: &[Option<&[u32]>], expected: &[&[usize]]) {
        let said: Vec<Said> = groups
            .iter()
            .map(|processes| Said { rows: 1, processes: processes.map(|ids| ids.iter().copied().collect()) })
            .collect();
        assert_eq!(together(&said), expected, "{groups:?}");
    }

    #[test]
    fn processes_stay_together() {
        check(&[], &[]);
        check(&[Some(&[1]), Some(&[2]), Some(&[3])], &[&[0], &[1], &[2]]);
        check(&[Some(&[1]), Some(&[1, 2]), Some(&[3])], &[&[0, 1], &[2]]);
        // The last one joins what was apart.
        check(&[Some(&[1]), Some(&[2]), Some(&[3]), Some(&[3, 1])], &[&[0, 2, 3], &[1]]);
        check(&[Some(&[]), Some(&[2])], &[&[0], &[1]]);
        check(&[Some(&[1]), None, Some(&[3])], &[&[0, 1, 2]]);
    }
}
