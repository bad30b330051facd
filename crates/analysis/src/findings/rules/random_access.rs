//! Transfers that jump about in a file.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::{Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "random-access",
    title: "random access",
    when: "Most transfers on a file begin before or far after the end of the previous one, and are not large.",
    advice: "Sort the accesses by offset, read whole blocks and select from memory, or store data that is used together in one place.",
    thresholds: &[PART, SIZE, GAP, CALLS],
    kind: Kind::Ordered,
    ask,
};

const PART: Threshold = Threshold::new(
    "random-access.part",
    0.5,
    "of the transfers",
    "Below one half, read-ahead still does most of the work.",
);
const SIZE: Threshold =
    Threshold::new("random-access.size", 262144.0, "bytes", "Larger pieces pay for the jump to them.");
pub(crate) const GAP: Threshold = Threshold::new(
    "random-access.gap",
    131072.0,
    "bytes",
    "A step ahead within Linux's default read-ahead window is as good as sequential.",
);
const CALLS: Threshold = Threshold::new(
    "random-access.calls",
    1000.0,
    "calls",
    "Fewer jumps are a directory of records or an index, not a pattern.",
);

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut all) = (Vec::new(), 0);
    for ((process, file), pattern) in &case.sequences.patterns {
        let calls = pattern.random_reads + pattern.random_writes;
        let bytes = pattern.random_read_bytes + pattern.random_write_bytes;
        let transfers = pattern.reads + pattern.writes;
        let often = calls as f64 >= config.get(PART) * transfers as f64;
        if calls == 0 || !often || bytes / calls > config.count(SIZE) {
            continue;
        }
        all += transfers;
        let ns = pattern.random_read_ns + pattern.random_write_ns;
        let when = case.span_of(*process, *file, &[Op::Read, Op::SmallRead, Op::Write, Op::SmallWrite]);
        parts.push(Part { process: *process, file: Some(*file), tally: Tally { calls, bytes, ns, ..when } });
    }
    if parts.iter().map(|part| part.tally.calls).sum::<u64>() < config.count(CALLS) {
        return Vec::new();
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    let what = format!(
        "{} of {} transfers on {} by {} jump to another place, with {} each on average; they cost {}.",
        units::count(impact.calls),
        units::count(all),
        weighed.files(),
        weighed.processes(),
        units::bytes(impact.bytes / impact.calls.max(1)),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, count(*) AS jumps, sum(dur_ns) / 1e9 AS seconds FROM (SELECT host, pid, path, ret, dur_ns, \
         \"offset\" - lag(\"offset\" + ret) OVER (PARTITION BY host, pid, tid, path, fd ORDER BY ts_ns) AS gap FROM events \
         WHERE name IN ({}) AND ret > 0) WHERE gap < 0 OR gap > {} GROUP BY host, pid, path ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::Read, Call::Write]),
        config.count(GAP),
    );
    case.finding(&RULE, weighed, what, query).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn jumps() {
        let jumping = |count: i64, gap: i64, bytes: i64| {
            lasting(10, move |trace| {
                for place in 0..count {
                    trace.transfer(1, "pread", "/data/x", 1_000, place * (bytes + gap), bytes);
                }
            })
        };
        check("random-access", &jumping(2_000, 131_073, 4096), &jumping(2_000, 131_072, 4096));
        check("random-access", &jumping(1_001, 1 << 20, 4096), &jumping(1_000, 1 << 20, 4096));
        check("random-access", &jumping(2_000, 1 << 20, 262_144), &jumping(2_000, 1 << 20, 262_145));
        // DFTracer's reads have no offset; it is that of the seek before.
        let followed = |step: i64| {
            lasting(10, move |trace| {
                trace.call(1, "open", "/data/x", 1, r#""ret":3"#);
                for place in 0..2_000 {
                    let to = place * step;
                    trace.call(1, "lseek", "/data/x", 1, &format!(r#""offset":{to},"whence":0,"ret":{to}"#));
                    trace.call(1, "read", "/data/x", 1_000, r#""ret":4096"#);
                }
            })
        };
        check("random-access", &followed(1 << 20), &followed(4096));
    }
}
