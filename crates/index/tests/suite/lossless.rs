//! Nothing is lost: lines made from the index equal the original ones as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weftline_index::{OpenOptions, Run};

/// Lines of a text as JSON, without brackets, commas and definitions of hashes.
fn original(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| line.trim().trim_end_matches(',').trim_start_matches('['));
    let objects = lines.filter(|line| line.starts_with('{') && *line != "{}");
    let values = objects.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    values.filter(|value: &Value| !["FH", "HH", "SH"].contains(&value["name"].as_str().unwrap_or_default())).collect()
}

fn check(directory: &Path, expected: &[Value], what: &str) {
    let run = Run::open(&[directory.to_owned()], &OpenOptions::default()).expect("opened");
    let mut found = Vec::new();
    run.lines(|line| found.push(serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))))
        .expect("lines");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

fn check_text(text: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("trace.pfw"), text).expect("written");
    check(directory.path(), &original(text), text);
}

#[test]
fn real_traces() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden");
    for name in ["posix_small", "dlio", "hybrid", "hybrid_v1"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut files: Vec<PathBuf> = fs::read_dir(golden.join(name).join("trace"))
            .expect("there")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        let mut expected = Vec::new();
        for file in files {
            let text = std::process::Command::new("gzip").arg("-dc").arg(&file).output().expect("gzip runs").stdout;
            expected.extend(original(&String::from_utf8(text).expect("text")));
            fs::copy(&file, directory.path().join(file.file_name().expect("a name"))).expect("copied");
        }
        check(directory.path(), &expected, name);
    }
}

#[test]
fn odd_lines() {
    check_text(
        r#"[
{"name":"read","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":5,"dur":2,"ns":1002,"args":{"fd":3,"fhash":"a1","ret":-1,"note":"a\"b\\c\u00e9","deep":{"x":[1,2,{"y":null}]}}}
{"ph":"X","name":"no args","ts":7,"dur":0,"pid":1,"tid":2}
{"ph":"i","name":"","cat":"","ts":8,"pid":0,"tid":0,"s":"g","args":{}}
{"name":"C1","ph":"C","ts":9,"pid":1,"tid":1,"args":{"cpu":1.5,"mem":18446744073709551615}}
{"name":"big","ph":"X","ts":9007199254740993,"dur":1,"pid":-3,"tid":9223372036854775807,"args":{"size":9223372036854775808,"ret":1.0,"offset":"12"}}
]
"#,
    );
}

#[test]
fn pairs_keep_their_two_lines() {
    check_text(
        r#"[
{"name": "main", "cat": "app", "ph": "B", "ts": 10.5, "pid": 1, "tid": 1},
{"name": "inner", "cat": "app", "ph": "B", "ts": 11.0625, "pid": 1, "tid": 1, "args": {"a": true}},
{"name": "inner", "cat": "app", "ph": "E", "ts": 12.125, "pid": 1, "tid": 1},
{"name": "job", "cat": "net", "ph": "b", "id": "0x7", "ts": 12, "pid": 1, "tid": 1},
{"name": "job", "cat": "net", "ph": "e", "id": "0x7", "ts": 20, "pid": 1, "tid": 1},
{"name": "main", "cat": "app", "ph": "E", "ts": 30, "pid": 1, "tid": 1}
]
"#,
    );
}
