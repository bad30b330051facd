//! Rules that users write in YAML, in the form of DFAnalyzer's: a view, metrics, a condition, a severity.
//!
//! ```yaml
//! rules:
//!   - id: fetch_pressure
//!     source_view: proc_name
//!     required_metrics: [fetch_frac, compute_frac]
//!     derived_metrics: {over: fetch_frac - 0.10}
//!     when: fetch_frac >= 0.20 and compute_frac < 0.85
//!     severity_score: clip01(over / 0.25)
//!     opportunity_tags: [loader]
//! ```
//!
//! A rule that cannot be asked is never dropped silently: it is among the skipped ones, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use super::expression::{self, Expression};
use super::metrics::{self, Row, Table};
use super::thresholds::Config;
use super::yaml::Node;
use super::{Finding, Impact, Place, Severity, Skipped};

/// How findings come out of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Emit {
    /// One for all rows that match.
    Aggregate,
    /// One for each.
    Row,
}

/// A user's rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) id: String,
    priority: i64,
    view: String,
    kind: String,
    layer: String,
    required: Vec<String>,
    derived: Vec<(String, Expression)>,
    when: Expression,
    severity: Expression,
    confidence: Option<Expression>,
    tags: Vec<String>,
    suppresses: Vec<String>,
    emit: Emit,
    advice: Option<String>,
}

const KEYS: [&str; 15] = [
    "id",
    "priority",
    "source_view",
    "view_types",
    "fact_type",
    "scope_layer",
    "required_metrics",
    "derived_metrics",
    "when",
    "severity_score",
    "confidence",
    "opportunity_tags",
    "suppresses_tags",
    "emit_mode",
    "advice",
];

impl Rule {
    /// Reads a rule; the error is its id and what is wrong with it.
    pub(crate) fn from_node(node: &Node) -> Result<Rule, (String, String)> {
        let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
        let id = text("id").unwrap_or_else(|| "(without an id)".to_owned());
        let wrong = |why: String| (id.clone(), why);
        let Node::Map(entries) = node else { return Err(wrong("a rule is a mapping with an id".to_owned())) };
        if let Some((key, _)) = entries.iter().find(|(key, _)| !KEYS.contains(&key.as_str())) {
            return Err(wrong(format!("the key {key} is not known; a rule may have {}", KEYS.join(", "))));
        }
        let parse = |key: &str, text: &str| expression::parse(text).map_err(|why| wrong(format!("{key}: {why}")));
        let view = text("source_view")
            .or_else(|| node.get("view_types").and_then(|views| views.texts().into_iter().next()))
            .unwrap_or_else(|| "job".to_owned());
        let mut derived = Vec::new();
        if let Some(Node::Map(entries)) = node.get("derived_metrics") {
            for (name, formula) in entries {
                derived.push((name.clone(), parse(name, formula.text().unwrap_or_default())?));
            }
        }
        let when = text("when").ok_or_else(|| wrong("it has no `when`".to_owned()))?;
        let priority = text("priority").map_or(Ok(0), |text| {
            text.parse().map_err(|_| wrong(format!("the priority {text:?} is not an integer")))
        })?;
        let emit = match text("emit_mode").as_deref() {
            Some("aggregate") => Emit::Aggregate,
            Some("row" | "per_row") => Emit::Row,
            // As in the reference: one fact per period, one for all files or processes together.
            None if matches!(view.as_str(), "time_range" | "job") => Emit::Row,
            None => Emit::Aggregate,
            Some(other) => return Err(wrong(format!("emit_mode is aggregate or row, not {other:?}"))),
        };
        let texts = |key: &str| node.get(key).map(Node::texts).unwrap_or_default();
        Ok(Rule {
            priority,
            kind: text("fact_type").unwrap_or_else(|| id.clone()),
            layer: text("scope_layer").unwrap_or_default(),
            required: texts("required_metrics"),
            derived,
            when: parse("when", &when)?,
            severity: parse("severity_score", text("severity_score").as_deref().unwrap_or("0.3"))?,
            confidence: text("confidence").map(|text| parse("confidence", &text)).transpose()?,
            tags: texts("opportunity_tags"),
            suppresses: texts("suppresses_tags"),
            emit,
            advice: text("advice"),
            view,
            id,
        })
    }

    /// The metrics that it needs and nobody derives.
    fn needs(&self) -> BTreeSet<String> {
        let mut all: BTreeSet<String> = self.required.iter().cloned().collect();
        let mut known = BTreeSet::new();
        for (name, formula) in &self.derived {
            let mut inner = BTreeSet::new();
            formula.metrics(&mut inner);
            all.extend(inner.difference(&known).cloned());
            known.insert(name.clone());
        }
        for formula in [Some(&self.when), Some(&self.severity), self.confidence.as_ref()].into_iter().flatten() {
            let mut inner = BTreeSet::new();
            formula.metrics(&mut inner);
            all.extend(inner.difference(&known).cloned());
        }
        all
    }
}

struct Match<'t> {
    row: &'t Row,
    score: f64,
    confidence: Option<f64>,
    values: Vec<(String, f64)>,
}

/// Asks users' rules, those of the highest priority first.
pub(crate) fn ask(
    rules: &[Rule],
    tables: &[Table],
    config: &Config,
    found: &mut Vec<Finding>,
    skipped: &mut Vec<Skipped>,
) {
    let mut rules: Vec<&Rule> = rules.iter().filter(|rule| !config.is_off(&rule.id)).collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
    // Tags that a rule took off a row for the rules after it.
    let mut suppressed: BTreeSet<(&str, &str, &str)> = BTreeSet::new();
    for rule in rules {
        let Some(table) = tables.iter().find(|table| table.view == rule.view) else {
            let why = format!("there is no view {}; there are {}", rule.view, metrics::VIEWS.join(", "));
            skipped.push(Skipped { rule: rule.id.clone(), why });
            continue;
        };
        let known = metrics::names(table.view);
        let missing: Vec<String> = rule.needs().into_iter().filter(|name| !known.contains(name)).collect();
        if !missing.is_empty() {
            let why = format!("the view {} has no metric {}", rule.view, missing.join(", "));
            skipped.push(Skipped { rule: rule.id.clone(), why });
            continue;
        }
        // A metric that is known and has a value nowhere: a trace without such spans, for instance.
        let absent: Vec<&String> =
            rule.required.iter().filter(|name| !table.rows.iter().any(|row| row.values.contains_key(*name))).collect();
        if !absent.is_empty() {
            let names: Vec<&str> = absent.iter().map(|name| name.as_str()).collect();
            skipped.push(Skipped { rule: rule.id.clone(), why: format!("this trace has no {}", names.join(", ")) });
            continue;
        }
        let matches: Vec<Match<'_>> = table
            .rows
            .iter()
            .filter(|row| {
                !rule.tags.iter().any(|tag| suppressed.contains(&(table.view, row.label.as_str(), tag.as_str())))
            })
            .filter_map(|row| matching(rule, row))
            .collect();
        for one in &matches {
            suppressed.extend(rule.suppresses.iter().map(|tag| (table.view, one.row.label.as_str(), tag.as_str())));
        }
        match rule.emit {
            Emit::Row => found.extend(matches.iter().filter_map(|one| finding(rule, std::slice::from_ref(one), table))),
            Emit::Aggregate => found.extend(finding(rule, &matches, table)),
        }
    }
}

fn matching<'t>(rule: &Rule, row: &'t Row) -> Option<Match<'t>> {
    let mut derived: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, formula) in &rule.derived {
        let value = formula.value(&|metric| derived.get(metric).or_else(|| row.values.get(metric)).copied());
        derived.extend(value.map(|value| (name.as_str(), value)));
    }
    let metric = |name: &str| derived.get(name).or_else(|| row.values.get(name)).copied();
    if !rule.when.is_true(&metric) {
        return None;
    }
    let mut names = BTreeSet::new();
    rule.when.metrics(&mut names);
    let values = names.into_iter().filter_map(|name| metric(&name).map(|value| (name, value))).collect();
    let score = rule.severity.value(&metric).unwrap_or(0.0).clamp(0.0, 1.0);
    Some(Match { row, score, confidence: rule.confidence.as_ref().and_then(|formula| formula.value(&metric)), values })
}

const NAMED: usize = 5;

fn finding(rule: &Rule, matches: &[Match<'_>], table: &Table) -> Option<Finding> {
    let worst =
        matches.iter().max_by(|a, b| a.score.total_cmp(&b.score).then_with(|| b.row.label.cmp(&a.row.label)))?;
    let values: Vec<String> = worst.values.iter().map(|(name, value)| format!("{name} = {value:.4}")).collect();
    let (mut impact, mut from, mut to) = (Impact::default(), i64::MAX, i64::MIN);
    for (_, _, tally) in matches.iter().flat_map(|one| &one.row.parts) {
        impact.time_ns += tally.ns as i64;
        impact.bytes += tally.bytes;
        impact.calls += tally.calls;
        from = from.min(tally.start);
        to = to.max(tally.end);
    }
    let all: i64 = table.rows.iter().flat_map(|row| &row.parts).map(|(_, _, tally)| tally.ns as i64).sum();
    impact.share = if all > 0 { impact.time_ns as f64 / all as f64 } else { 0.0 };
    let mut labels: Vec<(f64, &str)> = matches.iter().map(|one| (one.score, one.row.label.as_str())).collect();
    labels.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let mut what = format!(
        "{} of {} rows of the view {} match; the worst is {} with {}.",
        matches.len(),
        table.rows.len(),
        rule.view,
        worst.row.label.trim(),
        values.join(", "),
    );
    if let Some(confidence) = worst.confidence {
        what.push_str(&format!(" Confidence {confidence:.2}."));
    }
    let is_file = rule.view == "file_name";
    let place = Place {
        from_ns: (from <= to).then_some(from),
        to_ns: (from <= to).then_some(to),
        files: if is_file {
            labels.iter().take(NAMED).map(|(_, label)| (*label).to_owned()).collect()
        } else {
            Vec::new()
        },
        file_count: if is_file { matches.len() as u64 } else { 0 },
        process_count: if rule.view == "proc_name" { matches.len() as u64 } else { 0 },
        ..Place::default()
    };
    let title = if rule.layer.is_empty() { rule.kind.clone() } else { format!("{} ({})", rule.kind, rule.layer) };
    let key = match rule.view.as_str() {
        "file_name" => "path",
        "proc_name" => "pid",
        "host_name" => "host",
        _ => "lower(cat)",
    };
    Some(Finding {
        rule: rule.id.clone(),
        severity: Severity::of(worst.score)?,
        score: worst.score,
        title,
        what,
        place,
        at_stake: impact,
        advice: rule.advice.clone().unwrap_or_else(|| match rule.tags.is_empty() {
            true => "The rule gives no advice.".to_owned(),
            false => format!("Opportunities: {}.", rule.tags.join(", ")),
        }),
        query: format!(
            "SELECT {key} AS row, name, count(*) AS calls, sum(ret) AS bytes, sum(dur_ns) / 1e9 AS seconds FROM events \
             GROUP BY 1, name ORDER BY seconds DESC LIMIT 40"
        ),
    })
}
