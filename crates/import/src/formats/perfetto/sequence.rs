//! What holds for the packets of one sequence: interned texts, defaults, and times and counters that count on from packet to packet.

use std::collections::HashMap;

use crate::formats::wire::{Fields, Value, varints};

/// Bytes that all interned texts of a trace may take, and counters that count on.
pub(super) const MOST_INTERNED: usize = 256 << 20;
/// What one entry takes besides its text.
const ENTRY: usize = 64;
/// Extra counters of one event.
const MOST_EXTRA: usize = 64;

/// Texts by their number.
type Table = HashMap<u64, Box<[u8]>>;

/// Which table a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interned {
    Category,
    EventName,
    AnnotationName,
    AnnotationText,
    TypeName,
    Correlation,
    LogBody,
}

/// A place in source code.
#[derive(Debug, Clone, Default)]
pub(super) struct SourceLocation {
    pub(super) file: Box<[u8]>,
    pub(super) function: Box<[u8]>,
    pub(super) line: u64,
}

/// One sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// Whether what was interned is whole.
    pub(super) valid: bool,
    tables: [Table; 7],
    sources: HashMap<u64, SourceLocation>,
    bytes: usize,
    pub(super) clock: Option<u32>,
    pub(super) track: Option<u64>,
    pub(super) extra: Vec<u64>,
    pub(super) extra_double: Vec<u64>,
    /// The thread that old traces name once.
    pub(super) thread: Option<(u32, u32)>,
    /// The time from which times count on.
    pub(super) time_ns: Option<i64>,
    pub(super) thread_time_ns: i64,
    pub(super) instructions: i64,
    /// Counters that count on.
    counters: HashMap<u64, (i64, f64)>,
    /// The last time on the trace's clock.
    pub(super) last_ns: Option<i64>,
}

impl Sequence {
    /// All that was interned is void. Gives back what it took.
    pub(super) fn clear(&mut self) -> usize {
        self.tables.iter_mut().for_each(Table::clear);
        self.sources.clear();
        self.counters.clear();
        (self.clock, self.track, self.time_ns) = (None, None, None);
        self.extra.clear();
        self.extra_double.clear();
        self.valid = true;
        std::mem::take(&mut self.bytes)
    }

    /// Packets are lost: nothing that counts on or was interned is sure.
    pub(super) fn lose(&mut self) {
        self.valid = false;
        self.time_ns = None;
    }

    pub(super) fn text(&self, table: Interned, number: u64) -> Option<&[u8]> {
        self.tables[table as usize].get(&number).map(AsRef::as_ref)
    }

    pub(super) fn source(&self, number: u64) -> Option<&SourceLocation> {
        self.sources.get(&number)
    }

    /// A counter that counts on, and takes of the room; none where there is no room.
    pub(super) fn count_on(&mut self, track: u64, whole: i64, fraction: f64, room: &mut usize) -> Option<(i64, f64)> {
        if !self.counters.contains_key(&track) {
            *room = room.checked_sub(ENTRY)?;
            self.bytes += ENTRY;
        }
        let counter = self.counters.entry(track).or_default();
        counter.0 = counter.0.wrapping_add(whole);
        counter.1 += fraction;
        Some(*counter)
    }

    /// `InternedData`. Takes of the room what it needs, and tells how many entries had none.
    pub(super) fn intern(&mut self, bytes: &[u8], room: &mut usize) -> u64 {
        let mut refused = 0;
        for (field, value) in Fields::new(bytes) {
            let Value::Bytes(entry) = value else { continue };
            let table = match field {
                1 => Interned::Category,
                2 => Interned::EventName,
                3 => Interned::AnnotationName,
                27 => Interned::TypeName,
                29 => Interned::AnnotationText,
                43 => Interned::Correlation,
                20 => Interned::LogBody,
                4 => {
                    let (number, source) = source_location(entry);
                    let weight = source.file.len() + source.function.len() + 2 * ENTRY;
                    match room.checked_sub(weight) {
                        Some(left) => {
                            *room = left;
                            self.bytes += weight;
                            self.sources.insert(number, source);
                        }
                        None => refused += 1,
                    }
                    continue;
                }
                // For packets that are not read.
                _ => continue,
            };
            let (mut number, mut text) = (0, &b""[..]);
            for (inner, value) in Fields::new(entry) {
                match (inner, value) {
                    (1, _) => number = value.number().unwrap_or(0),
                    (2, Value::Bytes(bytes)) => text = bytes,
                    _ => {}
                }
            }
            let table = &mut self.tables[table as usize];
            if table.get(&number).is_some_and(|known| **known == *text) {
                continue;
            }
            let weight = text.len() + ENTRY;
            match room.checked_sub(weight) {
                Some(left) => {
                    *room = left;
                    self.bytes += weight;
                    table.insert(number, text.into());
                }
                None => refused += 1,
            }
        }
        refused
    }

    /// `TracePacketDefaults`.
    pub(super) fn set_defaults(&mut self, bytes: &[u8]) {
        (self.clock, self.track) = (None, None);
        self.extra.clear();
        self.extra_double.clear();
        for (field, value) in Fields::new(bytes) {
            match (field, value) {
                (58, _) => self.clock = value.small(),
                (11, Value::Bytes(event)) => {
                    for (inner, value) in Fields::new(event) {
                        match inner {
                            11 => self.track = value.number(),
                            31 => add_tracks(&mut self.extra, value),
                            45 => add_tracks(&mut self.extra_double, value),
                            _ => {}
                        }
                    }
                }
                // Defaults of packets that are not read.
                _ => {}
            }
        }
    }
}

/// Adds numbers of tracks, up to a limit.
pub(super) fn add_tracks(tracks: &mut Vec<u64>, value: Value<'_>) {
    varints(value, |track| {
        if tracks.len() < MOST_EXTRA {
            tracks.push(track);
        }
    });
}

/// `SourceLocation`, with its number.
pub(super) fn source_location(bytes: &[u8]) -> (u64, SourceLocation) {
    let (mut number, mut source) = (0, SourceLocation::default());
    for (field, value) in Fields::new(bytes) {
        match (field, value) {
            (1, _) => number = value.number().unwrap_or(0),
            (2, Value::Bytes(text)) => source.file = text.into(),
            (3, Value::Bytes(text)) => source.function = text.into(),
            (4, _) => source.line = value.number().unwrap_or(0),
            _ => {}
        }
    }
    (number, source)
}
