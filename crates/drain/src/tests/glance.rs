//! A run looked at by somebody who does not drain it.

use weftline_calls::IoSums;
use weftline_format::manifest::CallTotal;
use weftline_recorder::annotation::EventKind;
use weftline_recorder::layout::{KernelIo, Loss, RECORDS_PER_SEGMENT, record_flags};

use super::*;
use crate::Glance;
use crate::arena::writer::{Annotation, Completeness, NOBODY};
use crate::glance::{ProcessState, RunState, Seen};
use crate::live::Pointer;

/// A run with a drain that works only when it is told to, and a program in it that runs: this one.
fn begun(run: &Path) -> (Drain, Program) {
    let drain = drain(run, DrainOptions::default());
    let program = Program::start(drain.directory(), std::process::id());
    (drain, program)
}

fn file<'a>(seen: &'a Seen, path: &str) -> Option<&'a IoSums> {
    seen.files.iter().find(|file| &*file.path == path).map(|file| &file.activity)
}

fn called<'a>(seen: &'a Seen, name: &str) -> Option<&'a IoSums> {
    seen.calls.iter().find(|call| &*call.name == name).map(|call| &call.activity)
}

#[test]
fn each_look_tells_what_is_new() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (drain, mut program) = begun(directory.path());
    let path = program.intern(program.cwd(), b"../data/f.bin");
    reads(&mut program, 5, path, 0, 100);
    let mut glance = Glance::open(directory.path()).expect("it runs");
    let seen = glance.look().expect("looked at");
    assert_eq!((seen.events, seen.unseen, seen.files.len()), (0, 0, 0), "what was there before is past");

    for (count, threads) in [(7, 1), (3 * i64::from(RECORDS_PER_SEGMENT), 2), (1, 1), (0, 1)] {
        for thread in 0..threads {
            reads(&mut program, 5 + thread, path, 0, count);
        }
        let seen = glance.look().expect("looked at");
        let all = count as u64 * u64::from(threads);
        assert_eq!((seen.events, seen.unseen, seen.state), (all, 0, RunState::Running));
        let [process] = &seen.processes[..] else { panic!("{:?}", seen.processes) };
        assert_eq!((process.pid, process.events), (std::process::id(), all));
        assert_eq!((&*process.name, &*process.exe, process.state), ("test -x", "/bin/test", ProcessState::Running));
        let activity = process.activity;
        assert_eq!((activity.calls, activity.read_bytes, activity.write_bytes), (all, all * 4096, 0));
        assert_eq!(called(&seen, "pread64"), (all > 0).then_some(&activity));
        assert_eq!(file(&seen, "/home/data/f.bin"), (all > 0).then_some(&activity));
        assert!(activity.time_ns < seen.elapsed_ns * u64::from(threads), "{activity:?} in {} ns", seen.elapsed_ns);
    }
    drop(drain);
}

#[test]
fn annotations_are_told_by_name() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (drain, mut program) = begun(directory.path());
    let mut glance = Glance::open(directory.path()).expect("it runs");
    let (name, category) = (program.intern(0, b"epoch"), program.intern(0, b"train"));
    let now = weftline_recorder::clock::ticks();
    let span = Annotation {
        kind: EventKind::Span,
        flags: 0,
        name,
        category,
        start: now - 9000,
        end: now,
        id: 0,
        payload: &[1; 90],
    };
    program.annotate(5, &span, Completeness::Whole);
    program.annotate(5, &Annotation { kind: EventKind::Meta, ..span }, Completeness::Whole);
    program.annotate(5, &Annotation { kind: EventKind::Begin, category: 0, ..span }, Completeness::Whole);
    program.annotate(5, &Annotation { kind: EventKind::End, category: 0, ..span }, Completeness::Whole);
    let seen = glance.look().expect("looked at");
    assert_eq!(seen.events, 3, "what continues a record is no event, and metadata is none");
    let found: Vec<_> =
        seen.calls.iter().map(|c| (&*c.name, &*c.category, c.activity.calls, c.activity.time_ns > 0)).collect();
    assert_eq!(found, [("epoch", "app", 1, false), ("epoch", "train", 1, true)]);
    drop(drain);
}

/// Segments that are used again between two looks are counted, not read.
#[test]
fn what_was_recycled_is_counted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut drain, mut program) = begun(directory.path());
    let path = program.intern(0, b"/data/f.bin");
    let mut glance = Glance::open(directory.path()).expect("it runs");
    let (mut all, mut counted, mut unseen) = (0, 0, 0);
    for round in 0..6 {
        for _ in 0..12 {
            reads(&mut program, 5, path, 0, i64::from(RECORDS_PER_SEGMENT));
            all += u64::from(RECORDS_PER_SEGMENT);
            settle(&mut drain);
        }
        let seen = glance.look().expect("looked at");
        assert!(round == 0 || seen.unseen > 0, "the drain has taken segments away");
        counted += seen.events + seen.unseen;
        unseen += seen.unseen;
    }
    assert!(counted.abs_diff(all) <= u64::from(RECORDS_PER_SEGMENT), "{counted} of {all}, {unseen} of them unseen");
}

/// An image that comes and goes between two looks is in the journal, with the number of its events and its losses.
#[test]
fn images_that_were_never_seen_are_counted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut drain, mut program) = begun(directory.path());
    let mut glance = Glance::open(directory.path()).expect("it runs");
    let mut short = Program::start(drain.directory(), NOBODY);
    reads(&mut short, 9, 0, 0, 321);
    short.lose(Loss::ArenaFull, 4);
    short.end(0, KernelIo::UNKNOWN);
    drop(short);
    settle(&mut drain);
    // One that was seen, and recorded more before it ended.
    let mut other = Program::start(drain.directory(), NOBODY + 1);
    reads(&mut other, 9, 0, 0, 10);
    reads(&mut program, 5, 0, 0, 5);
    program.lose(Loss::NameLost, 2);
    let seen = glance.look().expect("looked at");
    assert_eq!((seen.events, seen.unseen, seen.ended, seen.processes.len()), (15, 321, 1, 2));
    let drops: Vec<_> = seen.drops.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    assert_eq!(drops, [("arena-full", 4), ("name-lost", 2)]);
    reads(&mut other, 9, 0, 0, 30);
    drop(other);
    settle(&mut drain);
    let seen = glance.look().expect("looked at");
    assert_eq!((seen.events, seen.unseen, seen.ended), (0, 30, 2));
}

/// A record that is being written is waited for, but not for ever.
#[test]
fn unfinished_records_are_passed_over() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (drain, mut program) = begun(directory.path());
    let mut glance = Glance::open(directory.path()).expect("it runs");
    program.begin_record(5);
    reads(&mut program, 5, 0, 0, 3);
    let counts: Vec<u64> = (0..3).map(|_| glance.look().expect("looked at").events).collect();
    assert_eq!(counts, [0, 3, 0]);
    drop(drain);
}

#[test]
fn a_run_that_ends_says_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let why = |run: &Path| Glance::open(run).map(|_| ()).expect_err("nothing runs").to_string();
    assert!(why(run).ends_with("nothing has been recorded yet"), "{}", why(run));
    let (drain, program) = begun(run);
    let mut glance = Glance::open(run).expect("it runs");
    program.end(0, KernelIo::UNKNOWN);
    program.vanish();
    drop(program);
    drain.finish().expect("finished");
    let seen = glance.look().expect("looked at");
    assert_eq!((seen.state, seen.processes.len()), (RunState::Ended, 0));
    assert!(why(run).ends_with("the run has ended; `weft info` and `weft report` show it"), "{}", why(run));

    let elsewhere = Pointer { path: "/x".into(), host: "far".into(), ..Pointer::default() };
    let text = serde_json::to_string(&elsewhere).expect("plain data");
    std::fs::write(run.join("run.d/far-1-1.live"), text).expect("own directory");
    assert!(why(run).ends_with("a part of it runs on host far: use `weft top` there"), "{}", why(run));
}

/// Whatever a process writes over its arena, a look ends and stays within bounds.
#[test]
fn scribbled_arenas_are_survived() {
    use std::os::unix::fs::FileExt as _;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (drain, mut program) = begun(directory.path());
    let mut glance = Glance::open(directory.path()).expect("it runs");
    let live = drain.directory().to_owned();
    let arena = (0..).map(|number| live.join(format!("a{number}"))).find(|path| path.exists()).expect("an arena");
    let size = std::fs::metadata(&arena).expect("it is there").len();
    let file = std::fs::OpenOptions::new().write(true).open(&arena).expect("own file");
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..200 {
        reads(&mut program, 5, 0, 0, 20);
        for _ in 0..50 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Not the first words, by which the file is known, nor the words that the writer of this test believes.
            let at = (512 << 10) | ((state >> 20) % (size - (512 << 10)));
            file.write_all_at(&state.to_ne_bytes(), at.min(size - 8)).expect("written");
        }
        let seen = glance.look().expect("looked at");
        assert!(seen.files.len() <= 4097 && seen.calls.len() <= 9000);
    }
}

/// The live view, the manifest, and recovery from the written file sum up the same calls: the source of a copy was read, its
/// destination written; only the kernel's own counters leave some of it out.
#[test]
fn both_files_of_a_copy_are_summed_alike() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), NOBODY);
    let mut glance = Glance::open(run).expect("it runs");
    glance.look().expect("looked at");
    let (to, from) = (program.intern(0, b"/data/to"), program.intern(0, b"/data/from"));
    for (name, bytes) in [
        (Call::copy_file_range, 1000),
        (Call::sendfile64, 200),
        (Call::splice, 30),
        (Call::tee, 4),
        (Call::rename, 7),
        (Call::copy_file_range, -28),
    ] {
        let mut record = call(name);
        (record.path, record.extra, record.ret) = (to, u64::from(from), bytes);
        record.head |= record_flags::SECOND_PATH;
        program.record(5, &record);
    }
    let mut print = call(Call::dprintf);
    (print.path, print.ret) = (to, 5);
    program.record(5, &print);

    let seen = glance.look().expect("looked at");
    let sums = |io: &IoSums| (io.calls, io.reads, io.writes, io.read_bytes, io.write_bytes, io.metadata_calls);
    let found = |path| file(&seen, path).map(sums);
    assert_eq!(found("/data/to"), Some((7, 0, 6, 0, 1239, 1)));
    assert_eq!(found("/data/from"), Some((5, 5, 0, 1234, 0, 0)));
    assert_eq!(sums(&seen.processes[0].activity), (7, 5, 6, 1234, 1239, 1));

    program.end(0, KernelIo::default());
    drop(program);
    let record = drain.finish().expect("finished").record;
    let traced = record.processes[0].traced;
    assert_eq!((traced.posix_read, traced.posix_write, traced.stdio_write), (1200, 1205, 0), "what the kernel counts");
    for total in &record.files {
        let live = file(&seen, &total.path).expect("seen alive");
        let manifest = (total.reads, total.writes, total.read_bytes, total.write_bytes);
        assert_eq!(manifest, (live.reads, live.writes, live.read_bytes, live.write_bytes), "{}", total.path);
    }
    assert_eq!(record.files.len(), 2);
    let process = &record.processes[0];
    let again = crate::written::totals(&run.join(&process.file), &process.nonce).expect("read");
    let by_name = |mut calls: Vec<CallTotal>| {
        calls.sort_by(|left, right| left.name.cmp(&right.name));
        calls
    };
    assert_eq!(by_name(again.call_totals()), by_name(record.calls));
    assert_eq!(again.files.top(9), record.files);
    assert_eq!(again.traced(), traced);
}
