//! Text of strace: `-f`, `-ff` (the thread in the file's name), `-t`, `-tt`, `-ttt`, `-r`, `-T`, `-y`, `-yy`, `-k`, `-i`, `-n`.
//!
//! | module | holds |
//! |---|---|
//! | `line` | who, when, and what a line tells; a call's result |
//! | `args` | arguments: splitting, numbers, texts, files of descriptors |
//! | `call` | a whole call → its event, and what it does to its process |
//! | `files` | which file a descriptor is |
//! | `errors` | numbers of errors |
//!
//! A call is a span where its end is known: by `-T`, or because it was printed in two halves. Otherwise it is an instant. Who made whom is
//! known from all files together, before the first event: a thread's first line often stands before its maker's result, and with `-ff` in another file.

mod args;
mod call;
mod errors;
mod files;
mod line;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use self::call::{Call, Scratch};
use self::files::Processes;
use self::line::{Body, Outcome, Prefix, Stamp};
use crate::Result;
use crate::clock::{Clock, ClockKind};
use crate::event::{Arg, Event, Process, Shape};
use crate::formats::time::Days;
use crate::input::{Head, Input, Line};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "strace",
    title: "strace text",
    carries: "a span per system call (an instant without `-T`), with file, size, offset, result and other arguments; signals, exits, programs and \
              names of threads; not the data that was read and written",
    example: "strace.txt",
    detect,
    survey: Some(survey),
    read,
};

/// The process of a trace that names none.
const PID: u32 = 1;
/// Threads that are remembered.
const MOST_THREADS: usize = 1 << 20;
/// Bytes of half-printed calls that are remembered.
const MOST_PENDING: usize = 64 << 20;

fn detect(head: &Head<'_>) -> Confidence {
    let (mut good, mut all, mut started) = (0, 0, false);
    let mut ranges = Vec::new();
    for text in head.lines().filter(|line| !line.trim_ascii().is_empty()).take(40) {
        all += 1;
        let told = match line::body(line::prefix(text).body) {
            Some(Body::Call { name, rest }) => {
                let end = args::split(rest, &mut ranges);
                let whole = end.and_then(|end| line::outcome(&rest[end + 1..])).is_some();
                started |= whole && all == 1 && name == "execve";
                whole
            }
            Some(Body::Unfinished { .. } | Body::Resumed { .. } | Body::Signal { .. } | Body::Exited(_)) => true,
            Some(Body::Killed(_)) => true,
            Some(Body::Remark) => {
                all -= 1;
                false
            }
            None => false,
        };
        good += u32::from(told);
    }
    match good * 2 > all && good > 0 {
        true if started => Confidence::Certain,
        true => Confidence::Likely,
        false => Confidence::No,
    }
}

fn makes_thread(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "clone2" | "fork" | "vfork")
}

/// The thread that lines without one are of: `out.1234` of `-ff`.
fn named_thread(input: &Input<'_>) -> Option<u32> {
    let (_, end) = input.file_name().rsplit_once('.')?;
    end.parse().ok().filter(|tid| (1..=1 << 22).contains(tid))
}

/// Who made whom.
fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    let mut pending: HashMap<u32, bool> = HashMap::new();
    let (mut line, mut ranges, mut nameless) = (Vec::new(), Vec::new(), false);
    let named = named_thread(input);
    while input.next_line(&mut line)?.is_some() {
        let Prefix { tid, stamp, body } = line::prefix(&line);
        nameless |= tid.is_none() && stamp != Stamp::None;
        if let Some(tid) = tid
            && seen.len() < MOST_THREADS
        {
            seen.insert(tid);
        }
        if memchr::memmem::find(body, b"clone").is_none() && memchr::memmem::find(body, b"fork").is_none() {
            continue;
        }
        let tid = tid.or(named).unwrap_or(0);
        let is_thread = |args: &[u8]| memchr::memmem::find(args, b"CLONE_THREAD").is_some();
        let (rest, thread) = match line::body(body) {
            Some(Body::Call { name, rest }) if makes_thread(name) => (rest, is_thread(rest)),
            Some(Body::Unfinished { name, args }) if makes_thread(name) => {
                if pending.len() < MOST_THREADS {
                    pending.insert(tid, is_thread(args));
                }
                continue;
            }
            Some(Body::Resumed { name, rest }) if makes_thread(name) => {
                (rest, pending.remove(&tid).unwrap_or(false) || is_thread(rest))
            }
            _ => continue,
        };
        let outcome = args::split(rest, &mut ranges).and_then(|end| line::outcome(&rest[end + 1..]));
        let made = outcome.and_then(|outcome| outcome.value).and_then(|value| u32::try_from(value).ok());
        if let Some(made) = made.filter(|made| *made > 0)
            && survey.makers.len() < MOST_THREADS
        {
            survey.makers.insert(made, (tid, thread));
        }
    }
    // On a terminal the first process has no number until there is a second one.
    if nameless && named.is_none() {
        let mut first = seen.iter().filter(|tid| !survey.makers.contains_key(tid));
        if let (Some(first), None) = (first.next(), first.next()) {
            survey.first_threads.insert(input.name().to_owned(), *first);
            for maker in survey.makers.values_mut().filter(|maker| maker.0 == 0) {
                maker.0 = *first;
            }
        }
    }
    Ok(())
}

/// The first half of a call.
#[derive(Debug)]
struct Pending {
    name: String,
    args: Vec<u8>,
    start: i64,
}

/// Times of lines → times of the source's clock.
#[derive(Debug, Default)]
struct Times {
    clock: Option<Clock>,
    kind: Option<ClockKind>,
    days: Days,
    sum: i64,
}

impl Times {
    /// The time of a line; none where it tells none, or one of another kind than the first.
    fn at(&mut self, stamp: Stamp, survey: &Survey, sink: &mut dyn Sink) -> Option<i64> {
        let kind = match stamp {
            Stamp::None => return None,
            Stamp::OfDay(_) => ClockKind::LocalText,
            Stamp::Epoch(_) => ClockKind::Realtime,
            Stamp::Step(_) => ClockKind::TraceRelative,
        };
        if self.kind.is_none() {
            self.kind = Some(kind);
            let clock = match kind {
                ClockKind::LocalText => {
                    let mut clock = survey.local_clock();
                    match survey.first_day {
                        Some(day) => self.days = Days::from(day),
                        None => clock.how += "; nothing tells the date: the first day is 1970-01-01",
                    }
                    clock
                }
                kind => survey.clock(kind),
            };
            self.clock = Some(sink.clock(clock));
        }
        if self.kind != Some(kind) {
            return None;
        }
        match stamp {
            Stamp::None => None,
            Stamp::Epoch(ns) => Some(ns),
            Stamp::Step(ns) => {
                self.sum = self.sum.saturating_add(ns);
                Some(self.sum)
            }
            Stamp::OfDay(ns) => self.days.at(ns),
        }
    }

    fn utc(&self, source_ns: i64) -> i64 {
        self.clock.as_ref().map_or(source_ns, |clock| clock.to_utc(source_ns))
    }
}

struct Reader<'a> {
    survey: &'a Survey,
    sink: &'a mut dyn Sink,
    times: Times,
    processes: Processes,
    pids: HashMap<u32, u32>,
    pending: HashMap<u32, Pending>,
    pending_bytes: usize,
    scratch: Scratch,
    ranges: Vec<Range<usize>>,
    timeless: u64,
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let nameless = named_thread(input).or_else(|| survey.first_threads.get(input.name()).copied()).unwrap_or(PID);
    let mut reader = Reader {
        survey,
        sink,
        times: Times::default(),
        processes: Processes::default(),
        pids: HashMap::new(),
        pending: HashMap::new(),
        pending_bytes: 0,
        scratch: Scratch::default(),
        ranges: Vec::new(),
        timeless: 0,
    };
    let mut line = Vec::new();
    while let Some(about) = input.next_line(&mut line)? {
        if !line.trim_ascii().is_empty() {
            reader.line(&line, about, nameless)?;
        }
    }
    let mut open: Vec<(u32, Pending)> = reader.pending.drain().collect();
    open.sort_unstable_by_key(|(tid, pending)| (pending.start, *tid));
    for (tid, pending) in open {
        reader.never_finished(tid, &pending)?;
    }
    if reader.timeless > 0 && reader.times.kind.is_none() {
        return Err(input.invalid(0, "no line tells its time; record with `strace -f -ttt -T -o FILE`"));
    }
    Ok(())
}

impl Reader<'_> {
    fn line(&mut self, text: &[u8], about: Line, nameless: u32) -> Result<()> {
        let Prefix { tid, stamp, body } = line::prefix(text);
        let tid = tid.unwrap_or(nameless);
        let Some(body) = line::body(body) else {
            // What `-c` adds, what the program itself wrote, a line that was cut.
            let torn = about.unfinished || about.cut;
            self.sink.skip(if torn { "torn line" } else { "not a line of strace" }, about.offset);
            return Ok(());
        };
        if body == Body::Remark {
            self.sink.skip("remark of strace, stack frame or dump", about.offset);
            return Ok(());
        }
        let Some(at) = self.times.at(stamp, self.survey, self.sink) else {
            self.timeless += 1;
            self.sink.skip("line without a time", about.offset);
            return Ok(());
        };
        match body {
            Body::Remark => {}
            Body::Call { name, rest } => {
                self.abandon(tid)?;
                if !self.call(tid, name, rest, at, None)? {
                    let torn = about.unfinished || about.cut;
                    self.sink.skip(if torn { "torn line" } else { "call without a result" }, about.offset);
                }
            }
            Body::Unfinished { name, args } => {
                self.abandon(tid)?;
                if self.pending.len() >= MOST_THREADS || self.pending_bytes + args.len() > MOST_PENDING {
                    self.sink.skip("half of a call: too many are under way", about.offset);
                    return Ok(());
                }
                self.pending_bytes += args.len();
                self.pending.insert(tid, Pending { name: name.to_owned(), args: args.to_vec(), start: at });
            }
            Body::Resumed { name, rest } => match self.pending.remove(&tid) {
                Some(mut pending) if pending.name == name => {
                    self.pending_bytes -= pending.args.len();
                    pending.args.extend_from_slice(rest);
                    if !self.call(tid, name, &pending.args, pending.start, Some(at))? {
                        self.sink.skip("call without a result", about.offset);
                    }
                }
                other => {
                    if let Some(pending) = other {
                        self.pending_bytes -= pending.args.len();
                        self.never_finished(tid, &pending)?;
                    }
                    // `strace -p` meets threads within a call.
                    self.sink.skip("second half of a call without the first", about.offset);
                }
            },
            Body::Signal { name, info } => {
                let given = [("info", Arg::Text(&info[..info.len().min(300)]))];
                self.instant(tid, name, "signal", at, &given[..usize::from(!info.is_empty())])?;
            }
            Body::Exited(code) => self.exit(tid, at, ("code", Arg::Int(code)))?,
            Body::Killed(signal) => self.exit(tid, at, ("signal", Arg::Text(signal.as_bytes())))?,
        }
        Ok(())
    }

    /// The process of a thread; a new one is introduced.
    fn pid(&mut self, tid: u32) -> Result<(u32, Option<u32>)> {
        let makers = &self.survey.makers;
        let process_of = |mut tid: u32| {
            // A chain of threads that make threads; one that leads in a circle was never a trace.
            for _ in 0..1024 {
                match makers.get(&tid) {
                    Some((maker, true)) if *maker != 0 => tid = *maker,
                    _ => break,
                }
            }
            tid
        };
        let known = self.pids.get(&tid).copied();
        let pid = known.unwrap_or_else(|| process_of(tid));
        let parent = makers.get(&pid).map(|(maker, _)| process_of(*maker)).filter(|parent| *parent != 0);
        if known.is_none() && self.pids.len() < MOST_THREADS {
            self.pids.insert(tid, pid);
            if self.processes.get(pid).is_none()
                && let Some(process) = self.processes.entry(pid, parent)
            {
                let told = self.survey.names.get(&pid).map_or(process.name.as_str(), String::as_str);
                let ppid = parent.unwrap_or(0);
                if !told.is_empty() || ppid != 0 {
                    let fallback = format!("pid {pid}");
                    let name = if told.is_empty() { fallback.as_str() } else { told };
                    self.sink.process(&Process { pid, name, ppid, exe: &process.exe, ..Process::default() })?;
                }
            }
        }
        Ok((pid, parent))
    }

    /// Whether it was a whole call.
    fn call(&mut self, tid: u32, name: &str, rest: &[u8], start: i64, end: Option<i64>) -> Result<bool> {
        let Some(close) = args::split(rest, &mut self.ranges) else { return Ok(false) };
        let Some(outcome) = line::outcome(&rest[close + 1..]) else { return Ok(false) };
        let (pid, parent) = self.pid(tid)?;
        let end = outcome.took_ns.map(|took| start.saturating_add(took)).or(end);
        let (start_ns, end_ns) = (self.times.utc(start), end.map(|end| self.times.utc(end)));
        let (text, args) = (&rest[..close], self.ranges.as_slice());
        let call = Call { pid, parent, tid, name, text, args, outcome, start_ns, end_ns, unfinished: false };
        call.finish(&mut self.processes, &mut self.scratch, self.sink)?;
        Ok(true)
    }

    /// A thread whose call was under way does something else.
    fn abandon(&mut self, tid: u32) -> Result<()> {
        match self.pending.remove(&tid) {
            Some(pending) => {
                self.pending_bytes -= pending.args.len();
                self.never_finished(tid, &pending)
            }
            None => Ok(()),
        }
    }

    /// A call whose end the trace does not have: it began, that is known.
    fn never_finished(&mut self, tid: u32, pending: &Pending) -> Result<()> {
        let (pid, parent) = self.pid(tid)?;
        let mut text = pending.args.clone();
        text.push(b')');
        // Of a text that ends within an argument, those before it are known.
        let close = args::split(&text, &mut self.ranges).unwrap_or(text.len());
        let (start_ns, outcome) = (self.times.utc(pending.start), Outcome::default());
        let (name, text, args) = (pending.name.as_str(), &text[..close], self.ranges.as_slice());
        let call = Call { pid, parent, tid, name, text, args, outcome, start_ns, end_ns: None, unfinished: true };
        call.finish(&mut self.processes, &mut self.scratch, self.sink)
    }

    fn exit(&mut self, tid: u32, at: i64, how: (&str, Arg<'_>)) -> Result<()> {
        self.abandon(tid)?;
        self.instant(tid, "exit", "PROCESS", at, &[how])?;
        if self.pids.remove(&tid) == Some(tid) {
            self.processes.end(tid);
        }
        Ok(())
    }

    fn instant(&mut self, tid: u32, name: &str, cat: &str, at: i64, args: &[(&str, Arg<'_>)]) -> Result<()> {
        let (pid, _) = self.pid(tid)?;
        let start_ns = self.times.utc(at);
        self.sink.event(&Event { shape: Shape::Instant, name, cat, pid, tid, start_ns, args })
    }
}
