//! Which processes are found, and at which tick.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use weftline_collect::cgroup::CgroupSampler;
use weftline_collect::clock::Clock as _;
use weftline_collect::collector::{Collector, Options};
use weftline_collect::error::CollectError;
use weftline_collect::follow::{Follow, Group, pattern};
use weftline_collect::roots::Roots;
use weftline_format::Event;
use weftline_format::manifest::SupervisorRecord;

use crate::hand::Stepped;
use crate::support::{counters, of, options, wait_until};

/// A process that sleeps until the test is over.
struct Sleeper(Child);

impl Sleeper {
    /// When this returns it has become the program.
    fn start(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Sleeper {
        let sleeper = Sleeper(Command::new(program).args(arguments).spawn().expect("it starts"));
        wait_for_exec(sleeper.pid(), arguments[arguments.len() - 1]);
        sleeper
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the last word of a process's command line is this one. Whoever starts a process goes on as soon as its exec cannot fail any
/// more; its name and its command line come some microseconds later, on a busy machine milliseconds.
fn wait_for_exec(pid: u32, last: &str) {
    let end = format!("\0{last}\0");
    wait_until("it has exec'd", || {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(&end))
    });
}

/// A shell that does what it is told, in a session of its own; whatever it has started ends with it.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn start() -> Shell {
        let mut child =
            Command::new("setsid").arg("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut shell = Shell { child, input, output: BufReader::new(output) };
        assert_eq!(shell.ask("echo $$"), shell.pid());
        shell
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives it a line, and takes the number that it prints.
    fn ask(&mut self, line: &str) -> u32 {
        writeln!(self.input, "{line}").expect("it listens");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("an answer");
        answer.trim().parse().unwrap_or_else(|_| panic!("{line}: {answer}"))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).expect("a pid"), Signal::KILL).expect("it lives");
}

/// When a process was sampled: the ends of its samples' intervals, in order.
fn sampled(events: &[Event], pid: u32) -> Vec<i64> {
    let mut ends: Vec<i64> = of(events, pid, "process").iter().filter_map(Event::end_ns).collect();
    ends.sort_unstable();
    ends
}

fn matching(text: &str) -> Follow {
    Follow { matching: Some(pattern(text).expect("a pattern")), ..Follow::default() }
}

/// A number that no other test's processes have in their command lines.
fn mark(number: u32) -> String {
    format!("{number}.{}", std::process::id())
}

/// Children of a followed process are followed, and theirs, also when their parent has gone, or was gone before anybody saw it.
#[test]
fn descendants_are_followed() {
    let run = tempfile::tempdir().expect("a directory");
    let mut shell = Shell::start();
    let follow = Follow { trees: vec![shell.pid()], ..Follow::default() };
    let mut stepped = Stepped::start(Options { until_gone: true, ..options(run.path(), 50, follow) });
    let child = shell.ask("sleep 86400 & echo $!");
    let grandchild = shell.ask("sh -c 'sleep 86400 & echo $!; exec sleep 86400' &");
    let parent = shell.ask("echo $!");
    let (found, _) = stepped.tick();
    shell.ask("kill $!; wait $!; echo 0");
    stepped.turn();
    let orphan = shell.ask("sh -c 'sleep 86400 & echo $!'");
    shell.ask("echo 0");
    let (found_orphan, _) = stepped.tick();
    let all = [shell.pid(), child, grandchild, orphan];
    all[1..].iter().for_each(|pid| kill(*pid));
    drop(shell);
    while stepped.turn() {}
    let (record, _) = stepped.finish();
    assert_eq!(record.processes, 5, "those four, and the parent that has gone: {record:?}");
    let counters = counters(run.path());
    for (pid, first, least) in
        [(child, found, 2), (parent, found, 1), (grandchild, found, 2), (orphan, found_orphan, 1)]
    {
        let sampled = sampled(&counters, pid);
        assert_eq!(sampled.first(), Some(&first.real_ns), "{pid} of {all:?}");
        assert!(sampled.len() >= least, "{pid} of {all:?}: {sampled:?}");
        assert_eq!(of(&counters, pid, "end").len(), 1, "{pid} of {all:?}");
    }
}

/// A pattern finds processes by command line and by name, those that exec later too, and never the collector itself.
#[test]
fn patterns_find_processes() {
    let run = tempfile::tempdir().expect("a directory");
    let mark = mark(86400);
    let mut stepped = Stepped::start(options(run.path(), 50, matching(&format!("^sleep {mark}$"))));
    let mut shell = Shell::start();
    stepped.ticks(3);
    writeln!(shell.input, "exec sleep {mark}").expect("it listens");
    wait_for_exec(shell.pid(), &mark);
    let (found, _) = stepped.tick();
    let pid = shell.pid();
    drop(shell);
    stepped.turn();
    let (record, _) = stepped.finish();
    assert_eq!(record.processes, 1);
    let seen = counters(run.path());
    assert_eq!(sampled(&seen, pid).first(), Some(&found.real_ns));
    assert_eq!(of(&seen, pid, "end").len(), 1);

    // The command line of this one begins with a directory; its name does not.
    let name = format!("nap-{}", std::process::id());
    let copy = run.path().join(&name);
    fs::copy("/bin/sleep", &copy).expect("copied");
    let sleeper = Sleeper::start(&copy, &["86400"]);
    let own: Vec<String> = std::env::args().collect();
    for (text, expected) in [(format!("^{name}$"), 1), (format!("^{}$", regex::escape(&own.join(" "))), 0)] {
        let run = tempfile::tempdir().expect("a directory");
        let mut stepped = Stepped::start(options(run.path(), 50, matching(&text)));
        stepped.ticks(30);
        assert_eq!(stepped.finish().0.processes, expected, "{text}");
        assert_eq!(sampled(&counters(run.path()), sleeper.pid()).is_empty(), expected == 0, "{text}");
    }
}

/// Processes that come between two full listings of `/proc` are found at the next tick, not at the next listing (a second); their
/// control group is sampled with them. Once this was a second late, and all other tests passed.
#[test]
fn newcomers_are_found_at_once() {
    let run = tempfile::tempdir().expect("a directory");
    let mark = mark(86401);
    let mut stepped = Stepped::start(options(run.path(), 25, matching(&format!("^sleep {mark}$"))));
    let mut sleepers = Vec::new();
    // At different places between two listings.
    for _ in 0..16 {
        stepped.ticks(5);
        let sleeper = Sleeper::start("sleep", &[&mark]);
        sleepers.push((stepped.tick().0, sleeper));
    }
    stepped.ticks(40);
    stepped.finish();
    let counters = counters(run.path());
    for (found, sleeper) in &sleepers {
        assert_eq!(sampled(&counters, sleeper.pid()).first(), Some(&found.real_ns), "at the very tick");
    }
    let group = CgroupSampler::name_of_process(&Roots::default(), std::process::id()).expect("a process has groups");
    let sampled = counters.iter().any(|event| event.cat == "cgroup" && Path::new(&event.name) == group);
    assert_eq!(sampled, group != Path::new("/"), "{}", group.display());
}

/// A process that has slept for longer than newcomers are watched, and then becomes what the pattern wants, is found within a second.
#[test]
fn an_exec_of_an_old_process_is_found() {
    let run = tempfile::tempdir().expect("a directory");
    let mark = mark(86402);
    let mut shell = Shell::start();
    let mut stepped = Stepped::start(options(run.path(), 50, matching(&format!("^sleep {mark}$"))));
    stepped.ticks(50);
    let became = stepped.clock.now();
    writeln!(shell.input, "exec sleep {mark}").expect("it listens");
    wait_for_exec(shell.pid(), &mark);
    stepped.ticks(21);
    let (record, _) = stepped.finish();
    assert_eq!(record.processes, 1);
    let found = sampled(&counters(run.path()), shell.pid())[0] - became.real_ns;
    assert!((1..=1_050_000_000).contains(&found), "found after {found} ns");
}

/// With both, a sentinel must match too; foreign ones are reported and stay. One that does not match yet has a second to do so.
#[test]
fn sentinels_and_pattern_together() {
    let run = tempfile::tempdir().expect("a directory");
    let pids = run.path().join("pids");
    let mut stepped =
        Stepped::start(options(run.path(), 100, Follow { pid_dir: Some(pids.clone()), ..matching("^sleep") }));
    let (wanted, other) = (Sleeper::start("sleep", &["86403"]), Sleeper::start("tail", &["-f", "/dev/null"]));
    let names = [wanted.pid().to_string(), other.pid().to_string(), "4000000000".into(), "notes.txt".into()];
    for name in &names {
        fs::write(pids.join(name), "").expect("a sentinel");
    }
    let came = stepped.clock.now();
    stepped.turn();
    assert_eq!(stepped.said.len(), 2, "no process, no pid: {:?}", stepped.said);
    stepped.ticks(9);
    assert_eq!(stepped.said.len(), 2, "{:?}", stepped.said);
    stepped.ticks(7);
    let (record, said) = stepped.finish();
    assert_eq!((record.processes, said.len()), (1, 3), "{said:?}");
    assert!(
        names[1..].iter().all(|name| said.iter().filter(|text| text.contains(name.as_str())).count() == 1),
        "{said:?}"
    );
    assert!(names.iter().all(|name| pids.join(name).exists()));
    assert_eq!(sampled(&counters(run.path()), wanted.pid()).first(), Some(&came.real_ns), "without a tick");
}

/// Two collectors on one run: two files, one of which has the host; when its writer ends the other takes over.
#[test]
fn two_collectors_share_a_run() {
    let run = tempfile::tempdir().expect("a directory");
    let [mut first, mut second] = [1, 2].map(|_| Stepped::start(options(run.path(), 50, Follow::default())));
    assert!(first.collector.samples_host() && !second.collector.samples_host());
    let files = [&first, &second].map(|stepped| stepped.collector.file().to_owned());
    assert_ne!(files[0], files[1]);
    first.ticks(50);
    second.ticks(50);
    assert!(!second.collector.samples_host(), "it asks every two seconds, in vain");
    let (record, _) = first.finish();
    assert_eq!((record.ticks, record.skipped_ticks), (50, 0));
    second.ticks(40);
    assert!(second.collector.samples_host(), "it has taken over");
    second.ticks(10);
    second.finish();
    let records = SupervisorRecord::read_all(run.path()).0;
    assert_eq!(records.len(), 2, "each has its record");
    for (file, least) in files.iter().zip([50, 10]) {
        let trace = weftline_format::reader::read_file(file).expect("readable");
        let of_host = trace.events.iter().filter(|event| event.name == "memory" && event.cat == "sys").count();
        assert!(of_host >= least, "{}: {of_host}", file.display());
    }
    for place in [run.path().to_owned(), run.path().join("run.d")] {
        let names = fs::read_dir(&place).expect("there").flatten().map(|entry| entry.file_name());
        let hidden: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
        assert!(hidden.is_empty(), "{}: {hidden:?}", place.display());
    }
}

/// Everything that cannot work is refused at the start, with a reason.
#[test]
fn bad_options_are_refused() {
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

/// Processes that come and go between two looks leave no trouble behind. By the kernel's clock, as fast as it goes: whatever is seen of
/// them, each has its end.
#[test]
fn a_crowd_of_short_processes() {
    let run = tempfile::tempdir().expect("a directory");
    let mut shell =
        Command::new("sh").args(["-c", "for i in $(seq 300); do /bin/true & done; wait"]).spawn().expect("sh starts");
    let follow = Follow { trees: vec![shell.id()], ..Follow::default() };
    let limit = Some(Duration::from_secs(60));
    let descriptors = Options { until_gone: true, duration: limit, ..options(run.path(), 5, follow) };
    let record = Collector::start(descriptors).expect("a collector").run(&mut |_| {});
    assert!(weftline_collect::own::start_of(&shell.id().to_string()).is_none(), "it ends with its tree");
    shell.wait().expect("waited");
    let ends = counters(run.path()).iter().filter(|event| event.name == "end").count() as u64;
    assert_eq!(ends, record.processes, "each process that was followed has an end");
}
