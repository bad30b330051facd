//! As many seeks in a file as transfers.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::Op;
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "seek-storm",
    title: "more seeks than transfers",
    when: "A process seeks in a file at least as often as it transfers.",
    advice: "Use pread and pwrite, which take an offset; do not query a position that the program knows.",
    thresholds: &[PER_TRANSFER],
    kind: Kind::Ordered,
    ask,
};

const PER_TRANSFER: Threshold =
    Threshold::new("seek-storm.per-transfer", 1.0, "seeks", "More seeks than transfers: most of them move nothing.");

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut transfers, mut idle) = (Vec::new(), 0, 0);
    let moving = [Op::Read, Op::SmallRead, Op::Write, Op::SmallWrite, Op::StreamRead, Op::StreamWrite];
    for (process, file, tally) in evidence.per_file(&[Op::Seek]) {
        let moved: u64 = moving.iter().map(|op| evidence.sum(process, file, *op).calls).sum();
        if (tally.calls as f64) < config.get(PER_TRANSFER) * moved as f64 {
            continue;
        }
        transfers += moved;
        let patterns = &case.sequences.patterns;
        if let Ok(place) = patterns.binary_search_by_key(&(process, file), |(key, _)| *key) {
            idle += patterns[place].1.idle_seeks;
        }
        parts.push(Part { process, file: Some(file), tally });
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    let what = format!(
        "{} seeks for {} transfers on {} by {} ({} of them to the current position) cost {}.",
        units::count(impact.calls),
        units::count(transfers),
        weighed.files(),
        weighed.processes(),
        units::count(idle),
        weighed.cost(),
    );
    case.finding(&RULE, weighed, what, case.counted(&[Call::Seek, Call::Tell], 1)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn seeks() {
        let seeks = |seeks: i64| {
            lasting(10, move |trace| {
                for place in 0..seeks {
                    trace.call(1, "lseek", "/data/x", 500, r#""fd":3,"offset":0,"whence":0,"ret":0"#);
                    if place < 2_000 {
                        trace.transfer(1, "read", "/data/x", 1, place * 4096, 4096);
                    }
                }
                for place in seeks..2_000 {
                    trace.transfer(1, "read", "/data/x", 1, place * 4096, 4096);
                }
            })
        };
        check("seek-storm", &seeks(2_000), &seeks(1_999));
    }
}
