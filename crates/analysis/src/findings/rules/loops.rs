//! Training loops, as several rules see them: spans, as unions and intersections of intervals.

use super::Case;
use super::loader_starvation::{COMPUTE, FETCH};
use crate::findings::calls::Role;
use crate::findings::evidence::Evidence;

/// A training loop.
pub(super) struct Loop {
    pub(super) process: u32,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) compute_ns: u64,
    /// Waiting for data while nothing is computed.
    pub(super) waits_ns: u64,
    pub(super) waits: u64,
}

impl Loop {
    /// How long it lasts.
    pub(super) fn ns(&self) -> f64 {
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

/// Loops that wait for data and could compute meanwhile.
pub(super) fn starving(case: &Case<'_>) -> Vec<Loop> {
    let mut loops = loops(case.evidence);
    loops.retain(|training| {
        let (waits, computes) = (training.waits_ns as f64 / training.ns(), training.compute_ns as f64 / training.ns());
        waits >= case.config.get(FETCH) && computes < case.config.get(COMPUTE)
    });
    loops
}

/// A query: what all layers of a training job take.
pub(super) fn by_layer() -> String {
    "SELECT host, pid, lower(cat) AS cat, name, count(*) AS spans, sum(dur_ns) / 1e9 AS seconds FROM spans \
     WHERE lower(cat) IN ('compute', 'ai_framework', 'data', 'data_loader', 'dataloader', 'reader', 'checkpoint') \
     GROUP BY host, pid, lower(cat), name ORDER BY seconds DESC LIMIT 40"
        .to_owned()
}
