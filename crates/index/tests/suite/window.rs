//! A window of time reads the pages that it needs, and finds what a scan of everything finds.

use std::fs;
use std::path::Path;

use weftline_index::column::Column;
use weftline_index::scan::Effort;
use weftline_index::{Filter, OpenOptions, Request, Run};

/// Start, duration (both µs) and thread of events.
type Event = (i64, Option<i64>, i64);

fn line((ts, dur, tid): Event) -> String {
    let dur = dur.map_or(String::new(), |dur| format!(",\"dur\":{dur}"));
    format!("{{\"name\":\"e\",\"cat\":\"c\",\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"ts\":{ts}{dur}}}\n")
}

fn found(run: &Run, window: Option<(i64, i64)>) -> (Vec<(i64, i64)>, Effort) {
    let filter = window.map_or_else(Filter::default, |(from, to)| Filter {
        from_ns: Some(from * 1000),
        to_ns: Some(to * 1000),
        ..Filter::default()
    });
    let request = Request::of([Column::Ts, Column::Dur]).with(filter);
    let (states, effort) = run
        .scan(&request, Vec::new, |all: &mut Vec<_>, batch| {
            let rows = batch.ints(Column::Ts).iter().zip(batch.ints(Column::Dur).iter());
            all.extend(rows.map(|(ts, dur)| (ts.unwrap_or(-1) / 1000, dur.unwrap_or(0) / 1000)));
        })
        .expect("scanned");
    let mut rows: Vec<_> = states.into_iter().flatten().collect();
    rows.sort_unstable();
    (rows, effort)
}

/// Windows of these events: what is found, and at most how many pages are read.
fn check(directory: &Path, events: &[(i64, i64)], windows: &[(i64, i64, usize)]) {
    let run = Run::open(&[directory.to_owned()], &OpenOptions::default()).expect("opened");
    let (all, effort) = found(&run, None);
    assert_eq!(all.len(), events.len());
    assert_eq!((effort.pages, effort.pages_read), (events.len().div_ceil(8192), events.len().div_ceil(8192)));
    for (from, to, pages) in windows {
        let (rows, effort) = found(&run, Some((*from, *to)));
        let mut expected: Vec<_> = events.iter().copied().filter(|(ts, dur)| *ts < *to && ts + dur >= *from).collect();
        expected.sort_unstable();
        assert_eq!(rows, expected, "{from}..{to}");
        assert!(effort.pages_read <= *pages, "{from}..{to}: {effort:?}");
    }
}

#[test]
fn few_pages_of_an_ordered_trace() {
    let events: Vec<Event> = (0..100_000).map(|n| (n * 10, Some(n % 30), n % 3)).collect();
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("a.pfw"), events.iter().copied().map(line).collect::<String>()).expect("written");
    let plain: Vec<_> = events.iter().map(|(ts, dur, _)| (*ts, dur.unwrap_or(0))).collect();
    let windows = [
        (500_000, 510_000, 2),
        (0, 1, 1),
        (-5, 0, 0),
        (999_990, 1_000_100, 1),
        (1_000_100, 2_000_000, 0),
        (0, 2_000_000, 13),
        (81_910, 81_920, 2),
    ];
    check(directory.path(), &plain, &windows);
}

/// The duration of a span whose end comes pages later widens the page of its begin.
#[test]
fn a_span_that_ends_in_another_page() {
    let mut text = String::from("[\n{\"name\":\"long\",\"ph\":\"B\",\"ts\":5,\"pid\":1,\"tid\":9},\n");
    for n in 1..600_000_i64 {
        text.push_str(&format!("{{\"name\":\"e\",\"ph\":\"X\",\"ts\":{},\"dur\":1,\"pid\":1,\"tid\":1}},\n", n * 10));
    }
    text.push_str("{\"name\":\"long\",\"ph\":\"E\",\"ts\":7000000,\"pid\":1,\"tid\":9}\n]\n");
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("a.json"), text).expect("written");
    let mut events: Vec<_> = (1..600_000).map(|n| (n * 10, 1)).collect();
    events.extend([(5, 6_999_995), (7_000_000, 0)]);
    check(
        directory.path(),
        &events,
        &[(3_000_000, 3_000_010, 2), (6_500_000, 6_500_001, 2), (8_000_000, 9_000_000, 0)],
    );
}

/// Many small files, one per process, that all last as long as the run: their rows are sorted, and ends still find their begins.
#[test]
fn many_processes_side_by_side() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut events = Vec::new();
    for process in 0..40_i64 {
        let mut text = format!("[\n{{\"name\":\"all\",\"ph\":\"B\",\"ts\":{process},\"pid\":{process},\"tid\":1}},\n");
        for n in 1..8_000_i64 {
            let (ts, dur) = (n * 100 + process, n % 7);
            text.push_str(&format!(
                "{{\"name\":\"e\",\"ph\":\"X\",\"ts\":{ts},\"dur\":{dur},\"pid\":{process},\"tid\":1}},\n"
            ));
            events.push((ts, dur));
        }
        text.push_str(&format!("{{\"name\":\"all\",\"ph\":\"E\",\"ts\":900000,\"pid\":{process},\"tid\":1}}\n]\n"));
        events.extend([(process, 900_000 - process), (900_000, 0)]);
        fs::write(directory.path().join(format!("{process}.json")), text).expect("written");
    }
    // Five groups of about eight pages. The first page of each has the spans over everything, the last one where they end; unsorted, all would be
    // read.
    check(directory.path(), &events, &[(400_000, 404_000, 15), (850_000, 850_001, 12), (950_000, 960_000, 0)]);
}
