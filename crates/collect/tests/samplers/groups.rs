//! Control groups of both versions, by stub trees.

use std::path::Path;

use weftline_collect::cgroup::{CgroupSampler, container_of, paths_of};

use crate::stub::{Memory, Stub, second};

fn check(memory: &Memory, name: &str, expected: &[(&str, Option<f64>)]) {
    for (value, number) in expected {
        let found = memory.number("cgroup", name, value);
        let same = match (found, number) {
            (Some(found), Some(number)) => (found - number).abs() < 1e-6,
            (found, number) => found.is_none() && number.is_none(),
        };
        assert!(same, "{value} is {found:?}, not {number:?}");
    }
}

#[test]
fn version_2() {
    let stub = Stub::new();
    let group = "sys/fs/cgroup/a.slice/b.scope";
    stub.put("sys/fs/cgroup/cgroup.controllers", "cpu memory io\n");
    let cpu = |usage: u64, throttled: u64| {
        format!(
            "usage_usec {usage}\nuser_usec 60\nsystem_usec 40\nnr_periods {throttled}\nnr_throttled {throttled}\nthrottled_usec {throttled}\n"
        )
    };
    stub.put(&format!("{group}/cpu.stat"), cpu(1_000_000, 1));
    stub.put(&format!("{group}/cpu.max"), "150000 100000\n");
    stub.put(&format!("{group}/memory.current"), "4096\n");
    stub.put(&format!("{group}/memory.max"), "max\n");
    stub.put(&format!("{group}/memory.stat"), "anon 1024\nfile 2048\nkernel 1\n");
    stub.put(&format!("{group}/memory.events"), "low 0\nhigh 0\nmax 0\noom 1\noom_kill 1\n");
    stub.put(&format!("{group}/io.stat"), "254:0 rbytes=100 wbytes=10 rios=1 wios=2 dbytes=0 dios=0\n8:0 rbytes=1 wbytes=1 rios=1 wios=1 dbytes=0 dios=0\n");
    stub.put(&format!("{group}/pids.current"), "7\n");
    stub.put(
        &format!("{group}/io.pressure"),
        "some avg10=0 avg60=0 avg300=0 total=10\nfull avg10=0 avg60=0 avg300=0 total=0\n",
    );
    let mut sampler = CgroupSampler::open(&stub.roots(), Path::new("/a.slice/b.scope")).expect("a group");
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory).expect("sampled");
    check(
        &memory,
        "/a.slice/b.scope",
        &[
            ("cpu_ns", None),
            ("memory_bytes", Some(4096.0)),
            ("memory_limit_bytes", None),
            ("cpu_limit", Some(1.5)),
            ("tasks", Some(7.0)),
        ],
    );
    stub.put(&format!("{group}/cpu.stat"), cpu(1_500_000, 4));
    stub.put(&format!("{group}/memory.max"), "1048576\n");
    stub.put(
        &format!("{group}/io.stat"),
        "254:0 rbytes=300 wbytes=10 rios=3 wios=2 dbytes=0 dios=0\n8:0 rbytes=1 wbytes=5 rios=1 wios=2\n",
    );
    stub.put(&format!("{group}/io.pressure"), "some avg10=0 avg60=0 avg300=0 total=25\n");
    stub.put(&format!("{group}/memory.events"), "oom_kill 3\n");
    sampler.sample(second(2), &mut memory).expect("sampled");
    check(
        &memory,
        "/a.slice/b.scope",
        &[
            ("cpu_ns", Some(500e6)),
            ("cpu_pct", Some(50.0)),
            ("throttled_periods", Some(3.0)),
            ("throttled_ns", Some(3000.0)),
            ("memory_limit_bytes", Some(1048576.0)),
            ("anonymous_bytes", Some(1024.0)),
            ("file_bytes", Some(2048.0)),
            ("read_bytes", Some(200.0)),
            ("write_bytes", Some(4.0)),
            ("read_operations", Some(2.0)),
            ("write_operations", Some(1.0)),
            ("io_stall_ns", Some(15_000.0)),
            ("oom_kills", Some(2.0)),
        ],
    );
    // By directory it is the same group.
    let by_directory = CgroupSampler::open(&stub.roots(), &stub.path(group)).expect("a group");
    assert_eq!(by_directory.name(), "/a.slice/b.scope");
    let none = CgroupSampler::open(&stub.roots(), Path::new("/no/such")).expect_err("no group");
    assert_eq!(none.kind(), std::io::ErrorKind::NotFound);
    CgroupSampler::open(&stub.roots(), Path::new("/../../../../../a.slice/../../b.scope"))
        .expect("upward parts are left out");
}

#[test]
fn version_1() {
    let stub = Stub::new();
    let put = |usage: u64, throttled: u64, read: u64| {
        stub.put("sys/fs/cgroup/cpu,cpuacct/g/cpuacct.usage", format!("{usage}\n"));
        stub.put("sys/fs/cgroup/cpu,cpuacct/g/cpuacct.stat", format!("user {}\nsystem 3\n", usage / 10_000_000));
        stub.put(
            "sys/fs/cgroup/cpu,cpuacct/g/cpu.stat",
            format!("nr_periods 9\nnr_throttled {throttled}\nthrottled_time {throttled}\n"),
        );
        stub.put(
            "sys/fs/cgroup/blkio/g/blkio.throttle.io_service_bytes",
            format!("254:0 Read {read}\n254:0 Write 5\n254:0 Sync 9\n254:0 Total 9\nTotal 9\n"),
        );
    };
    put(1_000_000_000, 2, 100);
    stub.put("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_quota_us", "-1\n");
    stub.put("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_period_us", "100000\n");
    stub.put("sys/fs/cgroup/memory/g/memory.usage_in_bytes", "8192\n");
    stub.put("sys/fs/cgroup/memory/g/memory.limit_in_bytes", "9223372036854771712\n");
    stub.put("sys/fs/cgroup/memory/g/memory.memsw.usage_in_bytes", "12288\n");
    stub.put("sys/fs/cgroup/memory/g/memory.stat", "cache 1\nrss 2\ntotal_cache 4096\ntotal_rss 2048\n");
    let mut sampler = CgroupSampler::open(&stub.roots(), Path::new("/g")).expect("a group");
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory).expect("sampled");
    check(
        &memory,
        "/g",
        &[
            ("cpu_limit", None),
            ("memory_limit_bytes", None),
            ("swap_bytes", Some(4096.0)),
            ("file_bytes", Some(4096.0)),
        ],
    );
    put(1_200_000_000, 5, 50);
    stub.put("sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_quota_us", "50000\n");
    stub.put("sys/fs/cgroup/memory/g/memory.limit_in_bytes", "1000000\n");
    sampler.sample(second(2), &mut memory).expect("sampled");
    check(
        &memory,
        "/g",
        &[
            ("cpu_ns", Some(200e6)),
            ("user_ns", Some(200e6)),
            ("throttled_ns", Some(3.0)),
            ("cpu_limit", Some(0.5)),
            ("memory_limit_bytes", Some(1e6)),
            // The counter was reset.
            ("read_bytes", Some(0.0)),
            ("write_bytes", Some(0.0)),
        ],
    );
    let by_directory = CgroupSampler::open(&stub.roots(), &stub.path("sys/fs/cgroup/memory/g")).expect("a group");
    assert_eq!(by_directory.name(), "/g");
}

#[test]
fn of_processes() {
    let stub = Stub::new();
    stub.put("proc/5/cgroup", "4:memory:/slurm/uid_1/job_8/step_0\n2:cpu,cpuacct:/\n0::/\ngarbage\n");
    stub.put("sys/fs/cgroup/memory/slurm/uid_1/job_8/step_0/memory.usage_in_bytes", "4096\n");
    stub.put("sys/fs/cgroup/cpuacct/cpuacct.usage", "77\n");
    let paths = paths_of(&stub.roots(), 5).expect("paths");
    let controllers: Vec<&str> = paths.iter().map(|(controller, _)| controller.as_str()).collect();
    assert_eq!(controllers, ["memory", "cpu", "cpuacct", ""]);
    let container = container_of(&stub.roots(), 5).expect("a job");
    assert_eq!((container.runtime, container.id.as_str()), ("slurm", "8.0"));
    let mut sampler = CgroupSampler::of_process(&stub.roots(), 5).expect("groups");
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory).expect("sampled");
    check(&memory, "/slurm/uid_1/job_8/step_0", &[("memory_bytes", Some(4096.0))]);
}
