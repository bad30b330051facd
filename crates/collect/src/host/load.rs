//! Load averages.

use crate::read::{Kept, fraction, number, words};
use crate::sample::{Interval, Sink, Subject, Value};

#[derive(Debug)]
pub(super) struct Load {
    file: Kept,
}

impl Load {
    pub(super) fn new(file: Kept) -> Load {
        Load { file }
    }

    pub(super) fn sample(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        let Ok(text) = self.file.read_record(buffer) else { return };
        let mut words = words(text);
        let mut average = || fraction(words.next()?);
        let (Some(one), Some(five), Some(fifteen)) = (average(), average(), average()) else { return };
        let mut values = [
            ("load1", Value::Float(one)),
            ("load5", Value::Float(five)),
            ("load15", Value::Float(fifteen)),
            ("", Value::Unsigned(0)),
        ];
        let mut known = 3;
        let tasks = words.next().and_then(|tasks| number(tasks.split(|byte| *byte == b'/').nth(1)?));
        if let Some(tasks) = tasks {
            values[3] = ("tasks", Value::Unsigned(tasks));
            known = 4;
        }
        sink.counter(Subject::Host, "sys", "load", at, &values[..known]);
    }
}
