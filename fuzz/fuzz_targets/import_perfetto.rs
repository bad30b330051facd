//! Any bytes are a Perfetto trace, if perhaps a damaged one: both passes over them end, without a panic.
//!
//! `cargo +nightly fuzz run import_perfetto -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_import::formats::perfetto::FORMAT;
use weftline_import::input::{Head, Input};
use weftline_import::sink::Memory;
use weftline_import::survey::Survey;

fuzz_target!(|bytes: &[u8]| {
    (FORMAT.detect)(&Head { name: "x.pftrace", bytes });
    let (mut survey, mut reader) = (Survey::default(), bytes);
    if let Some(look) = FORMAT.survey {
        let _ = look(&mut Input::new("x", &mut reader), &mut survey);
    }
    let mut reader = bytes;
    let _ = (FORMAT.read)(&mut Input::new("x", &mut reader), &survey, &mut Memory::default());
});
