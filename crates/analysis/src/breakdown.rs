//! Where the wall time of a job went: computing, file I/O, waiting, or something that no hook sees.
//!
//! A job is as long as the process that matters. That is the program that was started; if it only waits for a long-lived child, or for a
//! descendant of the same program that used more CPU, it is that one. In a parallel job each rank has its own. Within the process the main
//! thread matters, or the thread with the spans of a training loop. Its time has these parts:
//!
//! - **file I/O**: in calls on files;
//! - **waiting**: in calls that wait: for a child, a pipe, a socket, a thread, descriptors, time ([`Activity`]);
//! - **compute**: the remainder, at most the thread's CPU time; if the program has spans of category `compute`, the time in them;
//! - **queued**: ready to run outside of calls on files, but other threads used all processors;
//! - **outside**: not in traced calls, if the CPU time is unknown (foreign traces, a part of a run's time) and no span marks it as
//!   computing;
//! - **other**: the rest: locks, page faults, a GPU, calls that bypass the C library.
//!
//! While the main thread waits for its own threads, their work counts: their CPU time as compute, the I/O of the busiest as file I/O. So a
//! pool of idle threads changes nothing, and a program in which threads do all the work is not "waiting".
//!
//! The costs of findings are measured on the same lines ([`Breakdown::cost`]): seconds of wall time, never sums over threads or processes.

use std::collections::BTreeMap;

use weftline_calls::{Activity, ActivitySums};
use weftline_format::manifest::SupervisorRecord;

use crate::program;

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Whether it is the process's first.
    pub is_main: bool,
    /// Whether it has the spans of a training loop.
    pub runs_the_loop: bool,
    /// Time in calls.
    pub sums: ActivitySums,
}

/// A process, all its execs together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    /// Its program, as [`crate::program`] labels it.
    pub program: String,
    /// Its rank within a parallel job.
    pub rank: Option<i64>,
    /// Its parent's place in the list.
    pub parent: Option<usize>,
    /// First and last time that is known of it, ns.
    pub start: i64,
    /// The last one.
    pub end: i64,
    /// CPU time, where it is known.
    pub cpu_ns: Option<u64>,
    /// CPU time of its main thread.
    pub main_cpu_ns: Option<u64>,
    /// Time in which its main thread was ready to run and had no processor.
    pub main_queued_ns: u64,
    /// Its threads.
    pub threads: Vec<ThreadTimes>,
    /// Wall time in spans of category `compute`; nothing where it has none.
    pub compute_ns: Option<u64>,
    /// Wall time in which its training loop waited for data and computed nothing.
    pub fetch_ns: u64,
}

/// A stretch of wall time, split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// All of it, ns. The parts add up to this.
    pub wall_ns: u64,
    /// Computing.
    pub compute_ns: u64,
    /// In calls on files.
    pub file_io_ns: u64,
    /// Waiting for data of a training loop; not in `waiting`.
    pub data_ns: u64,
    /// Waiting for others, by whom; no file I/O is in it.
    pub waiting: ActivitySums,
    /// Ready to run, without a processor.
    pub queued_ns: u64,
    /// Not in traced calls, of a process whose CPU time nobody knows: perhaps computing.
    pub outside_ns: u64,
    /// What is left.
    pub other_ns: u64,
}

impl Split {
    /// All waiting, for data included.
    pub fn waiting_ns(&self) -> u64 {
        self.waiting.waiting().saturating_add(self.data_ns)
    }

    /// A part of it between 0 and 1.
    pub fn share(&self, ns: u64) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { (ns as f64 / self.wall_ns as f64).min(1.0) }
    }

    /// Time in which helpers can have worked for it.
    fn idle_ns(&self) -> u64 {
        self.waiting_ns().saturating_add(self.other_ns)
    }

    /// Time in which it did nothing but wait for others to end: what a launcher does. A process that takes something from others through pipes or
    /// sockets, or asks for it, has work of its own.
    fn stood_by_ns(&self) -> u64 {
        let ends = [Activity::Child, Activity::Thread, Activity::Sleep].map(|activity| self.waiting.get(activity));
        ends.into_iter().fold(self.other_ns, u64::saturating_add)
    }
}

/// A process that matters.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its place in the list of processes.
    pub process: usize,
    /// The one that was started, from which this one descends.
    pub root: usize,
    /// Its wall time.
    pub split: Split,
}

/// Where the wall time went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Breakdown {
    /// Processes that matter: one, or one per rank; the longest first.
    pub lines: Vec<Line>,
    /// The longest of them, ns.
    pub wall_ns: u64,
    /// Per process: its line.
    owners: Vec<usize>,
    /// Per process: what a second in its calls on files is worth in wall time; below one where its threads do I/O side by side.
    io_scales: Vec<f64>,
    /// Per process: its life, and how it is split.
    lives: Vec<(i64, i64)>,
    splits: Vec<Split>,
}

/// A child takes its parent's place if it lived for this part of the parent's life …
const COVERS: f64 = 0.7;
/// … or for this part, if it is the same program and used more CPU.
const COVERS_AS_SAME: f64 = 0.3;

impl Breakdown {
    /// Splits the time of a job's processes.
    pub fn of(processes: &[ProcessTimes]) -> Breakdown {
        let splits: Vec<(Split, f64)> = processes.iter().map(split).collect();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); processes.len()];
        for (place, process) in processes.iter().enumerate() {
            process.parent.into_iter().for_each(|parent| children[parent].push(place));
        }
        let mut lines: Vec<Line> = starts(processes)
            .into_iter()
            .map(|root| {
                let process = descend(processes, &children, &splits, root);
                Line { process, root, split: lengthened(splits[process].0, splits[root].0) }
            })
            .collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(line.split.wall_ns), line.process));
        Breakdown {
            wall_ns: lines.first().map_or(0, |line| line.split.wall_ns),
            owners: owners(processes, &lines),
            io_scales: splits.iter().map(|(_, scale)| *scale).collect(),
            lives: processes.iter().map(|process| (process.start, process.end)).collect(),
            splits: splits.into_iter().map(|(split, _)| split).collect(),
            lines,
        }
    }

    /// The split of all lines together.
    pub fn together(&self) -> Split {
        let mut sum = Split::default();
        for line in &self.lines {
            let split = &line.split;
            sum.wall_ns = sum.wall_ns.saturating_add(split.wall_ns);
            sum.compute_ns = sum.compute_ns.saturating_add(split.compute_ns);
            sum.file_io_ns = sum.file_io_ns.saturating_add(split.file_io_ns);
            sum.data_ns = sum.data_ns.saturating_add(split.data_ns);
            sum.waiting.merge(&split.waiting);
            sum.queued_ns = sum.queued_ns.saturating_add(split.queued_ns);
            sum.outside_ns = sum.outside_ns.saturating_add(split.outside_ns);
            sum.other_ns = sum.other_ns.saturating_add(split.other_ns);
        }
        sum
    }

    /// The line that a process works for, by its place in the list.
    pub fn owner(&self, process: usize) -> Option<&Line> {
        self.owners.get(process).and_then(|line| self.lines.get(*line))
    }

    /// The split of a process's own life, by its place in the list.
    pub fn split(&self, process: usize) -> Option<&Split> {
        self.splits.get(process)
    }

    /// What calls on files cost in wall time, given their time by process; the largest of all lines. A helper costs as much as its line waits: if
    /// the work of helpers is hidden behind computing, it costs nothing. Helpers that run side by side share the cost.
    pub fn cost(&self, calls: impl IntoIterator<Item = (usize, u64)>) -> u64 {
        let scaled = calls.into_iter().filter_map(|(process, ns)| {
            let scale = self.io_scales.get(process).copied()?;
            Some((process, (ns as f64 * scale) as u64))
        });
        self.wall_cost(scaled)
    }

    /// The same for time that is wall time of each process already.
    pub fn wall_cost(&self, times: impl IntoIterator<Item = (usize, u64)>) -> u64 {
        let mut own = vec![0u64; self.lines.len()];
        let mut helpers: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.lines.len()];
        for (process, ns) in times {
            let Some(line) = self.owners.get(process).copied().filter(|line| *line < self.lines.len()) else {
                continue;
            };
            if self.lines[line].process == process {
                own[line] = own[line].saturating_add(ns);
            } else {
                helpers[line].push((process, ns));
            }
        }
        let costs = self.lines.iter().zip(own).zip(helpers).map(|((line, own), helpers)| {
            let beside = self.side_by_side(&helpers).min(line.split.idle_ns());
            own.saturating_add(beside).min(line.split.wall_ns)
        });
        costs.max().unwrap_or(0)
    }

    /// The time of helpers as wall time: their sum over how many of them lived at once.
    fn side_by_side(&self, helpers: &[(usize, u64)]) -> u64 {
        let mut lives: Vec<(i64, i64)> = helpers.iter().map(|(process, _)| self.lives[*process]).collect();
        lives.sort_unstable();
        lives.dedup();
        let sum: i128 = lives.iter().map(|(start, end)| i128::from(*end) - i128::from(*start)).sum();
        let (mut union, mut reached) = (0i128, i64::MIN);
        for (start, end) in lives {
            union += (i128::from(end) - i128::from(start.max(reached))).max(0);
            reached = reached.max(end);
        }
        let time: u128 = helpers.iter().map(|(_, ns)| u128::from(*ns)).sum();
        let at_once = if union > 0 { (sum as f64 / union as f64).max(1.0) } else { 1.0 };
        (time as f64 / at_once) as u64
    }
}

/// The processes of a run as its supervisors recorded them, each with its main thread alone.
pub fn of_records(records: &[SupervisorRecord]) -> Vec<ProcessTimes> {
    type Key<'r> = (&'r str, u64, u32, u64);
    let mut places: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut processes: Vec<ProcessTimes> = Vec::new();
    let mut parents: Vec<u32> = Vec::new();
    let mut longest: Vec<i64> = Vec::new();
    let traced = records.iter().flat_map(|record| &record.processes).filter(|image| image.started_ns > 0);
    for image in traced {
        let place = *places.entry((&image.host, image.pidns, image.pid, image.start)).or_insert_with(|| {
            processes.push(ProcessTimes { start: i64::MAX, end: i64::MIN, ..ProcessTimes::default() });
            parents.push(image.ppid);
            longest.push(-1);
            processes.len() - 1
        });
        let process = &mut processes[place];
        let end = image.ended_ns.max(image.started_ns);
        (process.start, process.end) = (process.start.min(image.started_ns), process.end.max(end));
        let life = end - image.started_ns;
        if life > longest[place] {
            longest[place] = life;
            process.program = program::label(&image.command, &image.exe, "");
        }
        process.rank = process.rank.or(image.rank.map(i64::from));
        // The kernel counts the CPU time of a process, whatever it executed before.
        process.cpu_ns = process.cpu_ns.max(Some(image.cpu_ns).filter(|ns| *ns > 0));
        process.main_cpu_ns = process.main_cpu_ns.max(Some(image.main_cpu_ns).filter(|ns| *ns > 0));
        process.main_queued_ns = process.main_queued_ns.max(image.main_queued_ns);
        if process.threads.is_empty() {
            process.threads.push(ThreadTimes { is_main: true, ..ThreadTimes::default() });
        }
        for activity in Activity::ALL {
            let ns = image.main_ns.get(activity.key()).copied().unwrap_or(0);
            process.threads[0].sums.add(activity, ns);
        }
    }
    let by_pid: BTreeMap<(&str, u64, u32), usize> =
        places.iter().map(|((host, namespace, pid, _), place)| ((*host, *namespace, *pid), *place)).collect();
    for ((host, namespace, _, _), place) in &places {
        let parent = by_pid.get(&(*host, *namespace, parents[*place])).copied();
        processes[*place].parent = parent.filter(|parent| parent != place);
    }
    processes
}

/// The processes from which lines start: ranks, and else those that nobody in the list started.
fn starts(processes: &[ProcessTimes]) -> Vec<usize> {
    let above = |place: usize| ancestors(processes, place).skip(1);
    let is_rank = |place: usize| {
        let parent = processes[place].parent.and_then(|parent| processes[parent].rank);
        processes[place].rank.is_some() && parent != processes[place].rank
    };
    let ranks: Vec<usize> = (0..processes.len()).filter(|place| is_rank(*place)).collect();
    let mut launchers = vec![false; processes.len()];
    ranks.iter().flat_map(|rank| above(*rank)).for_each(|place| launchers[place] = true);
    let roots = (0..processes.len()).filter(|place| processes[*place].parent.is_none() && !launchers[*place]);
    let mut all: Vec<usize> = roots.chain(ranks.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A process and those above it. Parents that go in a circle end it.
fn ancestors(processes: &[ProcessTimes], place: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(place), |place| processes[*place].parent).take(processes.len())
}

/// The process that matters below one that was started. A process that runs a training loop matters itself, however long it waits.
fn descend(processes: &[ProcessTimes], children: &[Vec<usize>], splits: &[(Split, f64)], root: usize) -> usize {
    let life = |place: usize| splits[place].0.wall_ns;
    let cpu = |place: usize| processes[place].cpu_ns.unwrap_or(splits[place].0.compute_ns + splits[place].0.outside_ns);
    let busy = |place: usize| cpu(place).saturating_add(splits[place].0.file_io_ns);
    let mut place = root;
    for _ in 0..processes.len() {
        let own = &splits[place].0;
        if processes[place].threads.iter().any(|thread| thread.runs_the_loop) {
            break;
        }
        let stands_by = own.stood_by_ns();
        let mostly_idle = stands_by as f64 >= COVERS * own.wall_ns as f64;
        let takes_over = |child: &usize| {
            let part = life(*child) as f64 / own.wall_ns.max(1) as f64;
            let same = processes[*child].program == processes[place].program;
            mostly_idle && part >= COVERS && busy(*child) > busy(place)
                || same && part >= COVERS_AS_SAME && stands_by > own.wall_ns / 2 && cpu(*child) > cpu(place)
        };
        let candidates = children[place].iter().copied().filter(takes_over);
        match candidates.max_by_key(|child| (busy(*child), std::cmp::Reverse(*child))) {
            Some(child) => place = child,
            None => break,
        }
    }
    place
}

/// A split made as long as that of the process that was started, with what this one did itself.
fn lengthened(mut split: Split, root: Split) -> Split {
    let mut left = root.wall_ns.saturating_sub(split.wall_ns);
    split.wall_ns = split.wall_ns.saturating_add(left);
    for (part, own) in [
        (&mut split.compute_ns, root.compute_ns),
        (&mut split.file_io_ns, root.file_io_ns),
        (&mut split.outside_ns, root.outside_ns),
    ] {
        let more = own.min(left);
        *part = part.saturating_add(more);
        left -= more;
    }
    split.other_ns = split.other_ns.saturating_add(left);
    split
}

/// Per process: the line that it works for.
fn owners(processes: &[ProcessTimes], lines: &[Line]) -> Vec<usize> {
    let mut known = vec![usize::MAX; processes.len()];
    // From a line up to the process that was started; of several lines below one launcher, the longest has it.
    for (number, line) in lines.iter().enumerate().rev() {
        for place in ancestors(processes, line.process) {
            known[place] = number;
            if place == line.root {
                break;
            }
        }
    }
    (0..processes.len())
        .map(|place| {
            ancestors(processes, place).map(|above| known[above]).find(|line| *line != usize::MAX).unwrap_or(0)
        })
        .collect()
}

/// The split of a process's life, and what a second in its calls on files is worth.
fn split(process: &ProcessTimes) -> (Split, f64) {
    let wall_ns = process.end.saturating_sub(process.start).max(0) as u64;
    let matters = |thread: &&ThreadTimes| (thread.runs_the_loop, thread.is_main);
    let Some(own) = process.threads.iter().max_by_key(matters) else {
        return (Split { wall_ns, other_ns: wall_ns, ..Split::default() }, 1.0);
    };
    let mut room = Room(wall_ns);
    let mut file_io_ns = room.take(own.sums.get(Activity::FileIo));
    let mut compute_ns = process.compute_ns.map_or(0, |compute| room.take(compute));
    let mut waiting = ActivitySums::default();
    for (activity, ns) in own.sums.largest_first().filter(|(activity, _)| activity.is_waiting()) {
        waiting.add(activity, room.take(ns));
    }
    let own_cpu = if own.is_main { process.main_cpu_ns.or(process.cpu_ns) } else { process.cpu_ns };
    let mut outside_ns = 0;
    match (process.compute_ns, own_cpu) {
        (None, Some(cpu)) => compute_ns = room.take(cpu),
        (None, None) => outside_ns = room.take(u64::MAX),
        (Some(_), _) => {}
    }
    let mut queued_ns = 0;
    if own.is_main {
        queued_ns = room.take(process.main_queued_ns);
        // What is left of it was within calls. A wait that lasted longer because the thread had no processor was not for its peer any more. A call
        // on a file keeps its time: making fewer of them saves all of it, and it is what the program itself measures.
        let within = process.main_queued_ns - queued_ns;
        let in_waits = waiting.waiting();
        let in_calls = file_io_ns.saturating_add(in_waits);
        let of_waits = (u128::from(within) * u128::from(in_waits) / u128::from(in_calls.max(1))) as u64;
        let (kept, moved) = less(waiting, of_waits, |_| true);
        waiting = kept;
        queued_ns = queued_ns.saturating_add(moved);
    }
    let mut data_ns = 0;
    if process.fetch_ns > 0 {
        let mut unexplained = room.take(process.fetch_ns);
        let of_outside = outside_ns.min(process.fetch_ns - unexplained);
        (outside_ns, unexplained) = (outside_ns - of_outside, unexplained + of_outside);
        let (kept, moved) = less(waiting, process.fetch_ns - unexplained, |_| true);
        (waiting, data_ns) = (kept, unexplained + moved);
    }
    // What other threads did while this one waited for them, or for a lock that they held.
    let others_cpu = process.cpu_ns.unwrap_or(0).saturating_sub(own_cpu.unwrap_or(u64::MAX));
    let others = process.threads.iter().filter(|thread| !std::ptr::eq(*thread, own));
    let others_io = others.map(|thread| thread.sums.get(Activity::FileIo)).max().unwrap_or(0);
    for (ns, part) in [(others_cpu, &mut compute_ns), (others_io, &mut file_io_ns)] {
        let (kept, for_threads) = less(waiting, ns, |activity| activity == Activity::Thread);
        waiting = kept;
        *part = part.saturating_add(for_threads).saturating_add(room.take(ns - for_threads));
    }
    let all_io = process.threads.iter().fold(0u64, |sum, thread| sum.saturating_add(thread.sums.get(Activity::FileIo)));
    let io_scale = if all_io == 0 { 1.0 } else { (file_io_ns as f64 / all_io as f64).min(1.0) };
    (Split { wall_ns, compute_ns, file_io_ns, data_ns, waiting, queued_ns, outside_ns, other_ns: room.0 }, io_scale)
}

/// Time that is not explained yet.
struct Room(u64);

impl Room {
    fn take(&mut self, ns: u64) -> u64 {
        let taken = ns.min(self.0);
        self.0 -= taken;
        taken
    }
}

/// Times less `ns` of some activities, the longest first; what was taken away.
fn less(times: ActivitySums, ns: u64, of: impl Fn(Activity) -> bool) -> (ActivitySums, u64) {
    let (mut kept, mut left) = (ActivitySums::default(), ns);
    for (activity, time) in times.largest_first() {
        let taken = if of(activity) { time.min(left) } else { 0 };
        left -= taken;
        kept.add(activity, time - taken);
    }
    (kept, ns - left)
}

#[cfg(test)]
mod tests;
