//! The processes of a machine: detects new ones and their parents.
//!
//! Listing `/proc` costs about a microsecond per process, so a full listing is made only once a second, and once in ten seconds if nothing
//! starts. In between, the kernel's last pid (`/proc/loadavg`) shows whether anything was started at all, and only pids after the
//! previous last pid are listed.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use regex::Regex;
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom, openat, seek};

use crate::error::{CollectError, Result};
use crate::process::CpuClock;
use crate::read::{Kept, number, words};
use crate::roots::Roots;

/// What is known of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    parent: u32,
    session: u32,
    pub(super) start: u64,
    first_seen_ns: i64,
    /// A thread of the kernel, or a process that has ended and was not waited for: nothing to be followed.
    inert: bool,
    /// Its CPU clock, and where that stood when it was last shown: a process that has not run since has not exec'd.
    clock: CpuClock,
    shown_at: Option<u64>,
}

impl Known {
    /// A process that is younger than two seconds is looked at every time: most exec right after they were forked.
    fn is_young(&self, now_ns: i64) -> bool {
        now_ns - self.first_seen_ns < 2_000_000_000
    }
}

/// A second, after which all processes are looked at again: a pattern may match after an exec, a control group may be entered.
const ROUND_NS: i64 = 1_000_000_000;
/// Where the last pid stays as it is, all processes are listed so seldom: what was put at a pid of its choice (`clone3`'s `set_tid`, for
/// restored checkpoints) does not show there.
const QUIET_ROUND_NS: i64 = 10_000_000_000;
/// Whom to show of the processes that are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfollowed {
    /// Nobody.
    None,
    /// Those whose name or command line may have changed.
    Execs,
    /// All, for changes from outside: somebody puts them into a control group.
    All,
}

/// All processes.
#[derive(Debug)]
pub(super) struct Table {
    proc: OwnedFd,
    loadavg: Option<Kept>,
    known: HashMap<u32, Known>,
    last_pid: u64,
    /// The last pid at the last full listing, and whether it was the same at the one before: processes that were just being made then
    /// may be missing in one listing, not in two.
    listed_pid: Option<u64>,
    is_quiet: bool,
    /// Counts what came and went.
    generation: u64,
    own_pids: bool,
    /// The place of a pid in the listing, less the pid: places of the kernel's listing are pids and a constant.
    offset: Option<u64>,
    listed_ns: i64,
    looked_ns: i64,
    is_new: bool,
    buffer: Vec<u8>,
    list: Vec<u8>,
}

/// One process that is looked at; its texts are read when asked for.
pub(super) struct Look<'t> {
    proc: &'t OwnedFd,
    pid: u32,
    buffer: Vec<u8>,
}

impl Look<'_> {
    /// Nothing when there is no such process.
    pub(super) fn at(table: &Table, pid: u32) -> Option<Look<'_>> {
        table.read(pid)?;
        Some(Look { proc: &table.proc, pid, buffer: Vec::new() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the short name or the command line matches.
    pub(super) fn matches(&mut self, pattern: &Regex) -> bool {
        let (proc, pid) = (self.proc, self.pid);
        let mut text = |file: &str, separator: u8| -> Option<String> {
            let bytes = read_at(proc, &format!("{pid}/{file}"), &mut self.buffer).ok()?;
            let bytes: Vec<u8> = bytes.iter().map(|byte| if *byte == separator { b' ' } else { *byte }).collect();
            Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
        };
        text("comm", b'\n').is_some_and(|name| pattern.is_match(&name))
            || text("cmdline", 0).is_some_and(|line| !line.is_empty() && pattern.is_match(&line))
    }
}

impl Table {
    pub(super) fn open(roots: &Roots) -> Result<Table> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open(&roots.proc, flags, Mode::empty())
            .map_err(|error| CollectError::io(&roots.proc, error))?;
        Ok(Table {
            proc,
            loadavg: Kept::open(roots.proc.join("loadavg")).ok(),
            known: HashMap::new(),
            last_pid: 0,
            listed_pid: None,
            is_quiet: false,
            generation: 0,
            own_pids: roots.own_pids(),
            offset: None,
            listed_ns: i64::MIN,
            looked_ns: i64::MIN,
            is_new: true,
            buffer: vec![0; 4096],
            list: Vec::with_capacity(32 << 10),
        })
    }

    /// Whether this is the first look.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Changes with every process that came or went.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Finds new processes, and shows those to `look` that may have become interesting: new and young ones every time, all others once
    /// a second, spread over the calls; of both, where only an exec is of interest, those that have run since.
    pub(super) fn look(
        &mut self,
        now_ns: i64,
        unfollowed: Unfollowed,
        followed: &BTreeSet<u32>,
        look: &mut dyn FnMut(&mut Look<'_>),
    ) {
        self.is_new = false;
        self.list_new(now_ns);
        if unfollowed == Unfollowed::None {
            return;
        }
        let passed = now_ns.saturating_sub(self.looked_ns).min(ROUND_NS);
        self.looked_ns = now_ns;
        // The slice of the round that has passed since the last call, by pid.
        let (from, to) = ((now_ns - passed).rem_euclid(ROUND_NS), now_ns.rem_euclid(ROUND_NS));
        let turn = |pid: u32| {
            let place = (i64::from(pid.wrapping_mul(2_654_435_761) >> 8) * ROUND_NS) >> 24;
            passed == ROUND_NS || if from <= to { (from..to).contains(&place) } else { place >= from || place < to }
        };
        let mut shown = Look { proc: &self.proc, pid: 0, buffer: std::mem::take(&mut self.buffer) };
        for (pid, known) in &mut self.known {
            let due = known.is_young(now_ns) || turn(*pid);
            if !due || known.inert || followed.contains(pid) {
                continue;
            }
            if unfollowed == Unfollowed::Execs {
                let clock_ns = known.clock.now_ns();
                if clock_ns.is_some() && clock_ns == known.shown_at {
                    continue;
                }
                known.shown_at = clock_ns;
            }
            shown.pid = *pid;
            look(&mut shown);
        }
        self.buffer = shown.buffer;
    }

    /// Lists everything at the next look, and now what is new.
    pub(super) fn refresh(&mut self) {
        let now_ns = self.listed_ns;
        self.last_pid = 0;
        self.list_new(now_ns);
    }

    fn list_new(&mut self, now_ns: i64) {
        let last_pid = self.read_last_pid();
        let round = if self.is_quiet && last_pid == self.listed_pid { QUIET_ROUND_NS } else { ROUND_NS };
        let full = now_ns.saturating_sub(self.listed_ns) >= round || last_pid.is_none_or(|last| last < self.last_pid);
        if !full && last_pid == Some(self.last_pid) {
            return;
        }
        let place = self.offset.filter(|_| !full).map_or(0, |offset| offset + self.last_pid);
        if let Some(last) = last_pid {
            self.last_pid = last;
        }
        let listed = self.list(place);
        if full {
            self.listed_ns = now_ns;
            self.is_quiet = last_pid.is_some() && last_pid == self.listed_pid;
            self.listed_pid = last_pid;
            let alive: BTreeSet<u32> = listed.iter().copied().collect();
            let before = self.known.len();
            self.known.retain(|pid, _| alive.contains(pid));
            self.generation += u64::from(self.known.len() != before);
        }
        for pid in listed {
            if !self.known.contains_key(&pid)
                && let Some(known) = self.read(pid)
            {
                self.known.insert(pid, Known { first_seen_ns: now_ns, ..known });
                self.generation += 1;
            }
        }
    }

    /// The last pid that the kernel gave out; nothing where that cannot be known.
    fn read_last_pid(&mut self) -> Option<u64> {
        let text = self.loadavg.as_ref()?.read_record(&mut self.buffer).ok()?;
        number(words(text).last()?)
    }

    /// Pids from a place of the listing on.
    fn list(&mut self, cookie: u64) -> Vec<u32> {
        let mut pids = Vec::new();
        if seek(&self.proc, SeekFrom::Start(cookie)).is_err() {
            return pids;
        }
        let room: &mut [MaybeUninit<u8>] = self.list.spare_capacity_mut();
        let mut entries = RawDir::new(&self.proc, room);
        // An entry holds the position of the next one; the last one holds that of the end.
        let mut place = None;
        while let Some(Ok(entry)) = entries.next() {
            let found = number(entry.file_name().to_bytes()).and_then(|pid| u32::try_from(pid).ok());
            let own_place = place.replace(entry.next_entry_cookie());
            let Some(pid) = found else { continue };
            if let Some(own_place) = own_place {
                self.offset = u64::checked_sub(own_place, u64::from(pid));
            }
            pids.push(pid);
        }
        pids
    }

    /// The facts about a process; nothing if there is none.
    pub(super) fn read(&self, pid: u32) -> Option<Known> {
        let mut buffer = Vec::new();
        let text = read_at(&self.proc, &format!("{pid}/stat"), &mut buffer).ok()?;
        let rest = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
        let mut fields = words(rest);
        let ended = matches!(fields.next()?, b"Z" | b"X");
        let parent = fields.next().and_then(number)?;
        let session = fields.nth(1).and_then(number)?;
        let start = fields.nth(15).and_then(number)?;
        let small = |value: u64| u32::try_from(value).unwrap_or(0);
        Some(Known {
            parent: small(parent),
            session: small(session),
            start,
            first_seen_ns: 0,
            inert: ended || pid == 2 || parent == 2,
            clock: CpuClock::of(self.own_pids.then_some(pid)),
            shown_at: None,
        })
    }

    /// A process and its ancestors.
    pub(super) fn ancestry(&self, pid: u32) -> BTreeSet<u32> {
        let mut all = BTreeSet::new();
        let mut next = pid;
        while next > 1 && all.insert(next) {
            next = self.read(next).map_or(0, |known| known.parent);
        }
        all
    }

    /// Processes that are not followed but children of such that are. With `orphans`, also processes that were handed over because their
    /// own parent died before anybody saw it: younger ones of a followed one's session whose parent is not of that session.
    pub(super) fn children_of(&self, followed: &BTreeSet<u32>, orphans: bool) -> Vec<u32> {
        if followed.is_empty() {
            return Vec::new();
        }
        let mut sessions: HashMap<u32, u64> = HashMap::new();
        if orphans {
            for known in followed.iter().filter_map(|pid| self.known.get(pid)) {
                let start = sessions.entry(known.session).or_insert(known.start);
                *start = (*start).min(known.start);
            }
        }
        let orphan = |known: &Known| {
            known.session != 0
                && sessions.get(&known.session).is_some_and(|start| known.start >= *start)
                && self.known.get(&known.parent).is_none_or(|parent| parent.session != known.session)
        };
        self.known
            .iter()
            .filter(|(pid, known)| {
                !known.inert && !followed.contains(pid) && (followed.contains(&known.parent) || orphan(known))
            })
            .map(|(pid, _)| *pid)
            .collect()
    }

    pub(super) fn forget(&mut self, pid: u32) {
        self.generation += u64::from(self.known.remove(&pid).is_some());
    }
}

/// A small file below `/proc`, as much of it as a buffer of some pages takes.
fn read_at<'b>(proc: &OwnedFd, name: &str, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
    let file = openat(proc.as_fd(), name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    if buffer.len() < 4096 {
        buffer.resize(4096, 0);
    }
    let got = rustix::io::read(&file, &mut buffer[..])?;
    Ok(&buffer[..got])
}
