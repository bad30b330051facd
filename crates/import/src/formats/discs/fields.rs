//! Words, numbers, dates and times of the tools' texts, in whatever locale they ran.

use crate::formats::time;

/// Nanoseconds of a second.
pub(super) const SECOND: i64 = 1_000_000_000;
/// Nanoseconds of a day.
pub(super) const DAY: i64 = 86_400 * SECOND;

/// The words of a line, between blanks.
#[derive(Debug, Clone)]
pub(super) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a [u8]) -> Words<'a> {
        Words { rest: line.trim_ascii() }
    }

    /// What is left of the line, without blanks around it.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_ascii_start();
        Some(word)
    }
}

/// A whole number as printf writes it. One that was printed as unsigned though it is negative becomes what it was.
pub(super) fn integer(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    let mut sum: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        sum = sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    if negative { i64::try_from(sum).ok().map(i64::wrapping_neg) } else { Some(sum.cast_signed()) }
}

/// A process or thread.
pub(super) fn id(word: &[u8]) -> Option<u32> {
    integer(word).and_then(|number| u32::try_from(number).ok())
}

/// A number with a point or a comma in it.
pub(super) fn decimal(word: &[u8]) -> Option<f64> {
    if word.is_empty() || word.len() > 40 || !word.iter().all(|byte| byte.is_ascii_digit() || b".,-".contains(byte)) {
        return None;
    }
    let mut text = [0; 40];
    let text = &mut text[..word.len()];
    text.copy_from_slice(word);
    for byte in text.iter_mut() {
        if *byte == b',' {
            *byte = b'.';
        }
    }
    std::str::from_utf8(text).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Which of the first two numbers of a date is the month, where the date does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DateOrder {
    /// As Americans write: 08/27/2022.
    #[default]
    MonthFirst,
    /// As most others do: 27/08/2022.
    DayFirst,
}

/// A date as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// One day, in days since 1970.
    Day(i64),
    /// Numbers of a day and a month, in whatever order, and the year.
    Unclear(i64, i64, i64),
}

impl Written {
    /// Days since 1970.
    pub(super) fn days(self, order: DateOrder) -> Option<i64> {
        match (self, order) {
            (Written::Day(days), _) => Some(days),
            (Written::Unclear(month, day, year), DateOrder::MonthFirst)
            | (Written::Unclear(day, month, year), DateOrder::DayFirst) => time::days(year, month, day),
        }
    }
}

/// The digits of a word, in groups; none where there are not three, or one is longer than a year.
fn three(word: &[u8]) -> Option<[&[u8]; 3]> {
    let mut groups = word.split(|byte| !byte.is_ascii_digit()).filter(|group| !group.is_empty());
    let three = [groups.next()?, groups.next()?, groups.next()?];
    (groups.next().is_none() && three.iter().all(|group| group.len() <= 4)).then_some(three)
}

/// `2022-08-27`, `20220827`, `08/27/2022`, `27.08.22`, `2022年08月27日`.
pub(super) fn date(word: &[u8]) -> Option<Written> {
    if word.len() == 8 && word.iter().all(u8::is_ascii_digit) {
        let part = |from: usize, to: usize| time::number(&word[from..to]);
        return Some(Written::Day(time::days(part(0, 4)?, part(4, 6)?, part(6, 8)?)?));
    }
    // A word with letters is a name or a version.
    let other = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b':';
    if word.len() > 24 || !word.first()?.is_ascii_digit() || word.iter().any(other) {
        return None;
    }
    let groups = three(word)?;
    let [first, second, third] = [time::number(groups[0])?, time::number(groups[1])?, time::number(groups[2])?];
    if groups[0].len() == 4 {
        return Some(Written::Day(time::days(first, second, third)?));
    }
    if groups[0].len() > 2 || groups[1].len() > 2 || !matches!(groups[2].len(), 2 | 4) {
        return None;
    }
    let year = if groups[2].len() == 2 { 2000 + third } else { third };
    let point_or_dash = word.iter().any(|byte| b".-".contains(byte));
    match (first, second) {
        (day @ 13..=31, month @ 1..=12) => Some(Written::Day(time::days(year, month, day)?)),
        (month @ 1..=12, day @ 13..=31) => Some(Written::Day(time::days(year, month, day)?)),
        (day @ 1..=12, month @ 1..=12) if point_or_dash => Some(Written::Day(time::days(year, month, day)?)),
        (1..=12, 1..=12) => Some(Written::Unclear(first, second, year)),
        _ => None,
    }
}

/// A half of the day, where a word says which.
pub(super) fn half(word: &[u8]) -> Option<bool> {
    let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    if is(&["PM", "P.M.", "下午", "午後", "오후", "μμ"]) {
        Some(true)
    } else if is(&["AM", "A.M.", "上午", "午前", "오전", "πμ"]) {
        Some(false)
    } else {
        None
    }
}

/// A time of day in nanoseconds: `22:34:32`, `22.34.32`, `10时34分32秒`, `22:34:32.5`.
pub(super) fn time_of_day(word: &[u8]) -> Option<i64> {
    if word.len() > 32 || !word.first()?.is_ascii_digit() {
        return None;
    }
    // The digits behind the seconds are a fraction; a point between hours and minutes is none.
    let (clock, fraction) = match (memchr::memchr(b':', word), memchr::memrchr(b'.', word)) {
        (Some(_), Some(point)) => (&word[..point], &word[point + 1..]),
        _ => (word, &b""[..]),
    };
    let groups = three(clock)?;
    if groups.iter().any(|group| group.len() > 2) {
        return None;
    }
    time::of_day(time::number(groups[0])?, time::number(groups[1])?, time::number(groups[2])?, fraction)
}

/// The time of day at the front of words, with the half of the day where there is one.
pub(super) fn take_time(words: &mut Words<'_>) -> Option<i64> {
    let mut after = words.clone();
    let first = after.next()?;
    // Some languages put the half first.
    let (before, clock) = match half(first) {
        Some(late) => (Some(late), after.next()?),
        None => (None, first),
    };
    let at = time_of_day(clock)?;
    let mut behind = after.clone();
    let late = before.or_else(|| {
        let late = behind.next().and_then(half)?;
        after = behind;
        Some(late)
    });
    *words = after;
    let hour = at / (3600 * SECOND);
    Some(match late {
        Some(true) if hour < 12 => at + DAY / 2,
        Some(false) if hour == 12 => at - DAY / 2,
        _ => at,
    })
}

/// A time of day on the day on which it is nearest to another time.
pub(super) fn nearest(of_day: i64, to: i64) -> i64 {
    let same = to.saturating_sub(to.rem_euclid(DAY)).saturating_add(of_day);
    match same.saturating_sub(to) {
        later if later > DAY / 2 => same.saturating_sub(DAY),
        later if later < -DAY / 2 => same.saturating_add(DAY),
        _ => same,
    }
}

/// Days of lines that tell a time of day only: one that is far behind the line before is of the next day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Days {
    last: i64,
    first_is_day: bool,
}

impl Days {
    /// The first line is of this day.
    pub(super) fn from_day(days: i64) -> Days {
        Days { last: days.saturating_mul(DAY), first_is_day: true }
    }

    /// The first line is near this time.
    pub(super) fn near(local_ns: i64) -> Days {
        Days { last: local_ns, first_is_day: false }
    }

    /// The local time of a line.
    pub(super) fn at(&mut self, of_day: i64) -> i64 {
        self.last = match std::mem::take(&mut self.first_is_day) {
            true => self.last.saturating_add(of_day),
            false => nearest(of_day, self.last),
        };
        self.last
    }
}

/// `+0200`, `-04:00`, `Z`, in seconds.
pub(super) fn zone(text: &[u8]) -> Option<i32> {
    if text == b"Z" {
        return Some(0);
    }
    let (sign, digits) = match text.split_first()? {
        (b'+', digits) => (1, digits),
        (b'-', digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        4 => (&digits[..2], &digits[2..]),
        5 if digits[2] == b':' => (&digits[..2], &digits[3..]),
        _ => return None,
    };
    let (hours, minutes) = (time::number(hours)?, time::number(minutes)?);
    (hours <= 14 && minutes < 60).then(|| sign * (hours * 3600 + minutes * 60) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers() {
        let mut words = Words::new(b"  a\tbc   d e ");
        assert_eq!((words.next(), words.next(), words.rest()), (Some(&b"a"[..]), Some(&b"bc"[..]), &b"d e"[..]));
        assert_eq!(integer(b"18446744073709551103"), Some(-513));
        assert_eq!(integer(b"-1886596322"), Some(-1_886_596_322));
        assert_eq!((integer(b"99999999999999999999"), integer(b"-"), integer(b"1x")), (None, None, None));
        assert_eq!(
            (decimal(b"4,33"), decimal(b"-0.5"), decimal(b"1e5"), decimal(b"1.2.3")),
            (Some(4.33), Some(-0.5), None, None)
        );
        assert_eq!(
            (zone(b"+0530"), zone(b"-04:00"), zone(b"Z"), zone(b"+99")),
            (Some(19_800), Some(-14_400), Some(0), None)
        );
    }

    #[test]
    fn dates_in_any_locale() {
        let day = time::days(2022, 8, 27).expect("a day");
        for text in ["2022-08-27", "20220827", "08/27/2022", "27/08/2022", "27.08.22", "08/27/22", "2022年08月27日"]
        {
            assert_eq!(
                date(text.as_bytes()).and_then(|written| written.days(DateOrder::MonthFirst)),
                Some(day),
                "{text}"
            );
        }
        let unclear = date(b"08/07/2022").expect("a date");
        assert_eq!(unclear.days(DateOrder::MonthFirst), time::days(2022, 8, 7));
        assert_eq!(unclear.days(DateOrder::DayFirst), time::days(2022, 7, 8));
        for text in ["x86_64", "5.4.0-122-generic", "5.4.0", "6.18.44-x", "13/13/2022", "1:2:3", "", "1/2"] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn times_in_any_locale() {
        let hour = 3600 * SECOND;
        for (text, expected, rest) in [
            ("22:34:32 all", 22 * hour + 2072 * SECOND, "all"),
            ("10:34:32 PM all", 22 * hour + 2072 * SECOND, "all"),
            ("12:00:00 AM x", 0, "x"),
            ("12:00:01 PM x", 12 * hour + SECOND, "x"),
            ("下午 10时34分32秒 all", 22 * hour + 2072 * SECOND, "all"),
            ("01:00:00.25 x", hour + SECOND / 4, "x"),
            ("01.00.00 x", hour, "x"),
        ] {
            let mut words = Words::new(text.as_bytes());
            assert_eq!((take_time(&mut words), words.rest()), (Some(expected), rest.as_bytes()), "{text}");
        }
        for text in ["Average: all", "24:00:00", "PM", "", "1:2", "CPU"] {
            assert_eq!(take_time(&mut Words::new(text.as_bytes())), None, "{text}");
        }
    }

    #[test]
    fn midnights() {
        let mut days = Days::from_day(10);
        let late = DAY - SECOND;
        assert_eq!(
            [days.at(late), days.at(0), days.at(late), days.at(5)],
            [11 * DAY - SECOND, 11 * DAY, 11 * DAY - SECOND, 11 * DAY + 5]
        );
        let mut near = Days::near(11 * DAY + 3);
        assert_eq!([near.at(late), near.at(SECOND)], [11 * DAY - SECOND, 11 * DAY + SECOND]);
    }
}
