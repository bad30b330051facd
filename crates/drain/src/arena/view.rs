//! An arena of another drain, mapped read-only.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use weftline_recorder::layout::{ARENA_MAGIC, LAYOUT_VERSION, PIECE_SIZE};

use super::mapping::Mapping;
use super::{Arena, Records, SegmentAt, SegmentInfo, SlotEnd, SlotInfo};
use crate::procfs::Host;
use crate::watch;

/// The arena without what writes into it: a store into a mapping that can only be read would end this process.
pub(crate) struct ArenaView(Arena);

impl ArenaView {
    /// Maps an arena; nothing when it is not (yet) one of this layout.
    pub(crate) fn open(directory: &Path, number: u64) -> io::Result<Option<ArenaView>> {
        let base = Mapping::open_to_look(&Arena::path(directory, number), PIECE_SIZE)?;
        let mut arena = Arena::around(directory, number, base)?;
        arena.only_to_look = true;
        let header = arena.header();
        let known = header.magic.load(Ordering::Acquire) == ARENA_MAGIC && header.version == LAYOUT_VERSION;
        Ok(known.then_some(ArenaView(arena)))
    }

    /// Inode of the file that is mapped.
    pub(crate) fn inode(&self) -> u64 {
        self.0.inode
    }

    /// Segments handed out since the arena was made ready.
    pub(crate) fn segments_taken(&self) -> u64 {
        self.0.header().segments_taken.load(Ordering::Acquire)
    }

    /// Images that came into it since.
    pub(crate) fn generations(&self) -> u64 {
        self.0.header().generations.load(Ordering::Acquire)
    }

    pub(crate) fn used_segments(&self) -> Vec<SegmentAt> {
        self.0.used_segments()
    }

    pub(crate) fn segment_info(&self, at: SegmentAt) -> Option<SegmentInfo> {
        self.0.segment_info(at)
    }

    pub(crate) fn records(&self, at: SegmentAt) -> Option<Records<'_>> {
        self.0.records(at)
    }

    pub(crate) fn slots_used(&self) -> u32 {
        self.0.slots_used()
    }

    pub(crate) fn slot_state(&self, index: u32) -> u32 {
        self.0.slot_state(index)
    }

    pub(crate) fn slot_info(&self, index: u32) -> SlotInfo {
        self.0.slot_info(index)
    }

    pub(crate) fn slot_end(&self, index: u32) -> Option<SlotEnd> {
        self.0.slot_end(index)
    }

    pub(crate) fn name(&self, id: u32) -> Option<(u32, &[u8])> {
        self.0.name(id)
    }

    /// The pid by which we see the process in a slot.
    pub(crate) fn seen_as(&self, slot: u32, host: &Host) -> Option<u32> {
        watch::seen_as(&self.0, slot, host)
    }
}
