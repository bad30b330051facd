//! Numbers of either byte order, and regions of a log: one after the other in the file, each packed by itself.
//!
//! A packed region is a row of whole streams, one for each process that wrote a part of it. Records do not keep to their bounds, so the streams are
//! unpacked into one. Only one buffer of packed bytes is held.

use bzip2::Decompress as Unbzip2;
use flate2::{Decompress as Unzlib, FlushDecompress};

use crate::Result;
use crate::input::Input;

/// Packed bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The number at a place; 0 behind the end.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let Some(four) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return 0 };
        match self {
            Order::Little => u32::from_le_bytes(*four),
            Order::Big => u32::from_be_bytes(*four),
        }
    }

    /// The number at a place; 0 behind the end.
    pub(super) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return 0 };
        match self {
            Order::Little => u64::from_le_bytes(*eight),
            Order::Big => u64::from_be_bytes(*eight),
        }
    }

    pub(super) fn i64(self, bytes: &[u8], at: usize) -> i64 {
        self.u64(bytes, at) as i64
    }

    pub(super) fn f64(self, bytes: &[u8], at: usize) -> f64 {
        f64::from_bits(self.u64(bytes, at))
    }
}

/// How regions are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Zlib,
    Bzip2,
    None,
}

impl Packing {
    pub(super) fn of(number: u8) -> Option<Packing> {
        [Packing::Zlib, Packing::Bzip2, Packing::None].get(usize::from(number)).copied()
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Packing::Zlib => "zlib",
            Packing::Bzip2 => "bzip2",
            Packing::None => "none",
        }
    }
}

enum Decoder {
    Zlib(Unzlib),
    Bzip2(Unbzip2),
    None,
}

/// What one step of unpacking did.
struct Step {
    used: usize,
    made: usize,
    ended: bool,
}

/// One region, unpacked while it is read.
pub(super) struct Region<'r, 'i> {
    input: &'r mut Input<'i>,
    name: &'r str,
    decoder: Decoder,
    /// Packed bytes that are still in the file; none where the region goes to its end.
    left: Option<u64>,
    packed: Vec<u8>,
    at: usize,
    /// Whether no stream is open.
    between: bool,
    /// Bytes that are unpacked, and how many of them were given.
    plain: Vec<u8>,
    given: usize,
}

impl<'r, 'i> Region<'r, 'i> {
    /// The region that begins where the input stands.
    pub(super) fn new(input: &'r mut Input<'i>, name: &'r str, packing: Packing, left: Option<u64>) -> Region<'r, 'i> {
        let decoder = match packing {
            Packing::Zlib => Decoder::Zlib(Unzlib::new(true)),
            Packing::Bzip2 => Decoder::Bzip2(Unbzip2::new(false)),
            Packing::None => Decoder::None,
        };
        Region { input, name, decoder, left, packed: Vec::new(), at: 0, between: true, plain: Vec::new(), given: 0 }
    }

    /// Where the next packed byte is in the file.
    pub(super) fn offset(&self) -> u64 {
        self.input.offset() - (self.packed.len() - self.at) as u64
    }

    pub(super) fn invalid(&self, why: &str) -> crate::ImportError {
        self.input.invalid(self.offset(), format!("{}: {why}", self.name))
    }

    /// Unpacked bytes that were not given yet; none at the region's end.
    fn some(&mut self) -> Result<&[u8]> {
        while self.given == self.plain.len() {
            if self.at == self.packed.len() && !self.load()? {
                if !self.between {
                    return Err(self.invalid("its packed data break off"));
                }
                return Ok(&[]);
            }
            self.plain.resize(CHUNK, 0);
            let step = match self.step() {
                Some(step) if step.used > 0 || step.made > 0 || step.ended => step,
                _ => return Err(self.invalid("its packed data are damaged")),
            };
            self.plain.truncate(step.made);
            (self.at, self.given) = (self.at + step.used, 0);
            self.between = step.ended;
            if step.ended {
                self.renew();
            }
        }
        Ok(&self.plain[self.given..])
    }

    /// Fills a buffer, as far as the region goes.
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let some = self.some()?;
            if some.is_empty() {
                break;
            }
            let length = some.len().min(buffer.len() - done);
            buffer[done..done + length].copy_from_slice(&some[..length]);
            (done, self.given) = (done + length, self.given + length);
        }
        Ok(done)
    }

    /// Adds bytes to a text, up to a zero, which is taken too. No, where it would be longer than told.
    pub(super) fn until_zero(&mut self, text: &mut Vec<u8>, longest: usize) -> Result<bool> {
        loop {
            let some = self.some()?;
            if some.is_empty() {
                return Err(self.invalid("it ends within a record"));
            }
            let end = memchr::memchr(0, some);
            let part = &some[..end.unwrap_or(some.len())];
            if part.len() > longest - text.len() {
                return Ok(false);
            }
            text.extend_from_slice(part);
            self.given += part.len() + usize::from(end.is_some());
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// Fills a buffer with the beginning of a record. No, where the region ends before it; an error, where it ends within.
    pub(super) fn next(&mut self, record: &mut [u8]) -> Result<bool> {
        match self.take(record)? {
            0 => Ok(false),
            taken if taken == record.len() => Ok(true),
            _ => Err(self.invalid("it ends within a record")),
        }
    }

    /// Fills a buffer with what belongs to a record.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        let all = buffer.is_empty() || self.next(buffer)?;
        if all { Ok(()) } else { Err(self.invalid("it ends within a record")) }
    }

    /// Reads packed bytes; no, where there are none.
    fn load(&mut self) -> Result<bool> {
        let most = self.left.map_or(CHUNK, |left| usize::try_from(left).unwrap_or(CHUNK).min(CHUNK));
        self.packed.resize(most, 0);
        self.at = 0;
        let offset = self.input.offset();
        let read = self.input.take_some(&mut self.packed)?;
        self.packed.truncate(read);
        if let Some(left) = &mut self.left {
            if read < most {
                let missing = *left - read as u64;
                return Err(self.input.invalid(offset, format!("the file ends {missing} bytes too early")));
            }
            *left -= read as u64;
        }
        Ok(read > 0)
    }

    /// None where the packed bytes make no sense.
    fn step(&mut self) -> Option<Step> {
        let (packed, out) = (&self.packed[self.at..], self.plain.as_mut_slice());
        match &mut self.decoder {
            Decoder::Zlib(decoder) => {
                let before = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(packed, out, FlushDecompress::None).ok()?;
                let (used, made) = (decoder.total_in() - before.0, decoder.total_out() - before.1);
                let ended = status == flate2::Status::StreamEnd;
                Some(Step { used: used as usize, made: made as usize, ended })
            }
            Decoder::Bzip2(decoder) => {
                let before = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(packed, out).ok()?;
                let (used, made) = (decoder.total_in() - before.0, decoder.total_out() - before.1);
                let ended = status == bzip2::Status::StreamEnd;
                Some(Step { used: used as usize, made: made as usize, ended })
            }
            Decoder::None => {
                let length = packed.len().min(out.len());
                out[..length].copy_from_slice(&packed[..length]);
                Some(Step { used: length, made: length, ended: true })
            }
        }
    }

    fn renew(&mut self) {
        match &mut self.decoder {
            Decoder::Zlib(decoder) => decoder.reset(true),
            Decoder::Bzip2(decoder) => *decoder = Unbzip2::new(false),
            Decoder::None => {}
        }
    }
}

/// Seconds, as nanoseconds. What is no time is none.
pub(super) fn nanoseconds(seconds: f64) -> Option<i64> {
    // Centuries; what is longer is no time of a job.
    (seconds.is_finite() && seconds.abs() < 9e9).then(|| (seconds * 1e9).round() as i64)
}
