//! Real traces of DFTracer: every event is there, with its arguments, whichever way it is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weftline_format::reader;
use weftline_format::{Phase, Value};
use weftline_index::column::{Column, phase_code};
use weftline_index::{OpenOptions, Request, Run};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden").join(name)
}

/// Copies traces, so that their index does not lie among the originals.
fn copy(name: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for entry in std::fs::read_dir(golden(name)).expect("the golden traces") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    directory
}

type Counts = BTreeMap<(String, String, i64, String), (u64, i64, i64)>;

/// Counts, durations and results per name, category, process and path, as the plain reader sees them.
fn expected(directory: &Path) -> Counts {
    let trace = reader::read_run(directory).expect("readable");
    let mut counts = Counts::new();
    for event in trace.events.iter().filter(|event| event.phase != Phase::Metadata) {
        let path = trace.path_of(event).unwrap_or_default().to_owned();
        let group = counts.entry((event.name.clone(), event.cat.clone(), event.pid, path)).or_default();
        group.0 += 1;
        group.1 += event.dur_ns.unwrap_or(0);
        group.2 += event.arg("ret").and_then(Value::as_i64).unwrap_or(0);
    }
    counts
}

fn found(run: &Run) -> Counts {
    let columns = [Column::Phase, Column::Name, Column::Cat, Column::Process, Column::File, Column::Dur, Column::RET];
    let (states, _) = run
        .scan(&Request::of(columns), Vec::new, |all: &mut Vec<_>, batch| {
            use arrow_array::Array as _;
            let (names, cats) = (batch.ids(Column::Name), batch.ids(Column::Cat));
            let (processes, files) = (batch.ids(Column::Process), batch.ids(Column::File));
            let (dur, ret) = (batch.ints(Column::Dur), batch.ints(Column::RET));
            for row in (0..batch.rows()).filter(|row| batch.phases().value(*row) != phase_code(Phase::Metadata)) {
                let file = files.is_valid(row).then(|| files.value(row));
                let number =
                    |column: &arrow_array::Int64Array| if column.is_valid(row) { column.value(row) } else { 0 };
                all.push((names.value(row), cats.value(row), processes.value(row), file, number(dur), number(ret)));
            }
        })
        .expect("scanned");
    let dictionary = run.dictionary();
    let mut counts = Counts::new();
    for (name, cat, process, file, dur, ret) in states.into_iter().flatten() {
        let path = file.and_then(|file| dictionary.path(file)).unwrap_or_default().to_owned();
        let key =
            (dictionary.name(name).to_owned(), dictionary.cat(cat).to_owned(), dictionary.process(process).pid, path);
        let group = counts.entry(key).or_default();
        group.0 += 1;
        group.1 += dur;
        group.2 += ret;
    }
    counts
}

fn check(name: &str, events: u64) {
    let directory = copy(name);
    let expected = expected(directory.path());
    assert_eq!(expected.values().map(|group| group.0).sum::<u64>(), events, "{name}");
    let named = [directory.path().to_owned()];
    for options in [
        OpenOptions::default(),
        OpenOptions { no_index: true, ..OpenOptions::default() },
        OpenOptions { threads: Some(1), ..OpenOptions::default() },
    ] {
        let run = Run::open(&named, &options).expect("opened");
        assert_eq!(found(&run), expected, "{name}, without an index: {}", options.no_index);
    }
    let again = Run::open(&named, &OpenOptions::default()).expect("opened");
    assert_eq!(again.index()[0].read, 0, "the index of {name} was built twice");
}

#[test]
fn dftracer_2() {
    check("posix_small/trace", 799);
}

#[test]
fn dftracer_1_with_integer_hashes() {
    check("dlio/trace", 18_039);
}

#[test]
fn aggregated_and_service_files() {
    check("hybrid/trace", 177);
    check("hybrid_v1/trace", 177);
}
