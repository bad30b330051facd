//! Times as users' formats write them: numbers of a unit, RFC 3339, or a pattern in the manner of strptime.

use crate::formats::time::{self, DAY_NS};

/// How a time is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// A number; this many nanoseconds each.
    Unit(i64),
    /// `2026-11-18T09:05:00.5+01:00`; a blank may stand for the `T`.
    Rfc3339,
    /// A pattern.
    Pattern(Vec<Item>),
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// Exactly this byte.
    Byte(u8),
    /// Blanks, any number of them.
    Blanks,
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    Hour,
    HalfHour,
    Half,
    Minute,
    Second,
    /// A fraction of a second: digits.
    Fraction,
    /// A distance to UTC.
    Zone,
    /// Seconds since the epoch.
    Epoch,
    /// A word that does not matter: the name of a day or a zone.
    Word,
}

/// What a text tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Nanoseconds on the source's clock: since the epoch, or since what it counts from.
    At(i64),
    /// Nanoseconds of a day that nothing tells.
    OfDay(i64),
    /// UTC, whatever the source's clock is otherwise.
    Utc(i64),
}

/// Reads a pattern; what is wrong in words.
pub(super) fn pattern(text: &str) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let item = match byte {
            b' ' => Item::Blanks,
            b'%' => match bytes.next() {
                Some(b'%') => Item::Byte(b'%'),
                Some(b'Y') => Item::Year,
                Some(b'y') => Item::ShortYear,
                Some(b'm') => Item::Month,
                Some(b'b' | b'B' | b'h') => Item::MonthName,
                Some(b'd' | b'e') => Item::Day,
                Some(b'H' | b'k') => Item::Hour,
                Some(b'I' | b'l') => Item::HalfHour,
                Some(b'p' | b'P') => Item::Half,
                Some(b'M') => Item::Minute,
                Some(b'S') => Item::Second,
                Some(b'f' | b'N') => Item::Fraction,
                Some(b'z') => Item::Zone,
                Some(b's') => Item::Epoch,
                Some(b'a' | b'A' | b'Z') => Item::Word,
                Some(b'F') => {
                    items.extend([Item::Year, Item::Byte(b'-'), Item::Month, Item::Byte(b'-'), Item::Day]);
                    continue;
                }
                Some(b'T') => {
                    items.extend([Item::Hour, Item::Byte(b':'), Item::Minute, Item::Byte(b':'), Item::Second]);
                    continue;
                }
                other => {
                    let other = other.map_or(String::new(), |byte| char::from(byte).to_string());
                    return Err(format!(
                        "%{other} is unknown: %Y %y %m %b %d %H %I %p %M %S %f %z %s %a %Z %F %T %% are known"
                    ));
                }
            },
            byte => Item::Byte(byte),
        };
        items.push(item);
    }
    let clock = items.iter().any(|item| matches!(item, Item::Hour | Item::HalfHour | Item::Epoch));
    if clock { Ok(items) } else { Err("a pattern of a time needs %H, %I or %s".to_owned()) }
}

/// Whether a pattern's times are UTC by themselves.
pub(super) fn has_zone(items: &[Item]) -> bool {
    items.iter().any(|item| matches!(item, Item::Zone | Item::Epoch))
}

impl Form {
    /// Reads a time. `year` is that of dates without one.
    pub(super) fn read(&self, text: &[u8], year: i64) -> Option<Moment> {
        let text = text.trim_ascii();
        match self {
            Form::Unit(unit) => decimal(text, *unit).map(Moment::At),
            Form::Rfc3339 => rfc3339(text).map(Moment::Utc),
            Form::Pattern(items) => by_pattern(items, text, year),
        }
    }
}

/// A decimal number of a unit, in nanoseconds and exact; digits below a nanosecond are dropped.
pub(super) fn decimal(text: &[u8], unit: i64) -> Option<i64> {
    let (negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, fraction) = match memchr::memchr2(b'.', b',', digits) {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &b""[..]),
    };
    if whole.len() > 19 || !whole.iter().all(u8::is_ascii_digit) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let sum = whole.iter().fold(0i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let part = i128::from(time::fraction_ns(fraction)?) * i128::from(unit) / 1_000_000_000;
    let value = sum * i128::from(unit) + part;
    i64::try_from(if negative { -value } else { value }).ok()
}

/// Seconds ahead of UTC: `+01:00`, `+0100`, `+01`, `-5`, `Z`, `UTC`.
pub(crate) fn zone_seconds(text: &[u8]) -> Option<i32> {
    if matches!(text, b"Z" | b"z" | b"UTC" | b"GMT") {
        return Some(0);
    }
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = match &text[1..] {
        [h1] => ([b'0', *h1], *b"00"),
        [h1, h2] => ([*h1, *h2], *b"00"),
        [h1, h2, m1, m2] | [h1, h2, b':', m1, m2] => ([*h1, *h2], [*m1, *m2]),
        _ => return None,
    };
    let (hours, minutes) = (time::number(&hours)?, time::number(&minutes)?);
    (hours <= 14 && minutes < 60).then(|| sign * (hours * 3600 + minutes * 60) as i32)
}

fn rfc3339(text: &[u8]) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range).and_then(time::number);
    let fixed = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if fixed.iter().any(|(at, byte)| text.get(*at) != Some(byte)) || !matches!(text.get(10), Some(b'T' | b't' | b' ')) {
        return None;
    }
    let days = time::days(number(0..4)?, number(5..7)?, number(8..10)?)?;
    let mut rest = text.get(19..)?;
    let mut fraction: &[u8] = b"";
    if let Some(digits) = rest.strip_prefix(b".").or(rest.strip_prefix(b",")) {
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (fraction, rest) = digits.split_at(length);
    }
    let of_day = time::of_day(number(11..13)?, number(14..16)?, number(17..19)?, fraction)?;
    let ahead = i64::from(zone_seconds(rest.trim_ascii())?) * 1_000_000_000;
    days.checked_mul(DAY_NS)?.checked_add(of_day)?.checked_sub(ahead)
}

/// Takes up to some digits.
fn digits<'a>(rest: &mut &'a [u8], most: usize) -> Option<&'a [u8]> {
    let length = rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    let (taken, behind) = rest.split_at(length);
    *rest = behind;
    (length > 0).then_some(taken)
}

fn by_pattern(items: &[Item], text: &[u8], year: i64) -> Option<Moment> {
    let mut rest = text;
    let (mut date, mut has_date) = ((year, 1, 1), false);
    let (mut hour, mut minute, mut second, mut half) = (0, 0, 0, None);
    let (mut fraction, mut ahead, mut epoch): (&[u8], Option<i32>, Option<i64>) = (b"", None, None);
    for item in items {
        match item {
            Item::Byte(byte) => rest = rest.strip_prefix(&[*byte])?,
            Item::Blanks => rest = rest.trim_ascii_start(),
            Item::Year => (date.0, has_date) = (time::number(digits(&mut rest, 4)?)?, true),
            Item::ShortYear => (date.0, has_date) = (time::number(digits(&mut rest, 2)?)? + 2000, true),
            Item::Month => (date.1, has_date) = (time::number(digits(&mut rest, 2)?)?, true),
            Item::MonthName => {
                let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                (date.1, has_date) = (time::month(&rest[..length])?, true);
                rest = &rest[length..];
            }
            Item::Day => {
                rest = rest.trim_ascii_start();
                (date.2, has_date) = (time::number(digits(&mut rest, 2)?)?, true);
            }
            Item::Hour | Item::HalfHour => {
                rest = rest.trim_ascii_start();
                hour = time::number(digits(&mut rest, 2)?)?;
            }
            Item::Half => {
                let word = rest.get(..2)?;
                half = Some(match word.to_ascii_uppercase().as_slice() {
                    b"AM" => 0,
                    b"PM" => 12,
                    _ => return None,
                });
                rest = &rest[2..];
            }
            Item::Minute => minute = time::number(digits(&mut rest, 2)?)?,
            Item::Second => second = time::number(digits(&mut rest, 2)?)?,
            Item::Fraction => fraction = digits(&mut rest, 18)?,
            Item::Zone => {
                let length =
                    rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-:".contains(byte)).count();
                ahead = Some(zone_seconds(&rest[..length])?);
                rest = &rest[length..];
            }
            Item::Epoch => epoch = Some(time::number(digits(&mut rest, 18)?)?),
            Item::Word => {
                let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                rest = &rest[length..];
            }
        }
    }
    if !rest.is_empty() {
        return None;
    }
    if let Some(seconds) = epoch {
        let ns = seconds.checked_mul(1_000_000_000)?.checked_add(time::fraction_ns(fraction)?)?;
        return Some(Moment::Utc(ns));
    }
    if let Some(half) = half {
        hour = hour % 12 + half;
    }
    let of_day = time::of_day(hour, minute, second, fraction)?;
    if !has_date {
        return Some(match ahead {
            // A zone without a day moves what is of a day too.
            Some(ahead) => Moment::OfDay(of_day - i64::from(ahead) * 1_000_000_000),
            None => Moment::OfDay(of_day),
        });
    }
    let at = time::days(date.0, date.1, date.2)?.checked_mul(DAY_NS)?.checked_add(of_day)?;
    Some(match ahead {
        Some(ahead) => Moment::Utc(at.checked_sub(i64::from(ahead) * 1_000_000_000)?),
        None => Moment::At(at),
    })
}

/// Whether a pattern's times tell their day.
pub(super) fn has_date(items: &[Item]) -> bool {
    items.iter().any(|item| matches!(item, Item::Day | Item::Month | Item::MonthName | Item::Year | Item::Epoch))
}
