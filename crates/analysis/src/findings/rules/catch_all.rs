//! Rules for what no other rule explains: a job whose time is mostly file I/O or waiting is never without a finding that says so.
//!
//! They say where the time went, not what is wrong, so they are mild: many programs copy files or wait for a child by nature.

use weftline_calls::Activity;

use super::Case;
use crate::findings::dominant::{Class, matters};
use crate::findings::thresholds::Limit;
use crate::findings::weigh::{Part, Times, Weighed};
use crate::findings::{Finding, Impact, Place, WallTime};
use crate::units;

pub(super) const IO: &str = "dominant-io";
pub(super) const WAITING: &str = "dominant-waiting";

/// What to do where nobody else is waited for.
const SLEEPS: &str = "It sleeps by itself: shorten the pauses, or wait for what is to happen in place of time.";

/// The score of a long wait: where medium begins.
const FULL: f64 = 0.3;
/// A process that computes less has no work of its own.
const WORKS: f64 = 0.05;

/// The wall time, if most of it is of a class.
fn mostly<'c>(case: &Case<'c>, class: Class, share: Limit) -> Option<&'c WallTime> {
    let limit = case.config.get(share);
    let seconds = case.config.get(Limit::Seconds);
    let found = case.wall.filter(|wall| wall.dominant == class && wall.share(class) >= limit);
    found.filter(|wall| wall.time_ns(class) as f64 >= seconds * 1e9)
}

fn impact(wall: &WallTime, class: Class, sum: Impact) -> Impact {
    Impact { time_ns: i64::try_from(wall.time_ns(class)).unwrap_or(i64::MAX), share: wall.share(class), ..sum }
}

fn score(case: &Case<'_>, impact: &Impact, full: Limit) -> f64 {
    FULL * (impact.seconds() / case.config.get(full).max(f64::MIN_POSITIVE)).min(1.0)
}

pub(super) fn io(case: &Case<'_>) -> Vec<Finding> {
    let Some(wall) = mostly(case, Class::FileIo, Limit::DominantIoShare) else { return Vec::new() };
    let evidence = case.evidence;
    let own = evidence.sums.iter().filter(|((process, _, _), _)| matters(evidence, *process));
    let parts: Vec<Part> =
        own.map(|((process, file, _), tally)| Part { process: *process, file: Some(*file), tally: *tally }).collect();
    let measured = evidence.measure(Times::OfCalls, case.config, &parts);
    let impact = impact(wall, Class::FileIo, measured.impact);
    let what = format!(
        "File I/O takes {}, {} of the wall time{}.",
        units::time(impact.time_ns.max(0) as u64),
        units::percent(impact.share),
        if wall.mostly.is_empty() { String::new() } else { format!(", mostly {}", wall.mostly) },
    );
    let query = "SELECT name, path, host, pid, count(*) AS calls, sum(ret) AS bytes, sum(dur_ns) / 1e9 AS seconds FROM events \
                 WHERE lower(cat) IN ('posix', 'stdio') AND path IS NOT NULL GROUP BY name, path, host, pid ORDER BY seconds DESC LIMIT 20";
    let weighed = Weighed { score: score(case, &impact, Limit::DominantIoSeconds), impact, place: measured.place };
    case.finding(IO, weighed, what, query.to_owned()).into_iter().collect()
}

pub(super) fn waiting(case: &Case<'_>) -> Vec<Finding> {
    let Some(wall) = mostly(case, Class::Waiting, Limit::DominantWaitingShare) else { return Vec::new() };
    let split = case.evidence.breakdown.together();
    let calls = wall.waits.iter().map(|wait| wait.calls).sum();
    let sum_ns = wall.waits.iter().map(|wait| wait.time_ns).fold(0, u64::saturating_add);
    let sum = Impact { calls, sum_ns: i64::try_from(sum_ns).unwrap_or(i64::MAX), ..Impact::default() };
    let impact = impact(wall, Class::Waiting, sum);
    let natural = [Activity::Child, Activity::Thread, Activity::Sleep, Activity::Terminal];
    let natural = natural.into_iter().map(|activity| split.waiting.get(activity)).fold(0, u64::saturating_add);
    let works = wall.compute + wall.queued >= WORKS || split.data_ns > 0;
    let asks = if works && natural < split.waiting_ns() / 2 { 1.0 } else { 0.5 };
    let whom: Vec<String> =
        wall.waits.iter().map(|wait| format!("{} for {}", units::time(wait.time_ns), wait.whom)).collect();
    let who = wall.process.as_ref().map_or_else(|| "The program".to_owned(), ToString::to_string);
    let what = format!(
        "{who} waits {}, {} of the wall time{}.",
        units::time(impact.time_ns.max(0) as u64),
        units::percent(impact.share),
        if whom.is_empty() { String::new() } else { format!(": {}", whom.join("; ")) },
    );
    let of = wall.process.as_ref().map_or_else(String::new, |who| format!("WHERE pid = {} ", who.pid));
    let query = format!(
        "SELECT name, path, count(*) AS calls, sum(dur_ns) / 1e9 AS seconds FROM events {of}GROUP BY name, path ORDER BY seconds DESC LIMIT 20"
    );
    let place =
        Place { processes: wall.process.iter().cloned().collect(), process_count: wall.processes, ..Place::default() };
    let weighed = Weighed { score: asks * score(case, &impact, Limit::DominantWaitingSeconds), impact, place };
    let sleeps = split.waiting.largest_first().next().is_some_and(|(activity, _)| activity == Activity::Sleep);
    let finding = case.finding(WAITING, weighed, what, query);
    let finding = finding.map(|finding| match sleeps {
        true => Finding { advice: SLEEPS.to_owned(), ..finding },
        false => finding,
    });
    finding.into_iter().collect()
}
