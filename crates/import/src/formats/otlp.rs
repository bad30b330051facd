//! Files of OpenTelemetry's protocol, as the file exporter of its collector and the exporters of its SDKs write them: JSON, one request per line or
//! one object over many lines; protobuf, one message, or messages that each follow their length (a varint, or four bytes, the highest first).
//!
//! | module | holds |
//! |---|---|
//! | `json`, `proto` | the two forms: both stream, one span at a time |
//! | `value` | attributes of both |
//! | `writer` | resources → processes, spans and their events → events |
//!
//! Traces are read; metrics and log records are counted.

mod json;
mod proto;
#[cfg(test)]
mod tests;
mod value;
mod writer;

use std::io::Read as _;

use self::writer::Writer;
use crate::Result;
use crate::input::{HEAD, Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "otlp",
    title: "OpenTelemetry (OTLP) traces",
    carries: "a span per span, an instant per span event, with attributes, ids, kind, status and links; a process per resource; metrics and log \
              records are counted",
    example: "spans.otlp.jsonl",
    detect,
    survey: None,
    read,
};

/// The longest span, resource or scope.
const LONGEST_ITEM: u64 = 64 << 20;
/// Events or links of one span.
const MOST_PARTS: usize = 65_536;

/// What files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Traces,
    Metrics,
    Logs,
}

fn detect(head: &Head<'_>) -> Confidence {
    if json::is_likely(head.bytes) {
        return Confidence::Certain;
    }
    match proto::Framing::of(head.bytes) {
        Some(_) => Confidence::Likely,
        None => Confidence::No,
    }
}

fn read(input: &mut Input<'_>, _: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let mut head = vec![0; HEAD];
    let length = input.take_some(&mut head)?;
    head.truncate(length);
    let name = input.name().to_owned();
    let mut whole = head.as_slice().chain(input);
    let mut input = Input::new(name, &mut whole);
    let mut writer = Writer::new(sink);
    // The length of a message may be the byte of a brace: what is a message all through is none of JSON.
    match (proto::Framing::of(&head), head.trim_ascii_start().first(), head.first()) {
        (_, None, _) => Ok(()),
        (Some(framing), ..) => proto::read(&mut input, framing, &mut writer),
        (None, Some(b'{'), _) => json::read(&mut input, &mut writer),
        // The first field of a message, of which something behind is wrong: reading tells where.
        (None, _, Some(0x0A)) => proto::read(&mut input, proto::Framing::None, &mut writer),
        _ => Err(input.invalid(0, "this is neither JSON nor a protobuf message of OpenTelemetry")),
    }
}
