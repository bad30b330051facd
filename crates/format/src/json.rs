//! A scanner for the JSON that real traces contain.
//!
//! It checks the grammar once and keeps slices of the text; it copies and decodes only on demand. It is
//! lenient where known writers are sloppy (`NaN` and `inf` as bare words, control characters within strings, leading
//! zeros) and strict where that finds a damaged line: a string never runs over the end of its line.

use memchr::memchr3;

use crate::dialect::Dialect;
use crate::event::Value;
use crate::line::named_float;
use crate::text::{from_bytes, unescape};

/// Deeper nesting is damage or malice; a recursive check must end before the stack does.
const MAX_DEPTH: u32 = 128;

/// Why there is no value here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text ends within it.
    End,
    /// It is not JSON.
    Bad(&'static str),
}

pub(crate) type Scan<T> = Result<T, Fault>;

/// A value as it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raw<'a> {
    Null,
    Bool(bool),
    /// Digits, or a bare word for a float that JSON does not have.
    Number(&'a [u8]),
    /// The inside of a string.
    Str(&'a [u8]),
    /// A whole array.
    Array(&'a [u8]),
    /// A whole object.
    Object(&'a [u8]),
}

/// A place in a text.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a [u8], at: usize) -> Scanner<'a> {
        Scanner { text, at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The text between a place and here.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        &self.text[start..self.at]
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    #[inline]
    pub(crate) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes one byte, after space.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, why: &'static str) -> Scan<()> {
        self.skip_space();
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Fault::Bad(why)),
            None => Err(Fault::End),
        }
    }

    /// The inside of a string; the scanner stands at its quote, or at space before it.
    #[inline]
    pub(crate) fn string(&mut self) -> Scan<&'a [u8]> {
        self.expect(b'"', "a string was expected")?;
        let start = self.at;
        // Most strings end within eight bytes: one word tells.
        if let Some(word) = self.text[start..].first_chunk::<8>() {
            let stops = stops(u64::from_le_bytes(*word));
            let len = (stops.trailing_zeros() / 8) as usize;
            if stops != 0 && word[len] == b'"' {
                self.at = start + len + 1;
                return Ok(&self.text[start..start + len]);
            }
        }
        self.long_string(start)
    }

    fn long_string(&mut self, start: usize) -> Scan<&'a [u8]> {
        loop {
            let Some(found) = memchr3(b'"', b'\\', b'\n', &self.text[self.at..]) else {
                return Err(Fault::End);
            };
            self.at += found;
            match self.text[self.at] {
                b'"' => {
                    let inside = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(inside);
                }
                b'\\' if self.at + 1 < self.text.len() => self.at += 2,
                b'\\' => return Err(Fault::End),
                _ => return Err(Fault::Bad("a string is not closed")),
            }
        }
    }

    /// A key and its colon.
    #[inline]
    pub(crate) fn key(&mut self) -> Scan<&'a [u8]> {
        let key = self.string()?;
        self.expect(b':', "a colon was expected")?;
        Ok(key)
    }

    /// Any value.
    #[inline]
    pub(crate) fn value(&mut self) -> Scan<Raw<'a>> {
        self.value_within(MAX_DEPTH)
    }

    /// A value that is a field of an object's value, which has one level less to nest.
    #[inline]
    pub(crate) fn value_within_object(&mut self) -> Scan<Raw<'a>> {
        self.value_within(MAX_DEPTH - 1)
    }

    fn value_within(&mut self, depth: u32) -> Scan<Raw<'a>> {
        self.skip_space();
        let start = self.at;
        match self.peek().ok_or(Fault::End)? {
            b'"' => self.string().map(Raw::Str),
            b'0'..=b'9' | b'-' => self.number(),
            b'{' => {
                self.fields(depth)?;
                Ok(Raw::Object(self.since(start)))
            }
            b'[' => {
                self.elements(depth)?;
                Ok(Raw::Array(self.since(start)))
            }
            _ => self.word(),
        }
    }

    fn fields(&mut self, depth: u32) -> Scan<()> {
        let depth = depth.checked_sub(1).ok_or(Fault::Bad("nested too deep"))?;
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.key()?;
            self.value_within(depth)?;
            if !self.more(b'}')? {
                return Ok(());
            }
        }
    }

    fn elements(&mut self, depth: u32) -> Scan<()> {
        let depth = depth.checked_sub(1).ok_or(Fault::Bad("nested too deep"))?;
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value_within(depth)?;
            if !self.more(b']')? {
                return Ok(());
            }
        }
    }

    /// After a field or element: whether another one follows. Takes the comma or the closing bracket.
    #[inline]
    pub(crate) fn more(&mut self, close: u8) -> Scan<bool> {
        self.skip_space();
        let byte = self.peek().ok_or(Fault::End)?;
        self.at += 1;
        match byte {
            b',' => Ok(true),
            found if found == close => Ok(false),
            _ => Err(Fault::Bad("a comma or a closing bracket was expected")),
        }
    }

    fn number(&mut self) -> Scan<Raw<'a>> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.peek().is_some_and(|b| b.is_ascii_alphabetic()) {
                return self.word().map(|_| Raw::Number(self.since(start)));
            }
        }
        self.digits()?;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Raw::Number(self.since(start)))
    }

    #[inline]
    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        match self.peek() {
            _ if self.at > start => Ok(()),
            None => Err(Fault::End),
            Some(_) => Err(Fault::Bad("a digit was expected")),
        }
    }

    fn word(&mut self) -> Scan<Raw<'a>> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphabetic()) {
            self.at += 1;
        }
        match self.since(start) {
            b"null" => Ok(Raw::Null),
            b"true" => Ok(Raw::Bool(true)),
            b"false" => Ok(Raw::Bool(false)),
            word if bare_float(word).is_some() => Ok(Raw::Number(word)),
            _ if self.peek().is_none() => Err(Fault::End),
            _ => Err(Fault::Bad("a value was expected")),
        }
    }
}

/// Marks the bytes of a word that end a string or need a look: a quote, a backslash, a newline. The lowest mark is
/// exact; those above it may be wrong.
#[inline(always)]
pub(crate) fn stops(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero_byte = |w: u64| w.wrapping_sub(ONES) & !w;
    let (quote, backslash, newline) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5c), word ^ (ONES * 0x0a));
    (zero_byte(quote) | zero_byte(backslash) | zero_byte(newline)) & (ONES * 0x80)
}

/// The bare words that Python (`NaN`, `Infinity`) and C (`nan`, `inf`) print for floats that JSON does not have.
fn bare_float(word: &[u8]) -> Option<f64> {
    match word {
        b"NaN" | b"nan" => Some(f64::NAN),
        b"Infinity" | b"inf" => Some(f64::INFINITY),
        _ => None,
    }
}

impl<'a> Raw<'a> {
    /// The value as the event model holds it. In lines of ours some strings mean floats.
    pub(crate) fn to_value(self, dialect: Dialect) -> Value {
        match self {
            Raw::Null => Value::Null,
            Raw::Bool(v) => Value::Bool(v),
            Raw::Number(digits) => number_value(digits),
            Raw::Str(inside) => match named_float(inside).filter(|_| dialect.is_own()) {
                Some(v) => Value::Float(v),
                None => Value::Str(unescape(inside).into_owned()),
            },
            Raw::Array(text) | Raw::Object(text) => Value::Json(json_text(text)),
        }
    }

    /// The integer, where it is one or a string that holds one, as the first DFTracer wrote all its numbers.
    #[inline]
    pub(crate) fn to_i64(self) -> Option<i64> {
        match self {
            Raw::Number(digits) | Raw::Str(digits) => {
                small_integer(digits).or_else(|| match crate::decimal::Decimal::parse(digits)?.scaled(1)? {
                    v if v.is_whole() => v.floor(),
                    _ => None,
                })
            }
            _ => None,
        }
    }
}

/// An integer of at most 18 digits: nearly all of them.
#[inline]
pub(crate) fn small_integer(digits: &[u8]) -> Option<i64> {
    let (sign, digits) = match digits {
        [b'-', rest @ ..] => (-1, rest),
        _ => (1, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut v = 0i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        v = v * 10 + i64::from(digit);
    }
    Some(sign * v)
}

fn number_value(digits: &[u8]) -> Value {
    match small_integer(digits) {
        Some(0) if digits[0] == b'-' => return Value::Float(-0.0),
        Some(v) => return Value::Int(v),
        None => {}
    }
    let text = String::from_utf8_lossy(digits);
    if let Ok(v) = text.parse::<i64>() {
        return Value::Int(v);
    }
    if let Ok(v) = text.parse::<u64>() {
        return Value::UInt(v);
    }
    let bare = match digits {
        [b'-', word @ ..] => bare_float(word).map(|v| -v),
        word => bare_float(word),
    };
    if let Some(v) = bare {
        return Value::Float(v);
    }
    let whole = digits.iter().all(|b| b.is_ascii_digit() || *b == b'-');
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() && !whole => Value::Float(v),
        // Beyond 64 bits, or beyond what a float can hold: the digits are all there is.
        _ => Value::Json(text.into_owned()),
    }
}

/// Nested text: as it is where it is UTF-8, else with the odd bytes held.
fn json_text(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(_) => text.utf8_chunks().fold(String::with_capacity(text.len() + 16), |mut out, chunk| {
            out.push_str(chunk.valid());
            out.push_str(&from_bytes(chunk.invalid()));
            out
        }),
    }
}

/// The strings of an array of strings; others in it are left out.
pub(crate) fn string_list(array: &[u8]) -> Vec<String> {
    let mut list = Vec::new();
    let mut scanner = Scanner::new(array, 1);
    while let Ok(value) = scanner.value() {
        if let Raw::Str(inside) = value {
            list.push(unescape(inside).into_owned());
        }
        if !scanner.more(b']').unwrap_or(false) {
            break;
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_kind() {
        let big = "1".repeat(400);
        for (text, expected) in [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("0", Value::Int(0)),
            ("-0", Value::Float(-0.0)),
            ("007", Value::Int(7)),
            ("9223372036854775807", Value::Int(i64::MAX)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("9223372036854775808", Value::UInt(1 << 63)),
            ("18446744073709551615", Value::UInt(u64::MAX)),
            ("18446744073709551616", Value::Json("18446744073709551616".into())),
            ("-9223372036854775809", Value::Json("-9223372036854775809".into())),
            (&big, Value::Json(big.clone())),
            ("1e999", Value::Json("1e999".into())),
            ("1.5", Value::Float(1.5)),
            ("-2E+3", Value::Float(-2000.0)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-inf", Value::Float(f64::NEG_INFINITY)),
            ("\"a\\nb\"", Value::Str("a\nb".into())),
            ("\"NaN\"", Value::Str("NaN".into())),
            ("[1, {\"a\":[]}]", Value::Json("[1, {\"a\":[]}]".into())),
            ("{ }", Value::Json("{ }".into())),
        ] {
            let raw = Scanner::new(text.as_bytes(), 0).value().unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!(raw.to_value(Dialect::Chrome), expected, "{text}");
        }
        for text in ["NaN", "nan", "-nan", "\"NaN\""] {
            let raw = Scanner::new(text.as_bytes(), 0).value().expect("a value");
            assert!(raw.to_value(Dialect::Weftline).as_f64().is_some_and(f64::is_nan), "{text}");
        }
    }

    #[test]
    fn faults_tell_cut_from_bad() {
        let deep = "[".repeat(200);
        for (text, fault) in [
            ("", Fault::End),
            ("\"abc", Fault::End),
            ("\"abc\\", Fault::End),
            ("{\"a\"", Fault::End),
            ("{\"a\":1,", Fault::End),
            ("[1,2", Fault::End),
            ("tru", Fault::End),
            ("-", Fault::End),
            ("1.", Fault::End),
            ("\"a\nb\"", Fault::Bad("a string is not closed")),
            ("{a:1}", Fault::Bad("a string was expected")),
            ("{\"a\" 1}", Fault::Bad("a colon was expected")),
            ("[1 2]", Fault::Bad("a comma or a closing bracket was expected")),
            ("[1,]", Fault::Bad("a value was expected")),
            ("truth ", Fault::Bad("a value was expected")),
            ("-x ", Fault::Bad("a value was expected")),
            ("1.x", Fault::Bad("a digit was expected")),
            (&deep, Fault::Bad("nested too deep")),
        ] {
            assert_eq!(Scanner::new(text.as_bytes(), 0).value(), Err(fault), "{text}");
        }
    }

    #[test]
    fn lists_of_strings() {
        for (text, expected) in [("[]", &[][..]), ("[\"a\", 1,\"b\\u00e9\"]", &["a", "bé"]), ("[\"a\"", &["a"])] {
            assert_eq!(string_list(text.as_bytes()), expected, "{text}");
        }
    }
}
