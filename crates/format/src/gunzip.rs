//! Finds where the members of a foreign gzip file may start, so that they can be inflated in parallel.
//!
//! Only our own members state their size (see [`crate::member`]). In other files we can search for the start of a member, but
//! three bytes prove nothing: compressed data contains them by chance once in 16 MiB. So there are three steps that
//! trust nothing: [`starts`] finds places that look like a member, the caller inflates from each of them and checks sizes and
//! checksums, and [`members`] keeps those that follow each other from the start of the file to its end. A place within
//! another member is then never reached.

use std::ops::Range;

/// How long the header of a gzip member is; nothing when the bytes are none, or not all of it is there.
pub fn header_len(bytes: &[u8]) -> Option<usize> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECKSUM: u8 = 2;
    let (head, _) = bytes.split_first_chunk::<10>()?;
    let [0x1f, 0x8b, 8, flags @ 0..32, ..] = *head else { return None };
    let mut at = 10;
    if flags & EXTRA != 0 {
        let [low, high] = *bytes.get(at..)?.first_chunk::<2>()?;
        at += 2 + usize::from(u16::from_le_bytes([low, high]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            at += memchr::memchr(0, bytes.get(at..)?)? + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        at += 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// The places of a file where a member may start, in order.
pub fn starts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(bytes, &[0x1f, 0x8b, 8]).filter(|&at| is_plausible(&bytes[at..]))
}

/// Whether a writer can have made those bytes as the start of a member.
fn is_plausible(bytes: &[u8]) -> bool {
    // RFC 1952 also defines fields for the compression level and the system; readers do not check them.
    let known = matches!(bytes, [_, _, _, _, _, _, _, _, 0 | 2 | 4, 0..=13 | 255, ..]);
    let block = header_len(bytes).filter(|_| known).and_then(|len| bytes.get(len));
    // Two bits tell the kind of the first block; there are three kinds.
    block.is_some_and(|first| first >> 1 & 3 != 3)
}

/// What a file of members turned out to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    /// The places among the candidates that are members, in order.
    pub members: Vec<usize>,
    /// Bytes between them that belong to none: padding, or damage.
    pub gaps: Vec<Range<usize>>,
}

/// Tells members from what only looked like one. `candidates`: where each starts, and where it ends if it could be inflated
/// with the right size and sum. `len`: the length of the file.
pub fn members(candidates: &[(usize, Option<usize>)], len: usize) -> Chain {
    let mut chain = Chain::default();
    let mut at = 0;
    for (place, &(start, end)) in candidates.iter().enumerate() {
        let Some(end) = end.filter(|_| start >= at) else { continue };
        if start > at {
            chain.gaps.push(at..start);
        }
        chain.members.push(place);
        at = end;
    }
    if at < len {
        chain.gaps.push(at..len);
    }
    chain
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, GzBuilder};

    use super::*;

    fn member(text: &[u8], name: Option<&str>) -> Vec<u8> {
        let builder =
            name.map_or_else(GzBuilder::new, |name| GzBuilder::new().filename(name).comment("c").extra([1; 7]));
        let mut writer = builder.write(Vec::new(), Compression::new(6));
        writer.write_all(text).expect("memory takes it");
        writer.finish().expect("memory takes it")
    }

    #[test]
    fn every_member_is_a_candidate() {
        let parts = [member(b"a\n", None), member(&[b'x'; 5000], Some("trace.pfw")), member(b"", None)];
        let mut file = Vec::new();
        let mut expected = Vec::new();
        for part in &parts {
            expected.push(file.len());
            file.extend_from_slice(part);
        }
        assert_eq!(starts(&file).collect::<Vec<_>>(), expected);
        let headers: Vec<_> = parts.iter().map(|part| header_len(part)).collect();
        assert_eq!(headers, [Some(10), Some(10 + 9 + 10 + 2), Some(10)]);
    }

    #[test]
    fn what_no_writer_makes_is_none() {
        let good = member(b"abc", None);
        for (at, byte) in [(0, 0), (2, 7), (3, 32), (8, 1), (9, 14), (10, 7)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(starts(&bad).next(), None, "byte {at}");
        }
        for len in 0..=10 {
            assert_eq!(starts(&good[..len]).next(), None, "{len} bytes");
        }
    }

    fn check(candidates: &[(usize, Option<usize>)], members_at: &[usize], gaps: &[Range<usize>]) {
        let chain = members(candidates, 100);
        assert_eq!((chain.members.as_slice(), chain.gaps.as_slice()), (members_at, gaps), "{candidates:?}");
    }

    #[test]
    fn members_follow_each_other() {
        check(&[(0, Some(40)), (40, Some(100))], &[0, 1], &[]);
        // One that starts within another is none, even if it can be inflated.
        check(&[(0, Some(40)), (20, None), (30, Some(60)), (40, Some(100))], &[0, 3], &[]);
        check(&[(0, Some(40)), (40, None), (70, Some(90))], &[0, 2], &[40..70, 90..100]);
        check(&[(10, Some(100))], &[0], &[0..10; 1]);
        check(&[], &[], &[0..100; 1]);
    }
}
