//! The first lines of a report and of the summary of `weft run`: how the program ended, where its wall time went, the overhead,
//! and whether the trace is complete. The records of supervisors are enough for all of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weftline_analysis::coverage::{self, Ledger, RunTotals, Unseen};
use weftline_analysis::findings::{Training, WallTime};
use weftline_analysis::units::{bytes, count, counted, percent, printable, time};
use weftline_format::manifest::{Exit, SupervisorRecord};

use crate::{Property, signals};

/// From this coverage on, in percent, a trace counts as whole.
const WHOLE: f64 = 99.0;
/// Programs and unseen kinds of I/O that are listed one by one.
const SHOWN: usize = 5;

/// What is known of a run directory.
pub struct Head<'r> {
    records: &'r [SupervisorRecord],
    totals: RunTotals,
    ledger: Ledger,
}

impl<'r> Head<'r> {
    /// Of the records of a run's supervisors.
    pub fn new(records: &'r [SupervisorRecord]) -> Head<'r> {
        Head { records, totals: RunTotals::of(records), ledger: coverage::ledger(records) }
    }

    /// All records added up.
    pub fn totals(&self) -> &RunTotals {
        &self.totals
    }

    /// How a program ended, in a word: `0`, `3`, `SIGKILL`.
    pub fn ending(exit: Exit) -> String {
        match (exit.code, exit.signal) {
            (_, Some(signal)) => signals::name(signal),
            (Some(code), None) => code.to_string(),
            (None, None) => "-".to_owned(),
        }
    }

    /// Whether there is nothing but samples.
    pub fn only_samples(&self) -> bool {
        !self.records.is_empty() && self.records.iter().all(SupervisorRecord::only_samples)
    }

    /// How the program ended, how long it took, what it used.
    pub fn program(&self) -> Vec<Property> {
        if self.only_samples() {
            return Vec::new();
        }
        let totals = &self.totals;
        let mut words = Vec::new();
        words.extend(endings(self.records));
        words.push(format!("{} wall", time(totals.wall_ns)));
        words.push(format!("{} CPU", time(totals.cpu_ns)));
        let peak = peak(self.records);
        words.extend(peak.as_ref().map(|(most, _)| format!("{} peak memory", bytes(*most))));
        let fine = self.records.iter().filter_map(|record| record.exit).all(|exit| exit.code == Some(0));
        let exits: Vec<Value> =
            self.records.iter().map(|record| json!(record.exit)).filter(|exit| !exit.is_null()).collect();
        let mut properties = vec![Property {
            name: "exits",
            label: "program",
            value: json!(exits),
            shown: format!("{}: {}", printable(&main_program(self.records)), words.join(", ")),
            alarming: !fine,
        }];
        properties.push(Property::hidden("wall_ns", totals.wall_ns));
        properties.push(Property::hidden("cpu_ns", totals.cpu_ns));
        if let Some((most, program)) = peak {
            properties.push(Property::hidden("peak_memory", json!({"bytes": most, "program": program})));
        }
        properties
    }

    /// How many processes, and how many programs they executed, where these are more: `43, 81 execs`.
    pub fn processes(&self) -> String {
        let (processes, execs) = (self.totals.processes as u64, self.totals.execs as u64);
        if execs > processes {
            format!("{}, {}", count(processes), counted(execs, "exec", "execs"))
        } else {
            count(processes)
        }
    }

    /// What tracing cost.
    pub fn overhead(&self) -> Option<Property> {
        let (own, program) = (self.totals.drain_cpu_ns, self.totals.cpu_ns);
        if self.only_samples() {
            return None;
        }
        let part = if program > 0 { format!(" ({})", percent(own as f64 / program as f64)) } else { String::new() };
        Some(Property {
            name: "overhead_cpu_ns",
            label: "overhead",
            value: own.into(),
            shown: format!("{} CPU{part}", time(own)),
            alarming: false,
        })
    }

    /// `nothing lost, coverage 99.9 %`, where that is all that needs to be said.
    pub fn whole(&self) -> Option<String> {
        let fine = |percent: Option<f64>| percent.is_none_or(|percent| percent >= WHOLE);
        let (read, written) = self.ledger.percent();
        let known = self.ledger.tree_read.is_some() && self.ledger.uncounted().next().is_none();
        let quiet = self.totals.lost() == 0
            && self.totals.dropped_members == 0
            && self.totals.failures.is_empty()
            && self.totals.untraced.is_empty();
        if !(quiet && known && fine(read) && fine(written)) {
            return None;
        }
        let least = [read, written].into_iter().flatten().reduce(f64::min);
        let share = least.map(|least| format!(", coverage {}", coverage_words(least))).unwrap_or_default();
        Some(format!("nothing lost{share}"))
    }

    /// What is missing from the trace, in full; nothing to be shown where it is whole.
    pub fn losses(&self) -> Vec<Property> {
        if self.only_samples() {
            return Vec::new();
        }
        let totals = &self.totals;
        let whole = self.whole().is_some();
        let mut properties = Vec::new();
        let mut list = |name: &'static str, label: &'static str, value: Value, sentences: &[String], alarming: bool| {
            let mut texts: Vec<String> = sentences.iter().take(SHOWN).map(|sentence| printable(sentence)).collect();
            if sentences.len() > SHOWN {
                texts.push(format!("and {} more; weft check lists them", sentences.len() - SHOWN));
            }
            if !texts.is_empty() {
                properties.push(Property { name, label, value, shown: texts.join("; "), alarming });
            }
        };
        list("not_traced", "not traced", json!(totals.failures), &totals.failures, true);
        let unseen: Vec<String> = self.ledger.unseen.iter().map(Unseen::sentence).collect();
        list("unseen", "unseen", json!(self.ledger.unseen), &unseen, self.ledger.uncounted().next().is_some());
        // What failed as a whole was said above.
        let untraced = if totals.failures.is_empty() { &totals.untraced[..] } else { &[] };
        list("untraced", "untraced", json!(totals.untraced), untraced, !totals.refused.is_empty());
        let kernels = self.records.iter().filter_map(|record| record.kernel.as_ref());
        let absent: Vec<String> = kernels.flat_map(|kernel| kernel.absent.iter().cloned()).collect();
        list("kernel_absent", "kernel", json!(absent), &absent, true);
        let lost = totals.lost();
        let reasons: Vec<String> = totals.losses.iter().map(|(why, n)| format!("{} {why}", count(*n))).collect();
        let shown = match lost {
            0 if whole => String::new(),
            0 => "nothing".to_owned(),
            lost => format!("{} ({}); weft check says why", counted(lost, "event", "events"), reasons.join(", ")),
        };
        properties.push(Property { name: "lost_events", label: "lost", value: lost.into(), shown, alarming: lost > 0 });
        if totals.dropped_members > 0 {
            properties.push(Property {
                name: "dropped_events",
                label: "dropped",
                value: totals.dropped_events.into(),
                shown: format!(
                    "the oldest {} ({}), to keep within --max-size",
                    counted(totals.dropped_events, "event", "events"),
                    counted(totals.dropped_members, "member", "members")
                ),
                alarming: false,
            });
        }
        let (read, written) = self.ledger.percent();
        let shown = if whole { String::new() } else { self.ledger.sentence() };
        properties.push(Property {
            name: "coverage_percent",
            label: "coverage",
            value: json!({ "read": read, "written": written }),
            shown,
            alarming: false,
        });
        if totals.open {
            let shown = "processes of this run are still running; weft info shows them when they have ended".to_owned();
            properties.push(Property { name: "open", label: "open", value: true.into(), shown, alarming: false });
        }
        properties
    }
}

/// Where the wall time went.
pub fn wall_time(wall: &WallTime) -> Property {
    let whose = match wall.processes {
        0 | 1 => String::new(),
        many => format!("; mean of {}", counted(many, "process", "processes")),
    };
    // A trace of spans alone says nothing that could be split.
    let known = wall.compute + wall.file_io + wall.waiting + wall.queued > 0.0;
    Property {
        name: "wall_time",
        label: "wall time",
        value: json!(wall),
        shown: if known { format!("{}{whose}", printable(&wall.words())) } else { String::new() },
        alarming: false,
    }
}

/// How well accelerators were used.
pub fn training(training: &Training) -> Property {
    let utilisation = percent(training.accelerator_utilisation);
    Property {
        name: "training",
        label: "training",
        value: json!(training),
        shown: format!(
            "accelerator utilisation {utilisation}; {} in {} of {}",
            counted(training.steps, "step", "steps"),
            counted(training.blocks, "block", "blocks"),
            counted(training.processes, "process", "processes"),
        ),
        alarming: false,
    }
}

fn coverage_words(percent: f64) -> String {
    weftline_analysis::units::percent_floor(percent / 100.0)
}

/// The program that was started; of several supervisors, how many there are.
fn main_program(records: &[SupervisorRecord]) -> String {
    let mut programs: BTreeMap<String, usize> = BTreeMap::new();
    for record in records {
        // What a process executed last is what it was started for.
        let started = record.processes.iter().filter(|process| process.ppid == record.pid);
        let last = started.max_by_key(|process| process.started_ns);
        let label = last.map(coverage::program).filter(|label| !label.is_empty());
        *programs.entry(label.unwrap_or_else(|| "the program".to_owned())).or_default() += 1;
    }
    let texts = programs.into_iter().map(|(label, n)| if n > 1 { format!("{label} (×{n})") } else { label });
    texts.collect::<Vec<_>>().join(", ")
}

/// How the program ended: `exit status 3`, `killed by SIGKILL (signal 9)`; of several, each way with their number.
fn endings(records: &[SupervisorRecord]) -> Option<String> {
    let mut ways: BTreeMap<String, usize> = BTreeMap::new();
    for exit in records.iter().filter_map(|record| record.exit) {
        let way = Head::ending(exit);
        let way = match (exit.code, exit.signal) {
            (_, Some(signal)) => format!("killed by {way} (signal {signal})"),
            (Some(_), None) => format!("exit status {way}"),
            (None, None) => continue,
        };
        *ways.entry(way).or_default() += 1;
    }
    let many = records.len() > 1;
    let texts = ways.into_iter().map(|(way, n)| if many { format!("{way} (×{n})") } else { way });
    Some(texts.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

/// The most memory that one process had, and which.
fn peak(records: &[SupervisorRecord]) -> Option<(u64, String)> {
    let processes = records.iter().flat_map(|record| &record.processes);
    let most = processes.max_by_key(|process| process.max_rss).filter(|process| process.max_rss > 0)?;
    Some((most.max_rss, coverage::program(most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftline_format::manifest::ProcessRecord;

    #[test]
    fn all_execs_of_processes_count() {
        let image = |(pid, forked): (u32, bool)| ProcessRecord {
            pid,
            forked,
            host: "a".to_owned(),
            ..ProcessRecord::default()
        };
        let (fork, exec) = (|pid: u32| (pid, true), |pid: u32| (pid, false));
        for (images, expected) in [
            (vec![exec(1), exec(2), exec(3)], "3"),
            (vec![exec(1), exec(1), exec(2), exec(2), exec(2)], "2, 5 execs"),
            (vec![exec(1), exec(1)], "1, 2 execs"),
            // A shell and what it forks, each of which executes one program.
            (vec![exec(1), fork(2), exec(2), fork(3), exec(3)], "3"),
            // Workers that execute nothing.
            (vec![exec(1), fork(2), fork(3)], "3"),
        ] {
            let processes = images.iter().map(|one| image(*one)).collect();
            let records = [SupervisorRecord { processes, ..SupervisorRecord::default() }];
            assert_eq!(Head::new(&records).processes(), expected, "{images:?}");
        }
    }
}
