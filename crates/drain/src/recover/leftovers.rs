//! One live directory: which of its images are dead, what of them is not in files yet, and the manifest of it all.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weftline_format::manifest::{ProcessRecord, State};
use weftline_recorder::clock::ClockKind;
use weftline_recorder::layout::{
    POOL_SLOTS, RECORDS_PER_SEGMENT, TAKEN_SHORT, options, pool_state, process_state, segment_clock, segment_state,
};

use super::{FinishedFile, RecoverOptions, RecoverReport, base_record};
use crate::arena::{Arena, ControlPage, SegmentAt, SegmentInfo};
use crate::budget::{Budget, lock};
use crate::drain::{BATCH_RECORDS, short_name};
use crate::encode::tail_of;
use crate::filter::Filter;
use crate::image::{Image, ImageKey, Numbers};
use crate::journal::{self, Journal};
use crate::live::{Pointer, Settings};
use crate::output::{Dropped, TraceFile};
use crate::procfs::{self, Host};
use crate::record::{self, LastLook};
use crate::timeline::Clock;
use crate::totals::{FileSums, SpanSums, merge_calls};
use crate::watch::{Watched, start_of};
use crate::worker::{Job, Shared, Workers};
use crate::written::{self, Members};
use crate::{DrainError, Result};

/// Anchors of segments are taken into the timeline at this distance.
const ANCHOR_DISTANCE: u64 = 1_000_000_000;
/// So many records, about ten milliseconds of work, are not worth a thread, and least of all in a program that is ending.
const WITHOUT_THREADS: u64 = 16 * RECORDS_PER_SEGMENT as u64;
/// A process that makes an arena has a slot in it long before this.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// A live directory being recovered.
pub(super) struct Leftovers<'r> {
    run: &'r Path,
    directory: &'r Path,
    pointer: &'r Pointer,
    control: &'r ControlPage,
    host: Host,
    same_boot: bool,
    settings: Settings,
    shared: Arc<Shared>,
    clock: Clock,
    arenas: BTreeMap<u64, Arc<Arena>>,
    /// Arenas in use that cannot be read, and records of unknown processes in the others.
    damaged: u64,
    ownerless: u64,
    /// Images that have their member in the file of short ones.
    in_short: HashSet<String>,
    /// What the journal knows, by tag.
    journaled: HashMap<String, ProcessRecord>,
    /// Processes that have not taken the slot yet that waits for them.
    to_come: Vec<u32>,
}

/// An image that records no more.
struct Ended {
    image: Arc<Image>,
    /// Its process is still there, and may be in the middle of a record.
    is_there: bool,
}

impl<'r> Leftovers<'r> {
    pub(super) fn new(
        run: &'r Path,
        directory: &'r Path,
        pointer: &'r Pointer,
        control: &'r ControlPage,
        host: &Host,
        same_boot: bool,
    ) -> Result<Leftovers<'r>> {
        let settings = Settings::read(directory)?;
        let short = short_name(&pointer.host, pointer.pid, pointer.start, pointer.session);
        remove_temporary(run, &short);
        let length = Members::of(&run.join(&short))?.length;
        let in_short = written::tags(&run.join(&short))?;
        let short_file = TraceFile { length, ..TraceFile::new(short) };
        let journal_path = directory.join("journal");
        let journaled = journal::read(&journal_path)?.into_iter().map(|entry| (entry.tag, entry.process)).collect();
        let shared = Arc::new(Shared {
            run: run.to_owned(),
            filter: Filter::new(&settings.patterns)?,
            budget: Budget::new(None),
            journal: Mutex::new(Journal::open(&journal_path)?),
            short: Arc::new(Mutex::new(short_file)),
            separate_files: settings.separate_files,
            files: Mutex::default(),
            messages: Mutex::default(),
        });
        // Files and identity lines speak of the boot that the processes ran in.
        let host = Host { boot: pointer.boot.clone(), ..host.clone() };
        let (arenas, damaged) = open_arenas(directory, control)?;
        let clock = resume_clock(directory, control, &arenas, same_boot);
        Ok(Leftovers {
            run,
            directory,
            pointer,
            control,
            host,
            same_boot,
            settings,
            shared,
            clock,
            arenas,
            damaged,
            ownerless: 0,
            in_short,
            journaled,
            to_come: Vec::new(),
        })
    }

    /// Encodes all images that record no more; those that still do.
    pub(super) fn drain(&mut self, given: &RecoverOptions, report: &mut RecoverReport) -> Result<Vec<Arc<Image>>> {
        let now = Instant::now();
        let (mut ended, mut running, mut to_come) = (Vec::new(), Vec::new(), Vec::new());
        for arena in self.arenas.values() {
            for slot in 0..arena.slots_used() {
                match arena.slot_state(slot) {
                    process_state::FREE => {}
                    process_state::CLAIMED => to_come.extend(self.child_to_come(arena, slot)),
                    state => {
                        let start = self.same_boot.then(|| start_of(arena, slot, &self.host)).flatten();
                        let (timeline, arguments) = (self.clock.timeline(), self.settings.arguments);
                        let image = Arc::new(Image::read(arena, slot, &self.host, &timeline, start, arguments));
                        let mut watched = Watched::new(Arc::clone(&image), now);
                        let pid = watched.pid(&self.host).unwrap_or(0);
                        let believed = given.believe_ended
                            && state == process_state::ENDED
                            && [self.host.pid, parent_id()].contains(&pid);
                        let is_there = self.same_boot
                            && (if believed { runs(pid) } else { watched.is_alive(&self.host, self.directory, true) });
                        if is_there && !believed { running.push(image) } else { ended.push(Ended { image, is_there }) }
                    }
                }
            }
        }
        self.to_come = to_come;
        let still: Vec<ImageKey> = running.iter().map(|image: &Arc<Image>| image.key).collect();
        self.drain_ended(&ended, &still, given.workers, report)?;
        drop(ended);
        self.remove_empty(&running);
        Ok(running)
    }

    /// The child that a slot is reserved for, or as long as nobody knows it the process that is making one. Frees the slot when
    /// nobody will come.
    fn child_to_come(&self, arena: &Arena, slot: u32) -> Option<u32> {
        let awaited = || {
            let (claimer, child) = (arena.slot_info(slot).birth.ppid, arena.pid_outside(slot));
            let pid = if child == 0 { claimer } else { child };
            (self.same_boot && runs(pid)).then_some(pid)
        };
        let found = awaited().or_else(|| {
            // A process takes a slot first and stores its owner a little later.
            weftline_recorder::sys::nap(1_000_000);
            awaited()
        });
        if found.is_none() && arena.slot_state(slot) == process_state::CLAIMED {
            arena.free_slot(slot);
        }
        found
    }

    fn drain_ended(
        &mut self,
        ended: &[Ended],
        running: &[ImageKey],
        workers: Option<usize>,
        report: &mut RecoverReport,
    ) -> Result<()> {
        let mut segments: HashMap<ImageKey, Vec<(SegmentAt, SegmentInfo)>> = HashMap::new();
        for arena in self.arenas.values() {
            for at in arena.used_segments() {
                if let Some(info) = arena.segment_info(at).filter(|info| info.state != segment_state::FREE) {
                    let key = ImageKey { arena: arena.number(), slot: info.slot, generation: info.generation };
                    segments.entry(key).or_default().push((at, info));
                }
            }
        }
        // Where processes still run, a child may have come that was not seen yet.
        let quiet = |number: u64| self.to_come.is_empty() && running.iter().all(|key| key.arena != number);
        for arena in self.arenas.values().filter(|arena| quiet(arena.number())) {
            let is_ended = |slot, generation| {
                ended.iter().any(|e| e.image.key == ImageKey { arena: arena.number(), slot, generation })
            };
            self.ownerless += arena.ownerless(is_ended);
        }
        // Marks of members that never came into being must all be gone before the first new member is written: it may get
        // one of their numbers.
        let mut work = 0;
        for Ended { image, .. } in ended {
            let mine = segments.entry(image.key).or_default();
            self.sort_out(image, mine)?;
            work += mine.iter().map(|(_, info)| u64::from(info.taken)).sum::<u64>();
        }
        let workers = workers.or((work <= WITHOUT_THREADS).then_some(0));
        let mut workers = Workers::new(Arc::clone(&self.shared), workers);
        let events = || ended.iter().map(|ended| lock(&ended.image.totals).events).sum::<u64>();
        let before = events();
        let mut last_jobs = Vec::new();
        for Ended { image, is_there } in ended {
            let mut mine = segments.remove(&image.key).unwrap_or_default();
            if let Some(process) = self.journaled.get(&image.tag).filter(|_| mine.is_empty()) {
                // The process that finished it was killed before it could record that.
                report.files.extend(self.finished(process));
                image.arena.free_slot(image.key.slot);
                continue;
            }
            mine.sort_by_key(|(_, info)| info.sequence);
            let mut tails = HashMap::new();
            let new_job = || self.job(image, !is_there);
            let mut job = new_job();
            let (mut records, mut left) = (0, mine.iter().map(|(_, info)| info.taken).sum::<u32>());
            for (at, info) in &mine {
                let tail = tail_of(&image.arena, *at, info.taken);
                job.segments.push((*at, tails.insert(info.tid, tail).unwrap_or_default()));
                records += info.taken;
                left -= info.taken;
                if records >= BATCH_RECORDS && left > 0 {
                    workers.submit(std::mem::replace(&mut job, new_job()), false);
                    records = 0;
                }
            }
            last_jobs.push(job);
        }
        workers.wait();
        // An image's last job closes it, so all others must be done.
        for mut job in last_jobs {
            let timeline = job.timeline.clone();
            job.last = Some(LastLook { sampled: None, seen_alive: None, timeline, alive: false });
            workers.submit(job, false);
        }
        workers.wait();
        for done in workers.take_done() {
            if done.stopped {
                return Err(DrainError::Stopped);
            }
            report.images += u64::from(done.entry.is_some());
            report.files.extend(done.entry.as_ref().and_then(|entry| self.finished(&entry.process)));
            for entry in done.untraced {
                lock(&self.shared.journal).append(&entry)?;
            }
        }
        report.events += events() - before;
        Ok(())
    }

    fn job(&self, image: &Arc<Image>, dead: bool) -> Job {
        Job { image: Arc::clone(image), segments: Vec::new(), timeline: self.clock.timeline(), dead, last: None }
    }

    fn finished(&self, process: &ProcessRecord) -> Option<FinishedFile> {
        (!process.file.is_empty()).then(|| FinishedFile {
            pid: process.pid,
            path: self.run.join(&process.file),
            exe: process.exe.clone(),
            command: process.command.clone(),
            rank: process.rank,
            started_ns: process.started_ns,
            events: process.events,
            note: self.settings.note.clone(),
            last: false,
        })
    }

    /// Tells segments that are in a file from those that are not, and sums up what is written of the image.
    fn sort_out(&self, image: &Image, segments: &mut Vec<(SegmentAt, SegmentInfo)>) -> Result<()> {
        let name = lock(&image.file).name.clone();
        remove_temporary(self.run, &name);
        let members = Members::of(&self.run.join(&name))?;
        let in_short = self.in_short.contains(&image.tag);
        segments.retain(|(at, info)| {
            let (short, number) = (info.taken_by & TAKEN_SHORT != 0, info.taken_by & !TAKEN_SHORT);
            let is_written = number > 0 && if short { in_short } else { members.sequences.contains(&(number - 1)) };
            if is_written {
                image.arena.release(*at);
            } else {
                image.arena.set_taken_by(*at, 0);
            }
            !is_written
        });
        *lock(&image.numbers) = Numbers::beside(&members.sequences);
        let mut file = lock(&image.file);
        file.length = members.length;
        file.dropped = written::dropped(&self.run.join(&name));
        if in_short {
            file.name.clone_from(&lock(&self.shared.short).name);
        }
        if in_short || members.length > 0 {
            *lock(&image.totals) = written::totals(&self.run.join(&file.name), &image.tag)?;
        }
        Ok(())
    }

    /// Removes arenas that no living process uses.
    fn remove_empty(&mut self, running: &[Arc<Image>]) {
        let in_use: HashSet<u64> = running.iter().map(|image| image.key.arena).collect();
        let control = self.control.get();
        for (number, arena) in std::mem::take(&mut self.arenas) {
            let reserved = (0..arena.slots_used()).any(|slot| arena.slot_state(slot) != process_state::FREE);
            let word =
                control.pool.get(number as usize).map_or(pool_state::CLAIMED, |word| word.load(Ordering::Acquire));
            let ready = word < pool_state::CLAIMED;
            let young = self.is_young(number, &arena);
            if in_use.contains(&number) || reserved || ready || young || self.is_starting(word, &arena) {
                continue;
            }
            if let Ok(arena) = Arc::try_unwrap(arena) {
                // In this order: an arena that is claimed and not there counts as lost.
                if let Some(word) = control.pool.get(number as usize).filter(|_| (number as usize) < POOL_SLOTS) {
                    word.store(pool_state::ABSENT, Ordering::Release);
                }
                arena.remove();
            }
        }
    }

    /// Whether the process that claimed an arena lives and has no slot yet.
    fn is_starting(&self, word: u64, arena: &Arena) -> bool {
        let pid = u32::try_from(word.wrapping_sub(pool_state::CLAIMED)).unwrap_or(0);
        self.same_boot
            && pid != 0
            && arena.header().generations.load(Ordering::Acquire) == 0
            && procfs::stat(pid).is_some_and(|stat| stat.runs())
    }

    /// Whether an arena that a process made itself may be getting its first slot at this moment.
    fn is_young(&self, number: u64, arena: &Arena) -> bool {
        let unused = number >= POOL_SLOTS as u64 && arena.header().generations.load(Ordering::Acquire) == 0;
        self.same_boot && unused && self.made_just_now(number)
    }

    fn made_just_now(&self, number: u64) -> bool {
        let made = std::fs::metadata(Arena::path(self.directory, number)).and_then(|data| data.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < START_PATIENCE))
    }

    /// Processes that are on their way: forked, or with an arena that they claimed or made just now, or about to start their recorder.
    pub(super) fn starting(&self, given: &RecoverOptions) -> Vec<u32> {
        let mut pids = self.to_come.clone();
        let control = self.control.get();
        let words = control.pool.iter().map(|word| word.load(Ordering::Acquire));
        let claimed = words.enumerate().filter(|(_, word)| *word > pool_state::CLAIMED);
        pids.extend(
            claimed
                .filter(|(number, word)| {
                    let arena = Arena::open(self.directory, *number as u64).ok().flatten();
                    arena.is_some_and(|arena| self.is_starting(*word, &arena))
                })
                .map(|(_, word)| (word - pool_state::CLAIMED) as u32),
        );
        if !self.same_boot {
            return pids;
        }
        let own = control.own_arenas.load(Ordering::Acquire);
        let young = |number: &u64| match Arena::open(self.directory, *number) {
            Ok(Some(arena)) => self.is_young(*number, &arena),
            // Its first word is not written yet; one that is gone was done with.
            Ok(None) => self.made_just_now(*number),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound && self.made_just_now(*number),
        };
        // Their number is what programs wrote; the directory has those that there are.
        let young = Arena::own_numbers(self.directory).into_iter().filter(young).count();
        // Who makes an arena is not known before it has a slot there: the directory's maker stands for it.
        pids.extend(std::iter::repeat_n(self.pointer.pid, young));
        let unsupervised = control.options & options::UNSUPERVISED != 0;
        let own_word = given.believe_ended && self.pointer.pid == self.host.pid;
        if unsupervised && own == 0 && !own_word && self.maker_lives() {
            pids.push(self.pointer.pid);
        }
        pids
    }

    /// Whether the process that made the directory is there.
    fn maker_lives(&self) -> bool {
        self.pointer.pidns == self.host.pid_namespace
            && procfs::stat(self.pointer.pid).is_some_and(|stat| stat.runs() && stat.start == self.pointer.start)
    }

    /// Writes the manifest from the journal and what the supervisor wrote before.
    pub(super) fn record(&self, running: &[Arc<Image>], starting: &[u32], report: &mut RecoverReport) -> Result<()> {
        let mut record = base_record(self.run, self.pointer)?;
        record.note.clone_from(&self.settings.note);
        let mut entries = journal::read(&self.directory.join("journal"))?;
        let losses: Vec<u64> = self.control.get().losses.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        entries.extend(record::without_owner(&self.host.name, &losses, self.ownerless, self.damaged));
        entries.extend(record::refused(&self.host.name, self.control.get(), &self.clock.timeline()));
        for image in running {
            let path = self.run.join(&lock(&image.file).name);
            if path.exists() {
                *lock(&image.totals) = written::totals(&path, &image.tag)?;
            }
            let last = LastLook { sampled: None, seen_alive: None, timeline: self.clock.timeline(), alive: true };
            entries.push(record::entry(image, &last));
        }
        let mut dropped = Dropped::default();
        let files: HashSet<&String> =
            entries.iter().map(|entry| &entry.process.file).filter(|name| !name.is_empty()).collect();
        for name in files {
            dropped.merge(&written::dropped(&self.run.join(name)));
        }
        // The sums over all files went with the supervisor; each image's own top list is left.
        let (mut calls, mut sums, mut spans) = (Vec::new(), FileSums::default(), SpanSums::default());
        for entry in &entries {
            merge_calls(&mut calls, &entry.calls);
            spans.merge_totals(&entry.spans);
            entry.files.iter().for_each(|total| sums.merge_total(total));
        }
        record::fill(&mut record, &entries, calls, &sums, &spans);
        record.dropped_members = record.dropped_members.max(dropped.members);
        record.dropped_events = record.dropped_events.max(dropped.events);
        record.state = if running.is_empty() && starting.is_empty() { State::Complete } else { State::Open };
        let latest = entries.iter().map(|entry| entry.process.ended_ns).max().unwrap_or(0);
        record.ended_ns = record.ended_ns.max(latest);
        record.write(self.run)?;
        report.messages.append(&mut lock(&self.shared.messages).take());
        Ok(())
    }
}

fn runs(pid: u32) -> bool {
    pid != 0 && procfs::stat(pid).is_some_and(|stat| stat.runs())
}

/// A rewrite that was not finished.
fn remove_temporary(run: &Path, name: &str) {
    // Usually there is none.
    let _ = std::fs::remove_file(run.join(format!(".{name}.tmp")));
}

/// All arenas of a live directory that processes have used, and how many of them cannot be read.
fn open_arenas(directory: &Path, control: &ControlPage) -> Result<(BTreeMap<u64, Arc<Arena>>, u64)> {
    let (mut arenas, mut damaged) = (BTreeMap::new(), 0);
    let is_claimed = |word: &AtomicU64| word.load(Ordering::Acquire) >= pool_state::CLAIMED;
    for number in Arena::numbers(directory).map_err(|error| DrainError::io(directory, error))? {
        // One that a process made itself and that cannot be mapped was cut short while it was made: nothing was recorded in it.
        if let Ok(Some(arena)) = Arena::open(directory, number) {
            arenas.insert(number, Arc::new(arena));
        }
    }
    // One of the pool was whole when it was claimed, and is removed only when its word says so.
    for (number, _) in control.get().pool.iter().enumerate().filter(|(_, word)| is_claimed(word)) {
        damaged += u64::from(!arenas.contains_key(&(number as u64)));
    }
    Ok((arenas, damaged))
}

/// The clock of the earlier supervisor, led on by the anchors in segments and, in the same boot, by a reading of our own.
fn resume_clock(directory: &Path, control: &ControlPage, arenas: &BTreeMap<u64, Arc<Arena>>, same_boot: bool) -> Clock {
    let kind = if control.get().clock == ClockKind::Tsc as u32 { ClockKind::Tsc } else { ClockKind::Monotonic };
    let births = arenas.values().flat_map(|arena| {
        let used = (0..arena.slots_used()).filter(|slot| arena.slot_state(*slot) > process_state::CLAIMED);
        // A process that could not read the counter has no ticks.
        let counted = used.map(|slot| arena.slot_info(slot)).filter(|info| info.born_ticks != 0);
        counted.map(|info| (info.born_ticks, info.born_mono, info.born_real))
    });
    let birth = births.min().unwrap_or((0, 0, 0));
    let mut clock = Clock::resume(&directory.join("clock"), kind, birth);
    if !same_boot {
        clock.assume_rate();
    }
    let mut anchors: Vec<(u64, u64)> = arenas
        .values()
        .flat_map(|arena| arena.used_segments().into_iter().filter_map(|at| arena.segment_info(at)))
        .filter(|info| info.state != segment_state::FREE && info.clock == segment_clock::SHARED)
        .map(|info| (info.anchor_ticks, info.anchor_mono))
        .collect();
    anchors.sort_unstable();
    for anchor in anchors {
        if anchor.1 >= clock.newest().1 + ANCHOR_DISTANCE {
            clock.add(anchor);
        }
    }
    if same_boot {
        clock.now();
    }
    clock
}
