//! Cuts trace files into tasks for threads.
//!
//! Several small files make one task. A large file of ours is cut into tasks of consecutive members, still compressed; so are
//! foreign files with many members (`members`). Other large files are cut into pieces of text at line ends, which one thread
//! inflates while others parse. A file with events over several lines cannot be cut: it is one task, however large.

mod members;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use weftline_format::damage::{Damage, Place};
use weftline_format::dialect::{Dialect, Reading};
use weftline_format::files;
use weftline_format::source::{Block, OpenFile, Packed, Source, hole_in};

use crate::rows::GROUP_ROWS;
use crate::{IndexError, Result};

/// Files up to this size are read by the thread that parses them.
const SMALL_FILE: u64 = 4 << 20;
/// Bytes of small files that make a task, and how many files at most.
const TASK_BYTES: u64 = 4 << 20;
const TASK_FILES: usize = 2048;
/// Text of a large foreign file that makes a task where it becomes a row group: about 150,000 events, and bounded memory.
const TASK_TEXT: usize = 32 << 20;
/// The same where the rows are only looked at: it is still in the cache that processors share when another one reads it.
const TASK_TEXT_STREAMED: usize = 4 << 20;

/// An event that is longer is taken for damage: something opened a bracket and never closed it.
pub(crate) const MAX_CARRY: usize = 64 << 20;

/// A trace file to be read.
#[derive(Debug, Clone)]
pub(crate) struct TraceFile {
    pub path: PathBuf,
    pub size: u64,
    /// Where to begin: behind what is known already.
    pub from: u64,
}

/// What a task is to parse.
pub(crate) enum Work {
    /// Whole files, by their numbers.
    Files(Vec<usize>),
    /// Members of one file.
    Members { file: usize, members: Vec<Packed> },
    /// Foreign members of one file from a place on. `last`: they are the last ones.
    Gzip { file: usize, reading: Reading, at: u64, bytes: Vec<u8>, last: bool },
    /// Everything of one file from a place on.
    Rest { file: usize, from: u64 },
    /// Text of one file.
    Text { file: usize, reading: Reading, pieces: Vec<(Vec<u8>, Place)> },
}

/// What the cutter itself learned of a large file.
pub(crate) struct FileNote {
    pub file: usize,
    pub dialect: Dialect,
    pub damage: Damage,
    /// Why it could not be read to its end.
    pub unreadable: Option<String>,
}

/// Memory of texts that are done with. Fresh memory for every text costs as much system time as inflating into it takes.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    /// A buffer for text; none if no buffer was returned yet.
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Gives the room of a text back.
    pub(crate) fn give(&self, mut text: Vec<u8>) {
        // One that grew with a very long line is not kept for all others.
        if text.capacity() <= TASK_TEXT {
            text.clear();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }
}

/// Opens a file from a place on.
pub(crate) fn open(file: &TraceFile) -> Result<OpenFile> {
    open_path(&file.path)
}

fn open_path(path: &Path) -> Result<OpenFile> {
    let file = files::open(path).map_err(IndexError::io(path))?;
    OpenFile::new(file).map_err(IndexError::io(path))
}

/// Yields the tasks of all files in order. `stored`: they become row groups of an index. `give` returns false if no more are wanted.
pub(crate) fn cut(
    files: &[TraceFile],
    spare: &Spare,
    stored: bool,
    give: &mut impl FnMut(Work, u64) -> bool,
    note: &mut impl FnMut(FileNote),
) -> Result<()> {
    let task_text = if stored { TASK_TEXT } else { TASK_TEXT_STREAMED };
    let (mut small, mut bytes) = (Vec::new(), 0);
    for (number, file) in files.iter().enumerate() {
        if file.size > SMALL_FILE && file.from == 0 {
            if !small.is_empty() && !give(Work::Files(std::mem::take(&mut small)), std::mem::take(&mut bytes)) {
                return Ok(());
            }
            match cut_file(number, file, spare, task_text, give, note) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(IndexError::Io { source, .. }) => {
                    let unreadable = Some(source.to_string());
                    note(FileNote { file: number, dialect: Dialect::default(), damage: Damage::default(), unreadable });
                }
                Err(error) => return Err(error),
            }
            continue;
        }
        small.push(number);
        bytes += file.size;
        let full = bytes >= TASK_BYTES || small.len() >= TASK_FILES;
        if full && !give(Work::Files(std::mem::take(&mut small)), std::mem::take(&mut bytes)) {
            return Ok(());
        }
    }
    if !small.is_empty() {
        give(Work::Files(small), bytes);
    }
    Ok(())
}

fn cut_file(
    number: usize,
    file: &TraceFile,
    spare: &Spare,
    task_text: usize,
    give: &mut impl FnMut(Work, u64) -> bool,
    note: &mut impl FnMut(FileNote),
) -> Result<bool> {
    let wrap = || IndexError::io(&file.path);
    let input = open(file)?;
    let mut source = Source::new(&input).map_err(wrap())?;
    let reading = source.reading().map_err(wrap())?;
    if reading.dialect != Dialect::Weftline
        && source.is_gzip()
        && lines_at_start(&mut source).map_err(wrap())?
        && let Some(given) = members::cut(number, file, &input, reading, give)?
    {
        note(FileNote { file: number, dialect: reading.dialect, damage: hole_in(&input), unreadable: None });
        return Ok(given);
    }
    let mut source = Source::new(&input).map_err(wrap())?;
    source.reading().map_err(wrap())?;
    let mut cutter =
        Cutter { number, reading, task_text, members: Vec::new(), events: 0, packed: 0, pieces: Vec::new(), text: 0 };
    let (mut carry, mut first, mut dialect) = (Vec::new(), true, reading.dialect);
    // Progress counts bytes of the file; of inflated text only an estimate is known, so the rest comes at the end.
    let (mut reported, mut unreadable) = (0, None);
    loop {
        let block = match source.next_block(std::mem::take(&mut carry)) {
            Ok(Some(block)) => block,
            Ok(None) => break,
            // What was read before it is good.
            Err(error) => {
                unreadable = Some(error.to_string());
                break;
            }
        };
        let given = match block {
            Block::Members(members) => {
                dialect = Dialect::Weftline;
                cutter.add_members(members, give, &mut reported)
            }
            Block::Text { mut bytes, place, last } => {
                if std::mem::take(&mut first) && !is_lines(&bytes) {
                    return Ok(give(Work::Files(vec![number]), file.size));
                }
                if !last {
                    // A line longer than a block: more of it must come first, unless it is no event anyway.
                    let end = memchr::memrchr(b'\n', &bytes).map(|end| end + 1);
                    let Some(end) = end.or((bytes.len() > MAX_CARRY).then_some(bytes.len())) else {
                        carry = bytes;
                        continue;
                    };
                    carry = spare.take();
                    carry.extend_from_slice(&bytes[end..]);
                    bytes.truncate(end);
                }
                cutter.add_text(bytes, place, give)
            }
        };
        if !given {
            return Ok(false);
        }
    }
    note(FileNote { file: number, dialect, damage: source.damage, unreadable });
    Ok(cutter.finish(file.size.saturating_sub(reported), give))
}

/// Gathers blocks of a file until they make a task.
struct Cutter {
    number: usize,
    reading: Reading,
    task_text: usize,
    members: Vec<Packed>,
    events: usize,
    packed: u64,
    pieces: Vec<(Vec<u8>, Place)>,
    text: usize,
}

impl Cutter {
    fn add_members(
        &mut self,
        members: Vec<Packed>,
        give: &mut impl FnMut(Work, u64) -> bool,
        reported: &mut u64,
    ) -> bool {
        if !self.give_text(0, give) {
            return false;
        }
        for member in members {
            let events = member.header.count as usize;
            if self.events > 0 && self.events + events > GROUP_ROWS && !self.give_members(give, reported) {
                return false;
            }
            self.events += events.max(1);
            self.packed += member.bytes.len() as u64;
            self.members.push(member);
        }
        true
    }

    fn add_text(&mut self, bytes: Vec<u8>, place: Place, give: &mut impl FnMut(Work, u64) -> bool) -> bool {
        let mut reported = 0;
        if !self.give_members(give, &mut reported) {
            return false;
        }
        self.text += bytes.len();
        self.pieces.push((bytes, place));
        self.text < self.task_text || self.give_text(0, give)
    }

    fn give_members(&mut self, give: &mut impl FnMut(Work, u64) -> bool, reported: &mut u64) -> bool {
        if self.members.is_empty() {
            return true;
        }
        let packed = std::mem::take(&mut self.packed);
        *reported += packed;
        self.events = 0;
        give(Work::Members { file: self.number, members: std::mem::take(&mut self.members) }, packed)
    }

    fn give_text(&mut self, bytes: u64, give: &mut impl FnMut(Work, u64) -> bool) -> bool {
        if self.pieces.is_empty() {
            return true;
        }
        self.text = 0;
        give(Work::Text { file: self.number, reading: self.reading, pieces: std::mem::take(&mut self.pieces) }, bytes)
    }

    fn finish(mut self, left: u64, give: &mut impl FnMut(Work, u64) -> bool) -> bool {
        let mut reported = 0;
        self.give_members(give, &mut reported) && self.give_text(left.saturating_sub(reported), give)
    }
}

/// Whether the text of a compressed file begins with events that stand one to a line.
fn lines_at_start(source: &mut Source<'_, OpenFile>) -> std::io::Result<bool> {
    Ok(match source.next_block(Vec::new())? {
        Some(Block::Text { bytes, .. }) => is_lines(&bytes),
        _ => false,
    })
}

/// Lines at the start of a text that are looked at.
const LOOKED_AT: usize = 64;

/// Whether events stand one to a line: brackets and commas may be around them. Where no whole line is an event, all may stand in a single one.
fn is_lines(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    // The last one may go on in the next block.
    let whole: Vec<&[u8]> = lines.by_ref().take(LOOKED_AT).map(<[u8]>::trim_ascii).collect();
    let cut = usize::from(whole.len() < LOOKED_AT);
    let mut events = 0;
    let all = whole[..whole.len() - cut].iter().all(|line| {
        let line = line.strip_suffix(b",").unwrap_or(line);
        let line = line.strip_prefix(b"[").unwrap_or(line);
        let is_event = line.starts_with(b"{") && line.ends_with(b"}");
        events += usize::from(is_event);
        is_event || matches!(line, b"" | b"]")
    });
    all && events > 0
}
