//! Events as a table: a batch of the index → the columns of [`weftline_index::schema`], for SQL and Python alike.
//!
//! A string column is a dictionary array. Its keys are the ids of the index, its values one array per run: no string is
//! touched per row. Keys are signed, because pandas supports no others. If a run has more strings than a batch has rows, [`words`] leaves out those
//! that the batch does not use, since engines process all values of every batch that they hash or compare.

use std::sync::{Arc, OnceLock};

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array,
};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use weftline_index::column::{PHASES, phase_code};
use weftline_index::dictionary::{Process, Strings};
use weftline_index::schema::{ColumnKind, EventColumn, Source};
use weftline_index::{Batch, Column, Dictionary};

use crate::classify::{Classes, IoCat, Rules, SizeKind, operation_of};
use crate::{AnalysisError, Result, arguments};

/// A dictionary of at most so many values is handed on whole.
const SMALL: usize = 4096;

/// The strings of a run as Arrow arrays, and the processes and calls of its ids.
pub struct Words {
    /// What the ids mean.
    pub dictionary: Arc<Dictionary>,
    /// How calls are classified: all of them, none is left out.
    pub rules: Rules,
    /// The same by ids.
    pub classes: Classes,
    /// Names by their ids.
    pub names: Arc<StringArray>,
    /// Categories by their ids.
    pub cats: Arc<StringArray>,
    /// All hosts.
    pub hosts: Arc<StringArray>,
    /// The letters of all phases.
    pub phases: Arc<StringArray>,
    /// The operations of calls, by [`op_key`].
    pub ops: Arc<StringArray>,
    /// By entry of the process table: its host.
    pub host_of: Vec<Option<i32>>,
    /// By entry: which process it is.
    pub identities: Vec<Option<u32>>,
    all_known: bool,
    paths: OnceLock<std::result::Result<Arc<StringArray>, (&'static str, usize)>>,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

/// Arrow's text arrays hold 2 GiB.
fn array(strings: &Strings, what: &'static str) -> std::result::Result<Arc<StringArray>, (&'static str, usize)> {
    let bytes: usize = strings.iter().map(str::len).sum();
    if i32::try_from(bytes).is_err() {
        return Err((what, bytes));
    }
    Ok(Arc::new(strings.iter().map(Some).collect()))
}

fn too_long((what, bytes): (&'static str, usize)) -> AnalysisError {
    AnalysisError::TooLong { what, bytes }
}

impl Words {
    /// Of a run whose dictionary is known.
    pub fn new(dictionary: Arc<Dictionary>) -> Result<Words> {
        let rules = Rules::default().keeping_all();
        let classes = Classes::new(&rules, &dictionary);
        let mut hosts = Strings::default();
        let host_of = dictionary.processes.iter().map(|process| Some(hosts.intern(host_text(process)?) as i32));
        let host_of = host_of.collect();
        let letters = PHASES.iter().map(|phase| Some(char::from(phase_code(*phase)).to_string()));
        Ok(Words {
            names: array(&dictionary.names, "names").map_err(too_long)?,
            cats: array(&dictionary.cats, "categories").map_err(too_long)?,
            hosts: array(&hosts, "hosts").map_err(too_long)?,
            phases: Arc::new(letters.collect()),
            ops: Arc::new(IoCat::ALL.iter().map(|op| Some(op.label())).collect()),
            all_known: dictionary.known.iter().all(|known| *known),
            host_of,
            identities: dictionary.identities(),
            paths: OnceLock::new(),
            dictionary,
            rules,
            classes,
        })
    }

    /// Paths by the ids of files; the hash where a path is not known.
    pub fn paths(&self) -> Result<&Arc<StringArray>> {
        let paths = self.paths.get_or_init(|| array(&self.dictionary.files, "paths"));
        paths.as_ref().map_err(|why| too_long(*why))
    }

    /// The key of a call's operation among the operations, by its name alone.
    pub fn op_of_name(&self, name: &str) -> i32 {
        op_key(operation_of(name).io_cat())
    }
}

/// The name of a process's host, or else the hash by which events name it.
pub fn host_text(process: &Process) -> Option<&str> {
    [&process.host, &process.hhash].into_iter().find(|text| !text.is_empty()).map(String::as_str)
}

/// The key of an operation among [`Words::ops`].
pub fn op_key(op: IoCat) -> i32 {
    op as i32 - 1
}

/// The Arrow type of a kind of column.
pub fn arrow_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Integer => DataType::Int64,
        ColumnKind::Real => DataType::Float64,
        ColumnKind::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        ColumnKind::Text => DataType::Utf8,
    }
}

/// A column of words from their ids.
pub fn words(keys: Int32Array, values: &Arc<StringArray>) -> std::result::Result<ArrayRef, ArrowError> {
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

/// The same memory, read as signed numbers. A table of strings has fewer than 2^31 entries.
fn signed(ids: &UInt32Array) -> Int32Array {
    let buffer = ids.values().inner().clone();
    Int32Array::new(ScalarBuffer::new(buffer, 0, ids.len()), ids.nulls().cloned())
}

fn processes(batch: &Batch) -> impl Iterator<Item = usize> + '_ {
    batch.ids(Column::Process).values().iter().map(|process| *process as usize)
}

/// Makes record batches of certain columns.
#[derive(Debug)]
pub struct Assembler {
    words: Arc<Words>,
    schema: SchemaRef,
    sources: Vec<Source>,
    /// Only rows that have a start and a duration.
    spans_only: bool,
}

impl Assembler {
    /// For these columns. `spans_only` leaves out rows without a start or a duration.
    pub fn new<'c>(
        words: Arc<Words>,
        columns: impl IntoIterator<Item = &'c EventColumn>,
        spans_only: bool,
    ) -> Assembler {
        let (fields, sources): (Vec<Field>, Vec<Source>) = columns
            .into_iter()
            .map(|column| (Field::new(column.name, arrow_type(column.kind), column.nullable), column.source))
            .unzip();
        Assembler::with_schema(words, Arc::new(Schema::new(fields)), sources, spans_only)
    }

    /// For columns of these sources, called and typed as a schema says.
    pub fn with_schema(words: Arc<Words>, schema: SchemaRef, sources: Vec<Source>, spans_only: bool) -> Assembler {
        Assembler { words, schema, sources, spans_only }
    }

    /// The form of the batches.
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// The columns of the index that it reads.
    pub fn needs(&self) -> Vec<Column> {
        let always = if self.spans_only { vec![Column::Ts, Column::Dur] } else { Vec::new() };
        self.sources.iter().flat_map(|source| source.needs()).chain(always).collect()
    }

    /// The rows of a batch.
    pub fn assemble(&self, batch: &Batch) -> std::result::Result<RecordBatch, ArrowError> {
        let columns = self.sources.iter().map(|source| self.column(*source, batch));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows()));
        if !self.spans_only {
            return RecordBatch::try_new_with_options(self.schema(), columns, &options);
        }
        let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
        if ts.null_count() == 0 && dur.null_count() == 0 {
            return RecordBatch::try_new_with_options(self.schema(), columns, &options);
        }
        let keep = (0..batch.rows()).map(|row| Some(ts.is_valid(row) && dur.is_valid(row)));
        let keep = keep.collect::<arrow_array::BooleanArray>();
        let kept = columns.iter().map(|column| arrow_select::filter::filter(column, &keep));
        let kept = kept.collect::<std::result::Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(keep.true_count()));
        RecordBatch::try_new_with_options(self.schema(), kept, &options)
    }

    fn column(&self, source: Source, batch: &Batch) -> std::result::Result<ArrayRef, ArrowError> {
        let known = &self.words;
        let process_ids = &known.dictionary.processes;
        Ok(match source {
            Source::Stored(column) => Arc::clone(batch.column(column)),
            Source::End => {
                let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
                let ends = ts.iter().zip(dur).map(|(ts, dur)| Some(ts?.saturating_add(dur?.max(0))));
                Arc::new(ends.collect::<Int64Array>())
            }
            Source::Name => words(signed(batch.ids(Column::Name)), &known.names)?,
            Source::Cat => words(signed(batch.ids(Column::Cat)), &known.cats)?,
            Source::Phase => {
                let mut keys = [None; 256];
                for (key, phase) in PHASES.iter().enumerate() {
                    keys[usize::from(phase_code(*phase))] = Some(key as i32);
                }
                let codes = batch.phases().values().iter();
                words(codes.map(|code| keys[usize::from(*code)]).collect(), &known.phases)?
            }
            Source::Path => {
                let paths = known.paths().map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
                words(self.known_files(batch.ids(Column::File)), paths)?
            }
            Source::Host => words(processes(batch).map(|process| known.host_of[process]).collect(), &known.hosts)?,
            Source::Pid => {
                Arc::new(Int64Array::from_iter_values(processes(batch).map(|process| process_ids[process].pid)))
            }
            Source::Rank => Arc::new(processes(batch).map(|process| process_ids[process].rank).collect::<Int64Array>()),
            Source::Process => Arc::new(
                processes(batch).map(|process| known.identities[process].map(i64::from)).collect::<Int64Array>(),
            ),
            Source::Operation => {
                let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
                let ops = cats.iter().zip(names).map(|(cat, name)| op_key(known.classes.io_cat(*cat, *name)));
                words(Int32Array::from_iter_values(ops), &known.ops)?
            }
            Source::Moved => self.moved(batch),
            Source::Args => Arc::new(arguments::objects(batch)),
            Source::Extra => {
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
        if self.words.all_known {
            return signed(files);
        }
        let known = &self.words.dictionary.known;
        let path = |file: u32| known.get(file as usize).copied().unwrap_or(false).then_some(file as i32);
        files.iter().map(|file| file.and_then(path)).collect()
    }

    fn moved(&self, batch: &Batch) -> ArrayRef {
        let ret = batch.ints(Column::RET);
        let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
        let moved = (0..batch.rows()).map(|row| {
            let moves = self.words.classes.size_kind(cats[row], names[row]) == SizeKind::Returned;
            (moves && ret.is_valid(row)).then(|| ret.value(row)).filter(|bytes| *bytes > 0)
        });
        Arc::new(moved.collect::<Int64Array>())
    }
}
