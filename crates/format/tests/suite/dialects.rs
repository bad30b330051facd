//! Small files of every dialect, read plain and compressed in several ways: the same events every time.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use weftline_format::dialect::Dialect;
use weftline_format::event::{Event, Value};
use weftline_format::identity::Identity;
use weftline_format::reader::{Trace, read_bytes, read_file, read_run, scan_bytes, trace_files};
use weftline_format::text::path_bytes;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// One line per event: all that the model holds of it.
fn render(trace: &Trace) -> String {
    let mut out = String::new();
    for event in &trace.events {
        let Event { phase, name, cat, pid, tid, start_ns, dur_ns, id, args, extra } = event;
        let number = |v: &Option<i64>| v.map_or("-".to_owned(), |v| v.to_string());
        write!(out, "{} {cat}/{name} {pid}/{tid} {}+{}", phase.letter(), number(start_ns), number(dur_ns))
            .expect("text");
        if let Some(id) = id {
            write!(out, " #{id}").expect("text");
        }
        if let Some(path) = trace.path_of(event) {
            write!(out, " {}", path_bytes(path).escape_ascii()).expect("text");
        }
        for (key, value) in args {
            write!(out, " {key}={}", show(value)).expect("text");
        }
        for (key, value) in extra {
            write!(out, " !{key}={}", show(value)).expect("text");
        }
        out.push('\n');
    }
    out
}

fn show(value: &Value) -> String {
    match value {
        Value::Str(text) => format!("'{}'", path_bytes(text).escape_ascii()),
        Value::Json(text) => text.clone(),
        Value::Float(v) => format!("{v:?}"),
        Value::Int(v) => v.to_string(),
        Value::UInt(v) => format!("{v}u"),
        Value::Bool(v) => v.to_string(),
        Value::Null => "null".to_owned(),
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn check(name: &str, dialect: Dialect, expected: &str) -> Trace {
    let text = std::fs::read(fixture(name)).expect("a fixture");
    let trace = read_file(&fixture(name)).expect("read");
    assert_eq!(render(&trace).trim_end(), expected.trim(), "{name}");
    assert_eq!(trace.damage.flaws, [], "{name}");
    assert_eq!(trace.dialect, dialect, "{name}");
    let (one, two) = text.split_at(text.len() / 2);
    for (way, bytes) in [
        ("in memory", text.clone()),
        ("one gzip member", gzip(&text)),
        ("two members, cut anywhere", [gzip(one), gzip(two)].concat()),
        ("a member per byte", text.iter().flat_map(|byte| gzip(&[*byte])).collect()),
        ("padded with zeros", [gzip(&text), vec![0; 700]].concat()),
    ] {
        let again = read_bytes(&bytes);
        assert_eq!(render(&again), render(&trace), "{name} {way}");
        assert_eq!(again.damage.flaws, [], "{name} {way}");
        assert_eq!((&again.names, &again.aside, again.dialect), (&trace.names, &trace.aside, dialect), "{name} {way}");
        let mut scanned = Vec::new();
        let summary = scan_bytes(&bytes, &mut |event| scanned.push(event.to_event()));
        assert_eq!(summary.events, scanned.len() as u64, "{name} {way}");
        assert_eq!(render(&Trace { events: scanned, ..trace.clone() }), render(&trace), "{name} {way}");
    }
    trace
}

#[test]
fn weftline() {
    let trace = check(
        "weftline.pfw",
        Dialect::Weftline,
        r#"
M weft/process_name 70/70 1794764782402927005+- name='cat f.bin' host='vm' hhash='5c0d3f1e2a4b6978' boot='b-1' pidns=4026531836 start=123456 nonce='7f3a' ppid=69 exe='/bin/cat' cmd=["cat","f\udcff.bin"] cwd='/home/u' rank=0 seq=0
M dftracer/FH 70/70 -+- name='/data/f\xff.bin' value='0d6c6bbdb8359188'
X POSIX/pread64 70/71 1794764744755824123+7333 /data/f\xff.bin fd=3 fhash='0d6c6bbdb8359188' size=4096 ret=4096 offset=8192
C numbers/load 70/70 1794764744755900000+- nan=NaN text='NaN' big=18446744073709551615u low=-9223372036854775808
"#,
    );
    let identity = Identity::from_event(&trace.events[0]).expect("an identity line");
    assert_eq!((identity.pid, identity.start, identity.rank, identity.seq), (70, 123_456, Some(0), 0));
    assert_eq!(path_bytes(&identity.cmd[1]), &b"f\xff.bin"[..]);
    assert_eq!(Identity::from_event(&trace.events[1]), None);
}

#[test]
fn dftracer_of_all_ages() {
    check(
        "dftracer0.pfw",
        Dialect::Dftracer1,
        r#"
X POSIX/open64 11/12 1699871330000001000+15000 #0 /data/a.npz hostname='n1' fname='/data/a.npz' flags='524288'
X POSIX/read 11/12 1699871330000017000+4000 #1 /data/a.npz hostname='n1' fname='/data/a.npz' ret='512'
"#,
    );
    check(
        "dftracer1.pfw",
        Dialect::Dftracer1,
        r#"
M dftracer/HH 21/21 -+- #1 hhash=9509357668201227806u name='node7' value=9509357668201227806u
M dftracer/FH 21/21 -+- #2 hhash=9509357668201227806u name='/data/img_01.npz' value=12009357668201220001u
X POSIX/open64 21/22 1744610682000100000+33000 #3 /data/img_01.npz hhash=9509357668201227806u fhash=12009357668201220001u level=1 p_idx=-1
X AI/epoch 21/21 1744610682000000000+900000 #4 epoch=1 loss=NaN
"#,
    );
    let trace = check(
        "dftracer2.pfw",
        Dialect::Dftracer2,
        r#"
M dftracer/HH 31/31 -+- hhash='6882804a826580cd' name='vm' value='6882804a826580cd' !type=1
M dftracer/CM 31/31 -+- hhash='6882804a826580cd' name='time_metric' value='US' !type=1
M dftracer/FH 31/31 -+- hhash='6882804a826580cd' name='/scratch/f.txt' value='0d6c6bbdb8359188' !type=1
X POSIX/read 31/31 1794764744755855000+8000 #1 /scratch/f.txt hhash='6882804a826580cd' ret=3 count=4 fhash='0d6c6bbdb8359188' !type=3
X POSIX/write 31/31 1794764744755870000+12000 #2 !type=3
A POSIX/pwrite 31/31 1794764745000000000+- hhash='6882804a826580cd' dur_sum=366341 dft_cnt=294855 !type=3
C sys/cpu 0/0 1794764746029043000+- user_pct=51.1531 !type=7
"#,
    );
    assert_eq!(trace.names.host("6882804a826580cd"), Some("vm"));
}

#[test]
fn perfflowaspect() {
    check(
        "perfflow.array.pfw",
        Dialect::PerfFlowAspect,
        r#"
B app.py/foo 41/41 1794764702810185200+-
b app.py/load 41/43 1794764702811297750+- #43 !scope=null
X app.py/foo 42/42 1794764702811300000+5016264750
e app.py/load 41/43 1794764702811399500+- #43 !scope=null
C app.py/foo 41/41 1794764702811671800+- cpu_usage=47.51098272579018 memory_usage=0
E app.py/foo 41/41 1794764702811671800+-
"#,
    );
    let trace = check(
        "perfflow.object.pfw",
        Dialect::PerfFlowAspect,
        r#"
B /src/app.cpp/foo 44/44 1679127184455376000+-
E /src/app.cpp/foo 44/44 1679127184455976000+-
"#,
    );
    assert_eq!(trace.aside[0], ("displayTimeUnit".into(), "us".into()));
    assert_eq!(trace.aside[1].0, "otherData");
}

#[test]
fn chrome() {
    check(
        "chrome.array.json",
        Dialect::Chrome,
        r#"
X /café 😀 1/2 12345+655 path='C:\\dir\\\"x\"'
X /next 1/2 13000+1500
M /thread_name 1/2 -+- name='main'
f f/flow 0/2 10000+- #0x1 !bp='e' !pid='main'
i /object 1/2 20000+- #0x2 !ph='N'
"#,
    );
    let trace = check(
        "chrome.object.json",
        Dialect::Chrome,
        r#"
X train/step 7/7 1000000001+2000 shape=[1, 2, {"k": "}"}] ok=true none=null
C /gpu 7/0 1000002000+- util=100.0 mem=123456789012345678901234567890
"#,
    );
    let keys: Vec<&str> = trace.aside.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["displayTimeUnit", "otherData", "samples"]);
}

#[test]
fn runs_are_all_their_files() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let copy = |from: &str, to: &str| std::fs::copy(fixture(from), dir.path().join(to)).expect("copied");
    copy("weftline.pfw", "b.pfw");
    copy("dftracer2.pfw", "c.json");
    copy("dftracer2.pfw", ".hidden.pfw");
    copy("dftracer2.pfw", "run.json");
    copy("dftracer2.pfw", "notes.txt");
    std::fs::write(dir.path().join("a.pfw.gz"), gzip(&std::fs::read(fixture("dftracer1.pfw")).expect("a fixture")))
        .expect("written");
    std::fs::write(dir.path().join("d.json.gz"), "not gzip").expect("written");
    std::fs::create_dir(dir.path().join("run.d")).expect("made");
    copy("dftracer2.pfw", "run.d/e.json");
    let names: Vec<_> =
        trace_files(dir.path()).expect("listed").iter().filter_map(|p| p.file_name().map(|n| n.to_owned())).collect();
    assert_eq!(names, ["a.pfw.gz", "b.pfw", "c.json", "d.json.gz"]);
    let run = read_run(dir.path()).expect("read");
    assert_eq!(run.events.len(), 4 + 4 + 7);
    assert_eq!(run.damage.len(), 1);
    assert!(run.damage.flaws[0].to_string().contains("d.json.gz: byte 0: not an event"), "{}", run.damage.flaws[0]);
    assert_eq!(run.names.path("12009357668201220001"), Some("/data/img_01.npz"));
    assert!(read_run(&dir.path().join("nowhere")).is_err());
    assert!(read_file(&dir.path().join("nowhere.pfw")).is_err());
}
