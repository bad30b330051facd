//! Annotated Rust programs: annotations are in the trace as the program made them, around the I/O calls.
//!
//! The programs are the examples of `crates/annotations`; each of their parts says what its trace must hold. Tests check a trace in
//! two ways: [`told`] lists every annotation, exactly; [`stacks`] lists the nesting, I/O calls included.

use std::ffi::OsString;
use std::path::Path;

use weftline_format::reader::{self, Trace};
use weftline_format::{Event, Phase, Value};
use weftline_testkit::case::excerpt;
use weftline_testkit::product::product;
use weftline_testkit::run::Job;
use weftline_testkit::table::plain;
use weftline_testkit::{Case, Finished, Scratch};

const ANNOTATED: &str = env!("CARGO_BIN_EXE_annotated");
const INSTRUMENTED: &str = env!("CARGO_BIN_EXE_instrumented");

const MILLISECOND: i64 = 1_000_000;

/// Arguments whose values are times: told as `#`.
const TIMES: [&str; 2] = ["nap_at_most_ns", "busy_ns"];

/// Runs a part of the example with and without tracing, and compares its annotations with `expected`.
fn part(name: &str, expected: &[&str]) -> Finished {
    let finished = Case::command([ANNOTATED, name]).check();
    check(&finished, expected);
    finished
}

fn check(finished: &Finished, expected: &[&str]) {
    let (mut seen, mut expected) = (annotations_of(&finished.trace), expected.to_vec());
    seen.sort();
    expected.sort_unstable();
    assert_eq!(seen, expected, "in {}", finished.run.display());
}

/// Is the event the program's own word?
fn is_annotation(event: &Event) -> bool {
    !["POSIX", "STDIO", "NETWORK", "WAIT", "PROCESS", "weft", "dftracer"].contains(&event.cat.as_str())
        && !is_about_process(event)
}

/// Names of processes and threads, which viewers read.
fn is_about_process(event: &Event) -> bool {
    event.phase == Phase::Metadata && ["process_name", "thread_name"].contains(&event.name.as_str())
}

/// Every annotation in one line: `X app outer items=2`.
fn annotations_of(trace: &Trace) -> Vec<String> {
    trace.events.iter().filter(|event| is_annotation(event)).map(line).collect()
}

fn line(event: &Event) -> String {
    // The name of an event of `tracing` is the place in its source.
    let name = if event.name.starts_with("event ") { "event" } else { &event.name };
    let mut line = format!("{} {} {name}", event.phase.letter(), event.cat);
    for (key, value) in &event.args {
        let value = match value {
            _ if TIMES.contains(&key.as_str()) => "#".to_owned(),
            Value::Null => "null".to_owned(),
            Value::Bool(v) => v.to_string(),
            Value::Int(v) => v.to_string(),
            Value::UInt(v) => v.to_string(),
            Value::Float(v) => v.to_string(),
            Value::Str(v) => format!("{v:?}"),
            Value::Json(v) => v.clone(),
        };
        line.push_str(&format!(" {key}={value}"));
    }
    line
}

/// The spans and I/O calls of the trace, each behind the names of those that it lies in, on its thread and in time:
/// `outer/item/store/write/open`. Of the calls only those on files of the working directory.
fn stacks(finished: &Finished) -> Vec<String> {
    let own_file = |event: &Event| {
        let path = finished.trace.path_of(event);
        event.cat == "POSIX" && path.is_some_and(|path| Path::new(path).starts_with(&finished.work))
    };
    let mut spans: Vec<&Event> = finished
        .trace
        .events
        .iter()
        .filter(|event| event.phase == Phase::Complete && (is_annotation(event) || own_file(event)))
        .collect();
    spans.sort_by_key(|event| (event.pid, event.tid, event.start_ns, std::cmp::Reverse(event.end_ns())));
    let mut open: Vec<&Event> = Vec::new();
    let mut stacks = Vec::new();
    for span in spans {
        open.retain(|outer| {
            (outer.pid, outer.tid) == (span.pid, span.tid)
                && outer.end_ns() >= span.end_ns()
                && outer.end_ns() > span.start_ns
        });
        open.push(span);
        let names: Vec<&str> =
            open.iter().map(|event| if event.cat == "POSIX" { plain(&event.name) } else { &event.name }).collect();
        stacks.push(names.join("/"));
    }
    stacks.sort();
    stacks
}

fn check_stacks(finished: &Finished, expected: &[&str]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(stacks(finished), expected, "in {}", finished.run.display());
}

/// The annotations of this name and kind, in the order of their starts.
fn all<'t>(trace: &'t Trace, phase: Phase, name: &str) -> Vec<&'t Event> {
    let mut found: Vec<&Event> = trace
        .events
        .iter()
        .filter(|event| event.phase == phase && event.name == name && is_annotation(event))
        .collect();
    found.sort_by_key(|event| event.start_ns);
    found
}

fn one<'t>(trace: &'t Trace, phase: Phase, name: &str) -> &'t Event {
    match all(trace, phase, name)[..] {
        [event] => event,
        ref found => panic!("{name}: one was expected, not {found:?}"),
    }
}

fn start(event: &Event) -> i64 {
    event.start_ns.expect("annotations have a time")
}

fn duration(event: &Event) -> i64 {
    event.dur_ns.expect("a span has a duration")
}

fn number(event: &Event, key: &str) -> i64 {
    event.arg(key).and_then(Value::as_i64).unwrap_or_else(|| panic!("{key} in {event:?}"))
}

/// The pid of the run's only process.
fn only_pid(finished: &Finished) -> i64 {
    let pids: Vec<u32> = finished.processes().map(|process| process.pid).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    i64::from(pids[0])
}

#[test]
fn spans_nest_around_their_io() {
    let finished = part(
        "nested",
        &[
            "X app outer items=2 label=\"two files\" nap_at_most_ns=#",
            "X app item index=0",
            "X app item index=1",
            "X data store path=\"0.bin\" bytes=1000",
            "X data store path=\"1.bin\" bytes=2000",
            "X io write",
            "X io write",
            "X app nap",
        ],
    );
    check_stacks(
        &finished,
        &[
            "outer",
            "outer/item",
            "outer/item",
            "outer/item/store",
            "outer/item/store",
            "outer/item/store/write",
            "outer/item/store/write",
            "outer/item/store/write/open",
            "outer/item/store/write/open",
            "outer/item/store/write/write",
            "outer/item/store/write/write",
            "outer/item/store/write/close",
            "outer/item/store/write/close",
            "outer/nap",
        ],
    );
    let (nap, outer) = (one(&finished.trace, Phase::Complete, "nap"), one(&finished.trace, Phase::Complete, "outer"));
    let longest = number(outer, "nap_at_most_ns");
    assert!(duration(nap) >= 30 * MILLISECOND && duration(nap) <= longest, "{nap:?}, at most {longest} ns");
    let pid = only_pid(&finished);
    assert!(
        finished
            .trace
            .events
            .iter()
            .filter(|event| is_annotation(event))
            .all(|event| event.pid == pid && event.tid == pid)
    );
}

#[test]
fn early_returns_end_spans() {
    let finished = part(
        "early",
        &[
            "X app parse text=\"x\" error=\"invalid digit found in string\"",
            "X app parse text=\"\"",
            "X app parse text=\"12\"",
            "X app rest number=12",
        ],
    );
    check_stacks(&finished, &["parse", "parse", "parse", "parse/rest"]);
}

#[test]
fn methods_are_named_by_their_type() {
    part(
        "methods",
        &["X loader Loader::add item=\"Some(\\\"a\\\")\"", "X loader Loader::item index=0", "X loader size at_least=1"],
    );
}

#[test]
fn instants_counters_and_metadata() {
    let long = format!("long=\"{}… (2000 bytes)\"", "y".repeat(512));
    let miss = format!(
        "i app miss small=-3 large=18446744073709551615 half=0.5 yes=true letter=\"é\" path=\"/a b/\\\"c\\\"\" nothing=null \
         something=\"x\" shape=\"(3, [1.5, 2.0])\" shown=\"99%\" {long}"
    );
    let finished = part(
        "instants",
        &[
            &miss,
            "C data queue length=1 waiting=false",
            "C data queue length=5 waiting=true",
            "C data queue length=2 waiting=false",
            "M app model name=\"unet3d\" layers=23",
        ],
    );
    let lengths: Vec<i64> =
        all(&finished.trace, Phase::Counter, "queue").iter().map(|event| number(event, "length")).collect();
    assert_eq!(lengths, [1, 5, 2], "in the order of their times");
}

#[test]
fn threads_have_their_own_spans() {
    let steps = ["X app step step=0", "X app step step=1"].repeat(3);
    let workers = ["X app worker number=0", "X app worker number=1", "X app worker number=2"];
    let finished = part("threads", &[&steps[..], &workers].concat());
    let pid = only_pid(&finished);
    let workers = all(&finished.trace, Phase::Complete, "worker");
    let mut tids: Vec<i64> = workers.iter().map(|worker| worker.tid).collect();
    tids.sort_unstable();
    tids.dedup();
    assert!(tids.len() == 3 && !tids.contains(&pid), "{tids:?}");
    assert!(workers.iter().all(|worker| worker.pid == pid && duration(worker) >= 10 * MILLISECOND));
    let mut expected = vec!["worker"; 3];
    expected.extend(["worker/step"; 6]);
    check_stacks(&finished, &expected);
}

/// The pairs of an async span's ends, by their ids; each id must stand for one pair.
fn pairs<'t>(trace: &'t Trace, name: &str) -> Vec<(&'t Event, &'t Event)> {
    let (begins, ends) = (all(trace, Phase::AsyncBegin, name), all(trace, Phase::AsyncEnd, name));
    assert_eq!(begins.len(), ends.len(), "{begins:?} {ends:?}");
    begins
        .into_iter()
        .map(|begin| {
            let mut ends = ends.iter().filter(|end| end.id == begin.id && end.cat == begin.cat);
            let end = ends.next().unwrap_or_else(|| panic!("no end of {begin:?}"));
            assert!(begin.id.is_some() && ends.next().is_none(), "{begin:?}");
            (begin, *end)
        })
        .collect()
}

#[test]
fn futures_have_polls_and_a_life() {
    let mut expected = vec!["X app fetch"; 7];
    expected.extend(["e app fetch"; 4]);
    expected.extend([
        "b app fetch batch=1 polls=2 busy_ns=#",
        "b app fetch batch=2 polls=2 busy_ns=#",
        "b app fetch batch=3 polls=1 busy_ns=# dropped=true",
        "b app fetch batch=4 error=\"no batch 4\" polls=2 busy_ns=#",
    ]);
    let finished = part("futures", &expected);
    let trace = &finished.trace;
    let polls = all(trace, Phase::Complete, "fetch");
    assert!(polls.iter().all(|poll| duration(poll) >= 5 * MILLISECOND), "{polls:?}");

    // The polls of each life: those of its time are its own, unless another life was polled in between.
    let lives = pairs(trace, "fetch");
    let (first, last) = lives[0];
    assert_eq!(number(first, "batch"), 1);
    let own: Vec<&&Event> =
        polls.iter().filter(|poll| start(poll) >= start(first) && poll.end_ns() <= last.start_ns).collect();
    assert_eq!(own.len(), 2);
    assert_ne!(own[0].tid, own[1].tid, "it moved to another thread");
    let (life, busy) = (start(last) - start(first), number(first, "busy_ns"));
    let polled: i64 = own.iter().map(|poll| duration(poll)).sum();
    assert!(busy >= polled && busy <= life - 20 * MILLISECOND, "{busy} ns of {life} ns, polls of {polled} ns");

    // The other three were polled in turns: their lives overlap, on one thread.
    let started_last = lives[1..].iter().map(|(begin, _)| start(begin)).max();
    let ended_first = lives[1..].iter().map(|(_, end)| start(end)).min();
    assert!(started_last < ended_first, "{lives:?}");
    assert!(polls.iter().filter(|poll| poll.tid == only_pid(&finished)).count() == 6);
}

#[test]
fn pointcuts() {
    let finished = part(
        "pointcuts",
        &[
            "X annotated around scope=\"one\"",
            "B annotated by hand",
            "E annotated by hand",
            "b annotated job scope=\"job-7\"",
            "e annotated job scope=\"job-7\"",
            "b io whole",
            "e io whole",
            "X annotated future",
            "X annotated future",
            "b annotated future polls=2 busy_ns=#",
            "e annotated future",
        ],
    );
    let [(begin, end)] = pairs(&finished.trace, "job")[..] else { panic!("one job") };
    assert!(begin.tid == only_pid(&finished) && end.tid != begin.tid && start(begin) < start(end), "{begin:?} {end:?}");
    let [(begin, end)] = pairs(&finished.trace, "whole")[..] else { panic!("one whole") };
    assert!(start(end) - start(begin) >= 2 * MILLISECOND, "{begin:?} {end:?}");
}

#[test]
fn panics_end_spans() {
    let finished = part(
        "panics",
        &[
            "X app inner error=\"panic\"",
            "X app falls error=\"panic\"",
            "X app falls_later error=\"panic\"",
            "b app falls_later polls=1 busy_ns=# error=\"panic\"",
            "e app falls_later",
            "X app after caught=true future=true",
        ],
    );
    check_stacks(&finished, &["falls", "falls/inner", "falls_later", "after"]);
}

#[test]
fn every_process_tells_of_itself() {
    let of_a_child = [
        "X app parse text=\"x\" error=\"invalid digit found in string\"",
        "X app parse text=\"\"",
        "X app parse text=\"12\"",
        "X app rest number=12",
    ];
    let finished = part("children", &[&of_a_child[..], &of_a_child, &["i app child success=true"; 2]].concat());
    let mut pids: Vec<i64> = all(&finished.trace, Phase::Complete, "rest").iter().map(|event| event.pid).collect();
    pids.extend(all(&finished.trace, Phase::Instant, "child").iter().map(|event| event.pid));
    assert!(pids[0] != pids[1] && pids[2] == pids[3] && !pids[..2].contains(&pids[2]), "{pids:?}");
    let mut known: Vec<i64> = finished.processes().map(|process| i64::from(process.pid)).collect();
    pids.truncate(3);
    known.sort_unstable();
    pids.sort_unstable();
    assert_eq!(pids, known);
}

/// `weft run OPTIONS -- annotated usage`: the three spans.
fn used(options: &[&str]) -> (Trace, Scratch) {
    let scratch = Scratch::new("span-usage");
    let run = scratch.join("run");
    let mut command: Vec<OsString> = vec![product().into(), "run".into(), "-q".into(), "-o".into(), (&run).into()];
    command.extend(options.iter().map(Into::into));
    command.extend(["--", ANNOTATED, "usage"].map(Into::into));
    let outcome = Job::new(command, &scratch.dir("work")).run();
    assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
    let trace = reader::read_run(&run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
    assert!(trace.damage.is_empty(), "{}: {:?}", run.display(), trace.damage);
    (trace, scratch)
}

#[test]
fn spans_tell_what_they_used_when_asked() {
    let (trace, _scratch) = used(&["--span-usage"]);
    let [burn, sleep, fill] = ["burn", "sleep", "fill"].map(|name| one(&trace, Phase::Complete, name));
    let cpu = number(burn, "cpu_ns");
    assert!((40 * MILLISECOND..=80 * MILLISECOND).contains(&cpu), "{burn:?}");
    assert!(cpu <= duration(burn) + MILLISECOND, "one thread: {burn:?}");
    assert!(number(sleep, "cpu_ns") < 10 * MILLISECOND && duration(sleep) >= 50 * MILLISECOND, "{sleep:?}");
    for span in [burn, sleep, fill] {
        let of = |key| number(span, key);
        assert_eq!(of("cpu_user_ns") + of("cpu_system_ns"), of("cpu_ns").max(of("cpu_user_ns")), "{span:?}");
        // Readings of two clocks, one behind the other.
        assert!(of("process_cpu_ns") + MILLISECOND / 10 >= of("cpu_ns"), "{span:?}");
        assert!(of("rss_start") > 0 && of("rss_end") > 0, "{span:?}");
    }
    let grown = number(fill, "rss_end") - number(fill, "rss_start");
    assert!(((60 << 20)..=(72 << 20)).contains(&grown), "{grown} bytes: {fill:?}");

    let (trace, _scratch) = used(&[]);
    assert!(all(&trace, Phase::Complete, "burn")[0].args.is_empty(), "only when asked");
}

#[test]
fn spans_and_events_of_tracing() {
    let finished = Case::command([INSTRUMENTED]).check();
    check(
        &finished,
        &[
            "X codec decode index=3 level=\"INFO\"",
            "X instrumented load level=\"INFO\" size=13",
            "i values event message=\"cannot read 7\" error=\"invalid digit found in string\" level=\"ERROR\"",
            "i values named message=\"message\" int=-5 large=18446744073709551615 wide=\"-9223372036854775809\" half=0.5 yes=true \
         text=\"a \\\"quoted\\\"\" shown=\"/data\" debugged=\"\\\"/data\\\"\" level=\"own\"",
            // Three polls, and the entry in which `tracing` drops the future.
            "X instrumented fetch batch=1 level=\"INFO\"",
            "X instrumented fetch",
            "X instrumented fetch",
            "X instrumented fetch",
            "i instrumented event message=\"fetched\" level=\"INFO\"",
            "b instrumented fetch batch=1 level=\"INFO\" entered=4 busy_ns=#",
            "e instrumented fetch",
            "X instrumented inline level=\"INFO\"",
            "X instrumented inline",
            "X instrumented inline",
            "b instrumented inline level=\"INFO\" entered=3 busy_ns=#",
            "e instrumented inline",
            "X instrumented shared level=\"INFO\"",
            "X instrumented shared",
            "X instrumented shared",
            "b instrumented shared level=\"INFO\" entered=3 busy_ns=#",
            "e instrumented shared",
            "b instrumented context user=7 level=\"INFO\" entered=0 busy_ns=#",
            "e instrumented context",
            "X instrumented late level=\"INFO\"",
            "i instrumented event message=\"inside\" level=\"DEBUG\"",
            "b instrumented late level=\"INFO\" found=true entered=1 busy_ns=#",
            "e instrumented late",
            "X instrumented falls level=\"INFO\" error=\"panic\"",
        ],
    );
    check_stacks(
        &finished,
        &[
            "load",
            "load/decode",
            "fetch",
            "fetch",
            "fetch",
            "fetch",
            "inline",
            "inline",
            "inline",
            "shared",
            "shared",
            "shared/shared",
            "late",
            "falls",
        ],
    );
    let trace = &finished.trace;
    assert!(duration(one(trace, Phase::Complete, "decode")) >= 10 * MILLISECOND);
    let [(begin, end)] = pairs(trace, "fetch")[..] else { panic!("one life") };
    let polled: i64 = all(trace, Phase::Complete, "fetch").iter().map(|poll| duration(poll)).sum();
    let (life, busy) = (start(end) - start(begin), number(begin, "busy_ns"));
    // Ticks become nanoseconds one by one, and each may be one off.
    assert!(busy >= 10 * MILLISECOND && (busy - polled).abs() < 1000, "{busy} ns, in polls {polled} ns");
    assert!(life >= busy + 10 * MILLISECOND, "{busy} ns of {life} ns");
    let tids: Vec<i64> = all(trace, Phase::Complete, "shared").iter().map(|event| event.tid).collect();
    assert!(tids.iter().any(|tid| *tid != tids[0]) && !tids.contains(&only_pid(&finished)), "{tids:?}");
}
