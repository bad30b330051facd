//! How fast lines become records, beside the ordinary scan: `cargo run --release -p weftline-format --example quick_speed
//! [-- FILE…]`. Without a file it makes a million lines as DFTracer writes them. Files are plain text.
//!
//! CPU seconds of the one thread that works, best of seven: other programs on the machine do not count, except by the
//! caches they use up. Short texts are scanned several times over, because the kernel counts in ticks; they show the speed
//! from the cache, as after inflating. The long one comes from memory. With `RECORDS_ONLY` set nothing else is measured.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::fmt::Write as _;
use std::hint::black_box;

use weftline_format::dialect::Reading;
use weftline_format::quick::{Quick, Record};
use weftline_format::reader::scan_member;

const NAMES: [(&str, &str); 20] = [
    ("read", "POSIX"),
    ("pread", "POSIX"),
    ("write", "POSIX"),
    ("open64", "POSIX"),
    ("close", "POSIX"),
    ("lseek64", "POSIX"),
    ("__xstat64", "POSIX"),
    ("opendir", "POSIX"),
    ("fopen64", "STDIO"),
    ("fread", "STDIO"),
    ("fwrite", "STDIO"),
    ("fclose", "STDIO"),
    ("mkdir", "POSIX"),
    ("fsync", "POSIX"),
    ("Framework.iter", "data_loader"),
    ("Computation.step", "compute"),
    ("preprocess", "data_loader"),
    ("TorchDataset.__getitem__", "reader"),
    ("Checkpointing.save", "checkpoint"),
    ("train", "compute"),
];

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn made(lines: usize) -> String {
    let mut out = String::with_capacity(lines * 230);
    out.push_str("[\n");
    let mut state = 88_172_645_463_325_252;
    let mut ts = 1_748_888_121_000_000u64;
    for id in 0..lines {
        let kind = random(&mut state) as usize % NAMES.len();
        let (name, cat) = NAMES[kind];
        ts += random(&mut state) % 50;
        let (pid, dur) = (40_000 + random(&mut state) % 64, random(&mut state) % 3000);
        let host = random(&mut state) % 8 * 0x1234_5678_9abc_def1;
        let file = (random(&mut state) % 5000 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let _ = write!(
            out,
            r#"{{"id":{id},"name":"{name}","cat":"{cat}","pid":{pid},"tid":{},"ts":{ts},"dur":{dur},"ph":"X","args":{{"hhash":"{host:016x}","p_idx":{},"level":{}"#,
            pid + random(&mut state) % 4,
            random(&mut state) % 1000,
            random(&mut state) % 3 + 1,
        );
        let (size, fd) = (random(&mut state) % 1_048_576, random(&mut state) % 64 + 3);
        let _ = match kind {
            0..3 => write!(out, r#","fhash":"{file:016x}","fd":{fd},"size":{size},"ret":{size},"offset":{}"#, size * 7),
            3 | 8 => write!(out, r#","fhash":"{file:016x}","flags":"O_RDONLY","mode":438,"ret":{fd}"#),
            4 | 11 | 13 => write!(out, r#","fhash":"{file:016x}","fd":{fd},"ret":0"#),
            5 => write!(out, r#","fhash":"{file:016x}","fd":{fd},"offset":{size},"whence":0,"ret":{size}"#),
            6 | 7 | 12 => write!(out, r#","fhash":"{file:016x}","ret":-1"#),
            9 | 10 => write!(out, r#","fhash":"{file:016x}","size":{size},"ret":{size}"#),
            14..18 => write!(out, r#","epoch":{},"step":{},"image_idx":{size},"image_size":150000"#, fd % 5, fd),
            _ => write!(out, r#","epoch":{},"loss":0.{size},"note":"a b""#, fd % 5),
        };
        out.push_str("}}\n");
    }
    out
}

/// CPU time of this thread in ns, as the kernel counts it.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn best(text: &[u8], mut work: impl FnMut() -> u64) -> (u64, f64) {
    let passes = (200_000_000 / text.len().max(1)).max(1) as u64;
    let (mut events, mut time) = (0, u64::MAX);
    for _ in 0..7 {
        let before = cpu_ns();
        for _ in 0..passes {
            events = work();
        }
        time = time.min(cpu_ns() - before);
    }
    (events, (events * passes) as f64 / time as f64 * 1e3)
}

fn sum(record: &Record<'_>) -> i64 {
    let fixed = record.start_ns.unwrap_or(0) ^ record.dur_ns.unwrap_or(0) ^ record.pid;
    let text = record.name.len() + record.fhash.map_or(0, str::len) + record.rest.len();
    record.integers.iter().fold(fixed ^ text as i64, |sum, v| sum ^ v)
}

fn check(name: &str, text: &[u8]) {
    let reading = Reading::of(&text[..text.len().min(1 << 18)]);
    let quick = |reading: Reading| {
        best(text, || {
            let (mut events, mut total) = (0, 0);
            let mut quick = Quick::new(reading);
            let each = &mut |record: &Record<'_>| {
                events += 1;
                total ^= sum(record);
            };
            quick.scan(text, true, each, &mut |aside| drop(black_box(aside)));
            black_box(total);
            events
        })
    };
    if std::env::var_os("RECORDS_ONLY").is_some() {
        let records = quick(reading);
        println!("{name}\t{}\t\t{:.2}", records.0, records.1);
        return;
    }
    let view = best(text, || {
        let mut events = 0;
        scan_member(text, &mut |event| {
            events += 1;
            black_box(event.start_ns);
        });
        events
    });
    let columns = best(text, || {
        let mut events = 0;
        scan_member(text, &mut |event| {
            events += 1;
            for key in ["fhash", "hhash"] {
                black_box(event.arg_str(key));
            }
            for key in ["fd", "size", "ret", "offset"] {
                black_box(event.arg_i64(key));
            }
        });
        events
    });
    let records = quick(reading);
    let bytes = text.len() as f64 / records.0.max(1) as f64;
    println!("{name}\t{}\t{bytes:.0}\t{:.2}\t{:.2}\t{:.2}", records.0, records.1, view.1, columns.1);
}

fn main() -> std::io::Result<()> {
    println!("text\tevents\tbytes/event\trecords M/s\tevent views M/s\tviews and 6 arguments M/s");
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        check("made", made(1_000_000).as_bytes());
        check("made, short", made(4_500).as_bytes());
    }
    for file in files {
        check(&file.to_string_lossy(), &std::fs::read(&file)?);
    }
    Ok(())
}
