//! Converts clock ticks to nanoseconds since the epoch, the same for every process of a run.
//!
//! A [`Timeline`] is a chain of linear pieces: continuous, rising, and never changed once used, so that an
//! event gets the same time whoever encodes it. [`Clock`] extends it: an anchor (ticks and CLOCK_MONOTONIC at the same
//! time) shows the error of the newest piece, and the next piece is chosen so that it meets the true time when the
//! next anchor is due. Anchors come at 1, 2, 4 … ms, then once a second, after ten seconds every ten seconds.
//!
//! Nanoseconds are CLOCK_MONOTONIC plus the difference to CLOCK_REALTIME when the run began: setting the clock
//! during a run changes nothing. Pieces are appended to `<live>/clock` before they are used; recovery continues from there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use weftline_format::files;
use weftline_recorder::clock::{self, ClockKind};

const MAGIC: u64 = u64::from_le_bytes(*b"weftCLK\n");
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// Ahead of the timeline by more than this, the truth is jumped to instead of approached: the machine slept.
const JUMP: i64 = 100 * MILLISECOND as i64;

/// From `ticks` on, `ns` plus `rate` (in units of 2⁻³² ns) per tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    ticks: u64,
    ns: i64,
    rate: u64,
}

impl Piece {
    #[inline]
    fn at(&self, ticks: u64) -> i64 {
        let distance = ticks.wrapping_sub(self.ticks) as i64;
        self.ns + ((i128::from(distance) * i128::from(self.rate)) >> 32) as i64
    }
}

/// Ticks to nanoseconds, as far as it is known. Cheap to clone and never changed.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pieces: Arc<Vec<Piece>>,
    /// What is added to CLOCK_MONOTONIC.
    offset: i64,
}

impl Timeline {
    /// The same time from nanoseconds of CLOCK_MONOTONIC instead of ticks.
    pub(crate) fn of_monotonic(&self) -> Timeline {
        Timeline { pieces: Arc::new(vec![identity(self.offset)]), offset: self.offset }
    }

    /// Nanoseconds since the epoch at a moment of CLOCK_MONOTONIC.
    pub(crate) fn at_monotonic(&self, mono: u64) -> i64 {
        (mono as i64).wrapping_add(self.offset)
    }

    /// Nanoseconds since the epoch. Beyond either end the nearest piece goes on.
    #[inline]
    pub(crate) fn at(&self, ticks: u64) -> i64 {
        match self.pieces.last() {
            Some(last) if ticks >= last.ticks => last.at(ticks),
            _ => self.at_earlier(ticks),
        }
    }

    #[inline(never)]
    fn at_earlier(&self, ticks: u64) -> i64 {
        let after = self.pieces.partition_point(|piece| piece.ticks <= ticks);
        self.pieces.get(after.saturating_sub(1)).map_or(0, |piece| piece.at(ticks))
    }
}

/// The piece of a clock whose ticks are nanoseconds of CLOCK_MONOTONIC.
fn identity(offset: i64) -> Piece {
    Piece { ticks: 0, ns: offset, rate: 1 << 32 }
}

/// Lengthens a timeline.
#[derive(Debug)]
pub(crate) struct Clock {
    kind: ClockKind,
    /// What is added to CLOCK_MONOTONIC.
    offset: i64,
    /// The first anchor and the newest.
    first: (u64, u64),
    last: (u64, u64),
    /// CLOCK_MONOTONIC at which the next anchor is due.
    due: u64,
    pieces: Arc<Vec<Piece>>,
    file: Option<File>,
}

impl Clock {
    /// Starts the clock of a run and its file.
    pub(crate) fn create(path: &Path, kind: ClockKind) -> io::Result<Clock> {
        clock::set(kind as u32, Some(libc::clock_gettime));
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        let (ticks, mono) = clock::anchor();
        let offset = realtime_ahead();
        let words = [MAGIC, kind as u64, offset as u64, ticks, mono];
        file.write_all(&bytes_of(&words))?;
        Ok(Clock::new(kind, offset, (ticks, mono), Some(file)))
    }

    /// Goes on with the clock of an earlier supervisor. Without a readable file it starts at `birth`, an anchor with
    /// CLOCK_REALTIME of the first process.
    pub(crate) fn resume(path: &Path, kind: ClockKind, birth: (u64, u64, u64)) -> Clock {
        let (mut clock, from_file) = Clock::read_back(path, kind, birth);
        if from_file {
            clock.file = files::append(path).ok();
        }
        clock
    }

    /// The same beside a supervisor, whose file is left as it is.
    pub(crate) fn watch(path: &Path, kind: ClockKind) -> Clock {
        Clock::read_back(path, kind, (0, 0, 0)).0
    }

    /// The clock, and whether its file could be read.
    fn read_back(path: &Path, kind: ClockKind, birth: (u64, u64, u64)) -> (Clock, bool) {
        clock::set(kind as u32, Some(libc::clock_gettime));
        // A file that cannot be read is as good as none.
        let bytes = files::read(path).unwrap_or_default();
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (ticks, mono, real) = birth;
        let [MAGIC, _, offset, first_ticks, first_mono, pieces @ ..] = &words[..] else {
            return (Clock::new(kind, real.wrapping_sub(mono) as i64, (ticks, mono), None), false);
        };
        let mut clock = Clock::new(kind, *offset as i64, (*first_ticks, *first_mono), None);
        if kind == ClockKind::Tsc {
            let pieces: Vec<Piece> = pieces
                .as_chunks::<3>()
                .0
                .iter()
                .map(|[ticks, ns, rate]| Piece { ticks: *ticks, ns: *ns as i64, rate: *rate })
                .collect();
            if let Some(last) = pieces.last() {
                clock.last = (last.ticks, last.ns.wrapping_sub(clock.offset) as u64);
            }
            clock.pieces = Arc::new(pieces);
        }
        (clock, true)
    }

    fn new(kind: ClockKind, offset: i64, first: (u64, u64), file: Option<File>) -> Clock {
        let pieces = match kind {
            ClockKind::Monotonic => vec![identity(offset)],
            ClockKind::Tsc => Vec::new(),
        };
        Clock { kind, offset, first, last: first, due: 0, pieces: Arc::new(pieces), file }
    }

    /// The timeline up to now: all that has happened so far can be placed on it.
    pub(crate) fn now(&mut self) -> Timeline {
        if self.kind == ClockKind::Tsc {
            let mut anchor = clock::anchor();
            if self.pieces.is_empty() && anchor.1.saturating_sub(self.first.1) < MILLISECOND / 5 {
                // Too close to the first anchor to know the rate.
                weftline_recorder::sys::nap(MILLISECOND as i64 / 5);
                anchor = clock::anchor();
            }
            if anchor.1 >= self.due || self.pieces.is_empty() {
                self.add(anchor);
            }
        }
        self.timeline()
    }

    /// The timeline as it is.
    pub(crate) fn timeline(&self) -> Timeline {
        Timeline { pieces: Arc::clone(&self.pieces), offset: self.offset }
    }

    /// Ticks, CLOCK_MONOTONIC of the newest anchor, and nanoseconds since the epoch then.
    pub(crate) fn newest(&self) -> (u64, u64, i64) {
        (self.last.0, self.last.1, self.last.1 as i64 + self.offset)
    }

    /// Gives a timeline that has only its beginning the rate that the counter has now: it is the machine's, whatever boot it is.
    pub(crate) fn assume_rate(&mut self) {
        if self.kind != ClockKind::Tsc || !self.pieces.is_empty() {
            return;
        }
        let before = clock::anchor();
        weftline_recorder::sys::nap(2 * MILLISECOND as i64);
        let after = clock::anchor();
        let (passed, elapsed) = (after.0.saturating_sub(before.0).max(1), after.1.saturating_sub(before.1).max(1));
        let rate = ((u128::from(elapsed) << 32) / u128::from(passed)).clamp(1, 1 << 40) as u64;
        self.push(Piece { ticks: self.first.0, ns: self.first.1 as i64 + self.offset, rate });
    }

    /// Takes an anchor into account. Anchors must come in order; others are ignored.
    pub(crate) fn add(&mut self, (ticks, mono): (u64, u64)) {
        let (passed, elapsed) = (ticks.wrapping_sub(self.last.0) as i64, mono.wrapping_sub(self.last.1) as i64);
        if self.kind != ClockKind::Tsc || passed <= 0 || elapsed <= 0 {
            return;
        }
        let true_rate = ((i128::from(elapsed) << 32) / i128::from(passed)).clamp(1, i128::from(u64::MAX >> 1)) as u64;
        let truth = mono as i64 + self.offset;
        let piece = match self.pieces.last() {
            None => Piece { ticks: self.first.0, ns: self.first.1 as i64 + self.offset, rate: true_rate },
            Some(newest) => steer(newest, ticks, truth, true_rate, self.interval(mono)),
        };
        self.last = (ticks, mono);
        self.due = mono + self.interval(mono);
        self.push(piece);
    }

    fn push(&mut self, piece: Piece) {
        if let Some(file) = &mut self.file {
            // Without it a later recovery places its events by their own anchors: a little less exact, nothing lost.
            let _ = file.write_all(&bytes_of(&[piece.ticks, piece.ns as u64, piece.rate]));
        }
        Arc::make_mut(&mut self.pieces).push(piece);
    }

    /// Time to the next anchor.
    fn interval(&self, mono: u64) -> u64 {
        match mono.saturating_sub(self.first.1) {
            age if age < SECOND => age.max(MILLISECOND),
            age if age < 10 * SECOND => SECOND,
            _ => 10 * SECOND,
        }
    }
}

/// The piece that starts at `ticks`, where the newest one ends, and meets the truth after `interval` nanoseconds.
fn steer(newest: &Piece, ticks: u64, truth: i64, true_rate: u64, interval: u64) -> Piece {
    let reached = newest.at(ticks);
    let behind = truth.saturating_sub(reached);
    if behind > JUMP {
        return Piece { ticks, ns: truth, rate: true_rate };
    }
    let length = ((i128::from(interval) << 32) / i128::from(true_rate)).max(1);
    let wanted = ((i128::from(interval) + i128::from(behind)) << 32) / length;
    let (slowest, fastest) = (i128::from(true_rate / 2).max(1), i128::from(true_rate) * 2);
    Piece { ticks, ns: reached, rate: wanted.clamp(slowest, fastest) as u64 }
}

/// How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC.
pub(crate) fn realtime_ahead() -> i64 {
    let now = clock::readings();
    now.realtime as i64 - now.monotonic as i64
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn started(first: (u64, u64)) -> Clock {
        Clock::new(ClockKind::Tsc, 1_000_000_000_000, first, None)
    }

    proptest! {
        /// Whatever the anchors say, the timeline rises, and what it said once it says for ever.
        #[test]
        fn rises_and_is_never_revised(steps in prop::collection::vec((1u64..40_000_000_000, 1u64..20_000_000_000), 1..40)) {
            let mut clock = started((5_000, 7_000));
            let (mut ticks, mut mono) = (5_000, 7_000);
            let mut placed: Vec<(u64, i64)> = Vec::new();
            for (passed, elapsed) in steps {
                // What happened since the last anchor is placed before the next one is known.
                if !clock.pieces.is_empty() {
                    for part in 0..4 {
                        let at = ticks + passed * part / 4;
                        placed.push((at, clock.timeline().at(at)));
                    }
                }
                ticks += passed;
                mono += elapsed;
                clock.add((ticks, mono));
                for (at, ns) in &placed {
                    prop_assert_eq!(clock.timeline().at(*at), *ns);
                }
            }
            let timeline = clock.timeline();
            let mut before = i64::MIN;
            for step in 0..=2_000u64 {
                let ns = timeline.at(ticks / 2_000 * step);
                prop_assert!(ns >= before);
                before = ns;
            }
        }
    }

    /// A counter whose rate drifts like one under NTP: the timeline stays within microseconds of the truth.
    #[test]
    fn follows_a_drifting_rate() {
        let mut clock = started((0, 0));
        let (mut ticks, mut mono) = (0u64, 0u64);
        for step in 0..4_000u64 {
            mono += 250 * MILLISECOND;
            ticks += 650 * MILLISECOND + step % 50 * 13;
            if mono >= clock.due {
                clock.add((ticks, mono));
            }
            if step > 8 {
                let off = clock.timeline().at(ticks) - (mono as i64 + clock.offset);
                assert!(off.abs() < 5_000, "{off} ns off after {mono} ns");
            }
        }
    }

    #[test]
    fn jumps_ahead_after_sleep_and_never_back() {
        let mut clock = started((0, 0));
        clock.add((1_000, 1_000));
        clock.add((2_000, 1_000 + SECOND));
        assert_eq!(clock.timeline().at(2_000), (1_000 + SECOND) as i64 + clock.offset);
        clock.add((1_500, 1_000 + 2 * SECOND));
        clock.add((3_000, 500));
        assert_eq!(clock.pieces.len(), 2, "anchors that go back are ignored");
    }

    #[test]
    fn goes_on_from_its_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("clock");
        let mut clock = Clock::create(&path, ClockKind::Tsc).expect("created");
        let first = clock.now();
        let times: Vec<u64> = (0..50).map(|n| clock.first.0 + n * 100_000).collect();
        let expected: Vec<i64> = times.iter().map(|ticks| first.at(*ticks)).collect();
        drop(clock);
        let mut resumed = Clock::resume(&path, ClockKind::Tsc, (0, 0, 0));
        let last = resumed.last;
        resumed.add((last.0 + 3 * SECOND, last.1 + SECOND));
        let again: Vec<i64> = times.iter().map(|ticks| resumed.timeline().at(*ticks)).collect();
        assert_eq!(again, expected);

        let path = directory.path().join("none");
        let lost = Clock::resume(&path, ClockKind::Tsc, (100, 50, 1_050));
        assert_eq!((lost.offset, lost.first), (1_000, (100, 50)));
        // Not by `resume`, which chooses the clock of this whole process.
        let identity = Clock::new(ClockKind::Monotonic, 1_000, (100, 50), None).timeline();
        assert_eq!(identity.at(77), 1_077);
    }
}
