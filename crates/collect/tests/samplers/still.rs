//! Processes that do nothing: their files are left alone, and not a byte is missing when they go on.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weftline_collect::process::ProcessSampler;
use weftline_collect::roots::Roots;
use weftline_collect::sample::Interval;

use crate::stub::Memory;

const TICK_NS: i64 = 200_000_000;

/// Reading calls that this thread makes in a function.
fn reads_of(work: impl FnOnce()) -> u64 {
    let so_far = || {
        let text = std::fs::read_to_string("/proc/thread-self/io").expect("readable");
        let line = text.lines().find_map(|line| line.strip_prefix("syscr: ")).expect("the line");
        line.parse::<u64>().expect("a number")
    };
    let (first, second) = (so_far(), so_far());
    work();
    so_far() - second - (second - first)
}

/// A program that reads a megabyte of zeros and uses some CPU for each line of its input.
struct Worker {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start() -> Worker {
        let program = "import os,sys,time\nzeros=os.open('/dev/zero',os.O_RDONLY)\nprint('ready',flush=True)\nfor line in sys.stdin:\n  os.read(zeros,1000000)\n  end=time.process_time()+0.05\n  while time.process_time()<end: pass\n  print('done',flush=True)";
        let mut child = Command::new("/usr/bin/python3")
            .args(["-S", "-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut worker = Worker { child, answers };
        worker.hear();
        worker
    }

    fn work(&mut self) {
        self.child.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("written");
        self.hear();
    }

    /// Waits for an answer, and until the program waits for more.
    fn hear(&mut self) {
        self.answers.read_line(&mut String::new()).expect("an answer");
        let (stat, began) = (format!("/proc/{}/stat", self.child.id()), Instant::now());
        // It sleeps nowhere else.
        while !std::fs::read_to_string(&stat).expect("it lives").contains(") S ") {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not wait for more");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
    }
}

#[test]
fn a_process_that_does_nothing_is_not_read() {
    let mut worker = Worker::start();
    let mut sampler = ProcessSampler::open(&Roots::default(), worker.child.id()).expect("it runs");
    let mut memory = Memory::default();
    let mut tick = 0;
    let mut sample = |sampler: &mut ProcessSampler, memory: &mut Memory| {
        tick += 1;
        let at = Interval { start_ns: (tick - 1) * TICK_NS, end_ns: tick * TICK_NS };
        reads_of(|| sampler.sample(at, memory).expect("it runs"))
    };
    assert!(sample(&mut sampler, &mut memory) >= 4, "stat, io, status and the set size at first");
    let first = memory.counters.clone();
    let reads: Vec<u64> = (0..5).map(|_| sample(&mut sampler, &mut memory)).collect();
    assert_eq!(reads, [0, 0, 0, 0, 1], "its clock stands still; stat once a second");
    let standing = memory.last("process", "process").expect("a sample").clone();
    for value in ["cpu_ns", "read_chars", "minor_faults"] {
        assert_eq!(standing.number(value), Some(0.0), "{value}");
    }
    for (value, detail) in [("rss_bytes", "process"), ("threads", "process"), ("open_files", "detail")] {
        let before = first.iter().find(|sample| sample.name == detail).expect("a sample").number(value);
        assert!(before.is_some());
        assert_eq!(memory.number("process", detail, value), before, "{value}");
    }
    assert_eq!(memory.number("process", "detail", "voluntary_switches"), Some(0.0));

    let before = sampler.last_totals();
    worker.work();
    assert!(sample(&mut sampler, &mut memory) >= 2, "stat and io again");
    let moved = memory.last("process", "process").expect("a sample").clone();
    let after = sampler.last_totals();
    assert_eq!(moved.number("cpu_ns"), Some((after.cpu_ns - before.cpu_ns) as f64));
    assert!(after.cpu_ns - before.cpu_ns >= 50_000_000, "{before:?} {after:?}");
    assert!(moved.number("read_chars").is_some_and(|bytes| (1e6..1.01e6).contains(&bytes)), "{moved:?}");
    let reads: Vec<u64> = (0..4).map(|_| sample(&mut sampler, &mut memory)).collect();
    assert_eq!(reads, [0, 0, 0, 1], "the details of the second in which it worked, then nothing");
    let switches: f64 = memory.counters.iter().filter_map(|sample| sample.number("voluntary_switches")).sum();
    assert!(switches >= 1.0, "it waited for its input again");

    let mut all = Memory::default();
    let at = Interval { start_ns: 0, end_ns: 1 };
    assert!(reads_of(|| sampler.sample_last(at, &mut all).expect("it runs")) >= 2, "the last sample reads everything");
    assert_eq!(sampler.last_totals(), after, "and finds nothing that was missed");
}
