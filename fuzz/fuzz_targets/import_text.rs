//! Readers of text take anything, and neither panic nor hang: the first byte chooses the format.
//!
//! `cargo +nightly fuzz run import_text -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_import::input::{Head, Input};
use weftline_import::registry;
use weftline_import::sink::Memory;
use weftline_import::survey::Survey;

/// The formats, and a name that their files have.
const KINDS: [(&str, &str); 6] = [
    ("nginx", "access.log"),
    ("strace", "out.7"),
    ("tracekit", "events.x.jsonl"),
    ("tracekit", "cpu.log"),
    ("tracekit", "mem.log"),
    ("tracekit", "net.log"),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, text)) = bytes.split_first() else { return };
    let (kind, name) = KINDS[usize::from(first) % KINDS.len()];
    let format = registry::by_kind(kind).expect("a kind");
    let _ = (format.detect)(&Head { name, bytes: text });
    let mut survey = Survey::default();
    if let Some(look) = format.survey {
        let _ = look(&mut Input::new(name, &mut &*text), &mut survey);
    }
    let _ = (format.read)(&mut Input::new(name, &mut &*text), &survey, &mut Memory::default());
});
