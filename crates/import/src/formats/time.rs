//! Dates and times of day in text, as integers.

/// Nanoseconds of a day.
pub(crate) const DAY_NS: i64 = 86_400_000_000_000;

/// Days from 1970-01-01 to a date of the Gregorian calendar; none where there is no such day.
pub(crate) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month - 1).ok()?)?;
    if !(1..=length).contains(&day) || !(0..10_000).contains(&year) {
        return None;
    }
    // Years that begin in March have their leap day at the end.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let of_all = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(era * 146_097 + of_all - 719_468)
}

/// The number of a month by its English name, in any case; three letters are enough.
pub(crate) fn month(name: &[u8]) -> Option<i64> {
    const NAMES: [&[u8; 3]; 12] =
        [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
    let start = name.get(..3)?.to_ascii_lowercase();
    NAMES.iter().position(|known| known[..] == start[..]).map(|place| place as i64 + 1)
}

/// Nanoseconds of a day from hours, minutes, seconds and a fraction of digits; none beyond the day. A leap second is the next one.
pub(crate) fn of_day(hour: i64, minute: i64, second: i64, fraction: &[u8]) -> Option<i64> {
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..61).contains(&second) {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction_ns(fraction)?)
}

/// Nanoseconds of the digits behind a point; those behind the ninth are dropped.
pub(crate) fn fraction_ns(digits: &[u8]) -> Option<i64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |place: usize| digits.get(place).map_or(0, |digit| i64::from(digit - b'0'));
    Some((0..9).fold(0, |sum, place| sum * 10 + digit(place)))
}

/// A number of digits alone.
pub(crate) fn number(digits: &[u8]) -> Option<i64> {
    let all = !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
    all.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// Times of day, line by line → nanoseconds since the epoch on the same wall clock: midnights are counted. A line may be a little earlier than the one
/// before it, on both sides of midnight.
#[derive(Debug, Default)]
pub(crate) struct Days {
    day: i64,
    last: Option<i64>,
}

impl Days {
    /// From a day on, in days since 1970-01-01.
    pub(crate) fn from(day: i64) -> Days {
        Days { day, last: None }
    }

    /// The next time; none where it does not fit.
    pub(crate) fn at(&mut self, of_day_ns: i64) -> Option<i64> {
        let last = *self.last.get_or_insert(of_day_ns);
        let is_late = of_day_ns > last.saturating_add(DAY_NS / 2);
        if of_day_ns < last.saturating_sub(DAY_NS / 2) {
            self.day = self.day.saturating_add(1);
        }
        if !is_late {
            self.last = Some(of_day_ns);
        }
        self.day.saturating_sub(i64::from(is_late)).checked_mul(DAY_NS)?.checked_add(of_day_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (date, expected) in [
            ((1970, 1, 1), Some(0)),
            ((2000, 2, 29), Some(11_016)),
            ((1900, 2, 29), None),
            ((2026, 11, 18), Some(20_775)),
            ((2026, 13, 1), None),
            ((2026, 4, 31), None),
            ((1969, 12, 31), Some(-1)),
        ] {
            assert_eq!(days(date.0, date.1, date.2), expected, "{date:?}");
        }
    }

    #[test]
    fn times_of_day() {
        assert_eq!(of_day(23, 59, 60, b"5"), Some(86_400_500_000_000));
        assert_eq!(of_day(24, 0, 0, b""), None);
        assert_eq!(fraction_ns(b"1234567899"), Some(123_456_789));
        assert_eq!(fraction_ns(b"12x"), None);
        assert_eq!((month(b"September"), month(b"AU"), month(b"aug")), (Some(9), None, Some(8)));
        assert_eq!((number(b"007"), number(b""), number(b"-1")), (Some(7), None, None));
    }
}
