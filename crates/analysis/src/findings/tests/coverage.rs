//! What a trace lacks is said.

use std::collections::BTreeMap;
use std::path::Path;

use weftline_format::manifest::{IoCount, ProcessRecord, State, SupervisorRecord, TracedBytes};

use super::builder::Trace;
use crate::findings::{Config, Finding, Severity, findings};

/// What is said of a whole trace with a supervisor's record and some damage.
fn lost(record: &SupervisorRecord, damage: impl FnOnce(&Path)) -> Vec<Finding> {
    let trace = Trace::new().process(1, "a", None).until(1, 1_000_000);
    let directory = trace.write();
    record.write(directory.path()).expect("written");
    damage(directory.path());
    let verdict = findings(&trace.open(directory.path()), &Config::default()).expect("judged");
    assert!(verdict.findings.iter().all(|finding| finding.rule == "lost-coverage"), "{:#?}", verdict.findings);
    verdict.findings
}

fn check(record: &SupervisorRecord, expected: Option<(Severity, &str)>) {
    let found = lost(record, |_| ());
    let said = found.first().map(|finding| (finding.severity, finding.what.as_str()));
    assert_eq!(said, expected);
    assert!(found.len() <= 1, "{found:#?}");
}

fn whole() -> SupervisorRecord {
    let process = ProcessRecord {
        pid: 1,
        events: 99,
        traced: TracedBytes { posix_read: 84 << 20, ..TracedBytes::default() },
        ..ProcessRecord::default()
    };
    SupervisorRecord {
        state: State::Complete,
        processes: vec![process],
        tree_io: Some(IoCount { rchar: 99 << 20, wchar: 0 }),
        ..SupervisorRecord::default()
    }
}

#[test]
fn records_tell_what_is_missing() {
    // Fifteen of 99 MiB: more than a tenth, but less than 16 MiB.
    check(&whole(), None);
    let mut gap = whole();
    gap.tree_io = Some(IoCount { rchar: 100 << 20, wchar: 0 });
    check(&gap, Some((Severity::Medium, "The trace lacks 16.0 MiB of the 100.0 MiB that the kernel counted.")));
    let mut dropped = whole();
    dropped.processes[0].drops = BTreeMap::from([("arena full".to_owned(), 1)]);
    check(&dropped, Some((Severity::Medium, "Not kept: 1 event, 1.0 % of all (arena full).")));
    let mut half = whole();
    half.processes[0].drops = BTreeMap::from([("arena full".to_owned(), 99)]);
    check(&half, Some((Severity::High, "Not kept: 99 events, 50.0 % of all (arena full).")));
    let mut untraced = whole();
    untraced.processes[0].untraced = Some("static".to_owned());
    check(
        &untraced,
        Some((
            Severity::Low,
            "1 program was not traced (static); 15.2 % of the bytes that the kernel counted are missing.",
        )),
    );
    let mut open = whole();
    open.state = State::Open;
    let said =
        "1 of 1 parts of the run are still open: processes may be writing, or their supervisor died (`weft recover`).";
    check(&open, Some((Severity::Low, said)));
}

#[test]
fn damage_is_said() {
    let found = lost(&whole(), |directory| {
        let path = directory.join("trace.pfw");
        let mut text = std::fs::read_to_string(&path).expect("own file");
        text.push_str("{\"name\":\"torn\n");
        std::fs::write(&path, text).expect("own file");
    });
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].severity >= Severity::Medium && found[0].what.contains("damaged"), "{found:#?}");
    assert!(found[0].place.files[0].ends_with("trace.pfw"), "{found:#?}");
}
