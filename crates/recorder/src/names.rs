//! Names (paths, command lines) interned in the arena.
//!
//! A name is bytes plus the id of the directory that it is relative to, so the traced process composes no paths: a call
//! with a relative path stores `(working directory's id, "data/x")` and the drain joins and normalises.
//! An id is `piece << 20 | offset / 8` and stays valid as long as the arena, for every process that shares it.
//!
//! A piece with names has an index (open addressing, one word a slot: upper half of the hash, id) and a heap that only
//! grows. Lookups never lock; an entry is published by the compare-and-swap that puts its id into the index, so a
//! process that dies in between leaves unused heap and nothing else.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::handover::Number;
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
/// Ids of the base piece are below this.
pub(crate) const BASE_IDS: u64 = 1 << ID_BITS;
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

/// Finds a name where one that is used again nearly always is: in its first slot of the base piece.
///
/// # Safety
/// `base_piece` must be the start of a mapped base piece.
#[inline(always)]
pub unsafe fn find(base_piece: *const u8, base: u32, bytes: &[u8]) -> Option<u32> {
    let (text, length, seed) = (bytes.as_ptr(), bytes.len(), seed(base, bytes.len()));
    // SAFETY: the caller's word; blocks lie within the text. The lengths of most paths have ways of their own, without loops.
    unsafe {
        match length {
            16..=32 => look_first(base_piece, hash_blocks(seed, text, two(length)), base, length, |name| {
                differ_in(name, text, two(length)) == 0
            }),
            33..=64 => look_first(base_piece, hash_blocks(seed, text, four(length)), base, length, |name| {
                differ_in(name, text, four(length)) == 0
            }),
            _ => look_first(base_piece, hash(base, bytes), base, length, |name| is_equal(name, text, length)),
        }
    }
}

/// Finds or adds a name. `base_piece` is the arena's first piece, where most names are; `piece` gives the address of any mapped
/// piece; `grow` makes another piece for names. 0 when there is no room.
///
/// # Safety
/// `base_piece` must be the start of a mapped base piece, and `piece` must return starts of mapped pieces; all stay mapped.
pub unsafe fn intern(
    base_piece: *mut u8,
    base: u32,
    bytes: &[u8],
    piece: impl Fn(usize) -> Option<*mut u8>,
    grow: impl Fn() -> bool,
) -> u32 {
    // SAFETY: a base piece begins with the arena's header.
    let header = unsafe { &*base_piece.cast::<ArenaHeader>() };
    intern_anywhere(header, hash(base, bytes), base, bytes, piece, grow)
}

/// # Safety
/// `start` must be the start of a mapped base piece.
#[inline(always)]
unsafe fn look_first(
    start: *const u8,
    hash: u64,
    base: u32,
    length: usize,
    is_same: impl FnOnce(*const u8) -> bool,
) -> Option<u32> {
    // SAFETY: the slot lies in the index, and ids in it were published after their entry was complete.
    unsafe {
        let slot = start.add(BASE_INDEX_AT).cast::<AtomicU64>().add(hash as usize & (BASE_INDEX_SLOTS - 1));
        let word = (*slot).load(Ordering::Acquire);
        let entry = start.add((word as u32 & ((1 << ID_BITS) - 1)) as usize * 8);
        let header = &*entry.cast::<NameHeader>();
        // An empty slot leads to the piece's own head, which is no name of this length.
        let same = word >> 32 == hash >> 32 && header.base == base && header.length as usize == length;
        (same && is_same(entry.add(HEADER))).then_some(word as u32)
    }
}

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
            let found = unsafe { intern_in(address, this, &header.pieces[this].heap_top, hash, base, bytes) };
            if let Some(id) = found {
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
unsafe fn intern_in(start: *mut u8, piece: usize, top: &AtomicU32, hash: u64, base: u32, bytes: &[u8]) -> Option<u32> {
    let area = area(piece);
    // SAFETY: the index lies inside the piece and is only accessed atomically.
    let index = unsafe { core::slice::from_raw_parts(start.add(area.index).cast::<AtomicU64>(), area.slots) };
    let is_same = |id| {
        // SAFETY: ids in the index were published after their entry was complete; `start` is that piece.
        let (found_base, found) = unsafe { entry(start, id) };
        found_base == base && found == bytes
    };
    let add = || {
        let need = (HEADER + bytes.len()).next_multiple_of(8);
        let offset = area.heap + reserve(top, need, area.end - area.heap)?;
        // SAFETY: [offset, offset + need) lies in the heap and was reserved for us alone.
        unsafe {
            let header = start.add(offset);
            header.cast::<NameHeader>().write(NameHeader { hash, base, length: bytes.len() as u32 });
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), header.add(HEADER), bytes.len());
        }
        Some((piece as u32) << ID_BITS | (offset / 8) as u32)
    };
    find_or_insert(index, hash, is_same, add)
}

/// Finds a name in an index by its hash, or puts it there: `is_same` compares with the entry of an id, `add` makes an entry and its id, at most once.
/// `None` when there is no room, here or in the heap.
pub fn find_or_insert<W: Number<Value = u64>>(
    index: &[W],
    hash: u64,
    is_same: impl Fn(u32) -> bool,
    add: impl Fn() -> Option<u32>,
) -> Option<u32> {
    let mark = hash & !u64::from(u32::MAX);
    let mut added = None;
    for probe in 0..PROBES {
        let slot = &index[(hash as usize).wrapping_add(probe) & (index.len() - 1)];
        // Acquire: the entry was complete before its id came here.
        let mut word = slot.load(Ordering::Acquire);
        if word == 0 {
            let id = match added {
                Some(id) => id,
                None => *added.insert(add()?),
            };
            match slot.compare_exchange(0, mark | u64::from(id), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(id),
                Err(other) => word = other,
            }
        }
        if word & !u64::from(u32::MAX) == mark && is_same(word as u32) {
            return Some(word as u32);
        }
    }
    None
}

/// Reserves `need` bytes of a heap that has `room`; where they begin.
pub fn reserve<W: Number<Value = u32>>(top: &W, need: usize, room: usize) -> Option<usize> {
    // The counter may run past the end by what was refused; keep it from wrapping.
    if need > room || top.load(Ordering::Relaxed) as usize > room {
        return None;
    }
    let at = top.fetch_add(need as u32, Ordering::Relaxed) as usize;
    (at + need <= room).then_some(at)
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

/// Is `text` the name `id` of a base piece, relative to `base`? Quick to say no: "maybe" is no.
///
/// # Safety
/// `start` must be the start of a mapped base piece in which `id` is a name, `text` a C string.
#[inline(always)]
pub(crate) unsafe fn is_text(start: *const u8, id: u32, base: u32, text: *const u8) -> bool {
    const PAGE: usize = 4096;
    // SAFETY: the entry is complete. The string may be shorter than the name, but what is read of it lies in the page of its first byte.
    unsafe {
        let entry = start.add(id as usize * 8);
        let header = &*entry.cast::<NameHeader>();
        let length = header.length as usize;
        if (text as usize & (PAGE - 1)) + length >= PAGE || *text.add(length) != 0 || length < 8 || header.base != base
        {
            return false;
        }
        // Paths of one length most often differ at their ends.
        differ::<u64>(entry.add(HEADER), text, length - 8) == 0 && is_equal(entry.add(HEADER), text, length)
    }
}

/// Are `length` bytes at both places equal? In line, sixteen at a time: for a path, a call of the C library's takes as long as the work.
///
/// # Safety
/// So many bytes must be readable at both.
#[inline(always)]
unsafe fn is_equal(a: *const u8, b: *const u8, length: usize) -> bool {
    // SAFETY: every block that is read lies within the length.
    unsafe {
        match length {
            0 => true,
            1..4 => {
                // The middle one is the first of two and the second of three.
                let of = |at: *const u8| (*at, *at.add(length / 2), *at.add(length - 1));
                of(a) == of(b)
            }
            4..8 => differ::<u32>(a, b, 0) | differ::<u32>(a, b, length - 4) == 0,
            8..16 => differ::<u64>(a, b, 0) | differ::<u64>(a, b, length - 8) == 0,
            16..=32 => differ_in(a, b, two(length)) == 0,
            33..=64 => differ_in(a, b, four(length)) == 0,
            _ => {
                let mut at = 0;
                // The last block first: there paths differ most often.
                let mut differs = differ::<u128>(a, b, length - 16);
                while differs == 0 && at < length - 16 {
                    differs = differ::<u128>(a, b, at);
                    at += 16;
                }
                differs == 0
            }
        }
    }
}

/// Blocks of sixteen bytes that cover a text of 16 to 32; they overlap, so that there is no rest.
#[inline(always)]
fn two(length: usize) -> [usize; 2] {
    [0, length - 16]
}

/// The same for 32 to 64.
#[inline(always)]
fn four(length: usize) -> [usize; 4] {
    [0, 16, length - 32, length - 16]
}

/// Bits in which two words differ, `at` bytes behind these places.
///
/// # Safety
/// Both words must be readable.
#[inline(always)]
unsafe fn differ<W: core::ops::BitXor<Output = W>>(a: *const u8, b: *const u8, at: usize) -> W {
    // SAFETY: the caller's word.
    unsafe { a.add(at).cast::<W>().read_unaligned() ^ b.add(at).cast::<W>().read_unaligned() }
}

/// Bits in which blocks of two texts differ.
///
/// # Safety
/// All blocks must be readable in both.
#[inline(always)]
unsafe fn differ_in<const N: usize>(a: *const u8, b: *const u8, blocks: [usize; N]) -> u128 {
    let mut bits = 0;
    for at in blocks {
        // SAFETY: the caller's word.
        bits |= unsafe { differ::<u128>(a, b, at) };
    }
    bits
}

/// Hash of a name: sixteen bytes a step, the last steps overlapping those before; good spread in both halves.
#[inline(always)]
fn hash(base: u32, bytes: &[u8]) -> u64 {
    let (text, length) = (bytes.as_ptr(), bytes.len());
    let seed = seed(base, length);
    // SAFETY: the blocks lie within the text.
    unsafe {
        match length {
            0..16 => fold(fold(some(bytes) ^ K[1], some(&bytes[length.saturating_sub(8)..]) ^ seed), K[0]),
            16..=32 => hash_blocks(seed, text, two(length)),
            33..=64 => hash_blocks(seed, text, four(length)),
            _ => {
                let state = (0..length / 16).fold(seed, |state, block| mix(state, text.add(block * 16)));
                hash_blocks(state, text, [length - 16])
            }
        }
    }
}

const K: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

#[inline(always)]
fn seed(base: u32, length: usize) -> u64 {
    // Multiplied, so that the number of a directory does not cancel out with bytes of the name.
    (u64::from(base) ^ (length as u64).rotate_left(32)).wrapping_mul(K[0])
}

/// # Safety
/// All blocks must be readable.
#[inline(always)]
unsafe fn hash_blocks<const N: usize>(seed: u64, text: *const u8, blocks: [usize; N]) -> u64 {
    let mut state = seed;
    for at in blocks {
        // SAFETY: the caller's word.
        state = unsafe { mix(state, text.add(at)) };
    }
    fold(state, K[0])
}

/// # Safety
/// Sixteen bytes must be readable.
#[inline(always)]
unsafe fn mix(state: u64, block: *const u8) -> u64 {
    // SAFETY: the caller's word.
    let block = u128::from_le(unsafe { block.cast::<u128>().read_unaligned() });
    fold(block as u64 ^ K[1], (block >> 64) as u64 ^ state)
}

/// Both halves of a product, one over the other.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The first eight bytes, as far as there are so many.
fn some(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::HashSet;
    use std::vec::Vec;
    use std::{format, vec};

    use super::*;

    /// Texts of all lengths up to this, which every way of comparing sees.
    const LENGTHS: core::ops::Range<usize> = 0..200;

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| b'a' + (at % 23) as u8).collect()
    }

    #[test]
    fn equal_means_every_byte() {
        for length in LENGTHS {
            let (one, mut other) = (text(length), text(length));
            // SAFETY: both have this length.
            let compare = |other: &[u8]| unsafe { is_equal(one.as_ptr(), other.as_ptr(), length) };
            assert!(compare(&other));
            for at in 0..length {
                other[at] ^= 1;
                assert!(!compare(&other), "byte {at} of {length}");
                other[at] ^= 1;
            }
        }
    }

    #[test]
    fn every_byte_counts_in_a_hash() {
        for length in LENGTHS {
            let mut bytes = text(length);
            let mut seen = HashSet::from([hash(0, &bytes), hash(1, &bytes)]);
            for at in 0..length {
                bytes[at] ^= 1;
                assert!(seen.insert(hash(0, &bytes)), "byte {at} of {length}");
                bytes[at] ^= 1;
            }
            assert_eq!(seen.len(), length + 2);
        }
    }

    /// The numbered files of a directory spread over the index as random numbers would: 8,000 in 16,384 slots meet in about a fifth of cases.
    #[test]
    fn names_in_a_row_are_spread() {
        let slots: HashSet<u64> = (0..8_000)
            .map(|number| hash(3, format!("/data/train/n01440764/image_{number:06}.jpeg").as_bytes()) & (16_384 - 1))
            .collect();
        assert!((6_150..6_500).contains(&slots.len()), "{} slots", slots.len());
    }

    /// A piece with one name in its heap; its id.
    fn piece_with(base: u32, name: &[u8]) -> (Vec<u64>, u32) {
        let mut piece = vec![0u64; 64];
        let id = 8;
        let bytes = piece.as_mut_ptr().cast::<u8>();
        // SAFETY: header and name fit behind the 64th byte.
        unsafe {
            let entry = bytes.add(id as usize * 8);
            entry.cast::<NameHeader>().write(NameHeader { hash: 1, base, length: name.len() as u32 });
            core::ptr::copy_nonoverlapping(name.as_ptr(), entry.add(HEADER), name.len());
        }
        (piece, id)
    }

    #[test]
    fn a_text_is_the_name_that_it_spells() {
        for length in 8..200 {
            let name = text(length);
            let (piece, id) = piece_with(5, &name);
            // In the middle of a page, whatever the allocator gives.
            let mut page = vec![b'z'; 2 * 4096];
            let start = page.as_ptr().align_offset(4096) + 100;
            page[start..start + length].copy_from_slice(&name);
            page[start + length] = 0;
            // SAFETY: the piece holds the name, and the text ends with a zero, or lies in a page that is readable to its end.
            let is = |page: &[u8], base| unsafe { is_text(piece.as_ptr().cast(), id, base, page[start..].as_ptr()) };
            assert!(is(&page, 5));
            assert!(!is(&page, 6), "another directory");
            for at in 0..=length {
                let was = core::mem::replace(&mut page[start + at], if at < length { 0 } else { b'z' });
                assert!(!is(&page, 5), "shorter or longer at {at} of {length}");
                page[start + at] = was;
            }
        }
    }

    /// A text at the end of a page, behind which nothing can be read, is shorter than the name: nothing beyond the page is read.
    #[test]
    fn nothing_is_read_beyond_the_page_of_a_text() {
        let (piece, id) = piece_with(0, &text(120));
        // SAFETY: two fresh pages, of which the second is made unreadable; the texts lie in the first and end there.
        unsafe {
            let pages = libc::mmap(
                core::ptr::null_mut(),
                8192,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(pages, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(pages.byte_add(4096), 4096, libc::PROT_NONE), 0);
            for length in 0..120 {
                let at = pages.cast::<u8>().add(4095 - length);
                core::ptr::copy_nonoverlapping(text(length).as_ptr(), at, length);
                at.add(length).write(0);
                assert!(!is_text(piece.as_ptr().cast(), id, 0, at));
            }
            libc::munmap(pages, 8192);
        }
    }
}
