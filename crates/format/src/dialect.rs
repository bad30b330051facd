//! Which system wrote a trace, and what its lines mean.
//!
//! | | Weftline | DFTracer 1.x, 2.0 | DFTracer 2.2 | PerfFlowAspect | other Chrome JSON |
//! |---|---|---|---|---|---|
//! | framing | `[`, one object per line, no commas | the same, `]` at the end of some | one object per line | `[` or `{…,"traceEvents":[`, commas, never closed | array or object |
//! | known by | `WF` in the gzip header, identity line, `ns` | category `dftracer`, or numbers as strings | integer `ph` | `"displayTimeUnit": "us"`, or spaces and real `ts` | the rest |
//! | `ph` | letter | letter | 1 `X`, 2 `C`, 3 aggregated, 4 `M` | letter | letter |
//! | `ts`, `dur` | whole µs, remainders in `ns` | µs, or what `CM time_metric` says | the same | real µs | real µs |
//! | names of hashes | `FH`, `SH`, `HH`: `args.name`, `args.value` | the same, integers in 1.x | the same | none | none |
//! | paths in arguments | `fhash` | `fhash`, `fname` in old ones | `fhash` | none | none |
//! | strings as floats | `"NaN"`, `"Infinity"`, `"-Infinity"` | no | no | no | no |
//!
//! The same code reads all of them. The dialect decides the last three rows and the unit of time, and is shown to
//! users. If the start of a trace does not show its unit, the reader assumes microseconds.

use std::fmt;

use crate::event::Phase;
use crate::json::{Raw, small_integer};
use crate::objects::{Item, Items};
use crate::view::EventView;

/// Which system wrote a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// This one.
    Weftline,
    /// DFTracer up to 2.0, with letters as phases.
    Dftracer1,
    /// DFTracer 2.2, with numbers as phases.
    Dftracer2,
    /// PerfFlowAspect.
    PerfFlowAspect,
    /// Anything else that viewers of Chrome's trace format take.
    #[default]
    Chrome,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Weftline => "Weftline",
            Dialect::Dftracer1 => "DFTracer 1",
            Dialect::Dftracer2 => "DFTracer 2",
            Dialect::PerfFlowAspect => "PerfFlowAspect",
            Dialect::Chrome => "Chrome JSON",
        })
    }
}

impl Dialect {
    /// Whether lines are ours: with nanoseconds below the microsecond, and some strings that mean floats.
    #[inline]
    pub const fn is_own(self) -> bool {
        matches!(self, Dialect::Weftline)
    }
}

/// The tool that wrote a trace, which decides how its lines are read. Importers write a dialect of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Who wrote it.
    pub dialect: Dialect,
    /// Nanoseconds in one unit of `ts` and `dur`.
    pub unit_ns: i64,
}

impl Default for Reading {
    fn default() -> Self {
        Reading { dialect: Dialect::Chrome, unit_ns: 1000 }
    }
}

impl Reading {
    /// How our own lines are read: what is known of a file whose first bytes are one of our members.
    pub const fn own() -> Reading {
        Reading { dialect: Dialect::Weftline, unit_ns: 1000 }
    }

    /// Looks at the start of a text.
    pub fn of(text: &[u8]) -> Reading {
        let mut header_is_perfflow = false;
        let mut votes = Votes::default();
        for item in Items::new(text, Reading::default(), false).take(LOOKED_AT) {
            match item {
                Item::Header(pairs) => {
                    let unit = (&b"displayTimeUnit"[..], Raw::Str(b"us"));
                    header_is_perfflow |= pairs.contains(&unit);
                }
                Item::Event(event) => votes.count(&event),
                _ => {}
            }
        }
        let dialect = if votes.own {
            return Reading::own();
        } else if votes.integer_phase {
            Dialect::Dftracer2
        } else if votes.dftracer {
            Dialect::Dftracer1
        } else if header_is_perfflow || votes.perfflow > 0 && votes.perfflow == votes.events {
            Dialect::PerfFlowAspect
        } else {
            Dialect::Chrome
        };
        Reading { dialect, unit_ns: votes.unit_ns.unwrap_or(1000) }
    }
}

/// Events at the start of a trace that are looked at.
const LOOKED_AT: usize = 64;

#[derive(Default)]
struct Votes {
    events: usize,
    own: bool,
    integer_phase: bool,
    dftracer: bool,
    perfflow: usize,
    unit_ns: Option<i64>,
}

impl Votes {
    fn count(&mut self, event: &EventView<'_>) {
        self.events += 1;
        let field = |key: &str| event.raw_field(key);
        let metadata = event.phase == Phase::Metadata;
        self.own |= metadata && event.cat == crate::identity::CATEGORY;
        // A line of ours that was taken out of its file still tells itself by its remainders.
        let remainders =
            matches!(field("ns"), Some(Raw::Number(ns)) if ns.len() <= 6 && ns.iter().all(u8::is_ascii_digit));
        let whole_time = matches!(field("ts"), Some(Raw::Number(ts)) if small_integer(ts).is_some());
        self.own |= remainders && whole_time && matches!(field("ph"), Some(Raw::Str(_)));
        self.integer_phase |= matches!(field("ph"), Some(Raw::Number(_)));
        let numbers_as_strings = matches!((field("ts"), field("pid")), (Some(Raw::Str(_)), Some(Raw::Str(_))));
        self.dftracer |= event.cat == "dftracer" || numbers_as_strings || event.arg("hhash").is_some();
        let real_time = matches!(field("ts"), Some(Raw::Number(ts)) if ts.contains(&b'.'));
        self.perfflow += usize::from(real_time && event.raw().starts_with(b"{\"name\": \""));
        if metadata && event.name == "CM" && event.arg_str("name").as_deref() == Some("time_metric") {
            self.unit_ns = event.arg_str("value").as_deref().and_then(unit_of);
        }
    }
}

/// The units that DFTracer can be told to write.
fn unit_of(name: &str) -> Option<i64> {
    match name {
        "NS" => Some(1),
        "US" => Some(1_000),
        "MS" => Some(1_000_000),
        "S" | "SEC" => Some(1_000_000_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, dialect: Dialect, unit_ns: i64) {
        let found = Reading::of(text.as_bytes());
        assert_eq!((found.dialect, found.unit_ns), (dialect, unit_ns), "{text}");
    }

    #[test]
    fn dialects_are_told_apart() {
        check(r#"{"name":"process_name","cat":"weft","ph":"M","pid":1,"tid":1,"args":{}}"#, Dialect::Weftline, 1000);
        check(
            r#"{"name":"read","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":5,"dur":1,"ns":7}"#,
            Dialect::Weftline,
            1000,
        );
        check(
            r#"{"name":"read","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":5.5,"dur":1,"ns":7}"#,
            Dialect::Chrome,
            1000,
        );
        let metric = |ph, unit| {
            format!(
                r#"{{"name":"CM","cat":"dftracer","pid":1,"tid":1,"ph":{ph},"args":{{"name":"time_metric","value":"{unit}"}}}}"#
            )
        };
        check(&metric("4", "NS"), Dialect::Dftracer2, 1);
        check(&metric("4", "parsec"), Dialect::Dftracer2, 1000);
        check(&metric("\"M\"", "MS"), Dialect::Dftracer1, 1_000_000);
        check(
            r#"{"id":"0","name":"open","cat":"POSIX","pid":"1","tid":"1","ts":"5","dur":"1","ph":"X"}"#,
            Dialect::Dftracer1,
            1000,
        );
        check(
            "[\n{\"name\": \"foo\", \"cat\": \"f.py\", \"pid\": 1, \"tid\": 1, \"ts\": 5.0, \"ph\": \"B\"},\n",
            Dialect::PerfFlowAspect,
            1000,
        );
        check("{\n  \"displayTimeUnit\": \"us\",\n  \"traceEvents\": [\n", Dialect::PerfFlowAspect, 1000);
        check(r#"[{"name":"foo","ph":"B","ts":5.5,"pid":1,"tid":1}]"#, Dialect::Chrome, 1000);
        check("", Dialect::Chrome, 1000);
    }
}
