//! Values beside those of sysstat and procps over the same time: mpstat, vmstat and pidstat while a process computes and writes, iostat
//! while dd writes past the cache.
//!
//! A tool reads its counters a few milliseconds after it starts and before it ends, which is when the clock is read here. So every sample
//! that touches that stretch is taken, and what differs is at most what happened in an interval at either end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use weftline_format::{Event, Phase, reader};
use weftline_testkit::Scratch;
use weftline_testkit::run::Job;

use crate::collect::{signal, started, wait_for_ticks};

/// What tools printed, and the samples of the same time.
struct Comparison {
    samples: Vec<Event>,
    printed: PathBuf,
}

impl Comparison {
    /// Samples a process while a script runs tools, whose output it leaves in files. The script prints the time when the tools start, and
    /// when they have ended.
    fn make(scratch: &Scratch, arguments: &[&str], script: &str) -> Comparison {
        let (run, printed) = (scratch.join("run"), scratch.dir("oracle"));
        let collector = started(scratch, arguments, &run);
        let oracle = Job::new(["bash", "-c", script], &printed).run();
        // One more whole interval, since the tools may have seen the beginning of one.
        wait_for_ticks(&run, 2);
        signal(collector.pid(), Signal::TERM);
        assert_eq!(collector.finish().status, 0);
        let text = String::from_utf8_lossy(&oracle.stdout).into_owned();
        let times: Vec<i64> = text.split_whitespace().map(|word| word.parse().expect("a time")).collect();
        let (Some(start), Some(end)) = (times.first().copied(), times.last().copied()) else { panic!("{oracle:?}") };
        let trace = reader::read_run(&run).expect("readable");
        let samples = trace
            .events
            .into_iter()
            .filter(|event| event.phase == Phase::Counter && event.end_ns() > Some(start) && event.start_ns < Some(end))
            .collect();
        Comparison { samples, printed }
    }

    fn of(&self, pid: u32, name: &str) -> impl Iterator<Item = &Event> {
        self.samples.iter().filter(move |event| event.pid == i64::from(pid) && event.name == name)
    }

    /// A value's sum and the time that it is of, in seconds.
    fn sum(&self, pid: u32, name: &str, key: &str) -> (f64, f64) {
        let with = self.of(pid, name).filter_map(|event| Some((event.arg(key)?.as_f64()?, event.dur_ns? as f64 / 1e9)));
        let (sum, time) = with.fold((0.0, 0.0), |sums, found| (sums.0 + found.0, sums.1 + found.1));
        assert!(time > 2.0, "{name} {key}: samples of {time} s");
        (sum, time)
    }

    fn rate(&self, pid: u32, name: &str, key: &str) -> f64 {
        let (sum, time) = self.sum(pid, name, key);
        sum / time
    }

    /// The mean of a share or an amount, weighted by the length of the intervals.
    fn mean(&self, pid: u32, name: &str, key: &str) -> f64 {
        let (mut sum, mut time) = (0.0, 0.0);
        for event in self.of(pid, name) {
            let length = event.dur_ns.unwrap_or(0) as f64;
            sum += length * event.arg(key).and_then(|value| value.as_f64()).unwrap_or(0.0);
            time += length;
        }
        assert!(time > 2e9, "{name} {key}: samples of {time} ns");
        sum / time
    }

    /// The last line of a tool's output with a word in it, its values by the words of the line above them that has `header` in it.
    fn row(&self, file: &str, header: &str, word: &str) -> BTreeMap<String, f64> {
        table(&self.printed.join(file), header, word)
            .pop()
            .unwrap_or_else(|| panic!("{file}: no line has {word}: {:?}", fs::read_to_string(self.printed.join(file))))
            .1
    }
}

/// Lines below a header, by their last word that is no number (a device, a command) and with their values by the header's words.
/// Headers may have a mark in front (`#`), and the words of the time of day, which lines have as well.
fn table(file: &Path, header: &str, word: &str) -> Vec<(String, BTreeMap<String, f64>)> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut names: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.trim_start_matches('#').split_whitespace().collect();
        if words.contains(&header) {
            names = words;
        } else if !names.is_empty() && words.len() == names.len() && line.contains(word) {
            let label = words.iter().rfind(|word| word.parse::<f64>().is_err());
            let values =
                names.iter().zip(&words).filter_map(|(name, word)| Some(((*name).to_owned(), word.parse().ok()?)));
            rows.push((label.map_or_else(String::new, |label| (*label).to_owned()), values.collect()));
        }
    }
    rows
}

fn near(what: &str, ours: f64, theirs: f64, within: f64) {
    assert!((ours - theirs).abs() <= within, "{what}: {ours} and {theirs}, more than {within} apart");
}

/// Computes half of the time, writes to the disk 25 times a second at most, and takes new memory each time.
const BURNER: &str = "
import mmap, os, time
file = os.open('written', os.O_CREAT | os.O_WRONLY, 0o644)
place = 0
while True:
    end = time.process_time() + 0.02
    while time.process_time() < end: pass
    os.pwrite(file, b'x' * 65536, place % 16777216)
    os.fdatasync(file)
    place += 65536
    with mmap.mmap(-1, 64 * 4096) as fresh:
        for page in range(64): fresh[page * 4096] = 1
    time.sleep(0.02)
";

#[test]
fn mpstat_vmstat_and_pidstat_agree() {
    let scratch = Scratch::new("collect-oracle");
    let load = Job::new(["python3", "-S", "-c", BURNER], &scratch.dir("load")).start();
    let pid = load.pid();
    let script = format!(
        "date +%s%N; mpstat 4 1 > mpstat & pidstat -h -urdw -p {pid} 4 1 > pidstat & vmstat -n 4 2 > vmstat & wait; date +%s%N"
    );
    let both = Comparison::make(&scratch, &["--interval", "100ms", "--tree", &pid.to_string()], &script);
    let mpstat = both.row("mpstat", "%usr", "Average");
    for (ours, theirs) in [
        ("user_pct", "%usr"),
        ("nice_pct", "%nice"),
        ("system_pct", "%sys"),
        ("iowait_pct", "%iowait"),
        ("irq_pct", "%irq"),
        ("softirq_pct", "%soft"),
        ("steal_pct", "%steal"),
        ("idle_pct", "%idle"),
    ] {
        near(theirs, both.mean(0, "cpu", ours), mpstat[theirs], 6.0);
    }
    // The last line is of the same time; its numbers are whole.
    let vmstat = both.row("vmstat", "swpd", "");
    near("id of vmstat", both.mean(0, "cpu", "idle_pct"), vmstat["id"], 7.0);
    for (ours, theirs, floor) in [("context_switches", "cs", 50.0), ("interrupts", "in", 50.0)] {
        let rate = both.rate(0, "kernel", ours);
        near(theirs, rate, vmstat[theirs], floor + rate * 0.1);
    }
    let free = both.mean(0, "memory", "MemFree");
    near("free of vmstat", free, vmstat["free"], 100_000.0 + free * 0.1);
    let buffers = both.mean(0, "memory", "Buffers");
    near("buff of vmstat", buffers, vmstat["buff"], 10_000.0 + buffers * 0.1);
    let pidstat = both.row("pidstat", "%usr", "python3");
    near("%CPU of pidstat", both.mean(pid, "process", "cpu_pct"), pidstat["%CPU"], 6.0);
    // That of one moment, while the process takes memory and gives it back.
    let resident = || both.of(pid, "process").filter_map(|event| Some(event.arg("rss_bytes")?.as_f64()? / 1024.0));
    let (least, most) = (resident().fold(f64::INFINITY, f64::min), resident().fold(0.0, f64::max));
    near("RSS of pidstat", pidstat["RSS"].clamp(least, most), pidstat["RSS"], 200.0);
    for (sample, ours, unit, theirs) in [
        ("process", "minor_faults", 1.0, "minflt/s"),
        ("process", "write_bytes", 1024.0, "kB_wr/s"),
        ("detail", "voluntary_switches", 1.0, "cswch/s"),
    ] {
        let rate = both.rate(pid, sample, ours) / unit;
        assert!(rate > 5.0, "the process does it: {ours} {rate}");
        // Details are told once a second, so their intervals reach further beyond those of the tool.
        near(theirs, rate, pidstat[theirs], rate * if sample == "detail" { 0.3 } else { 0.1 });
    }
}

/// What dd writes past the cache begins and ends while both look, so sums agree, whatever the disk's speed. Others may use the disk too:
/// what they do at the ends of the stretch is the tolerance.
#[test]
fn iostat_agrees() {
    const BYTES: f64 = 48.0 * 1048576.0;
    let scratch = Scratch::new("collect-iostat");
    let target = scratch.join("zeros");
    // `-y` leaves out the line since boot; the sleeps keep dd away from both ends. It takes as long as it takes, at most ten seconds.
    let script = format!(
        "date +%s%N; iostat -d -x -y -k 10 1 > iostat & sleep 0.5
         for part in 1 2 3; do dd if=/dev/zero of={} bs=256k count=64 oflag=direct conv=fsync status=none || exit; done
         kill -0 %1 && touch in-time; wait; date +%s%N",
        target.display()
    );
    let both = Comparison::make(&scratch, &["--interval", "50ms"], &script);
    assert!(both.printed.join("in-time").exists(), "dd took longer than iostat: nothing to compare");
    let seconds = 10.0;
    let mut compared = 0;
    for (device, theirs) in table(&both.printed.join("iostat"), "Device", "") {
        let (written, time) = both.sum(0, &device, "bytes_written");
        assert!((time - seconds).abs() < 0.5, "{device}: samples of {time} s");
        let sum = |key| both.sum(0, &device, key).0;
        for (ours, unit, rate, least) in [
            ("reads_completed", 1.0, "r/s", 30.0),
            ("bytes_read", 1024.0, "rkB/s", 1024.0),
            ("reads_merged", 1.0, "rrqm/s", 30.0),
            ("writes_completed", 1.0, "w/s", 30.0),
            ("bytes_written", 1024.0, "wkB/s", 1024.0),
            ("writes_merged", 1.0, "wrqm/s", 30.0),
            ("flushes_completed", 1.0, "f/s", 10.0),
        ] {
            let mine = sum(ours) / unit;
            near(&format!("{rate} of {device}, as a sum"), mine, theirs[rate] * seconds, least + mine * 0.03);
        }
        near(
            &format!("aqu-sz of {device}"),
            both.mean(0, &device, "queue"),
            theirs["aqu-sz"],
            0.1 + theirs["aqu-sz"] * 0.1,
        );
        near(&format!("%util of {device}"), both.mean(0, &device, "busy_pct"), theirs["%util"], 4.0);
        if written >= BYTES {
            let wait_ms = sum("write_ns") / 1e6 / sum("writes_completed");
            near(&format!("w_await of {device}"), wait_ms, theirs["w_await"], 0.2 + wait_ms * 0.1);
            compared += 1;
        }
    }
    assert!(
        compared > 0,
        "the {BYTES} bytes of dd are on no device: {:?}",
        fs::read_to_string(both.printed.join("iostat"))
    );
}
