//! Tests of strace's text: lines in, events out.

use super::*;
use crate::sink::Memory;

fn surveyed(name: &str, text: &[u8], mut known: Survey) -> (Memory, Result<()>) {
    survey(&mut Input::new(name, &mut &*text), &mut known).expect("memory");
    let mut memory = Memory::default();
    let read = read(&mut Input::new(name, &mut &*text), &known, &mut memory);
    (memory, read)
}

fn check(name: &str, text: &str, known: Survey, events: &[&str], skipped: &[(&str, u64)]) -> Memory {
    let (memory, read) = surveyed(name, text.as_bytes(), known);
    read.expect("memory");
    assert_eq!(memory.events, events);
    let found: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
    assert_eq!(found, skipped);
    memory
}

const WHOLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/strace.txt"));

#[test]
fn calls_signals_and_exits() {
    let memory = check(
        "out.txt",
        WHOLE,
        Survey::default(),
        &[
            "span execve PROCESS 100/100 1700000000000001000..1700000000000301000 ret=0",
            "span openat POSIX 100/100 1700000000100000000..1700000000100010000 fhash=dir/a \"b\"\n ret=3 args=O_RDONLY|O_CLOEXEC",
            "span read POSIX 100/100 1700000000200000000..1700000000200020000 fd=3 fhash=dir/a \"b\"\n size=4096 ret=17",
            "span pread64 POSIX 100/100 1700000000210000000..1700000000210020000 fd=3 fhash=dir/a \"b\"\n size=10 ret=0 offset=99",
            "span dup2 POSIX 100/100 1700000000220000000..1700000000220001000 fd=3 fhash=dir/a \"b\"\n ret=9 args=9",
            "span close POSIX 100/100 1700000000230000000..1700000000230001000 fd=3 fhash=dir/a \"b\"\n ret=0",
            "span write POSIX 100/100 1700000000240000000..1700000000240001000 fd=9 fhash=dir/a \"b\"\n size=1 ret=-9 errno=9",
            "span mmap POSIX 100/100 1700000000250000000..1700000000250002000 fd=9 fhash=dir/a \"b\"\n size=8192 \
             ret=18446744073699065856 offset=4096 args=NULL, PROT_READ, MAP_PRIVATE",
            "span clone3 syscall 100/100 1700000000260000000..1700000000280000000 ret=101 \
             args={flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, child_tid=0x7f, stack_size=0x7ff} => {parent_tid=[101]}, 88",
            "span write POSIX 100/101 1700000000270000000..1700000000280500000 fd=9 fhash=dir/a \"b\"\n size=1 ret=1",
            "span poll WAIT 100/101 1700000000290000000..1700000000290100000 ret=1 args=[{fd=9, events=POLLIN}], 1, 5 \
             result=[{fd=9, revents=POLLIN}]",
            "instant SIGCHLD signal 100/100 1700000000300000000 info={si_signo=SIGCHLD, si_pid=7}",
            "instant exit PROCESS 100/101 1700000000320000000 code=0",
            "instant wait4 PROCESS 100/100 1700000000310000000 unfinished=true args=-1",
            "instant exit PROCESS 100/100 1700000000330000000 signal=SIGKILL",
        ],
        &[],
    );
    assert_eq!(memory.processes, ["100 cat"]);
}

#[test]
fn files_by_strace_itself_and_directories() {
    let text = "\
[pid 5] 10:00:00 openat(AT_FDCWD</home/u>, \"x\", O_RDONLY) = 3</data/x\\74y> <0.000001>
[pid 5] 10:00:00 read(3</data/x\\74y>, \"\", 1) = 0
[pid 5] 10:00:00 write(1</dev/pts/0<char 136:0>>, \"\", 0) = 0
[pid 5] 10:00:00 recvfrom(4<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"x\", 9, 0, NULL, NULL) = 1
[pid 5] 10:00:00 newfstatat(3</data/x>(deleted), \"\", {st_mode=S_IFREG|0644}, AT_EMPTY_PATH) = 0
[pid 5] 10:00:00 chdir(\"/srv\") = 0
[pid 5] 10:00:00 rename(\"a\", \"./b\") = 0
[pid 5] 10:00:00 openat(AT_FDCWD, \"d\", O_RDONLY|O_DIRECTORY) = 6
[pid 5] 10:00:00 unlinkat(6, \"e\", 0) = 0
[pid 5] 10:00:00 copy_file_range(3</data/x>, NULL, 7</out>, NULL, 100, 0) = 50
[pid 5] 10:00:00 pipe2([8, 9<pipe:[77]>], O_CLOEXEC) = 0
[pid 5] 10:00:00 read(8, \"\", 1) = 0
[pid 5] 10:00:00 read(9, 0x7ffc, 1) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
[pid 5] 10:00:00 prctl(PR_SET_NAME, \"loader\") = 0
[pid 5] 10:00:00 getrandom(\"\\x01\\x02\", 2, GRND_NONBLOCK) = 2
";
    let known = Survey { zone_seconds: Some(3600), first_day: Some(19_675), ..Survey::default() };
    let at = "5/5 1699952400000000000";
    let instant = |rest: &str| rest.replace(" @", &format!(" {at}"));
    let expected: Vec<String> = [
        "span openat POSIX @..1699952400000001000 fhash=/data/x<y ret=3 args=O_RDONLY",
        "instant read POSIX @ fd=3 fhash=/data/x<y size=1 ret=0",
        "instant write POSIX @ fd=1 fhash=/dev/pts/0 size=0 ret=0",
        "instant recvfrom NETWORK @ fd=4 fhash=socket:[TCP 127.0.0.1:1->127.0.0.1:2] size=9 ret=1 args=0, NULL, NULL",
        "instant newfstatat POSIX @ fd=3 fhash=/data/x ret=0 args={st_mode=S_IFREG|0644}, AT_EMPTY_PATH",
        "instant chdir POSIX @ fhash=/srv ret=0",
        "instant rename POSIX @ fhash=/srv/a fhash2=/srv/b ret=0",
        "instant openat POSIX @ fhash=/srv/d ret=6 args=O_RDONLY|O_DIRECTORY",
        "instant unlinkat POSIX @ fhash=/srv/d/e ret=0 args=0",
        "instant copy_file_range POSIX @ fd=7 fhash=/out fhash2=/data/x size=100 ret=50 args=NULL, NULL, 0",
        "instant pipe2 POSIX @ ret=0 args=[8, 9<pipe:[77]>], O_CLOEXEC",
        "instant read POSIX @ fd=8 fhash=pipe:[] size=1 ret=0",
        "instant read POSIX @ fd=9 fhash=pipe:[77] size=1 error=ERESTARTSYS args=0x7ffc",
        "instant prctl syscall @ ret=0 args=PR_SET_NAME",
        "metadata thread_name PROCESS @ name=loader",
        "instant getrandom syscall @ ret=2 args=2, GRND_NONBLOCK",
    ]
    .into_iter()
    .map(instant)
    .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check("x", text, known, &expected, &[]);
}

#[test]
fn times_of_all_kinds() {
    let day = 86_400_000_000_000i64;
    let known = || Survey { first_day: Some(1), zone_seconds: Some(0), ..Survey::default() };
    // Across midnight, with a line that comes late.
    let text = "23:59:59.9 sync() = 0 <0.2>\n00:00:00.1 sync() = 0\n23:59:59.95 sync() = 0\n00:00:00.2 sync() = 0\n";
    let expected: Vec<String> = vec![
        format!("span sync POSIX 77/77 {}..{} ret=0", day * 2 - 100_000_000, day * 2 + 100_000_000),
        format!("instant sync POSIX 77/77 {} ret=0", day * 2 + 100_000_000),
        format!("instant sync POSIX 77/77 {} ret=0", day * 2 - 50_000_000),
        format!("instant sync POSIX 77/77 {} ret=0", day * 2 + 200_000_000),
    ];
    check("out.77", text, known(), &expected.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    // Steps add up; `-r` beside a time is passed over, and so are `-i` and `-n`.
    let text = "     0.000000 sync() = 0\n     0.500000 sync() = 0\n";
    check("x", text, known(), &["instant sync POSIX 1/1 0 ret=0", "instant sync POSIX 1/1 500000000 ret=0"], &[]);
    let text = "8 10:00:00.5 (+     0.000000) [ 162] [00007f5d8853fad7] sync() = 0\n > /lib/libc.so(sync+0x1) [0x1]\n";
    let expected = format!("instant sync POSIX 8/8 {} ret=0", day + 36_000_500_000_000);
    check("x", text, known(), &[&expected], &[("remark of strace, stack frame or dump", 1)]);
    let memory = check(
        "x",
        "8<sh> 1700000000 sync() = 0\n",
        known(),
        &["instant sync POSIX 8/8 1700000000000000000 ret=0"],
        &[],
    );
    assert_eq!(memory.used.expect("a clock").kind, ClockKind::Realtime);
    let (_, read) = surveyed("x", b"sync() = 0\n", known());
    assert_eq!(
        read.expect_err("no time").to_string(),
        "x, at byte 0: no line tells its time; record with `strace -f -ttt -T -o FILE`"
    );
    // Without a date the clock says so.
    let (memory, _) = surveyed("x", b"10:00:00 sync() = 0\n", Survey::default());
    assert!(memory.used.expect("a clock").how.contains("1970-01-01"));
}

#[test]
fn who_made_whom() {
    // On a terminal the first process has no number before the second one.
    let text = "\
1700000000.0 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3
1700000000.1 vfork( <unfinished ...>
strace: Process 51 attached
[pid    51] 1700000000.2 read(3, \"\", 1) = 0
[pid    51] 1700000000.3 execve(\"/bin/ls\", [\"ls\"...], 0x1 /* 1 var */ <unfinished ...>
[pid    50] 1700000000.4 <... vfork resumed>) = 51
[pid    51] 1700000000.5 <... execve resumed>) = 0
[pid    50] 1700000000.6 <... futex resumed>) = 0
[pid    50] 1700000000.7 exit_group(0) = ?
";
    let memory = check(
        "err.txt",
        text,
        Survey::default(),
        &[
            "instant openat POSIX 50/50 1700000000000000000 fhash=/a ret=3 args=O_RDONLY",
            "instant read POSIX 51/51 1700000000200000000 fd=3 fhash=/a size=1 ret=0",
            "span vfork PROCESS 50/50 1700000000100000000..1700000000400000000 ret=51",
            "span execve PROCESS 51/51 1700000000300000000..1700000000500000000 ret=0",
            "instant exit_group syscall 50/50 1700000000700000000 args=0",
        ],
        &[("remark of strace, stack frame or dump", 1), ("second half of a call without the first", 1)],
    );
    assert_eq!(memory.processes, ["51 pid 51", "51 ls"]);
}

#[test]
fn detection() {
    let detect = |bytes: &str| detect(&Head { name: "x", bytes: bytes.as_bytes() });
    assert_eq!(detect(WHOLE), Confidence::Certain);
    assert_eq!(detect("10:00:00 read(3, \"\", 1) = 0\n"), Confidence::Likely);
    assert_eq!(detect("strace: Process 5 attached\n"), Confidence::No);
    assert_eq!(detect("int main(void) {\n  return f(3);\n}\n"), Confidence::No);
    assert_eq!(detect("10:00:00 hello\nx(1)\n"), Confidence::No);
}

#[test]
fn results_and_errors() {
    let of = |text: &str| line::outcome(text.as_bytes()).map(|found| (found.value, found.took_ns));
    assert_eq!(of(" = 3</a b>(deleted)"), Some((Some(3), None)));
    assert_eq!(of("= 3</a <1.5>"), Some((Some(3), Some(1_500_000_000))));
    assert_eq!(
        of(" = -1 EAGAIN (Resource temporarily unavailable) (INJECTED) <0.5>"),
        Some((Some(-1), Some(500_000_000)))
    );
    assert_eq!(of(" = ?"), Some((None, None)));
    assert_eq!((of(" = "), of(""), of(" = x")), (None, None, None));
    for (name, number) in [("EPERM", 1), ("ENOENT", 2), ("EAGAIN", 11), ("EHWPOISON", 133), ("ERESTARTSYS", 512)] {
        assert_eq!(errors::number(name), Some(number), "{name}");
    }
    assert_eq!((errors::number(""), errors::number("EWHAT")), (None, None));
}

#[test]
fn cut_and_changed_anywhere() {
    for length in 0..WHOLE.len() {
        let _ = surveyed("x", &WHOLE.as_bytes()[..length], Survey::default());
    }
    // Each byte becomes each of those that mean something.
    for at in 0..WHOLE.len() {
        for byte in *b"\"\\()[]{}<>,=?9\n" {
            let mut text = WHOLE.as_bytes().to_vec();
            text[at] = byte;
            let _ = surveyed("x", &text, Survey::default());
        }
    }
}

#[test]
fn a_circle_of_makers_and_a_long_line_end() {
    let text = "1 1.5 clone(flags=CLONE_THREAD) = 2\n2 1.5 clone(flags=CLONE_THREAD) = 1\n";
    let (memory, read) = surveyed("x", text.as_bytes(), Survey::default());
    assert!(read.is_ok() && memory.events.len() == 2);
    let long =
        [b"5 1700000000.5 write(1, \"".as_slice(), &vec![b'('; 10 << 20], b"\", 1) = 1\n5 1700000000.5 sync() = 0\n"]
            .concat();
    let (memory, read) = surveyed("x", &long, Survey::default());
    assert!(read.is_ok());
    assert_eq!((memory.events.len(), memory.skipped["torn line"].count), (1, 1));
}
