//! Pressure stall information: how long tasks waited for a resource. Of the machine, and of control groups.

use crate::read::{Kept, growth, lines, number, percent, words};
use crate::sample::{Interval, Sink, Subject, Value};

/// Nanoseconds that some tasks, and that all tasks, waited since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stalls {
    pub(crate) some_ns: Option<u64>,
    pub(crate) full_ns: Option<u64>,
}

/// Reads a file of the form `some avg10=… avg60=… avg300=… total=µs`.
pub(crate) fn parse(text: &[u8]) -> Stalls {
    let mut stalls = Stalls::default();
    for line in lines(text) {
        let mut words = words(line);
        let kind = words.next();
        let total = words.find_map(|word| number(word.strip_prefix(b"total=")?)).map(|us| us.saturating_mul(1000));
        match kind {
            Some(b"some") => stalls.some_ns = total,
            Some(b"full") => stalls.full_ns = total,
            _ => {}
        }
    }
    stalls
}

#[derive(Debug)]
pub(super) struct Pressure {
    file: Kept,
    name: &'static str,
    before: Option<Stalls>,
}

impl Pressure {
    pub(super) fn new(file: Kept, name: &'static str) -> Pressure {
        Pressure { file, name, before: None }
    }

    pub(super) fn sample(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        // Where pressure is switched off at boot, the file exists and reading it fails.
        let Ok(text) = self.file.read_record(buffer) else { return };
        let now = parse(text);
        if let Some(before) = self.before {
            let mut values = [("", Value::Unsigned(0)); 4];
            let mut known = 0;
            let parts = [
                ("some_ns", "some_pct", now.some_ns, before.some_ns),
                ("full_ns", "full_pct", now.full_ns, before.full_ns),
            ];
            for (time, share, now, before) in parts {
                if let (Some(now), Some(before)) = (now, before) {
                    let grown = growth(now, before);
                    values[known] = (time, Value::Unsigned(grown));
                    // The kernel accounts in strokes of its own, so an interval may show a little more than itself.
                    values[known + 1] = (share, Value::Float(percent(grown, at.length_ns()).min(100.0)));
                    known += 2;
                }
            }
            if known > 0 {
                sink.counter(Subject::Host, "sys", self.name, at, &values[..known]);
            }
        }
        self.before = Some(now);
    }
}
