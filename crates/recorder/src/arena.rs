//! The arena in the traced process: its place, claiming it, growing it, and its segments.
//!
//! [`crate::layout`] has the layout, [`crate::process`] the ownership. Nothing here is on the hot path:
//! a thread comes here when its segment is full.

mod sharing;

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::handover::{self, Mapped};
use crate::layout::{
    ARENA_MAGIC, ArenaHeader, BASE_SEGMENTS, BASE_SEGMENTS_AT, BEING_WRITTEN, CONTROL_MAGIC, CONTROL_SIZE, Control,
    GROWN_SEGMENTS, LAYOUT_VERSION, Loss, MAX_PIECES, PIECE_SIZE, POOL_SLOTS, REFUSED_PATH, Refusal, Refused, Rules,
    SEGMENT_SIZE, options, piece_use, pool_state,
};
use crate::process::{self, unrestricted};
use crate::{clock, scratch, sys, thread};

static CONTROL: AtomicPtr<Control> = AtomicPtr::new(core::ptr::null_mut());
/// Earliest time (CLOCK_MONOTONIC) of the next nap or attempt to grow, after one that did not help.
static NEXT_TRY: AtomicU64 = AtomicU64::new(0);
/// Segments of each piece whose pages this process has made present ahead of their use.
static POPULATED: [AtomicU64; MAX_PIECES] = [const { AtomicU64::new(0) }; MAX_PIECES];
static PIECES: [AtomicPtr<u8>; MAX_PIECES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_PIECES];
/// Pieces that were mapped with the base piece, itself included: see [`sharing`]. More than one: the arena grows in its own file.
static IN_FILE: AtomicU32 = AtomicU32::new(1);

/// See [`Rules`]; written before the state becomes ACTIVE.
struct Decided {
    clock: AtomicU32,
    options: AtomicU32,
    max_pieces: AtomicU32,
    wait_limit: AtomicU64,
}

static DECIDED: Decided = Decided {
    clock: AtomicU32::new(0),
    options: AtomicU32::new(0),
    max_pieces: AtomicU32::new(0),
    wait_limit: AtomicU64::new(0),
};

/// What the supervisor has decided.
pub(crate) fn rules() -> Rules {
    Rules {
        version: LAYOUT_VERSION,
        clock: DECIDED.clock.load(Ordering::Relaxed),
        options: DECIDED.options.load(Ordering::Relaxed),
        max_pieces: DECIDED.max_pieces.load(Ordering::Relaxed),
        wait_limit: DECIDED.wait_limit.load(Ordering::Relaxed),
    }
}

/// Whether it has chosen this one of [`options`].
pub(crate) fn wants(option: u32) -> bool {
    DECIDED.options.load(Ordering::Relaxed) & option != 0
}

fn keep(rules: Rules) {
    DECIDED.clock.store(rules.clock, Ordering::Relaxed);
    DECIDED.options.store(rules.options, Ordering::Relaxed);
    DECIDED.max_pieces.store(rules.max_pieces, Ordering::Relaxed);
    DECIDED.wait_limit.store(rules.wait_limit, Ordering::Relaxed);
}
/// Longest path of a live directory; longer ones are refused by `weft run` as well.
pub const LIVE_PATH_MAX: usize = 3900;

struct LiveDir(core::cell::UnsafeCell<[u8; LIVE_PATH_MAX + 64]>);

// SAFETY: written once, by the thread that is in state STARTING, and read only in state ACTIVE.
unsafe impl Sync for LiveDir {}

static LIVE_DIR: LiveDir = LiveDir(core::cell::UnsafeCell::new([0; LIVE_PATH_MAX + 64]));
static LIVE_DIR_LENGTH: AtomicU32 = AtomicU32::new(0);

/// Finds the control page of a live directory; `None` when there is none, or one of another version.
pub(crate) fn connect(live: &[u8]) -> Option<&'static Control> {
    if live.is_empty() || live.len() > LIVE_PATH_MAX || live[0] != b'/' {
        return None;
    }
    // SAFETY: only the one thread in state STARTING gets here, and nobody reads before ACTIVE.
    unsafe { (&mut *LIVE_DIR.0.get())[..live.len()].copy_from_slice(live) };
    LIVE_DIR_LENGTH.store(live.len() as u32, Ordering::Relaxed);
    let fd = with_live_path(b"ctl", None, |path| sys::open(path, libc::O_RDWR, 0))?.ok()?;
    let mapped = sys::map_shared(fd, CONTROL_SIZE);
    sys::close(fd);
    let at = mapped?.cast::<Control>();
    // SAFETY: the mapping is CONTROL_SIZE bytes long, which holds a Control, and stays.
    let control = unsafe { &*at };
    if control.magic != CONTROL_MAGIC || control.version != LAYOUT_VERSION {
        return None;
    }
    let (clock, options, max_pieces) = (control.clock, control.options, control.max_pieces);
    keep(match sharing::is_shared(live) {
        true => sharing::read_rules()?,
        false => Rules { version: LAYOUT_VERSION, clock, options, max_pieces, wait_limit: control.wait_limit },
    });
    CONTROL.store(at, Ordering::Release);
    Some(control)
}

/// An arena that this process has claimed and mapped.
pub(crate) struct Claimed {
    base: *mut u8,
    /// Pieces that are mapped, one behind the other.
    pieces: usize,
}

/// Makes a claimed arena that of this process. An earlier one stays mapped: others' slots in it are still read.
pub(crate) fn settle_in(claimed: &Claimed) {
    // Before the first arena there is nothing to forget, and the list need not be touched.
    if !base().is_null() || claimed.pieces > 1 {
        for (index, piece) in PIECES.iter().enumerate().skip(1) {
            let mapped = index < claimed.pieces;
            let at = if mapped { claimed.base.wrapping_add(index * PIECE_SIZE) } else { core::ptr::null_mut() };
            piece.store(at, Ordering::Relaxed);
        }
        for populated in &POPULATED {
            populated.store(0, Ordering::Relaxed);
        }
    }
    IN_FILE.store(claimed.pieces as u32, Ordering::Relaxed);
    sharing::settled();
    PIECES[0].store(claimed.base, Ordering::Release);
}

/// The arena's base piece, null before there is one.
#[inline(always)]
pub(crate) fn base() -> *mut u8 {
    PIECES[0].load(Ordering::Acquire)
}

/// The control page, once connected.
pub(crate) fn control() -> Option<&'static Control> {
    // SAFETY: either null or the control page, which stays mapped.
    unsafe { CONTROL.load(Ordering::Acquire).as_ref() }
}

/// The arena's header.
pub(crate) fn header() -> Option<&'static ArenaHeader> {
    // SAFETY: either null or the base piece, which stays mapped and begins with its header.
    unsafe { base().cast::<ArenaHeader>().as_ref() }
}

/// Takes an arena from the pool, or makes one when the pool is empty.
pub(crate) fn claim(control: &Control) -> Result<Claimed, Refusal> {
    if wants(options::OTHER_USERS) {
        return sharing::claim(control);
    }
    let map = |number| Ok(Claimed { base: map_piece(number, 0)?, pieces: 1 });
    match claim_ready(control, |_| true, map) {
        Ok(Some(claimed)) => Ok(claimed),
        Ok(None) => make_own(control),
        Err(why) => make_own(control).map_err(|_| why),
    }
}

/// Makes an arena.
fn make_own(control: &Control) -> Result<Claimed, Refusal> {
    let number = POOL_SLOTS as u64 + control.own_arenas.fetch_add(1, Ordering::Relaxed);
    let base = make_piece(number, 0)?;
    // SAFETY: a new file of PIECE_SIZE zero bytes that nobody else has claimed.
    unsafe { init_arena(base.cast(), number, rules().clock, BASE_SEGMENTS as u32) };
    Ok(Claimed { base, pieces: 1 })
}

/// Takes one of the arenas in the pool that are `wanted`, if any of them is ready.
fn claim_ready(
    control: &Control,
    wanted: impl Fn(usize) -> bool,
    map: impl Fn(u64) -> Result<Claimed, Refusal>,
) -> Result<Option<Claimed>, Refusal> {
    let me = pool_state::CLAIMED | u64::from(sys::getpid());
    for (number, word) in control.pool.iter().enumerate() {
        if word.load(Ordering::Acquire) == pool_state::READY
            && wanted(number)
            && word.compare_exchange(pool_state::READY, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            return map(number as u64).map(Some).inspect_err(|_| {
                // It cannot be opened from here (descriptors, permissions, another root): leave it to another process.
                word.store(pool_state::READY, Ordering::Release);
            });
        }
    }
    Ok(None)
}

/// Makes a zeroed base piece an empty arena with so many segments, one at least.
///
/// # Safety
/// `arena` must be a zeroed, mapped base piece that no process uses, and the memory of its segments reserved.
pub unsafe fn init_arena(arena: *mut ArenaHeader, number: u64, clock: u32, segments: u32) {
    let segments = segments.clamp(1, BASE_SEGMENTS as u32);
    // SAFETY: the caller owns the piece.
    unsafe {
        (*arena).version = LAYOUT_VERSION;
        (*arena).clock = clock;
        (*arena).number = number;
        (*arena).pieces_used.store(1, Ordering::Relaxed);
        (*arena).pieces[0].used_for.store(piece_use::SEGMENTS, Ordering::Relaxed);
        (*arena).base_segments.store(segments, Ordering::Relaxed);
        (*arena).pieces[0].free.store(u64::MAX >> (64 - segments), Ordering::Relaxed);
        (*arena).magic.store(ARENA_MAGIC, Ordering::Release);
    }
}

/// Tells the supervisor that this program has no arena, and why. Programs of the same name are counted together, so that a thousand of them take one
/// place.
#[cold]
pub(crate) fn refuse(control: &Control, why: Refusal) {
    control.refusals.fetch_add(1, Ordering::Relaxed);
    let mut path = [0u8; 512];
    let length = sys::readlink(c"/proc/self/exe", &mut path).unwrap_or(0);
    let end = &path[length.saturating_sub(REFUSED_PATH)..length];
    if !control.refused.iter().any(|place| count_refusal(place, why, end)) {
        process::count_loss(Loss::NoArena);
    }
}

/// How often to check an entry that another process is filling: some microseconds. A process that is killed meanwhile never finishes it.
const LOOKS: u32 = 200;

/// Takes a place for a program, or counts it where it has one already. Whether it is counted there.
fn count_refusal(place: &Refused, why: Refusal, path: &[u8]) -> bool {
    for _ in 0..LOOKS {
        match place.reason.load(Ordering::Acquire) {
            0 => {
                let taken = place.reason.compare_exchange(0, BEING_WRITTEN, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_err() {
                    continue;
                }
                for (kept, byte) in place.path.iter().zip(path) {
                    kept.store(*byte, Ordering::Relaxed);
                }
                place.pid.store(sys::getpid(), Ordering::Relaxed);
                place.at_mono.store(clock::monotonic(), Ordering::Relaxed);
                place.count.store(1, Ordering::Relaxed);
                place.reason.store(why as u32, Ordering::Release);
                return true;
            }
            BEING_WRITTEN => core::hint::spin_loop(),
            reason => {
                let mut kept = place.path.iter().map(|byte| byte.load(Ordering::Relaxed));
                let same =
                    path.iter().all(|byte| kept.next() == Some(*byte)) && kept.next().is_none_or(|byte| byte == 0);
                let counts = reason == why as u32 && same;
                if counts {
                    place.count.fetch_add(1, Ordering::Relaxed);
                }
                return counts;
            }
        }
    }
    false
}

/// Why a file of shared memory could not be opened.
fn refusal_of(errno: i32) -> Refusal {
    if matches!(errno, libc::EMFILE | libc::ENFILE) { Refusal::Descriptors } else { Refusal::Unreachable }
}

fn map_piece(number: u64, index: usize) -> Result<*mut u8, Refusal> {
    let opened = with_live_path(b"a", Some((number, index)), |path| sys::open(path, libc::O_RDWR, 0));
    let fd = opened.ok_or(Refusal::Unreachable)?.map_err(refusal_of)?;
    let at = sys::map_shared(fd, PIECE_SIZE);
    sys::close(fd);
    at.ok_or(Refusal::AddressSpace)
}

/// Makes the file of a piece, fully allocated so that stores into it cannot fault for lack of space.
fn make_piece(number: u64, index: usize) -> Result<*mut u8, Refusal> {
    // Growing a file past RLIMIT_FSIZE would raise SIGXFSZ in the program.
    if sys::limit(libc::RLIMIT_FSIZE) < PIECE_SIZE as u64 {
        return Err(Refusal::FileSize);
    }
    let control = control().ok_or(Refusal::Unreachable)?;
    if !take_room(control) {
        return Err(Refusal::Room);
    }
    let make = |path: &CStr| {
        let fd = sys::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o600).map_err(refusal_of)?;
        let at = match sys::allocate(fd, PIECE_SIZE) {
            Ok(_) => sys::map_shared(fd, PIECE_SIZE).ok_or(Refusal::AddressSpace),
            Err(_) => Err(Refusal::Room),
        };
        sys::close(fd);
        if at.is_err() {
            sys::unlink(path);
        }
        at
    };
    let made = with_live_path(b"a", Some((number, index)), make).unwrap_or(Err(Refusal::Unreachable));
    if made.is_err() {
        control.room.fetch_add(1, Ordering::Relaxed);
    }
    made
}

/// Takes the room for one piece; false when there is none.
pub fn take_room(control: &Control) -> bool {
    let taken = control.room.fetch_sub(1, Ordering::Relaxed) > 0;
    if !taken {
        control.room.fetch_add(1, Ordering::Relaxed);
    }
    taken
}

/// Calls `f` with `<live>/<stem>[<number>[.<piece>]]` as a C string.
fn with_live_path<R>(stem: &[u8], number: Option<(u64, usize)>, f: impl FnOnce(&CStr) -> R) -> Option<R> {
    scratch::FILES.with(|path| {
        let mut at = LIVE_DIR_LENGTH.load(Ordering::Relaxed) as usize;
        // SAFETY: written before this thread's STARTING or ACTIVE state, never again.
        path[..at].copy_from_slice(unsafe { &(&*LIVE_DIR.0.get())[..at] });
        let mut push = |bytes: &[u8]| {
            path[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        push(b"/");
        push(stem);
        if let Some((number, piece)) = number {
            let mut digits = [0u8; 20];
            push(sys::decimal(number, &mut digits));
            if piece > 0 {
                push(b".");
                push(sys::decimal(piece as u64, &mut digits));
            }
        }
        push(b"\0");
        f(CStr::from_bytes_until_nul(path).unwrap_or_default())
    })
}

/// Is the control page's directory reachable and writable from here, for the image that comes after an exec?
pub fn live_directory_reachable() -> bool {
    with_live_path(b"ctl", None, |path| sys::accessible(path, libc::R_OK | libc::W_OK)).unwrap_or(false)
}

/// The live directory, for the environment of children.
pub fn live_directory() -> &'static [u8] {
    let length = LIVE_DIR_LENGTH.load(Ordering::Relaxed) as usize;
    // SAFETY: written once before the state became ACTIVE.
    unsafe { &(&*LIVE_DIR.0.get())[..length] }
}

/// Address of a piece, mapping it if another process of the family made it.
pub(crate) fn piece(index: usize) -> Option<*mut u8> {
    let at = PIECES[index].load(Ordering::Acquire);
    if !at.is_null() {
        return Some(at);
    }
    if !unrestricted() {
        return None;
    }
    let new = map_piece(header()?.number, index).ok()?;
    match PIECES[index].compare_exchange(core::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(new),
        Err(other) => {
            // SAFETY: nobody has seen this second mapping.
            unsafe { sys::unmap(new, PIECE_SIZE) };
            Some(other)
        }
    }
}

/// Adds a piece. Only one process makes a given piece; whoever loses the race uses the winner's. True: there is one more, which others may have
/// used up already.
pub(crate) fn grow(used_for: u32) -> bool {
    let (Some(header), Some(control)) = (header(), control()) else { return false };
    let in_file = IN_FILE.load(Ordering::Relaxed) as usize;
    if in_file > 1 {
        return sharing::grow(header, control, used_for, in_file);
    }
    if !unrestricted() {
        return false;
    }
    let limit = (rules().max_pieces as usize).clamp(1, MAX_PIECES);
    let Some(index) = begin_piece(header, limit) else { return false };
    let Ok(at) = make_piece(header.number, index) else {
        header.pieces[index].used_for.store(piece_use::NONE, Ordering::Release);
        return false;
    };
    PIECES[index].store(at, Ordering::Release);
    add_piece(header, index, used_for);
    true
}

/// Finds a piece that is not there and says that it is being made: [`add_piece`] comes next, or `used_for` goes back to NONE.
pub fn begin_piece(header: &ArenaHeader, limit: usize) -> Option<usize> {
    (1..limit.min(MAX_PIECES)).find(|index| {
        let used = &header.pieces[*index].used_for;
        used.load(Ordering::Relaxed) == piece_use::NONE
            && used.compare_exchange(piece_use::NONE, piece_use::MAKING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })
}

/// Lets everybody use a piece whose memory is reserved.
pub fn add_piece(header: &ArenaHeader, index: usize, used_for: u32) {
    if used_for == piece_use::SEGMENTS {
        header.pieces[index].free.store(u64::MAX >> (64 - GROWN_SEGMENTS), Ordering::Relaxed);
    }
    header.pieces_used.fetch_max(index as u32 + 1, Ordering::Relaxed);
    header.pieces[index].used_for.store(used_for, Ordering::Release);
}

/// Pieces that a thread adds for one segment.
const GROW_TRIES: u32 = 32;

/// Segments that should be free when a process gives up its freedom to open files: browsers' processes have dozens of threads.
const SPARE: u32 = 48;

/// The process is about to enter a sandbox, in which it cannot map further pieces: those that are there are mapped, and enough of them made.
pub(crate) fn prepare_for_sandbox() {
    let Some(header) = header().filter(|_| unrestricted()) else { return };
    loop {
        let pieces = (header.pieces_used.load(Ordering::Acquire) as usize).min(MAX_PIECES);
        let free = |index: &usize| header.pieces[*index].free.load(Ordering::Relaxed).count_ones();
        let mapped = (0..pieces).filter(|index| piece(*index).is_some());
        if mapped.map(|index| free(&index)).sum::<u32>() >= SPARE || !grow(piece_use::SEGMENTS) {
            return;
        }
    }
}

/// Gives a segment to the drain.
pub(crate) fn close_segment(segment: Mapped<'_>) {
    let Some(header) = header() else { return };
    for (index, start) in PIECES.iter().enumerate() {
        let start = start.load(Ordering::Acquire) as usize;
        let at = segment.header() as usize;
        if start != 0 && (start..start + PIECE_SIZE).contains(&at) {
            let first = if index == 0 { BASE_SEGMENTS_AT } else { 0 };
            return handover::close(
                segment,
                &header.pieces[index].closed,
                ((at - start - first) / SEGMENT_SIZE) as u32,
            );
        }
    }
}

/// A forked child has its parent's mappings, but not their pages.
pub(crate) fn forked() {
    let pieces = header().map_or(0, |header| header.pieces_used.load(Ordering::Relaxed) as usize);
    for populated in &POPULATED[..pieces.min(MAX_PIECES)] {
        populated.store(0, Ordering::Relaxed);
    }
}

/// Makes the pages of a segment present at once, where 32 faults would: the first lap through an arena costs little more than the later
/// ones then. Not worth it for a thread that records little.
fn populate(piece: usize, index: u32, segment: Mapped<'_>) {
    let bit = 1u64 << index;
    if POPULATED[piece].load(Ordering::Relaxed) & bit == 0 && unrestricted() {
        POPULATED[piece].fetch_or(bit, Ordering::Relaxed);
        sys::populate(segment.header().cast(), SEGMENT_SIZE);
    }
}

/// Whether the supervisor has looked within the last second.
fn is_drained(control: &Control, now: u64) -> bool {
    now.saturating_sub(control.heartbeat.load(Ordering::Relaxed)) < 1_000_000_000
}

/// A fresh segment for a thread; `None` when there is none, which is counted as a loss by reason. `busy`: the thread has filled one before.
pub(crate) fn take_segment(tid: u32, busy: bool) -> Option<Mapped<'static>> {
    let header = header().filter(|_| process::owned())?;
    let control = control()?;
    let found = take_free(header, busy).or_else(|| {
        let now = clock::monotonic();
        let supervised = !wants(options::UNSUPERVISED) && is_drained(control, now);
        if now < NEXT_TRY.load(Ordering::Relaxed) {
            return None;
        }
        // The drain is a little behind: let it have the processor before memory is grown.
        if supervised && unrestricted() {
            for _ in 0..4 {
                sys::nap(250_000);
                if let Some(found) = take_free(header, busy) {
                    return Some(found);
                }
            }
        }
        // Other threads may be quicker, but not for ever.
        for _ in 0..GROW_TRIES {
            if !grow(piece_use::SEGMENTS) {
                break;
            }
            if let Some(found) = take_free(header, busy) {
                return Some(found);
            }
        }
        if wants(options::WAIT_WHEN_FULL) && supervised && unrestricted() {
            let limit = rules().wait_limit;
            while clock::monotonic().saturating_sub(now) < limit {
                sys::nap(1_000_000);
                if let Some(found) = take_free(header, busy) {
                    return Some(found);
                }
            }
        }
        NEXT_TRY.store(clock::monotonic() + 100_000_000, Ordering::Relaxed);
        None
    });
    match found {
        Some(segment) => {
            let sequence = header.segments_taken.fetch_add(1, Ordering::Relaxed);
            let (slot, generation) = process::place();
            thread::open_segment(segment, &thread::Owner { slot, generation, tid }, sequence);
        }
        None => process::count_loss(Loss::ArenaFull),
    }
    found
}

fn take_free(header: &ArenaHeader, busy: bool) -> Option<Mapped<'static>> {
    let pieces = header.pieces_used.load(Ordering::Acquire) as usize;
    (0..pieces.min(MAX_PIECES)).find_map(|index| {
        let info = &header.pieces[index];
        let has_free =
            info.used_for.load(Ordering::Acquire) == piece_use::SEGMENTS && info.free.load(Ordering::Relaxed) != 0;
        // A piece that cannot be mapped from here is left to others.
        let start = has_free.then(|| piece(index)).flatten()?;
        let found = handover::take_free(&info.free)?;
        // SAFETY: the bit stands for a segment inside the piece, which stays mapped.
        let segment = unsafe { segment_at(start, index, found) }?;
        if busy {
            populate(index, found, segment);
        }
        Some(segment)
    })
}

/// A segment of a piece that is mapped at `start`; `None` when the piece has no such segment.
///
/// # Safety
/// `start` must be the start of the mapped piece `piece`, which stays mapped for the lifetime.
pub unsafe fn segment_at<'a>(start: *mut u8, piece: usize, index: u32) -> Option<Mapped<'a>> {
    let (first, count) = if piece == 0 { (BASE_SEGMENTS_AT, BASE_SEGMENTS) } else { (0, GROWN_SEGMENTS) };
    if index as usize >= count {
        return None;
    }
    // SAFETY: the index was checked against the number of segments that fit into the piece.
    unsafe { Mapped::new(start.add(first + index as usize * SEGMENT_SIZE).cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What places hold after some refusals.
    fn check(refusals: &[(Refusal, &str)], expected: &[(Refusal, &str, u64)]) {
        // SAFETY: a page of zeros is a control page.
        let places: [Refused; 3] = unsafe { core::mem::zeroed() };
        places[0].reason.store(BEING_WRITTEN, Ordering::Relaxed);
        for (why, path) in refusals {
            assert!(places.iter().any(|place| count_refusal(place, *why, path.as_bytes())), "{path} has no place");
        }
        for (place, (why, path, count)) in places[1..].iter().zip(expected) {
            let length = place.path.iter().position(|byte| byte.load(Ordering::Relaxed) == 0);
            let same = place.path.iter().zip(path.bytes()).all(|(kept, byte)| kept.load(Ordering::Relaxed) == byte);
            assert!(same && length.unwrap_or(REFUSED_PATH) == path.len(), "{path}");
            let found = (place.reason.load(Ordering::Relaxed), place.count.load(Ordering::Relaxed));
            assert_eq!(found, (*why as u32, *count), "{path}");
        }
    }

    /// A program has one entry per reason; an entry that was never filled is skipped.
    #[test]
    fn refusals_are_counted_by_program_and_reason() {
        use Refusal::{AddressSpace, Room};
        let long = "x".repeat(REFUSED_PATH);
        check(&[(Room, "/bin/a"); 5], &[(Room, "/bin/a", 5)]);
        check(&[(Room, "/bin/a"), (AddressSpace, "/bin/a")], &[(Room, "/bin/a", 1), (AddressSpace, "/bin/a", 1)]);
        check(&[(Room, "/bin/a"), (Room, "/bin/ab"), (Room, "/bin/a")], &[(Room, "/bin/a", 2), (Room, "/bin/ab", 1)]);
        check(&[(Room, &long), (Room, ""), (Room, &long)], &[(Room, &long, 2), (Room, "", 1)]);
    }
}
