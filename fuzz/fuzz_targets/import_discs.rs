//! The readers of DISCS result folders on any bytes: the first byte chooses a format; the rest is looked at, concluded from and read. Nothing panics or hangs.
//!
//! `cargo +nightly fuzz run import_discs -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_import::formats::discs;
use weftline_import::input::{Head, Input};
use weftline_import::registry::Format;
use weftline_import::sink::Memory;
use weftline_import::survey::Survey;

const FORMATS: [Format; 10] = [
    discs::bpftrace::FORMAT,
    discs::align::FORMAT,
    discs::pids::FORMAT,
    discs::mpstat::FORMAT,
    discs::vmstat::FORMAT,
    discs::ifstat::FORMAT,
    discs::pmon::FORMAT,
    discs::iostat::FORMAT,
    discs::mllog::FORMAT,
    discs::dlio::FORMAT,
];

/// What files are called decides about some of them.
const NAMES: [&str; 6] =
    ["d/trace_read.out", "d/trace_write.out", "d/trace_bio.out", "d/trace_create_del.out", "d/vfs_rw.out", "d/x"];

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, text)) = bytes.split_first() else { return };
    let format = FORMATS[usize::from(*choice) % FORMATS.len()];
    let name = NAMES[usize::from(*choice) / FORMATS.len() % NAMES.len()];
    (format.detect)(&Head { name, bytes: text });
    let mut survey = Survey::default();
    if let Some(look) = format.survey {
        let mut reader = text;
        // Errors are refusals.
        let _ = look(&mut Input::new(name, &mut reader), &mut survey);
    }
    survey.conclude();
    let (mut memory, mut reader) = (Memory::default(), text);
    let _ = (format.read)(&mut Input::new(name, &mut reader), &survey, &mut memory);
});
