//! What a shard of a run tells, on its way to whoever puts all shards together.
//!
//! ```text
//! "WEFTPASS"   8 bytes
//! version      4 bytes, little endian
//! content      `Content`, as postcard writes it
//! sum          8 bytes, little endian: XXH64 of all before
//! ```
//!
//! Bytes come from other machines and are not believed: lists grow with what is there of them, not with what is announced; every id, layer and bin is
//! compared with what there is; sums stop at the largest number when they are merged, and are refused at the end where no run can have them. A
//! state of another run or question is refused.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use twox_hash::XxHash64;
use weftline_index::{Dictionary, Run, Shard};

use super::Plan;
use super::keys::{Id, Keys, Maps};
use crate::findings;
use crate::profiles::Ids as RecordIds;
use crate::summary;

const MAGIC: &[u8; 8] = b"WEFTPASS";
/// Version of the bytes and of all that they mean; others are refused.
const VERSION: u32 = 1;
const SUM: usize = 8;

/// Why a state cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateError {
    /// The bytes are something else.
    #[error("not the state of a pass")]
    NotAState,
    /// Another version of the program wrote them.
    #[error("the state of a pass has version {found}; this program reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// The bytes are not those that were written.
    #[error("the state of a pass is damaged: {why}")]
    Damaged {
        /// What is wrong.
        why: String,
    },
    /// Two states answer different questions, or the run has changed between them.
    #[error("states of different runs or questions: {what} differs")]
    Different {
        /// What they do not agree on.
        what: &'static str,
    },
    /// Two states hold the same rows.
    #[error("row group {group} is in two states")]
    Twice {
        /// The first one.
        group: u64,
    },
    /// Shards are missing.
    #[error("{missing} of {all} row groups are in no state")]
    Incomplete {
        /// Row groups that nobody gathered.
        missing: u64,
        /// Row groups of the run.
        all: u64,
    },
    /// It speaks of something that the run does not have.
    #[error("the state of a pass is of another run, which has {what}")]
    OtherRun {
        /// What it speaks of.
        what: String,
    },
}

/// What all states of one pass have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Frame {
    row_groups: u64,
    per_phase: Vec<(u8, u64)>,
    origin: i64,
    length_ns: i64,
    width_ns: i64,
    period_ns: i64,
    from_to: (Option<i64>, Option<i64>),
    layers: Vec<String>,
    findings: Option<findings::Agreed>,
}

impl Frame {
    pub(super) fn new(run: &Run, setting: &summary::Setting, findings: Option<findings::Agreed>) -> Frame {
        Frame {
            row_groups: run.row_groups() as u64,
            per_phase: run.times().per_phase,
            origin: setting.origin,
            length_ns: setting.length_ns,
            width_ns: setting.width_ns,
            period_ns: setting.records.axis.period,
            from_to: (setting.filter.from_ns, setting.filter.to_ns),
            layers: setting.layers.iter().map(|layer| layer.name.to_string()).collect(),
            findings,
        }
    }

    pub(super) fn row_groups(&self) -> u64 {
        self.row_groups
    }

    fn compare(&self, other: &Frame) -> Result<(), StateError> {
        let told = [
            (self.row_groups == other.row_groups && self.per_phase == other.per_phase, "the run"),
            ((self.origin, self.length_ns) == (other.origin, other.length_ns), "the time of the run"),
            (self.from_to == other.from_to, "the time that is asked for"),
            ((self.width_ns, self.period_ns) == (other.width_ns, other.period_ns), "the width of time buckets"),
            (self.layers == other.layers, "the preset"),
            (self.findings == other.findings, "the limits of the findings"),
        ];
        told.into_iter().find(|(same, _)| !same).map_or(Ok(()), |(_, what)| Err(StateError::Different { what }))
    }
}

/// Row groups: where runs of them begin and end, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Covered(Vec<(u64, u64)>);

impl Covered {
    pub(super) fn new(shard: &Shard, all: u64) -> Covered {
        let mut covered = Covered::default();
        for group in (0..all).filter(|group| shard.contains(*group as usize)) {
            match covered.0.last_mut() {
                Some(last) if last.1 == group => last.1 += 1,
                _ => covered.0.push((group, group + 1)),
            }
        }
        covered
    }

    fn is_sound(&self, all: u64) -> bool {
        let in_order = self.0.is_sorted_by(|before, after| before.1 < after.0);
        in_order && self.0.iter().all(|(from, to)| from < to && *to <= all)
    }

    fn add(&mut self, other: &Covered) -> Result<(), StateError> {
        let mut all = [self.0.as_slice(), &other.0].concat();
        all.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(all.len());
        for (from, to) in all {
            match joined.last_mut() {
                Some(last) if from < last.1 => return Err(StateError::Twice { group: from }),
                Some(last) if from == last.1 => last.1 = to,
                _ => joined.push((from, to)),
            }
        }
        self.0 = joined;
        Ok(())
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }
}

/// What is gathered, by ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Body {
    pub(super) summary: summary::Gathered,
    pub(super) findings: Option<findings::Gathered>,
    /// Records of totals whose calls the shard holds one by one, in order.
    pub(super) recorded_singly: Vec<RecordIds>,
}

impl Body {
    fn each_id(&self, each: &mut dyn FnMut(Id)) {
        self.summary.each_id(each);
        self.findings.iter().for_each(|findings| findings.each_id(each));
        for record in &self.recorded_singly {
            each(Id::Cat(record.cat));
            each(Id::Name(record.name));
            each(Id::Process(record.process));
            record.file.into_iter().for_each(|file| each(Id::File(file)));
        }
    }

    fn is_plausible(&self) -> bool {
        self.summary.is_plausible() && self.findings.iter().all(findings::Gathered::is_plausible)
    }

    fn renumbered(self, maps: &Maps) -> Body {
        let moved = |record: RecordIds| RecordIds {
            cat: maps.cat(record.cat),
            name: maps.name(record.name),
            process: maps.process(record.process),
            file: record.file.map(|file| maps.file(file)),
            ..record
        };
        Body {
            summary: self.summary.renumbered(maps),
            findings: self.findings.map(|findings| findings.renumbered(maps)),
            recorded_singly: self.recorded_singly.into_iter().map(moved).collect(),
        }
    }

    fn merge(&mut self, other: Body) {
        self.summary.merge(other.summary);
        if let (Some(own), Some(other)) = (&mut self.findings, other.findings) {
            own.merge(other);
        }
        self.recorded_singly.extend(other.recorded_singly);
        self.recorded_singly.sort_unstable();
        self.recorded_singly.dedup();
    }
}

/// What ids mean.
#[derive(Debug, Clone)]
pub(super) enum Meaning {
    /// They are those of an opened run.
    Run(Arc<Dictionary>),
    /// They are the state's own.
    Own(Keys),
}

/// All that a report gathers of a shard.
#[derive(Debug, Clone)]
pub struct State {
    pub(super) frame: Frame,
    pub(super) covered: Covered,
    pub(super) meaning: Meaning,
    pub(super) body: Body,
}

#[derive(Serialize, Deserialize)]
struct Content {
    frame: Frame,
    covered: Covered,
    keys: Keys,
    body: Body,
}

impl State {
    /// Takes up what another shard tells. The order of shards does not matter.
    pub fn merge(&mut self, other: State) -> Result<(), StateError> {
        self.frame.compare(&other.frame)?;
        self.covered.add(&other.covered)?;
        let same = match (&self.meaning, &other.meaning) {
            (Meaning::Run(own), Meaning::Run(other)) => Arc::ptr_eq(own, other),
            _ => false,
        };
        if same {
            self.body.merge(other.body);
            return Ok(());
        }
        let (mut keys, mut body) = self.take().own();
        let (other_keys, other_body) = other.own();
        let maps = keys.add(other_keys);
        body.merge(other_body.renumbered(&maps));
        (self.meaning, self.body) = (Meaning::Own(keys), body);
        Ok(())
    }

    /// Moves the content out, for what takes it by value.
    fn take(&mut self) -> State {
        let nothing = Body { summary: summary::Gathered::default(), findings: None, recorded_singly: Vec::new() };
        State {
            frame: self.frame.clone(),
            covered: self.covered.clone(),
            meaning: std::mem::replace(&mut self.meaning, Meaning::Own(Keys::default())),
            body: std::mem::replace(&mut self.body, nothing),
        }
    }

    /// With ids of its own.
    fn own(self) -> (Keys, Body) {
        match self.meaning {
            Meaning::Own(keys) => (keys, self.body),
            Meaning::Run(dictionary) => {
                let (keys, maps) = Keys::of(&dictionary, |each| self.body.each_id(each));
                (keys, self.body.renumbered(&maps))
            }
        }
    }

    /// As bytes: the same for the same shard, whoever gathered it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let State { frame, covered, .. } = self.clone();
        let (keys, body) = self.clone().own();
        let start = [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
        // Nothing in it lacks a length, and a vector takes all.
        let written = postcard::to_extend(&Content { frame, covered, keys, body }, start);
        let mut bytes = written.expect("a state can be written");
        bytes.extend_from_slice(&XxHash64::oneshot(0, &bytes).to_le_bytes());
        bytes
    }

    /// What [`State::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<State, StateError> {
        let damaged = |why: &str| StateError::Damaged { why: why.to_owned() };
        let rest = bytes.strip_prefix(MAGIC).ok_or(StateError::NotAState)?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or_else(|| damaged("it is cut"))?;
        let found = u32::from_le_bytes(*version);
        if found != VERSION {
            return Err(StateError::Version { found });
        }
        let (content, sum) = rest.split_last_chunk::<SUM>().ok_or_else(|| damaged("it is cut"))?;
        if XxHash64::oneshot(0, &bytes[..bytes.len() - SUM]) != u64::from_le_bytes(*sum) {
            return Err(damaged("its sum is wrong"));
        }
        let (Content { frame, covered, keys, body }, left) =
            postcard::take_from_bytes::<Content>(content).map_err(|error| damaged(&error.to_string()))?;
        let mut known = true;
        body.each_id(&mut |id| known &= keys.has(id));
        let told = [
            (left.is_empty(), "something is behind it"),
            (known, "it has ids without a meaning"),
            (covered.is_sound(frame.row_groups), "its row groups are not those of a run"),
            (body.summary.has_layers(frame.layers.len()), "it has other layers than it says"),
            (body.findings.is_some() == frame.findings.is_some(), "its findings are missing"),
        ];
        if let Some((_, why)) = told.into_iter().find(|(holds, _)| !holds) {
            return Err(damaged(why));
        }
        Ok(State { frame, covered, meaning: Meaning::Own(keys), body })
    }

    /// What was gathered of a whole run, with the ids of its dictionary.
    pub(super) fn whole(self, plan: &Plan<'_>) -> Result<Body, StateError> {
        plan.frame.compare(&self.frame)?;
        let (all, count) = (self.frame.row_groups, self.covered.count());
        if count != all {
            return Err(StateError::Incomplete { missing: all - count, all });
        }
        let dictionary = &plan.summary.dictionary;
        if matches!(&self.meaning, Meaning::Run(known) if Arc::ptr_eq(known, dictionary)) {
            return Ok(self.body);
        }
        let (keys, body) = self.own();
        if !body.is_plausible() {
            return Err(StateError::Damaged { why: "no run has such sums or times".to_owned() });
        }
        let maps = keys.within(dictionary)?.with_firsts(&plan.summary.process_ids);
        Ok(body.renumbered(&maps))
    }
}

impl Body {
    pub(super) fn singly(&self) -> FxHashSet<RecordIds> {
        self.recorded_singly.iter().cloned().collect()
    }
}
