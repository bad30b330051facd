//! Whether something matters, and how much: one measure for all rules.
//!
//! What something costs is wall time of the process that matters ([`crate::breakdown`]), and its share is that of the job's wall time: threads and
//! processes that run side by side do not add up, and helpers cost what is waited for them. The score is the share over
//! `matter.full-share`, less where only a fraction of `matter.full-seconds` is at stake.

use std::collections::BTreeMap;

use super::evidence::{Evidence, Tally};
use super::thresholds::{Config, Threshold};
use super::{Impact, Place, Who};
use crate::{program, units};

/// What holds for every rule.
pub(crate) const THRESHOLDS: &[Threshold] = &[SHARE, SECONDS, CALLS, FULL_SHARE, FULL_SECONDS];
const SHARE: Threshold = Threshold::new(
    "matter.share",
    0.05,
    "of the time",
    "What takes less than a twentieth of the job cannot make it noticeably faster.",
);
pub(crate) const SECONDS: Threshold =
    Threshold::new("matter.seconds", 0.1, "s", "Less is within the noise of a program's start.");
const CALLS: Threshold = Threshold::new(
    "matter.calls",
    10000.0,
    "calls",
    "This many calls count even if a cache made each of them cheap here: on a shared file system they are not.",
);
const FULL_SHARE: Threshold =
    Threshold::new("matter.full-share", 0.5, "of the time", "At this share a finding has its full score.");
pub(crate) const FULL_SECONDS: Threshold = Threshold::new(
    "matter.full-seconds",
    2.0,
    "s",
    "Below it the score goes down in proportion: nobody tunes a program for a fraction of a second.",
);

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
    pub impact: Impact,
    pub place: Place,
    pub score: f64,
}

impl Weighed {
    /// `1.5 s, 12 % of the wall time`.
    pub(crate) fn cost(&self) -> String {
        let time = units::time(self.impact.time_ns as u64);
        format!("{time}, {} of the wall time", units::percent(self.impact.share))
    }

    /// `1 process`, `3 processes`.
    pub(crate) fn processes(&self) -> String {
        units::counted(self.place.process_count, "process", "processes")
    }

    /// `1 file`, `1,234 files`.
    pub(crate) fn files(&self) -> String {
        units::counted(self.place.file_count, "file", "files")
    }
}

/// What the times of a finding's parts are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// Sums over a process's calls on files, whatever their thread.
    OfCalls,
    /// Wall time of a process already.
    OfWall,
}

impl Evidence {
    /// Weighs calls on files that a rule found; nothing when they do not matter.
    pub(crate) fn weigh(&self, config: &Config, parts: &[Part]) -> Option<Weighed> {
        self.weigh_as(Times::OfCalls, config, parts)
    }

    /// The same for parts whose times are wall time.
    pub(crate) fn weigh_wall(&self, config: &Config, parts: &[Part]) -> Option<Weighed> {
        self.weigh_as(Times::OfWall, config, parts)
    }

    fn weigh_as(&self, times: Times, config: &Config, parts: &[Part]) -> Option<Weighed> {
        let weighed = self.measure(times, config, parts);
        let enough = weighed.impact.share >= config.get(SHARE)
            && (weighed.impact.seconds() >= config.get(SECONDS) || weighed.impact.calls >= config.count(CALLS));
        (enough && weighed.score > 0.0).then_some(weighed)
    }

    /// The same without the question whether it matters.
    pub(crate) fn measure(&self, times: Times, config: &Config, parts: &[Part]) -> Weighed {
        let mut sum = Tally::default();
        let mut process_ids: BTreeMap<u32, u64> = BTreeMap::new();
        let mut files: BTreeMap<u32, u64> = BTreeMap::new();
        for part in parts {
            sum.add(&part.tally);
            *process_ids.entry(part.process).or_default() += part.tally.ns;
            if let Some(file) = part.file {
                *files.entry(file).or_default() += part.tally.ns;
            }
        }
        let by_place = process_ids.iter().filter_map(|(id, ns)| Some((self.family.places[*id as usize]?, *ns)));
        let cost = match times {
            Times::OfCalls => self.breakdown.cost(by_place),
            Times::OfWall => self.breakdown.wall_cost(by_place),
        };
        let share = (cost as f64 / self.wall_ns.max(self.breakdown.wall_ns).max(1) as f64).min(1.0);
        let impact = Impact {
            time_ns: cost as i64,
            share,
            sum_ns: i64::try_from(sum.ns).unwrap_or(i64::MAX),
            bytes: sum.bytes,
            calls: sum.calls,
        };
        let place = Place {
            from_ns: (sum.start <= sum.end).then_some(sum.start),
            to_ns: (sum.start <= sum.end).then_some(sum.end),
            process_count: process_ids.len() as u64,
            file_count: files.len() as u64,
            processes: top(process_ids, |process| self.who(process)),
            files: top(files, |file| self.dictionary.file(file).to_owned()),
        };
        Weighed { score: score(config, share, impact.seconds()), impact, place }
    }

    /// How findings name a process.
    pub(crate) fn who(&self, process: u32) -> Who {
        let known = self.dictionary.process(process);
        let host = if known.host.is_empty() { &known.hhash } else { &known.host };
        Who { host: host.clone(), pid: known.pid, rank: known.rank, program: self.program(process) }
    }

    /// The program of a process.
    pub(crate) fn program(&self, process: u32) -> String {
        let known = self.dictionary.process(process);
        program::label(&known.command, &known.exe, &known.name)
    }
}

/// A share of the time as a score.
pub(crate) fn score(config: &Config, share: f64, seconds: f64) -> f64 {
    let of_share = share / config.get(FULL_SHARE).max(f64::MIN_POSITIVE);
    let of_time = seconds / config.get(FULL_SECONDS).max(f64::MIN_POSITIVE);
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
