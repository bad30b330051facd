//! Calls by operation, counted and added up.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use weftline_calls::IoCat;

use super::calls::Call;

/// An operation as rules tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum Op {
    Read,
    /// Below `small-reads.size`.
    SmallRead,
    Write,
    SmallWrite,
    Copy,
    StreamRead,
    StreamWrite,
    Flush,
    /// A stream was told to have no buffer, or one below a page.
    NoBuffer,
    Open,
    /// May make the file, which takes far longer.
    OpenCreate,
    OpenFailed,
    /// Opened so that every write waits for the disk.
    OpenSync,
    Close,
    StatPath,
    StatOpen,
    Seek,
    Sync,
    Metadata,
}

impl Op {
    pub(crate) const READS: &'static [Op] = &[Op::Read, Op::SmallRead, Op::StreamRead, Op::Copy];
    pub(crate) const WRITES: &'static [Op] = &[Op::Write, Op::SmallWrite, Op::StreamWrite, Op::Copy];
    pub(crate) const OPENS: &'static [Op] = &[Op::Open, Op::OpenCreate, Op::OpenFailed, Op::OpenSync];

    pub(crate) fn is_metadata(self) -> bool {
        Op::OPENS.contains(&self) || matches!(self, Op::Close | Op::StatPath | Op::StatOpen | Op::Seek | Op::Metadata)
    }
}

/// Calls, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64, i64, u64)", into = "(u64, u64, u64, i64, u64)")]
pub(crate) struct Tally {
    pub calls: u64,
    pub bytes: u64,
    pub ns: u64,
    pub start: i64,
    pub end: i64,
}

impl Default for Tally {
    fn default() -> Self {
        Tally { calls: 0, bytes: 0, ns: 0, start: i64::MAX, end: i64::MIN }
    }
}

/// The end as its distance from the start, which is short.
impl From<Tally> for (u64, u64, u64, i64, u64) {
    fn from(tally: Tally) -> Self {
        (tally.calls, tally.bytes, tally.ns, tally.start, tally.end.wrapping_sub(tally.start) as u64)
    }
}

impl From<(u64, u64, u64, i64, u64)> for Tally {
    fn from((calls, bytes, ns, start, length): (u64, u64, u64, i64, u64)) -> Self {
        Tally { calls, bytes, ns, start, end: start.wrapping_add(length as i64) }
    }
}

impl Tally {
    #[inline]
    pub(crate) fn add(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.ns += other.ns;
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }

    /// The same with sums that somebody else says, and that stop at the largest number.
    pub(crate) fn merge(&mut self, other: &Tally) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }

    /// A part of it, for what only some of its calls did.
    pub(crate) fn part(&self, calls: u64, bytes: u64) -> Tally {
        let ns =
            if self.calls == 0 { 0 } else { (u128::from(self.ns) * u128::from(calls) / u128::from(self.calls)) as u64 };
        Tally { calls, bytes, ns, ..*self }
    }
}

pub(crate) type Sums = FxHashMap<(u32, u32, Op), Tally>;
/// Sums that a thread keeps to itself. There may be millions; to have all of them once per thread took most of a report's memory.
pub(crate) const LOCAL_SUMS: usize = 1 << 16;

pub(crate) fn add_sums(all: &mut Sums, more: impl IntoIterator<Item = ((u32, u32, Op), Tally)>) {
    more.into_iter().for_each(|(key, tally)| all.entry(key).or_default().merge(&tally));
}

/// Tallies by key. Calls of one kind on one file follow each other, so most find theirs among the last ones without a look-up.
#[derive(Default)]
pub(crate) struct Tallies {
    pub all: Vec<((u32, u32, Op), Tally)>,
    places: FxHashMap<(u32, u32, Op), u32>,
    /// Places of keys that were met last, by a few bits of the key.
    recent: Vec<u32>,
}

/// Keys that are remembered: they and their tallies fit into a processor's second cache.
const RECENT: usize = 1 << 10;

impl Tallies {
    #[inline]
    pub(crate) fn add(&mut self, key: (u32, u32, Op), tally: &Tally) {
        let slot = (key.1.wrapping_mul(19) ^ key.0.wrapping_mul(211) ^ key.2 as u32) as usize % RECENT;
        let near = self.recent.get(slot).and_then(|place| self.all.get_mut(*place as usize));
        match near {
            Some((known, sum)) if *known == key => sum.add(tally),
            _ => self.add_far(key, tally, slot),
        }
    }

    fn add_far(&mut self, key: (u32, u32, Op), tally: &Tally, slot: usize) {
        let next = self.all.len() as u32;
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.all.push((key, *tally));
        } else {
            self.all[place as usize].1.add(tally);
        }
        self.recent.resize(RECENT, u32::MAX);
        self.recent[slot] = place;
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = ((u32, u32, Op), Tally)> {
        self.places.clear();
        self.recent.clear();
        self.all.drain(..)
    }
}

/// Set by `O_SYNC` as well; the same on all Linux machines that Weftline runs on.
const O_DSYNC: i64 = 0o10000;
const O_CREAT: i64 = 0o100;
/// glibc's number of "no buffer".
const IONBF: i64 = 2;

/// What a call is to the rules; nothing where it is nothing to them. `small`: sizes below which reads and writes are small.
pub(crate) fn operation(
    call: Call,
    size: Option<i64>,
    ret: Option<i64>,
    flags: i64,
    mode: Option<i64>,
    small: [u64; 2],
) -> Option<Op> {
    let moved = ret.unwrap_or(0).max(0) as u64;
    // What was asked for where it is known: the last piece of a file is not a small read.
    let asked = size.map_or(moved, |size| (size.max(0) as u64).max(moved));
    Some(match call {
        // The end of the file, or an error.
        Call::Read | Call::Write if moved == 0 => return None,
        Call::Read if asked < small[0] => Op::SmallRead,
        Call::Read => Op::Read,
        Call::Write if asked < small[1] => Op::SmallWrite,
        Call::Write => Op::Write,
        Call::Copy | Call::Splice | Call::SpliceMemory => Op::Copy,
        Call::StreamRead => Op::StreamRead,
        Call::StreamWrite => Op::StreamWrite,
        Call::Flush => Op::Flush,
        Call::Buffering if mode == Some(IONBF) || size.is_some_and(|size| (1..4096).contains(&size)) => Op::NoBuffer,
        Call::Buffering => return None,
        Call::Open if ret.is_some_and(|ret| ret < 0) => Op::OpenFailed,
        Call::Open if flags & O_DSYNC != 0 => Op::OpenSync,
        Call::Open if flags & O_CREAT != 0 => Op::OpenCreate,
        Call::Open => Op::Open,
        Call::Close => Op::Close,
        Call::StatPath | Call::Access => Op::StatPath,
        Call::StatOpen => Op::StatOpen,
        Call::Seek | Call::Tell => Op::Seek,
        Call::Sync => Op::Sync,
        call if call.io_cat() == IoCat::Metadata => Op::Metadata,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_are_those_of_a_plain_map() {
        let mut random = 5u64;
        let (mut tallies, mut plain) = (Tallies::default(), Sums::default());
        for place in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // More keys than are remembered, some of them again and again.
            let file = if place % 3 == 0 { (random >> 40) as u32 % 4_000 } else { place as u32 / 100 };
            let key = ((random >> 33) as u32 % 3, file, if random >> 63 == 0 { Op::Read } else { Op::Close });
            let (start, end) = (place as i64, place as i64 + 5);
            let tally = Tally { calls: 1, bytes: place, ns: 5, start, end };
            tallies.add(key, &tally);
            plain.entry(key).or_default().add(&tally);
        }
        assert_eq!(tallies.drain().collect::<Sums>(), plain);
        assert_eq!(tallies.drain().count(), 0);
        tallies.add((0, 0, Op::Read), &Tally::default());
        assert_eq!(tallies.drain().count(), 1);
    }
}
