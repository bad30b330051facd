//! The generator of `make bench-analysis`: its forms hold the same events, those that it says, and the same ones every time.
#![allow(dead_code, reason = "the modules are those of examples/generate_trace, which uses all of them")]

#[path = "../../examples/generate_trace/dftracer.rs"]
mod dftracer;
#[path = "../../examples/generate_trace/outputs.rs"]
mod outputs;
#[path = "../../examples/generate_trace/run.rs"]
mod run;
#[path = "../../examples/generate_trace/workload.rs"]
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use outputs::{Forms, Summary, generate};
use weftline_format::event::{Event, Phase};
use weftline_format::reader::{Trace, read_file, read_run};

const EVENTS: u64 = 60_000;

fn forms_in(directory: &Path) -> Forms {
    Forms {
        single: Some(directory.join("single.pfw.gz")),
        multi: Some(directory.join("multi.pfw.gz")),
        plain: Some(directory.join("plain.pfw")),
        run: Some(directory.join("run")),
    }
}

fn is_event(event: &Event) -> bool {
    event.phase != Phase::Metadata
}

/// What tells an event from others in every form: name, category, thread, microsecond, file, data.
fn lines_of(trace: &Trace) -> Vec<String> {
    let mut lines: Vec<_> = (trace.events.iter().filter(|event| is_event(event)))
        .map(|event| {
            let start = event.start_ns.expect("every generated event has a time").div_euclid(1_000);
            let shown = |key| event.arg(key).map(|value| format!("{value:?}"));
            let args = ["fd", "ret", "offset", "flags", "epoch", "image_size", "note", "loss", "optimizer"].map(shown);
            let seek = (event.name == "lseek64").then_some("");
            let args = seek.map_or(format!("{args:?}"), str::to_owned);
            let path = trace.path_of(event);
            format!("{start} {}/{} {}/{} {path:?} {args}", event.cat, event.name, event.pid, event.tid)
        })
        .collect();
    lines.sort_unstable();
    lines
}

/// Compares a form with what the generator said and with what another form told.
fn check(form: &str, trace: &Trace, summary: &Summary, expected: &[String]) {
    assert!(trace.damage.is_empty(), "{form}: {:?}", trace.damage.flaws.first());
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for event in trace.events.iter().filter(|event| is_event(event)) {
        *counts.entry((event.cat.as_str(), event.name.as_str())).or_default() += 1;
    }
    let said: BTreeMap<_, _> = summary.calls.iter().map(|(pair, sum)| (*pair, sum.0)).collect();
    assert_eq!(counts, said, "{form}");
    let lines = lines_of(trace);
    assert_eq!(lines.len(), expected.len(), "{form}");
    for (one, other) in lines.iter().zip(expected) {
        assert_eq!(one, other, "{form}");
    }
}

#[test]
fn every_form_holds_the_same_events() {
    let directory = tempfile::tempdir().expect("a directory for the forms");
    let forms = forms_in(directory.path());
    let summary = generate(EVENTS, 600, false, &forms).expect("room on the disk");
    assert_eq!(summary.events, EVENTS);
    assert_eq!(summary.calls.values().map(|sum| sum.0).sum::<u64>(), EVENTS);

    let plain = read_file(forms.plain.as_deref().expect("asked for")).expect("readable");
    let expected = lines_of(&plain);
    check("plain", &plain, &summary, &expected);
    check("single", &read_file(forms.single.as_deref().expect("asked for")).expect("readable"), &summary, &expected);
    check("multi", &read_file(forms.multi.as_deref().expect("asked for")).expect("readable"), &summary, &expected);
    check("run", &read_run(forms.run.as_deref().expect("asked for")).expect("readable"), &summary, &expected);
}

#[test]
fn lines_are_json_and_span_the_whole_job() {
    let directory = tempfile::tempdir().expect("a directory for the text");
    let plain = directory.path().join("plain.pfw");
    let forms = Forms { plain: Some(plain.clone()), ..Forms::default() };
    let summary = generate(EVENTS, 600, false, &forms).expect("room on the disk");
    let text = fs::read_to_string(plain).expect("UTF-8");
    assert_eq!(text.len() as u64, summary.text_bytes);
    assert_eq!(text.lines().count() as u64, summary.events + summary.definitions);

    let (mut pids, mut hosts, mut last) = (BTreeSet::new(), BTreeSet::new(), 0);
    let (mut escaped, mut nested) = (0, 0);
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        pids.insert(line["pid"].as_u64().expect("a number"));
        hosts.insert(line["args"]["hhash"].as_str().expect("text").to_owned());
        last = last.max(line["ts"].as_i64().unwrap_or(0));
        escaped += u32::from(line["args"]["note"].as_str() == Some(workload::NOTE));
        nested += u32::from(line["args"]["optimizer"].is_object());
    }
    assert_eq!((pids.len(), hosts.len()), (workload::PROCESSES, workload::HOSTS));
    assert!(escaped > 0 && nested > 0, "{escaped} notes, {nested} objects");
    let seconds = (last - workload::ORIGIN_NS / 1_000) / 1_000_000;
    // One of the eleven steps more or less.
    assert!((540..=660).contains(&seconds), "the job took {seconds} s");
}

#[test]
fn the_same_numbers_give_the_same_bytes() {
    let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory for the forms"));
    let [first, second] = directories.each_ref().map(|directory| {
        let summary = generate(20_000, 60, true, &forms_in(directory.path())).expect("room on the disk");
        let file = |name| fs::read(directory.path().join(name)).expect("written");
        (summary, file("plain.pfw"), file("single.pfw.gz"), file("multi.pfw.gz"))
    });
    assert!(first == second);
}
