//! What is known before a summary's events are read: how they are classified, on which axis of time, and which columns that takes. It depends on the
//! run and the question alone, so that all who read a shard of the run gather the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use weftline_calls::IoSums;
use weftline_index::{Dictionary, Filter, Request, Run, Shard};

use super::gathered::Gathered;
use super::pass::Pass;
use super::{Job, Question, Summary, round_width, rows, time_filter};
use crate::classify::Classes;
use crate::findings::{self, Gathering};
use crate::group::scan::span_phases;
use crate::layers::Layer;
use crate::presets::Preset;
use crate::profiles::totals::{Records, Totals, process_ids};
use crate::{AnalysisError, Result};

/// See the module.
pub(crate) struct Setting {
    pub(crate) dictionary: Arc<Dictionary>,
    pub(crate) classes: Classes,
    pub(crate) preset: Preset,
    pub(crate) layers: Vec<Layer>,
    pub(crate) process_ids: Vec<u32>,
    pub(crate) filter: Filter,
    pub(crate) origin: i64,
    /// From there to the last end.
    pub(crate) length_ns: i64,
    pub(crate) width_ns: i64,
    pub(crate) records: Records,
}

/// How the ranges of a shard's spans are gathered.
pub(crate) struct Ranges {
    /// Windows of time, one after the other; nothing where all ranges are kept while everything else is gathered.
    pub(crate) windows: Option<u64>,
    /// By id: processes that other shards have ranges of, too; nothing where there is no other shard.
    pub(crate) cut: Option<Vec<bool>>,
}

impl Ranges {
    /// `most`: spans whose ranges are kept at once. Without an index every window would cost a pass over the traces.
    pub(crate) fn of(run: &Run, shard: &Shard, most: u64) -> Ranges {
        let spans = run.count_within(shard, &span_phases()).filter(|spans| *spans > most);
        // Nobody asks which processes are cut where all ranges are kept.
        let cut = spans.filter(|_| !shard.is_whole()).and_then(|_| run.processes_cut_by(shard));
        Ranges { windows: spans.map(|spans| spans.div_ceil(most.max(1))), cut }
    }
}

impl Setting {
    /// Of a prepared run.
    pub(crate) fn new(run: &Run, question: &Question) -> Result<Setting> {
        let (dictionary, times) = (run.dictionary(), run.times());
        let classes = Classes::new(&question.rules, &dictionary);
        let preset = question.preset.unwrap_or_else(|| Preset::detect(&dictionary));
        let layers = preset.layers(&dictionary);
        let (origin, end) = times.spans.or(times.all).unwrap_or((0, 0));
        let filter = time_filter(question, origin);
        let records = Records::of(run, &filter, &classes, question.period_ns)?;
        let no_totals = records.records.is_empty();
        let end = if no_totals { end } else { end.max(records.axis.end) };
        let length_ns = end.saturating_sub(origin);
        // Nothing is known of the time within a period, so nobody is shown any of it unasked.
        let finest = records.finest();
        let width_ns = question.width_ns.unwrap_or_else(|| round_width(length_ns).max(finest)).max(1);
        let buckets = i128::from(length_ns) / i128::from(width_ns) + 1;
        if buckets >= i128::from(u32::MAX) {
            return Err(AnalysisError::TooManyBuckets { buckets, width_ns });
        }
        let process_ids = process_ids(&dictionary);
        Ok(Setting { dictionary, classes, preset, layers, process_ids, filter, origin, length_ns, width_ns, records })
    }

    fn pass<'s>(&'s self, shard: &'s Shard, intervals: bool) -> Pass<'s> {
        Pass {
            dictionary: &self.dictionary,
            classes: &self.classes,
            layers: &self.layers,
            process_ids: &self.process_ids,
            filter: &self.filter,
            shard,
            origin: self.origin,
            width_ns: self.width_ns,
            rest: self.preset != Preset::Posix,
            intervals,
        }
    }

    /// Gathers what a shard holds, and for the findings in the same pass: all that both need of a row group is read once, except for the ranges of time
    /// of shards with very many spans (see `crate::pass`).
    pub(crate) fn gather(
        &self,
        run: &Run,
        shard: &Shard,
        ranges: &Ranges,
        findings: Option<&Gathering<'_>>,
    ) -> Result<(Gathered, Vec<findings::State>)> {
        let pass = self.pass(shard, ranges.windows.is_none());
        let mut columns = pass.columns();
        columns.extend(findings.into_iter().flat_map(|_| Gathering::COLUMNS));
        let (states, _) = run.scan_groups(
            &Request::of(columns).with(self.filter.clone()).within(shard.clone()),
            || (pass.begin(), findings::State::default()),
            |(state, beside), batch| {
                pass.fold(state, batch);
                if let Some(findings) = findings {
                    findings.take(beside, batch);
                }
            },
            |(_, beside), group| {
                if let Some(findings) = findings {
                    findings.end_of_group(beside, group);
                }
            },
        )?;
        let (states, beside): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        let mut gathered = pass.finish(states);
        if let Some(windows) = ranges.windows {
            let length = self.length_ns / windows as i64 + 1;
            for window in 0..windows as i64 {
                let from = self.origin + window * length;
                let found = pass.window(run, from, from + length)?;
                gathered.walls.sum_up(&self.layers, found, ranges.cut.as_deref());
            }
        }
        Ok((gathered, beside))
    }

    /// The answer, when all shards are together. `gathered` has the ids of the dictionary; `totals` are those of the whole run.
    pub(crate) fn conclude(&self, run: &Run, question: &Question, mut gathered: Gathered, totals: &Totals) -> Summary {
        let (dictionary, classes) = (&self.dictionary, &self.classes);
        self.pass(&Shard::whole(), false).add_totals(&mut gathered, totals);
        let walls = std::mem::take(&mut gathered.walls);
        let operations = rows::operations(&gathered, dictionary, classes);
        let job = self.job(run, &gathered, totals);
        Summary {
            preset: self.preset,
            stragglers: rows::stragglers(&gathered, dictionary, job.time.into()),
            job,
            layers: walls.finish(&self.layers, &gathered.layers),
            operations: operations.all,
            calls: operations.calls,
            waits: operations.waits,
            spans: operations.spans,
            sizes: std::array::from_fn(|bin| (gathered.read_bins[bin], gathered.write_bins[bin])),
            unknown_sizes: gathered.unbinned,
            spread: gathered.totals > 0 && totals.axis.spreads(self.width_ns),
            top_files: rows::top_files(&gathered, dictionary, classes, question.top),
            top_directories: rows::top_directories(&gathered, dictionary, classes, question.top),
            top_processes: rows::top(rows::process_ids(&gathered, dictionary).into_values(), question.top),
            width_ns: self.width_ns,
            timeline: gathered.buckets.iter().map(|(bucket, traffic)| (*bucket, *traffic)).collect(),
        }
    }

    fn job(&self, run: &Run, gathered: &Gathered, totals: &Totals) -> Job {
        let dictionary = &self.dictionary;
        let mut traffic = IoSums::default();
        gathered.processes.iter().for_each(|one| traffic.merge(one));
        let lived = |id: usize| gathered.lives.get(id).is_some_and(Option::is_some);
        let seen = |id: usize| lived(id) || gathered.seen.get(id).is_some_and(|seen| *seen);
        let ends = gathered.lives.iter().flatten().map(|life| life.1).max();
        let starts = gathered.lives.iter().flatten().map(|life| life.0).min();
        let identities = dictionary.identities();
        let processes: BTreeSet<u32> =
            identities.iter().enumerate().filter(|(id, _)| seen(*id)).filter_map(|(_, identity)| *identity).collect();
        let hosts: BTreeSet<&str> =
            processes.iter().filter_map(|id| crate::events::host_text(dictionary.process(*id))).collect();
        let sources = run.sources();
        let unreadable = sources.iter().filter_map(|source| {
            source.unreadable.as_ref().map(|why| (source.path.display().to_string(), why.clone()))
        });
        Job {
            origin: self.origin,
            time: ends.unwrap_or(0).saturating_sub(starts.unwrap_or(0)),
            events: gathered.events,
            ignored: gathered.ignored,
            total_calls: gathered.totals,
            recorded_twice: totals.recorded_singly,
            period_ns: totals.axis.longest,
            per_phase: run.times().per_phase,
            processes: processes.len() as u64,
            // A trace that names no host is of one.
            hosts: (hosts.len() as u64).max(u64::from(!processes.is_empty())),
            files: rows::files_by_path(gathered, dictionary, |_| true).len() as u64,
            traffic,
            sources: sources.len() as u64,
            source_bytes: sources.iter().map(|source| source.bytes).sum(),
            flaws: sources.iter().map(|source| source.flaws).sum(),
            lost_bytes: sources.iter().map(|source| source.lost_bytes).sum(),
            unreadable: unreadable.collect(),
        }
    }
}
