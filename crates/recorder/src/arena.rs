//! The arena as the traced process uses it: where it lies, how it is claimed, how it grows, and its segments.
//!
//! What an arena looks like is in [`crate::layout`]; whose it is, in [`crate::process`]. Nothing here is on the way of an event:
//! a thread comes here when its segment is full.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::layout::{
    ARENA_MAGIC, ArenaHeader, BASE_SEGMENTS, BASE_SEGMENTS_AT, CONTROL_MAGIC, CONTROL_SIZE, Control, GROWN_SEGMENTS,
    LAYOUT_VERSION, Loss, MAX_PIECES, PIECE_SIZE, POOL_SLOTS, REFUSED_PATH, Refusal, SEGMENT_SIZE, SegmentHeader,
    options, piece_use, pool_state, segment_state,
};
use crate::process::{self, unrestricted};
use crate::{clock, scratch, sys, thread};

static CONTROL: AtomicPtr<Control> = AtomicPtr::new(core::ptr::null_mut());
/// Earliest time (CLOCK_MONOTONIC) of the next nap or attempt to grow, after one that did not help.
static NEXT_TRY: AtomicU64 = AtomicU64::new(0);
/// Segments of each piece whose pages this process has made present ahead of their use.
static POPULATED: [AtomicU64; MAX_PIECES] = [const { AtomicU64::new(0) }; MAX_PIECES];
static PIECES: [AtomicPtr<u8>; MAX_PIECES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_PIECES];
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
    CONTROL.store(at, Ordering::Release);
    Some(control)
}

/// Makes `base` the arena of this process. An earlier one stays mapped: others' slots in it are still read.
pub(crate) fn settle_in(base: *mut u8) {
    // Before the first arena there is nothing to forget, and the list need not be touched.
    if !self::base().is_null() {
        for piece in &PIECES[1..] {
            piece.store(core::ptr::null_mut(), Ordering::Relaxed);
        }
        for populated in &POPULATED {
            populated.store(0, Ordering::Relaxed);
        }
    }
    PIECES[0].store(base, Ordering::Release);
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
pub(crate) fn claim(control: &Control) -> Result<*mut u8, Refusal> {
    let me = pool_state::CLAIMED | u64::from(sys::getpid());
    let mut refusal = None;
    for (number, word) in control.pool.iter().enumerate() {
        if word.load(Ordering::Relaxed) == pool_state::READY
            && word.compare_exchange(pool_state::READY, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            match map_piece(number as u64, 0) {
                Ok(base) => return Ok(base),
                // Cannot be had from here (descriptors, permissions, another root): let another process have it.
                Err(why) => {
                    word.store(pool_state::READY, Ordering::Release);
                    refusal = Some(why);
                    break;
                }
            }
        }
    }
    let number = POOL_SLOTS as u64 + control.own_arenas.fetch_add(1, Ordering::Relaxed);
    let base = make_piece(number, 0).map_err(|why| refusal.unwrap_or(why))?;
    let arena = base.cast::<ArenaHeader>();
    // SAFETY: a new file of PIECE_SIZE zero bytes that nobody else has claimed.
    unsafe { init_arena(arena, number, control.clock) };
    Ok(base)
}

/// Makes a zeroed base piece an empty arena.
///
/// # Safety
/// `arena` must be a zeroed, mapped base piece that no process uses.
pub unsafe fn init_arena(arena: *mut ArenaHeader, number: u64, clock: u32) {
    // SAFETY: the caller owns the piece.
    unsafe {
        (*arena).version = LAYOUT_VERSION;
        (*arena).clock = clock;
        (*arena).number = number;
        (*arena).pieces_used.store(1, Ordering::Relaxed);
        (*arena).pieces[0].used_for.store(piece_use::SEGMENTS, Ordering::Relaxed);
        (*arena).pieces[0].free.store(u64::MAX >> (64 - BASE_SEGMENTS), Ordering::Relaxed);
        (*arena).magic.store(ARENA_MAGIC, Ordering::Release);
    }
}

/// Tells the supervisor that this program has no arena, and why.
#[cold]
pub(crate) fn refuse(control: &Control, why: Refusal) {
    let place = control.refusals.fetch_add(1, Ordering::Relaxed) as usize;
    let Some(refused) = control.refused.get(place) else { return process::count_loss(Loss::NoArena) };
    let mut path = [0u8; 512];
    let length = sys::readlink(c"/proc/self/exe", &mut path).unwrap_or(0);
    let end = &path[length.saturating_sub(REFUSED_PATH)..length];
    for (kept, byte) in refused.path.iter().zip(end) {
        kept.store(*byte, Ordering::Relaxed);
    }
    refused.pid.store(sys::getpid(), Ordering::Relaxed);
    refused.at_mono.store(clock::monotonic(), Ordering::Relaxed);
    refused.reason.store(why as u32, Ordering::Release);
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

/// Adds a piece. Only one process makes a given piece; whoever loses the race uses the winner's.
pub(crate) fn grow(used_for: u32) -> bool {
    let (Some(header), Some(control)) = (header(), control()) else { return false };
    if !unrestricted() {
        return false;
    }
    let limit = (control.max_pieces as usize).clamp(1, MAX_PIECES);
    let taken = |index: &usize| {
        let used = &header.pieces[*index].used_for;
        used.load(Ordering::Relaxed) == piece_use::NONE
            && used.compare_exchange(piece_use::NONE, piece_use::MAKING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let Some(index) = (1..limit).find(taken) else { return false };
    let Ok(at) = make_piece(header.number, index) else {
        header.pieces[index].used_for.store(piece_use::NONE, Ordering::Release);
        return false;
    };
    PIECES[index].store(at, Ordering::Release);
    if used_for == piece_use::SEGMENTS {
        header.pieces[index].free.store(u64::MAX >> (64 - GROWN_SEGMENTS), Ordering::Relaxed);
    }
    header.pieces_used.fetch_max(index as u32 + 1, Ordering::Relaxed);
    header.pieces[index].used_for.store(used_for, Ordering::Release);
    true
}

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
pub(crate) fn close_segment(segment: *mut SegmentHeader) {
    let Some(header) = header() else { return };
    // SAFETY: callers hand over a segment of a mapped piece that they own.
    unsafe { (*segment).state.store(segment_state::CLOSED, Ordering::Release) };
    for (index, start) in PIECES.iter().enumerate() {
        let start = start.load(Ordering::Acquire) as usize;
        let at = segment as usize;
        if start != 0 && (start..start + PIECE_SIZE).contains(&at) {
            let first = if index == 0 { BASE_SEGMENTS_AT } else { 0 };
            header.pieces[index].closed.fetch_or(1 << ((at - start - first) / SEGMENT_SIZE), Ordering::Release);
            return;
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
fn populate(piece: usize, index: u32, segment: *mut SegmentHeader) {
    let bit = 1u64 << index;
    if POPULATED[piece].load(Ordering::Relaxed) & bit == 0 && unrestricted() {
        POPULATED[piece].fetch_or(bit, Ordering::Relaxed);
        sys::populate(segment.cast(), SEGMENT_SIZE);
    }
}

/// A fresh segment for a thread; `None` when there is none, which is counted as a loss by reason. `busy`: the thread has filled one before.
pub(crate) fn take_segment(tid: u32, busy: bool) -> Option<*mut SegmentHeader> {
    let header = header().filter(|_| process::owned())?;
    let control = control()?;
    let found = take_free(header, busy).or_else(|| {
        let now = clock::monotonic();
        let supervised = control.options & options::UNSUPERVISED == 0
            && now.saturating_sub(control.heartbeat.load(Ordering::Relaxed)) < 1_000_000_000;
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
        if grow(piece_use::SEGMENTS) {
            return take_free(header, busy);
        }
        if control.options & options::WAIT_WHEN_FULL != 0 && supervised && unrestricted() {
            while clock::monotonic().saturating_sub(now) < control.wait_limit {
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
            thread::open_segment(segment, slot, generation, tid, sequence);
        }
        None => process::count_loss(Loss::ArenaFull),
    }
    found
}

fn take_free(header: &ArenaHeader, busy: bool) -> Option<*mut SegmentHeader> {
    let pieces = header.pieces_used.load(Ordering::Acquire) as usize;
    for index in 0..pieces.min(MAX_PIECES) {
        let piece_info = &header.pieces[index];
        if piece_info.used_for.load(Ordering::Acquire) != piece_use::SEGMENTS {
            continue;
        }
        loop {
            let free = piece_info.free.load(Ordering::Acquire);
            if free == 0 {
                break;
            }
            let bit = free & free.wrapping_neg();
            let Some(start) = piece(index) else { break };
            if piece_info.free.compare_exchange(free, free & !bit, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                let first = if index == 0 { BASE_SEGMENTS_AT } else { 0 };
                // SAFETY: the bit stands for a segment inside the piece.
                let segment = unsafe { start.add(first + bit.trailing_zeros() as usize * SEGMENT_SIZE).cast() };
                if busy {
                    populate(index, bit.trailing_zeros(), segment);
                }
                return Some(segment);
            }
        }
    }
    None
}
