//! Sorts the rows of a row group by time, if the trace is not in that order already.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowPrimitiveType, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array as _, ArrayRef, Int64Array, PrimitiveArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::{Columns, GroupMeta, add_times};
use crate::column::Column;

/// How many pages cover a moment on average, at most, before sorting pays.
const MOST_COVER: i128 = 4;

/// Sorts the rows of a group by their start if its pages cover each other too much; rows without a time come first, and rows of the same
/// time stay as they were. The place that each row has then.
pub(super) fn sort(columns: &mut Columns, meta: &mut GroupMeta) -> Option<Vec<u32>> {
    let length = |range: &(i64, i64)| i128::from(range.1) - i128::from(range.0);
    let all = meta.time.as_ref().map(length)?;
    let covered: i128 = meta.pages.iter().flatten().map(length).sum();
    if covered <= MOST_COVER * all {
        return None;
    }
    let ts: &Int64Array = columns[Column::Ts.place()].as_primitive::<Int64Type>();
    let order = sorted(ts);
    let mut places = vec![0; order.len()];
    for (place, row) in order.iter().enumerate() {
        places[*row as usize] = place as u32;
    }
    for column in columns.iter_mut() {
        if column.null_count() < column.len() {
            *column = gathered(column, &order);
        }
    }
    let phase = columns[Column::Phase.place()].as_primitive::<UInt8Type>().values();
    let times = [Column::Ts, Column::Dur].map(|column| columns[column.place()].as_primitive::<Int64Type>());
    meta.pages.clear();
    add_times(meta, phase, times[0], times[1]);
    Some(places)
}

/// The rows in the order of their starts.
fn sorted(ts: &Int64Array) -> Vec<u32> {
    let rows = ts.len() as u32;
    let (least, most) =
        ts.values().iter().fold((i64::MAX, i64::MIN), |(least, most), ts| (least.min(*ts), most.max(*ts)));
    let bits = u32::BITS - rows.leading_zeros();
    // Start and row in one word, as long as they fit: to compare words takes a third of the time of looking starts up.
    if ts.null_count() == 0 && most.abs_diff(least).leading_zeros() > bits {
        let mut words: Vec<u64> =
            ts.values().iter().zip(0..).map(|(ts, row)| ts.abs_diff(least) << bits | row).collect();
        words.sort_unstable();
        return words.into_iter().map(|word| (word & ((1 << bits) - 1)) as u32).collect();
    }
    let mut order: Vec<u32> = (0..rows).collect();
    order.sort_by_key(|row| ts.is_valid(*row as usize).then(|| ts.value(*row as usize)));
    order
}

/// A column with its rows in this order. Loops of our own: arrow's are built for size here, and took three times as long.
fn gathered(array: &ArrayRef, order: &[u32]) -> ArrayRef {
    match array.data_type() {
        DataType::UInt8 => primitive::<UInt8Type>(array, order),
        DataType::UInt16 => primitive::<UInt16Type>(array, order),
        DataType::UInt32 => primitive::<UInt32Type>(array, order),
        DataType::Int64 => primitive::<Int64Type>(array, order),
        // Texts. Every place is one of the column, so that nothing can fail.
        _ => take(array, &UInt32Array::from(order.to_vec()), None).unwrap_or_else(|_| Arc::clone(array)),
    }
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef, order: &[u32]) -> ArrayRef {
    let array = array.as_primitive::<T>();
    let numbers = array.values();
    let values: Vec<T::Native> = order.iter().map(|row| numbers[*row as usize]).collect();
    let valid =
        |nulls: &NullBuffer| BooleanBuffer::collect_bool(order.len(), |place| nulls.is_valid(order[place] as usize));
    let nulls = array.nulls().map(|nulls| NullBuffer::new(valid(nulls)));
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
}

#[cfg(test)]
mod tests {
    use arrow_array::{UInt8Array, new_null_array};

    use super::super::page::PAGE_ROWS;
    use super::*;

    /// A group of rows with these starts, their durations the row's number.
    fn group(starts: &[Option<i64>]) -> (Columns, GroupMeta) {
        let rows = starts.len();
        let columns: Columns = Column::all()
            .map(|column| -> ArrayRef {
                match column {
                    Column::Ts => Arc::new(Int64Array::from(starts.to_vec())),
                    Column::Dur => Arc::new(Int64Array::from_iter_values(0..rows as i64)),
                    Column::Phase => Arc::new(UInt8Array::from(vec![b'X'; rows])),
                    // As every other column of its type: rows move together.
                    _ if column.data_type() == DataType::UInt32 => {
                        Arc::new(UInt32Array::from_iter_values(0..rows as u32))
                    }
                    _ => new_null_array(&column.data_type(), rows),
                }
            })
            .collect();
        let mut meta = GroupMeta { rows: rows as u64, ..GroupMeta::default() };
        let ints = |column: Column| columns[column.place()].as_primitive::<Int64Type>();
        add_times(&mut meta, &vec![b'X'; rows], ints(Column::Ts), ints(Column::Dur));
        (columns, meta)
    }

    fn check(starts: &[Option<i64>], sorted: bool) {
        let (mut columns, mut meta) = group(starts);
        let before = meta.time;
        let places = sort(&mut columns, &mut meta);
        assert_eq!((places.is_some(), meta.time), (sorted, before));
        let mut expected: Vec<(Option<i64>, i64)> = starts.iter().copied().zip(0..).collect();
        if sorted {
            expected.sort();
            for (row, place) in places.iter().flatten().enumerate() {
                assert_eq!(expected[*place as usize].1, row as i64);
            }
        }
        let ints = |column: Column| columns[column.place()].as_primitive::<Int64Type>();
        let found: Vec<_> = ints(Column::Ts).iter().zip(ints(Column::Dur).values().iter().copied()).collect();
        assert_eq!(found, expected);
        for column in Column::all().filter(|column| column.data_type() == DataType::UInt32) {
            let numbers = columns[column.place()].as_primitive::<UInt32Type>().values().iter();
            assert!(numbers.zip(&expected).all(|(number, row)| i64::from(*number) == row.1), "{}", column.name());
        }
        for (page, rows) in meta.pages.iter().zip(expected.chunks(PAGE_ROWS)) {
            let ends = rows.iter().filter_map(|(start, dur)| Some((*start)?.max((*start)? + dur)));
            let range = rows.iter().filter_map(|row| row.0).min().zip(ends.max());
            assert_eq!(*page, range);
        }
    }

    #[test]
    fn rows_are_sorted_where_pages_cover_each_other() {
        let far = 1_000_000_000;
        // One file in order, with a row without a time.
        check(&(0..100_000).map(|n| (n != 70_000).then_some(n * far)).collect::<Vec<_>>(), false);
        // Ten processes, each over all of the time.
        check(&(0..100_000).map(|n| (n % 977 != 0).then_some(n % 10_000 * far)).collect::<Vec<_>>(), true);
        // No order at all.
        check(&(0..90_000_i64).map(|n| Some(n * 7_919 % 90_001 * far)).collect::<Vec<_>>(), true);
        // A few pages are read anyway.
        check(&(0..30_000).map(|n| Some(n % 1_000 * far)).collect::<Vec<_>>(), false);
        check(&[], false);
        check(&[None, None], false);
    }
}
