//! What a tick costs: microseconds of CPU for the host, for four processes, for a thousand. `cargo run --release --example tick_cost`.
#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]

use std::process::{Child, Command, Stdio};

use rustix::time::{ClockId, clock_gettime};
use weftline_collect::energy::EnergySampler;
use weftline_collect::host::HostSampler;
use weftline_collect::process::ProcessSampler;
use weftline_collect::raise_open_files;
use weftline_collect::roots::Roots;
use weftline_collect::sample::{Facts, Interval, Sink, Subject, Value};

/// Counts what it is given, so that nothing can be left out.
#[derive(Default)]
struct Count {
    samples: u64,
    values: u64,
}

impl Sink for Count {
    fn counter(&mut self, _: Subject, _: &'static str, _: &str, _: Interval, values: &[(&'static str, Value)]) {
        self.samples += 1;
        self.values += values.len() as u64;
    }

    fn metadata(&mut self, _: Subject, _: &str, _: i64, _: Facts<'_>) {}
}

fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Mean CPU of a tick; the samples are told 200 ms apart, so that what is read once a second is read every fifth time.
fn measure(what: &str, ticks: i64, mut tick: impl FnMut(Interval, &mut Count)) {
    let mut count = Count::default();
    let interval = |number: i64| Interval { start_ns: number * 200_000_000, end_ns: (number + 1) * 200_000_000 };
    tick(interval(0), &mut Count::default());
    let begin = cpu_ns();
    for number in 1..=ticks {
        tick(interval(number), &mut count);
    }
    let mean_us = (cpu_ns() - begin) as f64 / 1e3 / ticks as f64;
    let share = mean_us / 200_000.0 * 100.0;
    println!(
        "{what:<28} {mean_us:>9.1} µs a tick, {share:.3} % of a core at 200 ms; {} samples, {} values a tick",
        count.samples / ticks as u64,
        count.values / ticks as u64
    );
}

fn main() {
    let roots = Roots::default();
    let limit = raise_open_files();
    let mut children: Vec<Child> = Vec::new();
    for _ in 0..1000 {
        match Command::new("sleep").arg("600").stdin(Stdio::null()).spawn() {
            Ok(child) => children.push(child),
            Err(error) => {
                println!("only {} processes: {error}", children.len());
                break;
            }
        }
    }
    let mut processes: Vec<ProcessSampler> =
        children.iter().filter_map(|child| ProcessSampler::open(&roots, child.id()).ok()).collect();
    println!("{} processes followed, at most {limit} open files", processes.len());
    let mut host = HostSampler::new(&roots);
    let mut energy = EnergySampler::new(&roots);
    measure("host", 500, |at, count| {
        host.sample(at, count);
        energy.sample(at, count);
    });
    let few = processes.len().min(4);
    measure("4 processes", 500, |at, count| {
        for process in &mut processes[..few] {
            let _ = process.sample(at, count);
        }
    });
    measure("host and 4 processes", 500, |at, count| {
        host.sample(at, count);
        energy.sample(at, count);
        for process in &mut processes[..few] {
            let _ = process.sample(at, count);
        }
    });
    measure("all processes", 20, |at, count| {
        for process in &mut processes {
            let _ = process.sample(at, count);
        }
    });
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
}
