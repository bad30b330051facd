//! Generated traces through all rules: each rule speaks where its pattern is, and is silent just below its threshold.

pub(crate) mod builder;
mod coverage;
mod headlines;
mod yaml_rules;

use builder::Trace;

use super::{Config, Finding, Severity, findings};

/// The verdict on a trace, with some settings.
pub(crate) fn judge(trace: &Trace, settings: &[&str]) -> super::Verdict {
    let mut config = Config::default();
    for setting in settings {
        config.set(setting).expect(setting);
    }
    let directory = trace.write();
    findings(&trace.open(directory.path()), &config).expect("judged")
}

/// A rule speaks of the first trace and not of the second.
pub(crate) fn check(rule: &str, fires: &Trace, silent: &Trace) -> Finding {
    let found = judge(fires, &[]);
    let finding = found.findings.iter().find(|finding| finding.rule == rule).cloned();
    let finding = finding.unwrap_or_else(|| panic!("{rule} says nothing, but {:#?}", found.findings));
    assert!(finding.score > 0.0 && finding.score <= 1.0, "{finding:#?}");
    assert_eq!(Severity::of(finding.score), Some(finding.severity), "{finding:#?}");
    assert!(finding.what.ends_with('.') && !finding.query.is_empty() && !finding.advice.is_empty(), "{finding:#?}");
    let again = judge(silent, &[]);
    assert!(
        !again.findings.iter().any(|finding| finding.rule == rule),
        "{rule} speaks without need: {:#?}",
        again.findings
    );
    assert!(!judge(fires, &[&format!("{rule}=off")]).findings.iter().any(|finding| finding.rule == rule));
    finding
}
