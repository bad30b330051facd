//! Killed anywhere, any number of times: each event is there exactly once.

use std::path::PathBuf;

use weftline_format::manifest::State;

use super::*;
use crate::arena::writer::NOBODY;
use crate::recover::{WhyOpen, recover};
use crate::stop::{self, Stop};
use crate::{DrainError, Result};

const PLACES: [Stop; 8] = [
    Stop::Taken,
    Stop::HalfWritten,
    Stop::Written,
    Stop::OneReleased,
    Stop::Released,
    Stop::HalfJournaled,
    Stop::Journaled,
    Stop::Recorded,
];
const EVENTS: i64 = 15_100;

/// A large image, a small one, and a child of the large one; 15,100 events.
fn fill(live: &Path) {
    let mut large = Program::start(live, NOBODY);
    let path = large.intern(large.cwd(), b"f.bin");
    reads(&mut large, 1, path, 0, 9_000);
    reads(&mut large, 2, path, 9_000, 3_000);
    let mut child = large.fork(NOBODY + 1);
    reads(&mut child, 3, path, 12_000, 3_000);
    let mut small = Program::start(live, NOBODY + 2);
    reads(&mut small, 4, 0, 15_000, 100);
}

fn drained(run: &Path) -> Result<()> {
    let mut drain = drain(run, DrainOptions::default());
    fill(drain.directory());
    drain.poll();
    drain.finish().map(|_| ())
}

fn check_end(run: &Path, what: &str) {
    assert_exactly_once(run, EVENTS, what);
    let record = record_of(run);
    assert_eq!(record.state, State::Complete, "{what}");
    let trace = read_run(run);
    let mut counts: Vec<u64> = record.processes.iter().map(|process| process.events).collect();
    counts.sort_unstable();
    assert_eq!(counts, [100, 3_000, 12_000], "{what}");
    assert_eq!(counts.iter().sum::<u64>(), count_events(&trace), "{what}");
    let calls: Vec<(&str, u64, u64)> = record.calls.iter().map(|c| (c.name.as_str(), c.count, c.bytes)).collect();
    assert_eq!(calls, [("pread64", EVENTS as u64, EVENTS as u64 * 4096)], "{what}");
    assert_eq!(record.processes.iter().map(|process| process.traced.posix_read).sum::<u64>(), EVENTS as u64 * 4096);
    assert!(!run.join(".live").exists(), "{what}");
    assert_eq!(std::fs::read_dir(run.join("run.d")).expect("listed").count(), 1, "{what}");
}

#[test]
fn a_killed_drain_is_recovered() {
    for place in PLACES {
        for nth in 1.. {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let run = directory.path();
            let what = format!("{place:?} for the {nth}. time");
            stop::set(Some((place, nth)));
            match drained(run) {
                Ok(()) => {
                    stop::set(None);
                    assert!(nth > 1, "{what} was never reached");
                    check_end(run, &what);
                    break;
                }
                Err(DrainError::Stopped) => {}
                Err(error) => panic!("{what}: {error}"),
            }
            recover(run, &ALONE).expect("recovered");
            check_end(run, &what);
            let again = recover(run, &ALONE).expect("nothing to recover");
            assert!(!again.did_something(), "{what}");
        }
    }
}

#[test]
fn a_killed_recovery_is_recovered() {
    for first in [None, Some(Stop::Taken), Some(Stop::HalfWritten), Some(Stop::OneReleased)] {
        for place in PLACES {
            for nth in 1.. {
                let directory = tempfile::tempdir().expect("a temporary directory");
                let run = directory.path();
                let what = format!("after {first:?}, {place:?} for the {nth}. time");
                stop::set(first.map(|first| (first, 1)));
                let mut drain = drain(run, DrainOptions::default());
                fill(drain.directory());
                if first.is_some() {
                    drain.finish().expect_err("stopped");
                } else {
                    // Killed before the first look.
                    drain.record_mut();
                    drop(drain);
                }
                stop::set(Some((place, nth)));
                let reached = match recover(run, &ALONE) {
                    Ok(_) => false,
                    Err(DrainError::Stopped) => true,
                    Err(error) => panic!("{what}: {error}"),
                };
                stop::set(None);
                if reached {
                    recover(run, &ALONE).expect("recovered");
                }
                check_end(run, &what);
                if !reached {
                    break;
                }
            }
        }
    }
}

#[test]
fn recovery_leaves_the_living_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let live = drain.directory().to_owned();
    let report = recover(run, &ALONE).expect("recovered");
    assert_eq!(report.open.iter().map(|open| &open.why).collect::<Vec<_>>(), [&WhyOpen::Locked]);

    let mut alive = Program::start(&live, std::process::id());
    let mut dead = Program::start(&live, NOBODY);
    let path = alive.intern(0, b"/data/f.bin");
    reads(&mut dead, 2, 0, 0, 3_000);
    reads(&mut alive, 1, path, 3_000, 3_000);
    drop(dead);
    drop(drain);
    for _ in 0..2 {
        let report = recover(run, &ALONE).expect("recovered");
        assert_eq!(report.open[0].why, WhyOpen::Running { pids: vec![std::process::id()] });
        assert_exactly_once(run, 3_000, "only the dead image");
        assert_eq!(record_of(run).state, State::Open);
    }
    reads(&mut alive, 1, path, 6_000, 10);
    alive.vanish();
    let report = recover(run, &ALONE).expect("recovered");
    assert_eq!((report.open.len(), report.completed.len(), report.events), (0, 1, 3_010));
    assert_exactly_once(run, 6_010, "all");
    assert_eq!(record_of(run).state, State::Complete);
}

/// The pointer to the live directory, and its text with one field changed.
fn pointer_with(run: &Path, from: &str, to: &str) -> (PathBuf, String) {
    let mut files = std::fs::read_dir(run.join("run.d")).expect("listed").flatten().map(|entry| entry.path());
    let pointer = files.find(|path| path.extension().is_some_and(|name| name == "live")).expect("a pointer");
    let text = std::fs::read_to_string(&pointer).expect("read");
    assert!(text.contains(from), "{from} is not in {text}");
    let changed = text.replace(from, to);
    (pointer, changed)
}

#[test]
fn leftovers_of_an_earlier_boot_are_recovered() {
    for with_clock in [true, false] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let run = directory.path();
        let drain = drain(run, DrainOptions::default());
        let live = drain.directory().to_owned();
        // A pid that is taken now, by somebody else.
        let mut program = Program::start(&live, std::process::id());
        let before = weftline_recorder::sys::clock(libc::CLOCK_REALTIME) as i64;
        reads(&mut program, 1, 0, 0, 5_000);
        let after = weftline_recorder::sys::clock(libc::CLOCK_REALTIME) as i64;
        drop((program, drain));
        if !with_clock {
            std::fs::remove_file(live.join("clock")).expect("removed");
        }
        let boot = crate::procfs::Host::here().boot;
        let (pointer, text) = pointer_with(run, &boot, "an-earlier-boot");
        std::fs::write(pointer, text).expect("written");
        let report = recover(run, &ALONE).expect("recovered");
        assert_eq!((report.events, report.completed.len()), (5_000, 1));
        assert_exactly_once(run, 5_000, "an earlier boot");
        let slack = 1_000_000;
        for event in read_run(run).events.iter().filter(|event| event.name == "pread64") {
            let start = event.start_ns.expect("a start");
            assert!(start > before - slack && start < after + slack, "{before} {start} {after}");
        }
    }
}

#[test]
fn other_hosts_and_lost_directories_are_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    drop(drain(run, DrainOptions::default()));
    let host = format!("\"host\": \"{}\"", crate::procfs::Host::here().name);
    let (pointer, elsewhere) = pointer_with(run, &host, "\"host\": \"elsewhere\"");
    let text = std::fs::read_to_string(&pointer).expect("read");
    std::fs::write(&pointer, elsewhere).expect("written");
    let report = recover(run, &ALONE).expect("nothing recovered");
    assert_eq!(report.open[0].why.to_string(), "open on host elsewhere");

    std::fs::write(&pointer, text).expect("written");
    std::fs::remove_dir_all(run.join(".live")).expect("removed");
    let report = recover(run, &ALONE).expect("retired");
    assert_eq!(report.gone.len(), 1);
    let record = record_of(run);
    assert_eq!(record.state, State::Complete);
    assert_eq!(record.processes[0].drops.get("live-directory-gone"), Some(&1));
    assert!(!pointer.exists());
}
