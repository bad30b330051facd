//! Counters: an event with several values becomes one row per value.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, Float64Builder, StringBuilder, StringDictionaryBuilder, UInt32Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Int32Type, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use weftline_analysis::events::Assembler;
use weftline_format::Value;
use weftline_format::metrics::{Group, group};
use weftline_format::quick::fields;
use weftline_index::column::Column;
use weftline_index::scan::Batch;
use weftline_index::schema::Source;

use super::event_rows::assembler;
use super::vocabulary::Vocabulary;
use crate::schema::Table;

/// Makes rows of values.
#[derive(Debug)]
pub(crate) struct Values {
    pub(crate) schema: SchemaRef,
    /// The columns that all values of an event share.
    shared: Assembler,
    words: Arc<Vocabulary>,
    system: bool,
    /// Somebody asks what values measure.
    described: bool,
}

impl Values {
    /// For the columns of a schema.
    pub(crate) fn new(table: &Table, words: Arc<Vocabulary>, schema: SchemaRef, system: bool) -> Result<Values> {
        let of_event = |name: &str| table.columns.iter().any(|column| column.name == name && column.source.is_some());
        let fields = schema.fields().iter().filter(|field| of_event(field.name()));
        let shared = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        let described = schema.fields().iter().any(|field| matches!(field.name().as_str(), "unit" | "type"));
        Ok(Values { shared: assembler(table, &words, shared, false)?, schema, words, system, described })
    }

    /// The columns of the index that it reads.
    pub(crate) fn needs(&self) -> Vec<Column> {
        let mut columns = self.shared.needs();
        columns.extend(Source::Args.needs());
        columns.extend((self.system || self.described).then_some([Column::Name, Column::Cat]).into_iter().flatten());
        columns.extend(self.described.then_some(Column::Dur));
        columns
    }

    /// One row per value.
    pub(crate) fn assemble(&self, batch: &Batch) -> Result<RecordBatch> {
        let mut rows: Vec<u32> = Vec::new();
        let mut keys = StringDictionaryBuilder::<Int32Type>::new();
        let (mut numbers, mut texts) = (Float64Builder::new(), StringBuilder::new());
        let mut units = StringDictionaryBuilder::<Int32Type>::new();
        let mut types = StringDictionaryBuilder::<Int32Type>::new();
        let mut groups: HashMap<(u32, u32), Option<&'static Group>> = HashMap::new();
        let rest = batch.texts(Column::Rest);
        for row in 0..batch.rows() {
            let (group, timed) = if self.described {
                let (cat, name) = (batch.ids(Column::Cat).value(row), batch.ids(Column::Name).value(row));
                let dictionary = &self.words.dictionary;
                let find = || group(dictionary.cat(cat), dictionary.name(name));
                (*groups.entry((cat, name)).or_insert_with(find), batch.ints(Column::Dur).is_valid(row))
            } else {
                (None, false)
            };
            let mut add = |key: &str, value: &Value| -> Result<()> {
                rows.push(row as u32);
                keys.append(key)?;
                numbers.append_option(
                    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|n| !n.is_nan()),
                );
                texts.append_option(as_text(value));
                if self.described {
                    let metric = group.and_then(|group| group.metric(key, timed));
                    units.append_option(metric.map(|metric| metric.unit.name()));
                    types.append_option(metric.map(|metric| metric.measure.name()));
                }
                Ok(())
            };
            for argument in Column::arguments() {
                let column = batch.ints(argument);
                if column.is_valid(row) {
                    add(argument.name(), &Value::Int(column.value(row)))?;
                }
            }
            if rest.is_valid(row) {
                for (key, value) in fields(rest.value(row)) {
                    add(&key, &value)?;
                }
            }
        }
        let (count, rows) = (rows.len(), UInt32Array::from(rows));
        let shared = self.shared.assemble(batch)?;
        let (keys, numbers, texts): (ArrayRef, ArrayRef, ArrayRef) =
            (Arc::new(keys.finish()), Arc::new(numbers.finish()), Arc::new(texts.finish()));
        let (units, types): (ArrayRef, ArrayRef) = (Arc::new(units.finish()), Arc::new(types.finish()));
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            columns.push(match field.name().as_str() {
                "key" | "metric" => Arc::clone(&keys),
                "value" => Arc::clone(&numbers),
                "text" => Arc::clone(&texts),
                "unit" => Arc::clone(&units),
                "type" => Arc::clone(&types),
                "kind" => self.described(batch, &rows, |sample| &sample.0)?,
                "device" => self.described(batch, &rows, |sample| &sample.1)?,
                shared_name => {
                    let place = shared.schema().index_of(shared_name)?;
                    take(shared.column(place), &rows, None)?
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// What was sampled, by the names of the rows' events.
    fn described(
        &self,
        batch: &Batch,
        rows: &UInt32Array,
        part: impl Fn(&(String, String)) -> &str,
    ) -> Result<ArrayRef> {
        let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
        let dictionary = &self.words.dictionary;
        let mut seen: HashMap<(u32, u32), (String, String)> = HashMap::new();
        let mut column = StringDictionaryBuilder::<Int32Type>::new();
        for row in rows.values() {
            let (cat, name) = (cats[*row as usize], names[*row as usize]);
            let sample = seen.entry((cat, name)).or_insert_with(|| sampled(dictionary.cat(cat), dictionary.name(name)));
            column.append(part(sample))?;
        }
        Ok(Arc::new(column.finish()))
    }
}

/// Kind and device of a sample.
fn sampled(cat: &str, name: &str) -> (String, String) {
    let cat = cat.to_lowercase();
    let trimmed = name.trim();
    let (kind, device) = match cat.as_str() {
        "sys" if trimmed == "cpu" => ("cpu", trimmed),
        "sys" if trimmed == "memory" => ("memory", trimmed),
        "sys" => match trimmed.strip_prefix("cpu-") {
            Some(core) => ("core", core),
            None => ("sys", trimmed),
        },
        "io" => ("disk", trimmed),
        "net" => ("network", trimmed.strip_prefix("net-").unwrap_or(trimmed).trim()),
        other => (other, trimmed),
    };
    (kind.to_owned(), device.to_owned())
}

/// A value as text; nothing for null.
pub(crate) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Str(text) | Value::Json(text) => Some(text.clone()),
    }
}
