//! The summary that `weft run` prints at the end and `weft info` prints again.

use std::collections::BTreeMap;
use std::fmt::Write;

use weftline_format::manifest::{CallTotal, FileTotal, SampleRecord, SpanTotal, State, SupervisorRecord};

use crate::ledger::{self, Direction, Ledger, Unseen};
use crate::signals;
use crate::terminal::{self, Paint};

/// All supervisors' records of a run, added up.
pub(crate) struct Totals {
    pub(crate) processes: usize,
    pub(crate) images: usize,
    pub(crate) events: u64,
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) drain_cpu_ns: u64,
    pub(crate) calls: Vec<CallTotal>,
    pub(crate) spans: Vec<SpanTotal>,
    pub(crate) files: Vec<FileTotal>,
    pub(crate) losses: BTreeMap<String, u64>,
    pub(crate) dropped_members: u64,
    pub(crate) dropped_events: u64,
    pub(crate) untraced: Vec<String>,
    /// Why tracing failed on our side.
    pub(crate) failures: Vec<String>,
    pub(crate) open: bool,
}

impl Totals {
    /// Adds up records.
    pub(crate) fn of(records: &[SupervisorRecord]) -> Totals {
        let mut calls: BTreeMap<(String, String), CallTotal> = BTreeMap::new();
        let mut spans: BTreeMap<(String, String), SpanTotal> = BTreeMap::new();
        let mut files: BTreeMap<String, FileTotal> = BTreeMap::new();
        let mut losses = BTreeMap::new();
        let mut pids = std::collections::BTreeSet::new();
        let mut untraced = BTreeMap::<String, usize>::new();
        for record in records {
            for call in &record.calls {
                let sum = calls.entry((call.cat.clone(), call.name.clone())).or_insert_with(|| CallTotal {
                    name: call.name.clone(),
                    cat: call.cat.clone(),
                    ..CallTotal::default()
                });
                sum.count += call.count;
                sum.time_ns += call.time_ns;
                sum.bytes += call.bytes;
            }
            for span in &record.spans {
                let sum = spans.entry((span.cat.clone(), span.name.clone())).or_insert_with(|| SpanTotal {
                    name: span.name.clone(),
                    cat: span.cat.clone(),
                    ..SpanTotal::default()
                });
                sum.count += span.count;
                sum.time_ns += span.time_ns;
            }
            for file in &record.files {
                let sum = files
                    .entry(file.path.clone())
                    .or_insert_with(|| FileTotal { path: file.path.clone(), ..FileTotal::default() });
                sum.reads += file.reads;
                sum.writes += file.writes;
                sum.read_bytes += file.read_bytes;
                sum.write_bytes += file.write_bytes;
                sum.time_ns += file.time_ns;
            }
            for process in &record.processes {
                pids.insert((process.host.clone(), process.pidns, process.pid, process.start));
                for (reason, count) in &process.drops {
                    *losses.entry(reason.clone()).or_insert(0) += count;
                }
                if let Some(reason) = &process.untraced {
                    // Programs that found no room to say who they are have one record together.
                    let what = match ledger::program(process) {
                        name if name.is_empty() => reason.clone(),
                        name => format!("{name}: {reason}"),
                    };
                    *untraced.entry(what).or_default() += 1;
                }
            }
        }
        let mut calls: Vec<CallTotal> = calls.into_values().collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.time_ns));
        let mut spans: Vec<SpanTotal> = spans.into_values().collect();
        spans.sort_by_key(|span| std::cmp::Reverse(span.time_ns));
        let mut files: Vec<FileTotal> = files.into_values().collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.time_ns));
        let sum = |part: fn(&SupervisorRecord) -> u64| records.iter().map(part).sum();
        Totals {
            processes: pids.len(),
            images: records.iter().map(|record| record.processes.len()).sum(),
            events: records.iter().flat_map(|record| &record.processes).map(|process| process.events).sum(),
            wall_ns: records.iter().map(|record| record.wall_ns).max().unwrap_or(0),
            cpu_ns: sum(|record| record.cpu_ns),
            drain_cpu_ns: sum(|record| record.drain_cpu_ns),
            calls,
            spans,
            files,
            losses,
            dropped_members: sum(|record| record.dropped_members),
            dropped_events: sum(|record| record.dropped_events),
            untraced: untraced
                .into_iter()
                .map(|(what, n)| if n > 1 { format!("{what} (×{n})") } else { what })
                .collect(),
            failures: records.iter().filter_map(failure).collect(),
            open: records.iter().any(|record| record.state == State::Open),
        }
    }

    /// Events that are missing from the trace.
    pub(crate) fn lost(&self) -> u64 {
        self.losses.values().sum()
    }
}

/// Why a supervisor's program was not traced though it should have been. Besides what the supervisor says of itself: a program that ended without
/// a word, traced or not, is one that the library never came to.
fn failure(record: &SupervisorRecord) -> Option<String> {
    let silent = || {
        let ended = record.exit.is_some() && record.state == State::Complete;
        let known = record.processes.iter().any(|process| process.ppid == record.pid || process.untraced.is_some());
        (ended && !known).then(|| {
            "the program left no record: it ended before its first call, or its loader refused the library".to_owned()
        })
    };
    record.failure.clone().or_else(silent)
}

/// How the program ended: `status 3`, `SIGKILL (signal 9)`; of several, each way with their number.
fn endings(records: &[SupervisorRecord]) -> Option<String> {
    let mut ways: BTreeMap<String, usize> = BTreeMap::new();
    for exit in records.iter().filter_map(|record| record.exit) {
        let way = match (exit.code, exit.signal) {
            (_, Some(signal)) => format!("killed by {} (signal {signal})", signals::name(signal)),
            (Some(code), None) => format!("exit status {code}"),
            (None, None) => continue,
        };
        *ways.entry(way).or_default() += 1;
    }
    let many = records.len() > 1;
    let told = ways.into_iter().map(|(way, n)| if many { format!("{way} (×{n})") } else { way });
    Some(told.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

/// The most memory that one process had, and which.
fn peak(records: &[SupervisorRecord]) -> Option<String> {
    let processes = records.iter().flat_map(|record| &record.processes);
    let most = processes.max_by_key(|process| process.max_rss).filter(|process| process.max_rss > 0)?;
    Some(format!("{} at most in one process ({})", terminal::bytes(most.max_rss), ledger::program(most)))
}

/// The summary as text.
pub(crate) fn text(where_: &str, trace_bytes: u64, records: &[SupervisorRecord], paint: Paint) -> String {
    let totals = Totals::of(records);
    let mut out = String::new();
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(out, "{}  {value}", paint.dim(&format!("{label:>9}")));
    };
    row("run", &paint.strong(where_));
    for samples in records.iter().filter_map(|record| record.samples.as_ref()) {
        row("sampled", &sampled(samples));
    }
    if !records.is_empty() && records.iter().all(SupervisorRecord::only_samples) {
        if totals.open {
            row("open", "the collector is still at work");
        }
        return out;
    }
    let per_event = if totals.events > 0 {
        format!(", {:.1} bytes an event", trace_bytes as f64 / totals.events as f64)
    } else {
        String::new()
    };
    row(
        "time",
        &format!(
            "{} wall, {} CPU; tracing took {} CPU beside it",
            terminal::time(totals.wall_ns),
            terminal::time(totals.cpu_ns),
            terminal::time(totals.drain_cpu_ns)
        ),
    );
    if let Some(peak) = peak(records) {
        row("memory", &terminal::printable(&peak));
    }
    if let Some(ending) = endings(records) {
        let fine = records.iter().filter_map(|record| record.exit).all(|exit| exit.code == Some(0));
        row("ended", &if fine { ending } else { paint.strong(&ending) });
    }
    for failure in &totals.failures {
        row("untraced", &paint.bad(&terminal::printable(failure)));
    }
    row(
        "traced",
        &format!(
            "{} events of {} {} ({} images); {}{per_event}",
            terminal::count(totals.events),
            totals.processes,
            if totals.processes == 1 { "process" } else { "processes" },
            totals.images,
            terminal::bytes(trace_bytes)
        ),
    );
    let lost = totals.lost();
    if lost == 0 {
        row("lost", &paint.good("nothing"));
    } else {
        let reasons: Vec<String> =
            totals.losses.iter().map(|(reason, n)| format!("{} {reason}", terminal::count(*n))).collect();
        row("lost", &paint.bad(&format!("{} events ({})", terminal::count(lost), reasons.join(", "))));
    }
    if totals.dropped_members > 0 {
        row(
            "dropped",
            &format!(
                "the oldest {} events ({} members), to keep within --max-size",
                terminal::count(totals.dropped_events),
                totals.dropped_members
            ),
        );
    }
    let ledger = ledger::ledger(records);
    row("coverage", &coverage(&ledger));
    let unseen: Vec<String> = ledger.unseen.iter().map(Unseen::sentence).collect();
    for absent in records.iter().filter_map(|record| record.kernel.as_ref()).flat_map(|kernel| &kernel.absent) {
        row("kernel", &paint.strong(&format!("--kernel does not tell: {}", terminal::printable(absent))));
    }
    // What failed as a whole was said above.
    let untraced = if totals.failures.is_empty() { &totals.untraced[..] } else { &[] };
    for (label, sentences) in [("unseen", &unseen[..]), ("untraced", untraced)] {
        for sentence in sentences.iter().take(5) {
            row(label, &terminal::printable(sentence));
        }
        if sentences.len() > 5 {
            row(label, &format!("… and {} more; weft check lists them", sentences.len() - 5));
        }
    }
    if totals.open {
        row("open", "processes of this run are still running; weft info shows them when they are done");
    }
    if totals.events > 0 {
        let _ = write!(out, "\n{}", calls("calls by time", totals.calls.iter().take(8), paint));
        let mut by_bytes: Vec<&CallTotal> = totals.calls.iter().filter(|call| call.bytes > 0).collect();
        by_bytes.sort_by_key(|call| std::cmp::Reverse(call.bytes));
        if !by_bytes.is_empty() {
            let _ = write!(out, "\n{}", calls("calls by bytes", by_bytes.into_iter().take(5), paint));
        }
        if !totals.spans.is_empty() {
            let _ = write!(out, "\n{}", spans(totals.spans.iter().take(10), paint));
        }
        // Pipes and sockets take time too, but a name like `pipe:[105364]` helps nobody while there are files to show.
        let (named, nameless): (Vec<&FileTotal>, Vec<&FileTotal>) =
            totals.files.iter().partition(|file| file.path.starts_with('/'));
        let shown = if named.is_empty() { nameless } else { named };
        if !shown.is_empty() {
            let _ = write!(out, "\n{}", files(&shown, paint));
        }
    }
    out
}

/// `1,204 samples of 5 processes and the host, every 500 ms`
fn sampled(samples: &SampleRecord) -> String {
    let mut text = format!(
        "{} samples: {}, every {}",
        terminal::count(samples.samples),
        terminal::printable(&samples.what),
        terminal::time(samples.interval_ns)
    );
    if samples.not_followed > 0 {
        text.push_str(&format!(
            "; {} processes not followed: too many open files",
            terminal::count(samples.not_followed)
        ));
    }
    for (reason, count) in &samples.lost {
        text.push_str(&format!("; {} lost: {reason}", terminal::count(*count)));
    }
    text
}

/// `99.8% of 1.2 GiB read, 100% of 34 MiB written, as the kernel counts`
pub(crate) fn coverage(ledger: &Ledger) -> String {
    let part = |direction: Option<Direction>, verb: &str| {
        direction.map(|direction| match (direction.countable(), direction.percent()) {
            (Some(countable), Some(percent)) => {
                format!("{}% of {} {verb}", (percent * 10.0).floor() / 10.0, terminal::bytes(countable))
            }
            (Some(_), None) => format!("nothing {verb}"),
            (None, _) => format!("unknown what was {verb}"),
        })
    };
    let (Some(read), Some(write)) = (part(ledger.tree_read, "read"), part(ledger.tree_write, "written")) else {
        return "not known before the run is complete".into();
    };
    match ledger.uncounted().next() {
        Some(_) => format!("unknown: bytes went where no counter shows them; of the rest {read}, {write}"),
        None => format!("{read}, {write}, as the kernel counts"),
    }
}

fn calls<'a>(title: &str, calls: impl Iterator<Item = &'a CallTotal>, paint: Paint) -> String {
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
    heading(&terminal::table(&rows, "  "), paint)
}

fn spans<'a>(spans: impl Iterator<Item = &'a SpanTotal>, paint: Paint) -> String {
    let mut rows =
        vec![vec!["spans by time".to_owned(), "count".into(), "time".into(), "mean".into(), "category".into()]];
    for span in spans {
        rows.push(vec![
            shortened(&terminal::printable(&span.name), 56),
            terminal::count(span.count),
            terminal::time(span.time_ns),
            terminal::time(span.time_ns / span.count.max(1)),
            if span.cat.is_empty() { "-".into() } else { shortened(&terminal::printable(&span.cat), 24) },
        ]);
    }
    heading(&terminal::table(&rows, "  "), paint)
}

fn files(files: &[&FileTotal], paint: Paint) -> String {
    let mut rows = vec![vec![
        "files by time".to_owned(),
        "reads".into(),
        "writes".into(),
        "read".into(),
        "written".into(),
        "time".into(),
    ]];
    for file in files.iter().take(8) {
        rows.push(vec![
            shortened(&terminal::printable(&file.path), 56),
            terminal::count(file.reads),
            terminal::count(file.writes),
            terminal::bytes(file.read_bytes),
            terminal::bytes(file.write_bytes),
            terminal::time(file.time_ns),
        ]);
    }
    heading(&terminal::table(&rows, "  "), paint)
}

/// The first line of a table stands out.
fn heading(table: &str, paint: Paint) -> String {
    match table.split_once('\n') {
        Some((first, rest)) => format!("{}\n{rest}", paint.dim(first)),
        None => table.to_owned(),
    }
}

/// The end of a path says most.
fn shortened(path: &str, width: usize) -> String {
    let length = path.chars().count();
    if length <= width {
        path.to_owned()
    } else {
        format!("…{}", path.chars().skip(length - width + 1).collect::<String>())
    }
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
        let text = text("run", 0, records, paint);
        let lines = text.lines().skip_while(|line| !line.contains("spans by time")).take_while(|line| !line.is_empty());
        let lines: Vec<String> = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, expected, "{text}");
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
