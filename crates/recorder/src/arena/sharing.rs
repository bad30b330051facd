//! Arenas of a run in which programs of several users record (`weft run --share` as root).
//!
//! Traced programs know the live directory, so only the owner of an arena's file protects it from other users: the supervisor makes
//! arenas for a user when the first program of that user asks ([`Control::wanted`]), and only that user and root can open them. Only
//! root can make files in the directory, so an arena grows within its own file. The process maps the file up to its largest possible size; pages
//! beyond its end are touched only when their memory is reserved. The process reserves it if it owns the file; if it has given up the
//! rights by which it claimed the arena, the supervisor does ([`ask`]). Either way nothing has to be opened for a segment.
//!
//! All users can write the control page, so neither side trusts it. If a program writes another user's number into it, the supervisor makes arenas for that
//! user, which the program cannot open. If a program offers its own arena to others, they check its owner and refuse ([`map`]). How long
//! programs wait and how far they grow is in a file that others can only read ([`Rules`]).

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::{
    Claimed, NEXT_TRY, add_piece, begin_piece, claim_ready, is_drained, make_own, refusal_of, rules, take_room,
    with_live_path,
};
use crate::layout::{
    ArenaHeader, Control, PIECE_SIZE, PIECES_IN_FILE, Refusal, Rules, SHARED_SUFFIX, piece_use, wanted,
};
use crate::process::unrestricted;
use crate::{clock, sys};

/// Longest time that a program waits for the supervisor, in nanoseconds: it looks every 20 ms at least, on a busy machine later.
const PATIENCE: u64 = 1_000_000_000;
/// Before a process asks again for what it did not get.
const PAUSE: u64 = 100_000_000;
/// This process could not grow its arena's file: from now on it asks.
static MUST_ASK: AtomicBool = AtomicBool::new(false);

/// The supervisor's user.
static OWNER: AtomicU32 = AtomicU32::new(u32::MAX);

/// The process has a new arena.
pub(super) fn settled() {
    MUST_ASK.store(false, Ordering::Relaxed);
}

/// Whether a live directory is for several users, by its name: any user can write the control page.
pub(super) fn is_shared(live: &[u8]) -> bool {
    let mut parts = live.rsplit(|byte| *byte == b'/');
    parts.nth(1).is_some_and(|parent| parent.ends_with(SHARED_SUFFIX.as_bytes()))
}

/// What the supervisor has decided; nothing when that cannot be read.
pub(super) fn read_rules() -> Option<Rules> {
    let mut bytes = [0; Rules::SIZE];
    let fd = with_live_path(b"rules", None, |path| sys::open(path, libc::O_RDONLY, 0))?.ok()?;
    let (read, owner) = (sys::read(fd, &mut bytes), sys::owner(fd));
    sys::close(fd);
    OWNER.store(owner?, Ordering::Relaxed);
    Rules::from_bytes(&bytes).filter(|_| read == Ok(Rules::SIZE))
}

/// Takes an arena of this user's, or waits for the supervisor to make one.
pub(super) fn claim(control: &Control) -> Result<Claimed, Refusal> {
    let user = sys::effective_user();
    let of = |user: u32| {
        let wanted = move |number: usize| control.owners[number].load(Ordering::Relaxed) == user;
        claim_ready(control, wanted, map)
    };
    let ready = of(user);
    if let Ok(Some(claimed)) = ready {
        return Ok(claimed);
    }
    // The supervisor's own user can make one; also under the number that it has in a namespace of its own.
    if user == OWNER.load(Ordering::Relaxed) {
        return make_own(control);
    }
    ready?;
    let Some(place) = want(control, user) else { return Err(Refusal::NotReady) };
    let began = clock::monotonic();
    loop {
        let now = clock::monotonic();
        if now.saturating_sub(began) > PATIENCE || !is_drained(control, now) {
            return Err(Refusal::NotReady);
        }
        sys::nap(1_000_000);
        if let Some(claimed) = of(user)? {
            return Ok(claimed);
        }
        if place.load(Ordering::Relaxed) & wanted::REFUSED != 0 {
            return Err(Refusal::Room);
        }
    }
}

/// Tells the supervisor that programs of a user need arenas; where that is written, or nothing where too many users have asked.
fn want(control: &Control, user: u32) -> Option<&AtomicU64> {
    let asked = wanted::ASKED | u64::from(user);
    control.wanted.iter().find(|word| match word.compare_exchange(0, asked, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(there) => there & !wanted::REFUSED == asked,
    })
}

/// Maps a pooled arena of this user's with all that it may grow to; without that where the address space is limited.
///
/// Root could open those of others too, and would tell them what it does.
fn map(number: u64) -> Result<Claimed, Refusal> {
    let opened = with_live_path(b"a", Some((number, 0)), |path| sys::open(path, libc::O_RDWR, 0));
    let fd = opened.ok_or(Refusal::Unreachable)?.map_err(refusal_of)?;
    if sys::owner(fd) != Some(sys::effective_user()) {
        sys::close(fd);
        return Err(Refusal::Unreachable);
    }
    let most = (rules().max_pieces as usize).clamp(1, PIECES_IN_FILE);
    let mapped = [most, 1].into_iter().find_map(|pieces| {
        let base = sys::map_shared(fd, pieces * PIECE_SIZE)?;
        Some(Claimed { base, pieces })
    });
    sys::close(fd);
    mapped.ok_or(Refusal::AddressSpace)
}

/// Adds a piece to the arena's own file, which is mapped for so many.
pub(super) fn grow(header: &ArenaHeader, control: &Control, used_for: u32, mapped: usize) -> bool {
    if !unrestricted() {
        // It may neither open files nor sleep. What the supervisor adds will be there for a later call.
        header.asked.fetch_or(1 << used_for, Ordering::AcqRel);
        return false;
    }
    if !MUST_ASK.load(Ordering::Relaxed) {
        let limit = (rules().max_pieces as usize).clamp(1, mapped);
        let Some(index) = begin_piece(header, limit) else { return false };
        match extend(control, header.number, index) {
            Ok(()) => {
                add_piece(header, index, used_for);
                return true;
            }
            Err(why) => {
                header.pieces[index].used_for.store(piece_use::NONE, Ordering::Release);
                if why == Refusal::Room {
                    return false;
                }
                MUST_ASK.store(true, Ordering::Relaxed);
            }
        }
    }
    ask(header, control, used_for)
}

/// Reserves the memory of a piece in the arena's own file.
fn extend(control: &Control, number: u64, index: usize) -> Result<(), Refusal> {
    // Growing a file past RLIMIT_FSIZE would raise SIGXFSZ in the program.
    if sys::limit(libc::RLIMIT_FSIZE) < ((index + 1) * PIECE_SIZE) as u64 {
        return Err(Refusal::FileSize);
    }
    if !take_room(control) {
        return Err(Refusal::Room);
    }
    let opened = with_live_path(b"a", Some((number, 0)), |path| sys::open(path, libc::O_RDWR, 0));
    let extended = opened.ok_or(Refusal::Unreachable).and_then(|opened| opened.map_err(refusal_of)).and_then(|fd| {
        let allocated = sys::allocate_at(fd, index * PIECE_SIZE, PIECE_SIZE);
        sys::close(fd);
        allocated.map(drop).map_err(|_| Refusal::Room)
    });
    if extended.is_err() {
        control.room.fetch_add(1, Ordering::Relaxed);
    }
    extended
}

/// Asks the supervisor for a piece and waits for its answer; whether it gave one.
fn ask(header: &ArenaHeader, control: &Control, used_for: u32) -> bool {
    let began = clock::monotonic();
    if began < NEXT_TRY.load(Ordering::Relaxed) || !is_drained(control, began) {
        return false;
    }
    let (bit, refused) = (1 << used_for, 1 << (used_for + 16));
    header.asked.fetch_or(bit, Ordering::AcqRel);
    let given = loop {
        sys::nap(250_000);
        let asked = header.asked.load(Ordering::Acquire);
        if asked & bit == 0 {
            break asked & refused == 0;
        }
        if clock::monotonic().saturating_sub(began) > PATIENCE {
            break false;
        }
    };
    if !given {
        NEXT_TRY.store(clock::monotonic() + PAUSE, Ordering::Relaxed);
    }
    given
}
