//! Transfers that begin inside a block.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::{Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "unaligned-io",
    title: "unaligned transfers",
    when: "Most transfers of a block or more begin inside a block. The score counts half, since page caches hide much of the cost.",
    advice: "Start records at multiples of 4096 bytes; put headers into a block of their own.",
    thresholds: &[BLOCK, PART, CALLS],
    kind: Kind::Ordered,
    ask,
};

pub(crate) const BLOCK: Threshold =
    Threshold::new("unaligned-io.block", 4096.0, "bytes", "The page, and the block of most file systems.");
const PART: Threshold = Threshold::new(
    "unaligned-io.part",
    0.5,
    "of the transfers",
    "A header that shifts everything shows in nearly all of them.",
);
const CALLS: Threshold = Threshold::new("unaligned-io.calls", 1000.0, "calls", "Fewer do not matter.");

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut all) = (Vec::new(), 0);
    for ((process, file), pattern) in &case.sequences.patterns {
        let often = pattern.unaligned as f64 >= config.get(PART) * pattern.large as f64;
        if pattern.unaligned == 0 || !often {
            continue;
        }
        all += pattern.large;
        let when = case.span_of(*process, *file, &[Op::Read, Op::Write]);
        let tally =
            Tally { calls: pattern.unaligned, bytes: pattern.unaligned_bytes, ns: pattern.unaligned_ns, ..when };
        parts.push(Part { process: *process, file: Some(*file), tally });
    }
    if parts.iter().map(|part| part.tally.calls).sum::<u64>() < config.count(CALLS) {
        return Vec::new();
    }
    let Some(mut weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    weighed.score /= 2.0;
    let (impact, block) = (weighed.impact, config.count(BLOCK));
    let what = format!(
        "{} of {} transfers of {} or more on {} by {} begin inside a block; they cost {}.",
        units::count(impact.calls),
        units::count(all),
        units::bytes(block),
        weighed.files(),
        weighed.processes(),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, count(*) AS calls, sum(ret) AS bytes, sum(dur_ns) / 1e9 AS seconds FROM events \
         WHERE name IN ({}) AND ret >= {block} AND \"offset\" % {block} <> 0 GROUP BY host, pid, path ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::Read, Call::Write]),
    );
    case.finding(&RULE, weighed, what, query).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn unaligned() {
        let from = |first: i64, count: i64| {
            lasting(10, move |trace| {
                for place in 0..count {
                    trace.transfer(1, "write", "/data/x", 1_000, first + place * 65_536, 65_536);
                }
            })
        };
        check("unaligned-io", &from(100, 2_000), &from(8192, 2_000));
        check("unaligned-io", &from(100, 1_000), &from(100, 999));
    }
}
