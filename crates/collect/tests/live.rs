//! Collectors at work on this machine: real processes, real clocks.

#[path = "live/support.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weftline_collect::cgroup::CgroupSampler;
use weftline_collect::collector::{Collector, Options};
use weftline_collect::error::CollectError;
use weftline_collect::follow::{Follow, Group, pattern};
use weftline_collect::roots::Roots;
use weftline_format::manifest::{State, SupervisorRecord};
use weftline_format::reader::read_run;
use weftline_format::{Event, Value};

use support::{burner, counters, now_ns, of, options, printed, python, start, sum, wait_until};

/// A process that burns one core for two seconds shows two seconds within one percent; intervals follow each other without a gap.
#[test]
fn two_seconds_of_one_core_are_two_seconds() {
    let run = tempfile::tempdir().expect("a directory");
    let pids = run.path().join("pids");
    let running = start(options(run.path(), 200, Follow { pid_dir: Some(pids.clone()), ..Follow::default() }));
    let mut child = burner(2.0);
    let pid = child.id();
    fs::write(pids.join(pid.to_string()), "").expect("a sentinel");
    let own = printed(&mut child);
    // Nobody waits for the process before its last sample was taken, which comes with its end.
    std::thread::sleep(Duration::from_millis(200));
    let (record, _) = running.stop();
    child.wait().expect("waited");
    let events = of(&counters(run.path()), pid, "process");
    let cpu = sum(&events, "cpu_ns");
    assert!((cpu - 2e9).abs() < 2e7, "{cpu} ns of CPU in {} samples, the program says {own}", events.len());
    let mut ends: Vec<(i64, i64)> =
        events.iter().filter_map(|event| Some((event.start_ns?, event.end_ns()?))).collect();
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ends:?}");
    assert_eq!((record.unseen_ends, record.processes), (0, 1));
    let records = SupervisorRecord::read_all(run.path()).0;
    assert!(records.len() == 1 && records[0].state == State::Complete && records[0].only_samples());
    assert_eq!(records[0].samples.as_ref(), Some(&record));
}

/// A sentinel is noticed at once: a process of 80 ms is sampled although the next tick is a minute away. Nobody waits for it, so its last
/// sample is exact.
#[test]
fn eighty_milliseconds_are_seen() {
    let run = tempfile::tempdir().expect("a directory");
    let pids = run.path().join("pids");
    let running = start(options(run.path(), 60_000, Follow { pid_dir: Some(pids.clone()), ..Follow::default() }));
    let mut child = burner(0.08);
    let pid = child.id();
    fs::write(pids.join(pid.to_string()), "").expect("a sentinel");
    let own = printed(&mut child);
    std::thread::sleep(Duration::from_millis(100));
    let (record, said) = running.stop();
    child.wait().expect("waited");
    let all = counters(run.path());
    let cpu = sum(&of(&all, pid, "process"), "cpu_ns");
    assert!((cpu - own).abs() < 1e7, "{cpu} ns in samples, {own} by its own clock");
    let end = of(&all, pid, "end");
    assert_eq!(end.len(), 1, "its end was noticed");
    assert_eq!(end[0].arg("unseen_ns"), Some(&Value::Int(0)));
    assert_eq!((record.processes, record.unseen_ends, said), (1, 0, vec![]));
}

/// Starts processes that are gone when they end, since their parent does not want to hear of them: four that use 80 ms of CPU, two of them
/// with threads. They begin when their sentinels had time to be noticed. Pids, and CPU time by their own clocks.
fn vanishing(pids: &Path) -> Vec<(u32, f64)> {
    let mut parent = python(&format!(
        "
import os, signal, threading, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def burn(clock, until):
    while clock() < until: pass
for number in range(4):
    ready, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(ready, 1)
        if number % 2:
            threads = [threading.Thread(target=burn, args=(time.thread_time, 0.02)) for _ in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        burn(time.process_time, 0.08)
        os.write(1, f'{{os.getpid()}} {{time.process_time_ns()}}\\n'.encode())
        os._exit(0)
    open(f'{}/{{pid}}', 'w').close()
    time.sleep(0.15)
    os.write(go, b'x')
    while os.path.exists(f'/proc/{{pid}}'): time.sleep(0.001)
",
        pids.display()
    ));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut parent.stdout.take().expect("piped"), &mut text).expect("read to its end");
    assert!(parent.wait().expect("waited").success());
    let ends: Vec<(u32, f64)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(pid, time)| (pid.parse().expect("a pid"), time.parse().expect("a time")))
        .collect();
    assert_eq!(ends.len(), 4, "{text}");
    ends
}

/// Whether the kernel gives its records of ends to this process: CAP_NET_ADMIN, and the machine's own namespaces.
fn hears_of_ends() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    let capabilities = u64::from_str_radix(capabilities.trim(), 16).expect("a number");
    // The first namespaces of each kind have numbers that never change.
    let first = |kind: &str, number: &str| {
        fs::read_link(format!("/proc/self/ns/{kind}")).is_ok_and(|name| name.to_string_lossy().contains(number))
    };
    capabilities & 1 << 12 != 0 && first("pid", "4026531836") && first("user", "4026531837")
}

/// A process that nobody could look at in time is exact all the same where the kernel tells of ends (taskstats); where it does not, or
/// nobody asks it, the time that nobody saw is stated.
#[test]
fn the_kernel_tells_of_ends_that_nobody_saw() {
    for asked in [true, false] {
        let run = tempfile::tempdir().expect("a directory");
        let pids = run.path().join("pids");
        let follow = Follow { pid_dir: Some(pids.clone()), ..Follow::default() };
        let running = start(Options { exit_records: asked, ..options(run.path(), 60_000, follow) });
        let ends = vanishing(&pids);
        let (record, said) = running.stop();
        let all = counters(run.path());
        let told = asked && hears_of_ends();
        for (pid, own) in &ends {
            let cpu = sum(&of(&all, *pid, "process"), "cpu_ns");
            let end = of(&all, *pid, "end");
            assert_eq!(end.len(), 1, "{pid}");
            let stated = |key: &str| end[0].arg(key).and_then(Value::as_f64);
            let unseen = stated("unseen_ns").expect("stated");
            if told {
                // A tick of the scheduler, and what the program did behind its last words.
                assert!((cpu - own).abs() < 6e6, "{cpu} ns in samples, {own} by its own clock");
                assert!(unseen == 0.0 && stated("bytes_unseen_ns") >= Some(8e7), "{:?}", end[0]);
                assert_eq!(stated("total_cpu_ns"), Some(cpu), "from its birth");
            } else {
                assert!(cpu < own / 2.0, "{cpu} ns of {own} were seen although it was gone");
                assert!(unseen >= own - cpu - 6e6 && stated("bytes_unseen_ns").is_none(), "{:?}", end[0]);
            }
        }
        assert_eq!((record.processes, said), (4, vec![]));
        assert_eq!((record.told_ends, record.unseen_ends), if told { (4, 0) } else { (0, 4) });
        assert_eq!(record.unseen_ns > 3e8 as u64, !told, "{record:?}");
    }
}

/// When its parent waits for it at once, the tail that nobody saw is stated: in the sample, and in the record.
#[test]
fn an_unseen_tail_is_stated() {
    let run = tempfile::tempdir().expect("a directory");
    let pids = run.path().join("pids");
    fs::create_dir(&pids).expect("made");
    let follow = Follow { pid_dir: Some(pids.clone()), ..Follow::default() };
    let running = start(Options { exit_records: false, ..options(run.path(), 60_000, follow) });
    let mut seen = 0;
    let mut children = Vec::new();
    for _ in 0..6 {
        // The shell waits for its child before the kernel could tell anybody else.
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 0.3 & echo $! > $0/new && mv $0/new $0/$!; wait", pids.to_str().expect("UTF-8")])
            .spawn()
            .expect("sh starts");
        shell.wait().expect("waited");
    }
    for name in fs::read_dir(&pids).expect("there") {
        children
            .push(name.expect("a file").file_name().into_string().expect("a number").parse::<u32>().expect("a pid"));
    }
    let (record, _) = running.stop();
    let all = counters(run.path());
    for pid in &children {
        let end = of(&all, *pid, "end");
        assert_eq!(end.len(), 1, "{pid}");
        let unseen = end[0].arg("unseen_ns").and_then(Value::as_u64).expect("stated");
        assert!(unseen == 0 || (200_000_000..5_000_000_000).contains(&unseen), "{unseen}");
        seen += u64::from(unseen == 0);
    }
    assert_eq!((record.processes, record.unseen_ends), (6, 6 - seen));
    assert_eq!(record.unseen_ns > 0, seen < 6);
}

/// Children of a followed process are followed, and theirs, also when their parent has gone.
#[test]
fn descendants_are_followed() {
    let run = tempfile::tempdir().expect("a directory");
    let mut shell = Command::new("sh")
        .args(["-c", "sleep 0.2; sh -c 'sleep 1.1 & sleep 0.3' & (sleep 0.1; exec sleep 1) & sleep 1.2; wait"])
        .spawn()
        .expect("sh starts");
    let running = start(Options {
        until_gone: true,
        ..options(run.path(), 50, Follow { trees: vec![shell.id()], ..Follow::default() })
    });
    shell.wait().expect("waited");
    let record = running.join();
    let sleeps: std::collections::BTreeSet<i64> = read_run(run.path())
        .expect("readable")
        .events
        .iter()
        .filter_map(weftline_format::identity::Identity::from_event)
        .filter(|identity| identity.name.starts_with("sleep 1"))
        .map(|identity| i64::from(identity.pid))
        .collect();
    assert_eq!(sleeps.len(), 3, "{record:?}");
}

/// A pattern finds processes by name and by command line, never the collector itself, and those that exec later.
#[test]
fn patterns_find_processes() {
    let run = tempfile::tempdir().expect("a directory");
    let mark = format!("86400.{}", std::process::id());
    let matching = Some(pattern(&format!("^sleep {mark}$")).expect("a pattern"));
    let running = start(options(run.path(), 50, Follow { matching, ..Follow::default() }));
    let mut sleeper =
        Command::new("sh").args(["-c", &format!("sleep 0.3; exec sleep {mark}")]).spawn().expect("sh starts");
    std::thread::sleep(Duration::from_millis(1500));
    sleeper.kill().expect("killed");
    sleeper.wait().expect("waited");
    std::thread::sleep(Duration::from_millis(150));
    let (record, _) = running.stop();
    assert_eq!(record.processes, 1);
    assert_eq!(of(&counters(run.path()), sleeper.id(), "end").len(), 1);
}

/// Processes that come between two full listings of `/proc` are found at the next tick, not at the next listing (a second); their
/// control group is sampled with them. Once this was a second late, and all other tests passed.
#[test]
fn newcomers_are_found_at_once() {
    let run = tempfile::tempdir().expect("a directory");
    let mark = format!("86401.{}", std::process::id());
    let matching = Some(pattern(&format!("^sleep {mark}$")).expect("a pattern"));
    let running = start(options(run.path(), 25, Follow { matching, ..Follow::default() }));
    let mut sleepers = Vec::new();
    // At different places between two listings.
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(140));
        sleepers.push((now_ns(), Command::new("sleep").arg(&mark).spawn().expect("sleep starts")));
    }
    std::thread::sleep(Duration::from_millis(400));
    for (_, sleeper) in &mut sleepers {
        sleeper.kill().expect("killed");
        sleeper.wait().expect("waited");
    }
    running.stop();
    let counters = counters(run.path());
    let mut waits: Vec<i64> = sleepers
        .iter()
        .map(|(born, sleeper)| {
            let first = of(&counters, sleeper.id(), "process").iter().filter_map(Event::end_ns).min();
            first.expect("sampled") - born
        })
        .collect();
    waits.sort_unstable();
    // The median: a busy machine may hold one of them up.
    assert!(waits[4] < 200_000_000, "{waits:?}");
    let group = CgroupSampler::name_of_process(&Roots::default(), std::process::id()).expect("a process has groups");
    let sampled = counters.iter().any(|event| event.cat == "cgroup" && Path::new(&event.name) == group);
    assert_eq!(sampled, group != Path::new("/"), "{}", group.display());
}

/// A process that has slept for longer than newcomers are watched, and then becomes what the pattern wants, is found as well.
#[test]
fn an_exec_of_an_old_process_is_found() {
    let run = tempfile::tempdir().expect("a directory");
    let mark = format!("86402.{}", std::process::id());
    // The shell's own command line does not match: the number is put together in it.
    let script = format!("read line; exec sleep {}${{line}}", &mark[..3]);
    let mut shell = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("sh starts");
    let matching = Some(pattern(&format!("^sleep {mark}$")).expect("a pattern"));
    let running = start(options(run.path(), 50, Follow { matching, ..Follow::default() }));
    std::thread::sleep(Duration::from_millis(2500));
    let became = now_ns();
    let mut input = shell.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, format!("{}\n", &mark[3..]).as_bytes()).expect("written");
    std::thread::sleep(Duration::from_millis(2200));
    let (record, _) = running.stop();
    shell.kill().expect("killed");
    shell.wait().expect("waited");
    assert_eq!(record.processes, 1);
    let found = of(&counters(run.path()), shell.id(), "process").iter().filter_map(Event::end_ns).min();
    assert!(found.expect("sampled") > became, "not before");
}

/// With both, a sentinel must match too; foreign ones are reported and stay.
#[test]
fn sentinels_and_pattern_together() {
    let run = tempfile::tempdir().expect("a directory");
    let pids = run.path().join("pids");
    let follow = Follow {
        pid_dir: Some(pids.clone()),
        matching: Some(pattern("^sleep").expect("a pattern")),
        ..Follow::default()
    };
    let running = start(options(run.path(), 100, follow));
    let mut wanted = Command::new("sleep").arg("3").spawn().expect("started");
    let mut other = Command::new("tail").args(["-f", "/dev/null"]).spawn().expect("started");
    let names = [wanted.id().to_string(), other.id().to_string(), "4000000000".into(), "notes.txt".into()];
    for name in &names {
        fs::write(pids.join(name), "").expect("a sentinel");
    }
    std::thread::sleep(Duration::from_millis(1600));
    let (record, said) = running.stop();
    for child in [&mut wanted, &mut other] {
        child.kill().expect("killed");
        child.wait().expect("waited");
    }
    assert_eq!(record.processes, 1, "{said:?}");
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        names[1..].iter().all(|name| said.iter().filter(|text| text.contains(name.as_str())).count() == 1),
        "{said:?}"
    );
    assert!(names.iter().all(|name| pids.join(name).exists()));
}

/// Two collectors on one run: two files, one of which has the host; when its writer ends the other takes over.
#[test]
fn two_collectors_share_a_run() {
    let run = tempfile::tempdir().expect("a directory");
    let (first, second) = (options(run.path(), 50, Follow::default()), options(run.path(), 50, Follow::default()));
    let first = Collector::start(first).expect("the first");
    let second = Collector::start(second).expect("the second");
    assert!(first.samples_host() && !second.samples_host());
    assert_ne!(first.file(), second.file());
    let hosts = [first, second].map(|collector| {
        let (stop, file) = (collector.stopper(), collector.file().to_owned());
        (stop, file, std::thread::spawn(move || collector.run(&mut |_| {})))
    });
    for (stop, file, thread) in hosts {
        let of_host = || weftline_format::reader::read_file(&file).is_ok();
        std::thread::sleep(Duration::from_millis(2500));
        stop.stop();
        let record = thread.join().expect("no panic");
        assert!(record.samples > 20 && of_host(), "{record:?}");
    }
    let records = SupervisorRecord::read_all(run.path()).0;
    assert_eq!(records.len(), 2, "each has its record");
    assert!(
        fs::read_dir(run.path())
            .expect("there")
            .flatten()
            .all(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
    );
}

/// With all cores busy, ticks stay on their grid: no drift, and the intervals of the samples are what really passed.
#[test]
fn the_clock_is_steady_on_a_busy_machine() {
    let run = tempfile::tempdir().expect("a directory");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut loops: Vec<Child> = (0..cores).map(|_| python("while True: pass")).collect();
    let began = Instant::now();
    let running = start(options(run.path(), 40, Follow::default()));
    std::thread::sleep(Duration::from_secs(4));
    let (record, _) = running.stop();
    let passed = began.elapsed();
    for child in &mut loops {
        child.kill().expect("killed");
        child.wait().expect("waited");
    }
    let due = passed.as_millis() as u64 / 40;
    let counted = record.ticks + record.skipped_ticks;
    assert!(counted <= due && counted + 5 >= due, "{counted} deadlines in {passed:?}: {record:?}");
    let cpu = of(&counters(run.path()), 0, "cpu");
    let covered: i64 = cpu.iter().filter_map(|event| event.dur_ns).sum();
    let (first, last) = (cpu[0].start_ns.expect("a time"), cpu[cpu.len() - 1].end_ns().expect("a time"));
    assert_eq!(covered, last - first, "without gaps");
    // All processors are busy, and samples say so.
    let idle = sum(&cpu, "idle_pct") / cpu.len() as f64;
    assert!(idle < 15.0, "{idle} % idle");
}

/// Everything that cannot work is refused at the start, with a reason.
#[test]
fn bad_wishes_are_refused() {
    let run = tempfile::tempdir().expect("a directory");
    let refused = |options: Options| Collector::start(options).expect_err("refused");
    assert!(matches!(refused(options(run.path(), 0, Follow::default())), CollectError::Interval(_)));
    let tree = Follow { trees: vec![u32::MAX], ..Follow::default() };
    assert!(matches!(refused(options(run.path(), 50, tree)), CollectError::NoProcess(u32::MAX)));
    let group = Follow { groups: vec![Group::Path("/no/such/group".into())], ..Follow::default() };
    assert!(matches!(refused(options(run.path(), 50, group)), CollectError::NoGroup(_)));
    let nowhere = run.path().join("nowhere");
    assert!(matches!(refused(options(&nowhere, 50, Follow::default())), CollectError::Io { .. }));
    assert_eq!(fs::read_dir(run.path()).expect("there").count(), 0, "nothing is left behind");
}

/// Processes that come and go between two looks leave no trouble behind.
#[test]
fn a_crowd_of_short_processes() {
    let run = tempfile::tempdir().expect("a directory");
    let mut shell =
        Command::new("sh").args(["-c", "for i in $(seq 300); do /bin/true & done; wait"]).spawn().expect("sh starts");
    let running = start(Options {
        until_gone: true,
        ..options(run.path(), 5, Follow { trees: vec![shell.id()], ..Follow::default() })
    });
    shell.wait().expect("waited");
    wait_until("the collector ends with its tree", || running.thread.is_finished());
    let record = running.join();
    let ends = counters(run.path()).iter().filter(|event| event.name == "end").count() as u64;
    assert_eq!(ends, record.processes, "each process that was followed has an end");
}
