//! Facts about each image that ended, one JSON line per image in `<live>/journal`.
//!
//! The supervisor, or recovery after a kill, makes the manifest from these lines. A line is appended after the
//! image's last member is in its file and before its process slot is freed; if it is written twice, the later one counts.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weftline_format::files;
use weftline_format::manifest::{CallTotal, FileTotal, ProcessRecord, SpanTotal};

use crate::Result;
use crate::error::DrainError;
use crate::stop::{self, Stop};
use crate::totals::Reaped;

/// Bytes of a line at most.
const LINE_MAX: u64 = 64 << 20;

/// One image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Entry {
    /// The image's tag; for a process that could not be traced, a name made from its pid.
    pub tag: String,
    pub process: ProcessRecord,
    pub calls: Vec<CallTotal>,
    pub files: Vec<FileTotal>,
    pub spans: Vec<SpanTotal>,
    pub reaped: Vec<Reaped>,
    pub filtered: u64,
}

/// The open journal.
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    pub(crate) fn open(path: &Path) -> Result<Journal> {
        let fail = |error| DrainError::io(path, error);
        let mut file = files::append(path).map_err(fail)?;
        let length = files::data_length(&file).map_err(fail)?;
        if file.metadata().map_err(fail)?.len() > length {
            // Nothing was ever written behind it.
            file.set_len(length).map_err(fail)?;
        }
        end_last_line(&mut file).map_err(fail)?;
        Ok(Journal { file, path: path.to_owned() })
    }

    pub(crate) fn append(&mut self, entry: &Entry) -> Result<()> {
        let fail = |error| DrainError::io(&self.path, error);
        let mut line = serde_json::to_vec(entry).map_err(|error| fail(error.into()))?;
        line.push(b'\n');
        if stop::reached(Stop::HalfJournaled).is_err() {
            self.file.write_all(&line[..line.len() / 2]).map_err(fail)?;
            return Err(DrainError::Stopped);
        }
        self.file.write_all(&line).map_err(fail)
    }
}

/// A line that was cut short must not swallow the next one.
fn end_last_line(file: &mut File) -> io::Result<()> {
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}

/// All entries, the latest of each image, in the order of their first lines. Lines that were cut are passed over.
pub(crate) fn read(path: &Path) -> Result<Vec<Entry>> {
    let file = match files::open_in_place(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DrainError::io(path, error)),
    };
    let mut entries: Vec<Entry> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let length = files::data_length(&file).map_err(|error| DrainError::io(path, error))?;
    let (mut text, mut line) = (BufReader::new(file).take(length), Vec::new());
    loop {
        line.clear();
        // No image needs a longer line, and a file without line ends can be as long as a disk.
        let read = text.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        if read.map_err(|error| DrainError::io(path, error))? == 0 {
            break;
        }
        let Ok(mut entry) = serde_json::from_slice::<Entry>(&line) else { continue };
        // A file of the run has a name, not a path: nothing elsewhere is looked at because a journal says so.
        if entry.process.file.contains('/') || [".", ".."].contains(&&*entry.process.file) {
            entry.process.file.clear();
        }
        match places.get(&entry.tag) {
            Some(place) => entries[*place] = entry,
            None => {
                places.insert(entry.tag.clone(), entries.len());
                entries.push(entry);
            }
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(tag: &str, events: u64) -> Entry {
        Entry { tag: tag.to_owned(), process: ProcessRecord { events, ..Default::default() }, ..Default::default() }
    }

    #[test]
    fn later_lines_count_and_cut_lines_do_not() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("journal");
        assert_eq!(read(&path).expect("no journal is an empty one"), []);
        let mut journal = Journal::open(&path).expect("opened");
        journal.append(&entry("a", 1)).expect("written");
        journal.append(&entry("b", 2)).expect("written");
        stop::set(Some((Stop::HalfJournaled, 1)));
        journal.append(&entry("a", 9)).expect_err("stopped");
        let mut journal = Journal::open(&path).expect("opened again");
        journal.append(&entry("a", 3)).expect("written");
        assert_eq!(read(&path).expect("read"), [entry("a", 3), entry("b", 2)]);
    }
}
