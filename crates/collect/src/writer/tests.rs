//! Samples are in the file exactly once, whenever their writer dies, and on a full disk.

use std::fs;
use std::path::Path;

use weftline_format::reader::read_run;
use weftline_format::{Event, Phase};

use super::*;

fn writer(run: &Path) -> SampleWriter {
    SampleWriter::create(run, &Own::read(), &["weft".into(), "collect".into()], 5).expect("a writer").0
}

fn tick(writer: &mut SampleWriter, round: i64, subjects: &[Subject]) {
    let at = Interval { start_ns: round * 1_000, end_ns: round * 1_000 + 999 };
    for subject in subjects {
        writer.counter(
            *subject,
            "sys",
            "cpu",
            at,
            &[("user_pct", Value::Float(12.345_678)), ("round", Value::Signed(round))],
        );
    }
    writer.end_interval(round * 1_000);
}

/// The counters of a run, and that nothing of it is damaged.
fn counters(run: &Path) -> Vec<Event> {
    let trace = read_run(run).expect("readable");
    assert_eq!(trace.damage.flaws, [], "{}", run.display());
    trace.events.into_iter().filter(|event| event.phase == Phase::Counter).collect()
}

fn rounds(run: &Path) -> Vec<i64> {
    counters(run).iter().filter_map(|event| event.arg("round")?.as_i64()).collect()
}

fn names(run: &Path) -> usize {
    fs::read_dir(run).expect("a directory").count()
}

#[test]
fn what_is_written_can_be_read() {
    let run = tempfile::tempdir().expect("a directory");
    let mut writer = writer(run.path());
    writer.introduce(Identity { pid: 7, name: "seven".into(), host: "h".into(), start: 3, ..Identity::default() });
    writer.metadata(
        Subject::Host,
        "node",
        9,
        &[("cores", Fact::Number(Value::Unsigned(2))), ("odd", Fact::Number(Value::Float(f64::NAN)))],
    );
    tick(&mut writer, 1, &[Subject::Host, Subject::Process(7)]);
    let path = writer.path().to_owned();
    assert!(!path.exists(), "the file comes with its first member");
    assert_eq!(writer.finish(), Counts { samples: 2, lost: 0 });
    assert_eq!(names(run.path()), 1, "no tail stays");
    let events = counters(run.path());
    let of = |event: &Event| {
        (event.pid, event.start_ns, event.dur_ns, event.arg("user_pct").and_then(weftline_format::Value::as_f64))
    };
    assert_eq!(
        events.iter().map(of).collect::<Vec<_>>(),
        [(0, Some(1_000), Some(999), Some(12.346)), (7, Some(1_000), Some(999), Some(12.346))]
    );
    let all = read_run(run.path()).expect("readable").events;
    let identities: Vec<Identity> = all.iter().filter_map(Identity::from_event).collect();
    assert_eq!(identities.iter().map(|identity| (identity.pid, identity.start)).collect::<Vec<_>>(), [(0, 0), (7, 3)]);
    let node = all.iter().find(|event| event.name == "node").expect("the metadata");
    assert_eq!((node.arg("cores").and_then(weftline_format::Value::as_i64), node.arg("odd")), (Some(2), None));
}

#[test]
fn a_killed_writer_loses_no_whole_interval() {
    let run = tempfile::tempdir().expect("a directory");
    for (closed, stale, torn) in
        [(0, false, false), (0, false, true), (2, false, false), (2, true, false), (1, false, true)]
    {
        let case = run.path().join(format!("{closed}{stale}{torn}"));
        fs::create_dir(&case).expect("made");
        let mut writer = writer(&case);
        let mut expected = Vec::new();
        let mut before = Vec::new();
        for round in 0..4 {
            tick(&mut writer, round, &[Subject::Host]);
            expected.push(round);
            if round < closed {
                before = fs::read(&writer.tail_path).expect("the tail");
                writer.close_member().expect("closed");
            }
        }
        if stale {
            // Killed between the member and the tail's end: the tail still holds what is in the member.
            fs::write(&writer.tail_path, &before).expect("written");
            expected.truncate(closed as usize);
        }
        if torn {
            let mut text = fs::read(&writer.tail_path).expect("the tail");
            text.truncate(text.len() - 9);
            fs::write(&writer.tail_path, text).expect("written");
            expected.pop();
        }
        assert_eq!(recover(&case).expect("looked at").at_work, 1, "its lock holds");
        // The lock goes with the descriptor, as at the process's end.
        drop(writer);
        let found = recover(&case).expect("recovered");
        assert_eq!(found.samples, expected.len() as u64 - closed as u64, "{closed} {stale} {torn}");
        assert_eq!(rounds(&case), expected, "{closed} {stale} {torn}");
        assert_eq!(recover(&case).expect("again"), Recovered::default());
        assert_eq!(names(&case), 1);
    }
}

#[test]
fn writers_of_one_process_have_files_of_their_own() {
    let run = tempfile::tempdir().expect("a directory");
    let mut two: Vec<SampleWriter> = (0..2).map(|_| writer(run.path())).collect();
    for (round, writer) in two.iter_mut().enumerate() {
        tick(writer, round as i64, &[Subject::Host]);
    }
    assert_ne!(two[0].path(), two[1].path());
    for writer in two {
        writer.finish();
    }
    let mut third = writer(run.path());
    tick(&mut third, 2, &[Subject::Host]);
    third.finish();
    assert_eq!(names(run.path()), 3);
    let mut all = rounds(run.path());
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2]);
}

#[test]
fn members_name_what_they_speak_of() {
    let run = tempfile::tempdir().expect("a directory");
    let mut writer = writer(run.path());
    writer.introduce(Identity { pid: 7, host: "h".into(), ..Identity::default() });
    for round in 0..3 {
        tick(&mut writer, round, &[Subject::Process(7), Subject::Process(8)]);
        writer.close_member().expect("closed");
    }
    writer.finish();
    let all = read_run(run.path()).expect("readable");
    assert_eq!(all.damage.flaws, []);
    assert_eq!(all.events.iter().filter_map(Identity::from_event).filter(|identity| identity.pid == 7).count(), 3);
}

#[test]
fn a_tail_that_cannot_be_written_costs_what_there_is_no_room_for() {
    let run = tempfile::tempdir().expect("a directory");
    let mut writer = writer(run.path());
    tick(&mut writer, 0, &[Subject::Host]);
    // A descriptor that cannot be written stands for the full disk; the text of a round is half of what is held.
    let good = std::mem::replace(&mut writer.tail, File::open("/dev/null").expect("opened"));
    let long_name = "x".repeat(HELD_TEXT / 2);
    for round in 1..6 {
        let at = Interval { start_ns: round, end_ns: round };
        writer.counter(Subject::Host, "sys", &long_name, at, &[("round", Value::Signed(round))]);
        writer.end_interval(0);
    }
    assert!(writer.take_trouble().is_some_and(|trouble| trouble.contains("samples stay in memory")));
    assert!(writer.take_trouble().is_none());
    writer.tail = good;
    tick(&mut writer, 6, &[Subject::Host]);
    assert_eq!(writer.finish(), Counts { samples: 3, lost: 4 });
    assert_eq!(rounds(run.path()), [0, 1, 6]);
}

/// The names of many processes would be most of a member that ends where others do.
#[test]
fn members_of_many_processes_are_longer() {
    let run = tempfile::tempdir().expect("a directory");
    let mut writer = writer(run.path());
    let subjects: Vec<Subject> = (1..=1000).map(Subject::Process).collect();
    for pid in 1..=1000 {
        let cmd = vec!["x".repeat(200)];
        writer.introduce(Identity { pid, host: "h".into(), cmd, ..Identity::default() });
    }
    for round in 0..4 {
        tick(&mut writer, round, &subjects);
        assert!(writer.lines.len() > MEMBER_TEXT && !writer.path().exists());
    }
    while !writer.path().exists() {
        tick(&mut writer, 4, &subjects);
        assert!(writer.lines.len() <= MOST_MEMBER_TEXT);
    }
    assert_eq!((writer.names_text, writer.sequence), (0, 1));
    tick(&mut writer, 5, &subjects);
    writer.finish();
    let all = read_run(run.path()).expect("readable");
    assert_eq!(all.damage.flaws, []);
    assert_eq!(all.events.iter().filter_map(Identity::from_event).filter(|identity| identity.pid == 7).count(), 2);
}
