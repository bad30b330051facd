//! A batch of the index → columns that people know.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array,
};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weftline_analysis::arguments;
use weftline_format::quick::INTEGERS;
use weftline_index::dictionary::Strings;
use weftline_index::{Batch, Column, Dictionary};

use crate::failure::Error;

/// A dictionary of at most so many values is handed on whole; of a larger one, what a batch uses.
const SMALL: usize = 4096;
const PHASES: [&str; 13] = ["X", "B", "E", "b", "e", "n", "i", "C", "M", "s", "t", "f", "A"];

/// Where a column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Stored(Column),
    IntegerOrText(u8),
    Name,
    Cat,
    Phase,
    Host,
    Path,
    Pid,
    Rank,
    Process,
    Args,
    Extra,
}

/// The columns, in the order of the table `events` of `weft query`.
const COLUMNS: [&str; 26] = [
    "ts_ns",
    "dur_ns",
    "name",
    "cat",
    "ph",
    "host",
    "pid",
    "tid",
    "rank",
    "path",
    "fd",
    "size",
    "ret",
    "offset",
    "epoch",
    "step",
    "level",
    "flags",
    "mode",
    "whence",
    "image_idx",
    "image_size",
    "id",
    "process",
    "args",
    "extra",
];

/// The columns that events have, in the order in which they come.
#[pyfunction]
pub(crate) fn event_columns() -> Vec<&'static str> {
    COLUMNS.to_vec()
}

fn origin(name: &str) -> Option<Origin> {
    COLUMNS.contains(&name).then_some(())?;
    Some(match name {
        "ts_ns" => Origin::Stored(Column::Ts),
        "dur_ns" => Origin::Stored(Column::Dur),
        "tid" => Origin::Stored(Column::Tid),
        "id" => Origin::Stored(Column::Id),
        "name" => Origin::Name,
        "cat" => Origin::Cat,
        "ph" => Origin::Phase,
        "host" => Origin::Host,
        "path" => Origin::Path,
        "pid" => Origin::Pid,
        "rank" => Origin::Rank,
        "process" => Origin::Process,
        "args" => Origin::Args,
        "extra" => Origin::Extra,
        integer => {
            let place = INTEGERS.iter().position(|known| *known == integer)? as u8;
            if arguments::also_as_text(integer) {
                Origin::IntegerOrText(place)
            } else {
                Origin::Stored(Column::Integer(place))
            }
        }
    })
}

impl Origin {
    fn needs(self) -> Vec<Column> {
        match self {
            Origin::Stored(column) => vec![column],
            Origin::IntegerOrText(place) => vec![Column::Integer(place), Column::Rest],
            Origin::Name => vec![Column::Name],
            Origin::Cat => vec![Column::Cat],
            Origin::Phase => vec![Column::Phase],
            Origin::Path => vec![Column::File],
            Origin::Host | Origin::Pid | Origin::Rank | Origin::Process => vec![Column::Process],
            Origin::Args => arguments::all_columns(),
            Origin::Extra => vec![Column::Extra],
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Origin::Name | Origin::Cat | Origin::Phase | Origin::Host | Origin::Path => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Origin::Args | Origin::Extra => DataType::Utf8,
            _ => DataType::Int64,
        }
    }
}

/// Makes record batches of certain columns.
pub(super) struct Assembler {
    schema: SchemaRef,
    origins: Vec<Origin>,
    names: Arc<StringArray>,
    cats: Arc<StringArray>,
    phases: Arc<StringArray>,
    hosts: Arc<StringArray>,
    paths: Arc<StringArray>,
    /// Per file: whether its path is known.
    known: Option<Vec<bool>>,
    host_of: Vec<Option<i32>>,
    pid_of: Vec<i64>,
    rank_of: Vec<Option<i64>>,
}

impl Assembler {
    pub(super) fn new(dictionary: &Dictionary, columns: Option<Vec<String>>) -> PyResult<Assembler> {
        let columns = columns.unwrap_or_else(|| COLUMNS.map(str::to_owned).to_vec());
        if columns.is_empty() {
            return Err(PyValueError::new_err("columns is empty; name some, or leave it out for all"));
        }
        let unknown = |name: &str| {
            PyValueError::new_err(format!("events have no column {name:?}; they have {}", COLUMNS.join(", ")))
        };
        let origins = columns.iter().map(|name| origin(name).ok_or_else(|| unknown(name)));
        let origins: Vec<Origin> = origins.collect::<PyResult<_>>()?;
        let fields = columns.into_iter().zip(&origins).map(|(name, origin)| Field::new(name, origin.data_type(), true));
        let fields: Vec<Field> = fields.collect();
        let uses = |origin: Origin| origins.contains(&origin);
        let strings = |strings: &Strings, used: bool, what: &str| -> PyResult<Arc<StringArray>> {
            let none = Strings::default();
            array(if used { strings } else { &none }, what)
        };
        let mut hosts = Strings::default();
        let host_of = dictionary.processes.iter().map(|process| {
            let host = [&process.host, &process.hhash].into_iter().find(|host| !host.is_empty())?;
            Some(hosts.intern(host) as i32)
        });
        let host_of = host_of.collect();
        Ok(Assembler {
            schema: Arc::new(Schema::new(fields)),
            names: strings(&dictionary.names, uses(Origin::Name), "names")?,
            cats: strings(&dictionary.cats, uses(Origin::Cat), "categories")?,
            paths: strings(&dictionary.files, uses(Origin::Path), "paths")?,
            hosts: array(&hosts, "hosts")?,
            phases: Arc::new(StringArray::from(PHASES.to_vec())),
            known: dictionary.known.contains(&false).then(|| dictionary.known.clone()),
            host_of,
            pid_of: dictionary.processes.iter().map(|process| process.pid).collect(),
            rank_of: dictionary.processes.iter().map(|process| process.rank).collect(),
            origins,
        })
    }

    pub(super) fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// The columns of the index that must be read.
    pub(super) fn needs(&self) -> Vec<Column> {
        self.origins.iter().flat_map(|origin| origin.needs()).collect()
    }

    pub(super) fn assemble(&self, batch: &Batch) -> Result<RecordBatch, ArrowError> {
        let columns = self.origins.iter().map(|origin| self.column(*origin, batch));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows()));
        RecordBatch::try_new_with_options(self.schema(), columns, &options)
    }

    fn column(&self, origin: Origin, batch: &Batch) -> Result<ArrayRef, ArrowError> {
        Ok(match origin {
            Origin::Stored(column) => Arc::clone(batch.column(column)),
            Origin::IntegerOrText(place) => arguments::integer_or_text(batch, place),
            Origin::Name => words(signed(batch.ids(Column::Name)), &self.names)?,
            Origin::Cat => words(signed(batch.ids(Column::Cat)), &self.cats)?,
            Origin::Path => words(self.known_files(batch.ids(Column::File)), &self.paths)?,
            Origin::Phase => {
                let mut keys = [None; 256];
                for (key, letter) in PHASES.iter().enumerate() {
                    keys[usize::from(letter.as_bytes()[0])] = Some(key as i32);
                }
                words(batch.phases().values().iter().map(|code| keys[usize::from(*code)]).collect(), &self.phases)?
            }
            Origin::Host => words(
                processes(batch).map(|process| self.host_of.get(process).copied().flatten()).collect(),
                &self.hosts,
            )?,
            Origin::Pid => {
                Arc::new(processes(batch).map(|process| self.pid_of.get(process).copied()).collect::<Int64Array>())
            }
            Origin::Rank => Arc::new(
                processes(batch).map(|process| self.rank_of.get(process).copied().flatten()).collect::<Int64Array>(),
            ),
            Origin::Process => Arc::new(Int64Array::from_iter_values(processes(batch).map(|process| process as i64))),
            Origin::Args => Arc::new(arguments::objects(batch)),
            Origin::Extra => {
                let mut texts = StringBuilder::new();
                for inside in batch.texts(Column::Extra) {
                    let inside = inside.filter(|inside| !inside.is_empty());
                    texts.append_option(inside.map(|inside| format!("{{{inside}}}")));
                }
                Arc::new(texts.finish())
            }
        })
    }

    /// The ids of files whose path is known.
    fn known_files(&self, files: &UInt32Array) -> Int32Array {
        let Some(known) = &self.known else { return signed(files) };
        let path = |file: u32| known.get(file as usize).copied().unwrap_or(false).then_some(file as i32);
        files.iter().map(|file| file.and_then(path)).collect()
    }
}

/// Arrow's text arrays hold 2 GiB.
fn array(strings: &Strings, what: &str) -> PyResult<Arc<StringArray>> {
    let bytes: usize = strings.iter().map(str::len).sum();
    if i32::try_from(bytes).is_err() {
        return Err(Error::new_err(format!(
            "the run has {bytes} bytes of {what}, more than a column can hold; leave that column out"
        )));
    }
    Ok(Arc::new(strings.iter().map(Some).collect()))
}

fn processes(batch: &Batch) -> impl Iterator<Item = usize> + '_ {
    batch.ids(Column::Process).values().iter().map(|process| *process as usize)
}

/// The same memory, read as signed numbers. A table of strings has fewer than 2^31 entries.
fn signed(ids: &UInt32Array) -> Int32Array {
    let buffer = ids.values().inner().clone();
    Int32Array::new(ScalarBuffer::new(buffer, 0, ids.len()), ids.nulls().cloned())
}

/// A column of words from their ids.
fn words(keys: Int32Array, values: &Arc<StringArray>) -> Result<ArrayRef, ArrowError> {
    if values.len() <= SMALL.max(keys.len()) {
        return Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(values) as ArrayRef)?));
    }
    // By id: its new key and 1, or 0. Zeroed memory costs nothing where it is not touched.
    let mut place = vec![0i32; values.len()];
    let mut used: Vec<i32> = Vec::new();
    let mut renumber = |id: i32| {
        let place = &mut place[id as usize];
        if *place == 0 {
            used.push(id);
            *place = used.len() as i32;
        }
        *place - 1
    };
    let keys: Int32Array = keys.iter().map(|id| id.map(&mut renumber)).collect();
    let values = arrow_select::take::take(values.as_ref(), &Int32Array::from(used), None)?;
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values)?))
}
