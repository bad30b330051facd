//! Growing columns of which rows may have no value.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, ArrowPrimitiveType, Int64Array, StringArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

/// The memory of a column; none when somebody else holds it too.
pub(super) fn memory_of<T: ArrowPrimitiveType>(column: ArrayRef) -> Vec<T::Native> {
    let array = column.as_primitive_opt::<T>().cloned();
    drop(column);
    let values = array.map(|array| array.into_parts().1.into_inner().into_vec::<T::Native>());
    let mut memory = values.and_then(Result::ok).unwrap_or_default();
    memory.clear();
    memory
}

/// Which rows have a value.
#[derive(Default)]
struct Valid {
    /// As many rows from the first on have one; they are not in `words`.
    dense: usize,
    words: Vec<u64>,
    /// Rows behind those that have one.
    others: usize,
}

impl Valid {
    #[inline]
    fn set(&mut self, row: usize) {
        if row == self.dense && self.words.is_empty() {
            // Where every row has a value, as is usual, nothing needs to be remembered of each.
            self.dense += 1;
        } else if row >= self.dense {
            self.set_other(row);
        }
    }

    #[inline]
    fn set_other(&mut self, row: usize) {
        let word = row / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (row % 64);
        self.others += usize::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    fn is_empty(&self) -> bool {
        self.dense + self.others == 0
    }

    fn finish(mut self, rows: usize) -> Option<NullBuffer> {
        if self.dense + self.others == rows {
            return None;
        }
        self.words.resize(rows.div_ceil(64), 0);
        let (whole, bits) = (self.dense / 64, self.dense % 64);
        self.words[..whole].fill(u64::MAX);
        if bits > 0 {
            self.words[whole] |= (1 << bits) - 1;
        }
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(self.words), 0, rows)))
    }
}

/// Integers.
#[derive(Default)]
pub(crate) struct Sparse {
    values: Vec<i64>,
    valid: Valid,
}

impl Sparse {
    pub(super) fn in_memory(values: Vec<i64>) -> Sparse {
        Sparse { values, valid: Valid::default() }
    }

    /// Sets the newest row.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: i64) {
        if self.values.len() < row {
            self.values.resize(row, 0);
        }
        self.values.push(value);
        self.valid.set(row);
    }

    /// Sets an earlier row.
    pub(crate) fn put(&mut self, row: usize, value: i64) {
        if self.values.len() <= row {
            self.values.resize(row + 1, 0);
        }
        self.values[row] = value;
        self.valid.set(row);
    }

    /// The values, where there are any.
    pub(crate) fn finish(mut self, rows: usize) -> Int64Array {
        if self.valid.is_empty() {
            // Memory that is zero and that nobody will touch.
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
        if self.values.len() < row {
            self.values.resize(row, 0);
        }
        self.values.push(value);
        self.valid.set(row);
    }

    /// The ids as others number them.
    pub(crate) fn finish(mut self, rows: usize, map: &[u32]) -> UInt32Array {
        self.values.resize(rows, 0);
        if !self.valid.is_empty() {
            for value in &mut self.values {
                *value = map[*value as usize];
            }
        }
        UInt32Array::new(ScalarBuffer::from(self.values), self.valid.finish(rows))
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
