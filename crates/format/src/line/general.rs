//! Writes events and values of any kind, for importers and tests; the drain uses the specialised functions of the parent module.

use std::io::Write as _;

use super::{HEAD_ROOM, LineBuf, Short, Time};
use crate::event::{Event, Phase, Value};
use crate::store::Store;
use crate::text::escape_odd_str;

impl LineBuf {
    /// One whole event, whatever it holds. A span without a start cannot be placed: only its `dur` is written.
    pub fn write_event(&mut self, event: &Event) {
        let stands_in = |key: &str| event.extra.iter().any(|(k, _)| k == key);
        self.out.put_slice(b"{");
        if !stands_in("name") {
            self.text_field("name", &event.name);
        }
        if !event.cat.is_empty() {
            self.text_field("cat", &event.cat);
        }
        if !stands_in("ph") {
            self.text_field("ph", event.phase.letter().encode_utf8(&mut [0; 4]));
        }
        for (key, value) in [("pid", event.pid), ("tid", event.tid)] {
            if !stands_in(key) {
                self.field(key);
                self.out.put_i64(value);
            }
        }
        if let Some(id) = &event.id {
            self.field("id");
            push_id(&mut self.out, id);
        }
        match (event.start_ns, event.dur_ns) {
            (Some(start), Some(dur)) => self.time(Time::Span(start, start.saturating_add(dur))),
            (Some(at), None) => self.time(Time::At(at)),
            (None, Some(dur)) => self.lone_duration(dur),
            (None, None) => {}
        }
        let own_ns =
            event.start_ns.is_some_and(|start| start % 1000 != 0 || event.dur_ns.is_some_and(|d| d % 1000 != 0));
        for (key, value) in &event.extra {
            if own_ns && key == "ns" {
                continue;
            }
            self.field(key);
            push_value(&mut self.out, value);
        }
        for (key, value) in &event.args {
            self.arg_value(key, value);
        }
        self.finish();
    }

    /// A value that is JSON text already; newlines in it become spaces.
    pub fn arg_json(&mut self, key: &str, json: &str) -> &mut LineBuf {
        self.arg(key, Short::Later);
        push_json(&mut self.out, json);
        self
    }

    fn time(&mut self, time: Time) {
        let mut out = self.out.cursor(HEAD_ROOM);
        time.put(&mut out);
        let len = out.len();
        self.out.commit(len);
    }

    fn text_field(&mut self, key: &str, text: &str) {
        self.field(key);
        push_text(&mut self.out, text);
    }

    fn field(&mut self, key: &str) {
        if !self.out.written().ends_with(b"{") {
            self.out.put_slice(b",");
        }
        push_text(&mut self.out, key);
        self.out.put_slice(b":");
    }

    /// A duration without a start, in decimal microseconds, since there is nothing whose end could be floored.
    fn lone_duration(&mut self, dur: i64) {
        let (sign, dur) = (if dur < 0 { "-" } else { "" }, dur.unsigned_abs());
        let (whole, rest) = (dur / 1000, dur % 1000);
        self.field("dur");
        // Writing to a vector cannot fail.
        self.out.append(|out| drop(write!(out, "{sign}{whole}.{rest:03}")));
    }
}

impl Event {
    /// Whether a line of this kind counts as an event in a member's header: all but metadata do.
    pub fn counts(&self) -> bool {
        self.phase != Phase::Metadata
    }
}

/// The texts that mean a float that JSON does not have.
pub(crate) fn named_float(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

pub(super) fn push_f64(out: &mut Store, v: f64) {
    if v.is_nan() {
        out.put_slice(b"\"NaN\"");
    } else if v.is_infinite() {
        out.put_slice(if v > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
    } else {
        // The shortest text that means the same bits; always with a point or an exponent, so it stays a float.
        // Writing to a vector cannot fail.
        out.append(|out| drop(write!(out, "{v:?}")));
    }
}

pub(super) fn push_bytes(out: &mut Store, v: &[u8]) {
    out.put_slice(b"\"");
    if named_float(v).is_some() {
        push_disguised(out, v);
    } else {
        out.put_escaped(v);
    }
    out.put_slice(b"\"");
}

/// Text that looks like a named float, with its first letter escaped.
#[cold]
fn push_disguised(out: &mut Store, v: &[u8]) {
    // Writing to a vector cannot fail.
    out.append(|out| drop(write!(out, "\\u{:04x}", v[0])));
    out.put_slice(&v[1..]);
}

pub(super) fn push_value(out: &mut Store, v: &Value) {
    match v {
        Value::Null => out.put_slice(b"null"),
        Value::Bool(true) => out.put_slice(b"true"),
        Value::Bool(false) => out.put_slice(b"false"),
        Value::Int(v) => out.put_i64(*v),
        Value::UInt(v) => out.put_u64(*v),
        Value::Float(v) => push_f64(out, *v),
        Value::Str(v) if named_float(v.as_bytes()).is_some() => push_bytes(out, v.as_bytes()),
        Value::Str(v) => push_text(out, v),
        Value::Json(v) => push_json(out, v),
    }
}

fn push_json(out: &mut Store, json: &str) {
    out.append(|out| out.extend(json.bytes().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b })));
}

fn push_text(out: &mut Store, text: &str) {
    out.append(|out| {
        out.push(b'"');
        escape_odd_str(out, text);
        out.push(b'"');
    });
}

/// An id: bare where it is a plain number, as DFTracer and PerfFlowAspect write theirs, else a string.
fn push_id(out: &mut Store, id: &str) {
    let digits = (1..=15).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit());
    if digits && (id == "0" || !id.starts_with('0')) {
        out.put_slice(id.as_bytes());
    } else {
        push_text(out, id);
    }
}
