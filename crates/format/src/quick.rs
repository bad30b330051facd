//! A scan of whole blocks of lines into [`Record`]s: what an index stores, several times as fast as [`crate::view`].
//!
//! There are two paths. The checked path accepts every event that [`crate::objects`] finds. The fast path
//! (`fast`) follows line shapes that the checked path has seen before (`shapes`), and gives up at the first unexpected
//! byte; that event then takes the checked path, which learns its shape. Only the position in the
//! text connects one event with the next, so the two paths can alternate in any order.
//!
//! A record keeps all other fields as text, so that [`rebuild()`] can rebuild the line.

mod checked;
mod fast;
mod rebuild;
mod shapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use rebuild::{integers_in, rebuild};

use crate::damage::What;
use crate::dialect::{Dialect, Reading};
use crate::event::{Phase, Value};
use crate::json::Raw;
use crate::objects::{Item, Items};
use crate::text::{lone_surrogate, unescape};
use crate::view::Fields;
use fast::Miss;
use shapes::Shapes;

/// Integer arguments that have a column of their own, in this order.
pub const INTEGERS: [&str; 12] =
    ["fd", "size", "ret", "offset", "flags", "mode", "whence", "level", "epoch", "step", "image_idx", "image_size"];

/// One event, borrowed for the length of a callback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record<'a> {
    /// What kind of event it is.
    pub phase: Phase,
    /// Its name; empty when the line has none.
    pub name: &'a str,
    /// Its category; empty when the line has none.
    pub cat: &'a str,
    /// The process; 0 when the line has none.
    pub pid: i64,
    /// The thread; 0 when the line has none.
    pub tid: i64,
    /// When it began, or happened, in ns.
    pub start_ns: Option<i64>,
    /// Its duration in ns; nothing if it has no usable time.
    pub dur_ns: Option<i64>,
    /// A top-level `id` that is an integer; any other is in `extra`.
    pub id: Option<i64>,
    /// The argument `fhash`, where it is a string or an integer of any length: its text or its digits.
    pub fhash: Option<&'a str>,
    /// The argument `hhash`, likewise.
    pub hhash: Option<&'a str>,
    /// Whether `fhash` is an integer in the line.
    pub fhash_is_number: bool,
    /// Whether `hhash` is an integer in the line.
    pub hhash_is_number: bool,
    /// Bit `i`: [`INTEGERS`]`[i]` is among the arguments as a number, or as text that is one (`"ret":"4096"`), and fits.
    pub present: u32,
    /// Their values; 0 where there is none. A value whose form differs from that of an integer is in `rest` as well.
    pub integers: [i64; INTEGERS.len()],
    /// All other arguments as the inside of a JSON object (`"a":1,"b":"x"`), in order, keys and values as they stand.
    /// Bytes that are not UTF-8 are escaped as [`crate::text`] tells. `NaN` and its like may stand there as bare words.
    pub rest: &'a str,
    /// Top-level fields of the line that no field above keeps exactly, in the same form: unknown keys, and known ones whose value
    /// was not taken as meant (`"pid":"main"`) or only by its meaning (`"pid":"12"`). Times are there together: `ts`, `dur`
    /// and, in our own traces, `ns` as soon as one of them would come out differently.
    pub extra: &'a str,
    /// Whether `args` was there as an object, perhaps an empty one.
    pub has_args: bool,
    /// How the line said it, for [`rebuild()`].
    pub form: Form,
}

/// What the line had, where a record cannot show it otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Form(u8);

impl Form {
    /// There was a name, perhaps an empty one.
    pub const NAME: Form = Form(1);
    /// There was a category, perhaps an empty one.
    pub const CAT: Form = Form(2);
    /// There was a process, perhaps 0.
    pub const PID: Form = Form(4);
    /// There was a thread, perhaps 0.
    pub const TID: Form = Form(8);
    /// The phase was one of DFTracer's numbers.
    pub const NUMBERED_PHASE: Form = Form(16);

    /// The form as a number, to be stored.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The form of a stored number.
    pub fn from_bits(bits: u8) -> Form {
        Form(bits)
    }

    /// Whether it says that.
    pub fn has(self, other: Form) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Form) -> Form {
        Form(self.0 | other.0)
    }
}

/// What a text holds besides events.
#[derive(Debug, Clone, PartialEq)]
pub enum Aside<'a> {
    /// A file's header `{…,"traceEvents":[` ended here; these are the fields before that one.
    Header(Vec<(Cow<'a, str>, Value)>),
    /// A key and a value outside of any object: what follows the list in a file with a header, damage in others.
    Pair {
        /// Where it starts in the text.
        at: usize,
        /// Its length.
        len: usize,
        /// The key.
        key: Cow<'a, str>,
        /// The value.
        value: Value,
    },
    /// Text that cannot be used.
    Flaw {
        /// Where it starts in the text.
        at: usize,
        /// Its length.
        len: usize,
        /// What is wrong.
        what: What,
        /// Why, in words.
        note: &'static str,
    },
}

/// Why an event's time cannot be used.
pub(crate) const NO_TIME: &str = "ts is missing, not a number, or too large";

/// Integers that a caller never looks at. They are checked but not worked out; a record may have them or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unread(u32);

impl Unread {
    /// Arguments, as bits of their places in [`INTEGERS`].
    pub fn arguments(places: u32) -> Unread {
        Unread(places & ((1 << INTEGERS.len()) - 1))
    }

    /// And the event's id.
    #[must_use]
    pub fn and_id(self) -> Unread {
        Unread(self.0 | 1 << shapes::slot::ID)
    }

    /// And its process and thread.
    #[must_use]
    pub fn and_process(self) -> Unread {
        Unread(self.0 | 1 << shapes::slot::PID | 1 << shapes::slot::TID)
    }
}

/// A scanner that remembers the shapes of lines. One per thread; it may be used for any number of texts.
#[derive(Debug, Default)]
pub struct Quick {
    reading: Reading,
    unread: Unread,
    shapes: Shapes,
    scratch: Scratch,
    /// Whether every event goes the checked way.
    careful: bool,
}

/// Room for texts of a record that are not in the line in one piece.
#[derive(Debug, Default)]
struct Scratch {
    rest: String,
    extra: String,
}

impl Quick {
    /// A scanner that has seen nothing yet.
    pub fn new(reading: Reading) -> Quick {
        Quick { reading, ..Quick::default() }
    }

    /// A scanner that takes the checked way for every event: the measure of the other.
    pub fn careful(reading: Reading) -> Quick {
        Quick { reading, careful: true, ..Quick::default() }
    }

    /// From now on skips fields that the caller does not need.
    pub fn set_unread(&mut self, unread: Unread) {
        self.unread = unread;
    }

    /// From now on reads otherwise, as when the next text is that of another file.
    pub fn set_reading(&mut self, reading: Reading) {
        if reading.dialect.is_own() != self.reading.dialect.is_own() {
            // What `ns` is depends on whose trace it is.
            self.shapes = Shapes::default();
        }
        self.reading = reading;
    }

    /// Calls `each` for every event of a text, in order, and `other` for all else. `last`: nothing follows, so what is cut is
    /// damage. Tells how far the text is used: up to an object that it ends within, where more may follow.
    pub fn scan(
        &mut self,
        text: &[u8],
        last: bool,
        each: &mut impl FnMut(&Record<'_>),
        other: &mut impl FnMut(Aside<'_>),
    ) -> usize {
        let mut trusted = Trusted::new(text);
        let mut at = 0;
        loop {
            while let Some(b' ' | b'\n' | b'\t' | b'\r' | b',' | b'[' | b']' | b'}') = text.get(at) {
                at += 1;
            }
            let mut missed = Miss::Value;
            if !self.careful
                && let Some(part) = trusted.around(at)
            {
                let start = trusted.start;
                let how = fast::How { reading: self.reading, unread: self.unread.0 };
                match fast::event(part, at - start, &mut self.shapes, how, &mut self.scratch, each) {
                    Ok(end) => {
                        at = start + end;
                        continue;
                    }
                    Err(miss) => missed = miss,
                }
            }
            let mut items = Items::starting(text, at, self.reading, last);
            match items.next() {
                Some(Item::Event(event)) => {
                    checked::deliver(&event, self.reading, &mut self.scratch, each);
                    if event.lacks_time() {
                        let at = items.at() - event.raw().len();
                        other(Aside::Flaw { at, len: 0, what: What::BadTime, note: NO_TIME });
                    }
                    if missed == Miss::Link {
                        self.shapes.learn(event.raw(), self.reading.dialect);
                    }
                }
                Some(Item::Incomplete(at)) => return at,
                Some(Item::Header(pairs)) => other(Aside::Header(pairs.into_iter().map(decoded).collect())),
                Some(Item::Pair { at, len, key, value }) => {
                    let (key, value) = decoded((key, value));
                    other(Aside::Pair { at, len, key, value });
                }
                Some(Item::Flaw { at, len, what, note }) => other(Aside::Flaw { at, len, what, note }),
                None => return text.len(),
            }
            at = items.at();
        }
    }
}

fn decoded<'a>((key, value): (&'a [u8], Raw<'a>)) -> (Cow<'a, str>, Value) {
    (unescape(key), value.to_value(Dialect::Chrome))
}

/// The stretches of a text in which each string without escapes means what it shows: they are UTF-8, and hold none of the
/// characters that stand for other bytes.
struct Trusted<'a> {
    text: &'a [u8],
    /// What is known to be UTF-8, from where on.
    valid: &'a str,
    valid_start: usize,
    /// The trusted stretch, within that.
    part: &'a str,
    start: usize,
}

impl<'a> Trusted<'a> {
    fn new(text: &'a [u8]) -> Trusted<'a> {
        Trusted { text, valid: "", valid_start: 0, part: "", start: 0 }
    }

    /// The stretch around a place. Places only grow, so that no byte is checked more than twice.
    #[inline]
    fn around(&mut self, at: usize) -> Option<&'a str> {
        if at < self.start + self.part.len() { Some(self.part) } else { self.find(at) }
    }

    fn find(&mut self, at: usize) -> Option<&'a str> {
        if at >= self.valid_start + self.valid.len() {
            let rest = near(self.text.get(at..)?);
            self.valid = match std::str::from_utf8(rest) {
                Ok(valid) => valid,
                Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
            };
            self.valid_start = at;
        }
        self.part = plain_part(self.valid.get(at - self.valid_start..).unwrap_or_default());
        self.start = at;
        (!self.part.is_empty()).then_some(self.part)
    }
}

/// The lines that are checked together: few enough to be still in the processor's cache when they are read.
fn near(text: &[u8]) -> &[u8] {
    const NEAR: usize = 16 << 10;
    match text.get(..NEAR).and_then(|near| memchr::memrchr(b'\n', near)) {
        Some(end) => &text[..=end],
        None => text,
    }
}

/// As much of a text as comes before the first character that stands for other bytes.
fn plain_part(part: &str) -> &str {
    // In UTF-8 all of these begin with 0xF4, the largest byte there is. A largest one is found sixteen bytes at a time.
    if part.bytes().fold(0, u8::max) < 0xF4 {
        return part;
    }
    let end = part.char_indices().find(|(_, c)| lone_surrogate(*c).is_some()).map_or(part.len(), |(at, _)| at);
    &part[..end]
}

/// The fields of [`Record::rest`] or [`Record::extra`], decoded one by one. In our own traces some strings mean floats;
/// [`fields_of`] knows that.
pub fn fields(inside: &str) -> impl Iterator<Item = (Cow<'_, str>, Value)> {
    fields_of(inside, Reading::default())
}

/// The same, for traces that are read in a certain way.
pub fn fields_of(inside: &str, reading: Reading) -> impl Iterator<Item = (Cow<'_, str>, Value)> {
    Fields::inside(inside.as_bytes()).map(move |(key, value)| (unescape(key), value.to_value(reading.dialect)))
}

/// The numbers among the fields of [`Record::rest`], without a copy of anything. A text that holds a number counts, as the first DFTracer wrote
/// them; keys are as they stand in the line, with their escapes.
pub fn numbers(inside: &str) -> impl Iterator<Item = (&str, f64)> {
    Fields::inside(inside.as_bytes()).filter_map(|(key, value)| {
        let (Raw::Number(digits) | Raw::Str(digits)) = value else { return None };
        let number: f64 = std::str::from_utf8(digits).ok()?.trim().parse().ok()?;
        Some((std::str::from_utf8(key).ok()?, number)).filter(|_| number.is_finite())
    })
}
