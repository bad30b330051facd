//! The one schema of events: the name, meaning and unit of every column, and the stored columns that it is made of.
//!
//! SQL's tables, Python's `events`, conditions of `--where` and `docs/schema.md` take their columns from here. [`column`](column()) finds a
//! column at compile time: a name that does not exist does not compile. Names that users give go through [`find`].

use weftline_format::quick::INTEGERS;
pub use weftline_format::unit::Unit;

use crate::column::Column;

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// 64-bit integers.
    Integer,
    /// 64-bit floats.
    Real,
    /// Text from a small set: a dictionary whose values all batches share.
    Word,
    /// Text that is different in every row.
    Text,
}

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A stored column of integers, as it is.
    Stored(Column),
    /// The end of a span.
    End,
    /// The text of its name.
    Name,
    /// The text of its category.
    Cat,
    /// The letter of its phase.
    Phase,
    /// The path of its file.
    Path,
    /// The host of its process.
    Host,
    /// The number of its process on the host.
    Pid,
    /// The rank of its process.
    Rank,
    /// The row of its process.
    Process,
    /// What kind of I/O call it is.
    Operation,
    /// Bytes that a call moved.
    Moved,
    /// All arguments as JSON.
    Args,
    /// All fields beside `args` without a column, as JSON.
    Extra,
}

impl Source {
    /// The stored columns that it is made of.
    pub fn needs(self) -> Vec<Column> {
        match self {
            Source::Stored(column) => vec![column],
            Source::End => vec![Column::Ts, Column::Dur],
            Source::Name => vec![Column::Name],
            Source::Cat => vec![Column::Cat],
            Source::Phase => vec![Column::Phase],
            Source::Path => vec![Column::File],
            Source::Host | Source::Pid | Source::Rank | Source::Process => vec![Column::Process],
            Source::Operation => vec![Column::Name, Column::Cat],
            Source::Moved => vec![Column::RET, Column::Name, Column::Cat],
            Source::Args => Column::arguments().chain([Column::Rest, Column::Marks]).collect(),
            Source::Extra => vec![Column::Extra],
        }
    }
}

/// A column of a table of events.
#[derive(Debug, Clone, Copy)]
pub struct EventColumn {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
    /// What they measure.
    pub unit: Unit,
    /// Whether a row may have none.
    pub nullable: bool,
    /// What it means, in a few words.
    pub about: &'static str,
    /// Where it comes from.
    pub source: Source,
}

impl EventColumn {
    /// The same column in a table where every row has a value, with this meaning.
    #[must_use]
    pub const fn always(self, about: &'static str) -> EventColumn {
        EventColumn { nullable: false, about, ..self }
    }
}

const fn always(name: &'static str, kind: ColumnKind, unit: Unit, about: &'static str, source: Source) -> EventColumn {
    EventColumn { name, kind, unit, nullable: false, about, source }
}

const fn maybe(name: &'static str, kind: ColumnKind, unit: Unit, about: &'static str, source: Source) -> EventColumn {
    EventColumn { name, kind, unit, nullable: true, about, source }
}

const fn argument(column: Column, unit: Unit, about: &'static str) -> EventColumn {
    maybe(stored_name(column), ColumnKind::Integer, unit, about, Source::Stored(column))
}

const fn stored_name(column: Column) -> &'static str {
    match column {
        Column::Integer(place) => INTEGERS[place as usize],
        _ => panic!("not an argument"),
    }
}

/// The columns that every event has, in the order of the table `events`.
pub const EVENTS: [EventColumn; 26] = [
    maybe(
        "ts_ns",
        ColumnKind::Integer,
        Unit::Nanoseconds,
        "start or instant, nanoseconds since 1970; null if the line has no time",
        Source::Stored(Column::Ts),
    ),
    maybe(
        "dur_ns",
        ColumnKind::Integer,
        Unit::Nanoseconds,
        "duration in nanoseconds; a `B` event has the duration up to its `E`",
        Source::Stored(Column::Dur),
    ),
    always("name", ColumnKind::Word, Unit::Number, "what happened: the call, the function, the counter", Source::Name),
    always(
        "cat",
        ColumnKind::Word,
        Unit::Number,
        "category as it was written (`POSIX`, `STDIO`, or the program's own)",
        Source::Cat,
    ),
    always(
        "ph",
        ColumnKind::Word,
        Unit::Number,
        "phase, one letter: `X` span, `B`/`E` its two ends, `C` counter, `A` many calls in one record, `i` instant, `M` metadata …",
        Source::Phase,
    ),
    maybe(
        "host",
        ColumnKind::Word,
        Unit::Number,
        "host of the process; its hash if the trace does not have the name",
        Source::Host,
    ),
    always(
        "pid",
        ColumnKind::Integer,
        Unit::Id,
        "process number on its host; unique only together with `process`",
        Source::Pid,
    ),
    always("tid", ColumnKind::Integer, Unit::Id, "thread", Source::Stored(Column::Tid)),
    maybe("rank", ColumnKind::Integer, Unit::Id, "rank of the process within a parallel job", Source::Rank),
    maybe(
        "path",
        ColumnKind::Word,
        Unit::Number,
        "file of the event; null if there is none or only its hash is known",
        Source::Path,
    ),
    argument(Column::FD, Unit::Id, "argument: file descriptor"),
    argument(Column::SIZE, Unit::Bytes, "argument: requested bytes"),
    argument(Column::RET, Unit::Number, "argument: what the call returned"),
    argument(Column::OFFSET, Unit::Bytes, "argument: position in the file"),
    argument(Column::EPOCH, Unit::Id, "argument: training epoch, also if it was written as text"),
    argument(Column::STEP, Unit::Id, "argument: training step, also if it was written as text"),
    argument(
        Column::LEVEL,
        Unit::Number,
        "argument: nesting depth as DFTracer counts it, also if it was written as text",
    ),
    argument(Column::FLAGS, Unit::Number, "argument: flags of an open"),
    argument(Column::MODE, Unit::Number, "argument: access mode"),
    argument(Column::WHENCE, Unit::Number, "argument: what a seek is relative to"),
    argument(Column::IMAGE_IDX, Unit::Id, "argument: number of a sample, also if it was written as text"),
    argument(Column::IMAGE_SIZE, Unit::Bytes, "argument: bytes of a sample, also if it was written as text"),
    maybe("id", ColumnKind::Integer, Unit::Id, "the line's `id`, if it is an integer", Source::Stored(Column::Id)),
    maybe(
        "process",
        ColumnKind::Integer,
        Unit::Id,
        "`id` of the process in `processes`; null for samples of the host (pid 0) and for devices",
        Source::Process,
    ),
    maybe(
        "args",
        ColumnKind::Text,
        Unit::Number,
        "all arguments as a JSON object, except the hashes of `path` and `host`",
        Source::Args,
    ),
    maybe(
        "extra",
        ColumnKind::Text,
        Unit::Number,
        "other fields of the line without a column, as a JSON object",
        Source::Extra,
    ),
];

/// Columns that only spans and calls have.
pub const SPANS: [EventColumn; 4] = [
    always(
        "start_ns",
        ColumnKind::Integer,
        Unit::Nanoseconds,
        "start, nanoseconds since 1970",
        Source::Stored(Column::Ts),
    ),
    always("end_ns", ColumnKind::Integer, Unit::Nanoseconds, "end; a negative duration counts as none", Source::End),
    always(
        "op",
        ColumnKind::Word,
        Unit::Number,
        "`read`, `write`, `metadata`, `sync`, `process`, `ipc` or `other`, by the name of the call",
        Source::Operation,
    ),
    maybe(
        "bytes",
        ColumnKind::Integer,
        Unit::Bytes,
        "bytes that a read or write moved: its positive return value",
        Source::Moved,
    ),
];

/// The column of a name that stands in the source. In a constant, a name that does not exist is an error of the compiler.
///
/// # Panics
/// When there is no such column.
pub const fn column(name: &str) -> EventColumn {
    let mut place = 0;
    while place < EVENTS.len() {
        if same(EVENTS[place].name, name) {
            return EVENTS[place];
        }
        place += 1;
    }
    place = 0;
    while place < SPANS.len() {
        if same(SPANS[place].name, name) {
            return SPANS[place];
        }
        place += 1;
    }
    panic!("events have no column of this name")
}

/// The column of a name that a user gave.
pub fn find(name: &str) -> Option<&'static EventColumn> {
    static ALL: [&[EventColumn]; 2] = [&EVENTS, &SPANS];
    ALL.iter().flat_map(|columns| columns.iter()).find(|column| column.name == name)
}

/// Whether two texts are the same, for constants.
pub(crate) const fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut place = 0;
    while place < left.len() {
        if left[place] != right[place] {
            return false;
        }
        place += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_its_own_name_and_every_argument_a_column() {
        let mut names: Vec<&str> = EVENTS.iter().chain(&SPANS).map(|column| column.name).collect();
        assert!(names.iter().all(|name| find(name).is_some_and(|found| found.name == column(name).name)));
        assert!(INTEGERS.iter().all(|name| names.contains(name)), "{INTEGERS:?}");
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
