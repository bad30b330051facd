//! Annotated C and C++ programs, compiled against an installation as a user has it.
//!
//! | module | holds |
//! |---|---|
//! | `installed` | the installation, and programs compiled against it |
//! | `packages` | pkg-config, CMake, compilers and standards, what the libraries export |
//! | `weft` | `weft.h` and `weft.hpp` |
//! | `dftracer` | programs written for DFTracer |
//! | `perfflow` | programs woven for PerfFlowAspect |
//! | `perfflow_suite` | the cases of PerfFlowAspect's own tests, in their steps |
//! | `weave` | `weft weave`: the command, builds that use it, what woven programs tell |
//! | `weave_zlib` | a real code base, woven |
//!
//! The programs are in `programs/annotate`. Tests check a trace in two ways: [`told`] lists every annotation, exactly; [`stacks`]
//! lists the nesting, I/O calls included.

mod dftracer;
mod installed;
mod packages;
mod perfflow;
mod perfflow_suite;
mod weave;
mod weave_zlib;
mod weft;

use std::path::Path;

use weftline_format::reader::Trace;
use weftline_format::{Event, Phase, Value};
use weftline_testkit::table::plain;

/// Categories of what is recorded without any annotation.
const RECORDED: [&str; 6] = ["POSIX", "STDIO", "NETWORK", "WAIT", "PROCESS", "weft"];

/// Is the event the program's own word?
fn is_annotation(event: &Event) -> bool {
    let names = ["process_name", "thread_name", "HH", "FH", "SH"];
    let is_about_process = event.phase == Phase::Metadata && names.contains(&event.name.as_str());
    !is_about_process && !RECORDED.contains(&event.cat.as_str())
}

/// Every annotation in one line, in the order in which they began: `X app outer items=2`.
fn annotations_of(trace: &Trace) -> Vec<String> {
    let mut events: Vec<&Event> = trace.events.iter().filter(|event| is_annotation(event)).collect();
    events.sort_by_key(|event| (event.start_ns, std::cmp::Reverse(event.end_ns())));
    events.into_iter().map(line).collect()
}

fn line(event: &Event) -> String {
    let mut line = format!("{} {} {}", event.phase.letter(), event.cat, event.name);
    for (key, value) in &event.args {
        let value = match value {
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

/// The spans of the trace and the I/O calls on files below `work`, each behind the names of those that it lies in, on its thread
/// and in time: `outer/inner/write`.
fn stacks(trace: &Trace, work: &Path) -> Vec<String> {
    let own_file = |event: &Event| {
        event.cat == "POSIX" && trace.path_of(event).is_some_and(|path| Path::new(path).starts_with(work))
    };
    let mut spans: Vec<&Event> = trace
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

fn sorted<T: Ord>(list: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = list.into_iter().collect();
    list.sort();
    list
}
