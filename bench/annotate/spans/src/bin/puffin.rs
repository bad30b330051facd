//! Scopes of puffin, below one scope and in one frame a round, with a sink that drops frames and keeps the number of their scopes.
//!
//! A scope without another around it goes to the global profiler by itself, which costs more; programs have one around each frame. A scope has one
//! text for all arguments.
#![forbid(unsafe_code)]

use puffin::GlobalProfiler;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weftline_bench_spans::{Bench, LOSS, PATH};

fn without_arguments(spans: u32) {
    puffin::profile_scope!("round");
    for index in 0..spans {
        puffin::profile_scope!("step");
        black_box(index);
    }
}

fn with_three(spans: u32) {
    puffin::profile_scope!("round");
    for index in 0..spans {
        puffin::profile_scope!("load", format!("index={index} loss={} path={}", black_box(LOSS), black_box(PATH)));
        black_box(index);
    }
}

/// A round is a frame.
fn round(run: fn(u32)) -> impl FnMut(u32) {
    move |spans| {
        run(spans);
        GlobalProfiler::lock().new_frame();
    }
}

fn main() {
    let mut bench = Bench::start();
    let on = bench.is_on();
    let seen = Arc::new(AtomicU64::new(0));
    let scopes = Arc::clone(&seen);
    GlobalProfiler::lock().add_sink(Box::new(move |frame| {
        scopes.fetch_add(frame.meta().num_scopes as u64, Ordering::Relaxed);
    }));
    puffin::set_scopes_on(on);
    bench.measure("0 arguments", round(without_arguments));
    bench.measure("3 arguments", round(with_three));
    // One scope of each round is the one around the others.
    let recorded = seen.load(Ordering::Relaxed).saturating_sub(bench.rounds_made());
    bench.tell(on.then_some(recorded));
}
