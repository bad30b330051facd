//! The members that are already in trace files, and their statistics.
//!
//! Recovery needs both. The sums of a killed supervisor are lost, but every event that it encoded is in a file.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use weftline_calls::{CALLS, CallInfo, Calls, FileKind, Flow, Side, number_of};
use weftline_format::event::{Event, Phase, Value};
use weftline_format::files;
use weftline_format::hash::from_hex;
use weftline_format::identity::{CATEGORY, is_identity};
use weftline_format::member::{self, HEADER_LEN};
use weftline_format::reader;
use weftline_format::text::path_bytes;
use weftline_format::view::EventView;
use weftline_recorder::elf::VERDICT_NAMES;
use weftline_recorder::layout::TAKEN_SHORT;

use crate::Result;
use crate::encode::kinds::Role;
use crate::error::DrainError;
use crate::output::{Dropped, HEAD};
use crate::totals::{FileSum, Totals, UntracedChild};

/// The whole members of a file after its torn tail, if any, was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// Bytes of whole members; 0 when there is no file.
    pub length: u64,
    pub sequences: HashSet<u64>,
}

impl Members {
    /// Cuts the torn tail of a file and lists what is left.
    pub(crate) fn of(path: &Path) -> Result<Members> {
        let tail = match member::cut_tail(path) {
            Ok(tail) => tail,
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(Members::default()),
            Err(error) => return Err(error.into()),
        };
        let fail = |error| DrainError::io(path, error);
        let file = files::open_in_place(path).map_err(fail)?;
        let mut members = Members { length: tail.intact_len, ..Members::default() };
        let (mut at, mut head) = (0, [0; HEADER_LEN]);
        while at < tail.intact_len {
            file.read_exact_at(&mut head, at).map_err(fail)?;
            let Ok(header) = member::parse_header(&head) else { break };
            // A number that no segment can note is not one that a drain gave.
            if header.seq != HEAD && header.seq < TAKEN_SHORT - 1 {
                members.sequences.insert(header.seq);
            }
            at += header.size;
        }
        Ok(members)
    }
}

/// The images that have a member in a file of short ones. Its torn tail must be cut.
pub(crate) fn tags(path: &Path) -> Result<HashSet<String>> {
    let bytes = match files::open_in_place(path).and_then(|mut file| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    }) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(error) => return Err(DrainError::io(path, error)),
    };
    let mut tags = HashSet::new();
    for (range, _) in member::walk(&bytes) {
        scan_alone(&bytes[range], &mut |event| {
            if is_identity(event.phase, &event.name, &event.cat) {
                tags.extend(event.arg_str("nonce").map(|nonce| nonce.into_owned()));
            }
        });
    }
    Ok(tags)
}

/// Looks at the events of one member, on this thread alone: this may be a program that is ending. A damaged member has none.
fn scan_alone(member: &[u8], each: &mut dyn FnMut(&EventView<'_>)) {
    if let Ok(text) = member::inflate_member(member) {
        reader::scan_member(&text, each);
    }
}

/// Sums of the events that a file holds of one image.
pub(crate) fn totals(path: &Path, tag: &str) -> Result<Totals> {
    let mut sums =
        Sums { tag, mine: false, totals: Totals::default(), files: HashMap::new(), calls: HashMap::new(), open: None };
    let summary = reader::scan_file_here(path, &mut |event| sums.add(event))
        .map_err(|error| DrainError::io(path, error.source))?;
    sums.close();
    let Sums { mut totals, files, calls, .. } = sums;
    for ((number, hash), (calls, main_ns)) in calls {
        let path = hash.as_deref().and_then(|hash| summary.names.path(hash)).map(|name| path_bytes(name).into_owned());
        if let Some(activity) = totals.add_calls(number, FileKind::of(&path.unwrap_or_default()), calls) {
            totals.main.add(activity, main_ns);
        }
    }
    for child in &mut totals.untraced {
        let name = std::str::from_utf8(&child.exe).ok().and_then(|hash| summary.names.path(hash));
        child.exe = name.map(|name| path_bytes(name).into_owned()).unwrap_or_default();
    }
    for (hash, mut sum) in files {
        if let Some((number, name)) = from_hex(&hash).zip(summary.names.path(&hash)) {
            sum.path = path_bytes(name).into_owned();
            totals.files.merge(number, &sum);
        }
    }
    Ok(totals)
}

struct Sums<'t> {
    tag: &'t str,
    /// Whether the member at hand belongs to the image.
    mine: bool,
    totals: Totals,
    /// By the text of the path's hash.
    files: HashMap<String, FileSum>,
    /// By call and the hash of its path; and the time of them that is the main thread's.
    calls: HashMap<(usize, Option<String>), (Calls, u64)>,
    /// A call that is written as an async span, until its end comes.
    open: Option<Written>,
}

/// A call as a line has it.
struct Written {
    number: usize,
    calls: Calls,
    /// Of the main thread, itself and not a child of vfork.
    on_main: bool,
    start: i64,
    path: Option<String>,
    second: Option<String>,
}

impl Sums<'_> {
    fn add(&mut self, event: &EventView<'_>) {
        if event.phase == Phase::Metadata {
            if is_identity(event.phase, &event.name, &event.cat) {
                self.mine = event.arg_str("nonce").is_some_and(|nonce| nonce == self.tag);
            } else if self.mine && event.cat != CATEGORY && !is_definition(event) {
                self.totals.metadata += 1;
            }
            return;
        }
        if !self.mine {
            return;
        }
        self.totals.events += 1;
        let end = event.end_ns().unwrap_or(0);
        self.totals.last_ns = self.totals.last_ns.max(end);
        let Some((number, call)) = call_named(&event.name, &event.cat) else { return self.add_span(event, end) };
        if event.phase == Phase::AsyncEnd {
            if let Some(mut begun) = self.open.take() {
                begun.calls.time_ns = (end - begun.start).max(0) as u64;
                self.sum_up(&begun);
            }
            return;
        }
        let role = Role::of(call);
        if role == Role::Mark {
            return;
        }
        let ret = event.arg_i64("ret").unwrap_or(0);
        if let (Role::Reap, Ok(pid @ 1..)) = (role, u32::try_from(ret)) {
            self.totals.add_reaped(pid, end);
        }
        let path = event.arg_str("fhash").map(|hash| hash.into_owned());
        self.note_untraced(event, role, ret, path.as_deref());
        let second = if call.flow() == Flow::Both { event.arg_str("fhash2") } else { None };
        let calls = Calls {
            count: event.arg_i64("calls").map_or(1, |calls| calls.max(0) as u64),
            time_ns: event.arg_i64("busy").or(event.dur_ns).unwrap_or(0).max(0) as u64,
            bytes: ret.max(0) as u64,
        };
        let start = event.start_ns.unwrap_or(end);
        let on_main = event.tid == event.pid && event.arg_i64("vfork").is_none();
        let written = Written { number, calls, on_main, start, path, second: second.map(|hash| hash.into_owned()) };
        if event.phase == Phase::AsyncBegin {
            self.close();
            self.open = Some(written);
        } else {
            self.sum_up(&written);
        }
    }

    /// Counts a call whose end did not come.
    fn close(&mut self) {
        if let Some(begun) = self.open.take() {
            self.sum_up(&begun);
        }
    }

    fn sum_up(&mut self, written: &Written) {
        let operation = CALLS[written.number].operation;
        let none = (Calls { count: 0, time_ns: 0, bytes: 0 }, 0);
        let (sum, main_ns) = self.calls.entry((written.number, written.path.clone())).or_insert(none);
        *sum = Calls {
            count: sum.count.saturating_add(written.calls.count),
            time_ns: sum.time_ns.saturating_add(written.calls.time_ns),
            bytes: sum.bytes.saturating_add(written.calls.bytes),
        };
        if written.on_main {
            *main_ns = main_ns.saturating_add(written.calls.time_ns);
        }
        for (side, path) in [(Side::File, &written.path), (Side::SecondFile, &written.second)] {
            if let Some(path) = path {
                self.files.entry(path.clone()).or_default().io.add_to(side, operation, written.calls);
            }
        }
    }

    /// The program's own spans. A span that crosses another is a start and an end here.
    fn add_span(&mut self, event: &EventView<'_>, end: i64) {
        if event.name.is_empty() {
            return;
        }
        let spans = &mut self.totals.spans;
        match event.phase {
            Phase::Complete => spans.of(&event.name, &event.cat).add(event.dur_ns.unwrap_or(0)),
            Phase::Begin | Phase::AsyncBegin => spans.of(&event.name, &event.cat).open(end),
            Phase::End | Phase::AsyncEnd => spans.of(&event.name, &event.cat).close(end),
            _ => {}
        }
    }

    /// A child that could not be traced; its path is filled in when all names are known.
    fn note_untraced(&mut self, event: &EventView<'_>, role: Role, ret: i64, path: Option<&str>) {
        let Some(reason) = event.arg_str("untraced") else { return };
        let reason = VERDICT_NAMES.iter().find(|known| **known == reason).copied().unwrap_or("not known");
        let in_vfork = event.arg_i64("vfork").is_some() && ret == 0;
        let pid = match role {
            Role::Spawn => ret,
            _ if in_vfork => event.pid,
            _ => 0,
        };
        if let Ok(pid @ 1..) = u32::try_from(pid) {
            let exe = path.unwrap_or_default().as_bytes().to_vec();
            self.totals.add_untraced(UntracedChild { pid, exe, reason, at_ns: event.start_ns.unwrap_or(0) });
        }
    }
}

/// Whether the line says what a hash means.
fn is_definition(event: &EventView<'_>) -> bool {
    event.cat == "dftracer" && matches!(&*event.name, "FH" | "SH" | "HH")
}

fn call_named(name: &str, category: &str) -> Option<(usize, &'static CallInfo)> {
    let number = number_of(name)?;
    Some((number, &CALLS[number])).filter(|(_, call)| call.category() == category)
}

/// What the head of a file says was dropped from it.
pub(crate) fn dropped(path: &Path) -> Dropped {
    let number = |event: &Event, key: &str| event.arg(key).and_then(Value::as_i64).unwrap_or(0);
    let mut found = Dropped::default();
    let Some(head) = read_head(path) else { return found };
    scan_alone(&head, &mut |event| {
        if event.phase == Phase::Metadata && event.name == "dropped" && event.cat == CATEGORY {
            let event = event.to_event();
            found = Dropped {
                members: number(&event, "members") as u64,
                events: number(&event, "events") as u64,
                from_ns: number(&event, "from_ns"),
                to_ns: number(&event, "to_ns"),
            };
        }
    });
    found
}

/// The bytes of a file's first member.
fn read_head(path: &Path) -> Option<Vec<u8>> {
    let file = files::open(path).ok()?;
    let mut header = [0; HEADER_LEN];
    file.read_exact_at(&mut header, 0).ok()?;
    let size = member::parse_header(&header).ok()?.size;
    let mut bytes = vec![0; usize::try_from(size.min(1 << 24)).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes)
}
