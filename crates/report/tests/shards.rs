//! Reports put together from shards are those of whole runs, byte for byte: over all traces of the tree that hold more than a line of a dialect.

use std::path::{Path, PathBuf};

use weftline_analysis::findings::{Config, Verdict};
use weftline_analysis::pass::{self, State};
use weftline_analysis::summary::{Question, Summary};
use weftline_index::{OpenOptions, Run, Shard};
use weftline_report::{json, make};

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files_below(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        let name = path.to_string_lossy().into_owned();
        if [".pfw", ".pfw.gz", ".json"].iter().any(|end| name.ends_with(end)) && !name.contains("/.weft/") {
            found.push(path.to_owned());
        }
        return;
    }
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path).expect("the tree's traces").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries.iter().for_each(|entry| files_below(entry, found));
}

/// What a report says, as `weft report --json` would.
fn said(run: &Run, (summary, verdict): &(Summary, Verdict)) -> String {
    json::value(&make::report(&["run".to_owned()], run, summary, Vec::new(), verdict)).to_string()
}

/// Copies traces, so that their index does not lie among the originals, and names each: then each is a row group at least.
fn opened(traces: &[PathBuf], kept: &Path) -> Run {
    let copy = |(number, path): (usize, &PathBuf)| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let copied = kept.join(format!("{number:02}-{name}"));
        std::fs::copy(path, &copied).expect("copied");
        copied
    };
    let copies: Vec<PathBuf> = traces.iter().enumerate().map(copy).collect();
    Run::open(&copies, &OpenOptions::default()).expect("opened")
}

/// Gathers shards, lets their states travel, and merges them from the one `first` on.
fn together(run: &Run, shards: &[Shard], first: usize) -> (Summary, Verdict) {
    let (question, config) = (Question::default(), Config::default());
    let travelled = |shard: &Shard| {
        let state = pass::gather(run, &question, Some(&config), shard).expect("gathered");
        State::from_bytes(&state.to_bytes()).expect("arrived")
    };
    let mut states: Vec<State> = shards.iter().map(travelled).collect();
    states.rotate_left(first % shards.len());
    let mut all = states.pop().expect("a shard");
    states.into_iter().for_each(|state| all.merge(state).expect("merged"));
    pass::conclude(run, &question, Some(&config), all).expect("concluded")
}

fn check(name: &str, traces: &[PathBuf], at_least: usize) {
    let kept = tempfile::tempdir().expect("a directory");
    let run = opened(traces, kept.path());
    let whole = pass::report(&run, &Question::default(), Some(&Config::default())).expect("judged");
    let expected = said(&run, &whole);
    assert!(run.shards(5).len() >= at_least, "{name}: {} shards", run.shards(5).len());
    for most in 1..=5 {
        let shards = run.shards(most);
        for first in 0..shards.len() {
            let found = together(&run, &shards, first);
            assert_eq!(said(&run, &found), expected, "{name}: {} shards from {first} on", shards.len());
        }
    }
    // Cut anywhere, all but the calls that are followed in order is the same.
    let each: Vec<Shard> = (0..run.row_groups()).map(|group| Shard::of([group])).collect();
    assert_eq!(together(&run, &each, 1).0, whole.0, "{name}: {} shards", each.len());
}

#[test]
fn shards_of_the_golden_traces() {
    for (name, at_least) in [("posix_small", 1), ("dlio", 2), ("hybrid", 1), ("hybrid_v1", 1)] {
        let mut traces = Vec::new();
        files_below(&tree().join("crates/testkit/golden").join(name).join("trace"), &mut traces);
        check(name, &traces, at_least);
    }
}

/// Of all dialects at once, in one run.
#[test]
fn shards_of_the_fixtures() {
    for directory in ["crates/format/tests/fixtures", "tools/oracle/traces", "crates/dropin/tests/fixtures"] {
        let mut traces = Vec::new();
        files_below(&tree().join(directory), &mut traces);
        traces.retain(|path| !path.ends_with("manifest.json") && !path.ends_with("run.json"));
        check(directory, &traces, 2);
    }
}
