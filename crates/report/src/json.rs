//! The whole report as one JSON object. Numbers keep their full precision; absent ones are `null`.

use serde_json::{Map, Value, json};
use weftline_analysis::Table;
use weftline_analysis::statistics::seconds;
use weftline_analysis::table::{Column, Curve, Field};

use crate::Report;

/// The version of the form; it changes when a name or a meaning does.
///
/// | version | changed |
/// |---|---|
/// | 2 | `at_stake.time_ns` and `.share` of a finding are wall time of the process that matters, where 1 had sums over threads (now `.sum_ns`) and their share of all threads' time |
pub const SCHEMA: u32 = 2;

/// The report.
pub fn value(report: &Report) -> Value {
    let properties: Map<String, Value> =
        report.properties.iter().map(|property| (property.name.to_owned(), property.value.clone())).collect();
    let sections: Map<String, Value> =
        report.sections.iter().map(|section| (section.key.clone(), rows(&section.table))).collect();
    let columns: Map<String, Value> =
        report.sections.iter().map(|section| (section.key.clone(), columns(&section.table))).collect();
    json!({
        "schema": SCHEMA,
        "run": report.title,
        "verdict": json!({"headline": report.headline, "wall_time": report.wall, "rules_checked": report.checked}),
        "job": properties,
        "sections": sections,
        "columns": columns,
        "findings": report.findings,
        "skipped_rules": report.skipped,
    })
}

/// What the columns of a table are.
fn columns(table: &Table) -> Value {
    let column =
        |column: &Column| json!({"name": column.name, "unit": column.unit.name(), "kind": column.values.kind().name()});
    table.columns.iter().map(column).collect()
}

/// A table as a list of objects.
pub fn rows(table: &Table) -> Value {
    let row = |row: usize| -> Value {
        let fields = table.columns.iter().map(|column| {
            let float = |number| serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number);
            let value = match column.values.get(row) {
                Field::Null => Value::Null,
                Field::Int(number) => number.into(),
                Field::Float(number) | Field::Measured(number, _) => float(number),
                Field::Time(ns) => float(seconds(ns.into())),
                Field::Text(text) => text.into(),
                Field::Curve(curve) => points(curve),
            };
            (column.name.clone(), value)
        });
        Value::Object(fields.collect())
    };
    Value::Array((0..table.rows).map(row).collect())
}

/// The points of a curve, to a thousandth: they are for drawing.
pub(crate) fn points(curve: &Curve) -> Value {
    let point = |point: &Option<f64>| point.map_or(Value::Null, |point| json!((point * 1000.0).round() / 1000.0));
    Value::Array(curve.points.iter().map(point).collect())
}
