//! The recorder comes late: a running program loads the library with `dlopen`, starts it, and binds and unbinds its hooks.
//!
//! One program, `programs/late.c`, takes its steps from the command line; each test says which steps, and what of them must be
//! in the trace. Files that no expectation names must not be there at all.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use weftline_format::manifest::SupervisorRecord;
use weftline_format::reader::{self, Trace};
use weftline_testkit::case::excerpt;
use weftline_testkit::compile::{Build, LIBRARY, compile};
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome, weft};
use weftline_testkit::table::{Places, compare, number, table};
use weftline_testkit::{Case, Scratch};

/// All addresses stored when the program starts, and read-only afterwards.
const FULL_RELRO: Build = Build { compiler: "gcc", flags: &["-O0", "-Wl,-z,relro,-z,now"] };
/// Functions bound at their first call; data read-only.
const LAZY: Build = Build { compiler: "gcc", flags: &["-O0", "-Wl,-z,relro,-z,lazy"] };
/// Nothing read-only.
const NO_RELRO: Build = Build { compiler: "gcc", flags: &["-O0", "-Wl,-z,norelro,-z,lazy"] };
/// At a fixed address: functions have their address in the program's own PLT.
const FIXED: Build = Build { compiler: "gcc", flags: &["-O0", "-fno-pie", "-no-pie", "-Wl,-z,lazy"] };
/// At a fixed address and all bound at start.
const FIXED_NOW: Build = Build { compiler: "gcc", flags: &["-O0", "-fno-pie", "-no-pie", "-Wl,-z,relro,-z,now"] };
/// Calls through the GOT instead of the PLT.
const NO_PLT: Build = Build { compiler: "gcc", flags: &["-O0", "-fno-plt", "-Wl,-z,relro,-z,now"] };

const BUILDS: [Build; 6] = [FULL_RELRO, LAZY, NO_RELRO, FIXED, FIXED_NOW, NO_PLT];

/// A library all of whose addresses are stored when it is loaded, and read-only afterwards.
const FULL_RELRO_LIBRARY: Build = Build { compiler: "gcc", flags: &["-O0", "-shared", "-fPIC", "-Wl,-z,relro,-z,now"] };

/// The library under test.
fn library() -> PathBuf {
    product().with_file_name("libweft_preload.so")
}

/// A run without a supervisor: its directory, and its live directory.
fn open_run(scratch: &Scratch) -> (PathBuf, String) {
    let run = scratch.join("run");
    let said = weft(["env".as_ref(), "-o".as_ref(), run.as_os_str(), "--syntax".as_ref(), "plain".as_ref()], scratch);
    let variables = String::from_utf8(said.stdout).expect("variables are text");
    let live = variables.lines().find_map(|line| line.strip_prefix("WEFT_LIVE="));
    let live = live.unwrap_or_else(|| panic!("weft env names no live directory: {variables:?}")).to_owned();
    (run, live)
}

/// What a program left behind.
struct Left {
    outcome: Outcome,
    trace: Trace,
    places: Places,
    scratch: Scratch,
}

impl Left {
    fn text(&self) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&self.outcome.stdout), text(&self.outcome.stderr))
    }

    /// Calls of this name on this file in the trace.
    fn calls(&self, call: &str, on: &str) -> u64 {
        let groups = table(&self.trace, &self.places);
        groups.iter().filter(|(key, _)| key.call == call && key.on == on).map(|(_, count)| count.calls).sum()
    }

    /// Compares the trace with what a case expects.
    fn holds(self, expected: &Case) -> Left {
        let wrong = compare(expected.expected(), &table(&self.trace, &self.places));
        assert!(wrong.is_empty(), "in {}:\n  {}", self.scratch.path().display(), wrong.join("\n  "));
        self
    }
}

/// Runs a command that is given the live directory, and reads the run.
fn run(name: &str, command: impl FnOnce(&str) -> Vec<OsString>, environment: &[(&str, &str)], status: i32) -> Left {
    let scratch = Scratch::new(name);
    let (run, live) = open_run(&scratch);
    let mut job = Job::new(command(&live), &scratch.dir("work"));
    job.environment = environment.iter().map(|(name, value)| ((*name).into(), Some((*value).into()))).collect();
    let outcome = job.run();
    let info = weft(["info".as_ref(), run.as_os_str()], &scratch);
    assert_eq!(info.status, 0, "weft info in {}: {}", scratch.path().display(), excerpt(&info.stderr));
    read(scratch, &run, &job, outcome, status)
}

fn read(scratch: Scratch, run: &Path, job: &Job, outcome: Outcome, status: i32) -> Left {
    let place = scratch.path().display();
    let (said, cried) = (excerpt(&outcome.stdout), excerpt(&outcome.stderr));
    assert_eq!(outcome.status, status, "in {place}: {said}, {cried}");
    let trace = reader::read_run(run).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert!(trace.damage.flaws.is_empty(), "{place}: {:?}", trace.damage.flaws);
    let (records, unreadable) = SupervisorRecord::read_all(run);
    assert!(unreadable.is_empty(), "{place}: {unreadable:?}");
    for process in records.iter().flat_map(|record| &record.processes) {
        assert!(process.drops.values().all(|lost| *lost == 0), "{place}: lost {:?}", process.drops);
    }
    let places = Places { work: job.directory.clone(), stdout: job.beside("stdout"), stderr: job.beside("stderr") };
    Left { outcome, trace, places, scratch }
}

/// Takes the steps in a program of this build. `{lazy}` and `{now}` stand for a library whose constructor and destructor do I/O.
fn steps(build: Build, steps: &str, environment: &[(&str, &str)], status: i32) -> Left {
    let io = |build: Build| compile("io_library", build).to_string_lossy().into_owned();
    let steps = steps.replace("{lazy}", &io(LIBRARY)).replace("{now}", &io(FULL_RELRO_LIBRARY));
    let command = |live: &str| {
        let mut command: Vec<OsString> = vec![compile("late", build).into(), library().into(), live.into()];
        command.extend(steps.split_whitespace().map(Into::into));
        command
    };
    run("late", command, environment, status)
}

/// What is expected, to be chained.
fn expect() -> Case {
    Case::command(["late"]).sees_nothing()
}

/// The steps in every build, and with immediate binding by the environment.
fn check(line: &str, expected: &Case) {
    for build in BUILDS {
        steps(build, line, &[], 0).holds(expected);
    }
    steps(LAZY, line, &[("LD_BIND_NOW", "1")], 0).holds(expected);
}

/// Whichever place a call goes through: it is recorded while hooks are bound and the recorder is on, and never else.
#[test]
fn places_of_a_program() {
    check(
        "work=0 load work=1 all work=2 start work=direct data=data constant=constant default=default next=next \
         handle=handle none work=3 data=4 constant=5 default=6 handle=7 all work=again stop work=8",
        &["direct", "data", "constant", "default", "next", "handle", "again"]
            .into_iter()
            .fold(expect(), |case, file| case.work(file, 100)),
    );
}

/// Calls that were bound before the recorder came, and calls that are made for the first time while it is there.
#[test]
fn first_calls() {
    check("load start all work=a none work=b all work=c stop", &expect().work("a", 100).work("c", 100));
    check("load start all none all none all all work=a stop", &expect().work("a", 100));
}

/// A pointer that the program keeps somewhere is its own affair: it leads where it led when it was taken. Programs at a fixed
/// address have another kind, one into their own PLT.
#[test]
fn copied_pointers() {
    for build in BUILDS {
        let is_fixed = build.flags.contains(&"-no-pie");
        let recorded = if is_fixed { ["a", "b"] } else { ["b", "c"] };
        let expected = recorded.into_iter().fold(expect(), |case, file| case.work(file, 100));
        steps(build, "copy load start all copied=a copy copied=b none copied=c stop", &[], 0).holds(&expected);
    }
}

/// Unbinding leaves every address, every symbol and every page as it was.
#[test]
fn nothing_stays() {
    for build in BUILDS {
        let line = "work=a lazy={lazy} snapshot load start all work=b call data=c default=d none stop same";
        let expected = expect().work("b", 100).work("library.bin", 100).work("c", 100).work("d", 100);
        steps(build, line, &[], 0).holds(&expected);
    }
}

#[test]
fn library_that_was_loaded_before() {
    check(
        "lazy={lazy} load start all call unload none stop",
        &expect().work("library.bin", 100).work("unloaded.bin", 10),
    );
    check(
        "now={now} call load start all call unload stop",
        &expect().work("library.bin", 100).work("unloaded.bin", 10),
    );
}

/// Its static initialiser runs before `dlopen` returns.
#[test]
fn library_that_comes_later() {
    let expected = expect().work("loaded.bin", 10).work("library.bin", 100).work("unloaded.bin", 10);
    check("load start all lazy={lazy} call unload none stop", &expected);
    check("load all start now={now} call unload stop none", &expected);
    check(
        "load start all lazy={lazy} call unload none lazy={lazy} call unload all now={now} none call unload stop",
        &expected.work("loaded.bin", 10),
    );
}

/// The object that calls `dlopen` decides where to look, by its own run path.
#[test]
fn library_that_finds_another_beside_itself() {
    let beside = Build { compiler: "gcc", flags: &["-O0", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN/inner"] };
    let home = Scratch::new("origin");
    let (outer, inner) = (home.join("libouter.so"), home.dir("inner").join("libinner.so"));
    for (from, to) in [(compile("origin_library", beside), &outer), (compile("io_library", LIBRARY), &inner)] {
        fs::copy(&from, to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    }
    let expected = expect().work("loaded.bin", 10).work("library.bin", 100);
    for line in ["load start all lazy={} call none stop", "lazy={} load start all call none stop"] {
        check(&line.replace("{}", &outer.to_string_lossy()), &expected);
    }
}

/// A namespace of its own has a C library of its own, whose functions hooks must not call.
#[test]
fn library_in_another_namespace() {
    check("load start all namespace={now} call unload work=a none stop", &expect().work("a", 100));
}

/// Two interposers: the older one's wrapper is the real function of our hook, and what it calls itself stays.
#[test]
fn another_interposer() {
    let other = compile("other_hooks", LIBRARY);
    let preload = [("LD_PRELOAD", other.to_str().expect("the path is text"))];
    for build in BUILDS {
        let line = "work=a load start all work=b data=c default=d none work=e default=f stop";
        let left = steps(build, line, &preload, 0).holds(&expect().work("b", 100).work("c", 100).work("d", 100));
        assert_eq!(left.text().1, "late: 6 opens, 600 pwrites, 6 closes\n", "in {}", left.scratch.path().display());
    }
}

/// An interposer that wraps one function of a family: hooks of that function would pass it by, so they stay away.
#[test]
fn an_interposer_of_half_a_family() {
    let half = compile("half_wrapper", LIBRARY);
    for (preload, said, seen) in
        [("", "a\nb\nc\n", 1), (half.to_str().expect("text"), "wrapped: a\nwrapped: b\nwrapped: c\n", 0)]
    {
        for build in BUILDS {
            let left = steps(build, "say=a load start all say=b none say=c stop", &[("LD_PRELOAD", preload)], 0);
            assert_eq!((left.text().0.as_str(), left.calls("dprintf", "stdout")), (said, seen), "{build:?}");
        }
    }
}

/// A function that the program defines itself is not libc's, even if it has the name of one that is hooked.
#[test]
fn function_of_the_program() {
    let exporting = Build { compiler: "gcc", flags: &["-O0", "-rdynamic"] };
    let plugin = compile("host_library", LIBRARY);
    for line in ["lazy={} load start all call none stop", "load start all lazy={} call none call all call stop"] {
        steps(exporting, &line.replace("{}", &plugin.to_string_lossy()), &[], 0).holds(&expect());
    }
}

#[test]
fn thread_that_is_older() {
    check("thread load start all in_thread=a none stop", &expect().work("a", 100));
}

#[test]
fn forked_children() {
    check(
        "load start all fork=a fork=b none fork=c stop fork=d",
        &expect().work("a", 100).work("b", 100).sees("fork", "", 2),
    );
}

/// The child of a `vfork` does not end its parent, and executed programs decide by their own environment.
#[test]
fn children_that_share_memory_or_leave() {
    for binding in ["all", "life"] {
        let line = format!("load start {binding} at_end vfork exec_fails=/nowhere run=/usr/bin/env leave=exit");
        let expected = expect()
            .sees("vfork", "", 1)
            .sees("fork", "", 1)
            .sees("execl", "/usr/bin/env", 1)
            .fails("execl", "/nowhere", 2, 1);
        let left = steps(FULL_RELRO, &line, &[], 7).holds(&expected);
        let (out, err) = left.text();
        assert!(!out.contains("LD_PRELOAD=") && !out.contains("WEFT_LIVE=") && out.contains("PATH="), "{out}");
        assert_eq!(err, "ended\n");
    }
}

#[test]
fn image_that_is_replaced() {
    let line = "load start all work=a exec=work=b";
    let left = steps(LAZY, line, &[], 0);
    let program = compile("late", LAZY).to_string_lossy().into_owned();
    left.holds(&expect().work("a", 100).sees("execl", &program, 1));
}

/// However a process ends, whoever asked is told, and told whether exit handlers will run.
#[test]
fn announced_ends() {
    for (how, printed) in [
        ("exit", "ended"),
        ("_exit", "ended suddenly"),
        ("_Exit", "ended suddenly"),
        ("quick_exit", "ended suddenly"),
        ("exit_group", "ended suddenly"),
    ] {
        for (binding, seen) in [("all", true), ("life", false)] {
            let line = format!("load {binding} start at_end work=a leave={how}");
            let expected = if seen { expect().work("a", 100) } else { expect() };
            let left = steps(FULL_RELRO, &line, &[], 7).holds(&expected);
            assert_eq!(left.text().1, format!("{printed}\n"), "{how}");
            let ends = left.trace.events.iter().filter(|event| event.name == "end").count();
            assert_eq!(ends, 1, "{how}: end events");
        }
    }
    // Nothing is bound: only the C library's own way out is seen.
    assert_eq!(steps(LAZY, "load start at_end leave=_exit", &[], 7).text().1, "");
    assert_eq!(steps(LAZY, "load start at_end leave=exit", &[], 7).text().1, "ended\n");
}

/// Recordings one after the other, in one process: each knows the files of its own time.
#[test]
fn recordings_in_turn() {
    check("load all start work=a stop work=b start work=c stop work=d", &expect().work("a", 100).work("c", 100));
    check(
        "hold=held load all start write stop write start write close stop",
        &expect().moves("write", "held", 2, 20).sees("close", "held", 1),
    );
    // Opened before, never used: its name is known when it is closed.
    check("hold=held load all start close stop", &expect().sees("close", "held", 1));
    // The same descriptor, another file, of which nobody knows where it is written.
    let line = "load all start hold=a write map stop close unmap hold=b start write close stop";
    let expected = expect().sees("open", "a", 1).moves("write", "a", 1, 10).sees("mmap", "a", 1);
    let expected = expected.moves("write", "b", 1, 10).sees("close", "b", 1);
    check(line, &expected);
    let left = steps(LAZY, line, &[], 0);
    let writes = left.trace.events.iter().filter(|event| event.name == "write");
    let mut offsets: Vec<_> = writes.map(|event| number(event, "offset")).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [None, Some(0)], "in {}", left.scratch.path().display());
    check(
        "load refused=/nowhere refused=relative senseless all work=a start work=b stop refused=/nowhere start work=c",
        &expect().work("b", 100).work("c", 100),
    );
}

/// Hooks come and go a thousand times while threads work and libraries are loaded and unloaded.
#[test]
fn storm() {
    for build in [FULL_RELRO, LAZY] {
        let left = steps(build, "load start storm={now} all work=after none stop work=off", &[], 0);
        let place = left.scratch.path().display();
        let after = expect().work("after", 100).expected().clone();
        let mut seen = table(&left.trace, &left.places);
        seen.retain(|key, _| key.on == "after" || key.on == "off");
        assert_eq!(compare(&after, &seen), Vec::<String>::new(), "in {place}");
        let (out, _) = left.text();
        assert_eq!(out.lines().count(), 3, "{out}");
        for line in out.lines() {
            let (file, done) = line.split_once(' ').expect("a file and a number");
            let done: u64 = done.parse().expect("a number");
            let recorded = left.calls("pwrite", file);
            assert!(0 < recorded && recorded < done, "{file}: {recorded} of {done} recorded, in {place}");
        }
    }
}

#[test]
fn recordings_in_turn_while_threads_work() {
    let left = steps(FULL_RELRO, "load all restarts none", &[], 0);
    let strange: Vec<_> =
        table(&left.trace, &left.places).into_keys().filter(|key| key.on.ends_with(".storm")).collect();
    for key in &strange {
        assert!(["open", "pwrite", "close"].contains(&key.call.as_str()) && key.errno == 0, "{key:?}");
    }
    assert!(!strange.is_empty(), "nothing was recorded, in {}", left.scratch.path().display());
}

/// One process, one recorder: libraries that carry another one are told when this one starts.
#[test]
fn other_recorders_are_told() {
    let other = compile("cell_library", LIBRARY);
    for line in [
        "cell={} load start told all work=a stop",
        "load cell={} start told all work=a stop",
        "global_cell={} load start told all work=a stop",
        "cell={} other_records load start not_told all work=a stop",
        "global_cell={} other_records load start not_told all work=a stop",
    ] {
        check(&line.replace("{}", &other.to_string_lossy()), &expect().work("a", 100));
    }
}

/// Preloaded but not asked to record: all is bound already, and a start is enough.
#[test]
fn preloaded_and_started_late() {
    let path = library();
    let preload = [("LD_PRELOAD", path.to_str().expect("the path is text"))];
    for build in BUILDS {
        let line =
            "hold=held work=0 load work=1 start work=a write none work=b stop work=2 start work=c run=/usr/bin/env";
        let left = steps(build, line, &preload, 0);
        let expected = expect().work("a", 100).work("b", 100).work("c", 100).moves("write", "held", 1, 10);
        let left = left.holds(&expected);
        assert!(!left.text().0.contains("WEFT_LIVE="), "{}", left.text().0);
    }
}

/// Under `weft run` the library is there already and records: starting and binding change nothing.
#[test]
fn under_a_supervisor() {
    let scratch = Scratch::new("supervised");
    let io = format!("lazy={}", compile("io_library", LIBRARY).display());
    let mut command: Vec<OsString> = vec![compile("late", FULL_RELRO).into(), library().into(), "/nowhere".into()];
    command.extend(["load", "start", "all", "work=a", "none", "work=b", &io, "call", "unload"].map(Into::into));
    let job = Job::new(command, &scratch.dir("work"));
    let place = scratch.join("run");
    let outcome = job.traced(&place).run();
    let expected = expect().work("loaded.bin", 10).work("library.bin", 100).work("unloaded.bin", 10);
    read(scratch, &place, &job, outcome, 0).holds(&expected.work("a", 100).work("b", 100));
}

/// A memory checker has nothing to say.
#[test]
fn valgrind() {
    let io = compile("io_library", LIBRARY);
    let words = format!(
        "work=a load start all work=b lazy={} call unload fork=c none stop start all work=d none",
        io.display()
    );
    for build in [FULL_RELRO, LAZY] {
        let command = |live: &str| {
            let mut command: Vec<OsString> =
                ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full"].map(Into::into).into();
            command.extend([compile("late", build).into_os_string(), library().into(), live.into()]);
            command.extend(words.split_whitespace().map(Into::into));
            command
        };
        let expected = ["b", "library.bin", "c", "d"].into_iter().fold(expect(), |case, file| case.work(file, 100));
        run("valgrind", command, &[], 0)
            .holds(&expected.work("loaded.bin", 10).work("unloaded.bin", 10).sees("fork", "", 1));
    }
}

/// Python code of its own starts it, with nothing but ctypes.
#[test]
fn python() {
    const SCRIPT: &str = r#"
import ctypes, os, sys, threading
class Table(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_char * 8)] + [(name, ctypes.c_uint32) for name in ("size", "on", "epoch", "usage")] \
        + [(name, ctypes.c_void_p) for name in ("ticks", "intern", "event", "read_usage")] \
        + [("start", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)),
           ("stop", ctypes.CFUNCTYPE(None, ctypes.c_int)), ("bind", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32))]
def write(name):
    with open(name, "wb", buffering=0) as file:
        file.write(b"0123456789")
library, live = sys.argv[1:]
write("before")
weft = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
table = ctypes.POINTER(Table).in_dll(weft, "weft_recorder_v1").contents
assert table.start(live.encode(), len(live)) == 0 and table.bind(2) > 200
write("bound")
thread = threading.Thread(target=write, args=("thread",))
thread.start(), thread.join()
libc = ctypes.CDLL(None)
descriptor = libc.open(b"ctypes", os.O_CREAT | os.O_WRONLY, 0o644)
libc.write(descriptor, b"01234", 5), libc.close(descriptor)
child = os.fork()
if child == 0:
    write("child")
    os._exit(0)
assert os.waitpid(child, 0) == (child, 0)
assert table.bind(0) == 0
write("unbound")
"#;
    let command = |live: &str| ["python3".into(), "-c".into(), SCRIPT.into(), library().into(), live.into()].to_vec();
    let left = run("python", command, &[], 0);
    for (file, bytes) in [("bound", 10), ("thread", 10), ("ctypes", 5), ("child", 10)] {
        let groups = table(&left.trace, &left.places);
        let of = |call: &str| {
            let found = groups.iter().find(|(key, _)| key.call == call && key.on == file && key.errno == 0);
            found.map(|(_, count)| (count.calls, count.bytes))
        };
        assert_eq!((of("open"), of("write"), of("close")), (Some((1, 0)), Some((1, bytes)), Some((1, 0))), "{file}");
    }
    for file in ["before", "unbound"] {
        assert!(Path::new(&left.places.work).join(file).is_file(), "{file}");
        assert_eq!(left.calls("write", file) + left.calls("open", file), 0, "{file}");
    }
}
