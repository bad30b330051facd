//! Arguments: values of the program, packed for the recorder.

use std::fmt::{self, Write};

use weftline_recorder::annotation::{Argument, MAX_PAYLOAD, Payload, Usage};
use weftline_recorder::table::Table;

use crate::text::Text;

/// Bytes of arguments that a span keeps in itself; more are kept in a box.
const SMALL: usize = 152;
/// Text that `?value` and `%value` keep at most.
const FORMATTED: usize = 512;

/// A value that can be an argument of an event.
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

/// A value that is told as its `Debug` text: `?value` in the macros.
pub struct Debugged<T>(pub T);
/// A value that is told as its `Display` text: `%value` in the macros.
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
        Ok(())
    }
}

fn formatted(text: fmt::Arguments<'_>, take: &mut dyn FnMut(Argument<'_>)) {
    let mut out = Limited { text: [0; FORMATTED], kept: 0, whole: 0 };
    // A `Debug` that gives up half-way is told as far as it came.
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
    #[inline]
    pub fn add(&mut self, table: &Table, key: &Text, value: &(impl Value + ?Sized)) {
        let key = key.id(table);
        value.with(&mut |argument| self.put(key, argument));
    }

    #[inline]
    pub(crate) fn put(&mut self, key: u32, argument: Argument<'_>) {
        match &mut self.large {
            None if self.small.add_whole(key, argument) => {}
            Some(large) => {
                large.add(key, argument);
            }
            None => self.grow(key, argument),
        }
    }

    #[cold]
    fn grow(&mut self, key: u32, argument: Argument<'_>) {
        let mut large = Box::new(Payload::new());
        large.append(&self.small);
        large.add(key, argument);
        self.large = Some(large);
    }

    pub(crate) fn put_usage(&mut self, from: Usage, to: Usage) {
        self.put(0, Argument::Usage(from, to));
    }

    #[inline(always)]
    pub(crate) fn as_bytes(&self) -> &[u8] {
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
    fn many_arguments_move_to_a_box() {
        let mut args = Args::new();
        for key in 0..60 {
            args.put(key, Argument::Text(b"some text"));
        }
        assert_eq!(arguments(args.as_bytes()).map(|(key, _)| key).collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
    }
}
