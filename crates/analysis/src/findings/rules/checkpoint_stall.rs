//! Training stands still while checkpoints are written.

use super::loops::by_layer;
use super::{Case, Kind, RuleInfo};
use crate::findings::calls::{Call, Role};
use crate::findings::evidence::{Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "checkpoint-stall",
    title: "training stands still for checkpoints",
    when: "Checkpoints take time in which nothing is computed.",
    advice: "Save in the background from a copy in memory, to a local disk first, less often, or sharded over ranks.",
    thresholds: &[SHARE],
    kind: Kind::Plain,
    ask,
};

const SHARE: Threshold =
    Threshold::new("checkpoint-stall.share", 0.05, "of the time", "Checkpoints that take less are well hidden.");

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut parts = Vec::new();
    for (process, _) in evidence.alive() {
        let Some(saved) = evidence.role(process, Role::Checkpoint) else { continue };
        let ns = saved.ns - saved.computing_ns;
        let tally = Tally { calls: saved.count, bytes: 0, ns, start: saved.start, end: saved.end };
        parts.push(Part { process, file: None, tally });
    }
    let mut how = "spans";
    if parts.is_empty() {
        // Nothing is marked: files that are called like checkpoints.
        how = "calls that write files named like checkpoints";
        let ops = [Op::Write, Op::SmallWrite, Op::StreamWrite, Op::Sync, Op::Flush, Op::Copy];
        for (process, file, tally) in evidence.per_file(&ops) {
            if evidence.name_table.is_checkpoint_file(file) {
                parts.push(Part { process, file: Some(file), tally });
            }
        }
    }
    let weighed = if how == "spans" { evidence.weigh_wall(config, &parts) } else { evidence.weigh(config, &parts) };
    let Some(weighed) = weighed.filter(|weighed| weighed.impact.share >= config.get(SHARE)) else {
        return Vec::new();
    };
    let what = format!(
        "{} {how} of {} take {} in which nothing is computed, {} of the wall time.",
        units::count(weighed.impact.calls),
        weighed.processes(),
        units::time(weighed.impact.time_ns as u64),
        units::percent(weighed.impact.share),
    );
    let query = if how == "spans" {
        by_layer()
    } else {
        format!(
            "SELECT host, pid, path, name, count(*) AS calls, sum(dur_ns) / 1e9 AS seconds FROM events WHERE name IN ({}) \
             AND (lower(path) LIKE '%checkpoint%' OR lower(path) LIKE '%/ckpt%' OR lower(path) LIKE '%.ckpt' OR lower(path) LIKE '%.pt' \
             OR lower(path) LIKE '%.pth' OR lower(path) LIKE '%.safetensors' OR lower(path) LIKE '%.distcp') \
             GROUP BY host, pid, path, name ORDER BY seconds DESC LIMIT 20",
            evidence.name_table.sql_names(&[Call::Write, Call::StreamWrite, Call::Sync, Call::Flush, Call::Copy]),
        )
    };
    case.finding(&RULE, weighed, what, query).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{SECOND, lasting, training};
    use crate::findings::tests::check;

    #[test]
    fn checkpoints() {
        let spans = |dur: i64| {
            let trace = training(10_000, 900_000, false).span(1, "checkpoint", "capture", 10 * SECOND, dur, "");
            trace.until(1, 20 * SECOND)
        };
        check("checkpoint-stall", &spans(1_000_000), &spans(999_999));
        // Saved in the background, while the model computes.
        let hidden =
            training(10_000, 980_000, false).span(1, "checkpoint", "capture", 0, 10 * SECOND, "").until(1, 20 * SECOND);
        check("checkpoint-stall", &spans(SECOND), &hidden);
        let files = |path: &'static str| {
            lasting(10, move |trace| {
                for place in 0..10 {
                    trace.transfer(1, "write", path, 100_000, place << 20, 1 << 20);
                }
            })
        };
        check("checkpoint-stall", &files("/out/model.ckpt"), &files("/out/model.txt"));
    }
}
