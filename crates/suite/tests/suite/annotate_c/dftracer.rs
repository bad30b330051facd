//! Programs written for DFTracer in C and C++: every macro, every way to begin, every way to end.

use std::path::{Path, PathBuf};

use weftline_format::Phase;
use weftline_format::reader::{self, Trace};
use weftline_testkit::case::excerpt;
use weftline_testkit::run::{Job, Outcome, weft};
use weftline_testkit::{Case, Scratch};

use super::installed::{Against, prefix, program};
use super::{all, annotations_of, one, sorted, stacks};

const GCC: [&str; 2] = ["gcc", "-std=gnu11"];

/// What `dftracer_tour.c` tells between its beginning and its end.
const TOUR: [&str; 11] = [
    "M dftracer CM name=\"dataset\" value=\"imagenet\"",
    "M dftracer CM name=\"key\" value=\"val\\\"ue\"",
    "M dftracer CM name=\"ranks\" value=4",
    "M dftracer CM name=\"used\" value=\"mine\"",
    "X C_APP function n=0 text=\"with \\\"quotes\\\"\\n\" value=-1 ignored=\"told all the same\"",
    "X C_APP function n=1 text=\"with \\\"quotes\\\"\\n\" value=-1 ignored=\"told all the same\"",
    "X C_APP left_open",
    "X C_APP region least=-2147483648 text=\"r\" value=2 key=\"k\"",
    "X OTHER by hand n=3 text=null m=4 s=\"t\"",
    "X OTHER cleaned up",
    USED,
];
const USED: &str = "M dftracer CM name=\"used\" value=\"C_APP\"";

/// A program in a directory of its own, with variables of DFTracer.
struct Trial {
    scratch: Scratch,
    work: PathBuf,
    environment: Vec<(String, String)>,
}

impl Trial {
    fn new(name: &str, environment: &[(&str, &str)]) -> Trial {
        let scratch = Scratch::new(name);
        let work = scratch.dir("work");
        let mut all = vec![("DFTRACER_ENABLE".to_owned(), "1".to_owned())];
        all.extend(environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Trial { scratch, work, environment: all }
    }

    fn go(&self, program: &Path, arguments: &[&str]) -> Outcome {
        let mut job =
            Job::new([program.as_os_str()].into_iter().chain(arguments.iter().map(|word| word.as_ref())), &self.work);
        job.environment = self.environment.iter().map(|(name, value)| (name.into(), Some(value.into()))).collect();
        job.run()
    }

    /// Names of the files that trace readers would find, hidden ones included.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.work).expect("the working directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        sorted(names.filter(|name| name.contains(".pfw") || name.contains(".weft")))
    }

    fn read(&self, name: &str) -> Trace {
        let path = self.work.join(name);
        let trace = reader::read_file(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(trace.damage.is_empty(), "{}: {:?}", path.display(), trace.damage);
        trace
    }

    /// The only trace there is.
    fn trace(&self) -> Trace {
        match &self.files()[..] {
            [name] => self.read(name),
            files => panic!("one trace was expected in {}, not {files:?}", self.scratch.path().display()),
        }
    }
}

fn tour() -> PathBuf {
    program("dftracer_tour.c", &GCC, Against::Dftracer)
}

/// Calls on files of the working directory.
fn calls(trace: &Trace, work: &Path) -> Vec<String> {
    stacks(trace, work).into_iter().filter(|stack| stack.ends_with("write")).collect()
}

#[test]
fn under_weft_run_no_variable_is_needed() {
    let finished = Case::command([tour().as_os_str(), "fini".as_ref()]).check();
    assert_eq!(sorted(annotations_of(&finished.trace)), sorted(TOUR), "in {}", finished.run.display());
    let writes = ["function/region/write", "write", "write"];
    assert_eq!(calls(&finished.trace, &finished.work), writes, "in {}", finished.run.display());
}

/// Whoever says no means it, under `weft run` too.
#[test]
fn a_refusal_holds_under_weft_run() {
    let finished = Case::command([tour().as_os_str(), "fini".as_ref()]).env("DFTRACER_ENABLE", "0").check();
    assert_eq!(annotations_of(&finished.trace), Vec::<String>::new());
    assert_eq!(calls(&finished.trace, &finished.work).len(), 3);
}

/// The program begins, and the file has the name that the documentation says, however the program ends.
#[test]
fn function_mode() {
    // Of SIGKILL nobody hears; after Ctrl-C and its like the file is there at once.
    for (ending, status) in [
        ("fini", 0),
        ("return", 0),
        ("exit", 3),
        ("_exit", 4),
        ("kill", 137),
        ("interrupt", 130),
        ("terminate", 143),
        ("hang up", 129),
    ] {
        let trial = Trial::new("dftracer-function", &[("DFTRACER_LOG_FILE", "trace"), ("DFTRACER_DATA_DIR", "all")]);
        let outcome = trial.go(&tour(), &[ending]);
        assert_eq!(outcome.status, status, "{ending}: {}", excerpt(&outcome.stderr));
        assert_eq!(excerpt(&outcome.stderr), excerpt(b""), "{ending}");
        if ending == "kill" {
            let recovered = weft(["recover".as_ref(), trial.work.as_os_str()], &trial.scratch);
            assert_eq!(recovered.status, 0, "{}", excerpt(&recovered.stderr));
        }
        let files = trial.files();
        let named = |name: &String| name.starts_with("trace-dftracer_tour_c-") && name.ends_with(".pfw.gz");
        assert!(files.len() == 1 && named(&files[0]), "{ending}: {files:?} in {}", trial.scratch.path().display());
        let trace = trial.trace();
        assert_eq!(sorted(annotations_of(&trace)), sorted(TOUR), "{ending}");
        assert_eq!(calls(&trace, &trial.work), ["function/region/write", "write"], "{ending}");
        let names = trace.events.iter().filter(|event| event.name == "process_name").count();
        assert_eq!(names, 1, "a process has one name");
    }
}

/// Directories are meant by whole components, relative ones as well.
#[test]
fn data_directories() {
    for (directories, writes) in [
        ("all", &["function/region/write", "write"][..]),
        ("data", &["function/region/write"]),
        ("dat", &[]),
        ("nowhere:./data/../data", &["function/region/write"]),
    ] {
        let trial = Trial::new("dftracer-data", &[("DFTRACER_LOG_FILE", "trace"), ("DFTRACER_DATA_DIR", directories)]);
        let outcome = trial.go(&tour(), &["fini"]);
        assert_eq!(outcome.status, 0, "{directories}: {}", excerpt(&outcome.stderr));
        let trace = trial.trace();
        assert_eq!(calls(&trace, &trial.work), writes, "{directories}");
        assert_eq!(sorted(annotations_of(&trace)), sorted(TOUR), "{directories}");
    }
}

/// What the program says goes before what the environment says.
#[test]
fn arguments_of_init() {
    let trial = Trial::new("dftracer-given", &[("DFTRACER_LOG_FILE", "other"), ("DFTRACER_DATA_DIR", "all")]);
    assert_eq!(trial.go(&tour(), &["given"]).status, 0);
    let files = trial.files();
    assert!(files.len() == 1 && files[0].starts_with("given-dftracer_tour_c-"), "{files:?}");
    assert_eq!(calls(&trial.trace(), &trial.work), ["function/region/write"]);
}

#[test]
fn no_bind_records_no_io() {
    let trial = Trial::new("dftracer-no-bind", &[("DFTRACER_LOG_FILE", "trace")]);
    assert_eq!(trial.go(&tour(), &["no_bind"]).status, 0);
    let trace = trial.trace();
    assert_eq!(sorted(annotations_of(&trace)), sorted(TOUR));
    assert_eq!(calls(&trace, &trial.work), Vec::<String>::new());
}

#[test]
fn off_leaves_nothing() {
    for environment in [
        &[("DFTRACER_ENABLE", "0")][..],
        &[("DFTRACER_ENABLE", "false")],
        &[("DFTRACER_INIT", "PRELOAD"), ("DFTRACER_ENABLE", "0")],
    ] {
        let mut trial = Trial::new("dftracer-off", &[("DFTRACER_LOG_FILE", "trace")]);
        trial.environment.extend(environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let outcome = trial.go(&tour(), &["fini"]);
        assert_eq!((outcome.status, excerpt(&outcome.stderr)), (0, excerpt(b"")), "{environment:?}");
        assert_eq!(trial.files(), Vec::<String>::new(), "{environment:?}");
    }
}

/// The library begins before `main` does: also in a program that never calls it, and what was done before INIT is kept.
#[test]
fn preload_and_hybrid_modes() {
    let library = prefix().join("lib/weftline/compat/lib/libdftracer_preload.so");
    for mode in ["PRELOAD", "HYBRID"] {
        let environment =
            [("DFTRACER_LOG_FILE", "trace"), ("DFTRACER_INIT", mode), ("LD_PRELOAD", library.to_str().expect("UTF-8"))];
        for (ending, writes) in [("fini", 3), ("no_init", 2), ("_exit", 2)] {
            let trial = Trial::new("dftracer-preload", &environment);
            let outcome = trial.go(&tour(), &[ending]);
            assert!([0, 4].contains(&outcome.status), "{mode} {ending}: {}", excerpt(&outcome.stderr));
            let trace = trial.trace();
            let mut expected = TOUR.to_vec();
            expected.retain(|line| *line != USED || ending != "no_init");
            assert_eq!(sorted(annotations_of(&trace)), sorted(expected), "{mode} {ending}");
            assert_eq!(calls(&trace, &trial.work).len(), writes, "{mode} {ending}");
        }
        let trial = Trial::new("dftracer-preload", &environment);
        let outcome = trial.go(Path::new("/bin/cp"), &["/etc/hostname", "copy"]);
        assert_eq!(outcome.status, 0, "{}", excerpt(&outcome.stderr));
        let files = trial.files();
        assert!(files.len() == 1 && files[0].starts_with("trace-cp-"), "{mode}: {files:?}");
        let copied = |trace: &Trace| stacks(trace, &trial.work).iter().any(|stack| stack.contains("open"));
        assert!(copied(&trial.trace()), "{mode}: {:?}", stacks(&trial.trace(), &trial.work));
    }
    // The library alone begins nothing.
    let environment = [("DFTRACER_LOG_FILE", "trace"), ("LD_PRELOAD", library.to_str().expect("UTF-8"))];
    let trial = Trial::new("dftracer-preload", &environment);
    assert_eq!(trial.go(Path::new("/bin/cp"), &["/etc/hostname", "copy"]).status, 0);
    assert_eq!(trial.files(), Vec::<String>::new());
}

/// A library that would begin before `main` leaves that to `weft run`, whichever constructor comes first.
#[test]
fn preloaded_under_weft_run() {
    let library = prefix().join("lib/weftline/compat/lib/libdftracer_preload.so");
    let scratch = Scratch::new("dftracer-both");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    let (preload, program) = (format!("LD_PRELOAD={}", library.display()), tour());
    let variables = ["env", "DFTRACER_ENABLE=1", "DFTRACER_INIT=PRELOAD", &preload];
    let command = variables.iter().map(AsRef::as_ref).chain([program.as_os_str(), "fini".as_ref()]);
    let outcome = Job::new(command, &work).traced(&run).run();
    assert_eq!((outcome.status, excerpt(&outcome.stderr)), (0, excerpt(b"")));
    let trace = reader::read_run(&run).expect("a run");
    assert_eq!(sorted(annotations_of(&trace)), sorted(TOUR), "in {}", run.display());
    assert_eq!(calls(&trace, &work).len(), 3);
    let strange: Vec<_> = outcome.files.keys().filter(|path| path.to_string_lossy().contains("trace")).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

/// A library that was copied away from its installation says so, and the program runs.
#[test]
fn without_the_rest_of_the_installation() {
    let trial = Trial::new("dftracer-copied", &[("DFTRACER_LOG_FILE", "trace")]);
    let place = trial.scratch.dir("copied");
    let name = "libdftracer_core.so.4.3.0";
    std::fs::copy(prefix().join("lib/weftline/compat/lib").join(name), place.join(name)).expect("copied");
    let mut trial = trial;
    trial.environment.push(("LD_PRELOAD".to_owned(), place.join(name).display().to_string()));
    let outcome = trial.go(&tour(), &["fini"]);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.status, 0, "{said}");
    assert!(said.lines().count() == 1 && said.contains("libweft.so is not beside"), "{said}");
}

/// A second INIT begins a second file; what lies between is nobody's.
#[test]
fn initialised_again() {
    let trial = Trial::new("dftracer-again", &[("DFTRACER_LOG_FILE", "trace")]);
    let outcome = trial.go(&tour(), &["again"]);
    assert_eq!((outcome.status, excerpt(&outcome.stderr)), (0, excerpt(b"")));
    let files = trial.files();
    assert_eq!(files.len(), 2, "{files:?}");
    let mut traces: Vec<Vec<String>> = files.iter().map(|name| sorted(annotations_of(&trial.read(name)))).collect();
    traces.sort_by_key(Vec::len);
    assert_eq!(traces, [sorted([USED, "X C_APP second"]), sorted(TOUR)]);
}

#[test]
fn forked_children_have_files_of_their_own() {
    let trial = Trial::new("dftracer-fork", &[("DFTRACER_LOG_FILE", "trace")]);
    assert_eq!(trial.go(&tour(), &["fork"]).status, 0);
    let files = trial.files();
    assert_eq!(files.len(), 2, "{files:?}");
    let mut traces: Vec<Vec<String>> = files.iter().map(|name| sorted(annotations_of(&trial.read(name)))).collect();
    traces.sort_by_key(Vec::len);
    assert_eq!(traces, [vec!["X C_APP in_child"], sorted(TOUR)]);
}

#[test]
fn plain_text_on_request() {
    let trial = Trial::new("dftracer-plain", &[("DFTRACER_LOG_FILE", "trace"), ("DFTRACER_TRACE_COMPRESSION", "0")]);
    assert_eq!(trial.go(&tour(), &["fini"]).status, 0);
    let files = trial.files();
    assert!(files.len() == 1 && files[0].ends_with(".pfw"), "{files:?}");
    let text = std::fs::read_to_string(trial.work.join(&files[0])).expect("text");
    assert!(text.starts_with('[') && text.contains("\"cat\":\"C_APP\""), "{text}");
}

#[test]
fn cpp() {
    let used = USED.replace("C_APP", "CPP_APP");
    let expected = sorted([
        used.as_str(),
        "M dftracer CM name=\"used\" value=\"mine\"",
        "M dftracer CM name=\"ranks\" value=4",
        "M dftracer CM name=\"dataset\" value=\"imagenet\"",
        "M dftracer CM name=\"key\" value=\"value\"",
        "X CPP_APP function n=1 text=\"with \\\"quotes\\\"\" value=2 ignored=\"told all the same\"",
        "X CPP_APP function n=0 text=\"with \\\"quotes\\\"\" value=2 ignored=\"told all the same\"",
        "X CPP_APP block n=1 text=\"b\"",
        "X CPP_APP started n=2 text=\"s\"",
        "X OTHER by hand n=3",
        "X OTHER moved n=5",
        "X C_APP c_in_cpp",
    ]);
    for compiler in [&["g++", "-std=c++11"], &["clang++", "-std=c++17"]] {
        let program = program("dftracer_tour.cpp", compiler, Against::Dftracer);
        let finished = Case::command([program.clone()]).check();
        assert_eq!(sorted(annotations_of(&finished.trace)), expected, "{compiler:?}, in {}", finished.run.display());
        let trial = Trial::new("dftracer-cpp", &[("DFTRACER_LOG_FILE", "trace")]);
        assert_eq!(trial.go(&program, &[]).status, 0);
        let trace = trial.trace();
        assert_eq!(sorted(annotations_of(&trace)), expected, "{compiler:?}");
        let block = one(&trace, Phase::Complete, "block");
        let started = one(&trace, Phase::Complete, "started");
        assert!(block.start_ns <= started.start_ns && started.end_ns() <= block.end_ns(), "{block:?} {started:?}");
        assert_eq!(all(&trace, Phase::Complete, "function").len(), 2);
    }
}

/// NULL everywhere, regions ended twice, endless texts: by hand and as memory checkers see it.
#[test]
fn misuse() {
    let valgrind =
        ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect"];
    let asan = ["gcc", "-std=gnu11", "-fsanitize=address,undefined"];
    for (compiler, wrapper) in [(&GCC[..], &[][..]), (&asan, &[]), (&GCC, &valgrind)] {
        let program = program("dftracer_tour.c", compiler, Against::Dftracer);
        for enable in ["0", "1"] {
            let mut trial = Trial::new("dftracer-misuse", &[("DFTRACER_LOG_FILE", "trace")]);
            trial.environment.push(("DFTRACER_ENABLE".to_owned(), enable.to_owned()));
            let program = program.to_str().expect("UTF-8");
            let words: Vec<&str> = wrapper.iter().copied().chain([program, "null"]).collect();
            let outcome = trial.go(Path::new(words[0]), &words[1..]);
            let said = excerpt(&outcome.stderr);
            assert_eq!(outcome.status, 0, "{compiler:?} {wrapper:?} {enable}: {said}");
        }
    }
}
