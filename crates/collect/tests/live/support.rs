//! Collectors in threads, programs whose use is known, and what was sampled of them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weftline_collect::collector::{Collector, Options, Stop};
use weftline_collect::follow::Follow;
use weftline_collect::roots::Roots;
use weftline_format::manifest::SampleRecord;
use weftline_format::reader::read_run;
use weftline_format::{Event, Phase};

pub(crate) fn options(run: &Path, interval_ms: u64, follow: Follow) -> Options {
    Options {
        run: run.to_owned(),
        interval: Duration::from_millis(interval_ms),
        follow,
        duration: None,
        until_gone: false,
        host: true,
        exit_records: true,
        own_record: true,
        roots: Roots::default(),
        node: "here".into(),
        stage: Some("test".into()),
        peer: None,
        command: vec!["weft".into(), "collect".into()],
    }
}

/// A collector in a thread.
pub(crate) struct Running {
    pub(crate) stop: Stop,
    pub(crate) thread: JoinHandle<(SampleRecord, Vec<String>)>,
}

pub(crate) fn start(options: Options) -> Running {
    let collector = Collector::start(options).expect("a collector");
    let stop = collector.stopper();
    let thread = std::thread::spawn(move || {
        let mut said = Vec::new();
        let record = collector.run(&mut |text| said.push(text.to_owned()));
        (record, said)
    });
    Running { stop, thread }
}

impl Running {
    /// Stops it, which takes less than a second; what it did and said.
    pub(crate) fn stop(self) -> (SampleRecord, Vec<String>) {
        let asked = Instant::now();
        self.stop.stop();
        let done = self.thread.join().expect("no panic");
        assert!(asked.elapsed() < Duration::from_secs(1), "it took {:?}", asked.elapsed());
        done
    }

    pub(crate) fn join(self) -> SampleRecord {
        self.thread.join().expect("no panic").0
    }
}

/// A program of a few lines, with its output in a pipe. Debian's interpreter: others may be scripts, whose children would be followed.
pub(crate) fn python(program: &str) -> Child {
    Command::new("/usr/bin/python3")
        .args(["-S", "-c", program])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts")
}

/// What such a program printed, as a number of nanoseconds. The process stays a zombie: nobody waits for it here.
pub(crate) fn printed(child: &mut Child) -> f64 {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("piped"), &mut text).expect("read to its end");
    text.trim().parse().unwrap_or_else(|_| panic!("a number: {text}"))
}

/// Burns CPU until its own clock says so, then prints what that clock says.
pub(crate) fn burner(seconds: f64) -> Child {
    python(&format!("import time\nwhile time.process_time() < {seconds}: pass\nprint(time.process_time_ns())"))
}

pub(crate) fn counters(run: &Path) -> Vec<Event> {
    let trace = read_run(run).expect("readable");
    assert_eq!(trace.damage.flaws, [], "{}", run.display());
    trace.events.into_iter().filter(|event| event.phase == Phase::Counter).collect()
}

pub(crate) fn of(events: &[Event], pid: u32, name: &str) -> Vec<Event> {
    events.iter().filter(|event| event.pid == i64::from(pid) && event.name == name).cloned().collect()
}

pub(crate) fn sum(events: &[Event], key: &str) -> f64 {
    events.iter().filter_map(|event| event.arg(key)?.as_f64()).sum()
}

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn now_ns() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos() as i64
}
