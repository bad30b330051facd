//! Sandboxes, dropped privileges and resource limits: the program is as free and as bound as without us, and recorded.

use rustix::process::geteuid;
use weftline_format::Event;
use weftline_testkit::{Case, compile};

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

hazards! {
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
    let (first, last) = (spans[0].0, spans[4].1);
    assert!((0..60_000_000_000).contains(&(last - first)), "the work took {} ns", last - first);
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
