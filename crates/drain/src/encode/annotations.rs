//! Encodes annotations as trace lines, beside the calls that [`super`] encodes.
//!
//! A record of an annotation refers to its strings by id and has packed arguments. The packed bytes of a segment are gathered
//! first ([`Annotations::gather`]), since they may span several records, and written later in order. Strings are looked
//! up once per job: nothing is allocated per event.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::io::Write as _;

use serde::de::IgnoredAny;
use weftline_format::event::Value;
use weftline_format::identity::CATEGORY;
use weftline_format::line::LineBuf;
use weftline_format::text::from_bytes;
use weftline_recorder::annotation::{self, Argument, CONTINUED, EventKind, INLINE, MAX_PAYLOAD, PER_RECORD, Usage};

use super::{Encoder, IdHasher, NAMES_MAX, made_up_id};
use crate::arena::{Arena, RecordCopy};
use crate::timeline::Timeline;
use crate::totals::{SpanSum, SpanSums};

/// Texts that are always there: the category of events without one, nothing at all, the name of events whose name could not be kept,
/// and the keys of [`Argument::Usage`].
const FIXED: [&str; 11] = [
    "app",
    "",
    "(name lost)",
    "cpu_ns",
    "cpu_user_ns",
    "cpu_system_ns",
    "process_cpu_ns",
    "process_user_ns",
    "process_system_ns",
    "rss_start",
    "rss_end",
];
const APP: u32 = 0;
const EMPTY: u32 = 1;
const LOST: u32 = 2;
const USAGE: std::ops::Range<u32> = 3..11;

/// A text of the job at hand.
struct Text {
    text: String,
    /// The latest event that has it as a key, and at which place.
    used: u64,
    /// The latest category it was used with as a name, and where their sums are.
    sum: Option<(u32, u32)>,
}

/// Names and keys by id, and sums per name and category.
struct Texts {
    list: Vec<Text>,
    ids: HashMap<u32, u32, BuildHasherDefault<IdHasher>>,
    /// Two ids may stand for one text, which must not become two keys.
    places: HashMap<String, u32>,
    sums: Vec<(u32, u32, SpanSum)>,
    sum_places: HashMap<(u32, u32), u32>,
    /// Bytes that more texts may have.
    room: usize,
}

impl Texts {
    fn new() -> Texts {
        let mut texts = Texts {
            list: Vec::new(),
            ids: HashMap::default(),
            places: HashMap::new(),
            sums: Vec::new(),
            sum_places: HashMap::new(),
            room: NAMES_MAX,
        };
        for text in FIXED {
            texts.add(text);
        }
        texts
    }

    /// Forgets the texts of an arena.
    fn clear(&mut self) {
        for text in self.list.drain(FIXED.len()..) {
            self.places.remove(&text.text);
        }
        self.list.iter_mut().for_each(|text| text.sum = None);
        self.ids.clear();
        self.sums.clear();
        self.sum_places.clear();
        self.room = NAMES_MAX;
    }

    fn add(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.list.len() as u32;
        self.list.push(Text { text: text.to_owned(), used: 0, sum: None });
        self.places.insert(text.to_owned(), place);
        place
    }

    fn get(&self, place: u32) -> &str {
        &self.list[place as usize].text
    }

    /// The text with this id. It is taken as it is: names of annotations are no paths.
    #[inline]
    fn place(&mut self, arena: &Arena, id: u32) -> Option<u32> {
        match self.ids.get(&id) {
            Some(place) => Some(*place),
            None => self.look_up(arena, id),
        }
    }

    #[cold]
    fn look_up(&mut self, arena: &Arena, id: u32) -> Option<u32> {
        let (_, bytes) = arena.name(id).filter(|_| self.room > 0)?;
        self.room = self.room.saturating_sub(bytes.len());
        let place = self.add(&from_bytes(bytes));
        self.ids.insert(id, place);
        Some(place)
    }

    #[inline]
    fn sum(&mut self, name: u32, category: u32) -> &mut SpanSum {
        let place = match self.list[name as usize].sum {
            Some((known, place)) if known == category => place,
            _ => {
                let next = self.sums.len() as u32;
                let place = *self.sum_places.entry((name, category)).or_insert(next);
                if place == next {
                    self.sums.push((name, category, SpanSum::default()));
                }
                self.list[name as usize].sum = Some((category, place));
                place
            }
        };
        &mut self.sums[place as usize].2
    }
}

/// The annotations of the segment at hand, and what is known of their texts.
pub(super) struct Annotations {
    payloads: Vec<u8>,
    /// Where the payload of each annotation ends, in the order of their records.
    ends: Vec<usize>,
    texts: Texts,
    /// The keys of the event at hand.
    keys: Vec<u32>,
    /// Which event that is, in the bits above the places of arguments.
    turn: u64,
    cut: Vec<u8>,
}

/// Bytes of a value that is given by a name. One record has room for hundreds of such values.
const VALUE_MAX: usize = 4 << 10;

/// Bits for the places of arguments: there are fewer than bytes.
const PLACE_BITS: u32 = 16;
const _: () = assert!(MAX_PAYLOAD < 1 << PLACE_BITS);

impl Annotations {
    pub(super) fn new() -> Annotations {
        Annotations {
            payloads: Vec::new(),
            ends: Vec::new(),
            texts: Texts::new(),
            keys: Vec::new(),
            turn: 0,
            cut: Vec::new(),
        }
    }

    /// Before a segment.
    pub(super) fn begin(&mut self) {
        self.payloads.clear();
        self.ends.clear();
    }

    /// Takes the payload of an annotation, which goes on in the records `behind` it; how many of them. Nothing when it is damaged.
    pub(super) fn gather(&mut self, record: &RecordCopy, behind: impl Fn(u32) -> Option<RecordCopy>) -> Option<u32> {
        let length = record.detail as usize;
        if EventKind::of_head(record.head).is_none() || length > MAX_PAYLOAD {
            return None;
        }
        let from = self.payloads.len();
        for word in [record.size, record.ret, record.offset] {
            self.payloads.extend_from_slice(&word.to_ne_bytes());
        }
        let more = length.saturating_sub(INLINE).div_ceil(PER_RECORD) as u32;
        for place in 0..more {
            let Some(next) = behind(place).filter(|next| next.head == CONTINUED) else {
                self.payloads.truncate(from);
                return None;
            };
            self.payloads.extend_from_slice(&payload_of(&next));
        }
        self.payloads.truncate(from + length);
        self.ends.push(from + length);
        Some(more)
    }

    fn payload(&self, number: usize) -> &[u8] {
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.payloads[from..self.ends[number]]
    }

    /// The times that the program itself gave the `number`th annotation of the segment.
    fn given_times(&self, number: usize) -> Option<(i64, i64)> {
        annotation::given_times(self.payload(number))
    }

    /// Forgets the texts of the arena; the sums per span since the last call.
    pub(super) fn take_sums(&mut self, into: &mut SpanSums) {
        for (name, category, sum) in &self.texts.sums {
            into.merge(self.texts.get(*name), self.texts.get(*category), sum);
        }
        self.texts.clear();
    }

    /// Name and category of an annotation.
    fn heading(&mut self, arena: &Arena, kind: EventKind, record: &RecordCopy) -> (u32, u32) {
        // An end without a name ends whatever is open; one with a name or a category ends only what has the same.
        let no_name = if kind == EventKind::End { EMPTY } else { LOST };
        let name = self.texts.place(arena, record.path).unwrap_or(no_name);
        let no_category = if name == EMPTY { EMPTY } else { APP };
        let category = match self.texts.place(arena, record.fd.cast_unsigned()).unwrap_or(EMPTY) {
            EMPTY => no_category,
            // Only the drain itself tells metadata of this category.
            category if kind == EventKind::Meta && self.texts.get(category) == CATEGORY => APP,
            category => category,
        };
        (name, category)
    }

    /// Writes the arguments of the `number`th annotation of the segment. Of arguments with the same key the last one counts.
    /// `took` turns ticks before the event's end into nanoseconds.
    fn write_arguments(&mut self, lines: &mut LineBuf, arena: &Arena, number: usize, took: impl Fn(u64) -> i64) {
        let Annotations { payloads, ends, texts, keys, turn, cut } = self;
        let from = number.checked_sub(1).map_or(0, |before| ends[before]);
        let payload = &payloads[from..ends[number]];
        if payload.is_empty() {
            return;
        }
        *turn += 1 << PLACE_BITS;
        keys.clear();
        for (place, (key, value)) in annotation::arguments(payload).enumerate() {
            let used = *turn | place as u64;
            if let Argument::At(..) = value {
                keys.push(EMPTY);
                continue;
            }
            if let Argument::Usage(..) = value {
                USAGE.for_each(|key| texts.list[key as usize].used = used);
                keys.push(EMPTY);
                continue;
            }
            let key = texts.place(arena, key).unwrap_or_else(|| texts.add(&format!("arg{place}")));
            texts.list[key as usize].used = used;
            keys.push(key);
        }
        for (place, (_, value)) in annotation::arguments(payload).enumerate() {
            let (used, key) = (*turn | place as u64, keys[place]);
            match value {
                // No process has no memory: zero means that it could not be read.
                Argument::Usage(from, to) if from.rss == 0 || to.rss == 0 => {}
                Argument::Usage(from, to) => {
                    for (key, number) in USAGE.zip(usage(&from, &to)) {
                        let Text { text, used: last, .. } = &texts.list[key as usize];
                        if *last == used {
                            lines.arg_u64(text, number);
                        }
                    }
                }
                Argument::At(..) => {}
                _ if texts.list[key as usize].used != used => {}
                Argument::Ticks(ticks) => drop(lines.arg_i64(texts.get(key), took(ticks))),
                value => write_argument(lines, arena, texts.get(key), value, cut),
            }
        }
    }
}

fn write_argument(lines: &mut LineBuf, arena: &Arena, key: &str, value: Argument<'_>, cut: &mut Vec<u8>) {
    match value {
        Argument::Int(v) => lines.arg_i64(key, v),
        Argument::UInt(v) => lines.arg_u64(key, v),
        Argument::Float(v) => lines.arg_f64(key, v),
        Argument::Bool(v) => lines.arg_bool(key, v),
        Argument::Text(text) => lines.arg_str(key, text),
        Argument::CutText(text, whole) => {
            cut.clear();
            cut.extend_from_slice(text);
            // Writing to a vector cannot fail.
            let _ = write!(cut, "… ({whole} bytes)");
            lines.arg_str(key, cut)
        }
        Argument::Json(text) => match std::str::from_utf8(text) {
            Ok(json) if serde_json::from_str::<IgnoredAny>(json).is_ok() => lines.arg_json(key, json),
            _ => lines.arg_str(key, text),
        },
        Argument::Name(id) => match arena.name(id) {
            Some((_, text)) => lines.arg_str(key, &text[..text.len().min(VALUE_MAX)]),
            None => lines.arg_value(key, &Value::Null),
        },
        Argument::Null | Argument::Ticks(_) | Argument::Usage(..) | Argument::At(..) => {
            lines.arg_value(key, &Value::Null)
        }
    };
}

/// What a span used, by the keys in [`USAGE`].
fn usage(from: &Usage, to: &Usage) -> [u64; 8] {
    let (cpu, user) = (to.thread.saturating_sub(from.thread), to.thread_user.saturating_sub(from.thread_user));
    let process = to.process.saturating_sub(from.process);
    let process_user = to.process_user.saturating_sub(from.process_user);
    let (system, process_system) = (cpu.saturating_sub(user), process.saturating_sub(process_user));
    [cpu, user, system, process, process_user, process_system, from.rss, to.rss]
}

/// The bytes of a record that continues a payload: all but its head.
fn payload_of(record: &RecordCopy) -> [u8; PER_RECORD] {
    let mut bytes = [0; PER_RECORD];
    let mut at = 0;
    let mut put = |word: &[u8]| {
        bytes[at..at + word.len()].copy_from_slice(word);
        at += word.len();
    };
    put(&record.path.to_ne_bytes());
    put(&record.start.to_ne_bytes());
    put(&record.end.to_ne_bytes());
    put(&record.fd.to_ne_bytes());
    put(&record.detail.to_ne_bytes());
    put(&record.size.to_ne_bytes());
    put(&record.ret.to_ne_bytes());
    put(&record.offset.to_ne_bytes());
    put(&record.extra.to_ne_bytes());
    bytes
}

impl Encoder {
    /// Appends the `number`th annotation of the segment at hand.
    #[inline(never)]
    #[allow(clippy::too_many_arguments, reason = "one call site; a struct of these would only rename them")]
    pub(super) fn annotation(
        &mut self,
        arena: &Arena,
        record: &RecordCopy,
        number: usize,
        pid: u32,
        tid: u32,
        crossing: bool,
        timeline: &Timeline,
    ) {
        let Some(kind) = EventKind::of_head(record.head) else { return };
        let (start, end) = self.annotations.given_times(number).unwrap_or_else(|| {
            let start = timeline.at(record.start);
            (start, timeline.at(record.end).max(start))
        });
        let (name_at, category_at) = self.annotations.heading(arena, kind, record);
        self.cover(start, end);
        self.sum_up_span(kind, (name_at, category_at), start, end);

        let (lines, texts) = (&mut self.lines, &self.annotations.texts);
        let (name, category) = (texts.get(name_at), texts.get(category_at));
        let given = record.extra;
        let mut pair = None;
        match kind {
            EventKind::Span if !crossing => lines.complete(name, category, pid, tid, start, end),
            EventKind::Span | EventKind::AsyncSpan => {
                let id = if given == 0 { made_up_id(start, pid, tid) } else { given };
                pair = Some(id);
                lines.async_begin(name, category, pid, tid, start, id)
            }
            EventKind::Begin => lines.begin(name, category, pid, tid, start),
            EventKind::End => lines.end(name, category, pid, tid, start),
            EventKind::AsyncBegin => lines.async_begin(name, category, pid, tid, start, given),
            EventKind::AsyncEnd => lines.async_end(name, category, pid, tid, start, given),
            EventKind::AsyncInstant => lines.async_instant(name, category, pid, tid, start, given),
            EventKind::Instant => lines.instant(name, category, pid, tid, start),
            EventKind::Counter => lines.counter(name, category, pid, tid, start),
            EventKind::Meta => lines.metadata_at(name, category, pid, tid, start),
            EventKind::FlowStart => lines.flow_start(name, category, pid, tid, start, given),
            EventKind::FlowStep => lines.flow_step(name, category, pid, tid, start, given),
            EventKind::FlowEnd => lines.flow_end(name, category, pid, tid, start, given),
        };
        let took = |ticks: u64| timeline.at(record.end) - timeline.at(record.end.saturating_sub(ticks));
        self.annotations.write_arguments(lines, arena, number, took);
        lines.finish();
        if kind == EventKind::Meta {
            self.stats.metadata += 1;
            return;
        }
        self.stats.events += 1;
        if let Some(id) = pair {
            let texts = &self.annotations.texts;
            lines.async_end(texts.get(name_at), texts.get(category_at), pid, tid, end, id).finish();
            self.stats.events += 1;
        }
    }

    fn sum_up_span(&mut self, kind: EventKind, (name, category): (u32, u32), start: i64, end: i64) {
        if name == EMPTY {
            return;
        }
        let texts = &mut self.annotations.texts;
        match kind {
            EventKind::Span | EventKind::AsyncSpan => texts.sum(name, category).add(end - start),
            EventKind::Begin | EventKind::AsyncBegin => texts.sum(name, category).open(start),
            EventKind::End | EventKind::AsyncEnd => texts.sum(name, category).close(start),
            _ => {}
        }
    }
}
