//! How the tests ask.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Golden traces: their name, and how many events other than metadata they hold.
pub(crate) const GOLDEN: [(&str, u64); 4] =
    [("posix_small", 799), ("dlio", 18_039), ("hybrid", 177), ("hybrid_v1", 177)];

/// A directory with traces that vanishes.
pub(crate) struct Traces(tempfile::TempDir);

impl Traces {
    /// A copy, so that the index does not lie among the originals.
    pub(crate) fn golden(name: &str) -> Traces {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden").join(name).join("trace");
        let traces = Traces(tempfile::tempdir().expect("a temporary directory"));
        for entry in std::fs::read_dir(from).expect("the golden traces") {
            let path = entry.expect("an entry").path();
            std::fs::copy(&path, traces.path().join(path.file_name().expect("a name"))).expect("copied");
        }
        traces
    }

    /// One file with these lines.
    pub(crate) fn of(lines: &str) -> Traces {
        let traces = Traces(tempfile::tempdir().expect("a temporary directory"));
        std::fs::write(traces.path().join("made.pfw"), lines).expect("written");
        traces
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Runs the program.
pub(crate) fn weft_sql(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft-sql"));
    command.args(words).stdin(Stdio::null()).output().expect("weft-sql runs")
}

/// What it says on stderr, which must be one line.
pub(crate) fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one sentence: {text}");
    text
}

/// Its standard output, when all went well.
pub(crate) fn stdout(words: &[&OsStr]) -> Vec<u8> {
    let output = weft_sql(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The rows of an answer over some runs.
pub(crate) fn rows_of(runs: &[PathBuf], options: &[&str], sql: &str) -> Vec<Value> {
    let mut words: Vec<&OsStr> = vec!["--format".as_ref(), "json".as_ref()];
    words.extend(options.iter().map(OsStr::new));
    words.extend(runs.iter().map(|run| run.as_os_str()));
    words.push(sql.as_ref());
    match serde_json::from_slice(&stdout(&words)).expect("JSON") {
        Value::Array(rows) => rows,
        other => panic!("{sql}: {other}"),
    }
}

/// The rows of an answer.
pub(crate) fn rows(traces: &Traces, sql: &str) -> Vec<Value> {
    rows_of(&[traces.path().to_owned()], &[], sql)
}

/// The only value of an answer.
pub(crate) fn one(traces: &Traces, sql: &str) -> Value {
    let rows = rows(traces, sql);
    let [Value::Object(row)] = rows.as_slice() else { panic!("{sql}: {rows:?}") };
    assert_eq!(row.len(), 1, "{sql}");
    row.values().next().expect("a value").clone()
}
