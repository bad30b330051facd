//! The bytes that an event moved, and their bin in the histogram.

use weftline_format::Value;
use weftline_format::quick::fields;

/// Bounds of the bins: a size belongs to the first bin whose bound it does not exceed, or to the last.
const BOUNDS: [u64; 11] =
    [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30, 4 << 30];

/// How many bins there are.
pub const SIZE_BINS: usize = BOUNDS.len() + 1;

const LABELS: [&str; SIZE_BINS] = [
    "0_4kib",
    "4kib_16kib",
    "16kib_64kib",
    "64kib_256kib",
    "256kib_1mib",
    "1mib_4mib",
    "4mib_16mib",
    "16mib_64mib",
    "64mib_256mib",
    "256mib_1gib",
    "1gib_4gib",
    "4gib_plus",
];

/// The bin of a size.
#[inline]
pub fn bin_of(size: u64) -> usize {
    if size <= BOUNDS[0] {
        return 0;
    }
    // Each bound is four times the one before, from 2^12 on.
    let bits = 64 - (size - 1).leading_zeros() as usize;
    ((bits - 11) / 2).min(SIZE_BINS - 1)
}

/// What columns call a bin.
pub fn bin_label(bin: usize) -> &'static str {
    LABELS[bin]
}

/// Where the size of an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SizeKind {
    /// It has none.
    None,
    /// `ret`, where it is positive.
    Returned,
    /// `size_sum`, or else `image_size` where it is positive.
    Image,
    /// `size_sum` alone: calls that open something have an `image_size` of what they will read.
    Summed,
}

/// An argument from the rest of an event, as an integer. DFTracer 1 writes some as text.
pub fn field_integer(rest: &str, key: &str) -> Option<i64> {
    // Most events do not have it; the search is cheaper than decoding.
    if !rest.contains(key) {
        return None;
    }
    let (_, value) = fields(rest).find(|(found, _)| found == key)?;
    match value {
        Value::Int(number) => Some(number),
        Value::UInt(number) => i64::try_from(number).ok(),
        Value::Str(text) => text.trim().parse().ok(),
        Value::Float(number) if number.is_finite() => Some(number as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_closed_on_the_right() {
        for (place, bound) in BOUNDS.iter().enumerate() {
            assert_eq!((bin_of(*bound), bin_of(bound + 1)), (place, place + 1), "{bound}");
        }
        assert_eq!((bin_of(0), bin_of(1), bin_of(u64::MAX)), (0, 0, SIZE_BINS - 1));
    }

    #[test]
    fn arguments_as_text_are_numbers_too() {
        let rest = r#""p_idx":3,"image_size":"146579449","step":"-1","x":1.5"#;
        let check = |key, expected| assert_eq!(field_integer(rest, key), expected, "{key}");
        check("image_size", Some(146_579_449));
        check("step", Some(-1));
        check("idx", None);
        check("p_idx", Some(3));
    }
}
