//! Syncs to disk with few bytes each.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::{Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "fsync-per-write",
    title: "syncs to disk again and again",
    when: "A program waits for the disk many times, with few bytes each time (fsync, fdatasync, or writes to files opened with O_SYNC or O_DSYNC), and this takes much of its time.",
    advice: "Sync once, when a unit of work is complete; put many rows into one transaction.",
    thresholds: &[CALLS, BYTES],
    kind: Kind::Plain,
    ask,
};

const CALLS: Threshold = Threshold::new(
    "fsync-per-write.calls",
    50.0,
    "syncs",
    "A program that makes a few files durable is right to do so.",
);
const BYTES: Threshold = Threshold::new(
    "fsync-per-write.bytes",
    4194304.0,
    "bytes per sync",
    "A sync of more, a checkpoint's, takes as long as the disk needs for the bytes; fewer syncs would not make it faster.",
);

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut writes, mut syncs) = (Vec::new(), 0, 0);
    let ops = [Op::WRITES, &[Op::Sync, Op::OpenSync]].concat();
    for (process, file, _) in evidence.per_file(&ops) {
        let mut written = Tally::default();
        Op::WRITES.iter().for_each(|op| written.add(&evidence.sum(process, file, *op)));
        let synced = evidence.sum(process, file, Op::Sync);
        // Every write to a file that was opened so waits for the disk.
        let tally = match evidence.sum(process, file, Op::OpenSync).calls {
            0 if synced.calls == 0 => continue,
            0 => Tally { bytes: written.bytes, ..synced },
            _ => written,
        };
        if tally.bytes >= config.count(BYTES).saturating_mul(tally.calls) {
            continue;
        }
        syncs += tally.calls;
        writes += written.calls;
        parts.push(Part { process, file: Some(file), tally });
    }
    if syncs < config.count(CALLS) {
        return Vec::new();
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    let what = format!(
        "{} writes to {} by {} ({}) wait for the disk {} times; that costs {}.",
        units::count(writes),
        weighed.files(),
        weighed.processes(),
        units::bytes(impact.bytes),
        units::count(syncs),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, name, count(*) AS calls, sum(dur_ns) / 1e9 AS seconds FROM events WHERE name IN ({}) \
         GROUP BY host, pid, path, name ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::Sync, Call::Write, Call::StreamWrite]),
    );
    case.finding(&RULE, weighed, what, query).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{lasting, transfers};
    use crate::findings::tests::check;

    #[test]
    fn syncs() {
        let synced = |writes: i64, every: i64, us: i64| {
            lasting(10, move |trace| {
                for place in 0..writes {
                    trace.transfer(1, "write", "/data/x", 10, place * 8192, 8192);
                    if place % every == 0 {
                        trace.call(1, "fsync", "/data/x", us, r#""fd":3,"ret":0"#);
                    }
                }
            })
        };
        // What they cost decides, not how many writes there are for each: a database writes several pages for a commit.
        check("fsync-per-write", &synced(800, 8, 20_000), &synced(100, 1, 4_000));
        check("fsync-per-write", &synced(50, 1, 20_000), &synced(49, 1, 20_000));
        let opened = |flags: i64| {
            lasting(10, move |trace| {
                trace.call(1, "open", "/data/x", 10, &format!(r#""flags":{flags},"ret":3"#));
                transfers("write", 100, 20_000, 8192)(trace);
            })
        };
        check("fsync-per-write", &opened(0o4_010_001), &opened(0o1));
        // What a disk needs for the bytes is not the sync's fault: the checkpoints of a training job.
        let saved = |bytes: i64| {
            lasting(10, move |trace| {
                for place in 0..60 {
                    trace.transfer(1, "write", "/data/x", 1_000, place * bytes, bytes);
                    trace.call(1, "fsync", "/data/x", 30_000, r#""fd":3,"ret":0"#);
                }
            })
        };
        check("fsync-per-write", &saved((4 << 20) - 1), &saved(4 << 20));
    }
}
