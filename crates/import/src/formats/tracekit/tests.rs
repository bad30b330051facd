//! Tests of Tracekit's files: a node's folder in, events out.

use super::*;
use crate::sink::Memory;

/// A node's folder as the tests hold it.
macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tracekit/", $name)).as_slice())
    };
}

const RAW: [(&str, &[u8]); 10] = [
    file!("node_meta.json"),
    file!("link_meta.json"),
    file!("proc_metrics.jsonl"),
    file!("events.app.jsonl"),
    file!("events.jsonl"),
    file!("placement_events.jsonl"),
    file!("system_stats.jsonl"),
    file!("cpu.log"),
    file!("mem.log"),
    file!("net.log"),
];
const STANDARD: [(&str, &[u8]); 8] = [
    file!("cctf/nodes.json"),
    file!("cctf/links.json"),
    file!("cctf/proc_metrics.jsonl"),
    file!("cctf/invocations.jsonl"),
    file!("cctf/host_metrics.jsonl"),
    file!("cctf/link_metrics.jsonl"),
    file!("cctf/proc_cpu.jsonl"),
    file!("cctf/proc_rss.jsonl"),
];

/// What comes of some files, read one after the other after all were surveyed.
fn together(files: &[(&str, &[u8])]) -> Vec<(String, Memory)> {
    let mut known = Survey::default();
    for (name, bytes) in files {
        survey(&mut Input::new(format!("logs/{name}"), &mut &**bytes), &mut known).expect("memory");
    }
    let one = |(name, bytes): &(&str, &[u8])| {
        let mut memory = Memory::default();
        read(&mut Input::new(format!("logs/{name}"), &mut &**bytes), &known, &mut memory).expect("memory");
        ((*name).to_owned(), memory)
    };
    files.iter().map(one).collect()
}

fn check(files: &[(&str, &[u8])], name: &str, events: &[&str], skipped: &[(&str, u64)]) {
    let all = together(files);
    let (_, memory) = all.iter().find(|(known, _)| known == name).expect("a file of the folder");
    assert_eq!(memory.events, events, "{name}");
    let found: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
    assert_eq!(found, skipped, "{name}");
}

const SAMPLES: [&str; 4] = [
    "n2|counter process process 10/10 1795000000000000000..1795000000000000000 rss_bytes=102400",
    "n2|counter process process 10/10 1795000000000000000..1795000000200000000 cpu_ns=50000000 user_ns=40000000 \
     system_ns=10000000 rss_bytes=122880",
    // The ticks of another process of the same number.
    "n2|counter process process 10/10 1795000000400000000..1795000000400000000 rss_bytes=8192",
    "n1|counter process process 11/11 1795000000400000000..1795000000400000000 rss_bytes=51200 threads=3",
];
const SKIPPED: [(&str, u64); 2] = [("second sample at the same time", 1), ("torn line", 1)];
const INVOCATIONS: [&str; 4] = [
    "n2|async queue tracekit 10/10 1794999999000000000..1795000000000000000 trace_id=t1",
    "n2|span ffmpeg tracekit 10/10 1795000000000000000..1795000002000000000 trace_id=t1 module_id=ffmpeg \
     ts_enqueue=1794999999000 stage=edge method=CLI path=ffmpeg bytes_in=7 bytes_out=9 status=0",
    "n1|async /work tracekit 11/11 1795000000100000000..1795000000300000000 trace_id=t2 span_id=s module_id=svc \
     ts_enqueue=1795000000100 method=POST path=/work status=500 tags={\"a\":[1]}",
    "n1|async /kv tracekit 11/11 1795000000200000000..1795000000250000000 trace_id=t3 span_id=s module_id=svc \
     ts_enqueue=1795000000200 method=GET path=/kv status=200",
];
const ELSEWHERE: &str = "told by another file of the folder";

#[test]
fn a_node_s_folder() {
    let files: Vec<_> = RAW.into_iter().chain(STANDARD).collect();
    check(&files, "proc_metrics.jsonl", &SAMPLES, &SKIPPED);
    check(&files, "events.app.jsonl", &INVOCATIONS, &[("record without a time", 1)]);
    let node = "n1|metadata node weft 0/0 1795000000000000000 run_id=r1 node=n1 stage=edge host=vm iface=eth0 cores=4 \
                memory_bytes=2147483648 cpu_model=Example cpu_frequency={\"hz\":2400000000,\"source\":\"tracekit\"}";
    check(&files, "node_meta.json", &[node], &[]);
    let link = "n1|metadata link weft 0/0 1795000000000000000 iface=eth0 BW_bps=1000000000 PR_s=0.000098";
    check(&files, "link_meta.json", &[link], &[]);
    let placed = "n1|instant placement tracekit 0/0 1795000000050000000 app_id=app module_id=svc instance_id=i7 event=start stage=edge";
    check(&files, "placement_events.jsonl", &[placed], &[]);
    let in_flight = "n1|counter in_flight i7 tracekit 0/0 1795000001000000000..1795000001000000000 value=2";
    check(&files, "system_stats.jsonl", &[in_flight], &[]);
    for (name, count) in [
        ("events.jsonl", 4),
        ("cctf/invocations.jsonl", 4),
        ("cctf/nodes.json", 1),
        ("cctf/links.json", 1),
        ("cctf/host_metrics.jsonl", 3),
        ("cctf/link_metrics.jsonl", 2),
        ("cctf/proc_cpu.jsonl", 1),
        ("cctf/proc_rss.jsonl", 1),
    ] {
        check(&files, name, &[], &[(ELSEWHERE, count)]);
    }
}

#[test]
fn logs_of_a_host() {
    let shares = |values: [&str; 3]| {
        let [user, system, idle] = values;
        format!(
            "user_pct={user} nice_pct=0 system_pct={system} iowait_pct=0 irq_pct=0 softirq_pct=0 steal_pct=0 guest_pct=0 \
             guest_nice_pct=0 idle_pct={idle}"
        )
    };
    let cpu = [
        format!("n1|counter cpu sys 0/0 1795043200000000000..1795043201000000000 {}", shares(["1", "2.5", "96.5"])),
        format!("n1|counter cpu-1 sys 0/0 1795043200000000000..1795043201000000000 {}", shares(["4", "2.5", "93.5"])),
        format!("n1|counter cpu sys 0/0 1795043201000000000..1795046401000000000 {}", shares(["1", "0", "99"])),
    ];
    let cpu: Vec<&str> = cpu.iter().map(String::as_str).collect();
    check(&RAW, "cpu.log", &cpu, &[("not a sample", 1)]);
    let memory = [
        "n1|counter memory sys 0/0 1795043200000000000..1795043200000000000 MemFree=9766 Buffers=0 Cached=4883",
        "n1|counter swap sys 0/0 1795043200000000000..1795043200000000000 used_kb=977",
        "n1|counter kernel sys 0/0 1795043199000000000..1795043200000000000 running=2 blocked=1",
        "n1|counter memory sys 0/0 1795043202000000000..1795043202000000000 MemFree=19531 Buffers=0 Cached=4883",
        "n1|counter swap sys 0/0 1795043202000000000..1795043202000000000 used_kb=977",
        "n1|counter kernel sys 0/0 1795043200000000000..1795043202000000000 interrupts=200 context_switches=400 running=3 blocked=0",
        "n1|counter paging sys 0/0 1795043200000000000..1795043202000000000 paged_in_kb=16 paged_out_kb=12 \
         swapped_in_mb_per_s=0 swapped_out_mb_per_s=4",
    ];
    check(&RAW, "mem.log", &memory, &[]);
    let links = [
        "n1|counter eth0 net 0/0 1795043200000000000..1795043201000000000 bytes_recv=1024 bytes_sent=512",
        "n1|counter eth0 net 0/0 1795043201000000000..1795043203000000000 bytes_recv=4096 bytes_sent=0",
        "n1|counter lo net 0/0 1795043201000000000..1795043203000000000 bytes_recv=2048 bytes_sent=2048",
    ];
    check(&RAW, "net.log", &links, &[]);
    // Where mpstat is missing, vmstat tells about processors.
    let alone = [RAW[8]];
    let all = together(&alone);
    let cpu = "counter cpu sys 0/0 1795043200000000000..1795043202000000000 user_pct=40 system_pct=10 idle_pct=50 iowait_pct=0 steal_pct=0";
    assert_eq!(all[0].1.events.last().map(String::as_str), Some(cpu));
}

#[test]
fn a_standard_folder_alone() {
    check(&STANDARD, "cctf/proc_metrics.jsonl", &SAMPLES, &SKIPPED);
    check(&STANDARD, "cctf/invocations.jsonl", &INVOCATIONS, &[("record without a time", 1)]);
    let node = "n1|metadata node weft 0/0 1795000000000000000 node_id=n1 stage=edge cores=4 memory_bytes=2147483648 cpu_model=Example";
    check(&STANDARD, "cctf/nodes.json", &[node], &[]);
    check(
        &STANDARD,
        "cctf/host_metrics.jsonl",
        &[
            "n1|counter memory sys 0/0 1795000010000000000..1795000010000000000 MemFree=9766",
            "n1|counter cpu sys 0/0 1795000009000000000..1795000010000000000 idle_pct=74.5",
        ],
        &[("second sample at the same time", 1)],
    );
    check(
        &STANDARD,
        "cctf/link_metrics.jsonl",
        &[
            "n1|counter n1.nic net 0/0 1795000000000000000..1795000001000000000 bytes_recv=1024 bytes_sent=512",
            "n1|counter n1.nic net 0/0 1795000001000000000..1795000003000000000 bytes_recv=4096 bytes_sent=0",
        ],
        &[],
    );
    // Files alone, and the later form with windows.
    check(
        &STANDARD[6..],
        "cctf/proc_cpu.jsonl",
        &["counter process process 10/10 1795000000000000000..1795000000200000000 cpu_ns=50000000"],
        &[],
    );
    let merged: [(&str, &[u8]); 2] = [
        ("CTS/invocations.jsonl", br#"{"trace_id":"a","pid":5,"ts_enqueue":3,"ts_start":2,"ts_end":9}"#),
        ("CTS/proc_metrics.jsonl", br#"{"ts_ms":9,"pid":5,"dt_ms":0,"cpu_ms":0,"rss_kb":1}"#),
    ];
    check(
        &merged,
        "CTS/invocations.jsonl",
        &["span invocation tracekit 5/5 2000000..9000000 trace_id=a ts_enqueue=3"],
        &[],
    );
    check(&merged, "CTS/proc_metrics.jsonl", &["counter process process 5/5 9000000..9000000 rss_bytes=1024"], &[]);
}

#[test]
fn detection() {
    for (name, bytes) in RAW.into_iter().chain(STANDARD) {
        let name = name.rsplit('/').next().expect("a name");
        assert_eq!(detect(&Head { name, bytes }), Confidence::Certain, "{name}");
    }
    let others: [(&str, &[u8]); 5] = [
        ("cpu.txt", RAW[7].1),
        ("cpu.log", b"hello\n"),
        ("nodes.json", b"[1, 2]"),
        ("x.jsonl", br#"{"ts_ms":1,"value":2}"#),
        ("x", b""),
    ];
    for (name, bytes) in others {
        assert_eq!(detect(&Head { name, bytes }), Confidence::No, "{name}");
    }
}

#[test]
fn dates_of_locales() {
    for (date, expected) in [
        ("11/18/26", 20_775),
        ("18/11/2026", 20_775),
        ("18.11.2026", 20_775),
        ("2026-11-18", 20_775),
        ("05/06/26", 20_579),
    ] {
        let line = format!("Linux 6.1.0 (a.b.c) \t{date} \t_x86_64_\t(2 CPU)");
        assert_eq!(logs::mpstat_day(line.as_bytes()), Some(expected), "{date}");
    }
    assert_eq!(logs::mpstat_day(b"Linux (2 CPU)"), None);
}

#[test]
fn what_is_none_of_it_is_told() {
    let mut memory = Memory::default();
    let text = b"hello\n";
    let error = read(&mut Input::new("x", &mut &text[..]), &Survey::default(), &mut memory).expect_err("forced");
    assert_eq!(error.to_string(), "x, at byte 6: neither a log nor a record of Tracekit begins here");
}

#[test]
fn cut_and_changed_anywhere() {
    for (name, bytes) in RAW.into_iter().chain(STANDARD) {
        let run = |bytes: &[u8]| {
            let mut known = Survey::default();
            survey(&mut Input::new(name, &mut &*bytes), &mut known).expect("memory");
            let _ = read(&mut Input::new(name, &mut &*bytes), &known, &mut Memory::default());
        };
        for length in 0..bytes.len() {
            run(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            for byte in *b"\"{}[],:-9 \n" {
                let mut changed = bytes.to_vec();
                changed[at] = byte;
                run(&changed);
            }
        }
    }
}
