//! A user's format beside known ones, from files to a run.

use std::fs;
use std::io::Read;
use std::path::Path;

use weftline_format::progress::Silent;
use weftline_import::config::Config;
use weftline_import::import::{Imported, Options, Target, import};

const CONFIG: &str = "\
[[format]]
name = 'mine'
match = { name = '*.mine' }
kind = 'jsonl'
[format.fields]
time = { field = 't', unit = 'ms' }
duration = { field = 'd', unit = 'ms' }
pid = 'pid'
name = 'n'
";

fn options(config: &str) -> Options {
    let config = Config::parse("weft.toml", config.as_bytes()).expect("a good file");
    Options { config: Some(config), host: "here".to_owned(), ..Options::default() }
}

/// Lines of all trace files of a run, each of which is JSON.
fn lines(run: &Path) -> Vec<serde_json::Value> {
    let mut found = Vec::new();
    for entry in fs::read_dir(run).expect("a run").flatten() {
        if !entry.file_name().to_string_lossy().ends_with(".pfw.gz") {
            continue;
        }
        let mut text = String::new();
        let file = fs::File::open(entry.path()).expect("there");
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("text");
        found.extend(
            text.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).expect(line)),
        );
    }
    found
}

#[test]
fn a_folder_with_a_format_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let from = directory.path().join("from");
    fs::create_dir(&from).expect("made");
    let odd =
        "{\"t\":1794992400000,\"d\":5,\"pid\":7,\"n\":\"a\\\"\\n\",\"k\\\"\\\\\\u0001\":\"v\",\"x\":{\"y\":[1]}}\n";
    fs::write(from.join("a.mine"), odd).expect("written");
    fs::copy(data("strace.txt"), from.join("strace.txt")).expect("copied");
    fs::write(from.join("other"), "hello\n").expect("written");
    let run = directory.path().join("run");
    let new =
        |options: &Options| import(std::slice::from_ref(&from), Target::New(&run), options, &Silent).expect("imported");
    let Imported { record, known, .. } = new(&options(CONFIG));
    assert!(!known);
    let kinds: Vec<&str> = record.sources.iter().map(|source| source.kind.as_str()).collect();
    assert_eq!(kinds, ["mine", "strace"]);
    assert_eq!(record.unknown.len(), 1);
    let all = lines(&run);
    let mine = all.iter().find(|line| line["cat"] == "mine").expect("an event");
    assert_eq!((&mine["name"], &mine["dur"]), (&"a\"\n".into(), &5000.into()));
    assert_eq!(mine["args"]["k\"\\\u{1}"], "v");
    assert_eq!(mine["args"]["x"]["y"][0], 1);
    // The same again adds nothing; read by another description it is something else.
    let again = import(std::slice::from_ref(&from), Target::Into(&run), &options(CONFIG), &Silent).expect("imported");
    assert!(again.known);
    let other = CONFIG.replace("unit = 'ms' }\npid", "unit = 'us' }\npid");
    let other = import(std::slice::from_ref(&from), Target::Into(&run), &options(&other), &Silent).expect("imported");
    assert!(!other.known);
    // Forced by name.
    let forced = Options { kind: Some("mine".to_owned()), ..options(CONFIG) };
    let elsewhere = directory.path().join("forced");
    let forced = import(&[from.join("a.mine")], Target::New(&elsewhere), &forced, &Silent).expect("imported");
    assert_eq!(forced.record.events(), 1);
    let unknown = Options { kind: Some("yours".to_owned()), ..options(CONFIG) };
    let error =
        import(&[from], Target::New(&directory.path().join("none")), &unknown, &Silent).expect_err("no such kind");
    assert!(error.to_string().contains("\"yours\"") && error.to_string().contains("mine"), "{error}");
}

#[test]
fn a_folder_of_tracekit() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = directory.path().join("run");
    let options = Options { host: "here".to_owned(), ..Options::default() };
    let done = import(&[data("tracekit")], Target::New(&run), &options, &Silent).expect("imported");
    assert!(done.record.unknown.is_empty(), "{:?}", done.record.unknown);
    let elsewhere = |name: &str| done.record.sources.iter().filter(|source| source.skipped.contains_key(name)).count();
    assert_eq!(elsewhere("told by another file of the folder"), 9);
    let all = lines(&run);
    let spans = all.iter().filter(|line| line["ph"] == "X" && line["cat"] == "tracekit").count();
    assert_eq!((spans, all.iter().filter(|line| line["cat"] == "process").count()), (1, 4));
}

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}
