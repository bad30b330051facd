//! Files of the real PerfFlowAspect, taken apart, recorded as our front-ends would record them, and written again.
//!
//! `tests/fixtures/perfflow` holds outputs of its commit bb304de: `python-*` of the module, `c-*` of woven programs.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use weftline_format::line::LineBuf;
use weftline_format::member::{Deflater, seal};

use super::super::events::{GPU_BUSY, GPU_MEMORY, PROCESS_USER, RSS_END};
use super::*;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/perfflow/");

/// Options with this format that tell processor time and memory.
fn written_as(log_format: LogFormat) -> Options {
    Options { log_format, cpu_mem_usage: true, ..Options::default() }
}

/// What users of the original do before they give a file to a program that wants JSON.
fn patched(text: &str) -> String {
    format!("{text} {{}}]{}", if text.starts_with('{') { "}" } else { "" })
}

/// The events of a file as it is written by default, or, where `log-close` says so, of one that is JSON as it stands.
fn events_of(text: &str, options: &Options) -> Vec<Json> {
    let whole = if options.log_close { text.to_owned() } else { patched(text) };
    let mut parsed: Json = serde_json::from_str(&whole).unwrap_or_else(|error| panic!("{error}: {whole}"));
    let list = parsed.get_mut("traceEvents").map(Json::take).unwrap_or(parsed);
    let mut events = list.as_array().expect("a list").clone();
    if !options.log_close {
        assert_eq!(events.pop(), Some(serde_json::json!({})));
    }
    events
}

/// Writes lines as a trace file and converts that.
fn convert(lines: LineBuf, options: &Options, flavour: Flavour) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (trace, result) = (directory.path().join("t.pfw.gz"), directory.path().join("t.pfw"));
    let text = lines.into_bytes();
    let mut file = Vec::new();
    // Two members, cut at a line end.
    let cut = text[..text.len() / 2].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    seal(&text[..cut], 0, 0, &mut file, &mut Deflater::new());
    seal(&text[cut..], 0, 1, &mut file, &mut Deflater::new());
    std::fs::write(&trace, file).expect("written");
    let events = write(&trace, &result, options, flavour).expect("converted");
    if events == 0 {
        assert!(!result.exists());
        return String::new();
    }
    let text = std::fs::read_to_string(&result).expect("read");
    let list = events_of(&text, options);
    assert_eq!(list.len() as u64, events);
    assert!(list.iter().all(|event| event["ts"].is_f64()), "ts must be a real: {text}");
    // Our own reader takes open files and closed ones.
    let read = weftline_format::reader::read_file(&result).expect("read");
    assert!(read.damage.is_empty(), "{:?}: {text}", read.damage);
    assert_eq!(read.events.len() as u64, events, "{text}");
    text
}

/// Nanoseconds of a field in microseconds; fixtures have quarters, which floats hold exactly.
fn ns(event: &Json, key: &str) -> i64 {
    let value = event[key].as_f64().expect(key);
    (value.trunc() as i64) * 1000 + (value.fract() * 1000.0).round() as i64
}

/// What our recorder would have stored for the events of a file.
fn recorded(events: &[Json], flavour: Flavour) -> LineBuf {
    let text = |event: &Json, key: &str| event[key].as_str().expect(key).to_owned();
    let number = |event: &Json, key: &str| event[key].as_u64().expect(key) as u32;
    // Counters stand before the event whose they are; behind it for the verbose ones of C.
    let mut used: Vec<Option<(f64, f64)>> = vec![None; events.len()];
    for (at, event) in events.iter().enumerate().filter(|(_, event)| event["ph"] == "C") {
        let args = &event["args"];
        if args["memory_usage"].as_f64() == Some(0.0) {
            continue;
        }
        let owner = if at > 0 && events[at - 1]["ph"] == "E" && flavour == Flavour::C { at - 1 } else { at + 2 };
        used[owner] = Some((args["cpu_usage"].as_f64().expect("cpu"), args["memory_usage"].as_f64().expect("memory")));
    }
    let mut threads: BTreeMap<u32, LineBuf> = BTreeMap::new();
    let mut starts: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for (event, used) in events.iter().zip(used) {
        let (name, cat) = (text(event, "name"), text(event, "cat"));
        let (pid, tid) = (number(event, "pid"), number(event, "tid"));
        let (at, lines) = (ns(event, "ts"), threads.entry(tid).or_default());
        let mut wall = 0;
        match text(event, "ph").as_str() {
            "C" => continue,
            "B" => {
                starts.entry(tid).or_default().push(at);
                lines.begin(&name, &cat, pid, tid, at);
            }
            "E" => {
                wall = at - starts.entry(tid).or_default().pop().unwrap_or(at);
                lines.end(&name, &cat, pid, tid, at);
            }
            "X" => {
                wall = ns(event, "dur");
                lines.complete(&name, &cat, pid, tid, at, at + wall);
            }
            phase => {
                let id = event["id"].as_u64().expect("an id");
                match phase {
                    "b" => lines.async_begin(&name, &cat, pid, tid, at, id),
                    "e" => lines.async_end(&name, &cat, pid, tid, at, id),
                    "s" => lines.flow_start(&name, &cat, pid, tid, at, id),
                    "f" => lines.flow_end(&name, &cat, pid, tid, at, id),
                    other => panic!("{other}"),
                };
                match &event["scope"] {
                    Json::String(scope) => {
                        lines.arg_str("scope", scope.as_bytes());
                    }
                    // A call of `async_event` tells the id that it was given.
                    Json::Null if event.get("scope").is_none() && "be".contains(phase) => {
                        lines.arg_u64("id", id);
                    }
                    _ => {}
                }
            }
        }
        if let Some((cpu, memory)) = used {
            let unit = if flavour == Flavour::Python { 1000.0 } else { 1024.0 };
            lines.arg_u64("cpu_ns", 1).arg_u64(PROCESS_USER, (cpu / 100.0 * wall as f64).round() as u64);
            lines.arg_u64("rss_start", 5).arg_u64(RSS_END, (memory * unit).round() as u64);
        }
        lines.finish();
    }
    let mut all = LineBuf::new();
    all.open_array();
    all.metadata("process_name", "weft", 1, 1).finish();
    all.instant("start", "weft", 1, 1, 5).finish();
    threads.into_values().rev().for_each(|lines| all.lines(lines.as_bytes()));
    all.complete("read", "POSIX", 1, 1, 5, 6).arg_i64("ret", 1).finish();
    all
}

/// The text before and after the value of `cpu_usage`, and the value.
fn around_cpu(line: &str) -> (String, f64) {
    let Some((before, rest)) = line.split_once("\"cpu_usage\": ") else { return (line.to_owned(), 0.0) };
    let (value, after) = rest.split_once(',').expect("memory follows");
    assert!(value.contains('.') || line.contains("\"memory_usage\": 0}"), "a real: {line}");
    (format!("{before}…{after}"), value.parse().expect("a number"))
}

fn check(file: &str, format: LogFormat) {
    let flavour = if file.starts_with("python-") { Flavour::Python } else { Flavour::C };
    let original = std::fs::read_to_string(format!("{HERE}{file}.pfw")).expect("a fixture");
    let options = written_as(format);
    let events = events_of(&original, &options);

    let ours = convert(recorded(&events, flavour), &options, flavour);
    assert_eq!(ours.split('\n').count(), original.split('\n').count(), "{file}");
    let closed = convert(recorded(&events, flavour), &Options { log_close: true, ..options }, flavour);
    let foot = if format == LogFormat::Object { "\n  ]\n}\n" } else { "\n]\n" };
    assert_eq!(closed.strip_suffix(foot), ours.strip_suffix(",\n"), "{file}");
    for (ours, expected) in ours.split('\n').zip(original.split('\n')) {
        let ((shape, cpu), (expected_shape, expected_cpu)) = (around_cpu(ours), around_cpu(expected));
        assert_eq!(shape, expected_shape, "{file}");
        assert!((cpu - expected_cpu).abs() < 0.01, "{file}: {ours} {expected}");
    }
}

#[test]
fn files_of_the_python_module() {
    for file in ["default", "compact", "cpumem_verbose", "cpumem_compact"] {
        check(&format!("python-smoketest_{file}"), LogFormat::Array);
    }
    check("python-smoketest_object", LogFormat::Object);
}

#[test]
fn async_events_and_threads_of_the_python_module() {
    for file in ["future", "future2", "future_direct", "future_compact", "multithreading"] {
        check(&format!("python-{file}"), LogFormat::Array);
    }
}

#[test]
fn files_of_woven_programs() {
    for file in ["verbose", "compact", "MT_compact"] {
        check(&format!("c-smoketest_{file}"), LogFormat::Array);
    }
    check("c-smoketest_object", LogFormat::Object);
    for file in ["smoketest3_cpumem_verbose", "smoketest3_cpumem_compact", "smoketest_class_cpumem_compact"] {
        check(&format!("c-{file}"), LogFormat::Array);
    }
}

/// Events as lines, without the brackets.
fn one_line(flavour: Flavour, make: impl FnOnce(&mut LineBuf)) -> String {
    lines_with(&written_as(LogFormat::Array), flavour, make)
}

fn lines_with(options: &Options, flavour: Flavour, make: impl FnOnce(&mut LineBuf)) -> String {
    let mut lines = LineBuf::new();
    lines.open_array();
    lines.metadata("process_name", "weft", 1, 1).finish();
    make(&mut lines);
    let text = convert(lines, options, flavour);
    text.strip_prefix("[\n").and_then(|text| text.strip_suffix(",\n")).unwrap_or(&text).to_owned()
}

#[test]
fn lines_of_each_kind() {
    type Make = fn(&mut LineBuf);
    let rows: [(Flavour, Make, &str); 9] = [
        (
            Flavour::C,
            |l| l.async_begin("f", "x.cpp", 2, 3, 1_794_764_896_794_153_900, 0).arg_str("scope", b"sc1").finish(),
            r#"{"name": "f", "cat": "x.cpp", "pid": 2, "tid": 3, "ts": 1794764896794153.0, "ph": "b", "scope": "sc1", "id": 0}"#,
        ),
        (
            Flavour::C,
            |l| l.async_end("f", "x.cpp", 2, 3, 5000, 1).finish(),
            r#"{"name": "f", "cat": "x.cpp", "pid": 2, "tid": 3, "ts": 5.0, "ph": "e", "scope": "NA", "id": 1}"#,
        ),
        (
            Flavour::C,
            |l| l.flow_end("flow", "flow", 2, 3, 5000, 100).finish(),
            r#"{"name": "flow", "cat": "flow", "pid": 2, "tid": 3, "ts": 5.0, "ph": "f", "bp": "e", "id": 100}"#,
        ),
        (
            Flavour::Python,
            |l| {
                l.async_instant("n", "m", 2, 3, 5_250, 7).arg_str("id", b"str").arg_str("scope", b"s").finish();
            },
            r#"{"name": "n", "cat": "m", "pid": 2, "tid": 3, "ts": 5.25, "ph": "n", "id": "str", "scope": "s"}"#,
        ),
        (
            Flavour::Python,
            |l| l.async_begin("n", "m", 2, 3, 5000, u64::MAX).finish(),
            r#"{"name": "n", "cat": "m", "pid": 2, "tid": 3, "ts": 5.0, "scope": null, "id": 9007199254740991, "ph": "b"}"#,
        ),
        (
            Flavour::Python,
            |l| l.end("caf\u{e9} \u{1F600}\"\n\u{7f}", "m", 2, 3, 5000).arg_str("error", b"E\xff").finish(),
            concat!(
                r#"{"name": "caf\u00e9 \ud83d\ude00\"\n\u007f", "cat": "m", "pid": 2, "tid": 3, "ts": 5.0, "ph": "E", "#,
                r#""args": {"error": "E\ufffd"}}"#
            ),
        ),
        (
            Flavour::C,
            |l| l.begin("caf\u{e9}\u{1}", "m", 2, 3, 5000).finish(),
            "{\"name\": \"caf\u{e9}\\u0001\", \"cat\": \"m\", \"pid\": 2, \"tid\": 3, \"ts\": 5.0, \"ph\": \"B\"}",
        ),
        (
            Flavour::Python,
            |l| {
                l.complete("f", "m", 2, 3, 5000, 5000).arg_u64(PROCESS_USER, 3000).arg_u64(RSS_END, 2048).finish();
            },
            concat!(
                r#"{"name": "f", "cat": "m", "pid": 2, "tid": 3, "ts": 5.0, "ph": "C", "args": {"cpu_usage": 0.0, "memory_usage": 2.048}},"#,
                "\n",
                r#"{"name": "f", "cat": "m", "pid": 2, "tid": 3, "ts": 5.0, "ph": "C", "args": {"cpu_usage": 0, "memory_usage": 0}},"#,
                "\n",
                r#"{"name": "f", "cat": "m", "pid": 2, "tid": 3, "ts": 5.0, "ph": "X", "dur": 0.0}"#
            ),
        ),
        (Flavour::C, |l| l.complete("read", "POSIX", 2, 3, 5000, 6000).arg_i64("ret", 1).finish(), ""),
    ];
    for (flavour, make, expected) in rows {
        assert_eq!(one_line(flavour, make), expected);
    }
}

/// Counters tell what was asked for, as far as it is known.
#[test]
fn use_of_gpus() {
    let span = |l: &mut LineBuf, gpu: bool| {
        l.complete("f", "m", 2, 3, 5000, 5000).arg_u64(PROCESS_USER, 0).arg_u64(RSS_END, 2048);
        if gpu {
            l.arg_u64(GPU_BUSY, 83).arg_u64(GPU_MEMORY, 3 << 30);
        }
        l.finish();
    };
    let check = |cpu_mem_usage: bool, gpu_usage: bool, flavour: Flavour, gpu: bool, expected: &[&str]| {
        let options = Options { cpu_mem_usage, gpu_usage, ..Options::default() };
        let text = lines_with(&options, flavour, |l| span(l, gpu));
        let seen: Vec<&str> =
            text.lines().filter_map(|line| line.split_once("\"args\": ")).map(|part| part.1).collect();
        let expected: Vec<String> = expected.iter().map(|args| format!("{args}}},")).collect();
        assert_eq!(seen, expected, "{options:?} {text}");
    };
    let (c, python) = (Flavour::C, Flavour::Python);
    let both = r#"{"cpu_usage": 0.0, "memory_usage": 2, "gpu_usage": 83.0, "gpu_memory_usage": 3145728}"#;
    let over = r#"{"cpu_usage": 0.0, "memory_usage": 0, "gpu_usage": 0.0, "gpu_memory_usage": 0}"#;
    check(true, true, c, true, &[both, over]);
    let alone = r#"{"gpu_usage": 83.0, "gpu_memory_usage": 3221225.472}"#;
    check(false, true, python, true, &[alone, r#"{"gpu_usage": 0, "gpu_memory_usage": 0}"#]);
    let processor = [r#"{"cpu_usage": 0.0, "memory_usage": 2}"#, r#"{"cpu_usage": 0.0, "memory_usage": 0}"#];
    check(true, true, c, false, &processor);
    check(true, false, c, true, &processor);
    check(false, true, c, false, &[]);
}

#[test]
fn an_end_has_the_scope_of_its_beginning() {
    let text = one_line(Flavour::C, |lines| {
        lines.async_begin("f", "m", 2, 3, 5000, 8).arg_str("scope", b"s").finish();
        lines.async_end("f", "m", 2, 4, 7000, 8).finish();
        lines.async_end("f", "m", 2, 4, 9000, 8).finish();
    });
    let scopes: Vec<&str> =
        text.lines().map(|line| if line.contains("\"scope\": \"s\"") { "s" } else { "NA" }).collect();
    assert_eq!(scopes, ["s", "s", "NA"]);
}

#[test]
fn neighbours_never_overlap() {
    // Three spans inside each other with the least distance: rounding must keep the order of all ends.
    let base = 1_794_764_896_794_153_000;
    for step in [1, 7, 120, 130, 249] {
        let text = one_line(Flavour::Python, |lines| {
            for depth in (0..3).rev() {
                lines.complete("f", "m", 2, 3, base + depth * step, base + 10_000 - depth * step).finish();
            }
        });
        let ends: Vec<(f64, f64)> = text
            .lines()
            .map(|line| serde_json::from_str::<Json>(line.trim_end_matches(',')).expect("JSON"))
            .map(|event| (event["ts"].as_f64().expect("ts"), event["dur"].as_f64().expect("dur")))
            .map(|(ts, dur)| (ts, ts + dur))
            .collect();
        assert!(ends.windows(2).all(|pair| pair[1].0 <= pair[0].0 && pair[0].1 <= pair[1].1), "{step}: {text}");
    }
}
