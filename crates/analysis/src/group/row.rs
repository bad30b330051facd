//! The values of a batch's rows: times, sizes, offsets.

use arrow_array::{Array as _, Int64Array, StringArray};
use weftline_index::{Batch, Column};

use super::cell::{Cell, Values};
use crate::classify::{Classes, SizeKind, field_integer};

/// The columns of values of a batch.
pub(crate) struct Row<'b> {
    ts: Option<&'b Int64Array>,
    dur: &'b Int64Array,
    cats: &'b [u32],
    names: &'b [u32],
    ret: &'b Int64Array,
    image: &'b Int64Array,
    offset: Option<&'b Int64Array>,
    rest: Option<&'b StringArray>,
}

#[inline]
pub(crate) fn number(column: &Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}

impl<'b> Row<'b> {
    pub(super) fn of<C: Cell>(batch: &'b Batch, rest: bool) -> Row<'b> {
        Row::new(batch, rest, C::OFFSET, C::START)
    }

    /// The columns must have been asked for.
    pub(crate) fn new(batch: &'b Batch, rest: bool, offset: bool, start: bool) -> Row<'b> {
        Row {
            ts: start.then(|| batch.ints(Column::Ts)),
            dur: batch.ints(Column::Dur),
            cats: batch.ids(Column::Cat).values(),
            names: batch.ids(Column::Name).values(),
            ret: batch.ints(Column::RET),
            image: batch.ints(Column::IMAGE_SIZE),
            offset: offset.then(|| batch.ints(Column::OFFSET)),
            rest: rest.then(|| batch.texts(Column::Rest)),
        }
    }

    /// Category and name.
    #[inline]
    pub(crate) fn kind(&self, row: usize) -> (u32, u32) {
        (self.cats[row], self.names[row])
    }

    /// Start and duration; an event without them has none.
    #[inline]
    pub(crate) fn span(&self, row: usize) -> (i64, i64) {
        let start = self.ts.and_then(|ts| number(ts, row)).unwrap_or(0);
        (start, number(self.dur, row).unwrap_or(0))
    }

    #[inline]
    pub(crate) fn offset(&self, row: usize) -> Option<i64> {
        self.offset.and_then(|offset| number(offset, row))
    }

    #[inline]
    pub(super) fn values<C: Cell>(&self, row: usize, size: Option<u64>) -> Values {
        let (start, dur) = self.span(row);
        Values { start, dur, size, offset: if C::OFFSET { self.offset(row) } else { None } }
    }

    fn field(&self, row: usize, key: &str) -> Option<i64> {
        let rest = self.rest?;
        if rest.is_valid(row) { field_integer(rest.value(row), key) } else { None }
    }

    /// What the call returned, where that is positive.
    #[inline]
    pub(crate) fn returned(&self, row: usize) -> Option<u64> {
        number(self.ret, row).filter(|ret| *ret > 0).map(|ret| ret as u64)
    }

    #[inline]
    pub(super) fn image(&self, row: usize) -> Option<u64> {
        number(self.image, row).filter(|size| *size > 0).map(|size| size as u64)
    }

    /// The size of an event.
    #[inline]
    pub(crate) fn size(&self, row: usize, classes: &Classes) -> Option<u64> {
        match classes.size_kind(self.cats[row], self.names[row]) {
            SizeKind::Returned => self.returned(row),
            SizeKind::None => None,
            SizeKind::Image => self.summed(row).or_else(|| self.image(row)),
            SizeKind::Summed => self.summed(row),
        }
    }

    fn summed(&self, row: usize) -> Option<u64> {
        self.field(row, "size_sum").and_then(|size| u64::try_from(size).ok())
    }
}
