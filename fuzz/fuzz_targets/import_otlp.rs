//! Any bytes are a file of OpenTelemetry, if perhaps a damaged one: reading them ends, without a panic.
//!
//! `cargo +nightly fuzz run import_otlp -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_import::formats::otlp::FORMAT;
use weftline_import::input::{Head, Input};
use weftline_import::sink::Memory;
use weftline_import::survey::Survey;

fuzz_target!(|bytes: &[u8]| {
    (FORMAT.detect)(&Head { name: "x", bytes });
    let mut reader = bytes;
    let _ = (FORMAT.read)(&mut Input::new("x", &mut reader), &Survey::default(), &mut Memory::default());
});
