//! Splits text into literals and copies of earlier text, optimised for lines that resemble an earlier one.
//!
//! A line is laid beside a *reference*, the latest line that began alike. Both are walked together: what is equal is
//! copied, and where a value differs, both sides skip to the delimiter behind it and go on from there, even when the
//! values differ in length. That takes a handful of comparisons per line where a general compressor looks up every
//! byte. A table of places is searched only where this fails: a long value that differs, a missing field, text
//! that is no trace at all. Any text is encoded correctly; only the compression depends on its form.

/// The farthest a copy reaches back.
const WINDOW: usize = 32_768;
/// The longest copy.
const MAX_COPY: usize = 258;
/// Shorter copies cost more bits than their bytes.
const MIN_COPY: usize = 4;
/// The last bytes of a text are literals, so that words are read without a look at the end.
const TAIL: usize = 16;
/// The sixteen bytes from here decide which lines are alike: what follows `{"name":"`.
const KEY_AT: usize = 9;
const PLACE_BITS: u32 = 13;
const LINE_BITS: u32 = 9;

/// Some literals and a copy after them. The last of a block has length 0: no copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) literals: u32,
    pub(super) length: u16,
    pub(super) distance: u16,
}

/// What is remembered of the text before.
#[derive(Debug)]
pub(super) struct Parser {
    /// The sequences of the block at hand.
    pub(super) sequences: Vec<Sequence>,
    /// By a hash of five bytes: where they were, plus one.
    places: Box<[u32; 1 << PLACE_BITS]>,
    /// By a hash of a line's beginning: where it started, plus one.
    lines: Box<[u32; 1 << LINE_BITS]>,
    at: usize,
    /// How far back the reference is, 0 without one.
    gap: usize,
    /// Start of the line before `next_line`.
    line: usize,
    /// Start of the first line that is not in `lines` yet.
    next_line: usize,
    /// Literals since the last copy that no delimiter was found for: text that is noise is skipped faster and faster.
    misses: usize,
}

impl Parser {
    pub(super) fn new() -> Self {
        Parser {
            sequences: Vec::new(),
            places: Box::new([0; 1 << PLACE_BITS]),
            lines: Box::new([0; 1 << LINE_BITS]),
            at: 0,
            gap: 0,
            line: 0,
            next_line: 0,
            misses: 0,
        }
    }

    /// Forgets everything: another text follows.
    pub(super) fn reset(&mut self) {
        self.places.fill(0);
        self.lines.fill(0);
        (self.at, self.gap, self.line, self.next_line, self.misses) = (0, 0, 0, 0, 0);
    }

    /// Cuts the next block of `text`, at most so many sequences and about so many bytes; says where it ends.
    pub(super) fn next_block(&mut self, text: &[u8], max_sequences: usize, max_bytes: usize) -> usize {
        self.sequences.clear();
        let tail = text.len().saturating_sub(TAIL);
        let stop = tail.min(self.at.saturating_add(max_bytes));
        let mut copied = self.at;
        while self.at < stop && self.sequences.len() < max_sequences {
            while self.at >= self.next_line {
                self.gap = self.line_gap(text, self.next_line);
                self.enter_line(text);
            }
            let (at, gap) = (self.at, self.gap);
            let mut length = if gap > 0 { equal(text, at, at - gap) } else { 0 };
            while at + length > self.next_line {
                // A later line that began alike is worth a copy of its own, for its time is nearer.
                if self.line_gap(text, self.next_line) == gap {
                    self.enter_line(text);
                } else {
                    length = self.next_line - at;
                    break;
                }
            }
            if length < MIN_COPY {
                if at + length == self.next_line {
                    self.at = self.next_line;
                } else {
                    self.search(text);
                }
                continue;
            }
            self.places[place(text, at)] = at as u32 + 1;
            let (mut from, mut total) = (at, length);
            while from > copied && from > gap && total < MAX_COPY && text[from - 1] == text[from - 1 - gap] {
                from -= 1;
                total += 1;
            }
            self.sequences.push(Sequence {
                literals: (from - copied) as u32,
                length: total as u16,
                distance: gap as u16,
            });
            self.misses = 0;
            self.at = at + length;
            copied = self.at;
            if length < MAX_COPY && self.at < self.next_line && self.at < stop {
                copied = self.skip_value(text);
            }
        }
        if self.at >= tail {
            self.at = text.len();
        }
        if copied < self.at {
            self.sequences.push(Sequence { literals: (self.at - copied) as u32, length: 0, distance: 0 });
        }
        self.at
    }

    /// The text at `self.at` differs from the reference: goes on behind the value that differs. Returns where literals
    /// start.
    #[inline(always)]
    fn skip_value(&mut self, text: &[u8]) -> usize {
        let at = self.at;
        let (here, there) = (value_rest(word(text, at)), value_rest(word(text, at - self.gap)));
        // A descriptor is followed by its file: if the pair was met before, one copy says both.
        if here < 8 && there < 8 && word(text, at + here) != u64::from_le_bytes(*b",\"fhash\"") {
            self.at = at + here;
            self.gap = checked_gap(self.gap + here, there);
            return at;
        }
        self.skip_long_value(text)
    }

    #[inline(never)]
    fn skip_long_value(&mut self, text: &[u8]) -> usize {
        // A value that was met before is copied whole: from its beginning, not from where it starts to differ.
        let (mut start, last) = (self.at, self.sequences.len() - 1);
        while start > 0 && start + 8 > self.at && !is_delimiter(text[start - 1]) {
            start -= 1;
        }
        let shared = self.at - start;
        if usize::from(self.sequences[last].length) < shared + MIN_COPY {
            start = self.at;
        }
        let gap = self.place_gap(text, start);
        if gap > 0 && equal(text, start, start - gap) >= self.at - start + MIN_COPY + 2 {
            self.sequences[last].length -= (self.at - start) as u16;
            (self.at, self.gap) = (start, gap);
            return start;
        }
        let at = self.at;
        let behind = |from: usize| text[from..].iter().take(40).position(|byte| is_delimiter(*byte));
        if let (Some(here), Some(there)) = (behind(at), behind(at - self.gap)) {
            self.at = at + here;
            self.gap = checked_gap(self.gap + here, there);
        }
        at
    }

    /// Nothing is known of the text at `self.at`: takes what the table has, or one more literal.
    #[inline(never)]
    fn search(&mut self, text: &[u8]) {
        let at = self.at;
        let gap = self.place_gap(text, at);
        if gap > 0 && at + MIN_COPY <= self.next_line && equal(text, at, at - gap) >= MIN_COPY {
            self.gap = gap;
            return;
        }
        self.at += 1 + (self.misses >> 6);
        self.misses += 1;
    }

    /// How far before `at` the table has a place that looks like it, 0 without one; remembers `at` instead.
    fn place_gap(&mut self, text: &[u8], at: usize) -> usize {
        let slot = &mut self.places[place(text, at)];
        let found = *slot as usize;
        *slot = at as u32 + 1;
        // A place may be asked for twice and then finds itself.
        if found > 0 && at + 1 - found <= WINDOW { at + 1 - found } else { 0 }
    }

    /// How far before `start` the reference of the line there is.
    fn line_gap(&self, text: &[u8], start: usize) -> usize {
        let found = self.lines[line_key(text, start)] as usize;
        if found > 0 && start + 1 - found <= WINDOW {
            start + 1 - found
        } else if start - self.line <= WINDOW {
            start - self.line
        } else {
            0
        }
    }

    /// Remembers the line at `next_line` and finds the one behind it.
    fn enter_line(&mut self, text: &[u8]) {
        self.lines[line_key(text, self.next_line)] = self.next_line as u32 + 1;
        self.line = self.next_line;
        self.next_line = memchr::memchr(b'\n', &text[self.line..]).map_or(text.len(), |at| self.line + at + 1);
    }
}

fn checked_gap(longer: usize, shorter: usize) -> usize {
    if shorter < longer && longer - shorter <= WINDOW { longer - shorter } else { 0 }
}

/// How many bytes from `at` and from `earlier` are equal, at most [`MAX_COPY`].
#[inline(always)]
fn equal(text: &[u8], at: usize, earlier: usize) -> usize {
    let limit = MAX_COPY.min(text.len() - at);
    let (here, there) = (&text[at..at + limit], &text[earlier..earlier + limit]);
    let mut length = 0;
    let (heres, here_rest) = here.as_chunks::<16>();
    let (theres, there_rest) = there.as_chunks::<16>();
    for (a, b) in heres.iter().zip(theres) {
        let differ = u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b);
        if differ != 0 {
            return length + differ.trailing_zeros() as usize / 8;
        }
        length += 16;
    }
    length + here_rest.iter().zip(there_rest).take_while(|(a, b)| a == b).count()
}

/// Eight bytes, zeros beyond the end.
#[inline(always)]
fn word(text: &[u8], at: usize) -> u64 {
    text.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline(always)]
fn place(text: &[u8], at: usize) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    ((word(text, at) << 24).wrapping_mul(SPREAD) >> (64 - PLACE_BITS)) as usize
}

#[inline(always)]
fn line_key(text: &[u8], start: usize) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    const OTHER: u64 = 0xd6e8_feb8_6659_fd93;
    let (a, b) = (word(text, start + KEY_AT), word(text, start + KEY_AT + 8));
    ((a.wrapping_mul(SPREAD) ^ b.rotate_left(32)).wrapping_mul(OTHER) >> (64 - LINE_BITS)) as usize
}

/// Whether a value ends here: `"` and `,` and all below them, `{` and `}` and all above them.
fn is_delimiter(byte: u8) -> bool {
    !(0x2d..0x7b).contains(&byte)
}

/// How many of eight bytes come before the first delimiter.
#[inline(always)]
fn value_rest(word: u64) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The top bit of a byte shows a borrow or carry out of the rest; errors reach only bytes behind the first found.
    let below = word.wrapping_sub(ONES * 0x2d) & !word;
    let above = word.wrapping_add(ONES * 0x05) | word;
    ((below | above) & (ONES * 0x80)).trailing_zeros() as usize / 8
}
