//! A program that records itself with the real recorder, forks, and lets each process finish its own file.
//!
//! One test, in a process of its own: a process has one recorder.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use weftline_calls::Call;
use weftline_drain::{RecoverOptions, RecoverReport, Unsupervised, WhyOpen, open_unsupervised, recover};
use weftline_format::event::{Phase, Value};
use weftline_format::manifest::SupervisorRecord;
use weftline_format::reader;
use weftline_recorder::annotation::{Argument, Event, EventKind, Payload};
use weftline_recorder::process::{self, Start};
use weftline_recorder::thread::{self, Fields};
use weftline_recorder::{clock, sys};

/// Reads with these offsets, each within a span that has the same number.
fn record(offsets: std::ops::Range<i64>) {
    let (name, category, key) = (process::intern(0, b"step"), process::intern(0, b"test"), process::intern(0, b"n"));
    for offset in offsets {
        let start = clock::ticks();
        let fields = Fields { fd: 3, size: 1, ret: 1, offset, ..Fields::NONE };
        thread::record(Call::pread64, clock::ticks(), clock::ticks(), &fields);
        let mut payload = Payload::<64>::new();
        payload.add(key, Argument::Int(offset));
        let payload = payload.as_bytes();
        thread::record_annotation(&Event {
            kind: EventKind::Span as u32,
            name,
            category,
            length: payload.len() as u32,
            start,
            end: clock::ticks(),
            id: 0,
            payload: payload.as_ptr(),
            borrowed: std::marker::PhantomData,
        });
    }
}

fn start(live: &Path) {
    let random: [u8; 16] = std::array::from_fn(|byte| (clock::ticks() as u8).wrapping_add(byte as u8));
    process::start(&Start {
        live: live.as_os_str().as_bytes(),
        gettime: Some(libc::clock_gettime),
        variable: &|_| None,
        random: random.as_ptr(),
        late: true,
    });
    assert!(process::owned(), "the recorder has started");
}

/// Ends the recording of this process, and finishes what can be.
fn finish(run: &Path, live: &Path) -> RecoverReport {
    process::stop(0);
    let options = RecoverOptions {
        believe_ended: true,
        wait_for_lock: Some(Duration::from_secs(60)),
        only: Some(live.to_owned()),
        ..RecoverOptions::default()
    };
    recover(run, &options).expect("recovered")
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("listed").count()
}

/// Runs `body` in a forked child; its pid.
fn fork(body: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child runs `body`, which does not return here, on the only thread that it has.
    match unsafe { libc::fork() } {
        0 => {
            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        child => child,
    }
}

fn wait(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this test, and fills in one int.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

#[test]
fn a_family_finishes_its_own_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let given = Unsupervised { separate_files: true, ..Unsupervised::default() };
    let live = open_unsupervised(run, &given).expect("a live directory");
    start(&live);
    record(0..100);

    // Four children that finish at the same time, one that is killed, and one that says nothing.
    let mut children: Vec<i32> = (0..4)
        .map(|child| {
            fork(|| {
                let first = 1_000 * (1 + child);
                record(first..first + 1_000);
                let report = finish(run, &live);
                let file_is_there = report.files.iter().any(|file| file.pid == std::process::id());
                let parent_records = report.open.iter().any(|open| {
                    matches!(&open.why, WhyOpen::Running { pids } if pids.contains(&std::os::unix::process::parent_id()))
                });
                file_is_there && parent_records && threads() == 1
            })
        })
        .collect();
    children.push(fork(|| {
        record(5_000..6_000);
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        false
    }));
    children.push(fork(|| {
        record(6_000..7_000);
        true
    }));
    let ends: Vec<i32> = children.iter().map(|child| wait(*child)).collect();
    assert_eq!(ends, [0, 0, 0, 0, libc::SIGKILL, 0]);

    // The parent ends its recording while another thread of it is busy.
    let (go_on, recorded) = (AtomicBool::new(true), AtomicI64::new(0));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while go_on.load(Ordering::Relaxed) {
                let offset = 10_000 + recorded.load(Ordering::Relaxed);
                record(offset..offset + 1);
                recorded.fetch_add(1, Ordering::Relaxed);
            }
        });
        while recorded.load(Ordering::Relaxed) < 10_000 {
            sys::nap(1_000_000);
        }
        let before = threads();
        let report = finish(run, &live);
        assert_eq!(threads(), before, "no thread is left");
        go_on.store(false, Ordering::Relaxed);
        report
    });
    // Whoever came by has finished those that said nothing.
    assert!(report.files.iter().any(|file| file.pid == std::process::id()), "{:?}", report.files);
    assert_eq!(reader::trace_files(run).expect("listed").len(), 7);
    assert!(report.files.last().is_some_and(|file| file.last));
    assert!(!live.exists() && report.open.is_empty(), "{:?}", report.open);

    // And once more.
    let second = open_unsupervised(run, &given).expect("another live directory");
    assert_ne!(second, live);
    start(&second);
    record(7_000..7_100);
    assert!(finish(run, &second).files.iter().all(|file| file.last && file.pid == std::process::id()));

    let trace = reader::read_run(run).expect("read");
    assert!(trace.damage.is_empty(), "{:?}", trace.damage);
    for (name, key) in [("pread64", "offset"), ("step", "n")] {
        let mut found: BTreeMap<i64, u32> = BTreeMap::new();
        for event in trace.events.iter().filter(|event| event.name == name) {
            *found.entry(event.arg(key).and_then(Value::as_i64).expect("a number")).or_default() += 1;
        }
        assert!(found.values().all(|count| *count == 1), "{name}: something is there twice");
        let expected = (0..100).chain(1_000..7_100);
        assert!(expected.clone().all(|offset| found.contains_key(&offset)), "{name}: something is missing");
        // What the busy thread had told by then, without a gap.
        let busy: Vec<i64> = found.into_keys().filter(|offset| *offset >= 7_100).collect();
        assert!(busy.len() >= 10_000 && busy.iter().copied().eq((10_000..).take(busy.len())), "{name}: {}", busy.len());
    }
    let spans = trace.events.iter().filter(|event| event.name == "step" && event.phase == Phase::Complete).count();
    let (records, errors) = SupervisorRecord::read_all(run);
    assert_eq!((records.len(), errors.len()), (2, 0));
    let counted: u64 = records.iter().flat_map(|record| &record.spans).map(|span| span.count).sum();
    assert_eq!(counted, spans as u64);
    let lost =
        records.iter().flat_map(|record| &record.processes).flat_map(|process| process.drops.values()).sum::<u64>();
    // The busy thread may have been in the middle of a record.
    assert!(lost <= 1, "{lost} lost");
}
