//! Reads a part.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt32Type;
use arrow_array::{Array as _, ArrayRef};
use weftline_format::files;

use super::directory::{self, Chunk};
use super::page::{Decoder, PAGE_ROWS, nothing};
use super::{Columns, Meta, bounds, rows_path, seal, strings, strings_path};
use crate::column::Column;
use crate::pipeline::Tables;
use crate::{IndexError, Result};

/// A part that can be read from several threads. Its file stays open: another builder may replace the index meanwhile.
pub(crate) struct Part {
    directory: PathBuf,
    name: String,
    path: PathBuf,
    file: File,
    pub meta: Meta,
    chunks: Vec<Vec<Chunk>>,
    /// How many names, categories, processes and hashes there are: no id is larger.
    known: [usize; 4],
}

/// What one thread needs to read pages.
pub(crate) struct Room {
    bytes: Vec<u8>,
    decoder: Decoder,
}

impl Room {
    pub(crate) fn new() -> Result<Room> {
        let decoder = Decoder::new().map_err(IndexError::io(Path::new("zstd")))?;
        Ok(Room { bytes: Vec::new(), decoder })
    }
}

impl Part {
    /// Opens a part that is said to have so many rows; also its strings, and what hashes mean.
    pub(crate) fn open(directory: &Path, name: &str, rows: u64) -> Result<(Part, Tables)> {
        let path = rows_path(directory, name);
        let file = files::open(&path).map_err(IndexError::io(&path))?;
        let (end, from) = seal::sealed(&file).map_err(of_index(&path))?;
        let decoded = directory::decode(&end, from);
        let damaged = |why| IndexError::Damaged { path: path.clone(), why };
        let (meta, chunks) = decoded.map_err(damaged)?;
        if meta.groups.iter().map(|group| group.rows).sum::<u64>() != rows {
            return Err(damaged("its rows differ from the catalog".to_owned()));
        }
        let (directory, name) = (directory.to_owned(), name.to_owned());
        let mut part = Part { directory, name, path: path.clone(), file, meta, chunks, known: [0; 4] };
        let mut tables = part.strings()?;
        tables.processes.clone_from(&part.meta.processes);
        bounds::check_ids(&part.meta, &tables).map_err(damaged)?;
        part.known = [tables.names.len(), tables.cats.len(), tables.processes.len(), tables.files.len()];
        Ok((part, tables))
    }

    /// The strings, and what hashes mean.
    pub(crate) fn strings(&self) -> Result<Tables> {
        let path = strings_path(&self.directory, &self.name);
        strings::read(&path).map_err(of_index(&path))
    }

    /// The rows of neighbouring pages of a row group: the columns that were asked for.
    pub(crate) fn read(
        &self,
        group: usize,
        pages: Range<usize>,
        columns: &[Column],
        room: &mut Room,
    ) -> Result<Columns> {
        let rows = self.rows_of(group, &pages);
        let mut read = Vec::with_capacity(columns.len());
        for column in columns {
            let chunk = &self.chunks[group][column.place()];
            if chunk.pages.is_empty() {
                read.push(nothing(*column, rows.len()));
                continue;
            }
            self.fetch(chunk, pages.clone(), *column, &mut room.bytes)?;
            let mut at = 0;
            let bytes = &room.bytes;
            let each = pages.clone().map(|page| {
                let page_bytes = &bytes[at..at + chunk.pages[page].len as usize];
                at += page_bytes.len();
                (self.rows_of(group, &(page..page + 1)).len(), page_bytes)
            });
            let array = room.decoder.column(*column, each);
            let array = array.filter(|array| array.len() == rows.len() && self.knows(*column, array));
            read.push(array.ok_or_else(|| self.damaged(*column, "is invalid"))?);
        }
        Ok(read)
    }

    /// Whether ids are those of the tables: whoever reads them counts by them. A row without an id has 0 there.
    fn knows(&self, column: Column, array: &ArrayRef) -> bool {
        let known = match column {
            Column::Name => self.known[0],
            Column::Cat => self.known[1],
            Column::Process => self.known[2],
            Column::File | Column::SecondFile => self.known[3],
            _ => return true,
        };
        let ids = array.as_primitive::<UInt32Type>().values();
        (ids.iter().fold(0, |most, id| most.max(*id)) as usize) < known
    }

    /// Whether all that a question needs of a row group has the right sums. Who hands rows on as they come cannot take them back.
    pub(crate) fn check(&self, group: usize, pages: Range<usize>, columns: &[Column], room: &mut Room) -> Result<()> {
        let chunks = columns.iter().map(|column| (*column, &self.chunks[group][column.place()]));
        chunks
            .filter(|(_, chunk)| !chunk.pages.is_empty())
            .try_for_each(|(column, chunk)| self.fetch(chunk, pages.clone(), column, &mut room.bytes))
    }

    /// The pages of a row group.
    pub(crate) fn pages(&self, group: usize) -> Range<usize> {
        0..self.meta.groups[group].pages.len()
    }

    fn rows_of(&self, group: usize, pages: &Range<usize>) -> Range<usize> {
        let rows = self.meta.groups[group].rows as usize;
        (pages.start * PAGE_ROWS).min(rows)..(pages.end * PAGE_ROWS).min(rows)
    }

    /// Reads neighbouring pages of a column and compares their sums.
    fn fetch(&self, chunk: &Chunk, pages: Range<usize>, column: Column, bytes: &mut Vec<u8>) -> Result<()> {
        let len = |pages: &[directory::PageEntry]| pages.iter().map(|page| u64::from(page.len)).sum::<u64>();
        let (before, wanted) = (len(&chunk.pages[..pages.start]), len(&chunk.pages[pages.clone()]));
        // It stays as long as it ever was: to clear it for each column would cost as much as to sum it.
        bytes.resize(bytes.len().max(wanted as usize), 0);
        let bytes = &mut bytes[..wanted as usize];
        self.file.read_exact_at(bytes, chunk.offset + before).map_err(of_index(&self.path))?;
        let mut rest = &bytes[..];
        for page in &chunk.pages[pages] {
            let (this, more) = rest.split_at(page.len as usize);
            if seal::sum(this) != page.sum {
                return Err(self.damaged(column, "has a wrong checksum"));
            }
            rest = more;
        }
        Ok(())
    }

    fn damaged(&self, column: Column, why: &str) -> IndexError {
        IndexError::Damaged { path: self.path.clone(), why: format!("a page of {} {why}", column.name()) }
    }
}

/// An index that is shorter than it says, or does not say what it should, is damaged; anything else is an error of the system.
fn of_index(path: &Path) -> impl FnOnce(io::Error) -> IndexError {
    move |source| match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            IndexError::Damaged { path: path.to_owned(), why: source.to_string() }
        }
        _ => IndexError::Io { path: path.to_owned(), source },
    }
}
