//! The input of a reader: plain files, any gzip files, and our members.
//!
//! A [`Source`] hands out blocks of bounded size in the order of the file: batches of our members, still compressed so
//! that they can be inflated in parallel, or pieces of text. Foreign gzip is inflated here, sequentially over all its
//! members, because only our members state where they end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::damage::{Damage, Place, What};
use crate::dialect::Reading;
use crate::files;
use crate::gunzip::header_len;
use crate::member::{HEADER_LEN, HeaderError, MAX_MEMBER, MEMBER_START, MemberHeader, parse_header};

/// Bytes that can be read at any place.
pub trait Input {
    /// How many there are.
    fn size(&self) -> u64;
    /// Bytes behind these that are there only by the file's length: a hole.
    fn hole(&self) -> u64 {
        0
    }
    /// Fills the buffer from a place as far as there are bytes, and says how far.
    fn fill_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl<T: AsRef<[u8]>> Input for T {
    fn size(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn fill_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.as_ref().get(offset..)).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// A file, as long as it was when it was opened: what a writer appends meanwhile is for the next reader.
pub struct OpenFile {
    file: File,
    /// Its length then, up to the first hole.
    len: u64,
    /// The rest.
    hole: u64,
}

impl OpenFile {
    /// Takes a file as it is now.
    pub fn new(file: File) -> io::Result<OpenFile> {
        let (whole, len) = (file.metadata()?.len(), files::data_length(&file)?);
        Ok(OpenFile { file, len, hole: whole.saturating_sub(len) })
    }
}

impl Input for OpenFile {
    fn size(&self) -> u64 {
        self.len
    }

    fn hole(&self) -> u64 {
        self.hole
    }

    fn fill_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }
}

/// What is wrong with an input before anything of it is read.
pub fn hole_in<I: Input + ?Sized>(input: &I) -> Damage {
    let mut damage = Damage::default();
    if input.hole() > 0 {
        let note = "a hole in the file that was never written";
        damage.add(Place::File(input.size()), What::BadLine, input.hole(), note);
    }
    damage
}

/// One of our members, still compressed.
pub struct Packed {
    /// Where it starts in the file.
    pub at: u64,
    /// Its header.
    pub header: MemberHeader,
    /// All of it.
    pub bytes: Vec<u8>,
    /// Whether the file, or another member, comes before its end.
    pub torn: bool,
}

/// What comes next.
pub enum Block {
    /// Members of ours.
    Members(Vec<Packed>),
    /// Text.
    Text {
        /// The text, after what was carried over.
        bytes: Vec<u8>,
        /// Where the first byte is.
        place: Place,
        /// Whether the text ends here, at the end of the file or where members follow.
        last: bool,
    },
}

/// Text that is handed out at once.
const TEXT_BLOCK: usize = 4 << 20;
/// Compressed bytes that are looked at in one read.
const WINDOW: usize = 256 << 10;
/// Text that is inflated at once. Its room is cleared first, and its sum is made, while it is in the processor's cache: to clear the room of a whole
/// block at once cost 5 % of a scan, to inflate elsewhere and copy 6 %.
const STRETCH: usize = 128 << 10;
/// Text by which a dialect is recognised.
const HEAD: usize = 256 << 10;

/// The blocks of a trace.
pub struct Source<'i, I: ?Sized> {
    input: &'i I,
    at: u64,
    /// What was read ahead, and from where.
    window: Vec<u8>,
    window_at: u64,
    /// Whether the file is compressed.
    gzip: bool,
    foreign: Option<Foreign>,
    /// Text of foreign members handed out so far.
    inflated: u64,
    /// Members in one batch.
    batch: usize,
    /// What was wrong with the file itself so far.
    pub damage: Damage,
}

/// A foreign member that is being inflated.
struct Foreign {
    inflate: Decompress,
    crc: Crc,
    started: u64,
}

impl<'i, I: Input + ?Sized> Source<'i, I> {
    /// The start of an input.
    pub fn new(input: &'i I) -> io::Result<Self> {
        let mut source = Source {
            input,
            at: 0,
            window: Vec::new(),
            window_at: 0,
            gzip: false,
            foreign: None,
            inflated: 0,
            batch: 4 * crate::threads::available(),
            damage: hole_in(input),
        };
        // The first byte of a file of ours may be the damaged one.
        let head = source.peek(WINDOW)?;
        source.gzip = head.starts_with(&MEMBER_START[..2]) || memchr::memmem::find(head, &MEMBER_START[2..]).is_some();
        Ok(source)
    }

    /// Whether the file is compressed.
    pub fn is_gzip(&self) -> bool {
        self.gzip
    }

    /// Continues at a place where a new unit of the file begins: a member, a line of plain text.
    pub fn skip_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Looks at the start of the trace; nothing is taken from it.
    pub fn reading(&mut self) -> io::Result<Reading> {
        if !self.gzip {
            let head = self.peek(HEAD)?;
            return Ok(Reading::of(head));
        }
        if parse_header(self.peek(HEADER_LEN)?) != Err(HeaderError::Foreign) {
            return Ok(Reading::own());
        }
        let mut head = Source::new(self.input)?;
        let mut text = Vec::new();
        head.inflate_text(&mut text, HEAD)?;
        Ok(Reading::of(&text))
    }

    /// The next block. `carry` is text that the one before ended with and that could not yet be used.
    pub fn next_block(&mut self, carry: Vec<u8>) -> io::Result<Option<Block>> {
        // Where an event is longer than a block, the blocks grow with it.
        let room = TEXT_BLOCK.max(carry.len());
        if !self.gzip {
            return self.plain_block(carry, room);
        }
        if self.foreign.is_none() && carry.is_empty() {
            let members = self.members()?;
            if !members.is_empty() {
                return Ok(Some(Block::Members(members)));
            }
        }
        let place = Place::Inflated(self.inflated - carry.len() as u64);
        let mut bytes = carry;
        let before = bytes.len();
        let last = self.inflate_text(&mut bytes, before + room)?;
        self.inflated += (bytes.len() - before) as u64;
        if bytes.is_empty() && last {
            // Nothing between two batches of members, or nothing at all.
            let members = self.members()?;
            return Ok((!members.is_empty()).then_some(Block::Members(members)));
        }
        Ok(Some(Block::Text { bytes, place, last }))
    }

    fn plain_block(&mut self, carry: Vec<u8>, room: usize) -> io::Result<Option<Block>> {
        let place = Place::File(self.at - carry.len() as u64);
        let mut bytes = carry;
        let before = bytes.len();
        let room = room.min(usize::try_from(self.input.size() - self.at).unwrap_or(room));
        bytes.resize(before + room, 0);
        let read = self.input.fill_at(self.at, &mut bytes[before..])?;
        bytes.truncate(before + read);
        self.at += read as u64;
        // A file that became shorter while it was read ends where it ends.
        let last = read < room || self.at >= self.input.size();
        Ok((!bytes.is_empty()).then_some(Block::Text { bytes, place, last }))
    }

    /// At least `len` bytes from here, where there are as many.
    fn peek(&mut self, len: usize) -> io::Result<&[u8]> {
        let skip = self.at.checked_sub(self.window_at).and_then(|skip| usize::try_from(skip).ok());
        let held = skip.and_then(|skip| self.window.get(skip..)).map_or(0, <[u8]>::len);
        if held < len && self.at + (held as u64) < self.input.size() || skip.is_none() {
            let ahead = usize::try_from(self.input.size().saturating_sub(self.at)).unwrap_or(usize::MAX);
            self.window.resize(len.max(WINDOW).min(ahead), 0);
            let read = self.input.fill_at(self.at, &mut self.window)?;
            self.window.truncate(read);
            self.window_at = self.at;
        }
        Ok(self.window.get((self.at - self.window_at) as usize..).unwrap_or_default())
    }

    fn remaining(&self) -> u64 {
        self.input.size().saturating_sub(self.at)
    }

    /// Our members from here on, at most a batch; none where something else is.
    fn members(&mut self) -> io::Result<Vec<Packed>> {
        let mut members = Vec::new();
        while members.len() < self.batch {
            let at = self.at;
            let header = match parse_header(self.peek(HEADER_LEN)?) {
                Ok(header) => header,
                Err(HeaderError::Foreign) => break,
                Err(HeaderError::Short) => {
                    let lost = self.remaining();
                    self.damage.add(Place::File(at), What::TornMember, lost, "its header is truncated");
                    self.at += lost;
                    break;
                }
                Err(HeaderError::BadSize(size)) => {
                    self.at += HEADER_LEN as u64;
                    self.at = self.find(MEMBER_START)?.unwrap_or(self.input.size());
                    let note = format!("a member cannot have {size} bytes");
                    self.damage.add(Place::File(at), What::BadGzip, self.at - at, note);
                    continue;
                }
            };
            let end = self.member_end(at, header)?;
            let mut bytes = vec![0; (end - at).min(MAX_MEMBER) as usize];
            let read = self.input.fill_at(at, &mut bytes)?;
            bytes.truncate(read);
            let torn = (bytes.len() as u64) < header.size;
            members.push(Packed { at, header, bytes, torn });
            self.at = end;
        }
        Ok(members)
    }

    /// Where a member ends: where its header says, unless another one starts before that or the file ends.
    fn member_end(&mut self, at: u64, header: MemberHeader) -> io::Result<u64> {
        let end = at.saturating_add(header.size).min(self.input.size());
        let mut next = [0; 2];
        let read = self.input.fill_at(end, &mut next)?;
        if at.checked_add(header.size) == Some(end) && (read == 0 || next == [0x1f, 0x8b]) {
            return Ok(end);
        }
        self.at = at + HEADER_LEN as u64;
        let found = self.find(MEMBER_START)?;
        self.at = at;
        Ok(found.map_or(end, |found| found.min(end)))
    }

    /// The next place from here on where those bytes are.
    fn find(&mut self, needle: &[u8]) -> io::Result<Option<u64>> {
        let start = self.at;
        loop {
            let window = self.peek(WINDOW)?;
            if window.len() < needle.len() {
                self.at = start;
                return Ok(None);
            }
            if let Some(found) = memchr::memmem::find(window, needle) {
                let found = self.at + found as u64;
                self.at = start;
                return Ok(Some(found));
            }
            let step = window.len() + 1 - needle.len();
            self.at += step as u64;
        }
    }

    /// Inflates foreign members until there are `wanted` bytes of text; true when the text ends, because the file does or
    /// because members of ours follow.
    fn inflate_text(&mut self, text: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
        while text.len() < wanted {
            if self.foreign.is_none() && !self.open_foreign()? {
                return Ok(true);
            }
            self.inflate_some(text, wanted)?;
        }
        Ok(false)
    }

    /// Opens the next foreign member; false when there is none before the end or before a member of ours.
    fn open_foreign(&mut self) -> io::Result<bool> {
        loop {
            let at = self.at;
            let ahead = self.peek(WINDOW)?;
            if ahead.is_empty() || parse_header(ahead) != Err(HeaderError::Foreign) {
                return Ok(false);
            }
            if let Some(header) = header_len(ahead) {
                self.at += header as u64;
                self.foreign = Some(Foreign { inflate: Decompress::new(false), crc: Crc::new(), started: at });
                return Ok(true);
            }
            // Tapes and block devices pad with zeros; anything else that is no member is damage.
            let zeros = ahead.iter().take_while(|b| **b == 0).count();
            if zeros > 0 {
                self.at += zeros as u64;
                continue;
            }
            self.at += 1;
            self.at = self.find(&[0x1f, 0x8b, 8])?.unwrap_or(self.input.size());
            self.damage.add(Place::File(at), What::BadGzip, self.at - at, "not a gzip member");
        }
    }

    /// Inflates a part of the open member.
    fn inflate_some(&mut self, text: &mut Vec<u8>, wanted: usize) -> io::Result<()> {
        let Some(mut member) = self.foreign.take() else { return Ok(()) };
        let at = self.at;
        let ahead = self.peek(1)?;
        let ended = ahead.is_empty();
        let before = text.len();
        text.resize(before + STRETCH.min(wanted - before), 0);
        let (taken, made) = (member.inflate.total_in(), member.inflate.total_out());
        let status = member.inflate.decompress(ahead, &mut text[before..], FlushDecompress::None);
        self.at += member.inflate.total_in() - taken;
        text.truncate(before + (member.inflate.total_out() - made) as usize);
        member.crc.update(&text[before..]);
        match status {
            Ok(Status::StreamEnd) => self.close_foreign(&member)?,
            Ok(_) if ended && text.len() == before => {
                let lost = at - member.started;
                self.damage.add(Place::File(member.started), What::TornMember, lost, "the file ends within it");
            }
            Ok(_) => self.foreign = Some(member),
            Err(_) => {
                // What was inflated before this stretch is good; the next member may start within it.
                self.at = at.max(member.started + 1);
                self.at = self.find(&[0x1f, 0x8b, 8])?.unwrap_or(self.input.size());
                let lost = self.at - member.started;
                self.damage.add(Place::File(member.started), What::BadGzip, lost, "its data is damaged");
            }
        }
        Ok(())
    }

    /// Reads the trailer of a member whose text is complete.
    fn close_foreign(&mut self, member: &Foreign) -> io::Result<()> {
        let trailer = self.peek(8)?.first_chunk::<8>().copied();
        let place = Place::File(member.started);
        let Some([a, b, c, d, e, f, g, h]) = trailer else {
            self.at = self.input.size();
            self.damage.add(place, What::TornMember, 0, "its checksum is missing, its text is complete");
            return Ok(());
        };
        self.at += 8;
        let same_sum = u32::from_le_bytes([a, b, c, d]) == member.crc.sum();
        let same_len = u32::from_le_bytes([e, f, g, h]) == member.crc.amount();
        if !same_sum || !same_len {
            self.damage.add(place, What::BadGzip, 0, "its checksum is wrong, and its text may be wrong");
        }
        Ok(())
    }
}
