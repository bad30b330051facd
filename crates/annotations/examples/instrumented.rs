//! A program that is instrumented with the crate `tracing`: one line brings its spans and events into the trace.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tracing::{Instrument as _, debug, error, info, info_span, instrument, warn};
use tracing_subscriber::prelude::*;

fn main() {
    tracing_subscriber::registry().with(weftline::layer()).init();
    once();
    every_kind_of_field();
    futures();
    several_threads();
    unusual_lives();
    panics();
    println!("done");
}

/// `load` > `decode`, each entered once: one span each.
#[instrument(name = "load", fields(size))]
fn once() {
    let decode = info_span!(target: "codec", "decode", index = 3);
    decode.in_scope(|| thread::sleep(Duration::from_millis(10)));
    tracing::Span::current().record("size", 12_u64);
    tracing::Span::current().record("size", 13_u64);
}

fn every_kind_of_field() {
    let failed: Result<u8, _> = "x".parse::<u8>();
    let (path, missing) = (std::path::Path::new("/data"), None::<u8>);
    if let Err(error) = &failed {
        error!(target: "values", error = error as &dyn std::error::Error, "cannot read {}", 7);
    }
    warn!(
        name: "named",
        target: "values",
        int = -5,
        large = u64::MAX,
        wide = i128::from(i64::MIN) - 1,
        half = 0.5,
        yes = true,
        text = "a \"quoted\"",
        shown = %path.display(),
        debugged = ?path,
        missing,
        level = "own",
        "message"
    );
}

/// Gives way once.
async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|_| if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[instrument]
async fn fetch(batch: u32) {
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(5));
        pause().await;
    }
    info!("fetched");
}

/// `fetch` and `inline` are polled three times and twice: a span per poll, and their lives.
fn futures() {
    let mut fetch = pin!(fetch(1));
    let mut inline = pin!(pause().instrument(info_span!("inline")));
    let mut context = Context::from_waker(Waker::noop());
    let mut pending = 0;
    while fetch.as_mut().poll(&mut context).is_pending() {
        if pending < 2 {
            let _ = inline.as_mut().poll(&mut context);
        }
        pending += 1;
        thread::sleep(Duration::from_millis(5));
    }
}

/// `shared` is entered by two threads at a time, and by one of them within itself.
fn several_threads() {
    let shared = info_span!("shared");
    thread::scope(|scope| {
        for depth in [1, 2] {
            let shared = shared.clone();
            scope.spawn(move || {
                let _entered = shared.enter();
                if depth == 2 {
                    shared.in_scope(|| thread::sleep(Duration::from_millis(5)));
                }
                thread::sleep(Duration::from_millis(10));
            });
        }
    });
}

/// `context` is never entered; `late` gets a field when it has been left already.
fn unusual_lives() {
    let context = info_span!("context", user = 7);
    drop(context);
    let late = info_span!("late", found = tracing::field::Empty);
    late.in_scope(|| debug!("inside"));
    late.record("found", true);
}

/// `falls` ends by a panic.
fn panics() {
    std::panic::set_hook(Box::new(|_| {}));
    let ended = std::panic::catch_unwind(|| info_span!("falls").in_scope(|| panic!("as planned")));
    println!("{}", ended.is_err());
}
