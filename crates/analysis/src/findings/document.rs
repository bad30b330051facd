//! `docs/findings.md`: the introduction, and tables made from the rules and thresholds themselves.

use std::fmt::Write as _;

use super::{metrics, rules, thresholds};

const INTRODUCTION: &str = include_str!("introduction.md");
const VERDICTS: &str = include_str!("golden.md");

/// The whole document.
pub fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n## Rules\n\n| rule | fires when | what to do |\n|---|---|---|\n");
    for rule in rules() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{}` | {} | {} |", rule.id, escaped(rule.when), escaped(rule.advice));
    }
    text.push_str("\n## Thresholds\n\n`matter.*` apply to all rules.\n\n| threshold | default | unit | why |\n|---|---:|---|---|\n");
    for threshold in thresholds() {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            threshold.name,
            threshold.default,
            threshold.unit,
            escaped(threshold.why)
        );
    }
    text.push_str("\n## Metrics for rules of your own\n\n| view | metrics |\n|---|---|\n");
    for view in metrics::VIEWS {
        let names: Vec<String> = metrics::names(view).iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "| `{view}` | {} |", names.join(" "));
    }
    text.push_str("\n## The verdict on the golden traces\n\n");
    text.push_str(VERDICTS);
    text
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}
