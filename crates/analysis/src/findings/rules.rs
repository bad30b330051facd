//! The rules, one file each, and the registry that names them. A rule is a constant: its words, its thresholds, and a function from evidence to findings.
//!
//! `peers` and `loops` are no rules: what several of them look at.

mod catch_all;
mod checkpoint_stall;
mod fsync_per_write;
mod loader_starvation;
mod loops;
mod lost_coverage;
mod metadata_bound;
mod open_storm;
mod peers;
pub(super) mod random_access;
mod rank_imbalance;
mod re_reads;
mod read_after_write;
mod seek_storm;
mod skew;
mod slope;
pub(super) mod small_transfers;
mod stat_storm;
mod straggler_host;
mod straggler_process;
mod tiny_buffers;
mod too_few_workers;
pub(super) mod unaligned_io;

use weftline_index::Run;

use super::calls::Call;
use super::evidence::{Evidence, Op, Tally};
use super::sequences::Sequences;
use super::thresholds::{Config, Threshold};
use super::weigh::Weighed;
use super::{Finding, Severity, WallTime};

/// The registry: every rule, in the order of docs/findings.md.
const RULES: &[RuleInfo] = &[
    small_transfers::READS,
    small_transfers::WRITES,
    random_access::RULE,
    re_reads::RULE,
    open_storm::RULE,
    stat_storm::RULE,
    seek_storm::RULE,
    fsync_per_write::RULE,
    metadata_bound::RULE,
    skew::READERS,
    skew::WRITERS,
    straggler_process::RULE,
    straggler_host::RULE,
    rank_imbalance::RULE,
    unaligned_io::RULE,
    tiny_buffers::RULE,
    read_after_write::RULE,
    checkpoint_stall::RULE,
    loader_starvation::RULE,
    too_few_workers::RULE,
    slope::RULE,
    catch_all::IO,
    catch_all::WAITING,
    lost_coverage::RULE,
];

/// A rule: `RULE=off`, `--set`, `--explain` and docs/findings.md know it by this alone.
#[derive(Debug, Clone, Copy)]
pub struct RuleInfo {
    /// Its id.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// When it speaks.
    pub when: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// The numbers that it compares with; their names begin with its id.
    pub thresholds: &'static [Threshold],
    kind: Kind,
    ask: fn(&Case<'_>) -> Vec<Finding>,
}

/// How a rule goes with the others.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// It looks at sums, and speaks whatever others say.
    Plain,
    /// It looks at calls in their order ([`Sequences`]), which is known only as far as they were followed.
    Ordered,
    /// It is silent where another finding says more: its own finding, and all others.
    Yields(fn(&Finding, &[Finding]) -> bool),
    /// It says where the time went rather than what is wrong, and is silent where another rule explains half of that.
    CatchAll,
}

/// What a rule may look at.
pub(crate) struct Case<'a> {
    pub run: &'a Run,
    pub evidence: &'a Evidence,
    pub sequences: &'a Sequences,
    pub config: &'a Config,
    /// Where the wall time went, if that can be told.
    pub wall: Option<&'a WallTime>,
}

/// All rules.
pub fn rules() -> &'static [RuleInfo] {
    RULES
}

/// Asks all that are not off.
pub(crate) fn ask(
    run: &Run,
    evidence: &Evidence,
    sequences: &Sequences,
    config: &Config,
    wall: Option<&WallTime>,
) -> Vec<Finding> {
    let case = Case { run, evidence, sequences, config, wall };
    let asked = || RULES.iter().filter(|rule| !config.is_off(rule.id));
    let mut found: Vec<Finding> = asked().flat_map(|rule| (rule.ask)(&case)).collect();
    for rule in asked() {
        let yields = |own: &Finding| match rule.kind {
            Kind::Plain | Kind::Ordered => false,
            Kind::Yields(yields) => yields(own, &found),
            Kind::CatchAll => is_explained(own, &found),
        };
        let silent: Vec<bool> = found.iter().map(|own| own.rule == rule.id && yields(own)).collect();
        let mut silent = silent.into_iter();
        found.retain(|_| !silent.next().unwrap_or(false));
    }
    found
}

/// Whether a rule that says what is wrong accounts for half of what a catch-all found.
fn is_explained(own: &Finding, others: &[Finding]) -> bool {
    let explaining = others.iter().filter(|finding| !is_catch_all(&finding.rule));
    explaining.map(|finding| finding.at_stake.time_ns).max().unwrap_or(0) >= own.at_stake.time_ns / 2
}

/// Whether a rule says where the time went rather than what is wrong.
pub(crate) fn is_catch_all(rule: &str) -> bool {
    RULES.iter().any(|known| known.id == rule && matches!(known.kind, Kind::CatchAll))
}

/// The rules that know only as much as calls were followed in their order.
pub(crate) fn ordered() -> impl Iterator<Item = &'static str> {
    RULES.iter().filter(|rule| matches!(rule.kind, Kind::Ordered)).map(|rule| rule.id)
}

impl Case<'_> {
    /// A finding of a rule; nothing when its score is zero.
    fn finding(&self, rule: &RuleInfo, weighed: Weighed, what: String, query: String) -> Option<Finding> {
        Some(Finding {
            rule: rule.id.to_owned(),
            severity: Severity::of(weighed.score)?,
            score: weighed.score,
            title: rule.title.to_owned(),
            what,
            place: weighed.place,
            at_stake: weighed.impact,
            advice: rule.advice.to_owned(),
            query,
        })
    }

    /// A query: calls per process and path, where there are at least so many.
    fn counted(&self, calls: &[Call], least: u64) -> String {
        format!(
            "SELECT host, pid, path, count(*) AS calls, sum(CASE WHEN ret < 0 THEN 1 ELSE 0 END) AS failed, sum(dur_ns) / 1e9 AS seconds \
             FROM events WHERE name IN ({}) GROUP BY host, pid, path HAVING count(*) >= {least} ORDER BY calls DESC LIMIT 20",
            self.evidence.name_table.sql_names(calls),
        )
    }

    /// When a process was busy with a file, as an otherwise empty sum.
    fn span_of(&self, process: u32, file: u32, ops: &[Op]) -> Tally {
        let mut sum = Tally::default();
        ops.iter().for_each(|op| sum.add(&self.evidence.sum(process, file, *op)));
        Tally { calls: 0, bytes: 0, ns: 0, ..sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `--set`, the documents and readers take from the declarations.
    #[test]
    fn rules_are_whole() {
        for (place, rule) in RULES.iter().enumerate() {
            assert!(RULES[..place].iter().all(|other| other.id != rule.id), "{} is there twice", rule.id);
            assert!(rule.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", rule.id);
            assert!(!rule.title.is_empty() && !rule.title.ends_with('.'), "{}", rule.id);
            assert!(rule.when.ends_with('.') && rule.advice.ends_with('.'), "{}: sentences", rule.id);
            for threshold in rule.thresholds {
                assert_eq!(threshold.name.split_once('.').map(|(id, _)| id), Some(rule.id), "{}", threshold.name);
            }
        }
    }
}
