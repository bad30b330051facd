//! Every argument reaches the real function bit by bit, and errno stays what it was.

use weftline_testkit::Case;
use weftline_testkit::compile::{Build, FORTIFY_2, FORTIFY_3, PLAIN};

fn printf(build: Build) -> Case {
    // Per round and per form one line of 176 bytes, but the stream gets two extra lines of 20 and 13.
    const LINE: u64 = 176;
    Case::build("printf_args", build)
        .sees("open", "fd.txt", 1)
        .sees("close", "fd.txt", 1)
        .sees("fopen", "stream.txt", 1)
        .sees("fclose", "stream.txt", 1)
        .moves("fprintf", "stream.txt", 102, 100 * LINE + 33)
        .moves("vfprintf", "stream.txt", 100, 100 * LINE)
        .moves("dprintf", "fd.txt", 100, 100 * LINE)
        .moves("vdprintf", "fd.txt", 100, 100 * LINE)
        .moves("printf", "stdout", 100, 100 * LINE)
        .sees("fopen", "wide.txt", 1)
        .sees("fclose", "wide.txt", 1)
}

hazards! {
    execl: Case::program("execl_args").args(["execl"]).sees("execl", "/bin/echo", 1);
    execlp: Case::program("execl_args").args(["execlp"]).sees("execlp", "name:echo", 1);
    execle: Case::program("execl_args").args(["execle"]).sees("execle", "/bin/sh", 1);
    execl_with_forty_arguments: Case::program("execl_args").args(["many"]).sees("execl", "/bin/echo", 1);
    fcntl: Case::program("fcntl_args").sees("open", "locked.bin", 2).sees("fcntl", "locked.bin", 10).fails("fcntl", "locked.bin", 22, 1);
    open_modes: Case::program("open_modes")
        .sees("open", "open.bin", 2).sees("fstat", "open.bin", 2)
        .sees("open", "open64.bin", 1).sees("fstat", "open64.bin", 1)
        .sees("openat", "openat.bin", 1).sees("fstat", "openat.bin", 1)
        .sees("openat", "openat64.bin", 1).sees("fstat", "openat64.bin", 1)
        .sees("creat", "creat.bin", 1).sees("fstat", "creat.bin", 1)
        .sees("creat", "creat64.bin", 1).sees("fstat", "creat64.bin", 1)
        .sees("open", ".", 1).sees("openat", ".", 1).sees("fstat", "#unnamed", 2);
    printf_plain: printf(PLAIN);
    printf_fortified_2: printf(FORTIFY_2);
    printf_fortified_3: printf(FORTIFY_3);
    scanf: Case::program("scanf_args")
        .sees("fopen", "numbers.txt", 2).sees("fclose", "numbers.txt", 2).moves("fputs", "numbers.txt", 1, 83)
        .sees("fscanf", "numbers.txt", 2).sees("vfscanf", "numbers.txt", 1).sees("freopen", "numbers.txt", 1).sees("scanf", "numbers.txt", 1);
    errno: Case::program("errno_kept").work("data.bin", 1)
        .sees("open", "data.bin", 3520).sees("close", "data.bin", 7040).sees("fstat", "data.bin", 3520)
        .sees("stat", "data.bin", 3520).sees("lseek", "data.bin", 3520).sees("dup", "data.bin", 3520)
        .moves("pread", "data.bin", 70_400, 64 * 70_400);
}

/// The names are too long to compare with the others in a table.
#[test]
fn paths_beyond_the_limit() {
    let finished = Case::program("long_path").check();
    let table = finished.table();
    for call in ["open", "fopen", "stat", "unlink", "rename"] {
        let failed: u64 =
            table.iter().filter(|(key, _)| key.call == call && key.errno == 36).map(|(_, count)| count.calls).sum();
        assert_eq!(failed, 1, "{call} with a name of 5,000 bytes fails once, with ENAMETOOLONG");
    }
    assert_eq!(finished.count("pwrite", "short.bin").calls, 10, "a path of 4,095 bytes names its file: {table:?}");
}
