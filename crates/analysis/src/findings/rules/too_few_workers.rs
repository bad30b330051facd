//! The training loop waits for data because too few workers load it.

use super::loops::{by_layer, starving};
use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Role;
use crate::findings::evidence::{Evidence, Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "too-few-workers",
    title: "too few loader workers",
    when: "The model waits for data, and the loop loads it itself or its workers are busy nearly all the time.",
    advice: "Raise the number of loader workers (num_workers), as far as processors and memory go.",
    thresholds: &[BUSY],
    kind: Kind::Plain,
    ask,
};

const BUSY: Threshold =
    Threshold::new("too-few-workers.busy", 0.8, "of a worker's time", "Workers that idle are not too few.");

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let loops = starving(case);
    let trains = |process: u32| evidence.role(process, Role::Compute).is_some();
    let (mut busy, mut idle) = (Vec::new(), 0u64);
    for (process, _) in evidence.alive().filter(|(process, _)| !trains(*process)) {
        let Some(load) = evidence.role(process, Role::Load) else { continue };
        if load.ns as f64 >= config.get(BUSY) * (load.end - load.start) as f64 {
            busy.push(process);
        } else {
            idle += 1;
        }
    }
    let (mut parts, mut own) = (Vec::new(), 0u64);
    for it in &loops {
        let Some(fetch) = evidence.role(it.process, Role::Fetch) else { continue };
        // Where loading is not marked, reading stands for it.
        let loaded = evidence.role(it.process, Role::Load).map_or_else(
            || Op::READS.iter().map(|op| total(evidence, it.process, *op)).sum::<u64>().min(fetch.ns),
            |load| load.fetching_ns,
        );
        let itself = loaded as f64 >= 0.5 * fetch.ns as f64;
        own += u64::from(itself);
        if itself || !busy.is_empty() && idle == 0 {
            let tally = Tally { calls: it.waits, bytes: 0, ns: it.waits_ns, start: it.start, end: it.end };
            parts.push(Part { process: it.process, file: None, tally });
        }
    }
    let Some(weighed) = evidence.weigh_wall(config, &parts) else { return Vec::new() };
    let how = if own > 0 {
        format!("{own} of {} loops load their batches themselves", loops.len())
    } else {
        format!(
            "all {} loader workers are busy for at least {} of their time",
            busy.len(),
            units::percent(config.get(BUSY))
        )
    };
    let what = format!(
        "{how}, and the model waits {} for them, {} of the wall time.",
        units::time(weighed.impact.time_ns as u64),
        units::percent(weighed.impact.share),
    );
    case.finding(&RULE, weighed, what, by_layer()).into_iter().collect()
}

fn total(evidence: &Evidence, process: u32, op: Op) -> u64 {
    evidence.per_process(&[op]).iter().filter(|(other, _)| *other == process).map(|(_, tally)| tally.ns).sum()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{SECOND, training};
    use crate::findings::tests::check;

    #[test]
    fn workers() {
        check("too-few-workers", &training(400_000, 600_000, true), &training(400_000, 600_000, false));
        let workers = |busy: i64| {
            (0..10).fold(training(400_000, 600_000, false).process(2, "a", None), |trace, step| {
                trace.span(2, "data", "item", step * SECOND, busy, "")
            })
        };
        // Ten pieces of work in 9 s and a bit: the last one ends the worker's time.
        check("too-few-workers", &workers(900_000), &workers(700_000));
    }
}
