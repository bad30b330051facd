//! How numbers are printed: one style for the command, reports, findings, SQL and Python.
//!
//! | unit | shown as |
//! |---|---|
//! | time | `830 ns`, `1.5 µs`, `4.5 ms`, `1.50 s`, `17 min 46 s`, `2 h 02 min 05 s` |
//! | bytes | `1023 B`, `6.0 MiB`; with `/s` behind them, a rate |
//! | count | `1,024`; with `/s` behind it, a rate |
//! | share | `12.5 %`; `0 %` and `100 %` only where it is exactly that |
//! | energy, power | `1.5 kJ`, `65.0 W` |
//! | number | `1,024`, `0.25`; `2.5` where it is a mean or a multiple |
//! | range of sizes | `up to 4 KiB`, `4 KiB – 64 KiB`, `over 1 GiB` |
//! | id | `24138`: names something, so it has no separators |
//!
//! It is here and not in `report` because findings are sentences with numbers in them, and because `sql` and `weft run` print numbers without a
//! report. Values stay integers of nanoseconds and bytes until they reach this module.

use std::path::Path;

pub use weftline_index::Unit;

use crate::table::Field;

/// A number of a unit.
pub fn number(unit: Unit, number: f64) -> String {
    let (sign, size) = (if number < 0.0 { "-" } else { "" }, number.abs());
    let rest = match unit {
        Unit::Nanoseconds => time(size.round() as u64),
        Unit::Seconds => time((size * 1e9).round() as u64),
        Unit::Bytes => bytes(size.round() as u64),
        Unit::Kibibytes => bytes((size * 1024.0).round() as u64),
        Unit::BytesPerSecond => format!("{}/s", bytes(size.round() as u64)),
        Unit::PerSecond => format!("{}/s", plain(size)),
        Unit::Share => percent(size),
        Unit::Percent => percent(size / 100.0),
        Unit::Id => format!("{size}"),
        Unit::Joules => metric(size, "J"),
        Unit::Microjoules => metric(size / 1e6, "J"),
        Unit::Watts => metric(size, "W"),
        Unit::Celsius => format!("{size:.1} °C"),
        Unit::Megahertz => format!("{} MHz", plain(size)),
        Unit::Number | Unit::Count => plain(size),
    };
    format!("{sign}{rest}")
}

/// A value of a column, as people read it.
pub fn field(unit: Unit, field: Field<'_>) -> String {
    match field {
        Field::Null => "-".to_owned(),
        Field::Text(text) => printable(text),
        Field::Time(ns) => signed(ns, time),
        Field::Int(integer) => match unit {
            Unit::Number | Unit::Count => signed(integer, count),
            Unit::Bytes => signed(integer, bytes),
            Unit::Nanoseconds => signed(integer, time),
            Unit::Id => integer.to_string(),
            other => number(other, integer as f64),
        },
        Field::Float(float) => number(unit, float),
        Field::Measured(float, unit) => number(unit, float),
        // Drawn, not printed; the highest point matters most.
        Field::Curve(curve) => number(unit, curve.most()),
    }
}

/// An integer that may be negative.
pub fn signed(number: i64, text: impl Fn(u64) -> String) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, text(number.unsigned_abs()))
}

/// `12,345`
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 file`, `12,345 files`
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// `6.0 MiB`
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut size = 1024u128;
    for (place, unit) in UNITS.iter().enumerate() {
        // Tenths, rounded: what would show as 1024.0 of a unit is 1.0 of the next.
        let tenths = (u128::from(n) * 10 + size / 2) / size;
        if tenths < 10_240 || place + 1 == UNITS.len() {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        size *= 1024;
    }
    unreachable!("the last unit takes what is left")
}

/// `830 ns`, `4.5 ms`, `1.50 s`, `17 min 46 s`
pub fn time(ns: u64) -> String {
    let rounded = |unit: u64| (u128::from(ns) + u128::from(unit) / 2) / u128::from(unit);
    if ns < 1_000 {
        return format!("{ns} ns");
    }
    for (tenth, unit) in [(100, "µs"), (100_000, "ms")] {
        let tenths = rounded(tenth);
        if tenths < 10_000 {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    let hundredths = rounded(10_000_000);
    if hundredths < 60_000 {
        return format!("{}.{:02} s", hundredths / 100, hundredths % 100);
    }
    let seconds = rounded(1_000_000_000);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, seconds) => format!("{hours} h {minutes:02} min {seconds:02} s"),
    }
}

/// `12.5 %` of a share of 0.125
pub fn percent(share: f64) -> String {
    if share == 0.0 || share == 1.0 { format!("{} %", share * 100.0) } else { format!("{:.1} %", share * 100.0) }
}

/// `99.9 %` of a share of 0.9999: never more than there is, for shares of which less than all is a loss
pub fn percent_floor(share: f64) -> String {
    percent((share * 1000.0).floor() / 1000.0)
}

/// `4kib_16kib` → `4 – 16 KiB`
pub fn size_range(bin: &str) -> String {
    let pretty = |end: &str| {
        let digits = end.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        match &end[digits.len()..] {
            "kib" => format!("{digits} KiB"),
            "mib" => format!("{digits} MiB"),
            "gib" => format!("{digits} GiB"),
            _ => digits.to_owned(),
        }
    };
    match bin.split_once('_') {
        Some((from, "plus")) => format!("over {}", pretty(from)),
        Some(("0", to)) => format!("up to {}", pretty(to)),
        Some((from, to)) => format!("{} – {}", pretty(from), pretty(to)),
        None => bin.to_owned(),
    }
}

/// `2.5`: how many times, or how many of something on average
pub fn tenths(number: f64) -> String {
    format!("{number:.1}")
}

fn plain(number: f64) -> String {
    if number.fract() == 0.0 || number >= 1000.0 { count(number.round() as u64) } else { format!("{number:.2}") }
}

/// `1.5 kJ`, `65.0 W`, `250.0 mW`
fn metric(number: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    match PREFIXES.iter().find(|(size, _)| number >= *size * 0.99995) {
        Some((size, prefix)) => format!("{:.1} {prefix}{unit}", number / size),
        None if number == 0.0 => format!("0 {unit}"),
        None => format!("{:.1} m{unit}", number * 1e3),
    }
}

/// Control characters in names must not reach a terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A path in JSON, whatever bytes it has: what is no UTF-8 is replaced.
pub fn path_as_text<S: serde::Serializer>(path: &impl AsRef<Path>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.as_ref().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_style() {
        for (shown, expected) in [
            (count(0), "0"),
            (count(999), "999"),
            (count(1_234_567), "1,234,567"),
            (counted(1, "file", "files"), "1 file"),
            (counted(0, "process", "processes"), "0 processes"),
            (counted(2_000, "process", "processes"), "2,000 processes"),
            (bytes(1023), "1023 B"),
            (bytes(1024), "1.0 KiB"),
            (bytes(1536), "1.5 KiB"),
            (bytes((1 << 20) - 1), "1.0 MiB"),
            (bytes(6 << 20), "6.0 MiB"),
            (bytes(5 << 30), "5.0 GiB"),
            (bytes(u64::MAX), "16.0 EiB"),
            (time(0), "0 ns"),
            (time(830), "830 ns"),
            (time(1_500), "1.5 µs"),
            (time(999_949), "999.9 µs"),
            (time(999_950), "1.0 ms"),
            (time(1_500_000), "1.5 ms"),
            (time(999_950_000), "1.00 s"),
            (time(1_500_000_000), "1.50 s"),
            (time(66_500_000_000), "66.50 s"),
            (time(599_990_000_000), "599.99 s"),
            (time(599_995_000_000), "10 min 00 s"),
            (time(1_066_000_000_000), "17 min 46 s"),
            (time(7_325_000_000_000), "2 h 02 min 05 s"),
            (time(u64::MAX), "5124095 h 34 min 34 s"),
            (percent(0.125), "12.5 %"),
            (percent(0.0), "0 %"),
            (percent(1.0), "100 %"),
            (percent(0.9999), "100.0 %"),
            (percent_floor(0.9999), "99.9 %"),
            (percent_floor(1.0), "100 %"),
            (printable("a\x1b[31m\nb"), "a\u{fffd}[31m\u{fffd}b"),
        ] {
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn units_decide_how_a_value_is_shown() {
        for (unit, value, expected) in [
            (Unit::Nanoseconds, Field::Int(1500), "1.5 µs"),
            (Unit::Nanoseconds, Field::Int(-1500), "-1.5 µs"),
            (Unit::Seconds, Field::Float(0.25), "250.0 ms"),
            (Unit::Seconds, Field::Time(250_000_000), "250.0 ms"),
            (Unit::Id, Field::Int(24138), "24138"),
            (Unit::Bytes, Field::Int(2048), "2.0 KiB"),
            (Unit::Bytes, Field::Float(512.0), "512 B"),
            (Unit::BytesPerSecond, Field::Float(1_048_576.0), "1.0 MiB/s"),
            (Unit::PerSecond, Field::Float(12.5), "12.50/s"),
            (Unit::Share, Field::Float(0.125), "12.5 %"),
            (Unit::Percent, Field::Float(12.5), "12.5 %"),
            (Unit::Count, Field::Int(-1234), "-1,234"),
            (Unit::Number, Field::Float(0.25), "0.25"),
            (Unit::Number, Field::Text("/a\tb"), "/a\u{fffd}b"),
            (Unit::Bytes, Field::Null, "-"),
            (Unit::Kibibytes, Field::Int(2048), "2.0 MiB"),
            (Unit::Joules, Field::Float(1500.0), "1.5 kJ"),
            (Unit::Microjoules, Field::Int(2_500_000), "2.5 J"),
            (Unit::Watts, Field::Float(0.0), "0 W"),
            (Unit::Watts, Field::Float(0.25), "250.0 mW"),
            (Unit::Watts, Field::Float(999.99), "1.0 kW"),
            (Unit::Celsius, Field::Int(65), "65.0 °C"),
            (Unit::Megahertz, Field::Int(1410), "1,410 MHz"),
            (Unit::Number, Field::Measured(12.5, Unit::Percent), "12.5 %"),
        ] {
            assert_eq!(field(unit, value), expected, "{unit:?} {value:?}");
        }
    }
}
