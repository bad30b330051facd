//! Traces of Perfetto: `.pftrace`, `.perfetto-trace`. A file is a row of packets; those with track events and what they need are read, all
//! others are counted by their type.
//!
//! | module | holds |
//! |---|---|
//! | `packet` | one packet: what all have, and what it carries |
//! | `sequence` | what holds for the packets of one sequence: interned texts, defaults |
//! | `clocks` | clock snapshots, and times of packets on the trace's clock |
//! | `tracks` | descriptions of tracks, processes, threads |
//! | `event`, `annotation` | track events and their arguments |
//! | `reader` | packets → events with time and place |
//! | `slices` | begins and ends → spans |
//! | `names` | names of what is not read |
//!
//! The first pass collects what packets say of tracks and clocks, and finds tracks whose events are not in the order of time.

mod annotation;
mod clocks;
mod event;
mod names;
mod packet;
mod reader;
mod sequence;
mod slices;
#[cfg(test)]
mod tests;
mod tracks;

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::rc::Rc;

use self::clocks::Clocks;
use self::packet::{Packet, Payload};
use self::reader::{Decoded, Reader, What};
use self::slices::{Output, Slices};
use self::tracks::{Place, Tracks};
use super::wire::{self, Fields, Value};
use crate::event::Process;
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;
use crate::{ImportError, Result};

/// The format.
pub const FORMAT: Format = Format {
    kind: "perfetto",
    title: "Perfetto trace",
    carries: "track events (spans, instants, counters) with their arguments and flows, names of processes, threads and tracks, clock snapshots; \
              other packets are counted by type",
    example: "small.pftrace",
    detect,
    survey: Some(survey),
    read,
};

/// Longer packets are passed over.
const LONGEST_PACKET: u64 = 64 << 20;
/// What compressed packets hold at most.
const MOST_UNPACKED: u64 = 1 << 30;
/// Tracks whose order the first pass watches.
const MOST_WATCHED: usize = 1 << 20;

/// What the first pass found.
#[derive(Debug, Default)]
struct Facts {
    tracks: Rc<Tracks>,
    clocks: Clocks,
    disordered: HashSet<Place>,
}

fn detect(head: &Head<'_>) -> Confidence {
    let named = [".pftrace", ".perfetto-trace", ".perfetto_trace"].iter().any(|end| head.name.ends_with(end));
    let (mut rest, mut whole, mut headed) = (head.bytes, 0, false);
    while let Some(bytes) = rest.strip_prefix(b"\x0A") {
        rest = bytes;
        let Some(length) = wire::varint(&mut rest).and_then(|length| usize::try_from(length).ok()) else { break };
        let packet = &rest[..length.min(rest.len())];
        let mut fields = Fields::new(packet);
        let good = fields.by_ref().all(|(field, value)| {
            headed |= matches!((field, value), (3 | 8 | 10 | 13 | 41 | 58, Value::Varint(_)));
            packet::is_field(field, value)
        });
        let cut = length > rest.len();
        if !good || (fields.damaged() && !cut) {
            return Confidence::No;
        }
        if cut {
            rest = &[];
            break;
        }
        whole += usize::from(length > 0);
        rest = &rest[length..];
    }
    // A file is cut to a beginning, so that only a small one tells its end.
    let all = rest.is_empty() || rest.len() < 10;
    match (named, headed, whole) {
        _ if !all => Confidence::No,
        (true, true, _) => Confidence::Certain,
        (false, true, 1..) => Confidence::Likely,
        (true, false, 1..) => Confidence::Likely,
        _ => Confidence::No,
    }
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let mut reader = Reader::first();
    let mut last: HashMap<Place, i64> = HashMap::new();
    let mut disordered = HashSet::new();
    let walked = packets(input, &mut reader, &mut |reader, decoded, _| {
        for decoded in decoded {
            let paired = matches!(decoded.what, What::Begin | What::End | What::Complete(_));
            let room = last.len() < MOST_WATCHED;
            match last.get_mut(&decoded.place) {
                _ if !paired => {}
                Some(before) if *before <= decoded.at_ns => *before = decoded.at_ns,
                Some(_) if disordered.len() < MOST_WATCHED => _ = disordered.insert(decoded.place),
                Some(_) => {}
                None if room => _ = last.insert(decoded.place, decoded.at_ns),
                None => {}
            }
            reader.spare.give(decoded.bag);
        }
        Ok(())
    });
    // The second pass tells of damage, with what there is before it.
    if let Err(error @ ImportError::Io { .. }) = walked {
        return Err(error);
    }
    let Reader { tracks, mut clocks, .. } = reader;
    clocks.settle();
    // A track may have been described behind its events.
    let disordered = disordered.into_iter().map(|place| match place {
        Place::Track(uuid) => tracks.place(uuid),
        place => place,
    });
    let facts = Facts { disordered: disordered.collect(), tracks, clocks };
    survey.keep(input.name(), facts);
    Ok(())
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let none = Facts::default();
    let facts: &Facts = survey.kept(input.name()).unwrap_or(&none);
    let (clock, stepped) = facts.clocks.to_utc();
    let clock = sink.clock(clock);
    for _ in 0..stepped {
        sink.skip("clock snapshot that shows a wall clock which was set", 0);
    }
    for (pid, who) in &facts.tracks.processes {
        let command: Vec<&str> = who.command.iter().map(String::as_str).collect();
        let exe = command.first().copied().unwrap_or_default();
        sink.process(&Process {
            pid: *pid,
            name: &who.name,
            ppid: who.ppid,
            exe,
            command: &command,
            ..Process::default()
        })?;
    }
    for _ in 0..facts.tracks.refused {
        sink.skip("description of a track, process or thread beyond the limit", 0);
    }
    let mut reader = Reader::second(Rc::clone(&facts.tracks), facts.clocks.clone());
    let mut slices = Slices::new(facts.disordered.clone());
    let walked = packets(input, &mut reader, &mut |reader, decoded, offset| {
        for reason in reader.skipped.drain(..) {
            sink.skip(&reason, offset);
        }
        let mut out = Output { sink, clock: &clock, tracks: &reader.tracks, spare: &mut reader.spare };
        decoded.into_iter().try_for_each(|decoded| slices.take(decoded, &mut out))
    });
    slices.finish(&mut reader, sink, &clock)?;
    walked
}

/// What is done with the events of a packet, and where it is.
type Each<'a> = dyn FnMut(&mut Reader, std::vec::Drain<'_, Decoded>, u64) -> Result<()> + 'a;

/// Goes through the packets of a file.
fn packets(input: &mut Input<'_>, reader: &mut Reader, each: &mut Each<'_>) -> Result<()> {
    let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
    while let Some((at, found)) = next_packet(input, &mut bytes)? {
        let packet = match found {
            Found::Packet => Packet::parse(&bytes),
            Found::Long => {
                reader.skipped.push("packet longer than 64 MiB".into());
                Some(Packet::default())
            }
            Found::Other(field) => {
                reader.skipped.push(format!("field {field} of the trace").into());
                Some(Packet::default())
            }
        };
        match packet.map(|packet| (packet, packet.payload)) {
            Some((_, Some(Payload::Zlib(packed)))) => {
                unpacked(&mut flate2::read::ZlibDecoder::new(packed), at, input.name(), reader, &mut decoded, each)?;
            }
            Some((_, Some(Payload::Zstd(packed)))) => match zstd::Decoder::with_buffer(packed) {
                Ok(mut decoder) => unpacked(&mut decoder, at, input.name(), reader, &mut decoded, each)?,
                Err(_) => reader.skipped.push(DAMAGED.into()),
            },
            Some((packet, _)) if found == Found::Packet => reader.packet(&packet, at, &mut decoded),
            Some(_) => {}
            None => reader.skipped.push("damaged packet".into()),
        }
        each(reader, decoded.drain(..), at)?;
    }
    Ok(())
}

/// Why compressed packets are left out.
const DAMAGED: &str = "damaged compressed packets";

/// Goes through compressed packets. Damage in them is counted, since the packets behind them are whole.
fn unpacked(
    decoder: &mut dyn Read,
    at: u64,
    name: &str,
    reader: &mut Reader,
    decoded: &mut Vec<Decoded>,
    each: &mut Each<'_>,
) -> Result<()> {
    let mut limited = decoder.take(MOST_UNPACKED);
    let mut input = Input::new(name, &mut limited);
    let mut bytes = Vec::new();
    loop {
        match next_packet(&mut input, &mut bytes) {
            Ok(Some((_, Found::Packet))) => match Packet::parse(&bytes) {
                Some(packet) => reader.packet(&packet, at, decoded),
                None => reader.skipped.push("damaged packet".into()),
            },
            Ok(Some(_)) => reader.skipped.push("packet longer than 64 MiB".into()),
            Ok(None) if input.offset() < MOST_UNPACKED => return Ok(()),
            // The limit, or what is no compressed text.
            Ok(None) | Err(_) => {
                reader.skipped.push(DAMAGED.into());
                return Ok(());
            }
        }
        each(reader, decoded.drain(..), at)?;
    }
}

/// What a field of the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Packet,
    Long,
    Other(u32),
}

/// The next field of the file, with its place; a packet is in the buffer then.
fn next_packet(input: &mut Input<'_>, bytes: &mut Vec<u8>) -> Result<Option<(u64, Found)>> {
    let at = input.offset();
    let Some((field, head)) = wire::next(input, u64::MAX)? else { return Ok(None) };
    let found = match (field, head) {
        (1, wire::Head::Bytes(length)) if length <= LONGEST_PACKET => {
            wire::load(input, length, bytes)?;
            Found::Packet
        }
        (field, wire::Head::Bytes(length)) => {
            input.pass(length)?;
            if field == 1 { Found::Long } else { Found::Other(field) }
        }
        (field, wire::Head::Number(_)) => Found::Other(field),
    };
    Ok(Some((at, found)))
}
