//! The checked path: makes a record from a fully checked event. This code defines the meaning of a record.

use std::borrow::Cow;

use super::{Form, INTEGERS, Record, Scratch};
use crate::decimal::Decimal;
use crate::dialect::Reading;
use crate::json::Raw;
use crate::text::unescape;
use crate::view::{EventView, FieldSet, Fields};

/// Arguments that a record has fields for: the integers, then these two.
pub(super) const FHASH: usize = INTEGERS.len();
pub(super) const HHASH: usize = FHASH + 1;
const COLUMNS: usize = HHASH + 1;

/// Which of them a key is.
fn column(key: &[u8]) -> Option<usize> {
    match key {
        b"fhash" => Some(FHASH),
        b"hhash" => Some(HHASH),
        _ => INTEGERS.iter().position(|name| name.as_bytes() == key),
    }
}

/// The same for a key as it stands in the text.
pub(super) fn column_of_raw(key: &[u8]) -> Option<usize> {
    if memchr::memchr(b'\\', key).is_some() { column(unescape(key).as_bytes()) } else { column(key) }
}

/// Makes the record of an event.
pub(super) fn deliver(
    event: &EventView<'_>,
    reading: Reading,
    scratch: &mut Scratch,
    each: &mut impl FnMut(&Record<'_>),
) {
    let fields = TopLevel::of(event);
    let kept = fields.kept(event, reading);
    scratch.extra.clear();
    for (key, value) in Fields::new(event.raw()) {
        if FieldSet::of(key).is_none_or(|field| !kept.has(field)) {
            push_field(&mut scratch.extra, key, value);
        }
    }
    let arguments = Arguments::of(event.raw_args());
    scratch.rest.clear();
    for (key, value) in Fields::new(event.raw_args()) {
        if column_of_raw(key).is_none_or(|column| arguments.taken & 1 << column == 0) {
            push_field(&mut scratch.rest, key, value);
        }
    }
    let hash = |column: usize| arguments.hash(column);
    let (fhash, hhash) = (hash(FHASH), hash(HHASH));
    each(&Record {
        phase: event.phase,
        name: &event.name,
        cat: &event.cat,
        pid: event.pid,
        tid: event.tid,
        start_ns: event.start_ns,
        dur_ns: event.dur_ns,
        id: fields.id.and_then(exact_i64).filter(|_| kept.has(FieldSet::ID)),
        fhash: fhash.as_ref().map(|(text, _)| &**text),
        hhash: hhash.as_ref().map(|(text, _)| &**text),
        fhash_is_number: fhash.as_ref().is_some_and(|(_, number)| *number),
        hhash_is_number: hhash.as_ref().is_some_and(|(_, number)| *number),
        present: arguments.present,
        integers: arguments.integers,
        rest: &scratch.rest,
        extra: &scratch.extra,
        has_args: kept.has(FieldSet::ARGS),
        form: fields.form(kept),
    });
}

/// The known fields of an event as they stand, the last one where a key is repeated.
#[derive(Default)]
struct TopLevel<'a> {
    ph: Option<Raw<'a>>,
    pid: Option<Raw<'a>>,
    tid: Option<Raw<'a>>,
    ts: Option<Raw<'a>>,
    dur: Option<Raw<'a>>,
    ns: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
}

impl<'a> TopLevel<'a> {
    fn of(event: &EventView<'a>) -> TopLevel<'a> {
        let mut found = TopLevel::default();
        for (key, value) in Fields::new(event.raw()) {
            let field = match key {
                b"ph" => &mut found.ph,
                b"pid" => &mut found.pid,
                b"tid" => &mut found.tid,
                b"ts" => &mut found.ts,
                b"dur" => &mut found.dur,
                b"ns" => &mut found.ns,
                b"id" => &mut found.id,
                _ => continue,
            };
            *field = Some(value);
        }
        found
    }

    /// The fields from which the record can tell what exactly stood in the line.
    fn kept(&self, event: &EventView<'_>, reading: Reading) -> FieldSet {
        let mut kept = event.taken();
        let exact = |value: Option<Raw<'a>>| value.and_then(exact_i64).is_some();
        let mut keep = |field, exactly: bool| {
            let taken = kept.has(field);
            kept.set(field, taken && exactly);
        };
        keep(FieldSet::PH, self.ph != Some(Raw::Str(b"I")));
        keep(FieldSet::PID, exact(self.pid));
        keep(FieldSet::TID, exact(self.tid));
        keep(FieldSet::ID, exact(self.id));
        let times = self.times_are_exact(event, reading);
        keep(FieldSet::TS, times);
        keep(FieldSet::DUR, times);
        keep(FieldSet::NS, times);
        kept
    }

    /// Whether start and duration say all that the fields about time said.
    fn times_are_exact(&self, event: &EventView<'_>, reading: Reading) -> bool {
        let taken = event.taken();
        let absent_or_taken = |value: Option<Raw<'_>>, field| value.is_none() || taken.has(field);
        if !absent_or_taken(self.ts, FieldSet::TS) || !absent_or_taken(self.dur, FieldSet::DUR) {
            return false;
        }
        if !reading.dialect.is_own() {
            let whole = |value: Option<Raw<'_>>| value.is_none_or(|value| is_whole(value, reading.unit_ns));
            return whole(self.ts) && whole(self.dur);
        }
        let integer = |value: Option<Raw<'_>>| value.is_none_or(|value| exact_i64(value).is_some());
        // Remainders that are zero are left out when a line is written, and one of an end needs an end.
        let remainders = |ns: i64| self.ts.is_some() && ns != 0 && (self.dur.is_some() || ns % 1000 == 0);
        integer(self.ts)
            && integer(self.dur)
            && (self.dur.is_none() || self.ts.is_some())
            && absent_or_taken(self.ns, FieldSet::NS)
            && self.ns.is_none_or(|value| exact_i64(value).is_some_and(remainders))
    }

    fn form(&self, kept: FieldSet) -> Form {
        let mut form = Form::default();
        for (field, there) in [
            (FieldSet::NAME, Form::NAME),
            (FieldSet::CAT, Form::CAT),
            (FieldSet::PID, Form::PID),
            (FieldSet::TID, Form::TID),
        ] {
            if kept.has(field) {
                form = form.with(there);
            }
        }
        match self.ph {
            Some(Raw::Number(_)) if kept.has(FieldSet::PH) => form.with(Form::NUMBERED_PHASE),
            _ => form,
        }
    }
}

/// The arguments that a record has fields for.
struct Arguments<'a> {
    last: [Option<Raw<'a>>; COLUMNS],
    integers: [i64; INTEGERS.len()],
    /// Bit `i`: integer `i` is known.
    present: u32,
    /// Bit `i`: column `i` holds all that the line said.
    taken: u32,
}

impl<'a> Arguments<'a> {
    fn of(args: &'a [u8]) -> Arguments<'a> {
        let mut found = Arguments { last: [None; COLUMNS], integers: [0; INTEGERS.len()], present: 0, taken: 0 };
        for (key, value) in Fields::new(args) {
            if let Some(column) = column_of_raw(key) {
                found.last[column] = Some(value);
            }
        }
        for (column, value) in found.last.iter().enumerate() {
            let taken = match (*value, found.integers.get_mut(column)) {
                (Some(value), Some(integer)) => {
                    let exact = exact_i64(value);
                    if let Some(v) = exact.or_else(|| meant_i64(value)) {
                        *integer = v;
                        found.present |= 1 << column;
                    }
                    exact.is_some()
                }
                (Some(Raw::Str(_)), None) => true,
                (Some(Raw::Number(digits)), None) => is_exact_integer(digits),
                _ => false,
            };
            found.taken |= u32::from(taken) << column;
        }
        found
    }

    /// A hash, and whether it is a number.
    fn hash(&self, column: usize) -> Option<(Cow<'a, str>, bool)> {
        match self.last[column].filter(|_| self.taken & 1 << column != 0)? {
            Raw::Str(inside) => Some((unescape(inside), false)),
            Raw::Number(digits) => Some((unescape(digits), true)),
            _ => None,
        }
    }
}

/// Whether digits are those that any writer of JSON gives to an integer: no needless zero or sign, no fraction.
fn is_exact_integer(digits: &[u8]) -> bool {
    match digits.strip_prefix(b"-").unwrap_or(digits) {
        b"0" => digits.len() == 1,
        [b'1'..=b'9', more @ ..] => more.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// The integer that is written so and not otherwise.
fn exact_i64(value: Raw<'_>) -> Option<i64> {
    match value {
        Raw::Number(digits) if is_exact_integer(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

/// The integer that is meant by another form: text, as DFTracer 1 writes it (`"ret":"4096"`), or a number with a fraction, which is cut off.
pub(super) fn meant_i64(value: Raw<'_>) -> Option<i64> {
    let (Raw::Str(text) | Raw::Number(text)) = value else { return None };
    let text = std::str::from_utf8(text).ok()?.trim();
    text.parse().ok().or_else(|| {
        // A float can hold the smallest integer, and the first one that is too large.
        let number = text.parse::<f64>().ok()?.trunc();
        (i64::MIN as f64..-(i64::MIN as f64)).contains(&number).then_some(number as i64)
    })
}

/// Whether a number is one of whole nanoseconds, of which no digit was cut off.
fn is_whole(value: Raw<'_>, unit_ns: i64) -> bool {
    let Raw::Number(digits) = value else { return false };
    if is_exact_integer(digits) {
        return true;
    }
    let point = digits.iter().position(|b| *b == b'.');
    let Some((before, after)) = point.and_then(|at| Some((&digits[..at], digits.get(at + 1..)?))) else { return false };
    let sane = is_exact_integer(before) && after.len() <= 9 && after.iter().all(u8::is_ascii_digit);
    sane && digits.len() <= 28
        && Decimal::parse(digits).and_then(|v| v.scaled(i128::from(unit_ns))).is_some_and(|v| v.is_whole())
}

/// Appends a field to the inside of an object.
pub(super) fn push_field(out: &mut String, key: &[u8], value: Raw<'_>) {
    if !out.is_empty() {
        out.push(',');
    }
    push_string(out, key);
    out.push(':');
    match value {
        Raw::Null => out.push_str("null"),
        Raw::Bool(true) => out.push_str("true"),
        Raw::Bool(false) => out.push_str("false"),
        Raw::Str(inside) => push_string(out, inside),
        Raw::Number(text) | Raw::Array(text) | Raw::Object(text) => push_text(out, text),
    }
}

fn push_string(out: &mut String, inside: &[u8]) {
    out.push('"');
    push_text(out, inside);
    out.push('"');
}

/// Appends text as it stands. Bytes that are not UTF-8 can only be within strings; they are escaped there.
fn push_text(out: &mut String, text: &[u8]) {
    if let Ok(text) = std::str::from_utf8(text) {
        out.push_str(text);
        return;
    }
    for chunk in text.utf8_chunks() {
        out.push_str(chunk.valid());
        for &byte in chunk.invalid() {
            guard_escape(out);
            out.push_str(&format!("\\udc{byte:02x}"));
        }
    }
}

/// Makes sure that an escape that follows is read as one, and not as a part of what stands before it.
fn guard_escape(out: &mut String) {
    let backslashes = out.bytes().rev().take_while(|b| *b == b'\\').count();
    if backslashes % 2 == 1 {
        // The lone backslash stands for itself, because what follows is no escape that JSON knows.
        out.push('\\');
        return;
    }
    // The first half of a pair would take the escape for its second one: it goes as the bytes that it stands for.
    let half = out.len().checked_sub(6).and_then(|at| out.get(at..)).and_then(|end| end.strip_prefix("\\u"));
    let Some(code @ 0xD800..=0xDBFF) = half.and_then(|hex| u32::from_str_radix(hex, 16).ok()) else { return };
    out.truncate(out.len() - 6);
    for byte in [0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63] {
        out.push_str(&format!("\\udc{byte:02x}"));
    }
}
