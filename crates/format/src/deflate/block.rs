//! Writing one block of deflate: the symbols of sequences, their codes, and the smallest of the three kinds of block.

use super::huffman::Code;
use super::parse::Sequence;

const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const END_OF_BLOCK: usize = 256;
/// Order in which the lengths of the code-length code are sent: the likeliest to be absent come last.
const LENGTH_ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// The most bytes of a stored block.
const MAX_STORED: usize = 65_535;

/// First value and number of extra bits of each length symbol, from 257.
const LENGTH_BASES: [(u16, u8); 29] = {
    let mut bases = [(0, 0); 29];
    let (mut symbol, mut base) = (0, 3);
    while symbol < 28 {
        let extra = if symbol < 8 { 0 } else { symbol as u8 / 4 - 1 };
        bases[symbol] = (base, extra);
        base += 1 << extra;
        symbol += 1;
    }
    bases[28] = (258, 0);
    bases
};

/// First value and number of extra bits of each distance symbol.
const DISTANCE_BASES: [(u16, u8); DISTANCES] = {
    let mut bases = [(0, 0); DISTANCES];
    let (mut symbol, mut base) = (0, 1);
    while symbol < DISTANCES {
        let extra = if symbol < 4 { 0 } else { symbol as u8 / 2 - 1 };
        bases[symbol] = (base, extra);
        base += 1 << extra;
        symbol += 1;
    }
    bases
};

/// The length symbol, less 257, of each length less 3.
const LENGTH_SYMBOLS: [u8; 256] = {
    let mut symbols = [0; 256];
    let mut symbol = 0;
    while symbol < 29 {
        let (base, extra) = LENGTH_BASES[symbol];
        let mut n = 0;
        while n < 1 << extra && base as usize - 3 + n < 256 {
            symbols[base as usize - 3 + n] = symbol as u8;
            n += 1;
        }
        symbol += 1;
    }
    symbols
};

/// The distance symbol of distances to 256, and of longer ones by their bits from the eighth. Counting the bits of the
/// distance instead has no branch, but took 5 % longer over all.
const DISTANCE_SYMBOLS: [u8; 512] = {
    let mut symbols = [0; 512];
    let mut symbol = 0;
    while symbol < DISTANCES {
        let (base, extra) = DISTANCE_BASES[symbol];
        let mut n = 0;
        while n < 1usize << extra {
            symbols[distance_slot(base + n as u16)] = symbol as u8;
            n += if base > 256 { 128 } else { 1 };
        }
        symbol += 1;
    }
    symbols
};

const fn distance_slot(distance: u16) -> usize {
    let less = (distance - 1) as usize;
    if less < 256 { less } else { 256 + (less >> 7) }
}

fn distance_symbol(distance: u16) -> usize {
    usize::from(DISTANCE_SYMBOLS[distance_slot(distance) & 511])
}

fn length_symbol(length: u16) -> usize {
    usize::from(LENGTH_SYMBOLS[usize::from(length - 3) & 255])
}

/// Writes blocks; holds the tables of the one at hand, so that nothing is allocated per block.
#[derive(Debug)]
pub(super) struct BlockWriter {
    literal_counts: [u32; LITERALS],
    distance_counts: [u32; DISTANCES],
    literals: Code<LITERALS>,
    distances: Code<DISTANCES>,
    fixed: Code<288>,
    /// Bits and their number (low byte) of each match length less 3, extra bits included.
    lengths: [u32; 256],
    bits: Bits,
}

impl BlockWriter {
    pub(super) fn new() -> Self {
        let mut fixed = Code::new();
        for (symbol, length) in fixed.lengths.iter_mut().enumerate() {
            *length = match symbol {
                0..144 | 280.. => 8,
                144..256 => 9,
                _ => 7,
            };
        }
        fixed.assign();
        BlockWriter {
            literal_counts: [0; LITERALS],
            distance_counts: [0; DISTANCES],
            literals: Code::new(),
            distances: Code::new(),
            fixed,
            lengths: [0; 256],
            bits: Bits::default(),
        }
    }

    /// Appends one block that says `text`, which is what `sequences` are about. After the last one the stream is whole.
    pub(super) fn write(&mut self, text: &[u8], sequences: &[Sequence], last: bool, out: &mut Vec<u8>) {
        self.count(text, sequences);
        self.literals.fit(&self.literal_counts, 15);
        self.distances.fit(&self.distance_counts, 15);
        let header = Header::new(&self.literals, &self.distances);
        let extra = self.extra_bits();
        let dynamic = header.size()
            + cost(&self.literal_counts, &self.literals.lengths)
            + cost(&self.distance_counts, &self.distances.lengths)
            + extra;
        let all_distances = self.distance_counts.iter().sum::<u32>() as usize * 5;
        let fixed = cost(&self.literal_counts, &self.fixed.lengths) + all_distances + extra;
        let stored = text.len() * 8 + (text.len() / MAX_STORED + 1) * 40;
        if stored < dynamic.min(fixed) {
            self.write_stored(text, last, out);
            return;
        }
        // Room for everything and for the store that reaches beyond it.
        let start = out.len();
        out.resize(start + dynamic.min(fixed) / 8 + 24, 0);
        let mut sink = Sink { bits: self.bits, out: &mut out[start..], at: 0 };
        sink.push(u64::from(last), 1);
        if fixed <= dynamic {
            self.literals.lengths.copy_from_slice(&self.fixed.lengths[..LITERALS]);
            self.literals.bits.copy_from_slice(&self.fixed.bits[..LITERALS]);
            self.distances.lengths = [5; DISTANCES];
            self.distances.assign();
            sink.push(1, 2);
        } else {
            sink.push(2, 2);
            header.write(&mut sink);
        }
        self.prepare_lengths();
        self.write_symbols(text, sequences, &mut sink);
        if last {
            sink.align();
        }
        self.bits = sink.bits;
        let end = start + sink.at;
        out.truncate(end);
    }

    fn count(&mut self, text: &[u8], sequences: &[Sequence]) {
        self.literal_counts = [0; LITERALS];
        self.distance_counts = [0; DISTANCES];
        let mut rest = text;
        for sequence in sequences {
            let (literals, after) = rest.split_at(sequence.literals as usize);
            for &byte in literals {
                self.literal_counts[usize::from(byte)] += 1;
            }
            if sequence.length > 0 {
                self.literal_counts[257 + length_symbol(sequence.length)] += 1;
                self.distance_counts[distance_symbol(sequence.distance)] += 1;
            }
            rest = &after[usize::from(sequence.length)..];
        }
        debug_assert!(rest.is_empty());
        self.literal_counts[END_OF_BLOCK] = 1;
    }

    fn extra_bits(&self) -> usize {
        let lengths = self.literal_counts[257..].iter().zip(&LENGTH_BASES);
        let distances = self.distance_counts.iter().zip(&DISTANCE_BASES);
        lengths.chain(distances).map(|(count, (_, extra))| *count as usize * usize::from(*extra)).sum()
    }

    fn prepare_lengths(&mut self) {
        for (less, entry) in self.lengths.iter_mut().enumerate() {
            let symbol = usize::from(LENGTH_SYMBOLS[less]);
            let (code, size) = (self.literals.bits[257 + symbol], self.literals.lengths[257 + symbol]);
            let (base, extra) = LENGTH_BASES[symbol];
            let value = (less as u32 + 3 - u32::from(base)) << size | u32::from(code);
            *entry = value << 8 | u32::from(size + extra);
        }
    }

    fn write_symbols(&self, text: &[u8], sequences: &[Sequence], sink: &mut Sink<'_>) {
        let bytes: [u32; 256] =
            std::array::from_fn(|n| u32::from(self.literals.bits[n]) << 8 | u32::from(self.literals.lengths[n]));
        let distances: [(u32, u16); DISTANCES] = std::array::from_fn(|n| {
            let (base, extra) = DISTANCE_BASES[n];
            let size = self.distances.lengths[n];
            (u32::from(self.distances.bits[n]) | u32::from(base) << 16, u16::from(extra) << 8 | u16::from(size))
        });
        let mut rest = text;
        for sequence in sequences {
            let (literals, after) = rest.split_at(sequence.literals as usize);
            let mut triples = literals.chunks_exact(3);
            for triple in &mut triples {
                for &byte in triple {
                    let entry = bytes[usize::from(byte)];
                    sink.hold(u64::from(entry >> 8), entry & 255);
                }
                sink.flush();
            }
            for &byte in triples.remainder() {
                let entry = bytes[usize::from(byte)];
                sink.hold(u64::from(entry >> 8), entry & 255);
            }
            sink.flush();
            if sequence.length > 0 {
                let entry = self.lengths[usize::from(sequence.length - 3) & 255];
                sink.hold(u64::from(entry >> 8), entry & 255);
                let (code, sizes) = distances[distance_symbol(sequence.distance)];
                sink.hold(u64::from(code & 0xffff), u32::from(sizes & 255));
                sink.hold(u64::from(u32::from(sequence.distance) - (code >> 16)), u32::from(sizes >> 8));
                sink.flush();
            }
            rest = &after[usize::from(sequence.length)..];
        }
        sink.push(u64::from(self.literals.bits[END_OF_BLOCK]), u32::from(self.literals.lengths[END_OF_BLOCK]));
    }

    fn write_stored(&mut self, text: &[u8], last: bool, out: &mut Vec<u8>) {
        let mut rest = text;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(MAX_STORED));
            let start = out.len();
            out.resize(start + 16, 0);
            let mut sink = Sink { bits: self.bits, out: &mut out[start..], at: 0 };
            sink.push(u64::from(last && after.is_empty()), 3);
            sink.align();
            self.bits = sink.bits;
            let end = start + sink.at;
            out.truncate(end);
            let size = piece.len() as u16;
            out.extend_from_slice(&size.to_le_bytes());
            out.extend_from_slice(&(!size).to_le_bytes());
            out.extend_from_slice(piece);
            rest = after;
            if rest.is_empty() {
                return;
            }
        }
    }
}

fn cost<const N: usize, const M: usize>(counts: &[u32; N], lengths: &[u8; M]) -> usize {
    counts.iter().zip(lengths).map(|(count, length)| *count as usize * usize::from(*length)).sum()
}

/// The lengths of both codes as they are sent: runs made short, and coded once more.
struct Header {
    literals: usize,
    distances: usize,
    /// Symbol, extra value.
    runs: Vec<(u8, u8)>,
    code: Code<19>,
    counts: [u32; 19],
    sent: usize,
}

impl Header {
    fn new(literal_code: &Code<LITERALS>, distance_code: &Code<DISTANCES>) -> Header {
        let used = |lengths: &[u8]| lengths.iter().rposition(|length| *length > 0).map_or(0, |at| at + 1);
        let literals = used(&literal_code.lengths).max(257);
        let distances = used(&distance_code.lengths).max(1);
        let mut lengths = [0; LITERALS + DISTANCES];
        lengths[..literals].copy_from_slice(&literal_code.lengths[..literals]);
        lengths[literals..literals + distances].copy_from_slice(&distance_code.lengths[..distances]);
        let runs = runs(&lengths[..literals + distances]);
        let mut counts = [0; 19];
        for (symbol, _) in &runs {
            counts[usize::from(*symbol)] += 1;
        }
        let mut code = Code::new();
        code.fit(&counts, 7);
        let sent =
            LENGTH_ORDER.iter().rposition(|&symbol| code.lengths[usize::from(symbol)] > 0).map_or(4, |at| at + 1);
        Header { literals, distances, runs, code, counts, sent: sent.max(4) }
    }

    /// In bits, with the three that every block starts with.
    fn size(&self) -> usize {
        let extra = self.counts[16] * 2 + self.counts[17] * 3 + self.counts[18] * 7;
        3 + 14 + self.sent * 3 + cost(&self.counts, &self.code.lengths) + extra as usize
    }

    fn write(&self, sink: &mut Sink<'_>) {
        sink.push(self.literals as u64 - 257, 5);
        sink.push(self.distances as u64 - 1, 5);
        sink.push(self.sent as u64 - 4, 4);
        for &symbol in &LENGTH_ORDER[..self.sent] {
            sink.push(u64::from(self.code.lengths[usize::from(symbol)]), 3);
        }
        for &(symbol, extra) in &self.runs {
            let at = usize::from(symbol);
            sink.push(u64::from(self.code.bits[at]), u32::from(self.code.lengths[at]));
            sink.push(u64::from(extra), [2, 3, 7].get(at.wrapping_sub(16)).copied().unwrap_or(0));
        }
    }
}

/// Code lengths as symbols and extra values: 16 repeats the one before 3 to 6 times, 17 and 18 are 3 to 138 zeros.
fn runs(lengths: &[u8]) -> Vec<(u8, u8)> {
    let mut runs = Vec::with_capacity(lengths.len());
    for same in lengths.chunk_by(|a, b| a == b) {
        let (length, mut left) = (same[0], same.len());
        if length == 0 {
            while left >= 3 {
                let take = left.min(138);
                runs.push(if take < 11 { (17, take as u8 - 3) } else { (18, take as u8 - 11) });
                left -= take;
            }
        } else {
            runs.push((length, 0));
            left -= 1;
            while left >= 3 {
                let take = left.min(6);
                runs.push((16, take as u8 - 3));
                left -= take;
            }
        }
        runs.extend(std::iter::repeat_n((length, 0), left));
    }
    runs
}

/// Bits that do not fill a byte yet.
#[derive(Debug, Default, Clone, Copy)]
struct Bits {
    held: u64,
    count: u32,
}

/// Where bits go. `held` has at most 7 bits after a flush, so up to 57 may be added before the next.
struct Sink<'a> {
    bits: Bits,
    out: &'a mut [u8],
    at: usize,
}

impl Sink<'_> {
    #[inline(always)]
    fn hold(&mut self, value: u64, count: u32) {
        self.bits.held |= value << self.bits.count;
        self.bits.count += count;
        debug_assert!(self.bits.count <= 64);
    }

    #[inline(always)]
    fn flush(&mut self) {
        self.out[self.at..self.at + 8].copy_from_slice(&self.bits.held.to_le_bytes());
        self.at += (self.bits.count >> 3) as usize;
        self.bits.held >>= self.bits.count & !7;
        self.bits.count &= 7;
    }

    fn push(&mut self, value: u64, count: u32) {
        self.hold(value, count);
        self.flush();
    }

    /// Zeros up to the next whole byte.
    fn align(&mut self) {
        self.bits.count = self.bits.count.next_multiple_of(8);
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_cover_what_they_say() {
        let covers = |(base, extra): (u16, u8), value: u16| (base..=base + ((1u16 << extra) - 1)).contains(&value);
        for distance in 1..=32_768 {
            assert!(covers(DISTANCE_BASES[distance_symbol(distance)], distance), "distance {distance}");
        }
        for length in 3..=258 {
            assert!(covers(LENGTH_BASES[length_symbol(length)], length), "length {length}");
        }
        assert_eq!(length_symbol(258), 28);
    }

    #[test]
    fn runs_say_the_lengths() {
        let check = |lengths: &[u8], expected: &[(u8, u8)]| {
            assert_eq!(runs(lengths), expected, "{lengths:?}");
        };
        check(&[0, 0, 5, 5, 5], &[(0, 0), (0, 0), (5, 0), (5, 0), (5, 0)]);
        check(&[0, 0, 0, 5, 5, 5, 5], &[(17, 0), (5, 0), (16, 0)]);
        check(&[0; 10], &[(17, 7)]);
        check(&[0; 11], &[(18, 0)]);
        check(&[0; 140], &[(18, 127), (0, 0), (0, 0)]);
        check(&[0; 141], &[(18, 127), (17, 0)]);
        check(&[8; 8], &[(8, 0), (16, 3), (8, 0)]);
    }
}
