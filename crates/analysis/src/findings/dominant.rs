//! What most of the wall time went to: said with every verdict, so that silence of the rules is never all that is said.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use serde::Serialize;
use weftline_calls::Activity;
use weftline_format::manifest::SupervisorRecord;

use super::Who;
use super::evidence::{Evidence, Op};
use super::times::WaitSum;
use crate::breakdown::{self, Breakdown, Split};
use crate::group::host_text;
use crate::units;

/// What time can go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Computing.
    Compute,
    /// Calls on files.
    FileIo,
    /// Waiting for somebody else.
    Waiting,
    /// Ready to run, while others had all processors.
    Queued,
    /// Not in traced calls, where nobody knows the CPU time.
    Outside,
    /// Neither CPU time nor a traced call.
    Other,
}

/// Whom or what the process waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// What kind of waiting: `pipe`, `child`, `poll` …
    pub kind: &'static str,
    /// In words: `a pipe that python3 worker.py writes to`.
    pub whom: String,
    /// Calls.
    pub calls: u64,
    /// Their time, ns.
    pub time_ns: u64,
}

/// Where the wall time went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WallTime {
    /// The job's wall time, ns.
    pub wall_ns: u64,
    /// The parts as shares of the wall time of the processes that matter, between 0 and 1. They add up to 1.
    pub compute: f64,
    /// In calls on files.
    pub file_io: f64,
    /// Waiting, for data of a training loop included.
    pub waiting: f64,
    /// Of that: for data.
    pub data: f64,
    /// Ready to run, without a processor.
    pub queued: f64,
    /// Not in traced calls, where nobody knows the CPU time: perhaps computing.
    pub outside: f64,
    /// The rest.
    pub other: f64,
    /// The process that matters; of several ranks, the longest.
    pub process: Option<Who>,
    /// How many there are.
    pub processes: u64,
    /// Whom it waited for, the longest first.
    pub waits: Vec<Wait>,
    /// What most of the time went to: compute if that has at least half of it, else the largest of the other parts.
    pub dominant: Class,
    /// The same in a few words: `reading /data/x`, `a pipe that python3 worker.py writes to`; empty where there is no more to say.
    pub mostly: String,
}

/// Waits that are told.
const SHOWN: usize = 3;

impl WallTime {
    /// Of events, with everything that is known of waits and files.
    pub(super) fn of(evidence: &Evidence) -> Option<WallTime> {
        let breakdown = &evidence.breakdown;
        let first = breakdown.lines.first()?;
        let waits = waits(evidence, first.process, &first.split);
        let mut wall = WallTime::new(breakdown, waits)?;
        wall.wall_ns = wall.wall_ns.max(evidence.wall_ns);
        wall.process = Some(evidence.who(evidence.family.ids[first.process]));
        if wall.dominant == Class::FileIo {
            wall.mostly = busiest_file(evidence).unwrap_or_default();
        }
        Some(wall)
    }

    /// Of what supervisors recorded, without a look at the events: whom or what was waited for is known only by its kind.
    pub fn of_records(records: &[SupervisorRecord]) -> Option<WallTime> {
        let processes = breakdown::of_records(records);
        let breakdown = Breakdown::of(&processes);
        let first = breakdown.lines.first()?;
        let kinds = first.split.waiting.largest_first().take(SHOWN);
        let wait = |(activity, time_ns): (Activity, u64)| Wait {
            kind: activity.key(),
            whom: in_words(activity, "", 1),
            calls: 0,
            time_ns,
        };
        WallTime::new(&breakdown, kinds.map(wait).collect())
    }

    fn new(breakdown: &Breakdown, waits: Vec<Wait>) -> Option<WallTime> {
        let split = breakdown.together();
        if split.wall_ns == 0 {
            return None;
        }
        let dominant = dominant(&split);
        let first = waits.first().filter(|_| dominant == Class::Waiting);
        Some(WallTime {
            wall_ns: breakdown.wall_ns,
            compute: split.share(split.compute_ns),
            file_io: split.share(split.file_io_ns),
            waiting: split.share(split.waiting_ns()),
            data: split.share(split.data_ns),
            queued: split.share(split.queued_ns),
            outside: split.share(split.outside_ns),
            other: split.share(split.other_ns),
            process: None,
            processes: breakdown.lines.len() as u64,
            mostly: first.map(|wait| wait.whom.clone()).unwrap_or_default(),
            waits,
            dominant,
        })
    }

    /// The share of a class.
    pub fn share(&self, class: Class) -> f64 {
        match class {
            Class::Compute => self.compute,
            Class::FileIo => self.file_io,
            Class::Waiting => self.waiting,
            Class::Queued => self.queued,
            Class::Outside => self.outside,
            Class::Other => self.other,
        }
    }

    /// The wall time of a class, ns.
    pub fn time_ns(&self, class: Class) -> u64 {
        (self.share(class) * self.wall_ns as f64).round() as u64
    }

    /// `compute 31 %, file I/O 4 %, waiting 63 % (a pipe that python3 worker.py writes to), other 2 %`
    pub fn words(&self) -> String {
        let mut out = match (self.compute, self.outside) {
            (compute, 0.0) => format!("compute {}", units::percent(compute)),
            (0.0, outside) => format!("not in traced calls {}", units::percent(outside)),
            (compute, outside) => {
                format!("compute {}, not in traced calls {}", units::percent(compute), units::percent(outside))
            }
        };
        let _ = write!(out, ", file I/O {}, waiting {}", units::percent(self.file_io), units::percent(self.waiting));
        if let Some(wait) = self.waits.first().filter(|_| self.waiting >= 0.05) {
            let _ = write!(out, " ({})", wait.whom);
        }
        if self.queued >= 0.01 {
            let _ = write!(out, ", no free processor {}", units::percent(self.queued));
        }
        let _ = write!(out, ", other {}", units::percent(self.other));
        out
    }
}

/// What most of the time went to. To compute is what a program is for, and so is to want to: only if that is less than half, something else is named.
fn dominant(split: &Split) -> Class {
    let working = split.compute_ns.saturating_add(split.queued_ns);
    if u128::from(working) * 2 >= u128::from(split.wall_ns) {
        return if split.compute_ns >= split.queued_ns { Class::Compute } else { Class::Queued };
    }
    let others = [
        (Class::FileIo, split.file_io_ns),
        (Class::Waiting, split.waiting_ns()),
        (Class::Queued, split.queued_ns),
        (Class::Outside, split.outside_ns),
        (Class::Other, split.other_ns),
    ];
    // Of equal times the first counts.
    others.into_iter().rev().max_by_key(|(_, ns)| *ns).map_or(Class::Other, |(class, _)| class)
}

/// Whether a process is one of those whose time is split.
pub(super) fn matters(evidence: &Evidence, id: u32) -> bool {
    let place = evidence.family.places[id as usize];
    evidence.breakdown.lines.iter().any(|line| place == Some(line.process))
}

/// The operation, file and program with most time in calls on files.
fn busiest_file(evidence: &Evidence) -> Option<String> {
    let own = || evidence.sums.iter().filter(|((process, _, _), _)| matters(evidence, *process));
    let mut verbs: BTreeMap<&str, u64> = BTreeMap::new();
    for ((_, _, op), tally) in own() {
        *verbs.entry(op.verb()).or_default() += tally.ns;
    }
    let (verb, _) = verbs.into_iter().max_by_key(|(_, ns)| *ns)?;
    let mut files: FxHashMap<u32, u64> = FxHashMap::default();
    let mut processes: FxHashMap<u32, u64> = FxHashMap::default();
    for ((process, file, _), tally) in own().filter(|((_, _, op), _)| op.verb() == verb) {
        *files.entry(*file).or_default() += tally.ns;
        *processes.entry(*process).or_default() += tally.ns;
    }
    let most = |sums: FxHashMap<u32, u64>| sums.into_iter().max_by_key(|(id, ns)| (*ns, std::cmp::Reverse(*id)));
    let many = files.len();
    let ((file, _), (process, _)) = (most(files)?, most(processes)?);
    let others = if many > 1 { format!(" and {} more", units::count(many as u64 - 1)) } else { String::new() };
    let program = Some(evidence.program(process)).filter(|program| !program.is_empty());
    let by = program.unwrap_or_else(|| format!("process {}", evidence.who(process).pid));
    Some(format!("{verb} {}{others} by {by}", evidence.dictionary.file(file)))
}

/// Waits for the same program or file.
#[derive(Default)]
struct Group {
    sum: WaitSum,
    /// How many children, pipes, locks these are.
    things: u64,
    /// The longest of them, and the process that it was for.
    longest: (u64, Option<usize>),
}

/// Whom a process waited for, the longest first.
fn waits(evidence: &Evidence, place: usize, split: &Split) -> Vec<Wait> {
    let of_place = |id: u32| evidence.family.places[id as usize] == Some(place);
    let peers = Peers::of(evidence);
    let mut groups: BTreeMap<(Activity, String), Group> = BTreeMap::new();
    for ((process, activity, key), sum) in evidence.waits.sums.iter().filter(|((process, _, _), _)| of_place(*process))
    {
        let (name, peer) = peers.find(*process, *activity, *key);
        let group = groups.entry((*activity, name)).or_default();
        group.sum = WaitSum { calls: group.sum.calls + sum.calls, ns: group.sum.ns.saturating_add(sum.ns) };
        group.things += 1;
        group.longest = group.longest.max((sum.ns, peer));
    }
    let mut waits: Vec<Wait> = groups
        .into_iter()
        .map(|((activity, name), group)| {
            let doing = group.longest.1.and_then(|peer| doing(evidence.breakdown.split(peer)?)).unwrap_or_default();
            Wait {
                kind: activity.key(),
                whom: format!("{}{doing}", in_words(activity, &name, group.things)),
                calls: group.sum.calls,
                time_ns: group.sum.ns,
            }
        })
        .collect();
    waits.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| a.whom.cmp(&b.whom)));
    if split.data_ns > 0 {
        // By which calls a loop waits for its data says less than that it does.
        let mostly = split.data_ns >= split.waiting_ns() / 2;
        let place = if mostly { 0 } else { waits.partition_point(|wait| wait.time_ns > split.data_ns) };
        let data = Wait { kind: "data", whom: "the next batch of data".to_owned(), calls: 0, time_ns: split.data_ns };
        waits.insert(place, data);
    }
    waits.truncate(SHOWN);
    waits
}

/// What a process did most of its life, where it did one thing.
fn doing(split: &Split) -> Option<String> {
    let parts = [(split.compute_ns, "computes"), (split.file_io_ns, "is in file I/O"), (split.waiting_ns(), "waits")];
    let (ns, words) = parts.into_iter().max_by_key(|(ns, _)| *ns)?;
    (split.share(ns) >= 0.5).then(|| format!(", which {words} {} of its time", units::percent(split.share(ns))))
}

/// Who may have been waited for.
struct Peers<'e> {
    evidence: &'e Evidence,
    /// By host and pid: the place of a process.
    children: FxHashMap<(&'e str, i64), usize>,
    /// By pipe: who wrote to it, and how much.
    writers: FxHashMap<u32, Vec<(u32, u64)>>,
}

impl<'e> Peers<'e> {
    fn of(evidence: &'e Evidence) -> Peers<'e> {
        let known = |id: u32| evidence.dictionary.process(id);
        let children = evidence.family.ids.iter().enumerate();
        let children = children.map(|(place, id)| ((host_text(known(*id)), known(*id).pid), place)).collect();
        let mut writers: FxHashMap<u32, Vec<(u32, u64)>> = FxHashMap::default();
        for ((pipe, writer), bytes) in &evidence.waits.writers {
            writers.entry(*pipe).or_default().push((*writer, *bytes));
        }
        Peers { evidence, children, writers }
    }

    /// The program or file that a wait was for, empty where nobody knows; and the process.
    fn find(&self, process: u32, activity: Activity, key: i64) -> (String, Option<usize>) {
        let evidence = self.evidence;
        match activity {
            Activity::Child => {
                let child = self.children.get(&(host_text(evidence.dictionary.process(process)), key));
                let name = child.map_or_else(String::new, |place| evidence.family.processes[*place].program.clone());
                (name, child.copied())
            }
            Activity::Pipe => {
                let own = evidence.family.places[process as usize];
                let writers = u32::try_from(key).ok().and_then(|pipe| self.writers.get(&pipe)).into_iter().flatten();
                let others = writers.filter(|(writer, _)| evidence.family.places[*writer as usize] != own);
                let most = others.max_by_key(|(writer, bytes)| (*bytes, std::cmp::Reverse(*writer)));
                let name = most.map_or_else(String::new, |(writer, _)| evidence.program(*writer));
                (name, most.and_then(|(writer, _)| evidence.family.places[*writer as usize]))
            }
            Activity::Lock if key >= 0 => (evidence.dictionary.file(key as u32).to_owned(), None),
            _ => (String::new(), None),
        }
    }
}

fn in_words(activity: Activity, name: &str, things: u64) -> String {
    let known = !name.is_empty();
    let many = things > 1;
    match activity {
        Activity::Child if known && many => format!("{} processes of {name}", units::count(things)),
        Activity::Child if known => format!("child process {name}"),
        Activity::Child => if many { "child processes" } else { "a child process" }.to_owned(),
        Activity::Pipe if known => {
            let what = if many { "pipes" } else { "a pipe" };
            format!("{what} that {name} writes to")
        }
        Activity::Pipe => if many { "pipes" } else { "a pipe" }.to_owned(),
        Activity::Socket => if many { "sockets" } else { "a socket" }.to_owned(),
        Activity::Terminal => "the terminal".to_owned(),
        Activity::Poll => "descriptors to become ready".to_owned(),
        Activity::Sleep => "its own sleeps".to_owned(),
        Activity::Thread => "its own threads".to_owned(),
        Activity::Lock if known => format!("a lock on {name}"),
        Activity::Lock => "file locks".to_owned(),
        Activity::FileIo => "files".to_owned(),
    }
}

impl Op {
    /// What is done with the file.
    fn verb(self) -> &'static str {
        match self {
            Op::Read | Op::SmallRead | Op::StreamRead => "reading",
            Op::Write | Op::SmallWrite | Op::StreamWrite | Op::Flush | Op::NoBuffer => "writing",
            Op::Copy => "copying to",
            Op::Sync => "syncing",
            Op::Open | Op::OpenCreate | Op::OpenFailed | Op::OpenSync => "opening",
            Op::Close => "closing",
            Op::StatPath | Op::StatOpen => "looking up",
            Op::Seek => "seeking in",
            Op::Metadata => "changing names or attributes of",
        }
    }
}
