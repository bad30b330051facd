//! The whole report as one JSON object. Numbers keep their full precision; absent ones are `null`.

use serde_json::{Map, Value, json};
use weftline_analysis::Table;
use weftline_analysis::table::Field;

use crate::Report;

/// The version of the form; it changes when a name or a meaning does.
pub const SCHEMA: u32 = 1;

/// The report.
pub fn value(report: &Report) -> Value {
    let facts: Map<String, Value> =
        report.facts.iter().map(|fact| (fact.name.to_owned(), fact.value.clone())).collect();
    let sections: Map<String, Value> =
        report.sections.iter().map(|section| (section.key.clone(), rows(&section.table))).collect();
    json!({
        "schema": SCHEMA,
        "run": report.title,
        "job": facts,
        "sections": sections,
        "findings": report.findings,
        "skipped_rules": report.skipped,
    })
}

/// A table as a list of objects.
pub fn rows(table: &Table) -> Value {
    let row = |row: usize| -> Value {
        let fields = table.columns.iter().map(|(name, values)| {
            let value = match values.get(row) {
                Field::Null => Value::Null,
                Field::Int(number) => number.into(),
                Field::Float(number) => serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number),
                Field::Text(text) => text.into(),
            };
            (name.clone(), value)
        });
        Value::Object(fields.collect())
    };
    Value::Array((0..table.rows).map(row).collect())
}
