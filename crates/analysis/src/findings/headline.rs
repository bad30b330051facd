//! The first sentence of a report: the worst finding and its cost, or what most of the time went to.

use std::fmt::Write as _;

use super::dominant::{Class, WallTime};
use super::rules::is_catch_all;
use super::{Finding, Severity, Verdict};
use crate::units;

impl Verdict {
    /// The first sentence. Nothing where there is no time to speak of.
    pub fn headline(&self) -> Option<String> {
        let costs = |finding: &&Finding| finding.at_stake.time_ns > 0;
        let worst = self.findings.iter().find(costs);
        // What costs no time is about the trace, or about a number of the user's own; it does not hide where the time went.
        let mut beside: Vec<&str> = Vec::new();
        for finding in self.findings.iter().filter(|finding| !costs(finding) && finding.severity >= Severity::Medium) {
            if !beside.contains(&finding.title.as_str()) {
                beside.push(&finding.title);
            }
        }
        let rules = units::counted(self.checked as u64, "rule", "rules");
        let mut out = match (worst, &self.wall) {
            (Some(finding), wall) if wall.is_none() || !is_catch_all(&finding.rule) => {
                of_finding(finding, wall.as_ref().map_or(self.wall_ns, |wall| wall.wall_ns))
            }
            (_, Some(wall)) => wall.sentence(&rules, beside.is_empty()),
            (_, None) if self.partial && self.wall_ns > 0 => {
                format!("No finding among the selected events; {rules} checked")
            }
            _ => return None,
        };
        for title in beside {
            let _ = write!(out, "; {title}");
        }
        Some(out)
    }

    /// The finding that the first sentence is about.
    pub fn leading(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.at_stake.time_ns > 0).or_else(|| self.findings.first())
    }
}

/// `Small reads: 4.00 s of 12.00 s (33.3 %) on /data/x`, `The model waits for data: 4.00 s of 12.00 s (33.3 %) in python3 train.py (pid 812 on node7)`
fn of_finding(finding: &Finding, wall_ns: u64) -> String {
    let mut title = finding.title.clone();
    if let Some(first) = title.get(..1).map(str::to_uppercase) {
        title.replace_range(..1, &first);
    }
    let cost = units::time(finding.at_stake.time_ns.max(0) as u64);
    let place = match (finding.place.files.as_slice(), finding.place.processes.as_slice()) {
        ([file, ..], _) => match finding.place.file_count {
            0 | 1 => format!(" on {file}"),
            many => format!(" on {file} and {} more", units::count(many - 1)),
        },
        ([], [one]) if finding.place.process_count == 1 => format!(" in {one}"),
        _ => String::new(),
    };
    format!("{title}: {cost} of {} ({}){place}", units::time(wall_ns), units::percent(finding.at_stake.share))
}

impl WallTime {
    /// What most of the time went to. `whole`: the trace shows everything, so that a program may be called healthy.
    fn sentence(&self, rules: &str, whole: bool) -> String {
        let wall = units::time(self.wall_ns);
        let part = units::percent(self.share(self.dominant));
        let took = format!("{} of {wall} ({part})", units::time(self.time_ns(self.dominant)));
        // Compute may be the largest part and still less than half.
        let compute = if self.compute > self.share(self.dominant) {
            format!("; compute takes {}", units::percent(self.compute))
        } else {
            String::new()
        };
        match self.dominant {
            Class::Compute => {
                let praise = if whole { "Healthy" } else { "As far as the trace shows" };
                let queued = if self.queued >= 0.05 {
                    format!(", {} waiting for a free processor", units::percent(self.queued))
                } else {
                    String::new()
                };
                format!("{praise}: {part} of {wall} is compute{queued}; {rules} checked")
            }
            Class::FileIo => {
                let mostly = if self.mostly.is_empty() { String::new() } else { format!(", mostly {}", self.mostly) };
                format!("File I/O takes {took}{mostly}{compute}; {rules} checked, none explains it")
            }
            Class::Waiting if self.data >= self.waiting / 2.0 => {
                format!("Waiting for data takes {took}{compute}; {rules} checked, none explains it")
            }
            Class::Waiting => {
                let mostly =
                    if self.mostly.is_empty() { String::new() } else { format!(", mostly for {}", self.mostly) };
                format!("Waiting takes {took}{mostly}{compute}; {rules} checked, none explains it")
            }
            Class::Queued => format!(
                "Waiting for a free processor takes {took}: more threads want to run than there are cores; {rules} checked"
            ),
            // Nothing but spans that say what the program did by itself, as profilers and compilers write them.
            Class::Outside if self.file_io + self.waiting == 0.0 => format!(
                "No I/O call, wait or CPU time is in the trace to judge by: its spans show where {wall} went; {rules} checked"
            ),
            Class::Outside => format!(
                "Not in traced calls: {took} (computing or untraced: the trace has no CPU time); file I/O takes {}, waiting {}; {rules} checked",
                units::percent(self.file_io),
                units::percent(self.waiting),
            ),
            Class::Other => format!(
                "Neither CPU time nor a traced call: {took} (locks, page faults, a GPU, untraced I/O){compute}; {rules} checked"
            ),
        }
    }
}
