//! Huffman codes of limited length: from how often symbols occur to the bits that say them.

/// Symbols of the largest alphabet, literals and lengths.
pub(super) const MAX_SYMBOLS: usize = 288;
/// The longest code of deflate.
const MAX_BITS: usize = 15;

/// The code of one alphabet. A symbol that does not occur has length 0.
#[derive(Debug, Clone)]
pub(super) struct Code<const N: usize> {
    /// How many bits each symbol takes.
    pub(super) lengths: [u8; N],
    /// The bits, first bit lowest, as deflate sends them.
    pub(super) bits: [u16; N],
}

impl<const N: usize> Code<N> {
    pub(super) const fn new() -> Self {
        Code { lengths: [0; N], bits: [0; N] }
    }

    /// The best code for `counts` whose lengths are at most `limit`, or one close to it where the limit binds.
    ///
    /// At least two symbols get a code, as a decoder may insist on a complete one.
    pub(super) fn fit(&mut self, counts: &[u32; N], limit: usize) {
        debug_assert!(N <= MAX_SYMBOLS && limit <= MAX_BITS && N <= 1 << limit);
        // Count and symbol in one word: one sort of plain numbers, and equal counts have a fixed order.
        let mut sorted = [0u64; N];
        let mut used = 0;
        for (symbol, &count) in counts.iter().enumerate() {
            if count > 0 {
                sorted[used] = u64::from(count) << 16 | symbol as u64;
                used += 1;
            }
        }
        for (symbol, &count) in counts.iter().enumerate().take(2) {
            if used < 2 && count == 0 {
                sorted[used] = 1 << 16 | symbol as u64;
                used += 1;
            }
        }
        let sorted = &mut sorted[..used];
        sorted.sort_unstable();
        let per_length = limited_lengths(sorted, limit);
        self.lengths = [0; N];
        let mut rarest_first = sorted.iter();
        for length in (1..=limit).rev() {
            for &word in rarest_first.by_ref().take(per_length[length] as usize) {
                self.lengths[(word & 0xffff) as usize] = length as u8;
            }
        }
        self.assign();
    }

    /// The bits that follow from the lengths.
    pub(super) fn assign(&mut self) {
        let mut per_length = [0u16; MAX_BITS + 1];
        for &length in &self.lengths {
            per_length[usize::from(length)] += 1;
        }
        per_length[0] = 0;
        let mut next = [0u16; MAX_BITS + 1];
        for length in 1..=MAX_BITS {
            next[length] = (next[length - 1] + per_length[length - 1]) << 1;
        }
        for (bits, &length) in self.bits.iter_mut().zip(&self.lengths) {
            let length = usize::from(length);
            if length > 0 {
                *bits = next[length].reverse_bits() >> (16 - length);
                next[length] += 1;
            }
        }
    }
}

/// How many symbols have each length, for at least two words of count and symbol in rising order.
fn limited_lengths(sorted: &[u64], limit: usize) -> [u32; MAX_BITS + 1] {
    let leaves = sorted.len();
    // A tree of n leaves has n-1 inner nodes. They arise in rising order of weight, so the two lightest are always at
    // the heads of two queues: the sorted leaves, and the inner nodes made so far.
    let mut weights = [0u64; MAX_SYMBOLS];
    let mut leaf_parents = [0u16; MAX_SYMBOLS];
    let mut parents = [0u16; MAX_SYMBOLS];
    let (mut leaf, mut inner) = (0, 0);
    for made in 0..leaves - 1 {
        for _ in 0..2 {
            let leaf_weight = sorted.get(leaf).map_or(u64::MAX, |word| word >> 16);
            if inner < made && weights[inner] < leaf_weight {
                weights[made] += weights[inner];
                parents[inner] = made as u16;
                inner += 1;
            } else {
                weights[made] += leaf_weight;
                leaf_parents[leaf] = made as u16;
                leaf += 1;
            }
        }
    }
    // From the root, which arose last, down.
    let mut depths = [0u16; MAX_SYMBOLS];
    for node in (0..leaves - 2).rev() {
        depths[node] = depths[usize::from(parents[node])] + 1;
    }
    let mut per_length = [0u32; MAX_BITS + 1];
    for &parent in &leaf_parents[..leaves] {
        per_length[usize::from(depths[usize::from(parent)] + 1).min(limit)] += 1;
    }
    // Codes that were cut to the limit take more room than there is. Every step takes one back: a leaf higher up
    // becomes two, of which one is a leaf of the lowest row.
    let mut room: u32 = (1..=limit).map(|length| per_length[length] << (limit - length)).sum();
    while room > 1 << limit {
        let above = (1..limit).rev().find(|&length| per_length[length] > 0).unwrap_or(1);
        per_length[limit] -= 1;
        per_length[above] -= 1;
        per_length[above + 1] += 2;
        room -= 1;
    }
    per_length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const N: usize>(counts: &[u32; N], limit: usize, what: &str) {
        let mut code = Code::new();
        code.fit(counts, limit);
        let used = counts.iter().filter(|count| **count > 0).count();
        let coded: Vec<usize> = (0..N).filter(|&symbol| code.lengths[symbol] > 0).collect();
        assert_eq!(coded.len(), used.max(2), "{what}");
        assert!((0..N).all(|symbol| counts[symbol] == 0 || code.lengths[symbol] > 0), "{what}");
        assert!(code.lengths.iter().all(|length| usize::from(*length) <= limit), "{what}");
        let room: usize = coded.iter().map(|&symbol| 1 << (limit - usize::from(code.lengths[symbol]))).sum();
        assert_eq!(room, 1 << limit, "{what}: the code is complete");
        for &a in &coded {
            for &b in &coded {
                assert!(counts[a] <= counts[b] || code.lengths[a] <= code.lengths[b], "{what}: rare is not shorter");
                let shared = (1u16 << code.lengths[a]) - 1;
                let prefix =
                    a != b && code.lengths[a] <= code.lengths[b] && (code.bits[a] ^ code.bits[b]) & shared == 0;
                assert!(!prefix, "{what}: {a} begins {b}");
            }
        }
    }

    #[test]
    fn codes_are_complete_and_within_the_limit() {
        let mut fibonacci = [0u32; 40];
        (fibonacci[0], fibonacci[1]) = (1, 1);
        for n in 2..40 {
            fibonacci[n] = fibonacci[n - 1] + fibonacci[n - 2];
        }
        check(&fibonacci, 15, "fibonacci");
        check(&std::array::from_fn::<u32, 19, _>(|n| fibonacci[n]), 7, "fibonacci of code lengths");
        check(&std::array::from_fn::<u32, 19, _>(|n| fibonacci[18 - n]), 7, "falling");
        check(&std::array::from_fn::<u32, 286, _>(|n| fibonacci[n % 40]), 15, "many of them");
        check(&std::array::from_fn::<u32, 286, _>(|n| 1 << (n % 31)), 15, "powers");
        check(&[7u32; 286], 15, "all alike");
        check(&[1u32; 30], 15, "thirty");
        check(&[0u32; 30], 15, "none");
        for n in 0..30 {
            check(&std::array::from_fn::<u32, 30, _>(|m| u32::from(m == n)), 15, "one");
            check(&std::array::from_fn::<u32, 30, _>(|m| u32::from(m == n || m == 7) * 9), 15, "two");
        }
    }

    #[test]
    fn lengths_are_the_best_ones() {
        let mut code = Code::new();
        code.fit(&[5, 9, 12, 13, 16, 45, 0], 15);
        assert_eq!(code.lengths, [4, 4, 3, 3, 3, 1, 0]);
        // The example of RFC 1951, 3.2.2.
        let mut code = Code { lengths: [3, 3, 3, 3, 3, 2, 4, 4], bits: [0; 8] };
        code.assign();
        let first_bit_highest = |symbol: usize| code.bits[symbol].reverse_bits() >> (16 - code.lengths[symbol]);
        let bits: [u16; 8] = std::array::from_fn(first_bit_highest);
        assert_eq!(bits, [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111]);
    }
}
