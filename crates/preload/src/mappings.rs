//! Tracks file mappings, so that `munmap`, `msync` and `madvise` know their file, and calls on anonymous memory are not recorded.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const SLOTS: usize = 512;

struct Mapping {
    start: AtomicUsize,
    length: AtomicUsize,
    name: AtomicU32,
}

static MAPPINGS: [Mapping; SLOTS] =
    [const { Mapping { start: AtomicUsize::new(0), length: AtomicUsize::new(0), name: AtomicU32::new(0) } }; SLOTS];
/// One past the highest slot ever used; 0 while the program has mapped no file.
static USED: AtomicUsize = AtomicUsize::new(0);

/// A file was mapped. When all slots are taken the mapping is recorded but later calls on it are not.
pub(crate) fn mapped(start: usize, length: usize, name: u32) {
    for (index, slot) in MAPPINGS.iter().enumerate() {
        if slot.start.load(Ordering::Relaxed) == 0
            && slot.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            slot.length.store(length, Ordering::Relaxed);
            slot.name.store(name, Ordering::Relaxed);
            USED.fetch_max(index + 1, Ordering::Relaxed);
            return;
        }
    }
}

fn find(address: usize) -> Option<&'static Mapping> {
    MAPPINGS[..USED.load(Ordering::Relaxed)].iter().find(|slot| {
        let start = slot.start.load(Ordering::Relaxed);
        start != 0 && address >= start && address - start < slot.length.load(Ordering::Relaxed)
    })
}

/// Forgets all mappings, before a recording begins.
pub(crate) fn forget() {
    for slot in &MAPPINGS[..USED.load(Ordering::Relaxed)] {
        slot.start.store(0, Ordering::Release);
    }
}

/// Names are not valid any more: what is mapped stays known, as a file without a name.
pub(crate) fn forget_names() {
    for slot in &MAPPINGS[..USED.load(Ordering::Relaxed)] {
        slot.name.store(0, Ordering::Relaxed);
    }
}

/// Name of the file mapped at `address`; `None` when no file is.
pub(crate) fn file_at(address: usize) -> Option<u32> {
    find(address).map(|mapping| mapping.name.load(Ordering::Relaxed))
}

/// Like [`file_at`], for memory that is about to be unmapped from `address` on.
pub(crate) fn unmapping(address: usize, length: usize) -> Option<u32> {
    let mapping = find(address)?;
    let name = mapping.name.load(Ordering::Relaxed);
    if mapping.start.load(Ordering::Relaxed) == address && length >= mapping.length.load(Ordering::Relaxed) {
        mapping.start.store(0, Ordering::Release);
    }
    Some(name)
}
