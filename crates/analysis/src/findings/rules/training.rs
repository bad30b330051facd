//! Rules about training loops: waiting for data, workers, checkpoints. They look at spans, as unions and intersections of intervals.

use super::Case;
use crate::findings::Finding;
use crate::findings::calls::{Call, Role};
use crate::findings::evidence::{Evidence, Op, Tally};
use crate::findings::thresholds::Limit;
use crate::findings::weigh::Part;
use crate::units;

/// A training loop.
struct Loop {
    process: u32,
    start: i64,
    end: i64,
    compute_ns: u64,
    /// Waiting for data while nothing is computed.
    waits_ns: u64,
    waits: u64,
}

impl Loop {
    fn ns(&self) -> f64 {
        (self.end - self.start).max(1) as f64
    }
}

fn loops(evidence: &Evidence) -> Vec<Loop> {
    let mut found = Vec::new();
    for (process, _) in evidence.alive() {
        let (Some(compute), Some(fetch)) = (evidence.role(process, Role::Compute), evidence.role(process, Role::Fetch))
        else {
            continue;
        };
        found.push(Loop {
            process,
            start: compute.start.min(fetch.start),
            end: compute.end.max(fetch.end),
            compute_ns: compute.ns,
            waits_ns: fetch.ns - fetch.computing_ns,
            waits: fetch.count,
        });
    }
    found
}

fn starving(case: &Case<'_>) -> Vec<Loop> {
    let mut loops = loops(case.evidence);
    loops.retain(|training| {
        let (waits, computes) = (training.waits_ns as f64 / training.ns(), training.compute_ns as f64 / training.ns());
        waits >= case.config.get(Limit::FetchShare) && computes < case.config.get(Limit::ComputeShare)
    });
    loops
}

pub(super) fn loader_starvation(case: &Case<'_>) -> Vec<Finding> {
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
    let short = (weighed.impact.seconds() / case.config.get(Limit::FullSeconds).max(f64::MIN_POSITIVE)).min(1.0);
    weighed.score = ((waits - 0.10) / 0.25).clamp(0.0, 1.0) * short;
    let what = format!(
        "{} wait {} for {} batches: {} of their loops' time, while {} goes to compute.",
        units::counted(loops.len() as u64, "process", "processes"),
        units::time(weighed.impact.time_ns as u64),
        units::count(weighed.impact.calls),
        units::percent(waits),
        units::percent(computes),
    );
    case.finding("loader-starvation", weighed, what, by_layer()).into_iter().collect()
}

fn by_layer() -> String {
    "SELECT host, pid, lower(cat) AS cat, name, count(*) AS spans, sum(dur_ns) / 1e9 AS seconds FROM spans \
     WHERE lower(cat) IN ('compute', 'ai_framework', 'data', 'data_loader', 'dataloader', 'reader', 'checkpoint') \
     GROUP BY host, pid, lower(cat), name ORDER BY seconds DESC LIMIT 40"
        .to_owned()
}

pub(super) fn too_few_workers(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let loops = starving(case);
    let trains = |process: u32| evidence.role(process, Role::Compute).is_some();
    let (mut busy, mut idle) = (Vec::new(), 0u64);
    for (process, _) in evidence.alive().filter(|(process, _)| !trains(*process)) {
        let Some(load) = evidence.role(process, Role::Load) else { continue };
        if load.ns as f64 >= config.get(Limit::WorkerBusy) * (load.end - load.start) as f64 {
            busy.push(process);
        } else {
            idle += 1;
        }
    }
    let (mut parts, mut own) = (Vec::new(), 0u64);
    for it in &loops {
        let Some(fetch) = evidence.role(it.process, Role::Fetch) else { continue };
        // Where loading is not marked, reading stands for it.
        let loaded = evidence.role(it.process, Role::Load).map_or_else(
            || Op::READS.iter().map(|op| total(evidence, it.process, *op)).sum::<u64>().min(fetch.ns),
            |load| load.fetching_ns,
        );
        let itself = loaded as f64 >= 0.5 * fetch.ns as f64;
        own += u64::from(itself);
        if itself || !busy.is_empty() && idle == 0 {
            let tally = Tally { calls: it.waits, bytes: 0, ns: it.waits_ns, start: it.start, end: it.end };
            parts.push(Part { process: it.process, file: None, tally });
        }
    }
    let Some(weighed) = evidence.weigh_wall(config, &parts) else { return Vec::new() };
    let how = if own > 0 {
        format!("{own} of {} loops load their batches themselves", loops.len())
    } else {
        format!(
            "all {} loader workers are busy for at least {} of their time",
            busy.len(),
            units::percent(config.get(Limit::WorkerBusy))
        )
    };
    let what = format!(
        "{how}, and the model waits {} for them, {} of the wall time.",
        units::time(weighed.impact.time_ns as u64),
        units::percent(weighed.impact.share),
    );
    case.finding("too-few-workers", weighed, what, by_layer()).into_iter().collect()
}

fn total(evidence: &Evidence, process: u32, op: Op) -> u64 {
    evidence.per_process(&[op]).iter().filter(|(other, _)| *other == process).map(|(_, tally)| tally.ns).sum()
}

pub(super) fn checkpoint_stall(case: &Case<'_>) -> Vec<Finding> {
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
    let Some(weighed) = weighed.filter(|weighed| weighed.impact.share >= config.get(Limit::CheckpointShare)) else {
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
    case.finding("checkpoint-stall", weighed, what, query).into_iter().collect()
}
