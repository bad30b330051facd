//! What an event costs in the drain: CPU time from closed segment to freed segment, and bytes in the file.
//!
//! `cargo run --release -p weftline-drain --example drain_speed [EVENTS]`. The program records into an arena through the
//! recorder itself and drains it in the same thread, so that only the time of the drain is counted.
#![allow(clippy::print_stdout, reason = "the numbers are what the example is for")]

use std::error::Error;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use weftline_calls::Call;
use weftline_drain::{Drain, DrainOptions, Live, LiveOptions};
use weftline_recorder::annotation::{Argument, Event, EventKind, Payload};
use weftline_recorder::process::{self, Start};
use weftline_recorder::thread::{self, Fields};
use weftline_recorder::{clock, sys};

/// Records between two looks: two thirds of an arena, when each takes one slot.
const ROUND: u64 = 20_000;

/// Makes the `n`th record of a workload, of something that began at the given ticks.
type Workload = fn(&Names, u64, u64);

/// Name ids that the workloads use.
struct Names {
    paths: Vec<u32>,
    spans: Vec<u32>,
    category: u32,
    keys: [u32; 3],
}

fn main() -> Result<(), Box<dyn Error>> {
    let events: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let directory = tempfile::tempdir()?;
    let run = directory.path();
    let live = Live::create(run, &LiveOptions { run_id: "speed".to_owned(), ..LiveOptions::default() })?;
    let mut drain = Drain::new(live, run, DrainOptions { workers: Some(0), ..DrainOptions::default() })?;
    let random = [7u8; 16];
    process::start(&Start {
        live: drain.directory().as_os_str().as_bytes(),
        gettime: Some(libc::clock_gettime),
        variable: &|_| None,
        random: random.as_ptr(),
        late: true,
    });
    let intern = |text: &str| process::intern(0, text.as_bytes());
    let names = Names {
        paths: (0..500).map(|n| intern(&format!("/data/train/part-{n:05}.bin"))).collect(),
        spans: ["epoch", "forward", "backward", "optimizer.step", "load_batch"].map(intern).to_vec(),
        category: intern("compute"),
        keys: ["step", "loss", "phase"].map(intern),
    };

    println!("{:<10} {:>9} {:>12} {:>12}", "workload", "events", "ns/event", "bytes/event");
    let workloads: [(&str, Workload); 4] =
        [("pread", pread), ("mixed", mixed), ("span", span), ("span+3", span_with_arguments)];
    for (name, workload) in workloads {
        let size_before = trace_bytes(run)?;
        let mut spent = 0;
        let mut made = 0;
        while made < events {
            for n in made..made + ROUND {
                let start = clock::ticks();
                // Differing times, as real calls have.
                (0..20 + n % 7).for_each(|_| std::hint::spin_loop());
                workload(&names, n, start);
            }
            made += ROUND;
            let before = sys::clock(libc::CLOCK_THREAD_CPUTIME_ID);
            for _ in 0..3 {
                drain.poll();
            }
            spent += sys::clock(libc::CLOCK_THREAD_CPUTIME_ID) - before;
        }
        let bytes = trace_bytes(run)? - size_before;
        println!("{name:<10} {made:>9} {:>12.1} {:>12.2}", spent as f64 / made as f64, bytes as f64 / made as f64);
    }
    Ok(())
}

/// 4 KiB reads of one file, one after the other.
fn pread(names: &Names, n: u64, start: u64) {
    let fields = Fields { path: names.paths[0], fd: 3, size: 4096, ret: 4096, offset: n as i64 * 4096, ..Fields::NONE };
    thread::record(Call::pread64, start, clock::ticks(), &fields);
}

/// Opens, reads, stats and closes of many files.
fn mixed(names: &Names, n: u64, start: u64) {
    let spread = (n / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let path = names.paths[spread as usize % names.paths.len()];
    let fields = Fields { path, ..Fields::NONE };
    let fd = 3 + (spread % 60) as i32;
    let (call, fields) = match n % 4 {
        0 => (Call::openat, Fields { ret: i64::from(fd), ..fields }),
        1 => (Call::fstat, Fields { fd, ..fields }),
        2 => (Call::read, Fields { fd, size: 65536, ret: (spread % 65536) as i64, ..fields }),
        _ => (Call::close, Fields { fd, ..fields }),
    };
    thread::record(call, start, clock::ticks(), &fields);
}

/// Spans without arguments.
fn span(names: &Names, n: u64, start: u64) {
    tell(names, n, start, &[]);
}

/// Spans with an integer, a float and a text.
fn span_with_arguments(names: &Names, n: u64, start: u64) {
    let mut payload = Payload::<256>::new();
    payload.add(names.keys[0], Argument::Int(n as i64));
    payload.add(names.keys[1], Argument::Float(1.0 / (1.0 + n as f64)));
    payload.add(names.keys[2], Argument::Text(if n.is_multiple_of(3) { b"warm-up" } else { b"train" }));
    tell(names, n, start, payload.as_bytes());
}

fn tell(names: &Names, n: u64, start: u64, payload: &[u8]) {
    thread::record_annotation(&Event {
        kind: EventKind::Span as u32,
        name: names.spans[n as usize % names.spans.len()],
        category: names.category,
        length: payload.len() as u32,
        start,
        end: clock::ticks(),
        id: 0,
        payload: payload.as_ptr(),
        borrowed: std::marker::PhantomData,
    });
}

fn trace_bytes(run: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(run)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_file() { entry.metadata()?.len() } else { 0 };
    }
    Ok(bytes)
}
