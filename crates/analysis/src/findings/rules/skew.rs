//! One process of many that are alike reads or writes nearly everything.

use std::collections::BTreeMap;

use super::peers::{cohorts, named};
use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::{Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const READERS: RuleInfo = RuleInfo {
    id: "reader-skew",
    title: "one process reads nearly everything",
    when: "One of several processes of the same program that began together reads most of the bytes.",
    advice: "Let every process read its part, or read collectively if the format supports it.",
    thresholds: &[READER_PART, READER_BYTES, READER_PEERS],
    kind: Kind::Plain,
    ask: reader_skew,
};

pub(super) const WRITERS: RuleInfo = RuleInfo {
    id: "writer-skew",
    title: "one process writes nearly everything",
    when: "One of several processes of the same program that began together writes most of the bytes.",
    advice: "Let every process write its part, into files of its own or collectively.",
    thresholds: &[WRITER_PART, WRITER_BYTES, WRITER_PEERS],
    kind: Kind::Plain,
    ask: writer_skew,
};

const READER_PART: Threshold = Threshold::new("reader-skew.part", 0.8, "of the bytes", "As for writers.");
const READER_BYTES: Threshold = Threshold::new("reader-skew.bytes", 67108864.0, "bytes", "As for writers.");
const READER_PEERS: Threshold = Threshold::new("reader-skew.peers", 4.0, "processes", "As for writers.");
const WRITER_PART: Threshold = Threshold::new(
    "writer-skew.part",
    0.8,
    "of the bytes",
    "With equal parts each of four processes would have a quarter.",
);
const WRITER_BYTES: Threshold =
    Threshold::new("writer-skew.bytes", 67108864.0, "bytes", "Small outputs are rightly written by one.");
const WRITER_PEERS: Threshold =
    Threshold::new("writer-skew.peers", 4.0, "processes", "With fewer, one of them having most is no pattern.");

struct Skew {
    rule: &'static RuleInfo,
    verb: &'static str,
    ops: &'static [Op],
    calls: &'static [Call],
    /// The largest part of the bytes that is fair, the bytes below which nothing matters, how many must take part.
    limits: [Threshold; 3],
}

fn reader_skew(case: &Case<'_>) -> Vec<Finding> {
    let calls = &[Call::Read, Call::StreamRead, Call::Copy];
    let limits = [READER_PART, READER_BYTES, READER_PEERS];
    Skew { rule: &READERS, verb: "reads", ops: Op::READS, calls, limits }.ask(case)
}

fn writer_skew(case: &Case<'_>) -> Vec<Finding> {
    let calls = &[Call::Write, Call::StreamWrite, Call::Copy];
    let limits = [WRITER_PART, WRITER_BYTES, WRITER_PEERS];
    Skew { rule: &WRITERS, verb: "writes", ops: Op::WRITES, calls, limits }.ask(case)
}

impl Skew {
    fn ask(&self, case: &Case<'_>) -> Vec<Finding> {
        let (evidence, config) = (case.evidence, case.config);
        let sums: BTreeMap<u32, Tally> = evidence.per_process(self.ops).into_iter().collect();
        let [part, least, peers] = self.limits;
        let mut found = Vec::new();
        for cohort in cohorts(case) {
            if (cohort.len() as u64) < config.count(peers) {
                continue;
            }
            let of = |process: &u32| sums.get(process).copied().unwrap_or_default();
            let all: u64 = cohort.iter().map(|process| of(process).bytes).sum();
            let Some(most) = cohort.iter().max_by_key(|process| of(process).bytes) else { continue };
            let tally = of(most);
            if all < config.count(least) || (tally.bytes as f64) < config.get(part) * all as f64 {
                continue;
            }
            let Some(weighed) = evidence.weigh(config, &[Part { process: *most, file: None, tally }]) else { continue };
            let what = format!(
                "Process {} {} {} of the {} that {} processes of {} move; that costs {}, {} of the wall time.",
                evidence.who(*most).pid,
                self.verb,
                units::percent(tally.bytes as f64 / all.max(1) as f64),
                units::bytes(all),
                cohort.len(),
                named(&evidence.program(*most)),
                units::time(tally.ns),
                units::percent(weighed.impact.share),
            );
            let query = format!(
                "SELECT host, pid, rank, count(*) AS calls, sum(ret) AS bytes, sum(dur_ns) / 1e9 AS seconds FROM events \
                 WHERE name IN ({}) AND ret > 0 GROUP BY host, pid, rank ORDER BY bytes DESC LIMIT 20",
                evidence.name_table.sql_names(self.calls),
            );
            found.extend(case.finding(self.rule, weighed, what, query));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{SECOND, four};
    use crate::findings::tests::check;

    #[test]
    fn one_moves_nearly_all() {
        for (rule, name) in [("writer-skew", "write"), ("reader-skew", "read")] {
            let skewed = |mebibytes: i64, others: i64| {
                four([10 * SECOND; 4], move |pid, trace| {
                    for place in 0..if pid == 1 { mebibytes } else { others } {
                        trace.transfer(pid, name, &format!("/data/{pid}"), 50_000, place << 20, 1 << 20);
                    }
                })
            };
            let found = check(rule, &skewed(96, 8), &skewed(96, 9));
            assert_eq!(found.place.processes.iter().map(|who| who.pid).collect::<Vec<_>>(), [1], "{found:#?}");
            check(rule, &skewed(64, 0), &skewed(63, 0));
        }
    }
}
