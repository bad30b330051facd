//! Traces made in memory, for rules to look at.

use std::fmt::Write as _;
use std::path::Path;

use weftline_index::{OpenOptions, Run};

/// Lines of a trace in DFTracer's letter dialect; times are microseconds since its beginning.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    lines: String,
    files: Vec<String>,
    /// Where each process's next call begins.
    clocks: Vec<(i64, i64)>,
    hosts: Vec<(i64, String)>,
}

/// When traces begin, µs since the epoch.
const EPOCH: i64 = 1_700_000_000_000_000;

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace::default()
    }

    /// A process on a host, of a program, perhaps with a rank.
    pub(crate) fn process(mut self, pid: i64, host: &str, rank: Option<i64>) -> Trace {
        let hash = format!("h{host}");
        writeln!(
            self.lines,
            r#"{{"name":"HH","cat":"dftracer","pid":{pid},"tid":{pid},"ph":"M","args":{{"hhash":"{hash}","name":"{host}","value":"{hash}"}}}}"#
        )
        .expect("a string");
        self.hosts.push((pid, hash.clone()));
        if let Some(rank) = rank {
            writeln!(
                self.lines,
                r#"{{"name":"PR","cat":"dftracer","pid":{pid},"tid":{pid},"ph":"M","args":{{"hhash":"{hash}","name":"rank","value":"{rank}"}}}}"#
            )
            .expect("a string");
        }
        self
    }

    fn file(&mut self, path: &str) -> usize {
        if let Some(place) = self.files.iter().position(|known| known == path) {
            return place;
        }
        self.files.push(path.to_owned());
        let place = self.files.len() - 1;
        writeln!(
            self.lines,
            r#"{{"name":"FH","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{{"name":"{path}","value":"f{place}"}}}}"#
        )
        .expect("a string");
        place
    }

    /// A span at a time; `args` are the inside of an object and may be empty.
    pub(crate) fn span(mut self, pid: i64, cat: &str, name: &str, start: i64, dur: i64, args: &str) -> Trace {
        self.add(pid, cat, name, start, dur, args);
        self
    }

    fn add(&mut self, pid: i64, cat: &str, name: &str, start: i64, dur: i64, args: &str) {
        let host = self.hosts.iter().find(|(known, _)| *known == pid).map(|(_, hash)| format!(r#""hhash":"{hash}""#));
        let all: Vec<&str> = host.iter().map(String::as_str).chain([args]).filter(|part| !part.is_empty()).collect();
        writeln!(
            self.lines,
            r#"{{"id":1,"name":"{name}","cat":"{cat}","pid":{pid},"tid":{pid},"ts":{},"dur":{dur},"ph":"X","args":{{{}}}}}"#,
            EPOCH + start,
            all.join(","),
        )
        .expect("a string");
    }

    /// One call on a file after the process's last one.
    pub(crate) fn call(&mut self, pid: i64, name: &str, path: &str, dur: i64, args: &str) -> &mut Trace {
        let file = self.file(path);
        let place = self.clocks.iter().position(|(known, _)| *known == pid).unwrap_or_else(|| {
            self.clocks.push((pid, 0));
            self.clocks.len() - 1
        });
        let start = self.clocks[place].1;
        self.clocks[place].1 += dur;
        let more = if args.is_empty() { String::new() } else { format!(",{args}") };
        let cat =
            if name.starts_with('f') && !matches!(name, "fsync" | "fdatasync" | "fstat") { "STDIO" } else { "POSIX" };
        self.add(pid, cat, name, start, dur, &format!(r#""fhash":"f{file}"{more}"#));
        self
    }

    /// Reads or writes at an offset.
    pub(crate) fn transfer(
        &mut self,
        pid: i64,
        name: &str,
        path: &str,
        dur: i64,
        offset: i64,
        bytes: i64,
    ) -> &mut Trace {
        self.call(pid, name, path, dur, &format!(r#""fd":3,"size":{bytes},"ret":{bytes},"offset":{offset}"#))
    }

    /// The process goes on until then, doing nothing that is I/O.
    pub(crate) fn until(self, pid: i64, end: i64) -> Trace {
        self.span(pid, "app", "main", 0, end, "")
    }

    /// What stands in its file.
    pub(crate) fn text(&self) -> String {
        format!("[\n{}", self.lines)
    }

    pub(crate) fn write(&self) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("trace.pfw"), self.text()).expect("written");
        directory
    }

    pub(crate) fn open(&self, directory: &Path) -> Run {
        let options = OpenOptions { no_index: true, ..OpenOptions::default() };
        Run::open(&[directory.to_owned()], &options).expect("opened")
    }
}

/// A second, as traces count.
pub(crate) const SECOND: i64 = 1_000_000;

/// A trace that lasts for some seconds, and what happens in it.
pub(crate) fn lasting(seconds: i64, fill: impl FnOnce(&mut Trace)) -> Trace {
    let mut trace = Trace::new().process(1, "a", None);
    fill(&mut trace);
    trace.until(1, seconds * SECOND)
}

/// Transfers of one kind, one after the other in the file.
pub(crate) fn transfers(name: &'static str, count: i64, dur: i64, bytes: i64) -> impl FnOnce(&mut Trace) {
    move |trace| {
        for place in 0..count {
            trace.transfer(1, name, "/data/x", dur, place * bytes, bytes);
        }
    }
}

/// Four processes of one program, each of which does what `fill` says.
pub(crate) fn four(ends: [i64; 4], mut fill: impl FnMut(i64, &mut Trace)) -> Trace {
    let mut trace = Trace::new();
    for pid in 1..=4 {
        trace = trace.process(pid, "a", None);
        fill(pid, &mut trace);
        trace = trace.until(pid, ends[pid as usize - 1]);
    }
    trace
}

/// A training loop of ten steps of one second: so much of each waits, so much computes.
pub(crate) fn training(fetch: i64, compute: i64, own_loading: bool) -> Trace {
    let mut trace = Trace::new().process(1, "a", None);
    for step in 0..10 {
        let start = step * SECOND;
        trace = trace.span(1, "dataloader", "fetch", start, fetch, "");
        if own_loading {
            trace = trace.span(1, "data", "item", start, fetch, "");
        }
        trace = trace.span(1, "compute", "step", start + SECOND - compute, compute, "");
    }
    trace
}
