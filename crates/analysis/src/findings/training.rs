//! Accelerator utilisation, as DLIO and MLPerf Storage define it: of the time of a block of training steps, the part in which the accelerator computes. The
//! first step of a block is left out, with the loading of its batch: pipelines are filled then.
//!
//! A block is a run of steps of one process without a change of epoch in which the number of the step does not fall. Blocks count by their steps, then
//! processes alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::pass::Maps;
use crate::wire;

/// A span in which a step computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct StepSpan {
    pub process: u32,
    pub start: i64,
    pub end: i64,
    pub epoch: Option<i64>,
    pub step: Option<i64>,
}

/// More are not kept: 40 MB.
const MOST: usize = 1 << 20;

/// The steps that were met.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Steps {
    spans: Vec<StepSpan>,
    /// Spans that were too many.
    left_out: u64,
}

impl Steps {
    pub(crate) fn add(&mut self, span: StepSpan) {
        if self.spans.len() < MOST {
            self.spans.push(span);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn join(&mut self, other: Steps) {
        let room = MOST.saturating_sub(self.spans.len());
        let too_many = other.spans.len().saturating_sub(room) as u64;
        self.left_out = self.left_out.saturating_add(other.left_out).saturating_add(too_many);
        self.spans.extend(other.spans.into_iter().take(room));
    }

    pub(crate) fn each_process(&self, each: &mut dyn FnMut(u32)) {
        self.spans.iter().for_each(|span| each(span.process));
    }

    pub(crate) fn is_plausible(&self) -> bool {
        self.spans.iter().all(|span| wire::is_range(span.start, span.end))
    }

    pub(crate) fn renumbered(mut self, maps: &Maps) -> Steps {
        self.spans.iter_mut().for_each(|span| span.process = maps.process(span.process));
        self
    }
}

/// How well the accelerators were used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Training {
    /// Between 0 and 1.
    pub accelerator_utilisation: f64,
    /// Steps of all processes.
    pub steps: u64,
    /// Blocks of steps.
    pub blocks: u64,
    /// Processes that train.
    pub processes: u64,
}

impl Training {
    /// Nothing where there are no steps, only first ones, or too many to be kept.
    pub(crate) fn of(mut steps: Steps) -> Option<Training> {
        if steps.left_out > 0 {
            return None;
        }
        steps.spans.sort_unstable();
        // Per process: steps and their weighed utilisation.
        let mut processes: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
        let (mut count, mut blocks) = (0, 0);
        let same_block = |a: &StepSpan, b: &StepSpan| {
            a.process == b.process && a.epoch == b.epoch && a.step.zip(b.step).is_none_or(|(a, b)| a <= b)
        };
        for block in steps.spans.chunk_by(same_block) {
            let first = block[0];
            // Several spans may be one step: forward, backward.
            let of_first = |span: &&StepSpan| **span == first || span.step.is_some() && span.step == first.step;
            let warm = block.iter().take_while(of_first).count();
            let mut numbers = block[warm..].to_vec();
            numbers.dedup_by(|a, b| a.step.is_some() && a.step == b.step);
            let own = 1 + numbers.len() as u64;
            count += own;
            blocks += 1;
            let begun = block[..warm].iter().map(|span| span.end).max().unwrap_or(first.end);
            let ended = block.iter().map(|span| span.end).max().unwrap_or(begun);
            if warm == block.len() || ended <= begun {
                continue;
            }
            // Spans of a step may nest.
            let (mut computed, mut reached) = (0i64, begun);
            for span in &block[warm..] {
                computed += span.end.saturating_sub(span.start.max(reached)).max(0);
                reached = reached.max(span.end);
            }
            let sums = processes.entry(first.process).or_default();
            sums.0 += own;
            sums.1 += own as f64 * computed as f64 / ended.saturating_sub(begun) as f64;
        }
        let each: Vec<f64> = processes.values().map(|(steps, sum)| sum / *steps as f64).collect();
        (!each.is_empty()).then(|| Training {
            accelerator_utilisation: (each.iter().sum::<f64>() / each.len() as f64).min(1.0),
            steps: count,
            blocks,
            processes: each.len() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a process: epoch, step, start, end.
    fn steps(process: u32, all: &[(i64, i64, i64, i64)]) -> Steps {
        let mut steps = Steps::default();
        for (epoch, step, start, end) in all {
            steps.add(StepSpan { process, start: *start, end: *end, epoch: Some(*epoch), step: Some(*step) });
        }
        steps
    }

    fn check(steps: Steps, expected: Option<(f64, u64, u64)>) {
        let found = Training::of(steps).map(|found| (found.accelerator_utilisation, found.steps, found.blocks));
        match (found, expected) {
            (Some(found), Some(expected)) => {
                assert!(
                    (found.0 - expected.0).abs() < 1e-9 && (found.1, found.2) == (expected.1, expected.2),
                    "{found:?}"
                );
            }
            (found, expected) => assert_eq!(found, expected),
        }
    }

    #[test]
    fn the_first_step_of_a_block_is_left_out() {
        check(Steps::default(), None);
        check(steps(1, &[(1, 1, 0, 10)]), None);
        // 10 of the 20 behind the first step.
        check(steps(1, &[(1, 1, 90, 100), (1, 2, 110, 120)]), Some((0.5, 2, 1)));
        // What lies between two epochs does not count.
        check(
            steps(1, &[(1, 1, 90, 100), (1, 2, 110, 120), (2, 1, 990, 1000), (2, 2, 1000, 1010), (2, 3, 1010, 1020)]),
            Some(((2.0 * 0.5 + 3.0) / 5.0, 5, 2)),
        );
        // A block that a checkpoint ended begins again with the first step.
        check(steps(1, &[(1, 1, 0, 10), (1, 2, 10, 20), (1, 1, 500, 510), (1, 2, 510, 520)]), Some((1.0, 4, 2)));
    }

    #[test]
    fn parts_of_a_step_are_one() {
        check(
            steps(1, &[(1, 1, 0, 10), (1, 1, 10, 20), (1, 2, 30, 50), (1, 2, 35, 40), (1, 3, 60, 70)]),
            Some((0.6, 3, 1)),
        );
    }

    #[test]
    fn processes_count_alike() {
        let mut both = steps(1, &[(1, 1, 0, 10), (1, 2, 10, 20)]);
        both.join(steps(2, &[(1, 1, 0, 10), (1, 2, 20, 30), (1, 3, 40, 50)]));
        check(both, Some((0.75, 5, 2)));
    }

    #[test]
    fn steps_without_numbers_are_one_block() {
        let mut steps = Steps::default();
        for start in [0, 20, 40] {
            steps.add(StepSpan { process: 1, start, end: start + 10, epoch: None, step: None });
        }
        check(steps, Some((0.5, 3, 1)));
    }
}
