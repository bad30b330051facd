//! Durations from Python: a number of seconds, a string such as `"250ms"`, or a `timedelta`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Nanoseconds of a length of time; `what` names it in errors.
pub(crate) fn nanoseconds(value: &Bound<'_, PyAny>, what: &str) -> PyResult<i64> {
    let wrong = |given: &str| {
        PyValueError::new_err(format!(
            "{what}={given} is not a time; use seconds or a text such as \"250ms\", \"1s\", \"2m\""
        ))
    };
    if let Ok(text) = value.extract::<String>() {
        return parse(&text).ok_or_else(|| wrong(&format!("{text:?}")));
    }
    let seconds = match value.getattr("total_seconds") {
        Ok(method) => method.call0()?.extract::<f64>()?,
        Err(_) => value.extract::<f64>().map_err(|_| {
            PyTypeError::new_err(format!(
                "{what} must be a number of seconds, a text such as \"250ms\", or a timedelta"
            ))
        })?,
    };
    let nanoseconds = (seconds * 1e9).round();
    if nanoseconds.is_finite() && nanoseconds.abs() < i64::MAX as f64 {
        Ok(nanoseconds as i64)
    } else {
        Err(wrong(&seconds.to_string()))
    }
}

/// The same, of something that may be left out.
pub(crate) fn maybe(value: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Option<i64>> {
    value.map(|value| nanoseconds(value, what)).transpose()
}

/// A text: digits, perhaps a fraction, a unit (seconds without one). Exact, since it may be the width of buckets.
fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text[number.len()..].trim();
    let scale = if unit.is_empty() { 1_000_000_000 } else { UNITS.iter().find(|(name, _)| *name == unit)?.1 };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 12 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let parts = 10i128.pow(fraction.len() as u32);
    let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let whole: u64 = whole.parse().ok()?;
    i64::try_from(sign * (i128::from(whole) * scale + fraction * scale / parts)).ok()
}
