//! The loop by which every program of this package measures its spans, and the line that it prints for `bench/annotate/spans.py`.
//!
//! Each figure is the median of many short rounds, so that a round in which another program had the processor does not count, less the same
//! loop without a span. A round's work is handed over within the round where the recorder wants that to be done (a trace's root, a frame).
//!
//! A program is called as `PROGRAM on|off [SPANS] [ROUNDS]`. It prints one JSON object: nanoseconds per span by kind, the spans that were made, those
//! that the recorder says it has (`null` where it does not say), and by how many bytes the program grew meanwhile.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Arguments of the spans that have some: a number, a fraction and a text, beside the index.
pub const LOSS: f64 = 0.5;
/// The text.
pub const PATH: &str = "data/train-00001.npz";

/// Spans of a round, and rounds of a kind, unless the command line says otherwise.
const SPANS: u32 = 500;
const ROUNDS: u32 = 301;
/// Between rounds. Whoever writes the trace must keep up: a program that does nothing but spans has more of them than a disk can take.
const PAUSE: Duration = Duration::from_millis(2);

/// One program's measurements.
pub struct Bench {
    on: bool,
    spans: u32,
    rounds: u32,
    bare: f64,
    costs: Vec<(&'static str, f64)>,
    resident: u64,
}

impl Bench {
    /// Reads the command line and measures the bare loop.
    pub fn start() -> Self {
        let argument = |place| std::env::args().nth(place);
        let number = |place, default: u32| argument(place).and_then(|text| text.parse().ok()).unwrap_or(default).max(1);
        let mut bench = Self {
            on: argument(1).as_deref() == Some("on"),
            spans: number(2, SPANS),
            rounds: number(3, ROUNDS),
            bare: 0.0,
            costs: Vec::new(),
            resident: 0,
        };
        bench.bare = bench.median(&mut |spans| {
            for index in 0..spans {
                black_box(index);
            }
        });
        bench.resident = resident_bytes();
        bench
    }

    /// Is the recorder to be switched on?
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Measures `run`, which makes as many spans as it is told.
    pub fn measure(&mut self, kind: &'static str, mut run: impl FnMut(u32)) {
        let cost = (self.median(&mut run) - self.bare).max(0.0);
        self.costs.push((kind, cost));
    }

    /// Rounds of all kinds that were measured.
    pub fn rounds_made(&self) -> u64 {
        self.costs.len() as u64 * u64::from(self.rounds)
    }

    /// Prints the result; `recorded` is how many of the spans the recorder has.
    pub fn tell(self, recorded: Option<u64>) {
        let made = if self.on { self.rounds_made() * u64::from(self.spans) } else { 0 };
        let grown = resident_bytes().saturating_sub(self.resident);
        let mut costs = String::new();
        for (kind, cost) in &self.costs {
            let comma = if costs.is_empty() { "" } else { ", " };
            let _ = write!(costs, "{comma}\"{kind}\": {cost:.2}");
        }
        let recorded = recorded.map_or_else(|| "null".to_owned(), |count| count.to_string());
        println!("{{\"ns\": {{{costs}}}, \"made\": {made}, \"recorded\": {recorded}, \"grown_bytes\": {grown}}}");
    }

    /// Nanoseconds per span.
    fn median(&self, run: &mut dyn FnMut(u32)) -> f64 {
        let mut times: Vec<f64> = (0..self.rounds)
            .map(|_| {
                std::thread::sleep(PAUSE);
                let start = Instant::now();
                run(self.spans);
                start.elapsed().as_nanos() as f64 / f64::from(self.spans)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

/// What the program has in memory; 0 where the kernel does not tell.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}
