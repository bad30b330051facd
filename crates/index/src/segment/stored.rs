//! How columns lie in the file, where that differs from what batches hold.
//!
//! Columns that nearly every row has (times, file, id) are stored without Parquet's notion of absence, which costs a bit per row and an
//! encoder's call; a number that means "none" stands in. Times of traces with microseconds are stored as such: ten bits less each.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array as _, ArrayRef, Int64Array, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{Field, Schema, SchemaRef};

use super::{Columns, GroupMeta};
use crate::column::Column;

const NO_NUMBER: i64 = i64::MIN;
const NO_ID: u32 = u32::MAX;

/// Whether a column is stored without absence.
pub(super) fn is_dense(column: Column) -> bool {
    matches!(column, Column::Ts | Column::Dur | Column::File | Column::Id)
}

fn is_time(column: Column) -> bool {
    matches!(column, Column::Ts | Column::Dur)
}

/// The schema of the file.
pub(super) fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let field =
            |column: Column| Field::new(column.name(), column.data_type(), column.nullable() && !is_dense(column));
        Arc::new(Schema::new(Column::all().map(field).collect::<Vec<_>>()))
    });
    Arc::clone(&SCHEMA)
}

/// The columns of a group as they are stored, and the unit of their times.
pub(super) fn pack(columns: Columns, meta: &mut GroupMeta) -> Columns {
    let times = Column::all().zip(&columns).filter(|(column, _)| is_time(*column));
    let whole = |(_, array): (Column, &ArrayRef)| {
        let array = array.as_primitive::<Int64Type>();
        array.values().iter().all(|ns| ns % 1000 == 0)
    };
    meta.unit = if times.into_iter().all(whole) { 1000 } else { 1 };
    let unit = meta.unit;
    Column::all()
        .zip(columns)
        .map(|(column, array)| -> ArrayRef {
            if !is_dense(column) {
                return array;
            }
            meta.absent |= u32::from(array.null_count() > 0) << column.place();
            if column == Column::File {
                let ids = array.as_primitive::<UInt32Type>();
                return match ids.nulls() {
                    None => array,
                    Some(nulls) => {
                        let stored = ids.values().iter().zip(nulls).map(|(id, there)| if there { *id } else { NO_ID });
                        Arc::new(UInt32Array::from_iter_values(stored))
                    }
                };
            }
            let numbers = array.as_primitive::<Int64Type>();
            let unit = if is_time(column) { unit } else { 1 };
            match numbers.nulls() {
                None if unit == 1 => array,
                None => Arc::new(Int64Array::from_iter_values(numbers.values().iter().map(|number| number / unit))),
                Some(nulls) => {
                    let stored = numbers.values().iter().zip(nulls);
                    let stored = stored.map(|(number, there)| if there { number / unit } else { NO_NUMBER });
                    Arc::new(Int64Array::from_iter_values(stored))
                }
            }
        })
        .collect()
}

/// A column of a group as batches hold it.
pub(super) fn unpack(column: Column, array: &ArrayRef, meta: &GroupMeta) -> ArrayRef {
    let absent = meta.absent >> column.place() & 1 == 1;
    let unit = if is_time(column) { meta.unit } else { 1 };
    if !is_dense(column) || !absent && unit == 1 {
        return Arc::clone(array);
    }
    if column == Column::File {
        let ids = array.as_primitive::<UInt32Type>();
        let nulls = NullBuffer::from_iter(ids.values().iter().map(|id| *id != NO_ID));
        let known = ids.values().iter().map(|id| if *id == NO_ID { 0 } else { *id }).collect();
        return Arc::new(UInt32Array::new(known, Some(nulls)));
    }
    let numbers = array.as_primitive::<Int64Type>();
    // Times beyond the range of 64 bits of nanoseconds were not stored in another unit.
    let values = numbers.values().iter().map(|number| number.wrapping_mul(unit)).collect();
    let nulls = absent.then(|| NullBuffer::from_iter(numbers.values().iter().map(|number| *number != NO_NUMBER)));
    Arc::new(Int64Array::new(values, nulls))
}

#[cfg(test)]
mod tests {
    use arrow_array::new_null_array;

    use super::*;

    fn check(ts: &[Option<i64>], file: &[Option<u32>], unit: i64) {
        let rows = ts.len();
        let columns: Columns = Column::all()
            .map(|column| -> ArrayRef {
                match column {
                    Column::Ts => Arc::new(Int64Array::from(ts.to_vec())),
                    Column::File => Arc::new(UInt32Array::from(file.to_vec())),
                    _ => new_null_array(&column.data_type(), rows),
                }
            })
            .collect();
        let mut meta = GroupMeta::default();
        let stored = pack(columns.clone(), &mut meta);
        assert_eq!(meta.unit, unit);
        for ((column, stored), expected) in Column::all().zip(&stored).zip(&columns) {
            assert!(!is_dense(column) || stored.null_count() == 0, "{column:?}");
            assert_eq!(&unpack(column, stored, &meta), expected, "{column:?}");
        }
    }

    #[test]
    fn what_is_stored_comes_back() {
        check(&[Some(1000), Some(-5000), Some(0)], &[Some(7), None, Some(0)], 1000);
        check(&[Some(1001), None, Some(i64::MAX)], &[None, None, None], 1);
        check(&[None, None], &[Some(1), Some(2)], 1000);
        check(&[], &[], 1000);
    }
}
