//! Rebuilds a line from its record, equal to the original as JSON.
//!
//! Equal means: the same fields with the same values (of a repeated key, the last one); their order and the space
//! between them may differ, and `5.0` may become `5`.

use std::fmt::Write as _;

use super::checked::column_of_raw;
use super::{Form, INTEGERS, Record};
use crate::dialect::Reading;
use crate::event::Phase;
use crate::text::escape_odd_str;
use crate::view::{FieldSet, Fields};

/// Writes the object of a record, without a line end, as it was read.
pub fn rebuild(record: &Record<'_>, reading: Reading) -> String {
    let mut out = Object { text: String::with_capacity(256) };
    let mut extra = FieldSet::default();
    for (key, _) in Fields::inside(record.extra.as_bytes()) {
        if let Some(field) = FieldSet::of(key) {
            extra.set(field, true);
        }
    }
    if let Some(id) = record.id {
        out.number("id", id);
    }
    if record.form.has(Form::NAME) {
        out.string("name", record.name);
    }
    if record.form.has(Form::CAT) {
        out.string("cat", record.cat);
    }
    if record.form.has(Form::PID) {
        out.number("pid", record.pid);
    }
    if record.form.has(Form::TID) {
        out.number("tid", record.tid);
    }
    if !extra.has(FieldSet::PH) {
        if record.form.has(Form::NUMBERED_PHASE) {
            out.number("ph", phase_number(record.phase));
        } else {
            out.string("ph", record.phase.letter().encode_utf8(&mut [0; 4]));
        }
    }
    if !(extra.has(FieldSet::TS) || extra.has(FieldSet::DUR) || reading.dialect.is_own() && extra.has(FieldSet::NS)) {
        times(&mut out, record, reading);
    }
    if record.has_args {
        out.key("args");
        let mut args = Object { text: String::new() };
        let otherwise = integers_in(record.rest);
        for (i, name) in INTEGERS.iter().enumerate() {
            if record.present & !otherwise & 1 << i != 0 {
                args.number(name, record.integers[i]);
            }
        }
        hash(&mut args, "fhash", record.fhash, record.fhash_is_number);
        hash(&mut args, "hhash", record.hhash, record.hhash_is_number);
        args.fields(record.rest);
        let _ = write!(out.text, "{{{}}}", args.text);
    }
    out.fields(record.extra);
    format!("{{{}}}", out.text)
}

/// Which of [`INTEGERS`] stand among other arguments, because the line had them in another form; as bits.
pub fn integers_in(rest: &str) -> u32 {
    let columns = Fields::inside(rest.as_bytes()).filter_map(|(key, _)| column_of_raw(key));
    columns.filter(|column| *column < INTEGERS.len()).fold(0, |bits, column| bits | 1 << column)
}

fn phase_number(phase: Phase) -> i64 {
    match phase {
        Phase::Complete => 1,
        Phase::Counter => 2,
        Phase::Aggregated => 3,
        _ => 4,
    }
}

fn hash(args: &mut Object, key: &str, text: Option<&str>, is_number: bool) {
    match text {
        Some(digits) if is_number => {
            args.key(key);
            args.text.push_str(digits);
        }
        Some(text) => args.string(key, text),
        None => {}
    }
}

fn times(out: &mut Object, record: &Record<'_>, reading: Reading) {
    if !reading.dialect.is_own() {
        for (key, time) in [("ts", record.start_ns), ("dur", record.dur_ns)] {
            if let Some(ns) = time {
                out.decimal(key, ns, reading.unit_ns);
            }
        }
        return;
    }
    let Some(start) = record.start_ns.map(i128::from) else { return };
    let (ts, start_rest) = (start.div_euclid(1000), start.rem_euclid(1000));
    out.number("ts", ts);
    let mut end_rest = 0;
    if let Some(dur) = record.dur_ns {
        let end = start + i128::from(dur);
        out.number("dur", end.div_euclid(1000) - ts);
        end_rest = end.rem_euclid(1000);
    }
    if start_rest != 0 || end_rest != 0 {
        out.number("ns", start_rest * 1000 + end_rest);
    }
}

/// The inside of an object that is being written.
struct Object {
    text: String,
}

impl Object {
    fn key(&mut self, key: &str) {
        let comma = if self.text.is_empty() { "" } else { "," };
        let _ = write!(self.text, "{comma}\"{key}\":");
    }

    fn number(&mut self, key: &str, v: impl Into<i128>) {
        self.key(key);
        let _ = write!(self.text, "{}", v.into());
    }

    fn string(&mut self, key: &str, text: &str) {
        let mut escaped = Vec::with_capacity(text.len());
        escape_odd_str(&mut escaped, text);
        self.key(key);
        let _ = write!(self.text, "\"{}\"", String::from_utf8_lossy(&escaped));
    }

    /// Nanoseconds in a unit of powers of ten, with as many digits as there are.
    fn decimal(&mut self, key: &str, ns: i64, unit: i64) {
        self.key(key);
        let (size, unit) = (ns.unsigned_abs(), unit.unsigned_abs().max(1));
        let sign = if ns < 0 { "-" } else { "" };
        let _ = write!(self.text, "{sign}{}", size / unit);
        if size % unit != 0 {
            let digits = unit.ilog10() as usize;
            let fraction = format!("{:0digits$}", size % unit);
            let _ = write!(self.text, ".{}", fraction.trim_end_matches('0'));
        }
    }

    fn fields(&mut self, inside: &str) {
        if !inside.is_empty() {
            if !self.text.is_empty() {
                self.text.push(',');
            }
            self.text.push_str(inside);
        }
    }
}
