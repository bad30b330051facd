//! Arguments: values of the program, packed for the recorder.

use std::fmt::{self, Write};
use std::ops::Deref;

use weftline_recorder::annotation::{Argument, MAX_PAYLOAD, Payload, Usage};
use weftline_recorder::table::Table;

use crate::text::Text;

/// Bytes of arguments that a span keeps in itself; more are kept in a box.
const SMALL: usize = 152;
/// Text that `?value` and `%value` keep at most.
const FORMATTED: usize = 512;
/// Text after which they stop to look how much more there is: a vector may have millions of elements. The length that is told is then
/// the least there can be.
const LOOKED_AT: usize = 64 << 10;

/// A value that can be an argument of an event.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an event",
    note = "write `?value` to record its `Debug` text, `%value` for its `Display` text, or implement `weftline::Value`"
)]
pub trait Value {
    /// Calls `take` with the value as the trace keeps it.
    fn with(&self, take: &mut dyn FnMut(Argument<'_>));
}

macro_rules! values {
    ($($ty:ty as $kind:ident($as:ty)),*) => { $(
        impl Value for $ty {
            #[inline]
            fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
                take(Argument::$kind(<$as>::from(*self)));
            }
        }
    )* };
}
values!(i8 as Int(i64), i16 as Int(i64), i32 as Int(i64), i64 as Int(i64));
values!(u8 as UInt(u64), u16 as UInt(u64), u32 as UInt(u64), u64 as UInt(u64));
values!(f32 as Float(f64), f64 as Float(f64), bool as Bool(bool));

impl Value for usize {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        take(Argument::UInt(*self as u64));
    }
}

impl Value for isize {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        take(Argument::Int(*self as i64));
    }
}

impl Value for str {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        take(Argument::Text(self.as_bytes()));
    }
}

impl Value for String {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        take(Argument::Text(self.as_bytes()));
    }
}

impl Value for char {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        take(Argument::Text(self.encode_utf8(&mut [0; 4]).as_bytes()));
    }
}

impl Value for std::path::Path {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        take(Argument::Text(self.as_os_str().as_encoded_bytes()));
    }
}

impl Value for std::path::PathBuf {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        self.as_path().with(take);
    }
}

impl<T: Value> Value for Option<T> {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        match self {
            Some(value) => value.with(take),
            None => take(Argument::Null),
        }
    }
}

impl<T: Value + ?Sized> Value for &T {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        (**self).with(take);
    }
}

impl<T: Value + ?Sized> Value for &mut T {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        (**self).with(take);
    }
}

/// A value that is recorded as its `Debug` text: `?value` in the macros.
pub struct Debugged<T>(pub T);
/// A value that is recorded as its `Display` text: `%value` in the macros.
pub struct Displayed<T>(pub T);

impl<T: fmt::Debug> Value for Debugged<T> {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        formatted(format_args!("{:?}", self.0), take);
    }
}

impl<T: fmt::Display> Value for Displayed<T> {
    fn with(&self, take: &mut dyn FnMut(Argument<'_>)) {
        formatted(format_args!("{}", self.0), take);
    }
}

/// A value of any type: recorded as [`Value`], else by its `Debug`, else not at all.
///
/// The compiler looks for `add_to` here, then in what this derefs to, and takes the first one whose bounds hold.
pub struct Any<'a, T: ?Sized>(AnyDebug<'a, T>);
/// What [`Any`] falls back to.
pub struct AnyDebug<'a, T: ?Sized>(AnyElse<'a, T>);
/// What [`AnyDebug`] falls back to.
pub struct AnyElse<'a, T: ?Sized>(&'a T);

impl<'a, T: ?Sized> Any<'a, T> {
    /// Of this value.
    pub fn new(value: &'a T) -> Any<'a, T> {
        Any(AnyDebug(AnyElse(value)))
    }
}

impl<T: Value + ?Sized> Any<'_, T> {
    /// Adds it.
    pub fn add_to(&self, args: &mut Args, table: &Table, key: &Text) {
        args.add(table, key, self.0.0.0);
    }
}

impl<T: fmt::Debug + ?Sized> AnyDebug<'_, T> {
    /// Adds its `Debug` text.
    pub fn add_to(&self, args: &mut Args, table: &Table, key: &Text) {
        args.add(table, key, &Debugged(self.0.0));
    }
}

impl<T: ?Sized> AnyElse<'_, T> {
    /// Adds nothing.
    pub fn add_to(&self, _: &mut Args, _: &Table, _: &Text) {}
}

impl<'a, T: ?Sized> Deref for Any<'a, T> {
    type Target = AnyDebug<'a, T>;
    fn deref(&self) -> &AnyDebug<'a, T> {
        &self.0
    }
}

impl<'a, T: ?Sized> Deref for AnyDebug<'a, T> {
    type Target = AnyElse<'a, T>;
    fn deref(&self) -> &AnyElse<'a, T> {
        &self.0
    }
}

/// The beginning of a text, and how long the whole would be.
struct Limited {
    text: [u8; FORMATTED],
    kept: usize,
    whole: usize,
}

impl Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let mut end = part.len().min(FORMATTED - self.kept);
        if self.kept < self.whole {
            end = 0;
        }
        while !part.is_char_boundary(end) {
            end -= 1;
        }
        self.text[self.kept..self.kept + end].copy_from_slice(&part.as_bytes()[..end]);
        self.kept += end;
        self.whole += part.len();
        if self.whole < LOOKED_AT { Ok(()) } else { Err(fmt::Error) }
    }
}

fn formatted(text: fmt::Arguments<'_>, take: &mut dyn FnMut(Argument<'_>)) {
    let mut out = Limited { text: [0; FORMATTED], kept: 0, whole: 0 };
    // If a `Debug` fails half-way or is stopped, the text up to that point is recorded.
    let _ = out.write_fmt(text);
    let kept = &out.text[..out.kept];
    take(if out.kept == out.whole { Argument::Text(kept) } else { Argument::CutText(kept, out.whole as u32) });
}

/// The arguments of an event in the making.
#[derive(Default)]
pub struct Args {
    small: Payload<SMALL>,
    large: Option<Box<Payload<MAX_PAYLOAD>>>,
}

impl Args {
    /// None yet.
    #[inline(always)]
    pub const fn new() -> Args {
        Args { small: Payload::new(), large: None }
    }

    /// Adds a value. What does not fit any more is left out; long texts are cut.
    #[inline(always)]
    pub fn add(&mut self, table: &Table, key: &Text, value: &(impl Value + ?Sized)) {
        let key = key.id(table);
        value.with(&mut |argument| self.put(key, argument));
    }

    /// Adds a value under the name id of its key.
    #[inline(always)]
    pub fn put(&mut self, key: u32, argument: Argument<'_>) {
        if self.large.is_some() || !self.small.add_whole(key, argument) {
            self.put_large(key, argument);
        }
    }

    #[cold]
    fn put_large(&mut self, key: u32, argument: Argument<'_>) {
        let large = self.large.get_or_insert_with(|| {
            let mut large = Box::new(Payload::new());
            large.append(&self.small);
            large
        });
        large.add(key, argument);
    }

    pub(crate) fn put_usage(&mut self, table: &Table, from: Usage) {
        crate::front::used_since(table, from, |key, value| self.put(key, value));
    }

    /// All of them, packed.
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.large {
            None => self.small.as_bytes(),
            Some(large) => large.as_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftline_recorder::annotation::arguments;

    fn check(value: &dyn Value, expected: &str) {
        let mut seen = String::new();
        value.with(&mut |argument| {
            seen = match argument {
                Argument::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            };
        });
        assert_eq!(seen, expected);
    }

    #[test]
    fn values_are_told() {
        check(&-3i8, "Int(-3)");
        check(&u64::MAX, "UInt(18446744073709551615)");
        check(&0.5f32, "Float(0.5)");
        check(&Some("x"), "x");
        check(&None::<i32>, "Null");
        check(&std::path::Path::new("/a b"), "/a b");
        check(&Debugged(vec![1, 2]), "[1, 2]");
        check(&Displayed('é'), "é");
        check(&&mut 7usize, "UInt(7)");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(400);
        let mut kept = (0, 0);
        Displayed(format_args!("x{long}tail")).with(&mut |argument| {
            if let Argument::CutText(text, whole) = argument {
                kept = (std::str::from_utf8(text).expect("whole characters").len(), whole);
            }
        });
        assert_eq!(kept, (511, 805));
    }

    #[test]
    fn nobody_looks_at_the_end_of_a_huge_value() {
        let elements = std::cell::Cell::new(0);
        let counted = fmt::from_fn(|f| {
            elements.set(elements.get() + 1);
            f.write_str("element")
        });
        let mut whole = 0;
        Debugged(fmt::from_fn(|f| f.debug_list().entries(std::iter::repeat_n(&counted, 1_000_000)).finish())).with(
            &mut |argument| match argument {
                Argument::CutText(text, length) => whole = (length as usize).max(text.len()),
                other => panic!("{other:?}"),
            },
        );
        assert!((LOOKED_AT..LOOKED_AT + 10).contains(&whole) && elements.get() < LOOKED_AT, "{whole}");
    }

    #[test]
    fn many_arguments_move_to_a_box() {
        let mut args = Args::new();
        for key in 0..60 {
            args.put(key, Argument::Text(b"some text"));
        }
        assert_eq!(arguments(args.as_bytes()).map(|(key, _)| key).collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
    }
}
