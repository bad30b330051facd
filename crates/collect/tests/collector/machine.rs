//! A machine of files: exact intervals, rates and counts, whatever the clock does.

use std::fs;
use std::path::Path;
use std::time::Duration;

use weftline_collect::clock::{Clock as _, ClockReading};
use weftline_collect::collector::Options;
use weftline_collect::follow::Follow;
use weftline_collect::roots::Roots;
use weftline_collect::writer::recover;
use weftline_format::{Event, Value};

use crate::hand::Stepped;
use crate::support::{counters, of, options, sum};

const PID: u32 = 4711;

/// The files of a machine with one process in a control group.
struct Machine {
    tree: tempfile::TempDir,
    run: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine =
            Machine { tree: tempfile::tempdir().expect("a directory"), run: tempfile::tempdir().expect("a directory") };
        machine.put("proc/4711/cmdline", "work\0hard\0");
        machine.put("proc/4711/cgroup", "0::/job\n");
        machine.put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        machine.put("sys/fs/cgroup/job/memory.current", "4096\n");
        machine.used(Duration::ZERO);
        machine
    }

    /// Writes in place: files are kept open.
    fn put(&self, name: &str, text: &str) {
        let path = self.tree.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// What the process has used, and one of the machine's two processors with it.
    fn used(&self, cpu: Duration) {
        let ticks = cpu.as_millis() / 10;
        let rest: String = (25..=52).map(|field| format!(" {field}")).collect();
        self.put(
            "proc/4711/stat",
            &format!("4711 (work) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 1 8192000 300{rest}\n"),
        );
        self.put("proc/4711/task/4711/schedstat", &format!("{} 0 1\n", cpu.as_nanos()));
        self.put("sys/fs/cgroup/job/cpu.stat", &format!("usage_usec {}\n", cpu.as_micros()));
    }

    /// The process is gone, and its files with it: those that are open have nothing more to tell.
    fn end(&self) {
        self.put("proc/4711/stat", "");
        fs::remove_dir_all(self.tree.path().join("proc/4711")).expect("removed");
    }

    fn options(&self, interval_ms: u64) -> Options {
        let follow = Follow { trees: vec![PID], ..Follow::default() };
        Options { roots: Roots::under(self.tree.path()), ..options(self.run.path(), interval_ms, follow) }
    }

    fn counters(&self) -> Vec<Event> {
        counters(self.run.path())
    }
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Where an event's interval begins and ends, in milliseconds since a moment.
fn interval(event: &Event, since: ClockReading) -> (i64, i64) {
    let of = |ns: Option<i64>| (ns.expect("a time") - since.real_ns) / 1_000_000;
    (of(event.start_ns), of(event.end_ns()))
}

/// Ticks that come late, or not at all, change the length of an interval and nothing else: each begins where the one before it ended, has
/// the rate of its own time, and the next deadline is where it would have been.
#[test]
fn intervals_join_and_rates_are_of_their_own_time() {
    let machine = Machine::new();
    let mut stepped = Stepped::start(machine.options(500));
    let began = stepped.clock.now();
    // The process works half of the time, at whatever moment it is looked at.
    let mut half = |late: u64, at: u64| {
        machine.used(ms(at / 2));
        assert_eq!(stepped.tick_late(ms(late)).0.real_ns - began.real_ns, at as i64 * 1_000_000);
    };
    half(0, 500);
    half(60, 1060);
    half(0, 1500);
    // Four deadlines at once, and the next one in time.
    half(1620, 3620);
    half(0, 4000);
    let (record, said) = stepped.finish();
    assert_eq!((record.ticks, record.skipped_ticks, said), (5, 3, vec![]));
    let events = of(&machine.counters(), PID, "process");
    let intervals: Vec<(i64, i64)> = events.iter().map(|event| interval(event, began)).collect();
    assert_eq!(intervals, [(0, 0), (0, 500), (500, 1060), (1060, 1500), (1500, 3620), (3620, 4000)]);
    for event in &events[1..] {
        assert_eq!(event.arg("cpu_pct").and_then(Value::as_f64), Some(50.0), "{event:?}");
    }
    assert_eq!(sum(&events, "cpu_ns"), 2e9, "all of it");
}

/// Somebody sets the clock while a collector works: intervals keep the length that really passed.
#[test]
fn a_clock_that_is_set_changes_no_rate() {
    let machine = Machine::new();
    let mut stepped = Stepped::start(machine.options(500));
    machine.used(ms(250));
    stepped.clock.set_forward(3_600_000_000_000);
    stepped.tick();
    stepped.finish();
    let events = of(&machine.counters(), PID, "process");
    assert_eq!((events[1].dur_ns, events[1].arg("cpu_pct").and_then(Value::as_f64)), (Some(500_000_000), Some(50.0)));
}

/// Where nothing tells of ends, the next tick notices; the time since the last look is stated as unseen, and the totals are those of then.
#[test]
fn a_process_that_is_gone_at_the_next_tick() {
    let machine = Machine::new();
    let mut stepped = Stepped::start(Options { until_gone: true, ..machine.options(500) });
    let began = stepped.clock.now();
    machine.used(ms(100));
    stepped.ticks(1);
    machine.end();
    assert!(!stepped.tick_late(ms(20)).1, "nobody is left");
    let (record, _) = stepped.finish();
    assert_eq!((record.processes, record.unseen_ends, record.unseen_ns), (1, 1, 520_000_000));
    let end = of(&machine.counters(), PID, "end");
    assert_eq!(end.len(), 1);
    assert_eq!(interval(&end[0], began), (500, 1020));
    let values = ["unseen_ns", "total_cpu_ns"].map(|key| end[0].arg(key).and_then(Value::as_u64));
    assert_eq!(values, [Some(520_000_000), Some(100_000_000)]);
}

/// It ends with the first tick at which its time is over.
#[test]
fn a_bounded_time_is_over_at_its_tick() {
    let machine = Machine::new();
    let mut stepped = Stepped::start(Options { duration: Some(ms(950)), ..machine.options(100) });
    let turns = (1..).find(|_| !stepped.tick().1);
    assert_eq!(turns, Some(10));
    assert_eq!(stepped.finish().0.ticks, 10);
}

/// The kernel adds up a whole group for each look, so groups are sampled once a second; what they used is all there.
#[test]
fn groups_are_sampled_once_a_second() {
    let machine = Machine::new();
    let mut stepped = Stepped::start(machine.options(100));
    let began = stepped.clock.now();
    for tick in 1..=35 {
        machine.used(ms(tick * 40));
        stepped.ticks(1);
    }
    stepped.finish();
    let groups: Vec<Event> = machine.counters().into_iter().filter(|event| event.cat == "cgroup").collect();
    let intervals: Vec<(i64, i64)> = groups.iter().map(|event| interval(event, began)).collect();
    assert_eq!(intervals, [(0, 1000), (1000, 2000), (2000, 3000)]);
    for event in &groups[1..] {
        assert_eq!(event.arg("cpu_pct").and_then(Value::as_f64), Some(40.0), "{event:?}");
    }
}

/// What a collector leaves that is killed now: a copy of the run, completed as the next verb does it.
fn killed(run: &Path) -> Vec<Event> {
    let copy = tempfile::tempdir().expect("a directory");
    for entry in fs::read_dir(run).expect("there").flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copied");
    }
    recover(copy.path()).expect("recovered");
    counters(copy.path())
}

/// Whenever it is killed, all is there that was sampled at the last tick; the file itself grows every ten seconds.
#[test]
fn a_killed_collector_loses_nothing_of_the_last_tick() {
    let machine = Machine::new();
    let mut stepped = Stepped::start(machine.options(250));
    let file = stepped.collector.file().to_owned();
    let mut lengths = Vec::new();
    for tick in 1..=90 {
        let (now, _) = stepped.tick();
        // Killed shortly before the next one.
        stepped.clock.pass(ms(249));
        let last = of(&killed(machine.run.path()), PID, "process").iter().filter_map(Event::end_ns).max();
        assert_eq!(last, Some(now.real_ns), "tick {tick}");
        lengths.push(fs::metadata(&file).map_or(0, |data| data.len()));
    }
    let grown: Vec<usize> =
        (1..lengths.len()).filter(|place| lengths[*place] != lengths[place - 1]).map(|place| place + 1).collect();
    assert_eq!(grown, [40, 81], "by then the oldest sample is ten seconds old");
    stepped.finish();
}
