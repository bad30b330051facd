//! Which programs get the library, how it behaves there, and that other programs run untraced with a stated reason.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

use rustix::process::geteuid;
use weftline_testkit::compile::{
    self, ASAN, ASAN_STATIC, Build, CLASS_32, LIBRARY, MUSL, MUSL_STATIC, STATIC, TSAN, compile,
};
use weftline_testkit::product::product;
use weftline_testkit::run::weft;
use weftline_testkit::{Case, Scratch};

/// The program of this build as the run's own child, and as a child of a traced program.
fn left_alone(build: Build, reason: &'static str) {
    let program = compile("plain_work", build);
    let name = program.to_string_lossy().into_owned();
    Case::build("plain_work", build).sees_nothing().untraced(&name, reason).check();
    Case::program("runs_children")
        .args([&program])
        .work("parent.bin", 100)
        .work("after.bin", 100)
        .untraced(&name, reason)
        .check();
    Case::command(["/bin/bash", "-c", "cp \"$0\" copy; ./copy; rm copy; exec \"$0\""])
        .args([&program])
        .untraced(&name, reason)
        .check();
}

#[test]
fn static_program() {
    left_alone(STATIC, "static");
}

#[test]
fn musl_program() {
    left_alone(MUSL, "not linked to glibc");
}

#[test]
fn static_musl_program() {
    left_alone(MUSL_STATIC, "static");
}

#[test]
fn program_of_another_class() {
    left_alone(CLASS_32, "32-bit");
}

#[test]
fn address_sanitizer() {
    left_alone(ASAN, "sanitizer");
    left_alone(ASAN_STATIC, "sanitizer");
}

#[test]
fn thread_sanitizer() {
    left_alone(TSAN, "sanitizer");
}

#[test]
fn script_of_a_static_interpreter() {
    let interpreter = compile("plain_work", STATIC);
    let script = format!("#!{}\nignored\n", interpreter.display());
    let make = move |work: &std::path::Path| {
        let path = work.join("script");
        std::fs::write(&path, &script).expect("the working directory can be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("own file");
    };
    Case::command(["./script"]).prepare(make).sees_nothing().check();
}

/// A program that changes its user gets no library from the loader; it must work and be listed.
#[test]
fn setuid_program() {
    assert!(geteuid().is_root(), "giving a program to nobody, setuid, needs root");
    let home = Scratch::new("setuid");
    let program = home.join("setuid_work");
    std::fs::copy(compile("plain_work", compile::PLAIN), &program).expect("the program can be copied");
    std::os::unix::fs::chown(&program, Some(65534), Some(65534)).expect("root may");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("own file");
    let name = program.to_string_lossy().into_owned();
    let open = |work: &std::path::Path| {
        std::fs::set_permissions(work, std::fs::Permissions::from_mode(0o777)).expect("own directory");
    };
    Case::command([&program]).prepare(open).sees_nothing().untraced(&name, "setuid").check();
    Case::program("runs_children").args([&program]).prepare(open).untraced(&name, "setuid").check();
}

/// In a mount namespace of its own a child no longer sees the library: no complaint of the loader, a reason instead.
#[test]
fn library_out_of_sight() {
    assert!(geteuid().is_root(), "a new mount namespace needs root");
    let library = product().parent().expect("weft lies in a directory").to_owned();
    Case::script(
        "hidden",
        r#"
        unshare --mount bash -c 'mount -t tmpfs none "$LIBRARY_DIR" && exec cat input'
        echo afterwards"#,
    )
    .env("LIBRARY_DIR", library)
    .file("input", "out of sight\n")
    .untraced("/cat", "not reachable")
    .check();
}

/// A megabyte goes past libc: every verb that speaks of coverage says how.
fn gap_is_explained(case: &Case, reason: &str, verbs: &[&str], unknown: bool) {
    let finished = case.check();
    for verb in verbs {
        let outcome = weft([verb.as_ref(), finished.run.as_os_str()], &finished.scratch);
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert!(said.contains(reason), "weft {verb} should say {reason:?}: {said}");
        let coverage = said.lines().find(|line| line.contains("coverage")).unwrap_or_default();
        assert_eq!(coverage.contains("unknown"), unknown, "weft {verb}: {coverage}");
    }
}

const ALL: [&str; 3] = ["info", "check", "report"];

#[test]
fn raw_syscalls_are_named_as_the_gap() {
    let case = Case::program("raw_syscalls").sees("open", "raw.bin", 1).sees("close", "raw.bin", 1);
    gap_is_explained(&case.moves("write", "raw.bin", 10, 100), "made raw system calls", &["check"], false);
}

#[test]
fn io_uring_is_named_as_the_gap() {
    let case = Case::program("io_uring").sees("open", "ring.bin", 1).sees("close", "ring.bin", 1);
    gap_is_explained(&case, "used io_uring: its transfers are not seen", &ALL, true);
}

#[test]
fn go_programs_are_named() {
    let reason = "is a Go program: its runtime makes system calls itself";
    gap_is_explained(&Case::program("like_go").sees_nothing(), reason, &ALL, false);
}

#[test]
fn mapped_files_are_named() {
    gap_is_explained(&Case::program("mapped"), "mapped files into memory: its reads and writes", &ALL, false);
}

hazards! {
    outside_of_main: ["constructor-early.bin", "constructor.bin", "main.bin", "thread-destructor.bin", "atexit.bin",
            "destructor.bin", "destructor-late.bin"].into_iter().fold(Case::program("outside_main"), |case, name| case.work(name, 10));
    library_loaded_and_unloaded: (0..3).fold(Case::program("dlopen_io").args([compile("io_library", LIBRARY)]), |case, _|
        case.work("loaded.bin", 10).work("library.bin", 100).work("unloaded.bin", 10));
    existing_preload_is_kept: own_malloc().env("LD_PRELOAD", compile("own_malloc", LIBRARY));
    replaced_malloc_in_children: Case::script("malloc", r#"for i in 1 2 3; do LD_PRELOAD="$OWN_MALLOC" "$PROGRAM"; done"#)
        .env("OWN_MALLOC", compile("own_malloc", LIBRARY)).env("PROGRAM", compile("uses_own_malloc", compile::PLAIN))
        .sees("fopen", "stream.txt", 60).moves("fprintf", "stream.txt", 60, 660).sees("fclose", "stream.txt", 60);
    another_tracer_is_loaded_too: Case::command(["/usr/bin/env"])
        .args([preload_other_hooks(), compile("ending", compile::PLAIN).into(), "exit".into(), "1000".into()])
        .work("data.bin", 1000);
    missing_preload_is_the_users_business:
        Case::command(["/usr/bin/env", "LD_PRELOAD=/no/such/library.so", "/bin/echo", "hello"]);
}

fn preload_other_hooks() -> OsString {
    let mut setting = OsString::from("LD_PRELOAD=");
    setting.push(compile("other_hooks", LIBRARY));
    setting
}

fn own_malloc() -> Case {
    Case::program("uses_own_malloc").sees("fopen", "stream.txt", 20).moves("fprintf", "stream.txt", 20, 220).sees(
        "fclose",
        "stream.txt",
        20,
    )
}
