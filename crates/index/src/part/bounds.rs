//! Checks the numbers of a part. Checksums detect accidental changes, but a forged index has forged checksums too. So
//! every number is compared with what the file can hold, or with what a builder would have written, before it sizes memory or a loop.

use super::{GroupMeta, Meta};
use crate::column::phase_bit;
use crate::pipeline::Tables;
use crate::rows::GROUP_ROWS;

/// Rows of a row group. It is full at [`GROUP_ROWS`], and handed on when the text that filled it ends: 64 MiB at most, of lines that are longer
/// than 16 bytes in every trace that is one.
pub(crate) const MOST_ROWS: u64 = 16 * GROUP_ROWS as u64;
/// What zstd may stand for: so many times its own length. Traces reach some thirty; what packs better is mostly stored as it is.
const RATIO: usize = 64;

/// How long packed bytes may become, with `free` for those that are short. Writers keep to it, too: what packs better they do not pack.
pub(super) fn most_unpacked(packed: usize, free: usize) -> usize {
    packed.saturating_mul(RATIO).max(free)
}

/// Whether a part's row groups are such as a builder makes. The error says what is not.
pub(super) fn check(meta: &Meta) -> Result<(), String> {
    let bad = |(place, group)| check_group(group).map_err(|what| format!("row group {place} has {what}"));
    meta.groups.iter().enumerate().try_for_each(bad)
}

fn check_group(group: &GroupMeta) -> Result<(), &'static str> {
    let ranges = [&group.time, &group.spans].into_iter().chain(&group.pages);
    let counted = group.per_phase.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
    let phases = group.per_phase.iter().fold(0, |bits, (code, _)| bits | phase_bit(*code));
    let rules: [(bool, &str); 5] = [
        ((1..=MOST_ROWS).contains(&group.rows), "an impossible number of rows"),
        (ranges.flatten().all(|(start, end)| start <= end), "a time range that ends before it starts"),
        (group.per_phase.is_sorted_by(|a, b| a.0 < b.0) && counted == Some(group.rows), "other rows per phase"),
        (phases == group.phases, "other phases"),
        (
            group.late.len() as u64 <= group.rows && group.late.iter().all(|(row, _)| u64::from(*row) < group.rows),
            "durations of rows that it does not have",
        ),
    ];
    rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
}

/// Whether the ids that row groups are said to hold are ids of the part's tables.
pub(super) fn check_ids(meta: &Meta, tables: &Tables) -> Result<(), String> {
    let known = [tables.names.len(), tables.cats.len(), tables.processes.len(), tables.files.len()];
    for (place, group) in meta.groups.iter().enumerate() {
        let sets = [&group.names, &group.cats, &group.processes, &group.files];
        if !sets.into_iter().zip(known).all(|(set, known)| set.is_within(known)) {
            return Err(format!("row group {place} has unknown ids"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::IdSet;

    fn good() -> GroupMeta {
        let set = IdSet::of(&arrow_array::UInt32Array::from(vec![0, 1]));
        GroupMeta {
            rows: 10,
            time: Some((1, 2)),
            spans: Some((1, 2)),
            phases: phase_bit(1) | phase_bit(3),
            per_phase: vec![(1, 4), (3, 6)],
            names: set,
            pages: vec![Some((1, 2))],
            late: vec![(9, 1)],
            ..GroupMeta::default()
        }
    }

    #[test]
    fn only_what_builders_write_is_believed() {
        type Forge = fn(&mut GroupMeta);
        let cases: [(&str, Forge); 10] = [
            ("", |_| {}),
            ("impossible number", |group| group.rows = 0),
            ("impossible number", |group| group.rows = MOST_ROWS + 1),
            ("impossible number", |group| group.rows = u64::MAX),
            ("ends before", |group| group.time = Some((2, 1))),
            ("ends before", |group| group.pages = vec![None, Some((i64::MAX, i64::MIN))]),
            ("rows per phase", |group| group.per_phase = vec![(1, u64::MAX), (3, 11)]),
            ("rows per phase", |group| group.per_phase = vec![(1, 5), (1, 5)]),
            ("other phases", |group| group.phases = u16::MAX),
            ("durations", |group| group.late.push((10, 1))),
        ];
        for (expected, forge) in cases {
            let mut group = good();
            forge(&mut group);
            let found = check(&Meta { groups: vec![good(), group], processes: Vec::new() });
            match expected {
                "" => assert_eq!(found, Ok(())),
                expected => assert!(found.as_ref().is_err_and(|what| what.contains(expected)), "{expected}: {found:?}"),
            }
        }
    }

    #[test]
    fn ids_are_those_of_the_tables() {
        let meta = Meta { groups: vec![good()], processes: Vec::new() };
        let mut tables = Tables::default();
        tables.names.intern("a");
        assert!(check_ids(&meta, &tables).is_err_and(|what| what.contains("unknown ids")));
        tables.names.intern("b");
        // No set: any id may occur, and rows are looked at one by one.
        let mut any = good();
        (any.cats, any.files) = (IdSet::default(), IdSet::default());
        let meta = Meta { groups: vec![any], processes: Vec::new() };
        assert_eq!(check_ids(&meta, &tables), Ok(()));
    }
}
