//! Writes a part. Row groups are encoded by the threads that made them and appended in order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use arrow_array::Array as _;
use weftline_format::files;

use super::directory::{Chunk, PageEntry, encode};
use super::page::{Encoder, PAGE_ROWS};
use super::{Columns, GroupMeta, MOST_ROWS, Meta, rows_path, seal, strings, strings_path};
use crate::column::Column;
use crate::pipeline::{Sink, Tables};
use crate::rows::Late;
use crate::{IndexError, Result};

/// A part that is being written.
pub(crate) struct PartWriter {
    path: PathBuf,
    appender: Mutex<Appender>,
}

struct Appender {
    file: File,
    /// Bytes that are written.
    size: u64,
    next: usize,
    /// Groups that are encoded and whose turn has not come.
    waiting: BTreeMap<usize, Encoded>,
    metas: Vec<GroupMeta>,
    chunks: Vec<Vec<Chunk>>,
    /// Memory of groups that are written.
    spare: Vec<Vec<u8>>,
}

struct Encoded {
    bytes: Vec<u8>,
    /// Their offsets count from the first byte of the group.
    chunks: Vec<Chunk>,
    meta: GroupMeta,
}

impl Appender {
    fn append(&mut self, group: usize, encoded: Encoded) -> std::io::Result<()> {
        self.waiting.insert(group, encoded);
        while let Some(Encoded { mut bytes, mut chunks, meta }) = self.waiting.remove(&self.next) {
            self.file.write_all(&bytes)?;
            chunks.iter_mut().for_each(|chunk| chunk.offset += self.size);
            self.size += bytes.len() as u64;
            self.next += 1;
            self.chunks.push(chunks);
            self.metas.push(meta);
            bytes.clear();
            self.spare.push(bytes);
        }
        Ok(())
    }
}

impl PartWriter {
    pub(crate) fn create(directory: &Path, name: &str) -> Result<PartWriter> {
        let path = rows_path(directory, name);
        let file = files::create(&path).map_err(IndexError::io(&path))?;
        let appender = Appender {
            file,
            size: 0,
            next: 0,
            waiting: BTreeMap::new(),
            metas: Vec::new(),
            chunks: Vec::new(),
            spare: Vec::new(),
        };
        Ok(PartWriter { path, appender: Mutex::new(appender) })
    }

    /// Writes the end of the file, and the strings. How many rows there are, and how large both files.
    pub(crate) fn finish(self, directory: &Path, name: &str, tables: &Tables, late: &[Late]) -> Result<(u64, u64)> {
        let Appender { mut file, size, mut metas, chunks, .. } =
            self.appender.into_inner().unwrap_or_else(PoisonError::into_inner);
        late.iter().for_each(|late| metas[late.at.group].add_late(late));
        let rows = metas.iter().map(|meta| meta.rows).sum();
        let meta = Meta { groups: metas, processes: tables.processes.clone() };
        let end = encode(&meta, &chunks);
        let written = file.write_all(&end).and_then(|()| file.write_all(&seal::seal(&end)));
        written.and_then(|()| file.sync_data()).map_err(IndexError::io(&self.path))?;
        let strings = strings_path(directory, name);
        let more = strings::write(&strings, tables).map_err(IndexError::io(&strings))?;
        Ok((rows, size + end.len() as u64 + more))
    }
}

impl Sink for PartWriter {
    type State = Option<Encoder>;

    fn begin(&self) -> Option<Encoder> {
        Encoder::new().ok()
    }

    fn take(&self, state: &mut Self::State, group: usize, columns: Columns, meta: GroupMeta) -> Result<Columns> {
        let wrap = || IndexError::io(&self.path);
        // Readers would reject it. The run is read without an index.
        if meta.rows > MOST_ROWS {
            return Err(wrap()(std::io::Error::other(format!("a row group of {} events", meta.rows))));
        }
        let encoder = match state {
            Some(encoder) => encoder,
            None => state.insert(Encoder::new().map_err(wrap())?),
        };
        let appender = || self.appender.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = appender().spare.pop().unwrap_or_default();
        let chunks = Column::all().zip(&columns).map(|(column, array)| {
            let mut chunk = Chunk { offset: bytes.len() as u64, pages: Vec::new() };
            if array.null_count() < array.len() {
                for first in (0..array.len()).step_by(PAGE_ROWS) {
                    let start = bytes.len();
                    encoder.page(column, array, first, PAGE_ROWS.min(array.len() - first), &mut bytes);
                    let page = &bytes[start..];
                    chunk.pages.push(PageEntry { len: page.len() as u32, sum: seal::sum(page) });
                }
            }
            chunk
        });
        let chunks = chunks.collect();
        appender().append(group, Encoded { bytes, chunks, meta }).map_err(wrap())?;
        Ok(columns)
    }
}
