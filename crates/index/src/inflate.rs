//! Inflates one gzip member in memory, with libdeflate.
//!
//! libdeflate is a third faster than zlib-rs but needs a whole member and a buffer for its whole text. A thread reuses one buffer for all
//! members: clearing fresh memory for each cost 7 % of a scan. So a foreign member with more text than [`LIMIT`] is
//! refused, and the caller streams it through `weftline_format` instead. libdeflate also does not report where a member ends; a foreign
//! member's trailer shows it, and ours state their size.

use libdeflater::{DecompressionError, Decompressor};
use thiserror::Error;
use weftline_format::gunzip::header_len;
use weftline_format::member::{InflateError, TRAILER_LEN, inflate_member, parse_header};

/// Text that is held at once, at most.
pub const LIMIT: usize = 64 << 20;
/// Buffer for the first member's text, if its size is unknown.
const FIRST_ROOM: usize = 1 << 20;
/// Nothing in deflate's format stands for more bytes than this.
const MAX_RATIO: usize = 1032;
/// Ends that are tried for a member whose trailer occurs in its own data.
const MAX_TRIES: usize = 64;

/// Why a member could not be inflated here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Why {
    /// There is no gzip member, it is cut, or its size or sum is wrong.
    #[error("an incomplete gzip member")]
    Bad,
    /// Its text is longer than [`LIMIT`].
    #[error("a gzip member with more than {} MiB of text", LIMIT >> 20)]
    TooLong,
}

/// What one thread needs to inflate members.
pub struct Inflater {
    decompressor: Decompressor,
    /// The longest text so far.
    longest: usize,
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflater").field("longest", &self.longest).finish_non_exhaustive()
    }
}

impl Default for Inflater {
    fn default() -> Self {
        Inflater { decompressor: Decompressor::new(), longest: FIRST_ROOM }
    }
}

/// Inflates the member at the start of `bytes`, of which any number may follow it. Gives the member's length and its text,
/// which lies at the start of `room`; that is kept long, because to clear it for each member would cost a tenth of the time.
pub fn member<'r>(bytes: &[u8], room: &'r mut Vec<u8>, inflater: &mut Inflater) -> Result<(usize, &'r [u8]), Why> {
    let len = inflater.inflate(bytes, room)?;
    let text = &room[..len];
    let mut trailer = [0; 8];
    trailer[..4].copy_from_slice(&libdeflater::crc32(text).to_le_bytes());
    trailer[4..].copy_from_slice(&(len as u32).to_le_bytes());
    let end = end_of_member(bytes, trailer, len, &mut inflater.decompressor)?;
    inflater.longest = inflater.longest.max(len);
    Ok((end, &room[..len]))
}

/// The checked text of a member of ours, at the start of `room`.
pub fn own_member<'r>(member: &[u8], room: &'r mut Vec<u8>, inflater: &mut Inflater) -> Result<&'r [u8], InflateError> {
    if let Some(len) = inflater.inflate_own(member, room) {
        return Ok(&room[..len]);
    }
    // Too long for the buffer, or damaged: this call finds out why.
    *room = inflate_member(member)?;
    Ok(room)
}

impl Inflater {
    /// Inflates a member of ours and compares its sum; how long its text is, if all is well.
    fn inflate_own(&mut self, member: &[u8], room: &mut Vec<u8>) -> Option<usize> {
        let header = parse_header(member).ok()?;
        let member = member.get(..usize::try_from(header.size).ok()?)?;
        let (data, [a, b, c, d, len @ ..]) = member.get(header.data_offset..)?.split_last_chunk::<TRAILER_LEN>()?;
        let len = u32::from_le_bytes(*len) as usize;
        // A lying length must not reserve what the data cannot fill.
        if len > LIMIT || len / MAX_RATIO > data.len() {
            return None;
        }
        if room.len() < len {
            room.resize(len, 0);
        }
        let inflated = self.decompressor.deflate_decompress(data, &mut room[..len]).ok()?;
        let sum = u32::from_le_bytes([*a, *b, *c, *d]);
        (inflated == len && libdeflater::crc32(&room[..len]) == sum).then_some(len)
    }

    /// Inflates, with a larger buffer until it is enough, and returns the length of the text.
    fn inflate(&mut self, bytes: &[u8], room: &mut Vec<u8>) -> Result<usize, Why> {
        let data = bytes.get(header_len(bytes).ok_or(Why::Bad)?..).ok_or(Why::Bad)?;
        // Where the bytes end with the member, they end with its size.
        let announced = bytes.last_chunk::<4>().map_or(0, |size| u32::from_le_bytes(*size) as usize);
        let announced = if announced <= LIMIT && announced / MAX_RATIO <= bytes.len() { announced } else { 0 };
        let mut wanted = announced.max(self.longest).min(LIMIT);
        loop {
            if room.len() < wanted {
                room.resize(wanted, 0);
            }
            // Without its trailer: that is looked for afterwards, and so the sum is made once.
            match self.decompressor.deflate_decompress(data, room) {
                Ok(len) if len <= LIMIT => return Ok(len),
                Err(DecompressionError::BadData) => return Err(Why::Bad),
                _ if room.len() >= LIMIT => return Err(Why::TooLong),
                _ => wanted = (2 * room.len()).min(LIMIT),
            }
        }
    }
}

/// Where the member ends: behind its trailer. Where there is none, size or sum are wrong.
fn end_of_member(bytes: &[u8], trailer: [u8; 8], len: usize, decompressor: &mut Decompressor) -> Result<usize, Why> {
    let from = header_len(bytes).ok_or(Why::Bad)?;
    let finder = memchr::memmem::Finder::new(&trailer);
    let mut at = from;
    let mut again = Vec::new();
    for _ in 0..MAX_TRIES {
        let end = at + finder.find(&bytes[at..]).ok_or(Why::Bad)? + trailer.len();
        // Those eight bytes within the data, and another member right behind them, is more than chance can do.
        if end == bytes.len() || header_len(&bytes[end..]).is_some() {
            return Ok(end);
        }
        // Padding or damage follows, or the zeros of an empty member begin before its trailer. Inflating says which.
        again.resize(len, 0);
        if decompressor.gzip_decompress(&bytes[..end], &mut again) == Ok(len) {
            return Ok(end);
        }
        at = end + 1 - trailer.len();
    }
    Err(Why::Bad)
}

#[cfg(test)]
mod tests {
    use libdeflater::{CompressionLvl, Compressor};

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut compressor = Compressor::new(CompressionLvl::default());
        let mut out = vec![0; compressor.gzip_compress_bound(text.len())];
        let len = compressor.gzip_compress(text, &mut out).expect("there is room");
        out.truncate(len);
        out
    }

    /// Texts in one file, and what follows them.
    fn check(texts: &[&[u8]], behind: &[u8]) {
        let mut file: Vec<u8> = texts.iter().flat_map(|text| packed(text)).collect();
        file.extend_from_slice(behind);
        let (mut room, mut inflater) = (Vec::new(), Inflater::default());
        let mut at = 0;
        for text in texts {
            let (len, found) = member(&file[at..], &mut room, &mut inflater).expect("a member");
            assert_eq!(found.len(), text.len());
            assert!(found == *text);
            at += len;
        }
        assert_eq!(&file[at..], behind);
        assert_eq!(member(&file[at..], &mut room, &mut inflater).map(|(len, _)| len), Err(Why::Bad));
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1u64;
        let step = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..len).map(step).collect()
    }

    #[test]
    fn members_are_cut_where_they_end() {
        let long = b"0123456789abcdef\n".repeat(200_000);
        let noise = noise(300_000);
        check(&[b"a\n", b"b\n"], b"");
        // The same text twice has the same trailer twice.
        check(&[b"same\n", b"same\n", b"same\n"], b"");
        check(&[&long, &noise, b"x"], b"");
        for behind in
            [&b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"[..], b"junk", b"\x1f", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x07"]
        {
            check(&[b"", b"a", b"", b"", &noise], behind);
            check(&[b"a", b""], behind);
        }
    }

    /// Our members, whole and damaged at every byte: as the plain reader has them.
    #[test]
    fn own_members() {
        use weftline_format::member::{Deflater, seal};
        let (mut room, mut inflater) = (Vec::new(), Inflater::default());
        for text in [&b""[..], b"[\n{}\n", &b"0123456789abcdef\n".repeat(9000), &noise(70_000)] {
            let mut member = Vec::new();
            seal(text, 1, 2, &mut member, &mut Deflater::new());
            assert_eq!(own_member(&member, &mut room, &mut inflater), Ok(text));
            for at in (0..member.len()).step_by(1 + member.len() / 300) {
                let mut bad = member.clone();
                bad[at] ^= 0x41;
                let expected = inflate_member(&bad);
                assert_eq!(own_member(&bad, &mut room, &mut inflater).map(<[u8]>::to_vec), expected, "byte {at}");
                let cut = own_member(&member[..at], &mut room, &mut inflater).map(<[u8]>::to_vec);
                assert_eq!(cut, inflate_member(&member[..at]), "cut at {at}");
            }
        }
    }

    #[test]
    fn damage_is_refused() {
        let whole = packed(&noise(5000));
        let (mut room, mut inflater) = (Vec::new(), Inflater::default());
        for len in 0..whole.len() {
            assert_eq!(member(&whole[..len], &mut room, &mut inflater).map(|(len, _)| len), Err(Why::Bad), "{len}");
        }
        // The first byte of a stored block has bits that mean nothing.
        for at in (11..whole.len()).step_by(7) {
            let mut bad = whole.clone();
            bad[at] ^= 16;
            assert!(member(&bad, &mut room, &mut inflater).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_long_text_is_for_others() {
        let (mut room, mut inflater) = (Vec::new(), Inflater::default());
        let fits = packed(&vec![b'a'; LIMIT]);
        assert_eq!(
            member(&fits, &mut room, &mut inflater).map(|(len, text)| (len, text.len())),
            Ok((fits.len(), LIMIT))
        );
        let long = packed(&vec![b'a'; LIMIT + 1]);
        assert_eq!(member(&long, &mut room, &mut inflater).map(|(len, _)| len), Err(Why::TooLong));
    }
}
