//! Pieces that an arena grows by: files of their own, or parts of the arena's own file in a run that other users share.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::Ordering;

use weftline_format::files;
use weftline_recorder::arena as recorder_arena;
use weftline_recorder::layout::{MAX_PIECES, PIECE_SIZE, PIECES_IN_FILE, piece_use};
use weftline_recorder::sys;

use super::{Arena, Mapping};

/// Processes of one family that make growth pieces at the same moment, at most; of more some would leave traces.
const MADE_AT_ONCE: usize = 64;

impl Arena {
    /// Maps a growth piece. It lies in the arena's own file if that is long enough, which in other runs it never is.
    pub(super) fn map_piece(&self, index: usize) -> io::Result<Mapping> {
        let open = if self.only_to_look { files::open_in_place } else { files::change };
        let map = if self.only_to_look { Mapping::part_to_look } else { Mapping::part_of };
        let own = open(&Arena::path(&self.directory, self.number))?;
        match own.metadata()?.len() < ((index + 1) * PIECE_SIZE) as u64 {
            true => map(&open(&self.directory.join(format!("a{}.{index}", self.number)))?, 0, PIECE_SIZE),
            false => map(&own, index * PIECE_SIZE, PIECE_SIZE),
        }
    }

    /// What a process that cannot grow its arena's file asks for: the kinds of pieces. [`Arena::answer`] is due then.
    pub(crate) fn asked(&self) -> impl Iterator<Item = u32> {
        let asked = self.header().asked.load(Ordering::Acquire);
        [piece_use::SEGMENTS, piece_use::NAMES].into_iter().filter(move |used_for| asked >> used_for & 1 != 0)
    }

    /// Tells the process that there is a piece now, or that there will be none.
    pub(crate) fn answer(&self, used_for: u32, given: bool) {
        let (asked, bit, refused) = (&self.header().asked, 1 << used_for, 1 << (used_for + 16));
        // First the answer, then that there is one.
        match given {
            true => asked.fetch_and(!refused, Ordering::AcqRel),
            false => asked.fetch_or(refused, Ordering::AcqRel),
        };
        asked.fetch_and(!bit, Ordering::AcqRel);
    }

    /// Adds a piece to the arena's own file, so that there are at most so many.
    pub(crate) fn extend(&self, used_for: u32, most: usize) -> io::Result<()> {
        let header = self.header();
        let full = || io::Error::other("the arena has all the pieces that it may have");
        let index = recorder_arena::begin_piece(header, most.min(PIECES_IN_FILE)).ok_or_else(full)?;
        let file = files::change(&Arena::path(&self.directory, self.number));
        let reserved = file.and_then(|file| {
            sys::allocate_at(file.as_raw_fd(), index * PIECE_SIZE, PIECE_SIZE).map_err(io::Error::from_raw_os_error)
        });
        match reserved {
            Ok(_) => recorder_arena::add_piece(header, index, used_for),
            Err(_) => header.pieces[index].used_for.store(piece_use::NONE, Ordering::Release),
        }
        reserved.map(drop)
    }

    /// Pieces that the arena's own file takes the memory of, whatever its header says: other users can write that. No more than it may have.
    pub(crate) fn pieces_in_file(&self) -> usize {
        let data = std::fs::symlink_metadata(Arena::path(&self.directory, self.number));
        let bytes = data.map_or(0, |data| data.blocks() * 512);
        (bytes.div_ceil(PIECE_SIZE as u64) as usize).clamp(1, PIECES_IN_FILE)
    }

    /// Unmaps and removes all growth pieces.
    pub(super) fn remove_growth(&mut self) {
        let mapped = self.grown.take().unwrap_or_default();
        let touched = self.pieces_touched();
        let is_there = |index: &usize| {
            let made =
                *index < touched && self.header().pieces[*index].used_for.load(Ordering::Acquire) != piece_use::NONE;
            made || mapped.get(index - 1).is_some_and(|piece| piece.get().is_some())
        };
        for index in (1..touched.max(mapped.len() + 1)).filter(is_there) {
            // It may never have come into being; what is left over goes with the directory.
            let _ = std::fs::remove_file(self.directory.join(format!("a{}.{index}", self.number)));
        }
    }

    /// Pieces of the header's list that were ever touched: those in use, and some that processes may have been making when they
    /// died. Pages of the list that nobody touched need not be.
    pub(super) fn pieces_touched(&self) -> usize {
        (self.pieces_used() + MADE_AT_ONCE).min(MAX_PIECES)
    }

    /// Removes the arena's files.
    pub(crate) fn remove(mut self) {
        self.remove_growth();
        let _ = std::fs::remove_file(Arena::path(&self.directory, self.number));
    }
}
