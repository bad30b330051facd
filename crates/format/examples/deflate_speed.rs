//! What compressing costs: `cargo run --release -p weftline-format --example deflate_speed`.
//!
//! Three workloads from a fixed random sequence, so that sizes repeat exactly: *regular* (one thread reads one file in
//! 4 KiB steps), *mixed* (200 files, five calls, four threads that take turns of some 200 calls) and *shuffled* (500
//! files, four threads that take turns at random). Text is compressed in pieces of 1 MiB, as members are. Prints
//! processor time and bytes per event of this crate's encoder (`lines`), of zlib-rs at levels 1 to 3, of libdeflate at level 1, and of ISA-L at level 1: the
//! latter is Debian's command `igzip` (package `isal`), whose whole processes are measured, over the text in one piece.
//!
//! `deflate_speed FILE…` compresses the text of those files instead, and `--only NAME` keeps one compressor: `lines`, `zlib-rs 1` (`2`, `3`), `libdeflate 1` or
//! `igzip 1`.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::hint::black_box;

use flate2::{Compress, Compression, FlushCompress};
use libdeflater::{CompressionLvl, Compressor};
use weftline_format::deflate::LineDeflater;
use weftline_format::line::LineBuf;

const EVENTS: usize = 150_000;
const MEMBER_TEXT: usize = 1 << 20;
const REPEATS: usize = 9;
/// Every repeat goes over the text so often: the clock counts ticks of up to 4 ms.
const ROUNDS: usize = 4;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// Nanoseconds this thread has had of a processor; the kernel brings the number up to date at least every tick.
fn thread_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Nanoseconds of processor time that children which have ended had, to the tick of the kernel.
fn children_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // Children's user and system time are the 16th and 17th field of the line, in hundredths of a second.
    fields.skip(13).take(2).filter_map(|number| number.parse::<u64>().ok()).sum::<u64>() * 10_000_000
}

/// As [`measure`], for `igzip`; nothing where it is not installed.
fn measure_igzip(text: &[u8]) -> std::io::Result<Option<(u64, u64, usize)>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("text");
    std::fs::write(&file, text)?;
    let run = || std::process::Command::new("igzip").args(["-1", "-c"]).arg(&file).output();
    let size = match run() {
        Ok(done) if done.status.success() => done.stdout.len(),
        _ => return Ok(None),
    };
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let began = children_time();
        for _ in 0..4 * ROUNDS {
            black_box(run()?);
        }
        times.push((children_time() - began) / (4 * ROUNDS as u64));
    }
    times.sort_unstable();
    Ok(Some((times[times.len() / 2], times[0], size)))
}

const PID: u32 = 22029;

fn regular() -> Vec<u8> {
    let mut random = Random(88_172_645_463_325_252);
    let mut lines = LineBuf::new();
    let mut now = 1_794_764_744_755_824_123;
    for n in 0..EVENTS as i64 {
        let start = now + 60 + random.below(30) as i64;
        let interrupted = random.below(100) == 0;
        now = start + 500 + random.below(400) as i64 + if interrupted { random.below(20_000) as i64 } else { 0 };
        lines
            .complete("pread64", "POSIX", PID, 22031, start, now)
            .arg_i64("fd", 3)
            .arg_hash("fhash", 0x0d6c_6bbd_b835_9188)
            .arg_i64("size", 4096)
            .arg_i64("ret", 4096)
            .arg_i64("offset", (n % 4096) * 4096)
            .finish();
    }
    lines.into_bytes()
}

struct File {
    hash: u64,
    size: i64,
    offset: i64,
}

/// Threads that take turns of about so many calls on so many files.
fn mixed(file_count: usize, turn: u64) -> Vec<u8> {
    let mut random = Random(88_172_645_463_325_252);
    let mut files: Vec<File> = (0..file_count)
        .map(|_| File { hash: random.below(u64::MAX), size: [512, 4096, 65_536][random.below(3) as usize], offset: 0 })
        .collect();
    let mut now = [1_794_764_744_755_824_123i64; 4];
    let mut lines = LineBuf::new();
    let (mut thread, mut at) = (0, 0);
    for _ in 0..EVENTS {
        if random.below(turn) == 0 {
            thread = random.below(4) as usize;
        }
        // A file is used some times before the next: opened, read, closed.
        if random.below(4) == 0 {
            at = random.below(file_count as u64) as usize;
        }
        let file = &mut files[at];
        let start = now[thread] + 100 + random.below(2_000) as i64;
        let end = start + 400 + random.below(30_000) as i64;
        now[thread] = end;
        let (tid, fd) = (22031 + thread as u32, 3 + at as i64);
        let kind = random.below(8);
        let name = ["read", "write", "pread64", "read", "read", "openat", "close", "stat"][kind as usize];
        let line = lines.complete(name, "POSIX", PID, tid, start, end);
        match kind {
            0..5 => {
                line.arg_i64("fd", fd).arg_hash("fhash", file.hash);
                line.arg_i64("size", file.size).arg_i64("ret", file.size);
                if name == "pread64" {
                    line.arg_i64("offset", file.offset);
                }
                file.offset += file.size;
                line.finish();
            }
            5 => line.arg_hash("fhash", file.hash).arg_i64("flags", 524_288).arg_i64("ret", fd).finish(),
            6 => line.arg_i64("fd", fd).arg_hash("fhash", file.hash).arg_i64("ret", 0).finish(),
            _ => line.arg_hash("fhash", file.hash).arg_i64("ret", -i64::from(random.below(2) == 0)).finish(),
        }
    }
    lines.into_bytes()
}

/// As in `encode_speed`: nothing has to do with anything.
fn shuffled() -> Vec<u8> {
    let mut random = Random(88_172_645_463_325_252);
    let files: Vec<u64> = (0..500).map(|_| random.below(u64::MAX)).collect();
    let mut now = [1_794_764_744_755_824_123i64; 4];
    let mut lines = LineBuf::new();
    for _ in 0..EVENTS {
        let thread = random.below(4) as usize;
        let kind = random.below(5);
        let file = random.below(500) as usize;
        let start = now[thread] + 100 + random.below(2_000) as i64;
        let end = start + 400 + random.below(30_000) as i64;
        now[thread] = end;
        let size = [512, 4096, 65_536, 1_048_576][random.below(4) as usize];
        let offset = random.below(1 << 20) as i64 * 4096;
        let (tid, fd, hash) = (22031 + thread as u32, 3 + file as i64, files[file]);
        let name = ["pread64", "read", "write", "openat", "close"][kind as usize];
        let line = lines.complete(name, "POSIX", PID, tid, start, end);
        match kind {
            0 => line
                .arg_i64("fd", fd)
                .arg_hash("fhash", hash)
                .arg_i64("size", size)
                .arg_i64("ret", size)
                .arg_i64("offset", offset),
            1 | 2 => line.arg_i64("fd", fd).arg_hash("fhash", hash).arg_i64("size", size).arg_i64("ret", size),
            3 => line.arg_hash("fhash", hash).arg_i64("flags", 524_288).arg_i64("ret", fd),
            _ => line.arg_i64("fd", fd).arg_hash("fhash", hash).arg_i64("ret", 0),
        }
        .finish();
    }
    lines.into_bytes()
}

/// Pieces of about the size of a member, cut at line ends.
fn pieces(text: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut pieces) = (text, Vec::new());
    while !rest.is_empty() {
        let least = rest.len().min(MEMBER_TEXT);
        let end = rest[least..].iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| least + at + 1);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Nanoseconds and bytes of all pieces: the median and the least time, as other programs only ever add to it.
fn measure(pieces: &[&[u8]], mut compress: impl FnMut(&[u8], &mut Vec<u8>)) -> (u64, u64, usize) {
    let (mut out, mut times, mut size) = (Vec::new(), Vec::new(), 0);
    for _ in 0..REPEATS {
        let began = thread_time();
        for _ in 0..ROUNDS {
            size = 0;
            for piece in pieces {
                out.clear();
                compress(piece, &mut out);
                size += black_box(&out).len();
            }
        }
        times.push((thread_time() - began) / ROUNDS as u64);
    }
    times.sort_unstable();
    (times[times.len() / 2], times[0], size)
}

fn main() -> std::io::Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let only = match args.iter().position(|arg| arg == "--only") {
        Some(at) => args.drain(at..args.len().min(at + 2)).nth(1),
        None => None,
    };
    let mut workloads: Vec<(String, Vec<u8>)> = Vec::new();
    if args.is_empty() {
        workloads.push(("regular".into(), regular()));
        workloads.push(("mixed".into(), mixed(200, 200)));
        workloads.push(("shuffled".into(), shuffled()));
    }
    for path in args {
        let text = std::fs::read(&path)?;
        workloads.push((path, text));
    }
    println!(
        "{:<10} {:<12} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "workload", "encoder", "median ns", "least ns", "MB/s", "text B/ev", "B/ev"
    );
    for (name, text) in &workloads {
        let pieces = pieces(text);
        let events = text.iter().filter(|byte| **byte == b'\n').count().max(1) as f64;
        for encoder in ["lines", "zlib-rs 1", "zlib-rs 2", "zlib-rs 3", "libdeflate 1", "igzip 1"] {
            if only.as_ref().is_some_and(|only| only != encoder) {
                continue;
            }
            let (median, least, size) = if let Some(level) = encoder.strip_prefix("zlib-rs ") {
                let level = level.parse().unwrap_or(1);
                let mut zlib = Compress::new(Compression::new(level), false);
                measure(&pieces, |piece, out| {
                    zlib.reset();
                    out.reserve(piece.len() + 4096);
                    // The room suffices for any text at these levels, and the stream was reset: it cannot fail.
                    let status = zlib.compress_vec(piece, out, FlushCompress::Finish);
                    assert_eq!(status.ok(), Some(flate2::Status::StreamEnd), "one call takes it all");
                })
            } else if encoder == "libdeflate 1" {
                let mut libdeflate = Compressor::new(CompressionLvl::fastest());
                measure(&pieces, |piece, out| {
                    out.resize(libdeflate.deflate_compress_bound(piece.len()), 0);
                    let length = libdeflate.deflate_compress(piece, out).expect("the room suffices for any text");
                    out.truncate(length);
                })
            } else if encoder == "igzip 1" {
                let Some(measured) = measure_igzip(text)? else {
                    println!("{name:<10} {encoder:<12} not installed (Debian: isal)");
                    continue;
                };
                measured
            } else {
                let mut lines = LineDeflater::new();
                measure(&pieces, |piece, out| lines.deflate(piece, out))
            };
            println!(
                "{name:<10} {encoder:<12} {:>9.1} {:>9.1} {:>9.0} {:>9.1} {:>9.2}",
                median as f64 / events,
                least as f64 / events,
                text.len() as f64 * 1e3 / median as f64,
                text.len() as f64 / events,
                size as f64 / events
            );
        }
    }
    Ok(())
}
