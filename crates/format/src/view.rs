//! One event borrowed from the text and decoded on demand.
//!
//! A scan yields [`EventView`]s. Their fixed fields are decoded; arguments and unknown fields stay text until they are
//! requested. [`EventView::to_event`] makes the owned [`Event`].

use std::borrow::Cow;

use crate::decimal::{Decimal, Fixed};
use crate::dialect::{Dialect, Reading};
use crate::event::{Event, Phase, Value};
use crate::json::{Fault, Raw, Scan, Scanner, small_integer};
use crate::text::unescape;

/// One event of a text that is being scanned.
#[derive(Debug, Clone)]
pub struct EventView<'a> {
    /// What kind of event it is.
    pub phase: Phase,
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its category; empty when the line has none.
    pub cat: Cow<'a, str>,
    /// The process; 0 when the line has none.
    pub pid: i64,
    /// The thread; 0 when the line has none.
    pub tid: i64,
    /// When it began, or happened, in ns.
    pub start_ns: Option<i64>,
    /// How long it took, in ns.
    pub dur_ns: Option<i64>,
    id: Option<Raw<'a>>,
    args: &'a [u8],
    raw: &'a [u8],
    /// The known fields that were taken as meant.
    taken: FieldSet,
    /// Whether there are others.
    has_extra: bool,
    dialect: Dialect,
}

/// A set of the fields that the model knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(u16);

impl FieldSet {
    pub(crate) const NAME: FieldSet = FieldSet(1);
    pub(crate) const CAT: FieldSet = FieldSet(2);
    pub(crate) const PH: FieldSet = FieldSet(4);
    pub(crate) const PID: FieldSet = FieldSet(8);
    pub(crate) const TID: FieldSet = FieldSet(16);
    pub(crate) const TS: FieldSet = FieldSet(32);
    pub(crate) const DUR: FieldSet = FieldSet(64);
    pub(crate) const NS: FieldSet = FieldSet(128);
    pub(crate) const ID: FieldSet = FieldSet(256);
    pub(crate) const ARGS: FieldSet = FieldSet(512);

    pub(crate) fn of(key: &[u8]) -> Option<FieldSet> {
        Some(match key {
            b"name" => FieldSet::NAME,
            b"cat" => FieldSet::CAT,
            b"ph" => FieldSet::PH,
            b"pid" => FieldSet::PID,
            b"tid" => FieldSet::TID,
            b"ts" => FieldSet::TS,
            b"dur" => FieldSet::DUR,
            b"ns" => FieldSet::NS,
            b"id" => FieldSet::ID,
            b"args" => FieldSet::ARGS,
            _ => return None,
        })
    }

    pub(crate) fn bits(self) -> u64 {
        u64::from(self.0)
    }

    pub(crate) fn has(self, other: FieldSet) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn set(&mut self, other: FieldSet, on: bool) {
        self.0 = self.0 & !other.0 | if on { other.0 } else { 0 };
    }
}

/// What an object turned out to be.
#[derive(Debug)]
pub(crate) enum Object<'a> {
    Event(EventView<'a>),
    /// The head of a file `{…, "traceEvents": [`, with the fields before that. The scanner stands behind the bracket.
    Header(Vec<(&'a [u8], Raw<'a>)>),
    /// `{}`, which some writers end their lists with.
    Empty,
    /// An object without `ph`.
    NoEvent,
}

/// Reads the object at which the scanner stands.
pub(crate) fn scan_object<'a>(scanner: &mut Scanner<'a>, reading: Reading) -> Scan<Object<'a>> {
    let start = scanner.at();
    scanner.expect(b'{', "an object was expected")?;
    scanner.skip_space();
    if scanner.peek() == Some(b'}') {
        scanner.advance();
        return Ok(Object::Empty);
    }
    let mut fields = Found::default();
    loop {
        let key = scanner.key()?;
        if key == b"traceEvents" {
            scanner.skip_space();
            if scanner.peek() == Some(b'[') {
                scanner.advance();
                return Ok(Object::Header(pairs_before(scanner.since(start))));
            }
        }
        let value = scanner.value()?;
        fields.take(key, value);
        if !scanner.more(b'}')? {
            break;
        }
    }
    if !fields.has_phase {
        return Ok(Object::NoEvent);
    }
    Ok(Object::Event(fields.into_view(scanner.since(start), reading)))
}

/// The fields of an object that is cut behind `"traceEvents":[`, without that one.
fn pairs_before(text: &[u8]) -> Vec<(&[u8], Raw<'_>)> {
    Fields::new(text).collect()
}

/// The known fields of an object while it is scanned. Where a key is repeated the last one counts.
#[derive(Default)]
struct Found<'a> {
    name: Option<&'a [u8]>,
    cat: Option<&'a [u8]>,
    phase: Option<Phase>,
    has_phase: bool,
    pid: Option<i64>,
    tid: Option<i64>,
    ts: Option<&'a [u8]>,
    dur: Option<&'a [u8]>,
    ns: Option<i64>,
    id: Option<Raw<'a>>,
    args: Option<&'a [u8]>,
    present: FieldSet,
    taken: FieldSet,
    has_extra: bool,
}

impl<'a> Found<'a> {
    #[inline]
    fn take(&mut self, key: &'a [u8], value: Raw<'a>) {
        let Some(field) = FieldSet::of(key) else {
            self.has_extra = true;
            return;
        };
        let text = match value {
            Raw::Str(inside) => Some(inside),
            _ => None,
        };
        let digits = match value {
            Raw::Number(digits) | Raw::Str(digits) => Some(digits),
            _ => None,
        };
        let taken = match field {
            FieldSet::NAME => set(&mut self.name, text),
            FieldSet::CAT => set(&mut self.cat, text),
            FieldSet::PH => {
                let (phase, exact) = phase_of(value);
                (self.phase, self.has_phase) = (Some(phase), true);
                exact
            }
            FieldSet::PID => set(&mut self.pid, value.to_i64()),
            FieldSet::TID => set(&mut self.tid, value.to_i64()),
            FieldSet::TS => set(&mut self.ts, digits),
            FieldSet::DUR => set(&mut self.dur, digits),
            FieldSet::NS => {
                let range = |ns: &i64| (0..1_000_000).contains(ns) && matches!(value, Raw::Number(_));
                set(&mut self.ns, value.to_i64().filter(range))
            }
            FieldSet::ID => set(&mut self.id, matches!(value, Raw::Str(_) | Raw::Number(_)).then_some(value)),
            _ => {
                let object = match value {
                    Raw::Object(text) => Some(text),
                    _ => None,
                };
                set(&mut self.args, object)
            }
        };
        self.present.set(field, true);
        self.taken.set(field, taken);
    }

    fn into_view(mut self, raw: &'a [u8], reading: Reading) -> EventView<'a> {
        let (start_ns, dur_ns) = self.times(reading);
        self.taken.set(FieldSet::TS, start_ns.is_some());
        self.taken.set(FieldSet::DUR, dur_ns.is_some());
        // A known field that is there but was not taken is an extra one.
        let has_extra = self.has_extra || self.present.0 & !self.taken.0 != 0;
        EventView {
            phase: self.phase.unwrap_or(Phase::Instant),
            name: self.name.map(unescape).unwrap_or_default(),
            cat: self.cat.map(unescape).unwrap_or_default(),
            pid: self.pid.unwrap_or(0),
            tid: self.tid.unwrap_or(0),
            start_ns,
            dur_ns,
            id: self.id,
            args: self.args.unwrap_or(b"{}"),
            raw,
            taken: self.taken,
            has_extra,
            dialect: reading.dialect,
        }
    }

    /// Start and duration in ns.
    fn times(&mut self, reading: Reading) -> (Option<i64>, Option<i64>) {
        // Ours: whole microseconds and the remainders of both ends.
        if reading.dialect.is_own()
            && let Some(ts) = self.ts.and_then(small_integer)
        {
            let remainders = self.ns.unwrap_or(0);
            // In more than 64 bits: the earliest microsecond begins before the earliest nanosecond.
            let exact = |us: i64, rest: i64| i64::try_from(i128::from(us) * 1000 + i128::from(rest)).ok();
            let start = exact(ts, remainders / 1000);
            let dur = self.dur.and_then(small_integer).and_then(|dur| {
                let end = exact(ts.checked_add(dur)?, remainders % 1000)?;
                end.checked_sub(start?)
            });
            if start.is_some() && (dur.is_some() || self.dur.is_none()) {
                return (start, dur);
            }
        }
        self.taken.set(FieldSet::NS, false);
        let fixed = |digits: &[u8]| match small_integer(digits) {
            Some(v) => v.checked_mul(reading.unit_ns).map(Fixed::whole),
            None => Decimal::parse(digits)?.scaled(i128::from(reading.unit_ns)),
        };
        let start = self.ts.and_then(fixed);
        let start_ns = start.and_then(Fixed::floor);
        let dur_ns = self.dur.and_then(fixed).and_then(|dur| match (start, start_ns) {
            // Both ends floored alike, so that neighbours never overlap.
            (Some(start), Some(start_ns)) => start.plus(dur)?.floor()?.checked_sub(start_ns),
            // Nobody can say when that was.
            _ => None,
        });
        (start_ns, dur_ns)
    }
}

/// Sets a field if there is a value for it, and says whether there is.
fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    *field = value;
    field.is_some()
}

/// The phase that a `ph` means, and whether it says no more than that. A letter that the model has no phase for is read
/// as the nearest one and stays among the extra fields.
pub(crate) fn phase_of(value: Raw<'_>) -> (Phase, bool) {
    match value {
        Raw::Str(&[letter]) => match (Phase::from_letter(letter), letter) {
            (Some(phase), _) => (phase, true),
            (None, b'I') => (Phase::Instant, true),
            (None, b'S') => (Phase::AsyncBegin, false),
            (None, b'F') => (Phase::AsyncEnd, false),
            (None, b'T' | b'p') => (Phase::AsyncInstant, false),
            _ => (Phase::Instant, false),
        },
        Raw::Number(b"1") => (Phase::Complete, true),
        Raw::Number(b"2") => (Phase::Counter, true),
        Raw::Number(b"3") => (Phase::Aggregated, true),
        Raw::Number(b"4") => (Phase::Metadata, true),
        _ => (Phase::Instant, false),
    }
}

impl<'a> EventView<'a> {
    /// Whether it needs a time and has none that can be used: `ts` is missing, no number, or beyond what 64 bits of nanoseconds hold.
    pub fn lacks_time(&self) -> bool {
        self.start_ns.is_none() && self.phase != Phase::Metadata
    }

    /// When it ended; the same as its start where it has no duration.
    pub fn end_ns(&self) -> Option<i64> {
        self.start_ns.map(|start| start.saturating_add(self.dur_ns.unwrap_or(0)))
    }

    /// What joins the parts of async spans and flows.
    pub fn id(&self) -> Option<Cow<'a, str>> {
        match self.id {
            Some(Raw::Str(text) | Raw::Number(text)) => Some(unescape(text)),
            _ => None,
        }
    }

    /// The text of the whole event, as it stands in the trace.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The text of the arguments, braces included.
    pub fn raw_args(&self) -> &'a [u8] {
        self.args
    }

    /// The arguments, decoded one by one.
    pub fn args(&self) -> impl Iterator<Item = (Cow<'a, str>, Value)> + use<'a> {
        let dialect = self.dialect;
        Fields::new(self.args).map(move |(key, value)| (unescape(key), value.to_value(dialect)))
    }

    /// The argument of that name; the last one where the key is repeated.
    pub fn arg(&self, key: &str) -> Option<Value> {
        self.raw_arg(key).map(|value| value.to_value(self.dialect))
    }

    /// The argument of that name, where it is an integer or a string that holds one.
    pub fn arg_i64(&self, key: &str) -> Option<i64> {
        self.raw_arg(key)?.to_i64()
    }

    /// The argument of that name, where it is text.
    pub fn arg_str(&self, key: &str) -> Option<Cow<'a, str>> {
        match self.raw_arg(key)? {
            Raw::Str(inside) => Some(unescape(inside)),
            _ => None,
        }
    }

    fn raw_arg(&self, key: &str) -> Option<Raw<'a>> {
        let same =
            |found: &[u8]| found == key.as_bytes() || memchr::memchr(b'\\', found).is_some() && unescape(found) == key;
        Fields::new(self.args).filter(|(found, _)| same(found)).last().map(|(_, value)| value)
    }

    /// The known fields that were taken as meant.
    pub(crate) fn taken(&self) -> FieldSet {
        self.taken
    }

    /// A field of the event itself, as it stands.
    pub(crate) fn raw_field(&self, key: &str) -> Option<Raw<'a>> {
        Fields::new(self.raw).filter(|(found, _)| *found == key.as_bytes()).last().map(|(_, value)| value)
    }

    /// The fields that the model does not know or could not take as meant.
    pub fn extra(&self) -> impl Iterator<Item = (Cow<'a, str>, Value)> + use<'a> {
        let (taken, dialect) = (self.taken, self.dialect);
        Fields::new(if self.has_extra { self.raw } else { b"{}" })
            .filter(move |(key, _)| FieldSet::of(key).is_none_or(|field| !taken.has(field)))
            .map(move |(key, value)| (unescape(key), value.to_value(dialect)))
    }

    /// The event on its own.
    pub fn to_event(&self) -> Event {
        Event {
            phase: self.phase,
            name: self.name.clone().into_owned(),
            cat: self.cat.clone().into_owned(),
            pid: self.pid,
            tid: self.tid,
            start_ns: self.start_ns,
            dur_ns: self.dur_ns,
            id: self.id().map(Cow::into_owned),
            args: self.args().map(|(key, value)| (key.into_owned(), value)).collect(),
            extra: self.extra().map(|(key, value)| (key.into_owned(), value)).collect(),
        }
    }
}

/// The fields of an object that was scanned before, so that only its end can stop it.
pub(crate) struct Fields<'a> {
    scanner: Scanner<'a>,
    done: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(object: &'a [u8]) -> Fields<'a> {
        let mut scanner = Scanner::new(object, 0);
        let opened: Result<(), Fault> = scanner.expect(b'{', "an object was expected");
        scanner.skip_space();
        Fields { done: opened.is_err() || scanner.peek() == Some(b'}'), scanner }
    }

    /// The fields of an object whose braces were left out.
    pub(crate) fn inside(text: &'a [u8]) -> Fields<'a> {
        Fields { done: text.is_empty(), scanner: Scanner::new(text, 0) }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Raw<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let key = self.scanner.key().ok()?;
        let value = self.scanner.value().ok()?;
        self.done = !self.scanner.more(b'}').unwrap_or(false);
        Some((key, value))
    }
}
