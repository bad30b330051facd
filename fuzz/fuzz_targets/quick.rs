//! The fast scan agrees with the checked one on any bytes, on a first look and when it knows every shape; and a line that
//! serde_json takes is still the same object when it is made again from its record.
//!
//! `cargo +nightly fuzz run quick -- -max_total_time=60`
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use weftline_format::dialect::Reading;
use weftline_format::quick::{Aside, Quick, Record, rebuild};

/// All that a scan finds, as text.
fn found(quick: &mut Quick, text: &[u8], last: bool) -> (Vec<String>, usize) {
    let out = RefCell::new(Vec::new());
    let used = quick.scan(
        text,
        last,
        &mut |record: &Record<'_>| out.borrow_mut().push(format!("{record:?}")),
        &mut |aside: Aside<'_>| out.borrow_mut().push(format!("{aside:?}")),
    );
    (out.into_inner(), used)
}

/// Equal, where a number may be written in another way.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a != b => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= a.abs() * 1e-15,
            _ => false,
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Lines on which the two can differ by design: keys in disguise, characters that stand for bytes, headers, great depth.
fn is_special(line: &[u8]) -> bool {
    let has = |part: &[u8]| line.windows(part.len()).any(|window| window == part);
    has(b"\\u")
        || line.contains(&0xF4)
        || has(b"traceEvents")
        || line.iter().filter(|b| b"[{".contains(b)).count() > 100
}

fn check_line(line: &[u8], reading: Reading, quick: &mut Quick) {
    let Ok(original @ Value::Object(_)) = serde_json::from_slice::<Value>(line) else { return };
    if original.get("ph").is_none() || is_special(line) {
        return;
    }
    let mut lines = Vec::new();
    quick.scan(line, true, &mut |record| lines.push(rebuild(record, reading)), &mut |aside| {
        panic!("{aside:?} in {}", line.escape_ascii());
    });
    let [again] = lines.as_slice() else { panic!("{} events in {}", lines.len(), line.escape_ascii()) };
    let parsed: Value = serde_json::from_str(again).unwrap_or_else(|e| panic!("{again}: {e}"));
    assert!(same(&original, &parsed), "{} became {again}", line.escape_ascii());
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, text)) = bytes.split_first() else { return };
    let unit_ns = [1, 1000, 1_000_000, 1_000_000_000][usize::from(choice & 3)];
    let own = choice & 4 != 0;
    let reading = if own { Reading::own() } else { Reading { unit_ns, ..Reading::default() } };
    let last = choice & 8 != 0;
    let expected = found(&mut Quick::careful(reading), text, last);
    let mut quick = Quick::new(reading);
    for _ in 0..2 {
        assert_eq!(found(&mut quick, text, last), expected);
    }
    for line in text.split(|b| *b == b'\n') {
        check_line(line, reading, &mut quick);
    }
});
