//! How numbers are shown. A column's unit follows from its name, so that the same table serves people and programs.
//!
//! | name | unit | shown as |
//! |---|---|---|
//! | ends with `_ns` | nanoseconds | `4.5 ms` |
//! | begins with `time` (but for `time_range`) or `overlap`, or is `median` | seconds | `4.5 ms` |
//! | ends with `bytes`, or has `size` in it | bytes | `1.2 GiB` |
//! | is `bandwidth`, ends with `_bps` | bytes per second | `1.2 GiB/s` |
//! | ends with `_per_s` | per second | `1,234/s` |
//! | ends with `_frac` | a part of one | `12.3%` |
//! | anything else | a number | `12,345` |

use weftline_analysis::table::Field;

/// `12,345`
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1.2 GiB`
pub fn bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = 0;
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// `1.23 s`, `4.5 ms`, `830 ns`
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        1_000_000_000..600_000_000_000 => format!("{:.2} s", ns as f64 / 1e9),
        _ => {
            let seconds = ns / 1_000_000_000;
            format!("{} h {:02} min {:02} s", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
    }
}

/// Control characters in names must not reach the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A value of a column as people read it.
pub fn shown(column: &str, field: Field<'_>) -> String {
    let number = match field {
        Field::Null => return "-".to_owned(),
        Field::Text(text) => return printable(text),
        Field::Int(number) => number as f64,
        Field::Float(number) => number,
    };
    let (sign, size) = (if number < 0.0 { "-" } else { "" }, number.abs());
    let rest = match unit(column) {
        Unit::Nanoseconds => time(size.round() as u64),
        Unit::Seconds => time((size * 1e9).round() as u64),
        Unit::Bytes => bytes(size.round() as u64),
        Unit::BytesPerSecond => format!("{}/s", bytes(size.round() as u64)),
        Unit::PerSecond => format!("{}/s", plain(size)),
        Unit::Part => format!("{:.1}%", size * 100.0),
        Unit::Number => plain(size),
    };
    format!("{sign}{rest}")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Nanoseconds,
    Seconds,
    Bytes,
    BytesPerSecond,
    PerSecond,
    Part,
    Number,
}

fn unit(column: &str) -> Unit {
    if column.ends_with("_ns") {
        Unit::Nanoseconds
    } else if column.ends_with("_per_s") {
        Unit::PerSecond
    } else if column.ends_with("_frac") || column.contains("_frac_") {
        Unit::Part
    } else if column == "bandwidth" || column.ends_with("_bps") || column == "bw" {
        Unit::BytesPerSecond
    } else if column.ends_with("bytes") || column.contains("size") && !column.contains("size_bin") {
        Unit::Bytes
    } else if column.starts_with("time") && column != "time_range"
        || column.starts_with("overlap")
        || column == "median"
    {
        Unit::Seconds
    } else {
        Unit::Number
    }
}

fn plain(number: f64) -> String {
    if number.fract() == 0.0 || number >= 1000.0 { count(number.round() as u64) } else { format!("{number:.2}") }
}

/// The heading of a column: its name without its unit.
pub fn heading(column: &str) -> String {
    let (short, suffix) = match unit(column) {
        Unit::PerSecond => (column.trim_end_matches("_per_s"), "/s"),
        Unit::Nanoseconds => (column.trim_end_matches("_ns"), ""),
        Unit::BytesPerSecond => (column.trim_end_matches("_bps"), ""),
        Unit::Part => (column.trim_end_matches("_frac"), ""),
        _ => (column, ""),
    };
    format!("{}{suffix}", short.replace('_', " "))
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Numbers as a line of bars, at most `width` wide: neighbours are summed up where there are more. A zero is a space.
pub fn sparkline(values: &[f64], width: usize) -> String {
    if values.is_empty() || width == 0 {
        return String::new();
    }
    let columns = values.len().min(width);
    let sums: Vec<f64> = (0..columns)
        .map(|column| {
            let (from, to) = (column * values.len() / columns, (column + 1) * values.len() / columns);
            values[from..to].iter().sum::<f64>() / (to - from) as f64
        })
        .collect();
    let most = sums.iter().copied().fold(0.0, f64::max);
    sums.iter()
        .map(|sum| if *sum <= 0.0 { ' ' } else { BARS[((sum / most * 8.0).ceil() as usize).clamp(1, 8) - 1] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!((count(0), count(999), count(1_234_567)), ("0".into(), "999".into(), "1,234,567".into()));
        assert_eq!((bytes(1023), bytes(1536), bytes(5 << 30)), ("1023 B".into(), "1.5 KiB".into(), "5.0 GiB".into()));
        assert_eq!(
            (time(830), time(1_500_000), time(7_325_000_000_000)),
            ("830 ns".into(), "1.5 ms".into(), "2 h 02 min 05 s".into())
        );
        assert_eq!(printable("a\x1b[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    }

    #[test]
    fn columns_tell_their_unit() {
        for (column, field, expected) in [
            ("mean_ns", Field::Int(1500), "1.5 µs"),
            ("time_sum", Field::Float(0.25), "250.0 ms"),
            ("time_range", Field::Int(3), "3"),
            ("bytes", Field::Int(2048), "2.0 KiB"),
            ("bandwidth", Field::Float(1048576.0), "1.0 MiB/s"),
            ("size_mean", Field::Float(512.0), "512 B"),
            ("calls_per_s", Field::Float(12.5), "12.50/s"),
            ("overlap_frac", Field::Float(0.125), "12.5%"),
            ("calls", Field::Int(-1234), "-1,234"),
            ("path", Field::Text("/a\tb"), "/a\u{fffd}b"),
            ("path", Field::Null, "-"),
        ] {
            assert_eq!(shown(column, field), expected, "{column}");
        }
        assert_eq!(
            (heading("mean_ns"), heading("calls_per_s"), heading("hosts")),
            ("mean".into(), "calls/s".into(), "hosts".into())
        );
    }

    #[test]
    fn lines_of_bars() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0], 10), " ▁▄█");
        assert_eq!(sparkline(&[8.0, 8.0, 0.0, 0.0], 2), "█ ");
        assert_eq!(sparkline(&[], 5), "");
    }
}
