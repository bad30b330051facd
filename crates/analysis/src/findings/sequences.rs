//! What only the order of calls tells: jumps between transfers, bytes read again, seeks that move nothing, bytes read back after writing.
//!
//! One pass in file order over the calls that touch content. The state of a file that is open is a few numbers, it goes when the file is
//! closed, and there are at most `limits.streams` of them; calls that could not be followed are counted.
//!
//! Traces of DFTracer have no offset on `read` and `write`: there it is followed through opens and seeks.

use std::sync::Arc;

use arrow_array::Array as _;
use rustc_hash::FxHashMap;
use weftline_format::Phase;
use weftline_index::column::phase_code;
use weftline_index::filter::Filter;
use weftline_index::{Column, Request, Run};

use super::calls::Call;
use super::evidence::Evidence;
use super::thresholds::{Config, Limit};

/// What one process did with one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub reads: u64,
    pub read_bytes: u64,
    pub read_ns: u64,
    /// Reads and writes that began far from where the one before ended.
    pub random_reads: u64,
    pub random_read_bytes: u64,
    pub random_read_ns: u64,
    pub writes: u64,
    pub random_writes: u64,
    pub random_write_bytes: u64,
    pub random_write_ns: u64,
    /// Transfers of a block or more that began off a block's start.
    pub unaligned: u64,
    pub unaligned_bytes: u64,
    pub unaligned_ns: u64,
    /// Transfers of a block or more.
    pub large: u64,
    /// From the lowest to the highest byte that was read.
    pub read_from: u64,
    pub read_to: u64,
    /// Bytes read within what the same process had written before.
    pub again_bytes: u64,
    pub again_ns: u64,
    written_from: u64,
    written_to: u64,
    /// Seeks that went to where the file was.
    pub idle_seeks: u64,
}

/// An open file as one thread sees it, or as all do where calls have no offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stream {
    process: u32,
    file: u32,
    fd: i64,
    tid: i64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// Where the next call without an offset goes on.
    position: u64,
    /// Where the transfer before ended; nothing before the first one, whose place is no jump.
    last_end: Option<u64>,
}

/// All patterns, by process and file.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    pub patterns: Vec<((u32, u32), Pattern)>,
    /// Calls that were not followed because too many files were open.
    pub unfollowed: u64,
}

struct Follower {
    patterns: FxHashMap<(u32, u32), Pattern>,
    open: FxHashMap<Stream, Place>,
    most: usize,
    unfollowed: u64,
    gap: u64,
    block: u64,
}

struct Transfer {
    stream: Stream,
    offset: Option<u64>,
    bytes: u64,
    ns: u64,
}

impl Sequences {
    pub(crate) fn gather(run: &Run, evidence: &Evidence, config: &Config) -> weftline_index::Result<Sequences> {
        let integer = |name: &str| Column::integer(name).unwrap_or(Column::Id);
        let (fd, ret, offset, whence) = (integer("fd"), integer("ret"), integer("offset"), integer("whence"));
        let dictionary = Arc::clone(&evidence.dictionary);
        let wanted = move |name: &str| {
            let calls = [Call::Read, Call::Write, Call::Open, Call::Close, Call::Seek];
            super::calls::call_of(name).is_some_and(|call| calls.contains(&call))
        };
        let filter =
            Filter { names: Some(Arc::new(wanted)), ..Filter::default() }.with_phases(&[phase_code(Phase::Complete)]);
        let columns = [
            Column::Name,
            Column::Cat,
            Column::Process,
            Column::Tid,
            Column::File,
            Column::Dur,
            fd,
            ret,
            offset,
            whence,
        ];
        let mut follower = Follower {
            patterns: FxHashMap::default(),
            open: FxHashMap::default(),
            most: config.count(Limit::Streams) as usize,
            unfollowed: 0,
            gap: config.count(Limit::RandomGap),
            block: config.count(Limit::UnalignedBlock).max(1),
        };
        run.scan_in_order(&Request::of(columns).with(filter), |batch| {
            let (names, cats) = (batch.ids(Column::Name), batch.ids(Column::Cat));
            let (processes, files, tids) =
                (batch.ids(Column::Process), batch.ids(Column::File), batch.ints(Column::Tid));
            let (dur, fd, ret) = (batch.ints(Column::Dur), batch.ints(fd), batch.ints(ret));
            let (offset, whence) = (batch.ints(offset), batch.ints(whence));
            let value = |column: &arrow_array::Int64Array, row: usize| column.is_valid(row).then(|| column.value(row));
            for row in 0..batch.rows() {
                let Some(call) = evidence.meanings.call(names.value(row), cats.value(row)) else { continue };
                if !files.is_valid(row) || !evidence.meanings.is_regular(files.value(row)) {
                    continue;
                }
                // Streams seek and read within their buffers; their calls say nothing of the file's pattern.
                if dictionary.name(names.value(row)).starts_with('f') {
                    continue;
                }
                let (process, file) = (processes.value(row), files.value(row));
                let (at, result) = (value(offset, row), value(ret, row).unwrap_or(0));
                let known = at.is_some() && call != Call::Seek;
                let shared = Stream { process, file, fd: value(fd, row).unwrap_or(-1), tid: 0 };
                // Threads that share a file and say where they read each have their own sequence.
                let stream = if known { Stream { tid: tids.value(row), ..shared } } else { shared };
                match call {
                    Call::Open => follower.opened(Stream { fd: result, ..shared }, tids.value(row)),
                    Call::Close => follower.closed(shared, tids.value(row)),
                    Call::Seek => follower.sought(shared, tids.value(row), result, value(whence, row)),
                    _ if result > 0 => {
                        let offset = at.map(|at| at.max(0) as u64);
                        let ns = value(dur, row).unwrap_or(0).max(0) as u64;
                        let transfer = Transfer { stream, offset, bytes: result as u64, ns };
                        follower.transfer(&transfer, call == Call::Write);
                    }
                    _ => {}
                }
            }
        })?;
        let mut patterns: Vec<_> = follower.patterns.into_iter().collect();
        patterns.sort_unstable_by_key(|(key, _)| *key);
        Ok(Sequences { patterns, unfollowed: follower.unfollowed })
    }
}

impl Follower {
    fn opened(&mut self, stream: Stream, tid: i64) {
        self.closed(stream, tid);
        // DFTracer's `read` names no descriptor.
        self.closed(Stream { fd: -1, ..stream }, tid);
    }

    fn closed(&mut self, stream: Stream, tid: i64) {
        self.open.remove(&stream);
        self.open.remove(&Stream { tid, ..stream });
    }

    fn place(&mut self, stream: Stream) -> Option<&mut Place> {
        if self.open.len() >= self.most && !self.open.contains_key(&stream) {
            self.unfollowed += 1;
            return None;
        }
        Some(self.open.entry(stream).or_insert(Place { position: 0, last_end: None }))
    }

    fn sought(&mut self, stream: Stream, tid: i64, result: i64, whence: Option<i64>) {
        let Ok(to) = u64::try_from(result) else { return };
        let by_thread = self.open.get(&Stream { tid, ..stream }).map(|place| place.position);
        let Some(place) = self.place(stream) else { return };
        let was = by_thread.unwrap_or(place.position);
        place.position = to;
        // SEEK_SET and SEEK_CUR to the same place; a look for the end is a question about the size.
        if was == to && whence != Some(2) {
            self.patterns.entry((stream.process, stream.file)).or_default().idle_seeks += 1;
        }
    }

    fn transfer(&mut self, transfer: &Transfer, is_write: bool) {
        let (gap, block) = (self.gap, self.block);
        let Some(place) = self.place(transfer.stream) else { return };
        let offset = transfer.offset.unwrap_or(place.position);
        let end = offset.saturating_add(transfer.bytes);
        let jump = place.last_end.is_some_and(|last| offset < last || offset - last > gap);
        *place = Place { position: end, last_end: Some(end) };
        let pattern = self.patterns.entry((transfer.stream.process, transfer.stream.file)).or_default();
        if transfer.bytes >= block {
            pattern.large += 1;
            if !offset.is_multiple_of(block) {
                pattern.unaligned += 1;
                pattern.unaligned_bytes += transfer.bytes;
                pattern.unaligned_ns += transfer.ns;
            }
        }
        if is_write {
            if pattern.writes == 0 {
                (pattern.written_from, pattern.written_to) = (offset, end);
            }
            pattern.written_from = pattern.written_from.min(offset);
            pattern.written_to = pattern.written_to.max(end);
            pattern.writes += 1;
            if jump {
                pattern.random_writes += 1;
                pattern.random_write_bytes += transfer.bytes;
                pattern.random_write_ns += transfer.ns;
            }
            return;
        }
        if pattern.reads == 0 {
            (pattern.read_from, pattern.read_to) = (offset, end);
        }
        pattern.read_from = pattern.read_from.min(offset);
        pattern.read_to = pattern.read_to.max(end);
        pattern.reads += 1;
        pattern.read_bytes += transfer.bytes;
        pattern.read_ns += transfer.ns;
        if jump {
            pattern.random_reads += 1;
            pattern.random_read_bytes += transfer.bytes;
            pattern.random_read_ns += transfer.ns;
        }
        if pattern.writes > 0 && offset >= pattern.written_from && end <= pattern.written_to {
            pattern.again_bytes += transfer.bytes;
            pattern.again_ns += transfer.ns;
        }
    }
}
