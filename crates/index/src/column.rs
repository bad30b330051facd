//! The columns of an event, as they are stored and as batches hold them.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use weftline_format::Phase;
use weftline_format::quick::INTEGERS;

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Column {
    /// What kind of event: a code of [`phase_code`].
    Phase,
    /// When it began or happened, ns since the epoch; null where the line has no time.
    Ts,
    /// How long it took, ns. A `B` has the duration that its `E` gives it.
    Dur,
    /// Id of its name.
    Name,
    /// Id of its category, as it was written.
    Cat,
    /// Id of its process.
    Process,
    /// Its thread.
    Tid,
    /// Id of the file that it is about.
    File,
    /// The `id` field, where it is an integer.
    Id,
    /// One of the arguments in [`INTEGERS`], by its place there.
    Integer(u8),
    /// All other arguments: the inside of a JSON object, as it was written.
    Rest,
    /// Fields beside `args` that have no column, in the same form.
    Extra,
    /// Oddities that a line is rebuilt from: see [`mark`].
    Marks,
}

/// Bits of [`Column::Marks`].
pub mod mark {
    /// The line had an `args` object.
    pub const ARGS: u16 = 1;
    /// `fhash` was a number.
    pub const FILE_NUMBER: u16 = 2;
    /// `hhash` was a number.
    pub const HOST_NUMBER: u16 = 4;
    /// The line had an `hhash` of its own.
    pub const HOST: u16 = 8;
    /// The trace is one of ours.
    pub const OWN: u16 = 16;
    /// From this bit on, two bits: the unit of times, as a power of 1000 ns.
    pub const UNIT: u32 = 5;
    /// From this bit on: [`weftline_format::quick::Form`].
    pub const FORM: u32 = 8;
}

impl Column {
    /// Columns before the integers.
    const FIRST: [Column; 9] = [
        Column::Phase,
        Column::Ts,
        Column::Dur,
        Column::Name,
        Column::Cat,
        Column::Process,
        Column::Tid,
        Column::File,
        Column::Id,
    ];
    const LAST: [Column; 3] = [Column::Rest, Column::Extra, Column::Marks];
    /// How many there are.
    pub const COUNT: usize = Column::FIRST.len() + INTEGERS.len() + Column::LAST.len();

    /// All columns, in the order of the file.
    pub fn all() -> impl Iterator<Item = Column> {
        let integers = (0..INTEGERS.len() as u8).map(Column::Integer);
        Column::FIRST.into_iter().chain(integers).chain(Column::LAST)
    }

    /// The column of an integer argument.
    pub fn integer(name: &str) -> Option<Column> {
        INTEGERS.iter().position(|known| *known == name).map(|place| Column::Integer(place as u8))
    }

    /// Its place in the file.
    pub fn place(self) -> usize {
        match self {
            Column::Integer(place) => Column::FIRST.len() + usize::from(place),
            Column::Rest => Column::COUNT - 3,
            Column::Extra => Column::COUNT - 2,
            Column::Marks => Column::COUNT - 1,
            first => Column::FIRST.iter().position(|column| *column == first).unwrap_or(0),
        }
    }

    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Column::Phase => "ph",
            Column::Ts => "ts_ns",
            Column::Dur => "dur_ns",
            Column::Name => "name",
            Column::Cat => "cat",
            Column::Process => "process",
            Column::Tid => "tid",
            Column::File => "file",
            Column::Id => "id",
            Column::Integer(place) => INTEGERS[usize::from(place)],
            Column::Rest => "rest",
            Column::Extra => "extra",
            Column::Marks => "marks",
        }
    }

    /// Its type.
    pub fn data_type(self) -> DataType {
        match self {
            Column::Phase => DataType::UInt8,
            Column::Marks => DataType::UInt16,
            Column::Name | Column::Cat | Column::Process | Column::File => DataType::UInt32,
            Column::Rest | Column::Extra => DataType::Utf8,
            _ => DataType::Int64,
        }
    }

    /// Whether it may be absent.
    pub fn nullable(self) -> bool {
        !matches!(self, Column::Phase | Column::Marks | Column::Name | Column::Cat | Column::Process | Column::Tid)
    }
}

/// The schema of an events file.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let fields: Vec<Field> =
            Column::all().map(|column| Field::new(column.name(), column.data_type(), column.nullable())).collect();
        Arc::new(Schema::new(fields))
    });
    Arc::clone(&SCHEMA)
}

const PHASES: [Phase; 13] = [
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

/// The code of a phase in [`Column::Phase`]: its letter.
pub fn phase_code(phase: Phase) -> u8 {
    phase.letter() as u8
}

/// The phase of a code.
pub fn phase_of(code: u8) -> Option<Phase> {
    Phase::from_letter(code)
}

/// A phase's bit in a set of phases.
pub fn phase_bit(code: u8) -> u16 {
    PHASES.iter().position(|phase| phase_code(*phase) == code).map_or(0, |place| 1 << place)
}
