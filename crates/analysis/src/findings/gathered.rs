//! What the findings gather of a shard: integers and ranges of time that can be added to those of other shards in any order, and travel (`crate::pass`).

use serde::{Deserialize, Serialize};
use weftline_calls::Activity;

use super::roles::Seen;
use super::sequences::Sequences;
use super::tally::{Sums, Tally, add_sums};
use super::times::{Threads, Waits};
use super::training::{Marks, Steps};
use crate::pass::{Id, Maps};
use crate::wire;

/// See the module.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Gathered {
    /// By process, file and operation.
    #[serde(with = "wire::sorted")]
    pub sums: Sums,
    /// Calls on files by slice of the run, program (the first process that runs it) and operation.
    #[serde(with = "wire::sorted")]
    pub slices: Sums,
    #[serde(with = "wire::sorted")]
    pub threads: Threads,
    pub waits: Waits,
    /// Spans of category `compute`, and whole steps of loops that have none.
    pub computing: Steps,
    pub stepping: Steps,
    /// Evaluations and beginnings of epochs.
    pub marks: Marks,
    pub roles: Seen,
    pub sequences: Sequences,
}

impl Gathered {
    pub(crate) fn merge(&mut self, other: Gathered) {
        add_sums(&mut self.sums, other.sums);
        add_sums(&mut self.slices, other.slices);
        other.threads.into_iter().for_each(|(key, life)| self.threads.entry(key).or_default().join(&life));
        self.waits.join(other.waits);
        self.computing.join(other.computing);
        self.stepping.join(other.stepping);
        self.marks.join(other.marks);
        self.roles.join(other.roles);
        self.sequences.merge(other.sequences);
    }

    /// Shows all ids that something is known of.
    pub(crate) fn each_id(&self, each: &mut dyn FnMut(Id)) {
        for (process, file, _) in self.sums.keys() {
            each(Id::Process(*process));
            each(Id::File(*file));
        }
        self.slices.keys().for_each(|(_, program, _)| each(Id::Process(*program)));
        self.threads.keys().for_each(|(process, _)| each(Id::Process(*process)));
        self.waits.each_id(each);
        self.computing.each_process(&mut |id| each(Id::Process(id)));
        self.stepping.each_process(&mut |id| each(Id::Process(id)));
        self.marks.each_process(&mut |id| each(Id::Process(id)));
        self.roles.each_process(&mut |id| each(Id::Process(id)));
        for ((process, file), _) in &self.sequences.patterns {
            each(Id::Process(*process));
            each(Id::File(*file));
        }
    }

    /// Exchanges all ids. Several may become one.
    pub(crate) fn renumbered(self, maps: &Maps) -> Gathered {
        let mut new = Gathered::default();
        let moved = |((process, file, op), tally)| ((maps.process(process), maps.file(file), op), tally);
        add_sums(&mut new.sums, self.sums.into_iter().map(moved));
        let moved = |((slice, program, op), tally)| ((slice, maps.process(program), op), tally);
        add_sums(&mut new.slices, self.slices.into_iter().map(moved));
        for ((process, tid), life) in self.threads {
            new.threads.entry((maps.process(process), tid)).or_default().join(&life);
        }
        Gathered {
            waits: self.waits.renumbered(maps),
            computing: self.computing.renumbered(maps),
            stepping: self.stepping.renumbered(maps),
            marks: self.marks.renumbered(maps),
            roles: self.roles.renumbered(maps),
            sequences: self.sequences.renumbered(maps),
            ..new
        }
    }
}

impl Gathered {
    /// Whether sums and times are such as a run can have.
    pub(crate) fn is_plausible(&self) -> bool {
        let tallies = |sums: &Sums| {
            let sum = |of: fn(&Tally) -> u64| wire::is_sum(sums.values().map(of));
            sums.values().all(|tally| wire::is_range(tally.start, tally.end))
                && sum(|tally| tally.calls)
                && sum(|tally| tally.bytes)
                && sum(|tally| tally.ns)
        };
        tallies(&self.sums)
            && tallies(&self.slices)
            && self.threads.values().all(|life| wire::is_range(life.start, life.end))
            && wire::is_sum(self.threads.values().map(|life| life.sums.total()))
            && self.waits.is_plausible()
            && self.computing.is_plausible()
            && self.stepping.is_plausible()
            && self.marks.is_plausible()
            && self.roles.is_plausible()
            && self.sequences.is_plausible()
    }
}

/// Whether what was waited for is a file: of a child it is the pid.
pub(super) fn awaited_file(activity: Activity, whom: i64) -> Option<u32> {
    if activity == Activity::Child { None } else { u32::try_from(whom).ok() }
}
