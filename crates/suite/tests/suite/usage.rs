//! Invalid options make `weft` exit with 2 before anything starts; if Weftline itself fails, the program still runs, and the
//! run says so.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::compile::{PLAIN, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome, weft};

use crate::bad_days::Small;

/// `weft OPTIONS` with a program that would leave a mark, and what standard error must say. `{}` stands for a scratch directory with a file `file`,
/// a directory `closed` that is read-only, and a directory `open`.
fn refused(options: &[&str], variables: &[(&str, &str)], words: &[&str]) {
    let scratch = Scratch::new("refused");
    fs::write(scratch.join("file"), "").expect("own directory");
    scratch.dir("open");
    let _closed = closed(&scratch);
    let place = scratch.path().to_string_lossy().into_owned();
    let work = scratch.dir("work");
    let command = options.iter().map(|word| OsString::from(word.replace("{}", &place)));
    let mut job = Job::new(std::iter::once(product().into()).chain(command), &work);
    let given = variables.iter().map(|(name, value)| ((*name).into(), Some(value.replace("{}", &place).into())));
    job.environment.extend(given);
    let outcome = job.run();
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.status, 2, "{options:?} {variables:?}: {said}");
    assert!(words.iter().all(|word| said.contains(word)), "{options:?} {variables:?} should say {words:?}: {said}");
    assert!(!work.join("mark").exists(), "{options:?}: the program ran");
    assert_eq!(outcome.files.len(), 0, "{options:?} left {:?}", outcome.files);
}

/// A directory that not even root can write to.
fn closed(scratch: &Scratch) -> Small {
    let small = Small::tmpfs(scratch, "1m");
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(&small.path).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot make {} read-only", small.path.display());
    small
}

#[test]
fn wrong_options_start_nothing() {
    let touch = ["--", "touch", "mark"];
    let run = |options: &[&'static str]| [&["run"][..], options, &touch[..]].concat();
    for (options, words) in [
        (run(&["--max-sise", "5G"]), &["--max-sise", "--max-size"][..]),
        (run(&["-x"]), &["-x"]),
        (run(&["--include", "["]), &["--include", "unclosed character class"]),
        (run(&["--exclude", "{a,b"]), &["--exclude", "unclosed alternate group"]),
        (run(&["--include", ""]), &["--include", "empty"]),
        (run(&["--max-size", "big"]), &["--max-size", "500M"]),
        (run(&["--max-size", "10"]), &["--max-size", "1M"]),
        (run(&["--sample", "0"]), &["--sample", "1ms"]),
        (run(&["--wait-limit", "long"]), &["--wait-limit", "200ms"]),
        (run(&["-o", "/proc/x"]), &["/proc/x", "-o"]),
        (run(&["-o", "/proc/no/such/place"]), &["/proc/no/such/place", "-o"]),
        (run(&["-o", "{}/file/run"]), &["/file/run", "-o"]),
        (run(&["-o", "{}/file"]), &["/file", "File exists"]),
        (run(&["-o", "{}/small/run"]), &["/small/run", "Read-only"]),
        (run(&["-o", "{}/small"]), &["/small", "Read-only"]),
        (run(&["--pid-dir", "{}/small/pids"]), &["--pid-dir", "/small/pids"]),
        (run(&["--pid-dir", "{}/small"]), &["--pid-dir", "Read-only"]),
        (vec!["env", "-o", "{}/file/run"], &["/file/run"]),
        (vec!["env", "--syntx", "sh"], &["--syntax"]),
        (vec!["collect", "-o", "{}/file/run", "--duration", "1s"], &["/file/run"]),
        (vec!["collect", "--match", "("], &["--match"]),
        (vec!["weave", "--al", "--", "touch", "mark"], &["--al", "--all"]),
        (vec!["weave", "--rules", "nowhere", "--", "touch", "mark"], &["--rules", "nowhere"]),
        (vec!["doctor", "--part", "touch"], &["--parts"]),
        (vec!["report", "--from", "5s", "--to", "5s", "{}/file"], &["--from", "--to"]),
    ] {
        refused(&options, &[], words);
    }
}

#[test]
fn wrong_variables_start_nothing() {
    let run = ["run", "-o", "{}/run", "--", "touch", "mark"];
    for (options, variable, words) in [
        (
            &run[..],
            ("WEFT_PRELOAD_LIB", "/no/such/library.so"),
            &["WEFT_PRELOAD_LIB", "/no/such/library.so", "No such file"][..],
        ),
        (&run, ("WEFT_PRELOAD_LIB", "{}/open"), &["WEFT_PRELOAD_LIB", "directory"]),
        (&["query", "{}/open", "SELECT 1"], ("WEFT_SQL", "/no/such/sql"), &["WEFT_SQL", "/no/such/sql"]),
        (&["collect", "--duration", "1s"], ("PROC_INTERVAL_MS", "soon"), &["PROC_INTERVAL_MS"]),
        (&["collect", "--duration", "1s"], ("RUN_ID", "../x"), &["../x"]),
    ] {
        refused(options, &[variable], words);
    }
}

/// The first word that is no option begins the program, whose own options are its own.
#[test]
fn the_programs_options_are_its_own() {
    let scratch = Scratch::new("own-options");
    for (name, words, expected) in [
        ("plain", vec!["printf", "%s-%s", "--max-size", "-q"], "--max-size--q"),
        ("dashes", vec!["--", "printf", "%s-%s", "--", "-o"], "----o"),
        ("later", vec!["printf", "%s-%s", "--", "x"], "---x"),
    ] {
        let run = scratch.join(name);
        let mut line: Vec<OsString> = vec!["run".into(), "-q".into(), "-o".into(), run.into()];
        line.extend(words.into_iter().map(Into::into));
        let outcome = weft(line, &scratch);
        assert_eq!(
            (outcome.status, &*outcome.stdout),
            (0, expected.as_bytes()),
            "{name}: {}",
            excerpt(&outcome.stderr)
        );
    }
}

/// `weft run` of the standard work where something of ours is broken: the program does all it does, the end says again why it was not traced, and
/// no reading verb takes the run for a whole one.
fn untraced(scratch: &Scratch, run: &Path, given: &Job, why: &str) -> Outcome {
    let outcome = given.run();
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.status, 7, "{said}");
    assert!(outcome.files.contains_key(Path::new("data.bin")), "the program did its work");
    let warnings: Vec<&str> = said.lines().filter(|line| line.contains(why)).collect();
    assert!(
        warnings.len() >= 2 && said.lines().last().is_some_and(|line| line.contains(why)),
        "first and last: {said}"
    );
    assert!(warnings[warnings.len() - 1].contains("\u{1b}[1;31m"), "in red: {said:?}");
    let verdict = weft(["check".as_ref(), run.as_os_str()], scratch);
    let ledger = String::from_utf8_lossy(&verdict.stdout).into_owned();
    assert_eq!(verdict.status, 1, "{ledger}");
    assert!(ledger.starts_with("not complete") && ledger.contains(why), "{ledger}");
    let report = weft(["report".as_ref(), run.as_os_str()], scratch);
    let said = String::from_utf8_lossy(&report.stderr).into_owned();
    assert!(report.status == 1 && said.contains(why), "{}: {said}", report.status);
    let info = weft(["info".as_ref(), run.as_os_str()], scratch);
    let shown = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.status == 1 && shown.contains(why) && shown.contains("exit status 7"), "{shown}");
    outcome
}

/// `weft` with these options and the standard work.
fn job(program: &Path, scratch: &Scratch, run: &Path) -> Job {
    let work = scratch.dir("work");
    let mut words: Vec<OsString> = vec![program.into(), "--color".into(), "always".into(), "run".into(), "-q".into()];
    words.extend(["-o".into(), run.into(), "--".into(), compile("ending", PLAIN).into(), "exit".into(), "100".into()]);
    Job::new(words, &work)
}

/// A copy of the command without its library: an installation that is broken.
#[test]
fn a_missing_library_is_told_ever_after() {
    let scratch = Scratch::new("alone");
    let alone = scratch.join("weft");
    fs::copy(product(), &alone).expect("the command can be copied");
    let run = scratch.join("run");
    untraced(&scratch, &run, &job(&alone, &scratch, &run), "libweft_preload.so is neither");
}

/// A limit on the size of files that leaves no room for shared memory binds `weft` and the program alike.
#[test]
fn a_limit_on_files_is_told_ever_after() {
    // Standard error is a file as well, and must hold what is said.
    for blocks in [2, 8, 64, 1000, 5000] {
        let scratch = Scratch::new("fsize");
        let run = scratch.join("run");
        let mut given = job(product(), &scratch, &run);
        let script = format!("ulimit -f {blocks} && exec \"$@\"");
        let shell: [OsString; 4] = ["/bin/bash".into(), "-c".into(), script.into(), "bash".into()];
        given.command.splice(0..0, shell);
        let outcome = given.run();
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        // The program writes 6,400 bytes: where it may not, it ends as it does untraced.
        let verdict = weft(["check".as_ref(), run.as_os_str()], &scratch);
        let ledger = String::from_utf8_lossy(&verdict.stdout).into_owned();
        if blocks >= 8 {
            assert_eq!(outcome.status, 7, "{blocks}: {said}");
        }
        if verdict.status == 0 {
            let events = ledger.split_whitespace().nth(1).and_then(|n| n.replace(',', "").parse::<u64>().ok());
            assert!(blocks >= 8 && events >= Some(102), "{blocks} blocks: complete, it says: {ledger}{said}");
        } else {
            assert!(said.contains("weft: "), "{blocks} blocks: not complete, and nobody said so: {ledger}");
        }
    }
}

/// What is left where the run could not even be made: a word at the end.
#[test]
fn no_room_for_the_run() {
    let scratch = Scratch::new("no-room");
    let small = Small::tmpfs(&scratch, "4k");
    let run: PathBuf = small.path.join("run");
    let outcome = job(product(), &scratch, &run).run();
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.status, 7, "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.contains("ran untraced") && last.contains("No space left") && last.contains("\u{1b}[1;31m"),
        "{said:?}"
    );
}
