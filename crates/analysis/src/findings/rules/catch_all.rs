//! Rules for what no other rule explains: a job whose time is mostly file I/O or waiting is never without a finding that says so.
//!
//! They say where the time went, not what is wrong, so they are mild: many programs copy files or wait for a child by nature.

use weftline_calls::Activity;

use super::{Case, Kind, RuleInfo};
use crate::findings::dominant::{Class, matters};
use crate::findings::weigh::{self, Part, Times, Weighed};
use crate::findings::{Finding, Impact, Place, Threshold, WallTime};
use crate::units;

pub(super) const IO: RuleInfo = RuleInfo {
    id: "dominant-io",
    title: "most of the time is file I/O",
    when: "File I/O takes most of the wall time, and no rule explains half of it. The finding names the operation, file and process. The score is 0.3 from `dominant-io.seconds` on and proportionally less below: it says where the time went, not what is wrong.",
    advice: "Look at those calls first: make them fewer and larger, move the data closer, or overlap I/O with computing.",
    thresholds: &[IO_SHARE, IO_SECONDS],
    kind: Kind::CatchAll,
    ask: io,
};

pub(super) const WAITING: RuleInfo = RuleInfo {
    id: "dominant-waiting",
    title: "most of the time is waiting",
    when: "Waiting takes most of the wall time, and no rule explains half of it. The finding names what the process waited for. The score is 0.3 from `dominant-waiting.seconds` on and proportionally less below; half of that if waiting is the purpose of the process: for children, threads, time or the terminal, or a process that computes next to nothing itself (a shell, a server).",
    advice: "Look at what the other process does meanwhile: make it faster, or let it work ahead.",
    thresholds: &[WAITING_SHARE, WAITING_SECONDS],
    kind: Kind::CatchAll,
    ask: waiting,
};

const IO_SHARE: Threshold = Threshold::new("dominant-io.share", 0.5, "of the time", "Most of it.");
const IO_SECONDS: Threshold = Threshold::new(
    "dominant-io.seconds",
    10.0,
    "s",
    "Below it, the score goes down in proportion: copies and builds are done by then.",
);
const WAITING_SHARE: Threshold = Threshold::new("dominant-waiting.share", 0.5, "of the time", "Most of it.");
const WAITING_SECONDS: Threshold = Threshold::new("dominant-waiting.seconds", 10.0, "s", "As for I/O.");

/// What to do where nobody else is waited for.
const SLEEPS: &str = "It sleeps by itself: shorten the pauses, or wait for what is to happen in place of time.";

/// The score of a long wait: where medium begins.
const FULL: f64 = 0.3;
/// A process that computes less has no work of its own.
const WORKS: f64 = 0.05;

/// The wall time, if most of it is of a class.
fn mostly<'c>(case: &Case<'c>, class: Class, share: Threshold) -> Option<&'c WallTime> {
    let limit = case.config.get(share);
    let seconds = case.config.get(weigh::SECONDS);
    let found = case.wall.filter(|wall| wall.dominant == class && wall.share(class) >= limit);
    found.filter(|wall| wall.time_ns(class) as f64 >= seconds * 1e9)
}

fn impact(wall: &WallTime, class: Class, sum: Impact) -> Impact {
    Impact { time_ns: i64::try_from(wall.time_ns(class)).unwrap_or(i64::MAX), share: wall.share(class), ..sum }
}

fn score(case: &Case<'_>, impact: &Impact, full: Threshold) -> f64 {
    FULL * (impact.seconds() / case.config.get(full).max(f64::MIN_POSITIVE)).min(1.0)
}

fn io(case: &Case<'_>) -> Vec<Finding> {
    let Some(wall) = mostly(case, Class::FileIo, IO_SHARE) else { return Vec::new() };
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
    let weighed = Weighed { score: score(case, &impact, IO_SECONDS), impact, place: measured.place };
    case.finding(&IO, weighed, what, query.to_owned()).into_iter().collect()
}

fn waiting(case: &Case<'_>) -> Vec<Finding> {
    let Some(wall) = mostly(case, Class::Waiting, WAITING_SHARE) else { return Vec::new() };
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
    let weighed = Weighed { score: asks * score(case, &impact, WAITING_SECONDS), impact, place };
    let sleeps = split.waiting.largest_first().next().is_some_and(|(activity, _)| activity == Activity::Sleep);
    let finding = case.finding(&WAITING, weighed, what, query);
    let finding = finding.map(|finding| match sleeps {
        true => Finding { advice: SLEEPS.to_owned(), ..finding },
        false => finding,
    });
    finding.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::Severity;
    use crate::findings::tests::builder::{SECOND, lasting, transfers};
    use crate::findings::tests::check;

    #[test]
    fn what_no_rule_explains_is_named() {
        // Large reads one after the other: nothing is wrong with them but that they take the time.
        let reading = |seconds: i64, of: i64| lasting(of, transfers("read", seconds * 2, SECOND / 2, 8 << 20));
        let found = check("dominant-io", &reading(10, 20), &reading(9, 20));
        assert_eq!((found.severity, found.at_stake.time_ns), (Severity::Medium, 10_000_000_000), "{found:#?}");
        assert_eq!(
            (found.what.as_str(), found.place.files.as_slice()),
            (
                "File I/O takes 10.00 s, 50.0 % of the wall time, mostly reading /data/x by process 1.",
                &["/data/x".to_owned()][..]
            )
        );
        let found = check("dominant-io", &reading(9, 18), &reading(9, 20));
        assert_eq!(found.severity, Severity::Low, "it ends before it is worth an hour: {found:#?}");
        // Another rule explains it, or only a small part of it.
        let mixed = |small: i64| {
            lasting(20, move |trace| {
                transfers("read", 20, SECOND / 2, 8 << 20)(trace);
                (0..small).for_each(|place| {
                    trace.transfer(1, "write", "/data/y", 500, place * 100, 100);
                });
            })
        };
        check("dominant-io", &mixed(9_000), &lasting(20, transfers("read", 30_000, 500, 100)));
        // A process that computes too waits for a pipe; one that only waits is there for that.
        let waiting = |seconds: i64, compute: i64| {
            lasting(20, move |trace| {
                for _ in 0..seconds * 10 {
                    trace.call(1, "read", "pipe:[123]", SECOND / 10, r#""fd":0,"size":100,"ret":10"#);
                }
            })
            .span(1, "compute", "step", 15 * SECOND, compute, "")
        };
        let found = check("dominant-waiting", &waiting(10, SECOND), &waiting(9, SECOND));
        assert_eq!((found.severity, found.at_stake.time_ns), (Severity::Medium, 10_000_000_000), "{found:#?}");
        assert!(found.what.contains("waits 10.00 s, 50.0 % of the wall time: 10.00 s for a pipe"), "{found:#?}");
        let found = check("dominant-waiting", &waiting(15, SECOND / 2), &waiting(9, SECOND));
        assert_eq!(found.severity, Severity::Low, "{found:#?}");
    }
}
