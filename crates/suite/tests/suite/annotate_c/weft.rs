//! `weft.h` and `weft.hpp`: annotations are in the trace as the program made them, with and without `weft run`.

use std::path::{Path, PathBuf};

use weftline_format::Phase;
use weftline_format::reader::{self, Trace};
use weftline_testkit::case::excerpt;
use weftline_testkit::run::{Job, Outcome, weft};
use weftline_testkit::{Case, Finished, Scratch};

use super::installed::{Against, gpus, program};
use super::{all, annotations_of, one, sorted, stacks};

const MILLISECOND: i64 = 1_000_000;

fn tour() -> PathBuf {
    program("weft_tour.c", &["gcc", "-std=c99"], Against::Weft)
}

/// Runs a part of the tour with and without `weft run`, and compares what it told.
fn part(name: &str, expected: &[&str]) -> Finished {
    let finished = Case::command([tour().as_os_str(), name.as_ref()]).check();
    let (mut seen, mut expected) = (annotations_of(&finished.trace), expected.to_vec());
    seen.sort();
    expected.sort_unstable();
    assert_eq!(seen, expected, "in {}", finished.run.display());
    finished
}

#[test]
fn scopes_end_however_their_block_is_left() {
    let mut expected = vec!["X phase outer", "X app inner", "X app early"];
    expected.extend(["X app early", "X app round", "X app round", "X app round", "X late early"]);
    expected.extend(["X app early", "X app round", "X late early"]);
    let finished = part("scopes", &expected);
    let inner = one(&finished.trace, Phase::Complete, "inner").dur_ns.expect("a span has a duration");
    assert!((20 * MILLISECOND..60 * MILLISECOND).contains(&inner), "a nap of 20 ms took {inner} ns");
    let expected = [
        "outer",
        "outer/early",
        "outer/early",
        "outer/early",
        "outer/early/early",
        "outer/early/early",
        "outer/early/round",
        "outer/early/round",
        "outer/early/round",
        "outer/early/round",
        "outer/inner",
    ];
    assert_eq!(stacks(&finished.trace, &finished.work), expected);
}

/// Under `--span-usage` spans tell the use of GPUs from when the program has loaded what knows them: one that never does gets no library from us.
#[test]
fn use_of_gpus() {
    let gpus = gpus();
    let program = program("gpu_spans.c", &["gcc", "-std=gnu11"], Against::Weft);
    let library = gpus.join("libnvidia-ml.so.1");
    for (arguments, expected) in [(&[][..], false), (&[library.as_os_str()][..], true)] {
        let scratch = Scratch::new("gpu-spans");
        let run = scratch.join("run");
        let mut command: Vec<&std::ffi::OsStr> = ["run", "-q", "--span-usage", "-o"].map(AsRef::as_ref).to_vec();
        command.splice(..0, [weftline_testkit::product::product().as_os_str()]);
        command.extend([run.as_os_str(), "--".as_ref(), program.as_os_str()]);
        command.extend(arguments);
        let mut job = Job::new(command, &scratch.dir("work"));
        job.environment.push(("LD_LIBRARY_PATH".into(), Some(gpus.path().into())));
        let outcome = job.run();
        assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
        let trace = reader::read_run(&run).expect("a run");
        let used = ["before", "after"].map(|name| {
            let span = one(&trace, Phase::Complete, name);
            assert!(span.arg("cpu_ns").is_some(), "{span:?}");
            let number = |key: &str| span.arg(key).and_then(weftline_format::Value::as_u64);
            number("gpu_busy_pct").zip(number("gpu_memory_bytes"))
        });
        assert_eq!(used, [None, expected.then_some((83, 3 << 30))]);
    }
}

#[test]
fn values_are_kept_whatever_they_are() {
    let finished = Case::command([tour().as_os_str(), "values".as_ref()]).check();
    let values = one(&finished.trace, Phase::Complete, "values");
    assert_eq!(
        super::line(values),
        "X app values int=-7 least=-9223372036854775808 most=18446744073709551615 half=0.5 nan=NaN yes=true no=false \
         text=\"a \\\"quoted\\\"\\n\\\\ line\" none=null empty=\"\" bytes=\"part\" latin1=\"caf\\u{10dce9}\" \
         k\u{10dce9}y=\"value\"",
    );
    let long = one(&finished.trace, Phase::Complete, "long");
    let kept = long.arg("text").and_then(|text| text.as_str()).expect("a text");
    let end = kept.trim_start_matches('y');
    assert!(kept.len() - end.len() > 3500 && end == "… (4999 bytes)", "{kept}");
}

#[test]
fn instants_counters_and_metadata() {
    part(
        "events",
        &[
            "i app happened",
            "i other happened",
            "C app queue length=3",
            "C other queue length=2.5",
            "M app model name=\"unet3d\"",
            "M other model name=null",
            "C app by hand a=1 b=2",
        ],
    );
}

/// What begins on one thread and ends on another has one id.
#[test]
fn async_spans_and_flows_pair_across_threads() {
    let finished = Case::command([tour().as_os_str(), "across".as_ref()]).check();
    let trace = &finished.trace;
    let ends = [Phase::AsyncBegin, Phase::AsyncInstant, Phase::AsyncEnd].map(|phase| one(trace, phase, "download"));
    assert!(ends.iter().all(|event| event.id == ends[0].id && event.id.is_some()), "{ends:?}");
    assert!(ends[0].tid != ends[1].tid && ends[1].tid == ends[2].tid, "{ends:?}");
    let arrow = [Phase::FlowStart, Phase::FlowEnd].map(|phase| one(trace, phase, "arrow"));
    assert!(arrow[0].id == arrow[1].id && arrow[0].id != ends[0].id && arrow[0].tid != arrow[1].tid, "{arrow:?}");
    let (begins, ends) = (all(trace, Phase::AsyncBegin, "overlapping"), all(trace, Phase::AsyncEnd, "overlapping"));
    let ids = |events: &[&weftline_format::Event]| sorted(events.iter().map(|event| event.id.clone()));
    assert!(begins.len() == 2 && ids(&begins) == ids(&ends) && begins[0].id != begins[1].id, "{begins:?} {ends:?}");
}

#[test]
fn io_lies_in_the_span_that_did_it() {
    let finished = part("io", &["X app save bytes=10", "X app payload"]);
    let stacks = stacks(&finished.trace, &finished.work);
    assert_eq!(stacks, ["save", "save/close", "save/open", "save/payload", "save/payload/write"]);
}

#[test]
fn forked_children_tell_their_own() {
    let finished = part("forked", &["X app parent", "X app child"]);
    let [parent, child] = ["parent", "child"].map(|name| one(&finished.trace, Phase::Complete, name));
    assert_ne!(parent.pid, child.pid);
}

#[test]
fn threads_lose_nothing() {
    let finished = Case::command([tour().as_os_str(), "threads".as_ref()]).check();
    let units = all(&finished.trace, Phase::Complete, "unit");
    let seen: std::collections::BTreeSet<String> = units.iter().map(|event| super::line(event)).collect();
    assert_eq!((units.len(), seen.len()), (8000, 8000), "{}", finished.run.display());
}

#[test]
fn signal_handlers_may_tell() {
    let finished = Case::command([tour().as_os_str(), "signals".as_ref()]).check();
    let expected = sorted((0..100).flat_map(|_| ["interrupted", "interrupted/handler"]));
    assert_eq!(stacks(&finished.trace, &finished.work), expected);
}

#[test]
fn names_may_be_made_at_run_time() {
    part("made_names", &["X made step 0 key 0=0", "X made step 1 key 1=1", "X made step 2 key 2=2"]);
}

#[test]
fn cpp() {
    let expected = sorted([
        "X types values bool=true char=\"c\" short=-3 unsigned=3 most=18446744073709551615 least=-9223372036854775808 \
         float=1.5 enum=2 literal=\"text\" string=\"a string\" array=\"abc\" null=null size=8 view=\"string\" empty=\"\"",
        "i app happened n=1",
        "C app queue length=3 free=0.5",
        "M metadata model name=\"unet3d\"",
        "X app twice",
        "X app twice",
        "X made Model",
        "X app train model=\"unet\" epochs=3",
        "X app throws depth=1 error=\"exception\"",
        "X app throws depth=0 error=\"exception\"",
        "X app caught",
        "X app in destructor",
        "X made made at run time",
        "X app by functions n=4",
    ]);
    for compiler in [&["g++", "-std=c++11"], &["g++", "-std=c++17"], &["clang++", "-std=c++20"]] {
        let finished = Case::command([program("weft_tour.cpp", compiler, Against::Weft)]).check();
        assert_eq!(sorted(annotations_of(&finished.trace)), expected, "{compiler:?}, in {}", finished.run.display());
        let nested = stacks(&finished.trace, &finished.work);
        assert!(nested.iter().any(|stack| stack == "throws/throws"), "{nested:?}");
    }
}

/// `libweft.a` inside a program finds the recorder of `weft run` as well.
#[test]
fn archive_under_weft_run() {
    let finished =
        Case::command([program("weft_tour.c", &["gcc", "-std=c99"], Against::WeftArchive).as_os_str(), "io".as_ref()])
            .check();
    let stacks = stacks(&finished.trace, &finished.work);
    assert_eq!(stacks, ["save", "save/close", "save/open", "save/payload", "save/payload/write"]);
}

/// A program that records itself.
struct Alone {
    scratch: Scratch,
    work: PathBuf,
    run: PathBuf,
}

impl Alone {
    fn new(name: &str) -> Alone {
        let scratch = Scratch::new(name);
        let (work, run) = (scratch.dir("work"), scratch.join("run"));
        Alone { scratch, work, run }
    }

    fn go(&self, program: &Path, ending: &str) -> Outcome {
        Job::new([program.as_os_str(), self.run.as_os_str(), ending.as_ref()], &self.work).run()
    }

    fn trace(&self, run: &Path) -> Trace {
        let trace = reader::read_run(run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
        assert!(trace.damage.is_empty(), "{}: {:?}", run.display(), trace.damage);
        trace
    }
}

/// The span, and the write in it, are in the run that the program named, whatever ended the program.
fn alone(against: Against, ending: &str, status: i32, expected: &[&str]) {
    let alone = Alone::new("weft-alone");
    let program = program("weft_alone.c", &["gcc", "-std=gnu11"], against);
    let outcome = alone.go(&program, ending);
    assert_eq!(outcome.status, status, "{ending}: {}", excerpt(&outcome.stderr));
    assert_eq!(excerpt(&outcome.stderr), excerpt(b""), "{ending}");
    if ending == "kill" {
        let recovered = weft(["recover".as_ref(), alone.run.as_os_str()], &alone.scratch);
        assert_eq!(recovered.status, 0, "{}", excerpt(&recovered.stderr));
    }
    let trace = alone.trace(&alone.run);
    assert_eq!(stacks(&trace, &alone.work), expected, "{ending}, in {}", alone.scratch.path().display());
    let verdict = weft(["check".as_ref(), alone.run.as_os_str()], &alone.scratch);
    assert_eq!(verdict.status, 0, "{ending}: {}{}", excerpt(&verdict.stdout), excerpt(&verdict.stderr));
}

const DURING: [&str; 4] = ["during", "during/close", "during/open", "during/write"];

#[test]
fn alone_until_return() {
    alone(Against::Weft, "return", 0, &DURING);
}

#[test]
fn alone_until_exit() {
    alone(Against::Weft, "exit", 5, &DURING);
}

#[test]
fn alone_until_underscore_exit() {
    alone(Against::Weft, "_exit", 6, &DURING);
}

#[test]
fn alone_until_sigkill() {
    alone(Against::Weft, "kill", 137, &DURING);
}

#[test]
fn alone_until_stop() {
    alone(Against::Weft, "stop", 0, &DURING);
}

#[test]
fn alone_with_a_child() {
    let child = ["in child", "in child/close", "in child/open", "in child/write"];
    alone(Against::Weft, "fork", 0, &sorted(DURING.into_iter().chain(child)));
}

/// Without the preload library beside it: the program's own recorder, which sees no I/O.
#[test]
fn alone_with_its_own_recorder() {
    let alone = Alone::new("weft-own-recorder");
    let program = program("weft_alone.c", &["gcc", "-std=gnu11"], Against::WeftArchive);
    let outcome = alone.go(&program, "exit");
    assert_eq!(outcome.status, 5);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(said.contains("calls of the C library are not recorded") && said.lines().count() == 1, "{said}");
    assert_eq!(stacks(&alone.trace(&alone.run), &alone.work), ["during"]);
}

#[test]
fn started_again() {
    let alone = Alone::new("weft-again");
    let program = program("weft_alone.c", &["gcc", "-std=gnu11"], Against::Weft);
    let outcome = alone.go(&program, "again");
    assert_eq!((outcome.status, excerpt(&outcome.stderr)), (0, excerpt(b"")));
    let again = ["again", "again/close", "again/open", "again/write"];
    let seen = stacks(&alone.trace(&alone.run), &alone.work);
    assert_eq!(seen, sorted(DURING.into_iter().chain(again)), "in {}", alone.scratch.path().display());
}

/// Under `weft run` a start changes nothing: there is one trace, the run's, and no other directory.
#[test]
fn a_start_joins_weft_run() {
    let program = program("weft_alone.c", &["gcc", "-std=gnu11"], Against::Weft);
    let scratch = Scratch::new("weft-joins");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    let job = Job::new([program.as_os_str(), "other".as_ref(), "return".as_ref()], &work).traced(&run);
    let outcome = job.run();
    assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
    assert!(!work.join("other").exists());
    let trace = reader::read_run(&run).expect("a run");
    let names: Vec<_> =
        all(&trace, Phase::Complete, "before").into_iter().chain(all(&trace, Phase::Complete, "during")).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// Nothing that a caller does wrong harms the program, as memory checkers see it.
fn survives(compiler: &[&str], wrapper: &[&str], against: Against) {
    let scratch = Scratch::new("misuse");
    let program = program("weft_misuse.c", compiler, against);
    for directory in [None, Some("run")] {
        let mut command: Vec<&str> = wrapper.to_vec();
        command.push(program.to_str().expect("UTF-8"));
        command.extend(directory);
        let outcome = Job::new(command, &scratch.dir("work")).run();
        let said = format!("{}{}", excerpt(&outcome.stdout), excerpt(&outcome.stderr));
        assert_eq!(outcome.status, 0, "{compiler:?} {wrapper:?} {directory:?}: {said}");
        assert!(outcome.stdout.ends_with(b"survived\n"), "{said}");
    }
}

#[test]
fn misuse() {
    survives(&["gcc", "-std=gnu11"], &[], Against::Weft);
    survives(&["gcc", "-std=gnu11"], &[], Against::WeftArchive);
}

#[test]
fn misuse_under_address_sanitizer() {
    survives(&["gcc", "-std=gnu11", "-fsanitize=address,undefined"], &[], Against::Weft);
}

#[test]
fn misuse_under_valgrind() {
    let wrapper =
        ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect"];
    survives(&["gcc", "-std=gnu11"], &wrapper, Against::Weft);
}

/// What a span used cannot be asked in a sandbox: the span is told without it, and nobody is killed.
#[test]
fn spans_in_a_sandbox_tell_nothing_of_what_they_used() {
    let scratch = Scratch::new("sandboxed");
    let run = scratch.join("run");
    let program = program("weft_sandboxed.c", &["gcc", "-std=c99"], Against::Weft);
    let mut job = Job::new([program], &scratch.dir("work")).traced(&run);
    job.command.insert(2, "--span-usage".into());
    let outcome = job.run();
    assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
    let trace = reader::read_run(&run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
    let has_usage = |name: &str| one(&trace, Phase::Complete, name).arg("rss_end").is_some();
    assert_eq!((has_usage("before"), has_usage("after")), (true, false));
}
