//! Track events: what they say, before it is known where it belongs.

use std::fmt::Write as _;

use super::annotation::{self, MOST_RAW, Wrong};
use super::names::event_name;
use super::sequence::{Interned, Sequence, SourceLocation, add_tracks, source_location};
use crate::event::Arg;
use crate::formats::bag::{Bag, hex};
use crate::formats::wire::{Fields, Value, fixed64s, varints};

/// Flows or extra values of one event.
const MOST_NUMBERS: usize = 1024;

/// `TrackEvent`, borrowed.
#[derive(Debug, Default)]
pub(super) struct TrackEvent<'a> {
    bytes: &'a [u8],
    pub(super) kind: Option<u64>,
    pub(super) track: Option<u64>,
    name: Option<&'a [u8]>,
    name_number: u64,
    pub(super) whole: Option<i64>,
    pub(super) fraction: Option<f64>,
    pub(super) extra_tracks: Vec<u64>,
    pub(super) extra: Vec<i64>,
    pub(super) extra_double_tracks: Vec<u64>,
    pub(super) extra_double: Vec<f64>,
    pub(super) time_delta_us: Option<i64>,
    pub(super) time_absolute_us: Option<i64>,
    pub(super) thread_time_delta_us: Option<i64>,
    pub(super) thread_time_absolute_us: Option<i64>,
    pub(super) instructions_delta: Option<i64>,
    pub(super) instructions_absolute: Option<i64>,
    pub(super) legacy: Option<Legacy<'a>>,
}

/// `LegacyEvent`: what Chrome's events of old had.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Legacy<'a> {
    name_number: u64,
    pub(super) phase: Option<char>,
    pub(super) duration_us: Option<i64>,
    thread_duration_us: Option<i64>,
    instructions: Option<i64>,
    pub(super) id: Option<Id>,
    pub(super) id_scope: &'a [u8],
    bind_id: Option<u64>,
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
}

/// What events belong together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Unscoped(u64),
    Local(u64),
    Global(u64),
}

impl<'a> TrackEvent<'a> {
    /// None where the bytes are no message.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<TrackEvent<'a>> {
        let mut event = TrackEvent { bytes, ..TrackEvent::default() };
        let mut fields = Fields::new(bytes);
        for (field, value) in fields.by_ref() {
            event.take(field, value);
        }
        (!fields.damaged()).then_some(event)
    }

    fn take(&mut self, field: u32, value: Value<'a>) {
        let signed = value.signed();
        match (field, value) {
            (9, _) => self.kind = value.number(),
            (11, _) => self.track = value.number(),
            (10, _) => self.name_number = value.number().unwrap_or(0),
            (23, Value::Bytes(name)) => self.name = Some(name),
            (30, _) => self.whole = signed,
            (44, _) => self.fraction = value.double(),
            (31, _) => add_tracks(&mut self.extra_tracks, value),
            (45, _) => add_tracks(&mut self.extra_double_tracks, value),
            (12, _) => varints(value, |number| {
                if self.extra.len() < MOST_NUMBERS {
                    self.extra.push(number.cast_signed());
                }
            }),
            (46, _) => fixed64s(value, |bits| {
                if self.extra_double.len() < MOST_NUMBERS {
                    self.extra_double.push(f64::from_bits(bits));
                }
            }),
            (1, _) => self.time_delta_us = signed,
            (16, _) => self.time_absolute_us = signed,
            (2, _) => self.thread_time_delta_us = signed,
            (17, _) => self.thread_time_absolute_us = signed,
            (8, _) => self.instructions_delta = signed,
            (20, _) => self.instructions_absolute = signed,
            (6, Value::Bytes(bytes)) => self.legacy = Some(Legacy::parse(bytes)),
            // Those become arguments.
            _ => {}
        }
    }

    /// The phase in the letters of Chrome: `c` for a counter on a track of its own.
    pub(super) fn phase(&self) -> Option<char> {
        match (self.kind.filter(|kind| *kind != 0), self.legacy) {
            (Some(1), _) => Some('B'),
            (Some(2), _) => Some('E'),
            (Some(3), _) => Some('i'),
            (Some(4), _) => Some('c'),
            (Some(_), _) => None,
            (None, legacy) => legacy?.phase,
        }
    }

    /// Name and categories.
    pub(super) fn name(&self, sequence: &Sequence, bag: &mut Bag, wrong: &mut Wrong) {
        let number =
            if self.name_number != 0 { self.name_number } else { self.legacy.map_or(0, |old| old.name_number) };
        if number != 0 {
            match sequence.text(Interned::EventName, number) {
                Some(name) => bag.set_name(name),
                None => wrong.missing = true,
            }
        } else if let Some(name) = self.name {
            bag.set_name(name);
        }
        for (field, value) in Fields::new(self.bytes) {
            match (field, value) {
                (3, _) => varints(value, |number| match sequence.text(Interned::Category, number) {
                    Some(cat) => bag.add_cat(cat),
                    None => wrong.missing = true,
                }),
                (22, Value::Bytes(cat)) => bag.add_cat(cat),
                _ => {}
            }
        }
    }

    /// All that is an argument.
    pub(super) fn args(&self, sequence: &Sequence, bag: &mut Bag, wrong: &mut Wrong) {
        let (mut flows, mut ended) = (String::new(), String::new());
        for (field, value) in Fields::new(self.bytes) {
            match (field, value) {
                (4, Value::Bytes(bytes)) => annotation::add(bytes, sequence, bag, wrong),
                (36, _) => varints(value, |flow| add_number(&mut flows, flow)),
                (47, _) => fixed64s(value, |flow| add_number(&mut flows, flow)),
                (42, _) => varints(value, |flow| add_number(&mut ended, flow)),
                (48, _) => fixed64s(value, |flow| add_number(&mut ended, flow)),
                (52, Value::Varint(number)) => bag.put(b"correlation_id", Arg::Unsigned(number)),
                (53, Value::Bytes(text)) => bag.put(b"correlation_id", Arg::Text(text)),
                (54, _) => match value.number().and_then(|number| sequence.text(Interned::Correlation, number)) {
                    Some(text) => bag.put(b"correlation_id", Arg::Text(text)),
                    None => wrong.missing = true,
                },
                (33, Value::Bytes(bytes)) => add_source(bag, "source", &source_location(bytes).1),
                (34, _) => add_interned_source(bag, "source", value, sequence, wrong),
                (5, Value::Bytes(bytes)) => {
                    if let Some((_, value)) = Fields::new(bytes).find(|(field, _)| *field == 1) {
                        add_interned_source(bag, "posted_from", value, sequence, wrong);
                    }
                }
                (21, Value::Bytes(bytes)) => add_log(bag, bytes, sequence, wrong),
                (field, value) if !IS_READ.contains(&field) => add_other(bag, field, value, wrong),
                _ => {}
            }
        }
        if let Some(legacy) = &self.legacy {
            legacy.args(bag, &mut flows);
        }
        for (key, list) in [(&b"flow_ids"[..], flows), (b"terminating_flow_ids", ended)] {
            if !list.is_empty() {
                bag.put(key, Arg::Json(&format!("[{list}]")));
            }
        }
    }
}

/// Fields of a track event that are no arguments.
const IS_READ: [u32; 21] = [1, 2, 3, 6, 8, 9, 10, 11, 12, 16, 17, 20, 22, 23, 30, 31, 44, 45, 46, 4, 21];

impl<'a> Legacy<'a> {
    fn parse(bytes: &'a [u8]) -> Legacy<'a> {
        let mut legacy = Legacy::default();
        for (field, value) in Fields::new(bytes) {
            let number = value.number();
            match (field, value) {
                (1, _) => legacy.name_number = number.unwrap_or(0),
                (2, _) => legacy.phase = value.small().and_then(char::from_u32),
                (3, _) => legacy.duration_us = value.signed(),
                (4, _) => legacy.thread_duration_us = value.signed(),
                (15, _) => legacy.instructions = value.signed(),
                (6, _) => legacy.id = number.map(Id::Unscoped),
                (10, _) => legacy.id = number.map(Id::Local),
                (11, _) => legacy.id = number.map(Id::Global),
                (7, Value::Bytes(scope)) => legacy.id_scope = scope,
                (8, _) => legacy.bind_id = number,
                (18, _) => legacy.pid = value.low(),
                (19, _) => legacy.tid = value.low(),
                // How flows bind, and the scope of instants: for drawing.
                _ => {}
            }
        }
        legacy
    }

    fn args(&self, bag: &mut Bag, flows: &mut String) {
        if let Some(Id::Unscoped(id) | Id::Local(id) | Id::Global(id)) = self.id {
            bag.put(b"id", Arg::Unsigned(id));
        }
        if !self.id_scope.is_empty() {
            bag.put(b"id_scope", Arg::Text(self.id_scope));
        }
        if let Some(bind) = self.bind_id {
            add_number(flows, bind);
        }
        if let Some(us) = self.thread_duration_us {
            bag.put(b"thread_dur_ns", Arg::Int(us.saturating_mul(1_000)));
        }
        if let Some(count) = self.instructions {
            bag.put(b"thread_instructions", Arg::Int(count));
        }
    }
}

/// Adds to a list with commas.
fn add_number(list: &mut String, number: u64) {
    // A number takes at most 20 letters.
    if list.len() < MOST_NUMBERS * 21 {
        let _ = write!(list, "{}{number}", if list.is_empty() { "" } else { "," });
    }
}

fn add_source(bag: &mut Bag, key: &str, source: &SourceLocation) {
    for (part, text) in [("file", &source.file), ("function", &source.function)] {
        if !text.is_empty() {
            bag.put(format!("{key}_{part}").as_bytes(), Arg::Text(text));
        }
    }
    if source.line != 0 {
        bag.put(format!("{key}_line").as_bytes(), Arg::Unsigned(source.line));
    }
}

fn add_interned_source(bag: &mut Bag, key: &str, number: Value<'_>, sequence: &Sequence, wrong: &mut Wrong) {
    match number.number().and_then(|number| sequence.source(number)) {
        Some(source) => add_source(bag, key, source),
        None => wrong.missing = true,
    }
}

fn add_log(bag: &mut Bag, bytes: &[u8], sequence: &Sequence, wrong: &mut Wrong) {
    for (field, value) in Fields::new(bytes) {
        match field {
            1 => add_interned_source(bag, "log", value, sequence, wrong),
            2 => match value.number().and_then(|number| sequence.text(Interned::LogBody, number)) {
                Some(text) => bag.put(b"log_message", Arg::Text(text)),
                None => wrong.missing = true,
            },
            3 => bag.put(b"log_priority", Arg::Unsigned(value.number().unwrap_or(0))),
            _ => {}
        }
    }
}

/// What this importer knows no more of than its number: numbers as they are, messages as their bytes.
fn add_other(bag: &mut Bag, field: u32, value: Value<'_>, wrong: &mut Wrong) {
    let key = event_name(field).map_or_else(|| format!("field_{field}"), str::to_owned);
    match value {
        Value::Bytes(bytes) => {
            wrong.cut |= bytes.len() > MOST_RAW;
            bag.put(key.as_bytes(), Arg::Text(hex(&bytes[..bytes.len().min(MOST_RAW)]).as_bytes()));
        }
        value => bag.put(key.as_bytes(), Arg::Unsigned(value.number().unwrap_or(0))),
    }
}
