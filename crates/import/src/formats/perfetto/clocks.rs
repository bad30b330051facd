//! The clocks of a trace. A packet tells on which one its time is; snapshots tell what several of them showed at one moment.
//!
//! Every time becomes one of the trace's own clock, as Perfetto does it: by the difference that the snapshot before it shows. The trace's
//! clock is boot time unless a snapshot names another, and its map to UTC goes through all snapshots that hold both.

use std::collections::{BTreeMap, HashMap};

use crate::clock::{Anchor, Clock, ClockKind};
use crate::formats::wire::{Fields, Value};

/// Clocks that Perfetto has numbers for.
const REALTIME: u32 = 1;
pub(super) const MONOTONIC: u32 = 3;
const BOOTTIME: u32 = 6;
/// Clocks with these numbers are of one sequence.
const OF_SEQUENCE: std::ops::Range<u32> = 64..128;
/// Clocks of one snapshot.
const MOST_CLOCKS: usize = 64;
/// Snapshots that are kept: at one in ten seconds those of a week.
const MOST_SNAPSHOTS: usize = 65_536;
/// Clocks of sequences.
const MOST_SEQUENCE_CLOCKS: usize = 1 << 18;
/// A clock that seems to run so wrong was set between two snapshots.
const STEP_PPM: i128 = 1_000;

/// What a snapshot says of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shown {
    clock: u32,
    at_ns: i64,
    incremental: bool,
    unit_ns: i64,
}

/// A clock of one sequence: its own time, and the trace's at the same moment.
#[derive(Debug, Clone, Copy)]
struct OfSequence {
    at_ns: i64,
    trace_ns: i64,
    /// The time of the packet before, from which the next one counts.
    last_ns: i64,
    incremental: bool,
    unit_ns: i64,
}

/// All clocks of one trace.
#[derive(Debug, Clone, Default)]
pub(super) struct Clocks {
    /// The trace's own, where a snapshot names it.
    primary: Option<u32>,
    /// Clock and trace's clock at the same moments, in the order of the clock.
    maps: BTreeMap<u32, Vec<(i64, i64)>>,
    /// Snapshots from which no way to the trace's clock was known yet.
    waiting: Vec<Vec<Shown>>,
    sequences: HashMap<(u32, u32), OfSequence>,
    snapshots: usize,
    /// The clock of the first packet that names one.
    first_named: Option<u32>,
}

impl Clocks {
    /// The clock that times of the trace are on.
    pub(super) fn own(&self) -> u32 {
        self.primary.unwrap_or(BOOTTIME)
    }

    /// A snapshot, on a sequence. False where it is not kept.
    pub(super) fn snapshot(&mut self, bytes: &[u8], sequence: u32) -> bool {
        let mut all = Vec::new();
        for (field, value) in Fields::new(bytes) {
            match (field, value) {
                (1, Value::Bytes(clock)) if all.len() < MOST_CLOCKS => all.extend(shown(clock)),
                (2, value) if self.primary.is_none() => self.primary = value.small().filter(|clock| *clock != 0),
                _ => {}
            }
        }
        self.place(all, sequence)
    }

    fn place(&mut self, all: Vec<Shown>, sequence: u32) -> bool {
        let own = self.own();
        let direct = all.iter().find(|shown| shown.clock == own).map(|shown| shown.at_ns);
        let trace_ns = direct.or_else(|| {
            let known = all.iter().filter(|shown| !OF_SEQUENCE.contains(&shown.clock));
            known.filter_map(|shown| self.to_trace(shown.clock, shown.at_ns)).next()
        });
        let Some(trace_ns) = trace_ns else {
            let room = self.waiting.len() < MOST_CLOCKS;
            if room {
                self.waiting.push(all);
            }
            return room;
        };
        let mut kept = true;
        let many = self.snapshots >= MOST_SNAPSHOTS;
        self.snapshots += usize::from(!many);
        for Shown { clock, at_ns, incremental, unit_ns } in all {
            if OF_SEQUENCE.contains(&clock) {
                let room = self.sequences.len() < MOST_SEQUENCE_CLOCKS;
                let state = OfSequence { at_ns, trace_ns, last_ns: at_ns, incremental, unit_ns };
                match self.sequences.get_mut(&(sequence, clock)) {
                    Some(known) => *known = state,
                    None if room => _ = self.sequences.insert((sequence, clock), state),
                    None => kept = false,
                }
            } else if !many {
                let map = self.maps.entry(clock).or_default();
                let place = map.partition_point(|(known, _)| *known < at_ns);
                if map.get(place).is_none_or(|(known, _)| *known != at_ns) {
                    map.insert(place, (at_ns, trace_ns));
                }
            } else {
                kept = false;
            }
        }
        kept
    }

    /// What the end of the first pass makes known: which clock is the trace's, and the ways to it.
    pub(super) fn settle(&mut self) {
        if self.primary.is_none() && !self.maps.contains_key(&BOOTTIME) {
            // Perfetto itself drops what it cannot convert; on a clock of its own it is at least in order.
            let shown = self.waiting.iter().flatten().map(|shown| shown.clock);
            let best =
                shown.filter(|clock| !OF_SEQUENCE.contains(clock)).min_by_key(|clock| (*clock != MONOTONIC, *clock));
            self.primary = best.or(self.first_named.filter(|clock| !OF_SEQUENCE.contains(clock)));
        }
        for _ in 0..MOST_CLOCKS {
            let waiting = std::mem::take(&mut self.waiting);
            if waiting.is_empty() {
                break;
            }
            for all in waiting {
                self.place(all, 0);
            }
        }
        self.sequences.clear();
        // The second pass sees the same ones again.
        self.snapshots = 0;
    }

    /// The time of a packet on the trace's clock; none where no snapshot tells it.
    pub(super) fn packet_time(&mut self, clock: Option<u32>, sequence: u32, time: u64) -> Option<i64> {
        let time = i64::try_from(time).unwrap_or(i64::MAX);
        let Some(clock) = clock.filter(|clock| *clock != 0) else { return Some(time) };
        self.first_named.get_or_insert(clock);
        if !OF_SEQUENCE.contains(&clock) {
            return self.to_trace(clock, time);
        }
        let state = self.sequences.get_mut(&(sequence, clock))?;
        let mut ns = time.saturating_mul(state.unit_ns);
        if state.incremental {
            ns = ns.saturating_add(state.last_ns);
            state.last_ns = ns;
        }
        Some(ns.saturating_sub(state.at_ns).saturating_add(state.trace_ns))
    }

    /// A time of a clock that all sequences share.
    pub(super) fn to_trace(&self, clock: u32, ns: i64) -> Option<i64> {
        if clock == self.own() {
            return Some(ns);
        }
        let map = self.maps.get(&clock)?;
        let place = map.partition_point(|(at, _)| *at <= ns).saturating_sub(1);
        let (at, trace_ns) = *map.get(place)?;
        Some(ns.saturating_sub(at).saturating_add(trace_ns))
    }

    /// The trace's clock, and how many snapshots were left out because the wall clock was set before them.
    pub(super) fn to_utc(&self) -> (Clock, u64) {
        let own = self.own();
        if own == REALTIME {
            return (Clock::utc("the trace's clock is UTC"), 0);
        }
        let kind = match own {
            BOOTTIME => ClockKind::Boot,
            3..=5 => ClockKind::Monotonic,
            2 => ClockKind::Realtime,
            _ => ClockKind::TraceRelative,
        };
        let mut anchors: Vec<Anchor> = Vec::new();
        let mut stepped = 0;
        let map = self.maps.get(&REALTIME).map_or(&[][..], Vec::as_slice);
        let mut map: Vec<Anchor> =
            map.iter().map(|(utc_ns, source_ns)| Anchor { source_ns: *source_ns, utc_ns: *utc_ns }).collect();
        map.sort_by_key(|anchor| anchor.source_ns);
        for anchor in map {
            let step = anchors.last().is_some_and(|last| {
                let passed = i128::from(anchor.source_ns) - i128::from(last.source_ns);
                let utc = i128::from(anchor.utc_ns) - i128::from(last.utc_ns);
                // Two readings that follow each other at once differ by what reading takes.
                (utc - passed).abs() > passed * STEP_PPM / 1_000_000 + 1_000_000
            });
            if step {
                stepped += 1;
            } else {
                anchors.push(anchor);
            }
        }
        let how = format!("through {} clock snapshots of the trace", anchors.len());
        let none = || Clock::offset(kind, 0, None, "no snapshot holds UTC: times count from 1970");
        (Clock::through(kind, anchors, None, how).unwrap_or_else(none), stepped)
    }
}

fn shown(bytes: &[u8]) -> Option<Shown> {
    let (mut clock, mut time, mut incremental, mut unit) = (None, None, false, 1);
    for (field, value) in Fields::new(bytes) {
        match field {
            1 => clock = value.small(),
            2 => time = value.number(),
            3 => incremental = value.number().is_some_and(|flag| flag != 0),
            4 => unit = value.number().unwrap_or(1).max(1),
            _ => {}
        }
    }
    let unit_ns = i64::try_from(unit).ok()?;
    let at_ns = i64::try_from(time?).ok()?.checked_mul(unit_ns)?;
    Some(Shown { clock: clock?, at_ns, incremental, unit_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::wire::make::{message, number};

    fn snapshot(clocks: &[(u64, u64)]) -> Vec<u8> {
        clocks.iter().flat_map(|(clock, time)| message(1, &[number(1, *clock), number(2, *time)])).collect()
    }

    #[test]
    fn ways_to_the_clock_of_the_trace() {
        let mut clocks = Clocks::default();
        // 5 is known through 3 only, and comes before anything leads from there.
        clocks.snapshot(&snapshot(&[(5, 50), (3, 1_000)]), 1);
        clocks.snapshot(&snapshot(&[(6, 2_000), (3, 1_500), (1, 1_000_000)]), 1);
        clocks.snapshot(&snapshot(&[(6, 3_000), (3, 2_600), (1, 1_001_000)]), 1);
        clocks.settle();
        for (clock, time, expected) in [
            (6, 5, Some(5)),
            (3, 1_600, Some(2_100)),
            (3, 2_700, Some(3_100)),
            (3, 0, Some(500)),
            (5, 60, Some(1_510)),
            (9, 1, None),
        ] {
            assert_eq!(clocks.packet_time(Some(clock), 7, time), expected, "{clock} {time}");
        }
        assert_eq!(clocks.packet_time(None, 7, 12), Some(12));
        let (clock, stepped) = clocks.to_utc();
        assert_eq!((clock.kind, clock.to_utc(2_500), stepped), (ClockKind::Boot, 1_000_500, 0));
    }

    #[test]
    fn a_wall_clock_that_is_set_is_no_drift() {
        let mut clocks = Clocks::default();
        let second = 1_000_000_000;
        clocks.snapshot(&snapshot(&[(6, second), (1, 100 * second)]), 1);
        clocks.snapshot(&snapshot(&[(6, 2 * second), (1, 90 * second)]), 1);
        clocks.snapshot(&snapshot(&[(6, 3 * second), (1, 102 * second + 5)]), 1);
        clocks.settle();
        let (clock, stepped) = clocks.to_utc();
        assert_eq!((clock.to_utc(3 * second as i64), stepped), (102_000_000_005, 1));
    }

    #[test]
    fn clocks_of_sequences_count_on() {
        let mut clocks = Clocks::default();
        let own = message(1, &[number(1, 64), number(2, 10), number(3, 1), number(4, 1_000)]);
        clocks.snapshot(&[snapshot(&[(6, 500_000)]), own].concat(), 3);
        assert_eq!(clocks.packet_time(Some(64), 3, 5), Some(505_000));
        assert_eq!(clocks.packet_time(Some(64), 3, 0), Some(505_000));
        assert_eq!(clocks.packet_time(Some(64), 3, 2), Some(507_000));
        assert_eq!(clocks.packet_time(Some(64), 4, 2), None);
    }
}
