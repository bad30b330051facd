//! Accelerator utilisation, as DLIO and MLPerf Storage define it: of the time of a block of training steps, the part in which the accelerator computes. The
//! first step of a block is left out, with the loading of its batch: pipelines are filled then.
//!
//! A block is a run of steps of one process within an epoch in which the number of the step does not fall: DLIO counts anew behind a checkpoint. Within an
//! epoch blocks count by their steps; then epochs count alike, then processes. Steps of evaluations are none of training. A block of one step says nothing
//! and is left out; DLIO counts it as 0. `tools/dlio` compares the result with DLIO's own.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::intervals::Intervals;
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

/// Tells the epochs of a process apart: how many had begun, and the number that steps have.
type Epoch = (usize, Option<i64>);

/// What says of steps which of them belong together: when processes evaluated their model, and when their epochs began.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Marks {
    #[serde(with = "wire::sorted")]
    evaluations: FxHashMap<u32, Intervals>,
    #[serde(with = "wire::sorted")]
    epochs: FxHashMap<u32, Vec<i64>>,
}

impl Marks {
    pub(crate) fn add_evaluation(&mut self, process: u32, start: i64, end: i64) {
        self.evaluations.entry(process).or_default().add(start, end);
    }

    pub(crate) fn add_epoch(&mut self, process: u32, start: i64) {
        self.epochs.entry(process).or_default().push(start);
    }

    pub(crate) fn join(&mut self, other: Marks) {
        other.evaluations.into_iter().for_each(|(id, ranges)| self.evaluations.entry(id).or_default().join(ranges));
        other.epochs.into_iter().for_each(|(id, starts)| self.epochs.entry(id).or_default().extend(starts));
    }

    pub(crate) fn each_process(&self, each: &mut dyn FnMut(u32)) {
        self.evaluations.keys().chain(self.epochs.keys()).for_each(|id| each(*id));
    }

    pub(crate) fn renumbered(self, maps: &Maps) -> Marks {
        let mut new = Marks::default();
        for (id, ranges) in self.evaluations {
            new.evaluations.entry(maps.process(id)).or_default().join(ranges);
        }
        for (id, starts) in self.epochs {
            new.epochs.entry(maps.process(id)).or_default().extend(starts);
        }
        new
    }

    pub(crate) fn is_plausible(&self) -> bool {
        self.evaluations.values().flat_map(Intervals::ranges).all(|(start, end)| wire::is_range(*start, *end))
            && self.epochs.values().flatten().all(|start| wire::is_range(*start, *start))
    }

    /// All of them are known and are put in order.
    pub(crate) fn settled(mut self) -> Marks {
        self.evaluations.values_mut().for_each(Intervals::settle);
        self.epochs.values_mut().for_each(|starts| starts.sort_unstable());
        self
    }

    /// Whether a step is one of an evaluation.
    fn evaluates(&self, span: &StepSpan) -> bool {
        let ranges = self.evaluations.get(&span.process).map_or(&[][..], Intervals::ranges);
        let behind = ranges.partition_point(|range| range.0 <= span.start);
        behind > 0 && span.start < ranges[behind - 1].1
    }

    /// The epoch of a step. DFTracer 1 writes the same number in all epochs of DLIO; others tell nothing but the number.
    fn epoch(&self, span: &StepSpan) -> Epoch {
        let begun = self.epochs.get(&span.process).map_or(0, |starts| starts.partition_point(|at| *at <= span.start));
        (begun, span.epoch)
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
    pub(crate) fn of(mut steps: Steps, marks: &Marks) -> Option<Training> {
        if steps.left_out > 0 {
            return None;
        }
        steps.spans.retain(|span| !marks.evaluates(span));
        steps.spans.sort_unstable();
        // Per process and epoch: steps and their weighed utilisation.
        let mut processes: BTreeMap<u32, BTreeMap<Epoch, (u64, f64)>> = BTreeMap::new();
        let (mut count, mut blocks) = (0, 0);
        let same_block = |a: &StepSpan, b: &StepSpan| {
            let counts_on = a.step.zip(b.step).is_none_or(|(a, b)| a <= b);
            a.process == b.process && counts_on && marks.epoch(a) == marks.epoch(b)
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
            let sums = processes.entry(first.process).or_default().entry(marks.epoch(&first)).or_default();
            sums.0 += own;
            sums.1 += own as f64 * computed as f64 / ended.saturating_sub(begun) as f64;
        }
        let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
        let of_epochs =
            |epochs: &BTreeMap<_, (u64, f64)>| mean(epochs.values().map(|(steps, sum)| sum / *steps as f64).collect());
        let each: Vec<f64> = processes.values().map(of_epochs).collect();
        let count_of_processes = each.len() as u64;
        (!each.is_empty()).then(|| Training {
            accelerator_utilisation: mean(each).min(1.0),
            steps: count,
            blocks,
            processes: count_of_processes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::builder::Trace;
    use crate::findings::tests::judge;

    const SECOND: i64 = 1_000_000;

    /// Steps of a process: epoch, step, start, end.
    fn steps(process: u32, all: &[(i64, i64, i64, i64)]) -> Steps {
        let mut steps = Steps::default();
        for (epoch, step, start, end) in all {
            steps.add(StepSpan { process, start: *start, end: *end, epoch: Some(*epoch), step: Some(*step) });
        }
        steps
    }

    fn check(steps: Steps, expected: Option<(f64, u64, u64)>) {
        check_marked(steps, Marks::default(), expected);
    }

    fn check_marked(steps: Steps, marks: Marks, expected: Option<(f64, u64, u64)>) {
        let found = Training::of(steps, &marks.settled());
        let found = found.map(|found| (found.accelerator_utilisation, found.steps, found.blocks));
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
        // What lies between two epochs does not count; epochs count alike, however many steps they have.
        check(
            steps(1, &[(1, 1, 90, 100), (1, 2, 110, 120), (2, 1, 990, 1000), (2, 2, 1000, 1010), (2, 3, 1010, 1020)]),
            Some((0.75, 5, 2)),
        );
        // Blocks of one epoch count by their steps.
        check(
            steps(1, &[(1, 1, 90, 100), (1, 2, 110, 120), (1, 1, 990, 1000), (1, 2, 1000, 1010), (1, 3, 1010, 1020)]),
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
    fn steps_of_an_evaluation_are_none_of_training() {
        let both = || {
            let mut all = steps(1, &[(1, 1, 0, 10), (1, 2, 20, 30), (1, 1, 110, 120), (1, 2, 120, 130)]);
            all.join(steps(2, &[(1, 1, 110, 120), (1, 2, 130, 140)]));
            all
        };
        check(both(), Some(((0.5 + 1.0) / 2.0 / 2.0 + 0.5 / 2.0, 6, 3)));
        let mut marks = Marks::default();
        marks.add_evaluation(1, 400, 500);
        let mut earlier = Marks::default();
        earlier.add_evaluation(1, 100, 200);
        marks.join(earlier);
        check_marked(both(), marks, Some((0.5, 4, 2)));
    }

    #[test]
    fn spans_of_epochs_tell_epochs_that_steps_do_not() {
        let unnumbered = || {
            let mut steps = Steps::default();
            for start in [0, 20, 1000, 1010, 1020] {
                steps.add(StepSpan { process: 1, start, end: start + 10, epoch: Some(0), step: None });
            }
            steps
        };
        check(unnumbered(), Some((40.0 / 1020.0, 5, 1)));
        let mut marks = Marks::default();
        marks.add_epoch(1, 900);
        marks.add_epoch(2, 1005);
        let mut earlier = Marks::default();
        earlier.add_epoch(1, 0);
        marks.join(earlier);
        check_marked(unnumbered(), marks, Some(((0.5 + 1.0) / 2.0, 5, 2)));
    }

    #[test]
    fn steps_without_numbers_are_one_block() {
        let mut steps = Steps::default();
        for start in [0, 20, 40] {
            steps.add(StepSpan { process: 1, start, end: start + 10, epoch: None, step: None });
        }
        check(steps, Some((0.5, 3, 1)));
    }

    /// Spans as DLIO writes them: of its framework's object only `compute` is a step, and what `_eval` holds is none of training.
    #[test]
    fn accelerator_utilisation_is_dlios() {
        let framework = |trace: Trace, method: &str, start: i64, dur: i64, step: &str| {
            trace.span(1, "ai_framework", &format!("TorchFramework.{method}"), start, dur, step)
        };
        let mut trace = Trace::new().process(1, "a", Some(0));
        // Two blocks, the second behind a checkpoint. The loader takes a second for the first batch and 60 ms for each other one.
        for (epoch, begun) in [(1, 0), (2, 10 * SECOND)] {
            trace = framework(trace, "get_loader", begun, 10, "");
            for step in 1..=5 {
                let start = begun + SECOND + (step - 1) * 100_000;
                // `trace_object` counts the steps of the epoch, `compute` those of the block.
                trace =
                    framework(trace, "trace_object", start - 50, 5, &format!(r#""step":{}"#, step + 5 * (epoch - 1)));
                trace = framework(trace, "compute", start, 40_000, &format!(r#""step":{step}"#));
            }
        }
        let evaluated = 20 * SECOND;
        trace = trace.span(1, "dlio_benchmark", "DLIOBenchmark._eval", evaluated, SECOND, r#""epoch":2"#);
        for step in 1..=5 {
            trace = framework(trace, "compute", evaluated + step * 40_000, 40_000, &format!(r#""step":{step}"#));
        }
        let found = judge(&trace.until(1, 30 * SECOND), &[]).training.expect("a training job");
        assert!((found.accelerator_utilisation - 0.4).abs() < 1e-9, "{found:?}");
        assert_eq!((found.steps, found.blocks, found.processes), (10, 2, 1));
    }
}
