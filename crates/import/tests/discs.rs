//! A small result folder of the DISCS tools, imported as a whole.

use std::fs;
use std::path::{Path, PathBuf};

use weftline_format::progress::Silent;
use weftline_import::config::Config;
use weftline_import::import::Target;
use weftline_import::input::Head;
use weftline_import::record::ImportRecord;
use weftline_import::{Options, import, registry};

const FILES: [(&str, &str, u64); 11] = [
    ("cpu.out", "mpstat", 3),
    ("dlio.log", "dlio", 5),
    ("gpu.out", "nvidia-pmon", 10),
    ("ifstat.out", "ifstat", 2),
    ("iostat.json", "iostat", 2),
    ("mllog.log", "mllog", 3),
    ("pids.out", "ps", 2),
    ("trace_openat.out", "bpftrace", 1),
    ("trace_read.out", "bpftrace", 3),
    ("trace_time_align.out", "bpftrace-time", 0),
    ("vmstat.out", "vmstat", 10),
];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A folder with the named files, imported.
fn check(names: &[&str], options: &Options) -> ImportRecord {
    let scratch = tempfile::tempdir().expect("a directory");
    let folder = scratch.path().join("results");
    fs::create_dir(&folder).expect("made");
    for name in names {
        fs::copy(data(name), folder.join(name)).expect("copied");
    }
    let run = scratch.path().join("run");
    import(&[folder], Target::New(&run), options, &Silent).expect("imported").record
}

fn has_note(record: &ImportRecord, words: &str) -> bool {
    record.notes.iter().any(|note| note.contains(words))
}

#[test]
fn a_folder_is_one_set() {
    let record = check(&FILES.map(|(name, ..)| name), &Options::default());
    assert!(record.unknown.is_empty());
    for (source, (name, kind, events)) in record.sources.iter().zip(FILES) {
        assert!(source.name.ends_with(name));
        assert_eq!((source.kind.as_str(), source.events), (kind, events), "{name}: {:?}", source.skipped);
    }
    for words in ["Workload: dlio", "1 worker (4101), 1 loader (4102)", "UTC+02:00", "tightest of 3 changes", "1 init"]
    {
        assert!(has_note(&record, words), "{words}: {:?}", record.notes);
    }
    let clock = record.sources[8].clock.as_ref().expect("a clock");
    assert_eq!((clock.to_utc(5_001_000_000_000), clock.error_ns), (1_690_000_001_000_000_000, Some(10_000)));
}

#[test]
fn what_is_told_is_stronger() {
    let mut options = Options { zone_seconds: Some(3600), ..Options::default() };
    let told = "[discs]\nworkload = \"segmentation\"\nroles = { 4102 = \"reader\" }\n";
    options.config = Some(Config::parse("told.toml", told.as_bytes()).expect("a description"));
    let record = check(&["trace_time_align.out", "trace_read.out", "gpu.out", "mllog.log"], &options);
    assert!(has_note(&record, "Workload: segmentation.") && !has_note(&record, "UTC+02:00"), "{:?}", record.notes);
    let clock = record.sources[2].clock.as_ref().expect("a clock");
    assert_eq!(clock.to_utc(5_001_000_000_000), 1_690_003_601_000_000_000);
}

#[test]
fn nothing_tells_the_zone() {
    let record = check(&["trace_time_align.out", "trace_read.out", "cpu.out"], &Options::default());
    assert!(has_note(&record, "nothing tells it; local times are taken as UTC"), "{:?}", record.notes);
}

#[test]
fn each_format_stands_alone() {
    for format in registry::FORMATS {
        let Some((name, ..)) = FILES.iter().find(|(name, ..)| *name == format.example) else { continue };
        let bytes = fs::read(data(name)).expect("there");
        let found = registry::detect(&Head { name, bytes: &bytes }).expect("a format");
        assert_eq!(found.0.kind, format.kind, "{name}");
        if format.kind != "bpftrace-time" {
            assert!(check(&[name], &Options::default()).events() > 0, "{name}");
        }
    }
}

/// Whatever a file holds, it is read or refused, and nothing panics: each format with each other's files, and with bytes that were changed.
#[test]
fn the_wrong_kind_forced() {
    let scratch = tempfile::tempdir().expect("a directory");
    for (place, (name, kind, _)) in FILES.iter().enumerate() {
        for (other, ..) in FILES {
            let run = scratch.path().join(format!("{place}-{other}"));
            let options = Options { kind: Some((*kind).to_owned()), ..Options::default() };
            if let Err(error) = import(&[data(other)], Target::New(&run), &options, &Silent) {
                assert!(error.to_string().contains(other), "{name} as {kind}: {error}");
            }
        }
        let bytes = fs::read(data(name)).expect("there");
        for step in 0..21 {
            let mut changed = bytes.clone();
            let at = step * 131 % changed.len();
            changed[at] = [0, 0xff, b'\n', b' ', b'9', b'"', b'-'][step % 7];
            let path = scratch.path().join("changed");
            fs::write(&path, &changed).expect("written");
            let run = scratch.path().join(format!("{place}-{step}"));
            let options = Options { kind: Some((*kind).to_owned()), ..Options::default() };
            let _ = import(&[path], Target::New(&run), &options, &Silent);
        }
    }
}
