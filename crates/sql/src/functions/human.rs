//! `human_size`, `human_time`: numbers as `weft info` prints them.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, StringArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};

use super::helper::{Helper, Parameter};

pub(super) fn functions() -> Vec<Helper> {
    let function = |name, text: fn(i64) -> String| {
        Helper::new(name, &[Parameter::Integer], DataType::Utf8, move |columns, _| {
            let numbers = columns[0].as_primitive::<Int64Type>();
            Ok(Arc::new(numbers.iter().map(|number| number.map(text)).collect::<StringArray>()))
        })
    };
    vec![function("human_size", size), function("human_time", time)]
}

fn signed(number: i64, text: impl Fn(u64) -> String) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, text(number.unsigned_abs()))
}

fn size(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    signed(bytes, |bytes| {
        if bytes < 1024 {
            return format!("{bytes} B");
        }
        let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        format!("{value:.1} {}", UNITS[unit])
    })
}

fn time(ns: i64) -> String {
    signed(ns, |ns| match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        1_000_000_000..600_000_000_000 => format!("{:.2} s", ns as f64 / 1e9),
        _ => {
            let seconds = ns / 1_000_000_000;
            format!("{} h {:02} min {:02} s", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
    })
}
