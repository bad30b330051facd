//! Names (paths, command lines) interned in the arena.
//!
//! A name is bytes plus the id of the directory that it is relative to, so no path is composed in the traced process: a call
//! with a relative path stores `(working directory's id, "data/x")` and the drain joins and normalises.
//! An id is `piece << 20 | offset / 8` and stays valid as long as the arena, for every process that shares it.
//!
//! A piece with names has an index (open addressing, one word a slot: upper half of the hash, id) and a heap that only
//! grows. Lookups never lock; an entry is published by the compare-and-swap that puts its id into the index, so a
//! process that dies in between leaves unused heap and nothing else.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::{
    ArenaHeader, BASE_HEAP_AT, BASE_INDEX_AT, BASE_INDEX_SLOTS, BASE_SEGMENTS_AT, GROWN_HEAP_AT, GROWN_INDEX_SLOTS,
    MAX_PIECES, PIECE_SIZE, piece_use,
};

/// Head of a name in the heap; the bytes follow.
#[repr(C)]
pub struct NameHeader {
    /// Hash of the bytes and the base.
    pub hash: u64,
    /// Name id of the directory that the bytes are relative to; 0 when they stand alone.
    pub base: u32,
    /// Number of bytes.
    pub length: u32,
}

const HEADER: usize = size_of::<NameHeader>();
const ID_BITS: u32 = 20;
/// Slots looked at before a piece counts as full.
pub const PROBES: usize = 64;

/// Where a piece keeps its names.
struct Area {
    index: usize,
    slots: usize,
    heap: usize,
    end: usize,
}

const fn area(piece: usize) -> Area {
    if piece == 0 {
        Area { index: BASE_INDEX_AT, slots: BASE_INDEX_SLOTS, heap: BASE_HEAP_AT, end: BASE_SEGMENTS_AT }
    } else {
        Area { index: 0, slots: GROWN_INDEX_SLOTS, heap: GROWN_HEAP_AT, end: PIECE_SIZE }
    }
}

/// Result of trying one piece.
enum Tried {
    Id(u32),
    Full,
}

/// Finds or adds a name. `base_piece` is the arena's first piece, where most names are; `piece` gives the address of any mapped
/// piece; `grow` makes another piece for names. 0 when there is no room.
///
/// # Safety
/// `base_piece` must be the start of a mapped base piece, and `piece` must return starts of mapped pieces; all stay mapped.
#[inline(always)]
pub unsafe fn intern(
    base_piece: *mut u8,
    base: u32,
    bytes: &[u8],
    piece: impl Fn(usize) -> Option<*mut u8>,
    grow: impl Fn() -> bool,
) -> u32 {
    let hash = hash(base, bytes);
    // SAFETY: callers pass the mapped base piece of their arena.
    match unsafe { look_first(base_piece, hash, base, bytes) } {
        Some(id) => id,
        // SAFETY: as above; a base piece begins with the arena's header.
        None => unsafe { intern_anywhere(&*base_piece.cast::<ArenaHeader>(), hash, base, bytes, piece, grow) },
    }
}

/// The first slot of the base piece: where a name that is used again nearly always is.
///
/// # Safety
/// `start` must be the start of a mapped base piece.
#[inline(always)]
unsafe fn look_first(start: *mut u8, hash: u64, base: u32, bytes: &[u8]) -> Option<u32> {
    // SAFETY: the slot lies in the index, and ids in it were published after their entry was complete.
    unsafe {
        let slot = start.add(BASE_INDEX_AT).cast::<AtomicU64>().add(hash as usize & (BASE_INDEX_SLOTS - 1));
        let word = (*slot).load(Ordering::Acquire);
        if word >> 32 != hash >> 32 {
            return None;
        }
        let entry = start.add((word as u32 & ((1 << ID_BITS) - 1)) as usize * 8);
        let header = &*entry.cast::<NameHeader>();
        let same = header.hash == hash && header.base == base && header.length as usize == bytes.len();
        (same && core::slice::from_raw_parts(entry.add(HEADER), bytes.len()) == bytes).then_some(word as u32)
    }
}

#[inline(never)]
fn intern_anywhere(
    header: &ArenaHeader,
    hash: u64,
    base: u32,
    bytes: &[u8],
    piece: impl Fn(usize) -> Option<*mut u8>,
    grow: impl Fn() -> bool,
) -> u32 {
    let mut next = 0;
    for attempt in 0..2 {
        let pieces = (header.pieces_used.load(Ordering::Acquire) as usize).clamp(1, MAX_PIECES);
        while next < pieces {
            let this = next;
            next += 1;
            let holds_names = this == 0 || header.pieces[this].used_for.load(Ordering::Acquire) == piece_use::NAMES;
            let Some(address) = holds_names.then(|| piece(this)).flatten() else { continue };
            // SAFETY: `piece` returns the start of a mapped piece of PIECE_SIZE bytes that stays mapped.
            if let Tried::Id(id) = unsafe { intern_in(address, this, &header.pieces[this].heap_top, hash, base, bytes) }
            {
                return id;
            }
        }
        if attempt == 0 && grow() {
            next = 1;
        } else {
            break;
        }
    }
    0
}

/// # Safety
/// `start` must be the start of a mapped piece that holds names.
unsafe fn intern_in(start: *mut u8, piece: usize, top: &AtomicU32, hash: u64, base: u32, bytes: &[u8]) -> Tried {
    let area = area(piece);
    // SAFETY: the index lies inside the piece and is only accessed atomically.
    let index = unsafe { core::slice::from_raw_parts(start.add(area.index).cast::<AtomicU64>(), area.slots) };
    let mark = hash & !u64::from(u32::MAX);
    let mut added = 0u32;
    for probe in 0..PROBES {
        let slot = &index[(hash as usize).wrapping_add(probe) & (area.slots - 1)];
        let mut word = slot.load(Ordering::Acquire);
        if word == 0 {
            if added == 0 {
                // SAFETY: as for this function.
                added = match unsafe { add(start, piece, &area, top, hash, base, bytes) } {
                    Some(id) => id,
                    None => return Tried::Full,
                };
            }
            match slot.compare_exchange(0, mark | u64::from(added), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Tried::Id(added),
                Err(other) => word = other,
            }
        }
        if word & !u64::from(u32::MAX) == mark {
            let id = word as u32;
            // SAFETY: ids in the index were published after their entry was complete; `start` is that piece.
            let (found_base, found) = unsafe { entry(start, id) };
            if found_base == base && found == bytes {
                return Tried::Id(id);
            }
        }
    }
    Tried::Full
}

/// # Safety
/// `start` must be the start of a mapped piece that holds names.
unsafe fn add(
    start: *mut u8,
    piece: usize,
    area: &Area,
    top: &AtomicU32,
    hash: u64,
    base: u32,
    bytes: &[u8],
) -> Option<u32> {
    let need = (HEADER + bytes.len()).next_multiple_of(8);
    let room = area.end - area.heap;
    // The counter may run past the end by what was refused; keep it from wrapping.
    if need > room || top.load(Ordering::Relaxed) as usize > room {
        return None;
    }
    let at = top.fetch_add(need as u32, Ordering::Relaxed) as usize;
    if at + need > room {
        return None;
    }
    let offset = area.heap + at;
    // SAFETY: [offset, offset + need) lies in the heap and the fetch_add gave it to us alone.
    unsafe {
        let header = start.add(offset);
        header.cast::<NameHeader>().write(NameHeader { hash, base, length: bytes.len() as u32 });
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), header.add(HEADER), bytes.len());
    }
    Some((piece as u32) << ID_BITS | (offset / 8) as u32)
}

/// Piece that an id lies in.
pub fn piece_of(id: u32) -> usize {
    (id >> ID_BITS) as usize
}

/// Base id and bytes of a name whose piece is mapped at `start`.
///
/// # Safety
/// `start` must be the start of the mapped piece [`piece_of`]`(id)`, and `id` must come from [`intern`].
pub unsafe fn entry<'a>(start: *const u8, id: u32) -> (u32, &'a [u8]) {
    let offset = (id & ((1 << ID_BITS) - 1)) as usize * 8;
    if offset + HEADER > PIECE_SIZE {
        return (0, &[]);
    }
    // SAFETY: the offset was checked against the piece; entries are 8-byte aligned and immutable once published.
    unsafe {
        let header = &*start.add(offset).cast::<NameHeader>();
        let length = (header.length as usize).min(PIECE_SIZE - offset - HEADER);
        (header.base, core::slice::from_raw_parts(start.add(offset + HEADER), length))
    }
}

/// Hash of a name: eight bytes a step, the last step overlapping the one before; good spread in both halves.
#[inline(always)]
fn hash(base: u32, bytes: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = (u64::from(base) ^ (bytes.len() as u64).rotate_left(32)).wrapping_mul(K);
    let mut mix = |word: u64| {
        state = (state ^ word).wrapping_mul(K);
        state ^= state >> 29;
    };
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        mix(u64::from_le_bytes(*word));
        rest = after;
    }
    match bytes.last_chunk::<8>() {
        Some(word) if !rest.is_empty() => mix(u64::from_le_bytes(*word)),
        Some(_) => {}
        None => mix(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
    }
    (state ^ state >> 32).wrapping_mul(K)
}
