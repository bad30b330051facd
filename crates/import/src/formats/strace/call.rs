//! One whole call: its event, and what it changes about the process.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::LazyLock;

use weftline_calls::kernel::{EVERYWHERE, KernelCall, X86_64};
use weftline_calls::{CallInfo, Family, Flow, find};

use super::files::Processes;
use super::line::Outcome;
use super::{args, errors};
use crate::Result;
use crate::event::{Arg, Event, Process, Shape};
use crate::sink::Sink;

/// The category of calls that the table of calls does not have.
const OTHER: &str = "syscall";
/// Bytes of other arguments that are kept.
const MOST_TEXT: usize = 300;
/// Words of a command line that are kept.
const MOST_WORDS: usize = 64;

static KERNEL: LazyLock<HashMap<&'static str, &'static KernelCall>> =
    LazyLock::new(|| EVERYWHERE.iter().chain(X86_64).map(|call| (call.info.name, call)).collect());

/// Calls that return a descriptor of something without a path, and what `/proc` calls it. Numbers that only `-y` tells are left out.
const NAMELESS: [(&str, &[u8]); 13] = [
    ("socket", b"socket:[]"),
    ("accept", b"socket:[]"),
    ("accept4", b"socket:[]"),
    ("eventfd", b"anon_inode:[eventfd]"),
    ("eventfd2", b"anon_inode:[eventfd]"),
    ("epoll_create", b"anon_inode:[eventpoll]"),
    ("epoll_create1", b"anon_inode:[eventpoll]"),
    ("timerfd_create", b"anon_inode:[timerfd]"),
    ("signalfd4", b"anon_inode:[signalfd]"),
    ("inotify_init", b"anon_inode:inotify"),
    ("inotify_init1", b"anon_inode:inotify"),
    ("io_uring_setup", b"anon_inode:[io_uring]"),
    ("memfd_create", b"memfd:"),
];

/// A call that is over.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub pid: u32,
    pub parent: Option<u32>,
    pub tid: u32,
    pub name: &'a str,
    /// Its arguments, up to the `)`.
    pub text: &'a [u8],
    pub args: &'a [Range<usize>],
    pub outcome: Outcome<'a>,
    pub start_ns: i64,
    /// None where nothing tells its end.
    pub end_ns: Option<i64>,
    /// Whether its result is missing for ever.
    pub unfinished: bool,
}

/// Buffers that are used again for each call.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    path: Vec<u8>,
    second: Vec<u8>,
    decoded: Vec<u8>,
    text: Vec<u8>,
    from: Vec<u8>,
}

impl Call<'_> {
    /// An argument, counted from 1.
    fn arg(&self, place: u8) -> Option<&[u8]> {
        let range = self.args.get(usize::from(place).checked_sub(1)?)?;
        Some(&self.text[range.clone()])
    }

    fn number(&self, place: u8) -> Option<i64> {
        i64::try_from(args::number(self.arg(place)?)?).ok()
    }

    /// The result of a call that did what it should.
    fn done(&self) -> Option<i64> {
        let value = i64::try_from(self.outcome.value?).ok()?;
        (self.outcome.error.is_none() && value >= 0).then_some(value)
    }

    fn mentions(&self, word: &[u8]) -> bool {
        memchr::memmem::find(self.text, word).is_some()
    }

    /// The file of a descriptor argument, by `-y` or as followed.
    fn file(&self, place: u8, processes: &Processes, into: &mut Vec<u8>) -> bool {
        into.clear();
        let Some(arg) = self.arg(place) else { return false };
        if let Some(annotation) = args::annotation(arg) {
            args::file(annotation, into);
        } else if let Some(path) = self.number(place).and_then(|fd| processes.path(self.pid, fd)) {
            into.extend_from_slice(path);
        }
        !into.is_empty()
    }

    /// A path argument, joined to the directory that it starts from where that is known.
    fn path(&self, place: u8, at: u8, processes: &Processes, scratch: (&mut Vec<u8>, &mut Vec<u8>)) -> bool {
        let (into, decoded) = scratch;
        into.clear();
        let Some(()) = self.arg(place).and_then(|arg| args::text(arg, decoded)) else { return false };
        if decoded.is_empty() {
            return false;
        }
        if decoded[0] != b'/' {
            let known = at > 0 && self.file(at, processes, into);
            if !known
                && (at == 0 || self.arg(at).is_some_and(|arg| arg.starts_with(b"AT_FDCWD")))
                && let Some(directory) = processes.get(self.pid).and_then(|process| process.directory.as_ref())
            {
                into.extend_from_slice(directory);
            }
            if !into.is_empty() && !into.ends_with(b"/") {
                into.push(b'/');
            }
        }
        let name: &[u8] = if into.is_empty() { decoded } else { decoded.strip_prefix(b"./").unwrap_or(decoded) };
        into.extend_from_slice(name);
        true
    }

    /// Where the call's arguments stand. Calls without a row have a path or a descriptor in front, or neither.
    fn places(&self, info: Option<&CallInfo>) -> Places {
        if let Some(row) = KERNEL.get(self.name) {
            let KernelCall { path, second_path, file, second_file, size, offset, .. } = **row;
            return Places { path, second_path, file, second_file, size, offset };
        }
        let on_files = info.is_some_and(|info| matches!(info.family, Family::Posix | Family::Network));
        let first = self.arg(1).unwrap_or(b"");
        let mut places = Places::default();
        if on_files && first.starts_with(b"\"") {
            places.path = 1;
        } else if first.first().is_some_and(u8::is_ascii_digit)
            && (on_files || self.name.starts_with("epoll_") || args::annotation(first).is_some())
        {
            places.file = 1;
            let moves = info.is_some_and(|info| info.family == Family::Network && info.flow() != Flow::None);
            places.size = if moves && !self.name.ends_with("msg") { 3 } else { 0 };
        }
        places
    }

    /// Gives the call's event, and does to the process what the call did.
    pub(super) fn finish(&self, processes: &mut Processes, scratch: &mut Scratch, sink: &mut dyn Sink) -> Result<()> {
        let info = find(self.name);
        let places = self.places(info);
        processes.entry(self.pid, self.parent);
        let Scratch { path, second, decoded, text, from } = scratch;
        let named = places.path > 0 && self.path(places.path, places.file, processes, (path, decoded));
        let opens = matches!(self.name, "open" | "openat" | "openat2" | "creat");
        let known = match self.outcome.file {
            // With `-y` the new descriptor's file is told from the root.
            Some(file) if opens => {
                args::file(file, path);
                !path.is_empty()
            }
            _ => named || self.file(places.file, processes, path),
        };
        let known_second = match (places.second_path, places.second_file) {
            (0, 0) => false,
            (0, file) => self.file(file, processes, second),
            (place, at) => self.path(place, at, processes, (second, decoded)),
        };
        let mut given: [(&str, Arg<'_>); 12] = [("", Arg::Bool(false)); 12];
        let mut count = 0;
        let mut add = |key, arg| {
            given[count] = (key, arg);
            count += 1;
        };
        if let Some(fd) = self.number(places.file).filter(|fd| *fd >= 0 && !named) {
            add("fd", Arg::Int(fd));
        }
        if known {
            add("fhash", Arg::Path(path));
        }
        if known_second {
            add("fhash2", Arg::Path(second));
        }
        if let Some(size) = self.number(places.size).filter(|size| *size >= 0) {
            add("size", Arg::Int(size));
        }
        match (self.outcome.value, self.outcome.error) {
            (value, Some(error)) => match (value, errors::number(error)) {
                (Some(_), Some(number)) => {
                    add("ret", Arg::Int(-number));
                    add("errno", Arg::Int(number));
                }
                // `= ? ERESTARTSYS`: made again, and told again; or an error that is newer than the table.
                _ => add("error", Arg::Text(error.as_bytes())),
            },
            (Some(value), None) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => add("ret", Arg::Int(value)),
                (_, Ok(value)) => add("ret", Arg::Unsigned(value)),
                _ => {}
            },
            (None, None) => {}
        }
        if let Some(offset) = self.number(places.offset) {
            add("offset", Arg::Int(offset));
        }
        if self.unfinished {
            add("unfinished", Arg::Bool(true));
        }
        self.others(info, &places, text);
        if !text.is_empty() {
            add("args", Arg::Text(text));
        }
        if let Some(note) = self.outcome.note {
            add("result", Arg::Text(&note[..note.len().min(MOST_TEXT)]));
        }
        let end_ns = self.end_ns;
        sink.event(&Event {
            shape: end_ns.map_or(Shape::Instant, |end_ns| Shape::Span { end_ns }),
            name: self.name,
            cat: info.map_or(OTHER, CallInfo::category),
            pid: self.pid,
            tid: self.tid,
            start_ns: self.start_ns,
            args: &given[..count],
        })?;
        if let Some(value) = self.done() {
            self.apply(value, known.then_some(path.as_slice()), from, processes, sink)?;
        }
        Ok(())
    }

    /// The arguments that have no key of their own. What is read and written is left out: it is data, and may be secret.
    fn others(&self, info: Option<&CallInfo>, places: &Places, into: &mut Vec<u8>) {
        into.clear();
        if self.name.starts_with("execve") {
            return;
        }
        let data = info.is_some_and(|info| info.flow() != Flow::None || info.family == Family::Network);
        for (place, range) in self.args.iter().enumerate() {
            let arg = &self.text[range.clone()];
            let buffer = arg.starts_with(b"\"") || (data && matches!(arg.first(), Some(b'[' | b'{')));
            if places.hold(place + 1) || buffer || arg.is_empty() {
                continue;
            }
            if !into.is_empty() {
                into.extend_from_slice(b", ");
            }
            let room = MOST_TEXT.saturating_sub(into.len());
            into.extend_from_slice(&arg[..arg.len().min(room)]);
            if arg.len() > room {
                into.extend_from_slice(b"...");
                return;
            }
        }
    }

    /// What the call changed: descriptors, the working directory, the program.
    fn apply(
        &self,
        value: i64,
        path: Option<&[u8]>,
        decoded: &mut Vec<u8>,
        processes: &mut Processes,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (pid, closes) = (self.pid, self.mentions(b"CLOEXEC"));
        match self.name {
            "open" | "openat" | "openat2" | "creat" => match path {
                Some(path) => processes.open(pid, value, path.into(), closes),
                None => processes.close(pid, value, value),
            },
            "close" => {
                let fd = self.number(1).unwrap_or(-1);
                processes.close(pid, fd, fd);
            }
            "close_range" if !self.mentions(b"CLOSE_RANGE_CLOEXEC") => {
                processes.close(pid, self.number(1).unwrap_or(i64::MAX), self.number(2).unwrap_or(i64::MAX));
            }
            "dup" | "dup2" | "dup3" => processes.duplicate(pid, self.number(1).unwrap_or(-1), value, closes),
            "fcntl" | "fcntl64" => {
                let (fd, command) = (self.number(1).unwrap_or(-1), self.arg(2).unwrap_or(b""));
                if command.starts_with(b"F_DUPFD") {
                    processes.duplicate(pid, fd, value, closes);
                } else if command == b"F_SETFD" {
                    processes.set_closes(pid, fd, closes);
                }
            }
            "pipe" | "pipe2" | "socketpair" => {
                let (place, name): (u8, &[u8]) =
                    if self.name == "socketpair" { (4, b"socket:[]") } else { (1, b"pipe:[]") };
                let pair = self.arg(place).unwrap_or(b"").trim_ascii();
                let pair = pair.strip_prefix(b"[").and_then(|pair| pair.strip_suffix(b"]")).unwrap_or(b"");
                for end in pair.split(|byte| *byte == b',') {
                    let end = end.trim_ascii();
                    let Some(fd) = args::number(end).and_then(|fd| i64::try_from(fd).ok()) else { continue };
                    decoded.clear();
                    match args::annotation(end) {
                        Some(annotation) => args::file(annotation, decoded),
                        None => decoded.extend_from_slice(name),
                    }
                    processes.open(pid, fd, decoded.as_slice().into(), closes);
                }
            }
            "chdir" | "fchdir" => {
                if let (Some(path), Some(process)) = (path, processes.entry(pid, self.parent)) {
                    process.directory = Some(Rc::from(path));
                }
            }
            "getcwd" => {
                if let (Some(arg), Some(process)) = (self.arg(1), processes.entry(pid, self.parent))
                    && args::text(arg, decoded).is_some()
                {
                    process.directory = Some(Rc::from(decoded.as_slice()));
                }
            }
            "prctl" if self.arg(1).is_some_and(|option| option.starts_with(b"PR_SET_NAME")) => {
                if self.arg(2).and_then(|arg| args::text(arg, decoded)).is_some() {
                    let named = [("name", Arg::Text(decoded))];
                    let (shape, cat) = (Shape::Metadata, Family::Process.category());
                    let (tid, start_ns) = (self.tid, self.start_ns);
                    sink.event(&Event { shape, name: "thread_name", cat, pid, tid, start_ns, args: &named })?;
                }
            }
            "execve" | "execveat" => self.execute(decoded, processes, sink)?,
            name => {
                if let Some((_, file)) = NAMELESS.iter().find(|(known, _)| *known == name) {
                    processes.open(pid, value, Rc::from(*file), closes);
                }
            }
        }
        Ok(())
    }

    /// The process is another program from now on.
    fn execute(&self, decoded: &mut Vec<u8>, processes: &mut Processes, sink: &mut dyn Sink) -> Result<()> {
        let place = if self.name == "execve" { 1 } else { 2 };
        let exe = match self.arg(place).and_then(|arg| args::text(arg, decoded)) {
            Some(()) => String::from_utf8_lossy(decoded).into_owned(),
            None => String::new(),
        };
        let mut words: Vec<String> = Vec::new();
        if let Some(list) = self.arg(place + 1).and_then(|list| list.strip_prefix(b"[")) {
            let mut ranges = Vec::new();
            // The list as arguments: its `]` is what a `)` is to them.
            let list = [list.strip_suffix(b"]").unwrap_or(list), b")"].concat();
            args::split(&list, &mut ranges);
            for range in ranges.into_iter().take(MOST_WORDS) {
                if args::text(&list[range], decoded).is_some() {
                    words.push(String::from_utf8_lossy(decoded).into_owned());
                }
            }
        }
        processes.execute(self.pid);
        let name = exe.rsplit('/').next().unwrap_or("").to_owned();
        let command: Vec<&str> = words.iter().map(String::as_str).collect();
        let ppid = self.parent.unwrap_or(0);
        sink.process(&Process {
            pid: self.pid,
            name: &name,
            ppid,
            exe: &exe,
            command: &command,
            ..Process::default()
        })?;
        if let Some(process) = processes.entry(self.pid, self.parent) {
            (process.name, process.exe) = (name, exe);
        }
        Ok(())
    }
}

/// Where arguments stand, from 1; 0 is none.
#[derive(Debug, Default)]
struct Places {
    path: u8,
    second_path: u8,
    file: u8,
    second_file: u8,
    size: u8,
    offset: u8,
}

impl Places {
    fn hold(&self, place: usize) -> bool {
        [self.path, self.second_path, self.file, self.second_file, self.size, self.offset]
            .iter()
            .any(|known| usize::from(*known) == place)
    }
}
