//! One process of many that are alike ends long after the others.

use super::peers::{cohorts, median, named};
use super::{Case, Kind, RuleInfo};
use crate::findings::evidence::Tally;
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "straggler-process",
    title: "all wait for one process",
    when: "One of several processes of the same program that began together ends long after the median.",
    advice: "Look at what it did after the others had ended; distribute work in smaller pieces.",
    thresholds: &[RATIO, PEERS, START_SPREAD, SECONDS],
    kind: Kind::Plain,
    ask,
};

const RATIO: Threshold = Threshold::new(
    "straggler-process.ratio",
    1.5,
    "times the median",
    "Usual variation between equal processes stays below.",
);
const PEERS: Threshold = Threshold::new("straggler-process.peers", 4.0, "processes", "A median of fewer means little.");
pub(super) const START_SPREAD: Threshold = Threshold::new(
    "straggler-process.start-spread",
    0.1,
    "of the longest",
    "Only processes that began together are compared.",
);
const SECONDS: Threshold = Threshold::new("straggler-process.seconds", 1.0, "s", "Waiting less is not worth a look.");

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut found = Vec::new();
    for cohort in cohorts(case) {
        if (cohort.len() as u64) < config.count(PEERS) {
            continue;
        }
        let length = |process: u32| evidence.lives[process as usize].map_or(0, |life| life.ns());
        let middle = median(cohort.iter().map(|process| length(*process)).collect());
        let Some(last) = cohort.iter().copied().max_by_key(|process| length(*process)) else { continue };
        let late = length(last) - middle;
        // The next one: if many are as late, they are the rule and the early ones the exception.
        let others =
            cohort.iter().filter(|process| length(**process) as f64 >= config.get(RATIO) * middle as f64).count();
        if (length(last) as f64) < config.get(RATIO) * middle as f64
            || (late as f64) < config.get(SECONDS) * 1e9
            || others * 4 > cohort.len()
        {
            continue;
        }
        let end = evidence.lives[last as usize].map_or(0, |life| life.end);
        let tally = Tally { calls: 0, bytes: 0, ns: late, start: end - late as i64, end };
        let Some(weighed) = evidence.weigh_wall(config, &[Part { process: last, file: None, tally }]) else { continue };
        let what = format!(
            "Process {} ran for {} while the median of {} processes of {} that began with it is {}; the others waited up to {}, {} of the wall time.",
            evidence.who(last).pid,
            units::time(length(last)),
            cohort.len(),
            named(&evidence.program(last)),
            units::time(middle),
            units::time(late),
            units::percent(weighed.impact.share),
        );
        let query = "SELECT host, pid, rank, min(ts_ns) AS start_ns, (max(ts_ns + dur_ns) - min(ts_ns)) / 1e9 AS seconds, \
                     count(*) AS events FROM events GROUP BY host, pid, rank ORDER BY seconds DESC LIMIT 20";
        found.extend(case.finding(&RULE, weighed, what, query.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{SECOND, four};
    use crate::findings::tests::check;

    #[test]
    fn the_last_process() {
        let last = |end: i64| four([4 * SECOND, 4 * SECOND, 4 * SECOND, end], |_, _| {});
        let found = check("straggler-process", &last(6 * SECOND), &last(6 * SECOND - 1));
        assert_eq!((found.at_stake.time_ns, found.place.processes[0].pid), (2_000_000_000, 4), "{found:#?}");
        // Two of four: half of the work is longer, nobody is a straggler.
        check(
            "straggler-process",
            &last(8 * SECOND),
            &four([4 * SECOND, 4 * SECOND, 8 * SECOND, 8 * SECOND], |_, _| {}),
        );
    }
}
