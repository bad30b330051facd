//! What samples tell in a report: of `weft collect` alone, and in all forms. `samples/*.txt` are what people see, reviewed by eye.

use std::fmt::Write as _;
use std::fs;

use weftline_analysis::findings::Config;
use weftline_analysis::pass;
use weftline_analysis::samples::Samples;
use weftline_analysis::summary::Question;
use weftline_index::{OpenOptions, Run};
use weftline_report::text::Plain;
use weftline_report::{Report, csv, html, json, make, parquet, sampled, sqlite, text};

/// When traces begin, µs since the epoch.
const EPOCH: i64 = 1_700_000_000_000_000;
const TICK: i64 = 500_000;
const TICKS: i64 = 20;

struct Trace {
    lines: String,
}

impl Trace {
    fn identity(&mut self, pid: i64, host: &str, nonce: &str, command: &[&str]) {
        let words: Vec<String> = command.iter().map(|word| format!("\"{word}\"")).collect();
        let (name, words) = (if pid == 0 { host.to_owned() } else { command.join(" ") }, words.join(","));
        self.line(&format!(
            r#"{{"name":"process_name","cat":"weft","ph":"M","pid":{pid},"tid":{pid},"ts":{EPOCH},"args":{{"name":"{name}","host":"{host}","hhash":"h{host}","boot":"b","start":{pid},"nonce":"{nonce}","cmd":[{words}],"seq":0}}}}"#
        ));
    }

    fn sample(&mut self, pid: i64, cat: &str, name: &str, tick: i64, args: &str) {
        let start = EPOCH + tick * TICK;
        self.line(&format!(
            r#"{{"name":"{name}","cat":"{cat}","ph":"C","pid":{pid},"tid":{pid},"ts":{start},"dur":{TICK},"args":{{{args}}}}}"#
        ));
    }

    fn line(&mut self, line: &str) {
        writeln!(self.lines, "{line}").expect("a string");
    }
}

/// Ten seconds of a machine on which a training job reads, computes and writes.
fn lines(hosts: &[&str]) -> String {
    let mut trace = Trace { lines: "[\n".to_owned() };
    for (place, host) in hosts.iter().enumerate() {
        trace.identity(0, host, &format!("samples-{place}"), &[]);
        for tick in 0..TICKS {
            let busy = 10 + 4 * tick;
            trace.sample(
                0,
                "sys",
                "cpu",
                tick,
                &format!(r#""user_pct":{busy}.0,"idle_pct":{}.0,"iowait_pct":5.0"#, 95 - busy),
            );
            let free = 12_000_000 - 300_000 * tick;
            trace.sample(
                0,
                "sys",
                "memory",
                tick,
                &format!(r#""MemTotal":16000000,"MemAvailable":{free},"Cached":2000000,"Dirty":{}"#, 1000 * tick),
            );
            let read = if tick < 8 { 64 << 20 } else { 0 };
            trace.sample(
                0,
                "io",
                "nvme0n1",
                tick,
                &format!(r#""bytes_read":{read},"bytes_written":0,"busy_pct":{}.0"#, if tick < 8 { 80 } else { 0 }),
            );
            trace.sample(0, "net", "eth0", tick, r#""bytes_recv":0,"bytes_sent":0"#);
            trace.sample(
                0,
                "sys",
                "pressure-io",
                tick,
                &format!(r#""some_ns":0,"some_pct":{}.0,"full_ns":0,"full_pct":0.0"#, if tick < 8 { 12 } else { 0 }),
            );
            trace.sample(
                0,
                "gpu",
                "gpu0",
                tick,
                &format!(
                    r#""busy_pct":{}.0,"memory_used_bytes":{},"memory_total_bytes":85899345920"#,
                    5 * tick,
                    40_i64 << 30
                ),
            );
            trace.sample(
                0,
                "energy",
                "rapl:0 package-0",
                tick,
                &format!(r#""energy_uj":{},"power_w":{}.0"#, 500_000 * (40 + tick), 40 + tick),
            );
        }
        for (pid, command) in [(100, "python3 train.py"), (101, "python3 train.py"), (102, "tar x")] {
            trace.identity(pid, host, "", &command.split(' ').collect::<Vec<_>>());
            for tick in 0..if pid == 102 { 6 } else { TICKS } {
                let cpu = if pid == 102 { 50_000_000 } else { 450_000_000 };
                trace.sample(pid, "process", "process", tick, &format!(
                    r#""cpu_ns":{cpu},"read_chars":{},"write_chars":{},"read_bytes":0,"write_bytes":0,"rss_bytes":{},"state":"running""#,
                    32 << 20, if pid == 102 { 1 << 20 } else { 0 }, (pid - 99) * (tick + 1) * (64 << 20)
                ));
            }
        }
    }
    trace.lines
}

fn report(hosts: &[&str]) -> Report {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("a.pfw"), lines(hosts)).expect("written");
    let options = OpenOptions { no_index: true, ..OpenOptions::default() };
    let run = Run::open(&[directory.path().to_owned()], &options).expect("opened");
    let question = Question::default();
    let (summary, verdict) = pass::report(&run, &question, Some(&Config::default())).expect("judged");
    let mut report = make::report(&["runs/host".to_owned()], &run, &summary, Vec::new(), &verdict);
    sampled::add(&mut report, &run, &summary, &Samples::of(&run, &question.window(&run)).expect("folded"));
    report
}

/// What people see is what was reviewed; a changed file is written beside it, to be looked at.
fn check(name: &str, shown: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    let reviewed = fs::read_to_string(&path).unwrap_or_default();
    if reviewed != shown {
        let beside = path.with_extension("new");
        fs::write(&beside, shown).expect("written");
        panic!("{} is not {}; this is shown:\n{shown}", beside.display(), path.display());
    }
}

#[test]
fn a_collection_is_readable_at_every_width() {
    let one = report(&["node1"]);
    check("80.txt", &text::text(&one, 80, &Plain));
    check("120.txt", &text::text(&one, 120, &Plain));
    let many = report(&["node1", "node2", "node3"]);
    check("hosts.txt", &text::text(&many, 100, &Plain));
    for (report, width) in [60, 80, 100, 120, 200].into_iter().flat_map(|width| [(&one, width), (&many, width)]) {
        let shown = text::text(report, width, &Plain);
        let long: Vec<&str> = shown.lines().filter(|line| line.chars().count() > width).collect();
        assert!(long.is_empty(), "{width}: {long:#?}");
    }
}

#[test]
fn nothing_is_judged_where_nothing_was_traced() {
    let report = report(&["node1"]);
    let value = json::value(&report);
    let headline = value["verdict"]["headline"].as_str().expect("a sentence");
    assert!(headline.starts_with("Sampled node1 for 10.00 s: CPU "), "{headline}");
    assert_eq!(
        (value["verdict"]["rules_checked"].as_u64(), value["findings"].as_array().map(Vec::len)),
        (Some(0), Some(0))
    );
    let shown = text::text(&report, 100, &Plain);
    for absent in ["0 ns\n", "nothing to fix", "Healthy", "rules checked", "0 spans"] {
        assert!(!shown.contains(absent), "{absent:?} in\n{shown}");
    }
}

#[test]
fn scripts_get_numbers_with_units() {
    let report = report(&["node1"]);
    let value = json::value(&report);
    let rows = value["sections"]["samples"].as_array().expect("rows");
    let row = |kind: &str, metric: &str| {
        rows.iter()
            .find(|row| row["kind"] == kind && row["metric"] == metric)
            .unwrap_or_else(|| panic!("{kind} {metric}"))
    };
    let check = |kind: &str, metric: &str, unit: &str, average: f64, peak: f64| {
        let row = row(kind, metric);
        let near = |name: &str, expected: f64| {
            row[name].as_f64().is_some_and(|found| (found - expected).abs() <= 1e-6 * expected)
        };
        assert!(row["unit"] == unit && near("average", average) && near("peak", peak), "{kind} {metric}: {row}");
    };
    check("cpu", "busy", "percent", 48.0, 86.0);
    check("disk", "read", "bytes/s", 53_687_091.2, 134_217_728.0);
    check("gpu", "memory", "bytes", 42_949_672_960.0, 42_949_672_960.0);
    check("energy", "energy", "W", 49.5, 59.0);
    assert_eq!(
        (row("energy", "energy")["total"].as_f64(), row("energy", "energy")["total_unit"].as_str()),
        (Some(495.0), Some("J"))
    );
    assert!(row("cpu", "busy")["points"].as_array().is_some_and(|points| (1..=120).contains(&points.len())));
    let programs = &value["sections"]["sampled_programs"];
    assert_eq!(
        (programs[0]["program"].as_str(), programs[0]["processes"].as_u64()),
        (Some("python3 train.py"), Some(2))
    );
    assert_eq!(programs[0]["cpu_ns"].as_u64(), Some(18_000_000_000));
    assert_eq!(value["job"]["samples"]["samples"].as_u64(), Some(186));
    // The names that scripts read stay.
    for name in ["time_ns", "read_bytes", "written_bytes", "hosts", "processes"] {
        assert!(value["job"].get(name).is_some(), "{name}");
    }
}

#[test]
fn curves_are_in_every_form() {
    let report = report(&["node1"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    csv::write(&report, &directory.path().join("csv")).expect("written");
    parquet::write(&report, &directory.path().join("parquet")).expect("written");
    sqlite::write(&report, &directory.path().join("report.db")).expect("written");
    let database = rusqlite::Connection::open(directory.path().join("report.db")).expect("a database");
    let points: i64 = database
        .query_row("SELECT json_array_length(points) FROM samples WHERE kind = 'cpu' AND metric = 'busy'", [], |row| {
            row.get(0)
        })
        .expect("a curve");
    assert!((1..=120).contains(&points), "{points}");
    let page = html::page(&report);
    assert!(page.contains("<td class=\"c\"><svg") && page.contains("host node1 over time"));
    for forbidden in ["<script", "src=", "href=", "url(", "http:", "https:", "NaN", "inf"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}
