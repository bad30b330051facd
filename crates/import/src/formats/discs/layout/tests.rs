//! Headers and rows of all generations.

use super::*;

fn check(name: &str, header: &str, rows: &[&str], kind: Kind, columns: &[Column]) {
    let rows: Vec<Vec<u8>> = rows.iter().map(|row| row.as_bytes().to_vec()).collect();
    assert_eq!(Kind::of(name, &[header.as_bytes().to_vec()]), Some(kind), "{name}");
    let layout = Layout::choose(kind, header.as_bytes(), &rows).expect("a layout");
    assert_eq!(layout.columns, columns, "{name}");
}

#[test]
fn both_generations_and_explore() {
    check(
        "trace_read.out",
        "TIMESTAMP         PID    FD   RET (B)      LAT(ns)      FILENAME",
        &["1380337414620556  2041478 python 832          6323         libpthread-2.27.so", "1 2 python 832 5 "],
        Kind::Read,
        &[Stamp, Pid, Comm, Result, Latency, FileName],
    );
    check(
        "rd.out",
        "TIMESTAMP         PID    OFFSET   RET (B)      LAT(ns)      FILENAME",
        &["3423280631785     12153    0                832          5748         -"],
        Kind::Read,
        &[Stamp, Pid, Offset, Result, Latency, FileName],
    );
    check(
        "trace_read.out",
        "TIMESTAMP PID COMM OFFSET RET (B) FILENAME",
        &["3423280631785 12153 cat 0 832 x", "3423280631785 12153 tmux: server 0 832 x"],
        Kind::Read,
        &[Stamp, Pid, Comm, Offset, Result, FileName],
    );
    check(
        "trace_write.out",
        "TIMESTAMP         PID    FD   BUFFER ADDR   OFFSET   REQ (B)    RET (B)    LAT(ns) ",
        &["1380337460715448  2041478 python 0x55a9b3022a20  0        80         80         14911      0"],
        Kind::Write,
        &[Stamp, Pid, Comm, Address, Offset, Requested, Result, Latency, FileName],
    );
    check(
        "trace_write.out",
        "TIMESTAMP PID TID COMM LAT(ns) FILENAME",
        &["1380337460715448  7 8 python 14911 log"],
        Kind::Write,
        &[Stamp, Pid, Tid, Comm, Latency, FileName],
    );
    check(
        "trace_bio.out",
        "TIMESTAMP PID COMM DISK T BYTES SECTOR LAT(ns)",
        &["1380337429770686  2041478  python         sda  R 4096         348712782    60179"],
        Kind::Block,
        &[Stamp, Pid, Comm, Disk, Direction, Bytes, Sector, Latency],
    );
    check(
        "trace_bio.out",
        "TIMESTAMP PID COMM DISK T BYTES QLAT(ns) LAT(ns)",
        &["1380337429770686  2041478  python         sda  R 4096         3487    60179"],
        Kind::Block,
        &[Stamp, Pid, Comm, Disk, Direction, Bytes, Queued, Latency],
    );
    check(
        "vfs_rw.out",
        "TIMESTAMP PID COMM T SIZE LAT FILE",
        &["5 2 python R 10 -5 x"],
        Kind::ReadWrite,
        &[Stamp, Pid, Comm, Direction, Bytes, Latency, FileName],
    );
    check(
        "trace_fsync.out",
        "TIMESTAMP PID DEPTH RET LAT(ns)",
        &["5 2 7 0 9"],
        Kind::Read,
        &[Stamp, Pid, Other(0), Result, Latency],
    );
}

#[test]
fn torn_rows_are_none() {
    let layout = Layout {
        columns: vec![Stamp, Pid, Comm, DonePid, DoneComm, Disk, Direction, Bytes, Latency],
        others: Vec::new(),
    };
    let parse = |row: &'static str| Row::parse(row.as_bytes(), &layout).is_some();
    assert!(parse("1380338970624913  2041479  python         0        swapper/0      sda  R 4096         161462"));
    assert!(!parse(
        "1380338970746777  2041482  python         0        swapper/0      sda  649071482431512 2041482      python"
    ));
    assert!(!parse("1380338970624913  2041479  python 0 swapper/0 sda R 4096 161462 7"));
    assert!(!parse("1380338970624913  2041479"));
}

#[test]
fn names_with_blanks() {
    let comm = Layout { columns: vec![Stamp, Pid, Comm, Latency, FullPath, FileName], others: Vec::new() };
    let row = Row::parse(b"9 8 Web Content 5 /a b/c d c d", &comm).expect("a row");
    assert_eq!(
        (row.comm, row.full_path, row.file_name),
        (&b"Web Content"[..], Some(&b"/a b/c d"[..]), Some(&b"c d"[..]))
    );
    let row = Row::parse(b"9 8 python 5 /lib/x.so ", &comm).expect("a row");
    assert_eq!((row.full_path, row.file_name), (Some(&b"/lib/x.so"[..]), None));
    let row = Row::parse(b"9 8 python 5 /lib/x.so x-2.so", &comm).expect("a row");
    assert_eq!((row.full_path, row.file_name), (Some(&b"/lib/x.so"[..]), Some(&b"x-2.so"[..])));
    assert_eq!(Row::parse(b"9 8 a name that is far too long 5 /x", &comm), None);
}
