//! One packet of a trace: what every packet has, and what it carries.

use super::names::packet_name;
use crate::formats::wire::{Fields, Value};

/// What a packet carries, where this importer reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload<'a> {
    TrackEvent(&'a [u8]),
    TrackDescriptor(&'a [u8]),
    ClockSnapshot(&'a [u8]),
    ProcessTree(&'a [u8]),
    ProcessDescriptor(&'a [u8]),
    ThreadDescriptor(&'a [u8]),
    Zlib(&'a [u8]),
    Zstd(&'a [u8]),
    /// Something else, by the number of its field.
    Other(u32),
}

/// One packet, borrowed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) timestamp: Option<u64>,
    pub(super) clock: Option<u32>,
    /// The sequence of packets that it belongs to; 0 for none.
    pub(super) sequence: u32,
    /// All that was interned on the sequence is void.
    pub(super) cleared: bool,
    /// It has no meaning without what was interned.
    pub(super) needs_state: bool,
    /// Packets of the sequence before it are lost.
    pub(super) dropped: bool,
    pub(super) machine: u64,
    pub(super) interned: Option<&'a [u8]>,
    pub(super) defaults: Option<&'a [u8]>,
    pub(super) payload: Option<Payload<'a>>,
}

impl<'a> Packet<'a> {
    /// None where the bytes are no message.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Packet<'a>> {
        let mut packet = Packet::default();
        let mut fields = Fields::new(bytes);
        for (field, value) in fields.by_ref() {
            packet.take(field, value);
        }
        (!fields.damaged()).then_some(packet)
    }

    fn take(&mut self, field: u32, value: Value<'a>) {
        let number = value.number().unwrap_or(0);
        match (field, value) {
            (8, _) => self.timestamp = value.number(),
            (58, _) => self.clock = value.small(),
            (10, _) => self.sequence = value.small().unwrap_or(0),
            (13, _) => {
                self.cleared |= number & 1 != 0;
                self.needs_state |= number & 2 != 0;
            }
            (41, _) => self.cleared |= number != 0,
            (42, _) => self.dropped |= number != 0,
            (98, _) => self.machine = number,
            // Who sent it, and that it is the first: nothing that its events need.
            (3 | 79 | 87, _) => {}
            (12, Value::Bytes(bytes)) => self.interned = Some(bytes),
            (59, Value::Bytes(bytes)) => self.defaults = Some(bytes),
            (11, Value::Bytes(bytes)) => self.payload = Some(Payload::TrackEvent(bytes)),
            (60, Value::Bytes(bytes)) => self.payload = Some(Payload::TrackDescriptor(bytes)),
            (6, Value::Bytes(bytes)) => self.payload = Some(Payload::ClockSnapshot(bytes)),
            (2, Value::Bytes(bytes)) => self.payload = Some(Payload::ProcessTree(bytes)),
            (43, Value::Bytes(bytes)) => self.payload = Some(Payload::ProcessDescriptor(bytes)),
            (44, Value::Bytes(bytes)) => self.payload = Some(Payload::ThreadDescriptor(bytes)),
            (50, Value::Bytes(bytes)) => self.payload = Some(Payload::Zlib(bytes)),
            (133, Value::Bytes(bytes)) => self.payload = Some(Payload::Zstd(bytes)),
            _ => self.payload = self.payload.or(Some(Payload::Other(field))),
        }
    }
}

/// Whether a field looks like one of a packet: known, and of a kind that fits where that is known.
pub(super) fn is_field(field: u32, value: Value<'_>) -> bool {
    match field {
        3 | 8 | 10 | 13 | 41 | 42 | 58 | 79 | 87 | 98 => matches!(value, Value::Varint(_)),
        12 | 59 => value.bytes().is_some(),
        _ => value.bytes().is_some() && packet_name(field).is_some(),
    }
}
