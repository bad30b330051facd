//! Descriptions of formats take anything, and so do the formats that they describe. The first line with `---` parts the description from the file.
//!
//! `cargo +nightly fuzz run import_config -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_import::config::Config;
use weftline_import::input::{Head, Input};
use weftline_import::sink::Memory;
use weftline_import::survey::Survey;

/// What a description without a part behind it is tried with.
const KNOWN: &[u8] = b"[[format]]
name = 'a'
kind = 'csv'
[format.fields]
time = { field = 't', pattern = '%d/%b/%Y %H:%M:%S.%f %z' }
pid = 'p'
[[format]]
name = 'b'
kind = 'jsonl'
[format.fields]
time = { field = '/t/0', unit = 's' }
[[format]]
name = 'c'
kind = 'text'
regex = '(?<t>[0-9.,]+) (?<d>[0-9.]+) (?<r>.*)'
[format.fields]
end = { field = 't', unit = 'us' }
duration = { field = 'd', unit = 'ms' }
";

fuzz_target!(|bytes: &[u8]| {
    let part = bytes.windows(5).position(|window| window == b"\n---\n");
    let (description, file) = part.map_or((KNOWN, bytes), |at| (&bytes[..at], &bytes[at + 5..]));
    let Ok(config) = Config::parse("x", description) else { return };
    for format in &config.formats {
        let _ = format.fits(&Head { name: "x.log", bytes: file });
        let _ = format.read(&mut Input::new("x.log", &mut &*file), &Survey::default(), &mut Memory::default());
    }
});
