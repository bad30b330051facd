//! The columns of an event, as they are stored and as batches hold them.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use weftline_format::Phase;
use weftline_format::quick::INTEGERS;

use crate::schema::same;

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
    /// Id of its second file (`fhash2`): what was copied from, or the other name of a call with two.
    SecondFile,
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
    const FIRST: [Column; 10] = [
        Column::Phase,
        Column::Ts,
        Column::Dur,
        Column::Name,
        Column::Cat,
        Column::Process,
        Column::Tid,
        Column::File,
        Column::SecondFile,
        Column::Id,
    ];
    const LAST: [Column; 3] = [Column::Rest, Column::Extra, Column::Marks];
    /// How many there are.
    pub const COUNT: usize = Column::FIRST.len() + INTEGERS.len() + Column::LAST.len();

    /// All columns, in the order of the file.
    pub fn all() -> impl Iterator<Item = Column> {
        Column::FIRST.into_iter().chain(Column::arguments()).chain(Column::LAST)
    }

    /// The argument `fd`. Arguments have constants, so that a name that does not exist does not compile.
    pub const FD: Column = Column::argument("fd");
    /// The argument `size`.
    pub const SIZE: Column = Column::argument("size");
    /// The argument `ret`.
    pub const RET: Column = Column::argument("ret");
    /// The argument `offset`.
    pub const OFFSET: Column = Column::argument("offset");
    /// The argument `flags`.
    pub const FLAGS: Column = Column::argument("flags");
    /// The argument `mode`.
    pub const MODE: Column = Column::argument("mode");
    /// The argument `whence`.
    pub const WHENCE: Column = Column::argument("whence");
    /// The argument `level`.
    pub const LEVEL: Column = Column::argument("level");
    /// The argument `epoch`.
    pub const EPOCH: Column = Column::argument("epoch");
    /// The argument `step`.
    pub const STEP: Column = Column::argument("step");
    /// The argument `image_idx`.
    pub const IMAGE_IDX: Column = Column::argument("image_idx");
    /// The argument `image_size`.
    pub const IMAGE_SIZE: Column = Column::argument("image_size");

    const fn argument(name: &str) -> Column {
        let mut place = 0;
        while place < INTEGERS.len() {
            if same(INTEGERS[place], name) {
                return Column::Integer(place as u8);
            }
            place += 1;
        }
        panic!("no integer argument of this name has a column")
    }

    /// The columns of all integer arguments, in the order of [`INTEGERS`].
    pub fn arguments() -> impl Iterator<Item = Column> {
        (0..INTEGERS.len() as u8).map(Column::Integer)
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
            Column::SecondFile => "file2",
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
            Column::Name | Column::Cat | Column::Process | Column::File | Column::SecondFile => DataType::UInt32,
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

/// All phases, in the order of their bits.
pub const PHASES: [Phase; 13] = Phase::ALL;

/// The code of a phase in [`Column::Phase`]: its letter.
pub fn phase_code(phase: Phase) -> u8 {
    phase.letter() as u8
}

/// The phases of spans: complete ones, and the first events of those that are written as two.
pub const SPAN_PHASES: [Phase; 3] = [Phase::Complete, Phase::Begin, Phase::AsyncBegin];

/// Whether a code is that of such a phase. An event of it is a span if it has a duration.
#[inline]
pub fn may_be_span(code: u8) -> bool {
    matches!(code, b'X' | b'B' | b'b')
}

/// The phase of a code.
pub fn phase_of(code: u8) -> Option<Phase> {
    Phase::from_letter(code)
}

/// A phase's bit in a set of phases.
pub fn phase_bit(code: u8) -> u16 {
    PHASES.iter().position(|phase| phase_code(*phase) == code).map_or(0, |place| 1 << place)
}
