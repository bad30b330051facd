//! Ledgers of made-up processes.

use weftline_format::manifest::{IoSpan, TracedBytes};

use super::*;

fn process(pid: u32, start: u64, end: u64, read: u64) -> ProcessRecord {
    ProcessRecord {
        pid,
        started_ns: start as i64,
        io: Some(IoSpan { start: IoCount { rchar: start, wchar: 0 }, end: IoCount { rchar: end, wchar: 0 } }),
        traced: TracedBytes { posix_read: read, ..TracedBytes::default() },
        ..ProcessRecord::default()
    }
}

fn record(processes: Vec<ProcessRecord>, tree: u64) -> SupervisorRecord {
    SupervisorRecord { processes, tree_io: Some(IoCount { rchar: tree, wchar: 0 }), ..SupervisorRecord::default() }
}

#[test]
fn bytes_of_children_and_of_the_loader_are_not_gaps() {
    let mut parent = process(1, 1_000, 3_000_000, 500_000);
    parent.reaped_io = Some(IoCount { rchar: 2_499_000, wchar: 0 });
    // One process, two images: the second's loader read 1,500 bytes.
    let first = process(2, 0, 10_000, 10_000);
    let second = process(2, 11_500, 2_499_000, 2_487_500);
    let ledger = ledger(&[record(vec![parent, first, second], 3_000_000)]);
    let gaps: Vec<u64> = ledger.lines.iter().map(|line| line.read.expect("counted").gap()).collect();
    assert_eq!(gaps, [0, 0, 0]);
    let tree = ledger.tree_read.expect("counted");
    assert_eq!((tree.before, tree.gap(), tree.percent()), (2_500, 0, Some(100.0)));
    assert!(ledger.lines.iter().all(|line| line.reasons.is_empty()));
}

/// `system` and `pclose` wait where no hook is.
#[test]
fn bytes_of_children_that_the_c_library_waited_for_are_theirs() {
    let child = |pid: u32, bytes, waited_for| ProcessRecord {
        ppid: 1,
        nonce: pid.to_string(),
        ended_ns: 50,
        waited_for,
        started_ns: 10,
        ..process(pid, 0, bytes, bytes)
    };
    let parent = |end, reaped| ProcessRecord {
        ended_ns: 90,
        reaped_io: Some(IoCount { rchar: reaped, wchar: 0 }),
        ..process(1, 0, end, 5_000)
    };
    let check = |end, reaped, children: Vec<ProcessRecord>, expected: u64| {
        let processes = [vec![parent(end, reaped)], children].concat();
        let line = ledger(&[record(processes, end)]).lines.remove(0);
        assert_eq!((line.pid, line.read.expect("counted").kernel), (1, expected), "{line:?}");
    };
    check(1_000_000, 0, vec![], 1_000_000);
    check(1_005_000, 0, vec![child(2, 1_000_000, false)], 5_000);
    check(2_005_000, 1_000_000, vec![child(2, 1_000_000, true), child(3, 1_000_000, false)], 5_000);
    // There is room for one of the two: the other was left to init.
    check(1_005_000, 0, vec![child(2, 1_000_000, false), child(3, 1_000_000, false)], 5_000);
    check(5_000, 0, vec![child(2, 1_000_000, false)], 5_000);
}

#[test]
fn a_gap_has_a_reason() {
    let mut raw = process(3, 0, 1 << 20, 0);
    raw.unseen_io = vec!["raw syscalls".into(), "from the future".into()];
    let mut small = process(5, 0, 10, 0);
    small.unseen_io = raw.unseen_io.clone();
    let ledger = ledger(&[record(vec![raw, process(4, 0, 1 << 20, 0), small], 0)]);
    let words = "made raw system calls by syscall(2): those are not seen";
    assert_eq!(ledger.lines[0].reasons, [words, "from the future"]);
    assert_eq!(ledger.lines[1].reasons.len(), 1);
    assert_eq!(ledger.lines[2].reasons, [""; 0], "without a gap there is nothing to explain");
}

/// A made-up run: (pid, ppid, ended, kernel's counters at start and end, bytes traced) of each process, and what reached the supervisor; the
/// bytes that the kernel counted and those that went before, and the share.
#[test]
fn what_nobody_waited_for_counts_for_itself() {
    struct Lived(u32, u32, i64, Option<(u64, u64)>, u64);
    let check = |lives: &[Lived], tree: u64, expected: (u64, u64, Option<u32>)| {
        let processes = lives.iter().map(|Lived(pid, ppid, ended_ns, io, read)| ProcessRecord {
            ppid: *ppid,
            started_ns: 1,
            ended_ns: *ended_ns,
            io: io.map(|(start, end)| IoSpan {
                start: IoCount { rchar: start, wchar: 0 },
                end: IoCount { rchar: end, wchar: 0 },
            }),
            ..process(*pid, 0, 0, *read)
        });
        let read = ledger(&[record(processes.collect(), tree)]).tree_read.expect("counted");
        let per_mille = read.percent().map(|percent| (percent * 10.0) as u32);
        assert_eq!((read.kernel, read.before, per_mille), expected, "{read:?}");
    };
    let client = || Lived(10, 1, 50, Some((40, 100)), 60);
    // A child that was waited for is in its parent's count.
    check(&[client(), Lived(11, 10, 40, Some((0, 30)), 30)], 130, (130, 40, Some(1000)));
    // So is one that was waited for inside the C library, since its parent's count has room for it; else nobody waited.
    check(
        &[Lived(10, 1, 50, Some((40, 9_100)), 60), Lived(11, 10, 40, Some((0, 9_000)), 9_000)],
        9_100,
        (9_100, 40, Some(1000)),
    );
    check(&[client(), Lived(11, 10, 40, Some((0, 9_000)), 9_000)], 100, (9_100, 40, Some(1000)));
    // A server that goes on without its client is not, nor is what the server waited for.
    let server = || Lived(11, 10, 90, Some((0, 500)), 250);
    check(&[client(), server()], 100, (600, 40, Some(553)));
    check(&[client(), server(), Lived(12, 11, 80, Some((40, 100)), 0)], 100, (600, 80, Some(596)));
    // One that runs still, as of the last look.
    check(&[client(), Lived(11, 10, 0, Some((0, 500)), 500)], 100, (600, 40, Some(1000)));
    // One whose count nobody knows takes no part, with all that it waited for.
    let killed = || Lived(11, 10, 90, None, 250);
    check(&[client(), killed(), Lived(12, 11, 80, Some((40, 100)), 60)], 100, (100, 40, Some(1000)));
    // Numbers that contradict each other, and no bytes at all, have no share.
    check(&[client()], 30, (30, 40, None));
    check(&[Lived(10, 1, 50, Some((9_000, 9_000)), 0)], 40, (40, 9_000, None));
    check(&[Lived(10, 1, 50, Some((40, 40)), 0)], 40, (40, 40, None));
    // Two that call each other parents.
    check(&[Lived(10, 11, 50, None, 5), Lived(11, 10, 50, None, 5)], 10, (10, 0, Some(1000)));
}

#[test]
fn what_no_counter_shows_is_named() {
    let with = |pid, unseen_io: &[&str]| ProcessRecord {
        unseen_io: unseen_io.iter().map(|way| (*way).to_owned()).collect(),
        exe: format!("/bin/p{}", pid % 10),
        ..process(pid, 0, 100, 100)
    };
    let ledger =
        ledger(&[record(vec![with(11, &["mmap", "io_uring"]), with(21, &["io_uring"]), with(2, &["go"])], 300)]);
    let sentences: Vec<String> = ledger.unseen.iter().map(Unseen::sentence).collect();
    let begins = |at: usize, text: &str| assert!(sentences[at].starts_with(text), "{sentences:?}");
    begins(0, "p1 (×2) used io_uring:");
    begins(1, "p1 mapped files");
    begins(2, "p2 is a Go program");
    assert_eq!((sentences.len(), ledger.uncounted().count(), ledger.percent()), (3, 1, (None, None)));
    assert_eq!(ledger.lines.iter().map(|line| line.reasons.len()).collect::<Vec<_>>(), [1, 2, 1]);
    let counted = super::ledger(&[record(vec![with(1, &["mmap"])], 100)]);
    assert_eq!(counted.percent(), (Some(100.0), None));
}

/// A run whose `weft run` was killed is as complete as it will ever be; it must not be told to wait.
#[test]
fn why_coverage_is_not_known() {
    for (state, why) in [(State::Open, "until the run is complete"), (State::Complete, "because `weft run` was killed")]
    {
        let record = SupervisorRecord { processes: vec![process(1, 0, 10, 10)], state, ..SupervisorRecord::default() };
        assert_eq!(ledger(&[record]).sentence(), format!("unknown {why}"));
    }
}
