//! What must lie in the directory afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;
use weftline_format::event::{Event, Phase, Value};
use weftline_format::manifest::{RunManifest, SupervisorRecord};
use weftline_format::reader;

use super::Scratch;

/// One case.
type Case = fn(&Scratch);

/// All cases.
pub(crate) const ALL: &[(&str, Case)] = &[
    ("a_program_leaves_its_file", a_program_leaves_its_file),
    ("plain_text_without_compression", plain_text_without_compression),
    ("categories_are_left_out", categories_are_left_out),
    ("nothing_recorded_leaves_nothing", nothing_recorded_leaves_nothing),
    ("sessions_follow_each_other", sessions_follow_each_other),
    ("what_records_already_is_joined", what_records_already_is_joined),
    ("the_next_program_publishes_what_a_killed_one_left", the_next_program_publishes_what_a_killed_one_left),
    ("recover_publishes_what_a_killed_one_left", recover_publishes_what_a_killed_one_left),
    ("forked_children_have_files_of_their_own", forked_children_have_files_of_their_own),
    ("a_parent_publishes_its_dead_children", a_parent_publishes_its_dead_children),
    ("a_child_may_outlive_its_parent", a_child_may_outlive_its_parent),
    ("a_child_may_finish_and_begin_again", a_child_may_finish_and_begin_again),
    ("a_sudden_end_is_finished_by_the_command", a_sudden_end_is_finished_by_the_command),
    ("children_may_end_suddenly", children_may_end_suddenly),
    ("threads_that_still_run_do_no_harm", threads_that_still_run_do_no_harm),
    ("no_child_waits_for_a_lock_of_its_parent", no_child_waits_for_a_lock_of_its_parent),
    ("a_place_that_cannot_be_used_is_told", a_place_that_cannot_be_used_is_told),
    ("many_processes_share_a_place", many_processes_share_a_place),
    ("perfflow_verbose", perfflow_verbose),
    ("perfflow_compact_object", perfflow_compact_object),
    ("perfflow_usage", perfflow_usage),
    ("perfflow_children_with_one_name", perfflow_children_with_one_name),
    ("a_run_takes_several_sessions", a_run_takes_several_sessions),
];

/// What the program is called: this binary.
fn app() -> String {
    let own = std::env::current_exe().expect("this binary");
    own.file_name().expect("a name").to_string_lossy().into_owned()
}

fn log(pid: u32, end: &str) -> String {
    format!("log-{}-{pid}{end}", app())
}

/// The events of a file that are no metadata, which must be whole.
fn events(path: &Path) -> Vec<Event> {
    let trace = reader::read_file(path).expect("read");
    assert!(trace.damage.is_empty(), "{}: {:?}", path.display(), trace.damage);
    trace.events.into_iter().filter(|event| event.phase != Phase::Metadata).collect()
}

/// Names and indices of what a program told, marks left out.
fn spans_of(path: &Path) -> Vec<(String, i64)> {
    let all = events(path);
    let marks: Vec<&str> = all.iter().filter(|event| event.cat == "weft").map(|event| event.name.as_str()).collect();
    assert_eq!(marks, ["start", "end"], "{}", path.display());
    let own = all.iter().filter(|event| event.cat != "weft");
    own.map(|event| (event.name.clone(), event.arg("index").and_then(Value::as_i64).unwrap_or(-1))).collect()
}

fn list(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    expected.iter().map(|(name, index)| ((*name).to_owned(), *index)).collect()
}

/// Exactly these files with these contents, and nothing hidden.
fn check(scratch: &Scratch, expected: &[(String, &[(&str, i64)])]) {
    let mut names: Vec<&String> = expected.iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(scratch.files().iter().collect::<Vec<_>>(), names);
    for (name, contents) in expected {
        assert_eq!(spans_of(&scratch.file(name)), list(contents), "{name}");
    }
    assert_eq!(scratch.hidden(), Vec::<String>::new());
}

fn a_program_leaves_its_file(scratch: &Scratch) {
    let pid = scratch.plays_well("tells");
    check(scratch, &[(log(pid, ".pfw.gz"), &[("work", 1), ("work", 2)])]);
    let all = events(&scratch.file(&log(pid, ".pfw.gz")));
    assert!(all.iter().all(|event| event.pid == i64::from(pid)));
}

fn plain_text_without_compression(scratch: &Scratch) {
    let pid = scratch.plays_well("tells plainly");
    check(scratch, &[(log(pid, ".pfw"), &[("work", 1)])]);
    let text = std::fs::read_to_string(scratch.file(&log(pid, ".pfw"))).expect("text");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("["));
    lines.for_each(|line| assert!(serde_json::from_str::<Json>(line).is_ok_and(|line| line.is_object()), "{line}"));
}

fn categories_are_left_out(scratch: &Scratch) {
    let pid = scratch.plays_well("tells calls");
    check(scratch, &[(log(pid, ".pfw.gz"), &[("read", -1), ("mine", -1), ("work", 1)])]);
}

fn nothing_recorded_leaves_nothing(scratch: &Scratch) {
    scratch.plays_well("says nothing");
    check(scratch, &[]);
}

fn sessions_follow_each_other(scratch: &Scratch) {
    let pid = scratch.plays_well("comes again");
    check(
        scratch,
        &[
            (log(pid, ".pfw.gz"), &[("work", 1)]),
            (log(pid, "-2.pfw.gz"), &[("work", 2)]),
            (log(pid, "-3.pfw.gz"), &[("work", 3)]),
        ],
    );
}

fn what_records_already_is_joined(scratch: &Scratch) {
    let pid = scratch.plays_well("joins itself");
    check(scratch, &[(log(pid, ".pfw.gz"), &[("work", 1)])]);
}

/// The contents of a file whose process could not say that it ended.
fn unended_of(path: &Path) -> Vec<String> {
    events(path).into_iter().map(|event| event.name).collect()
}

fn the_next_program_publishes_what_a_killed_one_left(scratch: &Scratch) {
    let (killed, status) = scratch.play("is killed");
    assert!(!status.success() && scratch.files().is_empty());
    assert_eq!(scratch.hidden().len(), 1);
    let pid = scratch.plays_well("tells");
    let mut expected = [log(killed, ".pfw.gz"), log(pid, ".pfw.gz")];
    expected.sort();
    assert_eq!(scratch.files(), expected);
    assert_eq!(unended_of(&scratch.file(&log(killed, ".pfw.gz"))), ["start", "work"]);
    assert!(scratch.hidden().is_empty());
}

fn recover_publishes_what_a_killed_one_left(scratch: &Scratch) {
    let (killed, _) = scratch.play("is killed");
    for path in [scratch.file("other"), scratch.file("log-x")] {
        assert!(weftline_session::leftovers::find(&path).expect("looked").is_empty(), "{path:?}");
    }
    let by_directory = weftline_session::leftovers::find(scratch.path()).expect("found");
    for path in [scratch.file("log"), scratch.file("log-"), by_directory[0].clone()] {
        assert_eq!(weftline_session::leftovers::find(&path).expect("found").len(), 1, "{path:?}");
    }
    let published = weftline_session::leftovers::finish(&by_directory[0], false).expect("published");
    assert_eq!(published.files, [scratch.path().canonicalize().expect("there").join(log(killed, ".pfw.gz"))]);
    assert_eq!((published.events, published.open), (2, None));
    assert!(scratch.hidden().is_empty());
}

/// Visible files by what their process told first.
fn by_first(scratch: &Scratch) -> BTreeMap<(String, i64), Vec<(String, i64)>> {
    let files = scratch.files();
    let contents: Vec<_> =
        files.iter().filter(|name| name.contains(".pfw")).map(|name| spans_of(&scratch.file(name))).collect();
    contents.into_iter().map(|spans| (spans[0].clone(), spans)).collect()
}

fn forked_children_have_files_of_their_own(scratch: &Scratch) {
    let pid = scratch.plays_well("forks");
    let found = by_first(scratch);
    assert_eq!(found.len(), 4);
    assert_eq!(spans_of(&scratch.file(&log(pid, ".pfw.gz"))), list(&[("parent", 0), ("parent", 9)]));
    for child in 1..=3 {
        assert_eq!(found[&("child".to_owned(), child)], list(&[("child", child)]));
    }
    assert!(scratch.hidden().is_empty());
}

fn a_parent_publishes_its_dead_children(scratch: &Scratch) {
    let pid = scratch.plays_well("has silent and killed children");
    let files = scratch.files();
    assert_eq!(files.len(), 2, "{files:?}");
    let other = files.iter().find(|name| **name != log(pid, ".pfw.gz")).expect("the killed child's");
    assert_eq!(unended_of(&scratch.file(other)), ["start", "killed"]);
    assert!(scratch.hidden().is_empty());
}

fn a_child_may_outlive_its_parent(scratch: &Scratch) {
    let pid = scratch.plays_well("child outlives");
    assert_eq!(scratch.files(), [log(pid, ".pfw.gz"), "told".to_owned()]);
    assert_eq!(scratch.hidden().len(), 1);
    std::fs::write(scratch.file("go"), "").expect("written");
    scratch.until("the child's file", || scratch.hidden().is_empty());
    assert_eq!(by_first(scratch)[&("child".to_owned(), 1)], list(&[("child", 1), ("child", 2)]));
}

fn a_child_may_finish_and_begin_again(scratch: &Scratch) {
    scratch.plays_well("child finishes and goes on");
    let found = by_first(scratch);
    assert_eq!(found.keys().cloned().collect::<Vec<_>>(), list(&[("child", 1), ("child", 2), ("parent", 0)]));
    assert!(scratch.hidden().is_empty());
}

fn a_sudden_end_is_finished_by_the_command(scratch: &Scratch) {
    let pid = scratch.plays_well("ends suddenly");
    check(scratch, &[(log(pid, ".pfw.gz"), &[("work", 1)])]);
}

fn children_may_end_suddenly(scratch: &Scratch) {
    scratch.plays_well("ends suddenly in a child");
    let found = by_first(scratch);
    assert_eq!(found[&("child".to_owned(), 1)], list(&[("child", 1)]));
    assert_eq!(found[&("parent".to_owned(), 0)], list(&[("parent", 0), ("parent", 1)]));
    assert!(scratch.hidden().is_empty());
}

fn threads_that_still_run_do_no_harm(scratch: &Scratch) {
    let pid = scratch.plays_well("is threaded");
    assert_eq!(scratch.files(), [log(pid, ".pfw.gz")]);
    let mut per_thread: BTreeMap<i64, usize> = BTreeMap::new();
    for event in events(&scratch.file(&log(pid, ".pfw.gz"))).iter().filter(|event| event.cat != "weft") {
        *per_thread.entry(event.arg("index").and_then(Value::as_i64).expect("an index")).or_default() += 1;
    }
    assert_eq!(per_thread.len(), 4, "{per_thread:?}");
    assert!(scratch.hidden().is_empty());
}

fn no_child_waits_for_a_lock_of_its_parent(scratch: &Scratch) {
    let pid = scratch.plays_well("forks while it finishes");
    let prefix = log(pid, "");
    let own = scratch.files().iter().filter(|name| name.starts_with(&prefix)).count();
    assert_eq!(own, 20, "{:?}", scratch.files());
    // What children had to leave is published by the next one, at the latest.
    scratch.plays_well("tells");
    assert!(scratch.hidden().is_empty(), "{:?}", scratch.hidden());
}

fn a_place_that_cannot_be_used_is_told(scratch: &Scratch) {
    let pid = scratch.plays_well("cannot begin");
    assert_eq!(scratch.files(), [log(pid, ".pfw.gz"), "plain".to_owned()]);
    assert_eq!(spans_of(&scratch.file(&log(pid, ".pfw.gz"))), list(&[("work", 1)]));
    assert!(scratch.hidden().is_empty());
}

fn many_processes_share_a_place(scratch: &Scratch) {
    let children: Vec<_> =
        (0..12).map(|number| scratch.start(if number % 4 == 3 { "is killed" } else { "forks" })).collect();
    for mut child in children {
        child.wait().expect("waited");
    }
    scratch.plays_well("tells");
    assert_eq!(scratch.files().len(), 9 * 4 + 3 + 1, "{:?}", scratch.files());
    assert!(scratch.hidden().is_empty(), "{:?}", scratch.hidden());
    for name in scratch.files() {
        assert!(!events(&scratch.file(&name)).is_empty());
    }
}

/// The events of a file of PerfFlowAspect, which is JSON once its list is ended as the original's users do that.
fn perfflow_events(path: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(path).expect("read");
    let whole = format!("{text} {{}}]{}", if text.starts_with('{') { "}" } else { "" });
    let parsed: Json = serde_json::from_str(&whole).unwrap_or_else(|error| panic!("{error}: {whole}"));
    let (last, events) =
        parsed.get("traceEvents").unwrap_or(&parsed).as_array().and_then(|list| list.split_last()).expect("a list");
    assert_eq!(last, &serde_json::json!({}));
    events.to_vec()
}

fn phases(events: &[Json]) -> Vec<String> {
    events
        .iter()
        .map(|event| format!("{}{}", event["ph"].as_str().expect("ph"), event["name"].as_str().expect("name")))
        .collect()
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name").trim().to_owned()
}

fn perfflow_verbose(scratch: &Scratch) {
    let pid = scratch.plays_well("verbose");
    let logs = scratch.file("LOGS/a/b");
    let names: Vec<_> =
        std::fs::read_dir(&logs).expect("listed").map(|entry| entry.expect("an entry").file_name()).collect();
    let name = format!("perfflow.array.{}.{pid}.pfw", host());
    assert_eq!(names, [name.as_str()]);
    let events = perfflow_events(&logs.join(name));
    assert_eq!(phases(&events), ["Bfoo", "Bfoo", "Efoo", "Efoo"]);
    let times: Vec<f64> = events.iter().map(|event| event["ts"].as_f64().expect("a real")).collect();
    assert!(times.is_sorted() && times[0] > 1.7e15);
    assert!(events.iter().all(|event| event["pid"] == pid && event["tid"] == pid && event["cat"] == "__main__"));
}

fn perfflow_compact_object(scratch: &Scratch) {
    let pid = scratch.plays_well("compact object");
    assert_eq!(scratch.files(), [format!("perfflow.object.part.{pid}.pfw")]);
    let events = perfflow_events(&scratch.file(&scratch.files()[0]));
    assert_eq!(phases(&events), ["Xfoo", "bbar", "ebar", "sflow"]);
    assert!(events[0]["dur"].is_f64());
    assert_eq!((&events[1]["scope"], &events[1]["id"], &events[3]["id"]), (&"s".into(), &7.into(), &100.into()));
    assert!(scratch.hidden().is_empty());
}

fn perfflow_usage(scratch: &Scratch) {
    scratch.plays_well("uses");
    let events = perfflow_events(&scratch.file(&scratch.files()[0]));
    assert_eq!(phases(&events), ["Cspin", "Cspin", "Xspin"]);
    let (cpu, memory) = (&events[0]["args"]["cpu_usage"], &events[0]["args"]["memory_usage"]);
    let expected = 100.0 * 20_000.0 / events[2]["dur"].as_f64().expect("microseconds");
    assert!((cpu.as_f64().expect("a real") / expected - 1.0).abs() < 0.001, "{cpu} is not {expected}");
    assert!((500.0..1e6).contains(&memory.as_f64().expect("a real")), "{memory}");
    assert_eq!(events[1]["args"], serde_json::json!({"cpu_usage": 0, "memory_usage": 0}));
}

fn perfflow_children_with_one_name(scratch: &Scratch) {
    scratch.plays_well("fixed name");
    assert_eq!(
        scratch.files(),
        ["perfflow.array.generic-2.pfw", "perfflow.array.generic-3.pfw", "perfflow.array.generic.pfw"]
    );
    let mut pids: Vec<i64> = Vec::new();
    for name in scratch.files() {
        let events = perfflow_events(&scratch.file(&name));
        assert_eq!(phases(&events), ["Bfoo", "Efoo"], "{name}");
        pids.push(events[0]["pid"].as_i64().expect("a pid"));
    }
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 3);
    assert!(scratch.hidden().is_empty());
}

fn a_run_takes_several_sessions(scratch: &Scratch) {
    scratch.plays_well("run");
    assert_eq!(scratch.names(), ["run"]);
    let run = scratch.file("run");
    assert!(!RunManifest::read(&run).expect("a manifest").id.is_empty());
    let trace = reader::read_run(&run).expect("read");
    assert!(trace.damage.is_empty(), "{:?}", trace.damage);
    let work = trace.events.iter().filter(|event| event.name == "work");
    let mut indices: Vec<i64> = work.filter_map(|event| event.arg("index").and_then(Value::as_i64)).collect();
    indices.sort_unstable();
    assert_eq!(indices, [1, 2]);
    assert_eq!(SupervisorRecord::read_all(&run).0.len(), 2);
    // Another process leaves the finished run alone.
    scratch.plays_well("run");
    assert_eq!(scratch.names(), ["run", "run-2"]);
}
