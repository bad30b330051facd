//! One process opens the same file again and again.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::Op;
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "open-storm",
    title: "the same files opened again and again",
    when: "A process opens the same file many times, with or without success.",
    advice: "Open once and keep the descriptor; pread lets threads share it; remember which paths do not exist.",
    thresholds: &[PER_FILE],
    kind: Kind::Plain,
    ask,
};

const PER_FILE: Threshold = Threshold::new(
    "open-storm.per-file",
    50.0,
    "opens",
    "A file that one process opens so often could have stayed open.",
);

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut opens, mut failed) = (Vec::new(), 0, 0);
    for (process, file, tally) in evidence.per_file(Op::OPENS) {
        if tally.calls < config.count(PER_FILE) {
            continue;
        }
        opens += tally.calls;
        failed += evidence.sum(process, file, Op::OpenFailed).calls;
        // The first one was needed; what goes with each open would have been spared with it.
        let mut again = tally.part(tally.calls - 1, 0);
        for op in [Op::Close, Op::StatOpen] {
            let with = evidence.sum(process, file, op);
            again.ns += with.part(with.calls.saturating_sub(1), 0).ns;
        }
        parts.push(Part { process, file: Some(file), tally: again });
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let what = format!(
        "{} opened {} {} times ({} failed); all but the first opens, with their other calls, cost {}.",
        weighed.processes(),
        weighed.files(),
        units::count(opens),
        units::count(failed),
        weighed.cost(),
    );
    case.finding(&RULE, weighed, what, case.counted(&[Call::Open], config.count(PER_FILE))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn opens() {
        let opens = |per_file: i64| {
            lasting(10, move |trace| {
                for round in 0..per_file * 40 {
                    let path = format!("/data/{}", round % 40);
                    trace.call(1, "open", &path, 500, r#""ret":3"#);
                    trace.call(1, "close", &path, 10, r#""fd":3,"ret":0"#);
                }
            })
        };
        let found = check("open-storm", &opens(50), &opens(49));
        assert_eq!(
            (found.at_stake.calls, found.place.file_count, found.place.files.len()),
            (49 * 40, 40, 5),
            "{found:#?}"
        );
    }
}
