//! One process asks for the attributes of the same path again and again.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::Op;
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "stat-storm",
    title: "the same paths looked up again and again",
    when: "A process asks for the attributes of the same path many times.",
    advice: "Remember the answer; list a directory once instead of probing names; shorten search paths (PYTHONPATH, LD_LIBRARY_PATH).",
    thresholds: &[PER_FILE],
    kind: Kind::Plain,
    ask,
};

const PER_FILE: Threshold =
    Threshold::new("stat-storm.per-file", 100.0, "calls", "The answer does not change a hundred times.");

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut calls) = (Vec::new(), 0);
    for (process, file, tally) in evidence.per_file(&[Op::StatPath]) {
        if tally.calls >= config.count(PER_FILE) {
            calls += tally.calls;
            parts.push(Part { process, file: Some(file), tally: tally.part(tally.calls - 1, 0) });
        }
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let what = format!(
        "{} looked up {} {} times; all but the first lookups cost {}.",
        weighed.processes(),
        weighed.files(),
        units::count(calls),
        weighed.cost(),
    );
    case.finding(&RULE, weighed, what, case.counted(&[Call::StatPath, Call::Access], config.count(PER_FILE)))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn stats() {
        let stats = |per_file: i64| {
            lasting(10, move |trace| {
                for round in 0..per_file * 20 {
                    trace.call(1, "stat", &format!("/data/{}", round % 20), 500, r#""ret":-2"#);
                }
            })
        };
        check("stat-storm", &stats(100), &stats(99));
    }
}
