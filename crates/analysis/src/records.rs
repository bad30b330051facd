//! Distinguishes counters and aggregated records, in both dialects.
//!
//! DFTracer 2 marks aggregated records with a phase of their own (`3`); DFTracer 1 writes them as counters (`C`) with
//! an argument that counts calls.

use weftline_format::quick::fields;
use weftline_format::{Phase, Value};
use weftline_index::column::phase_code;
use weftline_index::{Batch, Column, Filter};

/// Arguments that count the calls of an aggregated record.
pub(crate) const CALL_COUNTS: [&str; 2] = ["dftu_cnt", "dft_cnt"];

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// Calls of a period, summed by the tracer.
    Profile,
    /// A sample.
    Sample,
}

/// What a row is, by its phase and its other arguments.
pub(crate) fn record_of(phase: u8, rest: &str) -> Option<Record> {
    if phase == phase_code(Phase::Aggregated) {
        Some(Record::Profile)
    } else if phase == phase_code(Phase::Counter) {
        Some(if CALL_COUNTS.iter().any(|key| rest.contains(key)) { Record::Profile } else { Record::Sample })
    } else {
        None
    }
}

/// The phases that such records have, and that of the metadata that give their unit of time.
pub(crate) fn record_filter(filter: &Filter) -> Filter {
    let phases = [Phase::Aggregated, Phase::Counter, Phase::Metadata].map(phase_code);
    filter.clone().with_phases(&phases)
}

/// The unit of time that a metadata row gives its process, ns.
pub(crate) fn time_unit(rest: &str) -> Option<i64> {
    if !rest.contains("time_metric") {
        return None;
    }
    let value = fields(rest).find(|(key, _)| key == "value").map(|(_, value)| value);
    match value {
        Some(Value::Str(unit)) => match unit.to_ascii_uppercase().as_str() {
            "NS" => Some(1),
            "US" => Some(1_000),
            "MS" => Some(1_000_000),
            "SEC" | "S" => Some(1_000_000_000),
            _ => None,
        },
        _ => None,
    }
}

/// The text of a row; empty where there is none.
pub(crate) fn text(batch: &Batch, column: Column, row: usize) -> &str {
    use arrow_array::Array as _;
    let texts = batch.texts(column);
    if texts.is_valid(row) { texts.value(row) } else { "" }
}

/// A number among a record's arguments; text that is one counts too.
pub(crate) fn as_number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Str(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}
