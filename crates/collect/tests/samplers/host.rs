//! The machine, by stub files whose differences are known.

use weftline_collect::host::HostSampler;

use crate::stub::{Memory, Stub, second};

/// Two readings of one file; what must be emitted after the second.
fn check(file: &str, readings: [&str; 2], expected: &[(&str, &str, &str, f64)]) -> Memory {
    let stub = Stub::new();
    stub.make("sys/block/vda");
    stub.put(file, readings[0]);
    let mut sampler = HostSampler::new(&stub.roots());
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory);
    stub.put(file, readings[1]);
    memory.counters.clear();
    sampler.sample(second(2), &mut memory);
    for (category, name, value, number) in expected {
        let found = memory.number(category, name, value);
        let close = found.is_some_and(|found| (found - number).abs() < 1e-9);
        assert!(close, "{file}: {category} {name} {value} is {found:?}, not {number}");
    }
    memory
}

#[test]
fn processors() {
    let first = "cpu  100 0 50 800 10 0 5 1 0 0\ncpu0 50 0 25 400 5 0 2 1 0 0\ncpu1 50 0 25 400 5 0 3 0 0 0\nintr 1000 1 2 3\nctxt 500\nbtime 1\nprocesses 70\nprocs_running 2\nprocs_blocked 1\n";
    let second = "cpu  150 10 70 890 20 2 8 11 0 0\ncpu0 100 0 25 400 5 0 2 1 0 0\ncpu1 50 0 25 400 5 0 3 0 0 0\nintr 1500 1 2 3\nctxt 900\nbtime 1\nprocesses 75\nprocs_running 3\nprocs_blocked 0\n";
    // Grown by 50 10 20 90 10 2 3 10: 195 in all.
    let share = |ticks: f64| ticks * 100.0 / 195.0;
    let memory = check(
        "proc/stat",
        [first, second],
        &[
            ("sys", "cpu", "user_pct", share(50.0)),
            ("sys", "cpu", "nice_pct", share(10.0)),
            ("sys", "cpu", "system_pct", share(20.0)),
            ("sys", "cpu", "idle_pct", share(90.0)),
            ("sys", "cpu", "iowait_pct", share(10.0)),
            ("sys", "cpu", "irq_pct", share(2.0)),
            ("sys", "cpu", "softirq_pct", share(3.0)),
            ("sys", "cpu", "steal_pct", share(10.0)),
            ("sys", "cpu-0", "user_pct", 100.0),
            ("sys", "kernel", "interrupts", 500.0),
            ("sys", "kernel", "context_switches", 400.0),
            ("sys", "kernel", "forks", 5.0),
            ("sys", "kernel", "running", 3.0),
        ],
    );
    assert!(memory.last("sys", "cpu-1").is_none(), "a core for which no time was accounted has no shares");
    // Idle and waiting times may be corrected downwards by the kernel.
    check(
        "proc/stat",
        ["cpu 100 0 50 800 10 0 5 1\n", "cpu 110 0 50 790 9 0 5 1\n"],
        &[("sys", "cpu", "user_pct", 100.0), ("sys", "cpu", "idle_pct", 0.0)],
    );
    // A core that comes later has no shares at first.
    let memory = check("proc/stat", ["cpu 1 0 0 1\ncpu0 1 0 0 1\n", "cpu 2 0 0 2\ncpu0 2 0 0 2\ncpu7 9 9 9 9\n"], &[]);
    assert!(memory.last("sys", "cpu-0").is_some() && memory.last("sys", "cpu-7").is_none());
}

#[test]
fn load_and_memory() {
    check(
        "proc/loadavg",
        ["0 0 0 1/1 1\n", "0.52 0.58 0.59 3/812 4242\n"],
        &[("sys", "load", "load1", 0.52), ("sys", "load", "load15", 0.59), ("sys", "load", "tasks", 812.0)],
    );
    let text = "MemTotal:       1000 kB\nMemFree:   200 kB\nUnheardOf: 7 kB\nDirty: 12 kB\nSwapCached:  5 kB\nSwapTotal: 100 kB\nSwapFree: 30 kB\nHugePages_Total:  4\n";
    let ordered = "MemTotal:       1000 kB\nMemFree:   200 kB\nUnheardOf: 7 kB\nSwapCached:  5 kB\nSwapTotal: 100 kB\nSwapFree: 30 kB\nDirty: 12 kB\nHugePages_Total:  4\n";
    let memory = check(
        "proc/meminfo",
        [text, ordered],
        &[
            ("sys", "memory", "MemTotal", 1000.0),
            ("sys", "memory", "Dirty", 12.0),
            ("sys", "memory", "HugePages_Total", 4.0),
            ("sys", "swap", "used_kb", 70.0),
        ],
    );
    assert_eq!(memory.number("sys", "memory", "UnheardOf"), None);
    check(
        "proc/vmstat",
        [
            "nr_free_pages 1\npswpin 5\npswpout 1\npgmajfault 7\n",
            "nr_free_pages 1\npswpin 9\npswpout 1\npgmajfault 6\n",
        ],
        &[
            ("sys", "paging", "swapped_in", 4.0),
            ("sys", "paging", "swapped_out", 0.0),
            ("sys", "paging", "major_faults", 0.0),
        ],
    );
}

#[test]
fn pressure() {
    let line = |some: u64, full: u64| {
        format!(
            "some avg10=1.00 avg60=2.00 avg300=3.00 total={some}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n"
        )
    };
    check(
        "proc/pressure/io",
        [&line(1_000_000, 5), &line(1_250_000, 5)],
        &[
            ("sys", "pressure-io", "some_ns", 250_000_000.0),
            ("sys", "pressure-io", "some_pct", 25.0),
            ("sys", "pressure-io", "full_ns", 0.0),
        ],
    );
}

#[test]
fn disks() {
    let first = " 254 0 vda 10 1 100 4 20 2 200 8 0 4294967000 4294967290 1 0 8 0 3 9\n 254 1 vda1 9 1 99 4 20 2 200 8 0 5 6 0 0 0 0 0 0\n 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    let second = " 254 0 vda 15 1 108 6 30 2 300 18 3 204 994 1 0 8 0 4 9\n 254 1 vda1 9 1 99 4 20 2 200 8 0 5 6 0 0 0 0 0 0\n 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    let memory = check(
        "proc/diskstats",
        [first, second],
        &[
            ("io", "vda", "reads_completed", 5.0),
            ("io", "vda", "bytes_read", 4096.0),
            ("io", "vda", "writes_completed", 10.0),
            ("io", "vda", "bytes_written", 51200.0),
            ("io", "vda", "read_ns", 2e6),
            ("io", "vda", "ios_in_progress", 3.0),
            // The 32 bits of milliseconds ran over: 296 + 204.
            ("io", "vda", "busy_ns", 500e6),
            ("io", "vda", "busy_pct", 50.0),
            ("io", "vda", "queue", 1.0),
            ("io", "vda", "flushes_completed", 1.0),
        ],
    );
    assert_eq!(memory.counters.len(), 1, "partitions and devices that did nothing are not told of");
}

#[test]
fn network() {
    let heading = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n";
    let first = format!(
        "{heading}    lo:  10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n  eth0:1000 10 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    );
    let second = format!(
        "{heading}    lo:  10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n  eth0:4000 30 1 2 0 0 0 3 100 6 0 0 0 0 0 0\n ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    );
    let memory = check(
        "proc/net/dev",
        [&first, &second],
        &[
            ("net", "eth0", "bytes_recv", 3000.0),
            ("net", "eth0", "packets_recv", 20.0),
            ("net", "eth0", "rx_errors", 1.0),
            ("net", "eth0", "rx_dropped", 2.0),
            // The driver was loaded again.
            ("net", "eth0", "bytes_sent", 0.0),
            ("net", "lo", "bytes_recv", 0.0),
        ],
    );
    assert!(memory.last("net", "ifb0").is_none());
}

#[test]
fn file_systems() {
    let stub = Stub::new();
    let place = stub.root().join("a b");
    std::fs::create_dir(&place).expect("made");
    let escaped = place.to_str().expect("plain").replace(' ', "\\040");
    let line =
        |device: &str, point: &str, kind: &str| format!("1 2 {device} / {point} rw shared:1 master:2 - {kind} x rw\n");
    let mounts = [
        line("254:1", &escaped, "ext4"),
        line("254:1", "/bound/elsewhere", "ext4"),
        line("0:50", "/nfs", "nfs4"),
        line("0:51", "/no/such/place", "xfs"),
        "garbage\n".to_owned(),
    ];
    stub.put("proc/self/mountinfo", mounts.concat());
    let mut sampler = HostSampler::new(&stub.roots());
    let mut memory = Memory::default();
    for number in 1..=11 {
        sampler.sample(second(number), &mut memory);
    }
    let found: Vec<_> = memory
        .counters
        .iter()
        .map(|sample| (sample.category.as_str(), sample.name.as_str(), sample.at.end_ns / 1_000_000_000))
        .collect();
    let name = place.to_str().expect("plain");
    assert_eq!(found, [("fs", name, 1), ("fs", name, 6), ("fs", name, 11)]);
    let space = rustix::fs::statvfs(&place).expect("a file system");
    assert_eq!(memory.number("fs", name, "total_bytes"), Some((space.f_blocks * space.f_frsize) as f64));
}

#[test]
fn what_is_absent_is_listed() {
    let stub = Stub::new();
    stub.put("proc/loadavg", "1 2 3 4/5 6");
    let mut sampler = HostSampler::new(&stub.roots());
    assert_eq!(sampler.absent().len(), 9, "{:?}", sampler.absent());
    assert!(sampler.absent().iter().any(|path| path.ends_with("/proc/pressure/memory")));
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory);
    assert_eq!(memory.counters.len(), 1);
}
