//! Values of attributes, in both forms → arguments.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::event::Arg;
use crate::formats::bag::{Bag, hex, push_json_float, push_json_text};
use crate::formats::wire::{Fields, Value, find};

/// Lists within lists.
const DEEPEST: u32 = 32;

/// The names of arguments that are not attributes.
const OWN: [&str; 12] = [
    "trace_id",
    "span_id",
    "parent_span_id",
    "trace_state",
    "kind",
    "status",
    "status_message",
    "flags",
    "links",
    "dropped_attributes",
    "dropped_events",
    "dropped_links",
];

/// An attribute's name as an argument: one that is ours already gets a prefix.
pub(super) fn key<'a>(prefix: &str, key: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
    let taken = prefix.is_empty() && OWN.iter().any(|own| own.as_bytes() == &*key);
    match (taken, prefix) {
        (true, _) => [b"attribute.", &*key].concat().into(),
        (false, "") => key,
        (false, prefix) => [prefix.as_bytes(), &*key].concat().into(),
    }
}

/// `KeyValue` of protobuf.
pub(super) fn add_proto(bag: &mut Bag, prefix: &str, bytes: &[u8]) {
    let (name, value) = pair(bytes);
    let name = key(prefix, name.into());
    match value.and_then(|value| Fields::new(value).last()) {
        Some((1, Value::Bytes(text))) => bag.put(&name, Arg::Text(text)),
        Some((2, Value::Varint(flag))) => bag.put(&name, Arg::Bool(flag != 0)),
        Some((3, Value::Varint(number))) => bag.put(&name, Arg::Int(number.cast_signed())),
        Some((4, value)) if value.double().is_some_and(f64::is_finite) => {
            bag.put(&name, Arg::Float(value.double().unwrap_or_default()));
        }
        Some((7, Value::Bytes(bytes))) => bag.put(&name, Arg::Text(hex(bytes).as_bytes())),
        _ => {
            let mut json = String::new();
            push_proto(&mut json, value.unwrap_or_default(), DEEPEST);
            bag.put(&name, Arg::Json(&json));
        }
    }
}

fn pair(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    (find(bytes, 1).and_then(Value::bytes).unwrap_or_default(), find(bytes, 2).and_then(Value::bytes))
}

/// Appends `AnyValue` of protobuf as JSON.
fn push_proto(json: &mut String, bytes: &[u8], depth: u32) {
    let lists = |bytes| Fields::new(bytes).filter(|(field, _)| *field == 1).filter_map(|(_, value)| value.bytes());
    match Fields::new(bytes).last() {
        _ if depth == 0 => json.push_str("null"),
        Some((1, Value::Bytes(text))) => push_json_text(json, text),
        Some((2, Value::Varint(flag))) => json.push_str(if flag != 0 { "true" } else { "false" }),
        Some((3, Value::Varint(number))) => json.push_str(&number.cast_signed().to_string()),
        Some((4, Value::Fixed64(bits))) => push_json_float(json, f64::from_bits(bits)),
        Some((5, Value::Bytes(list))) => {
            json.push('[');
            for (place, value) in lists(list).enumerate() {
                json.push_str(if place > 0 { "," } else { "" });
                push_proto(json, value, depth - 1);
            }
            json.push(']');
        }
        Some((6, Value::Bytes(list))) => {
            json.push('{');
            for (place, entry) in lists(list).enumerate() {
                let (key, value) = pair(entry);
                json.push_str(if place > 0 { "," } else { "" });
                push_json_text(json, key);
                json.push(':');
                push_proto(json, value.unwrap_or_default(), depth - 1);
            }
            json.push('}');
        }
        Some((7, Value::Bytes(bytes))) => push_json_text(json, hex(bytes).as_bytes()),
        _ => json.push_str("null"),
    }
}

/// A field of an object by its name in JSON, or by its name in protobuf, which readers must take too.
pub(super) fn get<'a>(object: &'a Json, camel: &str, snake: &str) -> Option<&'a Json> {
    object.get(camel).or_else(|| object.get(snake)).filter(|value| !value.is_null())
}

/// `KeyValue` of JSON.
pub(super) fn add_json(bag: &mut Bag, prefix: &str, pair: &Json) {
    let name = pair.get("key").and_then(Json::as_str).unwrap_or_default();
    let name = key(prefix, name.as_bytes().into());
    match pair.get("value").map(plain) {
        Some(Json::String(text)) => bag.put(&name, Arg::Text(text.as_bytes())),
        Some(Json::Bool(flag)) => bag.put(&name, Arg::Bool(flag)),
        Some(Json::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => bag.put(&name, Arg::Int(number)),
            (None, Some(number)) => bag.put(&name, Arg::Float(number)),
            (None, None) => {}
        },
        Some(value) => bag.put(&name, Arg::Json(&value.to_string())),
        None => bag.put(&name, Arg::Json("null")),
    }
}

/// `AnyValue` of JSON as the value that it stands for. The parser has limited the depth.
fn plain(value: &Json) -> Json {
    let list = |value: &Json| value.get("values").and_then(Json::as_array).cloned().unwrap_or_default();
    let number = |value: &Json| match value {
        Json::String(text) => text.parse::<i64>().map_or_else(|_| value.clone(), Json::from),
        value => value.clone(),
    };
    if let Some(text) = get(value, "stringValue", "string_value") {
        text.clone()
    } else if let Some(flag) = get(value, "boolValue", "bool_value") {
        flag.clone()
    } else if let Some(whole) = get(value, "intValue", "int_value") {
        number(whole)
    } else if let Some(fraction) = get(value, "doubleValue", "double_value") {
        // A whole number is still a fraction; NaN and its like are texts.
        fraction.as_f64().map_or_else(|| fraction.clone(), Json::from)
    } else if let Some(array) = get(value, "arrayValue", "array_value") {
        list(array).iter().map(plain).collect()
    } else if let Some(pairs) = get(value, "kvlistValue", "kvlist_value") {
        let pairs = list(pairs);
        let name = |pair: &Json| pair.get("key").and_then(Json::as_str).unwrap_or_default().to_owned();
        Json::Object(pairs.iter().map(|pair| (name(pair), pair.get("value").map_or(Json::Null, plain))).collect())
    } else if let Some(bytes) = get(value, "bytesValue", "bytes_value") {
        let text = bytes.as_str().unwrap_or_default();
        Json::from(base64(text).map_or_else(|| text.to_owned(), |bytes| hex(&bytes)))
    } else {
        Json::Null
    }
}

/// An id of some bytes, as hexadecimal digits. OpenTelemetry's JSON has it so; JSON as protobuf makes it has base64.
pub(super) fn id(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() == bytes * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => text.to_ascii_lowercase().into(),
            false => text.into(),
        };
    }
    match base64(text).filter(|decoded| decoded.len() == bytes) {
        Some(decoded) => hex(&decoded).into(),
        None => text.into(),
    }
}

/// Bytes of base64, in either alphabet.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in text.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 & 0x3FFF | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_bytes() {
        assert_eq!(id("00FF10ab00ff10ab", 8), "00ff10ab00ff10ab");
        assert_eq!(id("AP8QqwD/EKs=", 8), "00ff10ab00ff10ab");
        assert_eq!(id("short", 8), "short");
        for (text, bytes) in [("", &b""[..]), ("TQ==", b"M"), ("TWE=", b"Ma"), ("TWFu", b"Man"), ("TWFuTQ", b"ManM")] {
            assert_eq!(base64(text).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(base64("a b"), None);
    }

    #[test]
    fn attributes_do_not_hide_what_is_ours() {
        assert_eq!(&*key("", b"kind"[..].into()), b"attribute.kind");
        assert_eq!(&*key("", b"x"[..].into()), b"x");
        assert_eq!(&*key("scope.", b"kind"[..].into()), b"scope.kind");
    }
}
