//! Programs woven for PerfFlowAspect: the two functions that woven code calls, the files that they leave.
//!
//! A file is compared event by event: name, kind and the order of its fields. The cases are those that the original
//! gets wrong, and its own smoke tests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weftline_format::reader;
use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::product::workspace;
use weftline_testkit::run::{Job, Outcome, weft};

use super::installed::{Against, gpus, program};
use super::{annotations_of, sorted, stacks};

const PLAIN: &str = "name cat pid tid ts ph";
const SPAN: &str = "name cat pid tid ts ph dur";
const COUNTER: &str = "name cat pid tid ts ph args";
const ASYNC: &str = "name cat pid tid ts ph scope id";
const FLOW: &str = "name cat pid tid ts ph bp id";

fn woven() -> PathBuf {
    program("woven.c", &["gcc", "-std=gnu11"], Against::Perfflow)
}

/// One run of the woven program in a directory of its own.
struct Trial {
    scratch: Scratch,
    work: PathBuf,
    outcome: Outcome,
}

/// One event of a file.
#[derive(Clone, Debug)]
struct Event {
    value: Value,
    /// Names of its fields, in order.
    fields: String,
}

impl Event {
    fn text(&self, key: &str) -> &str {
        self.value[key].as_str().unwrap_or_else(|| panic!("{key} in {}", self.value))
    }

    fn number(&self, key: &str) -> f64 {
        self.value[key].as_f64().unwrap_or_else(|| panic!("{key} in {}", self.value))
    }

    /// `foo B`
    fn kind(&self) -> String {
        format!("{} {}", self.text("name"), self.text("ph"))
    }
}

impl Trial {
    fn new(part: &str, options: &str) -> Trial {
        Trial::with(&[woven().to_str().expect("UTF-8"), part], &[("PERFFLOW_OPTIONS", options)])
    }

    fn with(command: &[&str], environment: &[(&str, &str)]) -> Trial {
        let scratch = Scratch::new("perfflow");
        let work = scratch.dir("work");
        let mut job = Job::new(command.iter().copied(), &work);
        job.environment = environment.iter().map(|(name, value)| (name.into(), Some(value.into()))).collect();
        let outcome = job.run();
        Trial { scratch, work, outcome }
    }

    fn ends(self, status: i32) -> Trial {
        assert_eq!(self.outcome.status, status, "{}", excerpt(&self.outcome.stderr));
        assert_eq!(excerpt(&self.outcome.stderr), excerpt(b""));
        self
    }

    /// All that lies in the working directory, hidden files included.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.work).expect("the working directory");
        sorted(entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()))
    }

    /// The events of the only file.
    fn events(&self) -> Vec<Event> {
        match &self.files()[..] {
            [name] => read(&self.work.join(name)),
            files => panic!("one file was expected in {}, not {files:?}", self.scratch.path().display()),
        }
    }

    /// Compares the sequence of events.
    fn tells(&self, expected: &[(String, &str)]) -> Vec<Event> {
        let events = self.events();
        let seen: Vec<(String, &str)> = events.iter().map(|event| (event.kind(), event.fields.as_str())).collect();
        assert_eq!(seen, expected, "in {}", self.scratch.path().display());
        events
    }
}

/// Reads a file as it is written unless `log-close` says otherwise: its list is open, and ` {}]` makes it JSON.
fn read(path: &Path) -> Vec<Event> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let ended = format!("{text} {{}}]{}", if text.starts_with('{') { "}" } else { "" });
    let whole: Value =
        serde_json::from_str(&ended).unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
    let list = whole.as_array().or_else(|| whole["traceEvents"].as_array()).expect("a list of events");
    let events = lines(&text);
    assert_eq!(events.len() + 1, list.len(), "one event on each line: {text}");
    events
}

fn lines(text: &str) -> Vec<Event> {
    let whole = text.lines().map(str::trim).filter(|line| line.starts_with("{\"name\""));
    whole
        .map(|line| {
            let line = line.trim_end_matches(',');
            let value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            Event { value, fields: fields(line) }
        })
        .collect()
}

/// The keys of the outermost object in their order.
fn fields(line: &str) -> String {
    let (mut depth, mut at, mut keys) = (0, 0, Vec::new());
    while at < line.len() {
        match line.as_bytes()[at] {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'"' => {
                let start = at + 1;
                at = start;
                while line.as_bytes()[at] != b'"' {
                    at += if line.as_bytes()[at] == b'\\' { 2 } else { 1 };
                }
                if depth == 1 && line[at + 1..].starts_with(':') {
                    keys.push(&line[start..at]);
                }
            }
            _ => {}
        }
        at += 1;
    }
    keys.join(" ")
}

/// `foo`, which calls `bar`, which calls `bas`, four times.
fn smoke(one: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    let round = || one.iter().map(|(kind, fields)| ((*kind).to_owned(), *fields));
    (0..4).flat_map(|_| round()).collect()
}

const VERBOSE: [(&str, &str); 6] =
    [("foo B", PLAIN), ("bar B", PLAIN), ("bas B", PLAIN), ("bas E", PLAIN), ("bar E", PLAIN), ("foo E", PLAIN)];
const COMPACT: [(&str, &str); 3] = [("bas X", SPAN), ("bar X", SPAN), ("foo X", SPAN)];

#[test]
fn verbose() {
    let trial = Trial::new("smoke", "").ends(0);
    let events = trial.tells(&smoke(&VERBOSE));
    assert!(
        events.iter().all(|event| event.text("cat") == "/src/woven.c" && event.number("pid") == event.number("tid"))
    );
    let times: Vec<f64> = events.iter().map(|event| event.number("ts")).collect();
    assert!(times.is_sorted() && times[1] - times[0] >= 1000.0 && times[23] - times[0] < 60e6, "{times:?}");
    let files = trial.files();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    assert_eq!(files, [format!("perfflow.array.{}.{}.pfw", host.trim(), events[0].number("pid"))]);
}

#[test]
fn compact() {
    let events = Trial::new("smoke", "log-event=Compact").ends(0).tells(&smoke(&COMPACT));
    for round in events.chunks(3) {
        let [bas, bar, foo] = [0, 1, 2].map(|i| (round[i].number("ts"), round[i].number("dur")));
        assert!(foo.1 >= 2000.0 && bar.1 >= 1000.0 && bas.1 < bar.1 && foo.1 < 60e6, "{round:?}");
        assert!(foo.0 <= bar.0 && bar.0 <= bas.0 && bas.0 + bas.1 <= foo.0 + foo.1, "{round:?}");
    }
}

/// Two counters for each span: behind its end, or before the whole.
#[test]
fn usage() {
    let counters = |name: &'static str| [(name, COUNTER), (name, COUNTER)];
    let mut verbose: Vec<(&str, &str)> = VERBOSE[..4].to_vec();
    verbose.extend(counters("bas C"));
    verbose.push(VERBOSE[4]);
    verbose.extend(counters("bar C"));
    verbose.push(VERBOSE[5]);
    verbose.extend(counters("foo C"));
    let mut compact = Vec::new();
    for (span, counter) in COMPACT.iter().zip(["bas C", "bar C", "foo C"]) {
        compact.extend(counters(counter));
        compact.push(*span);
    }
    for (options, expected) in [("cpu-mem-usage=True", verbose), ("cpu-mem-usage=True:log-event=compact", compact)] {
        let events = Trial::new("smoke", options).ends(0).tells(&smoke(&expected));
        let counters: Vec<&Event> = events.iter().filter(|event| event.text("ph") == "C").collect();
        for pair in counters.chunks(2) {
            let [first, last] = [0, 1].map(|i| &pair[i].value["args"]);
            assert!(first["memory_usage"].as_u64().is_some_and(|kib| (500..500_000).contains(&kib)), "{pair:?}");
            assert!(first["cpu_usage"].as_f64().is_some_and(|percent| (0.0..=400.0).contains(&percent)), "{pair:?}");
            assert!(last["memory_usage"] == 0 && last["cpu_usage"] == 0.0, "{pair:?}");
            assert!(pair[0].number("ts") <= pair[1].number("ts"), "{pair:?}");
        }
    }
}

/// Counters tell the use of GPUs where there are any; where there are none the user hears so, and nothing is added.
#[test]
fn use_of_gpus() {
    let gpus = gpus();
    let woven = woven();
    for (options, keys) in [
        ("gpu-usage=True:log-event=compact", "gpu_usage gpu_memory_usage"),
        ("gpu-usage=True:cpu-mem-usage=True:log-event=compact", "cpu_usage memory_usage gpu_usage gpu_memory_usage"),
    ] {
        let library_path = gpus.path().to_str().expect("UTF-8");
        let trial = Trial::with(
            &[woven.to_str().expect("UTF-8"), "smoke"],
            &[("PERFFLOW_OPTIONS", options), ("LD_LIBRARY_PATH", library_path)],
        )
        .ends(0);
        let counters: Vec<Event> = trial.events().into_iter().filter(|event| event.text("ph") == "C").collect();
        assert_eq!(counters.len(), 24, "{options}");
        for pair in counters.chunks(2) {
            let [first, last] = [0, 1].map(|i| &pair[i].value["args"]);
            assert_eq!(
                (&first["gpu_usage"], &first["gpu_memory_usage"]),
                (&83.0.into(), &(3 << 20).into()),
                "{pair:?}"
            );
            assert_eq!((&last["gpu_usage"], &last["gpu_memory_usage"]), (&0.0.into(), &0.into()), "{pair:?}");
            assert_eq!(first.as_object().map(|args| args.len()), Some(keys.split(' ').count()), "{pair:?}");
        }
    }
    let trial = Trial::new("smoke", "gpu-usage=True:log-event=compact");
    let said = String::from_utf8_lossy(&trial.outcome.stderr).into_owned();
    assert!(said.lines().count() == 1 && said.contains("gpu-usage: NVIDIA's management library"), "{said}");
    trial.tells(&smoke(&COMPACT));
}

#[test]
fn object_format() {
    let trial = Trial::new("smoke", "log-format=Object").ends(0);
    trial.tells(&smoke(&VERBOSE));
    let name = &trial.files()[0];
    assert!(name.starts_with("perfflow.object."), "{name}");
    let text = fs::read_to_string(trial.work.join(name)).expect("text");
    let head =
        "{\n  \"displayTimeUnit\": \"us\",\n  \"otherData\": {\n\n  },\n  \"traceEvents\": [\n{\"name\": \"foo\", ";
    assert!(text.starts_with(head), "{text}");
}

/// Options name files and directories; what is wrong in them is told in one sentence, and the program runs.
#[test]
fn options() {
    let smoke = |options: &str, environment: &[(&str, &str)]| {
        let mut all = vec![("PERFFLOW_OPTIONS", options)];
        all.extend(environment);
        let trial = Trial::with(&[woven().to_str().expect("UTF-8"), "smoke"], &all);
        assert_eq!((trial.outcome.status, &*trial.outcome.stdout), (0, &b"smoke\n"[..]), "{options}");
        trial
    };
    for (options, file) in [
        ("name=x:log-filename-include=name", "perfflow.array.x.pfw"),
        ("name=a=b:log-filename-include=name:log-format=object", "perfflow.object.a=b.pfw"),
        ("log-filename-include=name,instance-path", "perfflow.array.generic.{356a192b}.pfw"),
    ] {
        let trial = smoke(options, &[]).ends(0);
        assert_eq!(trial.files(), [file], "{options}");
    }
    let job = [("SLURM_JOB_ID", "123456"), ("SLURM_STEP_ID", "1"), ("PERFFLOW_INSTANCE_PATH", "outer")];
    let trial = smoke("log-filename-include=instance-path", &job).ends(0);
    assert_eq!(trial.files(), ["perfflow.array.{outer.90effdba}.pfw"]);
    let options = [("PERFFLOW_OPTIONS", "log-filename-include=instance-path"), ("PERFFLOW_INSTANCE_PATH", "outer")];
    let trial = Trial::with(&[woven().to_str().expect("UTF-8"), "instance"], &options).ends(0);
    assert_eq!(trial.outcome.stdout, b"outer.356a192b\ninstance\n", "handed on before any woven function has run");
    let trial = smoke("log-dir=a/b:log-filename-include=name", &[]).ends(0);
    assert_eq!(trial.files(), ["a"]);
    assert_eq!(read(&trial.work.join("a/b/perfflow.array.generic.pfw")).len(), 24);
    assert_eq!(smoke("log-enable=False", &[]).ends(0).files(), Vec::<String>::new());
    for wrong in ["log-event=foo", "garbage", "log-enable=perhaps", "nonsense=1"] {
        let trial = smoke(wrong, &[]);
        let said = String::from_utf8_lossy(&trial.outcome.stderr).into_owned();
        assert!(said.lines().count() == 1 && said.starts_with("weftline: PERFFLOW_OPTIONS"), "{wrong}: {said}");
        assert_eq!(trial.events().len(), 24, "{wrong}");
    }
    let trial = smoke("log-dir=/proc/no/such/place", &[]);
    let said = String::from_utf8_lossy(&trial.outcome.stderr).into_owned();
    assert!(said.lines().count() == 1 && said.contains("nothing is recorded"), "{said}");
}

/// The original gave the outer calls durations since 1970.
#[test]
fn recursion_in_compact_mode() {
    let expected = vec![("rec X".to_owned(), SPAN); 4];
    let events = Trial::new("recursion", "log-event=Compact").ends(0).tells(&expected);
    for (depth, event) in (1..).zip(&events) {
        let dur = event.number("dur");
        assert!((2000.0 * f64::from(depth)..60e6).contains(&dur), "{depth}: {dur}");
    }
    let starts: Vec<f64> = events.iter().rev().map(|event| event.number("ts")).collect();
    assert!(starts.is_sorted(), "{starts:?}");
}

/// The original crashed in each of five runs.
#[test]
fn threads() {
    for (options, each) in [("log-event=Compact", 1), ("", 2), ("log-event=Compact:cpu-mem-usage=True", 3)] {
        let events = Trial::new("threads", options).ends(0).events();
        assert_eq!(events.len(), 8 * 500 * 2 * each, "{options}");
        let tids: std::collections::BTreeSet<u64> = events.iter().map(|event| event.number("tid") as u64).collect();
        assert_eq!(tids.len(), 8, "{options}");
    }
}

/// Pointcuts that tell one end only: in compact mode the original told nothing.
#[test]
fn before_and_after() {
    let expected = [("f_before B".to_owned(), PLAIN), ("f_after E".to_owned(), PLAIN)];
    Trial::new("halves", "").ends(0).tells(&expected);
    Trial::new("halves", "log-event=Compact").ends(0).tells(&expected);
}

/// The original blocked for ever at the second end, and had no time from the second event on.
#[test]
fn async_events() {
    for options in ["", "log-event=Compact"] {
        let trial = Trial::new("async", options).ends(0);
        let events = trial.events();
        let seen: Vec<String> = events
            .iter()
            .map(|event| {
                assert_eq!(event.fields, ASYNC);
                format!("{} {} {}", event.kind(), event.text("scope"), event.value["id"])
            })
            .collect();
        let expected = [
            "starts b sc1 0",
            "starts b sc1 1",
            "whole b sc2 2",
            "whole e sc2 2",
            "ends e sc1 0",
            "ends e sc1 1",
            "whole b sc2 3",
            "whole e sc2 3",
            "alone e NA 4",
        ];
        assert_eq!(seen, expected, "{options}");
        let times: Vec<f64> = events.iter().map(|event| event.number("ts")).collect();
        assert!(times.is_sorted() && times[0] > 1.6e15, "{times:?}");
    }
}

/// Each beginning has its own id, and each end, on another thread, the id of a beginning.
#[test]
fn async_ids_pair_across_threads() {
    let events = Trial::new("async_threads", "").ends(0).events();
    let ends = |name: &str, phase: &str| {
        let chosen = events.iter().filter(|event| event.kind() == format!("{name} {phase}"));
        sorted(chosen.map(|event| (event.number("id") as u64, event.number("tid") as u64)))
    };
    for (name, count, same_thread) in [("request", 8, false), ("step", 800, true)] {
        let (begins, ends) = (ends(name, "b"), ends(name, "e"));
        assert_eq!((begins.len(), ends.len()), (count, count));
        let ids: std::collections::BTreeSet<u64> = begins.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), count, "{begins:?}");
        for (begin, end) in begins.iter().zip(&ends) {
            assert!(begin.0 == end.0 && (begin.1 == end.1) == same_thread, "{begin:?} {end:?}");
        }
    }
}

/// Every arrow has an id of its own; the original's was always 100.
#[test]
fn flows() {
    let expected = |kinds: &[&str]| {
        kinds
            .iter()
            .map(|kind| ((*kind).to_owned(), if kind.starts_with("flow") { FLOW } else { PLAIN }))
            .collect::<Vec<_>>()
    };
    let kinds = [
        "f_out B",
        "flow s",
        "f_out E", // the first arrow starts
        "f_outin B",
        "flow s",
        "flow f",
        "f_outin E", // the second one starts, the first one ends
        "f_in B",
        "flow f",
        "f_in E", // the second one ends
        "f_inout B",
        "flow f",
        "flow s",
        "f_inout E", // an end without a start, the third one starts
        "f_before B",
        "flow f", // the third one ends
        "flow s",
        "f_after E",
    ];
    let events = Trial::new("flow", "").ends(0).tells(&expected(&kinds));
    let flows: Vec<&Event> = events.iter().filter(|event| event.text("name") == "flow").collect();
    let ids: Vec<u64> = flows.iter().map(|event| event.number("id") as u64).collect();
    let [first, second, first_end, second_end, alone, third, third_end, last] = ids[..] else { panic!("{ids:?}") };
    assert!(first == first_end && second == second_end && third == third_end, "{ids:?}");
    assert_eq!(std::collections::BTreeSet::from([first, second, third, alone, last]).len(), 5, "{ids:?}");
    assert!(flows.iter().all(|event| event.text("bp") == "e" && event.text("cat") == "flow"));
    assert!(flows.iter().all(|event| event.number("ts") > 1.6e15));

    let compact = Trial::new("flow", "log-event=Compact").ends(0).events();
    let kinds: Vec<String> = compact.iter().map(Event::kind).collect();
    assert_eq!(kinds[..7], ["flow s", "f_out X", "flow s", "flow f", "f_outin X", "flow f", "f_in X"]);
}

/// Names are those of the source; texts of any kind are kept.
#[test]
fn names() {
    let events = Trial::new("names", "").ends(0).events();
    let begins: Vec<&str> =
        events.iter().filter(|event| event.text("ph") == "B").map(|event| event.text("name")).collect();
    let expected = [
        "K::operator()",
        "(anonymous namespace)::hidden",
        "tfun<int>",
        "main::$_0::operator()",
        "plain",
        "odd\n\u{fffd}",
    ];
    assert_eq!(begins, expected);
    assert_eq!(events.last().expect("events").text("cat"), "caf\u{fffd} \"quoted\"");
}

/// Each process has a file of its own; the original's last one to exit overwrote the others'.
#[test]
fn forks() {
    let trial = Trial::new("forks", "").ends(0);
    let files = trial.files();
    assert_eq!(files.len(), 2, "{files:?}");
    let kinds = files.iter().map(|name| read(&trial.work.join(name)).iter().map(Event::kind).collect::<Vec<_>>());
    let expected = [vec!["child B", "child E"], vec!["parent B", "parent E", "main B", "main E"]];
    assert_eq!(sorted(kinds), expected);
}

/// The original left no file at all.
#[test]
fn sudden_ends() {
    let trial = Trial::new("_exit", "log-event=Compact").ends(4);
    trial.tells(&smoke(&COMPACT));
    for (part, status) in [("segv", 139), ("kill", 137)] {
        let trial = Trial::new(part, "log-event=Compact").ends(status);
        let recovered = weft(["recover".as_ref(), trial.work.as_os_str()], &trial.scratch);
        assert_eq!(recovered.status, 0, "{part}: {}", excerpt(&recovered.stderr));
        trial.tells(&smoke(&COMPACT));
    }
}

/// The next process at the same place brings what a killed one left.
#[test]
fn what_a_killed_process_left_is_found() {
    let trial = Trial::new("kill", "").ends(137);
    let mut job = Job::new([woven().as_os_str(), "halves".as_ref()], &trial.work);
    job.environment.push(("PERFFLOW_OPTIONS".into(), Some("".into())));
    assert_eq!(job.run().status, 0);
    let files = trial.files();
    let counts = sorted(files.iter().map(|name| read(&trial.work.join(name)).len()));
    assert_eq!(counts, [2, 24], "{files:?}");
}

/// Functions that were left without the weaver's call do not bend the nesting of others, and are not lost.
#[test]
fn functions_left_by_other_ways() {
    let kinds = |part: &str, options: &str, status: i32| {
        Trial::new(part, options).ends(status).events().iter().map(Event::kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds("jumps", "", 0), ["outer B", "lost B", "lost E", "outer E"]);
    assert_eq!(kinds("jumps", "log-event=Compact", 0), ["lost X", "outer X"]);
    assert_eq!(kinds("exits", "", 3), ["leaves B", "leaves E", "exits B", "exits E"]);
    assert_eq!(kinds("exits", "log-event=Compact", 3), ["leaves X", "exits X"]);
}

#[test]
fn nothing_woven_leaves_nothing() {
    assert_eq!(Trial::new("nothing", "").ends(0).files(), Vec::<String>::new());
}

#[test]
fn misuse() {
    let valgrind =
        ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect"];
    let asan = ["gcc", "-std=gnu11", "-fsanitize=address,undefined"];
    for (compiler, wrapper) in
        [(&["gcc", "-std=gnu11"][..], &[][..]), (&asan, &[]), (&["gcc", "-std=gnu11"], &valgrind)]
    {
        let program = program("woven.c", compiler, Against::Perfflow);
        // Valgrind takes seconds to load the libraries.
        let parts = if wrapper.is_empty() { &["nulls", "jumps", "async", "forks"][..] } else { &["nulls", "forks"] };
        for part in parts.iter().copied() {
            let words: Vec<&str> = wrapper.iter().copied().chain([program.to_str().expect("UTF-8"), part]).collect();
            let trial = Trial::with(&words, &[("PERFFLOW_OPTIONS", "log-event=compact")]);
            assert_eq!(trial.outcome.status, 0, "{words:?}: {}", excerpt(&trial.outcome.stderr));
        }
    }
}

/// Under `weft run` woven functions are part of the run; the options still say how they are told.
#[test]
fn under_weft_run() {
    let scratch = Scratch::new("perfflow-run");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    let mut job = Job::new([woven().as_os_str(), "smoke".as_ref()], &work).traced(&run);
    job.environment.push(("PERFFLOW_OPTIONS".into(), Some("log-event=Compact".into())));
    let outcome = job.run();
    assert_eq!((outcome.status, excerpt(&outcome.stderr)), (0, excerpt(b"")));
    assert!(outcome.files.is_empty(), "{:?}", outcome.files);
    let trace = reader::read_run(&run).expect("a run");
    let spans = ["X /src/woven.c bar", "X /src/woven.c bas", "X /src/woven.c foo"];
    assert_eq!(sorted(annotations_of(&trace)), sorted(spans.repeat(4)), "in {}", run.display());
    assert_eq!(stacks(&trace, &work), sorted(["foo", "foo/bar", "foo/bar/bas"].repeat(4)));
}

/// The same events as PerfFlowAspect's own runtime wrote for its smoke test, where those files are at hand.
#[test]
#[allow(clippy::print_stderr, reason = "says what was not compared")]
fn as_the_original() {
    let golden = workspace().join("../shared/golden/perfflowaspect/c");
    if !golden.is_dir() {
        eprintln!("not compared with the original: {} is not there", golden.display());
        return;
    }
    for (name, options) in [
        ("smoketest_verbose", "log-event=Verbose"),
        ("smoketest_compact", "log-event=Compact"),
        ("smoketest_cpumem_verbose", "cpu-mem-usage=True"),
        ("smoketest_cpumem_compact", "cpu-mem-usage=True:log-event=compact"),
        ("smoketest_object", "log-format=Object"),
    ] {
        let directory = golden.join(name);
        let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let file =
            entries.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "pfw"));
        let text = fs::read_to_string(file.expect("a trace")).expect("text");
        let shape =
            |events: &[Event]| events.iter().map(|event| (event.kind(), event.fields.clone())).collect::<Vec<_>>();
        let trial = Trial::new("smoke", options).ends(0);
        assert_eq!(shape(&trial.events()), shape(&lines(&text)), "{name}");
    }
}
