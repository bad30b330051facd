//! `weft run` as a process: streams, signals and exit codes are the program's.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weftline_format::manifest::SupervisorRecord;
use weftline_format::reader;
use weftline_testkit::case::excerpt;
use weftline_testkit::compile::{PLAIN, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, weft};
use weftline_testkit::{Case, Scratch};

hazards! {
    standard_streams_closed: Case::script("closed", "ls / >&- 2>&- <&- || echo failed");
    exit_code_255: Case::script("code", "exit 255");
    killed_by_a_real_time_signal: Case::script("rtmin", "kill -RTMIN+3 $$");
    core_of_the_matter_on_stderr: Case::script("stderr", "echo to stderr >&2; echo to stdout; exit 4");
}

#[test]
fn standard_input_is_the_programs() {
    let scratch = Scratch::new("stdin");
    let mut child = Command::new(product())
        .args(["run", "-q", "-o"])
        .arg(scratch.join("run"))
        .args(["--", "/bin/cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("weft starts");
    child.stdin.take().expect("piped").write_all(b"through the pipe").expect("cat reads");
    let output = child.wait_with_output().expect("weft ends");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"through the pipe".as_slice()));
}

/// What cannot be started is reported as a shell would, and leaves no process behind.
#[test]
fn programs_that_cannot_be_started() {
    let scratch = Scratch::new("not-found");
    let work = scratch.dir("work");
    fs::write(work.join("not-executable"), "text").expect("own directory");
    for (program, status) in
        [("no-such-program-anywhere", 127), ("./missing/program", 127), ("./not-executable", 126), ("/", 126)]
    {
        let outcome = Job::new([program], &work).traced(&scratch.join(format!("run-{}", program.len()))).run();
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!(outcome.status, status, "{program}: {said}");
        assert!(said.contains(program) && said.lines().count() == 1, "{program}: {said}");
    }
}

/// Signals that are sent to `weft` reach the program, which decides; the run is complete.
#[test]
fn signals_are_forwarded() {
    let scratch = Scratch::new("forward");
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::USR1, "USR1"),
        (Signal::QUIT, "QUIT"),
    ] {
        let work = scratch.dir(&format!("work-{name}"));
        let run = scratch.join(format!("run-{name}"));
        let script = r#"trap 'echo got it; exit 33' TERM HUP INT USR1 QUIT; : > ready; while :; do sleep 0.01; done"#;
        let mut running = Job::new(["/bin/bash", "-c", script], &work).traced(&run).start();
        wait_for(&work.join("ready"));
        let pid = Pid::from_raw(running.pid() as i32).expect("a pid");
        kill_process(pid, signal).expect("weft runs");
        assert_eq!(running.wait().code(), Some(33), "{name}");
        assert_eq!(fs::read(work.with_extension("stdout")).expect("written"), b"got it\n", "{name}");
        assert!(
            reader::read_run(&run).is_ok_and(|trace| trace.damage.is_empty() && !trace.events.is_empty()),
            "{name}"
        );
    }
}

/// A signal that ends the program ends `weft run` as well.
#[test]
fn forwarded_signal_that_kills() {
    let scratch = Scratch::new("forward-kill");
    let work = scratch.dir("work");
    let mut running =
        Job::new(["/bin/bash", "-c", ": > ready; exec sleep 60"], &work).traced(&scratch.join("run")).start();
    wait_for(&work.join("ready"));
    std::thread::sleep(Duration::from_millis(20)); // lets bash become sleep; as bash it would end the same way
    kill_process(Pid::from_raw(running.pid() as i32).expect("a pid"), Signal::TERM).expect("weft runs");
    assert_eq!(running.wait().signal(), Some(15));
}

/// Whoever waits sees what he would see of the program itself: the signal, no second core, and a run that is whole. A shell makes 128 + N of it.
#[test]
fn death_by_a_signal_is_passed_on() {
    let scratch = Scratch::new("signal");
    for (name, number) in [
        ("KILL", 9),
        ("TERM", 15),
        ("INT", 2),
        ("HUP", 1),
        ("ALRM", 14),
        ("USR1", 10),
        ("PIPE", 13),
        ("SEGV", 11),
        ("ABRT", 6),
        ("XFSZ", 25),
        ("RTMIN+3", 37),
    ] {
        let (work, run) = (scratch.dir(&format!("work-{name}")), scratch.join(format!("run-{name}")));
        let script = format!("ulimit -c unlimited; : > before; kill -{name} $$; : > after");
        let mut traced = Job::new(["/bin/bash", "-c", &script], &work).traced(&run);
        traced.command.retain(|word| word != "-q");
        let status = traced.start().wait();
        assert_eq!((status.signal(), status.core_dumped()), (Some(number), false), "{name}");
        assert!(work.join("before").exists() && !work.join("after").exists(), "{name}");
        let said = fs::read_to_string(work.with_extension("stderr")).expect("written");
        assert!(said.contains(&format!("killed by SIG{name} (signal {number})")), "{name}: {said}");
        let checked = weft(["check".as_ref(), run.as_os_str()], &scratch);
        assert_eq!(checked.status, 0, "{name}: {}", excerpt(&checked.stdout));
        let record = SupervisorRecord::read_all(&run).0.remove(0);
        assert_eq!(record.exit.and_then(|exit| exit.signal), Some(number), "{name}");
    }
    let weft = product().display();
    let script = format!(
        "import subprocess as s; print(*[s.call(['{weft}', 'run', '-q', '-o', f'r{{n}}', 'sh', '-c', f'kill -{{n}} $$']) for n in (9, 15, 11)])"
    );
    let outcome = Job::new(["/usr/bin/python3", "-c", &script], &scratch.dir("python")).run();
    assert_eq!(outcome.stdout, b"-9 -15 -11\n", "{}", excerpt(&outcome.stderr));
    let script = format!("{weft} run -q -o shell sh -c 'kill -9 $$'; echo $?");
    let outcome = Job::new(["/bin/bash", "-c", &script], &scratch.dir("shell")).run();
    assert_eq!(outcome.stdout, b"137\n", "{}", excerpt(&outcome.stderr));
}

/// Rust's runtime opens /dev/null where a standard stream is closed; a traced program must not find that in its place.
#[test]
fn streams_that_are_closed_stay_closed() {
    let scratch = Scratch::new("closed-streams");
    let weft = format!("{} run -q -o", product().display());
    for (number, (program, closed)) in
        [("cat", "<&-"), ("echo lost", ">&-"), ("sh -c 'echo lost >&2'", "2>&-"), ("readlink /proc/self/fd/0", "<&-")]
            .into_iter()
            .enumerate()
    {
        let work = scratch.dir(&number.to_string());
        let shell = |command: String| {
            let outcome = Job::new(["/bin/sh", "-c", &command], &work).run();
            (outcome.status, outcome.stdout)
        };
        let untraced = shell(format!("{program} {closed}"));
        let inside = format!("{weft} inside -- {} run -- {program}", product().display());
        assert_ne!(untraced.0, 0, "{program} {closed}");
        assert_eq!(shell(format!("{weft} run -- {program} {closed}")), untraced, "{program} {closed}");
        assert_eq!(shell(format!("{inside} {closed}")), untraced, "{program} {closed}, inside a run");
    }
}

/// The summary says how the program ended.
#[test]
fn the_summary_tells_the_exit_status() {
    let scratch = Scratch::new("status");
    for status in [0, 1, 42, 255] {
        let run = scratch.join(status.to_string());
        let words = [
            "run".into(),
            "-o".into(),
            run.into_os_string(),
            "sh".into(),
            "-c".into(),
            format!("exit {status}").into(),
        ];
        let outcome = weft(words, &scratch);
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.status, status, "{said}");
        assert!(said.contains(&format!("sh -c: exit status {status}, ")), "{said}");
    }
}

/// Inside a traced program `weft run` joins the run that is already there.
#[test]
fn nested_run_joins() {
    let scratch = Scratch::new("nested");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    let script =
        format!("{} run -- {} exit 100; echo status $?", product().display(), compile("ending", PLAIN).display());
    let outcome = Job::new(["/bin/bash", "-c", &script], &work).traced(&run).run();
    assert_eq!(outcome.stdout, b"status 7\n", "{}", excerpt(&outcome.stderr));
    let trace = reader::read_run(&run).expect("the run can be read");
    let writes = trace.events.iter().filter(|event| event.name.starts_with("pwrite")).count();
    assert_eq!(writes, 100, "the inner program's calls are in the outer run");
    assert!(!work.join("weft-runs").exists(), "no second run was made");
}

/// The pool, the arenas and whatever else is needed on the way is gone when the run is complete.
#[test]
fn nothing_is_left_behind() {
    let scratch = Scratch::new("tidy");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    let mut job = Job::new(["/bin/bash", "-c", "for i in 1 2 3; do ls / > list; done"], &work).traced(&run);
    let temporary = scratch.dir("tmp");
    job.environment.push(("TMPDIR".into(), Some(temporary.clone().into_os_string())));
    let outcome = job.run();
    assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
    let mut left: Vec<String> = fs::read_dir(&run)
        .expect("the run is there")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    left.retain(|name| name != "run.json" && name != "run.d" && !name.ends_with(".pfw.gz"));
    assert!(left.is_empty(), "in the run directory: {left:?}");
    let left: Vec<_> =
        fs::read_dir(&temporary).expect("own directory").map(|entry| entry.expect("readable").path()).collect();
    assert!(left.is_empty(), "in TMPDIR: {left:?}");
}

fn wait_for(path: &Path) {
    let patience = Instant::now();
    while !path.exists() {
        assert!(patience.elapsed() < Duration::from_secs(20), "{} did not appear", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}
