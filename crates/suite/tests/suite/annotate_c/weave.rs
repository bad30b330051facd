//! `weft weave`: what it makes of a compiler's command line, how builds use it, and what woven programs tell.
//!
//! What the plugin does with each kind of function at each level of optimisation is tested beside it (`weave/tests`); here are the command and
//! the runtime, by the clang that is called `clang`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weftline_format::Phase;
use weftline_format::reader::{self, Trace};
use weftline_testkit::compile::sources;
use weftline_testkit::product::workspace;
use weftline_testkit::run::{Job, Outcome};
use weftline_testkit::{Case, Finished, Scratch};

use super::installed::prefix;
use super::{all, annotations_of, is_annotation, one, sorted, stacks};

/// `weft` of the installation, which has the plugins that `make weave` built.
fn weft() -> PathBuf {
    let plugins = prefix().join("lib/weftline/weave");
    assert!(plugins.is_dir(), "{} is not there: `make weave` builds the plugins", plugins.display());
    prefix().join("bin/weft")
}

fn text(stream: &[u8]) -> String {
    String::from_utf8_lossy(stream).into_owned()
}

/// Runs a line of a shell in which `weft` is that of the installation.
fn shell(line: &str, directory: &Path) -> Outcome {
    let path = format!("{}:{}", weft().parent().expect("a directory").display(), std::env::var("PATH").expect("PATH"));
    let mut job = Job::new(["bash", "-c", line], directory);
    job.environment.push(("PATH".into(), Some(path.into())));
    job.environment.push(("CMAKE_PREFIX_PATH".into(), Some(prefix().into())));
    job.limit = Duration::from_secs(120);
    job.run()
}

/// The same, and it must succeed.
pub(super) fn works(line: &str, directory: &Path) -> String {
    let outcome = shell(line, directory);
    assert_eq!(outcome.status, 0, "{line}:\n{}{}", text(&outcome.stdout), text(&outcome.stderr));
    text(&outcome.stdout)
}

/// A C program with one annotated function, in a directory of its own.
fn with_source(name: &str) -> (Scratch, PathBuf) {
    let scratch = Scratch::new(name);
    let work = scratch.dir("work");
    let source = "#include <stdio.h>\n\
                  __attribute__((annotate(\"@critical_path()\"))) int woven(int n) { return n * 7; }\n\
                  int main(int argc, char **argv) { (void)argv; printf(\"%d\\n\", woven(argc)); return 3; }\n";
    fs::write(work.join("a.c"), source).expect("a.c");
    fs::write(work.join("start.s"), ".globl start\nstart: ret\n").expect("start.s");
    fs::write(work.join("broken.c"), "int main(void) { return }\n").expect("broken.c");
    (scratch, work)
}

/// Is this file woven: does it call the runtime?
fn is_woven(file: &Path) -> bool {
    let bytes = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    bytes.windows(16).any(|part| part == b"weft_weave_begin")
}

/// What a compiler does for `clang LINE` it does for `weft weave -- clang LINE`.
#[test]
fn what_only_asks_is_the_same() {
    let (_scratch, work) = with_source("weave-asks");
    for line in [
        "--version",
        "-v",
        "-dumpmachine",
        "-dumpversion",
        "-print-search-dirs",
        "-E a.c",
        "-M a.c",
        "-fsyntax-only a.c",
        "-E -dM -x c /dev/null",
        "-E - < a.c",
        "-c start.s -o start.o -v",
        "-c broken.c",
        "-c no-such-file.c",
        "-no-such-option",
        "",
    ] {
        let (plain, ours) =
            (shell(&format!("clang {line}"), &work), shell(&format!("weft weave -- clang {line}"), &work));
        assert_eq!(ours.status, plain.status, "clang {line}");
        assert_eq!(text(&ours.stdout), text(&plain.stdout), "clang {line}");
        // The assembler's temporary file and the lines of a crash report have names of their own.
        let same = |outcome: &Outcome| text(&outcome.stderr).lines().filter(|line| !line.contains("/tmp/")).count();
        assert_eq!(same(&ours), same(&plain), "clang {line}: {}", text(&ours.stderr));
    }
}

/// Every way to have something compiled.
#[test]
fn what_is_compiled_is_woven() {
    let (_scratch, work) = with_source("weave-compiles");
    let said = "printf -- '-c\\n-O2 \"a.c\" -o r.o' > words";
    for (line, file) in [
        ("weft weave -- clang -c a.c", "a.o"),
        ("weft weave -- clang -Wall -Werror -c a.c -o named.o", "named.o"),
        ("weft weave -- clang -x c -c - -o stdin.o < a.c", "stdin.o"),
        ("weft weave -- clang -S a.c", "a.s"),
        ("weft weave -- clang -S -emit-llvm a.c", "a.ll"),
        ("weft weave -- clang -Wall -Werror a.c start.s -o program", "program"),
        ("weft weave -- clang -Werror -shared -fPIC a.c -o liba.so", "liba.so"),
        ("weft weave -- clang -Werror -fno-pie -no-pie a.c -o fixed", "fixed"),
        ("weft weave -- clang -c -o dashes.o -- a.c", "dashes.o"),
        ("weft weave -- clang -c -o a.o a.c && weft weave -- clang -Werror a.o -o linked", "linked"),
        ("weft weave -- clang -Werror -o behind -- a.c", "behind"),
        ("clang -c $(weft weave --print-flags=compile) a.c -o flags.o", "flags.o"),
    ] {
        works(line, &work);
        assert!(is_woven(&work.join(file)), "{line}");
    }
    works(said, &work);
    works("weft weave -- clang @words", &work);
    assert!(is_woven(&work.join("r.o")), "a response file");
    for program in ["program", "fixed", "linked", "behind"] {
        let outcome = shell(&format!("./{program}"), &work);
        assert_eq!((outcome.status, text(&outcome.stdout)), (3, "7\n".to_owned()), "{}", text(&outcome.stderr));
        works(&format!("weft run -q -o run-{program} -- ./{program} || test $? = 3"), &work);
        let trace = reader::read_run(&work.join(format!("run-{program}"))).expect("a run");
        assert_eq!(annotations_of(&trace), ["X app woven"], "{program}");
    }
}

/// A program without woven code does not even load the library.
#[test]
fn what_needs_no_library_has_none() {
    let scratch = Scratch::new("weave-plain");
    let work = scratch.dir("work");
    fs::write(work.join("plain.c"), "int main(void) { return 0; }\n").expect("plain.c");
    works("weft weave -- clang plain.c -o plain && ./plain", &work);
    let needed = works("readelf -d plain", &work);
    assert!(!needed.contains("libweft"), "{needed}");
}

/// Refused with one sentence, or run as it is.
#[test]
fn other_compilers() {
    let (_scratch, work) = with_source("weave-others");
    let outcome = shell("weft weave -- gcc -c a.c -o gcc.o -Wno-attributes", &work);
    let said = text(&outcome.stderr);
    assert_eq!(outcome.status, 0, "{said}");
    assert!(said.contains("WEFT_FUNCTION()") && said.contains("weft.hpp") && said.lines().count() == 1, "{said}");
    assert!(!is_woven(&work.join("gcc.o")));
    assert_eq!(text(&shell("weft weave -- gcc gcc.o -o program", &work).stderr), "", "a link says nothing");

    // A clang with everything in itself.
    works(
        "echo 'int main(void) { return 0; }' > c.c && gcc -static -o clang-static c.c && cp clang-static clang",
        &work,
    );
    // A clang that loads another libLLVM.
    works(
        "mkdir -p lib && cp /bin/true other && gcc -shared -o lib/libLLVM-14.so.1 -Wl,-soname,libLLVM-14.so.1 -x c /dev/null",
        &work,
    );
    works("gcc -o clang-other c.c -Wl,--no-as-needed -Llib -l:libLLVM-14.so.1 -Wl,-rpath,'$ORIGIN/lib'", &work);
    for (line, status, words) in [
        ("weft weave -- ./clang-static -c a.c", 1, "has LLVM linked into itself"),
        ("weft weave -- ./clang-other -c a.c", 1, "they would not survive each other"),
        ("weft weave -- ./other -c a.c", 1, "is neither clang nor gcc"),
        ("weft weave -- no-such-compiler -c a.c", 1, "no such compiler"),
        ("weft weave --rules missing.toml -- clang -c a.c", 2, "missing.toml: the file cannot be read"),
        ("weft weave --abi perfflow -- clang -static a.c", 1, "cannot be linked with -static"),
        ("weft weave", 2, "required"),
    ] {
        let outcome = shell(line, &work);
        let said = text(&outcome.stderr);
        assert_eq!(outcome.status, status, "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
        assert!(status == 2 || said.trim_end().lines().count() == 1, "one sentence: {said}");
    }
}

/// ccache sees the plugin's flags, and hears of files that it cannot know.
#[test]
fn ccache() {
    let (_scratch, work) = with_source("weave-ccache");
    fs::write(work.join("ccache"), "#!/bin/sh\necho \"$CCACHE_EXTRAFILES\" > files\nexec \"$@\"\n").expect("ccache");
    fs::write(work.join("rules.toml"), "[[weave]]\nfunctions = [\"main\"]\n").expect("rules");
    works("chmod +x ccache && weft weave --rules rules.toml -- ./ccache clang -c a.c && test -f a.o", &work);
    let files = fs::read_to_string(work.join("files")).expect("what ccache was told");
    assert!(files.contains("libweft_weave.so:") && files.trim().ends_with("/rules.toml"), "{files}");
    assert!(is_woven(&work.join("a.o")));
}

#[test]
fn in_cmake_and_make() {
    let (_scratch, work) = with_source("weave-cmake");
    fs::write(work.join("weft.weave.toml"), "[[weave]]\nfunctions = [\"main\"]\ncategory = \"rule\"\n").expect("rules");
    let lists = "cmake_minimum_required(VERSION 3.13)\nproject(user C CXX)\nfind_package(Weftline 0.1 REQUIRED)\n\
                 add_executable(annotated a.c)\nweft_weave(annotated)\n\
                 add_executable(ruled a.c)\nweft_weave(ruled RULES weft.weave.toml)\n\
                 add_executable(whole a.c)\nweft_weave(whole ALL 1)\n\
                 add_executable(old a.c)\nweft_weave(old ABI perfflow)\n\
                 add_executable(plain a.c)\n";
    fs::write(work.join("CMakeLists.txt"), lists).expect("CMakeLists.txt");
    works("cmake -S . -B build -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ && cmake --build build", &work);
    let tells = |program: &str| {
        works(&format!("weft run -q -o run-{} -- {program} || test $? = 3", program.replace('/', "-")), &work);
        let run = work.join(format!("run-{}", program.replace('/', "-")));
        sorted(annotations_of(&reader::read_run(&run).expect("a run")))
    };
    assert_eq!(tells("build/annotated"), ["X app woven"]);
    assert_eq!(tells("build/ruled"), ["X app woven", "X rule main"]);
    assert_eq!(tells("build/whole"), ["X app main", "X app woven"]);
    assert_eq!(tells("build/plain"), [""; 0]);
    assert!(tells("build/old").iter().all(|line| line.ends_with(" woven")));
    // A changed list is a reason to compile again.
    fs::write(work.join("weft.weave.toml"), "[[weave]]\nfunctions = [\"nobody\"]\n").expect("rules");
    works("cmake --build build && rm -rf run-build-ruled", &work);
    assert_eq!(tells("build/ruled"), ["X app woven"]);

    let gcc =
        works("cmake -S . -B by-gcc -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ && cmake --build by-gcc", &work);
    assert!(gcc.contains("is not clang"), "{gcc}");

    works("CC='weft weave -- clang' CXX='weft weave -- clang++' cmake -S . -B whole && cmake --build whole", &work);
    assert_eq!(tells("whole/plain"), ["X app woven"]);
    fs::write(work.join("Makefile"), "made: a.o\n\t$(CC) -o $@ a.o\n").expect("Makefile");
    works("make CC='weft weave --all=1 -- clang' made", &work);
    assert_eq!(tells("./made"), ["X app main", "X app woven"]);
}

/// The tour, woven: a part of it with and without `weft run`.
fn tour(part: &str) -> Finished {
    let home = Scratch::new("weave-tour");
    let program = home.join("tour");
    let source = sources().join("annotate/weave_tour.cpp");
    let line = format!(
        "weft weave -- clang++ -O2 -g -Wall -Wextra -Werror -pthread {} -o {}",
        source.display(),
        program.display()
    );
    works(&line, home.path());
    Case::command([program.as_os_str(), part.as_ref()]).check()
}

#[test]
fn spans_nest_and_end_by_exceptions() {
    let finished = tour("basic");
    let thrown = |name: &str| format!("X app (anonymous namespace)::{name} error=\"exception\"");
    let plain = |name: &str| format!("X app (anonymous namespace)::{name}");
    let expected = [
        plain("hidden"),
        plain("descend"),
        plain("descend"),
        plain("descend"),
        plain("descend"),
        plain("catches"),
        thrown("passes"),
        thrown("throws"),
    ];
    assert_eq!(annotations_of(&finished.trace), expected);
    let deepest = stacks(&finished.trace, &finished.work).iter().map(|stack| stack.split('/').count()).max();
    assert_eq!(deepest, Some(4), "recursion");
}

#[test]
fn lone_ends_and_async_spans() {
    let name = |name: &str| format!("(anonymous namespace)::{name}");
    assert_eq!(
        annotations_of(&tour("lone").trace),
        [format!("B app {}", name("opens")), format!("E app {}", name("closes"))]
    );

    let trace = tour("async").trace;
    let (begin, end) =
        (one(&trace, Phase::AsyncBegin, &name("submits")), one(&trace, Phase::AsyncEnd, &name("completes")));
    assert!(begin.id.is_some() && begin.id == end.id, "{begin:?} {end:?}");
    assert_ne!(begin.tid, end.tid);
    assert!(super::line(begin).ends_with("scope=\"job\""), "{begin:?}");
    let (begin, end) = (one(&trace, Phase::AsyncBegin, &name("task")), one(&trace, Phase::AsyncEnd, &name("task")));
    assert!(begin.id.is_some() && begin.id == end.id, "{begin:?} {end:?}");
}

#[test]
fn arrows_join_functions() {
    let trace = tour("flows").trace;
    let (out, into) = (one(&trace, Phase::FlowStart, "flow"), one(&trace, Phase::FlowEnd, "flow"));
    assert!(out.id.is_some() && out.id == into.id, "{out:?} {into:?}");
    for (arrow, function) in [(out, "produces"), (into, "consumes")] {
        let span = one(&trace, Phase::Complete, &format!("(anonymous namespace)::{function}"));
        assert_eq!(arrow.tid, span.tid);
        assert!((span.start_ns..=span.end_ns()).contains(&arrow.start_ns), "{arrow:?} outside {span:?}");
    }
}

#[test]
fn every_thread_has_its_own() {
    let trace = tour("threads").trace;
    for name in ["work", "leaf"] {
        assert_eq!(all(&trace, Phase::Complete, &format!("(anonymous namespace)::{name}")).len(), 4000);
    }
    assert_nested(&trace);
}

/// A jump leaves nothing behind; a function in which a process forks ends in both.
#[test]
fn jumps_and_forks() {
    assert_eq!(annotations_of(&tour("jumping").trace), ["X app (anonymous namespace)::leaf"]);
    let trace = tour("forking").trace;
    for name in ["forks", "leaf"] {
        let spans = all(&trace, Phase::Complete, &format!("(anonymous namespace)::{name}"));
        assert!(matches!(spans[..], [one, other] if one.pid != other.pid), "{spans:?}");
    }
}

/// Spans of a thread lie inside each other or beside each other.
pub(super) fn assert_nested(trace: &Trace) {
    let mut spans: Vec<_> =
        trace.events.iter().filter(|event| event.phase == Phase::Complete && is_annotation(event)).collect();
    spans.sort_by_key(|event| (event.pid, event.tid, event.start_ns, std::cmp::Reverse(event.end_ns())));
    let mut open: Vec<&weftline_format::Event> = Vec::new();
    for span in spans {
        while open
            .last()
            .is_some_and(|outer| (outer.pid, outer.tid) != (span.pid, span.tid) || outer.end_ns() <= span.start_ns)
        {
            open.pop();
        }
        if let Some(outer) = open.last() {
            assert!(span.end_ns() <= outer.end_ns(), "{span:?} ends behind {outer:?}");
        }
        open.push(span);
    }
}

/// An annotation gives its events a category, whichever runtime is called; without one each runtime has its own.
#[test]
fn categories_of_annotations() {
    let scratch = Scratch::new("weave-category");
    let work = scratch.dir("work");
    let source = "#define W(x) __attribute__((annotate(\"@critical_path(\" x \")\")))\n\
                  W(\"category='io'\") void load(void) {}\n\
                  W(\"pointcut='before', scope='s', category='net'\") void sends(void) {}\n\
                  W(\"\") void plain(void) {}\n\
                  int main(void) { load(); sends(); plain(); return 0; }\n";
    fs::write(work.join("a.c"), source).expect("a.c");
    works("weft weave -- clang -O2 -o ours a.c && weft run -q -o run -- ./ours", &work);
    let run = reader::read_run(&work.join("run")).expect("a run");
    assert_eq!(annotations_of(&run), ["X io load", "B net sends scope=\"s\"", "X app plain"]);

    works("weft weave --abi perfflow -- clang -O2 -o theirs a.c", &work);
    works("PERFFLOW_OPTIONS=log-filename-include=name:log-event=compact:log-close=True ./theirs", &work);
    let text = fs::read_to_string(work.join("perfflow.array.generic.pfw")).expect("text");
    let events: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON, closed on request");
    let seen: Vec<String> = events.iter().map(|event| format!("{} {}", event["cat"], event["name"])).collect();
    assert_eq!(seen, [r#""io" "load""#, r#""net" "sends""#, r#""a.c" "plain""#]);
}

/// What PerfFlowAspect's pass could not compile, and what its runtime could not tell.
#[test]
fn as_perfflow() {
    let golden = workspace().join("../shared/golden/perfflowaspect/c");
    let scratch = Scratch::new("weave-perfflow");
    let work = scratch.dir("work");
    let source = "#include <stdexcept>\n#include <string>\n#define W __attribute__((annotate(\"@critical_path()\")))\n\
                  W void thrower(int n) { std::string s(n, 'x'); if (n > 3) throw std::runtime_error(s); }\n\
                  W int choose(int n) { switch (n) { case 1: return 2; case 2: return 1; default: __builtin_unreachable(); } }\n\
                  W int again(int n) { return n ? again(n - 1) : 0; }\n\
                  int main() { try { thrower(9); } catch (...) {} thrower(1); return choose(1) - 2 + again(3); }\n";
    fs::write(work.join("crash.cpp"), source).expect("crash.cpp");
    for level in ["-O0", "-O2"] {
        works(
            &format!("weft weave --abi perfflow -- clang++ {level} -o crash crash.cpp && mkdir -p out{level}"),
            &work,
        );
        works(&format!("PERFFLOW_OPTIONS=log-event=Compact:log-dir=out{level} ./crash"), &work);
        let found =
            fs::read_dir(work.join(format!("out{level}"))).expect("a directory").flatten().next().expect("a trace");
        let text = fs::read_to_string(found.path()).expect("text") + " {}]";
        let whole: serde_json::Value = serde_json::from_str(&text).expect("JSON once its list is ended");
        let (_, events) = whole.as_array().and_then(|list| list.split_last()).expect("a list");
        let names = events.iter().map(|event| format!("{} {}", event["name"], event["ph"]));
        let expected = ["again", "again", "again", "again", "choose", "thrower", "thrower"];
        assert_eq!(sorted(names), expected.map(|name| format!("\"{name}\" \"X\"")), "{level}");
    }
    for file in
        ["crash1.cpp", "crash2.cpp", "crash4.cpp"].map(|name| golden.join(name)).iter().filter(|file| file.is_file())
    {
        works(&format!("weft weave --abi perfflow -- clang++ -O2 -c {} -o golden.o", file.display()), &work);
    }
}
