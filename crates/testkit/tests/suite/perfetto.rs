//! Perfetto's own engine shows every event and complains about nothing.

use std::time::Duration;

use weftline_testkit::product::workspace;
use weftline_testkit::run::Job;
use weftline_testkit::{Case, Finished};

/// Loads the run's traces in Perfetto's engine; the tool counts the events in the files and compares.
fn shows_everything(finished: &Finished) {
    let tool = workspace().join("tools/perfetto/check.sh");
    let command = [tool.as_os_str(), "--expect-slices".as_ref(), "auto".as_ref(), finished.run.as_os_str()];
    let mut job = Job::new(command, &finished.scratch.dir("perfetto"));
    job.limit = Duration::from_secs(240); // the first time it makes a virtual environment
    job.environment.push(("WEFT_VENV".into(), std::env::var_os("WEFT_VENV")));
    let outcome = job.run();
    let said = |stream: &[u8]| String::from_utf8_lossy(stream).into_owned();
    assert_eq!(outcome.status, 0, "{}:\n{}{}", finished.run.display(), said(&outcome.stdout), said(&outcome.stderr));
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
}
