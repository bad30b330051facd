//! What the kernel told about programs whose calls are known: from their own reports, from strace, from how they are written.
//!
//! Where the machine lacks the permission, a test says so and checks the sentence that users get instead.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::recording::Recording;
use super::*;
use crate::own::Own;

/// An event without borrowed parts.
#[derive(Debug, Clone)]
struct Seen {
    source: Source,
    name: String,
    pid: u32,
    path: String,
    result: i64,
    read: u64,
    written: u64,
    missed: u64,
    length_ns: i64,
    child: Option<u32>,
}

impl Seen {
    fn of(event: &KernelEvent<'_>) -> Seen {
        Seen {
            source: event.source,
            name: event.name.to_owned(),
            pid: event.pid,
            path: String::from_utf8_lossy(event.path.unwrap_or_default()).into_owned(),
            result: event.result,
            read: event.read,
            written: event.written,
            missed: event.missed,
            length_ns: event.end_ns - event.start_ns,
            child: (event.name == "fork").then_some(event.result as u32),
        }
    }
}

/// What is to be checked: the events of one program and of what it started, and what it printed.
struct Watched {
    events: Vec<Seen>,
    /// Requests of devices meanwhile, of anybody.
    block: Vec<Seen>,
    losses: Losses,
    output: String,
}

impl Watched {
    /// Calls, bytes read and bytes written of events that have this name and path.
    fn sums(&self, name: &str, path: &Path) -> (u64, u64, u64) {
        let path = path.to_str().expect("plain path");
        let of = self.events.iter().filter(|event| event.name == name && event.path == path);
        of.fold((0, 0, 0), |sum, event| (sum.0 + 1, sum.1 + event.read, sum.2 + event.written))
    }
}

/// The sentence for the user: one line, with what is missing.
fn check_refusal(error: &KernelError) {
    let sentence = error.to_string();
    assert!(!sentence.contains('\n') && sentence.len() > 40, "{sentence:?}");
    match error {
        KernelError::Capability { .. } => assert!(sentence.contains("CAP_"), "{sentence}"),
        KernelError::Refused { .. } => assert!(sentence.contains("bpf"), "{sentence}"),
        KernelError::NoTypes { .. } => assert!(sentence.contains("/sys/kernel/btf/vmlinux"), "{sentence}"),
        KernelError::PidNamespace => assert!(sentence.contains("pid namespace"), "{sentence}"),
        other => panic!("no matter of permission: {other}"),
    }
}

/// Nothing where this machine does not permit it.
#[expect(clippy::print_stderr, reason = "a test that checks less than usual says so")]
fn start(options: &Options) -> Option<Tracer> {
    match Tracer::start(options) {
        Ok(tracer) => {
            assert_eq!(tracer.absent(), [""; 0], "this kernel tells less than all");
            Some(tracer)
        }
        Err(error) => {
            check_refusal(&error);
            eprintln!("only the refusal was checked: {error}");
            None
        }
    }
}

/// Runs a program with the tracepoints in place. `late`: events stay in the ring until it has ended.
fn watch(command: &mut Command, options: &Options, late: bool) -> Option<Watched> {
    let mut tracer = start(options)?;
    tracer.follow_children(std::process::id()).expect("followed");
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("program starts");
    let own = child.id();
    let waiting = std::thread::spawn(move || child.wait_with_output().expect("program ends"));
    let mut all = Vec::new();
    while !waiting.is_finished() {
        if late {
            std::thread::sleep(Duration::from_millis(5));
        } else {
            tracer.poll(Duration::from_millis(20), &mut |event| all.push(Seen::of(event))).expect("polled");
        }
    }
    tracer.drain(&mut |event| all.push(Seen::of(event)));
    let output = waiting.join().expect("waited for");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    // Other tests of this process start programs too, and those are children as well.
    let mut family = HashSet::from([own]);
    let (block, rest): (Vec<Seen>, Vec<Seen>) = all.into_iter().partition(|event| event.source == Source::Block);
    let mut events = Vec::new();
    for event in rest {
        if family.contains(&event.pid) {
            family.extend(event.child);
            events.push(event);
        }
    }
    let output = String::from_utf8(output.stdout).expect("text");
    Some(Watched { events, block, losses: tracer.losses(), output })
}

/// A directory on a disk: `/tmp` may be memory.
fn scratch() -> tempfile::TempDir {
    let test = std::env::current_exe().expect("own path");
    tempfile::tempdir_in(test.parent().expect("in a directory")).expect("temporary directory")
}

fn compile(directory: &Path, name: &str, flags: &[&str], source: &str) -> PathBuf {
    let (program, text) = (directory.join(name), directory.join(format!("{name}.c")));
    std::fs::write(&text, source).expect("source");
    let status = Command::new("cc").arg("-O1").args(flags).arg(&text).arg("-o").arg(&program).status().expect("cc");
    assert!(status.success());
    program
}

#[test]
fn dd_is_seen_as_strace_sees_it() {
    let directory = scratch();
    let file = directory.path().join("out");
    let arguments = [
        "if=/dev/zero".to_owned(),
        format!("of={}", file.display()),
        "bs=64k".into(),
        "count=100".into(),
        "conv=fsync".into(),
    ];
    let Some(seen) = watch(Command::new("dd").args(&arguments), &Options::default(), false) else { return };
    assert_eq!(seen.losses, Losses::default());
    assert_eq!(seen.sums("write", &file), (100, 0, 100 << 16));
    assert_eq!(seen.sums("read", Path::new("/dev/zero")), (100, 100 << 16, 0));
    assert_eq!(seen.sums("fsync", &file).0, 1);
    let written: u64 = seen.block.iter().map(|request| request.written).sum();
    assert!(written >= 100 << 16, "fsync brings all of it to the disk: {written}");
    assert!(seen.block.iter().all(|request| request.length_ns > 0));

    let table = directory.path().join("strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-U", "calls,errors,name", "-o"]).arg(&table).arg("dd").args(&arguments);
    assert!(strace.stderr(Stdio::null()).status().expect("strace").success());
    let counted: BTreeMap<String, u64> = std::fs::read_to_string(&table)
        .expect("table")
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Some(((*words.last()?).to_owned(), words.first()?.parse().ok()?))
        })
        .collect();
    for name in ["read", "write", "openat", "close", "lseek", "newfstatat", "pread64", "access", "fsync"] {
        let ours = seen.events.iter().filter(|event| event.name == name).count() as u64;
        assert_eq!(ours, counted.get(name).copied().unwrap_or(0), "{name}: {counted:?}");
    }
    let failed =
        seen.events.iter().find(|event| event.name == "access").expect("the loader asks for /etc/ld.so.preload");
    assert_eq!((failed.path.as_str(), failed.result), ("/etc/ld.so.preload", -2));
}

/// Raw calls of a static program, in a child and below a directory that it changed to: none of it passes a C library that could be hooked.
const RAW: &str = r#"
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static char data[1000];
int main(int argc, char **argv) {
    if (argc != 2 || syscall(SYS_chdir, argv[1])) return 1;
    if (fork() == 0) {
        long fd = syscall(SYS_openat, AT_FDCWD, "raw.bin", O_CREAT | O_RDWR | O_TRUNC, 0600);
        for (int i = 0; i < 7; i++) syscall(SYS_write, fd, data, sizeof data);
        long copy = dup(fd);
        for (int i = 0; i < 3; i++) syscall(SYS_pread64, copy, data, 500, 6800L);
        long directory = syscall(SYS_openat, AT_FDCWD, ".", O_DIRECTORY, 0);
        syscall(SYS_renameat2, directory, "raw.bin", AT_FDCWD, "new.bin", 0);
        syscall(SYS_read, 999, data, 1);
        _exit(0);
    }
    wait(0);
    return 0;
}"#;

#[test]
fn a_static_program_with_raw_calls_is_seen() {
    let directory = scratch();
    let program = compile(directory.path(), "raw", &["-static"], RAW);
    let Some(seen) = watch(Command::new(program).arg(directory.path()), &Options::default(), false) else { return };
    let file = directory.path().join("raw.bin");
    assert_eq!(seen.sums("openat", &file).0, 1);
    assert_eq!(seen.sums("write", &file), (7, 0, 7000));
    assert_eq!(seen.sums("pread64", &file), (3, 600, 0), "200 bytes are left behind 6800");
    assert_eq!(seen.sums("renameat2", &file).0, 1);
    let bad = seen.events.iter().find(|event| event.name == "read" && event.result < 0).expect("told");
    assert_eq!((bad.result, bad.path.as_str()), (-9, ""));
    let processes: Vec<&str> =
        seen.events.iter().filter(|event| event.source == Source::Process).map(|event| event.name.as_str()).collect();
    assert_eq!(processes, ["exec", "fork", "exit", "exit"]);
}

/// What fio says of one direction: operations and bytes.
fn fio_says(report: &serde_json::Value, direction: &str) -> (u64, u64) {
    let number = |key: &str| report["jobs"][0][direction][key].as_u64().expect("a number");
    (number("total_ios"), number("io_bytes"))
}

fn check_fio(engine: &str, names: [&str; 2]) {
    let directory = scratch();
    let file = directory.path().join("data");
    let mut fio = Command::new("fio");
    fio.args(["--name=job", "--rw=randrw", "--bs=4k", "--size=4m", "--iodepth=8", "--output-format=json", "--thread"]);
    fio.arg(format!("--ioengine={engine}")).arg(format!("--filename={}", file.display()));
    let Some(seen) = watch(fio.current_dir(directory.path()), &Options::default(), false) else { return };
    assert_eq!(seen.losses, Losses::default());
    let start = seen.output.find('{').expect("JSON");
    let report: serde_json::Value = serde_json::from_str(&seen.output[start..]).expect("JSON");
    let (read, written) = (seen.sums(names[0], &file), seen.sums(names[1], &file));
    assert_eq!((read.0, read.1), fio_says(&report, "read"), "{engine} reads");
    assert_eq!((written.0, written.2), fio_says(&report, "write"), "{engine} writes");
    assert!(read.0 > 100 && written.0 > 100, "{read:?} {written:?}");
}

#[test]
fn fio_with_psync_is_seen_as_it_says() {
    check_fio("psync", ["pread64", "pwrite64"]);
}

#[test]
fn fio_with_io_uring_is_seen_as_it_says() {
    check_fio("io_uring", ["io_uring_read", "io_uring_write"]);
}

const MAPPED: &str = r#"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int fd = open(argv[argc - 1], O_RDONLY);
    long size = lseek(fd, 0, SEEK_END), sum = 0;
    volatile char *data = mmap(0, size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    for (long at = 0; at < size; at += 4096) sum += data[at];
    return sum == 0 ? 0 : 1;
}"#;

#[test]
fn a_mapped_file_shows_faults_and_the_disk() {
    const SIZE: u64 = 4 << 20;
    let directory = scratch();
    let program = compile(directory.path(), "mapped", &[], MAPPED);
    let file = directory.path().join("data");
    std::fs::write(&file, vec![0; SIZE as usize]).expect("file");
    // Written to the disk and dropped from memory, this file alone.
    let dd = Command::new("dd")
        .arg(format!("of={}", file.display()))
        .args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0"])
        .output();
    assert!(dd.expect("dd").status.success());
    let Some(seen) = watch(Command::new(program).arg(&file), &Options::default(), false) else { return };
    let path = file.to_str().expect("plain path");
    let faults: Vec<&Seen> =
        seen.events.iter().filter(|event| event.source == Source::Fault && event.path == path).collect();
    assert_eq!(faults.iter().map(|fault| fault.missed).sum::<u64>(), SIZE);
    assert!(faults.iter().all(|fault| fault.name == "page_fault_read" && fault.length_ns >= 0));
    // A request that a worker of the kernel issues (8 KiB of these 4 MiB, once) is not the program's.
    let from_disk: u64 = seen.block.iter().map(|request| request.read).sum();
    assert!(from_disk >= SIZE / 100 * 95, "{from_disk}");
    assert_eq!(seen.sums("read", &file), (0, 0, 0), "no call read it");
}

#[test]
fn what_does_not_fit_the_ring_is_counted() {
    const CALLS: u64 = 20_000;
    let options = Options { ring_bytes: 16 << 10, block: false, faults: false, ..Options::default() };
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "of=/dev/null", "bs=1"]).arg(format!("count={CALLS}"));
    let Some(seen) = watch(&mut dd, &options, true) else { return };
    let recorded = seen.events.len() as u64;
    assert!(recorded < 16 << 10 >> 7, "the ring holds about a hundred: {recorded}");
    assert!(recorded + seen.losses.ring_full >= 2 * CALLS, "{recorded} told, {:?}", seen.losses);
    assert_eq!(seen.losses.table_full, 0);
}

#[test]
fn events_become_a_trace_file() {
    let directory = scratch();
    let options = Options::default();
    if start(&options).is_none() {
        return;
    }
    let recording = Recording::start(&options, directory.path(), &Own::read()).expect("as before");
    recording.follow_own_children().expect("followed");
    let status = Command::new("dd")
        .args(["if=/dev/zero", "of=/dev/null", "bs=512", "count=1000"])
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("dd").success());
    recording.leave_own_children();
    let file = recording.file().to_owned();
    let record = recording.finish();
    assert!(record.lost.is_empty(), "{:?}", record.lost);
    let (mut events, mut reads, own) = (0, 0, i64::from(std::process::id()));
    let scanned = weftline_format::reader::scan_file(&file, &mut |event| {
        assert!(event.pid != own || event.cat == weftline_calls::kernel::BLOCK, "no process of the run: {event:?}");
        events += u64::from(event.phase != weftline_format::Phase::Metadata);
        reads += u64::from(event.name == "read" && event.cat == "kernel");
    });
    assert_eq!(scanned.expect("readable").damage.flaws.len(), 0);
    assert_eq!(events, record.events);
    assert!(reads >= 1000, "{reads}");
    let dd = record.programs.iter().find(|(program, _)| program.ends_with("/dd")).expect("by program").1;
    assert!(dd.read >= 512_000 && dd.written >= 512_000, "{dd:?}");
}

/// Set where the test below runs itself without permission.
const UNPRIVILEGED: &str = "WEFT_TEST_UNPRIVILEGED";

#[test]
fn without_permission_one_sentence_says_what_is_missing() {
    if std::env::var_os(UNPRIVILEGED).is_some() {
        let error = Tracer::start(&Options::default()).expect_err("nobody may not");
        assert!(matches!(error, KernelError::Capability { .. }), "{error}");
        assert!(error.to_string().contains("CAP_BPF and CAP_PERFMON"), "{error}");
        return check_refusal(&error);
    }
    // A copy that everybody may run: the build's own directory may be closed to others.
    let directory = tempfile::tempdir().expect("temporary directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("permissions");
    let copy = directory.path().join("test");
    std::fs::copy(std::env::current_exe().expect("own path"), &copy).expect("copy");
    let mut command = if rustix::process::geteuid().is_root() {
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
        setpriv
    } else {
        Command::new(&copy)
    };
    command.args(["without_permission_one_sentence_says_what_is_missing", "--nocapture"]).env(UNPRIVILEGED, "1");
    let output = command.current_dir("/").output().expect("runs");
    let recorded = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && recorded.contains("1 passed"),
        "{recorded}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
