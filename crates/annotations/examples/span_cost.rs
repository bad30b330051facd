//! What a span costs: prints one JSON object with nanoseconds per span, without arguments and with three.
//!
//! Under `weft run` that is the cost while it is recorded, by itself the cost while nothing is. Each figure is the median of many short
//! rounds, so that a round in which another program had the processor does not count, less the same loop without a
//! span. `span_cost [SPANS] [ROUNDS]`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::hint::black_box;
use std::time::{Duration, Instant};

fn bare(spans: u32) {
    for index in 0..spans {
        black_box(index);
    }
}

fn without_arguments(spans: u32) {
    for index in 0..spans {
        let _span = weftline::span!("step");
        black_box(index);
    }
}

fn with_three(spans: u32) {
    for index in 0..spans {
        let _span = weftline::span!("load", index, loss = 0.5, path = "data/train-00001.npz");
        black_box(index);
    }
}

#[weftline::trace]
fn annotated(index: u32) {
    black_box(index);
}

fn calls(spans: u32) {
    (0..spans).for_each(annotated);
}

/// Nanoseconds per span.
fn median(run: fn(u32), spans: u32, rounds: usize) -> f64 {
    let mut times: Vec<f64> = (0..rounds.max(1))
        .map(|_| {
            // Whoever writes the trace must keep up: a program that does nothing but spans has more of them than a disk can take.
            std::thread::sleep(Duration::from_millis(2));
            let start = Instant::now();
            run(spans);
            start.elapsed().as_nanos() as f64 / f64::from(spans)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let argument = |place| std::env::args().nth(place).and_then(|text| text.parse().ok());
    let spans = argument(1).unwrap_or(500).max(1);
    let rounds = argument(2).unwrap_or(301) as usize;
    let base = median(bare, spans, rounds);
    let cost = |run| (median(run, spans, rounds) - base).max(0.0);
    let (none, three, attribute) = (cost(without_arguments), cost(with_three), cost(calls));
    println!("{{\"0 arguments\": {none:.2}, \"3 arguments\": {three:.2}, \"#[trace], 0 arguments\": {attribute:.2}}}");
}
