//! `PERFFLOW_OPTIONS`, and the beginning of recording with the first woven function that runs.
//!
//! A program that runs no woven function leaves no file. Under `weft run` functions are part of the run; the options still apply to their
//! events. `libweft` parses the options and writes the file.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use weftline::front::c::session::{Ask, ask, is_supervised, perfflow, say};
use weftline::front::{self, Table};
use weftline::locate;

/// Nobody has looked whether recording must begin.
const NOT_YET: u32 = 0;
/// Somebody has: what the recorder says is what counts.
const LOOKED: u32 = 1;
/// The user wants nothing.
const OFF: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(NOT_YET);
/// Bits of [`perfflow`].
static OPTIONS: AtomicI32 = AtomicI32::new(0);

/// Spans as one event?
pub(crate) fn is_compact() -> bool {
    OPTIONS.load(Ordering::Relaxed) & perfflow::COMPACT != 0
}

/// Do spans tell what they used, even where the recorder does not ask for it?
pub(crate) fn wants_usage() -> bool {
    OPTIONS.load(Ordering::Relaxed) & (perfflow::USAGE | perfflow::GPU) != 0
}

/// The recorder, if it records.
#[inline]
pub(crate) fn recording() -> Option<&'static Table> {
    match STATE.load(Ordering::Acquire) {
        LOOKED => locate::recording(),
        OFF => None,
        _ => begin(),
    }
}

/// The user's options, if there are any.
fn given() -> Option<String> {
    std::env::var_os("PERFFLOW_OPTIONS").map(|options| options.to_string_lossy().into_owned())
}

#[cold]
fn begin() -> Option<&'static Table> {
    let options = match given().is_none_or(|options| options.is_empty()) {
        true => perfflow::ENABLED,
        false => ask(Ask::PerfflowOptions, None, None),
    };
    OPTIONS.store(options, Ordering::Relaxed);
    if options & perfflow::ENABLED == 0 {
        STATE.store(OFF, Ordering::Release);
        return None;
    }
    // Two threads may come here at once: the second one joins what the first one began.
    if !weftline::is_on() && !is_supervised() {
        ask(Ask::PerfflowBegin, None, None);
    }
    let table = locate::recording();
    if options & perfflow::GPU != 0 && table.is_some_and(|table| !front::ask_gpu(table)) {
        let why = "NVIDIA's management library (libnvidia-ml.so.1) finds no GPU";
        say([format!("gpu-usage: {why}")]);
    }
    STATE.store(LOOKED, Ordering::Release);
    table
}

/// Children must find the instance path, whether a woven function has run or not; nobody else needs it.
extern "C" fn constructor() {
    if given().is_some_and(|options| options.contains("instance-path")) {
        ask(Ask::PerfflowOptions, None, None);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
