//! Local spans of fastrace, below one root a round, with a reporter that keeps none of them but their number.
//!
//! A thread collects at most 10,240 spans below a root, so a program has roots; the cost of one is shared by its round's spans. Properties are text.
#![forbid(unsafe_code)]

use fastrace::collector::{Config, Reporter, SpanRecord};
use fastrace::prelude::{LocalSpan, Span, SpanContext};
use std::borrow::Cow;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use weftline_bench_spans::{Bench, LOSS, PATH};

const ROOT: &str = "round";
static REPORTED: AtomicU64 = AtomicU64::new(0);

struct Count;

impl Reporter for Count {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        let ours = spans.iter().filter(|span| span.name != ROOT).count();
        REPORTED.fetch_add(ours as u64, Ordering::Relaxed);
    }
}

fn without_arguments(spans: u32) {
    for index in 0..spans {
        let _span = LocalSpan::enter_with_local_parent("step");
        black_box(index);
    }
}

fn with_three(spans: u32) {
    for index in 0..spans {
        let _span = LocalSpan::enter_with_local_parent("load").with_properties(|| {
            [
                ("index", Cow::Owned(index.to_string())),
                ("loss", Cow::Owned(black_box(LOSS).to_string())),
                ("path", Cow::Borrowed(black_box(PATH))),
            ]
        });
        black_box(index);
    }
}

/// A round of a program that traces; without a root, which such a program has none of while nothing is reported, spans do nothing.
fn round(on: bool, run: fn(u32)) -> impl FnMut(u32) {
    move |spans| {
        if on {
            let root = Span::root(ROOT, SpanContext::random());
            let _parent = root.set_local_parent();
            run(spans);
        } else {
            run(spans);
        }
    }
}

fn main() {
    let mut bench = Bench::start();
    let on = bench.is_on();
    if on {
        fastrace::set_reporter(Count, Config::default());
    }
    bench.measure("0 arguments", round(on, without_arguments));
    bench.measure("3 arguments", round(on, with_three));
    fastrace::flush();
    bench.tell(on.then(|| REPORTED.load(Ordering::Relaxed)));
}
