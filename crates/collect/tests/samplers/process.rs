//! Processes, by stub files.

use weftline_collect::process::{ProcessSampler, Totals};

use crate::stub::{Memory, Stub, second};

fn stat(comm: &str, user: u64, system: u64, threads: u64) -> String {
    let rest: String = (25..=52).map(|field| format!(" {field}")).collect();
    format!("4711 ({comm}) R 12 1 1 0 -1 0 100 0 7 0 {user} {system} 0 0 20 0 {threads} 0 999 8192000 300{rest}\n")
}

fn io(read: u64) -> String {
    format!(
        "rchar: {read}\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n"
    )
}

fn status(voluntary: u64) -> String {
    format!(
        "Name:\tx\nUid:\t1000\t0\t0\t0\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t{}\n",
        voluntary * 2
    )
}

fn stub() -> Stub {
    let stub = Stub::new();
    stub.put("proc/4711/stat", stat("a (b) c", 10, 5, 1));
    stub.put("proc/4711/io", io(1000));
    stub.put("proc/4711/status", status(10));
    stub.put("proc/4711/cmdline", "/bin/a b\0--x=\0");
    stub.put("proc/4711/cgroup", "0::/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n");
    stub.put("proc/4711/task/4711/schedstat", "152000000 7 9\n");
    stub.put("proc/4711/fd/0", "");
    stub.put("proc/4711/fd/17", "");
    stub.put("proc/4711/smaps_rollup", "55-ff ---p 0 [rollup]\nRss: 900 kB\nPss: 300 kB\nSwap: 8 kB\n");
    stub
}

#[test]
fn identity() {
    let stub = stub();
    let sampler = ProcessSampler::open(&stub.roots(), 4711).expect("a process");
    let identity = sampler.identity();
    assert_eq!((identity.pid, identity.ppid, identity.start_ticks, identity.uid), (4711, 12, 999, 1000));
    assert_eq!(
        (identity.comm.as_str(), &identity.command[..]),
        ("a (b) c", &["/bin/a b".to_owned(), "--x=".to_owned()][..])
    );
    let container = identity.container.as_ref().expect("a container");
    assert_eq!((container.runtime, container.id.len()), ("docker", 64));
    let mut memory = Memory::default();
    sampler.describe(5, &mut memory);
    let metadata = &memory.metadata[0];
    assert_eq!(
        (metadata.text("comm"), metadata.text("command"), metadata.text("runtime")),
        (Some("a (b) c"), Some("/bin/a b --x="), Some("docker"))
    );
    let gone = ProcessSampler::open(&stub.roots(), 1).expect_err("no process");
    assert_eq!(gone.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn differences() {
    let stub = stub();
    let mut sampler = ProcessSampler::open(&stub.roots(), 4711).expect("a process");
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory).expect("sampled");
    let first = memory.last("process", "process").expect("a sample").clone();
    assert_eq!(
        (first.number("cpu_ns"), first.number("read_chars")),
        (None, None),
        "no difference without a reading before"
    );
    assert_eq!(
        (first.number("rss_bytes"), first.number("threads"), first.number("running"), first.number("blocked")),
        (Some(300.0 * 4096.0), Some(1.0), Some(1.0), Some(0.0))
    );
    assert_eq!(memory.number("process", "detail", "pss_bytes"), Some(300.0 * 1024.0));

    assert_eq!(memory.number("process", "detail", "open_files"), Some(2.0));

    stub.put("proc/4711/stat", stat("a (b) c", 30, 10, 1));
    stub.put("proc/4711/task/4711/schedstat", "403000000 7 9\n");
    stub.put("proc/4711/io", io(5000));
    stub.put("proc/4711/status", status(15));
    sampler.discount(&Totals { read_chars: 500, ..Totals::default() });
    sampler.sample(second(2), &mut memory).expect("sampled");
    let sample = memory.last("process", "process").expect("a sample");
    for (value, expected) in [
        ("cpu_ns", 251e6),
        ("cpu_pct", 25.1),
        ("user_ns", 200e6),
        ("system_ns", 50e6),
        ("read_chars", 3500.0),
        ("write_chars", 0.0),
    ] {
        assert!(
            sample.number(value).is_some_and(|found| (found - expected).abs() < 1e-6),
            "{value}: {:?}",
            sample.number(value)
        );
    }
    assert_eq!(memory.number("process", "detail", "voluntary_switches"), Some(5.0));
    assert_eq!(memory.number("process", "detail", "involuntary_switches"), Some(10.0));
    assert_eq!((sampler.last_totals().cpu_ns, sampler.last_totals().read_chars), (403_000_000, 5000));
}

#[test]
fn from_birth() {
    let stub = stub();
    let mut sampler = ProcessSampler::open(&stub.roots(), 4711).expect("a process");
    sampler.count_from_birth();
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory).expect("sampled");
    assert_eq!(memory.number("process", "process", "cpu_ns"), Some(152e6));
    assert_eq!(memory.number("process", "process", "read_chars"), Some(1000.0));
}

#[test]
fn threads_that_come_and_go() {
    let stub = stub();
    let mut sampler = ProcessSampler::open(&stub.roots(), 4711).expect("a process");
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory).expect("sampled");
    // A second thread runs 100 ms, is seen at 60 of them, and ends; the ticks of the process hold what was not seen.
    stub.put("proc/4711/task/4712/schedstat", "60000000 0 0\n");
    stub.put("proc/4711/stat", stat("x", 16, 5, 2));
    sampler.sample(second(2), &mut memory).expect("sampled");
    assert_eq!(sampler.last_totals().cpu_ns, 212_000_000);
    std::fs::remove_dir_all(stub.path("proc/4711/task/4712")).expect("removed");
    stub.put("proc/4711/stat", stat("x", 20, 5, 1));
    sampler.sample(second(3), &mut memory).expect("sampled");
    assert_eq!(sampler.last_totals().cpu_ns, 250_000_000);
    // From then on the difference goes on from there.
    stub.put("proc/4711/task/4711/schedstat", "162000000 0 0\n");
    stub.put("proc/4711/stat", stat("x", 21, 5, 1));
    sampler.sample(second(4), &mut memory).expect("sampled");
    assert_eq!(sampler.last_totals().cpu_ns, 260_000_000);
    // More threads than are read one by one.
    stub.put("proc/4711/stat", stat("x", 50, 5, 4000));
    sampler.sample(second(5), &mut memory).expect("sampled");
    assert_eq!(sampler.last_totals().cpu_ns, 550_000_000);
    assert!(memory.metadata.iter().any(|metadata| metadata.text("comm") == Some("x")), "an exec is told of");
}

#[test]
fn little_may_be_read() {
    let stub = Stub::new();
    stub.put("proc/4711/stat", stat("x", 1, 1, 1));
    let mut sampler = ProcessSampler::open(&stub.roots(), 4711).expect("a process");
    let mut memory = Memory::default();
    for number in 1..=2 {
        sampler.sample(second(number), &mut memory).expect("sampled");
    }
    let sample = memory.last("process", "process").expect("a sample");
    assert_eq!(
        (sample.number("cpu_ns"), sample.number("read_chars"), sample.number("threads")),
        (Some(0.0), None, Some(1.0))
    );
    assert_eq!(sampler.identity().container, None);
}

/// `stat` with the given state, size, and place of the arguments.
fn stat_of(state: char, virtual_bytes: u64, arguments: (u64, u64)) -> String {
    let between: String = (25..=47).map(|field| format!(" {field}")).collect();
    let (begin, end) = arguments;
    format!(
        "4711 (x) {state} 12 1 1 0 -1 0 100 0 7 0 1 1 0 0 20 0 1 0 999 {virtual_bytes} 300{between} {begin} {end} 50 51 0\n"
    )
}

#[test]
fn states_are_numbers() {
    let stub = stub();
    let mut sampler = ProcessSampler::open(&stub.roots(), 4711).expect("a process");
    let mut memory = Memory::default();
    for (number, (state, expected)) in
        [('R', [1.0, 0.0, 0.0]), ('D', [0.0, 1.0, 0.0]), ('t', [0.0, 0.0, 1.0]), ('S', [0.0; 3])]
            .into_iter()
            .enumerate()
    {
        stub.put("proc/4711/stat", stat_of(state, 4096, (48, 49)));
        sampler.sample(second(number as i64 + 1), &mut memory).expect("sampled");
        let found = ["running", "blocked", "stopped"].map(|value| memory.number("process", "process", value));
        assert_eq!(found, expected.map(Some), "{state}");
    }
}

/// A zombie has neither memory nor a command line. It is who it was.
#[test]
fn an_end_is_no_exec() {
    let stub = stub();
    stub.put("proc/4711/stat", stat_of('S', 4096, (1000, 1011)));
    let mut sampler = ProcessSampler::open(&stub.roots(), 4711).expect("a process");
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory).expect("sampled");
    stub.put("proc/4711/stat", stat_of('Z', 0, (0, 0)));
    stub.put("proc/4711/cmdline", "");
    sampler.sample_last(second(2), &mut memory).expect("sampled");
    assert_eq!((sampler.execs(), memory.metadata.len()), (0, 0), "{:?}", memory.metadata);
    assert_eq!(sampler.identity().command, ["/bin/a b", "--x="]);
}

/// While a program is being loaded, its arguments have a begin and no end yet, and its command line is empty.
#[test]
fn a_command_line_that_came_late() {
    let stub = stub();
    stub.put("proc/4711/stat", stat_of('R', 4096, (1000, 0)));
    stub.put("proc/4711/cmdline", "");
    let mut sampler = ProcessSampler::open(&stub.roots(), 4711).expect("a process");
    assert!(sampler.identity().command.is_empty());
    stub.put("proc/4711/stat", stat_of('R', 4096, (1000, 1011)));
    stub.put("proc/4711/cmdline", "/bin/a b\0--x=\0");
    let mut memory = Memory::default();
    sampler.sample(second(1), &mut memory).expect("sampled");
    assert_eq!(sampler.identity().command, ["/bin/a b", "--x="]);
    assert_eq!(memory.metadata.iter().filter(|told| told.text("command") == Some("/bin/a b --x=")).count(), 1);
}
