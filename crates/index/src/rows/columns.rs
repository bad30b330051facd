//! Growing columns with optional values.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, ArrowPrimitiveType, Int64Array, StringArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

/// The memory of a column; none if it is shared.
pub(super) fn memory_of<T: ArrowPrimitiveType>(column: ArrayRef) -> Vec<T::Native> {
    let array = column.as_primitive_opt::<T>().cloned();
    drop(column);
    let values = array.map(|array| array.into_parts().1.into_inner().into_vec::<T::Native>());
    let mut memory = values.and_then(Result::ok).unwrap_or_default();
    memory.clear();
    memory
}

/// Rows for which room is made at first.
const FIRST_ROOM: usize = 1 << 10;

/// Which rows have a value: a bit each, as far as there is room.
#[derive(Default)]
struct Valid(Vec<u64>);

impl Valid {
    #[inline]
    fn set(&mut self, row: usize) {
        if row / 64 >= self.0.len() {
            self.0.resize(more_room(self.0.len(), row / 64), 0);
        }
        self.0[row / 64] |= 1 << (row % 64);
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn finish(mut self, rows: usize) -> Option<NullBuffer> {
        self.0.resize(rows.div_ceil(64), 0);
        let bits = BooleanBuffer::new(Buffer::from_vec(self.0), 0, rows);
        let nulls = NullBuffer::new(bits);
        (nulls.null_count() > 0).then_some(nulls)
    }
}

/// Room that holds a place: at least twice what there was.
#[cold]
fn more_room(room: usize, place: usize) -> usize {
    (2 * room).max(place + 1).next_multiple_of(FIRST_ROOM)
}

/// Integers. Rows may be set in any order, and again.
#[derive(Default)]
pub(crate) struct Sparse {
    /// Zeros where no row was set: the room is larger than the rows so far, so that a row is set without a look at those before.
    values: Vec<i64>,
    valid: Valid,
}

impl Sparse {
    pub(super) fn in_memory(values: Vec<i64>) -> Sparse {
        Sparse { values, valid: Valid::default() }
    }

    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: i64) {
        if row >= self.values.len() {
            self.values.resize(more_room(self.values.len(), row), 0);
        }
        self.values[row] = value;
        self.valid.set(row);
    }

    /// The values, where there are any.
    pub(crate) fn finish(mut self, rows: usize) -> Int64Array {
        if self.valid.is_empty() {
            // Zeroed memory that is never touched.
            return Int64Array::new_null(rows);
        }
        self.values.resize(rows, 0);
        Int64Array::new(ScalarBuffer::from(self.values), self.valid.finish(rows))
    }
}

/// Ids.
#[derive(Default)]
pub(crate) struct Ids {
    values: Vec<u32>,
    valid: Valid,
}

impl Ids {
    pub(super) fn in_memory(values: Vec<u32>) -> Ids {
        Ids { values, valid: Valid::default() }
    }

    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: u32) {
        if row >= self.values.len() {
            self.values.resize(more_room(self.values.len(), row), 0);
        }
        self.values[row] = value;
        self.valid.set(row);
    }

    /// The ids as others number them; 0 where there is none.
    pub(crate) fn finish(mut self, rows: usize, map: &[u32]) -> UInt32Array {
        self.values.resize(rows, 0);
        let nulls = self.valid.finish(rows);
        match &nulls {
            None => self.values.iter_mut().for_each(|value| *value = map[*value as usize]),
            Some(nulls) => nulls.valid_indices().for_each(|row| self.values[row] = map[self.values[row] as usize]),
        }
        UInt32Array::new(ScalarBuffer::from(self.values), nulls)
    }
}

/// Texts; an empty one is none.
#[derive(Default)]
pub(crate) struct Texts {
    bytes: String,
    /// Where each row's text ends, as far as rows were set.
    ends: Vec<i32>,
    valid: Valid,
}

impl Texts {
    #[inline]
    pub(crate) fn set(&mut self, row: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        let end = self.bytes.len() as i32;
        self.ends.resize(row, end);
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len() as i32);
        self.valid.set(row);
    }

    /// Bytes so far: offsets have 31 bits, so rows must be handed on before that.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn finish(mut self, rows: usize) -> ArrayRef {
        let end = self.bytes.len() as i32;
        self.ends.resize(rows, end);
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        offsets.append(&mut self.ends);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let values = Buffer::from_vec(self.bytes.into_bytes());
        Arc::new(StringArray::new(offsets, values, self.valid.finish(rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that are set in this order, twice where they stand twice, and what the column then has.
    fn check(rows: usize, order: &[usize]) {
        let mut valid = Valid::default();
        order.iter().for_each(|row| valid.set(*row));
        let nulls = valid.finish(rows);
        let found: Vec<bool> = (0..rows).map(|row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))).collect();
        let expected: Vec<bool> = (0..rows).map(|row| order.contains(&row)).collect();
        assert_eq!(found, expected, "{order:?} of {rows}");
    }

    #[test]
    fn rows_with_a_value_are_known_in_any_order() {
        check(0, &[]);
        check(3, &[]);
        check(3, &[0, 1, 2]);
        check(3, &[0, 1]);
        check(3, &[1, 2]);
        // The end of a span comes after other events: an earlier row is set.
        check(3, &[1, 2, 0]);
        check(4, &[1, 0, 1, 2]);
        check(4, &[0, 2, 1, 1, 2]);
        let most: Vec<usize> = (0..200).filter(|row| *row != 130).collect();
        check(200, &most);
        check(201, &[&most[..], &[130]].concat());
        check(64, &(0..64).collect::<Vec<_>>());
        check(65, &(0..64).collect::<Vec<_>>());
    }
}
