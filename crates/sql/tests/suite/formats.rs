//! Results in all formats, and where they go.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::ask::{Traces, complaint, stdout, weft_sql};

/// Text with everything that needs care, numbers, a float, nulls, a truth value.
const SQL: &str = "SELECT * FROM (VALUES ('a,\"b\"\nc', 1, 1.5, true), (NULL, -9223372036854775808, NULL, false)) AS t(text, number, real, truth)";

fn written(format: &str, sql: &str) -> Vec<u8> {
    let traces = Traces::golden("posix_small");
    stdout(&["--format".as_ref(), format.as_ref(), traces.path().as_os_str(), sql.as_ref()])
}

fn text(format: &str, sql: &str) -> String {
    String::from_utf8(written(format, sql)).expect("UTF-8")
}

#[test]
fn csv_and_json_are_quoted() {
    assert_eq!(
        text("csv", SQL),
        "text,number,real,truth\n\"a,\"\"b\"\"\nc\",1,1.5,true\n,-9223372036854775808,,false\n"
    );
    let rows: serde_json::Value = serde_json::from_str(&text("json", SQL)).expect("JSON");
    let expected = serde_json::json!([
        {"text": "a,\"b\"\nc", "number": 1, "real": 1.5, "truth": true},
        {"text": null, "number": i64::MIN, "real": null, "truth": false},
    ]);
    assert_eq!(rows, expected);
    assert_eq!(text("json", "SELECT name FROM events WHERE name = 'none'"), "[]\n");
    assert_eq!(text("csv", "SELECT name FROM events WHERE name = 'none'"), "name\n");
}

#[test]
fn tables_are_for_people() {
    let sql = "SELECT * FROM (VALUES ('short', 5), ('a longer one', 12345), (E'tab\\there', NULL)) AS t(name, n)";
    let expected = "\
name              n
────────────  ─────
short             5
a longer one  12345
tab\\there      NULL
";
    assert_eq!(text("table", sql), expected);
}

fn check_columns(batches: &[RecordBatch]) {
    let all: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(all, 799);
    let mut bytes = 0;
    for batch in batches {
        // Words are plain text: no dictionary of the whole run comes with a few rows.
        let names = batch.column(0).as_string_opt::<i32>().expect("plain text");
        assert!(names.iter().all(|name| name.is_some()));
        bytes += batch.column(1).as_primitive::<Int64Type>().iter().flatten().filter(|ret| *ret > 0).sum::<i64>();
        assert!(batch.column(2).as_primitive::<Float64Type>().iter().all(|real| real.is_some()));
    }
    assert!(bytes > 1 << 20, "{bytes}");
}

#[test]
fn columnar_formats_round_trip() {
    let sql = "SELECT name, ret, dur_ns / 1e9 AS seconds FROM events WHERE ph <> 'M'";
    let arrow = written("arrow", sql);
    let batches: Result<Vec<RecordBatch>, _> =
        arrow_ipc::reader::StreamReader::try_new(arrow.as_slice(), None).expect("a stream").collect();
    check_columns(&batches.expect("whole"));
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), written("parquet", sql)).expect("written");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file.reopen().expect("open"))
        .expect("Parquet")
        .build()
        .expect("readable");
    let batches: Result<Vec<RecordBatch>, _> = reader.collect();
    check_columns(&batches.expect("whole"));
}

#[test]
fn files_are_written_whole_or_not() {
    let traces = Traces::golden("posix_small");
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("out.csv");
    let ask = |sql: &str| {
        weft_sql([
            OsStr::new("--format"),
            "csv".as_ref(),
            "-o".as_ref(),
            file.as_os_str(),
            traces.path().as_os_str(),
            sql.as_ref(),
        ])
    };
    let output = ask("SELECT 1 AS x");
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "x\n1\n");
    // A query that cannot be answered leaves the file of the last one.
    assert_eq!(ask("SELECT nothing").status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "x\n1\n");
    let nowhere = place.path().join("no/such/directory.csv");
    let output = weft_sql([OsStr::new("-o"), nowhere.as_os_str(), traces.path().as_os_str(), "SELECT 1".as_ref()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("cannot write"), "{output:?}");
}

#[test]
fn queries_come_from_stdin_too() {
    let traces = Traces::golden("posix_small");
    let mut child = Command::new(env!("CARGO_BIN_EXE_weft-sql"))
        .args([OsStr::new("--format"), "csv".as_ref(), traces.path().as_os_str(), "-".as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    child.stdin.take().expect("a pipe").write_all(b"SELECT count(*) AS n\nFROM io -- all of them\n").expect("sent");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n\n791\n");
}

/// A reader that has seen enough is no failure.
#[test]
fn broken_pipes_are_quiet() {
    let traces = Traces::golden("dlio");
    let mut child = Command::new(env!("CARGO_BIN_EXE_weft-sql"))
        .args([OsStr::new("--format"), "csv".as_ref(), traces.path().as_os_str(), "SELECT * FROM events".as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
