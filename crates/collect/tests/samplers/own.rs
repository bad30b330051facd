//! This machine: what its own files say of this process, its groups and its hardware. Nothing here depends on time; what does is in
//! `live.rs`.

use std::collections::HashMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weftline_collect::cgroup::CgroupSampler;
use weftline_collect::node::info;
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
    let found = info(&roots, None);
    let cores = std::thread::available_parallelism().expect("known").get();
    assert!(found.cores as usize >= cores);
    let frequency = found.cpu_frequency.expect("a frequency");
    assert!((500_000_000..10_000_000_000).contains(&frequency.hz), "{frequency:?}");
    assert_eq!(found.memory_bytes, Some(numbers("/proc/meminfo", "MemTotal:")[0] as u64 * 1024));
}
