//! The training loop waits for data.

use super::loops::{Loop, by_layer, starving};
use super::{Case, Kind, RuleInfo};
use crate::findings::evidence::Tally;
use crate::findings::weigh::{self, Part};
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "loader-starvation",
    title: "the model waits for data",
    when: "The training loop waits for its next batch while nothing is computed.",
    advice: "Load ahead (more workers, prefetch), make samples cheaper to read and decode, or bring the data nearer.",
    thresholds: &[FETCH, COMPUTE],
    kind: Kind::Plain,
    ask,
};

pub(super) const FETCH: Threshold = Threshold::new(
    "loader-starvation.fetch",
    0.2,
    "of the time",
    "DFAnalyzer's `fetch_pressure`: a fifth of the loop waits for data.",
);
pub(super) const COMPUTE: Threshold = Threshold::new(
    "loader-starvation.compute",
    0.85,
    "of the time",
    "Above it the model is busy, whatever the loader does; DFAnalyzer's limit.",
);

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let loops = starving(case);
    let parts: Vec<Part> = loops
        .iter()
        .map(|it| Part {
            process: it.process,
            file: None,
            tally: Tally { calls: it.waits, bytes: 0, ns: it.waits_ns, start: it.start, end: it.end },
        })
        .collect();
    let Some(mut weighed) = case.evidence.weigh_wall(case.config, &parts) else { return Vec::new() };
    let time: f64 = loops.iter().map(Loop::ns).sum();
    let waits = loops.iter().map(|it| it.waits_ns).sum::<u64>() as f64 / time;
    let computes = loops.iter().map(|it| it.compute_ns).sum::<u64>() as f64 / time;
    // The reference's severity, less where little time is at stake.
    let short = (weighed.impact.seconds() / case.config.get(weigh::FULL_SECONDS).max(f64::MIN_POSITIVE)).min(1.0);
    weighed.score = ((waits - 0.10) / 0.25).clamp(0.0, 1.0) * short;
    let what = format!(
        "{} wait {} for {} batches: {} of their loops' time, while {} goes to compute.",
        units::counted(loops.len() as u64, "process", "processes"),
        units::time(weighed.impact.time_ns as u64),
        units::count(weighed.impact.calls),
        units::percent(waits),
        units::percent(computes),
    );
    case.finding(&RULE, weighed, what, by_layer()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::training;
    use crate::findings::tests::{check, judge};

    #[test]
    fn waits() {
        let found = check("loader-starvation", &training(200_000, 800_000, false), &training(199_999, 800_000, false));
        // The reference's severity: (0.2 - 0.1) / 0.25.
        assert!((found.score - 0.4).abs() < 1e-6, "{found:#?}");
        // With waits counted outside of compute, the second limit binds only when it is lowered.
        for (limit, expected) in [("0.60", 0), ("0.61", 1)] {
            let found = judge(&training(300_000, 600_000, false), &[&format!("loader-starvation.compute={limit}")]);
            assert_eq!(
                found.findings.iter().filter(|finding| finding.rule == "loader-starvation").count(),
                expected,
                "{limit}"
            );
        }
        // Waiting that compute hides is none.
        check("loader-starvation", &training(200_000, 800_000, false), &training(500_000, 840_000, false));
    }
}
