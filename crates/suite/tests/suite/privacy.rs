//! Privacy of runs: who may read one, where it is made, which words of command lines it holds, and how runs of other users are treated.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use weftline_format::reader;
use weftline_testkit::compile::{PLAIN, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome, weft};
use weftline_testkit::scratch::Scratch;

/// The user who has nothing.
const NOBODY: u32 = 65534;
/// What must be nowhere.
const SECRET: &str = "hunter2";

fn said(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stderr).into_owned()
}

/// Everything below a directory, itself included, with its mode.
fn modes(directory: &Path) -> BTreeMap<PathBuf, (bool, u32)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        let data = fs::symlink_metadata(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if data.is_dir() {
            pending.extend(fs::read_dir(&path).expect("listed").map(|entry| entry.expect("an entry").path()));
        }
        found.insert(path, (data.is_dir(), data.mode() & 0o7777));
    }
    found
}

/// A run, its index and its verdict, made under an umask.
fn made_under(umask: u32, options: &str, directory: u32, file: u32) {
    let scratch = Scratch::new("modes");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    let script = format!(
        r#"umask {umask:03o}; "$WEFT" run -q {options} -o "$RUN" -- "$ENDING" return 50; "$WEFT" report "$RUN" >/dev/null"#
    );
    let mut job = Job::new(["/bin/sh", "-c", &script], &work);
    for (name, value) in [("WEFT", product().to_owned()), ("RUN", run.clone()), ("ENDING", compile("ending", PLAIN))] {
        job.environment.push((name.into(), Some(value.into())));
    }
    let outcome = job.run();
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    let found = modes(&run);
    let names = [".weft/index/index.json", ".weft/verdict.json", "run.json"];
    assert!(names.iter().all(|name| found.contains_key(&run.join(name))), "{found:?}");
    for (path, (is_directory, mode)) in found {
        let expected = if is_directory { directory } else { file };
        assert_eq!(mode, expected, "{} under umask {umask:03o} {options}: {mode:o}", path.display());
    }
}

#[test]
fn runs_are_private_unless_they_are_shared() {
    for (umask, options, directory, file) in [
        (0o022, "", 0o700, 0o600),
        (0o000, "", 0o700, 0o600),
        (0o077, "", 0o700, 0o600),
        (0o022, "--share", 0o755, 0o644),
        (0o027, "--share", 0o750, 0o640),
        (0o077, "--share", 0o700, 0o600),
    ] {
        made_under(umask, options, directory, file);
    }
}

/// `weft-runs` in a directory that others can write to: one that is not the caller's own is not used, and nothing is run.
#[test]
fn the_directory_of_runs_is_the_callers_own() {
    assert!(geteuid().is_root(), "only root gives files away");
    type Plant = fn(&Path);
    let cases: [(&str, bool, Plant); 5] = [
        ("nothing", true, |_| {}),
        ("an own directory", true, |work| fs::create_dir(work.join("weft-runs")).expect("made")),
        ("an own link", true, |work| {
            fs::create_dir(work.join("elsewhere")).expect("made");
            symlink("elsewhere", work.join("weft-runs")).expect("linked");
        }),
        ("a directory of another user", false, |work| {
            fs::create_dir(work.join("weft-runs")).expect("made");
            chown(work.join("weft-runs"), Some(NOBODY), Some(NOBODY)).expect("given away");
        }),
        ("a link of another user", false, |work| {
            fs::create_dir(work.join("elsewhere")).expect("made");
            symlink("elsewhere", work.join("weft-runs")).expect("linked");
            lchown(work.join("weft-runs"), Some(NOBODY), Some(NOBODY)).expect("given away");
        }),
    ];
    for (name, used, plant) in cases {
        let scratch = Scratch::new("runs-of-others");
        let work = scratch.dir("work");
        fs::set_permissions(&work, fs::Permissions::from_mode(0o1777)).expect("set");
        plant(&work);
        let outcome = Job::new(
            [product().as_os_str(), "run".as_ref(), "-q".as_ref(), "--".as_ref(), "touch".as_ref(), "ran".as_ref()]
                .map(OsString::from),
            &work,
        )
        .run();
        let runs = fs::read_dir(work.join("weft-runs")).map_or(0, Iterator::count);
        let ran = work.join("ran").exists();
        match used {
            true => assert_eq!((outcome.status, runs, ran), (0, 1, true), "{name}: {}", said(&outcome)),
            false => {
                assert_eq!((outcome.status, runs, ran), (2, 0, false), "{name}: {}", said(&outcome));
                assert!(said(&outcome).contains("weft-runs here belongs to another user"), "{}", said(&outcome));
            }
        }
    }
}

/// Every text that is in a run: files as they are, packed ones unpacked.
fn texts(run: &Path) -> BTreeMap<String, String> {
    let files = modes(run).into_iter().filter(|(_, (is_directory, _))| !is_directory).map(|(path, _)| path);
    files
        .map(|path| {
            let bytes = match path.extension().is_some_and(|end| end == "gz") {
                true => {
                    let unpacked =
                        std::process::Command::new("gzip").arg("-dc").arg(&path).output().expect("gzip runs");
                    unpacked.stdout
                }
                false => fs::read(&path).expect("read"),
            };
            let name = path.strip_prefix(run).expect("below").to_string_lossy().into_owned();
            (name, String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect()
}

/// Traces a job with secrets in its command line, and in that of its child, until samples of it were written.
fn with_secrets(options: &[&str]) -> BTreeMap<String, String> {
    let scratch = Scratch::new("secrets");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    // The file of samples is there before the first one. While the program runs, its text is plain, in a hidden file.
    let script = r#"until grep -Eqs "command\":\"sh( job.sh|\")" "$RUN"/.*.samples.tail; do :; done; cat "$0" > copy"#;
    fs::write(work.join("job.sh"), format!("sh -c '{script}' \"$0\" --api-key={SECRET} --child-epochs 4\n"))
        .expect("written");
    let mut command: Vec<OsString> =
        vec![product().into(), "run".into(), "-q".into(), "--sample".into(), "10ms".into()];
    command.extend(options.iter().map(Into::into));
    command.extend(["-o".into(), run.clone().into_os_string(), "--".into()]);
    let words = [
        "sh",
        "job.sh",
        "--db-password",
        SECRET,
        "--auth-token=hunter2",
        "https://me:hunter2@host/x",
        "HF_TOKEN=hunter2",
        "--epochs",
        "3",
    ];
    command.extend(words.map(OsString::from));
    let mut job = Job::new(command, &work);
    job.environment.push(("RUN".into(), Some(run.clone().into())));
    let outcome = job.run();
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    assert!(reader::read_run(&run).expect("a trace").events.len() > 3, "something was traced");
    let info = weft(["report".as_ref(), run.as_os_str()], &scratch);
    assert_eq!(info.status, 0, "{}", said(&info));
    texts(&run)
}

#[test]
fn secrets_are_in_no_file_of_a_run() {
    let found = with_secrets(&[]);
    let holding: Vec<&String> = found.iter().filter(|(_, text)| text.contains(SECRET)).map(|(name, _)| name).collect();
    assert!(holding.is_empty(), "{SECRET} is in {holding:?}");
    // Command lines are there, in each kind of file, with what is no secret.
    type FileTest = fn(&str) -> bool;
    let kinds: [(&str, FileTest); 4] = [
        ("run.json", |name| name == "run.json"),
        ("run.d", |name| name.starts_with("run.d/")),
        ("traces", |name| name.ends_with(".pfw.gz") && !name.contains("samples")),
        ("samples", |name| name.contains(".samples.")),
    ];
    for (kind, is_kind) in kinds {
        let texts: String = found.iter().filter(|(name, _)| is_kind(name)).map(|(_, text)| text.as_str()).collect();
        let all = ["--db-password", "***", "--epochs"].iter().all(|word| texts.contains(word));
        assert!(all, "{kind} of {:?}: {texts}", found.keys());
    }
}

#[test]
fn without_arguments_only_names_of_programs_are_kept() {
    let found = with_secrets(&["--no-args"]);
    for word in [SECRET, "--db-password", "--epochs", "--child-epochs"] {
        let holding: Vec<&String> =
            found.iter().filter(|(_, text)| text.contains(word)).map(|(name, _)| name).collect();
        assert!(holding.is_empty(), "{word} is in {holding:?}");
    }
}

/// A run of somebody else is read as it is, and so it is said; its index is the reader's own.
#[test]
fn a_run_of_another_user_is_not_changed() {
    assert!(geteuid().is_root(), "only root gives files away");
    let scratch = Scratch::new("of-another");
    let (run, cache) = (scratch.join("run"), scratch.dir("cache"));
    let outcome =
        Job::new([compile("ending", PLAIN).into_os_string(), "return".into(), "50".into()], &scratch.dir("work"))
            .traced(&run)
            .run();
    assert_eq!(outcome.status, 7, "{}", said(&outcome));
    for path in modes(&run).into_keys() {
        lchown(&path, Some(NOBODY), Some(NOBODY)).expect("given away");
    }
    let metadata = || -> BTreeMap<PathBuf, (i64, i64, u32, u64)> {
        let of_file = |path: &PathBuf| {
            let data = fs::symlink_metadata(path).expect("there");
            (data.mtime(), data.mtime_nsec(), data.mode(), data.len())
        };
        modes(&run).into_keys().map(|path| (path.clone(), of_file(&path))).collect()
    };
    let before = metadata();
    for words in [&["report"][..], &["info"], &["check"], &["index"]] {
        let mut command: Vec<OsString> = vec![product().into()];
        command.extend(words.iter().map(Into::into));
        command.push(run.clone().into());
        let mut job = Job::new(command, &scratch.dir("verb"));
        job.environment.push(("XDG_CACHE_HOME".into(), Some(cache.clone().into())));
        let outcome = job.run();
        assert_eq!(outcome.status, 0, "{words:?}: {}", said(&outcome));
        let sentence = format!(
            "weft: {} belongs to another user: it is not changed, and its index is in your cache directory\n",
            run.display()
        );
        assert_eq!(said(&outcome).matches(&sentence).count(), 1, "{words:?}: {}", said(&outcome));
        assert_eq!(metadata(), before, "{words:?} changed it");
    }
    let indexes = modes(&cache).into_keys().filter(|path| path.ends_with("index.json")).count();
    assert_eq!(indexes, 1, "the index is in the cache: {:?}", modes(&cache));
}

/// The newest run is the one that began last, whatever the runs are called.
#[test]
fn the_newest_run_is_the_one_that_began_last() {
    let scratch = Scratch::new("newest");
    let work = scratch.dir("work");
    for (name, calls) in [("zz-first", "50"), ("aa-second", "60")] {
        let run = work.join("weft-runs").join(name);
        let outcome = Job::new([compile("ending", PLAIN).into_os_string(), "return".into(), calls.into()], &work)
            .traced(&run)
            .run();
        assert_eq!(outcome.status, 7, "{}", said(&outcome));
    }
    for words in [&["info"][..], &["report"]] {
        let mut command: Vec<OsString> = vec![product().into()];
        command.extend(words.iter().map(Into::into));
        let outcome = Job::new(command, &work).run();
        let shown = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert!(
            outcome.status == 0 && shown.contains("aa-second") && !shown.contains("zz-first"),
            "{words:?}: {shown}"
        );
    }
}
