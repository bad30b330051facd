//! Reads a segment.

use std::path::{Path, PathBuf};

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt8Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use weftline_format::files;

use super::write::{META_KEY, kinds, rows_path, strings_path, table};
use super::{Columns, Meta, stored};
use crate::column::Column;
use crate::pipeline::Tables;
use crate::{IndexError, Result};

/// A segment that can be read from several threads.
pub(crate) struct Segment {
    directory: PathBuf,
    name: String,
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    pub meta: Meta,
}

impl Segment {
    pub(crate) fn open(directory: &Path, name: &str) -> Result<Segment> {
        let path = rows_path(directory, name);
        let file = files::open(&path).map_err(IndexError::io(&path))?;
        let options = ArrowReaderOptions::new().with_schema(stored::schema());
        let bad = IndexError::damaged(&path);
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(&bad)?;
        drop(bad);
        let pairs = metadata.metadata().file_metadata().key_value_metadata();
        let text = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == META_KEY)?.value.as_deref());
        let damaged = |why: String| IndexError::Damaged { path: path.clone(), why };
        let meta = serde_json::from_str(text.unwrap_or_default()).map_err(|error| damaged(error.to_string()))?;
        Ok(Segment { directory: directory.to_owned(), name: name.to_owned(), path, metadata, meta })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The batches of a row group: the columns that were asked for, which must be in the order of the file.
    pub(crate) fn read(&self, group: usize, columns: &[Column], rows: usize) -> Result<Batches<'_>> {
        // A duplicate would share its position with the other threads, whose reads would then land anywhere.
        let file = files::open(&self.path).map_err(IndexError::io(&self.path))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let mask = ProjectionMask::leaves(builder.parquet_schema(), columns.iter().map(|column| column.place()));
        let reader = builder.with_projection(mask).with_row_groups(vec![group]).with_batch_size(rows).build();
        let reader = reader.map_err(IndexError::damaged(&self.path))?;
        Ok(Batches { segment: self, group, columns: columns.to_vec(), reader })
    }
}

pub(crate) struct Batches<'s> {
    segment: &'s Segment,
    group: usize,
    columns: Vec<Column>,
    reader: ParquetRecordBatchReader,
}

impl Iterator for Batches<'_> {
    type Item = Result<Columns>;

    fn next(&mut self) -> Option<Self::Item> {
        let damaged = |error: arrow_schema::ArrowError| IndexError::Damaged {
            path: self.segment.path.clone(),
            why: error.to_string(),
        };
        let batch = match self.reader.next()?.map_err(damaged) {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        let meta = &self.segment.meta.groups[self.group];
        let columns = self.columns.iter().zip(batch.columns());
        Some(Ok(columns.map(|(column, array)| stored::unpack(*column, array, meta)).collect()))
    }
}

/// The strings of a segment, and what its hashes mean.
pub(crate) fn strings_of(directory: &Path, name: &str) -> Result<Tables> {
    let path = strings_path(directory, name);
    let file = files::open(&path).map_err(IndexError::io(&path))?;
    let bad = IndexError::damaged(&path);
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build()).map_err(&bad)?;
    let mut tables = Tables::default();
    for batch in reader {
        let damaged = |why: String| IndexError::Damaged { path: path.clone(), why };
        let batch = batch.map_err(|error| damaged(error.to_string()))?;
        let [kind, text, meaning] = batch.columns() else { return Err(damaged("unknown columns".to_owned())) };
        let kind = kind.as_primitive_opt::<UInt8Type>().ok_or_else(|| damaged("unknown tables".to_owned()))?;
        let (text, meaning) = (text.as_string::<i32>(), meaning.as_string::<i32>());
        for row in 0..batch.num_rows() {
            let string = text.value(row);
            match kind.value(row) {
                table::NAMES => drop(tables.names.intern(string)),
                table::CATS => drop(tables.cats.intern(string)),
                table::HASHES => drop(tables.hashes.intern(string)),
                defined => {
                    if let Some(kind) = kinds().get(usize::from(defined - table::DEFINED))
                        && meaning.is_valid(row)
                    {
                        tables.define(*kind, string.to_owned(), meaning.value(row).to_owned());
                    }
                }
            }
        }
    }
    Ok(tables)
}
