//! Summaries and flat views of real traces: known numbers, and what must hold between the parts of an answer.

use std::path::{Path, PathBuf};

use weftline_analysis::findings::Config;
use weftline_analysis::hlm::{RowKey, ViewType};
use weftline_analysis::pass;
use weftline_analysis::presets::Preset;
use weftline_analysis::summary::{Question, Summary, view_tables, wall_times};
use weftline_index::{OpenOptions, Run};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden").join(name)
}

fn open(name: &str, no_index: bool) -> (tempfile::TempDir, Run) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for entry in std::fs::read_dir(golden(name).join("trace")).expect("the golden traces") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let options = OpenOptions { no_index, ..OpenOptions::default() };
    let run = Run::open(&[directory.path().to_owned()], &options).expect("opened");
    (directory, run)
}

fn check_job(name: &str, preset: Preset) {
    let text = std::fs::read_to_string(golden(name).join("canonical/raw_stats.json")).expect("the statistics");
    let expected: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |key: &str| expected[key].as_f64().expect("a number");
    for no_index in [false, true] {
        let (_kept, run) = open(name, no_index);
        let summary = Summary::of(&run, &Question::default()).expect("summed up");
        assert_eq!(summary.preset, preset, "{name}");
        assert_eq!(summary.job.events as f64, number("events"), "{name}");
        assert_eq!(summary.job.processes as f64, number("pids"), "{name}");
        assert_eq!(summary.job.hosts as f64, number("hosts"), "{name}");
        assert_eq!(summary.job.origin as f64, number("time_origin_us") * 1e3, "{name}");
        assert_eq!((summary.job.flaws, summary.job.unreadable.len()), (0, 0), "{name}");
        let (calls, bytes): (u64, u64) = summary
            .operations
            .iter()
            .filter(|row| row.io_cat.is_some())
            .fold((0, 0), |(calls, bytes), row| (calls + row.count, bytes + row.size as u64));
        assert_eq!((summary.job.traffic.calls, summary.job.traffic.bytes()), (calls, bytes), "{name}");
        let line = summary.timeline.values().fold((0, 0), |sum, one| (sum.0 + one.calls, sum.1 + one.bytes()));
        assert_eq!(line, (calls, bytes), "the time line of {name}");
        let sized: u64 = summary.sizes.iter().map(|(reads, writes)| reads + writes).sum();
        let expected: u64 =
            summary.operations.iter().filter(|row| row.io_cat.is_some()).filter_map(|row| row.sized).sum();
        assert_eq!(sized, expected, "the sizes of {name}");
        for layer in &summary.layers {
            let name = format!("{name} {}", layer.name);
            assert!(layer.time_union <= layer.time_union_proc, "{name}");
            assert!(layer.time_union_proc <= layer.time_sum, "{name}");
            assert!(layer.time_self >= 0 && layer.time_self <= layer.time_union_proc, "{name}");
            assert!(layer.overlap.iter().all(|overlap| *overlap <= layer.time_union_proc), "{name}");
        }
    }
}

#[test]
fn jobs() {
    check_job("posix_small", Preset::Posix);
    check_job("dlio", Preset::Dlio);
}

/// Numbers that DFAnalyzer 0.0.8, the last version with exact events, has for these layers.
#[test]
fn layers_of_dlio() {
    let (_kept, run) = open("dlio", false);
    let summary = Summary::of(&run, &Question::default()).expect("summed up");
    let count = |name: &str| summary.layers.iter().find(|layer| layer.name == name).map(|layer| layer.count);
    let check = |name: &str, expected: u64| assert_eq!(count(name), Some(expected), "{name}");
    check("reader_posix", 10_432);
    check("checkpoint_posix", 45);
    check("epoch", 40);
    check("training", 8);
}

#[test]
fn wall_times_of_rows_add_up_to_the_layer() {
    let (_kept, run) = open("dlio", false);
    let question = Question { width_ns: Some(1_000_000_000), ..Question::default() };
    let summary = Summary::of(&run, &question).expect("summed up");
    for view in [ViewType::TimeRange, ViewType::HostName, ViewType::ProcId] {
        let rows = wall_times(&run, &question, view).expect("read");
        for (place, layer) in summary.layers.iter().enumerate() {
            let sum = |of: fn(&weftline_analysis::summary::Wall) -> i128| -> i128 {
                rows.values().map(|walls| of(&walls[place])).sum()
            };
            assert_eq!(sum(|wall| wall.union), layer.time_union_proc, "{view:?} {}", layer.name);
            assert_eq!(sum(|wall| wall.own), layer.time_self, "{view:?} {}", layer.name);
            if let Some(unoverlapped) = layer.unoverlapped {
                assert_eq!(sum(|wall| wall.union - wall.beside_compute), unoverlapped, "{view:?} {}", layer.name);
            }
        }
    }
}

/// Rows that are threads or files have wall time as well; where a process has one thread, its row is that of the process.
#[test]
fn threads_and_files_have_wall_time() {
    let question = Question::default();
    let (_kept, run) = open("posix_small", false);
    let of = |view| wall_times(&run, &question, view).expect("read");
    let threads = of(ViewType::ProcName);
    let mut per_process: std::collections::BTreeMap<String, Vec<&Vec<weftline_analysis::summary::Wall>>> =
        Default::default();
    for (key, walls) in &threads {
        let RowKey::Text(name) = key else { panic!("{key:?}") };
        per_process.entry(name.split('#').nth(2).expect("a pid").to_owned()).or_default().push(walls);
    }
    let processes = of(ViewType::ProcId);
    let mut compared = 0;
    for (pid, rows) in per_process.iter().filter(|(_, rows)| rows.len() == 1) {
        assert_eq!(processes.get(&RowKey::Int(pid.parse().expect("a number"))), Some(rows[0]), "{pid}");
        compared += 1;
    }
    assert!(compared > 0, "a process with one thread");
    let (_kept, run) = open("dlio", false);
    let of = |view| wall_times(&run, &question, view).expect("read");
    for view in [ViewType::FileName, ViewType::FileDir, ViewType::FilePattern, ViewType::ThreadId, ViewType::Epoch] {
        let rows = of(view);
        assert!(rows.values().flatten().any(|wall| wall.union > 0), "{view:?}");
        for wall in rows.values().flatten() {
            assert!(0 <= wall.own && wall.own <= wall.union && wall.beside_compute <= wall.union, "{view:?} {wall:?}");
        }
    }
}

#[test]
fn every_view_can_be_made() {
    for (name, preset) in [("posix_small", Preset::Posix), ("dlio", Preset::Dlio), ("dlio", Preset::Auto)] {
        let (_kept, run) = open(name, false);
        let question = Question { preset: Some(preset), views: ViewType::ALL.to_vec(), ..Question::default() };
        let tables = view_tables(&run, &question).expect("made");
        for view in ViewType::ALL {
            let (_, flat) = tables
                .iter()
                .find(|(found, _)| *found == format!("flat_{}", view.name()))
                .unwrap_or_else(|| panic!("{name}: no flat {}", view.name()));
            let total = |column: &str| -> f64 { (0..flat.rows).filter_map(|row| flat.get(row, column).number()).sum() };
            // These traces tell no ranks, and the small one neither epochs nor steps.
            let empty =
                view == ViewType::Rank || name == "posix_small" && matches!(view, ViewType::Epoch | ViewType::Step);
            let posix = ["count_frac_total", "time_call_frac_total", "time_proc_frac_total"];
            for column in posix.map(|column| format!("posix_{column}")) {
                let events_have_it = !matches!(view, ViewType::Epoch | ViewType::Step | ViewType::Rank);
                if events_have_it {
                    assert!((total(&column) - 1.0).abs() < 1e-9, "{name} {} {column}: {}", view.name(), total(&column));
                }
            }
            assert_eq!(flat.rows == 0, empty, "{name} {}", view.name());
            let names: std::collections::BTreeSet<_> = flat.columns.iter().map(|column| &column.name).collect();
            assert_eq!(names.len(), flat.columns.len(), "{name} {}: a column twice", view.name());
            assert!(flat.columns.iter().all(|column| column.values.len() == flat.rows));
        }
    }
}

#[test]
fn a_part_of_the_time_is_a_part_of_the_events() {
    let (_kept, run) = open("dlio", false);
    let whole = Summary::of(&run, &Question::default()).expect("summed up");
    let second = 1_000_000_000;
    let part = Question { from: Some(10 * second), to: Some(20 * second), ..Question::default() };
    let part = Summary::of(&run, &part).expect("summed up");
    assert!(part.job.events > 0 && part.job.events < whole.job.events);
    assert!(part.timeline.keys().all(|bucket| i64::from(*bucket) * part.width_ns <= 20 * second));
}

/// A copy reads its source and writes its destination, with an index and without; the source's path is known even where no other call names it.
#[test]
fn both_files_of_a_copy_have_traffic() {
    let lines = [
        r#"{"name":"FH","cat":"dftracer","ph":"M","pid":1,"tid":1,"args":{"name":"/w/from","value":"a1"}}"#,
        r#"{"name":"FH","cat":"dftracer","ph":"M","pid":1,"tid":1,"args":{"name":"/w/to","value":"a2"}}"#,
        r#"{"name":"copy_file_range","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":10,"dur":5,"args":{"fhash":"a2","fhash2":"a1","ret":700}}"#,
        r#"{"name":"splice","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":20,"dur":3,"args":{"fhash2":"a1","ret":50}}"#,
        r#"{"name":"rename","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":30,"dur":1,"args":{"fhash":"a2","fhash2":"a1","ret":0}}"#,
    ];
    for no_index in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("copy.pfw"), lines.join("\n")).expect("written");
        let options = OpenOptions { no_index, ..OpenOptions::default() };
        let run = Run::open(&[directory.path().to_owned()], &options).expect("opened");
        let summary = Summary::of(&run, &Question::default()).expect("summed up");
        let files: Vec<(&str, u64, u64, u64, u64)> = summary
            .top_files
            .iter()
            .map(|row| {
                let sums = &row.traffic;
                (row.name.as_str(), sums.calls, sums.read_bytes, sums.write_bytes, sums.time_ns)
            })
            .collect();
        assert_eq!(files, [("/w/from", 2, 750, 0, 8_000), ("/w/to", 2, 0, 700, 6_000)]);
        let all = &summary.job.traffic;
        assert_eq!((all.calls, all.reads, all.writes, all.metadata_calls), (3, 2, 2, 1));
        assert_eq!((all.read_bytes, all.write_bytes, all.time_ns), (750, 750, 9_000));
    }
}

/// A process is called by what it executed, not by the shell that forked it nor by nothing, as between vfork and exec; and it is one of the processes
/// even if all that it did is left out of the sums.
#[test]
fn processes_are_named_by_what_they_executed() {
    let identity = |pid: i64, name: &str, nonce: &str| {
        format!(
            r#"{{"name":"process_name","cat":"weft","ph":"M","pid":{pid},"tid":{pid},"ts":1000,"args":{{"name":"{name}","host":"vm","hhash":"5c","boot":"b","pidns":7,"start":{pid},"nonce":"{nonce}","ppid":1,"exe":"/usr/bin/{name}","cmd":["{name}"],"cwd":"/w","seq":0}}}}"#
        )
    };
    let read = |pid: i64, ts: i64, dur: i64| {
        format!(
            r#"{{"name":"read","cat":"POSIX","ph":"X","pid":{pid},"tid":{pid},"ts":{ts},"dur":{dur},"args":{{"fhash":"aa","ret":1}}}}"#
        )
    };
    let hash =
        r#"{"name":"FH","cat":"dftracer","ph":"M","pid":70,"tid":70,"args":{"name":"/w/x","value":"aa"}}"#.to_owned();
    let started = r#"{"name":"start","cat":"weft","ph":"i","pid":73,"tid":73,"ts":1300,"s":"p"}"#.to_owned();
    let files = [
        // The shell; its child 71 between vfork and exec, which takes longer than the rest of its life.
        ("a.pfw", vec![identity(70, "sh", "a"), hash.clone(), read(70, 1000, 900), read(71, 1100, 500)]),
        ("b.pfw", vec![identity(71, "cc", "b"), hash.clone(), read(71, 1700, 9)]),
        // A fork of the shell that becomes `cat`.
        ("c.pfw", vec![identity(72, "sh", "c"), hash.clone(), read(72, 1200, 400)]),
        ("d.pfw", vec![identity(72, "cat", "d"), hash, read(72, 1700, 50)]),
        ("e.pfw", vec![identity(73, "true", "e"), started]),
    ];
    for no_index in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, lines) in &files {
            std::fs::write(directory.path().join(name), lines.join("\n")).expect("written");
        }
        let options = OpenOptions { no_index, ..OpenOptions::default() };
        let run = Run::open(&[directory.path().to_owned()], &options).expect("opened");
        let (summary, verdict) = pass::report(&run, &Question::default(), Some(&Config::default())).expect("judged");
        assert_eq!(summary.job.processes, 4);
        let mut named: Vec<_> = summary.top_processes.iter().map(|row| (row.pid, row.program.as_deref())).collect();
        named.sort_unstable();
        assert_eq!(named, [(Some(70), Some("sh")), (Some(71), Some("cc")), (Some(72), Some("cat"))]);
        let programs: Vec<&str> = verdict.programs.iter().map(|row| row.program.as_str()).collect();
        assert!(programs.contains(&"cc") && !programs.contains(&""), "{programs:?}");
    }
}
