//! Parquet and Arrow.

use std::io::Write as _;

use arrow_ipc::writer::StreamWriter;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::{Sink, Target};

/// A Parquet file.
pub(super) fn parquet(target: Target, schema: &SchemaRef) -> anyhow::Result<impl Sink> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    Ok(Parquet(ArrowWriter::try_new(target, SchemaRef::clone(schema), Some(properties))?))
}

/// An Arrow IPC stream.
pub(super) fn arrow(target: Target, schema: &SchemaRef) -> anyhow::Result<impl Sink> {
    Ok(Arrow(StreamWriter::try_new(target, schema)?))
}

struct Parquet(ArrowWriter<Target>);

impl Sink for Parquet {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.0.write(batch)?)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.0.into_inner()?.flush()?)
    }
}

struct Arrow(StreamWriter<Target>);

impl Sink for Arrow {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.0.write(batch)?)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.0.into_inner()?.flush()?)
    }
}
