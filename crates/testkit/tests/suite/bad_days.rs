//! When the world is against us: one clear message, the program runs on unharmed, the loss is counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use weftline_format::manifest::SupervisorRecord;
use weftline_format::reader;
use weftline_format::text::path_bytes;
use weftline_testkit::case::excerpt;
use weftline_testkit::compile::{PLAIN, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome, weft};
use weftline_testkit::table::plain;
use weftline_testkit::{Case, Scratch};

/// The standard work of so many calls, under `weft run` with the run in `run`. It ends with status 7.
fn work(scratch: &Scratch, run: &Path, calls: u64) -> Outcome {
    let work = scratch.dir("work");
    Job::new([compile("ending", PLAIN).into_os_string(), "exit".into(), calls.to_string().into()], &work)
        .traced(run)
        .run()
}

/// A small file system of its own, gone with the value.
pub(crate) struct Small {
    pub(crate) path: PathBuf,
}

impl Small {
    pub(crate) fn tmpfs(scratch: &Scratch, size: &str) -> Small {
        Small::mounted(scratch, "tmpfs", &format!("size={size},mode=755"))
    }

    fn mounted(scratch: &Scratch, kind: &str, options: &str) -> Small {
        assert!(geteuid().is_root(), "mounting a small file system needs root");
        let path = scratch.dir("small");
        let status = Command::new("mount").args(["-t", kind, "-o", options, "weft-test"]).arg(&path).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot mount {kind} at {}", path.display());
        Small { path }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a daemon that outlived its test must not keep the directory.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// Events of the standard work that are in the trace, and those that the run says it lost.
fn kept_and_lost(run: &Path) -> (u64, u64) {
    let trace = reader::read_run(run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
    let (records, unreadable) = SupervisorRecord::read_all(run);
    assert!(unreadable.is_empty(), "{}: {unreadable:?}", run.display());
    let lost = records.iter().flat_map(|record| &record.processes).flat_map(|process| process.drops.values()).sum();
    let kept = trace.events.iter().filter(|event| matches!(plain(&event.name), "open" | "pwrite" | "close")).count();
    (kept as u64, lost)
}

#[test]
fn output_directory_is_made_with_its_parents() {
    let scratch = Scratch::new("deep");
    let run = scratch.join("a/b/c");
    let outcome = work(&scratch, &run, 100);
    assert_eq!((outcome.status, excerpt(&outcome.stderr)), (7, "\"\"".to_owned()));
    assert_eq!(kept_and_lost(&run), (102, 0));
}

/// The trace, or even its shared memory, does not fit on the disk: what fits is kept whole, the rest is counted, nobody is
/// killed.
#[test]
fn disk_full() {
    let scratch = Scratch::new("full");
    // The last one has room for the shared memory as well, which then lies there.
    for (size, calls) in [("64k", 600_000), ("1m", 600_000), ("5m", 600_000), ("18m", 2_000_000)] {
        let small = Small::tmpfs(&scratch, size);
        let run = small.path.join("run");
        let outcome = work(&scratch, &run, calls);
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!(outcome.status, 7, "on a disk of {size}: {said}");
        assert!(said.contains("No space left") && said.lines().count() <= 4, "on a disk of {size}: {said}");
        let verdict = weft(["check".as_ref(), run.as_os_str()], &scratch);
        assert_eq!(verdict.status, 1, "on a disk of {size} weft check says: {}", excerpt(&verdict.stdout));
        if !said.contains("not tracing") {
            let (kept, lost) = kept_and_lost(&run);
            // Besides the calls there are two marks, the image's start and end.
            let (low, high) = (calls + 2, calls + 4);
            assert!((low..=high).contains(&(kept + lost)), "on a disk of {size}: {kept} kept and {lost} lost");
        }
    }
}

/// The run directory is on a file system that is not known to be local, like NFS or Lustre (ramfs stands in for them: it is not on the
/// list either). Shared memory goes to a temporary directory, and recovery finds it there by the pointer.
#[test]
fn run_directory_on_a_foreign_file_system() {
    let scratch = Scratch::new("foreign");
    let small = Small::mounted(&scratch, "ramfs", "mode=755");
    let run = small.path.join("run");
    let outcome = work(&scratch, &run, 100);
    assert_eq!((outcome.status, excerpt(&outcome.stderr)), (7, "\"\"".to_owned()));
    assert_eq!(kept_and_lost(&run), (102, 0));

    // The program kills its supervisor, so that what it does lies in the temporary directory until somebody looks.
    let killed = small.path.join("killed");
    let dir = scratch.dir("orphan");
    let temporary = scratch.dir("temporary");
    let script = r#"kill -9 $PPID; "$0" exit 100; echo "ended with $?" > status"#;
    let ending = compile("ending", PLAIN).into_os_string();
    let mut job = Job::new(["sh".into(), "-c".into(), script.into(), ending], &dir).traced(&killed);
    job.environment.push(("TMPDIR".into(), Some(temporary.clone().into_os_string())));
    job.run();
    let patience = Instant::now();
    while !dir.join("status").exists() {
        assert!(patience.elapsed() < Duration::from_secs(20), "the program did not finish in {}", dir.display());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(!killed.join(".live").exists(), "shared memory lies on a file system that may not be local");
    assert!(fs::read_dir(&temporary).is_ok_and(|entries| entries.count() > 0), "nothing in {}", temporary.display());
    let recovered = weft(["recover".as_ref(), killed.as_os_str()], &scratch);
    assert_eq!(recovered.status, 0, "{}", excerpt(&recovered.stderr));
    // The shell opens and closes files of its own; the writes are the program's.
    let trace = reader::read_run(&killed).expect("the recovered run can be read");
    assert_eq!(trace.events.iter().filter(|event| plain(&event.name) == "pwrite").count(), 100);
    assert_eq!(kept_and_lost(&killed).1, 0);
    assert_eq!(fs::read_dir(&temporary).map(Iterator::count).ok(), Some(0), "left behind in {}", temporary.display());
}

/// Nobody drains and the arena grows on a full tmpfs: stores into a page that cannot be had would be SIGBUS.
#[test]
fn tmpfs_full_without_supervisor() {
    let scratch = Scratch::new("sigbus");
    let small = Small::tmpfs(&scratch, "12m");
    let run = small.path.join("run");
    let dir = scratch.dir("work");
    // The program kills its supervisor (its parent), then works.
    let script = r#"kill -9 $PPID; "$0" exit 600000; echo "ended with $?" > status"#;
    let ending = compile("ending", PLAIN).into_os_string();
    let job = Job::new(["/bin/bash".into(), "-c".into(), script.into(), ending], &dir).traced(&run);
    assert_eq!(job.run().status, 137, "weft run was killed");
    let patience = Instant::now();
    while fs::read_to_string(dir.join("status")).map_or(true, |status| status.is_empty()) {
        assert!(patience.elapsed().as_secs() < 60, "the program did not finish, see {}", scratch.path().display());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(fs::read_to_string(dir.join("status")).expect("just seen"), "ended with 7\n");
}

/// The user's limits bind `weft` too.
#[test]
fn limits_of_the_supervisor() {
    let scratch = Scratch::new("limits");
    for limit in ["ulimit -f 10", "ulimit -n 24", "ulimit -v 400000", "ulimit -c 0 -s 256"] {
        let dir = scratch.dir("work");
        let run = scratch.join(format!("run {limit}"));
        let script = format!("{limit} && exec \"$@\"");
        let ending = compile("ending", PLAIN).into_os_string();
        let command = [
            "/bin/bash".into(),
            "-c".into(),
            script.into(),
            "bash".into(),
            product().into(),
            "run".into(),
            "-q".into(),
            "-o".into(),
            run.clone().into_os_string(),
            "--".into(),
            ending,
            "exit".into(),
            "100".into(),
        ];
        let outcome = Job::new(command, &dir).run();
        assert_eq!(outcome.status, 7, "{limit}: {}", excerpt(&outcome.stderr));
        assert!(outcome.files.contains_key(Path::new("data.bin")), "{limit}: the program did its work");
        if limit != "ulimit -f 10" {
            assert_eq!(kept_and_lost(&run), (102, 0), "{limit}: {}", excerpt(&outcome.stderr));
        }
    }
}

/// Names come back byte by byte, however strange.
#[test]
fn strange_names() {
    let finished = Case::program("strange_names").check();
    let names: [(&[u8], u64); 7] = [
        (b"quote\"d", 1),
        (b"new\nline", 2),
        (b"back\\slash", 3),
        (b"bell\x07 tab\t del\x7f", 4),
        (b"latin \xe9\xff\xfe cut \xe2\x82", 5),
        ("euro € clef 𝄞".as_bytes(), 6),
        (b"surrogate \xed\xb2\x80 text \\udc80", 7),
    ];
    for (name, calls) in names {
        let mut path = finished.work.as_os_str().as_encoded_bytes().to_vec();
        path.push(b'/');
        path.extend_from_slice(name);
        let count = finished.trace.events.iter().filter(|event| {
            plain(&event.name) == "pwrite"
                && finished.trace.path_of(event).is_some_and(|seen| *path_bytes(seen) == *path)
        });
        assert_eq!(count.count() as u64, calls, "{}", String::from_utf8_lossy(name));
    }
}
