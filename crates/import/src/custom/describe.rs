//! The description of a format as TOML has it, and what makes it a format: everything that can be wrong is told before a file is opened.

use serde::Deserialize;

use super::time::{Form, has_zone, pattern};
use super::{Custom, Layout, Pattern};
use crate::clock::ClockKind;
use crate::config::{self, Source};

/// `[[format]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    name: String,
    kind: Kind,
    #[serde(default, rename = "match")]
    matches: Match,
    regex: Option<Pattern>,
    delimiter: Option<String>,
    header: Option<bool>,
    #[serde(default)]
    columns: Vec<String>,
    comment: Option<String>,
    #[serde(default, deserialize_with = "config::clock")]
    clock: Option<ClockKind>,
    fields: RawFields,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Text,
    Csv,
    Jsonl,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Match {
    name: Option<String>,
    lines: Option<Pattern>,
}

/// `[format.fields]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFields {
    time: Option<RawTime>,
    end: Option<RawTime>,
    duration: Option<RawTime>,
    pid: Option<Source>,
    tid: Option<Source>,
    name: Option<Source>,
    category: Option<Source>,
    host: Option<Source>,
    path: Option<Source>,
    arguments: Option<Vec<String>>,
    #[serde(default)]
    counters: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTime {
    field: Source,
    unit: Option<Unit>,
    pattern: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Ns,
    Us,
    Ms,
    S,
}

impl Unit {
    fn ns(self) -> i64 {
        match self {
            Unit::Ns => 1,
            Unit::Us => 1_000,
            Unit::Ms => 1_000_000,
            Unit::S => 1_000_000_000,
        }
    }
}

impl RawTime {
    fn field(source: Source) -> Result<String, String> {
        match source {
            Source::Field(field) => Ok(field),
            Source::Constant(_) => Err("a time comes from a field: time = { field = \"…\", unit = \"ms\" }".to_owned()),
        }
    }

    fn form(self) -> Result<(String, Form), String> {
        let form = match (self.unit, self.pattern) {
            (Some(unit), None) => Form::Unit(unit.ns()),
            (None, Some(text)) if text == "rfc3339" => Form::Rfc3339,
            (None, Some(text)) => Form::Pattern(pattern(&text)?),
            _ => {
                return Err(
                    "a time needs either unit (ns, us, ms, s) or pattern (\"rfc3339\", \"%Y-%m-%d %H:%M:%S.%f\")"
                        .to_owned(),
                );
            }
        };
        Ok((RawTime::field(self.field)?, form))
    }

    fn duration(self) -> Result<(String, i64), String> {
        match (self.unit, self.pattern) {
            (Some(unit), None) => Ok((RawTime::field(self.field)?, unit.ns())),
            _ => Err("a duration needs unit: ns, us, ms or s".to_owned()),
        }
    }
}

impl Raw {
    /// The format; what is wrong with it in words, with what to do.
    pub(crate) fn check(self) -> Result<Custom, String> {
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(good) {
            return Err(format!("the name {:?} of a format has to be of small letters, digits and -", self.name));
        }
        let foreign = match self.kind {
            Kind::Text => [
                ("delimiter", self.delimiter.is_some()),
                ("header", self.header.is_some()),
                ("columns", !self.columns.is_empty()),
            ],
            Kind::Csv => [("regex", self.regex.is_some()), ("", false), ("", false)],
            Kind::Jsonl => [
                ("regex", self.regex.is_some()),
                ("delimiter", self.delimiter.is_some()),
                ("columns", !self.columns.is_empty() || self.header.is_some()),
            ],
        };
        if let Some((key, _)) = foreign.iter().find(|(_, is_there)| *is_there) {
            return Err(format!("{key} does not belong to a format of this kind: remove it"));
        }
        let layout = match self.kind {
            Kind::Text => Layout::Text(self.regex.ok_or("a format of kind text needs regex, with named groups")?),
            Kind::Csv => Layout::Csv {
                delimiter: delimiter(self.delimiter.as_deref())?,
                header: self.header.unwrap_or(self.columns.is_empty()),
                columns: self.columns,
            },
            Kind::Jsonl => Layout::Jsonl,
        };
        let fields = self.fields;
        let time = fields.time.map(RawTime::form).transpose()?;
        let end = fields.end.map(RawTime::form).transpose()?;
        let duration = fields.duration.map(RawTime::duration).transpose()?;
        if time.is_none() && (end.is_none() || duration.is_none()) {
            return Err("fields need time, or end with duration".to_owned());
        }
        if end.is_some() && time.is_some() && duration.is_some() {
            return Err("of time, end and duration two are enough: remove one".to_owned());
        }
        let clock = clock_of(self.clock, [time.as_ref(), end.as_ref()])?;
        let format = Custom {
            name: self.name,
            file: self.matches.name,
            lines: self.matches.lines,
            layout,
            comment: self.comment.filter(|comment| !comment.is_empty()),
            clock,
            time,
            end,
            duration,
            pid: fields.pid,
            tid: fields.tid,
            event: fields.name,
            category: fields.category,
            host: fields.host,
            path: fields.path,
            arguments: fields.arguments,
            counters: fields.counters,
        };
        format.check_fields()?;
        Ok(format)
    }
}

fn delimiter(text: Option<&str>) -> Result<u8, String> {
    match text.map_or(&b","[..], str::as_bytes) {
        b"tab" => Ok(b'\t'),
        [byte] if !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("a delimiter is one character, or \"tab\"".to_owned()),
    }
}

/// The clock that was told, or the one that times of this form are of.
fn clock_of(told: Option<ClockKind>, times: [Option<&(String, Form)>; 2]) -> Result<ClockKind, String> {
    let mut found = None;
    for (_, form) in times.into_iter().flatten() {
        let (is_number, is_utc) = match form {
            Form::Unit(_) => (true, false),
            Form::Rfc3339 => (false, true),
            Form::Pattern(items) => (false, has_zone(items)),
        };
        let kind = match told {
            Some(ClockKind::LocalText) if is_utc => {
                return Err("these times tell their zone and are UTC: remove clock".to_owned());
            }
            Some(ClockKind::Boot | ClockKind::Monotonic | ClockKind::TraceRelative) if !is_number => {
                return Err("times of this clock are numbers: give unit instead of pattern".to_owned());
            }
            Some(told) => told,
            None if is_number || is_utc => ClockKind::Realtime,
            None => ClockKind::LocalText,
        };
        if found.is_some_and(|found| found != kind) {
            return Err("time and end are of different clocks: give clock".to_owned());
        }
        found = Some(kind);
    }
    Ok(found.unwrap_or(ClockKind::Realtime))
}

impl Custom {
    /// Fields that no record can have.
    fn check_fields(&self) -> Result<(), String> {
        let arguments = self.arguments.iter().flatten();
        let wanted = self.named().chain(arguments.chain(&self.counters).map(String::as_str));
        let known: Vec<&str> = match &self.layout {
            Layout::Text(pattern) => pattern.0.capture_names().flatten().collect(),
            Layout::Csv { header: false, columns, .. } if !columns.is_empty() => {
                columns.iter().map(String::as_str).collect()
            }
            Layout::Csv { header: false, .. } => {
                for field in wanted {
                    if field.parse::<usize>().is_err() {
                        return Err(format!("there is no header: give columns, or the number of {field:?}"));
                    }
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        for field in wanted {
            let number = matches!(self.layout, Layout::Csv { .. }) && field.parse::<usize>().is_ok();
            if !number && !known.contains(&field) {
                return Err(format!("there is no field {field:?}; there are {}", known.join(", ")));
            }
        }
        Ok(())
    }
}
