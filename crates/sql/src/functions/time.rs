//! `origin`, `time_bucket`, `bucket_start`.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::error::{DataFusionError, Result};

use super::helper::{Helper, Parameter};

const TIME_AND_WIDTH: &[Parameter] = &[Parameter::Integer, Parameter::TextOrInteger];

pub(super) fn functions(origin: i64) -> Vec<Helper> {
    vec![
        Helper::new("origin", &[], DataType::Int64, move |_, rows| Ok(Arc::new(Int64Array::from_value(origin, rows)))),
        Helper::new("time_bucket", TIME_AND_WIDTH, DataType::Int64, move |columns, _| {
            per_row(columns, |time, width| bucket(time, origin, width))
        }),
        Helper::new("bucket_start", TIME_AND_WIDTH, DataType::Int64, move |columns, _| {
            per_row(columns, |time, width| {
                let start = i128::from(origin) + i128::from(bucket(time, origin, width)) * i128::from(width);
                start.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
            })
        }),
    ]
}

/// The bucket of a time. Times before the origin have negative ones.
fn bucket(time: i64, origin: i64, width: i64) -> i64 {
    let since = i128::from(time) - i128::from(origin);
    since.div_euclid(i128::from(width)).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

fn per_row(columns: &[ArrayRef], answer: impl Fn(i64, i64) -> i64) -> Result<ArrayRef> {
    let (times, widths) = (columns[0].as_primitive::<Int64Type>(), columns[1].as_string::<i32>());
    let mut known: Option<(&str, i64)> = None;
    let mut answers = Vec::with_capacity(times.len());
    for row in 0..times.len() {
        if !times.is_valid(row) || !widths.is_valid(row) {
            answers.push(None);
            continue;
        }
        let text = widths.value(row);
        let width = match known {
            Some((same, width)) if same == text => width,
            _ => parse_width(text)?,
        };
        known = Some((text, width));
        answers.push(Some(answer(times.value(row), width)));
    }
    Ok(Arc::new(Int64Array::from(answers)))
}

/// `1s`, `100ms`, `0.5m`, or a number of nanoseconds.
fn parse_width(text: &str) -> Result<i64> {
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|c: char| c.is_alphabetic() || c == ' ');
    let unit: f64 = match trimmed[digits.len()..].trim() {
        "" | "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        _ => f64::NAN,
    };
    let width = digits.parse::<f64>().unwrap_or(f64::NAN) * unit;
    if width >= 1.0 && width < i64::MAX as f64 {
        return Ok(width.round() as i64);
    }
    Err(DataFusionError::Execution(format!("'{text}' is not a time width; use one such as '1s', '100ms' or '5m'")))
}
