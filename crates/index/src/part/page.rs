//! A page: up to [`PAGE_ROWS`] rows of one column as bytes.
//!
//! Ids of names, files and processes are small and dense already, and times grow by little from row to row. So a page holds numbers as their
//! distances from the smallest one (times and event ids as differences of neighbours, first), in as few bytes as the largest distance needs, and
//! transposed: all lowest bytes, then all second bytes and so on. zstd finds what repeats in such *planes*, and a loop without branches
//! makes and reads them. Rows without a value take one bit each, and none where no row has one.
//!
//! ```text
//! byte 0     flags
//! byte 1     planes
//! 2..6       numbers: how many rows have one; texts: their bytes together
//! 6..14      the smallest number
//! 14..22     with DELTA: the first number
//! then       with SOME: a bit for each row; the planes; of a text its bytes (with PACKED: all this by zstd)
//! ```
//!
//! A page does not hold its own length and checksum: see [`super::seal`]. Every number in it is checked against what its bytes can hold.

use arrow_array::cast::AsArray as _;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, Int64Array, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use zstd::bulk::{Compressor, Decompressor};

use super::bounds;
use crate::column::Column;

/// Rows of a page. A window of time reads whole pages, so they are small; each costs a call of zstd and some twenty bytes, so they are
/// not smaller.
pub(crate) const PAGE_ROWS: usize = 8 << 10;

/// Levels 2 and 3 take 10 % more time for 2 % less space on traces.
const LEVEL: i32 = 1;
/// Less than this is not worth a call.
const MIN_PACKED: usize = 64;
/// Nobody writes more text into a row group: see `GROUP_TEXT` in `pipeline::work`, and a longest event on top.
const MAX_TEXT: usize = 1 << 30;
/// So much may be packed in any number of bytes: 512 of each row.
const FREE: usize = 4 << 20;

const SOME: u8 = 1;
const DELTA: u8 = 2;
const PACKED: u8 = 4;
/// Times that are whole microseconds, as such: ten bits less each.
const MICROSECONDS: u8 = 8;
const HEAD: usize = 14;

/// A number as pages hold it.
pub(super) trait Number: Copy + Default {
    fn widen(self) -> i64;
    fn narrow(number: i64) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Number for $type {
            #[inline(always)]
            fn widen(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn narrow(number: i64) -> Self {
                number as $type
            }
        })*
    };
}
numbers!(u8, u16, u32, i64);

/// Makes pages. One per thread.
pub(crate) struct Encoder {
    zstd: Compressor<'static>,
    values: Vec<i64>,
    body: Vec<u8>,
    packed: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> std::io::Result<Encoder> {
        Ok(Encoder { zstd: Compressor::new(LEVEL)?, values: Vec::new(), body: Vec::new(), packed: Vec::new() })
    }

    /// Appends the rows from `first` on, `rows` of them, of a column.
    pub(super) fn page(&mut self, column: Column, array: &ArrayRef, first: usize, rows: usize, out: &mut Vec<u8>) {
        use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
        match column {
            Column::Rest | Column::Extra => self.texts(array.as_string(), first, rows, out),
            Column::Phase => self.numbers(column, array.as_primitive::<UInt8Type>(), first, rows, out),
            Column::Marks => self.numbers(column, array.as_primitive::<UInt16Type>(), first, rows, out),
            Column::Name | Column::Cat | Column::Process | Column::File | Column::SecondFile => {
                self.numbers(column, array.as_primitive::<UInt32Type>(), first, rows, out);
            }
            _ => self.numbers(column, array.as_primitive::<Int64Type>(), first, rows, out),
        }
    }

    fn numbers<T: ArrowPrimitiveType<Native: Number>>(
        &mut self,
        column: Column,
        array: &PrimitiveArray<T>,
        first: usize,
        rows: usize,
        out: &mut Vec<u8>,
    ) {
        let numbers = &array.values()[first..first + rows];
        let nulls = array_nulls(array, first, rows);
        self.values.clear();
        self.body.clear();
        let mut flags = 0;
        match &nulls {
            None => self.values.extend(numbers.iter().map(|number| number.widen())),
            Some(nulls) => {
                flags |= SOME;
                let bits = nulls.inner();
                self.body.extend(bits.bit_chunks().iter_padded().flat_map(u64::to_le_bytes).take(rows.div_ceil(8)));
                self.values.extend(nulls.valid_indices().map(|row| numbers[row].widen()));
            }
        }
        let count = self.values.len() as u32;
        if is_time(column) && self.values.iter().all(|ns| ns % 1000 == 0) {
            self.values.iter_mut().for_each(|ns| *ns /= 1000);
            flags |= MICROSECONDS;
        }
        let mut start = None;
        if is_rising(column) && !self.values.is_empty() {
            flags |= DELTA;
            start = self.values.first().copied();
            for row in (1..self.values.len()).rev() {
                self.values[row] = self.values[row].wrapping_sub(self.values[row - 1]);
            }
        }
        let numbers = &self.values[usize::from(start.is_some())..];
        let packs = !is_dense(column) || has_runs(numbers);
        let (smallest, planes) = split(numbers, &mut self.body);
        let mut head = [0; HEAD + 8];
        head[1] = planes;
        head[2..6].copy_from_slice(&count.to_le_bytes());
        head[6..14].copy_from_slice(&smallest.to_le_bytes());
        head[14..].copy_from_slice(&start.unwrap_or(0).to_le_bytes());
        let len = if start.is_some() { HEAD + 8 } else { HEAD };
        self.finish(&mut head[..len], flags, packs, out);
    }

    /// An empty text is none.
    fn texts(&mut self, array: &StringArray, first: usize, rows: usize, out: &mut Vec<u8>) {
        let offsets = &array.value_offsets()[first..=first + rows];
        self.values.clear();
        self.body.clear();
        self.values.extend(offsets.windows(2).map(|ends| i64::from(ends[1]) - i64::from(ends[0])));
        let (smallest, planes) = split(&self.values, &mut self.body);
        let bytes = &array.value_data()[offsets[0] as usize..offsets[rows] as usize];
        self.body.extend_from_slice(bytes);
        let mut head = [0; HEAD];
        head[1] = planes;
        head[2..6].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        head[6..14].copy_from_slice(&smallest.to_le_bytes());
        self.finish(&mut head, 0, true, out);
    }

    fn finish(&mut self, head: &mut [u8], flags: u8, packs: bool, out: &mut Vec<u8>) {
        head[0] = flags;
        // What does not shrink by an eighth is not worth the time of reading it.
        let limit = self.body.len() - self.body.len() / 8;
        if packs && self.body.len() >= MIN_PACKED {
            self.packed.resize(self.packed.len().max(limit), 0);
            if let Ok(len) = self.zstd.compress_to_buffer(&self.body, &mut self.packed[..limit])
                && self.body.len() <= bounds::most_unpacked(len, FREE)
            {
                head[0] |= PACKED;
                out.extend_from_slice(head);
                out.extend_from_slice(&self.packed[..len]);
                return;
            }
        }
        out.extend_from_slice(head);
        out.extend_from_slice(&self.body);
    }
}

fn array_nulls<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, first: usize, rows: usize) -> Option<NullBuffer> {
    use arrow_array::Array as _;
    array.nulls().map(|nulls| nulls.slice(first, rows)).filter(|nulls| nulls.null_count() > 0)
}

fn is_time(column: Column) -> bool {
    matches!(column, Column::Ts | Column::Dur)
}

/// Columns in which neighbours differ less than the whole column does.
fn is_rising(column: Column) -> bool {
    matches!(column, Column::Ts | Column::Id)
}

/// Columns that every row has and nearly every question reads, in one byte or two. zstd would halve them or better, but as short repetitions, the
/// slowest thing to read: names, categories and threads took a quarter of a scan.
fn is_dense(column: Column) -> bool {
    matches!(column, Column::Phase | Column::Name | Column::Cat | Column::Process | Column::Tid | Column::Marks)
}

/// Whether numbers stay the same for long, as those of a trace with one process do: then zstd has little to do for much.
fn has_runs(numbers: &[i64]) -> bool {
    let changes = numbers.windows(2).filter(|pair| pair[0] != pair[1]).count();
    changes * 32 < numbers.len()
}

/// Appends the planes of numbers; the smallest one, and how many planes there are.
fn split(numbers: &[i64], body: &mut Vec<u8>) -> (i64, u8) {
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for number in numbers {
        (least, most) = (least.min(*number), most.max(*number));
    }
    if least >= most {
        return (if numbers.is_empty() { 0 } else { least }, 0);
    }
    let planes = (u64::BITS - (most.wrapping_sub(least) as u64).leading_zeros()).div_ceil(8);
    let start = body.len();
    body.resize(start + planes as usize * numbers.len(), 0);
    for (plane, to) in body[start..].chunks_exact_mut(numbers.len()).enumerate() {
        for (to, number) in to.iter_mut().zip(numbers) {
            *to = (number.wrapping_sub(least) as u64 >> (8 * plane)) as u8;
        }
    }
    (least, planes as u8)
}

/// Reads pages. One per thread.
pub(crate) struct Decoder {
    zstd: Decompressor<'static>,
    body: Vec<u8>,
    values: Vec<i64>,
}

/// The header of a page.
struct Head<'p> {
    flags: u8,
    planes: usize,
    count: usize,
    smallest: i64,
    start: i64,
    body: &'p [u8],
}

impl Head<'_> {
    fn of(page: &[u8]) -> Option<Head<'_>> {
        let (head, mut body) = page.split_first_chunk::<HEAD>()?;
        let [flags, planes, a, b, c, d, smallest @ ..] = *head;
        let mut start = 0;
        if flags & DELTA != 0 {
            let (first, rest) = body.split_first_chunk::<8>()?;
            (start, body) = (i64::from_le_bytes(*first), rest);
        }
        let (planes, count) = (usize::from(planes), u32::from_le_bytes([a, b, c, d]) as usize);
        (planes <= 8).then_some(Head { flags, planes, count, smallest: i64::from_le_bytes(smallest), start, body })
    }
}

impl Decoder {
    pub(crate) fn new() -> std::io::Result<Decoder> {
        Ok(Decoder { zstd: Decompressor::new()?, body: Vec::new(), values: Vec::new() })
    }

    /// Appends the numbers of a page; nothing when it makes no sense.
    fn numbers<T: Number>(&mut self, page: &[u8], rows: usize, into: &mut Numbers<T>) -> Option<()> {
        let head = Head::of(page)?;
        let count = head.count;
        let bits = if head.flags & SOME != 0 { rows.div_ceil(8) } else { 0 };
        if count > rows || bits == 0 && count != rows {
            return None;
        }
        let stored = if head.flags & DELTA != 0 { count.checked_sub(1)? } else { count };
        let body = unpacked(&mut self.zstd, &mut self.body, &head, bits + stored * head.planes)?;
        let (bits, planes) = body.split_at(bits);
        if head.flags & (SOME | DELTA | MICROSECONDS) == 0 {
            into.nulls.append_valid(rows);
            join(planes, count, head.planes, head.smallest, &mut into.values);
            return Some(());
        }
        self.values.clear();
        if head.flags & DELTA != 0 {
            self.values.push(head.start);
        }
        join(planes, stored, head.planes, head.smallest, &mut self.values);
        if head.flags & DELTA != 0 {
            let mut number = 0_i64;
            for value in &mut self.values {
                number = number.wrapping_add(*value);
                *value = number;
            }
        }
        if head.flags & MICROSECONDS != 0 {
            self.values.iter_mut().for_each(|value| *value = value.wrapping_mul(1000));
        }
        if head.flags & SOME == 0 {
            into.nulls.append_valid(rows);
            into.values.extend(self.values.iter().map(|value| T::narrow(*value)));
            return Some(());
        }
        let bits = BooleanBuffer::new(Buffer::from(bits), 0, rows);
        if bits.count_set_bits() != count {
            return None;
        }
        let start = into.values.len();
        into.values.resize(start + rows, T::default());
        for (row, value) in bits.set_indices().zip(&self.values) {
            into.values[start + row] = T::narrow(*value);
        }
        into.nulls.append(&bits);
        Some(())
    }

    fn texts(&mut self, page: &[u8], rows: usize, into: &mut Texts) -> Option<()> {
        let head = Head::of(page)?;
        if head.count > MAX_TEXT || into.bytes.len() + head.count > i32::MAX as usize {
            return None;
        }
        let planes = rows * head.planes;
        let body = unpacked(&mut self.zstd, &mut self.body, &head, planes + head.count)?;
        let (planes, bytes) = body.split_at(planes);
        self.values.clear();
        join(planes, rows, head.planes, head.smallest, &mut self.values);
        let (from, mut end) = (into.bytes.len(), into.bytes.len());
        for len in &self.values {
            end = end.checked_add(usize::try_from(*len).ok()?)?;
            if end - from > bytes.len() {
                return None;
            }
            into.ends.push(end as i32);
        }
        if end - from != bytes.len() {
            return None;
        }
        into.bytes.extend_from_slice(bytes);
        Some(())
    }

    /// The rows of neighbouring pages of a column: how many each has, and its bytes. Nothing when they make no sense.
    pub(super) fn column<'p>(
        &mut self,
        column: Column,
        pages: impl Iterator<Item = (usize, &'p [u8])>,
    ) -> Option<ArrayRef> {
        use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
        match column {
            Column::Rest | Column::Extra => {
                let mut texts = Texts { ends: vec![0], bytes: Vec::new() };
                pages.into_iter().try_for_each(|(rows, page)| self.texts(page, rows, &mut texts))?;
                texts.finish()
            }
            Column::Phase => self.primitive::<UInt8Type>(pages),
            Column::Marks => self.primitive::<UInt16Type>(pages),
            Column::Name | Column::Cat | Column::Process | Column::File | Column::SecondFile => {
                self.primitive::<UInt32Type>(pages)
            }
            _ => self.primitive::<Int64Type>(pages),
        }
    }

    fn primitive<'p, T: ArrowPrimitiveType<Native: Number>>(
        &mut self,
        pages: impl Iterator<Item = (usize, &'p [u8])>,
    ) -> Option<ArrayRef> {
        let mut numbers = Numbers { values: Vec::<T::Native>::new(), nulls: Nulls::default() };
        for (rows, page) in pages {
            self.numbers(page, rows, &mut numbers)?;
        }
        let nulls = numbers.nulls.finish();
        Some(std::sync::Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(numbers.values), nulls)))
    }
}

/// A column that no row of a group has a value of, and that is therefore not stored.
pub(super) fn nothing(column: Column, rows: usize) -> ArrayRef {
    match column {
        Column::Rest | Column::Extra => std::sync::Arc::new(StringArray::new_null(rows)),
        Column::File | Column::SecondFile => std::sync::Arc::new(arrow_array::UInt32Array::new_null(rows)),
        _ => std::sync::Arc::new(Int64Array::new_null(rows)),
    }
}

/// The body of a page, which must have this length. Room for it is made only where it can be so long.
fn unpacked<'b>(zstd: &mut Decompressor<'_>, room: &'b mut Vec<u8>, head: &Head<'b>, len: usize) -> Option<&'b [u8]> {
    if head.flags & PACKED == 0 {
        return (head.body.len() == len).then_some(head.body);
    }
    if len > bounds::most_unpacked(head.body.len(), FREE) {
        return None;
    }
    room.resize(room.len().max(len), 0);
    let unpacked = zstd.decompress_to_buffer(head.body, &mut room[..len]).ok()?;
    (unpacked == len).then_some(&room[..len])
}

/// Appends the numbers of planes.
fn join<T: Number>(planes: &[u8], count: usize, width: usize, smallest: i64, into: &mut Vec<T>) {
    match width {
        0 => into.resize(into.len() + count, T::narrow(smallest)),
        1 => join_planes::<T, 1>(planes, count, smallest, into),
        2 => join_planes::<T, 2>(planes, count, smallest, into),
        3 => join_planes::<T, 3>(planes, count, smallest, into),
        4 => join_planes::<T, 4>(planes, count, smallest, into),
        5 => join_planes::<T, 5>(planes, count, smallest, into),
        6 => join_planes::<T, 6>(planes, count, smallest, into),
        7 => join_planes::<T, 7>(planes, count, smallest, into),
        _ => join_planes::<T, 8>(planes, count, smallest, into),
    }
}

fn join_planes<T: Number, const WIDTH: usize>(planes: &[u8], count: usize, smallest: i64, into: &mut Vec<T>) {
    let planes: [&[u8]; WIDTH] = std::array::from_fn(|plane| &planes[plane * count..][..count]);
    into.extend((0..count).map(|row| {
        let mut number = 0;
        for (plane, bytes) in planes.iter().enumerate() {
            number |= u64::from(bytes[row]) << (8 * plane);
        }
        T::narrow(smallest.wrapping_add(number as i64))
    }));
}

struct Numbers<T> {
    values: Vec<T>,
    nulls: Nulls,
}

/// Which rows have a value; nothing needs to be kept while all have one.
#[derive(Default)]
struct Nulls {
    valid: usize,
    bits: Option<BooleanBufferBuilder>,
}

impl Nulls {
    fn append_valid(&mut self, rows: usize) {
        match &mut self.bits {
            Some(bits) => bits.append_n(rows, true),
            None => self.valid += rows,
        }
    }

    fn append(&mut self, more: &BooleanBuffer) {
        let valid = self.valid;
        let bits = self.bits.get_or_insert_with(|| {
            let mut bits = BooleanBufferBuilder::new(valid + more.len());
            bits.append_n(valid, true);
            bits
        });
        bits.append_buffer(more);
    }

    fn finish(self) -> Option<NullBuffer> {
        self.bits.map(|mut bits| NullBuffer::new(bits.finish()))
    }
}

struct Texts {
    ends: Vec<i32>,
    bytes: Vec<u8>,
}

impl Texts {
    fn finish(self) -> Option<ArrayRef> {
        let nulls = NullBuffer::from_iter(self.ends.windows(2).map(|ends| ends[0] < ends[1]));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let array = StringArray::try_new(offsets, Buffer::from_vec(self.bytes), nulls).ok()?;
        Some(std::sync::Arc::new(array))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Int64Type, UInt32Type};
    use arrow_array::{Array as _, UInt32Array};
    use proptest::prelude::*;

    use super::*;

    /// What was encoded page by page, decoded again, at once and cut at every byte.
    fn check(column: Column, array: &ArrayRef) {
        let mut encoder = Encoder::new().expect("zstd");
        let mut pages: Vec<(usize, Vec<u8>)> = Vec::new();
        for first in (0..array.len()).step_by(PAGE_ROWS) {
            let (rows, mut bytes) = (PAGE_ROWS.min(array.len() - first), Vec::new());
            encoder.page(column, array, first, rows, &mut bytes);
            pages.push((rows, bytes));
        }
        let mut decoder = Decoder::new().expect("zstd");
        let found = decoder.column(column, pages.iter().map(|(rows, bytes)| (*rows, &bytes[..])));
        assert_eq!(found.as_ref(), Some(array), "{column:?}");
        if let Some((rows, bytes)) = pages.first() {
            for len in (0..bytes.len()).step_by(1 + bytes.len() / 100) {
                assert_eq!(
                    decoder.column(column, [(*rows, &bytes[..len])].into_iter()),
                    None,
                    "{column:?} cut at {len}"
                );
            }
        }
    }

    fn integers(values: Vec<Option<i64>>) {
        let array: ArrayRef = Arc::new(PrimitiveArray::<Int64Type>::from(values));
        for column in [Column::Ts, Column::Dur, Column::Id, Column::Integer(0)] {
            check(column, &array);
        }
    }

    #[test]
    fn edges() {
        integers(vec![None, None, Some(0)]);
        integers(vec![Some(i64::MIN), Some(i64::MAX), Some(-1), None]);
        integers(vec![Some(7); 20_000]);
        integers((0..20_000).map(|n| (n % 3 > 0 || n < 9_000).then_some(n * 1000)).collect());
        integers((0..20_000).map(|n| (n > 10_000).then_some(n * n)).collect());
        check(
            Column::Rest,
            &(Arc::new(StringArray::from(vec![None, Some("a"), Some("é\u{1F600}"), None])) as ArrayRef),
        );
        check(Column::Rest, &(Arc::new(StringArray::from(vec![Some("x"); 9_000])) as ArrayRef));
    }

    proptest! {
        #[test]
        fn any_numbers(values in prop::collection::vec(prop::option::weighted(0.9, any::<i64>()), 1..600)) {
            prop_assume!(values.iter().any(Option::is_some));
            integers(values);
        }

        #[test]
        fn any_ids(values in prop::collection::vec(prop::option::of(0..5000_u32), 1..600)) {
            prop_assume!(values.iter().any(Option::is_some));
            check(Column::File, &(Arc::new(PrimitiveArray::<UInt32Type>::from(values)) as ArrayRef));
        }

        #[test]
        fn any_texts(values in prop::collection::vec(prop::option::of("[a-zé\"]{1,40}"), 1..300)) {
            check(Column::Rest, &(Arc::new(StringArray::from(values)) as ArrayRef));
        }

        /// Arbitrary bytes are refused or decode to some column: nothing worse.
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 1..200_usize) {
            let mut decoder = Decoder::new().expect("zstd");
            for column in [Column::Ts, Column::File, Column::Phase, Column::Rest] {
                if let Some(array) = decoder.column(column, [(rows, &bytes[..])].into_iter()) {
                    prop_assert_eq!(array.len(), rows);
                }
            }
        }
    }

    /// A few bytes that stand for a gigabyte of text: nothing is made room for.
    #[test]
    fn bombs_are_refused() {
        let body = Compressor::new(LEVEL).expect("zstd").compress(&vec![b'x'; 64 << 20]).expect("packed");
        for count in [64_u32 << 20, 1 << 30, u32::MAX] {
            let mut page = vec![PACKED, 0];
            page.extend(count.to_le_bytes());
            page.extend(i64::from(count).to_le_bytes());
            page.extend(&body);
            let mut decoder = Decoder::new().expect("zstd");
            assert_eq!(decoder.column(Column::Rest, [(1, &page[..])].into_iter()), None, "{count}");
            assert_eq!(decoder.body.capacity(), 0, "{count}");
        }
        // What is as long and is written by us is not packed.
        check(Column::Rest, &(Arc::new(StringArray::from(vec!["x".repeat(5 << 20)])) as ArrayRef));
    }

    #[test]
    fn what_is_not_stored_is_absent() {
        assert_eq!(nothing(Column::File, 3).as_ref(), &UInt32Array::new_null(3));
        assert_eq!(nothing(Column::Rest, 2).null_count(), 2);
        assert_eq!(nothing(Column::Dur, 2).null_count(), 2);
    }
}
