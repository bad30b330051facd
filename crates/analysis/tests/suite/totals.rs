//! Calls of which only totals are known: golden traces in both dialects, and generated ones against a plain loop over their calls.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use weftline_analysis::Table;
use weftline_analysis::classify::{bin_label, bin_of};
use weftline_analysis::hlm::{Hlm, HlmQuestion, ViewType};
use weftline_analysis::summary::{Question, Summary, view_tables};
use weftline_analysis::table::Field;
use weftline_index::{OpenOptions, Run};

const SECOND: i64 = 1_000_000_000;

fn open(directory: &Path, no_index: bool) -> Run {
    Run::open(&[directory.to_owned()], &OpenOptions { no_index, ..OpenOptions::default() }).expect("opened")
}

fn golden(name: &str, no_index: bool) -> (tempfile::TempDir, Run) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden").join(name).join("trace");
    for entry in std::fs::read_dir(traces).expect("the golden traces") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let run = open(directory.path(), no_index);
    (directory, run)
}

/// What DFAnalyzer prints for the letters of this trace: 922 calls, 0.467 s, 30 MB.
#[test]
fn an_aggregated_trace_has_its_sums() {
    let mut all = Vec::new();
    for (name, no_index) in [("hybrid", false), ("hybrid", true), ("hybrid_v1", false), ("hybrid_v1", true)] {
        let (_kept, run) = golden(name, no_index);
        let summary = Summary::of(&run, &Question::default()).expect("summed up");
        let job = &summary.job;
        assert_eq!((job.traffic.calls, job.total_calls, job.recorded_twice), (922, 922, 0), "{name}");
        assert_eq!((job.processes, job.hosts, job.period_ns), (4, 1, SECOND), "{name}");
        assert!((job.traffic.time_ns as f64 / 1e9 - 0.467).abs() < 5e-4, "{name}: {}", job.traffic.time_ns);
        assert!((job.traffic.bytes() as f64 / 1e6 - 30.0).abs() < 0.5, "{name}: {}", job.traffic.bytes());
        let posix = &summary.layers[0];
        assert_eq!((posix.count, posix.totals, posix.size), (922, 922, u128::from(job.traffic.bytes())), "{name}");
        assert_eq!(posix.processes, 4, "{name}");
        let tables: BTreeMap<&str, Table> = summary.tables().into_iter().collect();
        assert_eq!(tables["layers"].get(0, "time_union"), Field::Null, "wall time is not known");
        let line = summary.timeline.values().fold((0, 0), |sum, one| (sum.0 + one.calls, sum.1 + one.bytes()));
        assert_eq!((line, summary.spread), ((922, job.traffic.bytes()), false), "{name}");
        let fine = Question { width_ns: Some(SECOND / 100), ..Question::default() };
        let fine = Summary::of(&run, &fine).expect("summed up");
        let line = fine.timeline.values().fold((0, 0), |sum, one| (sum.0 + one.calls, sum.1 + one.bytes()));
        assert_eq!((line, fine.spread), ((922, job.traffic.bytes()), true), "{name}");
        // Calls are spread over the time of the job, not over the rest of their period.
        let last = fine.timeline.keys().last().copied().expect("a bucket");
        assert!(i64::from(last) * fine.width_ns <= job.time, "{name}: {last}");
        let asked = Question { views: ViewType::ALL.to_vec(), ..Question::default() };
        let views = view_tables(&run, &asked).expect("views");
        let flat = |view: &str| views.iter().find(|(name, _)| name == view).map(|(_, table)| table.clone());
        let by_time = flat("flat_time_range").expect("a view");
        let calls = (0..by_time.rows).filter_map(|row| by_time.get(row, "posix_count_sum").number());
        assert_eq!(calls.sum::<f64>(), 922.0, "{name}");
        assert_eq!(by_time.get(0, "posix_time_union"), Field::Null, "{name}");
        assert_eq!(by_time.get(0, "posix_time_call_std"), Field::Null, "{name}");
        assert!(by_time.get(0, "posix_time_call_max").number().expect("known") > 0.378, "{name}");
        all.push((summary.operations, summary.sizes, summary.unknown_sizes, summary.timeline, by_time));
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "dialects or ways to read differ");
}

/// The records of the golden trace, cell by cell: what `profiles` has (compared with DFAnalyzer's elsewhere) is what the metrics have.
#[test]
fn metrics_have_the_cells_of_records() {
    let (_kept, run) = golden("hybrid", false);
    let views = [ViewType::TimeRange, ViewType::ProcName];
    let metrics = Hlm::of(&run, &HlmQuestion::new(views)).expect("grouped").table(&views);
    let profiles = weftline_analysis::profiles::Profiles::of(&run, &Default::default()).expect("read").table();
    let key = |table: &Table, row: usize| {
        ["cat", "func_name", "proc_name", "time_range"].map(|column| format!("{:?}", table.get(row, column)))
    };
    let rows: BTreeMap<_, usize> = (0..metrics.rows).map(|row| (key(&metrics, row), row)).collect();
    assert!(profiles.rows > 60, "the golden trace has records");
    for row in 0..profiles.rows {
        let found = *rows.get(&key(&profiles, row)).unwrap_or_else(|| panic!("no {:?}", key(&profiles, row)));
        for (theirs, ours) in
            [("count", "count"), ("time", "time"), ("time_min", "time_call_min"), ("time_max", "time_call_max")]
        {
            assert_eq!(profiles.get(row, theirs), metrics.get(found, ours), "{ours} of {:?}", key(&profiles, row));
        }
        let size = profiles.get(row, "size").number().unwrap_or(0.0);
        assert_eq!(metrics.get(found, "size").number(), Some(size));
    }
}

const NAMES: [&str; 4] = ["read", "write", "open64", "fsync"];
/// Microseconds; a round second.
const BASE: i64 = 1_700_000_000_000_000;

#[derive(Debug, Clone)]
struct Calls {
    pid: i64,
    tid: i64,
    name: usize,
    period: i64,
    /// Durations in µs and results.
    calls: Vec<(i64, i64)>,
    as_totals: bool,
    singly: bool,
}

fn calls() -> impl Strategy<Value = Calls> {
    let results = prop_oneof![3 => Just(8192i64), 1 => Just(0), 2 => 1i64..100_000, 1 => Just(4096)];
    let one = (prop_oneof![Just(5i64), 0i64..2_000], results);
    ((1i64..4, 1i64..3, 0..NAMES.len(), 0i64..4), proptest::collection::vec(one, 1..7), 0..3u8).prop_map(
        |((pid, tid, name, period), calls, form)| Calls {
            pid,
            tid,
            name,
            period,
            calls,
            as_totals: form != 0,
            singly: form != 1,
        },
    )
}

/// A number as a record has it: plain where there is one value, else its sum and extremes.
fn spread(name: &str, values: &[i64]) -> String {
    let (min, max) = (values.iter().min().expect("a value"), values.iter().max().expect("a value"));
    if values.len() == 1 {
        return format!("\"{name}\":{min}");
    }
    format!("\"{name}_sum\":{},\"{name}_min\":{min},\"{name}_max\":{max}", values.iter().sum::<i64>())
}

fn write(directory: &Path, all: &[Calls], letters: bool) {
    let phase = |letter: &str, number: i64| if letters { format!("\"{letter}\"") } else { number.to_string() };
    let (complete, aggregated) = (phase("X", 1), phase("C", 3));
    let end = BASE + 4_000_000;
    let mut text = String::new();
    for (name, ts) in [("start", BASE), ("end", end)] {
        text += &format!(
            "{{\"id\":1,\"name\":\"{name}\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":1,\"ts\":{ts},\"dur\":0,\"ph\":{complete},\"args\":{{\"hhash\":\"a1\",\"cfg\":{{\"trace_interval_ms\":1000}}}}}}\n"
        );
    }
    for one in all {
        let Calls { pid, tid, name, period, calls, .. } = one;
        let (name, start) = (NAMES[*name], BASE + period * 1_000_000);
        if one.singly {
            for (place, (dur, ret)) in calls.iter().enumerate() {
                let ts = start + place as i64 * 10_000;
                text += &format!(
                    "{{\"id\":2,\"name\":\"{name}\",\"cat\":\"POSIX\",\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\"dur\":{dur},\"ph\":{complete},\"args\":{{\"hhash\":\"a1\",\"ret\":{ret}}}}}\n"
                );
            }
        }
        if one.as_totals {
            let durs: Vec<i64> = calls.iter().map(|(dur, _)| *dur).collect();
            let rets: Vec<i64> = calls.iter().map(|(_, ret)| *ret).collect();
            text += &format!(
                "{{\"name\":\"{name}\",\"cat\":\"POSIX\",\"ts\":{start},\"ph\":{aggregated},\"pid\":{pid},\"tid\":{tid},\"args\":{{\"hhash\":\"a1\",{},{},\"dft_cnt\":{}}}}}\n",
                spread("dur", &durs),
                spread("ret", &rets),
                calls.len()
            );
        }
    }
    std::fs::write(directory.join("t.pfw"), text).expect("written");
}

fn sizes(one: &Calls) -> Vec<i64> {
    let moves = NAMES[one.name] == "read" || NAMES[one.name] == "write";
    one.calls.iter().map(|(_, ret)| *ret).filter(|ret| moves && *ret > 0).collect()
}

/// Every cell that is there is the one that the calls have; those that totals tell are there.
fn check_metrics(table: &Table, all: &BTreeMap<(String, String, i64), Calls>) {
    let mut seen = 0;
    for row in 0..table.rows {
        let text = |column: &str| match table.get(row, column) {
            Field::Text(text) => text.to_owned(),
            other => panic!("{column}: {other:?}"),
        };
        if text("cat") != "posix" {
            continue;
        }
        seen += 1;
        let Field::Int(bucket) = table.get(row, "time_range") else { panic!("no bucket") };
        let key = (text("proc_name"), text("func_name"), bucket);
        let one = all.get(&key).unwrap_or_else(|| panic!("unexpected {key:?}"));
        let durs: Vec<f64> = one.calls.iter().map(|(dur, _)| *dur as f64 / 1e6).collect();
        let sizes = sizes(one);
        let check = |column: &str, expected: Option<f64>, must: bool| {
            let found = table.get(row, column).number();
            if found.is_none() && !must {
                return;
            }
            let same = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs(),
                (found, expected) => found == expected,
            };
            assert!(same, "{column} of {key:?}: {found:?}, not {expected:?}; {one:?}");
        };
        let single = one.singly;
        check("count", Some(durs.len() as f64), true);
        check("time", Some(durs.iter().sum()), true);
        check("size", Some(sizes.iter().sum::<i64>() as f64), true);
        check("time_call_min", durs.iter().copied().reduce(f64::min), true);
        check("time_call_max", durs.iter().copied().reduce(f64::max), true);
        check("time_sq", Some(durs.iter().map(|dur| dur * dur).sum()), single || durs.len() < 3);
        check("size_sq", Some(sizes.iter().map(|size| (*size as f64).powi(2)).sum()), single || durs.len() == 1);
        check("size_call_min", sizes.iter().min().map(|size| *size as f64), single || durs.len() == 1);
        check("size_call_max", sizes.iter().max().map(|size| *size as f64), true);
        for bin in 0..12 {
            let count = sizes.iter().filter(|size| bin_of(**size as u64) == bin).count();
            check(&format!("size_bin_{}", bin_label(bin)), Some(count as f64), single || durs.len() == 1);
        }
    }
    assert_eq!(seen, all.len(), "groups");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn totals_and_single_calls_count_once(made in proptest::collection::vec(calls(), 1..12), letters in any::<bool>()) {
        // A thread's calls of one name in one period are either totals, or single, or the same calls in both forms.
        let by_key: BTreeMap<(String, String, i64), Calls> = made
            .into_iter()
            .map(|one| ((format!("app#a1#{}#{}", one.pid, one.tid), NAMES[one.name].to_owned(), one.period), one))
            .collect();
        let all: Vec<Calls> = by_key.values().cloned().collect();
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), &all, letters);
        let run = open(directory.path(), false);
        let views = [ViewType::TimeRange, ViewType::ProcName];
        check_metrics(&Hlm::of(&run, &HlmQuestion::new(views)).expect("grouped").table(&views), &by_key);
        let count = |of: &dyn Fn(&Calls) -> bool| -> u64 {
            all.iter().filter(|one| of(one)).map(|one| one.calls.len() as u64).sum()
        };
        let time: i64 = all.iter().flat_map(|one| &one.calls).map(|(dur, _)| dur * 1000).sum();
        let bytes: i64 = all.iter().flat_map(sizes).sum();
        for (width, no_index) in [(None, false), (Some(SECOND), false), (Some(SECOND / 7), true), (Some(3 * SECOND), true)] {
            let run = open(directory.path(), no_index);
            let summary = Summary::of(&run, &Question { width_ns: width, ..Question::default() }).expect("summed up");
            let job = &summary.job;
            prop_assert_eq!(job.traffic.calls, count(&|_| true));
            prop_assert_eq!(job.total_calls, count(&|one| !one.singly));
            prop_assert_eq!(job.recorded_twice, count(&|one| one.singly && one.as_totals));
            prop_assert_eq!((job.traffic.time_ns, job.traffic.bytes()), (time as u64, bytes as u64));
            prop_assert_eq!((summary.layers[0].count, summary.layers[0].size), (count(&|_| true), bytes as u128));
            let line = summary.timeline.values().fold((0, 0, 0), |sum, one| (sum.0 + one.calls, sum.1 + one.bytes(), sum.2 + one.time_ns));
            prop_assert_eq!(line, (count(&|_| true), bytes as u64, time as u64));
            if width == Some(SECOND) {
                for (bucket, traffic) in &summary.timeline {
                    prop_assert_eq!(traffic.calls, count(&|one| one.period == i64::from(*bucket)));
                }
            }
        }
    }
}

/// Records that say how long their time is: calls are spread over that, and over nothing else. Spans of libraries and their totals have a layer.
#[test]
fn records_with_a_length_of_their_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let total = |name: &str, cat: &str, start: i64, dur: i64, calls: u64| {
        format!(
            "{{\"name\":\"{name}\",\"cat\":\"{cat}\",\"ts\":{},\"dur\":{dur},\"ph\":\"C\",\"pid\":1,\"tid\":0,\"args\":{{\"dft_cnt\":{calls},\"dur_sum\":500,\"size_sum\":{}}}}}\n",
            BASE + start,
            calls * 4096,
        )
    };
    let job = format!(
        "{{\"name\":\"job\",\"cat\":\"darshan\",\"ts\":{BASE},\"dur\":8000000,\"ph\":\"X\",\"pid\":1,\"tid\":1}}\n"
    );
    let text = [
        "[\n".to_owned(),
        job,
        total("read", "POSIX", 2_000_000, 4_000_000, 8),
        total("write", "POSIX", 6_500_000, 1, 1),
        total("read", "MPI-IO", 2_000_000, 4_000_000, 2),
    ]
    .concat();
    std::fs::write(directory.path().join("t.pfw"), text).expect("written");
    for no_index in [false, true] {
        let run = open(directory.path(), no_index);
        let question = Question { width_ns: Some(SECOND), ..Question::default() };
        let summary = Summary::of(&run, &question).expect("summed up");
        let line: Vec<(u32, u64)> = summary.timeline.iter().map(|(bucket, sums)| (*bucket, sums.calls)).collect();
        assert_eq!(line, [(2, 2), (3, 2), (4, 2), (5, 2), (6, 1)]);
        assert_eq!((summary.job.period_ns, summary.spread, summary.job.time), (4 * SECOND, true, 8 * SECOND));
        assert_eq!(summary.job.traffic.bytes(), 9 * 4096, "a library's bytes are those of its calls");
        let layers: Vec<(&str, u64, u128)> =
            summary.layers.iter().map(|layer| (&*layer.name, layer.count, layer.size)).collect();
        assert_eq!(layers, [("mpi_io", 2, 2 * 4096), ("posix", 9, 9 * 4096)]);
        // Nobody asked for a width: it is the job's, not that of the longest record.
        let unasked = Summary::of(&run, &Question::default()).expect("summed up");
        assert!(unasked.width_ns < SECOND, "{}", unasked.width_ns);
    }
}
