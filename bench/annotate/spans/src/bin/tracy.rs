//! Zones of Tracy. No profiler is connected and the client is not on demand: zones stay in its queue, in memory, and are gone with the program.
//!
//! A zone has one number and any amount of text, so two of three arguments are text. It cannot be switched off but when it is compiled.
#![forbid(unsafe_code)]

use std::hint::black_box;
use weftline_bench_spans::{Bench, LOSS, PATH};

fn main() {
    let mut bench = Bench::start();
    let _client = tracy_client::Client::start();
    bench.measure("0 arguments", |spans| {
        for index in 0..spans {
            let _span = tracy_client::span!("step");
            black_box(index);
        }
    });
    bench.measure("3 arguments", |spans| {
        for index in 0..spans {
            let span = tracy_client::span!("load");
            span.emit_value(u64::from(index));
            span.emit_text(&black_box(LOSS).to_string());
            span.emit_text(black_box(PATH));
            black_box(index);
        }
    });
    bench.tell(None);
}
