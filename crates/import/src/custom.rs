//! Formats that users describe in the file of `--config`: lines of text by an expression, delimited text, JSON lines.
//!
//! | module | holds |
//! |---|---|
//! | `time` | times by unit, RFC 3339 or pattern |
//! | `csv` | records of delimited text |
//! | `describe` | the description, checked |
//!
//! A record is a span where it has a duration or an end (one that others may cross where neither process nor thread is told), counters where these
//! are named, else an instant. Fields that nothing names are its arguments.

mod csv;
mod describe;
#[cfg(test)]
mod tests;
mod time;

use std::borrow::Cow;

use regex::bytes::Regex;

use self::csv::Record;
use self::time::{Form, Moment};
use crate::Result;
use crate::clock::{Clock, ClockKind};
use crate::config::Source;
use crate::event::{Arg, Event, Process, Shape};
use crate::formats::time::{DAY_NS, Days, days};
use crate::input::{Head, Input, LONGEST_LINE};
use crate::json::{Fields, Scalar};
use crate::sink::Sink;
use crate::survey::Survey;

pub(crate) use self::describe::Raw;
pub(crate) use self::time::zone_seconds;

/// The process of records that tell none.
const PID: u32 = 1;
/// Lines in which detection looks for the expression of `match`.
const FIRST_LINES: usize = 20;

/// An expression of the file.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(pub(crate) Regex);

/// A format.
#[derive(Debug, Clone)]
pub struct Custom {
    /// What `--kind` calls it.
    pub name: String,
    /// Files whose names fit, as `*.log`.
    file: Option<String>,
    /// Files with a line that fits.
    lines: Option<Pattern>,
    layout: Layout,
    /// What a comment begins with.
    comment: Option<String>,
    clock: ClockKind,
    time: Option<(String, Form)>,
    end: Option<(String, Form)>,
    duration: Option<(String, i64)>,
    pid: Option<Source>,
    tid: Option<Source>,
    event: Option<Source>,
    category: Option<Source>,
    host: Option<Source>,
    path: Option<Source>,
    arguments: Option<Vec<String>>,
    counters: Vec<String>,
}

/// How records are written.
#[derive(Debug, Clone)]
enum Layout {
    /// A line is a record; groups of the expression are its fields.
    Text(Pattern),
    /// Fields between delimiters; named by the first record, by a list, or by number.
    Csv { delimiter: u8, header: bool, columns: Vec<String> },
    /// A line is an object.
    Jsonl,
}

impl Custom {
    /// Whether a file is of this format. One that says nothing about its files is only for `--kind`.
    pub fn fits(&self, head: &Head<'_>) -> bool {
        if self.file.is_none() && self.lines.is_none() {
            return false;
        }
        let named = self.file.as_ref().is_none_or(|glob| fits_glob(glob.as_bytes(), head.name.as_bytes()));
        let lined = |lines: &Pattern| head.lines().take(FIRST_LINES).any(|line| lines.0.is_match(line));
        named && self.lines.as_ref().is_none_or(lined)
    }

    /// Gives a file's events.
    pub fn read(&self, input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
        let mut reader = Reader::new(self, survey, sink)?;
        match &self.layout {
            Layout::Text(pattern) => reader.text(input, &pattern.0),
            Layout::Csv { delimiter, header, columns } => reader.csv(input, *delimiter, *header, columns.clone()),
            Layout::Jsonl => reader.jsonl(input),
        }
    }

    /// Fields that have a meaning, and so are no arguments.
    fn named(&self) -> impl Iterator<Item = &str> {
        let times = [self.time.as_ref(), self.end.as_ref()].into_iter().flatten().map(|(field, _)| field);
        let sources = [&self.pid, &self.tid, &self.event, &self.category, &self.host, &self.path];
        let sources = sources.into_iter().flatten().filter_map(|source| match source {
            Source::Field(field) => Some(field),
            Source::Constant(_) => None,
        });
        times.chain(self.duration.as_ref().map(|(field, _)| field)).chain(sources).map(String::as_str)
    }
}

/// `*` is any text, `?` any byte.
fn fits_glob(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match glob.get(place) {
            Some(b'*') => {
                star = Some((place, at));
                place += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[at] => (at, place) = (at + 1, place + 1),
            // The last `*` takes one more.
            _ => match &mut star {
                Some((back, taken)) => {
                    *taken += 1;
                    (at, place) = (*taken, *back + 1);
                }
                None => return false,
            },
        }
    }
    glob[place..].iter().all(|byte| *byte == b'*')
}

struct Reader<'a> {
    format: &'a Custom,
    sink: &'a mut dyn Sink,
    clock: Clock,
    days: Days,
    year: i64,
    named: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn new(format: &'a Custom, survey: &Survey, sink: &'a mut dyn Sink) -> Result<Reader<'a>> {
        let mut clock = match format.clock {
            ClockKind::LocalText => survey.local_clock(),
            kind => survey.clock(kind),
        };
        let dateless = |form: &(String, Form)| matches!(&form.1, Form::Pattern(items) if !time::has_date(items));
        if survey.first_day.is_none() && (format.time.as_ref().is_some_and(dateless)) {
            clock.how += "; nothing tells the date: the first day is 1970-01-01";
        }
        let clock = sink.clock(clock);
        if format.pid.is_none() {
            sink.process(&Process { pid: PID, name: &format.name, ..Process::default() })?;
        }
        let first_day = survey.first_day.unwrap_or(0);
        let named = format.named().collect();
        Ok(Reader { format, sink, clock, days: Days::from(first_day), year: year_of(first_day), named })
    }

    /// Skips what is no record: empty lines, comments, cut lines.
    fn is_record(&mut self, line: &[u8], about: &crate::input::Line) -> bool {
        if line.trim_ascii().is_empty() {
            return false;
        }
        let comment = self.format.comment.as_deref().is_some_and(|comment| line.starts_with(comment.as_bytes()));
        if about.cut || comment {
            self.sink.skip(if comment { "comment" } else { "line longer than 8 MiB" }, about.offset);
            return false;
        }
        true
    }

    fn text(&mut self, input: &mut Input<'_>, regex: &Regex) -> Result<()> {
        let names: Vec<Option<&str>> = regex.capture_names().collect();
        let mut places = regex.capture_locations();
        let mut line = Vec::new();
        while let Some(about) = input.next_line(&mut line)? {
            if !self.is_record(&line, &about) {
                continue;
            }
            if regex.captures_read(&mut places, &line).is_none() {
                let torn = about.unfinished;
                self.sink.skip(if torn { "torn line" } else { "line that the expression does not fit" }, about.offset);
                continue;
            }
            let group = |(place, name): (usize, &Option<&'_ str>)| {
                let (start, end) = places.get(place)?;
                Some((Cow::Owned((*name)?.to_owned()), text_of(&line[start..end])))
            };
            let fields = Fields(names.iter().enumerate().filter_map(group).collect());
            self.give(&fields, about.offset)?;
        }
        Ok(())
    }

    fn csv(&mut self, input: &mut Input<'_>, delimiter: u8, header: bool, mut columns: Vec<String>) -> Result<()> {
        let (mut line, mut more, mut record) = (Vec::new(), Vec::new(), Record::default());
        let mut is_header = header;
        while let Some(about) = input.next_line(&mut line)? {
            if !self.is_record(&line, &about) {
                continue;
            }
            if about.offset == 0 && line.starts_with(b"\xef\xbb\xbf") {
                line.drain(..3);
            }
            // A quoted field may go over lines.
            let mut lines = 1;
            let mut whole = record.split(&line, delimiter);
            while !whole && lines < csv::MOST_LINES && line.len() < LONGEST_LINE {
                if input.next_line(&mut more)?.is_none() {
                    break;
                }
                line.push(b'\n');
                line.extend_from_slice(&more);
                lines += 1;
                // Only a line with a quote can end it.
                whole = memchr::memchr(b'"', &more).is_some() && record.split(&line, delimiter);
            }
            if !whole {
                for _ in 0..lines {
                    self.sink.skip("quoted field without an end", about.offset);
                }
                continue;
            }
            if is_header {
                is_header = false;
                columns = record.fields().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect();
                self.check_header(input, &columns)?;
                continue;
            }
            if record.fields().len() >= csv::MOST_FIELDS {
                self.sink.skip("record with more than 10000 fields", about.offset);
                continue;
            }
            let name = |place: usize| match columns.get(place) {
                Some(name) if !name.is_empty() => Cow::Borrowed(name.as_str()),
                _ => Cow::Owned((place + 1).to_string()),
            };
            let fields =
                Fields(record.fields().enumerate().map(|(place, text)| (name(place), text_of(text))).collect());
            self.give(&fields, about.offset)?;
        }
        Ok(())
    }

    /// A header without a field that is needed is a description of something else.
    fn check_header(&self, input: &Input<'_>, columns: &[String]) -> Result<()> {
        let wanted = self.named.iter().copied().chain(self.format.counters.iter().map(String::as_str));
        for field in wanted {
            let number = field.parse::<usize>().is_ok_and(|number| number <= columns.len());
            if !number && !columns.iter().any(|column| column == field) {
                let known: Vec<&str> = columns.iter().map(String::as_str).take(20).collect();
                let why =
                    format!("format {:?} needs a column {field:?}; there are {}", self.format.name, known.join(", "));
                return Err(input.invalid(0, why));
            }
        }
        Ok(())
    }

    fn jsonl(&mut self, input: &mut Input<'_>) -> Result<()> {
        let mut line = Vec::new();
        while let Some(about) = input.next_line(&mut line)? {
            if !self.is_record(&line, &about) {
                continue;
            }
            match Fields::parse(line.trim_ascii()) {
                Some(fields) => self.give(&fields, about.offset)?,
                None => self.sink.skip(if about.unfinished { "torn line" } else { "not a JSON object" }, about.offset),
            }
        }
        Ok(())
    }

    /// A time of the source's clock. One without a day is of the day of the start, or of the next.
    fn moment(&mut self, of: Option<&(String, Form)>, fields: &Fields<'_>, start: Option<i64>) -> Option<i64> {
        let (field, form) = of?;
        let moment = match (lookup(fields, field)?, form) {
            (Scalar::Int(number), Form::Unit(unit)) => Moment::At(number.checked_mul(*unit)?),
            (Scalar::Text(text), form) => form.read(text.as_bytes(), self.year)?,
            (Scalar::Int(number), form) => form.read(number.to_string().as_bytes(), self.year)?,
            // The shortest decimal number that is this one: what was written, as long as it has 15 digits or fewer.
            (Scalar::Float(number), form) => form.read(number.to_string().as_bytes(), self.year)?,
            _ => return None,
        };
        match (moment, start) {
            (Moment::At(ns) | Moment::Utc(ns), _) => Some(ns),
            (Moment::OfDay(ns), None) => self.days.at(ns),
            (Moment::OfDay(ns), Some(start)) => {
                let at = start.div_euclid(DAY_NS).checked_mul(DAY_NS)?.checked_add(ns)?;
                if at < start { at.checked_add(DAY_NS) } else { Some(at) }
            }
        }
    }

    /// Start and end of a record; the end where it has one.
    fn interval(&mut self, fields: &Fields<'_>) -> Option<(i64, Option<i64>)> {
        let format = self.format;
        let took = format.duration.as_ref().and_then(|(field, unit)| {
            let took = match lookup(fields, field)? {
                Scalar::Int(number) => number.checked_mul(*unit),
                Scalar::Text(text) => time::decimal(text.trim().as_bytes(), *unit),
                Scalar::Float(number) => time::decimal(number.to_string().as_bytes(), *unit),
                _ => None,
            };
            took.filter(|took| *took >= 0)
        });
        match format.time {
            Some(_) => {
                let start = self.moment(format.time.as_ref(), fields, None)?;
                let end = self.moment(format.end.as_ref(), fields, Some(start));
                Some((start, end.or(took.map(|took| start.saturating_add(took)))))
            }
            // A record that is written at its end.
            None => {
                let end = self.moment(format.end.as_ref(), fields, None)?;
                Some((end.saturating_sub(took.unwrap_or(0)), took.map(|_| end)))
            }
        }
    }

    /// Gives a record's event.
    fn give(&mut self, fields: &Fields<'_>, offset: u64) -> Result<()> {
        let format = self.format;
        let Some((start, end)) = self.interval(fields) else {
            self.sink.skip("record without a time that fits", offset);
            return Ok(());
        };
        let number = |value: &Scalar<'_>| match value {
            Scalar::Text(text) => text.trim().parse::<u32>().ok(),
            value => value.int().and_then(|number| u32::try_from(number).ok()),
        };
        let pid = match value(format.pid.as_ref(), fields) {
            None | Some(Scalar::Null) => PID,
            Some(value) => match number(&value) {
                Some(pid) => pid,
                None => {
                    self.sink.skip("record whose process is no number", offset);
                    return Ok(());
                }
            },
        };
        // Threads may have names or numbers that are too large: those are told as an argument.
        let thread = value(format.tid.as_ref(), fields);
        let tid = thread.as_ref().and_then(number);
        let odd_thread = thread.filter(|_| tid.is_none());
        let tid = tid.unwrap_or(pid);
        let name = text_value(format.event.as_ref(), fields);
        let category = text_value(format.category.as_ref(), fields);
        let host = text_value(format.host.as_ref(), fields);
        let path = text_value(format.path.as_ref(), fields);
        let is_text = !matches!(format.layout, Layout::Jsonl);
        let mut args: Vec<(&str, Arg<'_>)> = Vec::with_capacity(fields.0.len());
        let counters: Vec<(&str, Scalar<'_>)> =
            format.counters.iter().filter_map(|field| Some((field.as_str(), lookup(fields, field)?))).collect();
        if format.counters.is_empty() {
            args.extend(path.as_ref().map(|path| ("fhash", Arg::Path(path.as_bytes()))));
            args.extend(odd_thread.as_ref().and_then(Scalar::arg).map(|arg| ("tid", arg)));
            for (key, value) in &fields.0 {
                let wanted = match &format.arguments {
                    Some(wanted) => wanted.iter().any(|name| name == key.as_ref()),
                    None => !self.named.contains(&key.as_ref()),
                };
                if wanted {
                    args.extend(argument(value, is_text).map(|arg| (key.as_ref(), arg)));
                }
            }
        } else {
            for (key, value) in &counters {
                let number = argument(value, is_text);
                args.extend(number.filter(|arg| !matches!(arg, Arg::Text(_) | Arg::Json(_))).map(|arg| (*key, arg)));
            }
        }
        if args.is_empty() && !format.counters.is_empty() {
            self.sink.skip("record without a number to count", offset);
            return Ok(());
        }
        let (start_ns, end_ns) = (self.clock.to_utc(start), end.map(|end| self.clock.to_utc(end)));
        // Without a thread nothing says that records do not cross.
        let shape = match end_ns {
            _ if !format.counters.is_empty() => Shape::Counter { end_ns: end_ns.unwrap_or(start_ns) },
            None => Shape::Instant,
            Some(end_ns) if format.pid.is_none() && format.tid.is_none() => Shape::Async { end_ns },
            Some(end_ns) => Shape::Span { end_ns },
        };
        let name = name.as_deref().unwrap_or(&format.name);
        let cat = category.as_deref().unwrap_or(&format.name);
        if let Some(host) = &host {
            self.sink.host(host)?;
        }
        self.sink.event(&Event { shape, name, cat, pid, tid, start_ns, args: &args })
    }
}

/// The value of a source.
fn value<'f>(source: Option<&'f Source>, fields: &'f Fields<'_>) -> Option<Scalar<'f>> {
    match source? {
        Source::Constant(text) => Some(Scalar::Text(Cow::Borrowed(text))),
        Source::Field(field) => lookup(fields, field),
    }
}

fn text_value<'f>(source: Option<&'f Source>, fields: &'f Fields<'_>) -> Option<Cow<'f, str>> {
    let text = match value(source, fields)? {
        Scalar::Text(text) => text,
        Scalar::Int(number) => Cow::Owned(number.to_string()),
        Scalar::Unsigned(number) => Cow::Owned(number.to_string()),
        Scalar::Float(number) => Cow::Owned(number.to_string()),
        Scalar::Bool(flag) => Cow::Owned(flag.to_string()),
        Scalar::Nested(json) => Cow::Owned(json),
        Scalar::Null => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// A field of a record: its key, or a pointer into objects and lists (`/a/0/b`).
fn lookup<'f>(fields: &'f Fields<'_>, field: &str) -> Option<Scalar<'f>> {
    if let Some(value) = fields.get(field) {
        return Some(borrowed(value));
    }
    let pointer = field.strip_prefix('/')?;
    let (key, rest) = pointer.split_once('/').map_or((pointer, None), |(key, rest)| (key, Some(rest)));
    let key = key.replace("~1", "/").replace("~0", "~");
    let value = fields.get(&key)?;
    let Some(rest) = rest else { return Some(borrowed(value)) };
    let Scalar::Nested(json) = value else { return None };
    let whole: serde_json::Value = serde_json::from_str(json).ok()?;
    Some(match whole.pointer(&format!("/{rest}"))? {
        serde_json::Value::Null => Scalar::Null,
        serde_json::Value::Bool(flag) => Scalar::Bool(*flag),
        serde_json::Value::String(text) => Scalar::Text(Cow::Owned(text.clone())),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Scalar::Int(number),
            (None, Some(number)) => Scalar::Unsigned(number),
            (None, None) => Scalar::Float(number.as_f64()?),
        },
        nested => Scalar::Nested(nested.to_string()),
    })
}

fn borrowed<'f>(value: &'f Scalar<'_>) -> Scalar<'f> {
    match value {
        Scalar::Text(text) => Scalar::Text(Cow::Borrowed(text)),
        Scalar::Nested(json) => Scalar::Nested(json.clone()),
        Scalar::Null => Scalar::Null,
        Scalar::Bool(flag) => Scalar::Bool(*flag),
        Scalar::Int(number) => Scalar::Int(*number),
        Scalar::Unsigned(number) => Scalar::Unsigned(*number),
        Scalar::Float(number) => Scalar::Float(*number),
    }
}

fn text_of(bytes: &[u8]) -> Scalar<'_> {
    Scalar::Text(String::from_utf8_lossy(bytes))
}

/// An argument. A text of a format that has texts only is a number where it is written as one: neither `007` nor `1e5` is.
fn argument<'f>(value: &'f Scalar<'_>, is_text: bool) -> Option<Arg<'f>> {
    let Scalar::Text(text) = value else { return value.arg() };
    let text = text.trim();
    if !is_text {
        return Some(Arg::Text(text.as_bytes()));
    }
    if text.is_empty() {
        return None;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = digits.split('.').next().unwrap_or("");
    let plain = digits.len() <= 20
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && !whole.is_empty()
        && (whole == "0" || !whole.starts_with('0'));
    if plain && let Ok(number) = text.parse::<i64>() {
        return Some(Arg::Int(number));
    }
    if plain && let Ok(number) = text.parse::<f64>() {
        return Some(Arg::Float(number));
    }
    Some(Arg::Text(text.as_bytes()))
}

/// The year of a day.
fn year_of(day: i64) -> i64 {
    let guess = 1970 + day.div_euclid(366);
    let starts = |year: i64| days(year, 1, 1).unwrap_or(i64::MAX);
    (guess.max(0)..).find(|year| starts(year + 1) > day).unwrap_or(guess)
}
