//! Gzip members with an index in their header, and the recovery of a file after its writer was killed.
//!
//! A trace file is a sequence of members, each of about 1 MiB of whole lines and each a complete gzip file of its own.
//! Their header has an extra field, which every gzip reader skips:
//!
//! | bytes | what |
//! |---|---|
//! | 0–9 | gzip header: `1f 8b 08 04`, no time, no flags, system unknown |
//! | 10–11 | length of the extra field, 28 |
//! | 12–15 | subfield `WF`, length 24 |
//! | 16 | version, 1 |
//! | 17–19 | flags and reserve, 0 |
//! | 20–23 | events in the member: lines that are not metadata |
//! | 24–31 | size of the whole member in bytes, header to trailer |
//! | 32–39 | sequence number of the member within its process image |
//!
//! All numbers are little-endian. With the size a reader splits a file without inflating it; with the sequence number
//! recovery knows what was already written. A writer that dies leaves a torn last member: its size points beyond the
//! end of the file or, after a crash of the machine, its checksum is wrong. [`inspect_tail`] finds where the good
//! part ends, and [`cut_tail`] truncates the file there before anything is appended.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flate2::{Crc, Decompress, FlushDecompress, Status};
use thiserror::Error;

use crate::files;

/// Bytes before the compressed data of a member.
pub const HEADER_LEN: usize = 40;
/// Bytes after it: checksum and length of the text.
pub const TRAILER_LEN: usize = 8;
/// No member inflates to more than this: a wrong size must not take all memory.
pub const MAX_TEXT: usize = 256 << 20;

/// No member is larger than this: deflate stores what it cannot compress, with a few bytes for each block of it.
pub const MAX_MEMBER: u64 = (MAX_TEXT + MAX_TEXT / 1024 + 4096) as u64;

const MAGIC: [u8; 20] = [
    0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, // gzip, extra field present
    28, 0, b'W', b'F', 24, 0, // the subfield
    1, 0, 0, 0, // its version
];

/// The bytes that every member of ours starts with.
pub(crate) const MEMBER_START: &[u8] = &MAGIC;

/// The compressor of members, reusable.
pub use crate::deflate::LineDeflater as Deflater;

/// The header fields of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberHeader {
    /// Size of the whole member in bytes.
    pub size: u64,
    /// Its sequence number within its process image.
    pub seq: u64,
    /// Events in it, metadata not counted.
    pub count: u32,
    /// Where its compressed data starts, from the start of the member.
    pub data_offset: usize,
}

/// Why bytes are not one of our members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// They are the beginning of one.
    #[error("the header is truncated")]
    Short,
    /// They are something else: a plain gzip member, or no gzip at all.
    #[error("not a Weftline member")]
    Foreign,
    /// They say a size that no member can have.
    #[error("impossible member size {0}")]
    BadSize(u64),
}

/// Why a member could not be inflated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InflateError {
    /// The header is not one of ours.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The member is shorter than it says.
    #[error("the member is truncated")]
    Cut,
    /// The compressed data make no sense.
    #[error("the compressed data is damaged")]
    Deflate,
    /// The text is not the one that was written.
    #[error("the checksum is wrong")]
    Checksum,
    /// The text would be larger than [`MAX_TEXT`].
    #[error("the text is too large")]
    TooLarge,
}

/// Appends `text` to `out` as one member.
pub fn seal(text: &[u8], count: u32, seq: u64, out: &mut Vec<u8>, deflater: &mut Deflater) {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&seq.to_le_bytes());
    deflater.deflate(text, out);
    let mut crc = Crc::new();
    crc.update(text);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    let size = (out.len() - start) as u64;
    out[start + 24..start + 32].copy_from_slice(&size.to_le_bytes());
}

/// Reads the header of a member.
pub fn parse_header(bytes: &[u8]) -> Result<MemberHeader, HeaderError> {
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if magic != &MAGIC[..magic.len()] || magic.is_empty() {
        return Err(HeaderError::Foreign);
    }
    let Some((head, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Err(HeaderError::Short);
    };
    let word = |at: usize| head[at..at + 8].iter().rev().fold(0u64, |v, &b| v << 8 | u64::from(b));
    let (size, seq) = (word(24), word(32));
    let count = word(20) as u32;
    if size < (HEADER_LEN + TRAILER_LEN) as u64 {
        return Err(HeaderError::BadSize(size));
    }
    Ok(MemberHeader { size, seq, count, data_offset: HEADER_LEN })
}

/// The text of one whole member, checked.
pub fn inflate_member(member: &[u8]) -> Result<Vec<u8>, InflateError> {
    let header = parse_header(member)?;
    if header.size > member.len() as u64 {
        return Err(InflateError::Cut);
    }
    let member = &member[..header.size as usize];
    let Some((data, trailer)) = member[header.data_offset..].split_last_chunk::<TRAILER_LEN>() else {
        return Err(InflateError::Cut);
    };
    let [a, b, c, d, e, f, g, h] = *trailer;
    let (sum, len) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]) as usize);
    if len > MAX_TEXT {
        return Err(InflateError::TooLarge);
    }
    // A lying length must not reserve what the data cannot fill: deflate never expands more than 1032 times.
    let mut text = Vec::with_capacity(len.min(data.len().saturating_mul(1032)) + 1);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(data, &mut text, FlushDecompress::Finish).map_err(|_| InflateError::Deflate)?;
    if status != Status::StreamEnd || inflate.total_in() as usize != data.len() {
        return Err(InflateError::Deflate);
    }
    let mut crc = Crc::new();
    crc.update(&text);
    if crc.sum() != sum || text.len() != len {
        return Err(InflateError::Checksum);
    }
    Ok(text)
}

/// The readable text of a member with a missing end.
pub fn inflate_torn(member: &[u8]) -> Vec<u8> {
    let data = member.get(HEADER_LEN..).unwrap_or_default();
    let mut text = Vec::new();
    let mut inflate = Decompress::new(false);
    loop {
        text.reserve(1 << 16);
        let before = (inflate.total_in(), text.len());
        let rest = &data[inflate.total_in() as usize..];
        let status = inflate.decompress_vec(rest, &mut text, FlushDecompress::None);
        let stuck = before == (inflate.total_in(), text.len());
        if !matches!(status, Ok(Status::Ok)) || stuck || text.len() > MAX_TEXT {
            return text;
        }
    }
}

/// Splits a file of our members without inflating it.
pub fn walk(bytes: &[u8]) -> Walk<'_> {
    Walk { bytes, at: 0 }
}

/// The members of a file, in order; see [`walk`].
#[derive(Debug, Clone)]
pub struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    /// Where the walk stands. After the last member this is the length of the file, or where a torn or foreign
    /// member starts.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Whether nothing is left over.
    pub fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }
}

impl Iterator for Walk<'_> {
    type Item = (Range<usize>, MemberHeader);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.at..];
        let header = parse_header(rest).ok().filter(|header| header.size <= rest.len() as u64)?;
        let range = self.at..self.at + header.size as usize;
        self.at = range.end;
        Some((range, header))
    }
}

/// A trace file could not be inspected or cut.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct TailError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// What is good of a file of our members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tail {
    /// Bytes up to the end of the last good member.
    pub intact_len: u64,
    /// Bytes of the file.
    pub file_len: u64,
    /// Good members.
    pub members: u64,
    /// Events in them.
    pub events: u64,
    /// The sequence number of the last good one.
    pub last_seq: Option<u64>,
}

impl Tail {
    /// Whether something follows the good part.
    pub fn is_torn(&self) -> bool {
        self.intact_len < self.file_len
    }
}

/// Finds the good part of a file: walks the headers, and inflates only the last member to see that it is whole.
pub fn inspect_tail(path: &Path) -> Result<Tail, TailError> {
    let wrap = |source| TailError { path: path.to_owned(), source };
    let file = files::open(path).map_err(wrap)?;
    inspect_open(&file).map_err(wrap)
}

/// Cuts a file after its good part and says what that part is. A file that is whole is not touched.
pub fn cut_tail(path: &Path) -> Result<Tail, TailError> {
    let wrap = |source| TailError { path: path.to_owned(), source };
    let file = files::change(path).map_err(wrap)?;
    let tail = inspect_open(&file).map_err(wrap)?;
    if tail.is_torn() {
        file.set_len(tail.intact_len).map_err(wrap)?;
    }
    Ok(tail)
}

/// Members that are still remembered when the last ones turn out to be damaged.
const LOOK_BACK: usize = 64;

fn inspect_open(file: &File) -> io::Result<Tail> {
    let file_len = file.metadata()?.len();
    let mut tail = Tail { file_len, ..Tail::default() };
    let mut before: Vec<Tail> = Vec::new();
    let mut head = [0; HEADER_LEN];
    let fits = |header: &MemberHeader, left: u64| header.size <= left.min(MAX_MEMBER);
    while file_len - tail.intact_len >= HEADER_LEN as u64 {
        file.read_exact_at(&mut head, tail.intact_len)?;
        let Some(header) = parse_header(&head).ok().filter(|header| fits(header, file_len - tail.intact_len)) else {
            break;
        };
        if before.len() == LOOK_BACK {
            before.remove(0);
        }
        before.push(tail);
        tail.intact_len += header.size;
        tail.members += 1;
        tail.events += u64::from(header.count);
        tail.last_seq = Some(header.seq);
    }
    while let Some(previous) = before.pop() {
        let mut member = vec![0; (tail.intact_len - previous.intact_len) as usize];
        file.read_exact_at(&mut member, previous.intact_len)?;
        if inflate_member(&member).is_ok() {
            break;
        }
        tail = previous;
    }
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn sealed(texts: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut deflater = Deflater::new();
        for (seq, text) in texts.iter().enumerate() {
            seal(text, text.len() as u32, seq as u64, &mut out, &mut deflater);
        }
        out
    }

    #[test]
    fn any_gzip_reader_reads_members() {
        let noise: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let texts: [&[u8]; 4] = [b"[\n{}\n", b"", &noise, b"tail\n"];
        let file = sealed(&texts);
        let mut plain = Vec::new();
        flate2::read::MultiGzDecoder::new(&file[..]).read_to_end(&mut plain).expect("a gzip file");
        assert_eq!(plain, texts.concat());
        let mut walk = walk(&file);
        for (seq, text) in texts.iter().enumerate() {
            let (range, header) = walk.next().expect("a member");
            assert_eq!((header.seq, header.count as usize), (seq as u64, text.len()));
            assert_eq!(inflate_member(&file[range]).as_deref(), Ok(*text));
        }
        assert_eq!(walk.next(), None);
        assert!(walk.at_end());
    }

    #[test]
    fn a_cut_costs_one_member() {
        let file = sealed(&[b"one\n", b"two\n", b"three\n"]);
        let ends: Vec<usize> = walk(&file).map(|(range, _)| range.end).collect();
        for cut in 0..=file.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let mut walk = walk(&file[..cut]);
            assert_eq!(walk.by_ref().count(), whole, "cut at {cut}");
            assert_eq!(walk.offset(), if whole == 0 { 0 } else { ends[whole - 1] });
        }
    }

    #[test]
    fn damage_is_seen() {
        let file = sealed(&[b"a line of a trace\n"]);
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0x41;
            // The count and the sequence number are the only bytes that nothing else vouches for.
            let unguarded = (20..24).contains(&at) || (32..40).contains(&at);
            assert_eq!(inflate_member(&bad).is_ok(), unguarded, "byte {at}");
        }
        assert_eq!(parse_header(b""), Err(HeaderError::Foreign));
        assert_eq!(parse_header(&file[..30]), Err(HeaderError::Short));
        assert_eq!(parse_header(b"\x1f\x8b\x08\0 plain gzip"), Err(HeaderError::Foreign));
    }

    #[test]
    fn tails_are_cut_where_the_good_part_ends() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("t.pfw.gz");
        let good = sealed(&[b"one\n", b"second\n"]);
        let ends: Vec<u64> = walk(&good).map(|(range, _)| range.end as u64).collect();
        let check = |bytes: &[u8], members: u64, what: &str| {
            std::fs::write(&path, bytes).expect("written");
            let tail = inspect_tail(&path).expect("inspected");
            let intact_len = if members == 0 { 0 } else { ends[members as usize - 1] };
            let events = [0, 4, 11][members as usize];
            let expected =
                Tail { intact_len, file_len: bytes.len() as u64, members, events, last_seq: members.checked_sub(1) };
            assert_eq!(tail, expected, "{what}");
            assert_eq!(cut_tail(&path).expect("cut"), expected, "{what}");
            assert_eq!(std::fs::metadata(&path).expect("there").len(), intact_len, "{what}");
            assert!(!cut_tail(&path).expect("cut again").is_torn(), "{what}");
        };
        check(b"", 0, "empty");
        check(&good, 2, "whole");
        check(&good[..good.len() - 1], 1, "one byte short");
        check(&good[..ends[0] as usize + 7], 1, "cut in the second header");
        check(&[&good[..], &good[..20]].concat(), 2, "a third header begun");
        check(b"not gzip", 0, "foreign");
        let mut zeros = good;
        zeros[ends[0] as usize + HEADER_LEN..].fill(0);
        check(&zeros, 1, "blocks that never reached the disk");
        zeros[HEADER_LEN..ends[0] as usize].fill(0);
        check(&zeros, 0, "none reached it");
        // A sparse file can be as long as any member says it is.
        let mut endless = sealed(&[b"one\n", b"second\n"]);
        endless[ends[0] as usize + 24..][..8].copy_from_slice(&(1u64 << 39).to_le_bytes());
        std::fs::write(&path, &endless).expect("written");
        File::options().write(true).open(&path).and_then(|file| file.set_len(1 << 40)).expect("longer");
        assert_eq!(inspect_tail(&path).expect("inspected").intact_len, ends[0]);
        assert!(inspect_tail(&dir.path().join("missing")).is_err());
    }
}
