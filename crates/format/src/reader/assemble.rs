//! Turns blocks of a source into events: inflates and splits them in parallel, checks and delivers them in order.

use std::io;
use std::ops::Range;

use super::Summary;
use crate::damage::{Damage, Place, What};
use crate::dialect::{Dialect, Reading};
use crate::event::Phase;
use crate::json::Raw;
use crate::member::{InflateError, inflate_member, inflate_torn};
use crate::objects::{Item, Items};
use crate::quick::NO_TIME;
use crate::sequences::Sequences;
use crate::source::{Block, Input, Packed, Source};
use crate::text::unescape;
use crate::threads::map_all;
use crate::view::EventView;

/// An event that is longer is taken for damage: something opened a bracket and never closed it.
pub(super) const MAX_CARRY: usize = 64 << 20;
/// Less text than this is not worth another thread.
const MIN_PIECE: usize = 256 << 10;

/// Takes the events of a stretch of the trace, in pieces that are in order.
pub(super) type Deliver<'d> = dyn FnMut(&[Vec<EventView<'_>>]) + 'd;

/// Reads a whole input on up to `threads` threads.
pub(super) fn assemble<I: Input + ?Sized>(input: &I, threads: usize, deliver: &mut Deliver<'_>) -> io::Result<Summary> {
    let mut source = Source::new(input)?;
    let reading = source.reading()?;
    let mut judge = Judge::new(reading, threads);
    let mut carry = Vec::new();
    while let Some(block) = source.next_block(std::mem::take(&mut carry))? {
        match block {
            Block::Members(members) => judge.members(&members, deliver),
            Block::Text { bytes, place, last } => {
                if let Some(rest) = judge.text(&bytes, place, last, reading, deliver) {
                    carry = bytes;
                    carry.drain(..rest);
                }
            }
        }
    }
    judge.damage_of_source(source.damage);
    Ok(judge.finish())
}

/// The events of one of our own members, in order.
pub(super) fn scan_member(text: &[u8], each: &mut dyn FnMut(&EventView<'_>)) {
    for item in Items::new(text, Reading::own(), true) {
        if let Item::Event(event) = item {
            each(&event);
        }
    }
}

/// What a piece of text holds.
struct Piece<'a> {
    events: Vec<EventView<'a>>,
    /// All that is no event, in order.
    notes: Vec<Item<'a>>,
    /// Where events stand whose time cannot be used.
    without_time: Vec<usize>,
    /// Where an object starts whose end is not in the piece.
    incomplete: Option<usize>,
}

fn split(text: &[u8], reading: Reading, last: bool) -> Piece<'_> {
    // Few events are shorter than this; growing by copying would cost more than the room.
    let mut piece = Piece {
        events: Vec::with_capacity(text.len() / 160),
        notes: Vec::new(),
        without_time: Vec::new(),
        incomplete: None,
    };
    let mut items = Items::new(text, reading, last);
    while let Some(item) = items.next() {
        match item {
            Item::Event(event) => {
                if event.lacks_time() {
                    piece.without_time.push(items.at() - event.raw().len());
                }
                piece.events.push(event);
            }
            Item::Incomplete(at) => piece.incomplete = Some(at),
            note => piece.notes.push(note),
        }
    }
    piece
}

/// What has been seen so far.
struct Judge {
    summary: Summary,
    threads: usize,
    /// Whether the header of an object file was seen: pairs outside of objects then belong to it.
    header: bool,
    sequences: Sequences,
}

impl Judge {
    fn new(reading: Reading, threads: usize) -> Judge {
        Judge {
            threads,
            summary: Summary { dialect: reading.dialect, ..Summary::default() },
            header: false,
            sequences: Sequences::default(),
        }
    }

    fn members(&mut self, members: &[Packed], deliver: &mut Deliver<'_>) {
        self.summary.dialect = Dialect::Weftline;
        let texts = map_all(self.threads, members, |member| match inflate_member(&member.bytes) {
            Err(InflateError::Cut) => Ok(inflate_torn(&member.bytes)),
            other => other,
        });
        let reading = Reading::own();
        let pieces = map_all(self.threads, &texts, |text| text.as_ref().map(|text| split(text, reading, true)));
        let mut delivered = Vec::with_capacity(pieces.len());
        for ((member, piece), text) in members.iter().zip(pieces).zip(&texts) {
            let place = Place::File(member.at);
            match piece {
                Err(error) => {
                    let lost = member.bytes.len() as u64;
                    self.summary.damage.add(place, What::BadGzip, lost, error.to_string());
                }
                Ok(piece) => {
                    let text_len = text.as_ref().map_or(0, Vec::len);
                    self.judge_member(member, &piece, text_len);
                    self.judge_piece(&piece, |at| Place::Member { member: member.at, text: at as u64 });
                    delivered.push(piece.events);
                }
            }
        }
        deliver(&delivered);
    }

    fn judge_member(&mut self, member: &Packed, piece: &Piece<'_>, text_len: usize) {
        let found = piece.events.iter().filter(|event| event.phase != Phase::Metadata).count() as u64;
        let announced = u64::from(member.header.count);
        let place = Place::File(member.at);
        if member.torn {
            let note = format!("{found} of {announced} events could be read, {text_len} bytes of text");
            self.summary.damage.add(place, What::TornMember, member.bytes.len() as u64, note);
            return;
        }
        if found != announced {
            self.summary.damage.add(place, What::WrongCount, 0, format!("{announced} announced, {found} found"));
        }
        let identity = piece.events.first().filter(|event| event.cat == crate::identity::CATEGORY);
        let image = identity.and_then(|event| event.arg_str("nonce")).unwrap_or_default();
        self.sequences.note(&image, member.header.seq, member.at);
    }

    /// Splits a text and delivers its events. Where it ends within an object, tells where that starts.
    fn text(
        &mut self,
        bytes: &[u8],
        place: Place,
        last: bool,
        reading: Reading,
        deliver: &mut Deliver<'_>,
    ) -> Option<usize> {
        let last = last || bytes.len() > MAX_CARRY;
        let cuts = cut_at_lines(bytes, self.threads);
        let end = bytes.len();
        let mut pieces =
            map_all(self.threads, &cuts, |cut| split(&bytes[cut.clone()], reading, last && cut.end == end));
        let mut starts: Vec<usize> = cuts.iter().map(|cut| cut.start).collect();
        let (ending, others) = pieces.split_last()?;
        let mut rest = ending.incomplete.map(|at| starts[others.len()] + at);
        if others.iter().any(|piece| piece.incomplete.is_some()) {
            // An event spans a cut. That is rare, or the whole text is so: one piece is then the right thing.
            let whole = split(bytes, reading, last);
            rest = whole.incomplete;
            pieces = vec![whole];
            starts = vec![0];
        }
        for (piece, start) in pieces.iter().zip(starts) {
            self.judge_piece(piece, |at| shifted(place, (start + at) as u64));
        }
        let delivered: Vec<_> = pieces.into_iter().map(|piece| piece.events).collect();
        deliver(&delivered);
        rest
    }

    fn judge_piece(&mut self, piece: &Piece<'_>, place: impl Fn(usize) -> Place) {
        self.summary.events += piece.events.len() as u64;
        for event in &piece.events {
            self.summary.names.learn(event);
        }
        for at in &piece.without_time {
            self.summary.damage.add(place(*at), What::BadTime, 0, NO_TIME);
        }
        for note in &piece.notes {
            match note {
                Item::Header(pairs) => {
                    self.header = true;
                    for (key, value) in pairs {
                        self.put_aside(key, *value);
                    }
                }
                Item::Pair { key, value, .. } if self.header => self.put_aside(key, *value),
                Item::Pair { at, len, .. } => {
                    self.summary.damage.add(place(*at), What::BadLine, *len as u64, "a value outside of any event");
                }
                Item::Flaw { at, len, what, note } => {
                    self.summary.damage.add(place(*at), *what, *len as u64, *note);
                }
                Item::Event(_) | Item::Incomplete(_) => {}
            }
        }
    }

    fn put_aside(&mut self, key: &[u8], value: Raw<'_>) {
        self.summary.aside.push((unescape(key).into_owned(), value.to_value(Dialect::Chrome)));
    }

    /// What was wrong with the file itself comes before what was wrong with its text.
    fn damage_of_source(&mut self, source: Damage) {
        let mut damage = source;
        let text = std::mem::take(&mut self.summary.damage);
        damage.lost += text.lost;
        damage.unlisted += text.unlisted;
        for flaw in text.flaws {
            if damage.flaws.len() < Damage::LISTED {
                damage.flaws.push(flaw);
            } else {
                damage.unlisted += 1;
            }
        }
        self.summary.damage = damage;
    }

    fn finish(mut self) -> Summary {
        self.sequences.judge(true, &mut self.summary.damage);
        self.summary
    }
}

fn shifted(place: Place, by: u64) -> Place {
    match place {
        Place::File(at) => Place::File(at + by),
        Place::Inflated(at) => Place::Inflated(at + by),
        member => member,
    }
}

/// Ranges of a text that end at line ends, about as many as can be worked on side by side.
fn cut_at_lines(text: &[u8], threads: usize) -> Vec<Range<usize>> {
    let size = (text.len() / (2 * threads)).max(MIN_PIECE);
    let mut cuts = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let tentative = start.saturating_add(size).min(text.len());
        let end = memchr::memchr(b'\n', &text[tentative..]).map_or(text.len(), |found| tentative + found + 1);
        cuts.push(start..end);
        start = end;
    }
    cuts
}
