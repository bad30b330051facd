//! Writes the files of PerfFlowAspect as one of its two implementations would: same fields in the same order, same spaces, same format
//! of numbers. A list is left open with a comma after its last event, as in the original: its users' scripts append ` {}]`,
//! and viewers accept it. `log-close=True` closes the list, so that it is valid JSON.
//!
//! | | Python | C |
//! |---|---|---|
//! | `ts`, `dur` | quarters of a microsecond, which is what a float holds of the time since 1970 | whole microseconds |
//! | object format | events indented by four blanks | not indented |
//! | async events of a decorator | `ts`, `scope`, `id`, `ph` | `ts`, `ph`, `scope`, `id` |
//! | async events by a call of `async_event` | `ts`, `ph`, `id`, and `scope` if there is one | do not occur |
//! | `memory_usage`, `gpu_memory_usage` | a float, thousands of bytes | an integer, units of 1024 bytes |
//! | counters of a span in verbose mode | before its `E` | behind its `E` |
//! | text beyond ASCII | escaped | as it is |
//!
//! Events are in the order in which they were recorded: an `X` or `E` at the span's end, with its counters beside it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use weftline_format::event::{Phase, Value};
use weftline_format::files;
use weftline_format::members::MemberError;

use super::events::{Events, FlowEvent, More, Used};
use super::{Flavour, LogFormat, Options, number};

/// A file could not be converted.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] MemberError),
    /// The result could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Converts the trace file of one process; the number of events that were written. Where the program told nothing, no file is made.
pub fn write(trace: &Path, to: &Path, options: &Options, flavour: Flavour) -> Result<u64, WriteError> {
    let events = Events::read(trace)?;
    if events.events.is_empty() {
        return Ok(0);
    }
    let fail = |source| WriteError::Write { path: to.to_owned(), source };
    let file = files::create_anew(to).map_err(fail)?;
    let mut out = io::BufWriter::with_capacity(256 << 10, file);
    let written = put_all(&events, &mut out, options, flavour).map_err(fail)?;
    out.flush().map_err(fail)?;
    Ok(written)
}

fn put_all(events: &Events, out: &mut dyn Write, options: &Options, flavour: Flavour) -> io::Result<u64> {
    let format = options.log_format;
    let indent = if (format, flavour) == (LogFormat::Object, Flavour::Python) { "    " } else { "" };
    let mut lines = Lines { events, out, options, flavour, indent, line: String::new(), written: 0 };
    let (head, closed) = match format {
        LogFormat::Array => ("[\n", "\n]\n"),
        LogFormat::Object => {
            ("{\n  \"displayTimeUnit\": \"us\",\n  \"otherData\": {\n\n  },\n  \"traceEvents\": [\n", "\n  ]\n}\n")
        }
    };
    lines.out.write_all(head.as_bytes())?;
    let mut open = Open::default();
    for event in &events.events {
        lines.event(event, &mut open)?;
    }
    let foot = if options.log_close { closed } else { ",\n" };
    lines.out.write_all(foot.as_bytes())?;
    Ok(lines.written)
}

/// What has begun and not ended.
#[derive(Default)]
struct Open<'e> {
    /// Starts of the spans of each thread.
    spans: HashMap<(i64, i64), Vec<i64>>,
    /// Scopes of async spans: their end may have been told without one.
    scopes: HashMap<(u32, u64), &'e Option<String>>,
}

struct Lines<'e, 'o> {
    events: &'e Events,
    out: &'o mut dyn Write,
    options: &'o Options,
    flavour: Flavour,
    indent: &'static str,
    line: String,
    written: u64,
}

impl<'e> Lines<'e, '_> {
    fn event(&mut self, event: &'e FlowEvent, open: &mut Open<'e>) -> io::Result<()> {
        static NOTHING: More = More { id: 0, given_id: None, scope: None, used: None, args: Vec::new() };
        let more = event.more.as_deref().unwrap_or(&NOTHING);
        let thread = (event.pid, event.tid);
        match event.phase {
            Phase::Begin => {
                open.spans.entry(thread).or_default().push(event.start_ns);
                self.plain(event, more)
            }
            Phase::End => {
                let began = open.spans.entry(thread).or_default().pop();
                let span = more.used.zip(began).map(|(used, began)| (used, began, event.end_ns));
                if let (Some(span), Flavour::Python) = (span, self.flavour) {
                    self.counters(event, span)?;
                }
                self.plain(event, more)?;
                match span.filter(|_| self.flavour == Flavour::C) {
                    Some(span) => self.counters(event, span),
                    None => Ok(()),
                }
            }
            Phase::Complete => {
                if let Some(used) = more.used {
                    self.counters(event, (used, event.start_ns, event.end_ns))?;
                }
                self.begin_line(event, event.start_ns);
                self.phase(event);
                let dur = self.micros(event.end_ns) - self.micros(event.start_ns);
                self.key("dur");
                self.real(dur);
                self.arguments(&more.args);
                self.end_line()
            }
            Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd => {
                let key = (event.cat, more.id);
                let scope = more.scope.as_ref().or_else(|| open.scopes.get(&key).copied());
                match (event.phase, scope) {
                    (Phase::AsyncBegin, Some(scope)) => {
                        open.scopes.insert(key, scope);
                    }
                    (Phase::AsyncEnd, _) => {
                        open.scopes.remove(&key);
                    }
                    _ => {}
                }
                self.async_event(event, more, scope.and_then(Option::as_deref))
            }
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => {
                self.begin_line(event, event.start_ns);
                self.phase(event);
                self.key("bp");
                self.text("e");
                self.id(more);
                self.end_line()
            }
            Phase::Instant | Phase::Counter | Phase::Metadata | Phase::Aggregated => self.plain(event, more),
        }
    }

    /// An event with a time and nothing more than its arguments.
    fn plain(&mut self, event: &FlowEvent, more: &More) -> io::Result<()> {
        self.begin_line(event, event.start_ns);
        self.phase(event);
        self.arguments(&more.args);
        self.end_line()
    }

    fn async_event(&mut self, event: &FlowEvent, more: &More, scope: Option<&str>) -> io::Result<()> {
        self.begin_line(event, event.start_ns);
        match (self.flavour, &more.given_id) {
            (Flavour::Python, Some(_)) => {
                self.phase(event);
                self.id(more);
                if let Some(scope) = scope {
                    self.key("scope");
                    self.text(scope);
                }
            }
            (Flavour::Python, None) => {
                self.key("scope");
                match scope {
                    Some(scope) => self.text(scope),
                    None => self.line.push_str("null"),
                }
                self.id(more);
                self.phase(event);
            }
            (Flavour::C, _) => {
                self.phase(event);
                self.key("scope");
                // What the weaver hands over when nothing was said.
                self.text(scope.unwrap_or("NA"));
                self.id(more);
            }
        }
        self.arguments(&more.args);
        self.end_line()
    }

    /// The two counter events of a span: what it used, shown from its start to its end.
    fn counters(&mut self, event: &FlowEvent, (used, start, end): (Used, i64, i64)) -> io::Result<()> {
        let wall = (end - start) as f64;
        // The kernel tells user time too coarsely for short spans; the original tells none below 100 µs.
        let known = self.flavour == Flavour::Python || used.process_user_ns >= 100_000;
        let percent = if wall > 0.0 && known { 100.0 * used.process_user_ns as f64 / wall } else { 0.0 };
        let none = if self.flavour == Flavour::Python { "0" } else { "0.0" };
        // What is told at the start, and what its end is told as.
        let mut values: Vec<(&str, String, &str)> = Vec::new();
        if self.options.cpu_mem_usage {
            values.extend([("cpu_usage", self.shown(percent), none), ("memory_usage", self.memory(used.rss_end), "0")]);
        }
        if let Some(gpu) = used.gpu.filter(|_| self.options.gpu_usage) {
            let busy = self.shown(gpu.busy_pct as f64);
            values.extend([("gpu_usage", busy, none), ("gpu_memory_usage", self.memory(gpu.memory_bytes), "0")]);
        }
        if values.is_empty() {
            return Ok(());
        }
        for (at, is_start) in [(start, true), (end, false)] {
            self.begin_line(event, at);
            self.key("ph");
            self.text("C");
            self.key("args");
            for (place, (key, value, over)) in values.iter().enumerate() {
                let lead = if place == 0 { '{' } else { ' ' };
                self.line.push_str(&format!("{lead}\"{key}\": {},", if is_start { value } else { *over }));
            }
            self.line.pop();
            self.line.push('}');
            self.end_line()?;
        }
        Ok(())
    }

    /// Bytes, in the unit of this flavour.
    fn memory(&self, bytes: u64) -> String {
        match self.flavour {
            Flavour::Python => number::python(bytes as f64 / 1000.0),
            Flavour::C => (bytes / 1024).to_string(),
        }
    }

    fn begin_line(&mut self, event: &FlowEvent, at_ns: i64) {
        self.line.clear();
        if self.written > 0 {
            self.line.push_str(",\n");
        }
        self.line.push_str(self.indent);
        self.line.push_str("{\"name\": ");
        self.text(self.events.text(event.name));
        self.key("cat");
        self.text(self.events.text(event.cat));
        self.line.push_str(&format!(", \"pid\": {}, \"tid\": {}", event.pid, event.tid));
        self.key("ts");
        let at = self.micros(at_ns);
        self.real(at);
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line.push('}');
        self.written += 1;
        self.out.write_all(self.line.as_bytes())
    }

    fn key(&mut self, key: &str) {
        self.line.push_str(", \"");
        self.line.push_str(key);
        self.line.push_str("\": ");
    }

    fn phase(&mut self, event: &FlowEvent) {
        self.key("ph");
        self.line.push('"');
        self.line.push(event.phase.letter());
        self.line.push('"');
    }

    fn id(&mut self, more: &More) {
        self.key("id");
        match &more.given_id {
            Some(given) => self.value(given),
            // Many readers of JSON keep no more of an integer.
            None => self.line.push_str(&(more.id & ((1 << 53) - 1)).to_string()),
        }
    }

    fn arguments(&mut self, args: &[(String, Value)]) {
        if args.is_empty() {
            return;
        }
        self.key("args");
        for (place, (key, value)) in args.iter().enumerate() {
            self.line.push_str(if place == 0 { "{" } else { ", " });
            self.text(key);
            self.line.push_str(": ");
            self.value(value);
        }
        self.line.push('}');
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.line.push_str("null"),
            Value::Bool(v) => self.line.push_str(if *v { "true" } else { "false" }),
            Value::Int(v) => self.line.push_str(&v.to_string()),
            Value::UInt(v) => self.line.push_str(&v.to_string()),
            Value::Float(v) if v.is_finite() => self.real(*v),
            // JSON has no word for them.
            Value::Float(v) => self.text(&v.to_string()),
            Value::Str(v) => self.text(v),
            Value::Json(v) => self.line.push_str(v),
        }
    }

    /// A time in microseconds, as coarse as this flavour tells it.
    fn micros(&self, ns: i64) -> f64 {
        match self.flavour {
            // Whole microseconds are exact; the sum is rounded once, to the nearest quarter.
            Flavour::Python => ns.div_euclid(1000) as f64 + ns.rem_euclid(1000) as f64 / 1000.0,
            Flavour::C => ns.div_euclid(1000) as f64,
        }
    }

    fn shown(&self, value: f64) -> String {
        match self.flavour {
            Flavour::Python => number::python(value),
            Flavour::C => number::c(value),
        }
    }

    fn real(&mut self, value: f64) {
        let shown = self.shown(value);
        self.line.push_str(&shown);
    }

    fn text(&mut self, text: &str) {
        self.line.push('"');
        for c in text.chars() {
            match c {
                '"' => self.line.push_str("\\\""),
                '\\' => self.line.push_str("\\\\"),
                '\u{8}' => self.line.push_str("\\b"),
                '\u{c}' => self.line.push_str("\\f"),
                '\n' => self.line.push_str("\\n"),
                '\r' => self.line.push_str("\\r"),
                '\t' => self.line.push_str("\\t"),
                // How `weftline_format::text` holds a byte that is not UTF-8. Half of a surrogate pair, which would say it
                // in JSON, makes strict readers refuse the file.
                '\u{10D800}'..='\u{10DFFF}' => self.line.push_str("\\ufffd"),
                ' '..='~' => self.line.push(c),
                c if u32::from(c) >= 0x7f && self.flavour == Flavour::C => self.line.push(c),
                c => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.line.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        self.line.push('"');
    }
}

#[cfg(test)]
mod tests;
