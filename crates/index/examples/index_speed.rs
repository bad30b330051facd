//! Measures the index without the analysis above it: `index_speed WHAT RUN…`, under callgrind or `time`.
//!
//! `cold` builds the index anew; `scan` reads the columns of a report from it, `window` those of one hundredth of the run's time; `pairs` reads the columns of
//! a grouping by category and name from the traces themselves.
#![allow(clippy::print_stdout, reason = "a program that prints what it found")]

use std::path::PathBuf;
use weftline_index::column::Column;
use weftline_index::{Filter, OpenOptions, Request, Run};

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().expect("cold, pairs, scan or window");
    let runs: Vec<PathBuf> = args.map(PathBuf::from).collect();
    if what == "cold" {
        Run::remove_index(&runs, &[]).expect("removed");
    }
    let options = OpenOptions { no_index: what == "pairs", ..OpenOptions::default() };
    let run = Run::open(&runs, &options).expect("opened");
    if what == "cold" {
        println!("{} rows, {} bytes", run.index()[0].rows, run.index()[0].bytes);
        return;
    }
    let size = Column::SIZE;
    let ret = Column::RET;
    let mut columns = vec![Column::Phase, Column::Name, Column::Cat, Column::Dur, size, ret];
    if what != "pairs" {
        columns.extend([Column::Ts, Column::Process, Column::Tid, Column::File]);
    }
    let mut filter = Filter::default();
    if what == "window" {
        let (from, to) = run.times().spans.expect("spans");
        let middle = from + (to - from) / 2;
        filter = Filter { from_ns: Some(middle), to_ns: Some(middle + (to - from) / 100), ..Filter::default() };
    }
    let (states, effort) = run
        .scan(
            &Request::of(columns).with(filter),
            || (0, 0),
            |all: &mut (u64, i64), batch| {
                all.0 += batch.rows() as u64;
                all.1 += batch.ints(Column::Dur).values().iter().sum::<i64>();
            },
        )
        .expect("scanned");
    println!("{states:?} {effort:?}");
}
