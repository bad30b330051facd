//! Samples of built traces: what a report draws of them.

use std::fmt::Write as _;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use weftline_index::OpenOptions;

use super::rows::SampleRows;
use super::*;

/// When traces begin, µs since the epoch.
const EPOCH: i64 = 1_700_000_000_000_000;
const SECOND: i64 = 1_000_000;

/// Lines of a trace as `weft collect` writes them; times are microseconds since its beginning.
#[derive(Default)]
struct Trace {
    lines: String,
}

impl Trace {
    fn host(mut self, host: &str) -> Trace {
        self.identity(0, host, &format!(r#""name":"{host}","nonce":"samples-1","cmd":[]"#));
        self
    }

    fn process(self, pid: i64, host: &str, command: &str) -> Trace {
        self.started(pid, 1, host, command)
    }

    fn started(mut self, pid: i64, start: i64, host: &str, command: &str) -> Trace {
        let words: Vec<String> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
        self.identity(
            pid,
            host,
            &format!(r#""name":"{command}","nonce":"","exe":"/bin/x","start":{start},"cmd":[{}]"#, words.join(",")),
        );
        self
    }

    fn identity(&mut self, pid: i64, host: &str, more: &str) {
        writeln!(
            self.lines,
            r#"{{"name":"process_name","cat":"weft","ph":"M","pid":{pid},"tid":{pid},"ts":{EPOCH},"args":{{"host":"{host}","hhash":"h{host}","boot":"b",{more},"seq":0}}}}"#
        )
        .expect("a string");
    }

    fn sample(mut self, pid: i64, cat: &str, name: &str, (from, to): (i64, i64), args: &str) -> Trace {
        writeln!(
            self.lines,
            r#"{{"name":"{name}","cat":"{cat}","ph":"C","pid":{pid},"tid":{pid},"ts":{},"dur":{},"args":{{{args}}}}}"#,
            EPOCH + from,
            to - from
        )
        .expect("a string");
        self
    }

    fn open(&self) -> Run {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("a.pfw"), format!("[\n{}", self.lines)).expect("written");
        let options = OpenOptions { no_index: true, ..OpenOptions::default() };
        let run = Run::open(&[directory.path().to_owned()], &options).expect("opened");
        run.prepare().expect("read");
        // It is read again for every question.
        std::mem::forget(directory);
        run
    }
}

fn trace() -> Trace {
    let (first, second) = ((0, SECOND), (SECOND, 2 * SECOND));
    Trace::default()
        .host("a")
        .sample(0, "sys", "cpu", first, r#""user_pct":20.0,"idle_pct":70.0,"iowait_pct":10.0"#)
        .sample(0, "sys", "cpu", second, r#""user_pct":80.5,"idle_pct":19.5,"iowait_pct":0.0"#)
        .sample(0, "sys", "cpu-0", second, r#""user_pct":80.5,"idle_pct":19.5"#)
        .sample(0, "sys", "memory", first, r#""MemTotal":4096,"MemAvailable":3072,"Cached":512,"Dirty":0"#)
        .sample(0, "sys", "memory", second, r#""MemTotal":4096,"MemAvailable":1024,"Cached":1024,"Dirty":0"#)
        .sample(0, "io", "vda", first, r#""bytes_read":1000,"bytes_written":0,"busy_pct":5.0"#)
        .sample(0, "io", "vda", second, r#""bytes_read":3000,"bytes_written":0,"busy_pct":15.0"#)
        .sample(0, "energy", "rapl:0 package-0", second, r#""energy_uj":30000000,"power_w":30.0"#)
        .process(7, "a", "python3 train.py")
        .process(8, "a", "python3 train.py")
        .process(9, "a", "dd if=x")
        .sample(7, "process", "process", (0, 0), r#""rss_bytes":100,"state":"sleeping""#)
        .sample(
            7,
            "process",
            "process",
            first,
            r#""cpu_ns":500000000,"rss_bytes":1000,"read_chars":10,"write_chars":1,"state":"running""#,
        )
        .sample(
            8,
            "process",
            "process",
            first,
            r#""cpu_ns":1000000000,"rss_bytes":3000,"read_chars":20,"write_chars":2"#,
        )
        .sample(
            7,
            "process",
            "process",
            second,
            r#""cpu_ns":0,"rss_bytes":2000,"read_chars":0,"write_chars":0,"write_bytes":4096"#,
        )
        .sample(9, "process", "process", second, r#""cpu_ns":250000000,"rss_bytes":500,"read_chars":5,"write_chars":7"#)
        .sample(9, "process", "end", second, r#""unseen_ns":0"#)
        .sample(7, "mine", "loss", second, r#""value":1.5"#)
}

fn series<'s>(samples: &'s Samples, label: &str) -> &'s Series {
    samples
        .series
        .iter()
        .find(|series| series.label == label)
        .unwrap_or_else(|| panic!("{label}: {:#?}", samples.series))
}

#[test]
fn hosts_have_curves_with_units() {
    let samples = Samples::of(&trace().open(), &Filter::default()).expect("folded");
    let check = |label: &str, unit: Unit, average: f64, peak: f64, total: Option<(f64, Unit)>, full: Option<f64>| {
        let found = series(&samples, label);
        let near = |number: Option<f64>, expected: f64| {
            number.is_some_and(|number| (number - expected).abs() < 1e-6 * expected.abs().max(1.0))
        };
        assert!(near(found.average, average) && near(found.peak, peak), "{label}: {found:?}");
        assert_eq!((found.unit, found.total, found.full), (unit, total, full), "{label}");
    };
    check("CPU", Unit::Percent, 50.25, 80.5, None, Some(100.0));
    check("I/O wait", Unit::Percent, 5.0, 10.0, None, Some(100.0));
    check("memory used", Unit::Bytes, 2048.0 * 1024.0, 3072.0 * 1024.0, None, Some(4096.0 * 1024.0));
    check("disk vda read", Unit::BytesPerSecond, 2000.0, 3000.0, Some((4000.0, Unit::Bytes)), None);
    check("disk vda written", Unit::BytesPerSecond, 0.0, 0.0, Some((0.0, Unit::Bytes)), None);
    check("power rapl:0 package-0", Unit::Watts, 30.0, 30.0, Some((30.0, Unit::Joules)), None);
    let meters = samples.series.iter().filter(|series| series.kind == "energy").count();
    assert_eq!(meters, 1, "a meter is drawn once");
    assert!(!series(&samples, "disk vda written").is_active() && series(&samples, "disk vda read").is_active());
    assert_eq!((samples.hosts.as_slice(), samples.processes, samples.samples), (&["a".to_owned()][..], 3, 14));
    assert_eq!(samples.range, Some((EPOCH * 1000, (EPOCH + 2 * SECOND) * 1000)));
    let cpu = &series(&samples, "CPU").points;
    assert_eq!((cpu.first(), cpu.last()), (Some(&Some(20.0)), Some(&Some(80.5))));
}

#[test]
fn processes_are_told_by_program() {
    let samples = Samples::of(&trace().open(), &Filter::default()).expect("folded");
    let [train, dd] = samples.programs.as_slice() else { panic!("{:#?}", samples.programs) };
    assert_eq!((train.program.as_str(), train.processes, train.cpu_ns), ("python3 train.py", 2, 1_500_000_000));
    assert_eq!((train.read_bytes, train.written_bytes, train.storage_written_bytes), (30, 3, 4096));
    assert_eq!(train.largest, Some((3000, 8)));
    let at = |points: &[Option<f64>], place: usize| points[place].map(f64::round);
    assert_eq!((at(&train.cpu.points, 10), train.cpu.peak.map(f64::round)), (Some(150.0), Some(150.0)));
    assert_eq!((at(&train.memory.points, 10), at(&train.memory.points, 110)), (Some(4000.0), Some(2000.0)));
    assert_eq!((dd.program.as_str(), dd.processes, dd.cpu.average.map(f64::round)), ("dd", 1, Some(25.0)));
    assert_eq!(dd.cpu.points[10], None, "it was not there yet");
}

#[test]
fn a_program_is_what_its_process_runs_last() {
    let args = r#""cpu_ns":500000000,"rss_bytes":1000"#;
    let trace = Trace::default()
        .process(7, "a", "bash run.sh")
        .sample(7, "process", "process", (0, SECOND), args)
        .process(7, "a", "python3 train.py")
        .sample(7, "process", "process", (SECOND, 2 * SECOND), args)
        // Much later somebody else has its number.
        .started(7, 2, "a", "dd if=x")
        .sample(7, "process", "process", (8 * SECOND, 9 * SECOND), args);
    let samples = Samples::of(&trace.open(), &Filter::default()).expect("folded");
    let found: Vec<_> = samples.programs.iter().map(|program| (program.program.as_str(), program.cpu_ns)).collect();
    assert_eq!(found, [("python3 train.py", 1_000_000_000), ("dd", 500_000_000)]);
}

#[test]
fn windows_and_conditions_hold_for_samples() {
    let run = trace().open();
    let half = Filter::default().with_time(Some((EPOCH + SECOND) * 1000), None);
    let samples = Samples::of(&run, &half).expect("folded");
    assert_eq!(series(&samples, "CPU").average, Some(80.5));
    assert_eq!(series(&samples, "disk vda read").total, Some((3000.0, Unit::Bytes)));
    let nobody = Filter { names: Some(std::sync::Arc::new(|_| false)), ..Filter::default() };
    assert_eq!(Samples::of(&run, &nobody).expect("folded"), Samples::default());
}

#[test]
fn samples_of_dftracer_describe_points_in_time() {
    let mut trace = Trace::default();
    for (at, idle) in [(0, 60.0), (1, 20.0)] {
        for (name, args) in [
            ("cpu", format!(r#""hhash":"hx","idle_pct":{idle},"iowait_pct":0"#)),
            ("memory", r#""hhash":"hx","MemTotal":106.68,"MemAvailable":23138424,"Cached":32.5"#.to_owned()),
        ] {
            writeln!(
                trace.lines,
                r#"{{"id":1,"name":"{name}","cat":"sys","ts":{},"ph":"C","pid":0,"tid":0,"args":{{{args}}}}}"#,
                EPOCH + at * SECOND
            )
            .expect("a string");
        }
    }
    let samples = Samples::of(&trace.open(), &Filter::default()).expect("folded");
    assert_eq!(series(&samples, "CPU").average, Some(60.0));
    let cache = series(&samples, "page cache");
    assert_eq!((cache.unit, cache.average, cache.full), (Unit::Percent, Some(32.5), Some(100.0)));
    assert!(samples.series.iter().all(|series| series.label != "memory used"), "two units are not one number");
}

#[test]
fn rows_have_a_value_each() {
    let run = trace().open();
    let rows = SampleRows::new(run.dictionary()).expect("made");
    let request = Request::of(SampleRows::needs()).with(SampleRows::filter(Filter::default()));
    let mut found = Vec::new();
    run.scan_in_order(&request, |batch| {
        let batch = rows.assemble(batch).expect("assembled");
        let word = |name: &str, row: usize| {
            let column = batch.column_by_name(name).expect("a column").as_dictionary::<Int32Type>();
            let values = column.values().as_string::<i32>();
            column.key(row).map_or("-", |key| values.value(key)).to_owned()
        };
        let integer = |name: &str, row: usize| {
            batch.column_by_name(name).expect("a column").as_primitive::<Int64Type>().value(row)
        };
        let values = batch.column_by_name("value").expect("a column").as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let (time, length) = (integer("time_ns", row) / 1000 - EPOCH, integer("dur_ns", row) / 1000);
            let words: Vec<String> =
                ["host", "program", "category", "name", "metric", "unit", "type"].map(|name| word(name, row)).to_vec();
            found.push(format!("{time} {length} {} {} = {}", integer("pid", row), words.join("/"), values.value(row)));
        }
    })
    .expect("read");
    for expected in [
        "1000000 1000000 0 a/-/sys/cpu/user_pct/percent/mean = 20",
        "2000000 1000000 0 a/-/io/vda/bytes_read/bytes/delta = 3000",
        "1000000 1000000 0 a/-/sys/memory/Cached/KiB/gauge = 512",
        "0 0 7 a/python3 train.py/process/process/rss_bytes/bytes/gauge = 100",
        "2000000 1000000 9 a/dd/process/end/unseen_ns/ns/total = 0",
    ] {
        assert!(found.iter().any(|row| row == expected), "{expected}: {found:#?}");
    }
    assert!(found.iter().all(|row| !row.contains("loss") && !row.contains("state")));
}
