//! Samples as rows, one per value, with unit and kind: for Python, which reads them batch by batch.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int32Builder, Int64Builder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use rustc_hash::FxHashMap;
use weftline_format::Phase;
use weftline_format::metrics::{Group, HOST_CATEGORIES, PROCESS_CATEGORY, group};
use weftline_format::quick::numbers;
use weftline_index::column::phase_code;
use weftline_index::schema::ColumnKind;
use weftline_index::{Batch, Column, Dictionary, Filter};

use crate::Result;
use crate::events::{Words, arrow_type, words};
use crate::group::scan::number;
use crate::program;
use crate::records::text;

/// The columns: name, type, whether a row may have none.
pub const COLUMNS: [(&str, ColumnKind, bool); 12] = [
    ("time_ns", ColumnKind::Integer, false),
    ("dur_ns", ColumnKind::Integer, true),
    ("host", ColumnKind::Word, true),
    ("process", ColumnKind::Integer, false),
    ("pid", ColumnKind::Integer, false),
    ("program", ColumnKind::Word, true),
    ("category", ColumnKind::Word, false),
    ("name", ColumnKind::Word, false),
    ("metric", ColumnKind::Word, false),
    ("value", ColumnKind::Real, false),
    ("unit", ColumnKind::Word, true),
    ("type", ColumnKind::Word, true),
];

/// Makes rows of samples.
#[derive(Debug)]
pub struct SampleRows {
    words: Words,
    programs: Arc<StringArray>,
    /// By process: its program; nothing for hosts.
    program_of: Vec<Option<i32>>,
    schema: SchemaRef,
}

/// Whether a category is one of samples.
fn is_sampled(category: &str) -> bool {
    let is = |known: &str| known.eq_ignore_ascii_case(category);
    HOST_CATEGORIES.into_iter().any(is) || is(PROCESS_CATEGORY)
}

impl SampleRows {
    /// Of a run whose dictionary is known.
    pub fn new(dictionary: Arc<Dictionary>) -> Result<SampleRows> {
        let mut programs = weftline_index::dictionary::Strings::default();
        let mut program_of = Vec::with_capacity(dictionary.processes.len());
        for process in &dictionary.processes {
            let label = program::label(&process.command, &process.exe, &process.name);
            program_of.push((process.pid != 0 && !label.is_empty()).then(|| programs.intern(&label) as i32));
        }
        let fields = COLUMNS.map(|(name, kind, nullable)| Field::new(name, arrow_type(kind), nullable));
        Ok(SampleRows {
            words: Words::new(dictionary)?,
            programs: Arc::new(programs.iter().map(Some).collect()),
            program_of,
            schema: Arc::new(Schema::new(fields.to_vec())),
        })
    }

    /// The columns of a batch.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The columns of the index that it reads.
    pub fn needs() -> Vec<Column> {
        vec![Column::Ts, Column::Dur, Column::Cat, Column::Name, Column::Process, Column::Rest]
    }

    /// Which events are samples, among those of a filter.
    pub fn filter(filter: Filter) -> Filter {
        let mut filter = filter.with_phases(&[phase_code(Phase::Counter)]);
        let before = filter.cats.take();
        filter.cats = Some(Arc::new(move |category| {
            is_sampled(category) && before.as_ref().is_none_or(|before| before(category))
        }));
        filter
    }

    /// One row per number of a sample that has a time.
    pub fn assemble(&self, batch: &Batch) -> std::result::Result<RecordBatch, ArrowError> {
        let dictionary = &self.words.dictionary;
        let (cats, counters) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
        let processes = batch.ids(Column::Process).values();
        let mut groups: FxHashMap<(u32, u32), Option<&'static Group>> = FxHashMap::default();
        let (mut times, mut lengths) = (Int64Builder::new(), Int64Builder::new());
        let (mut ids, mut pids, mut values) = (Int64Builder::new(), Int64Builder::new(), Float64Builder::new());
        let (mut hosts, mut programs) = (Int32Builder::new(), Int32Builder::new());
        let (mut categories, mut names) = (Int32Builder::new(), Int32Builder::new());
        let mut metrics = StringDictionaryBuilder::<Int32Type>::new();
        let mut units = StringDictionaryBuilder::<Int32Type>::new();
        let mut types = StringDictionaryBuilder::<Int32Type>::new();
        for row in 0..batch.rows() {
            let Some(start) = number(batch.ints(Column::Ts), row) else { continue };
            let length = number(batch.ints(Column::Dur), row);
            let (cat, counter, process) = (cats[row], counters[row], processes[row]);
            let group =
                *groups.entry((cat, counter)).or_insert_with(|| group(dictionary.cat(cat), dictionary.name(counter)));
            for (key, value) in numbers(text(batch, Column::Rest, row)) {
                times.append_value(start.saturating_add(length.unwrap_or(0).max(0)));
                lengths.append_option(length);
                hosts.append_option(self.words.host_of[process as usize]);
                ids.append_value(process.into());
                pids.append_value(dictionary.process(process).pid);
                programs.append_option(self.program_of[process as usize]);
                categories.append_value(cat as i32);
                names.append_value(counter as i32);
                metrics.append(key)?;
                values.append_value(value);
                let metric = group.and_then(|group| group.metric(key, length.is_some()));
                units.append_option(metric.map(|metric| metric.unit.name()));
                types.append_option(metric.map(|metric| metric.measure.name()));
            }
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times.finish()),
            Arc::new(lengths.finish()),
            words(hosts.finish(), &self.words.hosts)?,
            Arc::new(ids.finish()),
            Arc::new(pids.finish()),
            words(programs.finish(), &self.programs)?,
            words(categories.finish(), &self.words.cats)?,
            words(names.finish(), &self.words.names)?,
            Arc::new(metrics.finish()),
            Arc::new(values.finish()),
            Arc::new(units.finish()),
            Arc::new(types.finish()),
        ];
        RecordBatch::try_new(self.schema(), columns)
    }
}
