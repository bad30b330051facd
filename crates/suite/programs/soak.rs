//! `make soak`: kills at random moments, attacks in between, and a table of what was seen. `WEFT_SOAK_KILLS` says how many, 2,000 by default;
//! `WEFT_TEST_SEED` repeats a round that failed.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command line tool")]

use std::process::ExitCode;
use std::time::Instant;

use weftline_testkit::random::Random;
use weftline_testkit::soak::{Sums, round};

/// Rounds that fail before the rest is not worth the time.
const ENOUGH: usize = 10;

fn main() -> ExitCode {
    let kills = match std::env::var("WEFT_SOAK_KILLS").map(|text| text.parse::<u64>()) {
        Err(_) => 2000,
        Ok(Ok(kills)) => kills,
        Ok(Err(error)) => {
            eprintln!("soak: WEFT_SOAK_KILLS: {error}");
            return ExitCode::from(2);
        }
    };
    let Ok(scribbler) = std::env::current_exe().map(|own| own.with_file_name("scribbler")) else {
        eprintln!("soak: where am I?");
        return ExitCode::from(2);
    };
    let (began, first) = (Instant::now(), Random::new().seed);
    let mut sums = Sums::default();
    let mut shown = 0;
    for kill in 0..kills {
        round(first.wrapping_add(kill), &scribbler, &mut sums);
        for fault in &sums.faults[shown..] {
            eprintln!("soak: {fault}");
        }
        shown = sums.faults.len();
        if shown >= ENOUGH {
            break;
        }
        if kill % 100 == 99 {
            eprintln!("soak: {} of {kills} kills, {} s", kill + 1, began.elapsed().as_secs());
        }
    }
    println!("{}", sums.table(first, began.elapsed()));
    if sums.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
