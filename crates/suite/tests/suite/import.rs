//! Files of other tools: imported, read directly, added to a run, refused.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use weftline_testkit::Scratch;
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome};

const REQUEST: &str =
    r#"10.0.0.7 - - [18/Nov/2026:09:05:01 +0100] "GET /data HTTP/1.1" 200 48233 "-" "curl" 312 0.250 a1"#;

/// Runs the product in the scratch directory, with a cache of its own.
fn weft(scratch: &Scratch, words: &[&str]) -> Outcome {
    let mut command: Vec<OsString> = vec![product().into()];
    command.extend(words.iter().map(OsString::from));
    let mut job = Job::new(command, &scratch.dir("work"));
    job.environment.push(("XDG_CACHE_HOME".into(), Some(scratch.join("cache").into())));
    job.run()
}

fn stdout(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

fn stderr(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stderr).into_owned()
}

/// What a verb must end with and say, on either stream.
fn check(scratch: &Scratch, words: &[&str], status: i32, said: &[&str]) {
    let outcome = weft(scratch, words);
    let text = stdout(&outcome) + &stderr(&outcome);
    assert_eq!(outcome.status, status, "{words:?}: {text}");
    for word in said {
        assert!(text.contains(word), "{words:?} does not say {word:?}: {text}");
    }
}

fn log(scratch: &Scratch, lines: usize) {
    fs::write(scratch.dir("work").join("access.log"), format!("{REQUEST}\n").repeat(lines)).expect("written");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("listed").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_log_becomes_a_run() {
    let scratch = Scratch::new("import");
    log(&scratch, 40);
    check(&scratch, &["import", "access.log", "-o", "run"], 0, &["access.log: nginx, 40 events", "± 1.00 s"]);
    check(&scratch, &["check", "run"], 0, &["complete"]);
    check(&scratch, &["info", "run"], 0, &["access.log: nginx, 40 events"]);
    check(&scratch, &["report", "run"], 0, &["GET", "http"]);
    check(&scratch, &["list", "."], 0, &["access.log"]);
    check(&scratch, &["import", "access.log", "-o", "run"], 1, &["there is something already"]);
    // Runs are private.
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &str| fs::metadata(scratch.join("work").join(path)).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode("run"), mode("run/run.json")), (0o700, 0o600));
}

#[test]
fn every_reading_verb_takes_it_as_it_is() {
    let scratch = Scratch::new("import-direct");
    log(&scratch, 30);
    for words in
        [&["report", "access.log"][..], &["info", "access.log"], &["check", "access.log"], &["index", "access.log"]]
    {
        check(&scratch, words, 0, &[]);
    }
    assert_eq!(names(&scratch.join("cache/weftline/import")).len(), 1, "it is imported once");
    assert_eq!(names(&scratch.join("work")), ["access.log"], "nothing is written beside it");
    log(&scratch, 31);
    check(&scratch, &["info", "access.log"], 0, &["31 events"]);
}

#[test]
fn joining_a_run() {
    let scratch = Scratch::new("import-into");
    log(&scratch, 20);
    let traced = weft(&scratch, &["run", "-q", "-o", "run", "--", "cat", "access.log"]);
    assert_eq!(traced.status, 0, "{}", stderr(&traced));
    check(&scratch, &["import", "access.log", "--into", "run"], 0, &["20 events"]);
    let before = names(&scratch.join("work/run"));
    check(&scratch, &["import", "access.log", "--into", "run"], 0, &["nothing was added"]);
    assert_eq!(names(&scratch.join("work/run")), before);
    check(&scratch, &["check", "run"], 0, &["complete"]);
    check(&scratch, &["report", "run", "--json"], 0, &["GET", "\"cat\""]);
    check(&scratch, &["import", "access.log", "--into", "nowhere"], 1, &["nowhere"]);
}

/// One sentence, exit status 1, and nothing is left behind.
#[test]
fn what_cannot_be_imported() {
    let scratch = Scratch::new("import-bad");
    log(&scratch, 5);
    let gzip = |name: &str, keep: usize| {
        let packed = Job::new(["gzip", "-kc", "access.log"], &scratch.join("work")).run().stdout;
        fs::write(scratch.join("work").join(name), &packed[..packed.len() - keep]).expect("written");
    };
    gzip("cut.gz", 9);
    fs::write(scratch.join("work").join("empty"), "").expect("written");
    fs::write(scratch.join("work").join("junk"), [0x9c; 4096]).expect("written");
    fs::write(scratch.join("work").join("long"), vec![b'x'; 10 << 20]).expect("written");
    let before = names(&scratch.join("work"));
    for (words, said) in [
        (&["import", "empty", "-o", "run"][..], "no known format"),
        (&["import", "junk", "-o", "run"], "no known format"),
        (&["import", "long", "-o", "run"], "no known format"),
        (&["import", "nothing", "-o", "run"], "nothing: No such file"),
        (&["import", "cut.gz", "-o", "run"], "cut.gz: "),
        (&["import", "--kind", "nginx", "junk", "-o", "run"], "holds no event"),
        (&["import", "--kind", "nginx", "long", "-o", "run"], "holds no event"),
        (&["import", "--kind", "nonsense", "access.log", "-o", "run"], "there is no format"),
    ] {
        check(&scratch, words, 1, &[said]);
        assert_eq!(names(&scratch.join("work")), before, "{words:?} leaves nothing behind");
    }
    for words in [
        &["import", "access.log"][..],
        &["import", "-o", "run"],
        &["import", "access.log", "-o", "run", "--into", "run"],
        &["import", "access.log", "-o", "run", "--tz", "Mars"],
        &["import", "access.log", "-o", "run", "--align", "1s"],
    ] {
        check(&scratch, words, 2, &[]);
    }
    check(&scratch, &["import", "cut.gz", "-o", "run", "--keep-partial"], 1, &["kept what was read before"]);
    check(&scratch, &["info", "run"], 0, &["nginx, 5 events"]);
}
