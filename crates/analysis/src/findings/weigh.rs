//! Whether something matters, and how much: one measure for all rules.
//!
//! The share is the time at stake over the time of those whom it concerns, or of the whole job where that is longer: a helper that ran for
//! a second of an hour cannot cost half of the hour. The score is the share over `matter.full-share`, less where only a fraction of
//! `matter.full-seconds` is at stake.

use std::collections::BTreeMap;

use weftline_index::Process;

use super::evidence::{Evidence, Tally};
use super::thresholds::{Config, Limit};
use super::{Place, Stake, Who};

/// Processes and files that a finding names; the others are counted.
const NAMED: usize = 5;

/// A process's part in a finding.
pub(crate) struct Part {
    pub process: u32,
    pub file: Option<u32>,
    pub tally: Tally,
}

/// What a rule found, weighed.
pub(crate) struct Weighed {
    pub stake: Stake,
    pub place: Place,
    pub score: f64,
}

impl Evidence {
    /// Weighs what a rule found; nothing when it does not matter.
    pub(crate) fn weigh(&self, config: &Config, parts: &[Part]) -> Option<Weighed> {
        let weighed = self.measure(config, parts);
        let enough = weighed.stake.share >= config.get(Limit::Share)
            && (weighed.stake.seconds() >= config.get(Limit::Seconds)
                || weighed.stake.calls >= config.count(Limit::Calls));
        (enough && weighed.score > 0.0).then_some(weighed)
    }

    /// The same without the question whether it matters.
    pub(crate) fn measure(&self, config: &Config, parts: &[Part]) -> Weighed {
        let mut sum = Tally::default();
        let mut people: BTreeMap<u32, u64> = BTreeMap::new();
        let mut files: BTreeMap<u32, u64> = BTreeMap::new();
        for part in parts {
            sum.add(&part.tally);
            *people.entry(part.process).or_default() += part.tally.ns;
            if let Some(file) = part.file {
                *files.entry(file).or_default() += part.tally.ns;
            }
        }
        let theirs: u64 = people.keys().map(|process| self.work_ns[*process as usize]).sum();
        let time = theirs.max(self.wall_ns).max(1);
        let share = (sum.ns as f64 / time as f64).min(1.0);
        let stake = Stake { time_ns: sum.ns as i64, share, bytes: sum.bytes, calls: sum.calls };
        let place = Place {
            from_ns: (sum.start <= sum.end).then_some(sum.start),
            to_ns: (sum.start <= sum.end).then_some(sum.end),
            process_count: people.len() as u64,
            file_count: files.len() as u64,
            processes: top(people, |process| self.who(process)),
            files: top(files, |file| self.dictionary.file(file).to_owned()),
        };
        Weighed { score: score(config, share, stake.seconds()), stake, place }
    }

    /// How findings name a process.
    pub(crate) fn who(&self, process: u32) -> Who {
        let known = self.dictionary.process(process);
        let host = if known.host.is_empty() { &known.hhash } else { &known.host };
        Who { host: host.clone(), pid: known.pid, rank: known.rank, program: self.program(process) }
    }

    /// The program of a process.
    pub(crate) fn program(&self, process: u32) -> String {
        program(self.dictionary.process(process))
    }
}

/// The program as a person would name it.
pub(crate) fn program(known: &Process) -> String {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match known.command.split_first() {
        Some((first, rest)) => {
            let script = rest.first().filter(|word| !word.starts_with('-') && base(first).starts_with("python"));
            script.map_or_else(|| base(first), |script| format!("{} {}", base(first), base(script)))
        }
        None if !known.exe.is_empty() => base(&known.exe),
        None => known.name.clone(),
    }
}

/// A share of the time as a score.
pub(crate) fn score(config: &Config, share: f64, seconds: f64) -> f64 {
    let of_share = share / config.get(Limit::FullShare).max(f64::MIN_POSITIVE);
    let of_time = seconds / config.get(Limit::FullSeconds).max(f64::MIN_POSITIVE);
    (of_share.min(1.0) * of_time.min(1.0)).clamp(0.0, 1.0)
}

/// The most expensive ones, by cost and then by what they are called: ids say nothing.
fn top<T: Ord>(costs: BTreeMap<u32, u64>, name: impl Fn(u32) -> T) -> Vec<T> {
    let mut costs: Vec<(u32, u64)> = costs.into_iter().collect();
    costs.sort_unstable_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    // Names are made for few more than are shown, unless many cost the same.
    let last = costs.get(NAMED - 1).map_or(0, |(_, cost)| *cost);
    let mut named: Vec<(u64, T)> =
        costs.iter().take_while(|(_, cost)| *cost >= last).map(|(id, cost)| (*cost, name(*id))).collect();
    named.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    named.truncate(NAMED);
    named.into_iter().map(|(_, name)| name).collect()
}

/// A number of bytes for people.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A time for people.
pub(crate) fn human_time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// A number with separators.
pub(crate) fn human_count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
