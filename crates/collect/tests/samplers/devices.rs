//! GPUs, energy meters and what machines are, by a stub library and stub trees.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use weftline_collect::energy::EnergySampler;
use weftline_collect::gpu::GpuSampler;
use weftline_collect::node;
use weftline_collect::sample::Subject;

use crate::stub::{Memory, Stub, second};

#[test]
fn no_gpu_is_no_error() {
    assert!(GpuSampler::detect(&Stub::new().roots()).is_empty());
    let stub = Stub::new();
    stub.put("libnvidia-ml.so.1", "not a library");
    assert!(GpuSampler::detect(&stub.roots()).is_empty());
}

#[test]
fn nvidia_by_library() {
    let stub = Stub::new();
    let library = stub.path("libnvidia-ml.so.1");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samplers/nvml_stub.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .arg(source)
        .status()
        .expect("a C compiler");
    assert!(built.success());
    let mut found = GpuSampler::detect(&stub.roots());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].describe(), "2 NVIDIA GPU(s) by NVML");
    let mut memory = Memory::default();
    let followed = |pid: u32| pid == 4711;
    found[0].sample(second(1), &followed, &mut memory);
    let metadata = memory.metadata.iter().find(|metadata| metadata.name == "gpu0").expect("metadata");
    assert_eq!((metadata.text("model"), metadata.text("uuid")), (Some("Stub A"), Some("GPU-a")));
    let host = |memory: &Memory, name: &str, value: &str| {
        let sample = memory.counters.iter().rev().find(|sample| sample.subject == Subject::Host && sample.name == name);
        sample.and_then(|sample| sample.number(value))
    };
    let gib = f64::from(1 << 30);
    for (value, expected) in [
        ("busy_pct", 83.0),
        ("memory_busy_pct", 21.0),
        ("memory_used_bytes", 3.0 * gib),
        ("memory_total_bytes", 80.0 * gib),
        ("power_w", 312.5),
        ("temperature_c", 61.0),
        ("clock_mhz", 1410.0),
    ] {
        assert_eq!(host(&memory, "gpu0", value), Some(expected), "{value}");
    }
    assert_eq!(host(&memory, "gpu0", "energy_uj"), None, "no difference without a reading before");
    assert_eq!((host(&memory, "gpu1", "busy_pct"), host(&memory, "gpu1", "power_w")), (Some(5.0), None));
    let of_process = |memory: &Memory, pid: u32| {
        memory.counters.iter().rev().find(|sample| sample.subject == Subject::Process(pid)).cloned()
    };
    let share = of_process(&memory, 4711).expect("a followed process");
    assert_eq!(
        (share.number("busy_pct"), share.number("memory_used_bytes")),
        (Some(77.0), Some(2.0 * gib)),
        "the newest reading"
    );
    assert_eq!(of_process(&memory, 4712), None, "not followed");

    memory = Memory::default();
    found[0].sample(second(2), &|_| true, &mut memory);
    assert_eq!(host(&memory, "gpu0", "energy_uj"), Some(250_000.0));
    assert!(memory.metadata.is_empty(), "metadata is told once");
    let again = of_process(&memory, 4711).expect("still there");
    assert_eq!(
        (again.number("busy_pct"), again.number("memory_used_bytes")),
        (None, Some(2.0 * gib)),
        "no new reading, no share"
    );
    assert_eq!(of_process(&memory, 4712), None, "nothing is known of its memory");
}

#[test]
fn nvidia_by_command() {
    let stub = Stub::new();
    let script = "#!/bin/sh\ncase \"$1\" in\n--query-gpu*) echo '0, 55, 21, 1024, 40960, [N/A], 41, 1410';;\npmon) echo '# gpu pid type sm mem enc dec fb command'; echo '# Idx # C/G % % % % MB name'; echo '0 4711 C 93 41 - - 512 python'; echo '0 99 C 1 1 - - 1 x';;\nesac\nexec sleep 60\n";
    stub.put("nvidia-smi", script);
    std::fs::set_permissions(stub.path("nvidia-smi"), PermissionsExt::from_mode(0o755)).expect("made executable");
    let mut found = GpuSampler::detect(&stub.roots());
    assert_eq!(found.len(), 1);
    let mut memory = Memory::default();
    let begin = Instant::now();
    while memory.counters.len() < 2 && begin.elapsed() < Duration::from_secs(20) {
        found[0].sample(second(1), &|pid| pid == 4711, &mut memory);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(memory.counters.len(), 2, "{:?}", memory.counters);
    let device = memory.counters.iter().find(|sample| sample.subject == Subject::Host).expect("a device");
    assert_eq!(
        (device.number("busy_pct"), device.number("memory_used_bytes"), device.number("power_w")),
        (Some(55.0), Some(1024.0 * 1_048_576.0), None)
    );
    let process = memory.counters.iter().find(|sample| sample.subject == Subject::Process(4711)).expect("a process");
    assert_eq!(
        (process.number("busy_pct"), process.number("memory_used_bytes")),
        (Some(93.0), Some(512.0 * 1_048_576.0))
    );
    let begin = Instant::now();
    drop(found);
    assert!(begin.elapsed() < Duration::from_secs(10), "the commands are ended, not waited for");
}

#[test]
fn amd_by_sysfs() {
    let stub = Stub::new();
    let device = "sys/class/drm/card1/device";
    for (file, content) in [
        ("vendor", "0x1002\n"),
        ("gpu_busy_percent", "42\n"),
        ("mem_info_vram_used", "1000\n"),
        ("mem_info_vram_total", "4000\n"),
        ("hwmon/hwmon3/power1_average", "35000000\n"),
        ("hwmon/hwmon3/power1_input", "99000000\n"),
        ("hwmon/hwmon3/temp1_input", "47500\n"),
        ("hwmon/hwmon3/energy1_input", "100\n"),
    ] {
        stub.put(&format!("{device}/{file}"), content);
    }
    stub.put("sys/class/drm/card0/device/vendor", "0x8086\n");
    stub.make("sys/class/drm/card1-DP-1");
    let mut found = GpuSampler::detect(&stub.roots());
    assert_eq!(found.len(), 1);
    let mut memory = Memory::default();
    found[0].sample(second(1), &|_| true, &mut memory);
    stub.put(&format!("{device}/hwmon/hwmon3/energy1_input"), "350\n");
    stub.put(&format!("{device}/gpu_busy_percent"), "broken\n");
    found[0].sample(second(2), &|_| true, &mut memory);
    let first = &memory.counters[0];
    assert_eq!(
        (first.number("busy_pct"), first.number("power_w"), first.number("temperature_c")),
        (Some(42.0), Some(35.0), Some(47.5))
    );
    let last = memory.last("gpu", "card1").expect("a sample");
    assert_eq!(
        (last.number("busy_pct"), last.number("memory_total_bytes"), last.number("energy_uj")),
        (None, Some(4000.0), Some(250.0))
    );
}

/// One RAPL meter read twice, a second apart.
fn used(before: u64, now: u64, range: &str) -> Option<f64> {
    let stub = Stub::new();
    let zone = "sys/class/powercap/intel-rapl:0";
    stub.put(&format!("{zone}/name"), "package-0\n");
    stub.put(&format!("{zone}/max_energy_range_uj"), range);
    stub.put(&format!("{zone}/energy_uj"), format!("{before}\n"));
    let mut sampler = EnergySampler::new(&stub.roots());
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory);
    assert!(memory.counters.is_empty());
    stub.put(&format!("{zone}/energy_uj"), format!("{now}\n"));
    sampler.sample(second(2), &mut memory);
    memory.number("energy", "rapl:intel-rapl:0 package-0", "energy_uj")
}

#[test]
fn energy() {
    for (before, now, range, expected) in [
        (100, 350, "1000\n", 250.0),
        (900, 50, "1000\n", 150.0),
        // Without a range, or with one that cannot be, less than before is a reset.
        (900, 50, "\n", 0.0),
        (900, 50, "500\n", 0.0),
        (400, 10, "1000\n", 0.0),
    ] {
        assert_eq!(used(before, now, range), Some(expected), "{before} to {now} of {range}");
    }
    let stub = Stub::new();
    stub.put("sys/class/powercap/intel-rapl-mmio:0/energy_uj", "1\n");
    stub.put("sys/class/hwmon/hwmon0/name", "amd_energy\n");
    stub.put("sys/class/hwmon/hwmon0/energy1_input", "1000\n");
    stub.put("sys/class/hwmon/hwmon0/energy1_label", "Esocket0\n");
    stub.put("sys/class/hwmon/hwmon1/name", "ina\n");
    stub.put("sys/class/hwmon/hwmon1/power1_input", "12500000\n");
    stub.put("sys/class/hwmon/hwmon2/name", "amdgpu\n");
    stub.put("sys/class/hwmon/hwmon2/power1_average", "1\n");
    stub.put("var/scaphandre/vm7/intel-rapl:0/energy_uj", "10\n");
    let mut sampler = EnergySampler::new(&stub.roots());
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory);
    stub.put("sys/class/hwmon/hwmon0/energy1_input", "3000000\n");
    stub.put("var/scaphandre/vm7/intel-rapl:0/energy_uj", "35\n");
    memory.counters.clear();
    sampler.sample(second(2), &mut memory);
    let found: Vec<_> = memory
        .counters
        .iter()
        .map(|sample| (sample.name.as_str(), sample.number("energy_uj"), sample.number("power_w")))
        .collect();
    assert_eq!(
        found,
        [
            ("hwmon:hwmon0 amd_energy-Esocket0", Some(2_999_000.0), Some(2.999)),
            ("hwmon:hwmon1 ina-power1", None, Some(12.5)),
            ("scaphandre:vm7/intel-rapl:0", Some(25.0), Some(0.000_025)),
        ]
    );
    assert!(EnergySampler::new(&Stub::new().roots()).is_empty());
}

#[test]
fn what_machines_are() {
    let info = |model: &str, megahertz: &str| {
        let of = |number: u32, core: u32| {
            format!(
                "processor\t: {number}\nmodel name\t: {model}\ncpu MHz\t\t: {megahertz}\nphysical id\t: 0\ncore id\t\t: {core}\nflags\t\t: fpu hypervisor\nbogomips\t: 4800.00\n\n"
            )
        };
        of(0, 0) + &of(1, 0) + &of(2, 1) + &of(3, 1)
    };
    let cpu = "sys/devices/system/cpu/cpu0";
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u64, &'a str);
    let cases: [Case<'_>; 6] = [
        ("QEMU Virtual CPU version 2.5+", "2399.998", &[], 2_399_998_000, "cpuinfo"),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", "2199.998", &[], 2_200_000_000, "model name"),
        ("AMD EPYC", "1500.000", &[("cpufreq/cpuinfo_max_freq", "3500000\n")], 3_500_000_000, "cpufreq max"),
        (
            "AMD EPYC",
            "1500.000",
            &[("cpufreq/cpuinfo_max_freq", "3500000\n"), ("acpi_cppc/nominal_freq", "2450\n")],
            2_450_000_000,
            "cppc",
        ),
        ("Intel @ 3.00GHz", "800.000", &[("cpufreq/base_frequency", "2100000\n")], 2_100_000_000, "cpufreq base"),
        ("nothing", "0.000", &[], 2_400_000_000, "bogomips"),
    ];
    for (model, megahertz, files, hz, source) in cases {
        let stub = Stub::new();
        stub.put("proc/cpuinfo", info(model, megahertz));
        for (file, content) in files {
            stub.put(&format!("{cpu}/{file}"), content);
        }
        let found = node::info(&stub.roots(), None);
        let frequency = found.cpu_frequency.expect("a frequency");
        assert_eq!((frequency.hz, frequency.source), (hz, source), "{model}");
        assert_eq!(
            (found.cores, found.physical_cores, found.sockets, found.is_virtual),
            (4, Some(2), Some(1), Some(true))
        );
    }
    let stub = Stub::new();
    stub.put("proc/meminfo", "MemTotal:  1024 kB\nSwapTotal: 0 kB\n");
    stub.put("proc/sys/kernel/osrelease", "6.1.0\n");
    stub.put("etc/os-release", "NAME=x\nPRETTY_NAME=\"Stub 12\"\n");
    stub.put("sys/devices/system/cpu/online", "0-15\n");
    stub.put("sys/class/net/eth0/speed", "25000\n");
    stub.put("sys/class/net/eth0/operstate", "up\n");
    stub.put("sys/class/net/virt0/speed", "-1\n");
    stub.make("sys/class/net/lo");
    stub.put("sys/class/net/bonding_masters", "\n");
    stub.put("proc/device-tree/cpus/cpu@0/clock-frequency", 1_500_000_000_u32.to_be_bytes());
    let found = node::info(&stub.roots(), None);
    assert_eq!(
        (found.memory_bytes, found.cores, found.os.as_deref(), found.kernel.as_deref()),
        (Some(1 << 20), 16, Some("Stub 12"), Some("6.1.0"))
    );
    let speeds: Vec<_> =
        found.interfaces.iter().map(|interface| (interface.name.as_str(), interface.bits_per_second)).collect();
    assert_eq!(speeds, [("eth0", Some(25_000_000_000)), ("virt0", None)]);
    assert_eq!(
        found.cpu_frequency.map(|frequency| (frequency.hz, frequency.source)),
        Some((1_500_000_000, "device tree"))
    );
    assert!(serde_json::to_string(&found).expect("JSON").contains("\"cores\":16"));
}
