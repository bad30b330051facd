//! Sums over records. A manifest is hostile input, so every sum saturates instead of wrapping.

use super::records::{CallTotal, FileTotal, SpanTotal, TracedBytes};

fn add(sums: &mut [(&mut u64, u64)]) {
    for (sum, more) in sums {
        **sum = sum.saturating_add(*more);
    }
}

impl CallTotal {
    /// Adds other calls of the same name.
    pub fn merge(&mut self, other: &CallTotal) {
        add(&mut [(&mut self.count, other.count), (&mut self.time_ns, other.time_ns), (&mut self.bytes, other.bytes)]);
    }
}

impl SpanTotal {
    /// Adds other spans of the same name.
    pub fn merge(&mut self, other: &SpanTotal) {
        add(&mut [(&mut self.count, other.count), (&mut self.time_ns, other.time_ns)]);
    }
}

impl FileTotal {
    /// Adds other calls on the same file.
    pub fn merge(&mut self, other: &FileTotal) {
        let calls = &mut [(&mut self.reads, other.reads), (&mut self.writes, other.writes)];
        add(calls);
        let bytes = &mut [(&mut self.read_bytes, other.read_bytes), (&mut self.write_bytes, other.write_bytes)];
        add(bytes);
        add(&mut [(&mut self.time_ns, other.time_ns)]);
    }
}

impl TracedBytes {
    /// All bytes read.
    pub fn read(&self) -> u64 {
        self.posix_read.saturating_add(self.stdio_read).saturating_add(self.other_read)
    }

    /// All bytes written.
    pub fn written(&self) -> u64 {
        self.posix_write.saturating_add(self.stdio_write).saturating_add(self.other_write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_at_the_largest_number() {
        let most = u64::MAX;
        let mut call = CallTotal { count: 1, time_ns: most, bytes: 5, ..CallTotal::default() };
        call.merge(&CallTotal { count: 2, time_ns: 1, bytes: most, ..CallTotal::default() });
        assert_eq!((call.count, call.time_ns, call.bytes), (3, most, most));
        let mut span = SpanTotal { count: most, time_ns: 1, ..SpanTotal::default() };
        span.merge(&SpanTotal { count: 1, time_ns: 2, ..SpanTotal::default() });
        assert_eq!((span.count, span.time_ns), (most, 3));
        let file =
            FileTotal { reads: 1, writes: most, read_bytes: 2, write_bytes: most, time_ns: 3, ..FileTotal::default() };
        let mut sum = file.clone();
        sum.merge(&file);
        let expected = FileTotal { reads: 2, read_bytes: 4, time_ns: 6, ..file };
        assert_eq!(sum, expected);
    }

    #[test]
    fn bytes_of_all_kinds_of_calls_count() {
        let traced = TracedBytes {
            posix_read: 1,
            stdio_read: 2,
            other_read: 4,
            posix_write: u64::MAX,
            stdio_write: 8,
            other_write: 16,
        };
        assert_eq!((traced.read(), traced.written()), (7, u64::MAX));
    }
}
