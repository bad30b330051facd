//! The table against what is known from elsewhere: DFAnalyzer's categories, the names of the C library.

use std::collections::{BTreeMap, BTreeSet};

use crate::foreign::NAMES;
use crate::kernel::{EVERYWHERE, X86_64};
use crate::{
    Activity, CALLS, Call, CallInfo, Calls, Family, FileKind, Flow, IoCat, IoSums, Operation, Shape, Side, find,
    number_of,
};

fn all() -> impl Iterator<Item = &'static CallInfo> {
    CALLS.iter().skip(1).chain(NAMES)
}

#[test]
fn every_name_is_found_and_stands_once() {
    let mut seen = BTreeSet::new();
    for call in all() {
        assert!(seen.insert(call.name), "{} stands twice", call.name);
        assert_eq!(find(call.name), Some(call));
    }
    for name in ["", "opeN", "open6", "open644", "Empty", "fetch.iter", "nosuchcall"] {
        assert_eq!(find(name), None, "{name}");
    }
    assert_eq!(number_of("pread"), Some(Call::pread as usize));
    assert_eq!((number_of("newfstatat"), number_of("start")), (None, Some(Call::start as usize)));
    assert_eq!(CallInfo::of(Call::thread_name as u16).map(|call| call.name), Some("thread_name"));
    assert_eq!((CallInfo::of(0), CallInfo::of(CALLS.len() as u16)), (None, None));
}

/// A canonical name is a call that means the same, with no decoration of a symbol.
#[test]
fn canonical_names_are_known_calls() {
    for call in all() {
        let known = find(call.canonical).unwrap_or_else(|| panic!("{}: no call {}", call.name, call.canonical));
        assert_eq!(known.canonical, call.canonical, "{}", call.name);
        assert_eq!((known.operation, known.family), (call.operation, call.family), "{}", call.name);
        let plain =
            !call.canonical.starts_with("__") && !call.canonical.ends_with("64") && !call.canonical.contains("_IO_");
        assert!(plain, "{}: {} is no name for users", call.name, call.canonical);
    }
    for (name, canonical) in [
        ("open64", "open"),
        ("__openat_2", "openat"),
        ("__read_chk", "read"),
        ("__getdelim", "getdelim"),
        ("__xstat", "stat"),
        ("_IO_getc", "getc"),
        ("newfstatat", "fstatat"),
    ] {
        assert_eq!(find(name).map(|call| call.canonical), Some(canonical));
    }
}

#[test]
fn every_hook_and_kernel_call_is_classified() {
    for call in CALLS.iter().skip(1) {
        let mark = matches!(call.operation, Operation::Mark | Operation::ThreadName);
        assert_eq!(call.shape == Shape::none, mark, "{}: a hook has a recipe", call.name);
        assert_eq!(call.family == Family::Weft, call.operation == Operation::Mark, "{}", call.name);
    }
    assert!(NAMES.iter().all(|call| call.shape == Shape::none && call.detail.is_none()));
    let mut seen = BTreeSet::new();
    for call in EVERYWHERE.iter().chain(X86_64) {
        assert!(seen.insert(call.info.name), "{} stands twice", call.info.name);
        assert!(!matches!(call.info.operation, Operation::Mark | Operation::ThreadName), "{}", call.info.name);
        // A call that copies says from where to where.
        assert_eq!(call.info.flow() == Flow::Both, call.second_file > 0 && call.second_path == 0, "{}", call.info.name);
        assert_eq!(call.returns_file, call.info.operation == Operation::Open, "{}", call.info.name);
    }
}

/// The table of DFAnalyzer 0.0.9, by number.
const DFANALYZER: [(IoCat, &str); 6] = [
    (IoCat::Read, "read pread pread64 readv preadv preadv2 fread"),
    (IoCat::Write, "write pwrite pwrite64 writev pwritev pwritev2 fwrite"),
    (
        IoCat::Metadata,
        "__fxstat __fxstat64 __lxstat __lxstat64 __xstat __xstat64 access close closedir fclose fcntl fopen fopen64 \
         fseek fseeko fseeko64 fstat fstat64 fstatat fstatat64 ftell ftello ftello64 ftruncate ftruncate64 link lseek \
         lseek64 mkdir open open64 opendir readdir readdir64 readlink remove rename rmdir seek stat stat64 unlink",
    ),
    (IoCat::Process, "exec exit fork kill pipe wait"),
    (IoCat::Ipc, "msgctl msgget msgrcv msgsnd semctl semget semop shmat shmctl shmdt shmget"),
    (IoCat::Sync, "fsync fdatasync msync sync"),
];

#[test]
fn categories_are_those_of_dfanalyzer() {
    for (category, names) in DFANALYZER {
        for name in names.split_whitespace() {
            assert_eq!(find(name).map(|call| call.operation.io_cat()), Some(category), "{name}");
        }
    }
    // In the POSIX category of DFTracer's traces, and not in the table.
    for name in ["waitpid", "dirfd", "mmap", "dup2", "posix_fadvise"] {
        assert_eq!(find(name).map(|call| call.operation.io_cat()), Some(IoCat::Other), "{name}");
    }
    for (place, category) in IoCat::ALL.into_iter().enumerate() {
        assert_eq!((category as usize, IoCat::from_number(category as u32)), (place + 1, category));
    }
    assert_eq!((IoCat::from_number(0), IoCat::from_number(8)), (IoCat::Other, IoCat::Other));
}

/// DFAnalyzer tells parts of its metadata calls by what their names contain; the operations say the same of the names in its table.
#[test]
fn operations_are_the_parts_of_metadata_calls() {
    let (_, names) = DFANALYZER[2];
    for name in names.split_whitespace() {
        let operation = find(name).map(|call| call.operation);
        let has = |part: &str| name.contains(part) && !name.contains("dir");
        assert_eq!(operation == Some(Operation::Open), has("open"), "{name}");
        assert_eq!(operation == Some(Operation::Close), has("close"), "{name}");
        assert_eq!(operation == Some(Operation::Seek), has("seek"), "{name}");
        assert_eq!(matches!(operation, Some(Operation::StatPath | Operation::StatOpen)), has("stat"), "{name}");
    }
}

#[test]
fn bytes_go_where_the_calls_say() {
    let with = |flow: Flow| -> BTreeSet<&str> {
        CALLS
            .iter()
            .filter(|call| call.flow() == flow && call.family == Family::Posix)
            .map(|call| call.canonical)
            .collect()
    };
    let set = |names: &'static str| names.split_whitespace().collect::<BTreeSet<_>>();
    assert_eq!(with(Flow::Read), set("read readv pread preadv preadv2"));
    assert_eq!(with(Flow::Write), set("write writev pwrite pwritev pwritev2 vmsplice"));
    assert_eq!(with(Flow::Both), set("sendfile copy_file_range splice tee"));
    let uncounted = CALLS.iter().filter(|call| call.flow() != Flow::None && !call.operation.is_counted_by_kernel());
    let uncounted: BTreeSet<&str> = uncounted.map(|call| call.canonical).collect();
    assert_eq!(uncounted, set("splice tee vmsplice recv recvfrom recvmsg send sendto sendmsg"));
    let waits = |call: &&CallInfo| Activity::of(call.operation, FileKind::Unknown).is_some_and(Activity::is_waiting);
    let waiting: BTreeSet<&str> = all().filter(waits).map(|call| call.canonical).collect();
    let known = "accept accept4 clock_nanosleep connect epoll_pwait epoll_pwait2 epoll_wait flock lockf nanosleep pclose poll ppoll pselect \
                 pthread_join recv recvfrom recvmmsg recvmsg select send sendmsg sendto sleep system usleep vfork wait wait3 wait4 \
                 waitid waitpid";
    assert_eq!(waiting, set(known));
    assert!(find("fprintf").is_some_and(CallInfo::on_stream) && !find("dprintf").is_some_and(CallInfo::on_stream));
}

/// Sums, by every operation and side, against a list of who gets what.
#[test]
fn both_sides_of_a_copy_are_summed() {
    let calls = Calls { count: 3, time_ns: 50, bytes: 700 };
    let (read, write) = (
        IoSums { calls: 3, time_ns: 50, reads: 3, read_bytes: 700, read_ns: 50, ..IoSums::default() },
        IoSums { calls: 3, time_ns: 50, writes: 3, write_bytes: 700, write_ns: 50, ..IoSums::default() },
    );
    let both = IoSums { reads: 3, read_bytes: 700, read_ns: 50, ..write };
    let metadata = IoSums { calls: 3, time_ns: 50, metadata_calls: 3, metadata_ns: 50, ..IoSums::default() };
    let open = IoSums { opens: 3, ..metadata };
    let plain = IoSums { calls: 3, time_ns: 50, ..IoSums::default() };
    let (sync, nothing) = (IoSums { syncs: 3, ..plain }, IoSums::default());
    let expected = BTreeMap::from([
        ("read", [read, read, nothing]),
        ("dprintf", [write, write, nothing]),
        ("fread", [read, read, nothing]),
        ("copy_file_range", [both, write, read]),
        ("splice", [both, write, read]),
        ("openat", [open, open, nothing]),
        ("stat", [metadata, metadata, nothing]),
        ("rename", [metadata, metadata, nothing]),
        ("fsync", [sync, sync, nothing]),
        ("mmap", [plain, plain, nothing]),
    ]);
    for (name, sides) in expected {
        let operation = find(name).expect("a call").operation;
        for (side, expected) in [Side::All, Side::File, Side::SecondFile].into_iter().zip(sides) {
            let mut sums = IoSums::default();
            sums.add_to(side, operation, calls);
            assert_eq!(sums, expected, "{name} {side:?}");
        }
    }
}

#[test]
fn sums_do_not_depend_on_order_and_stop_at_the_end() {
    let parts =
        [Calls::one(-5, -2), Calls::one(i64::MAX, i64::MAX), Calls { count: u64::MAX, time_ns: 1, bytes: u64::MAX }];
    let mut forward = IoSums::default();
    parts.iter().for_each(|part| forward.add(Operation::Read, *part));
    let mut backward = IoSums::default();
    for part in parts.iter().rev() {
        let mut one = IoSums::default();
        one.add(Operation::Read, *part);
        backward.merge(&one);
    }
    assert_eq!(forward, backward);
    assert_eq!((forward.calls, forward.read_bytes, forward.time_ns), (u64::MAX, u64::MAX, i64::MAX as u64 + 1));
    assert_eq!(forward.bytes(), u64::MAX);
}
