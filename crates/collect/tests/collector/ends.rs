//! What is told of processes that end: all of it where somebody could still look, and how much is missing where nobody could.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weftline_collect::clock::Clock as _;
use weftline_collect::collector::Options;
use weftline_collect::follow::Follow;
use weftline_collect::own::start_of;
use weftline_format::Value;

use crate::hand::Stepped;
use crate::support::{burner, counters, of, options, printed, sum, wait_until};

/// A sentinel is noticed at once: a process of 80 ms is sampled although no tick comes. Nobody waits for it, so its last sample is exact.
#[test]
fn eighty_milliseconds_are_seen() {
    let run = tempfile::tempdir().expect("a directory");
    let pids = run.path().join("pids");
    let follow = Follow { pid_dir: Some(pids.clone()), ..Follow::default() };
    let mut stepped = Stepped::start(options(run.path(), 60_000, follow));
    let mut child = burner(0.08);
    let pid = child.id();
    fs::write(pids.join(pid.to_string()), "").expect("a sentinel");
    stepped.turn();
    let own = printed(&mut child);
    stepped.turn();
    // The kernel's last word on its only thread.
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("a zombie");
    let last: f64 = schedstat.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number");
    let (record, said) = stepped.finish();
    child.wait().expect("waited");
    let all = counters(run.path());
    let cpu = sum(&of(&all, pid, "process"), "cpu_ns");
    assert_eq!(cpu, last, "by the kernel; {own} by its own clock");
    assert!(own >= 8e7 && own <= cpu, "{cpu} ns in samples, {own} by its own clock");
    let end = of(&all, pid, "end");
    assert_eq!(end.len(), 1, "its end was noticed");
    assert_eq!(end[0].arg("unseen_ns"), Some(&Value::Int(0)));
    assert_eq!((record.ticks, record.processes, record.unseen_ends, said), (0, 1, 0, vec![]));
}

/// Lives until its input ends.
fn cat() -> Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat starts")
}

/// When somebody waited for a process before it could be looked at, the tail that nobody saw is stated: in the sample, and in the record.
/// One that nobody waited for has none.
#[test]
fn an_unseen_tail_is_stated() {
    let run = tempfile::tempdir().expect("a directory");
    let pids = run.path().join("pids");
    let follow = Follow { pid_dir: Some(pids.clone()), ..Follow::default() };
    let mut stepped = Stepped::start(Options { exit_records: false, ..options(run.path(), 60_000, follow) });
    let (mut reaped, mut zombie) = (cat(), cat());
    for child in [&reaped, &zombie] {
        fs::write(pids.join(child.id().to_string()), "").expect("a sentinel");
    }
    let came = stepped.clock.now();
    stepped.turn();
    stepped.clock.pass(Duration::from_millis(300));
    drop(reaped.stdin.take());
    reaped.wait().expect("waited");
    stepped.turn();
    stepped.clock.pass(Duration::from_millis(200));
    drop(zombie.stdin.take());
    wait_until("it has ended", || start_of(&zombie.id().to_string()).is_none());
    stepped.turn();
    let (record, _) = stepped.finish();
    zombie.wait().expect("waited");
    let all = counters(run.path());
    for (pid, unseen_ms, lived_ms) in [(reaped.id(), 300, 300), (zombie.id(), 0, 500)] {
        let end = of(&all, pid, "end");
        assert_eq!(end.len(), 1, "{pid}");
        assert_eq!(end[0].arg("unseen_ns"), Some(&Value::Int(unseen_ms * 1_000_000)), "{:?}", end[0]);
        assert_eq!((end[0].start_ns, end[0].dur_ns), (Some(came.real_ns), Some(lived_ms * 1_000_000)), "{:?}", end[0]);
    }
    assert_eq!((record.processes, record.unseen_ends, record.unseen_ns), (2, 1, 300_000_000));
}
