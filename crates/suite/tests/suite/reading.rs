//! Reading verbs on files that are no trace, cannot be read, or are empty: one sentence, the right status, and nothing written beside them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use weftline_testkit::Scratch;
use weftline_testkit::compile::{PLAIN, STATIC, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome, weft};

use crate::bad_days::Small;

const LINE: &str =
    r#"{"name":"read","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":5,"dur":1,"args":{"fhash":"f","ret":10}}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut tool = Command::new("gzip").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip runs");
    tool.stdin.take().expect("a pipe").write_all(bytes).expect("it reads");
    tool.wait_with_output().expect("it ends").stdout
}

/// The reading verbs, `query` among them where its part is built.
fn verbs() -> Vec<(Vec<&'static str>, Option<&'static str>)> {
    let mut verbs = vec![
        (vec!["info"], None),
        (vec!["info", "--json"], None),
        (vec!["check"], None),
        (vec!["check", "--json"], None),
        (vec!["report"], None),
        (vec!["report", "--no-index"], None),
        (vec!["index"], None),
    ];
    if product().with_file_name("weft-sql").is_file() {
        verbs.push((vec!["query"], Some("SELECT count(*) FROM events")));
    }
    verbs
}

fn ask(verb: &(Vec<&'static str>, Option<&'static str>), named: &[PathBuf], scratch: &Scratch) -> Outcome {
    let mut words: Vec<OsString> = verb.0.iter().map(OsString::from).collect();
    words.extend(named.iter().map(OsString::from));
    words.extend(verb.1.map(OsString::from));
    weft(words, scratch)
}

fn said(outcome: &Outcome) -> String {
    format!("{}{}", String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr))
}

fn json_of(words: &[&OsStr], scratch: &Scratch) -> Value {
    let outcome = weft(words, scratch);
    assert_eq!(outcome.status, 0, "{words:?}: {}", said(&outcome));
    serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}: {}", said(&outcome)))
}

#[test]
fn what_holds_no_event_is_refused_by_every_verb() {
    let scratch = Scratch::new("no-events");
    let utf16: Vec<u8> = LINE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let junk: [(&[u8], Vec<u8>); 10] = [
        (b"empty.pfw", Vec::new()),
        (b"passwd", b"root:x:0:0:root:/root:/bin/bash\n".to_vec()),
        (b"package.json", br#"{"name":"x","version":"1.0","scripts":{"a":"b"}}"#.to_vec()),
        (b"empty.pfw.gz", gzip(b"")),
        (b"twice.pfw.gz", gzip(&gzip(LINE.as_bytes()))),
        (b"cut.pfw.gz", gzip(LINE.as_bytes())[..12].to_vec()),
        (b"utf16.json", utf16),
        (b"zeros.pfw", vec![0; 5000]),
        (b"\xff\xfe\x80.pfw", b"junk".to_vec()),
        (b"metadata.json", br#"[{"name":"process_name","ph":"M","pid":1,"args":{"name":"x"}}]"#.to_vec()),
    ];
    let all = scratch.dir("all");
    let mut named = vec![(vec![all.clone()], "9 files")];
    for (number, (name, bytes)) in junk.iter().enumerate() {
        let alone = scratch.dir(&format!("alone-{number}")).join(OsStr::from_bytes(name));
        for path in [&alone, &all.join(OsStr::from_bytes(name))] {
            fs::write(path, bytes).expect("written");
        }
        named.push((vec![alone], "it holds no trace events"));
    }
    for verb in verbs() {
        for (what, sentence) in &named {
            let outcome = ask(&verb, what, &scratch);
            let said = said(&outcome);
            assert_eq!(outcome.status, 1, "{verb:?} {what:?}: {said}");
            assert!(said.contains(sentence) && said.contains("name a run directory"), "{verb:?} {what:?}: {said}");
            assert!(!said.lines().any(|line| line.starts_with("complete")), "{verb:?} {what:?}: {said}");
        }
    }
    for (what, _) in &named {
        let beside = if what[0].is_dir() { &what[0] } else { what[0].parent().expect("in a directory") };
        assert!(!beside.join(".weft").exists(), "an index beside {what:?}");
    }
}

#[test]
fn what_cannot_be_read_among_many_is_skipped_and_named() {
    let scratch = Scratch::new("unreadable");
    let directory = scratch.dir("traces");
    let at = |name: &str| directory.join(name);
    for name in ["a.pfw", "b.pfw", "closed.pfw"] {
        fs::write(at(name), format!("{LINE}\n")).expect("written");
    }
    fs::create_dir(at("directory.pfw")).expect("made");
    std::os::unix::fs::symlink("nowhere", at("link.pfw")).expect("linked");
    std::os::unix::fs::symlink("loop.pfw", at("loop.pfw")).expect("linked");
    std::os::unix::net::UnixListener::bind(at("socket.pfw")).expect("bound");
    assert!(Command::new("mkfifo").arg(at("pipe.pfw")).status().is_ok_and(|status| status.success()));
    fs::set_permissions(at("closed.pfw"), fs::Permissions::from_mode(0o0)).expect("own file");
    let names = ["a.pfw", "b.pfw", "closed.pfw", "directory.pfw", "link.pfw", "loop.pfw", "pipe.pfw", "socket.pfw"];
    let by_name: Vec<PathBuf> = names.iter().map(|name| at(name)).collect();
    for named in [vec![directory.clone()], vec![directory.join("*.pfw")], by_name] {
        for verb in verbs() {
            let mut words: Vec<OsString> =
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"].map(Into::into).into();
            words.push(product().into());
            words.extend(verb.0.iter().map(OsString::from));
            words.extend(named.iter().map(OsString::from));
            words.extend(verb.1.map(OsString::from));
            let mut job = Job::new(words, &scratch.dir("verb"));
            let none = Some("/etc/passwd/none".into());
            job.environment.extend([("XDG_CACHE_HOME".into(), none.clone()), ("HOME".into(), none)]);
            let outcome = job.run();
            // Lines are broken where the width of a terminal says.
            let said = said(&outcome).split_whitespace().collect::<Vec<_>>().join(" ");
            let expected = i32::from(verb.0[0] == "check");
            assert_eq!(outcome.status, expected, "{verb:?} {named:?}: {said}");
            // Two files can be read; the others are named, or counted where there are many.
            let reported = match verb.0[0] {
                "query" => said.contains('2'),
                "report" => said.contains("2 events (2 spans)") && said.contains("6 files could not be read: "),
                "index" => said.contains("closed.pfw"),
                _ => {
                    let reported = said.contains("could not be read") || said.contains("\"unreadable\"");
                    reported && names[2..].iter().all(|name| said.contains(name))
                }
            };
            // Nobody may write an index there: what `index` says then is that it could not.
            assert!(reported || verb.0[0] == "index", "{verb:?} {named:?}: {said}");
        }
    }
}

/// A run without events is a run: it can be asked, and every other verb says why there are none.
#[test]
fn an_empty_run_is_explained() {
    let scratch = Scratch::new("empty-run");
    let run = scratch.join("run");
    let outcome = Job::new([compile("plain_work", STATIC)], &scratch.dir("work")).traced(&run).run();
    assert_eq!(outcome.status, 11, "{}", said(&outcome));
    for verb in verbs() {
        let outcome = ask(&verb, std::slice::from_ref(&run), &scratch);
        let (said, is_query) = (said(&outcome), verb.0[0] == "query");
        assert_eq!(outcome.status, i32::from(!is_query), "{verb:?}: {said}");
        assert!(is_query || said.contains("static"), "{verb:?}: {said}");
    }
    assert!(!run.join(".weft").exists());
}

/// What is a trace in another wrapping, or another tool's profile, is told by name and with the way out.
#[test]
fn what_looks_like_a_trace_is_told_what_it_is() {
    let scratch = Scratch::new("other-forms");
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(LINE.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for (name, bytes, word) in [
        ("a.json.zst", b"\x28\xb5\x2f\xfd\x04\0\0".to_vec(), "zstd"),
        ("a.json.xz", b"\xfd7zXZ\0\0\x04".to_vec(), "unxz"),
        ("a.json.bz2", b"BZh91AY&SY".to_vec(), "bunzip2"),
        ("a.zip", b"PK\x03\x04\x14".to_vec(), "unzip"),
        ("utf16.json", utf16, "UTF-16"),
        ("program", b"\x7fELF\x02".to_vec(), "weft run"),
        (
            "speedscope.json",
            br#"{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[]}"#.to_vec(),
            "speedscope",
        ),
    ] {
        let path = scratch.join(name);
        fs::write(&path, bytes).expect("written");
        for verb in ["report", "info", "check"] {
            let outcome = weft([verb.as_ref(), path.as_os_str()], &scratch);
            let said = said(&outcome);
            assert_eq!(outcome.status, 1, "{verb} {name}: {said}");
            assert!(said.contains(word) && said.contains("it holds no trace events"), "{verb} {name}: {said}");
        }
    }
}

/// Records without trace files: a copy that is not whole is not taken for a program that did nothing.
#[test]
fn missing_trace_files_are_named() {
    let scratch = Scratch::new("missing-traces");
    made(scratch.path(), "run", 10, 0);
    for verb in ["report", "check"] {
        let outcome = weft([verb.as_ref(), scratch.join("run").as_os_str()], &scratch);
        let said = said(&outcome);
        assert_eq!(outcome.status, 1, "{verb}: {said}");
        assert!(said.contains("7 events were recorded, but the trace files (*.pfw.gz) are missing"), "{verb}: {said}");
    }
}

/// A question that nothing answers says so.
#[test]
fn an_empty_window_is_told() {
    let scratch = Scratch::new("empty-window");
    let trace = scratch.join("trace.pfw");
    fs::write(&trace, format!("{LINE}\n")).expect("written");
    for (options, told) in [
        (&["--from", "5s"][..], true),
        (&["--where", "name = 'nothing'"], true),
        (&["--to", "5s"], false),
        (&[], false),
    ] {
        let words = ["report"].iter().chain(options).map(OsStr::new).chain([trace.as_os_str()]);
        let outcome = weft(words, &scratch);
        assert_eq!(outcome.status, 0, "{options:?}: {}", said(&outcome));
        assert_eq!(String::from_utf8_lossy(&outcome.stderr).contains("no span matches"), told, "{options:?}");
    }
}

/// A damaged page where nothing can be written: the answer is the same, and the reason is told.
#[test]
fn a_damaged_index_on_a_disk_that_cannot_be_written() {
    let scratch = Scratch::new("sealed");
    let small = Small::tmpfs(&scratch, "16m");
    let trace: String = (0..20_000).map(|n| LINE.replace("\"ts\":5", &format!("\"ts\":{n}")) + "\n").collect();
    fs::write(small.path.join("a.pfw"), trace).expect("written");
    let report = |words: &[&str]| {
        let mut command: Vec<OsString> = vec![product().into(), "report".into(), "--json".into()];
        command.extend(words.iter().map(OsString::from));
        command.push(small.path.clone().into());
        let mut job = Job::new(command, &scratch.dir("verb"));
        let none = Some("/etc/passwd/none".into());
        job.environment.extend([("XDG_CACHE_HOME".into(), none.clone()), ("HOME".into(), none)]);
        let outcome = job.run();
        assert_eq!(outcome.status, 0, "{}", said(&outcome));
        let mut answer: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
        answer["job"]["traces"] = Value::Null;
        (answer, String::from_utf8_lossy(&outcome.stderr).into_owned())
    };
    let (truth, reported) = report(&[]);
    assert_eq!((&truth["job"]["read_bytes"], reported.as_str()), (&json!(200_000), ""));
    let index = fs::read_dir(small.path.join(".weft/index")).expect("an index").flatten().map(|entry| entry.path());
    let rows = index.filter(|path| path.extension().is_some_and(|end| end == "rows")).collect::<Vec<_>>();
    let mut bytes = fs::read(&rows[0]).expect("read");
    let half = bytes.len() / 2;
    bytes[100..half].iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(&rows[0], bytes).expect("written");
    let sealed = Command::new("mount").args(["-o", "remount,ro"]).arg(&small.path).status();
    assert!(sealed.is_ok_and(|status| status.success()));
    let (answer, reported) = report(&[]);
    assert!(reported.contains("reading the traces without an index"), "{reported}");
    assert_eq!(answer, truth);
}

/// "Events" are the same in `info` and `report`, and bytes in `list` and `report`, where nothing is left out.
#[test]
fn one_word_one_meaning() {
    let scratch = Scratch::new("definitions");
    let runs = scratch.dir("runs");
    let run = runs.join("run");
    let program = compile("kernel_copies", PLAIN);
    let outcome = Job::new([program], &scratch.dir("work")).traced(&run).run();
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    let report = json_of(&["report".as_ref(), "--json".as_ref(), run.as_os_str()], &scratch);
    let info = json_of(&["info".as_ref(), "--json".as_ref(), run.as_os_str()], &scratch);
    let list = json_of(&["list".as_ref(), "--json".as_ref(), runs.as_os_str()], &scratch);
    assert_eq!(report["job"]["all_events"], info["events"]);
    assert_eq!(report["job"]["all_events"], list[0]["events"]);
    assert_eq!(report["job"]["spans"], report["job"]["events"]);
    for key in ["read_bytes", "written_bytes"] {
        assert!(list[0][key].as_u64() > Some(0), "{list}");
        assert_eq!(report["job"][key], list[0][key], "{key}");
    }
    let of_run: Vec<PathBuf> = fs::read_dir(&run).expect("a run").flatten().map(|entry| entry.path()).collect();
    let traces = of_run.iter().filter(|path| path.to_string_lossy().ends_with(".pfw.gz"));
    let words: Vec<&OsStr> =
        ["info".as_ref(), "--json".as_ref()].into_iter().chain(traces.map(|path| path.as_os_str())).collect();
    let files = json_of(&words, &scratch);
    let sum = |key: &str| files.as_array().into_iter().flatten().filter_map(|file| file[key].as_u64()).sum::<u64>();
    assert_eq!((json!(sum("events")), json!(sum("spans"))), (info["events"].clone(), report["job"]["spans"].clone()));
}

/// A run that began then, and ended so.
fn made(runs: &Path, name: &str, ago_s: i64, code: i32) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos() as i64;
    let run = runs.join(name);
    fs::create_dir_all(run.join("run.d")).expect("made");
    let manifest = json!({"id": name, "name": name, "command": ["work", name], "created_ns": now - ago_s * 1_000_000_000, "host": "here"});
    fs::write(run.join("run.json"), manifest.to_string()).expect("written");
    let record = json!({
        "pid": 1, "state": "complete", "wall_ns": 2_000_000_000_u64, "exit": {"code": code},
        "processes": [{"pid": 2, "events": 7}],
        "calls": [{"name": "read", "cat": "POSIX", "count": 3, "bytes": 30}, {"name": "write", "cat": "POSIX", "count": 1, "bytes": 5}],
    });
    fs::write(run.join("run.d/here-1-1.json"), record.to_string()).expect("written");
}

#[test]
fn runs_are_listed_by_age_and_outcome() {
    let scratch = Scratch::new("list");
    let runs = scratch.dir("runs");
    for (name, ago_s, code) in [("old", 90_000, 0), ("failed", 4_000, 3), ("new", 10, 0), ("broken", 5, 1)] {
        made(&runs, name, ago_s, code);
    }
    let names = |options: &[&str]| -> Vec<String> {
        let words: Vec<&OsStr> =
            ["list", "--json"].iter().chain(options).map(OsStr::new).chain([runs.as_os_str()]).collect();
        let rows = json_of(&words, &scratch);
        rows.as_array().into_iter().flatten().filter_map(|row| Some(row["id"].as_str()?.to_owned())).collect()
    };
    assert_eq!(names(&[]), ["broken", "new", "failed", "old"]);
    assert_eq!(names(&["--since", "1d"]), ["broken", "new", "failed"]);
    assert_eq!(names(&["--since", "1h"]), ["broken", "new"]);
    assert_eq!(names(&["--failed"]), ["broken", "failed"]);
    assert_eq!(names(&["--failed", "--since", "1h"]), ["broken"]);
    assert!(names(&["--since", "1s"]).is_empty());

    let row = &json_of(&["list".as_ref(), "--json".as_ref(), runs.join("failed").as_os_str()], &scratch)[0];
    for (key, expected) in [
        ("failed", json!(true)),
        ("events", json!(7)),
        ("read_bytes", json!(30)),
        ("written_bytes", json!(5)),
        ("wall_ns", json!(2_000_000_000_u64)),
        ("command", json!(["work", "failed"])),
        ("open", json!(false)),
        ("verdict", Value::Null),
    ] {
        assert_eq!(row[key], expected, "{key}: {row}");
    }
    let shown = weft(["list".as_ref(), "--failed".as_ref(), runs.as_os_str()], &scratch);
    let lines: Vec<String> = String::from_utf8_lossy(&shown.stdout).lines().map(str::to_owned).collect();
    assert!(lines.len() == 3 && lines[1].contains("work broken") && lines[2].contains("work failed"), "{lines:?}");

    // What cannot be read is told of and hides nothing.
    fs::write(runs.join("old/run.json"), "").expect("written");
    fs::remove_file(runs.join("new/run.json")).expect("removed");
    fs::create_dir(runs.join("new/run.json")).expect("made");
    let shown = weft(["list".as_ref(), runs.as_os_str()], &scratch);
    assert!(shown.status == 0 && said(&shown).contains("2 runs cannot be read"), "{}", said(&shown));
    let (empty, missing) = (scratch.dir("nothing"), scratch.path().join("missing"));
    for place in [&empty, &missing] {
        let nothing = weft(["list".as_ref(), runs.as_os_str(), place.as_os_str()], &scratch);
        let sentence = format!(
            "weft: no run in {}; give a directory that holds runs, or record one with `weft run`",
            place.display()
        );
        assert!(nothing.status == 1 && said(&nothing).trim_end() == sentence, "{}", said(&nothing));
    }
}

/// A copy of a run may come without its records: its files still tell what they hold.
#[test]
fn a_run_without_records_shows_its_files() {
    let scratch = Scratch::new("no-records");
    let run = scratch.join("run");
    let program = [compile("ending", PLAIN).into_os_string(), "return".into(), "50".into()];
    let outcome = Job::new(program, &scratch.dir("work")).traced(&run).run();
    assert_eq!(outcome.status, 7, "{}", String::from_utf8_lossy(&outcome.stderr));
    fs::remove_dir_all(run.join("run.d")).expect("removed");
    let traces = fs::read_dir(&run)
        .expect("listed")
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "gz"));
    let files = match traces.count() {
        1 => "in 1 file".to_owned(),
        more => format!("in {more} files"),
    };
    for (verb, status, said) in
        [("info", 0, "spans) and"), ("check", 1, files.as_str()), ("check", 1, "no supervisor record")]
    {
        let outcome = weft([verb.as_ref(), run.as_os_str()], &scratch);
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert_eq!(outcome.status, status, "{verb}: {text}");
        assert!(text.contains(said) && !text.contains("0 ns wall"), "{verb} does not say {said:?}: {text}");
    }
}
