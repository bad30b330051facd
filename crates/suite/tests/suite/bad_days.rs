//! Full disks and other failures: one clear message, the program continues unharmed, the loss is counted.

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

    /// A disk: ext4 in a file.
    fn ext4(scratch: &Scratch, mebibytes: u64) -> Small {
        let image = scratch.join("image");
        let file = fs::File::create(&image).expect("the scratch directory can be written");
        file.set_len(mebibytes << 20).expect("a sparse file");
        let status = Command::new("mkfs.ext4").arg("-q").arg(&image).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot make a file system in {}", image.display());
        Small::mounted_from(scratch, &image, "ext4", "loop")
    }

    fn mounted(scratch: &Scratch, kind: &str, options: &str) -> Small {
        Small::mounted_from(scratch, Path::new("weft-test"), kind, options)
    }

    fn mounted_from(scratch: &Scratch, device: &Path, kind: &str, options: &str) -> Small {
        assert!(geteuid().is_root(), "mounting a small file system needs root");
        let path = scratch.dir("small");
        let status = Command::new("mount").args(["-t", kind, "-o", options]).arg(device).arg(&path).status();
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

/// Keeps the arenas of a traced job out of memory.
fn on_disk(job: &mut Job) {
    job.command.splice(2..2, ["--arenas".into(), "disk".into()]);
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

/// Calls of the standard work that the run's totals count.
fn counted(run: &Path) -> u64 {
    let (records, _) = SupervisorRecord::read_all(run);
    let calls = records.iter().flat_map(|record| &record.calls);
    calls.filter(|call| matches!(plain(&call.name), "open" | "pwrite" | "close")).map(|call| call.count).sum()
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
            assert_eq!(counted(&run), kept, "on a disk of {size}: calls that were summed up and are in the trace");
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
    on_disk(&mut job);
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

/// A disk that stands still under the run directory, as NFS or a busy array does now and then. The program writes to /dev/null.
#[test]
fn a_stalled_disk_does_not_stall_the_program() {
    let scratch = Scratch::new("stalled");
    let small = Small::ext4(&scratch, 64);
    let (work, run) = (scratch.dir("work"), small.path.join("run"));
    let (started, stop) = (scratch.join("started"), scratch.join("stop"));
    let stalls = compile("stalls", PLAIN);
    let running = Job::new([stalls.as_os_str(), started.as_os_str(), stop.as_os_str()], &work).traced(&run).start();
    let patience = Instant::now();
    while !started.exists() {
        assert!(patience.elapsed() < Duration::from_secs(20), "the program did not start");
        std::thread::sleep(Duration::from_millis(2));
    }
    let freeze = |how: &str| {
        let status = Command::new("fsfreeze").arg(how).arg(&small.path).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot freeze {}", small.path.display());
    };
    freeze("--freeze");
    // The length of the stall is the measure here, not a wait for something.
    std::thread::sleep(Duration::from_millis(1500));
    freeze("--unfreeze");
    fs::write(&stop, "").expect("the scratch directory can be written");
    let outcome = running.finish();
    assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
    let worst: u64 = String::from_utf8_lossy(&outcome.stdout).trim().parse().expect("a number");
    assert!(worst < 500, "a write to /dev/null took {worst} ms");
    assert_eq!(kept_and_lost(&run).1, 0);
}

/// A control group with a limit on memory, gone with the value.
struct Group {
    path: PathBuf,
}

impl Group {
    fn new(limit: u64) -> Group {
        let (root, file) = match Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            true => ("/sys/fs/cgroup", "memory.max"),
            false => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        let path = Path::new(root).join(format!("weft-test-{}", std::process::id()));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{} (needs root): {error}", path.display()));
        let group = Group { path };
        let limited = fs::write(group.path.join(file), limit.to_string());
        limited.unwrap_or_else(|error| panic!("{}: no limit on memory: {error}", group.path.display()));
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// Programs that use 95 % of the memory of their control group, with a little and with much memory left beside it, are not killed for ours.
#[test]
fn a_program_close_to_its_memory_limit_survives() {
    const MIB: u64 = 1 << 20;
    for limit in [256 * MIB, 5120 * MIB] {
        let scratch = Scratch::new("close");
        let group = Group::new(limit);
        let run = scratch.join("run");
        let script = r#"
import os
block = bytearray(LEFT)
for at in range(0, len(block), 4096): block[at] = 1
out = os.open("data.bin", os.O_CREAT | os.O_WRONLY)
for n in range(200000): os.pwrite(out, b"x" * 16, 0)
print(len(block))"#;
        let script = script.replace("LEFT", &(limit / 100 * 95 - 16 * MIB).to_string());
        let traced = Job::new(["python3".to_owned(), "-c".to_owned(), script], &scratch.dir("work")).traced(&run);
        let enter = format!("echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"", group.path.display());
        let mut command = vec!["/bin/bash".into(), "-c".into(), enter.into()];
        command.extend(traced.command.iter().cloned());
        let outcome = Job { command, ..traced }.run();
        assert_eq!(outcome.status, 0, "with {limit} bytes: {}", excerpt(&outcome.stderr));
        let trace = reader::read_run(&run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
        let kept = trace.events.iter().filter(|event| plain(&event.name) == "pwrite").count() as u64;
        assert_eq!((kept, kept_and_lost(&run).1), (200_000, 0), "with {limit} bytes");
    }
}
