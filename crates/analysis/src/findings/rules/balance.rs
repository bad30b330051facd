//! Rules that compare processes, hosts and ranks with each other.

use std::collections::BTreeMap;

use super::Case;
use crate::findings::Finding;
use crate::findings::calls::{Call, Role};
use crate::findings::evidence::{Evidence, Op, Tally};
use crate::findings::thresholds::Limit;
use crate::findings::weigh::Part;
use crate::units;

/// Processes of the same program that began together. Processes that started others of the group are not among them: they wait by nature.
pub(super) fn cohorts(evidence: &Evidence, spread: f64) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (process, _) in evidence.alive() {
        groups.entry(evidence.program(process)).or_default().push(process);
    }
    let start = |process: u32| evidence.lives[process as usize].map_or(0, |life| life.start);
    let length = |process: u32| evidence.lives[process as usize].map_or(0, |life| life.ns());
    let mut found = Vec::new();
    for mut group in groups.into_values() {
        let pid = |process: u32| evidence.dictionary.process(process).pid;
        let parents: Vec<i64> = group.iter().filter_map(|process| evidence.dictionary.process(*process).ppid).collect();
        group.retain(|process| !parents.contains(&pid(*process)));
        group.sort_by_key(|process| (start(*process), pid(*process)));
        let Some(first) = group.first().map(|process| start(*process)) else { continue };
        let longest = group.iter().map(|process| length(*process)).max().unwrap_or(0);
        let last = first.saturating_add((longest as f64 * spread) as i64);
        group.retain(|process| start(*process) <= last);
        if group.len() > 1 {
            found.push(group);
        }
    }
    found
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    // The lower one of two in the middle: a straggler must not be its own measure.
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

struct Skew {
    rule: &'static str,
    verb: &'static str,
    ops: &'static [Op],
    calls: &'static [Call],
    /// The largest part of the bytes that is fair, the bytes below which nothing matters, how many must take part.
    limits: [Limit; 3],
}

pub(super) fn writer_skew(case: &Case<'_>) -> Vec<Finding> {
    let calls = &[Call::Write, Call::StreamWrite, Call::Copy];
    let limits = [Limit::SkewPart, Limit::SkewBytes, Limit::SkewPeers];
    Skew { rule: "writer-skew", verb: "writes", ops: Op::WRITES, calls, limits }.ask(case)
}

pub(super) fn reader_skew(case: &Case<'_>) -> Vec<Finding> {
    let calls = &[Call::Read, Call::StreamRead, Call::Copy];
    let limits = [Limit::ReaderPart, Limit::ReaderBytes, Limit::ReaderPeers];
    Skew { rule: "reader-skew", verb: "reads", ops: Op::READS, calls, limits }.ask(case)
}

impl Skew {
    fn ask(&self, case: &Case<'_>) -> Vec<Finding> {
        let (evidence, config) = (case.evidence, case.config);
        let sums: BTreeMap<u32, Tally> = evidence.per_process(self.ops).into_iter().collect();
        let [part, least, peers] = self.limits;
        let mut found = Vec::new();
        for cohort in cohorts(evidence, config.get(Limit::StragglerSpread)) {
            if (cohort.len() as u64) < config.count(peers) {
                continue;
            }
            let of = |process: &u32| sums.get(process).copied().unwrap_or_default();
            let all: u64 = cohort.iter().map(|process| of(process).bytes).sum();
            let Some(most) = cohort.iter().max_by_key(|process| of(process).bytes) else { continue };
            let tally = of(most);
            if all < config.count(least) || (tally.bytes as f64) < config.get(part) * all as f64 {
                continue;
            }
            let Some(weighed) = evidence.weigh(config, &[Part { process: *most, file: None, tally }]) else { continue };
            let what = format!(
                "Process {} {} {} of the {} that {} processes of {} move; that costs {}, {} of the wall time.",
                evidence.who(*most).pid,
                self.verb,
                units::percent(tally.bytes as f64 / all.max(1) as f64),
                units::bytes(all),
                cohort.len(),
                named(&evidence.program(*most)),
                units::time(tally.ns),
                units::percent(weighed.impact.share),
            );
            let query = format!(
                "SELECT host, pid, rank, count(*) AS calls, sum(ret) AS bytes, sum(dur_ns) / 1e9 AS seconds FROM events \
                 WHERE name IN ({}) AND ret > 0 GROUP BY host, pid, rank ORDER BY bytes DESC LIMIT 20",
                evidence.name_table.sql_names(self.calls),
            );
            found.extend(case.finding(self.rule, weighed, what, query));
        }
        found
    }
}

fn named(program: &str) -> &str {
    if program.is_empty() { "the job" } else { program }
}

pub(super) fn straggler_process(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut found = Vec::new();
    for cohort in cohorts(evidence, config.get(Limit::StragglerSpread)) {
        if (cohort.len() as u64) < config.count(Limit::StragglerPeers) {
            continue;
        }
        let length = |process: u32| evidence.lives[process as usize].map_or(0, |life| life.ns());
        let middle = median(cohort.iter().map(|process| length(*process)).collect());
        let Some(last) = cohort.iter().copied().max_by_key(|process| length(*process)) else { continue };
        let late = length(last) - middle;
        // The next one: if many are as late, they are the rule and the early ones the exception.
        let others = cohort
            .iter()
            .filter(|process| length(**process) as f64 >= config.get(Limit::StragglerRatio) * middle as f64)
            .count();
        if (length(last) as f64) < config.get(Limit::StragglerRatio) * middle as f64
            || (late as f64) < config.get(Limit::StragglerSeconds) * 1e9
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
        found.extend(case.finding("straggler-process", weighed, what, query.to_owned()));
    }
    found
}

#[derive(Clone, Copy)]
struct HostSum {
    start: i64,
    end: i64,
    io_ns: u64,
    processes: u64,
    slowest: (u64, u32),
}

pub(super) fn straggler_host(case: &Case<'_>) -> Vec<Finding> {
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
    if (hosts.len() as u64) < config.count(Limit::HostPeers) {
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
        if (own as f64) < config.get(Limit::HostRatio) * middle as f64
            || (late as f64) < config.get(Limit::HostSeconds) * 1e9
        {
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
        return case.finding("straggler-host", weighed, what, query.to_owned()).into_iter().collect();
    }
    Vec::new()
}

/// What ranks are compared by, and what helps against it.
struct Measure<'m> {
    words: &'static str,
    advice: &'static str,
    of: Box<dyn Fn(&u32) -> u64 + 'm>,
}

const BY_SIZE: &str = "Deal out files by size rather than by number, and shuffle them.";
const BY_COST: &str = "Give every rank as much to compute: split the work by its cost rather than by the number of items, or give it out in smaller pieces.";

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

pub(super) fn rank_imbalance(case: &Case<'_>) -> Vec<Finding> {
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
    for ranks in alike(evidence).into_iter().filter(|ranks| ranks.len() as u64 >= config.count(Limit::RankPeers).max(2))
    {
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
    if (most as f64) < config.get(Limit::RankRatio) * mean as f64
        || (over as f64) < config.get(Limit::RankSeconds) * 1e9
    {
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
    let finding = case.finding("rank-imbalance", weighed, what, query.to_owned())?;
    Some(Finding { advice: measure.advice.to_owned(), ..finding })
}
