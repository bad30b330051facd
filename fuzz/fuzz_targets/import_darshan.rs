//! The reader of Darshan logs takes anything, and neither panics nor hangs: a log as it is, or records of a module behind a header and a job that make
//! sense, so that no checksum keeps the fuzzer from them.
//!
//! `cargo +nightly fuzz run import_darshan -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_import::formats::darshan::FORMAT;
use weftline_import::input::Input;
use weftline_import::sink::Memory;
use weftline_import::survey::Survey;

/// Bytes of a header and of a job in format 3.41.
const HEADER: usize = 1328;
const JOB: usize = 4096;

/// An unpacked log with names and one module.
fn log(module: u8, version: u8, big: bool, names: &[u8], records: &[u8]) -> Vec<u8> {
    let number = |number: u64| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let mut bytes = vec![0; HEADER + JOB];
    bytes[..4].copy_from_slice(b"3.41");
    bytes[8..16].copy_from_slice(&number(6_567_223));
    bytes[16] = 2;
    let mut map = |at: usize, offset: usize, length: usize| {
        bytes[at..at + 8].copy_from_slice(&number(offset as u64));
        bytes[at + 8..at + 16].copy_from_slice(&number(length as u64));
    };
    map(32, HEADER + JOB, names.len());
    let place = usize::from(module % 20);
    map(48 + place * 16, HEADER + JOB + names.len(), records.len());
    let four = number(u64::from(version));
    let four = if big { &four[4..] } else { &four[..4] };
    bytes[48 + 64 * 16 + place * 4..][..4].copy_from_slice(four);
    // Five processes.
    bytes[HEADER + 40..HEADER + 48].copy_from_slice(&number(5));
    [&bytes, names, records].concat()
}

fn read(bytes: &[u8]) {
    let _ = (FORMAT.read)(&mut Input::new("x", &mut &*bytes), &Survey::default(), &mut Memory::default());
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    if let [module, version, names, rest @ ..] = bytes {
        let (names, records) = rest.split_at(usize::from(*names).min(rest.len()));
        read(&log(*module, *version % 6, *version >= 128, names, records));
    }
});
