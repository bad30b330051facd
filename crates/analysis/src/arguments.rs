//! Rebuilds the arguments of events as a whole JSON object.

use std::fmt::Write as _;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array as _, Int64Array, StringArray};
use weftline_format::quick::integers_in;
use weftline_index::column::mark;
use weftline_index::{Batch, Column};

/// The arguments of every row as a JSON object; null for rows without.
pub fn objects(batch: &Batch) -> StringArray {
    let integers: Vec<(&str, &Int64Array)> =
        Column::arguments().map(|column| (column.name(), batch.ints(column))).collect();
    let (rest, marks) = (batch.texts(Column::Rest), batch.marks());
    let mut texts = StringBuilder::new();
    let mut text = String::new();
    for row in 0..batch.rows() {
        if marks.value(row) & mark::ARGS == 0 {
            texts.append_null();
            continue;
        }
        text.clear();
        text.push('{');
        let others = if rest.is_valid(row) { rest.value(row) } else { "" };
        let otherwise = integers_in(others);
        for (place, (name, column)) in integers.iter().enumerate() {
            if column.is_null(row) || otherwise >> place & 1 == 1 {
                continue;
            }
            let comma = if text.len() > 1 { "," } else { "" };
            // Writing to a text cannot fail.
            let _ = write!(text, "{comma}\"{name}\":{}", column.value(row));
        }
        if text.len() > 1 && !others.is_empty() {
            text.push(',');
        }
        text.push_str(others);
        text.push('}');
        texts.append_value(&text);
    }
    texts.finish()
}
