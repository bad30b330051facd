//! Debug annotations: the arguments of track events, with values of any kind.

use super::sequence::{Interned, Sequence};
use crate::event::Arg;
use crate::formats::bag::{Bag, hex, push_json_float, push_json_text};
use crate::formats::wire::{Fields, Value};

/// Lists within lists.
const DEEPEST: u32 = 32;
/// Bytes that are shown of what has no text.
pub(super) const MOST_RAW: usize = 4 << 10;

/// What was found to be wrong with arguments.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Numbers of texts that were not interned.
    pub(super) missing: bool,
    /// Lists in too many lists, or bytes that are too many.
    pub(super) cut: bool,
}

/// The value of an annotation.
enum Found<'a> {
    Nothing,
    Bool(bool),
    Unsigned(u64),
    Int(i64),
    Double(f64),
    Pointer(u64),
    Text(&'a [u8]),
    Json(&'a [u8]),
    Nested(&'a [u8]),
    Dict,
    Array,
    Proto(&'a [u8], &'a [u8]),
}

/// Adds an annotation to the arguments.
pub(super) fn add(bytes: &[u8], sequence: &Sequence, bag: &mut Bag, wrong: &mut Wrong) {
    let (key, found) = look(bytes, sequence, wrong);
    let key = key.unwrap_or(b"unnamed");
    match found {
        Found::Nothing => bag.put(key, Arg::Json("null")),
        Found::Bool(flag) => bag.put(key, Arg::Bool(flag)),
        Found::Unsigned(number) => bag.put(key, Arg::Unsigned(number)),
        Found::Int(number) => bag.put(key, Arg::Int(number)),
        Found::Double(number) if number.is_finite() => bag.put(key, Arg::Float(number)),
        Found::Text(text) => bag.put(key, Arg::Text(text)),
        Found::Pointer(address) => bag.put(key, Arg::Text(format!("{address:#x}").as_bytes())),
        found => {
            let mut json = String::new();
            push(bytes, &found, sequence, DEEPEST, &mut json, wrong);
            bag.put(key, Arg::Json(&json));
        }
    }
}

/// Name and value of an annotation.
fn look<'a>(bytes: &'a [u8], sequence: &'a Sequence, wrong: &mut Wrong) -> (Option<&'a [u8]>, Found<'a>) {
    let (mut key, mut found) = (None, Found::Nothing);
    let (mut kind, mut proto) = (&b""[..], None);
    let mut text = |table, value: Value<'_>| {
        let text = value.number().and_then(|number| sequence.text(table, number));
        wrong.missing |= text.is_none();
        text
    };
    for (field, value) in Fields::new(bytes) {
        match (field, value) {
            (1, _) => key = text(Interned::AnnotationName, value).or(key),
            (10, Value::Bytes(name)) => key = Some(name),
            (2, _) => found = Found::Bool(value.number().is_some_and(|flag| flag != 0)),
            (3, _) => found = value.number().map_or(Found::Nothing, Found::Unsigned),
            (4, _) => found = value.signed().map_or(Found::Nothing, Found::Int),
            (5, _) => found = value.double().map_or(Found::Nothing, Found::Double),
            (7, _) => found = value.number().map_or(Found::Nothing, Found::Pointer),
            (6, Value::Bytes(bytes)) => found = Found::Text(bytes),
            (17, _) => found = text(Interned::AnnotationText, value).map_or(Found::Nothing, Found::Text),
            (9, Value::Bytes(bytes)) => found = Found::Json(bytes),
            (8, Value::Bytes(bytes)) => found = Found::Nested(bytes),
            (11, Value::Bytes(_)) => found = Found::Dict,
            (12, Value::Bytes(_)) => found = Found::Array,
            (16, Value::Bytes(bytes)) => kind = bytes,
            (13, _) => kind = text(Interned::TypeName, value).unwrap_or_default(),
            (14, Value::Bytes(bytes)) => proto = Some(bytes),
            _ => {}
        }
    }
    if let Some(proto) = proto {
        found = Found::Proto(kind, proto);
    }
    (key, found)
}

/// Appends a value as JSON.
fn push(bytes: &[u8], found: &Found<'_>, sequence: &Sequence, depth: u32, json: &mut String, wrong: &mut Wrong) {
    use std::fmt::Write as _;
    if depth == 0 {
        wrong.cut = true;
        json.push_str("null");
        return;
    }
    // Writing to a text does not fail.
    let _ = match *found {
        Found::Nothing => write!(json, "null"),
        Found::Bool(flag) => write!(json, "{flag}"),
        Found::Unsigned(number) => write!(json, "{number}"),
        Found::Int(number) => write!(json, "{number}"),
        Found::Pointer(address) => write!(json, "\"{address:#x}\""),
        Found::Double(number) => {
            push_json_float(json, number);
            Ok(())
        }
        Found::Text(text) => {
            push_json_text(json, text);
            Ok(())
        }
        Found::Json(text) => {
            match std::str::from_utf8(text) {
                Ok(valid) if serde_json::from_str::<serde::de::IgnoredAny>(valid).is_ok() => json.push_str(valid),
                _ => push_json_text(json, text),
            }
            Ok(())
        }
        Found::Nested(bytes) => {
            push_nested(bytes, depth - 1, json, wrong);
            Ok(())
        }
        Found::Proto(kind, message) => {
            wrong.cut |= message.len() > MOST_RAW;
            json.push_str("{\"type\":");
            push_json_text(json, kind);
            write!(json, ",\"bytes\":\"{}\"}}", hex(&message[..message.len().min(MOST_RAW)]))
        }
        Found::Dict | Found::Array => {
            let dict = matches!(found, Found::Dict);
            let wanted = if dict { 11 } else { 12 };
            let mut separator = if dict { '{' } else { '[' };
            for (field, value) in Fields::new(bytes) {
                let Value::Bytes(entry) = value else { continue };
                if field != wanted {
                    continue;
                }
                json.push(std::mem::replace(&mut separator, ','));
                let (key, found) = look(entry, sequence, wrong);
                if dict {
                    push_json_text(json, key.unwrap_or(b"unnamed"));
                    json.push(':');
                }
                push(entry, &found, sequence, depth - 1, json, wrong);
            }
            json.push(if dict { '}' } else { ']' });
            Ok(())
        }
    };
}

/// Appends a value of the old form.
fn push_nested(bytes: &[u8], depth: u32, json: &mut String, wrong: &mut Wrong) {
    use std::fmt::Write as _;
    let kind = crate::formats::wire::find(bytes, 1).and_then(Value::number).unwrap_or(0);
    if depth == 0 {
        wrong.cut = true;
        json.push_str("null");
        return;
    }
    let inner = |wanted: u32| {
        let fields = Fields::new(bytes).filter(move |(field, _)| *field == wanted);
        fields.filter_map(|(_, value)| value.bytes())
    };
    match kind {
        1 => {
            json.push('{');
            for (place, (key, value)) in inner(2).zip(inner(3)).enumerate() {
                json.push_str(if place > 0 { "," } else { "" });
                push_json_text(json, key);
                json.push(':');
                push_nested(value, depth - 1, json, wrong);
            }
            json.push('}');
        }
        2 => {
            json.push('[');
            for (place, value) in inner(4).enumerate() {
                json.push_str(if place > 0 { "," } else { "" });
                push_nested(value, depth - 1, json, wrong);
            }
            json.push(']');
        }
        _ => match Fields::new(bytes).find(|(field, _)| (5..=8).contains(field)) {
            Some((5, value)) => _ = write!(json, "{}", value.signed().unwrap_or(0)),
            Some((6, value)) => push_json_float(json, value.double().unwrap_or(0.0)),
            Some((7, value)) => _ = write!(json, "{}", value.number().is_some_and(|flag| flag != 0)),
            Some((8, Value::Bytes(text))) => push_json_text(json, text),
            _ => json.push_str("null"),
        },
    }
}
