//! What a report asks of a run, in one planned pass over its events.
//!
//! The summary and the findings say which columns they need; each row group that the question's filter lets through is read once, with all of them. Sums
//! do not mind the order in which threads see row groups; what does (`findings::sequences`) is followed in the order of the files beside it.
//!
//! | step | does |
//! |---|---|
//! | [`gather`] | reads the row groups of a [`Shard`] and makes a [`State`] of them |
//! | [`State::merge`] | puts the states of two shards together, in any order |
//! | [`State::to_bytes`], [`State::from_bytes`] | let a state travel; ids are exchanged for what they mean on the way |
//! | [`conclude`] | makes the summary and the verdict of the state of all shards |
//!
//! [`report`] is the first and the last of these. Several machines that share a run each open it, so that they agree on its row groups, its origin and its
//! layers, and gather a shard each; one of them merges and concludes. The result is the same, to the byte, however the run was cut, with one
//! exception: **calls that are followed in order**. Jumps, seeks that move nothing and bytes that are read back after writing are told from what a
//! process did before, so all row groups of a process belong on one shard; [`Run::shards`] cuts so. Where a shard ends within a process, its first
//! call on each open file behind the cut is no jump, bytes that it wrote before the cut and reads behind it are not seen, and calls that name no
//! offset (traces of DFTracer) are taken to go on at the start of their file until the next seek. The limit of files that are followed at once
//! (`limits.streams`) holds per shard. Records that the tracer summed up itself are few: everybody reads those of the whole run.
//!
//! # Memory, and what is read twice
//!
//! Memory depends on what is told apart (processes, files, open streams), not on the number of events, but for **ranges of time**: the length of a union
//! needs all its ranges. Those of up to 2 Mi spans are kept, 16 bytes per layer and span. Of more, seven columns are read again for the wall times of
//! layers, window by window of time; and once more for the parts of a training job, if more than 2 Mi spans belong to those. On a run of 10 M
//! spans whose index has 35.4 MB that is 34 MB of pages: 3.4 bytes per span, read twice as all pages are, to compare their sums and to take their
//! rows. The report as a whole reads 141 MB (2.0 s of CPU time).
//!
//! One reading cannot do without: files are read one after the other, and a file is a process. The wall time in which *any* process was in a layer, told
//! from the ranges of one process and then from those of the next, is the size of an intersection of two sets of which the first is gone; whoever
//! tells it exactly must have kept that set, so memory would grow with the number of spans, whatever the encoding. Within a process it is no
//! better: a span is written when it ends, so the one that is around all others comes last. Read in the order of time instead, pages of all
//! processes would have to be open at once, and calls could not be followed in the order of their file.
//!
//! A shard that is not the whole run keeps ranges that others may overlap: those of processes that are cut, and per layer the union of all others. They
//! take 16 bytes each, and a few in a state that travels.

mod keys;
mod state;

use weftline_index::{Run, Shard};

use crate::Result;
use crate::findings::{self, Config, Gathering, Verdict, judge};
use crate::summary::{self, Question, Ranges, SPANS_AT_ONCE, Summary};

pub(crate) use keys::{Id, Maps};
use state::{Body, Covered, Frame, Meaning};
pub use state::{State, StateError};

/// What is known before events are read.
struct Plan<'c> {
    summary: summary::Setting,
    findings: Option<(findings::Setting, &'c Config)>,
    frame: Frame,
    /// Spans whose ranges are kept at once.
    at_once: u64,
}

impl<'c> Plan<'c> {
    fn new(run: &Run, question: &Question, rules: Option<&'c Config>) -> Result<Plan<'c>> {
        run.prepare()?;
        let summary = summary::Setting::new(run, question)?;
        let findings = rules.map(|config| (findings::Setting::new(run, config, summary.filter.clone()), config));
        let agreed = findings.as_ref().map(|(setting, config)| setting.agreed(config));
        let frame = Frame::new(run, &summary, agreed);
        Ok(Plan { summary, findings, frame, at_once: SPANS_AT_ONCE })
    }

    fn gather(&self, run: &Run, shard: &Shard) -> Result<State> {
        let ranges = Ranges::of(run, shard, self.at_once);
        let gathering = self.findings.as_ref().map(|(setting, config)| Gathering::new(setting, config, self.at_once));
        let (summary, beside) = self.summary.gather(run, shard, &ranges, gathering.as_ref())?;
        let findings = match gathering {
            Some(gathering) => Some(gathering.finish(beside, run, shard, &ranges)?),
            None => None,
        };
        let singly = self.summary.records.recorded_singly(run, shard, &self.summary.classes)?;
        let mut recorded_singly: Vec<_> = singly.into_iter().collect();
        recorded_singly.sort_unstable();
        Ok(State {
            frame: self.frame.clone(),
            covered: Covered::new(shard, self.frame.row_groups()),
            meaning: Meaning::Run(self.summary.dictionary.clone()),
            body: Body { summary, findings, recorded_singly },
        })
    }

    fn conclude(self, run: &Run, question: &Question, state: State) -> Result<(Summary, Verdict)> {
        let body = state.whole(&self)?;
        let totals = self.summary.records.clone().without(&body.singly());
        let summary = self.summary.conclude(run, question, body.summary, &totals);
        let verdict = match self.findings.zip(body.findings) {
            Some(((setting, config), gathered)) => {
                let (evidence, sequences) = setting.conclude(run, gathered);
                judge(run, &evidence, &sequences, config)
            }
            None => Verdict::default(),
        };
        Ok((summary, verdict))
    }
}

/// Sums up the events that a question is about and judges them, where it is asked with a configuration of rules.
pub fn report(run: &Run, question: &Question, rules: Option<&Config>) -> Result<(Summary, Verdict)> {
    let plan = Plan::new(run, question, rules)?;
    let state = plan.gather(run, &Shard::whole())?;
    plan.conclude(run, question, state)
}

/// Gathers what a shard of a run tells. Everybody who gathers a shard of it asks with the same question and rules.
pub fn gather(run: &Run, question: &Question, rules: Option<&Config>, shard: &Shard) -> Result<State> {
    Plan::new(run, question, rules)?.gather(run, shard)
}

/// Sums up and judges what the shards of a run told, all of them together in one state, as [`report`] does.
pub fn conclude(run: &Run, question: &Question, rules: Option<&Config>, state: State) -> Result<(Summary, Verdict)> {
    Plan::new(run, question, rules)?.conclude(run, question, state)
}

#[cfg(test)]
mod tests;
