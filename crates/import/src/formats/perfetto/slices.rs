//! Begins and ends → spans, per track, with the rules of Perfetto's own engine for those that do not match.
//!
//! An end closes the uppermost open span of its track whose name and category are the end's, where it tells them. Spans above that one which are
//! still open end with it, once something later shows that they should have.
//!
//! Perfetto sorts all events by time first. Here those of a track are taken as they come where they come in order, which the first pass
//! found out; those of other tracks wait in a queue of limited size.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::reader::{Decoded, Reader, Spare, What};
use super::tracks::{Place, Tracks};
use crate::Result;
use crate::clock::Clock;
use crate::event::{Arg, Event, Shape};
use crate::formats::bag::Bag;
use crate::sink::Sink;

/// Spans that are open at once, on all tracks.
const MOST_OPEN: usize = 1 << 20;
/// Spans within each other, on one track. Perfetto itself takes 255.
const DEEPEST: usize = 4096;
/// Bytes that they, and the events that wait, may take each.
const MOST_BYTES: usize = 256 << 20;
/// Events of tracks out of order that wait for earlier ones.
const MOST_WAITING: usize = 1 << 18;
/// Empty stacks that are kept.
const MOST_EMPTY: usize = 1 << 16;

/// A span that began.
#[derive(Debug)]
struct Open {
    start_ns: i64,
    /// Its end, where that is known and those above it are still open: it is written already.
    end_ns: Option<i64>,
    bag: Bag,
    owner: (u32, u32),
    thread_ns: Option<i64>,
    instructions: Option<i64>,
    sequence: u32,
    offset: u64,
}

/// An event that waits for earlier ones.
#[derive(Debug)]
struct Waiting {
    at_ns: i64,
    number: u64,
    decoded: Decoded,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

/// What is open on one track.
#[derive(Debug, Default)]
struct Stack {
    items: Vec<Open>,
    /// Those of it whose end is known. Where there is none, nothing is to be settled.
    ended: usize,
}

/// Spans of a trace in the making.
#[derive(Debug, Default)]
pub(super) struct Slices {
    stacks: HashMap<Place, Stack>,
    open: usize,
    bytes: usize,
    /// Tracks whose events are not in the order of time.
    disordered: HashSet<Place>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    waiting_bytes: usize,
    number: u64,
    named: HashSet<(u32, u32)>,
}

/// Where spans go.
pub(super) struct Output<'a> {
    pub(super) sink: &'a mut dyn Sink,
    pub(super) clock: &'a Clock,
    pub(super) tracks: &'a Tracks,
    pub(super) spare: &'a mut Spare,
}

impl Slices {
    pub(super) fn new(disordered: HashSet<Place>) -> Slices {
        Slices { disordered, ..Slices::default() }
    }

    /// One event.
    pub(super) fn take(&mut self, decoded: Decoded, out: &mut Output<'_>) -> Result<()> {
        let paired = matches!(decoded.what, What::Begin | What::End | What::Complete(_));
        if !paired || !self.disordered.contains(&decoded.place) {
            return self.apply(decoded, out);
        }
        self.number += 1;
        self.waiting_bytes += decoded.bag.weight();
        self.waiting.push(Reverse(Waiting { at_ns: decoded.at_ns, number: self.number, decoded }));
        while self.waiting.len() > MOST_WAITING || self.waiting_bytes > MOST_BYTES {
            self.apply_first(out)?;
        }
        Ok(())
    }

    fn apply_first(&mut self, out: &mut Output<'_>) -> Result<bool> {
        let Some(Reverse(first)) = self.waiting.pop() else { return Ok(false) };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(first.decoded.bag.weight());
        self.apply(first.decoded, out)?;
        Ok(true)
    }

    fn apply(&mut self, decoded: Decoded, out: &mut Output<'_>) -> Result<()> {
        match decoded.what {
            What::Begin => self.begin(decoded, out),
            What::End => self.end(decoded, out),
            What::Complete(lasted_ns) => self.complete(decoded, lasted_ns, out),
            What::Instant => {
                self.name_thread(decoded.owner, decoded.at_ns, out)?;
                let mut bag = decoded.bag;
                put_thread_state(&mut bag, decoded.thread_ns, decoded.instructions);
                put_track(&mut bag, decoded.place, out.tracks);
                emit(Shape::Instant, &bag, decoded.owner, out.clock.to_utc(decoded.at_ns), out)?;
                out.spare.give(bag);
                Ok(())
            }
            What::Counter => counter(decoded, out),
        }
    }

    fn begin(&mut self, decoded: Decoded, out: &mut Output<'_>) -> Result<()> {
        self.name_thread(decoded.owner, decoded.at_ns, out)?;
        self.settle(decoded.place, decoded.at_ns, out)?;
        let weight = decoded.bag.weight();
        let stack = self.stacks.entry(decoded.place).or_default();
        let full = self.open >= MOST_OPEN || self.bytes + weight > MOST_BYTES || stack.items.len() >= DEEPEST;
        if full {
            out.sink
                .skip("span beyond the limits: 4096 within each other, a million open ones, 256 MiB", decoded.offset);
            out.spare.give(decoded.bag);
            return Ok(());
        }
        self.open += 1;
        self.bytes += weight;
        stack.items.push(Open {
            start_ns: decoded.at_ns,
            end_ns: None,
            bag: decoded.bag,
            owner: decoded.owner,
            thread_ns: decoded.thread_ns,
            instructions: decoded.instructions,
            sequence: decoded.sequence,
            offset: decoded.offset,
        });
        Ok(())
    }

    fn end(&mut self, decoded: Decoded, out: &mut Output<'_>) -> Result<()> {
        self.settle(decoded.place, decoded.at_ns, out)?;
        let (name, cat) = (decoded.bag.name(), decoded.bag.cat());
        let fits = |open: &Open| {
            let names = name.is_empty() || open.bag.name().is_empty() || open.bag.name() == name;
            open.end_ns.is_none() && names && (cat.is_empty() || open.bag.cat() == cat)
        };
        let stack = self.stacks.get_mut(&decoded.place);
        let found = stack.and_then(|stack| Some((stack.items.iter().rposition(fits)?, stack)));
        let Some((at, stack)) = found else {
            out.sink.skip("end without a begin", decoded.offset);
            out.spare.give(decoded.bag);
            return Ok(());
        };
        let uppermost = at + 1 == stack.items.len();
        let open = &mut stack.items[at];
        open.end_ns = Some(decoded.at_ns.max(open.start_ns));
        let weight = open.bag.weight();
        let mut bag = std::mem::take(&mut open.bag);
        put_thread_state(&mut bag, open.thread_ns, open.instructions);
        if let (Some(start), Some(end)) = (open.thread_ns, decoded.thread_ns) {
            bag.put(b"thread_dur_ns", Arg::Int(end.saturating_sub(start)));
        }
        if let (Some(start), Some(end)) = (open.instructions, decoded.instructions) {
            bag.put(b"thread_instructions", Arg::Int(end.saturating_sub(start)));
        }
        bag.join(&decoded.bag);
        out.spare.give(decoded.bag);
        let (start_ns, owner) = (open.start_ns, open.owner);
        if uppermost {
            stack.items.pop();
        } else {
            stack.ended += 1;
        }
        self.open -= 1;
        self.bytes = self.bytes.saturating_sub(weight);
        self.forget(decoded.place);
        span(decoded.place, owner, (start_ns, decoded.at_ns), bag, out)
    }

    fn complete(&mut self, decoded: Decoded, lasted_ns: i64, out: &mut Output<'_>) -> Result<()> {
        self.name_thread(decoded.owner, decoded.at_ns, out)?;
        self.settle(decoded.place, decoded.at_ns, out)?;
        let end_ns = decoded.at_ns.saturating_add(lasted_ns);
        let stack = self.stacks.entry(decoded.place).or_default();
        // Those that cross it are cut at its end: it stays until then.
        if stack.items.len() < DEEPEST {
            stack.ended += 1;
            stack.items.push(Open {
                start_ns: decoded.at_ns,
                end_ns: Some(end_ns),
                bag: Bag::default(),
                owner: decoded.owner,
                thread_ns: None,
                instructions: None,
                sequence: decoded.sequence,
                offset: decoded.offset,
            });
        }
        self.forget(decoded.place);
        let mut bag = decoded.bag;
        put_thread_state(&mut bag, decoded.thread_ns, decoded.instructions);
        span(decoded.place, decoded.owner, (decoded.at_ns, end_ns), bag, out)
    }

    /// Takes off a stack what is over by then. Spans that are open above one that is over end with it.
    fn settle(&mut self, place: Place, now_ns: i64, out: &mut Output<'_>) -> Result<()> {
        let Some(stack) = self.stacks.get_mut(&place).filter(|stack| stack.ended > 0) else { return Ok(()) };
        let Stack { items: stack, ended } = stack;
        let mut open_above = false;
        for at in (0..stack.len()).rev() {
            let Some(end_ns) = stack[at].end_ns else {
                open_above = true;
                continue;
            };
            if open_above {
                if now_ns <= end_ns {
                    continue;
                }
                while stack.len() > at + 1 {
                    let Some(open) = stack.pop() else { break };
                    if open.end_ns.is_none() {
                        self.open -= 1;
                        self.bytes = self.bytes.saturating_sub(open.bag.weight());
                        out.sink.skip("end that is missing: the span ends with the one below it", open.offset);
                        let mut bag = open.bag;
                        put_thread_state(&mut bag, open.thread_ns, open.instructions);
                        span(place, open.owner, (open.start_ns, end_ns), bag, out)?;
                    }
                }
                open_above = false;
            }
            if end_ns <= now_ns {
                stack.truncate(at);
            }
        }
        *ended = stack.iter().filter(|open| open.end_ns.is_some()).count();
        Ok(())
    }

    /// Drops the stack of a track that has nothing open, where there are many.
    fn forget(&mut self, place: Place) {
        if self.stacks.len() > MOST_EMPTY && self.stacks.get(&place).is_some_and(|stack| stack.items.is_empty()) {
            self.stacks.remove(&place);
        }
    }

    /// The end of the trace: what waits is written, and what is open ends with the last event of its sequence.
    pub(super) fn finish(&mut self, reader: &mut Reader, sink: &mut dyn Sink, clock: &Clock) -> Result<()> {
        let last: HashMap<u32, i64> = {
            let waiting = self.waiting.iter().map(|waiting| waiting.0.decoded.sequence);
            let open = self.stacks.values().flat_map(|stack| &stack.items).map(|open| open.sequence);
            waiting.chain(open).filter_map(|number| Some((number, reader.last_ns(number)?))).collect()
        };
        let mut out = Output { sink, clock, tracks: &reader.tracks, spare: &mut reader.spare };
        while self.apply_first(&mut out)? {}
        let stacks = std::mem::take(&mut self.stacks);
        let open = stacks.into_iter().flat_map(|(place, stack)| stack.items.into_iter().map(move |open| (place, open)));
        let mut open: Vec<(Place, Open)> = open.filter(|(_, open)| open.end_ns.is_none()).collect();
        open.sort_by_key(|(place, open)| (open.offset, *place));
        for (place, open) in open {
            out.sink.skip("span without end", open.offset);
            let end_ns = last.get(&open.sequence).copied().unwrap_or(open.start_ns);
            let mut bag = open.bag;
            put_thread_state(&mut bag, open.thread_ns, open.instructions);
            span(place, open.owner, (open.start_ns, end_ns), bag, &mut out)?;
        }
        Ok(())
    }

    /// Says a thread's name before its first event.
    fn name_thread(&mut self, (pid, tid): (u32, u32), at_ns: i64, out: &mut Output<'_>) -> Result<()> {
        if self.named.contains(&(pid, tid)) {
            return Ok(());
        }
        let Some(name) = out.tracks.thread_name(pid, tid) else { return Ok(()) };
        self.named.insert((pid, tid));
        let (shape, start_ns) = (Shape::Metadata, out.clock.to_utc(at_ns));
        let args = &[("name", Arg::Text(name.as_bytes()))];
        out.sink.event(&Event { shape, name: "thread_name", cat: "PROCESS", pid, tid, start_ns, args })
    }
}

/// Writes a span: nested on a thread's own track, beside others anywhere else.
fn span(place: Place, owner: (u32, u32), (start, end): (i64, i64), mut bag: Bag, out: &mut Output<'_>) -> Result<()> {
    let start_ns = out.clock.to_utc(start);
    let end_ns = out.clock.to_utc(end).max(start_ns);
    let shape = if matches!(place, Place::Thread { .. }) { Shape::Span { end_ns } } else { Shape::Async { end_ns } };
    put_track(&mut bag, place, out.tracks);
    emit(shape, &bag, owner, start_ns, out)?;
    out.spare.give(bag);
    Ok(())
}

fn counter(decoded: Decoded, out: &mut Output<'_>) -> Result<()> {
    let start_ns = out.clock.to_utc(decoded.at_ns);
    let args = decoded.bag.args();
    let numbers: Vec<_> = args
        .iter()
        .filter(|(_, arg)| match arg {
            Arg::Float(number) => number.is_finite(),
            arg => matches!(arg, Arg::Int(_) | Arg::Unsigned(_)),
        })
        .copied()
        .collect();
    if numbers.is_empty() {
        out.sink.skip("counter event without a number", decoded.offset);
    } else {
        let name = if decoded.bag.name().is_empty() { "counter" } else { decoded.bag.name() };
        let cat = if decoded.bag.cat().is_empty() { "counter" } else { decoded.bag.cat() };
        let (pid, tid) = decoded.owner;
        let shape = Shape::Counter { end_ns: start_ns };
        out.sink.event(&Event { shape, name, cat, pid, tid, start_ns, args: &numbers })?;
    }
    out.spare.give(decoded.bag);
    Ok(())
}

fn emit(shape: Shape, bag: &Bag, (pid, tid): (u32, u32), start_ns: i64, out: &mut Output<'_>) -> Result<()> {
    let name = if bag.name().is_empty() { "unnamed" } else { bag.name() };
    let cat = if bag.cat().is_empty() { "track_event" } else { bag.cat() };
    out.sink.event(&Event { shape, name, cat, pid, tid, start_ns, args: &bag.args() })
}

/// The name of a track that is no thread's own.
fn put_track(bag: &mut Bag, place: Place, tracks: &Tracks) {
    if let Place::Track(uuid) = place
        && let Some(track) = tracks.get(uuid)
        && !track.name.is_empty()
    {
        bag.put(b"track", Arg::Text(track.name.as_bytes()));
    }
}

fn put_thread_state(bag: &mut Bag, thread_ns: Option<i64>, instructions: Option<i64>) {
    if let Some(ns) = thread_ns {
        bag.put(b"thread_time_ns", Arg::Int(ns));
    }
    if let Some(count) = instructions {
        bag.put(b"thread_instruction_count", Arg::Int(count));
    }
}
