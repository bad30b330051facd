//! Annotations of a program: spans, instants, counters and metadata, with arguments.
//!
//! An annotation is a record like that of a call, with the bit [`ANNOTATION`] in its head, name and category in place of
//! path and descriptor, and a *payload*: the arguments, tagged and packed ([`Payload`] writes them, [`arguments`] reads
//! them). The first [`INLINE`] bytes of the payload are in the record itself, the rest in the records after it, which are
//! taken together with it and stored before it.
//!
//! ```text
//! head: ANNOTATION | kind   path: name id   start   end   fd: category id   detail: bytes of payload
//! size, ret, offset: payload[..24]   extra: the id of an async span or a flow
//! head: CONTINUED           the other 60 bytes: payload[24..84], and so on
//! ```

/// Bit of a record's head that tells an annotation from a call.
pub const ANNOTATION: u32 = 0x8000;
/// Head of a record that continues the payload of the one before.
pub const CONTINUED: u32 = ANNOTATION | 0xFF;
/// Head of a record that stands for nothing: the end of a segment that was too short for an annotation.
pub const SKIPPED: u32 = ANNOTATION | 0xFE;
/// Bytes of payload in the record itself.
pub const INLINE: usize = 24;
/// Bytes of payload in a record that continues one.
pub const PER_RECORD: usize = 60;
/// Longest payload.
pub const MAX_PAYLOAD: usize = INLINE + 64 * PER_RECORD;

/// What an annotation tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// A span on the thread's stack, recorded at its end.
    Span = 0,
    /// The start of a span on the thread's stack, recorded separately.
    Begin = 1,
    /// The end of the thread's newest open span.
    End = 2,
    /// A span that may overlap others of its thread, recorded at its end.
    AsyncSpan = 3,
    /// The start of an async span, recorded separately.
    AsyncBegin = 4,
    /// Its end, perhaps on another thread.
    AsyncEnd = 5,
    /// An instant within an async span.
    AsyncInstant = 6,
    /// An instant.
    Instant = 7,
    /// Values at a point in time.
    Counter = 8,
    /// Metadata of the process.
    Meta = 9,
    /// The start of an arrow between spans.
    FlowStart = 10,
    /// A step on its way.
    FlowStep = 11,
    /// Its end.
    FlowEnd = 12,
}

impl EventKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [EventKind; 13] = [
        EventKind::Span,
        EventKind::Begin,
        EventKind::End,
        EventKind::AsyncSpan,
        EventKind::AsyncBegin,
        EventKind::AsyncEnd,
        EventKind::AsyncInstant,
        EventKind::Instant,
        EventKind::Counter,
        EventKind::Meta,
        EventKind::FlowStart,
        EventKind::FlowStep,
        EventKind::FlowEnd,
    ];

    /// The kind in a record's head, if it is the head of an annotation.
    pub fn of_head(head: u32) -> Option<EventKind> {
        let number = (head & 0xFFFF).checked_sub(ANNOTATION)?;
        EventKind::ALL.get(number as usize).copied()
    }
}

/// One annotation, as front-ends hand it to the recorder. Part of the [table](crate::table): its layout is fixed.
#[repr(C)]
pub struct Event<'a> {
    /// See [`EventKind`].
    pub kind: u32,
    /// Name id of the name.
    pub name: u32,
    /// Name id of the category.
    pub category: u32,
    /// Bytes of payload.
    pub length: u32,
    /// Ticks at the start.
    pub start: u64,
    /// Ticks at the end; equal to the start for what has no duration.
    pub end: u64,
    /// Id of an async span or a flow.
    pub id: u64,
    /// The payload.
    pub payload: *const u8,
    /// The payload is borrowed for the call.
    pub borrowed: core::marker::PhantomData<&'a [u8]>,
}

impl<'a> Event<'a> {
    /// An event with its arguments.
    #[inline(always)]
    pub fn new(head: &EventHead, payload: &'a [u8]) -> Event<'a> {
        Event {
            kind: head.kind as u32,
            name: head.name,
            category: head.category,
            length: payload.len() as u32,
            start: head.start,
            end: head.end,
            id: head.id,
            payload: payload.as_ptr(),
            borrowed: core::marker::PhantomData,
        }
    }
}

/// An event without its arguments.
#[derive(Clone, Copy, Debug)]
pub struct EventHead {
    /// What kind of event.
    pub kind: EventKind,
    /// Name id of its name.
    pub name: u32,
    /// Name id of its category; 0 for none.
    pub category: u32,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Id of an async span or a flow.
    pub id: u64,
}

/// What a thread and its process have used. Part of the [table](crate::table).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Nanoseconds of processor time of the thread, as the scheduler counts it.
    pub thread: u64,
    /// Of which in user mode; the kernel tells this in microseconds.
    pub thread_user: u64,
    /// Nanoseconds of processor time of the process.
    pub process: u64,
    /// Of which in user mode.
    pub process_user: u64,
    /// Resident bytes now.
    pub rss: u64,
}

/// Tags of payload entries. Tags 1 to 8 are integers of so many bytes.
mod tag {
    pub(super) const UINT: u8 = 0x10;
    pub(super) const FLOAT: u8 = 0x11;
    pub(super) const TRUE: u8 = 0x12;
    pub(super) const FALSE: u8 = 0x13;
    pub(super) const NULL: u8 = 0x14;
    pub(super) const TEXT: u8 = 0x15;
    /// Text that was cut; its full length follows.
    pub(super) const CUT_TEXT: u8 = 0x16;
    pub(super) const JSON: u8 = 0x17;
    pub(super) const NAME: u8 = 0x18;
    pub(super) const USAGE: u8 = 0x19;
    pub(super) const TICKS: u8 = 0x1A;
    /// Two times.
    pub(super) const AT: u8 = 0x1B;
}

/// An argument's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// A float.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// Nothing.
    Null,
    /// Text, as bytes of any kind.
    Text(&'a [u8]),
    /// The beginning of a text, and how long it was.
    CutText(&'a [u8], u32),
    /// JSON text, made by a front-end.
    Json(&'a [u8]),
    /// Text that was interned: its name id.
    Name(u32),
    /// What was used from the start of a span to its end: both readings.
    Usage(Usage, Usage),
    /// A duration in ticks of the clock, before the event's end; told in nanoseconds.
    Ticks(u64),
    /// When the event began and ended, in nanoseconds since 1970, in place of its ticks: for times that the program has from elsewhere,
    /// which may lie before the clock began. Stands before all other arguments ([`given_times`]) and is none itself.
    At(i64, i64),
}

/// The packed arguments of one annotation, on the caller's stack; `ROOM` is at most [`MAX_PAYLOAD`].
pub struct Payload<const ROOM: usize = MAX_PAYLOAD> {
    bytes: [core::mem::MaybeUninit<u8>; ROOM],
    length: usize,
}

impl<const ROOM: usize> Payload<ROOM> {
    /// No arguments.
    #[inline(always)]
    pub const fn new() -> Payload<ROOM> {
        const { assert!(ROOM <= MAX_PAYLOAD) };
        Payload { bytes: [const { core::mem::MaybeUninit::uninit() }; ROOM], length: 0 }
    }

    /// Adds what another one holds; false when there is no room for it.
    pub fn append<const OTHER: usize>(&mut self, other: &Payload<OTHER>) -> bool {
        let fits = self.length + other.length <= ROOM;
        if fits {
            self.put(other.as_bytes());
        }
        fits
    }

    /// Adds an argument only if all of it fits, text included.
    #[inline(always)]
    pub fn add_whole(&mut self, key: u32, value: Argument<'_>) -> bool {
        let text = match value {
            Argument::Text(text) | Argument::CutText(text, _) | Argument::Json(text) => text.len(),
            Argument::Usage(..) => 80,
            _ => 0,
        };
        self.length + text + 16 <= ROOM && self.add(key, value)
    }

    /// What was packed.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the first `length` bytes were written by `put`.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.length) }
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        // SAFETY: callers checked that so much room is left.
        unsafe {
            let at = self.bytes.as_mut_ptr().add(self.length).cast::<u8>();
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
        }
        self.length += bytes.len();
    }

    #[inline(always)]
    fn entry(&mut self, tag: u8, key: u32, value: &[u8]) -> bool {
        let fits = self.length + 5 + value.len() <= ROOM;
        if fits {
            self.put(&[tag]);
            self.put(&key.to_le_bytes());
            self.put(value);
        }
        fits
    }

    #[inline(always)]
    fn text(&mut self, tag: u8, key: u32, text: &[u8]) -> bool {
        let length = (text.len() as u16).to_le_bytes();
        let fits = self.length + 7 + text.len() <= ROOM;
        if fits {
            self.entry(tag, key, &length);
            self.put(text);
        }
        fits
    }

    /// An integer, in as many bytes as it needs. All eight are stored where there is room: a copy of a length that is known costs one instruction.
    #[inline(always)]
    fn integer(&mut self, key: u32, v: i64) -> bool {
        let significant = 65 - (v ^ v >> 63).leading_zeros() as usize;
        let bytes = significant.div_ceil(8).clamp(1, 8);
        if self.entry(bytes as u8, key, &v.to_le_bytes()) {
            self.length -= 8 - bytes;
            return true;
        }
        self.entry(bytes as u8, key, &v.to_le_bytes()[..bytes])
    }

    /// Adds an argument whose key has the name id `key`. False when there is no room left: nothing is added then, except that text is
    /// cut to the room there is. Inlined, so that where the kind of value is known nothing is left of the rest.
    #[inline(always)]
    pub fn add(&mut self, key: u32, value: Argument<'_>) -> bool {
        match value {
            Argument::Int(v) => self.integer(key, v),
            Argument::UInt(v) => match i64::try_from(v) {
                Ok(v) => self.integer(key, v),
                Err(_) => self.entry(tag::UINT, key, &v.to_le_bytes()),
            },
            Argument::Float(v) => self.entry(tag::FLOAT, key, &v.to_le_bytes()),
            Argument::Bool(v) => self.entry(if v { tag::TRUE } else { tag::FALSE }, key, &[]),
            Argument::Null => self.entry(tag::NULL, key, &[]),
            Argument::Text(text) => self.text(tag::TEXT, key, text) || self.cut_text(key, text, text.len() as u32),
            Argument::CutText(text, whole) => self.cut_text(key, text, whole),
            Argument::Json(text) => self.text(tag::JSON, key, text),
            Argument::Name(id) => self.entry(tag::NAME, key, &id.to_le_bytes()),
            Argument::Ticks(v) => self.entry(tag::TICKS, key, &v.to_le_bytes()),
            Argument::Usage(from, to) => self.usage(&from, &to),
            Argument::At(start, end) => {
                let mut times = [0; 16];
                times[..8].copy_from_slice(&start.to_le_bytes());
                times[8..].copy_from_slice(&end.to_le_bytes());
                self.entry(tag::AT, 0, &times)
            }
        }
    }

    #[cold]
    fn usage(&mut self, from: &Usage, to: &Usage) -> bool {
        let numbers = |usage: &Usage| [usage.thread, usage.thread_user, usage.process, usage.process_user, usage.rss];
        let fits = self.length + 5 + 80 <= ROOM && self.entry(tag::USAGE, 0, &[]);
        if fits {
            numbers(from).iter().chain(&numbers(to)).for_each(|n| self.put(&n.to_le_bytes()));
        }
        fits
    }

    #[cold]
    fn cut_text(&mut self, key: u32, text: &[u8], whole: u32) -> bool {
        let Some(room) = (ROOM - self.length).checked_sub(11) else { return false };
        // Not in the middle of a character.
        let mut end = text.len().min(room);
        while end > 0 && end < text.len() && text[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        self.entry(tag::CUT_TEXT, key, &(end as u16).to_le_bytes());
        self.put(&whole.to_le_bytes());
        // Always that long; said so that no panic is compiled in.
        self.put(text.get(..end).unwrap_or_default());
        true
    }
}

impl<const ROOM: usize> Default for Payload<ROOM> {
    fn default() -> Self {
        Payload::new()
    }
}

/// The times that an event's payload gives in place of its ticks.
#[inline]
pub fn given_times(payload: &[u8]) -> Option<(i64, i64)> {
    if payload.first() != Some(&tag::AT) {
        return None;
    }
    match arguments(payload).next() {
        Some((_, Argument::At(start, end))) => Some((start, end.max(start))),
        _ => None,
    }
}

/// Reads a payload: pairs of key id and value. Stops at the first thing that makes no sense.
pub fn arguments(payload: &[u8]) -> Arguments<'_> {
    Arguments { rest: payload }
}

/// See [`arguments`].
#[derive(Clone, Debug)]
pub struct Arguments<'a> {
    rest: &'a [u8],
}

impl<'a> Arguments<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn usage(&mut self) -> Option<Usage> {
        let mut number = || self.take::<8>().map(u64::from_le_bytes);
        Some(Usage {
            thread: number()?,
            thread_user: number()?,
            process: number()?,
            process_user: number()?,
            rss: number()?,
        })
    }

    fn entry(&mut self) -> Option<(u32, Argument<'a>)> {
        let [tag] = self.take::<1>()?;
        let key = u32::from_le_bytes(self.take::<4>()?);
        let value = match tag {
            1..=8 => {
                let bytes = self.bytes(usize::from(tag))?;
                let fill = if bytes[bytes.len() - 1] & 0x80 != 0 { 0xFF } else { 0 };
                let mut whole = [fill; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                Argument::Int(i64::from_le_bytes(whole))
            }
            tag::UINT => Argument::UInt(u64::from_le_bytes(self.take::<8>()?)),
            tag::FLOAT => Argument::Float(f64::from_le_bytes(self.take::<8>()?)),
            tag::TRUE => Argument::Bool(true),
            tag::FALSE => Argument::Bool(false),
            tag::NULL => Argument::Null,
            tag::TEXT => {
                let length = u16::from_le_bytes(self.take::<2>()?);
                Argument::Text(self.bytes(usize::from(length))?)
            }
            tag::CUT_TEXT => {
                let length = u16::from_le_bytes(self.take::<2>()?);
                let whole = u32::from_le_bytes(self.take::<4>()?);
                Argument::CutText(self.bytes(usize::from(length))?, whole)
            }
            tag::JSON => {
                let length = u16::from_le_bytes(self.take::<2>()?);
                Argument::Json(self.bytes(usize::from(length))?)
            }
            tag::NAME => Argument::Name(u32::from_le_bytes(self.take::<4>()?)),
            tag::TICKS => Argument::Ticks(u64::from_le_bytes(self.take::<8>()?)),
            tag::USAGE => Argument::Usage(self.usage()?, self.usage()?),
            tag::AT => Argument::At(i64::from_le_bytes(self.take::<8>()?), i64::from_le_bytes(self.take::<8>()?)),
            _ => return None,
        };
        Some((key, value))
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = (u32, Argument<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entry();
        if entry.is_none() {
            self.rest = &[];
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[Argument<'_>]) {
        let mut payload = Payload::<MAX_PAYLOAD>::new();
        for (key, value) in values.iter().enumerate() {
            assert!(payload.add(key as u32, *value), "{value:?}");
        }
        assert!(arguments(payload.as_bytes()).map(|(_, value)| value).eq(values.iter().copied()), "{values:?}");
    }

    #[test]
    fn values_come_back() {
        let usage = Usage { thread: 1, thread_user: 2, process: u64::MAX, process_user: 4, rss: 5 };
        check(&[]);
        for v in [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32769, i64::MAX, i64::MIN, 1 << 40] {
            check(&[Argument::Int(v)]);
        }
        check(&[
            Argument::UInt(u64::MAX),
            Argument::Float(f64::MIN_POSITIVE),
            Argument::Bool(true),
            Argument::Null,
            Argument::Bool(false),
            Argument::Text(b"caf\xe9"),
            Argument::CutText(b"be", 2000),
            Argument::Json(b"[1]"),
            Argument::Name(77),
            Argument::Ticks(1 << 33),
            Argument::Usage(usage, Usage::default()),
            Argument::At(i64::MIN, -1),
            Argument::Int(-5),
        ]);
    }

    #[test]
    fn what_is_too_long_is_cut_and_then_refused() {
        let long = [b'x'; MAX_PAYLOAD];
        let mut payload = Payload::<MAX_PAYLOAD>::new();
        assert!(payload.add(1, Argument::Text(&long)));
        let (_, value) = arguments(payload.as_bytes()).next().expect("the cut text");
        assert!(
            matches!(value, Argument::CutText(text, whole) if text.len() == MAX_PAYLOAD - 11 && whole as usize == MAX_PAYLOAD)
        );
        assert!(!payload.add(2, Argument::Int(1)) && !payload.add(3, Argument::Text(b"y")));
        assert_eq!(arguments(payload.as_bytes()).count(), 1);
    }

    #[test]
    fn texts_are_not_cut_within_a_character() {
        let mut long = [b'x'; MAX_PAYLOAD];
        long[MAX_PAYLOAD - 13..MAX_PAYLOAD - 10].copy_from_slice("€".as_bytes());
        let mut payload = Payload::<MAX_PAYLOAD>::new();
        assert!(payload.add(1, Argument::Text(&long)));
        let (_, value) = arguments(payload.as_bytes()).next().expect("the cut text");
        assert!(matches!(value, Argument::CutText(text, _) if text.len() == MAX_PAYLOAD - 13));
    }

    #[test]
    fn damaged_payloads_end_early() {
        let mut payload = Payload::<MAX_PAYLOAD>::new();
        payload.add(1, Argument::Text(b"hello"));
        let bytes = payload.as_bytes();
        for end in 0..bytes.len() {
            assert_eq!(arguments(&bytes[..end]).count(), 0, "{end}");
        }
        assert_eq!(arguments(&[0xEE, 0, 0, 0, 0]).count(), 0);
    }
}
