//! Access logs of nginx, in its `combined` form and with what Tracekit's form has behind it:
//! `… "$http_user_agent" $request_length $request_time $http_x_trace_id`.
//!
//! nginx writes a line when a request is over, with a time in whole seconds: a span ends there and begins `$request_time` before. Without that
//! field a request is an instant.

use crate::Result;
use crate::clock::{Clock, ClockKind};
use crate::event::{Arg, Event, Process, Shape};
use crate::formats::time;
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "nginx",
    title: "nginx access log",
    carries: "a span per request (instants without `$request_time`), with method, path, status, bytes and trace id",
    example: "access.log",
    detect,
    survey: None,
    read,
};

/// The process that requests belong to: logs do not name any.
const PID: u32 = 1;

fn detect(head: &Head<'_>) -> Confidence {
    let mut lines = head.lines().filter(|line| !line.is_empty()).take(20).peekable();
    if lines.peek().is_none() {
        return Confidence::No;
    }
    let (good, all) = lines.fold((0, 0), |(good, all), line| (good + u32::from(parse(line).is_some()), all + 1));
    if good * 2 > all { Confidence::Likely } else { Confidence::No }
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
struct Request<'a> {
    client: &'a [u8],
    end_ns: i64,
    method: &'a [u8],
    path: &'a [u8],
    status: i64,
    sent: i64,
    received: Option<i64>,
    took_ns: Option<i64>,
    trace: Option<&'a [u8]>,
}

/// Takes a field that ends at a byte, and that byte.
fn until<'a>(rest: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
    let at = memchr::memchr(end, rest)?;
    let field = &rest[..at];
    *rest = &rest[at + 1..];
    Some(field)
}

fn parse(line: &[u8]) -> Option<Request<'_>> {
    let mut rest = line;
    let client = until(&mut rest, b' ')?;
    until(&mut rest, b'[')?;
    let end_ns = at(until(&mut rest, b']')?)?;
    rest = rest.strip_prefix(b" \"")?;
    let request = until(&mut rest, b'"')?;
    rest = rest.strip_prefix(b" ")?;
    let status = time::number(until(&mut rest, b' ').unwrap_or_else(|| std::mem::take(&mut rest)))?;
    let sent = until(&mut rest, b' ').unwrap_or_else(|| std::mem::take(&mut rest));
    let sent = if sent == b"-" { 0 } else { time::number(sent)? };
    let mut words = request.splitn(3, |byte| *byte == b' ');
    let (method, path) = (words.next()?, words.next().unwrap_or(b""));
    // Referrer and agent are in quotes, in which nginx writes others as \x22.
    for _ in 0..2 {
        if rest.starts_with(b"\"") {
            rest = &rest[1..];
            until(&mut rest, b'"')?;
            rest = rest.strip_prefix(b" ").unwrap_or(rest);
        }
    }
    let mut more = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let received = more.next().and_then(time::number);
    let took_ns = more.next().and_then(seconds);
    let trace = more.next().filter(|trace| *trace != b"-");
    Some(Request { client, end_ns, method, path, status, sent, received, took_ns, trace })
}

/// `18/Nov/2026:09:05:00 +0100`, as UTC.
fn at(text: &[u8]) -> Option<i64> {
    let (day, month, year) = (text.get(..2)?, text.get(3..6)?, text.get(7..11)?);
    let days = time::days(time::number(year)?, time::month(month)?, time::number(day)?)?;
    let clock = text.get(12..20)?;
    let part = |at: usize| time::number(&clock[at..at + 2]);
    let of_day = time::of_day(part(0)?, part(3)?, part(6)?, b"")?;
    let zone = text.get(21..26)?;
    let minutes = time::number(&zone[1..3])? * 60 + time::number(&zone[3..5])?;
    let ahead_ns = minutes * 60_000_000_000 * if zone[0] == b'-' { -1 } else { 1 };
    Some(days * 86_400_000_000_000 + of_day - ahead_ns)
}

/// `0.123`, in nanoseconds.
fn seconds(text: &[u8]) -> Option<i64> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let whole = time::number(parts.next()?)?;
    whole.checked_mul(1_000_000_000)?.checked_add(time::fraction_ns(parts.next().unwrap_or(b""))?)
}

fn read(input: &mut Input<'_>, _: &Survey, sink: &mut dyn Sink) -> Result<()> {
    // The zone is in each line; the moment is cut to a second.
    let written = Clock::offset(ClockKind::Realtime, 0, Some(1_000_000_000), "as written, in whole seconds");
    let clock = sink.clock(written);
    sink.process(&Process { pid: PID, name: "nginx", exe: "nginx", ..Process::default() })?;
    let mut line = Vec::new();
    while let Some(about) = input.next_line(&mut line)? {
        if line.is_empty() {
            continue;
        }
        let Some(request) = parse(&line) else {
            sink.skip(if about.unfinished { "torn line" } else { "not a request" }, about.offset);
            continue;
        };
        let end_ns = clock.to_utc(request.end_ns);
        let start_ns = end_ns.saturating_sub(request.took_ns.unwrap_or(0));
        let mut args = vec![
            ("path", Arg::Text(request.path)),
            ("client", Arg::Text(request.client)),
            ("status", Arg::Int(request.status)),
            ("sent_bytes", Arg::Int(request.sent)),
        ];
        args.extend(request.received.map(|bytes| ("received_bytes", Arg::Int(bytes))));
        args.extend(request.trace.map(|trace| ("trace_id", Arg::Text(trace))));
        // Requests run beside each other, on no thread that the log names.
        let shape = if request.took_ns.is_some() { Shape::Async { end_ns } } else { Shape::Instant };
        let method = String::from_utf8_lossy(request.method);
        let name = if method.is_empty() { "request" } else { &method };
        sink.event(&Event { shape, name, cat: "HTTP", pid: PID, tid: PID, start_ns, args: &args })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    const COMBINED: &str = r#"10.0.0.7 - - [18/Nov/2026:09:05:00 +0100] "GET /a?b=c HTTP/1.1" 200 612 "-" "curl/8""#;
    const TRACEKIT: &str =
        r#"::1 - bob [18/Nov/2026:09:05:02 -0030] "POST /work HTTP/1.1" 201 - "http://x" "a \x22b" 345 0.250 t-1"#;

    fn check(text: &str, events: &[&str], skipped: &[(&str, u64)]) {
        let mut reader = text.as_bytes();
        let mut memory = Memory::default();
        read(&mut Input::new("access.log", &mut reader), &Survey::default(), &mut memory).expect("memory");
        assert_eq!(memory.events, events);
        let found: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
        assert_eq!(found, skipped);
    }

    #[test]
    fn both_forms() {
        let first = "instant GET HTTP 1/1 1794989100000000000 path=/a?b=c client=10.0.0.7 status=200 sent_bytes=612";
        let second = "async POST HTTP 1/1 1794994501750000000..1794994502000000000 path=/work client=::1 status=201 \
                      sent_bytes=0 received_bytes=345 trace_id=t-1";
        check(&format!("{COMBINED}\n{TRACEKIT}\n"), &[first, second], &[]);
        check(&format!("junk\n{COMBINED}\n{}", &TRACEKIT[..60]), &[first], &[("not a request", 1), ("torn line", 1)]);
        // What was no HTTP at all.
        let broken = r#"1.2.3.4 - - [18/Nov/2026:09:05:00 +0100] "\x16\x03" 400 150 "-" "-""#;
        let expected = r"instant \x16\x03 HTTP 1/1 1794989100000000000 path= client=1.2.3.4 status=400 sent_bytes=150";
        check(broken, &[expected], &[]);
    }

    #[test]
    fn detection() {
        let detect = |bytes: &str| detect(&Head { name: "x", bytes: bytes.as_bytes() });
        assert_eq!(detect(&format!("{COMBINED}\n{TRACEKIT}\n")), Confidence::Likely);
        assert_eq!(detect("some text\nmore of it\n"), Confidence::No);
        assert_eq!(detect(""), Confidence::No);
    }

    #[test]
    fn cut_anywhere() {
        let text = format!("{COMBINED}\n{TRACEKIT}\n");
        for length in 0..text.len() {
            let mut reader = &text.as_bytes()[..length];
            let mut memory = Memory::default();
            read(&mut Input::new("x", &mut reader), &Survey::default(), &mut memory).expect("memory");
        }
    }
}
