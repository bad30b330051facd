//! Real traces of DFTracer: raw events, high-level metrics and every view equal those of an exact per-event program, cell by cell.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use arrow_array::Array as _;
use weftline_analysis::Table;
use weftline_analysis::classify::{Classes, Rules, SizeKind};
use weftline_analysis::hlm::{Hlm, HlmQuestion, ViewType};
use weftline_analysis::presets::Preset;
use weftline_analysis::profiles::{ProfileQuestion, Profiles};
use weftline_analysis::system::{SystemMetrics, SystemQuestion};
use weftline_analysis::table::Field;
use weftline_analysis::views::Views;
use weftline_index::{Column, OpenOptions, Request, Run};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden").join(name)
}

/// Opens a copy of golden traces, so that their index does not lie among the originals.
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

/// A table of the golden data: its columns, and its rows as text.
struct Csv {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

fn csv(name: &str) -> Csv {
    let path = golden(name);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("compressed text");
    let mut lines = text.lines().map(fields);
    let columns = lines.next().expect("a header");
    Csv { columns, rows: lines.collect() }
}

/// Whether a value is what the golden data have, as text.
fn same(ours: Field<'_>, theirs: &str) -> bool {
    match (ours, theirs) {
        (Field::Null, theirs) => theirs.is_empty(),
        (Field::Text(text), theirs) => text == theirs,
        (number, theirs) => {
            let (Some(ours), Ok(theirs)) = (number.number(), theirs.parse::<f64>()) else { return false };
            ours == theirs || (ours - theirs).abs() <= 1e-9 * ours.abs().max(theirs.abs())
        }
    }
}

/// Every cell of the golden table is in ours. `keys` columns name the rows.
fn check_table(ours: &Table, theirs: &Csv, keys: usize, what: &str) {
    assert_eq!(ours.rows, theirs.rows.len(), "rows of {what}");
    let mut by_key: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let text = |field: Field<'_>| match field {
        Field::Null => String::new(),
        Field::Int(number) => number.to_string(),
        Field::Float(number) => number.to_string(),
        Field::Time(ns) => (ns as f64 / 1e9).to_string(),
        Field::Text(text) => text.to_owned(),
        other => panic!("no golden table has {other:?}"),
    };
    for row in 0..ours.rows {
        let key = theirs.columns[..keys].iter().map(|column| text(ours.get(row, column))).collect();
        assert_eq!(by_key.insert(key, row), None, "two rows of {what} with one key");
    }
    for expected in &theirs.rows {
        let row = *by_key.get(&expected[..keys]).unwrap_or_else(|| panic!("{what}: no row {:?}", &expected[..keys]));
        for (column, value) in theirs.columns.iter().zip(expected) {
            assert!(ours.column(column).is_some(), "{what}: no column {column}");
            let found = ours.get(row, column);
            assert!(same(found, value), "{what}, {:?}, {column}: {found:?}, not {value}", &expected[..keys]);
        }
    }
}

fn check_metrics(name: &str, no_index: bool) {
    let (_kept, run) = open(name, no_index);
    for (file, views, keys) in [
        ("hlm_proc_time", &[ViewType::TimeRange, ViewType::ProcName][..], 6),
        ("hlm_file_proc_time", &[ViewType::TimeRange, ViewType::ProcName, ViewType::FileName][..], 7),
    ] {
        let files = views.contains(&ViewType::FileName);
        let hlm = Hlm::of(&run, &HlmQuestion { files, ..HlmQuestion::new(views) }).expect("grouped");
        let theirs = csv(&format!("{name}/canonical/{file}.csv.gz"));
        check_table(&hlm.table(views), &theirs, keys, &format!("{name} {file}"));
    }
}

#[test]
fn high_level_metrics() {
    for name in ["posix_small", "dlio"] {
        check_metrics(name, false);
        check_metrics(name, true);
    }
}

#[test]
fn views_of_layers() {
    for name in ["posix_small", "dlio"] {
        let (_kept, run) = open(name, false);
        let all = [ViewType::TimeRange, ViewType::ProcName, ViewType::FileName];
        let hlm = Hlm::of(&run, &HlmQuestion::new(all)).expect("grouped");
        let views = Views::new(&hlm);
        for layer in Preset::Dlio.layers(&run.dictionary()) {
            if !["posix", "reader_posix", "checkpoint_posix"].contains(&&*layer.name) {
                continue;
            }
            for view in all {
                let theirs = csv(&format!("{name}/canonical/view_{}_{}.csv.gz", layer.name, view.name()));
                let ours = views.of(&layer, view).table("");
                check_table(&ours, &theirs, 1, &format!("{name} {} {}", layer.name, view.name()));
            }
        }
    }
}

/// A raw event as text, with the columns that the golden table has of it.
const RAW: [&str; 12] =
    ["name", "cat", "pid", "tid", "ts", "dur", "size", "offset", "io_cat", "file_name", "host_name", "time_range"];

fn raw_events(run: &Run) -> Vec<[String; RAW.len()]> {
    run.prepare().expect("prepared");
    let (dictionary, origin) = (run.dictionary(), run.times().origin().expect("an origin"));
    let classes = Classes::new(&Rules::default(), &dictionary);
    let (ret, offset, image) = (Column::RET, Column::OFFSET, Column::IMAGE_SIZE);
    let columns = [
        Column::Phase,
        Column::Name,
        Column::Cat,
        Column::Process,
        Column::Tid,
        Column::Ts,
        Column::Dur,
        Column::File,
        Column::Rest,
        ret,
        offset,
        image,
    ];
    let mut events = Vec::new();
    let each = |batch: &weftline_index::Batch| {
        for row in (0..batch.rows()).filter(|row| batch.phases().value(*row) == b'X') {
            let number = |column: Column| batch.ints(column).is_valid(row).then(|| batch.ints(column).value(row));
            let files = batch.ids(Column::File);
            let file = files.is_valid(row).then(|| files.value(row));
            let (cat, name) = (batch.ids(Column::Cat).value(row), batch.ids(Column::Name).value(row));
            if classes.ignores_name(name) || classes.ignores_file(file) {
                continue;
            }
            let size = match classes.size_kind(cat, name) {
                SizeKind::Returned => number(ret).filter(|ret| *ret > 0),
                SizeKind::Image => number(image).filter(|size| *size > 0),
                _ => None,
            };
            let process = batch.ids(Column::Process).value(row);
            let text = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
            let start = number(Column::Ts).expect("a start");
            events.push([
                dictionary.name(name).to_owned(),
                classes.cat_label(classes.effective_cat(cat, classes.suffix_bits(file))).to_owned(),
                dictionary.process(process).pid.to_string(),
                text(number(Column::Tid)),
                (start / 1000).to_string(),
                text(number(Column::Dur).map(|dur| dur / 1000)),
                text(size),
                text(number(offset)),
                (classes.io_cat(cat, name) as u8).to_string(),
                file.and_then(|file| dictionary.path(file)).unwrap_or_default().to_owned(),
                dictionary.host(process).unwrap_or_default().to_owned(),
                ((start - origin) / 1_000_000_000).to_string(),
            ]);
        }
    };
    run.scan_in_order(&Request::of(columns), each).expect("scanned");
    events.sort_unstable();
    events
}

#[test]
fn raw_events_are_classified_alike() {
    for name in ["posix_small", "dlio"] {
        let theirs = csv(&format!("{name}/canonical/raw_events.csv.gz"));
        let place = |column: &str| theirs.columns.iter().position(|found| found == column).expect("a column");
        let places = RAW.map(place);
        let whole = |text: &str| text.strip_suffix(".0").unwrap_or(text).to_owned();
        let mut expected: Vec<[String; RAW.len()]> =
            theirs.rows.iter().map(|row| places.map(|place| whole(&row[place]))).collect();
        expected.sort_unstable();
        for no_index in [false, true] {
            let (_kept, run) = open(name, no_index);
            let found = raw_events(&run);
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{name}, without an index: {no_index}");
            }
        }
    }
}

/// DFAnalyzer spreads every record over five seconds (its default, although the tracer's is one): count, time and bytes are divided,
/// the extremes repeated. Adding the parts up gives the record back.
type Record = (i64, f64, f64, String, String, String, String);

fn expected_profiles() -> BTreeMap<(String, String, String, String, i64), Record> {
    let theirs = csv("hybrid_v1/current/profiles.csv.gz");
    let place = |column: &str| theirs.columns.iter().position(|found| found == column).expect("a column");
    let [cat, name, proc, io_cat, bucket] = ["cat", "func_name", "proc_name", "io_cat", "time_bucket"].map(place);
    let [count, time, size] = ["count", "time", "size"].map(place);
    let [time_min, time_max, size_min, size_max] = ["time_min", "time_max", "size_min", "size_max"].map(place);
    let mut all = BTreeMap::new();
    for row in &theirs.rows {
        // It takes samples of disks and networks for profiles; here they are what they are.
        if row[cat] == "io" || row[cat] == "net" {
            continue;
        }
        let number = |place: usize| row[place].parse::<f64>().unwrap_or(0.0);
        let key = (
            row[cat].clone(),
            row[name].clone(),
            row[proc].clone(),
            row[io_cat].clone(),
            row[bucket].parse().expect("a time"),
        );
        let extremes = [time_min, time_max, size_min, size_max].map(|place| row[place].clone());
        let [time_min, time_max, size_min, size_max] = extremes;
        let record: &mut Record = all.entry(key).or_insert((0, 0.0, 0.0, time_min, time_max, size_min, size_max));
        record.0 += number(count) as i64;
        record.1 += number(time);
        record.2 += number(size);
    }
    all
}

#[test]
fn profiles_in_both_dialects() {
    let expected = expected_profiles();
    assert_eq!(expected.values().map(|record| record.0).sum::<i64>(), 922, "calls");
    let mut tables = Vec::new();
    for name in ["hybrid", "hybrid_v1"] {
        let (_kept, run) = open(name, false);
        let ours = Profiles::of(&run, &ProfileQuestion::default()).expect("read").table();
        assert_eq!(ours.rows, expected.len(), "{name}");
        let origin = run.times().origin().expect("an origin");
        for row in 0..ours.rows {
            let text = |column: &str| match ours.get(row, column) {
                Field::Text(text) => text.to_owned(),
                Field::Int(number) => number.to_string(),
                other => panic!("{column}: {other:?}"),
            };
            let Field::Int(start) = ours.get(row, "time_start") else { panic!("no start") };
            let key = (text("cat"), text("func_name"), text("proc_name"), text("io_cat"), (start + origin) / 1000);
            let record = expected.get(&key).unwrap_or_else(|| panic!("{name}: no {key:?}"));
            let check = |column: &str, theirs: &str| {
                let found = ours.get(row, column);
                assert!(same(found, theirs), "{name} {key:?} {column}: {found:?}, not {theirs}");
            };
            check("count", &record.0.to_string());
            check("time", &record.1.to_string());
            // Each of its five parts is rounded down, so up to four bytes are lost.
            let size = ours.get(row, "size").number();
            let close = size.map_or(record.2 == 0.0, |size| (0.0..5.0).contains(&(size - record.2)));
            assert!(close, "{name} {key:?} size: {size:?}, not {}", record.2);
            check("time_min", &record.3);
            check("time_max", &record.4);
            check("size_min", &record.5);
            check("size_max", &record.6);
            // Its buckets count from the first sample of the system, a second before the first span; ours from the first span.
            let Field::Int(bucket) = ours.get(row, "time_range") else { panic!("no bucket") };
            assert_eq!(bucket, key.4 / 1_000_000 - 1_794_765_313, "{name} {key:?}");
            assert_eq!(ours.get(row, "time_end"), Field::Int(start + 1_000_000_000), "{name} {key:?}");
            assert_eq!(ours.get(row, "epoch"), Field::Null, "absent is null");
        }
        tables.push(ours);
    }
    assert_eq!(tables[0], tables[1], "the dialects differ");
}

#[test]
fn system_metrics_in_both_dialects() {
    let theirs = csv("hybrid_v1/current/system_metrics.csv.gz");
    let mut own_axis = Vec::new();
    for name in ["hybrid", "hybrid_v1"] {
        let (_kept, run) = open(name, false);
        // Its buckets are seconds of the clock, counted from the first sample.
        let origin = Some(1_794_765_312_000_000_000);
        let asked = SystemQuestion { origin, ..SystemQuestion::default() };
        let ours = SystemMetrics::of(&run, &asked).expect("read").table();
        check_table(&ours, &theirs, 2, name);
        own_axis.push(SystemMetrics::of(&run, &SystemQuestion::default()).expect("read").table());
    }
    // On the trace's axis the first samples lie before the first span.
    let buckets: Vec<Field<'_>> = (0..own_axis[0].rows).map(|row| own_axis[0].get(row, "time_range")).collect();
    assert_eq!(buckets, [-2, -1, 0, 1, 2].map(Field::Int));
    assert_eq!(own_axis[0], own_axis[1], "the dialects differ");
}
