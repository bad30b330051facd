//! zlib-rs inflates every deflated text to the same bytes, also from a deflater that has encoded other texts before.
//!
//! `cargo +nightly fuzz run deflate -- -max_total_time=60`
#![no_main]

use flate2::{Decompress, FlushDecompress, Status};
use libfuzzer_sys::fuzz_target;
use weftline_format::deflate::LineDeflater;

fn check(deflater: &mut LineDeflater, text: &[u8]) {
    let mut data = Vec::new();
    deflater.deflate(text, &mut data);
    let mut back = Vec::with_capacity(text.len() + 1);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(&data, &mut back, FlushDecompress::Finish).expect("a stream of deflate data");
    assert_eq!(status, Status::StreamEnd);
    assert_eq!(inflate.total_in() as usize, data.len(), "the stream ends where the data do");
    assert!(back == text, "{} came back as {}", text.escape_ascii(), back.escape_ascii());
}

fuzz_target!(|bytes: &[u8]| {
    let mut deflater = LineDeflater::new();
    // The first byte says how often the text is repeated: lines like earlier ones are what the parser is for.
    let (&first, text) = bytes.split_first().unwrap_or((&0, bytes));
    check(&mut deflater, text);
    check(&mut deflater, &text.repeat(1 + usize::from(first)));
    // And lines that differ in single bytes only.
    let mut lines = text.to_vec();
    for (at, byte) in bytes.iter().enumerate().take(64) {
        let mut line = text.to_vec();
        if let Some(place) = line.get_mut(at * 7 % text.len().max(1)) {
            *place = *byte;
        }
        lines.push(b'\n');
        lines.extend(line);
    }
    check(&mut deflater, &lines);
});
