//! The arguments of a call as strace prints them: split at their commas, numbers, texts, and the files of descriptors (`-y`, `-yy`).

use std::ops::Range;

/// No call has more; what is behind is not told apart.
const MOST: usize = 16;

/// Splits arguments, and finds the `)` behind them: none where the text ends before.
pub(super) fn split(text: &[u8], args: &mut Vec<Range<usize>>) -> Option<usize> {
    args.clear();
    let (mut depth, mut start, mut at) = (0u32, 0, 0);
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at)?,
            b'(' | b'[' | b'{' => depth = depth.saturating_add(1),
            b')' if depth == 0 => {
                add(text, start..at, args);
                return Some(at);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                add(text, start..at, args);
                start = at + 1;
            }
            b'<' if at > 0 && (text[at - 1].is_ascii_digit() || text[..at].ends_with(b"AT_FDCWD")) => {
                at = annotation_end(text, at).unwrap_or(at);
            }
            b'/' if text.get(at + 1) == Some(&b'*') => {
                at += memchr::memmem::find(&text[at..], b"*/").map_or(0, |length| length + 1);
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn add(text: &[u8], range: Range<usize>, args: &mut Vec<Range<usize>>) {
    let arg = &text[range.clone()];
    let start = range.start + (arg.len() - arg.trim_ascii_start().len());
    let end = start + arg.trim_ascii().len();
    if args.len() < MOST && (end > start || !args.is_empty()) {
        args.push(start..end);
    }
}

/// The closing `"` of a text that opens at a place.
fn string_end(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// The `>` of a descriptor's file whose `<` is at a place. A path has its own `<` and `>` escaped, with a device in such brackets behind it; all else
/// has its parts in square brackets: `TCP:[127.0.0.1:1->127.0.0.1:2]`.
pub(super) fn annotation_end(text: &[u8], open: usize) -> Option<usize> {
    if text.get(open) != Some(&b'<') || matches!(text.get(open + 1), Some(b'<' | b'.')) {
        return None;
    }
    let path = text.get(open + 1) == Some(&b'/');
    let (mut angles, mut squares, mut at) = (0u32, 0u32, open + 1);
    loop {
        match *text.get(at)? {
            b'<' => angles = angles.saturating_add(1),
            b'>' if angles > 0 => angles -= 1,
            b'>' if squares == 0 => return Some(at),
            b'[' if !path => squares = squares.saturating_add(1),
            b']' if !path => squares = squares.saturating_sub(1),
            b'"' if !path => at = string_end(text, at)?,
            _ => {}
        }
        at += 1;
    }
}

/// A decimal or hexadecimal number; comments, names and files behind it do not matter.
pub(super) fn number(text: &[u8]) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix(b"0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    let length = digits.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let behind = digits.get(length).copied();
    if length == 0 || length > 20 || !matches!(behind, None | Some(b' ' | b'<' | b'>')) {
        return None;
    }
    let digit = |byte: &u8| i128::from(char::from(*byte).to_digit(radix).unwrap_or(0));
    let value = digits[..length].iter().fold(0i128, |sum, byte| sum * i128::from(radix) + digit(byte));
    Some(if negative { -value } else { value })
}

/// A text, with its escapes undone; none where an argument is none. What strace cut off (`"abc"...`) is missing.
pub(super) fn text(arg: &[u8], into: &mut Vec<u8>) -> Option<()> {
    into.clear();
    let end = (arg.first() == Some(&b'"')).then(|| string_end(arg, 0))??;
    unescape(&arg[1..end], into);
    Some(())
}

/// Undoes `\n`, `\"`, `\33` and `\x1b`.
pub(super) fn unescape(escaped: &[u8], into: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &escaped[at..]) {
        into.extend_from_slice(&escaped[at..at + found]);
        at += found + 1;
        let Some(&kind) = escaped.get(at) else { return };
        at += 1;
        let octal = |byte: &u8| (b'0'..=b'7').contains(byte);
        into.push(match kind {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'x' => {
                let digits = escaped[at..].iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
                let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
                let value = escaped[at..at + digits].iter().fold(0, |sum, byte| sum * 16 + digit(byte));
                at += digits;
                value as u8
            }
            b'0'..=b'7' => {
                let digits = escaped[at..].iter().take(2).take_while(|byte| octal(byte)).count();
                let more = escaped[at..at + digits].iter();
                let value = more.fold(u32::from(kind - b'0'), |sum, byte| sum * 8 + u32::from(byte - b'0'));
                at += digits;
                value as u8
            }
            other => other,
        });
    }
    into.extend_from_slice(&escaped[at..]);
}

/// The file of a descriptor argument: what stands in `<>` behind its number.
pub(super) fn annotation(arg: &[u8]) -> Option<&[u8]> {
    let open = memchr::memchr(b'<', arg)?;
    let descriptor = &arg[..open];
    if descriptor != b"AT_FDCWD" && !descriptor.iter().all(u8::is_ascii_digit) {
        return None;
    }
    annotation_end(arg, open).map(|end| &arg[open + 1..end])
}

/// The file of an annotation as traces name it: devices behind a path are left off, and sockets of all families begin alike.
pub(super) fn file(annotation: &[u8], into: &mut Vec<u8>) {
    into.clear();
    if annotation.starts_with(b"/") {
        let end = memchr::memchr(b'<', annotation).unwrap_or(annotation.len());
        unescape(&annotation[..end], into);
        return;
    }
    let kinds: [&[u8]; 4] = [b"pipe:", b"socket:", b"anon_inode:", b"memfd:"];
    let colon = memchr::memmem::find(annotation, b":[").filter(|_| annotation.ends_with(b"]"));
    match colon {
        Some(colon) if !kinds.iter().any(|kind| annotation.starts_with(kind)) => {
            into.extend_from_slice(b"socket:[");
            into.extend_from_slice(&annotation[..colon]);
            into.push(b' ');
            unescape(&annotation[colon + 2..], into);
        }
        _ => unescape(annotation, into),
    }
}
