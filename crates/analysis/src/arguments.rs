//! Arguments of events as people ask for them: the whole object again, and integers that some writers put down as text.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array as _, ArrayRef, Int64Array, StringArray};
use weftline_format::quick::INTEGERS;
use weftline_index::column::mark;
use weftline_index::{Batch, Column};

use crate::classify::member_integer;

/// Integer arguments that DFTracer 1 writes as text.
const ALSO_AS_TEXT: [&str; 5] = ["epoch", "step", "level", "image_idx", "image_size"];

/// Whether the integer argument of this name may also stand in the rest, as text.
pub fn also_as_text(name: &str) -> bool {
    ALSO_AS_TEXT.contains(&name)
}

/// The columns that [`objects`] needs.
pub fn all_columns() -> Vec<Column> {
    (0..INTEGERS.len() as u8).map(Column::Integer).chain([Column::Rest, Column::Marks]).collect()
}

/// An integer argument, read from the text where it is one. Needs its own column and [`Column::Rest`].
pub fn integer_or_text(batch: &Batch, place: u8) -> ArrayRef {
    let (numbers, rest) = (batch.ints(Column::Integer(place)), batch.texts(Column::Rest));
    if numbers.null_count() == 0 || rest.null_count() == rest.len() {
        return Arc::clone(batch.column(Column::Integer(place)));
    }
    let key = INTEGERS[usize::from(place)];
    let found = numbers.iter().zip(rest).map(|(number, rest)| number.or_else(|| member_integer(rest?, key)));
    Arc::new(found.collect::<Int64Array>())
}

/// The arguments of every row as a JSON object; null for rows without.
pub fn objects(batch: &Batch) -> StringArray {
    let integers: Vec<&Int64Array> =
        (0..INTEGERS.len() as u8).map(|place| batch.ints(Column::Integer(place))).collect();
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
        for (name, column) in INTEGERS.iter().zip(&integers).filter(|(_, column)| column.is_valid(row)) {
            let comma = if text.len() > 1 { "," } else { "" };
            // Writing to a text cannot fail.
            let _ = write!(text, "{comma}\"{name}\":{}", column.value(row));
        }
        let others = if rest.is_valid(row) { rest.value(row) } else { "" };
        if text.len() > 1 && !others.is_empty() {
            text.push(',');
        }
        text.push_str(others);
        text.push('}');
        texts.append_value(&text);
    }
    texts.finish()
}
