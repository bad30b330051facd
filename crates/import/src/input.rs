//! One file as a stream that knows its place: of bytes, or of lines with a bound.

use std::io::{self, BufRead, BufReader, Read};

use crate::{ImportError, Result};

/// Bytes of a file's beginning that detection sees.
pub const HEAD: usize = 64 << 10;
/// Longer lines are cut off, and told.
pub const LONGEST_LINE: usize = 8 << 20;

/// What detection sees of a file.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The file's name without its directory and without the ending of a packed file.
    pub name: &'a str,
    /// Its first bytes, unpacked.
    pub bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// The whole lines of the beginning, without their ends. A file of one line without an end has that line.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let whole = match memchr::memrchr(b'\n', self.bytes) {
            Some(last) => &self.bytes[..last],
            None => self.bytes,
        };
        whole.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// The beginning as text; bytes that are none are replaced.
    pub fn text(&self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }
}

/// One file.
pub struct Input<'a> {
    name: String,
    reader: BufReader<&'a mut dyn Read>,
    offset: u64,
    lines: u64,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Input").field("name", &self.name).field("offset", &self.offset).finish_non_exhaustive()
    }
}

/// A line of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Where it begins.
    pub offset: u64,
    /// Its number, from 1.
    pub number: u64,
    /// Whether it was longer than [`LONGEST_LINE`] and its end is missing.
    pub cut: bool,
    /// Whether the file ends within it.
    pub unfinished: bool,
}

impl<'a> Input<'a> {
    /// A stream of a name that errors and reports show.
    pub fn new(name: impl Into<String>, reader: &'a mut dyn Read) -> Input<'a> {
        Input { name: name.into(), reader: BufReader::with_capacity(256 << 10, reader), offset: 0, lines: 0 }
    }

    /// What errors and reports show: the path, and within an archive the path there behind a `!`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's own name.
    pub fn file_name(&self) -> &str {
        file_name(&self.name)
    }

    /// How many bytes were read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line without its end, into a buffer that is cleared first. None at the end.
    pub fn next_line(&mut self, line: &mut Vec<u8>) -> Result<Option<Line>> {
        line.clear();
        let mut about = Line { offset: self.offset, number: self.lines + 1, cut: false, unfinished: true };
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(ImportError::Io { name: self.name.clone(), source }),
            };
            if chunk.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = LONGEST_LINE - line.len();
            about.cut |= part.len() > room;
            line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            self.offset += used as u64;
            if end.is_some() {
                about.unfinished = false;
                break;
            }
        }
        if self.offset == about.offset {
            return Ok(None);
        }
        self.lines += 1;
        if !about.cut && line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(about))
    }

    /// Fills a buffer; an error where the file ends before.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        let at = self.offset;
        match self.take_some(buffer)? {
            read if read == buffer.len() => Ok(()),
            read => Err(self.invalid(at, format!("the file ends {} bytes too early", buffer.len() - read))),
        }
    }

    /// Reads up to the length of a buffer: less only at the end of the file.
    pub fn take_some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.reader.read(&mut buffer[done..]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ImportError::Io { name: self.name.clone(), source }),
            }
        }
        self.offset += done as u64;
        Ok(done)
    }

    /// Passes over bytes; an error where the file ends before.
    pub fn pass(&mut self, bytes: u64) -> Result<()> {
        let at = self.offset;
        let passed = io::copy(&mut (&mut self.reader).take(bytes), &mut io::sink())
            .map_err(|source| ImportError::Io { name: self.name.clone(), source })?;
        self.offset += passed;
        if passed < bytes {
            return Err(self.invalid(at, format!("the file ends {} bytes too early", bytes - passed)));
        }
        Ok(())
    }

    /// An error at a place of this file.
    pub fn invalid(&self, offset: u64, why: impl Into<String>) -> ImportError {
        ImportError::Invalid { name: self.name.clone(), offset, why: why.into() }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.offset += bytes as u64;
    }
}

/// The part of a name behind its last `/` or `!`, without the endings of packed files.
pub fn file_name(name: &str) -> &str {
    let mut name = name.rsplit(['/', '!']).next().unwrap_or(name);
    while let Some(bare) = [".gz", ".xz", ".zst", ".bz2"].iter().find_map(|end| name.strip_suffix(end)) {
        name = bare;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], expected: &[(&[u8], u64, bool)]) {
        let mut reader = text;
        let mut input = Input::new("a.tar!x/y.log.gz", &mut reader);
        assert_eq!(input.file_name(), "y.log");
        let (mut line, mut found) = (Vec::new(), Vec::new());
        while let Some(about) = input.next_line(&mut line).expect("memory") {
            found.push((line.clone(), about.offset, about.unfinished));
        }
        let expected: Vec<_> = expected.iter().map(|(line, at, open)| (line.to_vec(), *at, *open)).collect();
        assert_eq!(found, expected);
        assert_eq!(input.offset(), text.len() as u64);
    }

    #[test]
    fn lines_know_their_place() {
        check(b"", &[]);
        check(b"a\r\n\nb", &[(b"a", 0, false), (b"", 3, false), (b"b", 4, true)]);
        check(b"\n", &[(b"", 0, false)]);
    }

    #[test]
    fn a_long_line_is_cut() {
        let text = [vec![b'x'; LONGEST_LINE + 5], b"\nnext\n".to_vec()].concat();
        let mut reader = text.as_slice();
        let mut input = Input::new("x", &mut reader);
        let mut line = Vec::new();
        let first = input.next_line(&mut line).expect("memory").expect("a line");
        assert_eq!((first.cut, line.len()), (true, LONGEST_LINE));
        let second = input.next_line(&mut line).expect("memory").expect("a line");
        assert_eq!((second.cut, second.number, line.as_slice()), (false, 2, &b"next"[..]));
    }

    #[test]
    fn what_ends_too_early_is_told_with_its_place() {
        let mut reader = &b"abcdef"[..];
        let mut input = Input::new("x", &mut reader);
        input.pass(4).expect("there");
        let error = input.fill(&mut [0; 5]).expect_err("too short");
        assert_eq!(error.to_string(), "x, at byte 4: the file ends 3 bytes too early");
    }
}
