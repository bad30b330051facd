//! What an event costs in the drain: CPU time from closed segment to freed segment, and bytes in the file.
//!
//! `cargo run --release -p weftline-drain --example drain_speed [EVENTS]`. The program records into an arena through the
//! recorder itself and drains it in the same thread, so that only the time of the drain is counted.
#![allow(clippy::print_stdout, reason = "the numbers are what the example is for")]

use std::error::Error;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use weftline_drain::{Drain, DrainOptions, Live, LiveOptions};
use weftline_recorder::calls::Call;
use weftline_recorder::process::{self, Start};
use weftline_recorder::thread::{self, Fields};
use weftline_recorder::{clock, sys};

/// Records between two looks: two thirds of an arena.
const ROUND: u64 = 40_000;

/// How a workload makes its `n`th record.
type Workload = fn(&[u32], u64) -> (Call, Fields);

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
    });
    let paths: Vec<u32> =
        (0..500).map(|n| process::intern(0, format!("/data/train/part-{n:05}.bin").as_bytes())).collect();

    println!("{:<10} {:>9} {:>12} {:>12}", "workload", "events", "ns/event", "bytes/event");
    let workloads: [(&str, Workload); 2] = [("pread", pread), ("mixed", mixed)];
    for (name, workload) in workloads {
        let size_before = trace_bytes(run)?;
        let mut spent = 0;
        let mut made = 0;
        while made < events {
            for n in made..made + ROUND {
                let (call, fields) = workload(&paths, n);
                let start = clock::ticks();
                // Differing times, as real calls have.
                (0..20 + n % 7).for_each(|_| std::hint::spin_loop());
                thread::record(call, start, clock::ticks(), &fields);
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
fn pread(paths: &[u32], n: u64) -> (Call, Fields) {
    let fields = Fields { path: paths[0], fd: 3, size: 4096, ret: 4096, offset: n as i64 * 4096, ..Fields::NONE };
    (Call::pread64, fields)
}

/// Opens, reads, stats and closes of many files.
fn mixed(paths: &[u32], n: u64) -> (Call, Fields) {
    let spread = (n / 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let path = paths[spread as usize % paths.len()];
    let fields = Fields { path, ..Fields::NONE };
    match n % 4 {
        0 => (Call::openat, Fields { ret: 3 + (spread % 60) as i64, ..fields }),
        1 => (Call::fstat, Fields { fd: 3 + (spread % 60) as i32, ..fields }),
        2 => (Call::read, Fields { fd: 3 + (spread % 60) as i32, size: 65536, ret: (spread % 65536) as i64, ..fields }),
        _ => (Call::close, Fields { fd: 3 + (spread % 60) as i32, ..fields }),
    }
}

fn trace_bytes(run: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(run)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_file() { entry.metadata()?.len() } else { 0 };
    }
    Ok(bytes)
}
