//! DFAnalyzer's slope: a row of a view that has a larger part of the time than of the calls.
//!
//! Calls are weighed by what their operation usually takes in their program. Without that, whoever syncs has a steeper slope than whoever
//! looks up names, in every script of two commands (seen with `cp` followed by `touch`).

use std::collections::{BTreeMap, BTreeSet};

use weftline_calls::Activity;

use super::peers::cohorts;
use super::{Case, Kind, RuleInfo};
use crate::findings::evidence::{Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "slope",
    title: "calls that are slower than similar calls",
    when: "Files, processes or periods take a large part of the I/O time, far more than the same operations of the same program take on average, and move less than their part of the bytes. The score is DFAnalyzer's normalised slope, (atan(slope) - 45°) / 45°, with calls weighed by their operation.",
    advice: "Look at those calls first: they wait for something that others do not.",
    thresholds: &[SCORE, PART, SECONDS],
    kind: Kind::Plain,
    ask,
};

const SCORE: Threshold = Threshold::new("slope.score", 0.3, "score", "DFAnalyzer's limit between low and medium.");
const PART: Threshold =
    Threshold::new("slope.part", 0.2, "of the I/O time", "A slow file that is hardly used is not a bottleneck.");
const SECONDS: Threshold = Threshold::new(
    "slope.seconds",
    1.0,
    "s",
    "Programs differ in what they do; a second of odd calls is worth a look.",
);

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

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let evidence = case.evidence;
    let usual = evidence.usual();
    let add = |row: &mut Row, program: u32, op: Op, tally: &Tally| {
        row.tally.add(tally);
        let known = usual.get(&(program, op)).copied().unwrap_or_default();
        row.usual_ns += tally.calls as f64 * known.ns as f64 / known.calls.max(1) as f64;
    };
    let (mut files, mut process_ids, mut slices): (Rows, Rows, Rows) = (Rows::new(), Rows::new(), Rows::new());
    let cohorts = cohorts(case);
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
        if score >= config.get(SCORE) && time >= config.get(PART) && bytes < time {
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
    let mut weighed = weighed.filter(|weighed| weighed.impact.seconds() >= config.get(SECONDS))?;
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
    case.finding(&RULE, weighed, what, query)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn slopes_are_scored_as_the_reference_does() {
        for (slope, expected) in [(0.0, 0.0), (1.0, 0.0), (3.0f64.sqrt(), 1.0 / 3.0), (f64::INFINITY, 1.0)] {
            assert!((normalized(slope) - expected).abs() < 1e-12, "{slope}: {}", normalized(slope));
        }
    }

    #[test]
    fn slopes() {
        let slow = |dur: i64| {
            lasting(10, move |trace| {
                for round in 0..1_000 {
                    for file in 0..5 {
                        let path = format!("/data/{file}");
                        trace.transfer(1, "read", &path, if file == 3 { dur } else { 100 }, round * 8192, 8192);
                    }
                }
            })
        };
        // At a slope of tan(58.5°) the score is 0.3: 400 µs of calls elsewhere and 3.1 times as long here would be below a second.
        let found = check("slope", &slow(2_000), &slow(900));
        assert_eq!(found.place.files, ["/data/3"], "{found:#?}");
        // More bytes in the same time: the file is used more, not slower.
        let large = lasting(10, |trace| {
            for round in 0..1_000 {
                for file in 0..5 {
                    let bytes = if file == 3 { 1 << 20 } else { 8192 };
                    trace.transfer(
                        1,
                        "read",
                        &format!("/data/{file}"),
                        if file == 3 { 2_000 } else { 100 },
                        round * bytes,
                        bytes,
                    );
                }
            }
        });
        check("slope", &slow(2_000), &large);
    }
}
