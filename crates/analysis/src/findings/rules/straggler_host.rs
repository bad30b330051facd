//! One host takes longer than the others.

use std::collections::BTreeMap;

use super::peers::median;
use super::{Case, Kind, RuleInfo};
use crate::findings::evidence::Tally;
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "straggler-host",
    title: "one host is slower",
    when: "The processes of one host took much longer, or spent much longer in I/O, than those of the median host.",
    advice: "Compare the host's disks, network and load with the others'; leave it out of the job if it is faulty.",
    thresholds: &[RATIO, PEERS, SECONDS],
    kind: Kind::Plain,
    ask,
};

const RATIO: Threshold = Threshold::new("straggler-host.ratio", 1.5, "times the median", "Equal hosts differ by less.");
const PEERS: Threshold =
    Threshold::new("straggler-host.peers", 3.0, "hosts", "With two hosts there is no telling which one is unusual.");
const SECONDS: Threshold = Threshold::new("straggler-host.seconds", 1.0, "s", "Waiting less is not worth a look.");

#[derive(Clone, Copy)]
struct HostSum {
    start: i64,
    end: i64,
    io_ns: u64,
    processes: u64,
    slowest: (u64, u32),
}

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut io: BTreeMap<u32, u64> = BTreeMap::new();
    for ((process, _, _), tally) in &evidence.sums {
        *io.entry(*process).or_default() += tally.ns;
    }
    let mut hosts: BTreeMap<String, HostSum> = BTreeMap::new();
    for (process, life) in evidence.alive() {
        let own = io.get(&process).copied().unwrap_or(0);
        let none = HostSum { start: i64::MAX, end: i64::MIN, io_ns: 0, processes: 0, slowest: (0, process) };
        let sum = hosts.entry(evidence.who(process).host).or_insert(none);
        sum.start = sum.start.min(life.start);
        sum.end = sum.end.max(life.end);
        sum.io_ns += own;
        sum.processes += 1;
        sum.slowest = sum.slowest.max((life.ns(), process));
    }
    if (hosts.len() as u64) < config.count(PEERS) {
        return Vec::new();
    }
    type Measure = fn(&HostSum) -> u64;
    let measures: [(&str, Measure); 2] = [
        ("ran for", |sum| (sum.end - sum.start).max(0) as u64),
        ("spent per process in I/O", |sum| sum.io_ns / sum.processes.max(1)),
    ];
    for (words, measure) in measures {
        let middle = median(hosts.values().map(measure).collect());
        let Some((name, sum)) = hosts.iter().max_by_key(|(_, sum)| measure(sum)) else { continue };
        let (own, late) = (measure(sum), measure(sum) - middle);
        if (own as f64) < config.get(RATIO) * middle as f64 || (late as f64) < config.get(SECONDS) * 1e9 {
            continue;
        }
        let tally = Tally { calls: 0, bytes: 0, ns: late, start: sum.start, end: sum.end };
        let Some(weighed) = evidence.weigh_wall(config, &[Part { process: sum.slowest.1, file: None, tally }]) else {
            continue;
        };
        let what = format!(
            "Host {name} {words} {}, the median of {} hosts is {}; {} of the wall time is at stake.",
            units::time(own),
            hosts.len(),
            units::time(middle),
            units::percent(weighed.impact.share),
        );
        let query = "SELECT host, count(DISTINCT pid) AS processes, (max(ts_ns + dur_ns) - min(ts_ns)) / 1e9 AS seconds, \
                     sum(CASE WHEN lower(cat) IN ('posix', 'stdio') AND path IS NOT NULL THEN dur_ns ELSE 0 END) / 1e9 AS io_seconds \
                     FROM events GROUP BY host ORDER BY seconds DESC";
        return case.finding(&RULE, weighed, what, query.to_owned()).into_iter().collect();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{SECOND, Trace};
    use crate::findings::tests::check;

    #[test]
    fn the_last_host() {
        let hosts = |end: i64| {
            let mut trace = Trace::new();
            for (pid, host) in [(1, "a"), (2, "b"), (3, "c")] {
                let end = if pid == 3 { end } else { 4 * SECOND };
                trace = trace.process(pid, host, None).until(pid, end);
            }
            trace
        };
        let found = check("straggler-host", &hosts(6 * SECOND), &hosts(6 * SECOND - 1));
        assert!(found.what.starts_with("Host c "), "{found:#?}");
    }
}
