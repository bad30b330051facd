//! Processors: how all of them, and each core, spent the interval, in percent; and the other counters of `/proc/stat`.
//!
//! The shares are those of the time that the kernel accounted for, as `mpstat` has them; guests are part of `user` and `nice`. DFTracer's
//! values of the same names are shares since boot.

use crate::read::{Kept, growth, lines, number, percent, words};
use crate::sample::{Interval, Sink, Subject, Value};

/// In the order of the file.
const SHARES: [&str; 8] =
    ["user_pct", "nice_pct", "system_pct", "idle_pct", "iowait_pct", "irq_pct", "softirq_pct", "steal_pct"];

type Ticks = [u64; SHARES.len()];

#[derive(Debug)]
struct Core {
    /// `cpu` or `cpu-3`.
    name: String,
    before: Option<Ticks>,
}

#[derive(Debug)]
pub(super) struct Processors {
    file: Kept,
    /// The first is all of them, then by number; cores that come later are added.
    cores: Vec<Core>,
    activity: Option<[u64; 3]>,
}

impl Processors {
    pub(super) fn new(file: Kept) -> Processors {
        Processors { file, cores: Vec::new(), activity: None }
    }

    pub(super) fn sample(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        let Ok(text) = self.file.read_record(buffer) else { return };
        let mut activity = [None; 3];
        let mut tasks = [None; 2];
        for line in lines(text) {
            let mut words = words(line);
            let Some(key) = words.next() else { continue };
            if let Some(core) = key.strip_prefix(b"cpu") {
                let mut ticks: Ticks = [0; SHARES.len()];
                let mut known = 0;
                for (tick, word) in ticks.iter_mut().zip(words) {
                    let Some(value) = number(word) else { break };
                    *tick = value;
                    known += 1;
                }
                // Kernels before 2.6.11 end earlier; less than four is no line of processors.
                if known >= 4 {
                    self.core(core, ticks, at, sink);
                }
                continue;
            }
            let mut first = || number(words.next()?);
            match key {
                b"intr" => activity[0] = first(),
                b"ctxt" => activity[1] = first(),
                b"processes" => activity[2] = first(),
                b"procs_running" => tasks[0] = first(),
                b"procs_blocked" => tasks[1] = first(),
                _ => {}
            }
        }
        let [Some(interrupts), Some(switches), Some(forks)] = activity else { return };
        let now = [interrupts, switches, forks];
        if let (Some(before), [Some(running), Some(blocked)]) = (self.activity, tasks) {
            let values = [
                ("interrupts", Value::Unsigned(growth(now[0], before[0]))),
                ("context_switches", Value::Unsigned(growth(now[1], before[1]))),
                ("forks", Value::Unsigned(growth(now[2], before[2]))),
                ("running", Value::Unsigned(running)),
                ("blocked", Value::Unsigned(blocked)),
            ];
            sink.counter(Subject::Host, "sys", "kernel", at, &values);
        }
        self.activity = Some(now);
    }

    fn core(&mut self, core: &[u8], ticks: Ticks, at: Interval, sink: &mut dyn Sink) {
        let name_matches = |known: &Core| {
            let number = known.name.as_bytes().strip_prefix(b"cpu-").unwrap_or_default();
            number == core
        };
        let place = match self.cores.iter().position(name_matches) {
            Some(place) => place,
            None => {
                if core.len() > 8 || !core.iter().all(u8::is_ascii_digit) {
                    return;
                }
                let digits = String::from_utf8_lossy(core);
                let name = if core.is_empty() { "cpu".to_owned() } else { format!("cpu-{digits}") };
                self.cores.push(Core { name, before: None });
                self.cores.len() - 1
            }
        };
        let core = &mut self.cores[place];
        if let Some(before) = core.before {
            let mut grown = [0; SHARES.len()];
            for (place, grown) in grown.iter_mut().enumerate() {
                *grown = growth(ticks[place], before[place]);
            }
            let whole: u64 = grown.iter().fold(0, |sum, part| sum.saturating_add(*part));
            if whole > 0 {
                let mut values = [("", Value::Float(0.0)); SHARES.len()];
                for (place, value) in values.iter_mut().enumerate() {
                    *value = (SHARES[place], Value::Float(percent(grown[place], whole)));
                }
                sink.counter(Subject::Host, "sys", &core.name, at, &values);
            }
        }
        core.before = Some(ticks);
    }
}
