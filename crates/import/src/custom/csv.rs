//! Records of delimited text: quotes around fields, `""` within them, and records of several lines.

use std::ops::Range;

/// Lines that a quoted field may go over.
pub(super) const MOST_LINES: usize = 1000;
/// Fields of a record; more are left out, and told.
pub(super) const MOST_FIELDS: usize = 10_000;

/// One record, taken apart.
#[derive(Debug, Default)]
pub(super) struct Record {
    text: Vec<u8>,
    fields: Vec<Range<usize>>,
}

impl Record {
    /// Takes a record apart. False where a quoted field goes on behind the text.
    pub(super) fn split(&mut self, text: &[u8], delimiter: u8) -> bool {
        self.text.clear();
        self.fields.clear();
        let mut at = 0;
        loop {
            let start = self.text.len();
            if text.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    let Some(quote) = memchr::memchr(b'"', &text[at..]) else { return false };
                    self.text.extend_from_slice(&text[at..at + quote]);
                    at += quote + 1;
                    if text.get(at) != Some(&b'"') {
                        break;
                    }
                    self.text.push(b'"');
                    at += 1;
                }
            }
            // What stands behind a closing quote belongs to the field, as everywhere.
            let end = memchr::memchr(delimiter, &text[at..]).map_or(text.len(), |length| at + length);
            self.text.extend_from_slice(&text[at..end]);
            if self.fields.len() < MOST_FIELDS {
                self.fields.push(start..self.text.len());
            }
            if end == text.len() {
                return true;
            }
            at = end + 1;
        }
    }

    /// Its fields.
    pub(super) fn fields(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.fields.iter().map(|range| &self.text[range.clone()])
    }
}
