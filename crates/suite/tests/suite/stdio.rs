//! Streams: the trace has what the program requested, attributed to the file of the stream at that time.

use weftline_testkit::Case;
use weftline_testkit::compile::Build;
use weftline_testkit::compile::{FORTIFY_2, FORTIFY_3, LARGE_FILES, OPTIMISED};
use weftline_testkit::strace::{self, Bytes};

fn threads(count: u64, rounds: u64) -> Case {
    let case = Case::program("stdio_threads").args([count.to_string(), rounds.to_string()]);
    (0..count).fold(case, |case, thread| {
        let name = format!("thread{thread}");
        case.sees("fopen", &name, rounds).moves("fwrite", &name, rounds, 10 * rounds).sees("fclose", &name, rounds)
    })
}

fn fortified(build: Build) -> Case {
    Case::build("fortified", build)
        .work("data.bin", 100)
        .sees("open", "data.bin", 1)
        .sees("openat", "data.bin", 1)
        .sees("close", "data.bin", 2)
        .moves("read", "data.bin", 10, 1000)
        .moves("pread", "data.bin", 10, 1000)
        .sees("fopen", "data.txt", 1)
        .moves("fprintf", "data.txt", 10, 110)
        .sees("rewind", "data.txt", 1)
        .moves("fread", "data.txt", 1, 100)
        .moves("fgets", "data.txt", 1, 10)
        .sees("fclose", "data.txt", 1)
        .sees("symlink", "link", 1)
        .sees("readlink", "link", 1)
        .moves("dprintf", "stdout", 1, 18)
}

hazards! {
    two_threads_with_own_files: threads(2, 2000);
    eight_threads_with_own_files: threads(8, 1000);
    single_characters: Case::program("characters")
        .sees("fopen", "letters.txt", 2).sees("fclose", "letters.txt", 2)
        .moves("putc", "letters.txt", 100_000, 100_000).moves("fputc", "letters.txt", 1000, 1000)
        .moves("putc_unlocked", "letters.txt", 1000, 1000).moves("fputc_unlocked", "letters.txt", 1000, 1000)
        .moves("getc", "letters.txt", 100_001, 100_000).moves("fgetc", "letters.txt", 1001, 1001)
        .moves("getc_unlocked", "letters.txt", 1000, 1000).moves("fgetc_unlocked", "letters.txt", 1000, 1000)
        .moves("putchar", "stdout", 11, 11).moves("puts", "stdout", 1, 5);
    lines: Case::program("lines").sees("fopen", "lines.txt", 2).sees("fclose", "lines.txt", 2)
        .moves("fputs", "lines.txt", 1000, 15_000).moves("getline", "lines.txt", 800, 12_000)
        .sees("getline", "lines.txt", 1).moves("getdelim", "lines.txt", 100, 1500).moves("fgets", "lines.txt", 300, 1500);
    moving_streams: Case::program("streams")
        .sees("fopen", "first.bin", 1).sees("setvbuf", "first.bin", 1).moves("fwrite", "first.bin", 10, 1000)
        .sees("fflush", "first.bin", 1).sees("ftell", "first.bin", 1).sees("fseek", "first.bin", 1)
        .moves("fread", "first.bin", 3, 171).sees("ftello", "first.bin", 1).sees("fseeko", "first.bin", 1)
        .sees("rewind", "first.bin", 1).sees("fgetpos", "first.bin", 1).sees("fsetpos", "first.bin", 1)
        .sees("freopen", "second.bin", 1).moves("fwrite", "second.bin", 1, 100).sees("fclose", "second.bin", 1)
        .sees("open", "third.bin", 1).sees("fdopen", "third.bin", 1).moves("fwrite", "third.bin", 1, 100)
        .sees("fclose", "third.bin", 1).fails("fopen", "missing.bin", 2, 1);
    unlocked_forms: Case::program("unlocked")
        .sees("fopen", "unlocked.bin", 1).moves("fwrite_unlocked", "unlocked.bin", 50, 5000)
        .moves("fputs_unlocked", "unlocked.bin", 10, 50).sees("fflush_unlocked", "unlocked.bin", 1)
        .sees("fseek", "unlocked.bin", 1).moves("fread_unlocked", "unlocked.bin", 51, 5000)
        .moves("fgets_unlocked", "unlocked.bin", 10, 50).sees("fclose", "unlocked.bin", 1);
    fortified_level_2: fortified(FORTIFY_2);
    fortified_level_3: fortified(FORTIFY_3);
    large_file_symbols: Case::build("streams", LARGE_FILES)
        .sees("fopen", "first.bin", 1).sees("setvbuf", "first.bin", 1).moves("fwrite", "first.bin", 10, 1000)
        .sees("fflush", "first.bin", 1).sees("ftell", "first.bin", 1).sees("fseek", "first.bin", 1)
        .moves("fread", "first.bin", 3, 171).sees("ftello", "first.bin", 1).sees("fseeko", "first.bin", 1)
        .sees("rewind", "first.bin", 1).sees("fgetpos", "first.bin", 1).sees("fsetpos", "first.bin", 1)
        .sees("freopen", "second.bin", 1).moves("fwrite", "second.bin", 1, 100).sees("fclose", "second.bin", 1)
        .sees("open", "third.bin", 1).sees("fdopen", "third.bin", 1).moves("fwrite", "third.bin", 1, 100)
        .sees("fclose", "third.bin", 1).fails("fopen", "missing.bin", 2, 1);
}

/// Whatever the calls at the buffer's ends are named, they account for all bytes.
#[test]
fn inlined_characters() {
    let finished = Case::build("inlined_characters", OPTIMISED).check();
    let bytes = strace::traced(&finished.trace);
    let letters = strace::sum(&bytes, &finished.work.join("letters.txt").to_string_lossy());
    assert_eq!(letters, Bytes { read: 100_000, written: 100_000 });
}

/// Names made by mkstemp differ from run to run, so they are counted together.
#[test]
fn streams_and_files_without_a_name() {
    let finished = Case::program("stream_kinds").check();
    let table = finished.table();
    let sum = |call: &str, on: &dyn Fn(&str) -> bool| {
        table
            .iter()
            .filter(|(key, _)| key.call == call && key.errno == 0 && on(&key.on))
            .map(|(_, count)| count.calls)
            .sum::<u64>()
    };
    let made = |name: &str| name.starts_with("made-");
    assert_eq!((sum("mkstemp", &made), sum("mkostemp", &made), sum("mkstemps", &made)), (1, 1, 1));
    assert_eq!((sum("write", &made), sum("close", &made), sum("unlink", &made)), (3, 3, 3));
    // The cookie's own write is the program's call on its own file; the stream above it is no file.
    assert_eq!(finished.count("write", "cookie.bin").bytes, 11);
    let inside = |name: &str| !name.starts_with('/') && !name.is_empty();
    assert_eq!(sum("fputs", &inside), 0, "text for memory and cookie streams belongs to no file");
    assert_eq!((sum("tmpfile", &|_| true), sum("mkdtemp", &|_| true)), (1, 1));
    assert_eq!(
        sum("fwrite", &|name| name.starts_with("/tmp")),
        1,
        "what goes to a tmpfile is attributed to it: {table:?}"
    );
}
