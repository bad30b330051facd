//! The small TOML file of `weft import --config`: formats that the user describes, and what is known better than it can be found.
//!
//! ```toml
//! [discs]                          # a result folder of the DISCS tools
//! workload = "unet3d"
//! tz = "+01:00"
//! roles = { 4711 = "master" }      # processes by pid
//! phases = { block = "training" }  # by the key of the application log
//!
//! [[format]]
//! name = "app"                     # what --kind calls it
//! match = { name = "*.applog", lines = '^\d+ \w+ took' }
//! kind = "text"                    # or csv, jsonl
//! regex = '^(?<at>\d+) (?<what>\w+) took (?<us>\d+) us(?: on (?<file>\S+))?'
//! clock = "realtime"               # or boot, monotonic, local, relative
//! [format.fields]
//! time = { field = "at", unit = "ms" }
//! duration = { field = "us", unit = "us" }
//! name = "what"
//! path = "file"
//! pid = { value = 7 }
//! ```
//!
//! What is wrong is told with file, line and what to do. The reader of such formats is [`custom`](crate::custom).

use std::fmt;
use std::hash::Hasher as _;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use twox_hash::XxHash64;
use weftline_format::files;

use crate::clock::ClockKind;
use crate::custom::{Custom, Pattern, Raw};
use crate::formats::discs::Overrides;
use crate::{ImportError, Result};

/// Longer expressions are refused: they are machine-made, and slow.
const LONGEST_REGEX: usize = 64 << 10;
/// Memory of a compiled expression.
const LARGEST_REGEX: usize = 8 << 20;
/// Formats of one file.
const MOST_FORMATS: usize = 1000;

/// What the file says.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// About result folders of the DISCS tools.
    pub discs: Overrides,
    /// Formats, the first that fits counts.
    pub formats: Vec<Custom>,
    /// What tells this text from others: the same files read otherwise are another import.
    pub(crate) mark: u64,
}

/// A time zone as a distance to UTC: `+01:00`, `-0330`, `UTC`, `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Seconds that local time is ahead of UTC.
    pub seconds: i32,
}

impl std::str::FromStr for Zone {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Zone, Self::Err> {
        let seconds = crate::custom::zone_seconds(text.as_bytes());
        let seconds = seconds.ok_or("a time zone is a distance to UTC such as \"+01:00\", or \"UTC\"")?;
        Ok(Zone { seconds })
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    discs: Overrides,
    #[serde(default)]
    format: Vec<toml::Spanned<Raw>>,
}

impl Config {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Config> {
        let bytes = files::read(path).map_err(ImportError::io(path))?;
        Config::parse(&path.display().to_string(), &bytes)
    }

    /// Reads its text; errors tell the name.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Config> {
        let wrong = |at: usize, why: &str| ImportError::Config {
            name: name.to_owned(),
            line: bytes[..at.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count() + 1,
            // Messages of others may have several lines; the last one says what is wrong.
            why: why.trim().lines().last().unwrap_or("").trim().to_owned(),
        };
        let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.valid_up_to(), "this is no UTF-8 text"))?;
        let read: Text =
            toml::from_str(text).map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message()))?;
        if read.format.len() > MOST_FORMATS {
            return Err(wrong(0, "more than 1000 formats: split the file"));
        }
        let mut formats: Vec<Custom> = Vec::new();
        for format in read.format {
            let at = format.span().start;
            let format = format.into_inner().check().map_err(|why| wrong(at, &why))?;
            let known = crate::registry::FORMATS.iter().map(|known| known.kind);
            if known.chain(formats.iter().map(|other| other.name.as_str())).any(|known| known == format.name) {
                return Err(wrong(at, &format!("there is a format {:?} already: give it another name", format.name)));
            }
            formats.push(format);
        }
        let mut mark = XxHash64::with_seed(0);
        mark.write(bytes);
        Ok(Config { discs: read.discs, formats, mark: mark.finish() })
    }
}

/// Which clock, as users write it.
pub(crate) fn clock<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<ClockKind>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Name {
        Boot,
        Monotonic,
        Realtime,
        Local,
        Relative,
    }
    Ok(Some(match Name::deserialize(deserializer)? {
        Name::Boot => ClockKind::Boot,
        Name::Monotonic => ClockKind::Monotonic,
        Name::Realtime => ClockKind::Realtime,
        Name::Local => ClockKind::LocalText,
        Name::Relative => ClockKind::TraceRelative,
    }))
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() > LONGEST_REGEX {
            return Err(D::Error::custom("this regular expression is longer than 64 KiB: make it shorter"));
        }
        let built = RegexBuilder::new(&text).size_limit(LARGEST_REGEX).build();
        let regex: Regex = built.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                D::Error::custom("this regular expression is too large: use fewer or smaller repetitions")
            }
            error => {
                let text = error.to_string();
                let last = text.trim().lines().last().unwrap_or("");
                D::Error::custom(format!("this regular expression is wrong: {}", last.trim_start_matches("error: ")))
            }
        })?;
        Ok(Pattern(regex))
    }
}

/// Where a value comes from: `"field"`, `3` (the third column), `{ field = "field" }`, or the same for all records: `{ value = "x" }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A field of the record.
    Field(String),
    /// Always this.
    Constant(String),
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Source;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of a field, the number of a column, or { value = … }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Source, E> {
                Ok(Source::Field(text.to_owned()))
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> std::result::Result<Source, E> {
                match number {
                    1..=10_000 => Ok(Source::Field(number.to_string())),
                    _ => Err(E::custom("columns are counted from 1")),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Source, A::Error> {
                let Some(key) = map.next_key::<String>()? else {
                    return Err(A::Error::custom("either field or value is needed"));
                };
                let found = match key.as_str() {
                    "field" => map.next_value::<Source>()?,
                    "value" => Source::Constant(map.next_value::<Plain>()?.0),
                    other => return Err(A::Error::custom(format!("{other:?} is unknown: field or value"))),
                };
                match map.next_key::<String>()? {
                    None => Ok(found),
                    Some(_) => Err(A::Error::custom("either field or value, not both")),
                }
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A text or a number, as text.
struct Plain(String);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Plain(text)),
            toml::Value::Integer(number) => Ok(Plain(number.to_string())),
            toml::Value::Float(number) => Ok(Plain(number.to_string())),
            toml::Value::Boolean(flag) => Ok(Plain(flag.to_string())),
            _ => Err(D::Error::custom("a value is a text or a number")),
        }
    }
}
