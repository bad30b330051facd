//! The times of threads, gathered from events and put together with what supervisors recorded of their processes: what
//! [`crate::breakdown`] splits, and whom a process waited for.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use weftline_calls::{Activity, ActivitySums};
use weftline_format::manifest::SupervisorRecord;
use weftline_index::Dictionary;

use super::calls::Role;
use super::gathered::awaited_file;
use super::roles::Roles;
use crate::breakdown::{ProcessTimes, ThreadTimes};
use crate::group::host_text;
use crate::pass::{Id, Maps};
use crate::profiles::totals::process_ids;
use crate::{program, wire};

/// From the first event of a thread to the end of the last, and what it did in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Life {
    pub start: i64,
    pub end: i64,
    /// Whether it has spans of a training loop.
    pub runs_the_loop: bool,
    #[serde(with = "wire::activity_sums")]
    pub sums: ActivitySums,
}

impl Default for Life {
    fn default() -> Self {
        Life { start: i64::MAX, end: i64::MIN, runs_the_loop: false, sums: ActivitySums::default() }
    }
}

impl Life {
    #[inline]
    pub(crate) fn cover(&mut self, start: i64, end: i64) {
        self.start = self.start.min(start);
        self.end = self.end.max(end);
    }

    pub(crate) fn join(&mut self, other: &Life) {
        self.cover(other.start, other.end);
        self.runs_the_loop |= other.runs_the_loop;
        self.sums.merge(&other.sums);
    }

    pub(crate) fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start).max(0) as u64
    }
}

/// By process and thread.
pub(crate) type Threads = FxHashMap<(u32, i64), Life>;

/// Whom or what a process waited for: a child's pid, or a file's id; -1 where neither is known.
pub(crate) type WaitKey = (u32, Activity, i64);

/// Time in waits for the same thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WaitSum {
    pub calls: u64,
    pub ns: u64,
}

/// Waits, and who could end those for pipes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Listed", into = "Listed")]
pub(crate) struct Waits {
    pub sums: FxHashMap<WaitKey, WaitSum>,
    /// Bytes by pipe and the process that wrote them.
    pub writers: FxHashMap<(u32, u32), u64>,
}

impl Waits {
    pub(crate) fn add(&mut self, key: WaitKey, ns: u64) {
        let sum = self.sums.entry(key).or_default();
        (sum.calls, sum.ns) = (sum.calls + 1, sum.ns.saturating_add(ns));
    }

    pub(crate) fn wrote(&mut self, pipe: u32, process: u32, bytes: u64) {
        let sum = self.writers.entry((pipe, process)).or_default();
        *sum = sum.saturating_add(bytes);
    }

    pub(crate) fn join(&mut self, other: Waits) {
        for (key, more) in other.sums {
            let sum = self.sums.entry(key).or_default();
            (sum.calls, sum.ns) = (sum.calls.saturating_add(more.calls), sum.ns.saturating_add(more.ns));
        }
        other.writers.into_iter().for_each(|((pipe, process), bytes)| self.wrote(pipe, process, bytes));
    }

    pub(crate) fn each_id(&self, each: &mut dyn FnMut(Id)) {
        for (process, activity, whom) in self.sums.keys() {
            each(Id::Process(*process));
            awaited_file(*activity, *whom).into_iter().for_each(|file| each(Id::File(file)));
        }
        for (pipe, process) in self.writers.keys() {
            each(Id::File(*pipe));
            each(Id::Process(*process));
        }
    }

    pub(crate) fn is_plausible(&self) -> bool {
        wire::is_sum(self.sums.values().map(|sum| sum.calls))
            && wire::is_sum(self.sums.values().map(|sum| sum.ns))
            && wire::is_sum(self.writers.values().copied())
    }

    pub(crate) fn renumbered(self, maps: &Maps) -> Waits {
        let mut new = Waits::default();
        for ((process, activity, whom), sum) in self.sums {
            let whom = awaited_file(activity, whom).map_or(whom, |file| maps.file(file).into());
            let known = new.sums.entry((maps.process(process), activity, whom)).or_default();
            (known.calls, known.ns) = (known.calls.saturating_add(sum.calls), known.ns.saturating_add(sum.ns));
        }
        for ((pipe, process), bytes) in self.writers {
            new.wrote(maps.file(pipe), maps.process(process), bytes);
        }
        new
    }
}

/// [`Waits`] as they are written: in the order of their keys, activities as numbers.
#[derive(Serialize, Deserialize)]
struct Listed {
    /// Process, activity, whom; calls, ns.
    sums: Vec<(u32, u8, i64, u64, u64)>,
    writers: Vec<(u32, u32, u64)>,
}

impl From<Waits> for Listed {
    fn from(waits: Waits) -> Listed {
        let sum =
            |((process, activity, whom), sum): (WaitKey, WaitSum)| (process, activity as u8, whom, sum.calls, sum.ns);
        let mut sums: Vec<_> = waits.sums.into_iter().map(sum).collect();
        let mut writers: Vec<_> =
            waits.writers.into_iter().map(|((pipe, process), bytes)| (pipe, process, bytes)).collect();
        sums.sort_unstable();
        writers.sort_unstable();
        Listed { sums, writers }
    }
}

impl TryFrom<Listed> for Waits {
    type Error = &'static str;

    fn try_from(listed: Listed) -> Result<Waits, Self::Error> {
        let mut waits = Waits::default();
        for (process, activity, whom, calls, ns) in listed.sums {
            let activity = wire::activity(activity)?;
            // Neither a pid nor a file.
            if activity != Activity::Child && whom != -1 && u32::try_from(whom).is_err() {
                return Err("a wait for nothing");
            }
            waits.sums.insert((process, activity, whom), WaitSum { calls, ns });
        }
        listed.writers.into_iter().for_each(|(pipe, process, bytes)| waits.wrote(pipe, process, bytes));
        Ok(waits)
    }
}

/// The processes of a run, all execs of one together, in the order of their ids; and per id its place among them.
pub(crate) struct Family {
    pub processes: Vec<ProcessTimes>,
    /// By the id of the index; nothing for those without events.
    pub places: Vec<Option<usize>>,
    /// By place: the id of the exec that lived longest; of a process that recorded none, of what else tells of it.
    pub ids: Vec<u32>,
}

impl Family {
    /// `window`: only this part of the time counts.
    pub(crate) fn of(
        dictionary: &Dictionary,
        threads: &Threads,
        roles: &Roles,
        records: &[SupervisorRecord],
        window: (i64, i64),
    ) -> Family {
        let firsts = process_ids(dictionary);
        let mut family = Family { processes: Vec::new(), places: vec![None; firsts.len()], ids: Vec::new() };
        let mut ids: Vec<u32> = threads.keys().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut by_first: FxHashMap<u32, usize> = FxHashMap::default();
        for id in &ids {
            let place = *by_first.entry(firsts[*id as usize]).or_insert_with(|| {
                family.ids.push(*id);
                family.processes.push(ProcessTimes { start: i64::MAX, end: i64::MIN, ..ProcessTimes::default() });
                family.processes.len() - 1
            });
            family.places[*id as usize] = Some(place);
        }
        family.add_threads(dictionary, threads);
        family.add_records(dictionary, records, window);
        for (id, place) in family.places.iter().enumerate() {
            let Some(place) = place else { continue };
            let process = &mut family.processes[*place];
            if let Some(compute) = roles.get(id as u32, Role::Compute) {
                process.compute_ns = Some(process.compute_ns.unwrap_or(0).saturating_add(compute.ns));
            }
            if let Some(fetch) = roles.get(id as u32, Role::Fetch) {
                process.fetch_ns = process.fetch_ns.saturating_add(fetch.ns.saturating_sub(fetch.computing_ns));
            }
        }
        family.name(dictionary);
        family
    }

    fn add_threads(&mut self, dictionary: &Dictionary, threads: &Threads) {
        let mut all: FxHashMap<(usize, i64), Life> = FxHashMap::default();
        // Only what a process executes has a name: not what it is between vfork and exec, nor always what the kernel reports of it.
        let mut longest = vec![(false, false, 0); self.processes.len()];
        let mut lives: FxHashMap<u32, Life> = FxHashMap::default();
        for ((id, tid), life) in threads {
            let Some(place) = self.places[*id as usize] else { continue };
            all.entry((place, *tid)).or_default().join(life);
            lives.entry(*id).or_default().join(life);
        }
        let mut lives: Vec<(u32, Life)> = lives.into_iter().collect();
        lives.sort_unstable_by_key(|(id, _)| *id);
        for (id, life) in lives {
            let Some(place) = self.places[id as usize] else { continue };
            let process = dictionary.process(id);
            let named = !program::label(&process.command, &process.exe, &process.name).is_empty();
            let rank = (named, !process.nonce.is_empty(), life.ns());
            if rank > longest[place] {
                (longest[place], self.ids[place]) = (rank, id);
            }
        }
        let mut all: Vec<((usize, i64), Life)> = all.into_iter().collect();
        // The first thread stands first, where no thread has the number of its process.
        all.sort_unstable_by_key(|((place, tid), life)| (*place, life.start, *tid));
        for ((place, tid), life) in all {
            let pid = dictionary.process(self.ids[place]).pid;
            let process = &mut self.processes[place];
            (process.start, process.end) = (process.start.min(life.start), process.end.max(life.end));
            process.threads.push(ThreadTimes {
                is_main: tid == pid,
                runs_the_loop: life.runs_the_loop,
                sums: life.sums,
            });
        }
        for process in &mut self.processes {
            if !process.threads.iter().any(|thread| thread.is_main)
                && let Some(first) = process.threads.first_mut()
            {
                first.is_main = true;
            }
        }
    }

    /// Takes up beginnings, ends and CPU times. The latter are those of the process, whatever it executed before.
    fn add_records(&mut self, dictionary: &Dictionary, records: &[SupervisorRecord], window: (i64, i64)) {
        let by_nonce: FxHashMap<(i64, &str), usize> = self
            .places
            .iter()
            .enumerate()
            .filter_map(|(id, place)| {
                let process = dictionary.process(id as u32);
                (!process.nonce.is_empty()).then_some(((process.pid, process.nonce.as_str()), (*place)?))
            })
            .collect();
        for record in records.iter().flat_map(|record| &record.processes) {
            let Some(place) = by_nonce.get(&(i64::from(record.pid), record.nonce.as_str())) else { continue };
            let process = &mut self.processes[*place];
            if record.started_ns > 0 {
                process.start = process.start.min(record.started_ns);
            }
            process.end = process.end.max(record.ended_ns);
            // Where only a part of the time is asked for, nobody knows the CPU time of it.
            if window == (i64::MIN, i64::MAX) {
                let more = |known: &mut Option<u64>, ns: u64| {
                    *known = (ns > 0 || known.is_some()).then(|| known.unwrap_or(0).max(ns));
                };
                more(&mut process.cpu_ns, record.cpu_ns);
                more(&mut process.main_cpu_ns, record.main_cpu_ns);
                process.main_queued_ns = process.main_queued_ns.max(record.main_queued_ns);
            }
        }
        for process in &mut self.processes {
            (process.start, process.end) = (process.start.max(window.0), process.end.min(window.1));
        }
    }

    fn name(&mut self, dictionary: &Dictionary) {
        let place_of: FxHashMap<(&str, i64), usize> = self
            .ids
            .iter()
            .enumerate()
            .map(|(place, id)| ((host_text(dictionary.process(*id)), dictionary.process(*id).pid), place))
            .collect();
        for (place, id) in self.ids.iter().enumerate() {
            let known = dictionary.process(*id);
            let parent = known.ppid.and_then(|ppid| place_of.get(&(host_text(known), ppid)).copied());
            let process = &mut self.processes[place];
            process.program = program::label(&known.command, &known.exe, &known.name);
            process.rank = known.rank;
            process.parent = parent.filter(|parent| *parent != place);
        }
    }
}
