//! The JSON form: one request per line, each read by itself, so that a torn line costs no other; or objects over many lines, which are read as a
//! stream. A line of up to 8 MiB is in memory, of a longer one or of a stream one span at a time. A span, a resource or a scope may have 16 MiB then: in memory it is larger.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead as _, Read};

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::proto::push_bag;
use super::value::{add_json, get, id};
use super::writer::{Span, Writer, kind, status};
use super::{MOST_PARTS, Signal};
use crate::event::Arg;
use crate::formats::bag::{Bag, push_json_text};
use crate::input::{Input, LONGEST_LINE};
use crate::{ImportError, Result};

/// The longest span, resource or scope of a stream.
const LONGEST: u64 = 16 << 20;

/// A field by its name in JSON and in protobuf.
type Names = [&'static str; 2];

/// What objects hold, and in which fields.
const SIGNALS: [(Signal, Names, Names, Names); 3] = [
    (Signal::Traces, ["resourceSpans", "resource_spans"], ["scopeSpans", "scope_spans"], ["spans", "spans"]),
    (
        Signal::Metrics,
        ["resourceMetrics", "resource_metrics"],
        ["scopeMetrics", "scope_metrics"],
        ["metrics", "metrics"],
    ),
    (Signal::Logs, ["resourceLogs", "resource_logs"], ["scopeLogs", "scope_logs"], ["logRecords", "log_records"]),
];

/// Whether a file begins as such an object.
pub(super) fn is_likely(head: &[u8]) -> bool {
    let mut words = head.trim_ascii_start();
    for start in [b'{', b'"'] {
        let Some(rest) = words.strip_prefix(&[start]) else { return false };
        words = if start == b'{' { rest.trim_ascii_start() } else { rest };
    }
    let name = words.split(|byte| *byte == b'"').next().unwrap_or_default();
    SIGNALS.iter().any(|(_, names, ..)| names.iter().any(|known| known.as_bytes() == name))
}

/// Reads a file.
pub(super) fn read(input: &mut Input<'_>, writer: &mut Writer<'_>) -> Result<()> {
    let mut line = Vec::new();
    let mut first = true;
    loop {
        let offset = input.offset();
        line.clear();
        let read = input.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
        read.map_err(|source| ImportError::Io { name: input.name().to_owned(), source })?;
        let (ended, long) = (line.ends_with(b"\n"), line.len() == LONGEST_LINE);
        if line.is_empty() {
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if std::mem::take(&mut first) && ended && goes_on(&line) {
            return objects(input, &line, writer);
        }
        let parsed = if ended || !long {
            let mut parser = serde_json::Deserializer::from_slice(&line);
            object(&mut parser, &Cell::new(LONGEST), writer, offset, true)?
        } else {
            let budget = Cell::new(LONGEST);
            let mut rest = Rest { input: &mut *input, ended: false };
            let whole = Bounded { reader: line.as_slice().chain(&mut rest), left: &budget };
            let mut parser = serde_json::Deserializer::from_reader(whole);
            let parsed = object(&mut parser, &budget, writer, offset, true)?;
            io::copy(&mut rest, &mut io::sink())
                .map_err(|source| ImportError::Io { name: input.name().to_owned(), source })?;
            parsed
        };
        if parsed.is_err() {
            let torn = !ended && !long;
            writer.skip(if torn { "torn line" } else { "line that is not JSON of OpenTelemetry" }, offset);
        }
    }
}

/// Whether an object begins in a line and does not end in it.
fn goes_on(line: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| error.is_eof())
}

/// Reads objects of many lines, of which the first is given.
fn objects(input: &mut Input<'_>, line: &[u8], writer: &mut Writer<'_>) -> Result<()> {
    let budget = Cell::new(LONGEST);
    let parsed = {
        let whole = Bounded { reader: line.chain(input.by_ref()), left: &budget };
        let mut parser = serde_json::Deserializer::from_reader(whole);
        loop {
            match object(&mut parser, &budget, writer, 0, false)? {
                Ok(()) if parser.end().is_ok() => break Ok(()),
                Ok(()) => {}
                Err(error) => break Err(error),
            }
        }
    };
    parsed.map_err(|error| input.invalid(input.offset(), format!("this is not JSON of OpenTelemetry: {error}")))
}

/// Reads one object, with nothing behind it where it is alone.
fn object<'de, R: serde_json::de::Read<'de>>(
    parser: &mut serde_json::Deserializer<R>,
    budget: &Cell<u64>,
    writer: &mut Writer<'_>,
    offset: u64,
    alone: bool,
) -> Result<serde_json::Result<()>> {
    let mut failed = None;
    let at = At { writer, budget, failed: &mut failed, offset, level: 0, signal: 0 };
    let parsed = Object(at).deserialize(&mut *parser);
    match failed {
        Some(failed) => Err(failed),
        None if alone => Ok(parsed.and_then(|()| parser.end())),
        None => Ok(parsed),
    }
}

/// What is left of a line, without its end.
struct Rest<'i, 'a> {
    input: &'i mut Input<'a>,
    ended: bool,
}

impl Read for Rest<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        let chunk = self.input.fill_buf()?;
        let chunk = &chunk[..chunk.len().min(buffer.len())];
        let end = memchr::memchr(b'\n', chunk);
        let length = end.unwrap_or(chunk.len());
        buffer[..length].copy_from_slice(&chunk[..length]);
        self.ended = end.is_some();
        self.input.consume(length + usize::from(end.is_some()));
        Ok(length)
    }
}

/// A reader that refuses what would be one item of more than it may have.
struct Bounded<'b, R> {
    reader: R,
    left: &'b Cell<u64>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let left = self.left.get().checked_sub(read as u64);
        self.left.set(left.ok_or_else(|| io::Error::other("an item is longer than 16 MiB"))?);
        Ok(read)
    }
}

/// A place within an object: 0 is the request, 1 what a resource has, 2 what a scope has, 3 an item.
struct At<'a, 's> {
    writer: &'a mut Writer<'s>,
    budget: &'a Cell<u64>,
    /// What the sink said.
    failed: &'a mut Option<ImportError>,
    offset: u64,
    level: usize,
    /// By its place in [`SIGNALS`].
    signal: usize,
}

impl<'s> At<'_, 's> {
    fn below(&mut self, signal: usize) -> At<'_, 's> {
        let At { writer, budget, failed, offset, level, .. } = self;
        At { writer, budget, failed, offset: *offset, level: *level + 1, signal }
    }

    fn pass<E: serde::de::Error>(&mut self, result: Result<()>) -> std::result::Result<(), E> {
        result.map_err(|error| {
            *self.failed = Some(error);
            E::custom("the sink failed")
        })
    }
}

/// One object at a place.
struct Object<'a, 's>(At<'a, 's>);

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(mut self, deserializer: D) -> std::result::Result<(), D::Error> {
        self.0.budget.set(LONGEST);
        if self.0.level < 3 {
            return deserializer.deserialize_any(self);
        }
        let (signal, ..) = SIGNALS[self.0.signal];
        if signal != Signal::Traces {
            IgnoredAny::deserialize(deserializer)?;
            self.0.writer.count(signal, self.0.offset);
            return Ok(());
        }
        let item = Json::deserialize(deserializer)?;
        let written = self.0.writer.span(span(&item), self.0.offset);
        self.0.pass(written)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> std::result::Result<(), A::Error> {
        let (_, _, scopes, items) = SIGNALS[self.0.signal];
        let mut lists = 0;
        match self.0.level {
            1 => self.0.writer.no_resource(),
            2 => self.0.writer.scope(Bag::default()),
            _ => {}
        }
        while let Some(key) = map.next_key::<String>()? {
            let key = key.as_str();
            let signal = SIGNALS.iter().position(|(_, names, ..)| names.contains(&key));
            match (self.0.level, signal) {
                (0, Some(signal)) => map.next_value_seed(List(self.0.below(signal)))?,
                (1, _) if scopes.contains(&key) => {
                    lists += 1;
                    map.next_value_seed(List(self.0.below(self.0.signal)))?;
                }
                (2, _) if items.contains(&key) => map.next_value_seed(List(self.0.below(self.0.signal)))?,
                (1, _) if key == "resource" => {
                    let value: Json = map.next_value()?;
                    if lists > 0 {
                        self.0.writer.skip("resource behind its spans", self.0.offset);
                    }
                    let mut bag = Bag::default();
                    attributes(&mut bag, "", &value);
                    let said = self.0.writer.resource(bag);
                    self.0.pass(said)?;
                }
                (2, _) if key == "scope" => {
                    let value: Json = map.next_value()?;
                    let mut bag = Bag::default();
                    bag.set_name(text(&value, "name", "name").unwrap_or_default().as_bytes());
                    if let Some(version) = text(&value, "version", "version").filter(|version| !version.is_empty()) {
                        bag.put(b"scope_version", Arg::Text(version.as_bytes()));
                    }
                    attributes(&mut bag, "scope.", &value);
                    self.0.writer.scope(bag);
                }
                (_, _) => {
                    map.next_value::<IgnoredAny>()?;
                    // Where the names of attributes are explained.
                    if !matches!(key, "schemaUrl" | "schema_url") {
                        self.0.writer.skip(&format!("field {key:.40?} of an object"), self.0.offset);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A list of objects at a place.
struct List<'a, 's>(At<'a, 's>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        let At { writer, budget, failed, offset, level, signal } = self.0;
        while let Some(()) = list.next_element_seed(Object(At { writer, budget, failed, offset, level, signal }))? {}
        Ok(())
    }
}

fn text<'a>(object: &'a Json, camel: &str, snake: &str) -> Option<&'a str> {
    get(object, camel, snake).and_then(Json::as_str)
}

/// A whole number, which JSON of protobuf has as a text where it may be large.
fn whole(value: &Json) -> u64 {
    match value {
        Json::String(text) => text.parse().unwrap_or(0),
        value => value.as_u64().unwrap_or(0),
    }
}

/// A value of an enumeration: its number, or its name.
fn choice(value: &Json, names: &[&str]) -> u64 {
    match value.as_str() {
        Some(name) => names.iter().position(|known| *known == name).map_or(u64::MAX, |place| place as u64),
        None => whole(value),
    }
}

/// Adds the attributes of an object.
fn attributes(bag: &mut Bag, prefix: &str, object: &Json) {
    for pair in object.get("attributes").and_then(Json::as_array).into_iter().flatten() {
        add_json(bag, prefix, pair);
    }
}

/// Names of kinds and of states, by their numbers.
const KINDS: [&str; 6] = [
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];
const STATES: [&str; 3] = ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

fn span(item: &Json) -> Span {
    let mut span = Span::default();
    for (key, value) in item.as_object().into_iter().flatten() {
        let bag = &mut span.bag;
        let words = value.as_str().unwrap_or_default();
        match key.as_str() {
            "traceId" | "trace_id" => span.trace_id = id(words, 16).into_owned(),
            "spanId" | "span_id" => span.span_id = id(words, 8).into_owned(),
            "traceState" | "trace_state" if !words.is_empty() => bag.put(b"trace_state", Arg::Text(words.as_bytes())),
            "parentSpanId" | "parent_span_id" if !words.is_empty() => {
                bag.put(b"parent_span_id", Arg::Text(id(words, 8).as_bytes()));
            }
            "name" => bag.set_name(words.as_bytes()),
            "kind" => {
                let kind = kind(choice(value, &KINDS));
                _ = kind.map(|kind| bag.put(b"kind", Arg::Text(kind.as_bytes())));
            }
            "startTimeUnixNano" | "start_time_unix_nano" => span.start_ns = whole(value),
            "endTimeUnixNano" | "end_time_unix_nano" => span.end_ns = whole(value),
            "attributes" => attributes(bag, "", item),
            "events" => {
                let events = value.as_array().map_or(&[][..], Vec::as_slice);
                span.events = events.iter().take(MOST_PARTS).map(event).collect();
                bag.refused = bag.refused.saturating_add(beyond(events));
            }
            "links" => {
                bag.refused = bag.refused.saturating_add(beyond(value.as_array().map_or(&[][..], Vec::as_slice)));
                bag.put(b"links", Arg::Json(&links(value)));
            }
            "status" => {
                if let Some(message) = text(value, "message", "message").filter(|message| !message.is_empty()) {
                    bag.put(b"status_message", Arg::Text(message.as_bytes()));
                }
                let status = value.get("code").and_then(|code| status(choice(code, &STATES)));
                _ = status.map(|status| bag.put(b"status", Arg::Text(status.as_bytes())));
            }
            "traceState" | "trace_state" | "parentSpanId" | "parent_span_id" => {}
            "flags"
            | "droppedAttributesCount"
            | "dropped_attributes_count"
            | "droppedEventsCount"
            | "dropped_events_count"
            | "droppedLinksCount"
            | "dropped_links_count" => {
                let name = match key.as_bytes() {
                    b"flags" => &b"flags"[..],
                    key if key.starts_with(b"droppedA") || key.starts_with(b"dropped_a") => b"dropped_attributes",
                    key if key.starts_with(b"droppedE") || key.starts_with(b"dropped_e") => b"dropped_events",
                    _ => b"dropped_links",
                };
                if whole(value) > 0 {
                    bag.put(name, Arg::Unsigned(whole(value)));
                }
            }
            other => bag.put(other.as_bytes(), Arg::Json(&value.to_string())),
        }
    }
    span.bag.put(b"trace_id", Arg::Text(span.trace_id.as_bytes()));
    span.bag.put(b"span_id", Arg::Text(span.span_id.as_bytes()));
    span
}

/// How many of a list are too many.
fn beyond(list: &[Json]) -> u32 {
    u32::try_from(list.len().saturating_sub(MOST_PARTS)).unwrap_or(u32::MAX)
}

/// An event of a span.
fn event(item: &Json) -> (u64, Bag) {
    let mut bag = Bag::default();
    bag.set_name(text(item, "name", "name").unwrap_or_default().as_bytes());
    attributes(&mut bag, "", item);
    let dropped = get(item, "droppedAttributesCount", "dropped_attributes_count").map_or(0, whole);
    if dropped > 0 {
        bag.put(b"dropped_attributes", Arg::Unsigned(dropped));
    }
    (get(item, "timeUnixNano", "time_unix_nano").map_or(0, whole), bag)
}

/// Links as JSON: ids, and their attributes beside them.
fn links(list: &Json) -> String {
    let mut json = String::from("[");
    for (place, link) in list.as_array().into_iter().flatten().take(MOST_PARTS).enumerate() {
        json.push_str(if place > 0 { ",{" } else { "{" });
        let ids = [("trace_id", "traceId", 16), ("span_id", "spanId", 8)];
        for (place, (name, camel, bytes)) in ids.into_iter().enumerate() {
            json.push_str(if place > 0 { "," } else { "" });
            json.push_str(&format!("\"{name}\":"));
            push_json_text(&mut json, id(text(link, camel, name).unwrap_or_default(), bytes).as_bytes());
        }
        if let Some(state) = text(link, "traceState", "trace_state").filter(|state| !state.is_empty()) {
            json.push_str(",\"trace_state\":");
            push_json_text(&mut json, state.as_bytes());
        }
        if let Some(flags) = link.get("flags").map(whole).filter(|flags| *flags != 0) {
            json.push_str(&format!(",\"flags\":{flags}"));
        }
        let mut bag = Bag::default();
        attributes(&mut bag, "", link);
        push_bag(&mut json, &bag);
        json.push('}');
    }
    json.push(']');
    json
}
