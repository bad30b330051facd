//! Every table holds what the traces hold.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weftline_format::reader;
use weftline_format::{Phase, Value as Argument};

use crate::ask::{GOLDEN, Traces, one, rows, rows_of};

type Counts = BTreeMap<(String, String, i64, String), (i64, i64, i64)>;

/// Counts, durations and results per name, category, process and path, as the plain reader sees them.
fn expected(traces: &Traces) -> Counts {
    let trace = reader::read_run(traces.path()).expect("readable");
    let mut counts = Counts::new();
    for event in trace.events.iter().filter(|event| event.phase != Phase::Metadata) {
        let path = trace.path_of(event).unwrap_or_default().to_owned();
        let group = counts.entry((event.name.clone(), event.cat.clone(), event.pid, path)).or_default();
        group.0 += 1;
        group.1 += event.dur_ns.unwrap_or(0);
        group.2 += event.arg("ret").and_then(Argument::as_i64).unwrap_or(0);
    }
    counts
}

fn found(rows: &[Value]) -> Counts {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let number = |row: &Value, key: &str| row[key].as_i64().unwrap_or(0);
    let group = |row: &Value| {
        let key = (text(row, "name"), text(row, "cat"), number(row, "pid"), text(row, "path"));
        (key, (number(row, "n"), number(row, "dur"), number(row, "ret")))
    };
    rows.iter().map(group).collect()
}

const BY_ALL: &str = "SELECT name, cat, pid, path, count(*) AS n, sum(dur_ns) AS dur, sum(ret) AS ret FROM events \
                      WHERE ph <> 'M' GROUP BY name, cat, pid, path";

#[test]
fn events_are_those_of_the_traces() {
    for (name, events) in GOLDEN {
        let traces = Traces::golden(name);
        let expected = expected(&traces);
        assert_eq!(expected.values().map(|group| group.0).sum::<i64>(), events as i64, "{name}");
        for options in [&[] as &[&str], &["--no-index"], &["--threads", "1"]] {
            let rows = rows_of(&[traces.path().to_owned()], options, BY_ALL);
            assert_eq!(found(&rows), expected, "{name} {options:?}");
        }
    }
}

/// How many rows each table has, per golden trace.
#[test]
fn every_table_has_its_rows() {
    let check = |name: &str, expected: [(&str, i64); 12]| {
        let traces = Traces::golden(name);
        for (table, count) in expected {
            let sql = format!("SELECT * FROM {table}");
            let found = rows(&traces, &sql);
            assert_eq!(found.len() as i64, count, "{name}: {table}");
            assert_eq!(
                one(&traces, &format!("SELECT count(*) FROM {table}")),
                json!(count),
                "{name}: count of {table}"
            );
            // Without an index the same rows come in another order.
            let without = rows_of(&[traces.path().to_owned()], &["--no-index"], &sql);
            assert_eq!(in_order(&without), in_order(&found), "{name}: {table} without an index");
        }
    };
    check("posix_small", POSIX_SMALL);
    check("dlio", DLIO);
    check("hybrid", HYBRID);
    check("hybrid_v1", HYBRID_V1);
}

// Counted from the lines of the traces by a program that knows nothing of the index.
const POSIX_SMALL: [(&str, i64); 12] = [
    ("events", 807),
    ("spans", 799),
    ("io", 791),
    ("files", 11),
    ("processes", 4),
    ("execs", 0),
    ("threads", 6),
    ("hosts", 1),
    ("counters", 0),
    ("system", 0),
    ("metadata", 10),
    ("damage", 0),
];
const DLIO: [(&str, i64); 12] = [
    ("events", 18_047),
    ("spans", 18_039),
    ("io", 10_581),
    ("files", 166),
    ("processes", 8),
    ("execs", 0),
    ("threads", 56),
    ("hosts", 1),
    ("counters", 0),
    ("system", 0),
    ("metadata", 10),
    ("damage", 0),
];
const HYBRID: [(&str, i64); 12] = [
    ("events", 185),
    ("spans", 8),
    ("io", 0),
    ("files", 0),
    // The host, whose samples have pid 0, is none.
    ("processes", 4),
    ("execs", 0),
    ("threads", 15),
    ("hosts", 1),
    ("counters", 952),
    ("system", 952),
    ("metadata", 10),
    ("damage", 0),
];
// In letters, profiles are counters too.
const HYBRID_V1: [(&str, i64); 12] = [
    ("events", 185),
    ("spans", 8),
    ("io", 0),
    ("files", 0),
    // The host, whose samples have pid 0, is none.
    ("processes", 4),
    ("execs", 0),
    ("threads", 15),
    ("hosts", 1),
    ("counters", 1_589),
    ("system", 952),
    ("metadata", 10),
    ("damage", 0),
];

fn in_order(rows: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

/// A trace with what is rare: two ends of a span, no time, odd names, arguments of all kinds, a process of a parallel job.
const ODD: &str = r#"[
{"name":"outer","cat":"app","ph":"B","pid":7,"tid":8,"ts":1000}
{"name":"in \"quotes\"","cat":"app","ph":"X","pid":7,"tid":8,"ts":1500,"dur":100,"args":{"epoch":"3","step":4,"deep":{"a":[1,2]},"none":null,"yes":true,"x":1.5,"big":18446744073709551615}}
{"name":"outer","cat":"app","ph":"E","pid":7,"tid":8,"ts":3000}
{"name":"open","cat":"app","ph":"B","pid":7,"tid":9,"ts":4000}
{"name":"mark","cat":"app","ph":"i","pid":7,"tid":8,"ts":5000,"s":"t"}
{"name":"load","cat":"app","ph":"C","pid":7,"tid":8,"ts":6000,"args":{"value":2.5,"size":10,"state":"up"}}
{"name":"thread_name","ph":"M","pid":7,"tid":8,"args":{"name":"main"}}
{"name":"backwards","cat":"POSIX","ph":"X","pid":7,"tid":8,"ts":7000,"dur":-5,"args":{"ret":-1}}
]"#;

#[test]
fn rare_things_are_kept() {
    let traces = Traces::of(ODD);
    let check = |sql: &str, expected: Value| assert_eq!(Value::Array(rows(&traces, sql)), expected, "{sql}");
    check(
        "SELECT name, start_ns, end_ns, dur_ns FROM spans ORDER BY start_ns",
        json!([
            {"name": "outer", "start_ns": 1_000_000, "end_ns": 3_000_000, "dur_ns": 2_000_000},
            {"name": "in \"quotes\"", "start_ns": 1_500_000, "end_ns": 1_600_000, "dur_ns": 100_000},
            {"name": "backwards", "start_ns": 7_000_000, "end_ns": 7_000_000, "dur_ns": -5_000},
        ]),
    );
    check("SELECT tid FROM events WHERE ph = 'B' AND dur_ns IS NULL", json!([{"tid": 9}]));
    check(
        "SELECT epoch, step, arg(args, 'deep') AS deep, arg(args, 'none') AS none, arg(args, 'yes') AS yes, arg(args, 'x') AS x, \
         arg(args, 'big') AS big, arg(args, 'step') AS of_args FROM events WHERE name LIKE 'in%'",
        json!([{"epoch": 3, "step": 4, "deep": r#"{"a":[1,2]}"#, "none": null, "yes": "true", "x": "1.5",
                "big": "18446744073709551615", "of_args": "4"}]),
    );
    check("SELECT arg(extra, 's') AS s, args FROM events WHERE ph = 'i'", json!([{"s": "t", "args": null}]));
    check(
        "SELECT key, value, text FROM counters ORDER BY key",
        json!([{"key": "size", "value": 10.0, "text": "10"}, {"key": "state", "value": null, "text": "up"},
               {"key": "value", "value": 2.5, "text": "2.5"}]),
    );
    check(
        "SELECT name, text, pid, tid FROM metadata",
        json!([{"name": "thread_name", "text": "main", "pid": 7, "tid": 8}]),
    );
    check(
        "SELECT tid, name, events FROM threads ORDER BY tid",
        json!([{"tid": 8, "name": "main", "events": 6}, {"tid": 9, "name": null, "events": 1}]),
    );
    check(
        "SELECT op, bytes, io_op(name) AS by_name FROM io",
        json!([{"op": "other", "bytes": null, "by_name": "other"}]),
    );
    check("SELECT origin() AS origin", json!([{"origin": 1_000_000}]));
}

#[test]
fn files_and_people_add_up() {
    for name in ["posix_small", "dlio"] {
        let traces = Traces::golden(name);
        let check = |left: &str, right: &str| assert_eq!(rows(&traces, left), rows(&traces, right), "{name}: {left}");
        check(
            "SELECT sum(reads) AS r, sum(writes) AS w, sum(read_bytes) AS rb, sum(write_bytes) AS wb, sum(io_ns) AS ns FROM files",
            "SELECT count(*) FILTER (WHERE op = 'read') AS r, count(*) FILTER (WHERE op = 'write') AS w, \
             coalesce(sum(bytes) FILTER (WHERE op = 'read'), 0) AS rb, coalesce(sum(bytes) FILTER (WHERE op = 'write'), 0) AS wb, \
             sum(dur_ns) AS ns FROM io WHERE path IS NOT NULL",
        );
        check(
            "SELECT path, reads AS n, read_bytes AS b, first_ns AS f, last_ns AS l, processes AS p FROM files WHERE reads > 0 ORDER BY path",
            "SELECT path, sum(CASE WHEN op = 'read' THEN 1 ELSE 0 END) AS n, coalesce(sum(CASE WHEN op = 'read' THEN bytes END), 0) AS b, \
             min(start_ns) AS f, max(end_ns) AS l, count(DISTINCT process) AS p FROM io WHERE path IS NOT NULL \
             GROUP BY path HAVING sum(CASE WHEN op = 'read' THEN 1 ELSE 0 END) > 0 ORDER BY path",
        );
        for table in ["processes", "threads", "hosts"] {
            check(
                &format!(
                    "SELECT sum(events) AS e, sum(io_calls) AS c, sum(io_ns) AS ns, sum(read_bytes) AS b, min(first_ns) AS f, max(last_ns) AS l FROM {table}"
                ),
                "SELECT count(*) AS e, (SELECT count(*) FROM io) AS c, (SELECT sum(dur_ns) FROM io) AS ns, \
                 (SELECT sum(bytes) FROM io WHERE op = 'read') AS b, min(ts_ns) AS f, max(ts_ns + dur_ns) AS l FROM events WHERE ph <> 'M'",
            );
        }
        check(
            "SELECT p.pid AS pid, p.threads AS threads FROM processes p ORDER BY pid",
            "SELECT pid, count(DISTINCT tid) AS threads FROM events WHERE ph <> 'M' GROUP BY pid ORDER BY pid",
        );
    }
}

#[test]
fn system_samples_are_the_same_in_both_dialects() {
    let (numbers, letters) = (Traces::golden("hybrid"), Traces::golden("hybrid_v1"));
    let sql = "SELECT ts_ns, host, kind, device, metric, value FROM system ORDER BY ts_ns, kind, device, metric";
    let found = rows(&numbers, sql);
    assert_eq!(found.len(), 952);
    assert_eq!(found, rows(&letters, sql));
    let kinds = "SELECT DISTINCT kind, device FROM system WHERE kind <> 'memory' ORDER BY kind, device";
    let devices: Vec<(String, String)> = rows(&numbers, kinds)
        .iter()
        .map(|row| (row["kind"].as_str().expect("text").to_owned(), row["device"].as_str().expect("text").to_owned()))
        .collect();
    let expected = [
        ("core", "0"),
        ("core", "1"),
        ("cpu", "cpu"),
        ("disk", "vda"),
        ("network", "eth0"),
        ("network", "ifb0"),
        ("network", "ifb1"),
        ("network", "lo"),
    ];
    assert_eq!(devices, expected.map(|(kind, device)| (kind.to_owned(), device.to_owned())));
    let first = "SELECT value FROM system WHERE kind = 'cpu' AND metric = 'idle_pct' ORDER BY ts_ns LIMIT 1";
    assert_eq!(one(&numbers, first), json!(35.0271));
}

#[test]
fn values_of_samples_have_units() {
    let numbers = Traces::golden("hybrid");
    let units = "SELECT DISTINCT kind, metric, unit, type, dur_ns FROM system \
                 WHERE metric IN ('idle_pct', 'bytes_read', 'MemAvailable', 'Cached') ORDER BY kind, metric";
    assert_eq!(
        rows(&numbers, units),
        [
            json!({"kind": "core", "metric": "idle_pct", "unit": "percent", "type": "mean", "dur_ns": null}),
            json!({"kind": "cpu", "metric": "idle_pct", "unit": "percent", "type": "mean", "dur_ns": null}),
            json!({"kind": "disk", "metric": "bytes_read", "unit": "bytes", "type": "delta", "dur_ns": null}),
            // DFTracer tells memory in percent, but for what is available.
            json!({"kind": "memory", "metric": "Cached", "unit": "percent", "type": "gauge", "dur_ns": null}),
            json!({"kind": "memory", "metric": "MemAvailable", "unit": "KiB", "type": "gauge", "dur_ns": null}),
        ]
    );
    let alone = "SELECT DISTINCT unit FROM counters WHERE key = 'idle_pct'";
    assert_eq!(one(&numbers, alone), json!("percent"));
}

#[test]
fn damage_is_told() {
    let traces = Traces::golden("posix_small");
    let file = std::fs::read_dir(traces.path()).expect("files").next().expect("one").expect("readable").path();
    let bytes = std::fs::read(&file).expect("read");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("cut");
    for options in [&[] as &[&str], &["--no-index"]] {
        let found = rows_of(&[traces.path().to_owned()], options, "SELECT file, what, count FROM damage");
        assert!(!found.is_empty(), "{options:?}");
        assert!(found.iter().all(|row| row["file"] == json!(file.to_str().expect("UTF-8"))), "{found:?}");
    }
}

/// More names than a batch has rows: dictionaries are cut to what is used, and still mean the same.
#[test]
fn many_names_keep_their_meaning() {
    let mut lines = String::new();
    for number in 0..10_000 {
        let line = format!(
            r#"{{"name":"call {number}","cat":"app","ph":"X","pid":{},"tid":1,"ts":{number},"dur":{number}}}"#,
            number % 10
        );
        lines.push_str(&line);
        lines.push('\n');
    }
    let traces = Traces::of(&lines);
    for (condition, expected) in [("pid = 3", 1000), ("pid < 5", 5000), ("name LIKE 'call 99%'", 111), ("true", 10_000)]
    {
        let sql = format!(
            "SELECT count(*) AS n FROM (SELECT name, sum(dur_ns) AS ns FROM spans WHERE {condition} GROUP BY name) WHERE name = concat('call ', CAST(ns / 1000 AS VARCHAR))"
        );
        assert_eq!(one(&traces, &sql), json!(expected), "{condition}");
        let all = format!("SELECT count(DISTINCT name) FROM spans WHERE {condition}");
        assert_eq!(one(&traces, &all), json!(expected), "{condition}");
    }
}
