//! The protobuf form. Resources, scopes and spans are read one at a time: what holds them may be as large as the file.
//!
//! A resource counts for the spans behind it in its message, as everybody writes it.

use super::value::add_proto;
use super::writer::{Span, Writer, kind, status};
use super::{LONGEST_ITEM, MOST_PARTS, Signal};
use crate::Result;
use crate::event::Arg;
use crate::formats::bag::{Bag, hex, push_json_text};
use crate::formats::wire::{self, Fields, Value};
use crate::input::Input;

/// How messages follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// One message, or several without anything between them: they add up to one.
    None,
    /// A varint before each tells its length.
    Varint,
    /// Four bytes before each tell its length, the highest first.
    Big,
}

impl Framing {
    /// How the messages of a file follow each other; none where it holds none. Told by its beginning.
    pub(super) fn of(head: &[u8]) -> Option<Framing> {
        [Framing::None, Framing::Big, Framing::Varint].into_iter().find(|framing| framing.fits(head))
    }

    fn fits(self, head: &[u8]) -> bool {
        let mut rest = head;
        let mut items = 0;
        while !rest.is_empty() {
            let length = match self {
                Framing::None => Some(u64::MAX),
                Framing::Varint => wire::varint(&mut rest),
                Framing::Big => rest.split_first_chunk().map(|(length, behind)| {
                    rest = behind;
                    u64::from(u32::from_be_bytes(*length))
                }),
            };
            // A length that is cut.
            let Some(length) = length else { break };
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let within = &rest[..length.min(rest.len())];
            let Some(found) = plausible(within, length > rest.len(), 0) else { return false };
            items += found;
            rest = &rest[within.len()..];
        }
        items > 0
    }
}

/// How many spans, metrics or log records the beginning of a message holds; none where it is not such a message. A message that is cut may end anywhere.
fn plausible(bytes: &[u8], cut: bool, level: u32) -> Option<usize> {
    let (mut rest, mut items) = (bytes, 0);
    while !rest.is_empty() {
        let (Some(tag), true) = (wire::varint(&mut rest), rest.len() < bytes.len()) else {
            return cut.then_some(items);
        };
        let Some(length) = wire::varint(&mut rest) else { return cut.then_some(items) };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (inner, over) = (&rest[..length.min(rest.len())], length > rest.len());
        if over && !cut {
            return None;
        }
        items += match (level, tag) {
            // Fields 1 to 3, all of them messages or texts.
            (0, 0x0A) | (1 | 2, 0x12) if level < 2 => plausible(inner, over, level + 1)?,
            (2, 0x12) if over => 0,
            (2, 0x12) => usize::from(signal_of(inner).is_some()).max(usize::from(inner.is_empty())),
            (1 | 2, 0x0A | 0x1A) => 0,
            // What later versions add.
            (1 | 2, tag) if tag & 7 == 2 && tag >> 3 > 3 => 0,
            _ => return None,
        };
        rest = &rest[inner.len()..];
    }
    Some(items)
}

/// What an item is: all three lie in messages of the same form.
fn signal_of(item: &[u8]) -> Option<Signal> {
    let mut fields = Fields::new(item);
    let (mut ids, mut metric, mut found) = (0, false, None);
    for (field, value) in fields.by_ref() {
        match (field, value) {
            (7 | 8, Value::Fixed64(_)) => found = Some(Signal::Traces),
            (1 | 11, Value::Fixed64(_)) => found = found.or(Some(Signal::Logs)),
            (1, Value::Bytes(id)) if id.len() == 16 => ids += 1,
            (2, Value::Bytes(id)) if id.len() == 8 => ids += 1,
            (5 | 7 | 9 | 10 | 11, Value::Bytes(_)) => metric = true,
            _ => {}
        }
    }
    if fields.damaged() {
        return None;
    }
    found.or((ids == 2).then_some(Signal::Traces)).or(metric.then_some(Signal::Metrics))
}

/// Reads a file.
pub(super) fn read(input: &mut Input<'_>, framing: Framing, writer: &mut Writer<'_>) -> Result<()> {
    let mut buffer = Vec::new();
    if framing == Framing::None {
        return message(input, u64::MAX, writer, &mut buffer);
    }
    loop {
        let at = input.offset();
        let length = match framing {
            Framing::Big => {
                let mut bytes = [0; 4];
                match input.take_some(&mut bytes)? {
                    0 => None,
                    4 => Some(u64::from(u32::from_be_bytes(bytes))),
                    _ => return Err(input.invalid(at, "the file ends within a length")),
                }
            }
            _ => wire::stream_varint(input, true)?,
        };
        let Some(length) = length else { return Ok(()) };
        let Some(end) = input.offset().checked_add(length).filter(|end| *end < u64::MAX) else {
            return Err(input.invalid(at, "a message is longer than any file"));
        };
        message(input, end, writer, &mut buffer)?;
    }
}

/// `TracesData`, `MetricsData` or `LogsData`.
fn message(input: &mut Input<'_>, end: u64, writer: &mut Writer<'_>, buffer: &mut Vec<u8>) -> Result<()> {
    while let Some((field, head)) = wire::next(input, end)? {
        match (field, head) {
            (1, wire::Head::Bytes(length)) => {
                let end = input.offset() + length;
                resource(input, end, writer, buffer)?;
            }
            (field, head) => other("message", field, head, input, writer)?,
        }
    }
    Ok(())
}

fn resource(input: &mut Input<'_>, end: u64, writer: &mut Writer<'_>, buffer: &mut Vec<u8>) -> Result<()> {
    let mut scopes = 0;
    writer.no_resource();
    while let Some((field, head)) = wire::next(input, end)? {
        match (field, head) {
            (1, wire::Head::Bytes(length)) => {
                let at = input.offset();
                if scopes > 0 {
                    writer.skip("resource behind its spans", at);
                }
                if !load(input, length, writer, buffer)? {
                    continue;
                }
                let mut bag = Bag::default();
                attributes(&mut bag, "", buffer, 1);
                writer.resource(bag)?;
            }
            (2, wire::Head::Bytes(length)) => {
                let end = input.offset() + length;
                scopes += 1;
                scope(input, end, writer, buffer)?;
            }
            // Where the names of attributes are explained.
            (3, wire::Head::Bytes(length)) => input.pass(length)?,
            (field, head) => other("resource", field, head, input, writer)?,
        }
    }
    Ok(())
}

fn scope(input: &mut Input<'_>, end: u64, writer: &mut Writer<'_>, buffer: &mut Vec<u8>) -> Result<()> {
    writer.scope(Bag::default());
    while let Some((field, head)) = wire::next(input, end)? {
        let at = input.offset();
        match (field, head) {
            (1, wire::Head::Bytes(length)) => {
                if load(input, length, writer, buffer)? {
                    let mut bag = Bag::default();
                    bag.set_name(wire::find(buffer, 1).and_then(Value::bytes).unwrap_or_default());
                    if let Some(Value::Bytes(version)) = wire::find(buffer, 2) {
                        bag.put(b"scope_version", Arg::Text(version));
                    }
                    attributes(&mut bag, "scope.", buffer, 3);
                    writer.scope(bag);
                }
            }
            (2, wire::Head::Bytes(length)) => {
                if load(input, length, writer, buffer)? {
                    match signal_of(buffer) {
                        Some(Signal::Traces) => writer.span(span(buffer), at)?,
                        Some(signal) => writer.count(signal, at),
                        None => writer.count(Signal::Traces, at),
                    }
                }
            }
            (3, wire::Head::Bytes(length)) => input.pass(length)?,
            (field, head) => other("scope", field, head, input, writer)?,
        }
    }
    Ok(())
}

/// Loads an item; false where it is too long.
fn load(input: &mut Input<'_>, length: u64, writer: &mut Writer<'_>, buffer: &mut Vec<u8>) -> Result<bool> {
    if length > LONGEST_ITEM {
        writer.skip("item longer than 64 MiB", input.offset());
        input.pass(length)?;
        return Ok(false);
    }
    wire::load(input, length, buffer)?;
    Ok(true)
}

/// A field that is not known.
fn other(what: &str, field: u32, head: wire::Head, input: &mut Input<'_>, writer: &mut Writer<'_>) -> Result<()> {
    writer.skip(&format!("field {field} of a {what}"), input.offset());
    match head {
        wire::Head::Bytes(length) => input.pass(length),
        wire::Head::Number(_) => Ok(()),
    }
}

/// Adds the attributes of a message.
fn attributes(bag: &mut Bag, prefix: &str, bytes: &[u8], wanted: u32) {
    for (field, value) in Fields::new(bytes) {
        if let (true, Value::Bytes(pair)) = (field == wanted, value) {
            add_proto(bag, prefix, pair);
        }
    }
}

fn span(bytes: &[u8]) -> Span {
    let mut span = Span::default();
    let (mut links, mut count) = (String::new(), 0);
    for (field, value) in Fields::new(bytes) {
        let bag = &mut span.bag;
        let number = value.number().unwrap_or(0);
        match (field, value) {
            (1, Value::Bytes(id)) => span.trace_id = hex(id),
            (2, Value::Bytes(id)) => span.span_id = hex(id),
            (3, Value::Bytes(text)) if !text.is_empty() => bag.put(b"trace_state", Arg::Text(text)),
            (4, Value::Bytes(id)) if !id.is_empty() => bag.put(b"parent_span_id", Arg::Text(hex(id).as_bytes())),
            (5, Value::Bytes(name)) => bag.set_name(name),
            (6, _) => _ = kind(number).map(|kind| bag.put(b"kind", Arg::Text(kind.as_bytes()))),
            (7, _) => span.start_ns = number,
            (8, _) => span.end_ns = number,
            (9, Value::Bytes(pair)) => add_proto(bag, "", pair),
            (10, _) if number > 0 => bag.put(b"dropped_attributes", Arg::Unsigned(number)),
            (11, Value::Bytes(event)) if span.events.len() < MOST_PARTS => span.events.push(self::event(event)),
            (12, _) if number > 0 => bag.put(b"dropped_events", Arg::Unsigned(number)),
            (13, Value::Bytes(link)) if count < MOST_PARTS => {
                links.push(if count == 0 { '[' } else { ',' });
                count += 1;
                push_link(&mut links, link);
            }
            (11 | 13, Value::Bytes(_)) => bag.refused += 1,
            (14, _) if number > 0 => bag.put(b"dropped_links", Arg::Unsigned(number)),
            (15, Value::Bytes(bytes)) => {
                for (field, value) in Fields::new(bytes) {
                    match (field, value) {
                        (2, Value::Bytes(text)) if !text.is_empty() => bag.put(b"status_message", Arg::Text(text)),
                        (3, _) => {
                            let status = status(value.number().unwrap_or(0));
                            _ = status.map(|status| bag.put(b"status", Arg::Text(status.as_bytes())));
                        }
                        _ => {}
                    }
                }
            }
            (16, _) if number > 0 => bag.put(b"flags", Arg::Unsigned(number)),
            (1..=16, _) => {}
            (field, Value::Bytes(bytes)) => {
                bag.put(format!("field_{field}").as_bytes(), Arg::Text(hex(bytes).as_bytes()));
            }
            (field, _) => bag.put(format!("field_{field}").as_bytes(), Arg::Unsigned(number)),
        }
    }
    span.bag.put(b"trace_id", Arg::Text(span.trace_id.as_bytes()));
    span.bag.put(b"span_id", Arg::Text(span.span_id.as_bytes()));
    if count > 0 {
        links.push(']');
        span.bag.put(b"links", Arg::Json(&links));
    }
    span
}

/// An event of a span.
fn event(bytes: &[u8]) -> (u64, Bag) {
    let (mut at, mut bag) = (0, Bag::default());
    for (field, value) in Fields::new(bytes) {
        match (field, value) {
            (1, _) => at = value.number().unwrap_or(0),
            (2, Value::Bytes(name)) => bag.set_name(name),
            (3, Value::Bytes(pair)) => add_proto(&mut bag, "", pair),
            (4, Value::Varint(count)) if count > 0 => bag.put(b"dropped_attributes", Arg::Unsigned(count)),
            _ => {}
        }
    }
    (at, bag)
}

/// Appends a link as JSON: ids, and its attributes beside them.
fn push_link(json: &mut String, bytes: &[u8]) {
    let id = |field| wire::find(bytes, field).and_then(Value::bytes).map(hex).unwrap_or_default();
    json.push_str(&format!("{{\"trace_id\":\"{}\",\"span_id\":\"{}\"", id(1), id(2)));
    if let Some(Value::Bytes(state)) = wire::find(bytes, 3).filter(|value| *value != Value::Bytes(b"")) {
        json.push_str(",\"trace_state\":");
        push_json_text(json, state);
    }
    if let Some(flags) = wire::find(bytes, 6).and_then(Value::number).filter(|flags| *flags != 0) {
        json.push_str(&format!(",\"flags\":{flags}"));
    }
    let mut bag = Bag::default();
    attributes(&mut bag, "", bytes, 4);
    push_bag(json, &bag);
    json.push('}');
}

/// Appends arguments to an object of JSON that has a member already.
pub(super) fn push_bag(json: &mut String, bag: &Bag) {
    for (key, arg) in bag.args() {
        json.push(',');
        push_json_text(json, key.as_bytes());
        json.push(':');
        match arg {
            Arg::Int(number) => json.push_str(&number.to_string()),
            Arg::Unsigned(number) => json.push_str(&number.to_string()),
            Arg::Float(number) => crate::formats::bag::push_json_float(json, number),
            Arg::Bool(flag) => json.push_str(if flag { "true" } else { "false" }),
            Arg::Text(text) | Arg::Path(text) => push_json_text(json, text),
            Arg::Json(value) => json.push_str(value),
        }
    }
}
