//! Users' rules in DFAnalyzer's form.

use super::builder::Trace;
use crate::findings::{Config, Severity, Verdict, findings};

/// Two processes: the first has mostly small reads of one file, the second trains.
fn trace() -> Trace {
    let mut trace = Trace::new().process(1, "a", None).process(2, "a", None);
    for place in 0..100 {
        trace.transfer(1, "read", "/data/x", 100, place * 10, 10);
        trace.call(1, "stat", "/data/y", 10, r#""ret":0"#);
    }
    for step in 0..10 {
        trace = trace.span(2, "dataloader", "fetch", step * 1000, 400, "").span(
            2,
            "compute",
            "step",
            step * 1000 + 400,
            600,
            "",
        );
    }
    trace
}

fn ask(rules: &str) -> Verdict {
    let mut config = Config::default();
    config.take_yaml(rules).expect("understood");
    let trace = trace();
    let directory = trace.write();
    findings(&trace.open(directory.path()), &config).expect("judged")
}

/// What a file of rules finds (rule and severity), and what of it was skipped (rule and a part of the reason).
fn check(rules: &str, found: &[(&str, Severity)], skipped: &[(&str, &str)]) {
    let verdict = ask(rules);
    let said: Vec<(&str, Severity)> =
        verdict.findings.iter().map(|finding| (finding.rule.as_str(), finding.severity)).collect();
    assert_eq!(said, found, "{rules}: {verdict:#?}");
    assert_eq!(verdict.skipped.len(), skipped.len(), "{rules}: {verdict:#?}");
    for (skipped, (rule, why)) in verdict.skipped.iter().zip(skipped) {
        assert_eq!(skipped.rule, *rule, "{rules}");
        assert!(skipped.why.contains(why), "{rules}: {}", skipped.why);
    }
}

#[test]
fn rules_are_asked() {
    check(
        "rules:\n- {id: fetch_pressure, source_view: proc_name, required_metrics: [fetch_frac, compute_frac], \
         derived_metrics: {over: fetch_frac - 0.10}, when: fetch_frac >= 0.20 and compute_frac < 0.85, severity_score: over / 0.5}\n",
        &[("fetch_pressure", Severity::High)],
        &[],
    );
    check(
        "- {id: small, view_types: [file_name], when: posix_read_time_frac_parent > 0.5 and posix_read_size_mean < 1048576, severity_score: 1}\n",
        &[("small", Severity::Critical)],
        &[],
    );
    check("- {id: none, source_view: job, when: posix_read_size_mean > 10}\n", &[], &[]);
}

#[test]
fn rules_that_cannot_be_asked_are_named() {
    check("- {id: a, source_view: job, when: posix_reed_size > 1}\n", &[], &[("a", "no metric posix_reed_size")]);
    check("- {id: a, source_view: epoch, when: 1 > 0}\n", &[], &[("a", "no view epoch")]);
    check(
        "- {id: a, required_metrics: [checkpoint_frac], when: 1 > 0}\n",
        &[],
        &[("a", "this trace has no checkpoint_frac")],
    );
    check("- {id: a, when: '1 >'}\n", &[], &[("a", "ends too early")]);
    check("- {id: a, when: 'eval(1)'}\n", &[], &[("a", "no function eval")]);
    check("- {id: a, wehn: 1}\n", &[], &[("a", "the key wehn is not known")]);
    check("- {id: a}\n", &[], &[("a", "no `when`")]);
}

#[test]
fn rules_of_higher_priority_take_tags_away() {
    let rules = "- {id: low, source_view: proc_name, when: posix_count > 0, opportunity_tags: [io]}\n\
                 - {id: high, priority: 5, source_view: proc_name, when: posix_stat_count > 0, suppresses_tags: [io], severity_score: 0.7}\n";
    check(rules, &[("high", Severity::High)], &[]);
}

#[test]
fn rows_are_told_one_by_one_where_that_is_wanted() {
    let rule = |mode: &str| format!("- {{id: r, source_view: file_name, when: posix_count > 0, emit_mode: {mode}}}\n");
    check(&rule("row"), &[("r", Severity::Medium); 2], &[]);
    check(&rule("aggregate"), &[("r", Severity::Medium)], &[]);
    check(&rule("sometimes"), &[], &[("r", "emit_mode is aggregate or row")]);
}
