//! This machine: samples beside `/proc` read naively in the same moment, and programs whose use is known.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weftline_collect::cgroup::CgroupSampler;
use weftline_collect::host::HostSampler;
use weftline_collect::node::facts;
use weftline_collect::process::ProcessSampler;
use weftline_collect::roots::Roots;
use weftline_collect::sample::Interval;

use crate::stub::{Memory, Stub, second};

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

#[test]
fn own_process_beside_a_naive_reading() {
    let pid = std::process::id();
    let mut sampler = ProcessSampler::open(&Roots::default(), pid).expect("ourselves");
    let mut memory = Memory::default();
    sampler.sample(Interval { start_ns: 0, end_ns: now_ns() }, &mut memory).expect("sampled");
    let sample = memory.last("process", "process").expect("a sample");
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    let of_status: HashMap<&str, &str> =
        status.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key, value.trim())).collect();
    let files = std::fs::read_dir("/proc/self/fd").expect("readable").count() as f64;
    let found = memory.number("process", "detail", "open_files").expect("open files");
    // Other tests of this process open files and start threads meanwhile.
    assert!((found - files).abs() <= 60.0, "{found} against {files}");
    let resident: f64 = of_status["VmRSS"].trim_end_matches(" kB").parse().expect("a number");
    let rss = sample.number("rss_bytes").expect("a size") / 1024.0;
    assert!((rss - resident).abs() < 8192.0, "{rss} kB against {resident}");
    let identity = sampler.identity();
    assert_eq!(identity.exe.as_deref(), std::env::current_exe().expect("a program").to_str());
    assert_eq!(identity.uid.to_string(), of_status["Uid"].split_whitespace().next().expect("a user"));
    assert_eq!(identity.command, std::env::args().collect::<Vec<_>>());
    assert!(memory.number("process", "detail", "pss_bytes").is_some_and(|bytes| bytes > 0.0));
}

/// Puts the groups of a process into a stub tree of one version of control groups: what it has used and holds.
fn put_groups(stub: &Stub, version: u32, pid: u32, cpu_us: u64, memory: u64) {
    let group = "kubepods.slice/pod.slice/app.scope";
    if version == 2 {
        let at = format!("sys/fs/cgroup/{group}");
        stub.put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        stub.put(&format!("proc/{pid}/cgroup"), format!("0::/{group}\n"));
        stub.put(&format!("{at}/cpu.stat"), format!("usage_usec {cpu_us}\nuser_usec {cpu_us}\nsystem_usec 0\n"));
        stub.put(&format!("{at}/memory.current"), format!("{memory}\n"));
    } else {
        // As this project's machines have it: one hierarchy per controller, and a process at the root of some.
        stub.put(
            &format!("proc/{pid}/cgroup"),
            format!("5:pids:/\n4:memory:/{group}\n2:cpuacct:/{group}\n1:cpu:/\n0::/\n"),
        );
        stub.put(&format!("sys/fs/cgroup/cpuacct/{group}/cpuacct.usage"), format!("{}\n", cpu_us * 1000));
        stub.put(&format!("sys/fs/cgroup/memory/{group}/memory.usage_in_bytes"), format!("{memory}\n"));
        stub.put("sys/fs/cgroup/memory/memory.usage_in_bytes", "99999999\n");
    }
}

/// The group of a process in stub trees, so that this is tested on machines that show none; and on this machine, if it shows any.
#[test]
fn own_group() {
    let pid = std::process::id();
    for version in [1, 2] {
        let stub = Stub::new();
        put_groups(&stub, version, pid, 1_000_000, 4096);
        let mut group = CgroupSampler::of_process(&stub.roots(), pid).expect("our own group");
        assert_eq!(group.name(), "/kubepods.slice/pod.slice/app.scope");
        let mut memory = Memory::default();
        group.sample(second(1), &mut memory).expect("sampled");
        put_groups(&stub, version, pid, 1_250_000, 8192);
        group.sample(second(2), &mut memory).expect("sampled");
        for (name, expected) in [("memory_bytes", 8192.0), ("cpu_ns", 250e6), ("cpu_pct", 25.0)] {
            let found = memory.number("cgroup", group.name(), name);
            assert_eq!(found, Some(expected), "version {version}: {name} in {:?}", memory.counters);
        }
    }
    let shown = Path::new("/sys/fs/cgroup").read_dir().is_ok_and(|mut entries| entries.next().is_some());
    match CgroupSampler::of_process(&Roots::default(), pid) {
        Ok(mut group) => {
            let mut memory = Memory::default();
            group.sample(second(1), &mut memory).expect("sampled");
            group.sample(second(2), &mut memory).expect("sampled");
            assert!(memory.number("cgroup", group.name(), "memory_bytes").is_some(), "{:?}", memory.counters);
        }
        Err(error) => assert!(!shown, "{error}, although this machine shows groups"),
    }
}

#[test]
fn own_machine() {
    let roots = Roots::default();
    let found = facts(&roots, None);
    let cores = std::thread::available_parallelism().expect("known").get();
    assert!(found.cores as usize >= cores);
    let frequency = found.cpu_frequency.expect("a frequency");
    assert!((500_000_000..10_000_000_000).contains(&frequency.hz), "{frequency:?}");
    assert_eq!(found.memory_bytes, Some(numbers("/proc/meminfo", "MemTotal:")[0] as u64 * 1024));
}
