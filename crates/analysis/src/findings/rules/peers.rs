//! Processes that are compared with each other.

use std::collections::BTreeMap;

use super::Case;
use super::straggler_process::START_SPREAD;

/// Processes of the same program that began together. Processes that started others of the group are not among them: they wait by nature.
pub(super) fn cohorts(case: &Case<'_>) -> Vec<Vec<u32>> {
    let (evidence, spread) = (case.evidence, case.config.get(START_SPREAD));
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (process, _) in evidence.alive() {
        groups.entry(evidence.program(process)).or_default().push(process);
    }
    let start = |process: u32| evidence.lives[process as usize].map_or(0, |life| life.start);
    let length = |process: u32| evidence.lives[process as usize].map_or(0, |life| life.ns());
    let mut found = Vec::new();
    for mut group in groups.into_values() {
        let pid = |process: u32| evidence.dictionary.process(process).pid;
        let parents: Vec<i64> = group.iter().filter_map(|process| evidence.dictionary.process(*process).ppid).collect();
        group.retain(|process| !parents.contains(&pid(*process)));
        group.sort_by_key(|process| (start(*process), pid(*process)));
        let Some(first) = group.first().map(|process| start(*process)) else { continue };
        let longest = group.iter().map(|process| length(*process)).max().unwrap_or(0);
        let last = first.saturating_add((longest as f64 * spread) as i64);
        group.retain(|process| start(*process) <= last);
        if group.len() > 1 {
            found.push(group);
        }
    }
    found
}

/// The value in the middle.
pub(super) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    // The lower one of two in the middle: a straggler must not be its own measure.
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// A program, in the middle of a sentence.
pub(super) fn named(program: &str) -> &str {
    if program.is_empty() { "the job" } else { program }
}
