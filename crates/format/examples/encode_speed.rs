//! What encoding costs: `cargo run --release -p weftline-format --example encode_speed`.
//!
//! Two workloads, both made from a fixed random sequence so that sizes repeat exactly: a *regular* one (one thread reads
//! one file in 4 KiB steps) and a *mixed* one (500 files, four threads, five calls). Prints processor time per event
//! for the line and for sealing, and bytes per event before and after.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::hint::black_box;
use std::time::Instant;

use weftline_format::line::LineBuf;
use weftline_format::member::{Deflater, seal};

const EVENTS: usize = 300_000;
const MEMBER_TEXT: usize = 1 << 20;
const REPEATS: usize = 9;

/// A small generator with a fixed seed; the benchmark must not depend on a library's idea of randomness.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

#[derive(Clone, Copy)]
struct Call {
    kind: CallKind,
    tid: u32,
    fd: i64,
    hash: u64,
    start: i64,
    end: i64,
    offset: i64,
    size: i64,
}

#[derive(Clone, Copy)]
enum CallKind {
    Pread,
    Read,
    Write,
    Open,
    Close,
}

fn regular() -> Vec<Call> {
    let mut random = Random(88_172_645_463_325_252);
    let mut now = 1_794_764_744_755_824_123;
    (0..EVENTS as i64)
        .map(|n| {
            // A call of 500 to 900 ns now and then interrupted, and a short loop around it.
            let pause = 60 + random.below(30) as i64;
            let took =
                500 + random.below(400) as i64 + if random.below(100) == 0 { random.below(20_000) as i64 } else { 0 };
            let start = now + pause;
            now = start + took;
            let offset = (n % 4096) * 4096;
            Call {
                kind: CallKind::Pread,
                tid: 22031,
                fd: 3,
                hash: 0x0d6c_6bbd_b835_9188,
                start,
                end: now,
                offset,
                size: 4096,
            }
        })
        .collect()
}

fn mixed() -> Vec<Call> {
    let mut random = Random(88_172_645_463_325_252);
    let files: Vec<u64> = (0..500).map(|_| random.below(u64::MAX)).collect();
    let mut now = [1_794_764_744_755_824_123i64; 4];
    (0..EVENTS)
        .map(|_| {
            let thread = random.below(4) as usize;
            let kind = [CallKind::Pread, CallKind::Read, CallKind::Write, CallKind::Open, CallKind::Close]
                [random.below(5) as usize];
            let file = random.below(500) as usize;
            let start = now[thread] + 100 + random.below(2_000) as i64;
            let end = start + 400 + random.below(30_000) as i64;
            now[thread] = end;
            let size = [512, 4096, 65_536, 1_048_576][random.below(4) as usize];
            let offset = random.below(1 << 20) as i64 * 4096;
            Call { kind, tid: 22031 + thread as u32, fd: 3 + file as i64, hash: files[file], start, end, offset, size }
        })
        .collect()
}

fn write_line(lines: &mut LineBuf, call: &Call) {
    let pid = 22029;
    match call.kind {
        CallKind::Pread => lines
            .complete("pread64", "POSIX", pid, call.tid, call.start, call.end)
            .arg_i64("fd", call.fd)
            .arg_hash("fhash", call.hash)
            .arg_i64("size", call.size)
            .arg_i64("ret", call.size)
            .arg_i64("offset", call.offset)
            .finish(),
        CallKind::Read | CallKind::Write => {
            let name = if matches!(call.kind, CallKind::Read) { "read" } else { "write" };
            lines
                .complete(name, "POSIX", pid, call.tid, call.start, call.end)
                .arg_i64("fd", call.fd)
                .arg_hash("fhash", call.hash)
                .arg_i64("size", call.size)
                .arg_i64("ret", call.size)
                .finish();
        }
        CallKind::Open => lines
            .complete("openat", "POSIX", pid, call.tid, call.start, call.end)
            .arg_hash("fhash", call.hash)
            .arg_i64("flags", 524_288)
            .arg_i64("ret", call.fd)
            .finish(),
        CallKind::Close => lines
            .complete("close", "POSIX", pid, call.tid, call.start, call.end)
            .arg_i64("fd", call.fd)
            .arg_hash("fhash", call.hash)
            .arg_i64("ret", 0)
            .finish(),
    }
}

/// Line and seal time in ns per event, text and file bytes per event.
fn measure(calls: &[Call]) -> [f64; 4] {
    let (mut lines, mut out) = (LineBuf::with_capacity(MEMBER_TEXT + 4096), Vec::new());
    let mut deflater = Deflater::new();
    let (mut line_times, mut seal_times) = (Vec::new(), Vec::new());
    let (mut text, mut file) = (0, 0);
    for _ in 0..REPEATS {
        let (mut line_time, mut seal_time) = (0, 0);
        (text, file) = (0, 0);
        let mut rest = calls;
        let mut seq = 0;
        while !rest.is_empty() {
            lines.clear();
            out.clear();
            let began = Instant::now();
            let mut count = 0;
            while count < rest.len() && lines.len() < MEMBER_TEXT {
                write_line(&mut lines, &rest[count]);
                count += 1;
            }
            let written = Instant::now();
            seal(lines.as_bytes(), count as u32, seq, &mut out, &mut deflater);
            black_box(&out);
            line_time += (written - began).as_nanos();
            seal_time += written.elapsed().as_nanos();
            text += lines.len();
            file += out.len();
            seq += 1;
            rest = &rest[count..];
        }
        line_times.push(line_time);
        seal_times.push(seal_time);
    }
    // Other programs only ever add time: the least is the truest.
    let least = |times: &[u128]| times.iter().min().map_or(0.0, |t| *t as f64);
    [least(&line_times), least(&seal_times), text as f64, file as f64].map(|total| total / calls.len() as f64)
}

fn main() {
    println!(
        "{:<10} {:>9} {:>9} {:>9} {:>10} {:>10}",
        "workload", "line ns", "seal ns", "total ns", "text B/ev", "file B/ev"
    );
    for (name, calls) in [("regular", regular()), ("mixed", mixed())] {
        let [line, seal, text, file] = measure(&calls);
        println!("{name:<10} {line:>9.1} {seal:>9.1} {:>9.1} {text:>10.1} {file:>10.2}", line + seal);
    }
}
