//! Traces that are cut, torn, mixed up or just many: what can be read is read, the rest is counted and named.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use weftline_index::column::Column;
use weftline_index::run::Source;
use weftline_index::{OpenOptions, Request, Run};

fn line(n: u64) -> String {
    // Digits that do not repeat: a file must be large after compression to be cut.
    let noise = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let more = noise.rotate_left(17).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    format!(
        "{{\"name\":\"read\",\"cat\":\"POSIX\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{n},\"dur\":1,\"args\":{{\"x\":\"{noise:016x}{more:016x}\"}}}}\n"
    )
}

fn lines(range: std::ops::Range<u64>) -> String {
    range.map(line).collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn open(directory: &Path) -> (Vec<i64>, Vec<Source>) {
    read(&Run::open(&[directory.to_owned()], &OpenOptions::default()).expect("opened"))
}

fn read(run: &Run) -> (Vec<i64>, Vec<Source>) {
    let (states, _) = run
        .scan(&Request::of([Column::Ts]), Vec::new, |all: &mut Vec<i64>, batch| {
            all.extend(batch.ints(Column::Ts).iter().flatten().map(|ns| ns / 1000));
        })
        .expect("scanned");
    let mut starts: Vec<i64> = states.into_iter().flatten().collect();
    starts.sort_unstable();
    (starts, run.sources())
}

/// One file: which events are read, and what is said of the rest.
fn check(name: &str, bytes: &[u8], expected: impl IntoIterator<Item = i64>, flaws: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join(name), bytes).expect("written");
    let (starts, sources) = open(directory.path());
    let expected: Vec<i64> = expected.into_iter().collect();
    assert_eq!(starts.len(), expected.len(), "{name}: {sources:?}");
    assert_eq!(starts, expected, "{name}");
    let found: Vec<&str> = sources.iter().flat_map(|source| &source.damage).map(|flaw| flaw.what.as_str()).collect();
    assert_eq!(found, flaws, "{name}: {sources:?}");
}

#[test]
fn small_files() {
    let text = lines(0..100);
    check("plain.pfw", text.as_bytes(), 0..100, &[]);
    check("crlf.pfw", text.replace('\n', "\r\n").as_bytes(), 0..100, &[]);
    check("brackets.pfw.gz", &gzip(format!("[\n{}]\n", text.replace("}\n", "},\n")).as_bytes()), 0..100, &[]);
    let garbage = format!("{}garbage\n{}\u{0}\u{0}\n{}", lines(0..10), lines(10..20), lines(20..30));
    check("garbage.pfw", garbage.as_bytes(), 0..30, &["not an event", "not an event"]);
    check("cut.pfw", &text.as_bytes()[..text.len() - 10], 0..99, &["cut event"]);
    let packed = gzip(text.as_bytes());
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("torn.pfw.gz"), &packed[..packed.len() / 2]).expect("written");
    let (starts, sources) = open(directory.path());
    assert!(starts.len() > 20 && starts.len() < 80, "{}", starts.len());
    assert!(sources[0].damage.iter().any(|flaw| flaw.what == "torn member"), "{sources:?}");
}

/// Members of a large file: each so many lines.
fn many_members(count: u64, lines_each: u64) -> Vec<u8> {
    (0..count).flat_map(|n| gzip(lines(n * lines_each..(n + 1) * lines_each).as_bytes())).collect()
}

#[test]
fn large_files_of_many_members() {
    let bytes = many_members(40, 5000);
    assert!(bytes.len() > 5 << 20, "{}", bytes.len());
    check("whole.pfw.gz", &bytes, 0..200_000, &[]);
    // A line that goes on in the next member.
    let text = lines(0..200_000);
    let spanning: Vec<u8> = text.as_bytes().chunks(100_003).flat_map(gzip).collect();
    check("spanning.pfw.gz", &spanning, 0..200_000, &[]);
    // What looks like a member within one: stored data are not changed by compression.
    let mut stored = GzEncoder::new(Vec::new(), Compression::none());
    stored.write_all(lines(200_000..200_010).as_bytes()).expect("memory");
    let odd = format!(
        "{{\"name\":\"x\",\"ph\":\"i\",\"ts\":200010,\"pid\":1,\"tid\":1,\"args\":{{\"s\":\"{}\"}}}}\n",
        "\u{1f}"
    );
    stored.write_all(odd.as_bytes()).expect("memory");
    stored.write_all(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\n").expect("memory");
    let mut with_decoy = bytes;
    with_decoy.extend(stored.finish().expect("memory"));
    with_decoy.extend(many_members(1, 10));
    let expected = (0..10).chain(0..200_011).collect::<std::collections::BTreeSet<i64>>();
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("decoy.pfw.gz"), &with_decoy).expect("written");
    let (starts, sources) = open(directory.path());
    assert_eq!(starts.len(), 200_021, "{sources:?}");
    assert_eq!(starts.into_iter().collect::<std::collections::BTreeSet<i64>>(), expected);
}

#[test]
fn large_files_with_damage() {
    let bytes = many_members(40, 5000);
    let cut = &bytes[..bytes.len() - 1000];
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("cut.pfw.gz"), cut).expect("written");
    let (starts, sources) = open(directory.path());
    assert!(starts.len() > 195_000 && starts.len() < 200_000, "{}", starts.len());
    assert_eq!(starts, (0..starts.len() as i64).collect::<Vec<_>>());
    assert!(sources[0].flaws > 0, "{sources:?}");

    let mut torn = bytes;
    let middle = torn.len() / 2;
    torn[middle..middle + 50].fill(0xAA);
    fs::write(directory.path().join("cut.pfw.gz"), &torn).expect("written");
    let (starts, sources) = open(directory.path());
    assert!(starts.len() > 100_000, "{}", starts.len());
    assert!(sources[0].flaws > 0 && sources[0].lost_bytes > 0, "{sources:?}");
    let mut once = starts.clone();
    once.dedup();
    // Damaged data may stand for text that was there before, until their sum is known to be wrong: but only within their member.
    assert!(starts.len() - once.len() < 100, "{} events twice", starts.len() - once.len());
}

#[test]
fn one_endless_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("endless.pfw.gz");
    let mut encoder = GzEncoder::new(File::create(&path).expect("made"), Compression::fast());
    encoder.write_all(lines(0..10).as_bytes()).expect("written");
    encoder.write_all(b"{\"name\":\"").expect("written");
    for _ in 0..200 {
        encoder.write_all(&vec![b'a'; 1 << 20]).expect("written");
    }
    encoder.write_all(b"\n").expect("written");
    encoder.write_all(lines(10..20).as_bytes()).expect("written");
    encoder.finish().expect("written");
    let (starts, sources) = open(directory.path());
    assert_eq!(starts, (0..20).collect::<Vec<i64>>());
    assert!(sources[0].lost_bytes >= 200 << 20, "{sources:?}");
}

/// VizTracer and Chrome write all events in one line.
#[test]
fn a_long_line_of_events_loses_none() {
    const EVENTS: usize = 600_000;
    for head in ["{\"traceEvents\":[", "[\n"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("long.json");
        let mut file = BufWriter::new(File::create(&path).expect("made"));
        file.write_all(head.as_bytes()).expect("written");
        for n in 0..EVENTS {
            let comma = if n == 0 { "" } else { ", " };
            write!(
                file,
                "{comma}{{\"ph\": \"X\", \"name\": \"f\", \"cat\": \"FEE\", \"pid\": 1, \"tid\": 1, \"ts\": {n}, \"dur\": 0.5, \"args\": {{\"func_args\": \"{:60}\"}}}}",
                n
            )
            .expect("written");
        }
        file.write_all(if head.starts_with('{') { b"]}" } else { b"]" }).expect("written");
        file.flush().expect("written");
        let size = fs::metadata(&path).expect("there").len();
        assert!(size > 80 << 20, "longer than what is carried from block to block: {size}");
        let (starts, sources) = open(directory.path());
        assert_eq!((starts.len(), sources[0].flaws), (EVENTS, 0), "{head:?}: {:?}", sources[0].damage);
    }
}

#[test]
fn very_many_small_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for n in 0..100_000u64 {
        fs::write(directory.path().join(format!("{n}.pfw")), line(n)).expect("written");
    }
    let (starts, sources) = open(directory.path());
    assert_eq!((starts.len(), sources.len()), (100_000, 100_000));
    assert_eq!(starts, (0..100_000).collect::<Vec<i64>>());
    let again = Run::open(&[directory.path().to_owned()], &OpenOptions::default()).expect("opened");
    assert_eq!(again.index()[0].read, 0);
}

/// What has the name of a trace and cannot be read, for root neither.
fn plant_unreadable(directory: &Path) -> [&'static str; 4] {
    let at = |name: &str| directory.join(name);
    fs::create_dir(at("directory.pfw")).expect("made");
    std::os::unix::fs::symlink(at("nowhere"), at("link.pfw")).expect("linked");
    assert!(std::process::Command::new("mkfifo").arg(at("pipe.pfw")).status().expect("mkfifo runs").success());
    std::os::unix::net::UnixListener::bind(at("socket.json")).expect("bound");
    ["directory.pfw", "link.pfw", "pipe.pfw", "socket.json"]
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_the_others() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a.pfw"), lines(0..5)).expect("written");
    // Large enough to be cut into tasks.
    fs::write(at("z.pfw"), lines(5..50_000)).expect("written");
    let unreadable = plant_unreadable(directory.path());
    let one_by_one: Vec<_> = ["a.pfw", "z.pfw"].iter().chain(&unreadable).map(|name| at(name)).collect();
    let cases = [
        ("the directory", vec![directory.path().to_owned()]),
        ("a glob", vec![directory.path().join("*.{pfw,json}")]),
        ("all by name", one_by_one),
    ];
    for (what, named) in cases {
        // Without an index, with a new one, and with one that is there.
        for no_index in [true, false, false] {
            let run = Run::open(&named, &OpenOptions { no_index, ..OpenOptions::default() }).expect("opened");
            let (read_now, (starts, sources)) = (run.index().first().map(|index| index.read), read(&run));
            assert_eq!(starts, (0..50_000).collect::<Vec<_>>(), "{what}");
            let bytes: u64 = sources.iter().map(|source| source.bytes).sum();
            assert_eq!(bytes as usize, lines(0..50_000).len(), "{what}, without an index: {no_index}");
            let mut skipped: Vec<_> = sources.iter().filter(|source| source.unreadable.is_some()).collect();
            skipped.sort_by(|a, b| a.path.cmp(&b.path));
            let names: Vec<_> = skipped.iter().filter_map(|source| source.path.file_name()?.to_str()).collect();
            assert_eq!((names.as_slice(), sources.len()), (&unreadable[..], 6), "{what}: {sources:?}");
            let is_first = !no_index && read_now != Some(0);
            assert!(no_index || what != "the directory" || is_first == (read_now == Some(6)), "{what}: {read_now:?}");
        }
        let again = Run::open(&named, &OpenOptions::default()).expect("opened");
        assert!(again.index().iter().all(|index| index.read == 0), "{what} is read again and again");
    }
    // What can be read all of a sudden is read.
    fs::write(at("nowhere"), lines(50_000..50_010)).expect("written");
    assert_eq!(open(directory.path()).0, (0..50_010).collect::<Vec<_>>());
}

/// What holds no event is refused in one sentence, and nothing is written beside it.
#[test]
fn what_is_no_trace_is_refused() {
    let file = |name: &'static str, bytes: &[u8]| (name, bytes.to_owned());
    let junk = [
        file("empty.pfw", b""),
        file("empty.pfw.gz", &gzip(b"")),
        file("passwd", b"root:x:0:0:root:/root:/bin/bash\n"),
        file("package.json", br#"{"name":"x","version":"1.0"}"#),
        file("list.json", b"[1, 2, 3]"),
        file("zeros.pfw", &[0; 10_000]),
        file("twice.pfw.gz", &gzip(&gzip(lines(0..10).as_bytes()))),
        file("cut.pfw.gz", &gzip(lines(0..10).as_bytes())[..15]),
        file("metadata.json", br#"[{"name":"process_name","ph":"M","pid":1,"args":{"name":"x"}}]"#),
    ];
    let refused = |named: &Path, expected: &str| {
        for no_index in [true, false] {
            let options = OpenOptions { no_index, ..OpenOptions::default() };
            let error = Run::open(&[named.to_owned()], &options).map(|_| ()).expect_err("no trace");
            let is_right = matches!(error, weftline_index::IndexError::NoEvents { .. });
            assert!(is_right && error.to_string().contains(expected), "{}: {error}", named.display());
        }
    };
    let all = tempfile::tempdir().expect("a temporary directory");
    for (name, bytes) in &junk {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for place in [directory.path(), all.path()] {
            fs::write(place.join(name), bytes).expect("written");
        }
        refused(&directory.path().join(name), "it holds no trace events");
        assert!(!directory.path().join(".weft").exists(), "an index beside {name}");
    }
    refused(all.path(), "none of its 8 files holds trace events;");
    plant_unreadable(all.path());
    refused(all.path(), "none of its 12 files holds trace events, and 4 cannot be read");
    refused(&all.path().join("pipe.pfw"), "is not a regular file");
    assert!(!all.path().join(".weft").exists());
    // An index that an earlier version left does not help.
    fs::create_dir_all(all.path().join(".weft/index")).expect("made");
    fs::write(all.path().join(".weft/index/index.json"), "{}").expect("written");
    refused(all.path(), "cannot be read");
}

/// A run that recorded nothing can be asked all the same; who needs events says so.
#[test]
fn an_empty_run_is_a_run() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let manifest = weftline_format::manifest::RunManifest { id: "7f3a".into(), ..Default::default() };
    manifest.create(directory.path()).expect("made");
    for no_index in [true, false] {
        let run = Run::open(&[directory.path().to_owned()], &OpenOptions { no_index, ..OpenOptions::default() });
        let run = run.expect("a run");
        let refused = run.require_events().expect_err("no events").to_string();
        assert!(refused.contains("nothing was recorded"), "{refused}");
        assert_eq!(read(&run), (Vec::new(), Vec::new()));
        assert!(!directory.path().join(".weft").exists());
    }
}

/// What is no file is not waited for, what supervisors noted is no trace, and a file is as long as its data.
#[test]
fn planted_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("run.d")).expect("made");
    for name in ["run.json", "run.d/vm-1-2.json"] {
        fs::write(at(name), "{\"pid\": 1}").expect("written");
    }
    for pipe in ["pipe.pfw", "run.d/pipe.json"] {
        assert!(std::process::Command::new("mkfifo").arg(at(pipe)).status().expect("mkfifo runs").success());
    }
    let refused = Run::open(&[directory.path().to_owned()], &OpenOptions::default()).map(|_| ());
    assert!(matches!(refused, Err(weftline_index::IndexError::NoEvents { .. })), "{refused:?}");

    for (name, bytes) in
        [("plain.pfw", lines(0..100).into_bytes()), ("packed.pfw.gz", gzip(lines(100..200).as_bytes()))]
    {
        fs::write(at(name), bytes).expect("written");
        File::options().append(true).open(at(name)).and_then(|file| file.set_len(1 << 40)).expect("a terabyte");
    }
    let (starts, sources) = open(directory.path());
    assert_eq!(starts, (0..200).collect::<Vec<_>>());
    assert_eq!(sources.iter().filter(|source| source.unreadable.is_some()).count(), 1, "the pipe: {sources:?}");
    for source in sources.iter().filter(|source| source.unreadable.is_none()) {
        assert!(source.damage.iter().any(|flaw| flaw.note.contains("a hole in the file")), "{sources:?}");
    }
}
