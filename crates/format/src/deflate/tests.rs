//! Whatever goes in comes back out of another project's inflater.

use std::fmt::Write as _;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use proptest::prelude::*;

use super::LineDeflater;

/// Round trip with one compressor, which other texts went through before. Returns the size.
fn check_with(deflater: &mut LineDeflater, text: &[u8], piece_len: usize, what: &str) -> usize {
    let mut out = b"before".to_vec();
    deflater.deflate_pieces(text, &mut out, piece_len);
    let data = out.strip_prefix(b"before").expect("what was there stays");
    // Bytes behind the stream must not be taken for a part of it.
    let followed = [data, b"\0behind"].concat();
    let mut back = Vec::with_capacity(text.len() + 1);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(&followed, &mut back, FlushDecompress::Finish);
    assert_eq!(status.ok(), Some(Status::StreamEnd), "{what}");
    assert_eq!(inflate.total_in() as usize, data.len(), "{what}: the stream ends where the data do");
    assert!(back == text, "{what}: the text comes back");
    data.len()
}

fn check(text: &[u8], most: usize, what: &str) {
    let mut deflater = LineDeflater::new();
    for (piece_len, slack) in [(super::PIECE, 0), (10_000, text.len() / 4 + 64), (super::PIECE, 0)] {
        let size = check_with(&mut deflater, text, piece_len, what);
        assert!(size <= most + slack, "{what}: {size} bytes, not {most}");
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 29) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn lines(count: usize) -> Vec<u8> {
    let noise = noise(count * 2);
    let mut text = String::from("[\n");
    let mut now = 1_794_764_744_755_824_123u64;
    for n in 0..count {
        let (start, took) = (now + 60, 400 + u64::from(noise[2 * n]) * 7);
        now = start + took;
        let (ts, dur) = (start / 1000, now / 1000 - start / 1000);
        let ns = start % 1000 * 1000 + now % 1000;
        let file = noise[2 * n + 1] % 5;
        let _ = match file {
            0 => writeln!(text, r#"{{"name":"close","cat":"POSIX","ph":"X","pid":7,"tid":9,"ts":{ts},"dur":{dur}}}"#),
            _ => writeln!(
                text,
                r#"{{"name":"pread64","cat":"POSIX","ph":"X","pid":7,"tid":9,"ts":{ts},"dur":{dur},"ns":{ns},"args":{{"fd":{file},"fhash":"0d6c6bbdb835918{file}","ret":4096,"offset":{}}}}}"#,
                n * 4096
            ),
        };
    }
    text.into_bytes()
}

fn zlib_size(text: &[u8], level: u32) -> usize {
    let mut out = Vec::with_capacity(text.len() + 1024);
    let mut zlib = Compress::new(Compression::new(level), false);
    let status = zlib.compress_vec(text, &mut out, FlushCompress::Finish);
    assert_eq!(status.ok(), Some(Status::StreamEnd));
    out.len()
}

#[test]
fn every_text_comes_back() {
    check(b"", 2, "empty");
    check(b"a", 3, "one byte");
    check(b"\n", 3, "one line");
    for len in 2..40 {
        check(&b"{\"name\":\"a\"}\n{\"name\":\"b\"}\n{\"name\":\"c\"}\n"[..len], len + 5, "short");
    }
    check(b"aaaaaabcdefghijklmnopqrstuvwxyzabcdefghij", 41, "a value that starts where the text does");
    let noise = noise(1 << 20);
    check(&noise, noise.len() + noise.len() / 8000 + 16, "noise");
    for len in [65_534, 65_535, 65_536, 131_070] {
        check(&noise[..len], len + 24, "noise around the size of a stored block");
    }
    check(&[0; 1 << 20], 1400, "zeros");
    check(&[b'\n'; 1 << 20], 1400, "empty lines");
    check(&b"ab\n".repeat(100_000), 500, "short lines");
    let hex: Vec<u8> = noise.iter().map(|byte| b"0123456789abcdef"[usize::from(byte & 15)]).collect();
    check(&hex, hex.len() * 53 / 100, "digits");
    check(&hex[..70_000].repeat(3), 70_000 * 53 / 100 * 3, "the same beyond the window");
    check(&hex[..2000].repeat(20), 2000 * 53 / 100 + 1000, "the same within the window");
    let long: Vec<u8> = hex.chunks(70_000).flat_map(|line| [b"{\"name\":\"", line, b"\"}\n"].concat()).collect();
    check(&long, long.len() * 53 / 100, "long lines");
    let wide: Vec<u8> = noise.iter().map(|byte| byte | 0x80).collect();
    check(&wide, wide.len() * 89 / 100, "not UTF-8");
    for byte in [b',', b'"', b'}', b'-', 0xff] {
        check(&[&[byte; 3000][..], &noise[..3000], &[byte; 5000]].concat(), 3150, "delimiters");
    }
}

#[test]
fn traces_are_smaller_than_with_zlib() {
    let text = lines(20_000);
    check(&text, zlib_size(&text, 2), "a trace");
    for cut in [1, 2, 3, 50, 1000, 12_345] {
        check(&text[..cut], cut + 5, "a cut trace");
        // Of a hundred lines more are new.
        let part = &text[cut..20_000 + cut];
        check(part, zlib_size(part, 2) * 21 / 20, "from the middle of a line");
    }
}

/// A piece of a text: something of a trace, or something else.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let trace = lines(300);
    let len = trace.len();
    prop_oneof![
        4 => (0..len, 0..2000usize).prop_map(move |(at, size)| trace[at..(at + size).min(len)].to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..300),
        1 => (any::<u8>(), 0..1000usize).prop_map(|(byte, size)| vec![byte; size]),
        1 => "[a-c\"{},:\n]{0,200}".prop_map(String::into_bytes),
        1 => "(\\{\"name\":\"[a-z]{0,20}\",\"[a-z]{1,3}\":[0-9]{1,12}\\}\n){0,20}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn mixtures_come_back(
        texts in prop::collection::vec(prop::collection::vec(piece(), 0..20), 1..3),
        piece_len in 1..50_000usize,
    ) {
        let mut deflater = LineDeflater::new();
        for text in texts {
            check_with(&mut deflater, &text.concat(), super::PIECE, "a mixture");
            check_with(&mut deflater, &text.concat(), piece_len, "a mixture in pieces");
        }
    }
}
