//! Any bytes are a trace, if perhaps a damaged one: reading them never panics, both ways of reading agree, and what was
//! read can be written and read again without damage or change.
//!
//! `cargo +nightly fuzz run read_trace -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_format::event::Event;
use weftline_format::line::LineBuf;
use weftline_format::member::{Deflater, seal};
use weftline_format::reader::{read_bytes, scan_bytes};

fn written(events: &[Event]) -> Vec<u8> {
    let mut lines = LineBuf::new();
    for event in events {
        lines.write_event(event);
    }
    lines.into_bytes()
}

fn sealed(text: &[u8], events: &[Event]) -> Vec<u8> {
    let count = events.iter().filter(|event| event.counts()).count();
    let mut file = Vec::new();
    seal(text, count as u32, 0, &mut file, &mut Deflater::new());
    file
}

fuzz_target!(|bytes: &[u8]| {
    let trace = read_bytes(bytes);
    let mut scanned = 0;
    let summary = scan_bytes(bytes, &mut |_| scanned += 1);
    assert_eq!((trace.events.len() as u64, &trace.damage), (scanned, &summary.damage));

    let text = written(&trace.events);
    let again = read_bytes(&sealed(&text, &trace.events));
    assert!(again.damage.is_empty(), "{:?}", again.damage);
    assert_eq!(again.events.len(), trace.events.len());
    let settled = written(&again.events);
    let third = read_bytes(&sealed(&settled, &again.events));
    assert_eq!(written(&third.events).escape_ascii().to_string(), settled.escape_ascii().to_string());
});
