//! This machine as it is: its clock, its scheduler and its kernel's records judge what was sampled. `samplers` beside `/proc` read naively.
//!
//! Everything here takes real time and can be wrong because somebody else holds the machine up, so it has a stage of its own (profile
//! `live` of nextest): one at a time, and a wrong value must be wrong again.

#[path = "live/samplers.rs"]
mod samplers;
#[allow(dead_code, reason = "shared with the tests of samplers, which use all of it")]
#[path = "samplers/stub.rs"]
mod stub;
mod support;

use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weftline_collect::collector::{Collector, Options, Stop};
use weftline_collect::follow::Follow;
use weftline_format::Value;
use weftline_format::manifest::{SampleRecord, State, SupervisorRecord};

use support::{burner, counters, of, options, printed, python, sum};

/// A collector in a thread.
struct Running {
    stop: Stop,
    thread: JoinHandle<(SampleRecord, Vec<String>)>,
}

fn start(options: Options) -> Running {
    let collector = Collector::start(options).expect("a collector");
    let stop = collector.stopper();
    let thread = std::thread::spawn(move || {
        let mut said = Vec::new();
        let record = collector.run(&mut |text| said.push(text.to_owned()));
        (record, said)
    });
    Running { stop, thread }
}

impl Running {
    /// Stops it, which takes less than a second; what it did and said.
    fn stop(self) -> (SampleRecord, Vec<String>) {
        let asked = Instant::now();
        self.stop.stop();
        let done = self.thread.join().expect("no panic");
        assert!(asked.elapsed() < Duration::from_secs(1), "it took {:?}", asked.elapsed());
        done
    }
}

/// A process that burns one core for two seconds shows two seconds within one percent; intervals follow each other without a gap.
#[test]
fn two_seconds_of_one_core_are_two_seconds() {
    let run = tempfile::tempdir().expect("a directory");
    let pids = run.path().join("pids");
    let running = start(options(run.path(), 200, Follow { pid_dir: Some(pids.clone()), ..Follow::default() }));
    let mut child = burner(2.0);
    let pid = child.id();
    fs::write(pids.join(pid.to_string()), "").expect("a sentinel");
    let own = printed(&mut child);
    let (record, _) = running.stop();
    child.wait().expect("waited");
    let events = of(&counters(run.path()), pid, "process");
    let cpu = sum(&events, "cpu_ns");
    assert!((cpu - 2e9).abs() < 2e7, "{cpu} ns of CPU in {} samples, the program says {own}", events.len());
    let mut ends: Vec<(i64, i64)> =
        events.iter().filter_map(|event| Some((event.start_ns?, event.end_ns()?))).collect();
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ends:?}");
    assert_eq!((record.unseen_ends, record.processes), (0, 1));
    let records = SupervisorRecord::read_all(run.path()).0;
    assert!(records.len() == 1 && records[0].state == State::Complete && records[0].only_samples());
    assert_eq!(records[0].samples.as_ref(), Some(&record));
}

/// Starts processes that are gone when they end, since their parent does not want to hear of them: four that use 80 ms of CPU, two of them
/// with threads. They begin when the collector, which is in this process, has them open. Pids, and CPU time by their own clocks.
fn vanishing(pids: &Path) -> Vec<(u32, f64)> {
    let mut parent = python(&format!(
        "
import os, signal, threading, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def followed(pid):
    held = f'/proc/{{os.getppid()}}/fd'
    for name in os.listdir(held):
        try:
            if os.readlink(f'{{held}}/{{name}}') == f'/proc/{{pid}}': return True
        except FileNotFoundError: pass
def burn(clock, until):
    while clock() < until: pass
for number in range(4):
    ready, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(ready, 1)
        if number % 2:
            threads = [threading.Thread(target=burn, args=(time.thread_time, 0.02)) for _ in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        burn(time.process_time, 0.08)
        os.write(1, f'{{os.getpid()}} {{time.process_time_ns()}}\\n'.encode())
        os._exit(0)
    open(f'{}/{{pid}}', 'w').close()
    while not followed(pid): time.sleep(0.001)
    os.write(go, b'x')
    while os.path.exists(f'/proc/{{pid}}'): time.sleep(0.001)
",
        pids.display()
    ));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut parent.stdout.take().expect("piped"), &mut text).expect("read to its end");
    assert!(parent.wait().expect("waited").success());
    let ends: Vec<(u32, f64)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(pid, time)| (pid.parse().expect("a pid"), time.parse().expect("a time")))
        .collect();
    assert_eq!(ends.len(), 4, "{text}");
    ends
}

/// Whether the kernel gives its records of ends to this process: CAP_NET_ADMIN, and the machine's own namespaces.
fn hears_of_ends() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    let capabilities = u64::from_str_radix(capabilities.trim(), 16).expect("a number");
    // The first namespaces of each kind have numbers that never change.
    let first = |kind: &str, number: &str| {
        fs::read_link(format!("/proc/self/ns/{kind}")).is_ok_and(|name| name.to_string_lossy().contains(number))
    };
    capabilities & 1 << 12 != 0 && first("pid", "4026531836") && first("user", "4026531837")
}

/// A process that nobody could look at in time is exact all the same where the kernel tells of ends (taskstats); where it does not, or
/// nobody asks it, the time that nobody saw is stated.
#[test]
fn the_kernel_tells_of_ends_that_nobody_saw() {
    for asked in [true, false] {
        let run = tempfile::tempdir().expect("a directory");
        let pids = run.path().join("pids");
        let follow = Follow { pid_dir: Some(pids.clone()), ..Follow::default() };
        let running = start(Options { exit_records: asked, ..options(run.path(), 60_000, follow) });
        let ends = vanishing(&pids);
        let (record, said) = running.stop();
        let all = counters(run.path());
        let reported = asked && hears_of_ends();
        for (pid, own) in &ends {
            let cpu = sum(&of(&all, *pid, "process"), "cpu_ns");
            let end = of(&all, *pid, "end");
            assert_eq!(end.len(), 1, "{pid}");
            let stated = |key: &str| end[0].arg(key).and_then(Value::as_f64);
            let unseen = stated("unseen_ns").expect("stated");
            if reported {
                // A tick of the scheduler, and what the program did behind its last words.
                assert!((cpu - own).abs() < 6e6, "{cpu} ns in samples, {own} by its own clock");
                // By luck somebody looked at it just in time: then its bytes are known too.
                let seen = stated("total_read_chars").is_some();
                assert!(unseen == 0.0 && (seen || stated("bytes_unseen_ns") >= Some(8e7)), "{:?}", end[0]);
                assert_eq!(stated("total_cpu_ns"), Some(cpu), "from its birth");
            } else {
                assert!(cpu < own / 2.0, "{cpu} ns of {own} were seen although it was gone");
                assert!(unseen >= own - cpu - 6e6 && stated("bytes_unseen_ns").is_none(), "{:?}", end[0]);
            }
        }
        assert_eq!((record.processes, said), (4, vec![]));
        assert_eq!((record.told_ends, record.unseen_ends), if reported { (4, 0) } else { (0, 4) });
        assert_eq!(record.unseen_ns > 3e8 as u64, !reported, "{record:?}");
    }
}

/// With all cores busy, ticks stay on their grid: no drift, and the intervals of the samples are what really passed.
#[test]
fn the_clock_is_steady_on_a_busy_machine() {
    let run = tempfile::tempdir().expect("a directory");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut loops: Vec<Child> = (0..cores).map(|_| python("while True: pass")).collect();
    let began = Instant::now();
    let running = start(options(run.path(), 40, Follow::default()));
    std::thread::sleep(Duration::from_secs(4));
    let (record, _) = running.stop();
    let passed = began.elapsed();
    for child in &mut loops {
        child.kill().expect("killed");
        child.wait().expect("waited");
    }
    let due = passed.as_millis() as u64 / 40;
    let counted = record.ticks + record.skipped_ticks;
    assert!(counted <= due && counted + 5 >= due, "{counted} deadlines in {passed:?}: {record:?}");
    let cpu = of(&counters(run.path()), 0, "cpu");
    let covered: i64 = cpu.iter().filter_map(|event| event.dur_ns).sum();
    let (first, last) = (cpu[0].start_ns.expect("a time"), cpu[cpu.len() - 1].end_ns().expect("a time"));
    assert_eq!(covered, last - first, "without gaps");
    // All processors are busy, and samples say so.
    let idle = sum(&cpu, "idle_pct") / cpu.len() as f64;
    assert!(idle < 15.0, "{idle} % idle");
}
