//! A run with `--kernel`: the kernel tells requests of block devices of everybody, and of the run's processes what they recorded themselves.

use std::path::Path;

use weftline_analysis::findings::{Config, findings};
use weftline_analysis::summary::{Question, Summary};
use weftline_index::{OpenOptions, Run};

/// dd, seen by its hooks, by the kernel and by samples; a static program, seen by the kernel alone; a kworker and the journal, which only used the device. The
/// plain loop of tools/oracle reads the same files.
fn open(no_index: bool) -> (tempfile::TempDir, Run) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/oracle/traces/kernel");
    for entry in std::fs::read_dir(traces).expect("the traces") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let options = OpenOptions { no_index, ..OpenOptions::default() };
    let run = Run::open(&[directory.path().to_owned()], &options).expect("opened");
    (directory, run)
}

#[test]
fn threads_of_the_kernel_are_no_processes_of_the_run() {
    for no_index in [false, true] {
        let (_kept, run) = open(no_index);
        let summary = Summary::of(&run, &Question::default()).expect("summed up");
        assert_eq!((summary.job.processes, summary.job.hosts, summary.job.events), (2, 1, 11), "{no_index}");
        let processes: Vec<(&str, Option<&str>)> =
            summary.top_processes.iter().map(|row| (row.name.as_str(), row.program.as_deref())).collect();
        assert_eq!(processes, [("vm#90", Some("dd")), ("vm#91", None)]);
        let requests: u64 = summary.operations.iter().filter(|row| row.cat == "block").map(|row| row.count).sum();
        assert_eq!(requests, 6, "the requests stay");
        let verdict = findings(&run, &Config::default()).expect("judged");
        let programs: Vec<(&str, u64)> =
            verdict.programs.iter().map(|row| (row.program.as_str(), row.processes)).collect();
        assert_eq!(programs.len(), 2, "{programs:?}");
        assert!(programs.contains(&("dd", 1)), "one process, whoever tells of it: {programs:?}");
        assert_eq!(verdict.wall.map(|wall| wall.processes), Some(2));
    }
}
