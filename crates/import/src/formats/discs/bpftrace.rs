//! Traces of bpftrace scripts: reads, writes, opens, closes, creations and deletions, block requests; all generations of the scripts.
//!
//! A row is printed when a call is over: its stamp is the end, and the latency before it the begin. Results are printed as unsigned: errors become
//! what they were. Latencies that were printed in 32 bits are negative above 2.1 s, which is undone; those above 4.3 s cannot be told from shorter ones.

use std::borrow::Cow;

use weftline_calls::kernel::BLOCK;

use super::facts::{Folder, Set};
use super::fields::{SECOND, Words};
use super::layout::{Kind, Layout, Row};
use super::tell::Teller;
use crate::Result;
use crate::clock::{Clock, ClockKind};
use crate::event::{Arg, Event, Shape};
use crate::input::{Head, Input, Line};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "bpftrace",
    title: "bpftrace traces of calls and block requests (DISCS)",
    carries: "a span per call or block request, with file, result, offset, bytes, device; the part that each process plays",
    example: "trace_read.out",
    detect,
    survey: Some(survey),
    read,
};

/// Rows that decide about the columns.
const ROWS: usize = 200;
/// Lines that are held back at most until there are as many.
const HELD: usize = 1000;
/// Paths are cut by the scripts at this length.
const CUT_PATH: usize = 63;

fn detect(head: &Head<'_>) -> Confidence {
    let mut lines = head.lines().filter(|line| !line.trim_ascii().is_empty()).take(40).peekable();
    let probes = lines.peek().is_some_and(|line| line.starts_with(b"Attaching ") && line.ends_with(b"probes..."));
    let mut rows = 0;
    for line in lines {
        let mut words = Words::new(line);
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if first == b"TIMESTAMP" && (second == b"PID" || probes && second == b"TID") {
            return Confidence::Certain;
        }
        let stamp = first.len() >= 9 && first.iter().all(u8::is_ascii_digit);
        rows += u32::from(stamp && super::fields::id(second).is_some() && words.count() >= 2);
    }
    let named = head.name.starts_with("trace_") || head.name.starts_with("vfs");
    match (rows > 0, named || probes) {
        (true, true) => Confidence::Likely,
        (true, false) => Confidence::Possible,
        _ => Confidence::No,
    }
}

/// What was found out about a file from its beginning.
struct Plan {
    kind: Kind,
    layout: Layout,
    /// Columns by function, where a file has several.
    sections: Vec<(Vec<u8>, Layout)>,
}

/// What a line is.
#[expect(clippy::large_enum_variant, reason = "most lines are rows, and a row is used where it is made")]
enum What<'a> {
    Row(Row<'a>),
    /// A header, a blank line.
    Heading,
    /// bpftrace could not keep up.
    Lost(u64),
    Skipped(&'static str),
}

impl Plan {
    fn line<'a>(&self, line: &'a [u8], about: &Line) -> What<'a> {
        if !line.first().is_some_and(u8::is_ascii_digit) {
            let trimmed = line.trim_ascii();
            if trimmed.is_empty() || super::align::is_heading(line) || trimmed.ends_with(b"():") {
                return What::Heading;
            }
            if let Some(rest) = trimmed.strip_prefix(b"Lost ") {
                let lost = Words::new(rest).next().and_then(super::fields::integer);
                return What::Lost(lost.and_then(|lost| u64::try_from(lost).ok()).unwrap_or(1));
            }
            let reason = if trimmed.starts_with(b"@") { "map that bpftrace printed at its end" } else { "torn line" };
            return What::Skipped(reason);
        }
        if about.cut {
            return What::Skipped("line too long");
        }
        let row = match self.kind {
            Kind::CreateDelete => {
                let function = Words::new(line).nth(2).unwrap_or_default();
                let bare = function.strip_suffix(b"()").unwrap_or(function);
                let own = self.sections.iter().find(|(name, _)| name == bare).map(|(_, layout)| layout);
                let other =
                    || self.sections.iter().map(|(_, layout)| layout).find_map(|layout| Row::parse(line, layout));
                let row = own.and_then(|layout| Row::parse(line, layout));
                // The name of a call, else a torn line would make one.
                let called = weftline_calls::find(&String::from_utf8_lossy(bare)).is_some();
                if called { row.or_else(|| Row::parse(line, &self.layout)).or_else(other) } else { None }
            }
            _ => Row::parse(line, &self.layout),
        };
        match row {
            // A line that ends where the file does may lack digits.
            Some(_) if about.unfinished => What::Skipped("torn line"),
            Some(row) => What::Row(row),
            None => What::Skipped("torn line"),
        }
    }
}

/// Goes through a file: finds its columns, then gives each line.
fn each(input: &mut Input<'_>, act: &mut dyn FnMut(&Plan, What<'_>, u64) -> Result<()>) -> Result<Option<Kind>> {
    let (mut headers, mut sections, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut held: Vec<(Vec<u8>, Line)> = Vec::new();
    let mut line = Vec::new();
    let mut function: Option<Vec<u8>> = None;
    while rows.len() < ROWS && held.len() < HELD {
        let Some(about) = input.next_line(&mut line)? else { break };
        // What is held back is bounded by its length too.
        line.truncate(64 << 10);
        let trimmed = line.trim_ascii();
        if line.starts_with(b"TIMESTAMP") {
            headers.push(line.clone());
            if let Some(function) = function.take() {
                sections.push((function, line.clone()));
            }
        } else if let Some(name) = trimmed.strip_suffix(b"():") {
            function = Some(name.to_vec());
        } else if line.first().is_some_and(u8::is_ascii_digit) {
            rows.push(line.clone());
        }
        held.push((line.clone(), about));
    }
    let kind = Kind::of(input.file_name(), &headers);
    let header = headers.last().map_or(&b""[..], Vec::as_slice);
    let layout =
        kind.and_then(|kind| Layout::choose(kind, header, &rows)).or_else(|| Layout::choose(Kind::Read, header, &rows));
    let plan = Plan {
        kind: kind.unwrap_or(Kind::Read),
        layout: layout.unwrap_or_default(),
        sections: sections
            .into_iter()
            .take(32)
            .map(|(name, header)| {
                let own: Vec<Vec<u8>> = rows.iter().filter(|row| has_function(row, &name)).cloned().collect();
                let layout = Layout::choose(Kind::CreateDelete, &header, &own).unwrap_or_default();
                (name, layout)
            })
            .collect(),
    };
    drop(rows);
    for (line, about) in held {
        act(&plan, plan.line(&line, &about), about.offset)?;
    }
    while let Some(about) = input.next_line(&mut line)? {
        act(&plan, plan.line(&line, &about), about.offset)?;
    }
    Ok(kind)
}

fn has_function(row: &[u8], name: &[u8]) -> bool {
    Words::new(row).nth(2).is_some_and(|word| word.strip_suffix(b"()").unwrap_or(word) == name)
}

/// A latency, and whether it had to be repaired; none where it cannot be.
fn latency(printed: i64) -> Option<(i64, bool)> {
    match printed {
        0.. => Some((printed, false)),
        // The lower 32 bits, with a sign.
        -0x8000_0000..=-1 => Some((printed & 0xFFFF_FFFF, true)),
        _ => None,
    }
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let name = input.file_name().to_owned();
    let folder = survey.discs.folder(input.name());
    folder.traced = true;
    let (mut lost, mut repaired, mut timeless, mut rows) = (0_u64, 0_u64, false, 0_u64);
    let kind = each(input, &mut |plan, what, _| {
        match what {
            What::Row(row) => {
                rows += 1;
                timeless |= row.latency.is_none();
                repaired += u64::from(row.latency.is_some_and(|latency| latency < 0));
                note_row(folder, plan.kind, &row);
            }
            What::Lost(count) => lost = lost.saturating_add(count),
            What::Heading | What::Skipped(_) => {}
        }
        Ok(())
    })?;
    if kind.is_none() && rows > 0 {
        folder.note(format!("{name}: neither name nor header say what it traces; taken as reads."));
    }
    if lost > 0 {
        folder.note(format!("{name}: bpftrace says that it lost {lost} events."));
    }
    if repaired > 0 {
        folder.note(format!("{name}: {repaired} latencies were printed in 32 bits and are repaired; there, calls of 4.3 s and more look shorter by multiples of it."));
    }
    if timeless {
        folder.note(format!("{name}: tells no latencies; its calls last no time."));
    }
    Ok(())
}

fn note_row(folder: &mut Folder, kind: Kind, row: &Row<'_>) {
    if let (Kind::Open, Some(full), Some(file)) = (kind, row.full_path, row.file_name)
        && !file.is_empty()
        && full.starts_with(b"/")
        // A path that was cut is not whole.
        && (full.len() < CUT_PATH || full.ends_with(file))
    {
        folder.path(file, full);
    }
    let Some(seen) = folder.process(row.pid) else { return };
    if seen.comm.is_empty() && !row.comm.is_empty() {
        seen.comm = String::from_utf8_lossy(row.comm).into_owned();
    }
    // Block requests are made by whoever happened to run.
    if kind == Kind::Block {
        return;
    }
    seen.calls += 1;
    seen.called(row.stamp.div_euclid(SECOND));
    let reads = kind == Kind::Read || (kind == Kind::ReadWrite && row.direction == b'R');
    if reads {
        seen.reads += 1;
        let bytes = row.result.or(row.bytes).unwrap_or(0);
        seen.bytes_read = seen.bytes_read.saturating_add(u64::try_from(bytes).unwrap_or(0));
    }
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let clock = sink.clock(set.clock(survey, ClockKind::Monotonic));
    let mut calls = Teller::threads(set, sink)?;
    let mut requests = Teller::apart(set, sink, "block request", 1)?;
    each(input, &mut |plan, what, offset| {
        let row = match what {
            What::Row(row) => row,
            What::Heading => return Ok(()),
            What::Lost(_) => {
                sink.skip("events that bpftrace lost (lines that say so)", offset);
                return Ok(());
            }
            What::Skipped(reason) => {
                sink.skip(reason, offset);
                return Ok(());
            }
        };
        if row.pid == 0 && plan.kind != Kind::Block {
            sink.skip("call of no process", offset);
            return Ok(());
        }
        let Some((took_ns, repaired)) = latency(row.latency.unwrap_or(0)) else {
            sink.skip("latency that is no number of nanoseconds", offset);
            return Ok(());
        };
        let end_ns = clock.to_utc(row.stamp);
        // Entry of both of its probes: what is printed is no latency.
        let no_latency = plan.kind == Kind::CreateDelete && row.function.starts_with(b"unlink");
        let start_ns = if no_latency { end_ns } else { begin(&clock, &row, took_ns) };
        let teller = if plan.kind == Kind::Block { &mut requests } else { &mut calls };
        give(&Given { plan, row, start_ns, end_ns, took_ns, repaired, no_latency }, set, teller, sink)
    })?;
    Ok(())
}

fn begin(clock: &Clock, row: &Row<'_>, took_ns: i64) -> i64 {
    clock.to_utc(row.stamp.saturating_sub(took_ns))
}

/// A row on its way out.
struct Given<'a> {
    plan: &'a Plan,
    row: Row<'a>,
    start_ns: i64,
    end_ns: i64,
    took_ns: i64,
    repaired: bool,
    no_latency: bool,
}

fn give(given: &Given<'_>, set: &Set, teller: &mut Teller<'_>, sink: &mut dyn Sink) -> Result<()> {
    let Given { plan, row, start_ns, end_ns, .. } = given;
    // The kernel itself, which has no number, is the host.
    teller.process(row.pid, row.comm, sink)?;
    let tid = match row.tid {
        Some(tid) => tid,
        None => teller.lane(row.pid, *start_ns, *end_ns, sink)?,
    };
    let mut args: Vec<(&str, Arg<'_>)> = Vec::with_capacity(12);
    let mut cat = "POSIX";
    let name: Cow<'_, str> = match plan.kind {
        Kind::Block => {
            cat = BLOCK;
            block_args(row, &mut args);
            Cow::Borrowed(direction(row.direction))
        }
        Kind::ReadWrite => {
            args.extend(row.bytes.map(|bytes| ("ret", Arg::Int(bytes))));
            Cow::Borrowed(direction(row.direction))
        }
        Kind::Read => Cow::Borrowed("read"),
        Kind::Write => Cow::Borrowed("write"),
        Kind::Open => Cow::Borrowed("openat"),
        Kind::Close => Cow::Borrowed("close"),
        Kind::CreateDelete => String::from_utf8_lossy(row.function),
    };
    call_args(row, &mut args);
    path_args(plan.kind, row, set, &mut args);
    if given.repaired {
        args.push(("latency_repaired", Arg::Bool(true)));
    }
    if given.no_latency {
        args.push(("printed_latency", Arg::Int(given.took_ns)));
    }
    for (place, word) in &row.others {
        if let Some(name) = plan.layout.others.get(*place) {
            args.push((name, Arg::Text(word)));
        }
    }
    let shape = Shape::Span { end_ns: *end_ns };
    sink.event(&Event { shape, name: &name, cat, pid: row.pid, tid, start_ns: *start_ns, args: &args })
}

fn direction(letter: u8) -> &'static str {
    match letter {
        b'W' => "write",
        b'D' => "discard",
        b'F' => "flush",
        _ => "read",
    }
}

fn call_args<'a>(row: &Row<'a>, args: &mut Vec<(&'a str, Arg<'a>)>) {
    args.extend(row.fd.map(|fd| ("fd", Arg::Int(fd))));
    args.extend(row.requested.map(|size| ("size", Arg::Int(size))));
    if let Some(result) = row.result {
        args.push(("ret", Arg::Int(result)));
        if (-4095..0).contains(&result) {
            args.push(("errno", Arg::Int(-result)));
        }
    }
    args.extend(row.offset.map(|offset| ("offset", Arg::Int(offset))));
    args.extend(row.mode.map(|mode| ("mode", Arg::Int(mode))));
    if !row.address.is_empty() {
        args.push(("buffer", Arg::Text(row.address)));
    }
}

fn block_args<'a>(row: &Row<'a>, args: &mut Vec<(&'a str, Arg<'a>)>) {
    args.push(("device", Arg::Text(row.disk)));
    if let Some(bytes) = row.bytes {
        args.extend([("size", Arg::Int(bytes)), ("ret", Arg::Int(bytes))]);
    }
    args.extend(row.sector.map(|sector| ("sector", Arg::Int(sector))));
    let rwbs: &[u8] = match row.direction {
        b'W' => b"W",
        b'D' => b"D",
        b'F' => b"F",
        _ => b"R",
    };
    args.push(("rwbs", Arg::Text(rwbs)));
    args.extend(row.queued.map(|queued| ("queued_ns", Arg::Int(queued))));
    if !row.comm.is_empty() {
        args.push(("comm", Arg::Text(row.comm)));
    }
    if let Some(pid) = row.done_pid {
        args.extend([("done_pid", Arg::Int(pid)), ("done_comm", Arg::Text(row.done_comm))]);
    }
}

fn path_args<'a>(kind: Kind, row: &Row<'a>, set: &'a Set, args: &mut Vec<(&'a str, Arg<'a>)>) {
    match (row.full_path, row.file_name) {
        (Some(full), file) if !full.is_empty() => {
            args.push(("fhash", Arg::Path(full)));
            match file {
                Some(b"") | None if kind == Kind::Open && row.file_name.is_none() && row.tid.is_none() => {
                    // The file that was opened is not named where there is none.
                    args.push(("failed", Arg::Bool(true)));
                }
                Some(file) if !file.is_empty() && !full.ends_with(file) => args.push(("file", Arg::Text(file))),
                _ => {}
            }
        }
        (_, Some(file)) if !file.is_empty() => {
            let full = set.path(file);
            args.push(("fhash", Arg::Path(full)));
            if !full.ends_with(file) {
                args.push(("file", Arg::Text(file)));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
