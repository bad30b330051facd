//! Objects of JSON lines, field by field, borrowed where that can be: most values are short numbers and texts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, Deserializer, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer,
    value::SeqAccessDeserializer,
};

use crate::event::Arg;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar<'a> {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number without a fraction.
    Int(i64),
    /// A number that does not fit the above.
    Unsigned(u64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A list or an object, as JSON.
    Nested(String),
}

impl Scalar<'_> {
    /// A number without a fraction.
    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Scalar::Int(number) => Some(*number),
            Scalar::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(*number as i64),
            _ => None,
        }
    }

    /// Any number.
    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            Scalar::Int(number) => Some(*number as f64),
            Scalar::Unsigned(number) => Some(*number as f64),
            Scalar::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// A text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As an argument; nothing is none.
    pub(crate) fn arg(&self) -> Option<Arg<'_>> {
        Some(match self {
            Scalar::Null => return None,
            Scalar::Bool(flag) => Arg::Bool(*flag),
            Scalar::Int(number) => Arg::Int(*number),
            Scalar::Unsigned(number) => Arg::Unsigned(*number),
            Scalar::Float(number) => Arg::Float(*number),
            Scalar::Text(text) => Arg::Text(text.as_bytes()),
            Scalar::Nested(json) => Arg::Json(json),
        })
    }
}

/// The fields of an object, in their order.
#[derive(Debug, PartialEq)]
pub(crate) struct Fields<'a>(pub(crate) Vec<(Cow<'a, str>, Scalar<'a>)>);

impl<'a> Fields<'a> {
    /// Reads one object.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Fields<'a>> {
        serde_json::from_slice(line).ok()
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Scalar<'a>> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Whether it has all of these keys.
    pub(crate) fn has(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.get(key).is_some())
    }

    /// A number without a fraction.
    pub(crate) fn int(&self, key: &str) -> Option<i64> {
        self.get(key)?.int()
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.text().filter(|text| !text.is_empty())
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(16);
                while let Some(Key(key)) = map.next_key()? {
                    fields.push((key, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A key that is borrowed unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => Ok(Key(text)),
            _ => Err(serde::de::Error::custom("a key that is no text")),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Scalar::Null)
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(Scalar::Bool(flag))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Scalar::Int(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(i64::try_from(number).map_or(Scalar::Unsigned(number), Scalar::Int))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Scalar::Float(number))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                let value = serde_json::Value::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(Scalar::Nested(value.to_string()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let value = serde_json::Value::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Scalar::Nested(value.to_string()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_what_they_are() {
        let text =
            br#"{"a":1,"b\n":"x\ty","c":null,"d":[1,{"e":2}],"f":1.5,"g":18446744073709551615,"h":true,"i":2.0}"#;
        let fields = Fields::parse(text).expect("an object");
        assert_eq!((fields.int("a"), fields.text("b\n"), fields.int("i")), (Some(1), Some("x\ty"), Some(2)));
        assert_eq!(fields.get("c"), Some(&Scalar::Null));
        assert_eq!(fields.get("d"), Some(&Scalar::Nested(r#"[1,{"e":2}]"#.to_owned())));
        assert_eq!(fields.get("g"), Some(&Scalar::Unsigned(u64::MAX)));
        assert_eq!(fields.get("f").and_then(Scalar::float), Some(1.5));
        assert!(fields.has(&["a", "h"]) && !fields.has(&["a", "z"]));
        for length in 0..text.len() {
            assert!(Fields::parse(&text[..length]).is_none());
        }
        assert!(Fields::parse(b"[1]").is_none() && Fields::parse(b"1").is_none());
        assert!(Fields::parse(format!("{{\"a\":{}", "[".repeat(100_000)).as_bytes()).is_none());
    }
}
