//! A report from an analysis.

use weftline_analysis::Table;

use crate::Report;

/// All tables of a report with the names of their files: the job, the findings, the sections.
pub fn tables(report: &Report) -> Vec<(String, Table)> {
    let mut job = Table::with_rows(report.facts.len());
    job.texts("name", report.facts.iter().map(|fact| Some(fact.name.to_owned())));
    job.texts("value", report.facts.iter().map(|fact| Some(plain(&fact.value))));
    let all = &report.findings;
    let mut found = Table::with_rows(all.len());
    found.texts("rule", all.iter().map(|finding| Some(finding.rule.clone())));
    found.texts("severity", all.iter().map(|finding| Some(finding.severity.word().to_owned())));
    found.floats("score", all.iter().map(|finding| Some(finding.score)));
    found.texts("title", all.iter().map(|finding| Some(finding.title.clone())));
    found.texts("what", all.iter().map(|finding| Some(finding.what.clone())));
    found.ints("from_ns", all.iter().map(|finding| finding.place.from_ns));
    found.ints("to_ns", all.iter().map(|finding| finding.place.to_ns));
    let count = |count: u64| i64::try_from(count).ok();
    found.ints("processes", all.iter().map(|finding| count(finding.place.process_count)));
    found.ints("files", all.iter().map(|finding| count(finding.place.file_count)));
    found.texts("file", all.iter().map(|finding| finding.place.files.first().cloned()));
    found.ints("time_ns", all.iter().map(|finding| Some(finding.at_stake.time_ns)));
    found.floats("share_frac", all.iter().map(|finding| Some(finding.at_stake.share)));
    found.ints("bytes", all.iter().map(|finding| count(finding.at_stake.bytes)));
    found.ints("calls", all.iter().map(|finding| count(finding.at_stake.calls)));
    found.texts("advice", all.iter().map(|finding| Some(finding.advice.clone())));
    found.texts("query", all.iter().map(|finding| Some(finding.query.clone())));
    let mut tables = vec![("job".to_owned(), job), ("findings".to_owned(), found)];
    tables.extend(report.sections.iter().map(|section| (section.key.clone(), section.table.clone())));
    tables
}

/// A value without the quotes of JSON.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
