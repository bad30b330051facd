//! Rows of all scripts, and what is wrong with some of them.

use super::*;
use crate::sink::Memory;

fn run(files: &[(&str, &str)], wanted: &str) -> (Memory, Survey) {
    let mut found = Survey::default();
    for (name, text) in files {
        survey(&mut Input::new(format!("d/{name}"), &mut text.as_bytes()), &mut found).expect("memory");
    }
    found.conclude();
    let mut memory = Memory::default();
    let text = files.iter().find(|(name, _)| *name == wanted).expect("a file").1;
    read(&mut Input::new(format!("d/{wanted}"), &mut text.as_bytes()), &found, &mut memory).expect("memory");
    (memory, found)
}

fn check(name: &str, text: &str, events: &[&str], skipped: &[(&str, u64)]) {
    let (memory, _) = run(&[(name, text)], name);
    assert_eq!(memory.events, events, "{name}");
    let told: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
    assert_eq!(told, skipped, "{name}");
}

const READS: &str = "Attaching 6 probes...\nTIMESTAMP         PID    FD   RET (B)      LAT(ns)      FILENAME\n\
    9000001000  7 python 832          1000         a.npy\n\
    9000005000  7 python 18446744073709551103 100         speed\n\
    9000006000  7 python 64         3000         \n\
    9000006500  7 649071482431512 2041482      python\nLost 5 events\n@start[7]: 5\n\
    9000007000  7 python 1         10   half";

#[test]
fn reads() {
    check(
        "trace_read.out",
        READS,
        &[
            "span read POSIX 7/7 9000000000..9000001000 ret=832 fhash=a.npy",
            "span read POSIX 7/7 9000004900..9000005000 ret=-513 errno=513 fhash=speed",
            // It overlaps the one before: another thread made it.
            "metadata thread_name PROCESS 7/1073741825 9000003000 name=thread 2",
            "span read POSIX 7/1073741825 9000003000..9000006000 ret=64",
        ],
        &[
            ("events that bpftrace lost (lines that say so)", 1),
            ("map that bpftrace printed at its end", 1),
            ("torn line", 2),
        ],
    );
}

#[test]
fn latencies_of_32_bits() {
    check(
        "trace_write.out",
        "TIMESTAMP PID OFFSET RET (B) LAT(ns) FILENAME\n9000001000 7 0 80 -1886596322 x\n9000001000 7 0 80 -9886596322 x\n",
        &["span write POSIX 7/7 6591630026..9000001000 ret=80 offset=0 fhash=x latency_repaired=true"],
        &[("latency that is no number of nanoseconds", 1)],
    );
    let (_, found) = run(
        &[("trace_write.out", "TIMESTAMP PID OFFSET RET (B) LAT(ns) FILENAME\n9000001000 7 0 80 -5 x\n")],
        "trace_write.out",
    );
    assert!(found.notes.iter().any(|note| note.contains("1 latencies were printed in 32 bits")), "{:?}", found.notes);
}

#[test]
fn other_calls() {
    check(
        "trace_openat.out",
        "TIMESTAMP PID FD LAT(ns) FULLPATH FILENAME\n9000001000 7 python 10 /x/none.so \n9000002000 7 python 10 /x/l.so l-2.so\n",
        &[
            "span openat POSIX 7/7 9000000990..9000001000 fhash=/x/none.so failed=true",
            "span openat POSIX 7/7 9000001990..9000002000 fhash=/x/l.so file=l-2.so",
        ],
        &[],
    );
    check(
        "trace_close.out",
        "TIMESTAMP         PID    FD    LAT(ns)  FILENAME\n9000001000 7 3 10 a b\n",
        &["span close POSIX 7/7 9000000990..9000001000 fd=3 fhash=a b"],
        &[],
    );
    check(
        "trace_create_del.out",
        "Attaching 9 probes...\nmkdir():\nTIMESTAMP PID FUNCTION MODE LAT(ns) FILENAME\nrmdir():\nTIMESTAMP PID FUNCTION LAT(ns) FILENAME\nunlink():\n\
         TIMESTAMP PID FUNCTION LAT(ns) FILENAME FULLPATH\n9000001000 7 mkdir() 511 21 /r/ckpts\n9000002000 7 unlink() 55 /dev/shm/t\n9000003000 7 rmdir() 5 ckpts\n9000003000 7 python 5 x\n",
        &[
            "span mkdir POSIX 7/7 9000000979..9000001000 mode=511 fhash=/r/ckpts",
            "span unlink POSIX 7/7 9000002000..9000002000 fhash=/dev/shm/t printed_latency=55",
            "span rmdir POSIX 7/7 9000002995..9000003000 fhash=ckpts",
        ],
        &[("torn line", 1)],
    );
    check(
        "vfs_rw.out",
        "TIMESTAMP PID COMM T SIZE LAT FILE\n9000001000 7 python R 10 5 x\n9000002000 7 python W 11 5 y\n",
        &[
            "span read POSIX 7/7 9000000995..9000001000 ret=10 fhash=x",
            "span write POSIX 7/7 9000001995..9000002000 ret=11 fhash=y",
        ],
        &[],
    );
    check(
        "trace_write.out",
        "TIMESTAMP PID TID COMM LAT(ns) FILENAME\n9000001000 7 8 python 14 log\n",
        &["span write POSIX 7/8 9000000986..9000001000 fhash=log"],
        &[],
    );
}

#[test]
fn block_requests_belong_to_their_pid() {
    check(
        "trace_bio.out",
        "TIMESTAMP PID COMM DONEPID DONECOMM DISK T BYTES LAT(ns)\n9000001000 7 python 8 swapper/0 sda R 4096 100\n9000001000 0 kworker/1:2 7 python sdb W 512 100\n",
        &[
            "metadata thread_name PROCESS 7/1073742080 9000000900 name=block request 1",
            "span read block 7/1073742080 9000000900..9000001000 device=sda size=4096 ret=4096 rwbs=R comm=python done_pid=8 done_comm=swapper/0",
            "metadata thread_name PROCESS 0/1073742080 9000000900 name=block request 1",
            "span write block 0/1073742080 9000000900..9000001000 device=sdb size=512 ret=512 rwbs=W comm=kworker/1:2 done_pid=7 done_comm=python",
        ],
        &[],
    );
}

#[test]
fn files_have_the_paths_of_their_opens() {
    let opens = "TIMESTAMP PID FD LAT(ns) FULLPATH FILENAME\n9000001000 7 python 10 /data/a.npy a.npy\n9000001000 7 python 10 /one/b b\n9000001000 7 python 10 /two/b b\n";
    let reads =
        "TIMESTAMP PID FD RET (B) LAT(ns) FILENAME\n9000002000 7 python 5 10 a.npy\n9000003000 7 python 5 10 b\n";
    let (memory, _) = run(&[("trace_openat.out", opens), ("trace_read.out", reads)], "trace_read.out");
    assert!(
        memory.events[0].ends_with("fhash=/data/a.npy") && memory.events[1].ends_with("fhash=b"),
        "{:?}",
        memory.events
    );
}

#[test]
fn detection() {
    let detect = |name, text: &str| detect(&Head { name, bytes: text.as_bytes() });
    assert_eq!(detect("x", READS), Confidence::Certain);
    assert_eq!(detect("trace_read.out", "1380337414620556  2041478 python 832 6323 x\n"), Confidence::Likely);
    assert_eq!(detect("x", "1380337414620556  2041478 python 832 6323 x\n"), Confidence::Possible);
    assert_eq!(detect("x", "TIMESTAMP TIME\n1380337414620556  22:34:30\n"), Confidence::No);
}

#[test]
fn cut_anywhere_and_bytes_changed() {
    for length in 0..READS.len() {
        run(&[("trace_read.out", &READS[..length])], "trace_read.out");
    }
    for place in 0..READS.len() {
        for byte in [b' ', b'\n', b'9', b'-', b'x'] {
            let mut bytes = READS.as_bytes().to_vec();
            bytes[place] = byte;
            run(&[("trace_read.out", std::str::from_utf8(&bytes).expect("plain"))], "trace_read.out");
        }
    }
}
