//! Perfetto's own engine shows every event and complains about nothing.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weftline_testkit::product::workspace;
use weftline_testkit::run::{Job, weft};
use weftline_testkit::{Case, Finished, Scratch};

fn shows_everything(finished: &Finished) {
    shows_all_of(&finished.run, &finished.scratch);
}

/// Loads a run's traces, or one of them, in Perfetto's engine; the tool counts the events in the files and compares.
fn shows_all_of(run: &Path, scratch: &Scratch) {
    let tool = workspace().join("tools/perfetto/check.sh");
    let command = [tool.as_os_str(), "--expect-slices".as_ref(), "auto".as_ref(), run.as_os_str()];
    let mut job = Job::new(command, &scratch.dir("perfetto"));
    job.limit = Duration::from_secs(240); // the first time it makes a virtual environment
    job.environment.push(("WEFT_VENV".into(), std::env::var_os("WEFT_VENV")));
    let outcome = job.run();
    let said = |stream: &[u8]| String::from_utf8_lossy(stream).into_owned();
    assert_eq!(outcome.status, 0, "{}:\n{}{}", run.display(), said(&outcome.stdout), said(&outcome.stderr));
}

/// One test for all: the tool makes its environment at first use, which two at a time would not survive. Handlers make
/// events inside events, threads make them at the same time, `vfork` children inside their parents; names need escapes.
#[test]
fn every_event_is_shown() {
    shows_everything(&Case::program("ending").args(["kill", "20000"]).work("data.bin", 20_000).check());
    shows_everything(&Case::program("handler_io").ignore(["calls"]).may_lose("in-signal-handler").check());
    for program in ["fork_threaded", "pid_namespace", "characters", "strange_names"] {
        shows_everything(&Case::program(program).check());
    }
    shows_everything(&Case::program("vfork_child").args(["exec"]).check());
    samples();
    the_kernels_requests();
}

/// Traces a script with an option of `weft run`; the run, and what was said.
fn traced(option: &[&str], script: &str, scratch: &Scratch) -> (PathBuf, String) {
    let run = scratch.join("run");
    let words = ["run", "-q"].iter().chain(option).map(OsString::from);
    let words = words.chain(["-o".into(), run.clone().into(), "--".into(), "sh".into(), "-c".into(), script.into()]);
    let outcome = weft(words, scratch);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.status, 0, "{said}");
    (run, said)
}

/// Samples of the host and of processes, some of which end: each value of a counter is a number, or the viewer drops the event.
fn samples() {
    let scratch = Scratch::new("perfetto-samples");
    let (run, _) = traced(&["--sample", "20ms"], "sleep 0.1; sleep 0.1 & sleep 0.2; wait", &scratch);
    shows_all_of(&run, &scratch);
}

/// Requests of a disk that one thread has under way at once, and goes on meanwhile.
fn the_kernels_requests() {
    let scratch = Scratch::new("perfetto-kernel");
    let work = scratch.dir("work");
    let script = "dd if=/dev/zero of=big bs=1M count=48 conv=fsync && dd if=big of=/dev/null bs=1M iflag=direct";
    let (run, said) = traced(&["--kernel"], &format!("cd {} && {script}", work.display()), &scratch);
    // A machine that lets nobody look has no such file.
    let files = fs::read_dir(&run).expect("a run").flatten().map(|entry| entry.path());
    match files.filter(|path| path.to_string_lossy().ends_with(".kernel.pfw.gz")).collect::<Vec<_>>().as_slice() {
        [file] => shows_all_of(file, &scratch),
        _ => assert!(said.contains("without --kernel"), "{said}"),
    }
}
