//! Writes a segment. Row groups are encoded by the threads that made them and appended in order.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt8Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use weftline_format::files;

use super::{Columns, GroupMeta, Meta, stored};
use crate::column::Column;
use crate::dictionary::Kind;
use crate::pipeline::{Sink, Tables};
use crate::rows::Late;
use crate::{IndexError, Result};

/// The key of [`Meta`] in the footer.
pub(super) const META_KEY: &str = "weft.segment";

/// A segment that is being written.
pub(crate) struct SegmentWriter {
    path: PathBuf,
    factory: ArrowRowGroupWriterFactory,
    appender: Mutex<Appender>,
}

struct Appender {
    writer: SerializedFileWriter<File>,
    next: usize,
    /// Groups that are encoded and whose turn has not come.
    waiting: BTreeMap<usize, (Vec<ArrowColumnChunk>, GroupMeta)>,
    metas: Vec<GroupMeta>,
}

fn zstd() -> Compression {
    // Level 1: levels 2 and 3 take 10 % more time for 2 % less space on traces.
    Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default())
}

fn properties() -> WriterProperties {
    // Statistics of our own (GroupMeta) say more than Parquet's, which would cost a pass over every column.
    let mut properties = WriterProperties::builder()
        .set_compression(zstd())
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_dictionary_page_size_limit(8 << 20)
        .set_max_row_group_row_count(None);
    for column in Column::all() {
        let path = ColumnPath::from(column.name());
        let delta = matches!(column, Column::Ts | Column::Dur | Column::Id) || column.name() == "offset";
        if delta {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

impl SegmentWriter {
    pub(crate) fn create(directory: &Path, name: &str) -> Result<SegmentWriter> {
        let path = rows_path(directory, name);
        let file = files::create(&path).map_err(IndexError::io(&path))?;
        let options = ArrowWriterOptions::new().with_properties(properties()).with_skip_arrow_metadata(true);
        let bad = IndexError::damaged(&path);
        let writer = ArrowWriter::try_new_with_options(file, stored::schema(), options).map_err(&bad)?;
        let (writer, factory) = writer.into_serialized_writer().map_err(&bad)?;
        drop(bad);
        let appender = Appender { writer, next: 0, waiting: BTreeMap::new(), metas: Vec::new() };
        Ok(SegmentWriter { path, factory, appender: Mutex::new(appender) })
    }

    /// Writes the end of the file, and the strings. How large both are.
    pub(crate) fn finish(self, directory: &Path, name: &str, tables: &Tables, late: &[Late]) -> Result<u64> {
        let bad = IndexError::damaged(&self.path);
        let Appender { mut writer, mut metas, .. } = self.appender.into_inner().unwrap_or_else(PoisonError::into_inner);
        for late in late {
            let meta = &mut metas[late.at.group];
            meta.late.push((late.at.row, late.dur));
            for range in [&mut meta.time, &mut meta.spans] {
                *range = range.map(|(start, end)| (start, end.max(late.end)));
            }
        }
        let meta = Meta { groups: metas, processes: tables.processes.clone() };
        let text = serde_json::to_string(&meta)
            .map_err(|error| IndexError::Damaged { path: self.path.clone(), why: error.to_string() })?;
        writer.append_key_value_metadata(KeyValue::new(META_KEY.to_owned(), text));
        writer.finish().map_err(&bad)?;
        let file = writer.inner();
        file.sync_data().map_err(IndexError::io(&self.path))?;
        let rows = file.metadata().map_err(IndexError::io(&self.path))?.len();
        Ok(rows + write_strings(&strings_path(directory, name), tables)?)
    }
}

impl Sink for SegmentWriter {
    type State = ();

    fn begin(&self) {}

    fn take(&self, (): &mut (), group: usize, columns: Columns, mut meta: GroupMeta) -> Result<Columns> {
        let stored = stored::pack(columns.clone(), &mut meta);
        let bad = IndexError::damaged(&self.path);
        let schema = stored::schema();
        let mut writers = self.factory.create_column_writers(group).map_err(&bad)?;
        let mut chunks = Vec::with_capacity(stored.len());
        for ((writer, field), column) in writers.drain(..).zip(schema.fields()).zip(stored) {
            let mut writer = writer;
            for leaf in compute_leaves(field, &column).map_err(&bad)? {
                writer.write(&leaf).map_err(&bad)?;
            }
            chunks.push(writer.close().map_err(&bad)?);
        }
        let mut appender = self.appender.lock().unwrap_or_else(PoisonError::into_inner);
        appender.waiting.insert(group, (chunks, meta));
        while let Some((chunks, meta)) = {
            let next = appender.next;
            appender.waiting.remove(&next)
        } {
            let Appender { writer, next, metas, .. } = &mut *appender;
            let mut row_group = writer.next_row_group().map_err(&bad)?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut row_group).map_err(&bad)?;
            }
            row_group.close().map_err(&bad)?;
            *next += 1;
            metas.push(meta);
        }
        Ok(columns)
    }
}

pub(super) fn rows_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.rows.parquet"))
}

pub(super) fn strings_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.strings.parquet"))
}

/// Which table a row of the strings file belongs to.
pub(super) mod table {
    pub(in crate::segment) const NAMES: u8 = 0;
    pub(in crate::segment) const CATS: u8 = 1;
    pub(in crate::segment) const HASHES: u8 = 2;
    /// From here on: definitions, by their kind.
    pub(in crate::segment) const DEFINED: u8 = 3;
}

pub(super) fn kinds() -> [Kind; 3] {
    [Kind::Path, Kind::Host, Kind::Text]
}

fn write_strings(path: &Path, tables: &Tables) -> Result<u64> {
    let (mut kind, mut text, mut meaning): (Vec<u8>, Vec<&str>, Vec<Option<&str>>) = Default::default();
    for (number, strings) in
        [(table::NAMES, &tables.names), (table::CATS, &tables.cats), (table::HASHES, &tables.hashes)]
    {
        for string in strings.iter() {
            kind.push(number);
            text.push(string);
            meaning.push(None);
        }
    }
    for (of, hash) in &tables.defined {
        kind.push(table::DEFINED + *of as u8);
        text.push(hash);
        meaning.push(tables.meaning(*of, hash));
    }
    let fields = vec![
        Field::new("table", DataType::UInt8, false),
        Field::new("text", DataType::Utf8, false),
        Field::new("meaning", DataType::Utf8, true),
    ];
    let schema = Arc::new(Schema::new(fields));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(UInt8Array::from(kind)), Arc::new(StringArray::from(text)), Arc::new(StringArray::from(meaning))];
    let damaged = |why: String| IndexError::Damaged { path: path.to_owned(), why };
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| damaged(error.to_string()))?;
    let file = files::create(path).map_err(IndexError::io(path))?;
    let properties = WriterProperties::builder()
        .set_compression(zstd())
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .build();
    let bad = IndexError::damaged(path);
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(&bad)?;
    writer.write(&batch).map_err(&bad)?;
    let file = writer.into_inner().map_err(&bad)?;
    file.sync_data().map_err(IndexError::io(path))?;
    Ok(file.metadata().map_err(IndexError::io(path))?.len())
}
