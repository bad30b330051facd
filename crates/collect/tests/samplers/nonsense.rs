//! Files of arbitrary bytes: nothing panics, and nothing that is emitted is not a number.

use proptest::prelude::*;
use std::path::Path;

use weftline_collect::cgroup::CgroupSampler;
use weftline_collect::energy::EnergySampler;
use weftline_collect::gpu::GpuSampler;
use weftline_collect::host::HostSampler;
use weftline_collect::node::info;
use weftline_collect::process::ProcessSampler;

use crate::stub::{Memory, Stub, second};

const FILES: [&str; 38] = [
    "proc/stat",
    "proc/loadavg",
    "proc/meminfo",
    "proc/vmstat",
    "proc/pressure/cpu",
    "proc/pressure/io",
    "proc/diskstats",
    "proc/net/dev",
    "proc/net/route",
    "proc/self/mountinfo",
    "proc/cpuinfo",
    "proc/device-tree/cpus/cpu@0/clock-frequency",
    "proc/7/stat",
    "proc/7/io",
    "proc/7/status",
    "proc/7/cmdline",
    "proc/7/cgroup",
    "proc/7/mountinfo",
    "proc/7/schedstat",
    "proc/7/smaps_rollup",
    "proc/7/task/7/schedstat",
    "proc/7/task/7/status",
    "sys/devices/system/cpu/online",
    "sys/class/net/eth0/speed",
    "sys/class/powercap/intel-rapl:0/energy_uj",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj",
    "sys/class/hwmon/hwmon0/power1_input",
    "sys/class/drm/card0/device/gpu_busy_percent",
    "sys/class/drm/card0/device/mem_info_vram_used",
    "sys/fs/cgroup/cgroup.controllers",
    "sys/fs/cgroup/g/cpu.stat",
    "sys/fs/cgroup/g/cpu.max",
    "sys/fs/cgroup/g/memory.stat",
    "sys/fs/cgroup/g/io.stat",
    "sys/fs/cgroup/g/cpu.pressure",
    "sys/fs/cgroup/memory/g/memory.memsw.usage_in_bytes",
    "sys/fs/cgroup/blkio/g/blkio.throttle.io_serviced",
    "sys/fs/cgroup/cpu/g/cpu.cfs_quota_us",
];

/// Bytes, and texts that begin as the real ones do and go wrong later.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        Just(u64::MAX.to_string()),
        Just("0".to_owned()),
        Just("-1".to_owned()),
        any::<u64>().prop_map(|number| number.to_string())
    ];
    let word = prop_oneof![
        4 => number,
        1 => proptest::sample::select(vec!["cpu", "cpu0", "some", "total=", "rbytes=", "eth0:", "vda", "(", ")", "R", "-", "/", "usage_usec", "MemTotal:", "Read", "max", "0::/docker", "intr", "ctxt", "\n", "\n\n", "\u{e9}"])
            .prop_map(str::to_owned),
    ];
    let blank = proptest::sample::select(vec![" ", "\n", "\t", "", ":", "="]);
    let text = proptest::collection::vec((word, blank), 0..60).prop_map(|words| {
        let text: String = words.into_iter().map(|(word, blank)| word + blank).collect();
        text.into_bytes()
    });
    let stat = proptest::collection::vec(any::<u64>(), 0..60).prop_map(|fields| {
        let fields: Vec<String> = fields.into_iter().map(|field| field.to_string()).collect();
        format!("7 (x) R {}", fields.join(" ")).into_bytes()
    });
    prop_oneof![2 => proptest::collection::vec(any::<u8>(), 0..300), 5 => text, 2 => stat]
}

const PROCESS: &str = "7 (x) R 1 1 1 0 0 0 1 0 1 0 5 5 0 0 20 0 2 0 9 4096 3";

/// What a file holds where a case does not change it.
fn plain(stub: &Stub, file: &str) {
    stub.put(file, if file == "proc/7/stat" { PROCESS } else { "1 2 3\n" });
}

/// One tree serves all cases: making it takes longer than a case.
fn plain_tree() -> Stub {
    let stub = Stub::new();
    FILES.iter().for_each(|file| plain(&stub, file));
    stub.put("sys/class/drm/card0/device/vendor", "0x1002");
    stub
}

fn sample_everything(stub: &Stub, first: &[(usize, Vec<u8>)], then: &[(usize, Vec<u8>)]) {
    let put = |changes: &[(usize, Vec<u8>)]| {
        for (file, content) in changes {
            stub.put(FILES[*file], content);
        }
    };
    put(first);
    let roots = stub.roots();
    let mut memory = Memory::default();
    let mut host = HostSampler::new(&roots);
    let mut process = ProcessSampler::open(&roots, 7);
    let mut group = CgroupSampler::open(&roots, Path::new("/g"));
    let mut own_group = CgroupSampler::of_process(&roots, 7);
    let mut gpus = GpuSampler::detect(&roots);
    let mut energy = EnergySampler::new(&roots);
    for number in 1..=3 {
        host.sample(second(number), &mut memory);
        if let Ok(process) = &mut process {
            // An error is an answer, too.
            let _ = process.sample(second(number), &mut memory);
        }
        for group in [&mut group, &mut own_group].into_iter().flatten() {
            let _ = group.sample(second(number), &mut memory);
        }
        for gpu in &mut gpus {
            gpu.sample(second(number), &|_| true, &mut memory);
        }
        energy.sample(second(number), &mut memory);
        put(then);
    }
    let found = info(&roots, None);
    serde_json::to_string(&found).expect("JSON");
    for (file, _) in first.iter().chain(then) {
        plain(stub, FILES[*file]);
    }
    for sample in &memory.counters {
        for (name, _) in &sample.values {
            let number = sample.number(name);
            let share = name.ends_with("_pct") && sample.category == "sys";
            assert!(!share || number.is_some_and(|share| (0.0..=100.000_001).contains(&share)), "{name} is {number:?}");
        }
    }
}

#[test]
fn arbitrary_files() {
    let stub = plain_tree();
    let changes = || proptest::collection::vec((0..FILES.len(), content()), 0..12);
    let settings = ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() };
    let run = proptest::test_runner::TestRunner::new(settings).run(&(changes(), changes()), |(first, then)| {
        sample_everything(&stub, &first, &then);
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
}
