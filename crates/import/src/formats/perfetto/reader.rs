//! Packets → events with a time on the trace's clock and a place where they belong. Both passes go through here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};
use std::rc::Rc;

use twox_hash::XxHash64;

use super::annotation::Wrong;
use super::clocks::{Clocks, MONOTONIC};
use super::event::{Id, TrackEvent};
use super::names::packet_name;
use super::packet::{Packet, Payload};
use super::sequence::{MOST_INTERNED, Sequence};
use super::tracks::{Place, Tracks};
use crate::event::Arg;
use crate::formats::bag::Bag;
use crate::formats::wire::{self, Fields, Value};

/// Sequences of packets.
const MOST_SEQUENCES: usize = 1 << 16;
/// Bags that are kept for the next events.
const MOST_SPARE: usize = 256;

/// An event with its time and place.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) place: Place,
    /// Process and thread; 0 for none.
    pub(super) owner: (u32, u32),
    pub(super) what: What,
    pub(super) at_ns: i64,
    pub(super) bag: Bag,
    /// Its thread's own time and instructions, where told.
    pub(super) thread_ns: Option<i64>,
    pub(super) instructions: Option<i64>,
    pub(super) sequence: u32,
    pub(super) offset: u64,
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Begin,
    End,
    /// It lasted so long.
    Complete(i64),
    Instant,
    Counter,
}

/// Bags for the next events.
#[derive(Debug, Default)]
pub(super) struct Spare(Vec<Bag>);

impl Spare {
    pub(super) fn take(&mut self) -> Bag {
        self.0.pop().unwrap_or_default()
    }

    pub(super) fn give(&mut self, mut bag: Bag) {
        if self.0.len() < MOST_SPARE {
            bag.clear();
            self.0.push(bag);
        }
    }
}

/// The state of a pass.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) tracks: Rc<Tracks>,
    pub(super) clocks: Clocks,
    sequences: HashMap<u32, Sequence>,
    /// What interned texts may still take.
    room: usize,
    /// The first pass: descriptions are collected, arguments are not needed.
    first: bool,
    /// What was left out of the packet.
    pub(super) skipped: Vec<Cow<'static, str>>,
    pub(super) spare: Spare,
}

impl Reader {
    /// A first pass.
    pub(super) fn first() -> Reader {
        Reader::new(Rc::default(), Clocks::default(), true)
    }

    /// A second pass, with what the first one found.
    pub(super) fn second(tracks: Rc<Tracks>, clocks: Clocks) -> Reader {
        Reader::new(tracks, clocks, false)
    }

    fn new(tracks: Rc<Tracks>, clocks: Clocks, first: bool) -> Reader {
        Reader {
            tracks,
            clocks,
            sequences: HashMap::new(),
            room: MOST_INTERNED,
            first,
            skipped: Vec::new(),
            spare: Spare::default(),
        }
    }

    /// The last time of a sequence.
    pub(super) fn last_ns(&self, sequence: u32) -> Option<i64> {
        self.sequences.get(&sequence)?.last_ns
    }

    fn skip(&mut self, reason: &'static str) {
        self.skipped.push(Cow::Borrowed(reason));
    }

    /// One packet; its events are added to a list.
    pub(super) fn packet(&mut self, packet: &Packet<'_>, offset: u64, out: &mut Vec<Decoded>) {
        if packet.machine != 0 {
            // It has clocks, processes and threads of its own, whose numbers are those of others here.
            return self.skip("packet of another machine");
        }
        if !self.sequences.contains_key(&packet.sequence) && self.sequences.len() >= MOST_SEQUENCES {
            return self.skip("packet of one sequence too many");
        }
        let sequence = self.sequences.entry(packet.sequence).or_default();
        if packet.cleared {
            self.room += sequence.clear();
        } else if packet.dropped {
            sequence.lose();
            // The first packet of a sequence may say so too, since what was before it is unknown.
            if sequence.last_ns.is_some() {
                self.skipped.push(Cow::Borrowed("gap: packets before this one were lost when the trace was recorded"));
            }
        }
        let sequence = self.sequences.entry(packet.sequence).or_default();
        if packet.needs_state && !sequence.valid {
            return self.skip("packet without the interned data that it needs");
        }
        if let Some(defaults) = packet.defaults {
            sequence.set_defaults(defaults);
        }
        if let Some(interned) = packet.interned
            && sequence.intern(interned, &mut self.room) > 0
        {
            self.skipped.push(Cow::Borrowed("interned text beyond the limit of 256 MiB"));
        }
        if let Some(Payload::ClockSnapshot(bytes)) = packet.payload {
            if !self.clocks.snapshot(bytes, packet.sequence) {
                self.skip("clock snapshot beyond the limit");
            }
            return;
        }
        let clock = packet.clock.or(sequence.clock);
        let time = packet.timestamp.map(|time| self.clocks.packet_time(clock, packet.sequence, time));
        match packet.payload {
            Some(Payload::TrackEvent(bytes)) => {
                if time == Some(None) {
                    return self.skip("time on a clock that no snapshot describes");
                }
                self.track_event(bytes, time.flatten(), packet.sequence, offset, out);
            }
            Some(Payload::TrackDescriptor(bytes)) => {
                if self.first {
                    Rc::make_mut(&mut self.tracks).track(bytes);
                }
                // Events that name no track are of the thread that the sequence described last.
                if let Some(thread) = wire::find(bytes, 4).and_then(Value::bytes) {
                    self.thread_descriptor(thread, packet.sequence);
                }
            }
            Some(Payload::ProcessTree(bytes)) if self.first => Rc::make_mut(&mut self.tracks).tree(bytes),
            Some(Payload::ProcessDescriptor(bytes)) if self.first => {
                _ = Rc::make_mut(&mut self.tracks).process(bytes, b"");
            }
            Some(Payload::ThreadDescriptor(bytes)) => {
                if self.first {
                    Rc::make_mut(&mut self.tracks).thread(bytes, b"");
                }
                self.thread_descriptor(bytes, packet.sequence);
            }
            Some(Payload::Zlib(_) | Payload::Zstd(_)) => self.skip("compressed packets within compressed packets"),
            Some(Payload::Other(field)) => self.skipped.push(match packet_name(field) {
                Some(name) => Cow::Owned(format!("packet {name}")),
                None => Cow::Owned(format!("packet of field {field}")),
            }),
            _ => {}
        }
    }

    /// What a thread's description says of its sequence.
    fn thread_descriptor(&mut self, bytes: &[u8], sequence: u32) {
        let sequence = self.sequences.entry(sequence).or_default();
        if !sequence.valid {
            return;
        }
        let (mut pid, mut tid) = (None, None);
        (sequence.time_ns, sequence.thread_time_ns, sequence.instructions) = (Some(0), 0, 0);
        for (field, value) in Fields::new(bytes) {
            let ns = value.signed().unwrap_or(0).saturating_mul(1_000);
            match field {
                1 => pid = value.low(),
                2 => tid = value.low(),
                6 => sequence.time_ns = Some(ns),
                7 => sequence.thread_time_ns = ns,
                8 => sequence.instructions = value.signed().unwrap_or(0),
                _ => {}
            }
        }
        sequence.thread = pid.zip(tid).or(sequence.thread);
    }

    fn track_event(&mut self, bytes: &[u8], time: Option<i64>, number: u32, offset: u64, out: &mut Vec<Decoded>) {
        let Some(event) = TrackEvent::parse(bytes) else { return self.skip("damaged track event") };
        let sequence = self.sequences.entry(number).or_default();
        // Old events are on the monotonic clock, if there is a way from it.
        let old = |ns| self.clocks.to_trace(MONOTONIC, ns).unwrap_or(ns);
        let at_ns = match (event.time_delta_us, event.time_absolute_us.filter(|us| *us != 0)) {
            (Some(delta), _) => {
                let next = sequence.time_ns.map(|ns| ns.saturating_add(delta.saturating_mul(1_000)));
                sequence.time_ns = next;
                next.map(old)
            }
            (None, Some(us)) => Some(old(us.saturating_mul(1_000))),
            (None, None) => time,
        };
        let thread_ns = match (event.thread_time_delta_us, event.thread_time_absolute_us) {
            (Some(delta), _) => {
                sequence.thread_time_ns = sequence.thread_time_ns.saturating_add(delta.saturating_mul(1_000));
                Some(sequence.thread_time_ns)
            }
            (None, absolute) => absolute.map(|us| us.saturating_mul(1_000)),
        };
        let instructions = match (event.instructions_delta, event.instructions_absolute) {
            (Some(delta), _) => {
                sequence.instructions = sequence.instructions.saturating_add(delta);
                Some(sequence.instructions)
            }
            (None, absolute) => absolute,
        };
        let Some(at_ns) = at_ns else { return self.skip("track event without a time") };
        sequence.last_ns = Some(sequence.last_ns.map_or(at_ns, |last| last.max(at_ns)));

        let uuid = event.track.or(sequence.track).unwrap_or(0);
        self.extra_counters(&event, number, at_ns, offset, out);
        if event.phase() == Some('c') {
            return self.counter(uuid, (event.whole, event.fraction), number, at_ns, offset, out);
        }

        let sequence = &self.sequences[&number];
        let (place, owner) = place(&event, uuid, &self.tracks, sequence);
        let mut decoded = Decoded {
            place,
            owner,
            what: What::Instant,
            at_ns,
            bag: self.spare.take(),
            thread_ns,
            instructions,
            sequence: number,
            offset,
        };
        let mut wrong = Wrong::default();
        event.name(sequence, &mut decoded.bag, &mut wrong);
        if !self.first {
            event.args(sequence, &mut decoded.bag, &mut wrong);
        }
        let legacy = event.legacy.unwrap_or_default();
        let kept = match event.phase() {
            Some('B') => {
                decoded.what = What::Begin;
                Ok(())
            }
            Some('E') => {
                decoded.what = What::End;
                Ok(())
            }
            Some('X') => match legacy.duration_us.filter(|us| *us >= 0) {
                Some(us) => {
                    decoded.what = What::Complete(us.saturating_mul(1_000));
                    Ok(())
                }
                None => Err("complete event without a duration"),
            },
            Some('i' | 'I' | 'R') => Ok(()),
            Some(phase @ ('b' | 'e' | 'n')) => match legacy.id {
                Some(id) => {
                    decoded.place = of_id(id, decoded.bag.cat(), legacy.id_scope, owner.0);
                    decoded.what = match phase {
                        'b' => What::Begin,
                        'e' => What::End,
                        _ => What::Instant,
                    };
                    Ok(())
                }
                None => Err("asynchronous event without an id"),
            },
            Some(phase @ ('s' | 't' | 'f')) => {
                decoded.bag.put(b"flow_phase", Arg::Text(phase.to_string().as_bytes()));
                Ok(())
            }
            Some('C') => {
                decoded.what = What::Counter;
                Ok(())
            }
            Some(phase) => {
                self.skipped.push(Cow::Owned(format!("track event of phase {phase:?}")));
                Err("")
            }
            None if event.kind == Some(5) => Err("track event of type state"),
            None => Err("track event of no known type"),
        };
        if wrong.missing {
            self.skipped.push(Cow::Borrowed("text that was not interned"));
        }
        if wrong.cut {
            self.skipped.push(Cow::Borrowed("argument that is cut: 32 lists deep, or 4 KiB of bytes"));
        }
        if decoded.bag.refused > 0 {
            self.skipped.push(Cow::Borrowed("argument beyond the limit of 1024, or of 32 MiB"));
        }
        match kept {
            Ok(()) => out.push(decoded),
            Err(reason) => {
                self.spare.give(decoded.bag);
                if !reason.is_empty() {
                    self.skip(reason);
                }
            }
        }
    }

    /// Values of counters that an event brings besides.
    fn extra_counters(&mut self, event: &TrackEvent<'_>, number: u32, at_ns: i64, offset: u64, out: &mut Vec<Decoded>) {
        if event.extra.is_empty() && event.extra_double.is_empty() {
            return;
        }
        let sequence = self.sequences.entry(number).or_default();
        let or = |own: &[u64], default: &[u64]| if own.is_empty() { default.to_vec() } else { own.to_vec() };
        let whole = or(&event.extra_tracks, &sequence.extra);
        let double = or(&event.extra_double_tracks, &sequence.extra_double);
        if whole.len() < event.extra.len() || double.len() < event.extra_double.len() {
            self.skip("extra value without a counter track");
        }
        for (track, value) in whole.iter().zip(&event.extra) {
            self.counter(*track, (Some(*value), None), number, at_ns, offset, out);
        }
        for (track, value) in double.iter().zip(&event.extra_double) {
            self.counter(*track, (None, Some(*value)), number, at_ns, offset, out);
        }
    }

    /// A value of a counter's own track.
    fn counter(
        &mut self,
        uuid: u64,
        (whole, fraction): (Option<i64>, Option<f64>),
        number: u32,
        at_ns: i64,
        offset: u64,
        out: &mut Vec<Decoded>,
    ) {
        if self.first {
            return;
        }
        let track = self.tracks.get(uuid);
        let counter = track.and_then(|track| track.counter.as_ref());
        let multiplier = counter.map_or(1, |counter| counter.multiplier);
        let mut value = match (whole, fraction) {
            (Some(whole), _) => match whole.checked_mul(multiplier) {
                Some(whole) => (whole, None),
                None => (0, Some(whole as f64 * multiplier as f64)),
            },
            (None, Some(fraction)) => (0, Some(fraction * multiplier as f64)),
            (None, None) => return self.skip("counter event without a value"),
        };
        if counter.is_some_and(|counter| counter.incremental) {
            let sequence = self.sequences.entry(number).or_default();
            let Some(sum) = sequence.count_on(uuid, value.0, value.1.unwrap_or(0.0), &mut self.room) else {
                return self.skip("counter beyond the limit");
            };
            value = (sum.0, (sum.1 != 0.0 || value.1.is_some()).then_some(sum.1 + sum.0 as f64));
        }
        let mut bag = self.spare.take();
        bag.set_name(track.map_or(&b""[..], |track| track.name.as_bytes()));
        let unit = counter.map_or("value", |counter| counter.unit.as_str());
        bag.put(unit.as_bytes(), value.1.map_or(Arg::Int(value.0), Arg::Float));
        let (place, owner) = (Place::Track(uuid), self.tracks.owner(uuid));
        let what = What::Counter;
        out.push(Decoded {
            place,
            owner,
            what,
            at_ns,
            bag,
            thread_ns: None,
            instructions: None,
            sequence: number,
            offset,
        });
    }
}

/// Where an event belongs, and its process and thread.
fn place(event: &TrackEvent<'_>, uuid: u64, tracks: &Tracks, sequence: &Sequence) -> (Place, (u32, u32)) {
    let legacy = event.legacy.unwrap_or_default();
    if uuid != 0 {
        return match tracks.place(uuid) {
            Place::Thread { pid, tid } => (Place::Thread { pid, tid }, (pid, tid)),
            place => (place, tracks.owner(uuid)),
        };
    }
    // The thread that the sequence or the event itself names, as events had it before there were tracks. A track 0 that is named with a type is
    // the track of all.
    let thread = match (legacy.pid, legacy.tid, sequence.thread) {
        (Some(pid), tid, _) => Some((pid, tid.unwrap_or(0))),
        (None, Some(tid), Some((pid, _))) => Some((pid, tid)),
        (None, _, thread) => thread,
    };
    match thread {
        Some((pid, tid)) if event.track.is_none() || event.kind.is_none() => (Place::Thread { pid, tid }, (pid, tid)),
        _ => (Place::Track(0), tracks.owner(0)),
    }
}

/// The place of events that belong together by an id: those of another category or scope are others.
fn of_id(id: Id, cat: &str, scope: &[u8], pid: u32) -> Place {
    let mut hash = XxHash64::with_seed(0);
    let (Id::Unscoped(number) | Id::Local(number) | Id::Global(number)) = id;
    number.hash(&mut hash);
    cat.hash(&mut hash);
    scope.hash(&mut hash);
    Place::Id { hash: hash.finish(), pid: if matches!(id, Id::Local(_)) { pid } else { 0 } }
}
