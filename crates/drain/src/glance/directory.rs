//! One live directory: which arenas are in use, who drains them, what is in the journal.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use serde::Deserialize;
use weftline_format::files;
use weftline_format::secrets::Arguments;
use weftline_recorder::clock::ClockKind;
use weftline_recorder::layout::{LOSS_NAMES, options, pool_state};

use super::reader::Reader;
use super::sums::Sums;
use crate::arena::view::ArenaView;
use crate::arena::{Arena, ControlPage};
use crate::live::Settings;
use crate::procfs::Host;
use crate::timeline::Clock;

/// A supervisor looks at least fifty times a second; one that has not for so long is gone, stopped, or has no processor to run on.
const HEARTBEAT_PATIENCE_NS: u64 = 5_000_000_000;
/// Of the journal, at most so much is read in one look.
const JOURNAL_PART: usize = 4 << 20;
/// Images that wait for their line in the journal.
const MOST_LEFT: usize = 100_000;

/// A live directory that is looked at.
pub(super) struct Watching {
    path: PathBuf,
    control: ControlPage,
    clock: Clock,
    /// With the word of the pool that stood for it.
    arenas: BTreeMap<u64, (u64, Reader)>,
    journal: Journaled,
    /// How much of command lines is shown: as much as the run keeps.
    arguments: Arguments,
}

impl Watching {
    /// Maps its control page; nothing when it is of another version.
    pub(super) fn open(path: &Path) -> io::Result<Option<Watching>> {
        let Some(control) = ControlPage::open_to_look(&path.join("ctl"))? else { return Ok(None) };
        let kind = if control.get().clock == ClockKind::Tsc as u32 { ClockKind::Tsc } else { ClockKind::Monotonic };
        let clock = Clock::watch(&path.join("clock"), kind);
        // Settings that cannot be read may have forbidden them.
        let arguments = Settings::read(path).map_or(Arguments::Omitted, |settings| settings.arguments);
        let (path, arenas) = (path.to_owned(), BTreeMap::new());
        Ok(Some(Watching { path, control, clock, arenas, journal: Journaled::default(), arguments }))
    }

    /// Reads what is new. `known`: arenas that were not there at the last look are new altogether, else they are older than we are.
    pub(super) fn look(&mut self, host: &Host, known: bool, sums: &mut Sums, notes: &mut Vec<String>) {
        self.find_arenas(notes);
        let timeline = self.clock.now();
        for (_, reader) in self.arenas.values_mut() {
            reader.look(host, &timeline, known);
            self.journal.take_freed(reader);
        }
        for (tag, events) in self.journal.read_on(&self.path.join("journal")) {
            let found = self.arenas.values_mut().find_map(|(_, reader)| reader.finish(&tag, events));
            let rest = found.unwrap_or_else(|| self.journal.rest_of(&tag, events));
            // What ended before the first look is past.
            sums.unseen += if known { rest } else { 0 };
        }
        for (_, reader) in self.arenas.values_mut() {
            reader.tell(sums);
        }
    }

    fn find_arenas(&mut self, notes: &mut Vec<String>) {
        let control = self.control.get();
        let mut used: Vec<(u64, u64)> = Vec::new();
        for (number, word) in control.pool.iter().enumerate() {
            let word = word.load(Ordering::Acquire);
            if word >= pool_state::CLAIMED {
                used.push((number as u64, word));
            }
        }
        // Processes make arenas of their own when the pool is empty or nobody fills it.
        if control.own_arenas.load(Ordering::Acquire) > 0 {
            used.extend(Arena::own_numbers(&self.path).into_iter().map(|number| (number, 0)));
        }
        let mut before = std::mem::take(&mut self.arenas);
        for (number, word) in used {
            if let Some((old, reader)) = before.remove(&number) {
                if old == word && self.is_same(number, &reader) {
                    self.arenas.insert(number, (word, reader));
                    continue;
                }
                self.journal.remember(reader);
            }
            match ArenaView::open(&self.path, number) {
                Ok(Some(view)) => drop(self.arenas.insert(number, (word, Reader::new(view, self.arguments)))),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    notes.push("some of its processes belong to another user: use `weft top` as root".into());
                }
                // Being made, or gone again.
                _ => {}
            }
        }
        before.into_values().for_each(|(_, reader)| self.journal.remember(reader));
    }

    /// Whether the arena's file is the one that is mapped, and was not made new since.
    fn is_same(&self, number: u64, reader: &Reader) -> bool {
        let inode = std::fs::metadata(Arena::path(&self.path, number)).map(|data| data.ino());
        inode.is_ok_and(|inode| inode == reader.inode()) && !reader.was_reset()
    }

    /// Whether a supervisor was at work a moment ago.
    pub(super) fn is_drained(&self, now_ns: u64) -> bool {
        let beat = self.control.get().heartbeat.load(Ordering::Relaxed);
        beat != 0 && now_ns.saturating_sub(beat) < HEARTBEAT_PATIENCE_NS
    }

    pub(super) fn is_unsupervised(&self) -> bool {
        self.control.get().options & options::UNSUPERVISED != 0
    }

    pub(super) fn anybody_runs(&self) -> bool {
        self.arenas.values().any(|(_, reader)| reader.anybody_runs())
    }

    /// Images that are in the journal.
    pub(super) fn ended(&self) -> u64 {
        self.journal.images
    }

    /// Images that are not.
    pub(super) fn images(&self) -> u64 {
        self.arenas.values().map(|(_, reader)| reader.images()).sum()
    }

    pub(super) fn add_drops(&self, into: &mut BTreeMap<String, u64>) {
        for (reason, count) in &self.journal.drops {
            *into.entry(reason.clone()).or_default() += count;
        }
        let ownerless = self.control.get().losses.iter().map(|count| count.load(Ordering::Relaxed));
        let held = self.arenas.values().flat_map(|(_, reader)| reader.drops());
        for (reason, count) in LOSS_NAMES.into_iter().zip(ownerless).chain(held).filter(|(_, count)| *count > 0) {
            *into.entry(reason.to_owned()).or_default() += count;
        }
    }
}

/// The journal's entries of ended images.
#[derive(Default)]
struct Journaled {
    read_to: u64,
    /// Begins a line that is not complete yet.
    begun: Vec<u8>,
    images: u64,
    drops: BTreeMap<String, u64>,
    /// Images that left their slot and are not in the journal yet, with their events that were counted.
    left: HashMap<String, Option<u64>>,
}

/// The part of a journal's line that matters here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    tag: String,
    process: LineProcess,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LineProcess {
    events: u64,
    drops: BTreeMap<String, u64>,
}

impl Journaled {
    /// Keeps the counts of an arena's images, until the journal tells how many events they really had.
    fn remember(&mut self, mut reader: Reader) {
        reader.leave_all();
        self.take_freed(&mut reader);
    }

    fn take_freed(&mut self, reader: &mut Reader) {
        if self.left.len() > MOST_LEFT {
            self.left.clear();
        }
        self.left.extend(reader.take_left());
    }

    /// Events of an ended image that were not counted: all of an image that was never seen.
    fn rest_of(&mut self, tag: &str, events: u64) -> u64 {
        match self.left.remove(tag) {
            Some(Some(counted)) => events.saturating_sub(counted),
            // It began before we looked for the first time, so what was counted cannot be compared.
            Some(None) => 0,
            None => events,
        }
    }

    /// Takes the lines that were added: tag and events of each image. A journal that cannot be read tells nothing: it may not be there
    /// yet.
    fn read_on(&mut self, path: &Path) -> Vec<(String, u64)> {
        let Ok(file) = files::open_in_place(path) else { return Vec::new() };
        let length = file.metadata().map_or(0, |data| data.len()).saturating_sub(self.read_to);
        let mut part = vec![0; (length as usize).min(JOURNAL_PART)];
        let Ok(read) = file.read_at(&mut part, self.read_to) else { return Vec::new() };
        self.read_to += read as u64;
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(&part[..read]);
        let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut found = Vec::new();
        for line in text[..complete].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
            self.images += 1;
            for (reason, count) in line.process.drops {
                *self.drops.entry(reason).or_default() += count;
            }
            found.push((line.tag, line.process.events));
        }
        // A line longer than any image needs is not one.
        if text.len() - complete < 16 * JOURNAL_PART {
            self.begun = text.split_off(complete);
        }
        found
    }
}
