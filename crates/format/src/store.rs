//! A byte buffer that is written with stores of fixed size.
//!
//! Appending a piece of varying length to a `Vec` is a look at the capacity, a call of `memcpy` and an update of the
//! length in memory, which the next piece waits for; a trace line has some twenty-five pieces. Here a [`Cursor`] keeps
//! the place in a register, room is made once for several pieces, and a short piece is one or two stores, the last of
//! which may reach beyond it. `examples/encode_speed.rs` measures the outcome: less than half of what
//! `Vec::extend_from_slice` took.

use crate::text::{escape_odd_bytes, is_plain};

/// Room behind every piece for a store that reaches beyond it.
const REACH: usize = 64;

/// Written bytes, and zeros behind them.
#[derive(Debug, Default)]
pub(crate) struct Store {
    bytes: Vec<u8>,
    len: usize,
    /// What [`Store::append`] writes to.
    slow: Vec<u8>,
}

impl Store {
    pub(crate) fn with_capacity(capacity: usize) -> Store {
        Store { bytes: vec![0; capacity], ..Store::default() }
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub(crate) fn into_vec(mut self) -> Vec<u8> {
        self.bytes.truncate(self.len);
        self.bytes
    }

    /// The place to put at most `room` bytes; [`Store::commit`] makes them count. Two calls and no closure: a closure
    /// that is not inlined would force the cursor into memory, which doubles the time of a line.
    #[inline(always)]
    pub(crate) fn cursor(&mut self, room: usize) -> Cursor<'_> {
        if self.bytes.len() - self.len < room + REACH {
            self.grow(room + REACH);
        }
        Cursor { bytes: &mut self.bytes[self.len..], at: 0 }
    }

    /// Makes bytes count that were put through the last cursor.
    #[inline(always)]
    pub(crate) fn commit(&mut self, len: usize) {
        self.len += len;
        debug_assert!(self.len <= self.bytes.len());
    }

    /// A number.
    pub(crate) fn put_i64(&mut self, v: i64) {
        let mut out = self.cursor(20);
        out.put_i64(v);
        let len = out.len();
        self.commit(len);
    }

    /// A number without sign.
    pub(crate) fn put_u64(&mut self, v: u64) {
        let mut out = self.cursor(20);
        out.put_u64(v);
        let len = out.len();
        self.commit(len);
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let wanted = (self.len + more).max(self.bytes.len() * 2).max(1024);
        self.bytes.resize(wanted, 0);
    }

    /// Bytes of any length.
    pub(crate) fn put_slice(&mut self, piece: &[u8]) {
        let mut out = self.cursor(piece.len());
        out.put_slice(piece);
        self.commit(piece.len());
    }

    /// Raw bytes as the inside of a JSON string.
    #[inline]
    pub(crate) fn put_escaped(&mut self, bytes: &[u8]) {
        if is_plain(bytes) {
            self.put_slice(bytes);
        } else {
            self.append(|out| escape_odd_bytes(out, bytes));
        }
    }

    /// Lets `write` append as to a vector: the slow way, for what is rare. It is a vector beside this one, which would have to be
    /// cut to its written part, and filled with zeros again afterwards.
    #[cold]
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut slow = std::mem::take(&mut self.slow);
        slow.clear();
        write(&mut slow);
        self.put_slice(&slow);
        self.slow = slow;
    }
}

/// The place behind the last written byte, while room is left.
pub(crate) struct Cursor<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.at
    }

    /// A piece whose length is known when compiling.
    #[inline(always)]
    pub(crate) fn put<const N: usize>(&mut self, piece: &[u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(piece);
        self.at += N;
    }

    /// The first `len` bytes of a piece.
    #[inline(always)]
    pub(crate) fn put_part<const N: usize>(&mut self, piece: &[u8; N], len: usize) {
        self.bytes[self.at..self.at + N].copy_from_slice(piece);
        self.at += len;
    }

    /// Bytes of any length; short ones, which names and keys are, as two words that may overlap.
    #[inline(always)]
    pub(crate) fn put_slice(&mut self, piece: &[u8]) {
        let end = self.at + piece.len();
        if let (Some(first), Some(last), 8..=16) = (piece.first_chunk::<8>(), piece.last_chunk::<8>(), piece.len()) {
            self.bytes[self.at..self.at + 8].copy_from_slice(first);
            self.bytes[end - 8..end].copy_from_slice(last);
        } else if let (Some(first), Some(last), 4..=7) =
            (piece.first_chunk::<4>(), piece.last_chunk::<4>(), piece.len())
        {
            self.bytes[self.at..self.at + 4].copy_from_slice(first);
            self.bytes[end - 4..end].copy_from_slice(last);
        } else if let (Some(first), Some(last), 1..=3) = (piece.first(), piece.last(), piece.len()) {
            self.bytes[self.at] = *first;
            self.bytes[self.at + piece.len() / 2] = piece[piece.len() / 2];
            self.bytes[end - 1] = *last;
        } else {
            self.bytes[self.at..end].copy_from_slice(piece);
        }
        self.at = end;
    }

    /// The decimal digits of a number.
    #[inline(always)]
    pub(crate) fn put_u64(&mut self, v: u64) {
        if v < 10 {
            self.put(&[b'0' + v as u8]);
        } else if v < EIGHT_DIGITS {
            self.put_leading(v as u32);
        } else {
            self.put_long(v);
        }
    }

    #[inline(always)]
    fn put_long(&mut self, v: u64) {
        if v < EIGHT_DIGITS * EIGHT_DIGITS {
            self.put_leading((v / EIGHT_DIGITS) as u32);
        } else {
            let high = v / EIGHT_DIGITS;
            self.put_leading((high / EIGHT_DIGITS) as u32);
            self.put(&eight_digits((high % EIGHT_DIGITS) as u32));
        }
        self.put(&eight_digits((v % EIGHT_DIGITS) as u32));
    }

    /// The same with a sign.
    #[inline(always)]
    pub(crate) fn put_i64(&mut self, v: i64) {
        if v < 0 {
            self.put(b"-");
        }
        self.put_u64(v.unsigned_abs());
    }

    /// Up to eight digits without leading zeros; `v` is not zero.
    #[inline(always)]
    fn put_leading(&mut self, v: u32) {
        let digits = u64::from_le_bytes(eight_digits(v));
        // ASCII digits differ from '0' in their low four bits; the first byte is the lowest.
        let zeros = (digits & 0x0f0f_0f0f_0f0f_0f0f).trailing_zeros() / 8;
        self.put_part(&(digits >> (8 * zeros)).to_le_bytes(), 8 - zeros as usize);
    }
}

const EIGHT_DIGITS: u64 = 100_000_000;

/// The eight decimal digits of a number below 10⁸, computed side by side in one word: halves, then pairs, then digits.
/// Each step divides all parts by one multiplication and a shift, exact for the values that can occur.
#[inline(always)]
pub(crate) fn eight_digits(v: u32) -> [u8; 8] {
    debug_assert!(u64::from(v) < EIGHT_DIGITS);
    let halves = u64::from(v / 10_000) | u64::from(v % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | (halves - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | (pairs - tens * 10) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_number(v: i64) {
        let mut store = Store::default();
        store.put_i64(v);
        assert_eq!(store.written(), v.to_string().as_bytes());
        store.truncate(0);
        store.put_u64(v as u64);
        assert_eq!(store.written(), (v as u64).to_string().as_bytes());
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let mut power = 1i64;
        for _ in 0..19 {
            for near in [power - 1, power, power + 1, power / 2, power.wrapping_mul(7)] {
                check_number(near);
                check_number(near.wrapping_neg());
            }
            power = power.wrapping_mul(10);
        }
        for v in [0, i64::MAX, i64::MIN, 99_999_999, 9_999_999_999_999_999] {
            check_number(v);
        }
        for v in (0..100_000_000).step_by(9_973) {
            assert_eq!(eight_digits(v), format!("{v:08}").as_bytes(), "{v}");
        }
        for v in 0..10_000 {
            assert_eq!(eight_digits(v), format!("{v:08}").as_bytes(), "{v}");
        }
    }

    #[test]
    fn texts_of_every_length_and_byte() {
        for len in 0..40 {
            let plain: Vec<u8> = (0..len).map(|n| b'a' + n as u8 % 26).collect();
            let mut store = Store::default();
            store.put_escaped(&plain);
            store.put_escaped(&plain);
            assert_eq!(store.written(), [&plain[..], &plain[..]].concat());
            for odd in 0..len {
                for byte in 0..=255u8 {
                    let mut bytes = plain.clone();
                    bytes[odd] = byte;
                    let mut store = Store::default();
                    store.put_escaped(&bytes);
                    let mut expected = Vec::new();
                    escape_odd_bytes(&mut expected, &bytes);
                    assert_eq!(store.written(), expected, "{}", bytes.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn growing_keeps_what_was_written() {
        let mut store = Store::with_capacity(3);
        let mut expected = Vec::new();
        for n in 0..3_000u64 {
            store.put_u64(n * n);
            store.put_slice(b"; ");
            expected.extend_from_slice(format!("{}; ", n * n).as_bytes());
        }
        assert_eq!(store.written(), expected);
        assert_eq!(store.into_vec(), expected);
    }
}
