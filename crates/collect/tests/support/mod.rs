//! What collectors are told in tests, programs whose use is known, and what was sampled of them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weftline_collect::collector::Options;
use weftline_collect::follow::Follow;
use weftline_collect::roots::Roots;
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
        arguments: weftline_format::secrets::Arguments::Masked,
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

/// Burns CPU until its own clock says so, then prints what that clock says.
pub(crate) fn burner(seconds: f64) -> Child {
    python(&format!("import time\nwhile time.process_time() < {seconds}: pass\nprint(time.process_time_ns())"))
}

/// What such a program printed, as a number of nanoseconds. It has ended then and stays a zombie: nobody waits for it here.
pub(crate) fn printed(child: &mut Child) -> f64 {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("piped"), &mut text).expect("read to its end");
    wait_until("it has ended", || weftline_collect::own::start_of(&child.id().to_string()).is_none());
    text.trim().parse().unwrap_or_else(|_| panic!("a number: {text}"))
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

/// Polls a condition; a machine that needs longer is broken, not busy.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
