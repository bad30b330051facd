//! What a trace holds and how fast it is read: `cargo run --release -p weftline-format --example read_speed -- FILE…`.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::path::Path;
use std::time::Instant;

use weftline_format::event::Phase;
use weftline_format::reader::{ReadError, read_file, scan_file};

fn main() -> Result<(), ReadError> {
    println!("events\tmetadata\tflaws\tnames\tscan Mev/s\tread Mev/s\tdialect\tfile");
    for file in std::env::args_os().skip(1) {
        let path = Path::new(&file);
        let began = Instant::now();
        let (mut metadata, mut spent) = (0u64, 0i64);
        let scanned = scan_file(path, &mut |event| {
            metadata += u64::from(event.phase == Phase::Metadata);
            spent = spent.wrapping_add(event.dur_ns.unwrap_or(0));
        })?;
        let scan = began.elapsed();
        let began = Instant::now();
        let trace = read_file(path)?;
        let read = began.elapsed();
        assert_eq!(trace.events.len() as u64, scanned.events, "both ways of reading see the same");
        assert_eq!(trace.damage, scanned.damage, "both ways of reading see the same");
        let rate = |time: std::time::Duration| scanned.events as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{}\t{metadata}\t{}\t{}\t{:.2}\t{:.2}\t{}\t{}",
            scanned.events,
            scanned.damage.len(),
            scanned.names.paths().count(),
            rate(scan),
            rate(read),
            scanned.dialect,
            path.display()
        );
        for flaw in scanned.damage.flaws.iter().take(5) {
            println!("\t{flaw}");
        }
    }
    Ok(())
}
