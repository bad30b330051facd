//! Conditions are pushed down, visibly, and row groups are passed over.

use std::ffi::OsStr;

use serde_json::{Value, json};

use crate::ask::{Traces, rows_of, stdout};

/// Two runs of different years, hosts and programs: each has a row group of its own.
struct Two {
    small: Traces,
    dlio: Traces,
}

impl Two {
    fn new() -> Two {
        Two { small: Traces::golden("posix_small"), dlio: Traces::golden("dlio") }
    }

    fn plan(&self, options: &[&str], sql: &str) -> String {
        let mut words: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        words.extend([self.small.path().as_os_str(), self.dlio.path().as_os_str(), sql.as_ref()]);
        String::from_utf8(stdout(&words)).expect("UTF-8")
    }

    fn rows(&self, options: &[&str], sql: &str) -> Vec<Value> {
        rows_of(&[self.small.path().to_owned(), self.dlio.path().to_owned()], options, sql)
    }
}

/// The line of the plan that scans.
fn scan_of(plan: &str) -> &str {
    plan.lines().find(|line| line.contains("EventScan:")).unwrap_or_else(|| panic!("no scan in {plan}")).trim()
}

/// The text between brackets behind `key`.
fn bracketed<'p>(line: &'p str, key: &str) -> &'p str {
    let rest = line.split_once(&format!("{key}=[")).unwrap_or_else(|| panic!("no {key} in {line}")).1;
    rest.split_once(']').expect("closed").0
}

#[test]
fn conditions_choose_row_groups() {
    let two = Two::new();
    let check = |table: &str, condition: &str, read: usize, pushed: bool| {
        let sql = format!("SELECT count(*) AS n FROM {table} WHERE {condition}");
        let plan = two.plan(&["--explain"], &sql);
        let scan = scan_of(&plan);
        assert!(scan.contains(&format!("row_groups={read} of 2,")), "{condition}: {scan}");
        assert_eq!(!bracketed(scan, "pushed").is_empty(), pushed, "{condition}: {scan}");
        // What the plan promises is what happens, and passing over changes no answer.
        let done = two.plan(&[], &format!("EXPLAIN ANALYZE {sql}"));
        assert!(scan_of(&done).contains(&format!("row_groups_read={read}")), "{condition}: {done}");
        let full = format!("SELECT sum(CASE WHEN {condition} THEN 1 ELSE 0 END) AS n FROM {table}");
        let answer = two.rows(&[], &sql);
        assert_eq!(answer, two.rows(&[], &full), "{condition}");
        assert_eq!(answer, two.rows(&["--no-index"], &sql), "{condition}");
    };
    // 2025 is DLIO's year, 2026 the other's.
    check("events", "ts_ns < 1750000000000000000", 1, true);
    check("events", "1750000000000000000 < ts_ns", 1, true);
    check("events", "ts_ns BETWEEN 1744611914277772000 AND 1744611914277780000", 1, true);
    check("events", "ts_ns = 1744611914277772000", 1, true);
    check("spans", "end_ns >= 1750000000000000000", 1, true);
    check("spans", "start_ns <= origin() + 1000000000", 1, true);
    check("io", "end_ns < 5", 0, true);
    check("events", "pid = 17963", 1, true);
    check("events", "pid IN (17963, 1028567) AND host = 'vm'", 1, true);
    check("events", "host LIKE 'corona%' OR pid = 1028570", 1, true);
    check("events", "pid % 2 = 0", 2, true);
    check("events", "name = 'waitpid'", 1, true);
    check("events", "name LIKE 'DLIO%'", 1, true);
    check("events", "regexp_like(name, '^HDF5')", 1, true);
    check("events", "cat = 'dlio_benchmark'", 1, true);
    check("events", "lower(cat) = 'posix'", 2, true);
    check("events", "upper(cat) = 'READER' AND name IS NOT NULL", 1, true);
    check("events", "path LIKE '/scratch/golden_work/%'", 1, true);
    check("events", "path IS NULL AND pid = 17963", 1, true);
    check("events", "path IS NULL", 2, true);
    check("events", "ph = 'C'", 0, true);
    check("events", "rank = 3", 0, true);
    check("io", "op = 'sync'", 1, true);
    check("io", "op IN ('read', 'write')", 2, true);
    check("events", "dur_ns > 1000000", 2, false);
    check("events", "name = 'waitpid' OR dur_ns > 1000000", 2, false);
    check("events", "ts_ns < 1750000000000000000 OR name = 'waitpid'", 2, false);
}

#[test]
fn only_needed_columns_are_read() {
    let two = Two::new();
    let check = |sql: &str, reads: &str| {
        let plan = two.plan(&["--explain"], sql);
        assert_eq!(bracketed(scan_of(&plan), "reads"), reads, "{sql}");
    };
    check("SELECT name, sum(dur_ns) FROM events GROUP BY name", "dur_ns, name");
    check("SELECT max(ret) FROM events WHERE cat = 'POSIX'", "cat, ret");
    check("SELECT host, pid, count(*) FROM events GROUP BY host, pid", "process");
    check("SELECT op, sum(bytes) FROM io GROUP BY op", "ts_ns, dur_ns, name, cat, ret");
}

#[test]
fn counts_need_no_scan_and_limits_little() {
    let two = Two::new();
    let plan = two.plan(&["--explain"], "SELECT count(*) FROM events");
    assert!(!plan.contains("EventScan"), "{plan}");
    assert_eq!(two.rows(&[], "SELECT count(*) AS n FROM events"), [json!({"n": 807 + 18_047})]);
    let plan = two.plan(&["--explain"], "SELECT name FROM events LIMIT 5");
    assert!(scan_of(&plan).contains("row_groups=1 of 2,"), "{plan}");
    assert_eq!(two.rows(&[], "SELECT name FROM events LIMIT 5").len(), 5);
    assert_eq!(two.rows(&[], "SELECT name FROM events LIMIT 5 OFFSET 18850").len(), 4);
}
