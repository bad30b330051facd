//! What comes out is what went in.

use std::time::Duration;

use weftline_format::identity::Identity;
use weftline_format::manifest::{IoCount, State};
use weftline_recorder::layout::{KernelIo, record_flags};
use weftline_recorder::sys;

use super::*;
use crate::arena::writer::NOBODY;

#[test]
fn every_field_of_a_call_is_written() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), NOBODY);
    let (file, other) = (program.intern(program.cwd(), b"data/../x \"y\".bin"), program.intern(0, b"/other\xff"));

    let mut open = call(Call::openat);
    (open.path, open.detail, open.extra, open.ret) = (file, libc::O_CREAT as u32 | 2, 0o100644, 7);
    program.record(11, &open);
    let mut rename = call(Call::rename);
    (rename.path, rename.extra, rename.ret) = (file, u64::from(other), -2);
    rename.head |= record_flags::SECOND_PATH;
    program.record(11, &rename);
    let mut getc = call(Call::getc);
    (getc.path, getc.fd, getc.detail, getc.size, getc.ret) = (file, 7, 25, 25, 25);
    getc.extra = getc.end - getc.start;
    getc.head |= record_flags::FOLDED | record_flags::STREAM;
    program.record(11, &getc);
    program.end(3, KernelIo { rchar: 100, wchar: 5 });
    drop(program);

    let outcome = drain.finish().expect("finished");
    assert_eq!(outcome.survivors, []);
    let trace = read_run(run);
    let events: Vec<&Event> = trace.events.iter().filter(|event| event.phase == Phase::Complete).collect();
    let names: Vec<(&str, &str, i64, i64)> =
        events.iter().map(|e| (e.name.as_str(), e.cat.as_str(), e.pid, e.tid)).collect();
    let pid = i64::from(NOBODY);
    assert_eq!(names, [("openat", "POSIX", pid, 11), ("rename", "POSIX", pid, 11), ("getc", "STDIO", pid, 11)]);
    assert_eq!(trace.path_of(events[0]), Some("/home/u/x \"y\".bin"));
    let keys = |event: &Event| event.args.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!(keys(events[0]), "fhash ret flags mode");
    assert_eq!((number(events[0], "ret"), number(events[0], "mode")), (Some(7), Some(0o644)));
    assert_eq!(keys(events[1]), "fhash fhash2 ret");
    let second =
        events[1].arg("fhash2").and_then(Value::as_str).and_then(|hash| trace.names.path(hash)).expect("a name");
    assert_eq!(*weftline_format::text::path_bytes(second), *b"/other\xff");
    assert_eq!(keys(events[2]), "fd fhash size ret calls busy");
    assert_eq!(number(events[2], "calls"), Some(25));

    let record = record_of(run);
    assert_eq!(record, outcome.record);
    assert_eq!(record.state, State::Complete);
    let process = &record.processes[0];
    assert_eq!((process.pid, process.events, process.exit.and_then(|exit| exit.code)), (NOBODY, 3, Some(3)));
    assert_eq!(process.command, ["test", "-x"]);
    assert_eq!(process.traced.stdio_read, 25);
    assert_eq!(process.io.map(|io| io.end), Some(IoCount { rchar: 100, wchar: 5 }));
    assert_eq!(record.calls.iter().find(|call| call.name == "getc").map(|call| call.count), Some(25));
    assert!(!run.join(".live").exists(), "nothing of the shared memory is left");
    let left: Vec<_> = std::fs::read_dir(run.join("run.d")).expect("listed").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn times_are_those_of_the_clock() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), NOBODY);
    let before = sys::clock(libc::CLOCK_REALTIME) as i64;
    let mut record = call(Call::pread64);
    sys::nap(3_000_000);
    record.end = weftline_recorder::clock::ticks();
    let after = sys::clock(libc::CLOCK_REALTIME) as i64;
    record.offset = 0;
    program.record(1, &record);
    drop(program);
    drain.finish().expect("finished");
    let trace = read_run(run);
    let event = trace.events.iter().find(|event| event.name == "pread64").expect("the event");
    let (start, end) = (event.start_ns.expect("a start"), event.end_ns().expect("an end"));
    // 200 µs for a clock that is being slewed and an anchor that was interrupted.
    assert!(start >= before - 200_000 && end <= after + 200_000, "{before} {start} {end} {after}");
    assert!(event.dur_ns.expect("a duration") >= 2_900_000);
}

#[test]
fn members_stand_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), NOBODY);
    let path = program.intern(0, b"/data/f.bin");
    reads(&mut program, 5, path, 0, 20_000);
    drop(program);
    drain.poll();
    drain.finish().expect("finished");
    assert_exactly_once(run, 20_000, "one thread");
    let file = reader::trace_files(run).expect("listed").remove(0);
    let bytes = std::fs::read(file).expect("read");
    let members: Vec<_> = weftline_format::member::walk(&bytes).collect();
    assert!(members.len() >= 4, "a head and several data members, not {}", members.len());
    for (range, header) in members {
        let text = weftline_format::member::inflate_member(&bytes[range]).expect("whole");
        let trace = reader::read_bytes(&text);
        let identity = trace.events.first().and_then(Identity::from_event).expect("an identity line first");
        assert_eq!((identity.seq, identity.pid), (header.seq, NOBODY));
        assert_eq!(u64::from(header.count), count_events(&trace));
        for event in trace.events.iter().filter(|event| event.name == "pread64") {
            assert_eq!(trace.path_of(event), Some("/data/f.bin"));
        }
    }
}

#[test]
fn segments_go_round_while_the_program_lives() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), std::process::id());
    let path = program.intern(0, b"/data/f.bin");
    // Several times what an arena holds.
    for round in 0..30 {
        reads(&mut program, 5, path, round * 6_000, 6_000);
        assert!(drain.poll() <= Duration::from_millis(20));
        drain.poll();
    }
    // What is left in the thread's segment belongs to a process that lives.
    let outcome = drain.finish().expect("finished");
    assert_eq!(outcome.survivors.len(), 1);
    assert_eq!(outcome.record.state, State::Open);
    let found = offsets(&read_run(run));
    assert!(found.len() > 170_000 && found.values().all(|count| *count == 1));
}

#[test]
fn short_images_share_a_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions::default());
    for image in 0..5 {
        let mut program = Program::start(drain.directory(), NOBODY + image);
        let path = program.intern(0, b"/data/f.bin");
        reads(&mut program, 5, path, i64::from(image) * 10, 10);
        drop(program);
        settle(&mut drain);
    }
    let outcome = drain.finish().expect("finished");
    assert_exactly_once(run, 50, "five images");
    let files = reader::trace_files(run).expect("listed");
    assert_eq!(files.len(), 1);
    let name = files[0].file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(outcome.record.processes.iter().all(|process| process.file == name && process.events == 10));
    assert_eq!(outcome.record.processes.len(), 5);
}

#[test]
fn spans_that_cross_become_pairs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), NOBODY);
    let base = weftline_recorder::clock::ticks();
    for (index, (start, end)) in
        [(0, 50_000), (30_000, 80_000), (60_000, 61_000), (10_000, 90_000)].into_iter().enumerate()
    {
        let mut record = call(Call::pread64);
        (record.start, record.end, record.offset) = (base + start, base + end, index as i64);
        program.record(5, &record);
    }
    drop(program);
    let outcome = drain.finish().expect("finished");
    let trace = read_run(run);
    let phases: Vec<(Phase, Option<i64>)> =
        trace.events.iter().filter(|e| e.name == "pread64").map(|e| (e.phase, number(e, "offset"))).collect();
    let expected = [
        (Phase::Complete, Some(0)),
        (Phase::AsyncBegin, Some(1)),
        (Phase::AsyncEnd, None),
        (Phase::Complete, Some(2)),
        (Phase::AsyncBegin, Some(3)),
        (Phase::AsyncEnd, None),
    ];
    assert_eq!(phases, expected);
    assert_eq!(outcome.record.processes[0].events, 6);
    assert_eq!(outcome.record.calls[0].count, 4);
}

#[test]
fn calls_of_a_vfork_child_carry_its_pid() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), NOBODY);
    for (name, flags, ret) in [
        (Call::close, record_flags::VFORK_CHILD, 0),
        (Call::vfork, 0, 4711),
        (Call::close, 0, 0),
        (Call::dup2, record_flags::VFORK_CHILD, 0),
    ] {
        let mut record = call(name);
        record.head |= flags;
        record.ret = ret;
        program.record(5, &record);
    }
    drop(program);
    drain.finish().expect("finished");
    let trace = read_run(run);
    let found: Vec<(&str, i64, i64, Option<i64>)> = trace
        .events
        .iter()
        .filter(|event| event.phase == Phase::Complete)
        .map(|event| (event.name.as_str(), event.pid, event.tid, number(event, "vfork")))
        .collect();
    let pid = i64::from(NOBODY);
    assert_eq!(
        found,
        [("close", 4711, 4711, Some(1)), ("vfork", pid, 5, None), ("close", pid, 5, None), ("dup2", pid, 5, Some(1))]
    );
}

#[test]
fn what_makes_no_sense_is_counted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), NOBODY);
    let mut nonsense = call(Call::pread64);
    nonsense.head = 0xFFFF;
    program.record(5, &nonsense);
    program.begin_record(5);
    let mut odd_path = call(Call::pread64);
    (odd_path.path, odd_path.offset) = (0xFFFF_FFFF, 0);
    program.record(5, &odd_path);
    drop(program);
    let outcome = drain.finish().expect("finished");
    assert_exactly_once(run, 1, "the one good record");
    assert_eq!(outcome.record.processes[0].drops.get("damaged-record"), Some(&1));
    assert_eq!(outcome.record.processes[0].drops.len(), 1, "a call that never returned is not lost");
}

#[test]
fn programs_that_cannot_be_traced_are_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let program = Program::start(drain.directory(), NOBODY);
    program.exec_untraced(1, program.intern(0, b"/sbin/ldconfig"));
    drop(program);
    let outcome = drain.finish().expect("finished");
    let untraced: Vec<(&str, Option<&str>)> =
        outcome.record.processes.iter().map(|p| (p.exe.as_str(), p.untraced.as_deref())).collect();
    assert_eq!(untraced, [("/bin/test", None), ("/sbin/ldconfig", Some("static binary"))]);
}

#[test]
fn forked_children_have_files_of_their_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut parent = Program::start(drain.directory(), NOBODY);
    // The same pid twice, as after a short-lived child in a busy namespace.
    let (mut child, mut other) = (parent.fork(NOBODY + 1), parent.fork(NOBODY + 1));
    let path = parent.intern(0, b"/data/f.bin");
    reads(&mut parent, 1, path, 0, 1_000);
    reads(&mut child, 2, path, 1_000, 1_000);
    reads(&mut other, 3, path, 2_000, 1_000);
    drop((parent, child, other));
    drain.finish().expect("finished");
    assert_exactly_once(run, 3_000, "a family");
    assert_eq!(reader::trace_files(run).expect("listed").len(), 3);
}
