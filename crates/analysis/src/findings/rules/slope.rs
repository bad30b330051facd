//! DFAnalyzer's slope: a row of a view that has a larger part of the time than of the calls.
//!
//! Calls are weighed by what their operation usually takes in their program. Without that, whoever syncs has a steeper slope than whoever
//! looks up names, in every script of two commands (seen with `cp` followed by `touch`).

use std::collections::{BTreeMap, BTreeSet};

use weftline_calls::Activity;

use super::Case;
use super::balance::cohorts;
use crate::findings::Finding;
use crate::findings::evidence::{Op, Tally};
use crate::findings::thresholds::Limit;
use crate::findings::weigh::Part;
use crate::units;

/// A view of fewer rows says nothing about its rows.
const FEWEST_ROWS: usize = 4;
/// A script's commands are periods of their own; only in a longer run is a slow one an exception.
const FEWEST_PERIODS: usize = 20;

/// The reference's `normalize_slope`: 0 at equal parts, 1 when calls are no part at all.
pub(crate) fn normalized(slope: f64) -> f64 {
    ((slope.atan().to_degrees() - 45.0) / 45.0).clamp(0.0, 1.0)
}

type Rows = BTreeMap<u32, Row>;

/// A row: what its calls took, and what they would have taken at the usual time of each operation in each program.
#[derive(Default)]
struct Row {
    tally: Tally,
    usual_ns: f64,
}

pub(super) fn slope(case: &Case<'_>) -> Vec<Finding> {
    let evidence = case.evidence;
    let usual = evidence.usual();
    let add = |row: &mut Row, program: u32, op: Op, tally: &Tally| {
        row.tally.add(tally);
        let known = usual.get(&(program, op)).copied().unwrap_or_default();
        row.usual_ns += tally.calls as f64 * known.ns as f64 / known.calls.max(1) as f64;
    };
    let (mut files, mut process_ids, mut slices): (Rows, Rows, Rows) = (Rows::new(), Rows::new(), Rows::new());
    let cohorts = cohorts(evidence, case.config.get(Limit::StragglerSpread));
    let peers: BTreeSet<u32> = cohorts.into_iter().filter(|cohort| cohort.len() >= FEWEST_ROWS).flatten().collect();
    for ((process, file, op), tally) in &evidence.sums {
        let program = evidence.programs[*process as usize];
        add(files.entry(*file).or_default(), program, *op, tally);
        // A process is compared with others that began with it: the commands of a script differ by what they are for.
        if peers.contains(process) {
            add(process_ids.entry(*process).or_default(), program, *op, tally);
        }
    }
    for ((slice, program, op), tally) in &evidence.slices {
        add(slices.entry(*slice).or_default(), *program, *op, tally);
    }
    let parts_of = |odd: &BTreeSet<u32>, by_file: bool| -> Vec<Part> {
        let wanted =
            evidence.sums.iter().filter(|((process, file, _), _)| odd.contains(if by_file { file } else { process }));
        wanted.map(|((process, file, _), tally)| Part { process: *process, file: Some(*file), tally: *tally }).collect()
    };
    let mut found = Vec::new();
    found.extend(view(case, "files", "path", &files, |odd, _| parts_of(odd, true)));
    found.extend(view(case, "processes", "pid", &process_ids, |odd, _| parts_of(odd, false)));
    let width = format!("time_bucket(ts_ns, '{}s')", evidence.slice_ns / 1_000_000_000);
    found.extend(view(case, "periods", &width, &slices, |_, sum| {
        // Who made a period's calls is not kept: everybody is taken to have the same part of them as of all calls.
        let all: Vec<(u32, u64)> =
            evidence.alive().map(|(process, life)| (process, life.sums.get(Activity::FileIo))).collect();
        let total: u128 = all.iter().map(|(_, ns)| u128::from(*ns)).sum();
        let share = |whole: u64, ns: u64| (u128::from(whole) * u128::from(ns) / total.max(1)) as u64;
        let part = |(process, ns): &(u32, u64)| Part {
            process: *process,
            file: None,
            tally: Tally { calls: share(sum.calls, *ns), bytes: share(sum.bytes, *ns), ns: share(sum.ns, *ns), ..*sum },
        };
        all.iter().filter(|(_, ns)| *ns > 0).map(part).collect()
    }));
    found
}

fn view(
    case: &Case<'_>,
    rows_are: &str,
    column: &str,
    rows: &Rows,
    parts: impl Fn(&BTreeSet<u32>, &Tally) -> Vec<Part>,
) -> Option<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut all = Tally::default();
    rows.values().for_each(|row| all.add(&row.tally));
    let fewest = if rows_are == "periods" { FEWEST_PERIODS } else { FEWEST_ROWS };
    if rows.len() < fewest || all.ns == 0 || all.calls == 0 {
        return None;
    }
    let (mut odd, mut sum, mut worst) = (BTreeSet::new(), Tally::default(), 0.0f64);
    let mut usual_ns = 0.0;
    for (key, row) in rows {
        let time = row.tally.ns as f64 / all.ns as f64;
        let bytes = if all.bytes == 0 { 0.0 } else { row.tally.bytes as f64 / all.bytes as f64 };
        let score = normalized(row.tally.ns as f64 / row.usual_ns);
        if score >= config.get(Limit::SlopeScore) && time >= config.get(Limit::SlopePart) && bytes < time {
            worst = worst.max(score);
            sum.add(&row.tally);
            usual_ns += row.usual_ns;
            odd.insert(*key);
        }
    }
    if odd.is_empty() {
        return None;
    }
    let weighed = evidence.weigh(config, &parts(&odd, &sum));
    let mut weighed = weighed.filter(|weighed| weighed.impact.seconds() >= config.get(Limit::SlopeSeconds))?;
    if rows_are == "periods" {
        weighed.place.processes.clear();
        weighed.place.process_count = 0;
    }
    weighed.score *= worst;
    let what = format!(
        "{} of {} {rows_are} take {} for {} calls on files, {} times what the same operations take on average: {} of the I/O time, {} of the wall time.",
        odd.len(),
        rows.len(),
        units::time(sum.ns),
        units::count(sum.calls),
        units::tenths(sum.ns as f64 / usual_ns.max(1.0)),
        units::percent(sum.ns as f64 / all.ns as f64),
        units::percent(weighed.impact.share),
    );
    let query = format!(
        "SELECT {column} AS row, count(*) AS calls, sum(dur_ns) / 1e9 AS seconds, \
         sum(dur_ns) * 1.0 / sum(sum(dur_ns)) OVER () / (count(*) * 1.0 / sum(count(*)) OVER ()) AS slope FROM events \
         WHERE lower(cat) IN ('posix', 'stdio') AND path IS NOT NULL GROUP BY 1 ORDER BY seconds DESC LIMIT 20"
    );
    case.finding("slope", weighed, what, query)
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn slopes_are_scored_as_the_reference_does() {
        for (slope, expected) in [(0.0, 0.0), (1.0, 0.0), (3.0f64.sqrt(), 1.0 / 3.0), (f64::INFINITY, 1.0)] {
            assert!((normalized(slope) - expected).abs() < 1e-12, "{slope}: {}", normalized(slope));
        }
    }
}
