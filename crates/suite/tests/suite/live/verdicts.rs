//! Verdicts hold: the same pattern is judged alike however many idle threads stand beside it and however many ranks do it, and its cost is what the program
//! itself measured.

use weftline_analysis::findings::{Class, Severity, Verdict};
use weftline_testkit::Scratch;

use crate::findings::{serious, trace};

const PATTERNS: &str = env!("CARGO_BIN_EXE_patterns");

/// What a program said that its pattern cost, in seconds, and what the rules say of it.
fn verdict(pattern: &str, helpers: usize, ranks: usize, annotated: bool) -> (f64, Verdict) {
    let scratch = Scratch::new("verdicts");
    let (helpers, ranks) = (helpers.to_string(), ranks.to_string());
    let mut command = vec![PATTERNS, pattern, &helpers, &ranks];
    command.extend(annotated.then_some("annotated"));
    let (output, verdict) = trace(&command, &scratch.dir("work"), &scratch);
    let said = String::from_utf8(output).expect("text");
    (said.trim().parse().unwrap_or_else(|error| panic!("{command:?} said {said:?}: {error}")), verdict)
}

/// The rule comes first, with the same severity each time, and its cost is within a tenth of the truth.
fn check(pattern: &str, rule: &str, annotated: bool) {
    let mut severities = Vec::new();
    for (helpers, ranks) in [(0, 1), (2, 1), (8, 1), (16, 1), (8, 4)] {
        let (truth, verdict) = verdict(pattern, helpers, ranks, annotated);
        let what = format!("{pattern} with {helpers} helpers and {ranks} ranks, annotated: {annotated}");
        let first = verdict.findings.first().unwrap_or_else(|| panic!("{what}: nothing was found: {verdict:#?}"));
        assert_eq!(first.rule, rule, "{what}: {:#?}", verdict.findings);
        let found = first.at_stake.seconds();
        assert!((found - truth).abs() <= truth * 0.1, "{what}: {found} s found, {truth} s measured: {first:#?}");
        assert!(first.severity >= Severity::Medium, "{what}: {first:#?}");
        // Ranks share two processors, so that they compute longer, and the same cost is a smaller part.
        severities.extend((ranks == 1).then_some(first.severity));
    }
    assert!(severities.windows(2).all(|pair| pair[0] == pair[1]), "{pattern}: {severities:?}");
}

#[test]
fn syncs_cost_what_they_cost() {
    check("sync", "fsync-per-write", false);
}

#[test]
fn small_writes_cost_what_they_cost() {
    check("small", "small-writes", false);
}

#[test]
fn small_reads_cost_what_they_cost() {
    check("reads", "small-reads", false);
}

#[test]
fn random_access_costs_what_it_costs() {
    check("random", "random-access", false);
}

#[test]
fn opens_cost_what_they_cost() {
    check("opens", "open-storm", false);
}

#[test]
fn names_cost_what_they_cost() {
    check("names", "metadata-bound", false);
}

#[test]
fn checkpoints_cost_what_they_cost() {
    check("checkpoint", "checkpoint-stall", false);
    check("checkpoint", "checkpoint-stall", true);
}

#[test]
fn starving_loops_cost_what_they_cost() {
    check("starved", "loader-starvation", true);
}

/// A loop that says nothing of itself: what it waits for is named all the same.
#[test]
fn silent_loops_are_not_called_healthy() {
    for helpers in [0, 8] {
        let (truth, verdict) = verdict("starved", helpers, 1, false);
        let wall = verdict.wall.as_ref().expect("wall time");
        assert_eq!(wall.dominant, Class::Waiting, "{wall:#?}");
        assert!(wall.mostly.contains("pipe") && wall.mostly.contains("patterns"), "{wall:#?}");
        let waited = wall.waits.first().expect("a wait").time_ns as f64 / 1e9;
        assert!((waited - truth).abs() <= truth * 0.1, "{waited} s found, {truth} s measured: {wall:#?}");
        let headline = verdict.headline().expect("a headline");
        assert!(headline.starts_with("Waiting takes") && headline.contains("pipe"), "{headline}");
        let rules: Vec<&str> = verdict.findings.iter().map(|finding| finding.rule.as_str()).collect();
        assert_eq!(rules, ["dominant-waiting"], "{:#?}", verdict.findings);
        let found = verdict.findings[0].at_stake.seconds();
        assert!((found - truth).abs() <= truth * 0.15, "{found} s found, {truth} s measured: {:#?}", verdict.findings);
    }
}

#[test]
fn healthy_programs_are_called_so() {
    for (pattern, ranks, annotated) in
        [("compute", 1, false), ("compute", 4, false), ("fed", 1, true), ("fed", 1, false)]
    {
        let (_, verdict) = verdict(pattern, 4, ranks, annotated);
        assert!(verdict.findings.is_empty(), "{pattern}: {:#?}", verdict.findings);
        let headline = verdict.headline().expect("a headline");
        // Where others use the processors as well, that is what it says.
        let wall = verdict.wall.as_ref().expect("wall time");
        let crowded =
            wall.dominant == Class::Queued && headline.contains("more threads want to run than there are cores");
        let healthy = headline.starts_with("Healthy: ") && headline.contains("compute");
        assert!(healthy && wall.dominant == Class::Compute || crowded, "{pattern}: {headline}: {wall:#?}");
        assert!(wall.compute + wall.queued > 0.8, "{pattern}: {wall:#?}");
    }
}

#[test]
fn one_rank_holds_up_the_others() {
    let (truth, verdict) = verdict("uneven", 2, 4, false);
    let first = verdict.findings.first().unwrap_or_else(|| panic!("nothing was found: {verdict:#?}"));
    assert_eq!(first.rule, "straggler-process", "{:#?}", verdict.findings);
    assert!(first.severity >= Severity::Medium && first.what.contains("patterns"), "{first:#?}");
    let found = first.at_stake.seconds();
    assert!((found - truth).abs() <= truth * 0.1, "{found} s found, {truth} s measured: {first:#?}");
}

/// A database that waits for the disk after every row, and one that does so once.
#[test]
fn databases_want_transactions() {
    let rows = "for i in $(seq 1500); do echo \"insert into t values($i, 'some text of some length $i');\"; done";
    let table = "echo 'create table t(a integer primary key, b text);'";
    for (script, expected) in [
        (format!("({table}; {rows}) | sqlite3 a.db"), Some("fsync-per-write")),
        (format!("({table}; echo 'begin;'; {rows}; echo 'commit;') | sqlite3 a.db"), None),
    ] {
        let scratch = Scratch::new("database");
        let (_, verdict) = trace(&["/bin/bash", "-euc", &script], &scratch.dir("work"), &scratch);
        let first = serious(&verdict.findings).first().map(|finding| finding.rule.clone());
        assert_eq!(first.as_deref(), expected, "{script}: {:#?}", verdict.findings);
    }
}
