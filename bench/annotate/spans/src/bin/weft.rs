//! Spans of `weftline`. Under `weft run` they are recorded, by itself nothing is.
#![forbid(unsafe_code)]

use std::hint::black_box;
use weftline_bench_spans::{Bench, LOSS, PATH};

#[weftline::trace]
fn annotated(index: u32) {
    black_box(index);
}

fn main() {
    let mut bench = Bench::start();
    bench.measure("0 arguments", |spans| {
        for index in 0..spans {
            let _span = weftline::span!("step");
            black_box(index);
        }
    });
    bench.measure("3 arguments", |spans| {
        for index in 0..spans {
            let _span = weftline::span!("load", index, loss = black_box(LOSS), path = black_box(PATH));
            black_box(index);
        }
    });
    bench.measure("#[trace], 0 arguments", |spans| (0..spans).for_each(annotated));
    bench.tell(None);
}
