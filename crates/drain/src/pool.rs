//! The arenas of a live directory: kept ready before they are needed, used again when their processes are gone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weftline_recorder::arena as recorder_arena;
use weftline_recorder::layout::{Control, PIECE_SIZE, POOL_SLOTS, pool_state};

use crate::arena::Arena;
use crate::error::DrainError;

/// Arenas kept ready.
const READY_LEAST: usize = 2;
const READY_MOST: usize = 64;
/// After a failure (disk full) no arena is made for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// A process that took a number and made no arena of it in this time never will.
const OWN_PATIENCE: Duration = Duration::from_secs(10);

/// All arenas that this drain knows.
pub(crate) struct Pool {
    directory: PathBuf,
    clock: u32,
    /// Mapped only if they were in use before.
    ready: BTreeMap<u64, Option<Arena>>,
    used: BTreeMap<u64, Arc<Arena>>,
    /// The count of arenas that processes made themselves, and until when one may still come of its last change. Programs write the count, so
    /// only its change is believed.
    own_seen: u64,
    own_until: Option<Instant>,
    not_before: Option<Instant>,
    /// Claims of the last look that were not made up for yet.
    owed: usize,
    told: bool,
    /// Arenas that a process claimed and that could not be looked at: somebody cut or replaced their files.
    pub(crate) unreadable: u64,
    /// No arena is to be made any more.
    closed: bool,
}

impl Pool {
    pub(crate) fn new(directory: &Path, clock: u32) -> Pool {
        Pool {
            directory: directory.to_owned(),
            clock,
            ready: BTreeMap::new(),
            used: BTreeMap::new(),
            own_seen: 0,
            own_until: None,
            not_before: None,
            owed: 0,
            told: false,
            unreadable: 0,
            closed: false,
        }
    }

    /// Finds the arenas that were claimed since the last look; how many.
    pub(crate) fn look(&mut self, control: &Control, now: Instant) -> usize {
        self.take_back(control);
        let claimed: Vec<u64> = self
            .ready
            .keys()
            .copied()
            .filter(|number| control.pool[*number as usize].load(Ordering::Acquire) >= pool_state::CLAIMED)
            .collect();
        for number in &claimed {
            let mapped = self.ready.remove(number).flatten();
            match mapped.or_else(|| Arena::open(&self.directory, *number).ok().flatten()) {
                Some(arena) => drop(self.used.insert(*number, Arc::new(arena))),
                // It was whole when it was claimed.
                None => self.unreadable += 1,
            }
        }
        claimed.len() + self.look_for_own(control, now)
    }

    /// Finds arenas that processes made themselves; how many are new.
    fn look_for_own(&mut self, control: &Control, now: Instant) -> usize {
        let made = control.own_arenas.load(Ordering::Acquire);
        if made != self.own_seen {
            self.own_seen = made;
            self.own_until = Some(now + OWN_PATIENCE);
        }
        if self.own_until.is_none_or(|until| now > until) {
            return 0;
        }
        let before = self.used.len();
        for number in Arena::own_numbers(&self.directory) {
            if !self.used.contains_key(&number)
                && let Ok(Some(arena)) = Arena::open(&self.directory, number)
            {
                self.used.insert(number, Arc::new(arena));
            }
        }
        self.used.len() - before
    }

    /// Arenas that a process claimed, could not map and put back.
    fn take_back(&mut self, control: &Control) {
        let put_back = |number: &u64, arena: &Arena| {
            control.pool.get(*number as usize).is_some_and(|word| word.load(Ordering::Acquire) == pool_state::READY)
                && arena.header().generations.load(Ordering::Acquire) == 0
        };
        let back: Vec<u64> =
            self.used.iter().filter(|(number, arena)| put_back(number, arena)).map(|(number, _)| *number).collect();
        for number in back {
            if let Some(arena) = self.used.remove(&number) {
                match Arc::try_unwrap(arena) {
                    Ok(arena) => drop(self.ready.insert(number, Some(arena))),
                    Err(held) => drop(self.used.insert(number, held)),
                }
            }
        }
    }

    /// Makes arenas so that the next processes find one. `claimed` is how many were taken since the last look.
    pub(crate) fn refill(&mut self, control: &Control, claimed: usize, now: Instant) -> Result<(), DrainError> {
        // A lone short program is gone before the next look, and need not pay for arenas that nobody will want.
        if claimed > 0 && self.ready.len() >= claimed {
            self.owed = self.owed.max(claimed);
            return Ok(());
        }
        let wanted = (2 * claimed.max(std::mem::take(&mut self.owed))).clamp(READY_LEAST, READY_MOST);
        if self.closed || self.ready.len() >= wanted || self.not_before.is_some_and(|moment| now < moment) {
            return Ok(());
        }
        self.not_before = None;
        let absent = |number: &u64| control.pool[*number as usize].load(Ordering::Relaxed) == pool_state::ABSENT;
        while self.ready.len() < wanted {
            let Some(number) = (0..POOL_SLOTS as u64).find(absent) else { return Ok(()) };
            if !recorder_arena::take_room(control) {
                self.not_before = Some(now + PAUSE);
                let first = !std::mem::replace(&mut self.told, true);
                // Whoever comes next finds one ready, or is the first to find none.
                let alarm = first && self.ready.is_empty();
                return if alarm { Err(DrainError::NoRoom { path: self.directory.clone() }) } else { Ok(()) };
            }
            match Arena::create(&self.directory, number, self.clock) {
                Ok(()) => {
                    self.ready.insert(number, None);
                    control.pool[number as usize].store(pool_state::READY, Ordering::Release);
                }
                Err(error) => {
                    self.not_before = Some(now + PAUSE);
                    let first = !std::mem::replace(&mut self.told, true);
                    return if first {
                        Err(DrainError::io(&Arena::path(&self.directory, number), error))
                    } else {
                        Ok(())
                    };
                }
            }
        }
        Ok(())
    }

    /// Bytes of shared memory that all arenas take.
    pub(crate) fn bytes(&self) -> u64 {
        let used: usize = self.used.values().map(|arena| arena.pieces_used()).sum();
        ((self.ready.len() + used) * PIECE_SIZE) as u64
    }

    /// An arena in use.
    pub(crate) fn get(&self, number: u64) -> Option<&Arc<Arena>> {
        self.used.get(&number)
    }

    /// Arenas in use.
    pub(crate) fn used(&self) -> impl Iterator<Item = &Arc<Arena>> {
        self.used.values()
    }

    /// Makes an arena whose processes are all gone ready again, or removes it. Fails when someone still holds it.
    pub(crate) fn retire(&mut self, control: &Control, number: u64) -> bool {
        let Some(arena) = self.used.remove(&number) else { return false };
        let mut arena = match Arc::try_unwrap(arena) {
            Ok(arena) => arena,
            Err(held) => {
                self.used.insert(number, held);
                return false;
            }
        };
        let word = control.pool.get(number as usize);
        let pieces = arena.pieces_used() as i64;
        let reusable = self.ready.len() < READY_MOST && !self.closed && !arena.is_damaged();
        let kept = i64::from(word.is_some() && reusable);
        match word {
            Some(word) if kept == 1 => {
                word.store(pool_state::RESERVED, Ordering::Release);
                arena.reset();
                self.ready.insert(number, Some(arena));
                word.store(pool_state::READY, Ordering::Release);
            }
            Some(word) => {
                // In this order: an arena that is claimed and not there counts as lost.
                word.store(pool_state::ABSENT, Ordering::Release);
                arena.remove();
            }
            None => arena.remove(),
        }
        control.room.fetch_add(pieces - kept, Ordering::Relaxed);
        true
    }

    /// Nobody shall claim a ready arena any more; those that are left are removed.
    pub(crate) fn close(&mut self, control: &Control) {
        self.closed = true;
        let directory = &self.directory;
        self.ready.retain(|number, _| {
            let word = &control.pool[*number as usize];
            let taken_back = word
                .compare_exchange(pool_state::READY, pool_state::ABSENT, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
            if taken_back {
                // It has no growth pieces; whatever hinders its removal hinders that of the directory as well.
                let _ = std::fs::remove_file(Arena::path(directory, *number));
            }
            !taken_back
        });
    }
}
