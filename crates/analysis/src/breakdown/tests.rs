//! Splits and costs of small families of processes, in milliseconds.

use super::*;

const MS: u64 = 1_000_000;

fn sums(times: &[(Activity, u64)]) -> ActivitySums {
    let mut sums = ActivitySums::default();
    times.iter().for_each(|(activity, ms)| sums.add(*activity, ms * MS));
    sums
}

fn main_thread(times: &[(Activity, u64)]) -> ThreadTimes {
    ThreadTimes { is_main: true, sums: sums(times), ..ThreadTimes::default() }
}

fn helper_thread(times: &[(Activity, u64)]) -> ThreadTimes {
    ThreadTimes { sums: sums(times), ..ThreadTimes::default() }
}

/// A process that lives for so long and has used so much CPU, all of it in its main thread.
fn process(ms: u64, cpu: u64, times: &[(Activity, u64)]) -> ProcessTimes {
    ProcessTimes {
        program: "main".to_owned(),
        end: (ms * MS) as i64,
        cpu_ns: Some(cpu * MS),
        main_cpu_ns: Some(cpu * MS),
        threads: vec![main_thread(times)],
        ..ProcessTimes::default()
    }
}

fn child(parent: usize, program: &str, mut process: ProcessTimes) -> ProcessTimes {
    process.parent = Some(parent);
    process.program = program.to_owned();
    process
}

/// Compute, file I/O, waiting for data, other waiting, other: in ms. They add up to the wall time.
fn parts(split: &Split) -> [u64; 5] {
    let rest = split.queued_ns + split.outside_ns + split.other_ns;
    let parts = [split.compute_ns, split.file_io_ns, split.data_ns, split.waiting.waiting(), rest];
    assert_eq!(parts.iter().sum::<u64>(), split.wall_ns, "{split:?}");
    parts.map(|ns| ns / MS)
}

fn check(what: &str, processes: &[ProcessTimes], expected: &[(usize, [u64; 5])]) -> Breakdown {
    let breakdown = Breakdown::of(processes);
    let found: Vec<_> = breakdown.lines.iter().map(|line| (line.process, parts(&line.split))).collect();
    assert_eq!(found, expected, "{what}");
    breakdown
}

#[test]
fn one_process_is_split_by_its_main_thread() {
    use Activity::{FileIo, Pipe, Sleep, Thread};
    check("computes", &[process(100, 95, &[(FileIo, 5)])], &[(0, [95, 5, 0, 0, 0])]);
    check("is blocked by something unseen", &[process(100, 40, &[(FileIo, 10)])], &[(0, [40, 10, 0, 0, 50])]);
    check("waits", &[process(100, 5, &[(Pipe, 60), (Sleep, 30)])], &[(0, [5, 0, 0, 90, 5])]);
    check("calls longer than its life", &[process(100, 5, &[(FileIo, 80), (Pipe, 60)])], &[(0, [0, 80, 0, 20, 0])]);
    let mut unknown = process(100, 0, &[(FileIo, 30)]);
    (unknown.cpu_ns, unknown.main_cpu_ns) = (None, None);
    let split = check("nobody knows the CPU time", &[unknown.clone()], &[(0, [0, 30, 0, 0, 70])]).lines[0].split;
    assert_eq!((split.outside_ns, split.other_ns), (70 * MS, 0), "nobody can say that it computed");
    unknown.fetch_ns = 50 * MS;
    check("a loop without CPU time", &[unknown.clone()], &[(0, [0, 30, 50, 0, 20])]);
    (unknown.compute_ns, unknown.fetch_ns) = (Some(60 * MS), 0);
    check("spans say that it computed", &[unknown], &[(0, [60, 30, 0, 0, 10])]);
    let mut crowded = process(100, 40, &[(FileIo, 10)]);
    crowded.main_queued_ns = 45 * MS;
    let split = check("has no processor", &[crowded], &[(0, [40, 10, 0, 0, 50])]).lines[0].split;
    assert_eq!((split.queued_ns, split.other_ns), (45 * MS, 5 * MS));
    let mut within = process(100, 10, &[(FileIo, 60), (Pipe, 30)]);
    within.main_queued_ns = 30 * MS;
    let breakdown = check("has no processor within its calls", &[within], &[(0, [10, 60, 0, 20, 10])]);
    // The program itself measures 60.
    assert_eq!(breakdown.cost([(0, 60 * MS)]), 60 * MS);
    let mut pool = process(100, 40, &[(FileIo, 50)]);
    pool.threads.extend((0..16).map(|_| helper_thread(&[])));
    check("idle threads change nothing", &[pool], &[(0, [40, 50, 0, 0, 10])]);
    let mut threads = process(100, 2, &[(Thread, 98)]);
    threads.cpu_ns = Some(302 * MS);
    threads.threads.extend((0..4).map(|_| helper_thread(&[(FileIo, 20)])));
    check("its threads compute", &[threads.clone()], &[(0, [100, 0, 0, 0, 0])]);
    threads.cpu_ns = Some(12 * MS);
    threads.threads.extend((0..4).map(|_| helper_thread(&[(FileIo, 80)])));
    let breakdown = check("its threads read", &[threads], &[(0, [12, 80, 0, 8, 0])]);
    // 400 ms in eight threads are worth 80 of wall time.
    assert_eq!(breakdown.cost([(0, 400 * MS)]), 80 * MS);
}

#[test]
fn annotated_loops_compute_where_they_say() {
    use Activity::{FileIo, Pipe, Poll};
    let mut gpu = process(100, 10, &[(Poll, 70)]);
    gpu.compute_ns = Some(80 * MS);
    check("polls while the GPU computes", &[gpu], &[(0, [80, 0, 0, 20, 0])]);
    let mut starved = process(100, 20, &[(Pipe, 55), (FileIo, 5)]);
    (starved.compute_ns, starved.fetch_ns) = (Some(20 * MS), 70 * MS);
    check("waits for its workers", &[starved], &[(0, [20, 5, 70, 5, 0])]);
    let mut beside = process(100, 90, &[(Poll, 100)]);
    beside.threads.push(ThreadTimes { runs_the_loop: true, ..helper_thread(&[(FileIo, 30)]) });
    beside.compute_ns = Some(60 * MS);
    check("the loop is in another thread", &[beside], &[(0, [60, 30, 0, 0, 10])]);
}

#[test]
fn the_process_that_matters_is_found() {
    use Activity::{Child, FileIo};
    let shell = process(1000, 5, &[(Child, 990)]);
    let job = process(950, 900, &[(FileIo, 40)]);
    check(
        "a script around a program",
        &[shell.clone(), child(0, "python3 train.py", job)],
        &[(1, [905, 40, 0, 0, 55])],
    );
    let steps: Vec<_> = (0..10).map(|_| child(0, "gcc", process(90, 80, &[]))).collect();
    let make = [vec![shell.clone()], steps].concat();
    check("many short children", &make, &[(0, [5, 0, 0, 990, 5])]);
    let launcher = process(1000, 50, &[(Child, 600)]);
    let main = process(400, 380, &[]);
    check(
        "a child of the same program that does the work",
        &[launcher.clone(), child(0, "main", main.clone())],
        &[(1, [430, 0, 0, 0, 570])],
    );
    check("a helper of another program", &[launcher, child(0, "helper", main)], &[(0, [50, 0, 0, 600, 350])]);
    let fed = process(1000, 100, &[(Activity::Pipe, 880)]);
    check(
        "a loop that its workers feed",
        &[fed, child(0, "main", process(990, 980, &[]))],
        &[(0, [100, 0, 0, 880, 20])],
    );
    let rank = |number: i64, cpu: u64| {
        let mut rank = child(0, "app", process(900, cpu, &[(FileIo, 100)]));
        rank.rank = Some(number);
        rank
    };
    let mut worker = child(1, "app", process(800, 10, &[(FileIo, 700)]));
    worker.rank = Some(0);
    let job = [shell, rank(0, 300), rank(1, 700), worker];
    let breakdown = check("each rank on its own", &job, &[(1, [300, 100, 0, 0, 500]), (2, [700, 100, 0, 0, 100])]);
    let owners: Vec<_> = (0..4).map(|place| breakdown.owner(place).expect("a line").process).collect();
    assert_eq!(owners, [1, 1, 2, 1]);
    // A worker's 700 ms cost rank 0 the 500 in which it is idle.
    assert_eq!(breakdown.cost([(3, 700 * MS)]), 500 * MS);
    assert_eq!(breakdown.cost([(1, 90 * MS), (2, 60 * MS), (3, 100 * MS)]), 190 * MS);
}

#[test]
fn helpers_cost_what_they_are_waited_for() {
    use Activity::{FileIo, Pipe};
    let worker = |read: u64| child(0, "worker", process(1000, 10, &[(FileIo, read)]));
    let starved = process(1000, 390, &[(Pipe, 600)]);
    let fed = process(1000, 990, &[]);
    let workers = |main: &ProcessTimes| [main.clone(), worker(800), worker(800), worker(800), worker(800)];
    let reads = || (1..5).map(|place| (place, 800 * MS));
    let cost = |main: &ProcessTimes| Breakdown::of(&workers(main)).cost(reads()) / MS;
    assert_eq!((cost(&starved), cost(&fed)), (610, 10));
    // One after the other.
    let mut steps = vec![process(1000, 0, &[(Activity::Child, 1000)])];
    for step in 0..4 {
        let mut one = child(0, "step", process(250, 50, &[(FileIo, 200)]));
        (one.start, one.end) = ((step * 250 * MS) as i64, ((step + 1) * 250 * MS) as i64);
        steps.push(one);
    }
    assert_eq!(Breakdown::of(&steps).cost((1..5).map(|place| (place, 200 * MS))), 800 * MS);
}

#[test]
fn odd_families_are_survived() {
    check("nobody", &[], &[]);
    check("a life of no length", &[ProcessTimes::default()], &[(0, [0; 5])]);
    let mut circle = [process(100, 50, &[]), process(100, 60, &[]), process(100, 70, &[])];
    (circle[0].parent, circle[1].parent) = (Some(1), Some(0));
    let breakdown = check("parents in a circle", &circle, &[(2, [70, 0, 0, 0, 30])]);
    assert_eq!(breakdown.owner(0).map(|line| line.process), Some(2));
    assert_eq!(breakdown.cost([(9, MS)]), 0, "an unknown process");
}
