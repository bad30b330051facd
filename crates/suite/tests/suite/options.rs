//! Options of `weft run` that change what is recorded or left behind.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use weftline_format::manifest::SupervisorRecord;
use weftline_format::reader::{self, Trace};
use weftline_testkit::Case;
use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::compile::{PLAIN, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome, weft};
use weftline_testkit::table::{Places, Table, compare, number, plain, table};

/// `weft run OPTIONS -- COMMAND` in a fresh directory.
struct Trial {
    scratch: Scratch,
    work: PathBuf,
    run: PathBuf,
}

impl Trial {
    fn new(name: &str) -> Trial {
        let scratch = Scratch::new(name);
        let (work, run) = (scratch.dir("work"), scratch.join("run"));
        Trial { scratch, work, run }
    }

    fn go(&self, options: &[String], command: &[OsString]) -> Outcome {
        let mut whole: Vec<OsString> =
            vec![product().into(), "run".into(), "-q".into(), "-o".into(), (&self.run).into()];
        whole.extend(options.iter().map(Into::into));
        whole.push("--".into());
        whole.extend_from_slice(command);
        Job::new(whole, &self.work).run()
    }

    fn trace(&self) -> Trace {
        let trace = reader::read_run(&self.run).unwrap_or_else(|error| panic!("{}: {error}", self.run.display()));
        assert!(trace.damage.is_empty(), "{}: {:?}", self.run.display(), trace.damage);
        trace
    }

    fn table(&self) -> Table {
        let places = Places {
            work: self.work.clone(),
            stdout: self.scratch.join("work.stdout"),
            stderr: self.scratch.join("work.stderr"),
        };
        table(&self.trace(), &places)
    }
}

fn ending(calls: &str) -> Vec<OsString> {
    vec![compile("ending", PLAIN).into(), "exit".into(), calls.into()]
}

#[test]
fn no_io() {
    let trial = Trial::new("no-io");
    assert_eq!(trial.go(&["--no-io".into()], &ending("100")).status, 7);
    let calls: Vec<String> = trial
        .trace()
        .events
        .iter()
        .filter(|event| matches!(event.cat.as_str(), "POSIX" | "STDIO"))
        .map(|event| event.name.clone())
        .collect();
    assert!(calls.is_empty(), "{calls:?}");
}

/// Globs mean whole path components, of the path that a relative name, `..` and all, stands for.
#[test]
fn include_and_exclude() {
    for (option, glob, seen) in [
        ("--include", "data/**", &["data/in.bin", "data/sub/deep.bin"][..]),
        ("--include", "data/sub/**", &["data/sub/deep.bin"]),
        ("--exclude", "data/**", &["data2/near.bin", "other/f.bin"]),
        ("--exclude", "**/*.bin", &[]),
    ] {
        let trial = Trial::new("globs");
        for directory in ["data/sub", "data2", "other"] {
            fs::create_dir_all(trial.work.join(directory)).expect("own directory");
        }
        let glob = if glob.starts_with("**") { glob.to_owned() } else { format!("{}/{glob}", trial.work.display()) };
        let script = r#"cd data; for f in in.bin sub/deep.bin ../data2/near.bin ../data/../other/f.bin; do
            dd if=/dev/zero of=$f bs=10 count=3 status=none; done"#;
        let outcome = trial.go(&[option.to_owned(), glob.clone()], &["/bin/bash".into(), "-c".into(), script.into()]);
        assert_eq!(outcome.status, 0, "{option} {glob}: {}", excerpt(&outcome.stderr));
        let mut written: Vec<String> = trial
            .table()
            .into_iter()
            .filter(|(key, _)| key.call == "write" && key.on.ends_with(".bin"))
            .map(|(key, count)| format!("{} {}", key.on, count.bytes))
            .collect();
        written.sort();
        let mut expected: Vec<String> = seen.iter().map(|name| format!("{name} 30")).collect();
        expected.sort();
        assert_eq!(written, expected, "{option} {glob}");
    }
}

/// A sentinel named by the program's pid is there while it runs, and gone afterwards.
#[test]
fn pid_dir() {
    let trial = Trial::new("pid-dir");
    let sentinels = trial.scratch.join("pids");
    let script = format!("ls {}; echo $$", sentinels.display());
    let outcome = trial
        .go(&["--pid-dir".into(), sentinels.display().to_string()], &["/bin/sh".into(), "-c".into(), script.into()]);
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines.len() == 2 && lines[0] == lines[1],
        "the sentinel's name and the pid: {said}{}",
        excerpt(&outcome.stderr)
    );
    assert_eq!(fs::read_dir(&sentinels).expect("the directory stays").count(), 0);
}

/// The newest events are kept, whole members are dropped, and the run says how many.
#[test]
fn max_size() {
    let trial = Trial::new("max-size");
    let calls = 400_000;
    let outcome = trial.go(&["--max-size".into(), "1M".into()], &ending(&calls.to_string()));
    assert_eq!(outcome.status, 7, "{}", excerpt(&outcome.stderr));
    let size: u64 = fs::read_dir(&trial.run)
        .expect("the run is there")
        .map(|entry| entry.expect("readable"))
        .filter(|entry| Path::new(&entry.file_name()).extension().is_some_and(|extension| extension == "gz"))
        .map(|entry| entry.metadata().expect("readable").len())
        .sum();
    assert!(size <= 1 << 20, "the traces have {size} bytes");
    // Not through `Trial::trace`: that members are missing is what was asked for.
    let trace = reader::read_run(&trial.run).expect("the run can be read");
    let last = trace
        .events
        .iter()
        .filter(|event| plain(&event.name) == "pwrite")
        .filter_map(|event| number(event, "offset"))
        .max();
    assert_eq!(last, Some(64 * (calls - 1)), "the newest call is kept");
    let dropped: u64 = SupervisorRecord::read_all(&trial.run).0.iter().map(|record| record.dropped_events).sum();
    let kept =
        trace.events.iter().filter(|event| matches!(plain(&event.name), "open" | "pwrite" | "close")).count() as u64;
    assert!(dropped > 0 && kept + dropped >= calls as u64 + 2, "{kept} kept and {dropped} dropped of {}", calls + 2);
}

/// A program that is faster than the drain waits, if told so; nothing is lost.
#[test]
fn on_full_wait() {
    let trial = Trial::new("on-full");
    let outcome = trial.go(&["--on-full=wait".into()], &ending("300000"));
    assert_eq!(outcome.status, 7, "{}", excerpt(&outcome.stderr));
    let wrong = compare(Case::command(["true"]).work("data.bin", 300_000).expected(), &trial.table());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Without arguments, no byte of a run has any: neither the program's own nor those of what it starts, in manifests, traces and samples.
#[test]
fn no_args() {
    let scratch = Scratch::new("no-args");
    let work = scratch.dir("work");
    let script = "/bin/echo s3cr3t-child; sleep 0.4; /bin/true s3cr3t-late";
    let whole = |verb: &[&str], run: &Path, options: &[&str]| -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![product().into()];
        words.extend(verb.iter().map(Into::into));
        words.extend(["-o".into(), run.into()]);
        words.extend(options.iter().map(Into::into));
        words
    };
    for kept in [false, true] {
        let no_args = if kept { &[][..] } else { &["--no-args"] };
        // Sampled every 20 ms, so that the samples speak of the processes too.
        let run = scratch.join(format!("run-{kept}"));
        let mut command = whole(&["run", "-q", "--sample", "20ms"], &run, no_args);
        command.extend(["--", "/bin/bash", "-c", script, "s3cr3t-name"].map(Into::into));
        let outcome = Job::new(command, &work).run();
        assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
        assert_eq!(holds(&run, "s3cr3t"), kept, "weft run {no_args:?}");
        assert!(holds(&run, "bash") && run_has_samples(&run), "the programs' names are kept");

        // Variables for a program that nobody supervises; a verb that reads the run finishes it.
        let run = scratch.join(format!("env-{kept}"));
        let words = whole(&["env"], &run, no_args);
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let script = format!("eval \"$({})\" && exec /bin/echo s3cr3t-env", words.join(" "));
        let outcome = Job::new(["/bin/bash", "-c", &script], &work).run();
        assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
        let info = weft(["info".as_ref(), run.as_os_str()], &scratch);
        assert_eq!(info.status, 0, "{}", excerpt(&info.stderr));
        assert_eq!(holds(&run, "s3cr3t"), kept, "weft env {no_args:?}");

        // A collector keeps neither the arguments of what it follows nor its own.
        let run = scratch.join(format!("collect-{kept}"));
        let sleeper = Job::new(["/bin/bash", "-c", ": s3cr3t-target; sleep 20; true"], &scratch.dir("sleeper")).start();
        let pid = sleeper.pid().to_string();
        let options = ["--tree", &pid, "--duration", "200ms", "--interval", "20ms", "-q"];
        let words = whole(&["collect"], &run, &[no_args, &options[..]].concat());
        let outcome = Job::new(words, &work).run();
        sleeper.kill_group();
        assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
        assert_eq!(holds(&run, "s3cr3t-target"), kept, "weft collect {no_args:?}");
        assert_eq!(holds(&run, "--duration"), kept, "weft collect {no_args:?}");
    }
}

fn run_has_samples(run: &Path) -> bool {
    SupervisorRecord::read_all(run)
        .0
        .iter()
        .any(|record| record.samples.as_ref().is_some_and(|samples| samples.processes > 0))
}

/// Whether any file of a run, unpacked if need be, holds this text.
fn holds(directory: &Path, text: &str) -> bool {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries.map(|entry| entry.expect("readable").path()).any(|path| {
        if path.is_dir() {
            return holds(&path, text);
        }
        let unpacked =
            std::process::Command::new("gzip").arg("-dcf").arg(&path).output().expect("gzip is there").stdout;
        unpacked.windows(text.len()).any(|window| window == text.as_bytes())
    })
}
