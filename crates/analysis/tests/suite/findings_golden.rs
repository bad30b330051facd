//! The verdict on the golden traces is the one in `docs/findings.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use weftline_analysis::findings::{Config, findings};
use weftline_index::{OpenOptions, Run};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden").join(name).join("trace")
}

/// The table of the document.
fn table() -> String {
    let mut text = "| trace | severity | rule | what |\n|---|---|---|---|\n".to_owned();
    for name in ["posix_small", "dlio", "hybrid", "hybrid_v1"] {
        let options = OpenOptions { no_index: true, ..OpenOptions::default() };
        let run = Run::open(&[golden(name)], &options).expect("the golden traces");
        let verdict = findings(&run, &Config::default()).expect("judged");
        if verdict.findings.is_empty() {
            writeln!(text, "| `{name}` | | | nothing |").expect("a string");
        }
        for finding in &verdict.findings {
            writeln!(text, "| `{name}` | {} | `{}` | {} |", finding.severity, finding.rule, finding.what)
                .expect("a string");
        }
    }
    text
}

#[test]
fn the_verdict_is_the_documented_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/findings/golden.md");
    let found = table();
    if std::env::var_os("WEFT_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    let expected = std::fs::read_to_string(&path).expect("the document's table");
    assert_eq!(found, expected, "if this is right, run with WEFT_WRITE_GOLDEN=1 and then `cargo xtask docs`");
}

#[test]
fn a_run_with_an_index_and_one_without_are_judged_alike() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for entry in std::fs::read_dir(golden("dlio")).expect("the golden traces") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let mut verdicts = Vec::new();
    for (no_index, threads) in [(true, 1), (true, 3), (false, 1), (false, 3)] {
        let options = OpenOptions { no_index, threads: Some(threads), ..OpenOptions::default() };
        let run = Run::open(&[directory.path().to_owned()], &options).expect("opened");
        verdicts.push(findings(&run, &Config::default()).expect("judged"));
    }
    assert!(!verdicts[0].findings.is_empty());
    assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{verdicts:#?}");
}
