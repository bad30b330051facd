//! What is wrong with a run, with evidence: which rule says so, how much it costs, where, what to do, and a query that shows it again.
//!
//! | module | holds |
//! |---|---|
//! | `calls` | what a recorded call or span is to the rules |
//! | `evidence` | sums per process, file and operation; lifetimes; intervals: a part of the report's pass |
//! | `gathered` | what one shard of a run tells of all that, to be merged with what others tell |
//! | `sequences` | jumps, re-reads, idle seeks: followed in order during that pass, with bounded memory |
//! | `tally`, `times` | the sums; the times of threads and whom they waited for |
//! | `dominant`, `programs`, `training` | what most of the wall time went to; processes by program; accelerator utilisation |
//! | `headline` | all of it in one sentence |
//! | `weigh` | whether something matters, and how much: the same measure for all rules |
//! | `rules` | the rules, one file each: words, thresholds, function, test; and their registry |
//! | `custom`, `expression`, `metrics` | rules that users write in YAML, and what they can ask for |
//! | `thresholds` | settings: numbers that rules compare with, rules that are off |
//! | [`document`] | all of that as `docs/findings.md` |
//!
//! A rule speaks only when its pattern is there *and* costs a part of the job's time that somebody would notice. Ordinary programs are
//! silent; that is tested on two dozen of them.

mod calls;
mod custom;
pub mod document;
mod dominant;
mod evidence;
mod expression;
mod gathered;
mod headline;
mod metrics;
mod programs;
mod roles;
mod rules;
mod sequences;
mod tally;
#[cfg(test)]
pub(crate) mod tests;
mod thresholds;
mod times;
mod training;
mod weigh;
mod yaml;

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use thiserror::Error;
use weftline_index::{Filter, IndexError, Run};

pub use dominant::{Class, Wait, WallTime};
pub(crate) use evidence::{Agreed, Evidence, Gathering, Setting, State};
pub(crate) use gathered::Gathered;
pub use programs::ProgramRow;
pub use rules::{RuleInfo, rules};
pub(crate) use sequences::Sequences;
pub use thresholds::{Config, Threshold, thresholds};
pub use training::Training;

/// Why there is no verdict.
#[derive(Debug, Error)]
pub enum FindingsError {
    /// The run could not be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A file with settings could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A setting means nothing.
    #[error("{what}: {why}")]
    Setting {
        /// What was set.
        what: String,
        /// What is wrong with it.
        why: String,
    },
}

/// How bad it is. The limits are those of DFAnalyzer's scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Low,
    /// Worth an hour.
    Medium,
    /// A large part of the job's time.
    High,
    /// Most of the job's time.
    Critical,
}

impl Severity {
    /// The severity of a score; nothing when it is not above zero.
    pub fn of(score: f64) -> Option<Severity> {
        match score {
            s if s >= 0.85 => Some(Severity::Critical),
            s if s >= 0.60 => Some(Severity::High),
            s if s >= 0.30 => Some(Severity::Medium),
            s if s > 0.0 => Some(Severity::Low),
            _ => None,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl std::str::FromStr for Severity {
    type Err = FindingsError;

    fn from_str(text: &str) -> Result<Severity, FindingsError> {
        [Severity::Low, Severity::Medium, Severity::High, Severity::Critical]
            .into_iter()
            .find(|severity| severity.word() == text)
            .ok_or_else(|| FindingsError::Setting {
                what: format!("severity {text:?}"),
                why: "use low, medium, high or critical".to_owned(),
            })
    }
}

/// A process as findings name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Who {
    /// Its host; empty where the trace does not tell.
    pub host: String,
    /// Its number there.
    pub pid: i64,
    /// Its rank within a parallel job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<i64>,
    /// Its program; empty where the trace does not tell.
    pub program: String,
}

impl fmt::Display for Who {
    /// `python3 train.py (rank 3, pid 812 on node7)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = if self.program.is_empty() { "process" } else { &self.program };
        let rank = self.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
        let host = if self.host.is_empty() { String::new() } else { format!(" on {}", self.host) };
        write!(f, "{program} ({rank}pid {}{host})", self.pid)
    }
}

/// Where it happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The first of it, ns since the epoch.
    pub from_ns: Option<i64>,
    /// The last of it.
    pub to_ns: Option<i64>,
    /// The processes where it costs most.
    pub processes: Vec<Who>,
    /// How many there are.
    pub process_count: u64,
    /// The files where it costs most.
    pub files: Vec<String>,
    /// How many there are.
    pub file_count: u64,
}

/// What could be had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Impact {
    /// Wall time that the calls or waits cost the process that matters; of several ranks, the one that they cost most.
    pub time_ns: i64,
    /// The part of the job's wall time that this is, between 0 and 1.
    pub share: f64,
    /// Time that they took together, added up over threads and processes.
    pub sum_ns: i64,
    /// Bytes that they moved, or that are missing.
    pub bytes: u64,
    /// How many there are.
    pub calls: u64,
}

impl Impact {
    /// The time in seconds.
    pub fn seconds(&self) -> f64 {
        self.time_ns as f64 / 1e9
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's id.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// The same as a number between 0 and 1.
    pub score: f64,
    /// A few words.
    pub title: String,
    /// One sentence with the numbers.
    pub what: String,
    /// When, by whom, on which files.
    #[serde(rename = "where")]
    pub place: Place,
    /// What could be had.
    pub at_stake: Impact,
    /// What to do.
    pub advice: String,
    /// SQL for `weft query` that shows it again.
    pub query: String,
}

/// A rule that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The rule's id.
    pub rule: String,
    /// Why.
    pub why: String,
}

/// What the rules say of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// The worst first.
    pub findings: Vec<Finding>,
    /// Rules that could not be asked, and why.
    pub skipped: Vec<Skipped>,
    /// How many rules were asked.
    pub checked: usize,
    /// Where the wall time went; nothing where no span has a length, or where only some of the events were looked at.
    pub wall: Option<WallTime>,
    /// The wall time of what was looked at, ns.
    pub wall_ns: u64,
    /// Only some of the events were looked at, whatever their time: nobody can say from them what the rest of the time went to.
    pub partial: bool,
    /// How well accelerators were used; nothing where no loop tells its steps.
    pub training: Option<Training>,
    /// Its processes by program.
    pub programs: Vec<ProgramRow>,
}

impl Verdict {
    /// The severity of the worst finding.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Asks all rules about a whole run, in a pass of their own. A report asks them in its own pass: [`crate::pass`].
pub fn findings(run: &Run, config: &Config) -> Result<Verdict, FindingsError> {
    run.prepare()?;
    let setting = Setting::new(run, config, Filter::default());
    let gathered = setting.alone(run, config)?;
    let (evidence, sequences) = setting.conclude(run, gathered);
    Ok(judge(run, &evidence, &sequences, config))
}

/// What the rules say of what was gathered.
pub(crate) fn judge(run: &Run, evidence: &Evidence, sequences: &Sequences, config: &Config) -> Verdict {
    let wall = if evidence.partial { None } else { WallTime::of(evidence) };
    let mut found = rules::ask(run, evidence, sequences, config, wall.as_ref());
    let mut skipped = config.skipped.clone();
    if sequences.unfollowed > 0 {
        skipped.push(Skipped {
            rule: rules::ordered().collect::<Vec<_>>().join(", "),
            why: format!(
                "{} calls were not followed because more than limits.streams files were open at once",
                sequences.unfollowed
            ),
        });
    }
    if !config.custom.is_empty() {
        let tables = metrics::tables(evidence, sequences);
        custom::ask(&config.custom, &tables, config, &mut found, &mut skipped);
    }
    found.sort_by(|a, b| {
        let worse = b.severity.cmp(&a.severity).then(b.at_stake.time_ns.cmp(&a.at_stake.time_ns));
        worse.then_with(|| (&a.rule, &a.what).cmp(&(&b.rule, &b.what)))
    });
    skipped.sort_by(|a, b| (&a.rule, &a.why).cmp(&(&b.rule, &b.why)));
    let checked = rules().iter().filter(|rule| !config.is_off(rule.id)).count() + config.custom.len();
    Verdict {
        findings: found,
        skipped,
        checked,
        wall_ns: evidence.wall_ns.max(evidence.breakdown.wall_ns),
        wall,
        partial: evidence.partial,
        training: evidence.training,
        programs: programs::rows(evidence),
    }
}
