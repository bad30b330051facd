//! Results as a table, CSV, JSON, Parquet, Arrow.
//!
//! Batches are written as they come, so that a large result is never complete in memory. Dictionary-encoded strings become plain text: their dictionaries are those of the
//! whole run, which a result of a few rows should not carry.

mod columnar;
mod table;
mod text;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use datafusion::arrow::array::AsArray as _;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::prelude::DataFrame;
use futures::StreamExt as _;

use crate::args::Format;

/// Something that writes batches of one schema.
trait Sink: Send {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()>;
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

type Target = Box<dyn Write + Send>;

/// Where a result goes. A file that could not be finished is removed.
struct Place {
    path: Option<PathBuf>,
    finished: bool,
}

impl Place {
    fn open(path: Option<&Path>) -> anyhow::Result<(Place, Target)> {
        let place = Place { path: path.map(Path::to_owned), finished: false };
        let target: Target = match path {
            Some(path) => {
                let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
                Box::new(BufWriter::new(file))
            }
            None => Box::new(BufWriter::new(std::io::stdout())),
        };
        Ok((place, target))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let (Some(path), false) = (&self.path, self.finished)
            && path.is_file()
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes a result.
pub(crate) async fn write(result: DataFrame, format: Format, path: Option<&Path>) -> anyhow::Result<()> {
    let mut batches = result.execute_stream().await?;
    let schema = plain_schema(&batches.schema());
    if schema.fields().is_empty() {
        bail!("the query selects no columns");
    }
    // The first batch shows whether the query works at all: only then is a file replaced.
    let mut next = batches.next().await.transpose()?;
    let (mut place, target) = Place::open(path)?;
    let mut sink: Box<dyn Sink> = match format {
        Format::Table => Box::new(table::Table::new(target, &schema)),
        Format::Csv => Box::new(text::Csv::new(target, &schema)?),
        Format::Json => Box::new(text::Json::new(target, &schema)?),
        Format::Parquet => Box::new(columnar::parquet(target, &schema)?),
        Format::Arrow => Box::new(columnar::arrow(target, &schema)?),
    };
    while let Some(batch) = next {
        sink.write(&plain(&batch, &schema)?)?;
        next = batches.next().await.transpose()?;
    }
    sink.finish()?;
    place.finished = true;
    Ok(())
}

/// Writes a plan: its text, not a table with one wide cell.
pub(crate) async fn plan(result: DataFrame, path: Option<&Path>) -> anyhow::Result<()> {
    let batches = result.collect().await?;
    let (mut place, mut target) = Place::open(path)?;
    for batch in &batches {
        let schema = plain_schema(&batch.schema());
        let batch = plain(batch, &schema)?;
        let (kinds, plans) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        for row in 0..batch.num_rows() {
            writeln!(target, "{}\n{}", kinds.value(row), plans.value(row).trim_end())?;
        }
    }
    target.flush()?;
    place.finished = true;
    Ok(())
}

/// The type without dictionaries and views.
fn plain_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}

fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &Arc<Field>| Field::new(field.name(), plain_type(field.data_type()), field.is_nullable());
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn plain(batch: &RecordBatch, schema: &SchemaRef) -> anyhow::Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
