//! The event model: the content of one line of a trace, independent of its dialect.
//!
//! [`crate::line`] writes it; the reader makes it.

/// What kind of thing an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// A span with a start and a duration (`X`).
    Complete,
    /// The start of a span on a thread's stack (`B`).
    Begin,
    /// The end of the newest open span of a thread (`E`).
    End,
    /// The start of a span that is matched by category and id (`b`).
    AsyncBegin,
    /// The end of such a span (`e`).
    AsyncEnd,
    /// An instant within such a span (`n`).
    AsyncInstant,
    /// An instant (`i`).
    Instant,
    /// Values at a point in time (`C`).
    Counter,
    /// Metadata of a process, a thread or the trace; has no duration and often no time (`M`).
    Metadata,
    /// The start of an arrow between spans (`s`).
    FlowStart,
    /// A stop on the way of such an arrow (`t`).
    FlowStep,
    /// Its end (`f`).
    FlowEnd,
    /// Many calls folded into one record, as DFTracer 2.2 writes them (`A` here, integer 3 there).
    Aggregated,
}

impl Phase {
    /// All phases.
    pub const ALL: [Phase; 13] = [
        Phase::Complete,
        Phase::Begin,
        Phase::End,
        Phase::AsyncBegin,
        Phase::AsyncEnd,
        Phase::AsyncInstant,
        Phase::Instant,
        Phase::Counter,
        Phase::Metadata,
        Phase::FlowStart,
        Phase::FlowStep,
        Phase::FlowEnd,
        Phase::Aggregated,
    ];

    /// The letter that stands in the `ph` field of our files.
    pub const fn letter(self) -> char {
        match self {
            Phase::Complete => 'X',
            Phase::Begin => 'B',
            Phase::End => 'E',
            Phase::AsyncBegin => 'b',
            Phase::AsyncEnd => 'e',
            Phase::AsyncInstant => 'n',
            Phase::Instant => 'i',
            Phase::Counter => 'C',
            Phase::Metadata => 'M',
            Phase::FlowStart => 's',
            Phase::FlowStep => 't',
            Phase::FlowEnd => 'f',
            Phase::Aggregated => 'A',
        }
    }

    /// The phase of a letter, where the letter is one that [`Phase::letter`] gives.
    pub const fn from_letter(letter: u8) -> Option<Phase> {
        Some(match letter {
            b'X' => Phase::Complete,
            b'B' => Phase::Begin,
            b'E' => Phase::End,
            b'b' => Phase::AsyncBegin,
            b'e' => Phase::AsyncEnd,
            b'n' => Phase::AsyncInstant,
            b'i' => Phase::Instant,
            b'C' => Phase::Counter,
            b'M' => Phase::Metadata,
            b's' => Phase::FlowStart,
            b't' => Phase::FlowStep,
            b'f' => Phase::FlowEnd,
            b'A' => Phase::Aggregated,
            _ => return None,
        })
    }
}

/// One argument of an event.
///
/// Numbers keep their kind: an integer never becomes a float on the way. An integer beyond 64 bits is `Json`, so that no
/// digit is lost.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer that fits `i64`.
    Int(i64),
    /// An integer above `i64::MAX`; smaller ones are always `Int`.
    UInt(u64),
    /// Any other number, NaN and infinities included.
    Float(f64),
    /// Text. Bytes that are not UTF-8 are held as [`crate::text`] tells.
    Str(String),
    /// An array, an object or a number beyond 64 bits: its original JSON text.
    Json(String),
}

impl Value {
    /// The integer, where it is one and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(v) => Some(*v),
            _ => None,
        }
    }

    /// The integer, where it is one and not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Int(v) => u64::try_from(*v).ok(),
            Value::UInt(v) => Some(*v),
            _ => None,
        }
    }

    /// The number as a float, integers included.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(v) => Some(*v as f64),
            Value::UInt(v) => Some(*v as f64),
            Value::Float(v) => Some(*v),
            _ => None,
        }
    }

    /// The text, where it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(v) => Some(v),
            _ => None,
        }
    }

    /// The truth value, where it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(v) => Some(*v),
            _ => None,
        }
    }
}

impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Value::Int(v)
    }
}

impl From<u64> for Value {
    fn from(v: u64) -> Self {
        i64::try_from(v).map_or(Value::UInt(v), Value::Int)
    }
}

impl From<f64> for Value {
    fn from(v: f64) -> Self {
        Value::Float(v)
    }
}

impl From<bool> for Value {
    fn from(v: bool) -> Self {
        Value::Bool(v)
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Value::Str(v.to_owned())
    }
}

impl From<String> for Value {
    fn from(v: String) -> Self {
        Value::Str(v)
    }
}

/// One event. Times are nanoseconds since the Unix epoch (in foreign traces: since whatever their `ts` counts from).
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What kind of event it is.
    pub phase: Phase,
    /// Its name: a call, a function, a counter.
    pub name: String,
    /// Its category; empty when the line has none.
    pub cat: String,
    /// The process; 0 when the line has none.
    pub pid: i64,
    /// The thread; 0 when the line has none.
    pub tid: i64,
    /// When it began, or happened.
    pub start_ns: Option<i64>,
    /// How long it took; only spans have one.
    pub dur_ns: Option<i64>,
    /// What joins the parts of async spans and flows; a mere counter in DFTracer's files.
    pub id: Option<String>,
    /// The arguments in the order of the line, repeated keys included.
    pub args: Vec<(String, Value)>,
    /// Top-level fields that the model does not know, and those whose value it could not take as meant
    /// (`"pid":"main"`, a phase letter without a [`Phase`]). The latter replace the field of the same name when the
    /// event is written.
    pub extra: Vec<(String, Value)>,
}

impl Event {
    /// An event without time, arguments or anything else that can be left out.
    pub fn new(phase: Phase, name: impl Into<String>, cat: impl Into<String>, pid: i64, tid: i64) -> Event {
        Event {
            phase,
            name: name.into(),
            cat: cat.into(),
            pid,
            tid,
            start_ns: None,
            dur_ns: None,
            id: None,
            args: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// The argument of that name. Where a key is repeated the last one counts, as in any JSON reader.
    pub fn arg(&self, key: &str) -> Option<&Value> {
        self.args.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// When it ended; the same as its start where it has no duration.
    pub fn end_ns(&self) -> Option<i64> {
        self.start_ns.map(|start| start.saturating_add(self.dur_ns.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_name_phases() {
        let mut known = 0;
        for letter in 0..=255u8 {
            if let Some(phase) = Phase::from_letter(letter) {
                assert_eq!(phase.letter(), char::from(letter));
                known += 1;
            }
        }
        assert_eq!(known, 13);
    }

    #[test]
    fn last_argument_counts() {
        let mut event = Event::new(Phase::Complete, "read", "POSIX", 1, 1);
        event.args = vec![("ret".into(), Value::Int(1)), ("ret".into(), Value::Int(2))];
        assert_eq!(event.arg("ret").and_then(Value::as_i64), Some(2));
        assert_eq!(event.arg("size"), None);
    }

    #[test]
    fn end_follows_start() {
        for (start, dur, end) in [
            (None, None, None),
            (None, Some(5), None),
            (Some(7), None, Some(7)),
            (Some(7), Some(5), Some(12)),
            (Some(i64::MAX), Some(5), Some(i64::MAX)),
        ] {
            let event = Event { start_ns: start, dur_ns: dur, ..Event::new(Phase::Complete, "", "", 0, 0) };
            assert_eq!(event.end_ns(), end);
        }
    }

    #[test]
    fn unsigned_values_are_canonical() {
        assert_eq!(Value::from(5u64), Value::Int(5));
        assert_eq!(Value::from(u64::MAX), Value::UInt(u64::MAX));
        assert_eq!(Value::UInt(u64::MAX).as_i64(), None);
        assert_eq!(Value::Int(-1).as_u64(), None);
    }
}
