//! A batch of the index → the columns that a query needs.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, Int64Array, StringBuilder, UInt32Array};
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};
use weftline_analysis::arguments;
use weftline_analysis::classify::SizeKind;
use weftline_format::quick::INTEGERS;
use weftline_index::column::Column;
use weftline_index::scan::Batch;

use super::vocabulary::{Vocabulary, integers, op_key, phase_key, words};

/// Where a column of a table comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Start,
    End,
    Duration,
    Name,
    Cat,
    Phase,
    Host,
    Pid,
    Tid,
    Rank,
    Path,
    Process,
    Id,
    Integer(u8),
    IntegerOrText(u8),
    Operation,
    Bytes,
    Args,
    Extra,
}

impl Source {
    /// By the name of the column; nothing for those that only counters have.
    pub(crate) fn of(column: &str) -> Option<Source> {
        Some(match column {
            "ts_ns" | "start_ns" => Source::Start,
            "end_ns" => Source::End,
            "dur_ns" => Source::Duration,
            "name" => Source::Name,
            "cat" => Source::Cat,
            "ph" => Source::Phase,
            "host" => Source::Host,
            "pid" => Source::Pid,
            "tid" => Source::Tid,
            "rank" => Source::Rank,
            "path" => Source::Path,
            "process" => Source::Process,
            "id" => Source::Id,
            "op" => Source::Operation,
            "bytes" => Source::Bytes,
            "args" => Source::Args,
            "extra" => Source::Extra,
            integer => {
                let place = INTEGERS.iter().position(|known| *known == integer)? as u8;
                if arguments::also_as_text(integer) { Source::IntegerOrText(place) } else { Source::Integer(place) }
            }
        })
    }

    /// The columns of the index that it is made of.
    fn needs(self) -> Vec<Column> {
        match self {
            Source::Start => vec![Column::Ts],
            Source::End => vec![Column::Ts, Column::Dur],
            Source::Duration => vec![Column::Dur],
            Source::Name => vec![Column::Name],
            Source::Cat => vec![Column::Cat],
            Source::Phase => vec![Column::Phase],
            Source::Host | Source::Pid | Source::Rank | Source::Process => vec![Column::Process],
            Source::Tid => vec![Column::Tid],
            Source::Path => vec![Column::File],
            Source::Id => vec![Column::Id],
            Source::Integer(place) => vec![Column::Integer(place)],
            Source::IntegerOrText(place) => vec![Column::Integer(place), Column::Rest],
            Source::Operation => vec![Column::Name, Column::Cat],
            Source::Bytes => vec![RET, Column::Name, Column::Cat],
            Source::Args => arguments::all_columns(),
            Source::Extra => vec![Column::Extra],
        }
    }
}

/// Makes record batches of a certain form.
#[derive(Debug)]
pub(crate) struct Assembler {
    pub(crate) words: Arc<Vocabulary>,
    pub(crate) schema: SchemaRef,
    sources: Vec<Source>,
    /// Only rows that have a start and a duration.
    spans_only: bool,
}

impl Assembler {
    /// For the columns of a schema.
    pub(crate) fn new(words: Arc<Vocabulary>, schema: SchemaRef, spans_only: bool) -> Result<Assembler> {
        let source = |name: &String| {
            Source::of(name).ok_or_else(|| DataFusionError::Internal(format!("the column {name} has no source")))
        };
        let sources = schema.fields().iter().map(|field| source(field.name())).collect::<Result<_>>()?;
        Ok(Assembler { words, schema, sources, spans_only })
    }

    /// The columns of the index that it reads.
    pub(crate) fn needs(&self) -> Vec<Column> {
        let always = if self.spans_only { vec![Column::Ts, Column::Dur] } else { Vec::new() };
        self.sources.iter().flat_map(|source| source.needs()).chain(always).collect()
    }

    /// The rows of a batch.
    pub(crate) fn assemble(&self, batch: &Batch) -> Result<RecordBatch> {
        let columns = self.sources.iter().map(|source| self.column(*source, batch)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows()));
        if !self.spans_only {
            return Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?);
        }
        let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
        if ts.null_count() == 0 && dur.null_count() == 0 {
            return Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?);
        }
        // Nulls are allowed until the rows that have them are gone.
        let fields: Vec<_> =
            self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let loose = Arc::new(datafusion::arrow::datatypes::Schema::new(fields));
        let all = RecordBatch::try_new_with_options(loose, columns, &options)?;
        let keep = datafusion::arrow::compute::and(&is_not_null(ts)?, &is_not_null(dur)?)?;
        let kept = filter_record_batch(&all, &keep)?;
        let options = RecordBatchOptions::new().with_row_count(Some(kept.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), kept.columns().to_vec(), &options)?)
    }

    fn column(&self, source: Source, batch: &Batch) -> Result<ArrayRef> {
        let known = &self.words;
        Ok(match source {
            Source::Start => Arc::clone(batch.column(Column::Ts)),
            Source::Duration => Arc::clone(batch.column(Column::Dur)),
            Source::End => ends(batch),
            Source::Name => words(batch.ids(Column::Name).clone(), &known.names)?,
            Source::Cat => words(batch.ids(Column::Cat).clone(), &known.cats)?,
            Source::Phase => {
                let mut keys = [None; 256];
                for code in 0..=u8::MAX {
                    keys[usize::from(code)] = phase_key(code);
                }
                let keys = batch.phases().values().iter().map(|code| keys[usize::from(*code)]);
                words(keys.collect(), &known.phases)?
            }
            Source::Host => {
                let hosts = known.of_process(batch.ids(Column::Process), |process| known.host_of[process as usize]);
                words(UInt32Array::from(hosts), &known.hosts)?
            }
            Source::Pid => {
                let people = &known.dictionary.processes;
                integers(known.of_process(batch.ids(Column::Process), |process| Some(people[process as usize].pid)))
            }
            Source::Rank => {
                let people = &known.dictionary.processes;
                integers(known.of_process(batch.ids(Column::Process), |process| people[process as usize].rank))
            }
            Source::Process => {
                integers(known.of_process(batch.ids(Column::Process), |process| Some(i64::from(process))))
            }
            Source::Tid => Arc::clone(batch.column(Column::Tid)),
            Source::Id => Arc::clone(batch.column(Column::Id)),
            Source::Path => words(self.known_files(batch), known.paths()?)?,
            Source::Integer(place) => Arc::clone(batch.column(Column::Integer(place))),
            Source::IntegerOrText(place) => arguments::integer_or_text(batch, place),
            Source::Operation => {
                let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
                let ops = cats.iter().zip(names).map(|(cat, name)| op_key(known.classes.io_cat(*cat, *name)));
                words(UInt32Array::from_iter_values(ops), &known.ops)?
            }
            Source::Bytes => self.bytes(batch),
            Source::Args => Arc::new(arguments::objects(batch)),
            Source::Extra => {
                let mut texts = StringBuilder::new();
                for inside in batch.texts(Column::Extra) {
                    texts.append_option(
                        inside.filter(|inside| !inside.is_empty()).map(|inside| format!("{{{inside}}}")),
                    );
                }
                Arc::new(texts.finish())
            }
        })
    }

    /// Ids of files whose path is known.
    fn known_files(&self, batch: &Batch) -> UInt32Array {
        let known = &self.words.dictionary.known;
        let files = batch.ids(Column::File);
        if self.words.all_known {
            return files.clone();
        }
        files.iter().map(|file| file.filter(|file| known.get(*file as usize).copied().unwrap_or(false))).collect()
    }

    fn bytes(&self, batch: &Batch) -> ArrayRef {
        let ret = batch.ints(RET);
        let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
        let moved = (0..batch.rows()).map(|row| {
            let moves = self.words.classes.size_kind(cats[row], names[row]) == SizeKind::Returned;
            (moves && ret.is_valid(row)).then(|| ret.value(row)).filter(|bytes| *bytes > 0)
        });
        Arc::new(moved.collect::<Int64Array>())
    }
}

/// The place of `ret` among the integers.
pub(crate) const RET: Column = Column::Integer(2);
const _: () = assert!(matches!(INTEGERS[2].as_bytes(), b"ret"));

fn ends(batch: &Batch) -> ArrayRef {
    let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
    let ends = ts.iter().zip(dur).map(|(ts, dur)| Some(ts?.saturating_add(dur?.max(0))));
    Arc::new(ends.collect::<Int64Array>())
}
