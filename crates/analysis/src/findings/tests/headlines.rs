//! The first sentence: what a reader of nothing else takes away.

use std::collections::BTreeMap;

use weftline_format::manifest::{ProcessRecord, SupervisorRecord};

use super::builder::Trace;
use super::judge;
use crate::findings::{Class, Finding, Impact, Place, Severity, Verdict, WallTime, Who};

const SECOND: u64 = 1_000_000_000;

/// A program of 100 s of which nothing but these is known: CPU time, calls on files, waits for a pipe, no free processor, all in seconds.
fn wall([cpu, file, pipe, queued]: [u64; 4]) -> WallTime {
    let process = ProcessRecord {
        pid: 7,
        started_ns: 1,
        ended_ns: (100 * SECOND) as i64 + 1,
        cpu_ns: cpu * SECOND,
        main_cpu_ns: cpu * SECOND,
        main_queued_ns: queued * SECOND,
        main_ns: BTreeMap::from([("file_io".to_owned(), file * SECOND), ("pipe".to_owned(), pipe * SECOND)]),
        ..ProcessRecord::default()
    };
    let record = SupervisorRecord { processes: vec![process], ..SupervisorRecord::default() };
    WallTime::of_records(&[record]).expect("a split")
}

fn finding(rule: &str, title: &str, severity: Severity, seconds: i64) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity,
        score: 0.5,
        title: title.to_owned(),
        what: String::new(),
        place: Place::default(),
        at_stake: Impact { time_ns: seconds * SECOND as i64, share: seconds as f64 / 100.0, ..Impact::default() },
        advice: String::new(),
        query: String::new(),
    }
}

fn check(parts: [u64; 4], findings: &[Finding], class: Class, expected: &str) {
    let verdict = Verdict { wall: Some(wall(parts)), findings: findings.to_vec(), checked: 24, ..Verdict::default() };
    assert_eq!(verdict.wall.as_ref().map(|wall| wall.dominant), Some(class), "{parts:?}");
    assert_eq!(verdict.headline().as_deref(), Some(expected), "{parts:?}");
}

#[test]
fn the_first_sentence_names_the_cause() {
    let lost = finding("lost-coverage", "the trace does not show everything", Severity::High, 0);
    let note = finding("lost-coverage", "the trace does not show everything", Severity::Low, 0);
    let small = finding("small-reads", "small reads", Severity::Medium, 30);
    check([94, 6, 0, 0], &[], Class::Compute, "Healthy: 94.0 % of 100.00 s is compute; 24 rules checked");
    check([94, 6, 0, 0], &[note], Class::Compute, "Healthy: 94.0 % of 100.00 s is compute; 24 rules checked");
    // A finding that costs no time hides nothing, and nobody is called healthy beside it.
    check(
        [94, 6, 0, 0],
        std::slice::from_ref(&lost),
        Class::Compute,
        "As far as the trace shows: 94.0 % of 100.00 s is compute; 24 rules checked; the trace does not show everything",
    );
    check(
        [20, 70, 10, 0],
        std::slice::from_ref(&lost),
        Class::FileIo,
        "File I/O takes 70.00 s of 100.00 s (70.0 %); 24 rules checked, none explains it; the trace does not show everything",
    );
    check(
        [20, 70, 10, 0],
        &[lost, small],
        Class::FileIo,
        "Small reads: 30.00 s of 100.00 s (30.0 %); the trace does not show everything",
    );
    // Where it is, in so far as it is in one place.
    let who = |pid: i64| Who { host: "node7".to_owned(), pid, rank: Some(3), program: "python3 train.py".to_owned() };
    let placed = |files: &[&str], processes: &[i64]| Finding {
        place: Place {
            files: files.iter().map(|file| (*file).to_owned()).collect(),
            file_count: files.len() as u64,
            processes: processes.iter().map(|pid| who(*pid)).collect(),
            process_count: processes.len() as u64,
            ..Place::default()
        },
        ..finding("small-reads", "small reads", Severity::Medium, 30)
    };
    for (files, processes, expected) in [
        (&["/data/x"][..], &[1][..], " on /data/x"),
        (&["/data/x", "/data/y", "/data/z"], &[1, 2], " on /data/x and 2 more"),
        (&[], &[812], " in python3 train.py (rank 3, pid 812 on node7)"),
        (&[], &[1, 2], ""),
    ] {
        let expected = format!("Small reads: 30.00 s of 100.00 s (30.0 %){expected}");
        check([20, 70, 10, 0], &[placed(files, processes)], Class::FileIo, &expected);
    }
    // The largest part is not the larger part.
    check(
        [40, 35, 25, 0],
        &[],
        Class::FileIo,
        "File I/O takes 35.00 s of 100.00 s (35.0 %); compute takes 40.0 %; 24 rules checked, none explains it",
    );
    check(
        [40, 25, 35, 0],
        &[],
        Class::Waiting,
        "Waiting takes 35.00 s of 100.00 s (35.0 %), mostly for a pipe; compute takes 40.0 %; 24 rules checked, none explains it",
    );
    check(
        [45, 25, 0, 30],
        &[],
        Class::Compute,
        "Healthy: 45.0 % of 100.00 s is compute, 30.0 % waiting for a free processor; 24 rules checked",
    );
    check(
        [20, 10, 10, 60],
        &[],
        Class::Queued,
        "Waiting for a free processor takes 60.00 s of 100.00 s (60.0 %): more threads want to run than there are cores; 24 rules checked",
    );
    check(
        [10, 10, 20, 0],
        &[],
        Class::Other,
        "Neither CPU time nor a traced call: 60.00 s of 100.00 s (60.0 %) (locks, page faults, a GPU, untraced I/O); 24 rules checked",
    );
}

/// Traces of others have no CPU times: what is not in their calls may be anything.
#[test]
fn nobody_computes_without_evidence() {
    let mut trace = Trace::new().process(1, "a", None);
    trace.transfer(1, "read", "/data/x", 2_000_000, 0, 8 << 20);
    let verdict = judge(&trace.until(1, 10_000_000), &[]);
    let wall = verdict.wall.as_ref().expect("wall time");
    assert_eq!((wall.compute, wall.outside, wall.dominant), (0.0, 0.8, Class::Outside), "{wall:#?}");
    assert_eq!(wall.words(), "not in traced calls 80.0 %, file I/O 20.0 %, waiting 0 %, other 0 %");
    let headline = verdict.headline().expect("a headline");
    assert!(headline.starts_with("Not in traced calls: 8.00 s of 10.00 s (80.0 %)"), "{headline}");
    // Spans that say neither what is computed nor what is waited for: nothing is claimed of them.
    let spans = judge(&Trace::new().process(1, "a", None).span(1, "fee", "main", 0, 10_000_000, ""), &[]);
    let headline = spans.headline().expect("a headline");
    assert!(headline.starts_with("No I/O call, wait or CPU time is in the trace to judge by"), "{headline}");
    // Spans are evidence.
    let verdict = judge(
        &Trace::new().process(1, "a", None).span(1, "compute", "step", 0, 9_000_000, "").until(1, 10_000_000),
        &[],
    );
    let headline = verdict.headline().expect("a headline");
    assert!(headline.starts_with("Healthy: 90.0 % of 10.00 s is compute"), "{headline}");
}
