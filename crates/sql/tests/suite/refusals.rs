//! What is not answered, and what is said then.

use std::ffi::OsStr;

use crate::ask::{Traces, complaint, weft_sql};

fn check(traces: &Traces, sql: &str, says: &str) {
    let output = weft_sql([traces.path().as_os_str(), sql.as_ref()]);
    assert_eq!(output.status.code(), Some(1), "{sql}: {output:?}");
    assert!(output.stdout.is_empty(), "{sql}: {output:?}");
    let said = complaint(&output);
    assert!(said.starts_with("weft-sql: ") && said.contains(says), "{sql}: {said}");
}

#[test]
fn only_reading_is_allowed() {
    let traces = Traces::golden("posix_small");
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("out.csv").display().to_string();
    let secret = place.path().join("secret.csv");
    std::fs::write(&secret, "word\nmellon\n").expect("written");
    let secret = secret.display().to_string();
    let statements = [
        "CREATE TABLE t AS SELECT 1".to_owned(),
        "CREATE TABLE t (x INT)".to_owned(),
        "CREATE OR REPLACE TABLE events AS SELECT 1".to_owned(),
        "CREATE TEMPORARY TABLE t AS SELECT 1".to_owned(),
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{secret}'"),
        format!("CREATE UNBOUNDED EXTERNAL TABLE t (x INT) STORED AS CSV LOCATION '{file}'"),
        "CREATE VIEW v AS SELECT 1".to_owned(),
        "CREATE SCHEMA s".to_owned(),
        "CREATE DATABASE d".to_owned(),
        "CREATE FUNCTION f(x INT) RETURNS INT RETURN x".to_owned(),
        "CREATE INDEX i ON events (pid)".to_owned(),
        "DROP TABLE events".to_owned(),
        "DROP VIEW events".to_owned(),
        "ALTER TABLE events ADD COLUMN x INT".to_owned(),
        "TRUNCATE TABLE events".to_owned(),
        "INSERT INTO events SELECT * FROM events".to_owned(),
        "UPDATE events SET pid = 1".to_owned(),
        "DELETE FROM events".to_owned(),
        "MERGE INTO events USING io ON events.pid = io.pid WHEN MATCHED THEN DELETE".to_owned(),
        format!("COPY events TO '{file}'"),
        format!("COPY (SELECT 1) TO '{file}' STORED AS CSV"),
        "SET datafusion.execution.batch_size = 1".to_owned(),
        "RESET datafusion.execution.batch_size".to_owned(),
        "SHOW ALL".to_owned(),
        "BEGIN".to_owned(),
        "COMMIT".to_owned(),
        "PREPARE p AS SELECT 1".to_owned(),
        "EXECUTE p".to_owned(),
        "DEALLOCATE p".to_owned(),
        "EXPLAIN INSERT INTO events SELECT * FROM events".to_owned(),
        format!("EXPLAIN COPY events TO '{file}'"),
        format!("EXPLAIN ANALYZE COPY events TO '{file}'"),
        "EXPLAIN CREATE TABLE t AS SELECT 1".to_owned(),
        "SELECT * INTO t FROM events".to_owned(),
        "ATTACH DATABASE 'x' AS y".to_owned(),
        "CALL something()".to_owned(),
        "USE other".to_owned(),
        "VACUUM".to_owned(),
        "ANALYZE TABLE events".to_owned(),
    ];
    for sql in &statements {
        check(&traces, sql, "refused");
    }
    // No way leads to another file.
    for (sql, says) in [
        (format!("SELECT * FROM '{secret}'"), "there is no table"),
        (format!("SELECT * FROM \"{secret}\""), "there is no table"),
        (format!("SELECT * FROM 'file://{secret}'"), "there is no table"),
        (format!("SELECT * FROM read_csv('{secret}')"), "not found"),
        (format!("SELECT * FROM read_parquet('{secret}')"), "not found"),
        (format!("SELECT * FROM csv_scan('{secret}')"), "not found"),
        (format!("SELECT * FROM glob('{secret}')"), "not found"),
        (format!("SELECT read_text('{secret}')"), "read_text"),
        (format!("SELECT pg_read_file('{secret}')"), "pg_read_file"),
        (format!("COPY events FROM '{secret}'"), "not SQL"),
        (format!("LOAD DATA INPATH '{secret}' INTO TABLE events"), ""),
        ("WITH x AS (INSERT INTO events VALUES (1)) SELECT * FROM x".to_owned(), ""),
        ("WITH x AS (DELETE FROM events) SELECT * FROM x".to_owned(), ""),
    ] {
        check(&traces, &sql, says);
    }
    let left: Vec<_> =
        std::fs::read_dir(place.path()).expect("readable").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["secret.csv"], "something was written");
}

#[test]
fn bad_queries_get_one_sentence() {
    let traces = Traces::golden("posix_small");
    for (sql, says) in [
        ("SELEC 1", "the query is not SQL: Expected: an SQL statement, found: SELEC (line 1, column 1)"),
        ("SELECT 1,\n  +, 2 FROM events", "(line 2, column 4)"),
        ("SELECT 'abc", "Unterminated string literal (line 1, column 8)"),
        (
            "SELECT foo FROM hosts",
            "there is no column foo; there are: host, host_hash, processes, threads, events, io_calls",
        ),
        (
            "SELECT h.foo FROM hosts h, io",
            "there is no column h.foo; there are: host, host_hash, processes, threads, events, io_calls, io_ns, read_bytes, write_bytes, first_ns, last_ns",
        ),
        ("SELECT pid FROM io JOIN spans ON io.pid = spans.pid", "the column pid is in several tables"),
        ("SELECT * FROM evnts", "there is no table evnts; there are: events, spans, io,"),
        ("SELECT FROM events", "the query selects no columns"),
        ("SELECT percentiles(dur_ns, 0.5) FROM io", "percentile"),
        ("SELECT human_size('a', 'b')", "human_size is used as human_size(bytes)"),
        ("SELECT span_union(name) FROM io", "span_union is used as span_union(start_ns, end_ns)"),
        ("SELECT time_bucket(ts_ns, '1x') FROM events", "'1x' is not a time width; use one such as '1s'"),
        ("SELECT time_bucket(ts_ns, 0) FROM events", "'0' is not a time width"),
        (
            "SELECT percentile(dur_ns, 95) FROM events",
            "percentile needs a share from 0 to 1, such as 0.95; 95 is not one",
        ),
        ("SELECT 1; SELECT 2", "give exactly one query"),
        ("/* nothing */", "give exactly one query"),
        ("", "give exactly one query"),
    ] {
        check(&traces, sql, says);
    }
}

#[test]
fn wrong_usage_is_told_apart() {
    let check = |words: &[&str], code: i32, says: &str| {
        let output = weft_sql(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(says), "{words:?}: {said}");
    };
    check(&[], 2, "required arguments were not provided");
    check(&["SELECT 1"], 2, "give a run and then the query");
    check(&["--format", "xml", "run", "SELECT 1"], 2, "xml");
    check(&["/no/such/run", "SELECT 1"], 1, "/no/such/run");
    // A query that is no SQL is told before a run is looked for.
    check(&["/no/such/run", "SELEC"], 1, "not SQL");
}

/// Looking at the tables is allowed.
#[test]
fn tables_can_be_looked_at() {
    let traces = Traces::golden("posix_small");
    for sql in [
        "SHOW TABLES",
        "SHOW COLUMNS FROM io",
        "DESCRIBE io",
        "SELECT * FROM information_schema.columns",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE SELECT 1",
        "VALUES (1)",
    ] {
        let output = weft_sql([traces.path().as_os_str(), OsStr::new(sql)]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{sql}: {output:?}");
    }
}

#[test]
fn memory_is_bounded() {
    let traces = Traces::golden("dlio");
    // 18,039 × 18,039 rows, sorted: some gigabytes.
    let sql = "SELECT a.args, b.args FROM events a CROSS JOIN events b ORDER BY a.args, b.args DESC";
    let words = ["--memory".as_ref(), "32".as_ref(), traces.path().as_os_str(), sql.as_ref()];
    let output = weft_sql(words);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(complaint(&output).contains("exceeds its memory limit"), "{output:?}");
    assert!(
        weft_sql(
            ["--memory".as_ref(), "32".as_ref(), traces.path().as_os_str(), "SELECT count(*) FROM events".as_ref()]
                as [&OsStr; 4]
        )
        .status
        .success()
    );
}
