//! Programs that do one thing badly, and the finding that must name it. How severe it is depends on its part of the wall time, so they need a processor.

use weftline_analysis::findings::Severity;
use weftline_testkit::Scratch;
use weftline_testkit::compile::{PLAIN, compile};

use crate::findings::{judge, serious};

const TRAINING: &str = env!("CARGO_BIN_EXE_training");

/// The rule speaks with at least this severity; of the others only those in `also` are as loud, because they are true as well.
fn check(command: &[&str], rule: &str, least: Severity, also: &[&str]) {
    let scratch = Scratch::new("findings");
    let found = judge(command, &scratch.dir("work"), &scratch);
    // Where the time went, beside what is wrong.
    let found: Vec<_> = found.into_iter().filter(|finding| !finding.rule.starts_with("dominant-")).collect();
    let named = found.iter().find(|finding| finding.rule == rule);
    let named = named.unwrap_or_else(|| panic!("{command:?}: {rule} says nothing, but {found:#?}"));
    assert!(named.severity >= least, "{command:?}: {named:#?}");
    for finding in serious(&found) {
        assert!(finding.rule == rule || also.contains(&finding.rule.as_str()), "{command:?}: {finding:#?}");
    }
}

macro_rules! antipatterns {
    ($($word:ident: $rule:literal, $least:ident, $also:expr;)*) => { $(
        #[test]
        fn $word() {
            let program = compile("antipatterns", PLAIN);
            let program = program.to_str().expect("a path of the testkit");
            check(&[program, stringify!($word)], $rule, Severity::$least, &$also);
        }
    )* };
}

antipatterns! {
    small_reads: "small-reads", Medium, [];
    small_writes: "small-writes", Medium, [];
    // The program reads the file that it made, many times over.
    random_access: "random-access", Medium, ["re-reads", "read-after-write"];
    re_reads: "re-reads", Medium, ["read-after-write"];
    open_storm: "open-storm", Medium, [];
    stat_storm: "stat-storm", Medium, [];
    seek_storm: "seek-storm", Medium, [];
    sync_storm: "fsync-per-write", Medium, [];
    synchronous: "fsync-per-write", Medium, [];
    metadata: "metadata-bound", Medium, [];
    unaligned: "unaligned-io", Low, [];
    tiny_buffers: "tiny-buffers", Medium, [];
    read_back: "read-after-write", Low, [];
    one_reader: "reader-skew", Medium, ["re-reads", "read-after-write"];
    one_writer: "writer-skew", Medium, [];
    straggler: "straggler-process", Medium, [];
    checkpoints: "checkpoint-stall", Medium, ["open-storm"];
}

#[test]
fn a_starved_loop() {
    check(&[TRAINING, "starved"], "loader-starvation", Severity::Medium, &["too-few-workers"]);
    check(&[TRAINING, "starved"], "too-few-workers", Severity::Low, &["loader-starvation"]);
}

#[test]
fn a_loop_that_saves() {
    check(&[TRAINING, "saving"], "checkpoint-stall", Severity::Low, &[]);
}

#[test]
fn unequal_ranks() {
    check(&[TRAINING, "unequal"], "rank-imbalance", Severity::Medium, &["re-reads", "reader-skew"]);
}

#[test]
fn a_loop_that_is_fed() {
    let scratch = Scratch::new("findings");
    let found = judge(&[TRAINING, "fed"], &scratch.dir("work"), &scratch);
    assert!(found.is_empty(), "{found:#?}");
}
