//! Rebuilds the original lines from the index, equal as JSON. Lines that define hashes are left out; the dictionary has those.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array as _, ArrayRef};
use weftline_format::Phase;
use weftline_format::dialect::{Dialect, Reading};
use weftline_format::quick::{Form, INTEGERS, Record, rebuild};

use crate::column::{Column, mark, phase_of};
use crate::dictionary::Process;
use crate::part::{Part, Room};
use crate::pipeline::Tables;
use crate::rows::meaning_of;
use crate::run::{Content, Run};
use crate::{IndexError, Result};

impl Run {
    /// Calls `each` for every line of an indexed run, in the order of the files; a row group that was sorted ([`crate::part`]) in the order of time.
    pub fn lines(&self, mut each: impl FnMut(&str)) -> Result<()> {
        let Content::Indexed(_) = &self.content else {
            let path = self.sets().first().map(|set| set.base.clone()).unwrap_or_default();
            return Err(IndexError::Io {
                path,
                source: std::io::Error::other("lines need an index; open the run with one"),
            });
        };
        let columns: Vec<Column> = Column::all().collect();
        let mut room = Room::new()?;
        // A line that was handed over cannot be taken back.
        let (parts, strings) = self.with_parts(|parts| {
            let mut room = Room::new()?;
            for part in parts.iter().map(|(part, _)| part) {
                for group in 0..part.meta.groups.len() {
                    part.check(group, part.pages(group), &columns, &mut room)?;
                }
            }
            let strings = parts.iter().map(|(part, _)| part.strings()).collect::<Result<Vec<Tables>>>()?;
            Ok((Arc::clone(parts), strings))
        })?;
        for ((part, _), tables) in parts.iter().zip(&strings) {
            for group in 0..part.meta.groups.len() {
                for page in part.pages(group) {
                    let batch = part.read(group, page..page + 1, &columns, &mut room);
                    let batch = batch.inspect_err(|error| self.doubt(error))?;
                    for row in 0..batch.first().map_or(0, |column| column.len()) {
                        each(&line(&batch, row, part, tables));
                    }
                }
            }
        }
        Ok(())
    }
}

fn line(batch: &[ArrayRef], row: usize, part: &Part, tables: &Tables) -> String {
    let array = |column: Column| &batch[column.place()];
    let number = |column: Column| {
        let array = array(column).as_primitive::<Int64Type>();
        array.is_valid(row).then(|| array.value(row))
    };
    let id = |column: Column| array(column).as_primitive::<UInt32Type>().value(row);
    let text = |column: Column| {
        let array = array(column).as_string::<i32>();
        if array.is_valid(row) { array.value(row) } else { "" }
    };
    let marks = array(Column::Marks).as_primitive::<UInt16Type>().value(row);
    let phase = phase_of(array(Column::Phase).as_primitive::<UInt8Type>().value(row)).unwrap_or(Phase::Instant);
    let unknown = Process::default();
    let process = part.meta.processes.get(id(Column::Process) as usize).unwrap_or(&unknown);
    let files = array(Column::File).as_primitive::<UInt32Type>();
    // A hash that begins so was made from `fname`, which is among the other arguments.
    let file = files.is_valid(row).then(|| meaning_of(tables.files.get(files.value(row))).0);
    let file = file.filter(|hash| !hash.starts_with('='));
    let (mut present, mut integers) = (0, [0; INTEGERS.len()]);
    for (place, value) in integers.iter_mut().enumerate() {
        if let Some(known) = number(Column::Integer(place as u8)) {
            (*value, present) = (known, present | 1 << place);
        }
    }
    // The duration of these is that of their pair.
    let paired = matches!(phase, Phase::Begin | Phase::AsyncBegin);
    let record = Record {
        phase,
        name: tables.names.get(id(Column::Name)),
        cat: tables.cats.get(id(Column::Cat)),
        pid: process.pid,
        tid: array(Column::Tid).as_primitive::<Int64Type>().value(row),
        start_ns: number(Column::Ts),
        dur_ns: number(Column::Dur).filter(|_| !paired),
        id: number(Column::Id),
        fhash: file,
        hhash: (marks & mark::HOST != 0).then_some(process.hhash.as_str()),
        fhash_is_number: marks & mark::FILE_NUMBER != 0,
        hhash_is_number: marks & mark::HOST_NUMBER != 0,
        present,
        integers,
        rest: text(Column::Rest),
        extra: text(Column::Extra),
        has_args: marks & mark::ARGS != 0,
        form: Form::from_bits((marks >> mark::FORM) as u8),
    };
    let reading = Reading {
        dialect: if marks & mark::OWN != 0 { Dialect::Weftline } else { Dialect::Chrome },
        unit_ns: 1000_i64.pow(u32::from(marks >> mark::UNIT & 3)),
    };
    rebuild(&record, reading)
}
