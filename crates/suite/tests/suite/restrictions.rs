//! Sandboxes, dropped privileges and resource limits: the program behaves as without tracing, and is recorded.

use std::collections::BTreeMap;
use std::process::Command;

use rustix::process::geteuid;
use weftline_format::Event;
use weftline_testkit::product::product;
use weftline_testkit::scratch::Scratch;
use weftline_testkit::{Case, compile, run::weft};

/// These programs need root to get into their situation.
fn as_root(name: &str) -> Case {
    assert!(geteuid().is_root(), "{name} needs root: it changes its user, its root directory or its namespaces");
    Case::program(name)
}

fn limits(what: &str) -> Case {
    as_root("limits").args([what]).work("before.bin", 100)
}

fn no_counter() -> Case {
    Case::program("no_counter")
        .work("before.bin", 100)
        .work("forbidden.bin", 3000)
        .work("thread.bin", 100)
        .work("child.bin", 100)
        .work("allowed.bin", 3000)
}

/// Calls of a program that was root's; the run is shared.
fn as_nobody(how: &str, calls: u64, opens: u64) -> Case {
    let case = as_root("many_as_nobody").args([how]).shared().file("input", "0123456789");
    case.sees("open", "input", opens).moves("pread", "input", calls, calls)
}

hazards! {
    many_calls_after_an_exec_as_another_user: as_nobody("exec", 500_000, 2);
    many_calls_after_dropping_privileges: as_nobody("drop", 500_000, 1);
    many_calls_of_another_user_whose_files_are_limited: as_nobody("limited", 50_000, 1);
    a_sandbox_of_another_user: as_nobody("sandbox", 40_000, 1);
    seccomp_kills_on_open_and_mmap: Case::program("seccomp").work("before.bin", 100)
        .sees("open", "sandboxed.bin", 1).moves("write", "sandboxed.bin", 23_000, 230_000)
        .sees("open", "many.bin", 100).moves("pwrite", "many.bin", 100, 6400).sees("close", "many.bin", 100);
    strict_seccomp: Case::program("strict_seccomp").args(["prctl"]).work("before.bin", 100)
        .sees("open", "strict.bin", 1).moves("write", "strict.bin", 5000, 50_000);
    strict_seccomp_by_syscall: Case::program("strict_seccomp").args(["syscall"]).work("before.bin", 100)
        .sees("open", "strict.bin", 1).moves("write", "strict.bin", 5000, 50_000);
    chroot: as_root("chrooted").work("before.bin", 100).sees("mkdir", "jail", 1).sees("chroot", "jail", 1)
        .work("/inside.bin", 5000).work("/deeper.bin", 100).work("after.bin", 100);
    privileges_dropped: as_root("privileges_dropped").work("before.bin", 100).sees("chmod", ".", 1)
        .work("nobody.bin", 5000).work("child.bin", 100).untraced("/privileges_dropped", "not reachable");
    privileges_dropped_in_a_shared_run: as_root("privileges_dropped").shared().work("before.bin", 100).sees("chmod", ".", 1)
        .work("nobody.bin", 5000).work("child.bin", 100).work("executed.bin", 100);
    file_size_limit: limits("fsize").work("limited.bin", 1000).sees("open", "limited.bin", 1)
        .moves("pread", "limited.bin", 50_000, 50_000).sees("close", "limited.bin", 1).work("child.bin", 100);
    file_size_limit_from_the_start: Case::program("fsize_from_start").work("executed.bin", 100);
    descriptor_limit: limits("nofile").sees("open", "before.bin", 10).fails("open", "before.bin", 24, 1)
        .moves("pread", "before.bin", 20_100, 20_100);
    address_space_limit: limits("as").sees("open", "before.bin", 1).moves("pread", "before.bin", 100_000, 100_000)
        .work("child.bin", 100);
    address_space_limit_from_the_start: Case::script("small", r#"(ulimit -v 4096; exec "$ENDING" exit 100) || test $? = 7"#)
        .env("ENDING", compile::compile("ending", compile::PLAIN)).untraced("/ending", "address space");
    process_limit: limits("nproc").sees("open", "before.bin", 1).fails("fork", "", 11, 1)
        .moves("pread", "before.bin", 20_000, 20_000);
}

/// Without the counter times come from another clock; what the program did one after the other stays so.
#[test]
fn without_the_time_stamp_counter() {
    let finished = no_counter().check();
    let span = |name: &str| {
        let of_file = |event: &&Event| finished.trace.path_of(event).is_some_and(|path| path.ends_with(name));
        let events: Vec<&Event> = finished.trace.events.iter().filter(of_file).collect();
        let start = events.iter().filter_map(|event| event.start_ns).min().expect("events with a time");
        let end = events.iter().filter_map(|event| Some(event.start_ns? + event.dur_ns?)).max().expect("spans");
        (start, end)
    };
    let order = ["before.bin", "forbidden.bin", "thread.bin", "child.bin", "allowed.bin"];
    let spans = order.map(span);
    for (pair, names) in spans.windows(2).zip(order.windows(2)) {
        // Two clocks are joined to a few microseconds.
        assert!(pair[0].1 <= pair[1].0 + 100_000, "{} ends after {} begins: {pair:?}", names[0], names[1]);
    }
    // Who has only the system call says so; before and after, the counter is read.
    let clock = |event: &Event| {
        let found = event.args.iter().find(|(key, _)| key == "clock");
        found.and_then(|(_, value)| value.as_str().map(str::to_owned))
    };
    for (name, expected) in
        order.into_iter().zip([None, Some("system-call"), Some("system-call"), Some("system-call"), None])
    {
        let of_file = |event: &&Event| finished.trace.path_of(event).is_some_and(|path| path.ends_with(name));
        let clocks: BTreeMap<Option<String>, usize> =
            finished.trace.events.iter().filter(of_file).fold(BTreeMap::new(), |mut counts, event| {
                *counts.entry(clock(event)).or_default() += 1;
                counts
            });
        let other = clocks.keys().find(|clock| clock.as_deref() != expected);
        assert!(other.is_none(), "{name}: {clocks:?}, not {expected:?}");
    }
    let (first, last) = (spans[0].0, spans[4].1);
    assert!((0..60_000_000_000).contains(&(last - first)), "the work took {} ns", last - first);
}

/// Programs that have no room for shared memory are named, however many there are, and the run is not complete without them.
#[test]
fn programs_without_room_are_counted_by_name() {
    let ending = compile::compile("ending", compile::PLAIN);
    let script = r#"
        for name in $(seq 40); do cp "$ENDING" "tool-$name"; done
        for turn in 1 2 3; do
            for name in $(seq 40); do (ulimit -v 4096; exec "./tool-$name" exit 1) & done
            wait
        done"#;
    let finished = Case::script("many small", script).env("ENDING", ending).check();
    for name in 1..=40 {
        let end = format!("/tool-{name}");
        let refused: Vec<_> = finished.processes().filter(|process| process.exe.ends_with(&end)).collect();
        let counted: u64 = refused.iter().map(|process| process.refused).sum();
        assert_eq!((refused.len(), counted), (1, 3), "{name}: {refused:#?}");
        assert!(refused[0].untraced.as_ref().is_some_and(|why| why.contains("address space")), "{refused:#?}");
    }
    assert_eq!(finished.lost(), 0, "nobody is nameless");
    let verdict = weft(["check".as_ref(), finished.run.as_os_str()], &finished.scratch);
    let said = String::from_utf8_lossy(&verdict.stdout).into_owned();
    assert!(verdict.status == 1 && said.starts_with("not complete"), "{said}");
    assert!(said.contains("  not traced: tool-7: its address space is limited (RLIMIT_AS) (×3)\n"), "{said}");
}

/// In strict seccomp only a clock that moves every few milliseconds is left, and the events say so.
#[test]
fn times_in_strict_seccomp_are_coarse() {
    let finished = Case::program("strict_seccomp").args(["prctl"]).check();
    let coarse =
        |event: &&Event| event.args.iter().any(|(key, value)| key == "clock" && value.as_str() == Some("coarse"));
    let (coarse, exact): (Vec<&Event>, Vec<&Event>) = finished.trace.events.iter().partition(coarse);
    assert_eq!((coarse.len(), coarse.iter().all(|event| event.name == "write")), (5000, true));
    assert!(exact.iter().any(|event| event.name == "open"));
}

/// What a shell of another user starts is recorded when root shares the run, more of it at once than arenas are kept ready.
#[test]
fn another_user_in_a_shared_run() {
    assert!(geteuid().is_root(), "only root becomes another user");
    let all = "for name in 1 2 3 4 5 6 7 8 9 10; do cat input > /dev/null & done; wait";
    let finished = Case::command(["/usr/bin/su", "nobody", "-s", "/bin/bash", "-c", all])
        .shared()
        .file("input", "somebody else's words\n")
        .check();
    assert_eq!(finished.count("read", "input").bytes, 220, "{:#?}", finished.table());
    let untraced: Vec<_> = finished.processes().filter_map(|process| process.untraced.as_ref()).collect();
    assert!(untraced.is_empty(), "{untraced:?}");
}

/// A program of another user waits for its shared memory, and not for ever. That it ran untraced, and why, is told at the end and by `weft check`.
#[test]
fn another_user_whose_memory_is_not_ready() {
    assert!(geteuid().is_root(), "only root becomes another user");
    let scratch = Scratch::new("not-ready");
    let run = scratch.join("run");
    std::fs::write(scratch.join("input"), "words\n").expect("written");
    // The supervisor stands still while the first program of that user starts.
    let script = "kill -STOP $PPID; setpriv --reuid 65534 --regid 65534 --clear-groups cat input; status=$?; kill -CONT $PPID; exit $status";
    let traced = Command::new(product())
        .args(["run", "--share", "-o"])
        .arg(&run)
        .args(["--", "/bin/bash", "-c", script])
        .current_dir(scratch.path())
        .output()
        .expect("weft runs");
    let said = String::from_utf8_lossy(&traced.stderr).into_owned();
    assert!(traced.status.success() && traced.stdout == b"words\n", "{said}");
    let why = "no shared memory was ready for its user within a second";
    assert!(said.contains(why) && said.contains("cat"), "{said}");
    let checked = Command::new(product()).arg("check").arg(&run).output().expect("weft runs");
    let found = String::from_utf8_lossy(&checked.stdout);
    assert!(found.contains(why), "{found}");
}
