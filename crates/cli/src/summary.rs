//! The summary that `weft run` prints at the end and `weft info` prints again.

use std::fmt::Write;

use weftline_analysis::coverage::RunTotals;
use weftline_analysis::findings::{Verdict, WallTime};
use weftline_format::manifest::{CallTotal, FileTotal, SampleRecord, SpanTotal, SupervisorRecord};
use weftline_report::head::{self, Head};
use weftline_report::{Property, text};

use crate::terminal::{self, Paint};

/// The summary as text. Without a verdict, the split of the wall time comes from the records alone. `unjudged`: why there is no verdict.
pub(crate) fn text(
    run: &str,
    trace_bytes: u64,
    records: &[SupervisorRecord],
    (verdict, unjudged): (Option<&Verdict>, Option<&str>),
    width: usize,
    paint: Paint,
) -> String {
    let width = width.clamp(60, 200);
    let head = Head::new(records);
    let totals = head.totals();
    let mut out = String::new();
    let headline = verdict.and_then(|verdict| Some((verdict.headline()?, verdict.findings.first())));
    if let Some((headline, worst)) = headline {
        out.push_str(&text::verdict(&headline, worst, width, &paint));
    }
    let mut all = properties(&head, trace_bytes, records, verdict);
    all.extend(unjudged.map(|why| Property { label: "verdict", shown: why.to_owned(), ..Property::hidden("", "") }));
    out.push_str(&text::properties(run, &all, width, &paint));
    if head.only_samples() || totals.events == 0 {
        return out;
    }
    let (waits, on_files): (Vec<&CallTotal>, Vec<&CallTotal>) = totals.calls.iter().partition(|call| call.waits);
    let mut list = |title: &str, some: &[&CallTotal], most: usize| {
        if !some.is_empty() {
            let _ = write!(out, "\n{}", calls(title, some.iter().take(most).copied(), width, paint));
        }
    };
    list("calls by time", &on_files, 8);
    list("waits by time", &waits, 5);
    if !totals.spans.is_empty() {
        let _ = write!(out, "\n{}", spans(totals.spans.iter().take(10), width, paint));
    }
    // Pipes and sockets are no files: time there is spent waiting.
    let named: Vec<&FileTotal> = totals.files.iter().filter(|file| file.path.starts_with('/')).collect();
    if !named.is_empty() {
        let _ = write!(out, "\n{}", files(&named, width, paint));
    }
    out
}

fn properties(
    head: &Head<'_>,
    trace_bytes: u64,
    records: &[SupervisorRecord],
    verdict: Option<&Verdict>,
) -> Vec<Property> {
    let totals = head.totals();
    let line = |label: &'static str, shown: String| Property { label, shown, ..Property::hidden("", "") };
    let mut properties = head.program();
    let wall = verdict.and_then(|verdict| verdict.wall.clone()).or_else(|| WallTime::of_records(records));
    properties.extend(wall.as_ref().map(head::wall_time));
    properties.extend(verdict.and_then(|verdict| verdict.training.as_ref()).map(head::training));
    if !head.only_samples() {
        properties.push(line("I/O", io(totals)));
        properties.push(line("processes", head.processes()));
        properties.push(line("trace", trace(head, trace_bytes)));
    }
    properties.extend(head.overhead());
    properties.extend(head.losses());
    properties.extend(
        records.iter().filter_map(|record| record.samples.as_ref()).map(|samples| line("sampled", sampled(samples))),
    );
    if head.only_samples() && totals.open {
        properties.push(line("open", "the collector is still running".to_owned()));
    }
    properties
}

/// `44.9 KiB read, 12.5 MiB written in 3,989 calls, system files included`
fn io(totals: &RunTotals) -> String {
    let (read, written) = totals.bytes();
    format!(
        "{} read, {} written in {}, system files included",
        terminal::bytes(read),
        terminal::bytes(written),
        terminal::counted(totals.call_count(), "call", "calls")
    )
}

/// `3,989 events, 115.6 KiB, 29.7 bytes an event; nothing lost, coverage 99.9 %`
fn trace(head: &Head<'_>, trace_bytes: u64) -> String {
    let events = head.totals().events;
    let mut out = format!("{}, {}", terminal::counted(events, "event", "events"), terminal::bytes(trace_bytes));
    if events > 0 {
        let _ = write!(out, ", {} bytes per event", terminal::tenths(trace_bytes as f64 / events as f64));
    }
    if let Some(whole) = head.whole() {
        let _ = write!(out, "; {whole}");
    }
    out
}

/// `1,204 samples of 5 processes and the host, every 500 ms`
fn sampled(samples: &SampleRecord) -> String {
    let mut text = format!(
        "{}: {}, every {}",
        terminal::counted(samples.samples, "sample", "samples"),
        terminal::printable(&samples.what),
        terminal::time(samples.interval_ns)
    );
    if samples.not_followed > 0 {
        text.push_str(&format!(
            "; {} not followed: too many open files",
            terminal::counted(samples.not_followed, "process", "processes")
        ));
    }
    for (reason, count) in &samples.lost {
        text.push_str(&format!("; {} lost: {reason}", terminal::count(*count)));
    }
    text
}

fn calls<'a>(title: &str, calls: impl Iterator<Item = &'a CallTotal>, width: usize, paint: Paint) -> String {
    let mut rows = vec![vec![title.to_owned(), "count".into(), "time".into(), "mean".into(), "bytes".into()]];
    for call in calls {
        rows.push(vec![
            call.name.clone(),
            terminal::count(call.count),
            terminal::time(call.time_ns),
            terminal::time(call.time_ns / call.count.max(1)),
            if call.bytes > 0 { terminal::bytes(call.bytes) } else { "-".into() },
        ]);
    }
    table(&rows, width, paint)
}

fn spans<'a>(spans: impl Iterator<Item = &'a SpanTotal>, width: usize, paint: Paint) -> String {
    let mut rows =
        vec![vec!["spans by time".to_owned(), "count".into(), "time".into(), "mean".into(), "category".into()]];
    for span in spans {
        rows.push(vec![
            terminal::printable(&span.name),
            terminal::count(span.count),
            terminal::time(span.time_ns),
            terminal::time(span.time_ns / span.count.max(1)),
            if span.cat.is_empty() { "-".into() } else { text::shorten(&terminal::printable(&span.cat), 24) },
        ]);
    }
    table(&rows, width, paint)
}

fn files(files: &[&FileTotal], width: usize, paint: Paint) -> String {
    let mut rows = vec![vec![
        "files by time".to_owned(),
        "time".into(),
        "read".into(),
        "written".into(),
        "reads".into(),
        "writes".into(),
    ]];
    for file in files.iter().take(8) {
        rows.push(vec![
            terminal::printable(&file.path),
            terminal::time(file.time_ns),
            terminal::bytes(file.read_bytes),
            terminal::bytes(file.write_bytes),
            terminal::count(file.reads),
            terminal::count(file.writes),
        ]);
    }
    table(&rows, width, paint)
}

/// A table that fits; its first line stands out.
fn table(rows: &[Vec<String>], width: usize, paint: Paint) -> String {
    let left: Vec<bool> = (0..rows[0].len()).map(|column| column == 0).collect();
    let lines = text::fit(rows, &left, width.saturating_sub(2)).into_iter().enumerate();
    let painted = lines.map(|(place, line)| if place == 0 { paint.dim(&line) } else { line });
    painted.map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(spans: &[(&str, &str, u64, u64)]) -> SupervisorRecord {
        let total = |(name, cat, count, time_ns): &(&str, &str, u64, u64)| SpanTotal {
            name: (*name).to_owned(),
            cat: (*cat).to_owned(),
            count: *count,
            time_ns: *time_ns,
        };
        let process = weftline_format::manifest::ProcessRecord { events: 1, ..Default::default() };
        SupervisorRecord { spans: spans.iter().map(total).collect(), processes: vec![process], ..Default::default() }
    }

    /// Lines of the table of spans, without the spaces that align it.
    fn check(records: &[SupervisorRecord], expected: &[&str]) {
        let paint = terminal::Terminal::new(crate::args::Color::Never).stdout();
        let text = text("run", 0, records, (None, None), 120, paint);
        let lines = text.lines().skip_while(|line| !line.contains("spans by time")).take_while(|line| !line.is_empty());
        let lines: Vec<String> = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, expected, "{text}");
    }

    /// Whatever the terminal, and whatever the names.
    #[test]
    fn tables_fit() {
        let long = "an annotation with a name that nobody can read in one line of a terminal, however wide it is";
        let mut record =
            record(&[(long, "a category that is long too, longer than a column", 1_000_000, 90_000_000_000)]);
        record.files = vec![FileTotal {
            path: format!("/scratch/project/{}/part-00001.tfrecord", "deep/".repeat(20)),
            reads: 1_000_000,
            writes: 1_000_000,
            read_bytes: 5 << 30,
            write_bytes: 5 << 30,
            time_ns: 90_000_000_000,
        }];
        let paint = terminal::Terminal::new(crate::args::Color::Never).stdout();
        for width in [60, 80, 100, 120, 200] {
            let text = text("run", 0, std::slice::from_ref(&record), (None, Some("not judged")), width, paint);
            let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > width).collect();
            assert!(long.is_empty(), "{width}: {long:#?}");
            assert!(text.contains("verdict  not judged") && text.contains("files by time"), "{text}");
        }
    }

    #[test]
    fn spans_of_all_nodes_are_added_up() {
        let heading = "spans by time count time mean category";
        check(&[record(&[])], &[]);
        check(
            &[
                record(&[("step", "train", 2, 4_000_000), ("load", "data", 1, 5_000_000)]),
                record(&[("step", "train", 2, 4_000_000)]),
            ],
            &[heading, "step 4 8.0 ms 2.0 ms train", "load 1 5.0 ms 5.0 ms data"],
        );
        let many: Vec<(String, u64)> = (1..=12).map(|n| (format!("s{n}"), n)).collect();
        let many: Vec<(&str, &str, u64, u64)> =
            many.iter().map(|(name, n)| (name.as_str(), "", *n, n * 1_000_000)).collect();
        let lines: Vec<String> = (3..=12).rev().map(|n| format!("s{n} {n} {n}.0 ms 1.0 ms -")).collect();
        let lines: Vec<&str> = [heading].into_iter().chain(lines.iter().map(String::as_str)).collect();
        check(&[record(&many)], &lines);
    }
}
