//! The same bytes read again by one process.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::{Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "re-reads",
    title: "the same bytes read again",
    when: "A process reads the same bytes of a file several times.",
    advice: "Keep reused data in memory, or copy it to a local disk first.",
    thresholds: &[FACTOR, BYTES],
    kind: Kind::Ordered,
    ask,
};

const FACTOR: Threshold = Threshold::new(
    "re-reads.factor",
    3.0,
    "times",
    "Once to look and once to read is usual; three times on average is not.",
);
const BYTES: Threshold = Threshold::new("re-reads.bytes", 67108864.0, "bytes", "Less fits into any cache.");

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut all, mut distinct) = (Vec::new(), 0, 0);
    for ((process, file), pattern) in &case.sequences.patterns {
        let extent = pattern.read_to - pattern.read_from;
        if pattern.read_bytes == 0 || (pattern.read_bytes as f64) < config.get(FACTOR) * extent as f64 {
            continue;
        }
        let bytes = pattern.read_bytes - extent;
        let scaled = |sum: u64| (u128::from(sum) * u128::from(bytes) / u128::from(pattern.read_bytes)) as u64;
        all += pattern.read_bytes;
        distinct += extent;
        let when = case.span_of(*process, *file, &[Op::Read, Op::SmallRead]);
        let tally = Tally { calls: scaled(pattern.reads), bytes, ns: scaled(pattern.read_ns), ..when };
        parts.push(Part { process: *process, file: Some(*file), tally });
    }
    if all - distinct < config.count(BYTES) {
        return Vec::new();
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let what = format!(
        "{} read {} from {} of {}: every byte {} times on average; the repetitions cost {}.",
        weighed.processes(),
        units::bytes(all),
        weighed.files(),
        units::bytes(distinct),
        units::tenths(all as f64 / distinct.max(1) as f64),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, sum(ret) AS bytes, max(\"offset\" + ret) - min(\"offset\") AS extent, sum(dur_ns) / 1e9 AS seconds \
         FROM events WHERE name IN ({}) AND ret > 0 GROUP BY host, pid, path HAVING sum(ret) >= {} * (max(\"offset\" + ret) - min(\"offset\")) \
         ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::Read]),
        config.get(FACTOR),
    );
    case.finding(&RULE, weighed, what, query).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn again() {
        let times = |times: i64, mebibytes: i64| {
            lasting(10, move |trace| {
                for _ in 0..times {
                    for place in 0..mebibytes {
                        trace.transfer(1, "read", "/data/x", 20_000, place << 20, 1 << 20);
                    }
                }
            })
        };
        let found = check("re-reads", &times(3, 40), &times(2, 70));
        assert_eq!(found.at_stake.bytes, 80 << 20, "{found:#?}");
        check("re-reads", &times(3, 32), &times(3, 31));
    }
}
