//! What only the order of calls tells: jumps between transfers, bytes read again, seeks that move nothing, bytes read back after writing.
//!
//! The pass over the events takes the calls that touch content out of each batch ([`Step`]); a [`Sequencer`] follows them in the order of the files. The
//! state of a file that is open is a few numbers, it goes when the file is closed, and there are at most `limits.streams` of them; calls that could
//! not be followed are counted.
//!
//! Traces of DFTracer have no offset on `read` and `write`: there it is followed through opens and seeks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::calls::Call;
use super::rules::{random_access, unaligned_io};
use super::thresholds::{Config, Threshold};
use crate::pass::Maps;
use crate::wire;

/// Limits of what is followed.
pub(crate) const THRESHOLDS: &[Threshold] = &[STREAMS];
pub(super) const STREAMS: Threshold = Threshold::new(
    "limits.streams",
    1_000_000.0,
    "open files",
    "Sequences of calls are followed for this many at once (about 100 MB); further files are counted and named.",
);

/// What one process did with one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Its place among the patterns, once there is one.
    pattern: u32,
    /// Where the next call without an offset goes on.
    position: u64,
    /// Where the transfer before ended; nothing before the first one, whose place is no jump.
    last_end: Option<u64>,
}

/// All patterns, in the order of processes and files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sequences {
    pub patterns: Vec<((u32, u32), Pattern)>,
    /// Calls that were not followed because too many files were open.
    pub unfollowed: u64,
}

/// Numbers of a pattern that are added up.
const SUMS: usize = 17;

impl Pattern {
    /// Takes up what another shard saw of the same process and file. Neither knows of the other what was open, or written before: a jump from one to the
    /// other and bytes that one wrote and the other read are not seen.
    fn join(&mut self, other: &Pattern) {
        let hull = |empty: [bool; 2], own: (u64, u64), other: (u64, u64)| match empty {
            [true, _] => other,
            [_, true] => own,
            _ => (own.0.min(other.0), own.1.max(other.1)),
        };
        let empty = [self.reads == 0, other.reads == 0];
        (self.read_from, self.read_to) = hull(empty, (self.read_from, self.read_to), (other.read_from, other.read_to));
        let empty = [self.writes == 0, other.writes == 0];
        (self.written_from, self.written_to) =
            hull(empty, (self.written_from, self.written_to), (other.written_from, other.written_to));
        for (own, other) in self.sums().into_iter().zip({ *other }.sums()) {
            *own = own.saturating_add(*other);
        }
    }

    /// All that is added up.
    fn sums(&mut self) -> [&mut u64; SUMS] {
        [
            &mut self.reads,
            &mut self.read_bytes,
            &mut self.read_ns,
            &mut self.random_reads,
            &mut self.random_read_bytes,
            &mut self.random_read_ns,
            &mut self.writes,
            &mut self.random_writes,
            &mut self.random_write_bytes,
            &mut self.random_write_ns,
            &mut self.unaligned,
            &mut self.unaligned_bytes,
            &mut self.unaligned_ns,
            &mut self.large,
            &mut self.again_bytes,
            &mut self.again_ns,
            &mut self.idle_seeks,
        ]
    }
}

impl Sequences {
    /// Takes up another shard's.
    pub(crate) fn merge(&mut self, other: Sequences) {
        self.unfollowed = self.unfollowed.saturating_add(other.unfollowed);
        if !other.patterns.is_empty() {
            self.patterns.extend(other.patterns);
            self.settle();
        }
    }

    pub(crate) fn is_plausible(&self) -> bool {
        let sound = |pattern: &Pattern| {
            pattern.random_reads <= pattern.reads
                && pattern.random_writes <= pattern.writes
                && pattern.unaligned <= pattern.large
                && pattern.again_bytes <= pattern.read_bytes
                && pattern.read_from <= pattern.read_to
        };
        let sums = |place: usize| self.patterns.iter().map(move |(_, pattern)| *{ *pattern }.sums()[place]);
        let extents = self.patterns.iter().map(|(_, pattern)| pattern.read_to.saturating_sub(pattern.read_from));
        self.patterns.iter().all(|(_, pattern)| sound(pattern))
            && (0..SUMS).all(|place| wire::is_sum(sums(place)))
            && wire::is_sum(extents)
    }

    pub(crate) fn renumbered(mut self, maps: &Maps) -> Sequences {
        for (key, _) in &mut self.patterns {
            *key = (maps.process(key.0), maps.file(key.1));
        }
        self.settle();
        self
    }

    fn settle(&mut self) {
        self.patterns.sort_by_key(|(key, _)| *key);
        self.patterns.dedup_by(|after, before| {
            let same = after.0 == before.0;
            if same {
                before.1.join(&after.1);
            }
            same
        });
    }
}

struct Follower {
    patterns: Vec<((u32, u32), Pattern)>,
    places: FxHashMap<(u32, u32), u32>,
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

/// A call whose place in the order matters, taken out of its batch by whichever thread has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub call: Call,
    pub process: u32,
    pub file: u32,
    pub tid: i64,
    /// Its descriptor; -1 where it names none.
    pub fd: i64,
    pub result: i64,
    pub offset: Option<i64>,
    /// A seek that is relative to the end.
    pub from_end: bool,
    pub ns: u64,
}

/// `whence` of a seek that looks for the end, which is a question about the size; the same on all Linux machines.
pub(crate) const SEEK_END: i64 = 2;

/// Calls that are followed.
pub(crate) const FOLLOWED: [Call; 5] = [Call::Read, Call::Write, Call::Open, Call::Close, Call::Seek];

/// Follows the steps of row groups in the order of the files, while other threads still gather those of later ones.
///
/// A thread leaves the steps of its row group here. Whoever finds the follower free follows all that are next; nobody waits for it unless
/// [`AHEAD`] row groups are left, so that memory stays bounded.
pub(crate) struct Sequencer {
    waiting: Mutex<BTreeMap<usize, Vec<Step>>>,
    follower: Mutex<(usize, Follower)>,
    /// Memory that is used again: new pages cost more than what is written to them.
    spare: Mutex<Vec<Vec<Step>>>,
}

/// Row groups whose steps may wait.
const AHEAD: usize = 4;

impl Sequencer {
    pub(crate) fn new(config: &Config) -> Sequencer {
        let follower = Follower {
            patterns: Vec::new(),
            places: FxHashMap::default(),
            open: FxHashMap::default(),
            most: config.count(STREAMS) as usize,
            unfollowed: 0,
            gap: config.count(random_access::GAP),
            block: config.count(unaligned_io::BLOCK).max(1),
        };
        Sequencer { waiting: Mutex::default(), follower: Mutex::new((0, follower)), spare: Mutex::default() }
    }

    /// Takes the steps of a row group, by its place in the order. Gives back room for those of the next.
    pub(crate) fn submit(&self, group: usize, steps: Vec<Step>) -> Vec<Step> {
        let many = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.insert(group, steps);
            waiting.len() > AHEAD
        };
        let follower = if many { self.follower.lock().ok() } else { self.follower.try_lock().ok() };
        if let Some(mut follower) = follower {
            self.follow(&mut follower);
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn follow(&self, (next, follower): &mut (usize, Follower)) {
        let take = |group: usize| self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&group);
        while let Some(mut steps) = take(*next) {
            steps.iter().for_each(|step| follower.step(step));
            *next += 1;
            steps.clear();
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(steps);
        }
    }

    /// All patterns, once every row group was submitted.
    pub(crate) fn finish(self) -> Sequences {
        let (_, mut follower) = self.follower.into_inner().unwrap_or_else(PoisonError::into_inner);
        for steps in self.waiting.into_inner().unwrap_or_else(PoisonError::into_inner).into_values() {
            steps.iter().for_each(|step| follower.step(step));
        }
        let mut patterns = follower.patterns;
        patterns.sort_unstable_by_key(|(key, _)| *key);
        Sequences { patterns, unfollowed: follower.unfollowed }
    }
}

const NONE: u32 = u32::MAX;

impl Place {
    const NEW: Place = Place { pattern: NONE, position: 0, last_end: None };
}

/// Where an open file is; nothing where too many are open.
fn place_of<'o>(
    open: &'o mut FxHashMap<Stream, Place>,
    most: usize,
    unfollowed: &mut u64,
    stream: Stream,
) -> Option<&'o mut Place> {
    if open.len() >= most && !open.contains_key(&stream) {
        *unfollowed += 1;
        return None;
    }
    Some(open.entry(stream).or_insert(Place::NEW))
}

/// The place of what a process did with a file among the patterns.
fn pattern_of(
    places: &mut FxHashMap<(u32, u32), u32>,
    patterns: &mut Vec<((u32, u32), Pattern)>,
    stream: Stream,
) -> u32 {
    let key = (stream.process, stream.file);
    *places.entry(key).or_insert_with(|| {
        patterns.push((key, Pattern::default()));
        patterns.len() as u32 - 1
    })
}

impl Follower {
    fn step(&mut self, step: &Step) {
        let Step { call, process, file, tid, result, .. } = *step;
        let shared = Stream { process, file, fd: step.fd, tid: 0 };
        match call {
            Call::Open => self.opened(Stream { fd: result, ..shared }, tid),
            Call::Close => self.closed(shared, tid),
            Call::Seek => self.sought(shared, tid, result, step.from_end),
            _ if result > 0 => {
                // Threads that share a file and say where they read each have their own sequence.
                let stream = if step.offset.is_some() { Stream { tid, ..shared } } else { shared };
                let offset = step.offset.map(|at| at.max(0) as u64);
                let transfer = Transfer { stream, offset, bytes: result as u64, ns: step.ns };
                self.transfer(&transfer, call == Call::Write);
            }
            _ => {}
        }
    }

    fn opened(&mut self, stream: Stream, tid: i64) {
        self.closed(stream, tid);
        // DFTracer's `read` names no descriptor.
        self.closed(Stream { fd: -1, ..stream }, tid);
    }

    fn closed(&mut self, stream: Stream, tid: i64) {
        self.open.remove(&stream);
        self.open.remove(&Stream { tid, ..stream });
    }

    fn sought(&mut self, stream: Stream, tid: i64, result: i64, from_end: bool) {
        let Ok(to) = u64::try_from(result) else { return };
        let by_thread = self.open.get(&Stream { tid, ..stream }).map(|place| place.position);
        let place = place_of(&mut self.open, self.most, &mut self.unfollowed, stream);
        let Some(place) = place else { return };
        let was = by_thread.unwrap_or(place.position);
        place.position = to;
        // SEEK_SET and SEEK_CUR to the same place; a look for the end is a question about the size.
        if was == to && !from_end {
            let pattern = pattern_of(&mut self.places, &mut self.patterns, stream);
            self.patterns[pattern as usize].1.idle_seeks += 1;
        }
    }

    fn transfer(&mut self, transfer: &Transfer, is_write: bool) {
        let (gap, block) = (self.gap, self.block);
        let place = place_of(&mut self.open, self.most, &mut self.unfollowed, transfer.stream);
        let Some(place) = place else { return };
        let offset = transfer.offset.unwrap_or(place.position);
        let end = offset.saturating_add(transfer.bytes);
        let jump = place.last_end.is_some_and(|last| offset < last || offset - last > gap);
        if place.pattern == NONE {
            place.pattern = pattern_of(&mut self.places, &mut self.patterns, transfer.stream);
        }
        (place.position, place.last_end) = (end, Some(end));
        let pattern = &mut self.patterns[place.pattern as usize].1;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Patterns by process and file, and the steps that were not followed.
    type Found = (Vec<((u32, u32), Pattern)>, u64);

    /// What is told of the same row groups when threads leave them in this order.
    fn followed(groups: &[Vec<Step>], order: &[usize]) -> Found {
        let sequencer = Sequencer::new(&Config::default());
        order.iter().for_each(|group| drop(sequencer.submit(*group, groups[*group].clone())));
        let found = sequencer.finish();
        (found.patterns, found.unfollowed)
    }

    #[test]
    fn row_groups_may_come_in_any_order() {
        let mut random = 11u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mut step = || Step {
            call: FOLLOWED[next(5) as usize],
            process: next(2) as u32,
            file: next(3) as u32,
            tid: next(2) as i64,
            fd: 3 + next(2) as i64,
            result: 4096 * next(4) as i64,
            offset: (next(2) == 0).then(|| 4096 * next(9) as i64),
            from_end: next(4) == 0,
            ns: next(1000),
        };
        let groups: Vec<Vec<Step>> = (0..8).map(|_| (0..100).map(|_| step()).collect()).collect();
        let expected = followed(&groups, &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(expected.0.iter().any(|(_, pattern)| pattern.random_reads > 0 && pattern.again_bytes > 0));
        for order in
            [[7, 6, 5, 4, 3, 2, 1, 0], [1, 0, 3, 2, 5, 4, 7, 6], [0, 2, 4, 6, 1, 3, 5, 7], [3, 7, 0, 1, 6, 2, 5, 4]]
        {
            assert_eq!(followed(&groups, &order), expected, "{order:?}");
        }
        // The order of the row groups themselves matters, or nothing was followed.
        let mut others = groups;
        others.reverse();
        assert_ne!(followed(&others, &[0, 1, 2, 3, 4, 5, 6, 7]), expected);
    }
}
