//! Samplers beside `/proc` read naively in the same moment, and programs whose use is known.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weftline_collect::host::HostSampler;
use weftline_collect::process::ProcessSampler;
use weftline_collect::roots::Roots;
use weftline_collect::sample::Interval;

use crate::stub::Memory;

fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after the epoch");
    i64::try_from(now.as_nanos()).expect("before the year 2262")
}

/// The numbers of the first line that starts with a word.
fn numbers(file: &str, word: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(file).expect("readable");
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(word)).expect("the line");
    line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn host_beside_a_naive_reading() {
    let mut sampler = HostSampler::new(&Roots::default());
    let mut memory = Memory::default();
    let begin = now_ns();
    let before = numbers("/proc/stat", "cpu");
    sampler.sample(Interval { start_ns: begin, end_ns: begin }, &mut memory);
    let spun = Instant::now();
    while spun.elapsed() < Duration::from_secs(2) {
        std::hint::spin_loop();
    }
    let after = numbers("/proc/stat", "cpu");
    let end = now_ns();
    sampler.sample(Interval { start_ns: begin, end_ns: end }, &mut memory);
    let grown: Vec<f64> = after.iter().zip(&before).take(8).map(|(after, before)| (after - before).max(0.0)).collect();
    let whole: f64 = grown.iter().sum();
    for (place, name) in
        ["user_pct", "nice_pct", "system_pct", "idle_pct", "iowait_pct", "irq_pct", "softirq_pct", "steal_pct"]
            .into_iter()
            .enumerate()
    {
        let found = memory.number("sys", "cpu", name).expect("a share");
        let naive = grown[place] * 100.0 / whole;
        assert!((found - naive).abs() < 2.0, "{name}: {found} against {naive}");
    }
    let cores = std::fs::read_to_string("/proc/stat")
        .expect("readable")
        .lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
        .count();
    let sampled = memory.counters.iter().filter(|sample| sample.name.starts_with("cpu-")).count();
    assert_eq!(sampled, cores, "each core once, at the second sample");
    let total = numbers("/proc/meminfo", "MemTotal:")[0];
    assert_eq!(memory.number("sys", "memory", "MemTotal"), Some(total));
    let text = std::fs::read_to_string("/proc/loadavg").expect("readable");
    let naive: f64 = text.split_whitespace().nth(2).and_then(|word| word.parse().ok()).expect("a load");
    assert!(memory.number("sys", "load", "load15").is_some_and(|load| (load - naive).abs() < 1.0));
    assert!(memory.counters.iter().any(|sample| sample.category == "fs" && sample.name == "/"));
}

/// A program that uses two seconds of CPU by its own clock, however long that takes, then waits for its input to end.
fn burner(program: &str) -> std::process::Child {
    Command::new("/usr/bin/python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3")
}

fn wait_for_line(child: &mut std::process::Child) {
    use std::io::BufRead;
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "done\n");
}

#[test]
fn two_seconds_of_a_core() {
    let alone = "import sys,time\nwhile time.process_time() < 2.0: pass\nprint('done', flush=True)\nsys.stdin.read()";
    // Twenty threads one after the other: all but the last are gone when the sample is taken.
    let threads = "import sys,time,threading\ndef burn(until):\n  while time.process_time() < until: pass\nfor n in range(1,21):\n  t=threading.Thread(target=burn,args=(n*0.1,)); t.start(); t.join()\nprint('done', flush=True)\nsys.stdin.read()";
    // Another name of `/proc` is taken for another namespace's, whose processes have no clocks for us: then threads are summed up.
    let foreign = Roots { proc: "/proc/../proc".into(), ..Roots::default() };
    for (program, roots) in
        [(alone, Roots::default()), (threads, Roots::default()), (alone, foreign.clone()), (threads, foreign)]
    {
        let mut child = burner(program);
        let mut sampler = ProcessSampler::open(&roots, child.id()).expect("it runs");
        sampler.count_from_birth();
        let mut memory = Memory::default();
        let mut start = sampler.identity().start_ns;
        let mut step = |sampler: &mut ProcessSampler, memory: &mut Memory| {
            let end = now_ns();
            sampler.sample(Interval { start_ns: start, end_ns: end }, memory).expect("it still runs");
            start = end;
        };
        for _ in 0..5 {
            step(&mut sampler, &mut memory);
            std::thread::sleep(Duration::from_millis(100));
        }
        wait_for_line(&mut child);
        step(&mut sampler, &mut memory);
        let emitted: f64 = memory
            .counters
            .iter()
            .filter(|sample| sample.name == "process")
            .filter_map(|sample| sample.number("cpu_ns"))
            .sum();
        assert!((emitted - 2e9).abs() < 2e7, "{emitted} ns emitted");
        let total = sampler.last_totals();
        assert_eq!(total.cpu_ns as f64, emitted, "differences add up to the total");
        let ticks = total.user_ns + total.system_ns;
        assert!(total.cpu_ns.abs_diff(ticks) <= 30_000_000, "{ticks} ns by ticks");
        drop(child.stdin.take());
        child.wait().expect("it ends");
        let gone = sampler.sample(Interval { start_ns: 0, end_ns: 1 }, &mut memory).expect_err("it is gone");
        assert_eq!(gone.raw_os_error(), Some(3), "ESRCH: {gone}");
    }
}
