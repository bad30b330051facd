//! `weft collect` as a process: what it says, how it ends, what it leaves; and the samples that `weft run` takes.

mod trouble;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use weftline_format::manifest::{SAMPLES_END, State, SupervisorRecord};
use weftline_format::reader;
use weftline_format::{Event, Phase};
use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::compile::{STATIC, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome, Running, weft};

use crate::bad_days::Small;

pub(crate) fn job(scratch: &Scratch, arguments: &[&str], run: Option<&Path>) -> Job {
    let mut command: Vec<OsString> = vec![product().into(), "collect".into()];
    command.extend(arguments.iter().map(Into::into));
    if let Some(run) = run {
        command.extend(["-o".into(), run.into()]);
    }
    let mut job = Job::new(command, &scratch.dir("work"));
    for name in [
        "RUN_ID",
        "NODE_ID",
        "STAGE",
        "VM_IP",
        "PROC_SAMPLING",
        "PROC_REFRESH",
        "PROC_INTERVAL_MS",
        "PROC_PID_DIR",
        "PROC_MATCH",
        "STOP_ALL",
    ] {
        job.environment.push((name.into(), None));
    }
    job
}

pub(crate) fn said(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stderr).into_owned()
}

/// A collector that has said its first line.
pub(crate) fn started(scratch: &Scratch, arguments: &[&str], run: &Path) -> Running {
    let job = job(scratch, arguments, Some(run));
    let _ = fs::remove_file(job.beside("stderr"));
    let running = job.start();
    wait_for("weft: sampling", &job.beside("stderr"));
    running
}

/// Waits until a file holds some words.
fn wait_for(words: &str, file: &Path) {
    let began = Instant::now();
    while !fs::read_to_string(file).is_ok_and(|text| text.contains(words)) {
        assert!(began.elapsed() < Duration::from_secs(60), "no {words} in {}", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Names and lengths of the files that samples go to: they change with every tick that is written.
fn sample_files(run: &Path) -> Vec<(OsString, u64)> {
    let entries = fs::read_dir(run).into_iter().flatten().flatten();
    let named = entries.map(|entry| (entry.file_name(), entry.metadata().map_or(0, |data| data.len())));
    let mut files: Vec<(OsString, u64)> = named
        .filter(|(name, _)| [SAMPLES_END, ".samples.tail"].iter().any(|end| name.to_string_lossy().ends_with(end)))
        .collect();
    files.sort();
    files
}

/// Waits until a collector has written so many ticks more, or still more.
pub(crate) fn wait_for_ticks(run: &Path, count: usize) {
    let began = Instant::now();
    let mut last = sample_files(run);
    for tick in 0..count {
        while sample_files(run) == last {
            assert!(began.elapsed() < Duration::from_secs(60), "tick {tick} of {count} does not come: {last:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        last = sample_files(run);
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).expect("a pid"), signal).expect("sent");
}

/// Ends of the samples' intervals in a run, in order; the run is whole.
pub(crate) fn ends(run: &Path) -> Vec<i64> {
    let trace = reader::read_run(run).expect("readable");
    assert_eq!(trace.damage.flaws, [], "{}", run.display());
    let mut ends: Vec<i64> =
        trace.events.iter().filter(|event| event.phase == Phase::Counter).filter_map(|event| event.end_ns()).collect();
    ends.sort_unstable();
    ends
}

pub(crate) fn check(run: &Path, scratch: &Scratch) -> serde_json::Value {
    let outcome = weft(["check".as_ref(), "--json".as_ref(), run.as_os_str()], scratch);
    serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {}", excerpt(&outcome.stdout)))
}

/// Files below a run directory that are hidden: nothing of a collector that has ended.
pub(crate) fn hidden(run: &Path) -> Vec<String> {
    [run.to_owned(), run.join("run.d")]
        .iter()
        .flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with('.') && name != ".weft")
        .collect()
}

#[test]
fn a_bounded_time_of_the_host() {
    let scratch = Scratch::new("collect");
    let run = scratch.join("run");
    let arguments =
        ["--duration", "300ms", "--interval", "100ms", "--json", "--node-id", "n1", "--stage", "s1", "--run-id", "id1"];
    let outcome = job(&scratch, &arguments, Some(&run)).run();
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    let lines: Vec<serde_json::Value> = outcome
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2, "one line at the start, one at the end");
    assert_eq!(
        (&lines[0]["interval_ms"], &lines[0]["host"], &lines[0]["mode"]),
        (&100.0.into(), &true.into(), &"no process".into())
    );
    let ended = &lines[1]["ended"];
    assert_eq!((&ended["node"], &ended["stage"]), (&"n1".into(), &"s1".into()));
    let verdict = check(&run, &scratch);
    assert_eq!(
        (&verdict["complete"], &verdict["open"], &verdict["events"]),
        (&true.into(), &false.into(), &0.into()),
        "{verdict}"
    );
    assert_eq!(verdict["samples"], ended["samples"]);
    assert_eq!(weftline_format::manifest::RunManifest::read(&run).expect("there").id, "id1");
    let info = weft(["info".as_ref(), run.as_os_str()], &scratch);
    let text = String::from_utf8_lossy(&info.stdout);
    assert!(text.contains("sampled") && text.contains("the host"), "{text}");
    assert_eq!(hidden(&run), [] as [&str; 0]);
}

/// SIGTERM, Ctrl-C and the terminal's end stop it, although the next tick is far away, and all is written. How long each took.
pub(crate) fn asked_to_end(scratch: &Scratch) -> Vec<(Signal, Duration)> {
    let end = |(place, how): (usize, Signal)| {
        let run = scratch.join(format!("run-{place}"));
        let running = started(scratch, &["--interval", "1000s"], &run);
        let asked = Instant::now();
        signal(running.pid(), how);
        // A job has a time limit that is far below the interval.
        let outcome = running.finish();
        let took = asked.elapsed();
        assert_eq!(outcome.status, 0, "{}", said(&outcome));
        assert!(
            said(&outcome).contains("sampling the host and no process every "),
            "the start line: {}",
            said(&outcome)
        );
        assert_eq!(check(&run, scratch)["complete"], true);
        (how, took)
    };
    [Signal::TERM, Signal::INT, Signal::HUP].into_iter().enumerate().map(end).collect()
}

#[test]
fn it_ends_when_it_is_told() {
    asked_to_end(&Scratch::new("collect-end"));
}

/// Kills a collector of 100 ms, so long after some ticks. The next verb completes its file: nothing is damaged, and the record says what is there.
/// How long before the kill its last sample was taken.
pub(crate) fn killed_after(scratch: &Scratch, ticks: usize, pause: Duration) -> Duration {
    let run = scratch.join(format!("run-{ticks}-{}", pause.as_millis()));
    let mut running = started(scratch, &["--interval", "100ms"], &run);
    wait_for_ticks(&run, ticks);
    std::thread::sleep(pause);
    let killed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    running.kill().expect("killed");
    running.wait();
    let verdict = check(&run, scratch);
    assert_eq!((&verdict["complete"], &verdict["open"]), (&true.into(), &false.into()), "{verdict}");
    let record = &SupervisorRecord::read_all(&run).0[0];
    assert_eq!(record.state, State::Complete);
    let samples = record.samples.as_ref().map(|samples| samples.samples);
    assert_eq!(samples, Some(verdict["samples"].as_u64().expect("a number")));
    assert!(hidden(&run).iter().all(|name| name.ends_with(".sampler")), "no tail is left");
    let last = *ends(&run).last().expect("samples");
    killed.saturating_sub(Duration::from_nanos(last as u64))
}

/// SIGKILL loses nothing that was written; the next verb completes the file. That every tick is written is tested by the library's tests.
#[test]
fn a_killed_collector_is_completed() {
    let scratch = Scratch::new("collect-kill");
    for ticks in [1, 3] {
        killed_after(&scratch, ticks, Duration::ZERO);
    }
}

/// A collector in the background: found by its pid file, stopped, and gone.
#[test]
fn daemons_are_started_and_stopped() {
    let scratch = Scratch::new("collect-daemon");
    let run = scratch.join("run");
    let outcome = job(&scratch, &["--daemon", "--interval", "50ms"], Some(&run)).run();
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    let words = said(&outcome);
    let pid: i32 = words
        .split("process ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .and_then(|pid| pid.parse().ok())
        .expect(&words);
    test_kill_process(Pid::from_raw(pid).expect("a pid")).expect("it lives on");
    // Another one may sample into the same run.
    let outcome = job(&scratch, &["--duration", "200ms", "--interval", "50ms"], Some(&run)).run();
    assert!(outcome.status == 0 && said(&outcome).contains("another collector samples the host"), "{}", said(&outcome));
    let outcome = job(&scratch, &["--stop"], Some(&run)).run();
    assert_eq!((outcome.status, said(&outcome)), (0, format!("weft: process {pid} has stopped\n")));
    let began = Instant::now();
    while test_kill_process(Pid::from_raw(pid).expect("a pid")).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(20), "it is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(check(&run, &scratch)["complete"], true);
    let again = job(&scratch, &["--stop"], Some(&run)).run();
    assert_eq!(again.status, 1, "nobody is left: {}", said(&again));
    let refused = job(&scratch, &["--daemon", "--tree", "4294967295"], Some(&scratch.join("other"))).run();
    assert!(refused.status == 1 && said(&refused).contains("no process 4294967295"), "{}", said(&refused));
    assert!(!scratch.join("other").exists(), "nothing is made for what is refused");
}

/// When a process started, unless it has ended: whoever inherits it may take its time to wait for it.
fn start_of(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (fields[0] != "Z").then(|| fields[19].parse().expect("a number"))
}

/// A process whose parent does not want to hear of its end is gone before anybody could look; it ends once its first sample is written. Without the right to the kernel's records
/// of ends, the time that nobody saw is stated everywhere: in the file, by the collector, by `weft check` and by `weft report`. With it,
/// nothing is missing.
#[test]
fn unseen_tails_are_stated() {
    const VANISHING: &str = r#"
import glob, os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
ready, go = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(ready, 1)
    os._exit(0)
open(f'{sys.argv[1]}/{pid}', 'w').close()
while not any(f'"pid":{pid},' in open(tail).read() for tail in glob.glob(f'{sys.argv[2]}/.*.tail')): time.sleep(0.002)
os.write(go, b'x')
while os.path.exists(f'/proc/{pid}'): time.sleep(0.002)
"#;
    let scratch = Scratch::new("collect-unseen");
    for (name, privileges, stated) in [
        ("without", &["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"][..], true),
        ("with", &[], !hears_of_ends()),
    ] {
        let (run, pids) = (scratch.join(name), scratch.dir(&format!("{name}-pids")));
        let mut collector = job(&scratch, &["--interval", "100ms", "--pid-dir"], None);
        collector.command.push((&pids).into());
        collector.command.extend(["-o".into(), (&run).into()]);
        collector.command.splice(0..0, privileges.iter().map(Into::into));
        let _ = fs::remove_file(collector.beside("stderr"));
        let running = collector.start();
        wait_for("weft: sampling", &collector.beside("stderr"));
        let program = Job::new(
            ["python3".as_ref(), "-S".as_ref(), "-c".as_ref(), VANISHING.as_ref(), pids.as_os_str(), run.as_os_str()],
            &scratch.dir("load"),
        );
        assert_eq!(program.run().status, 0);
        signal(running.pid(), Signal::TERM);
        let outcome = running.finish();
        assert_eq!(outcome.status, 0, "{}", said(&outcome));
        assert_eq!(said(&outcome).contains("1 process ended without a last sample"), stated, "{}", said(&outcome));
        let trace = reader::read_run(&run).expect("readable");
        let end = trace.events.iter().find(|event| event.name == "end").expect("an end");
        let unseen = end.arg("unseen_ns").and_then(weftline_format::Value::as_u64).expect("stated");
        assert_eq!(unseen > 0, stated, "{end:?}");
        let verdict = check(&run, &scratch);
        assert_eq!((&verdict["unseen_ends"], &verdict["unseen_ns"]), (&u64::from(stated).into(), &unseen.into()));
        assert_eq!(verdict["complete"], true, "an end that nobody saw is no loss of what was");
        let report = weft(["report".as_ref(), run.as_os_str()], &scratch);
        let text = String::from_utf8_lossy(&report.stdout);
        assert_eq!(text.contains("1 process ended unseen"), stated, "{text}{}", said(&report));
    }
}

/// Whether the kernel gives its records of ends to this process: CAP_NET_ADMIN, and the machine's own namespaces.
fn hears_of_ends() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    let capabilities = u64::from_str_radix(capabilities.trim(), 16).expect("a number");
    let first = |kind: &str, number: &str| {
        fs::read_link(format!("/proc/self/ns/{kind}")).is_ok_and(|name| name.to_string_lossy().contains(number))
    };
    capabilities & 1 << 12 != 0 && first("pid", "4026531836") && first("user", "4026531837")
}

/// CPU time that a process has used.
fn cpu_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it runs");
    text.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn wrong_options_are_refused_in_one_sentence() {
    let scratch = Scratch::new("collect-wrong");
    let run = scratch.join("run");
    for (arguments, variables, status, words) in [
        (&["--interval", "0"][..], &[][..], 2, "1ms is the shortest"),
        (&["--interval", "soon"], &[], 2, "use a time"),
        (&["--match", "("], &[], 2, "unclosed group"),
        (&["--tree", "0"], &[], 2, "--tree"),
        (&["--tree", "4294967295"], &[], 1, "no process 4294967295"),
        (&["--cgroup", "/no/such/group"], &[], 1, "no control group /no/such/group"),
        (&["--pid-dir", "/proc/version"], &[], 1, "/proc/version"),
        (&[], &[("PROC_INTERVAL_MS", "0")], 2, "PROC_INTERVAL_MS=0"),
        (&[], &[("PROC_MATCH", "[")], 2, "PROC_MATCH"),
        (&["--duration", "0s"], &[], 2, "above zero"),
    ] {
        let mut job = job(&scratch, arguments, Some(&run));
        job.environment
            .extend(variables.iter().map(|(name, value): &(&str, &str)| ((*name).into(), Some((*value).into()))));
        let outcome = job.run();
        assert_eq!(outcome.status, status, "{arguments:?}: {}", said(&outcome));
        assert!(said(&outcome).contains(words), "{arguments:?}: {}", said(&outcome));
        assert!(!run.exists(), "{arguments:?}: nothing is made for what is refused");
    }
}

/// Tracekit's variables, as its Makefile exports them.
#[test]
fn variables_of_tracekit() {
    let scratch = Scratch::new("collect-tracekit");
    let mut job = job(&scratch, &["--duration", "300ms"], None);
    let pids = scratch.dir("pids");
    for (name, value) in [
        ("RUN_ID", "20250901T000000Z"),
        ("NODE_ID", "cloud1"),
        ("STAGE", "edge"),
        ("PROC_INTERVAL_MS", "100"),
        ("PROC_MATCH", "^ffmpeg$|^ffprobe$"),
    ] {
        job.environment.push((name.into(), Some(value.into())));
    }
    job.environment.push(("PROC_PID_DIR".into(), Some(pids.clone().into())));
    fs::write(pids.join("1"), "").expect("a sentinel");
    let outcome = job.run();
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    assert!(said(&outcome).contains("matching /^ffmpeg$|^ffprobe$/ every 100.0 ms into"), "{}", said(&outcome));
    assert!(pids.join("1").exists(), "a foreign sentinel stays");
    let run = job.directory.join("weft-runs/20250901T000000Z");
    let manifest = weftline_format::manifest::RunManifest::read(&run).expect("there");
    assert_eq!(
        (manifest.id.as_str(), manifest.node.as_str(), manifest.stage.as_deref()),
        ("20250901T000000Z", "cloud1", Some("edge"))
    );
}

/// On a full disk it goes on, counts, and writes again when there is room.
#[test]
fn a_full_disk() {
    let scratch = Scratch::new("collect-full");
    let small = Small::tmpfs(&scratch, "256k");
    let run = small.path.join("run");
    fs::create_dir(&run).expect("made");
    let running = started(&scratch, &["--interval", "20ms"], &run);
    wait_for_ticks(&run, 5);
    let filler = small.path.join("filler");
    // As much as there is room for.
    let _ = fs::write(&filler, vec![1; 256 << 10]);
    wait_for("No space left", &scratch.join("work.stderr"));
    fs::remove_file(&filler).expect("removed");
    wait_for_ticks(&run, 5);
    signal(running.pid(), Signal::TERM);
    let outcome = running.finish();
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    assert!(said(&outcome).contains("No space left"), "{}", said(&outcome));
    let record = SupervisorRecord::read_all(&run).0.remove(0).samples.expect("samples");
    let there = ends(&run).len() as u64;
    assert_eq!(there, record.samples, "what the record says is in the file");
    let verdict = check(&run, &scratch);
    assert_eq!(verdict["complete"].as_bool(), Some(record.lost.is_empty()), "{verdict}");
}

/// `weft run` samples its program and the host; a short program has no samples, and none are taken when nobody wants them.
#[test]
fn programs_are_sampled() {
    // Ends when it has been sampled: at the start of the sampler, and at a tick at least.
    const WAITING: &str = "
import glob, os, sys, time
lengths = set()
while len(lengths) < 3:
    lengths |= {os.stat(tail).st_size for tail in glob.glob(sys.argv[1] + '/.*.samples.tail')}
    time.sleep(0.005)
";
    let scratch = Scratch::new("run-samples");
    let samples = |run: &Path| {
        fs::read_dir(run)
            .expect("a run")
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().ends_with(SAMPLES_END))
            .count()
    };
    let sampled = ["/usr/bin/python3", "-S", "-c", WAITING];
    for (place, (options, program, files)) in [
        (&["--sample", "100ms"][..], &sampled[..], 1),
        // Ended before anything was opened, and before the first tick.
        (&["--sample", "1000s"], &["sleep", "0.01"], 0),
        (&["--sample", "1000s"], &["sleep", "0.3"], 0),
        (&["--no-sample"], &["sleep", "0.8"], 0),
        (&[], &sampled, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let run = scratch.join(format!("run-{place}"));
        let mut command: Vec<OsString> = vec![product().into(), "run".into(), "-q".into(), "-o".into(), (&run).into()];
        command.extend(options.iter().map(Into::into));
        command.push("--".into());
        command.extend(program.iter().map(Into::into));
        command.extend((files > 0).then(|| run.clone().into()));
        let outcome = Job::new(command, &scratch.dir("work")).run();
        assert_eq!((outcome.status, said(&outcome)), (0, String::new()));
        assert_eq!(samples(&run), files, "{options:?}");
        let verdict = check(&run, &scratch);
        assert_eq!(verdict["complete"], true, "{verdict}");
        assert_eq!(verdict["samples"].as_u64().expect("a number") > 0, files > 0);
        assert_eq!(hidden(&run), [] as [&str; 0]);
        if files > 0 {
            let record = SupervisorRecord::read_all(&run).0.remove(0);
            let record = record.samples.expect("in the supervisor's record");
            assert!(record.processes >= 1 && record.samples == verdict["samples"], "{record:?}");
            let report = weft(
                ["report".as_ref(), "--json".as_ref(), "--view".as_ref(), "time_range".as_ref(), run.as_os_str()],
                &scratch,
            );
            assert!(
                String::from_utf8_lossy(&report.stdout).contains("sys_cpu_user_pct"),
                "samples are in the report: {}",
                excerpt(&report.stdout)
            );
        }
    }
}

/// No hook can be in a static program; the kernel sees what it does. Where the kernel lets nobody look, one sentence says so and the
/// program runs as ever.
#[test]
fn the_kernel_sees_static_programs() {
    let scratch = Scratch::new("kernel-static");
    let run = scratch.join("run");
    let program = compile("plain_work", STATIC);
    let words = ["run".as_ref(), "-q".as_ref(), "--kernel".as_ref(), "-o".as_ref(), run.as_os_str(), "--".as_ref()];
    let outcome = weft(words.into_iter().chain([program.as_os_str()]), &scratch);
    assert_eq!(outcome.status, 11, "{}", said(&outcome));
    if let Some((_, why)) = said(&outcome).split_once("without --kernel: ") {
        // A machine that lets nobody look, root or not; what is missing is named.
        assert!(why.contains("kernel") && !why.contains("built without"), "{why}");
        return;
    }
    let checked = check(&run, &scratch);
    let lines = checked["coverage"]["kernel"].as_array().expect("programs that the kernel told of");
    let name = program.to_string_lossy();
    let line = lines.iter().find(|line| line["program"] == *name).unwrap_or_else(|| panic!("{name}: {lines:?}"));
    // 100 blocks of 64 bytes to a file, 16 bytes to the standard output.
    assert_eq!((line["write"]["kernel"].as_u64(), line["write"]["traced"].as_u64()), (Some(6416), Some(0)), "{line}");
    assert!(
        checked["kernel_events"].as_u64() > Some(3) && checked["kernel_lost"] == serde_json::json!({}),
        "{checked}"
    );
}

/// What the sampler reads in the supervisor is not the program's: once a tenth of a program's reads were missing from its coverage so.
#[test]
fn samples_do_not_spoil_the_ledger() {
    let scratch = Scratch::new("ledger-samples");
    let tree_read = |option: &str, more: &[&str]| {
        let run = scratch.join(option);
        let mut words: Vec<OsString> = vec!["run".into(), "-q".into(), "-o".into(), run.clone().into()];
        words.extend([option].iter().chain(more).chain(&["--", "sleep", "0.8"]).map(Into::into));
        let outcome = weft(words, &scratch);
        assert_eq!(outcome.status, 0, "{}", said(&outcome));
        check(&run, &scratch)["coverage"]["tree_read"]["kernel"].as_u64().expect("a number")
    };
    let (without, with) = (tree_read("--no-sample", &[]), tree_read("--sample", &["10ms"]));
    assert!(with.abs_diff(without) < 1000, "{with} bytes with samples, {without} without");
}

/// A report of `weft collect` says what was sampled and draws it; it judges nothing.
#[test]
fn a_collection_has_a_report() {
    let scratch = Scratch::new("collect-report");
    let run = scratch.join("run");
    let mut child = std::process::Command::new("/usr/bin/python3")
        .args(["-S", "-c", "import time\nwhile time.process_time() < 1: pass"])
        .spawn()
        .expect("python3 starts");
    let pid = child.id().to_string();
    let outcome = job(&scratch, &["--tree", &pid, "--interval", "50ms"], Some(&run)).run();
    child.wait().expect("waited for");
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    let report = |more: &[&str]| {
        let mut arguments: Vec<OsString> = vec!["report".into()];
        arguments.extend(more.iter().map(Into::into));
        arguments.push(run.as_os_str().to_owned());
        let outcome = weft(arguments, &scratch);
        assert_eq!(outcome.status, 0, "{}", said(&outcome));
        String::from_utf8_lossy(&outcome.stdout).into_owned()
    };
    let shown = report(&[]);
    for expected in ["  Sampled ", "sampled  ", "over time", "memory used", "programs over time", "python3"] {
        assert!(shown.contains(expected), "{expected:?} is not in\n{shown}");
    }
    assert!(!shown.contains("rules checked") && !shown.contains("0 spans"), "{shown}");
    let value: serde_json::Value = serde_json::from_str(&report(&["--json"])).expect("JSON");
    let program = &value["sections"]["sampled_programs"][0];
    let cpu = program["cpu_ns"].as_f64().expect("a number");
    // It burns a second by its own clock; the collector came a little later.
    assert!((0.5e9..1.2e9).contains(&cpu), "{program}");
    let peak = program["cpu_peak_pct"].as_f64().expect("a number");
    assert!(peak > 0.0 && program["memory_peak_bytes"].as_f64().is_some_and(|peak| peak > 1e6), "{program}");
    let busy = value["sections"]["samples"]
        .as_array()
        .expect("rows")
        .iter()
        .find(|row| row["metric"] == "busy" && row["kind"] == "cpu");
    assert!(
        busy.is_some_and(
            |row| row["unit"] == "percent" && row["peak"].as_f64().is_some_and(|peak| peak > 0.0 && peak <= 100.0)
        ),
        "{busy:?}"
    );
}
