//! Encodes and decodes JSON strings, including bytes that are not UTF-8.
//!
//! A path is bytes; JSON and [`String`] are Unicode. This lossless mapping connects them:
//!
//! | bytes of a path | in the file | in a [`String`] of this crate |
//! |---|---|---|
//! | valid UTF-8 | as they are, escaped where JSON asks | the same text |
//! | a byte `80`..`ff` that is not UTF-8 | `\udc80`..`\udcff`, as Python's `surrogateescape` | U+10DC80..U+10DCFF |
//! | UTF-8 of U+10D800..U+10DFFF itself | each of its four bytes like an invalid one | four such characters |
//!
//! So the private characters U+10D800..U+10DFFF of a `String` here always stand for a lone surrogate
//! (U+D800..U+DFFF), never for themselves, and [`path_bytes`] gives back the exact bytes. Other lone surrogates in
//! foreign files are kept the same way and written as they came.

use std::borrow::Cow;

/// What is added to a lone surrogate to hold it in a `String`.
const SHIFT: u32 = 0x10_0000;

/// The lone surrogate that a character of a `String` stands for.
#[inline]
pub(crate) fn lone_surrogate(c: char) -> Option<u16> {
    let code = u32::from(c);
    (0x10_D800..=0x10_DFFF).contains(&code).then(|| (code - SHIFT) as u16)
}

/// The character that holds a lone surrogate.
pub(crate) fn hold_surrogate(surrogate: u16) -> char {
    debug_assert!((0xD800..=0xDFFF).contains(&surrogate));
    char::from_u32(u32::from(surrogate) + SHIFT).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The character that holds a byte which is not UTF-8.
pub(crate) fn hold_byte(byte: u8) -> char {
    hold_surrogate(0xDC00 | u16::from(byte))
}

/// Bytes as a `String` of this crate; the inverse of [`path_bytes`].
pub fn from_bytes(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.is_ascii() || !holds_private(text) => Cow::Borrowed(text),
        _ => {
            let mut out = String::with_capacity(bytes.len() + 16);
            push_bytes(&mut out, bytes);
            Cow::Owned(out)
        }
    }
}

/// The exact bytes of a path that was read from a trace or made by [`from_bytes`].
///
/// Lone surrogates that no byte stands behind (they occur in foreign files only) become their three-byte form.
pub fn path_bytes(text: &str) -> Cow<'_, [u8]> {
    if !holds_private(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut utf8 = [0; 4];
    for c in text.chars() {
        match lone_surrogate(c) {
            Some(byte @ 0xDC80..=0xDCFF) => out.push(byte as u8),
            Some(code) => out.extend_from_slice(&three_bytes(code)),
            None => out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes()),
        }
    }
    Cow::Owned(out)
}

/// Whether a text holds a character of the private range, which is rare enough for one quick look at its bytes.
#[inline]
fn holds_private(text: &str) -> bool {
    !text.is_ascii()
        && memchr::memmem::find(text.as_bytes(), &[0xF4, 0x8D])
            .is_some_and(|_| text.chars().any(|c| lone_surrogate(c).is_some()))
}

/// Appends bytes of any kind to a `String` of this crate.
fn push_bytes(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if lone_surrogate(c).is_some() {
                let mut utf8 = [0; 4];
                out.extend(c.encode_utf8(&mut utf8).bytes().map(hold_byte));
            } else {
                out.push(c);
            }
        }
        out.extend(chunk.invalid().iter().copied().map(hold_byte));
    }
}

/// Whether bytes can stand between quotes as they are. Names and keys are short: they are looked at in one or two words.
#[inline(always)]
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let word = |chunk: &[u8; 8]| u64::from_le_bytes(*chunk);
    let half = |chunk: &[u8; 4]| u64::from(u32::from_le_bytes(*chunk));
    if let (Some(first), Some(last), 8..=16) = (bytes.first_chunk(), bytes.last_chunk(), bytes.len()) {
        odd_bytes(word(first)) | odd_bytes(word(last)) == 0
    } else if let (Some(first), Some(last), 4..=7) = (bytes.first_chunk(), bytes.last_chunk(), bytes.len()) {
        odd_bytes(half(first) | half(last) << 32) == 0
    } else {
        // Without an early way out, so that it is done sixteen bytes at a time.
        !bytes.iter().fold(false, |odd, &b| odd | (b < 0x20) | (b == b'"') | (b == b'\\') | (b >= 0x80))
    }
}

/// Not zero when one of the eight bytes cannot stand in a JSON string as it is: a control character, a quote, a
/// backslash, or beyond ASCII.
#[inline(always)]
fn odd_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero_byte = |w: u64| w.wrapping_sub(ONES) & !w;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | zero_byte(word ^ (ONES * 0x22)) | zero_byte(word ^ (ONES * 0x5c)) | word) & (ONES * 0x80)
}

/// Appends raw bytes as the inside of a JSON string.
#[cold]
pub(crate) fn escape_odd_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if lone_surrogate(c).is_some() {
                let mut utf8 = [0; 4];
                for byte in c.encode_utf8(&mut utf8).bytes() {
                    push_unicode_escape(out, 0xDC00 | u16::from(byte));
                }
            } else {
                escape_char(out, c);
            }
        }
        for &byte in chunk.invalid() {
            push_unicode_escape(out, 0xDC00 | u16::from(byte));
        }
    }
}

/// Appends a `String` of this crate as the inside of a JSON string.
#[cold]
pub(crate) fn escape_odd_str(out: &mut Vec<u8>, text: &str) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match lone_surrogate(c) {
            // Two halves that stand side by side would be read as a pair: the first goes as the bytes it stands for.
            Some(high @ 0xD800..=0xDBFF)
                if chars.peek().copied().and_then(lone_surrogate).is_some_and(|low| low >= 0xDC00) =>
            {
                for byte in three_bytes(high) {
                    push_unicode_escape(out, 0xDC00 | u16::from(byte));
                }
            }
            Some(code) => push_unicode_escape(out, code),
            None => escape_char(out, c),
        }
    }
}

/// A lone surrogate as UTF-8 would write it if it could.
fn three_bytes(surrogate: u16) -> [u8; 3] {
    [0xE0 | (surrogate >> 12) as u8, 0x80 | (surrogate >> 6) as u8 & 63, 0x80 | surrogate as u8 & 63]
}

fn escape_char(out: &mut Vec<u8>, c: char) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        c if c < ' ' => push_unicode_escape(out, c as u16),
        c => {
            let mut utf8 = [0; 4];
            out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
        }
    }
}

fn push_unicode_escape(out: &mut Vec<u8>, code: u16) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |shift: u16| DIGITS[usize::from(code >> shift & 15)];
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

/// The text that the inside of a JSON string means. Bytes that are not UTF-8 are held; so is an escape that JSON does
/// not know (`\x`), character by character, because the writers that make such lines forgot to escape a backslash.
pub fn unescape(raw: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', raw).is_none() {
        return from_bytes(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        push_bytes(&mut out, &rest[..at]);
        rest = &rest[at + 1..];
        let Some((&kind, tail)) = rest.split_first() else {
            out.push('\\');
            break;
        };
        rest = match kind {
            b'"' | b'\\' | b'/' => push_after(&mut out, char::from(kind), tail),
            b'b' => push_after(&mut out, '\u{8}', tail),
            b'f' => push_after(&mut out, '\u{c}', tail),
            b'n' => push_after(&mut out, '\n', tail),
            b'r' => push_after(&mut out, '\r', tail),
            b't' => push_after(&mut out, '\t', tail),
            b'u' => match hex4(tail) {
                Some(code) => push_code(&mut out, code, &tail[4..]),
                None => push_after(&mut out, '\\', rest),
            },
            _ => push_after(&mut out, '\\', rest),
        };
    }
    push_bytes(&mut out, rest);
    Cow::Owned(out)
}

fn push_after<'a>(out: &mut String, c: char, rest: &'a [u8]) -> &'a [u8] {
    out.push(c);
    rest
}

/// Appends the character of a `\uXXXX` escape and of the second half of its surrogate pair, and gives what follows.
fn push_code<'a>(out: &mut String, code: u16, rest: &'a [u8]) -> &'a [u8] {
    if let 0xD800..=0xDBFF = code
        && let Some(low @ 0xDC00..=0xDFFF) = rest.strip_prefix(b"\\u").and_then(hex4)
    {
        let code = 0x1_0000 + (u32::from(code & 0x3FF) << 10) + u32::from(low & 0x3FF);
        let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        let mut utf8 = [0; 4];
        push_bytes(out, c.encode_utf8(&mut utf8).as_bytes());
        return &rest[6..];
    }
    out.push(char::from_u32(u32::from(code)).unwrap_or_else(|| hold_surrogate(code)));
    rest
}

fn hex4(text: &[u8]) -> Option<u16> {
    text.first_chunk::<4>()?.iter().try_fold(0u16, |code, &digit| {
        let value = char::from(digit).to_digit(16)?;
        Some(code << 4 | value as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], in_file: &str) {
        let mut raw = Vec::new();
        escape_odd_bytes(&mut raw, bytes);
        assert_eq!(raw.escape_ascii().to_string(), in_file.as_bytes().escape_ascii().to_string());
        let text = unescape(&raw);
        assert_eq!(path_bytes(&text), bytes, "{in_file}");
        assert_eq!(from_bytes(bytes), text, "{in_file}");
        let mut again = Vec::new();
        escape_odd_str(&mut again, &text);
        assert_eq!(again, raw, "{in_file}");
    }

    #[test]
    fn bytes_come_back() {
        check(b"", "");
        check(b"/data/f.bin", "/data/f.bin");
        check(b"say \"hi\"\\\n\r\t\x08\x0c\x00\x1f\x7f", "say \\\"hi\\\"\\\\\\n\\r\\t\\b\\f\\u0000\\u001f\x7f");
        check("käse 😀".as_bytes(), "käse 😀");
        check(b"a\xffb\x80", "a\\udcffb\\udc80");
        check(b"\xe4\xb8", "\\udce4\\udcb8");
        check(b"\xed\xa0\x80", "\\udced\\udca0\\udc80");
        check("\u{10DC80}".as_bytes(), "\\udcf4\\udc8d\\udcb2\\udc80");
        check("\u{10DFFF}\u{10E000}\u{10D7FF}".as_bytes(), "\\udcf4\\udc8d\\udcbf\\udcbf\u{10E000}\u{10D7FF}");
    }

    #[test]
    fn foreign_escapes_are_understood() {
        for (raw, text) in [
            (&b"\\u00e9\\u00E9\\/"[..], "éé/"),
            (b"\\ud83d\\ude00", "😀"),
            (b"\\ud83d", "\u{10D83D}"),
            (b"\\ud83dx\\ude00", "\u{10D83D}x\u{10DE00}"),
            (b"\\ud83d\\ud83d\\ude00", "\u{10D83D}😀"),
            (b"\\udbf6\\udc80", "\u{10DCF4}\u{10DC8D}\u{10DCA2}\u{10DC80}"),
            (b"raw \xff", "raw \u{10DCFF}"),
            (b"C:\\xdir\\", "C:\\xdir\\"),
            (b"\\u12", "\\u12"),
            (b"\\uzzzz", "\\uzzzz"),
            (b"\\ud83d\x80", "\u{10D83D}\u{10DC80}"),
        ] {
            assert_eq!(unescape(raw), text, "{}", raw.escape_ascii());
            let mut again = Vec::new();
            escape_odd_str(&mut again, text);
            assert_eq!(path_bytes(&unescape(&again)), path_bytes(text), "{}", raw.escape_ascii());
        }
    }
}
