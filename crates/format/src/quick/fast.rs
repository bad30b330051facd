//! The fast path: reads an event with known links, without parsing its keys.
//!
//! It reads values in the most common form (strings without escapes, integers of at most 18 digits) and
//! leaves all others to the checked path. Arguments without a column go through the ordinary scanner.

use super::checked::{meant_i64, push_field};
use super::shapes::{Follows, Place, Shapes, load16, slot};
use super::{Form, INTEGERS, Record, Scratch};
use crate::dialect::Reading;
use crate::event::Phase;
use crate::json::{Raw, Scanner, stops};

/// Why an event has to go the checked way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Miss {
    /// A link that no known event has at that place.
    Link,
    /// A value in an uncommon form.
    Value,
}

/// The values of an event while it is read.
struct Draft<'a> {
    integers: [i64; slot::INTEGER_SLOTS],
    /// Which of them are there.
    present: u32,
    texts: [Option<&'a str>; slot::TEXT_SLOTS],
    /// Bit `i`: text `i` is a number.
    numbers: u32,
}

/// Fields that are kept as text: a stretch of the line, or put together elsewhere where they do not stand side by side.
#[derive(Clone, Copy, Default)]
struct Kept {
    start: usize,
    end: usize,
    elsewhere: bool,
}

impl Kept {
    /// Adds a field: where its key and the end of its value are, and whether there is no space between them.
    #[inline]
    fn add(&mut self, text: &str, field: &Field<'_>, closely: bool, scratch: &mut String) {
        if closely && self.end == 0 {
            (self.start, self.end) = (field.key, field.end);
        } else if closely && self.end + 1 == field.key && !self.elsewhere {
            // The one byte between two fields can only be their comma.
            self.end = field.end;
        } else {
            self.add_elsewhere(text, field, scratch);
        }
    }

    #[cold]
    fn add_elsewhere(&mut self, text: &str, field: &Field<'_>, scratch: &mut String) {
        if !self.elsewhere {
            scratch.clear();
            scratch.push_str(text.get(self.start..self.end).unwrap_or_default());
            self.elsewhere = true;
        }
        let key = Scanner::new(text.as_bytes(), field.key).key().unwrap_or_default();
        push_field(scratch, key, field.value);
        self.end = field.end;
    }

    #[inline]
    fn text<'a>(self, text: &'a str, scratch: &'a str) -> &'a str {
        if self.elsewhere { scratch } else { text.get(self.start..self.end).unwrap_or_default() }
    }
}

/// A field that is kept as text.
struct Field<'a> {
    key: usize,
    value: Raw<'a>,
    end: usize,
}

impl<'a> Field<'a> {
    /// Reads the value at `at` with every check.
    #[inline]
    fn read(bytes: &'a [u8], key: usize, at: usize, depth: Depth) -> Result<Field<'a>, Miss> {
        if bytes.get(at).is_none_or(u8::is_ascii_whitespace) {
            return Err(Miss::Value);
        }
        if let Ok((_, end)) = integer(bytes, at)
            && !is_fraction(bytes, end)
        {
            return Ok(Field { key, value: Raw::Number(&bytes[at..end]), end });
        }
        let mut scanner = Scanner::new(bytes, at);
        let value = match depth {
            Depth::Event => scanner.value(),
            Depth::Arguments => scanner.value_within_object(),
        };
        Ok(Field { key, value: value.map_err(|_| Miss::Value)?, end: scanner.at() })
    }
}

/// Where a field stands, which decides how deep its value may be nested.
#[derive(Clone, Copy)]
enum Depth {
    Event,
    Arguments,
}

/// How events are read.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) reading: Reading,
    /// Slots of integers that the caller does not need, as bits.
    pub(super) unread: u32,
}

/// Reads the event that starts at `at`, and tells where it ends.
#[inline]
pub(super) fn event(
    text: &str,
    mut at: usize,
    shapes: &mut Shapes,
    how: How,
    scratch: &mut Scratch,
    each: &mut impl FnMut(&Record<'_>),
) -> Result<usize, Miss> {
    let bytes = text.as_bytes();
    let mut draft =
        Draft { integers: [0; slot::INTEGER_SLOTS], present: 0, texts: [None; slot::TEXT_SLOTS], numbers: 0 };
    let (mut rest, mut extra) = (Kept::default(), Kept::default());
    let mut place = Place::START;
    loop {
        let Some(node) = shapes.next(&mut place, bytes, at) else { return Err(why_not(bytes, at)) };
        let link = at;
        at += usize::from(node.len);
        let slot = node.slot;
        // Most values are integers. Asked for first, they spare the processor a jump whose target it must guess.
        if node.follows == Follows::Integer {
            if node.bit & how.unread != 0
                && let Some(end) = digits_end(bytes, at)
            {
                at = end;
            } else if let Ok((v, end)) = integer(bytes, at) {
                draft.integers[usize::from(slot) % slot::INTEGER_SLOTS] = v;
                draft.present |= node.bit;
                at = end;
            } else if usize::from(slot) >= INTEGERS.len() || too_long(bytes, at) {
                return Err(Miss::Value);
            } else {
                let field = Field::read(bytes, link + usize::from(node.key), at, Depth::Arguments)?;
                if let Some(v) = meant_i64(field.value) {
                    draft.integers[usize::from(slot) % slot::INTEGER_SLOTS] = v;
                    draft.present |= node.bit;
                }
                rest.add(text, &field, node.closely, &mut scratch.rest);
                at = field.end;
            }
            continue;
        }
        match node.follows {
            Follows::Integer => {}
            Follows::Text => {
                let (inside, end) = string(text, at)?;
                draft.texts[usize::from(slot) % slot::TEXT_SLOTS] = Some(inside);
                at = end;
                if slot == slot::NAME {
                    place.follow(inside);
                }
            }
            Follows::Hash => {
                let (hash, is_number, end) = hash(text, at)?;
                draft.texts[usize::from(slot) % slot::TEXT_SLOTS] = Some(hash);
                draft.numbers |= u32::from(is_number) << slot;
                at = end;
            }
            Follows::Rest => {
                let field = Field::read(bytes, link + usize::from(node.key), at, Depth::Arguments)?;
                rest.add(text, &field, node.closely, &mut scratch.rest);
                at = field.end;
            }
            Follows::Extra => {
                let field = Field::read(bytes, link + usize::from(node.key), at, Depth::Event)?;
                extra.add(text, &field, node.closely, &mut scratch.extra);
                at = field.end;
            }
            Follows::End => {
                let (start_ns, dur_ns) = draft.times(how.reading).ok_or(Miss::Value)?;
                let [name, cat, fhash, hhash] = draft.texts;
                let (phase, known_cat) = (node.phase, node.cat);
                if start_ns.is_none() && phase != Phase::Metadata {
                    return Err(Miss::Value);
                }
                each(&Record {
                    phase,
                    name: name.unwrap_or_default(),
                    cat: cat.unwrap_or_else(|| shapes.cat(known_cat)),
                    pid: draft.integers[usize::from(slot::PID)],
                    tid: draft.integers[usize::from(slot::TID)],
                    start_ns,
                    dur_ns,
                    id: draft.integer(slot::ID),
                    fhash,
                    hhash,
                    fhash_is_number: draft.numbers & 1 << slot::FHASH != 0,
                    hhash_is_number: draft.numbers & 1 << slot::HHASH != 0,
                    present: draft.present & ((1 << INTEGERS.len()) - 1),
                    integers: *draft.integers.first_chunk().unwrap_or(&[0; INTEGERS.len()]),
                    rest: rest.text(text, &scratch.rest),
                    extra: extra.text(text, &scratch.extra),
                    has_args: slot & slot::HAS_ARGS != 0,
                    form: Form::from_bits(slot & !slot::HAS_ARGS),
                });
                return Ok(at);
            }
        }
    }
}

impl Draft<'_> {
    #[inline(always)]
    fn integer(&self, slot: u8) -> Option<i64> {
        (self.present & 1 << slot != 0).then_some(self.integers[usize::from(slot)])
    }

    /// Start and duration, where they are exact and fit.
    #[inline]
    fn times(&self, reading: Reading) -> Option<(Option<i64>, Option<i64>)> {
        let (ts, dur) = (self.integer(slot::TS), self.integer(slot::DUR));
        if reading.dialect.is_own() {
            return self.own_times(ts, dur);
        }
        let scaled = |v: Option<i64>| v.map_or(Some(None), |v| v.checked_mul(reading.unit_ns).map(Some));
        let (start, dur) = (scaled(ts)?, scaled(dur)?);
        if let Some(dur) = dur {
            start?.checked_add(dur)?;
        }
        Some((start, dur))
    }

    /// Ours: whole microseconds, and the remainders of both ends.
    fn own_times(&self, ts: Option<i64>, dur: Option<i64>) -> Option<(Option<i64>, Option<i64>)> {
        let remainders = match self.integer(slot::NS) {
            Some(ns) => Some(ns).filter(|ns| (1..1_000_000).contains(ns))?,
            None => 0,
        };
        let Some(ts) = ts else {
            return (dur.is_none() && remainders == 0).then_some((None, None));
        };
        let start = ts.checked_mul(1000)?.checked_add(remainders / 1000)?;
        let Some(dur) = dur else {
            return (remainders % 1000 == 0).then_some((Some(start), None));
        };
        let end = ts.checked_add(dur)?.checked_mul(1000)?.checked_add(remainders % 1000)?;
        Some((Some(start), Some(end.checked_sub(start)?)))
    }
}

/// Text without escapes, and where the value ends.
#[inline(always)]
fn string(text: &str, start: usize) -> Result<(&str, usize), Miss> {
    let bytes = text.as_bytes();
    let mut at = start;
    loop {
        // Sixteen bytes at once: the lengths of names vary, and each loop that ends elsewhere than last time costs as much
        // as ten that do not.
        let stops = stops16(load16(bytes, at));
        if stops != 0 {
            return closed(text, start, at + (stops.trailing_zeros() / 8) as usize);
        }
        at += 16;
        match bytes.get(at) {
            // As in a hash of sixteen digits.
            Some(b'"') => return closed(text, start, at),
            Some(_) => {}
            None => return Err(Miss::Value),
        }
    }
}

/// Marks the bytes that end a string or need a look: a quote, a backslash, a newline. The lowest mark is never wrong.
#[inline(always)]
fn stops16(bytes: u128) -> u128 {
    let (low, high) = (stops(bytes as u64), stops((bytes >> 64) as u64));
    u128::from(low) | u128::from(high) << 64
}

#[inline(always)]
fn closed(text: &str, start: usize, end: usize) -> Result<(&str, usize), Miss> {
    if text.as_bytes().get(end) != Some(&b'"') {
        return Err(Miss::Value);
    }
    Ok((text.get(start..end).ok_or(Miss::Value)?, end + 1))
}

/// A hash, whether it is a number, and where it ends.
#[inline(always)]
fn hash(text: &str, at: usize) -> Result<(&str, bool, usize), Miss> {
    let bytes = text.as_bytes();
    match bytes.get(at) {
        Some(b'"') => {
            let (inside, end) = string(text, at + 1)?;
            Ok((inside, false, end))
        }
        Some(b'1'..=b'9') => {
            let end = at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
            Ok((text.get(at..end).ok_or(Miss::Value)?, true, end))
        }
        _ => Err(Miss::Value),
    }
}

/// Why no link stands at a place: behind an integer it may be the rest of another kind of number.
#[cold]
fn why_not(bytes: &[u8], at: usize) -> Miss {
    if is_fraction(bytes, at) { Miss::Value } else { Miss::Link }
}

/// Whether a number that could be an integer goes on as something else.
#[inline(always)]
fn is_fraction(bytes: &[u8], at: usize) -> bool {
    // Both letters differ in one bit.
    bytes.get(at).is_none_or(|&b| (b == b'.') | (b | 0x20 == b'e'))
}

/// An integer with more digits than are read here; it may still fit a column.
#[cold]
fn too_long(bytes: &[u8], at: usize) -> bool {
    let digits = bytes.get(at..).unwrap_or_default();
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    digits.iter().take_while(|b| b.is_ascii_digit()).count() > MAX_DIGITS
}

/// Integers of so many digits fit whatever they are.
const MAX_DIGITS: usize = 18;

/// An integer in the form that all writers of JSON give it, and where it ends. That no fraction follows shows by the link
/// that must.
#[inline(always)]
fn integer(bytes: &[u8], at: usize) -> Result<(i64, usize), Miss> {
    match bytes.get(at) {
        Some(b'-') => {
            let (v, end) = digits(bytes, at + 1)?;
            if v == 0 { Err(Miss::Value) } else { Ok((-v, end)) }
        }
        _ => digits(bytes, at),
    }
}

/// Where up to 15 digits end, if they are an integer in the usual form.
#[inline(always)]
fn digits_end(bytes: &[u8], start: usize) -> Option<usize> {
    let word = digit_bytes(bytes, start);
    let mut len = count(word);
    if len == 8 {
        len += count(digit_bytes(bytes, start + 8));
    }
    let needless_zero = (len > 1) & (word & 0xff == 0);
    ((1..16).contains(&len) & !needless_zero).then_some(start + len)
}

/// Up to 18 digits, eight at a time.
#[inline(always)]
fn digits(bytes: &[u8], start: usize) -> Result<(i64, usize), Miss> {
    const POWERS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let word = digit_bytes(bytes, start);
    let mut len = count(word);
    let mut v = first_digits(word, len);
    if len == 8 {
        for _ in 0..2 {
            let word = digit_bytes(bytes, start + len);
            let more = count(word);
            if more == 0 {
                break;
            }
            len += more;
            if len > MAX_DIGITS {
                return Err(Miss::Value);
            }
            v = v * POWERS[more] + first_digits(word, more);
        }
    }
    let needless_zero = (len > 1) & (word & 0xff == 0);
    if (len == 0) | needless_zero {
        return Err(Miss::Value);
    }
    Ok((v as i64, start + len))
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Eight bytes from a place on; those that are digits as their values.
#[inline(always)]
fn digit_bytes(bytes: &[u8], at: usize) -> u64 {
    load8(bytes, at) ^ (ONES * 0x30)
}

/// How many of the bytes, from the first on, are digits.
#[inline(always)]
fn count(word: u64) -> usize {
    // A byte of at most nine stays below 0x80; all others are marked. A carry only reaches bytes behind a marked one.
    let marks = (word.wrapping_add(ONES * 0x76) | word) & (ONES * 0x80);
    (marks.trailing_zeros() / 8) as usize
}

/// The value of the first `len` digits, at least one.
#[inline(always)]
fn first_digits(word: u64, len: usize) -> u64 {
    // Moved up, so that zeros stand before the digits.
    joined(word.wrapping_shl(64 - 8 * len as u32))
}

/// Eight bytes of one digit each, the lowest byte first in the number: neighbours are joined three times. Of other bytes
/// it makes a number that means nothing.
#[inline(always)]
fn joined(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// Eight bytes from a place on; zeros stand for those behind the end.
#[inline(always)]
fn load8(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        Some(word) => u64::from_le_bytes(*word),
        None => load16(bytes, at) as u64,
    }
}
