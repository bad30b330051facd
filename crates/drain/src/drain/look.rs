//! One poll of the arenas and processes: new images, closed segments, ended processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weftline_recorder::handover;
use weftline_recorder::layout::{pool_state, process_state, segment_state};

use super::{BATCH_RECORDS, Drain, Untraced};
use crate::arena::{Arena, SegmentAt};
use crate::budget::lock;
use crate::encode::tail_of;
use crate::image::{Image, ImageKey};
use crate::journal::Entry;
use crate::procfs;
use crate::record::LastLook;
use crate::totals::merge_calls;
use crate::watch::{Watched, is_process, start_of};
use crate::worker::{Done, Job};

/// Segments that wait at most for company.
const BATCH_SEGMENTS: usize = 8;
/// With so few free segments an arena is short of them: what is closed is encoded at once.
const SHORT_OF_SEGMENTS: u32 = 4;
/// With so few an arena that has its first segments only gets the others.
const FEW_SEGMENTS: u32 = 5;
/// Jobs with fewer records are done by the poller itself.
const SMALL_JOB: u32 = 1024;
/// Between two looks for threads that ended without a word, in an arena that is short of segments.
const THREAD_LOOK: Duration = Duration::from_millis(20);
/// A slot reserved by a fork whose parent died: so long the child has to come.
const CHILD_PATIENCE: Duration = Duration::from_secs(1);
/// An arena claimed by a process that died before it had a slot.
const CLAIM_PATIENCE: Duration = Duration::from_secs(10);
/// Threads of an image, and processes, that are remembered for what comes after them.
const MOST_TAILS: usize = 4096;
/// Ended images that are listed one by one, and bytes of their names and command lines.
const MOST_ENTRIES: usize = 1 << 20;
const MOST_TEXT: usize = 256 << 20;
const MOST_STARTS: usize = 100_000;

impl Drain {
    /// Finds slots that came into use.
    pub(super) fn find_images(&mut self, arena: &Arc<Arena>, now: Instant) -> bool {
        let known = self.known.entry(arena.number()).or_default();
        known.since.get_or_insert(now);
        let generations = arena.header().generations.load(Ordering::Acquire);
        let mut found = false;
        if generations != known.generations {
            known.generations = generations;
            known.reserved.clear();
            known.reserved.extend((0..arena.slots_used()).filter_map(|slot| {
                let is_new = match arena.slot_state(slot) {
                    process_state::FREE => false,
                    // Its generation may still be that of the image before.
                    process_state::CLAIMED => true,
                    _ => {
                        let generation = arena.slot_info(slot).generation;
                        !self.watched.contains_key(&ImageKey { arena: arena.number(), slot, generation })
                    }
                };
                is_new.then_some((slot, now))
            }));
        }
        let mut reserved = std::mem::take(&mut known.reserved);
        reserved.retain(|(slot, since)| match arena.slot_state(*slot) {
            process_state::FREE => false,
            process_state::CLAIMED => self.child_may_come(arena, *slot, now.duration_since(*since)),
            _ => {
                found = true;
                self.add_image(arena, *slot, now);
                false
            }
        });
        if let Some(known) = self.known.get_mut(&arena.number()) {
            known.reserved = reserved;
        }
        found
    }

    /// Whether a slot that is only reserved may still be taken; frees it if not.
    fn child_may_come(&self, arena: &Arena, slot: u32, waited: Duration) -> bool {
        let (claimer, child) = (arena.slot_info(slot).birth.ppid, arena.pid_outside(slot));
        let may_come =
            waited < CHILD_PATIENCE || [claimer, child].iter().any(|pid| *pid != 0 && procfs::stat(*pid).is_some());
        if !may_come {
            arena.free_slot(slot);
        }
        may_come
    }

    fn add_image(&mut self, arena: &Arc<Arena>, slot: u32, now: Instant) {
        let generation = arena.slot_info(slot).generation;
        // A program that moves its slot to and fro stays what it is: jobs for it may be under way.
        if self.watched.contains_key(&ImageKey { arena: arena.number(), slot, generation }) {
            return;
        }
        let timeline = self.live.clock.timeline();
        let host = &self.live.host;
        let info = arena.slot_info(slot);
        let process = (info.birth.pid, info.birth.pid_namespace);
        // An image that was gone before we looked has the start of the one before its exec, if we saw that.
        let earlier = self.starts.get(&process).copied().filter(|_| info.birth.parent_slot == 0);
        let start = start_of(arena, slot, host).or(earlier);
        let image = Arc::new(Image::read(arena, slot, host, &timeline, start, self.live.arguments));
        if self.starts.len() >= MOST_STARTS {
            self.starts.clear();
        }
        self.starts.insert(process, image.identity.start);
        for older in self.watched.values_mut().filter(|older| older.is_replaced_by(&image)) {
            older.dead = true;
        }
        self.watched.insert(image.key, Watched::new(image, now));
    }

    /// Finds segments that were closed, and gives them out when there are enough.
    pub(super) fn find_closed(&mut self, arena: &Arc<Arena>, now: Instant) -> bool {
        let known = self.known.entry(arena.number()).or_default();
        let mut any = false;
        for (piece, _) in arena.segment_pieces() {
            let mut bits = handover::closed(&arena.header().pieces[piece].closed);
            while bits != 0 {
                let at = SegmentAt { piece: piece as u16, index: bits.trailing_zeros() as u8 };
                bits &= bits - 1;
                let taken = known.taken(at);
                if *taken >> at.index & 1 == 0
                    && let Some(info) = arena.segment_info(at)
                    && let Some(watched) = self.watched.get_mut(&ImageKey {
                        arena: arena.number(),
                        slot: info.slot,
                        generation: info.generation,
                    })
                {
                    *taken |= 1 << at.index;
                    watched.waiting.push(at);
                    watched.waiting_records += info.taken;
                    any = true;
                }
            }
        }
        if arena.free_segments() <= FEW_SEGMENTS
            && let Err(error) = arena.complete()
        {
            // A process grows its arena by itself where it can; where not, it says what it lost.
            lock(&self.shared.messages).tell("room", || format!("an arena cannot grow: {error}"));
        }
        let short = arena.free_segments() <= SHORT_OF_SEGMENTS;
        if short {
            self.take_from_ended_threads(arena, now);
        }
        let ready: Vec<ImageKey> = self
            .watched
            .range(ImageKey::all_of(arena.number()))
            .filter(|(_, watched)| is_worth_it(watched, short))
            .map(|(key, _)| *key)
            .collect();
        for key in ready {
            while self.watched.get(&key).is_some_and(|watched| is_worth_it(watched, short)) {
                self.give_out(key, false);
            }
        }
        any
    }

    /// Takes the segments of threads that ended without a word (killed by the kernel, or by a raw system call).
    fn take_from_ended_threads(&mut self, arena: &Arc<Arena>, now: Instant) {
        let known = self.known.entry(arena.number()).or_default();
        if known.next_thread_look.is_some_and(|due| now < due) {
            return;
        }
        known.next_thread_look = Some(now + THREAD_LOOK);
        for at in arena.used_segments() {
            let taken = known.taken(at);
            let Some(info) = arena.segment_info(at) else { continue };
            let key = ImageKey { arena: arena.number(), slot: info.slot, generation: info.generation };
            if *taken >> at.index & 1 == 0
                && info.state == segment_state::ACTIVE
                && let Some(watched) = self.watched.get_mut(&key)
                && watched.has_lost_thread(&self.live.host, info.tid)
            {
                *taken |= 1 << at.index;
                watched.waiting.push(at);
                watched.waiting_records += info.taken;
            }
        }
    }

    /// Gives a batch of an image's waiting segments to the workers. `last`: all of them, and the image is finished.
    fn give_out(&mut self, key: ImageKey, last: bool) {
        let Some(watched) = self.watched.get_mut(&key) else { return };
        let arena = &watched.image.arena;
        let sequence = |at: &SegmentAt| arena.segment_info(*at).map_or(0, |info| info.sequence);
        watched.waiting.sort_by_key(sequence);
        let (mut records, mut segments) = (0, Vec::new());
        while !watched.waiting.is_empty() && (last || records < BATCH_RECORDS) {
            let at = watched.waiting.remove(0);
            let Some(info) = arena.segment_info(at) else { continue };
            records += info.taken;
            let before = watched.tails.remove(&info.tid).unwrap_or_default();
            if watched.tails.len() >= MOST_TAILS {
                watched.tails.clear();
            }
            watched.tails.insert(info.tid, tail_of(arena, at, info.taken));
            segments.push((at, before));
        }
        watched.waiting_records = watched.waiting_records.saturating_sub(records);
        watched.open_jobs += 1;
        watched.closing = last;
        let timeline = self.live.clock.now();
        let last = last.then(|| LastLook {
            sampled: watched.sampled,
            seen_alive: watched.seen_alive,
            timeline: timeline.clone(),
            alive: false,
        });
        let small = last.is_some() && records < SMALL_JOB;
        self.workers
            .submit(Job { image: Arc::clone(&watched.image), segments, timeline, dead: watched.dead, last }, small);
    }

    /// Looks who died, and finishes what can be finished.
    pub(super) fn look_at_processes(&mut self, now: Instant) -> bool {
        let mut dead = Vec::new();
        for (key, watched) in &mut self.watched {
            watched.look(&self.live.host, &self.live.directory, now);
            watched.sample(&self.live.host, now);
            if watched.dead && !watched.closing {
                dead.push(*key);
            }
        }
        for key in &dead {
            self.retire(*key);
        }
        self.look_at_untraced(now);
        !dead.is_empty()
    }

    /// Gives out what is left of a dead image.
    fn retire(&mut self, key: ImageKey) {
        let Some(watched) = self.watched.get_mut(&key) else { return };
        let arena = Arc::clone(&watched.image.arena);
        let known = self.known.entry(key.arena).or_default();
        // A worker frees segments before its job is settled here. One of those may have been taken by this image and still counts as
        // taken on behalf of another: its records are out of reach until that job is settled, at the next look.
        let mut out_of_reach = false;
        for at in arena.used_segments() {
            let Some(info) = arena.segment_info(at) else { continue };
            if (info.slot, info.generation) != (key.slot, key.generation) || info.state == segment_state::FREE {
                continue;
            }
            let taken = known.taken(at);
            if *taken >> at.index & 1 == 0 {
                *taken |= 1 << at.index;
                watched.waiting.push(at);
                watched.waiting_records += info.taken;
            } else if !watched.waiting.contains(&at) {
                out_of_reach = true;
            }
        }
        drop(arena);
        while self.watched.get(&key).is_some_and(|watched| watched.waiting_records > BATCH_RECORDS) {
            self.give_out(key, false);
        }
        // Where no job is under way nothing will come into reach any more: the program has written over the heads of its segments, and two images
        // would wait for each other for ever.
        out_of_reach &= self.watched.values().any(|watched| watched.open_jobs > 0);
        if !out_of_reach && self.watched.get(&key).is_some_and(|watched| watched.open_jobs == 0) {
            self.give_out(key, true);
        }
    }

    fn look_at_untraced(&mut self, now: Instant) {
        let mut index = 0;
        while index < self.untraced.len() {
            let process = &mut self.untraced[index];
            if now >= process.next_sample {
                process.next_sample = now + Duration::from_millis(250);
                let sampled = procfs::io(process.pid).and_then(procfs::counted);
                if let Some(end) = sampled {
                    // A child that was not there before starts from nothing.
                    process.entry.process.io.get_or_insert_default().end = end;
                }
                if !is_process(process.pid, process.born_boot, &self.live.host) {
                    let ended = self.untraced.swap_remove(index);
                    self.add_entry(ended.entry);
                    continue;
                }
            }
            index += 1;
        }
    }

    fn add_entry(&mut self, entry: Entry) {
        self.note_in_journal(&entry);
        self.keep(entry);
    }

    /// Keeps what is known of an image that ended. A program can write new images into its arena faster than anybody can start programs: beyond
    /// some number they are summed up in one.
    fn keep(&mut self, mut entry: Entry) {
        let text = entry.process.exe.len() + entry.process.command.iter().map(|word| word.len() + 24).sum::<usize>();
        self.entries_text += text;
        if self.entries_text > MOST_TEXT {
            entry.process.command = Vec::new();
            entry.process.exe = String::new();
        }
        let kept = self.entries.len();
        match self.entries.last_mut() {
            Some(last) if kept >= MOST_ENTRIES => {
                last.process.events += entry.process.events;
                last.filtered += entry.filtered;
                for (reason, count) in entry.process.drops {
                    *last.process.drops.entry(reason).or_default() += count;
                }
            }
            _ => self.entries.push(entry),
        }
    }

    fn note_in_journal(&self, entry: &Entry) {
        if let Err(error) = lock(&self.shared.journal).append(entry) {
            lock(&self.shared.messages).tell("journal", || error.to_string());
        }
    }

    /// Takes note of a job that is done.
    pub(super) fn settle(&mut self, done: Done, now: Instant) {
        self.stopped |= done.stopped;
        if let Some(known) = self.known.get_mut(&done.key.arena) {
            for at in &done.segments {
                *known.taken(*at) &= !(1 << at.index);
            }
        }
        let Some(watched) = self.watched.get_mut(&done.key) else { return };
        watched.open_jobs = watched.open_jobs.saturating_sub(1);
        let Some(mut entry) = done.entry else { return };
        // There may be very many images: of each only what cannot be summed up is kept.
        merge_calls(&mut self.calls, &std::mem::take(&mut entry.calls));
        self.spans.merge_totals(&std::mem::take(&mut entry.spans));
        entry.files = Vec::new();
        let own =
            (watched.image.info.birth.pid, watched.pid(&self.live.host).unwrap_or(0), watched.image.info.born_boot);
        let arena = Arc::clone(&watched.image.arena);
        self.watched.remove(&done.key);
        self.keep(entry);
        for entry in done.untraced {
            // Once now, in case nobody is here when it ends; the later line counts.
            self.note_in_journal(&entry);
            // What the image became is seen under the image's pid; a child under its own, if it is in our namespace.
            let (pid, born_boot) = match entry.process.pid {
                pid if pid == own.0 => (own.1, own.2),
                pid => (pid, u64::MAX / 2),
            };
            match arena.may_tell_of(pid) {
                true => self.untraced.push(Untraced { entry, pid, born_boot, next_sample: now }),
                false => self.keep(entry),
            }
        }
    }

    /// Gives an arena back when all its processes are gone.
    pub(super) fn retire_if_done(&mut self, number: u64, now: Instant) {
        let in_use = self.watched.range(ImageKey::all_of(number)).next().is_some();
        let Some(known) = self.known.get(&number).filter(|known| !in_use && known.reserved.is_empty()) else { return };
        let Some(arena) = self.pool.get(number) else { return };
        if arena.header().generations.load(Ordering::Acquire) != known.generations {
            return;
        }
        if known.generations == 0 {
            let waited = known.since.map_or(Duration::ZERO, |since| now.duration_since(since));
            if waited < CLAIM_PATIENCE || self.claimer_lives(number) {
                return;
            }
        }
        let ownerless = arena.ownerless(|_, _| false);
        if self.pool.retire(self.live.control.get(), number) {
            self.ownerless += ownerless;
            self.known.remove(&number);
        }
    }

    pub(super) fn claimer_lives(&self, number: u64) -> bool {
        let word = self.live.control.get().pool.get(number as usize).map_or(0, |word| word.load(Ordering::Acquire));
        let pid = word.wrapping_sub(pool_state::CLAIMED);
        word > pool_state::CLAIMED && u32::try_from(pid).is_ok_and(|pid| procfs::stat(pid).is_some())
    }
}

fn is_worth_it(watched: &Watched, short_of_segments: bool) -> bool {
    !watched.closing
        && !watched.waiting.is_empty()
        && (watched.waiting_records >= BATCH_RECORDS || watched.waiting.len() >= BATCH_SEGMENTS || short_of_segments)
}

#[cfg(test)]
mod tests;
