//! Ranks of one program have unequal work.

use std::collections::BTreeMap;

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Role;
use crate::findings::evidence::{Evidence, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "rank-imbalance",
    title: "ranks have unequal work",
    when: "The longest I/O, fetch or compute time of one rank is far above the mean of all ranks of the same program.",
    advice: "I/O or waiting for data: distribute files by size rather than by number, and shuffle them. Compute: give every rank the same amount of work, by cost rather than by number of items.",
    thresholds: &[RATIO, SECONDS, PEERS],
    kind: Kind::Plain,
    ask,
};

const RATIO: Threshold =
    Threshold::new("rank-imbalance.ratio", 1.5, "times the mean", "DFAnalyzer's `fetch_rank_imbalance`.");
const SECONDS: Threshold = Threshold::new("rank-imbalance.seconds", 1.0, "s", "Waiting less is not worth a look.");
const PEERS: Threshold = Threshold::new("rank-imbalance.peers", 4.0, "ranks", "A mean of fewer means little.");

/// What ranks are compared by, and what helps against it.
struct Measure<'m> {
    words: &'static str,
    advice: &'static str,
    of: Box<dyn Fn(&u32) -> u64 + 'm>,
}

const BY_SIZE: &str = "Distribute files by size rather than by number, and shuffle them.";
const BY_COST: &str = "Give every rank the same amount of work: split it by cost rather than by number of items, or distribute it in smaller pieces.";

/// Ranks of one program, each with its processes, the one that lived longest first.
type Ranks = Vec<Vec<u32>>;

/// Ranks by their number, and those of the same program together; without numbers, each process that trains is one.
fn alike(evidence: &Evidence) -> Vec<Ranks> {
    let mut ranks: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for (process, _) in evidence.alive() {
        if let Some(rank) = evidence.dictionary.process(process).rank {
            ranks.entry(rank).or_default().push(process);
        }
    }
    if ranks.len() < 2 {
        let training = evidence.alive().filter(|(process, _)| evidence.role(*process, Role::Compute).is_some());
        ranks = training.enumerate().map(|(place, (process, _))| (place as i64, vec![process])).collect();
    }
    let length = |process: u32| evidence.lives[process as usize].map_or(0, |life| life.ns());
    let mut programs: BTreeMap<String, Ranks> = BTreeMap::new();
    for mut processes in ranks.into_values() {
        processes.sort_by_key(|process| std::cmp::Reverse(length(*process)));
        programs.entry(evidence.program(processes[0])).or_default().push(processes);
    }
    programs.into_values().collect()
}

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut io: BTreeMap<u32, u64> = BTreeMap::new();
    for ((process, _, _), tally) in &evidence.sums {
        *io.entry(*process).or_default() += tally.ns;
    }
    let role = |role: Role, process: &u32| evidence.role(*process, role).map_or(0, |time| time.ns);
    let measures = [
        Measure { words: "I/O", advice: BY_SIZE, of: Box::new(|process| io.get(process).copied().unwrap_or(0)) },
        Measure { words: "waiting for data", advice: BY_SIZE, of: Box::new(|process| role(Role::Fetch, process)) },
        Measure { words: "compute", advice: BY_COST, of: Box::new(|process| role(Role::Compute, process)) },
    ];
    let mut found: Option<Finding> = None;
    for ranks in alike(evidence).into_iter().filter(|ranks| ranks.len() as u64 >= config.count(PEERS).max(2)) {
        for measure in &measures {
            let finding = imbalance(case, &ranks, measure);
            if finding.as_ref().is_some_and(|new| found.as_ref().is_none_or(|old| new.score > old.score)) {
                found = finding;
            }
        }
    }
    found.into_iter().collect()
}

/// Whether one of these ranks takes far more than the mean of all.
fn imbalance(case: &Case<'_>, ranks: &Ranks, measure: &Measure<'_>) -> Option<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let sums: Vec<(u64, u32)> =
        ranks.iter().map(|processes| (processes.iter().map(&measure.of).sum::<u64>(), processes[0])).collect();
    let mean = sums.iter().map(|(ns, _)| ns).sum::<u64>() / sums.len() as u64;
    // Of equal ones the first.
    let (most, process) = sums.iter().rev().max_by_key(|(ns, _)| *ns).copied()?;
    let over = most - mean;
    if (most as f64) < config.get(RATIO) * mean as f64 || (over as f64) < config.get(SECONDS) * 1e9 {
        return None;
    }
    let life = evidence.lives[process as usize];
    let (start, end) = life.map_or((0, 0), |life| (life.start, life.end));
    let tally = Tally { calls: 0, bytes: 0, ns: over, start, end };
    let weighed = evidence.weigh_wall(config, &[Part { process, file: None, tally }])?;
    let who = evidence.who(process);
    let what = format!(
        "{} takes {} for {}, the mean of {} ranks is {}; the others wait up to {}, {} of the wall time.",
        who.rank.map_or_else(|| format!("Process {}", who.pid), |rank| format!("Rank {rank}")),
        units::time(most),
        measure.words,
        sums.len(),
        units::time(mean),
        units::time(over),
        units::percent(weighed.impact.share),
    );
    let query = "SELECT rank, host, pid, lower(cat) AS cat, count(*) AS events, sum(dur_ns) / 1e9 AS seconds FROM events \
                 GROUP BY rank, host, pid, lower(cat) ORDER BY cat, seconds DESC";
    let finding = case.finding(&RULE, weighed, what, query.to_owned())?;
    Some(Finding { advice: measure.advice.to_owned(), ..finding })
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{SECOND, Trace};
    use crate::findings::tests::check;

    #[test]
    fn ranks() {
        let some = |ranks: i64, most: i64| {
            let mut trace = Trace::new();
            for rank in 0..ranks {
                let pid = rank + 1;
                trace = trace.process(pid, "a", Some(rank));
                trace.transfer(
                    pid,
                    "read",
                    &format!("/data/{rank}"),
                    if rank == 2 { most } else { 2 * SECOND },
                    0,
                    1 << 20,
                );
                trace = trace.until(pid, 10 * SECOND);
            }
            trace
        };
        let ranks = |most: i64| some(4, most);
        // With three ranks of 2 s, 3.6 s is one and a half times the mean.
        let found = check("rank-imbalance", &ranks(3_600_000), &ranks(3_599_999));
        assert!(
            found.what.starts_with("Rank 2 ") && found.advice.starts_with("Distribute files by size"),
            "{found:#?}"
        );
        check("rank-imbalance", &ranks(9_000_000), &some(3, 9_000_000));
        // Files have nothing to do with computing.
        let computing = |most: i64| {
            (0..4).fold(Trace::new(), |trace, rank| {
                let dur = if rank == 2 { most } else { 2 * SECOND };
                trace
                    .process(rank + 1, "a", Some(rank))
                    .span(rank + 1, "compute", "step", 0, dur, "")
                    .until(rank + 1, 10 * SECOND)
            })
        };
        let found = check("rank-imbalance", &computing(3_600_000), &computing(3_599_999));
        assert!(
            found.what.contains("compute") && found.advice.starts_with("Give every rank the same amount of work"),
            "{found:#?}"
        );
    }
}
