//! Files of the kernel that are kept open, and numbers in them.
//!
//! A kept-open file of `/proc/PID` also distinguishes the process from a later one with the same id: it then returns ESRCH.
//! Nothing here allocates per sample; a buffer grows to the largest file that it has seen.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::Resource;

/// Far above any file that is read here; what is longer is cut.
const LONGEST: usize = 8 << 20;

/// A file that is read from its beginning again and again.
#[derive(Debug)]
pub(crate) struct Kept {
    file: File,
}

impl Kept {
    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Kept> {
        // A fifo in a stub tree, or a device, must not block.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(Kept { file: rustix::fs::open(path.as_ref(), flags, Mode::empty())?.into() })
    }

    pub(crate) fn open_at(directory: BorrowedFd<'_>, name: &str) -> io::Result<Kept> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(Kept { file: rustix::fs::openat(directory, name, flags, Mode::empty())?.into() })
    }

    /// The whole file. Files of many records come in pieces of at most a page, so only a read of nothing is the end.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let mut length = 0;
        loop {
            make_room(buffer, length);
            let got = match self.file.read_at(&mut buffer[length..], length as u64) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            length += got;
            if got == 0 || length >= LONGEST {
                return Ok(&buffer[..length]);
            }
        }
    }

    /// The whole file, when its records are shorter than half a page. A piece of such a file is ended by the next record having no room in a
    /// page, so a piece of up to half a page is the last one, and the read that confirms it is saved.
    pub(crate) fn read_short_records<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        const HALF_A_PAGE: usize = 2048;
        let mut length = 0;
        loop {
            if buffer.len() < length + 2 * HALF_A_PAGE {
                buffer.resize((length + 2 * HALF_A_PAGE).next_power_of_two(), 0);
            }
            let got = match self.file.read_at(&mut buffer[length..], length as u64) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            length += got;
            if got <= HALF_A_PAGE || length >= LONGEST {
                return Ok(&buffer[..length]);
            }
        }
    }

    /// The whole file, when it is one record: then whatever leaves room in the buffer was all, and the read that confirms it is saved.
    pub(crate) fn read_record<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        make_room(buffer, 0);
        let got = match self.file.read_at(buffer, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return self.read(buffer),
            other => other?,
        };
        if got == buffer.len() {
            return self.read(buffer);
        }
        Ok(&buffer[..got])
    }
}

impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn make_room(buffer: &mut Vec<u8>, length: usize) {
    if buffer.len() - length.min(buffer.len()) < 1024 {
        let longer = (buffer.len() * 2).max(4096);
        buffer.resize(longer, 0);
    }
}

/// A file that is read once: its text without surrounding white space. Nothing where it is absent, unreadable or empty.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let mut buffer = Vec::new();
    let kept = Kept::open(path).ok()?;
    let bytes = kept.read(&mut buffer).ok()?;
    let text = String::from_utf8_lossy(bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
    (!text.is_empty()).then_some(text)
}

/// Names in a directory, sorted; none where it cannot be read.
pub(crate) fn names(directory: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// A decimal number. Nothing for anything else, also for what does not fit.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in word {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A decimal fraction such as `12.05`.
pub(crate) fn fraction(word: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// Lines without their ends.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Words between blanks.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The numbers behind a key, in files of the form `key number` or `key: number`.
pub(crate) fn keyed(line: &[u8]) -> Option<(&[u8], u64)> {
    let mut words = words(line);
    let key = words.next()?;
    let key = key.strip_suffix(b":").unwrap_or(key);
    Some((key, number(words.next()?)?))
}

/// How much a counter grew. One that went backwards was reset, or is one of those that the kernel corrects: it grew by nothing. One that
/// ran over the end of 64 bits grew by what is on both sides of it.
pub(crate) fn growth(now: u64, before: u64) -> u64 {
    let grown = now.wrapping_sub(before);
    if grown < 1 << 62 { grown } else { 0 }
}

/// [`growth`] of counters that the kernel keeps in 32 bits.
pub(crate) fn growth_32(now: u64, before: u64) -> u64 {
    if now >= before {
        return growth(now, before);
    }
    let (Ok(now), Ok(before)) = (u32::try_from(now), u32::try_from(before)) else { return 0 };
    let grown = now.wrapping_sub(before);
    if grown < 1 << 30 { u64::from(grown) } else { 0 }
}

/// A part of a whole in percent; nothing of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Whether less than a period has passed, for what is not read at every tick. A clock that was set back is no reason to wait for longer.
pub(crate) fn within(last_ns: i64, now_ns: i64, period_ns: i64) -> bool {
    // Ticks come a little early and late; half a millisecond early is on time.
    (0..period_ns - 500_000).contains(&now_ns.saturating_sub(last_ns))
}

/// Raises the limit of open files to what the system allows, since every followed process takes a few. Returns the limit.
pub fn raise_open_files() -> u64 {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_some() && limit.current != limit.maximum {
        let raised = rustix::process::Rlimit { current: limit.maximum.or(Some(1 << 20)), maximum: limit.maximum };
        if rustix::process::setrlimit(Resource::Nofile, raised).is_ok() {
            limit = raised;
        }
    }
    limit.current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (word, expected) in [
            (&b"0"[..], Some(0)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"", None),
            (b"-1", None),
            (b"1x", None),
            (b"+1", None),
        ] {
            assert_eq!(number(word), expected, "{}", String::from_utf8_lossy(word));
        }
    }

    #[test]
    fn growths() {
        for (now, before, expected) in
            [(5, 3, 2), (3, 5, 0), (3, u64::MAX - 1, 5), (0, 0, 0), (0, 1 << 40, 0), (u64::MAX, u64::MAX - 9, 9)]
        {
            assert_eq!(growth(now, before), expected, "{now} after {before}");
        }
        for (now, before, expected) in
            [(7, 5, 2), (4, u64::from(u32::MAX), 5), (5, 7, 0), (0, 1 << 33, 0), (1 << 33, 0, 1 << 33)]
        {
            assert_eq!(growth_32(now, before), expected, "{now} after {before}");
        }
    }

    /// Files of this machine that come in pieces.
    #[test]
    fn short_records_are_read_whole() {
        for name in ["vmstat", "diskstats", "net/dev", "cpuinfo", "zoneinfo"] {
            let Ok(kept) = Kept::open(Path::new("/proc").join(name)) else { continue };
            let lines_of = |text: &[u8]| lines(text).count();
            let (mut one, mut other) = (Vec::new(), Vec::new());
            // A device may come or go in between.
            let same = (0..10).any(|_| {
                lines_of(kept.read(&mut one).expect("read"))
                    == lines_of(kept.read_short_records(&mut other).expect("read"))
            });
            assert!(same, "{name}");
        }
    }

    #[test]
    fn long_files_are_read_whole() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("long");
        for length in [0usize, 1, 1023, 1024, 3072, 4095, 4096, 4097, 100_000] {
            std::fs::write(&path, vec![b'x'; length]).expect("written");
            let mut buffer = Vec::new();
            let kept = Kept::open(&path).expect("opened");
            assert_eq!(kept.read(&mut buffer).expect("read").len(), length);
            assert_eq!(kept.read_record(&mut Vec::new()).expect("read").len(), length, "a record of {length}");
            assert_eq!(kept.read_short_records(&mut Vec::new()).expect("read").len(), length, "records of {length}");
        }
    }
}
