//! The arenas of a live directory: made before they are needed, and reused when their processes have ended.
//!
//! In a run that is shared with other users each user has arenas of its own, which are made when the first program of that user asks for them.
//! They are not reused: a program that falsely reports its end could read the records of the next one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weftline_recorder::arena as recorder_arena;
use weftline_recorder::layout::{Control, PIECE_SIZE, POOL_SLOTS, USERS, options, pool_state, wanted};

use crate::arena::Arena;
use crate::error::DrainError;
use crate::system;

/// Arenas kept ready.
const READY_LEAST: usize = 2;
/// The same for other users, whose programs cannot make their own.
const READY_LEAST_FOR_OTHERS: usize = 8;
const READY_MOST: usize = 64;
/// After a failure (disk full) no arena is made for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// A process that took a number and made no arena of it in this time never will.
const OWN_PATIENCE: Duration = Duration::from_secs(10);

/// A user whose programs record.
struct User {
    id: u32,
    /// Arenas kept ready.
    least: usize,
    /// Arenas claimed since the last refill.
    claimed: usize,
    /// Claims of the refill before that were not made up for yet.
    owed: usize,
    not_before: Option<Instant>,
}

impl User {
    fn new(id: u32, least: usize) -> User {
        User { id, least, claimed: 0, owed: 0, not_before: None }
    }
}

/// An arena that nobody uses.
struct Ready {
    /// Mapped only if it was in use before.
    arena: Option<Arena>,
    owner: u32,
}

/// All arenas that this drain knows.
pub(crate) struct Pool {
    directory: PathBuf,
    clock: u32,
    /// What an arena may grow to, as the control page said before anybody else could write to it.
    max_pieces: usize,
    /// Programs of other users record as well.
    shared: bool,
    /// The supervisor's own, and others in a shared run.
    users: Vec<User>,
    ready: BTreeMap<u64, Ready>,
    used: BTreeMap<u64, Arc<Arena>>,
    /// Whose the arenas in use are, if not the supervisor's own.
    owners: BTreeMap<u64, u32>,
    /// The count of arenas that processes made themselves, and until when one may still come of its last change. Programs write the count, so
    /// only its change is believed.
    own_seen: u64,
    own_until: Option<Instant>,
    warned: bool,
    /// Pieces that arenas may still grow by on request. The copy in the control page can be overwritten by programs.
    room: i64,
    /// Arenas that a process claimed and that could not be mapped, because their files were truncated or replaced.
    pub(crate) unreadable: u64,
    /// No more arenas are made.
    closed: bool,
}

impl Pool {
    /// Before any program has seen the control page.
    pub(crate) fn new(directory: &Path, control: &Control) -> Pool {
        Pool {
            directory: directory.to_owned(),
            clock: control.clock,
            max_pieces: control.max_pieces as usize,
            shared: control.options & options::OTHER_USERS != 0,
            users: vec![User::new(system::user(), READY_LEAST)],
            ready: BTreeMap::new(),
            used: BTreeMap::new(),
            owners: BTreeMap::new(),
            own_seen: 0,
            own_until: None,
            warned: false,
            room: i64::MAX,
            unreadable: 0,
            closed: false,
        }
    }

    /// Finds the arenas that were claimed since the last look; how many.
    pub(crate) fn look(&mut self, control: &Control, now: Instant) -> usize {
        self.take_back(control);
        if self.shared {
            self.meet_users(control);
        }
        let claimed: Vec<u64> = self
            .ready
            .keys()
            .copied()
            .filter(|number| control.pool[*number as usize].load(Ordering::Acquire) >= pool_state::CLAIMED)
            .collect();
        for number in &claimed {
            let Some(Ready { arena, owner }) = self.ready.remove(number) else { continue };
            if let Some(user) = self.users.iter_mut().find(|user| user.id == owner) {
                user.claimed += 1;
            }
            match arena.or_else(|| Arena::open(&self.directory, *number).ok().flatten()) {
                Some(arena) => {
                    self.used.insert(*number, Arc::new(arena));
                    self.owners.insert(*number, owner);
                }
                // It was whole when it was claimed.
                None => self.unreadable += 1,
            }
        }
        let own = self.look_for_own(control, now);
        self.users[0].claimed += own;
        claimed.len() + own
    }

    /// Finds users that have not asked for arenas before. A forged uid does no harm: only that user can open the arenas.
    fn meet_users(&mut self, control: &Control) {
        for word in control.wanted.iter().map(|word| word.load(Ordering::Acquire)) {
            let id = word as u32;
            let known = |user: &User| user.id == id;
            // The last number is nobody's: to give a file to it is to keep it.
            if word & wanted::ASKED != 0 && id != u32::MAX && self.users.len() <= USERS && !self.users.iter().any(known)
            {
                self.users.push(User::new(id, READY_LEAST_FOR_OTHERS));
            }
        }
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
                    Ok(arena) => {
                        let owner = self.owners.remove(&number).unwrap_or(self.users[0].id);
                        self.ready.insert(number, Ready { arena: Some(arena), owner });
                    }
                    Err(held) => drop(self.used.insert(number, held)),
                }
            }
        }
    }

    /// Makes arenas so that the next processes find one.
    pub(crate) fn refill(&mut self, control: &Control, now: Instant) -> Result<(), DrainError> {
        let mut result = Ok(());
        for index in 0..self.users.len() {
            result = result.and(self.refill_for(index, control, now));
        }
        result
    }

    fn refill_for(&mut self, index: usize, control: &Control, now: Instant) -> Result<(), DrainError> {
        let user = &mut self.users[index];
        let (owner, claimed) = (user.id, std::mem::take(&mut user.claimed));
        let mut ready = self.ready.values().filter(|ready| ready.owner == owner).count();
        // A single short program ends before the next poll, and should not pay for arenas that nothing will use.
        if claimed > 0 && ready >= claimed {
            user.owed = user.owed.max(claimed);
            return Ok(());
        }
        let goal = (2 * claimed.max(std::mem::take(&mut user.owed))).clamp(user.least, READY_MOST);
        if self.closed || ready >= goal || user.not_before.is_some_and(|due| now < due) {
            return Ok(());
        }
        user.not_before = None;
        // Programs can write the words; what is there is known here.
        let absent = |pool: &Pool, number: &u64| {
            control.pool[*number as usize].load(Ordering::Relaxed) == pool_state::ABSENT
                && !pool.ready.contains_key(number)
                && !pool.used.contains_key(number)
        };
        while ready < goal {
            let Some(number) = (0..POOL_SLOTS as u64).find(|number| absent(self, number)) else { return Ok(()) };
            let made = match recorder_arena::take_room(control) {
                true => Arena::create(&self.directory, number, self.clock, owner)
                    .map_err(|error| DrainError::io(&Arena::path(&self.directory, number), error)),
                false => Err(DrainError::NoRoom { path: self.directory.clone() }),
            };
            tell(control, owner, made.is_ok() || ready > 0);
            if let Err(error) = made {
                self.users[index].not_before = Some(now + PAUSE);
                let first = !std::mem::replace(&mut self.warned, true);
                // Where there is no room, whoever comes next finds one ready, or is the first to find none.
                let alarm = first && (ready == 0 || !matches!(error, DrainError::NoRoom { .. }));
                return if alarm { Err(error) } else { Ok(()) };
            }
            ready += 1;
            self.ready.insert(number, Ready { arena: None, owner });
            control.owners[number as usize].store(owner, Ordering::Relaxed);
            control.pool[number as usize].store(pool_state::READY, Ordering::Release);
        }
        Ok(())
    }

    /// Gives pieces to processes that ask because they cannot grow their arenas themselves. Each gets an answer, and no more than there is room for,
    /// whatever the control page says by now.
    pub(crate) fn grow(&mut self, control: &Control) {
        for arena in self.used.values().filter(|_| self.shared) {
            for used_for in arena.asked() {
                let mut given = false;
                if self.room > 0 && recorder_arena::take_room(control) {
                    // A failure needs no word: the process counts what it loses.
                    given = arena.extend(used_for, self.max_pieces).is_ok();
                    self.room -= i64::from(given);
                    control.room.fetch_add(i64::from(!given), Ordering::Relaxed);
                }
                arena.answer(used_for, given);
            }
        }
    }

    /// So many pieces may still be made, by whomever.
    pub(crate) fn give_room(&mut self, control: &Control, pieces: i64) {
        self.room = pieces;
        control.room.store(pieces, Ordering::Relaxed);
    }

    /// Bytes of shared memory that all arenas take.
    pub(crate) fn bytes(&self) -> u64 {
        let used: usize = self.used.values().map(|arena| self.pieces_of(arena)).sum();
        ((self.ready.len() + used) * PIECE_SIZE) as u64
    }

    fn pieces_of(&self, arena: &Arena) -> usize {
        if self.shared { arena.pieces_in_file() } else { arena.pieces_used() }
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
        let pieces = self.pieces_of(&arena) as i64;
        let owner = self.owners.remove(&number).unwrap_or(self.users[0].id);
        let reusable = !self.shared && self.ready.len() < READY_MOST && !self.closed && !arena.is_damaged();
        let kept = i64::from(word.is_some() && reusable);
        match word {
            Some(word) if kept == 1 => {
                word.store(pool_state::RESERVED, Ordering::Release);
                arena.reset();
                self.ready.insert(number, Ready { arena: Some(arena), owner });
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

/// Tells programs of another user whether it makes sense to wait for an arena.
fn tell(control: &Control, user: u32, some: bool) {
    let asked = wanted::ASKED | u64::from(user);
    for word in &control.wanted {
        let (from, to) = if some { (asked | wanted::REFUSED, asked) } else { (asked, asked | wanted::REFUSED) };
        // Only a word that says this user's number.
        let _ = word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }
}
