//! Leftovers to trace files: of a supervisor that was killed, of processes that outlived theirs, of programs that never
//! had one.
//!
//! Each live directory that a run points at is locked, its dead images are encoded like a supervisor would have done it,
//! and when nothing is left the manifest is written and the directory removed. Recovery may be killed anywhere and run
//! any number of times: see the crate's own words on what makes it exactly once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use weftline_format::manifest::{State, SupervisorRecord};
use weftline_recorder::clock::Kind;
use weftline_recorder::layout::{POOL_SLOTS, TAKEN_SHORT, pool_state, process_state, segment_state};

use crate::arena::{Arena, ControlPage, SegmentAt, SegmentFacts};
use crate::budget::{Budget, lock};
use crate::drain::{BATCH_RECORDS, short_name};
use crate::encode::tail_of;
use crate::filter::Filter;
use crate::image::{Image, ImageKey, Numbers};
use crate::journal::{self, Journal};
use crate::live::{self, Pointer, Settings};
use crate::output::{Dropped, TraceFile};
use crate::procfs::{self, Host};
use crate::record::{self, LastLook};
use crate::stop::{self, Stop};
use crate::timeline::Clock;
use crate::totals::{FileSums, merge_calls};
use crate::watch::{Watched, start_of};
use crate::worker::{Job, Shared, Workers};
use crate::written::{self, Members};
use crate::{DrainError, Result};

/// Inode of the first pid namespace, from which all processes are seen.
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;
/// Anchors of segments are taken into the timeline at this distance.
const ANCHOR_DISTANCE: u64 = 1_000_000_000;

/// What a recovery should do.
#[derive(Clone, Debug, Default)]
pub struct RecoverOptions {
    /// Only tell what is open; change nothing.
    pub dry_run: bool,
    /// Take processes that cannot be seen from this pid namespace for dead: for the leftovers of a container that is gone.
    pub force: bool,
    /// Worker threads at most; by default the number of processors, up to four.
    pub workers: Option<usize>,
}

/// Why a live directory was left alone, wholly or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyOpen {
    /// Its supervisor is at work, or another recovery.
    Locked,
    /// These processes still record.
    Running {
        /// Their pids, as they see themselves.
        pids: Vec<u32>,
    },
    /// It is on another host.
    OtherHost {
        /// Its name.
        host: String,
    },
    /// Its processes cannot be seen from this pid namespace.
    OtherNamespace,
    /// It was made by another version of this program.
    OtherVersion,
    /// It would have been recovered.
    NotYet,
}

impl fmt::Display for WhyOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyOpen::Locked => write!(f, "still running"),
            WhyOpen::Running { pids } => {
                write!(f, "still running: pid")?;
                pids.iter().try_for_each(|pid| write!(f, " {pid}"))
            }
            WhyOpen::OtherHost { host } => write!(f, "open on host {host}"),
            WhyOpen::OtherNamespace => write!(f, "open in another pid namespace"),
            WhyOpen::OtherVersion => write!(f, "made by another version of weft"),
            WhyOpen::NotYet => write!(f, "not recovered yet"),
        }
    }
}

/// A live directory that is still needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOpen {
    /// The directory.
    pub directory: PathBuf,
    /// Why it was left.
    pub why: WhyOpen,
}

/// What a recovery did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoverReport {
    /// Events that it brought into files.
    pub events: u64,
    /// Process images that it finished.
    pub images: u64,
    /// Live directories of which everything is in files now.
    pub completed: Vec<PathBuf>,
    /// Live directories that are still needed.
    pub open: Vec<LeftOpen>,
    /// Live directories that were gone before anyone recovered them.
    pub gone: Vec<PathBuf>,
    /// Things the user should hear.
    pub messages: Vec<String>,
}

impl RecoverReport {
    /// Whether anything was done.
    pub fn did_something(&self) -> bool {
        self.events > 0 || self.images > 0 || !self.completed.is_empty() || !self.gone.is_empty()
    }
}

/// Turns what the live directories of a run still hold into trace files.
pub fn recover(run: &Path, options: &RecoverOptions) -> Result<RecoverReport> {
    let host = Host::here();
    let mut report = RecoverReport::default();
    for (pointer_path, pointer) in Pointer::read_all(run)? {
        let directory = pointer.directory();
        let leave = |report: &mut RecoverReport, why| report.open.push(LeftOpen { directory: directory.clone(), why });
        if pointer.host != host.name {
            let other = pointer.host.clone();
            leave(&mut report, WhyOpen::OtherHost { host: other });
            continue;
        }
        if !directory.exists() {
            if !options.dry_run {
                bury_directory(run, &pointer_path, &pointer, &mut report)?;
            }
            continue;
        }
        let same_boot = pointer.boot == host.boot;
        let sees_all = [pointer.pidns, FIRST_NAMESPACE].contains(&host.pid_namespace);
        if same_boot && !sees_all && !options.force {
            leave(&mut report, WhyOpen::OtherNamespace);
            continue;
        }
        let _lock = match live::lock_directory(&directory) {
            Ok(lock) => lock,
            Err(DrainError::Locked { .. }) => {
                leave(&mut report, WhyOpen::Locked);
                continue;
            }
            Err(error) => return Err(error),
        };
        if options.dry_run {
            leave(&mut report, WhyOpen::NotYet);
            continue;
        }
        let control_path = directory.join("ctl");
        let control = match ControlPage::open(&control_path) {
            Ok(Some(control)) => control,
            Ok(None) => {
                leave(&mut report, WhyOpen::OtherVersion);
                continue;
            }
            // Killed before anything could be recorded.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                live::remove(&directory, &pointer_path)?;
                report.completed.push(directory.clone());
                continue;
            }
            Err(error) => return Err(DrainError::io(&control_path, error)),
        };
        let mut leftovers = Leftovers::new(run, &directory, &pointer, &control, &host, same_boot)?;
        let running = leftovers.drain(options.workers, &mut report)?;
        let starting = leftovers.starting();
        live::give_room(&pointer_path);
        leftovers.record(&running, &mut report)?;
        stop::reached(Stop::Recorded)?;
        if running.is_empty() && starting.is_empty() {
            drop(leftovers);
            live::remove(&directory, &pointer_path)?;
            report.completed.push(directory.clone());
        } else {
            let pids = running.iter().map(|image| image.facts.pid).chain(starting).collect();
            leave(&mut report, WhyOpen::Running { pids });
        }
    }
    Ok(report)
}

/// Deals with a live directory that is not there: removed when everything was written, or else lost.
fn bury_directory(run: &Path, pointer_path: &Path, pointer: &Pointer, report: &mut RecoverReport) -> Result<()> {
    let directory = pointer.directory();
    let mut record = base_record(run, pointer)?;
    if record.state == State::Open && !live::removal_begun(&directory) {
        record.processes.extend(record::gone(&pointer.host).map(|entry| entry.process));
        record.state = State::Complete;
        record.write(run)?;
        report.gone.push(directory.clone());
    }
    live::remove(&directory, pointer_path)
}

/// The manifest that the supervisor wrote, or a new one for it.
fn base_record(run: &Path, pointer: &Pointer) -> Result<SupervisorRecord> {
    let record = SupervisorRecord {
        host: pointer.host.clone(),
        pid: pointer.pid,
        start: pointer.start,
        boot: pointer.boot.clone(),
        started_ns: pointer.started_ns,
        ..SupervisorRecord::default()
    };
    let path = record.path(run);
    if path.exists() { Ok(SupervisorRecord::read(&path)?) } else { Ok(record) }
}

/// A live directory being recovered.
struct Leftovers<'r> {
    run: &'r Path,
    directory: &'r Path,
    pointer: &'r Pointer,
    control: &'r ControlPage,
    host: Host,
    same_boot: bool,
    shared: Arc<Shared>,
    clock: Clock,
    arenas: BTreeMap<u64, Arc<Arena>>,
    /// Images that have their member in the file of short ones.
    in_short: HashSet<String>,
    /// Tags that the journal knows.
    journaled: HashSet<String>,
}

impl<'r> Leftovers<'r> {
    fn new(
        run: &'r Path,
        directory: &'r Path,
        pointer: &'r Pointer,
        control: &'r ControlPage,
        host: &Host,
        same_boot: bool,
    ) -> Result<Leftovers<'r>> {
        let settings = Settings::read(directory)?;
        let short = short_name(&pointer.host, pointer.pid, pointer.start);
        remove_temporary(run, &short);
        let length = Members::of(&run.join(&short))?.length;
        let in_short = written::tags(&run.join(&short))?;
        let short_file = TraceFile { length, ..TraceFile::new(short) };
        let journal_path = directory.join("journal");
        let journaled = journal::read(&journal_path)?.into_iter().map(|entry| entry.tag).collect();
        let shared = Arc::new(Shared {
            run: run.to_owned(),
            filter: Filter::new(&settings.patterns)?,
            budget: Budget::new(None),
            journal: Mutex::new(Journal::open(&journal_path)?),
            short: Arc::new(Mutex::new(short_file)),
            files: Mutex::default(),
            messages: Mutex::default(),
        });
        // Files and identity lines speak of the boot that the processes ran in.
        let host = Host { boot: pointer.boot.clone(), ..host.clone() };
        let arenas = open_arenas(directory)?;
        let clock = resume_clock(directory, control, &arenas, same_boot);
        Ok(Leftovers { run, directory, pointer, control, host, same_boot, shared, clock, arenas, in_short, journaled })
    }

    /// Encodes all dead images; those that still run.
    fn drain(&mut self, workers: Option<usize>, report: &mut RecoverReport) -> Result<Vec<Arc<Image>>> {
        let now = Instant::now();
        let (mut dead, mut running) = (Vec::new(), Vec::new());
        for arena in self.arenas.values() {
            for slot in 0..arena.slots_used() {
                match arena.slot_state(slot) {
                    process_state::FREE => {}
                    process_state::CLAIMED => self.free_if_abandoned(arena, slot),
                    _ => {
                        let start = self.same_boot.then(|| start_of(arena, slot, &self.host)).flatten();
                        let image = Arc::new(Image::read(arena, slot, &self.host, &self.clock.timeline(), start));
                        let mut watched = Watched::new(Arc::clone(&image), now);
                        let alive = self.same_boot && watched.is_alive(&self.host, self.directory, true);
                        if alive { running.push(image) } else { dead.push(image) }
                    }
                }
            }
        }
        self.drain_dead(&dead, workers, report)?;
        drop(dead);
        self.remove_empty(&running);
        Ok(running)
    }

    fn free_if_abandoned(&self, arena: &Arena, slot: u32) {
        let (claimer, child) = (arena.slot_facts(slot).ppid, arena.pid_outside(slot));
        let lives = |pid: u32| pid != 0 && procfs::stat(pid).is_some();
        if !self.same_boot || !(lives(claimer) || lives(child)) {
            arena.free_slot(slot);
        }
    }

    fn drain_dead(&mut self, dead: &[Arc<Image>], workers: Option<usize>, report: &mut RecoverReport) -> Result<()> {
        let mut segments: HashMap<ImageKey, Vec<(SegmentAt, SegmentFacts)>> = HashMap::new();
        for arena in self.arenas.values() {
            for at in arena.used_segments() {
                if let Some(facts) = arena.segment_facts(at).filter(|facts| facts.state != segment_state::FREE) {
                    let key = ImageKey { arena: arena.number(), slot: facts.slot, generation: facts.generation };
                    segments.entry(key).or_default().push((at, facts));
                }
            }
        }
        // Marks of members that never came into being must all be gone before the first new member is written: it may get
        // one of their numbers.
        for image in dead {
            let mine = segments.entry(image.key).or_default();
            self.sort_out(image, mine)?;
        }
        let mut workers = Workers::new(Arc::clone(&self.shared), workers);
        let before: u64 = dead.iter().map(|image| lock(&image.totals).events).sum();
        let mut last_jobs = Vec::new();
        for image in dead {
            let mut mine = segments.remove(&image.key).unwrap_or_default();
            if self.journaled.contains(&image.tag) && mine.is_empty() {
                image.arena.free_slot(image.key.slot);
                continue;
            }
            mine.sort_by_key(|(_, facts)| facts.sequence);
            let mut tails = HashMap::new();
            let mut job = self.job(image);
            let (mut records, mut left) = (0, mine.iter().map(|(_, facts)| facts.taken).sum::<u32>());
            for (at, facts) in &mine {
                let tail = tail_of(&image.arena, *at, facts.taken);
                job.segments.push((*at, tails.insert(facts.tid, tail).unwrap_or_default()));
                records += facts.taken;
                left -= facts.taken;
                if records >= BATCH_RECORDS && left > 0 {
                    workers.submit(std::mem::replace(&mut job, self.job(image)), false);
                    records = 0;
                }
            }
            last_jobs.push(job);
        }
        workers.wait();
        // An image's last job closes it, so all others must be done.
        for mut job in last_jobs {
            let timeline = job.timeline.clone();
            job.last = Some(LastLook { sampled: None, timeline, alive: false });
            workers.submit(job, false);
        }
        workers.wait();
        for done in workers.take_done() {
            if done.stopped {
                return Err(DrainError::Stopped);
            }
            report.images += u64::from(done.entry.is_some());
            for entry in done.untraced {
                lock(&self.shared.journal).append(&entry)?;
            }
        }
        report.events += dead.iter().map(|image| lock(&image.totals).events).sum::<u64>() - before;
        Ok(())
    }

    fn job(&self, image: &Arc<Image>) -> Job {
        Job { image: Arc::clone(image), segments: Vec::new(), timeline: self.clock.timeline(), dead: true, last: None }
    }

    /// Tells segments that are in a file from those that are not, and sums up what is written of the image.
    fn sort_out(&self, image: &Image, segments: &mut Vec<(SegmentAt, SegmentFacts)>) -> Result<()> {
        let name = lock(&image.file).name.clone();
        remove_temporary(self.run, &name);
        let members = Members::of(&self.run.join(&name))?;
        let in_short = self.in_short.contains(&image.tag);
        segments.retain(|(at, facts)| {
            let (short, number) = (facts.taken_by & TAKEN_SHORT != 0, facts.taken_by & !TAKEN_SHORT);
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
            if in_use.contains(&number) || reserved || ready || self.is_starting(word, &arena) {
                continue;
            }
            if let Ok(arena) = Arc::try_unwrap(arena) {
                arena.remove();
                if let Some(word) = control.pool.get(number as usize).filter(|_| (number as usize) < POOL_SLOTS) {
                    word.store(pool_state::ABSENT, Ordering::Release);
                }
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

    /// Processes that claimed an arena just now.
    fn starting(&self) -> Vec<u32> {
        let words = self.control.get().pool.iter().map(|word| word.load(Ordering::Acquire));
        let claimed = words.enumerate().filter(|(_, word)| *word > pool_state::CLAIMED);
        claimed
            .filter(|(number, word)| {
                let arena = Arena::open(self.directory, *number as u64).ok().flatten();
                arena.is_some_and(|arena| self.is_starting(*word, &arena))
            })
            .map(|(_, word)| (word - pool_state::CLAIMED) as u32)
            .collect()
    }

    /// Writes the manifest from the journal and what the supervisor wrote before.
    fn record(&self, running: &[Arc<Image>], report: &mut RecoverReport) -> Result<()> {
        let mut record = base_record(self.run, self.pointer)?;
        let mut entries = journal::read(&self.directory.join("journal"))?;
        let losses: Vec<u64> = self.control.get().losses.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        entries.extend(record::without_owner(&self.host.name, &losses));
        for image in running {
            let path = self.run.join(&lock(&image.file).name);
            if path.exists() {
                *lock(&image.totals) = written::totals(&path, &image.tag)?;
            }
            let last = LastLook { sampled: None, timeline: self.clock.timeline(), alive: true };
            entries.push(record::entry(image, &last));
        }
        let mut dropped = Dropped::default();
        let files: HashSet<&String> =
            entries.iter().map(|entry| &entry.process.file).filter(|name| !name.is_empty()).collect();
        for name in files {
            dropped.merge(&written::dropped(&self.run.join(name)));
        }
        // The sums over all files went with the supervisor; each image's own top list is left.
        let (mut calls, mut sums) = (Vec::new(), FileSums::default());
        for entry in &entries {
            merge_calls(&mut calls, &entry.calls);
            entry.files.iter().for_each(|total| sums.merge_total(total));
        }
        record::fill(&mut record, &entries, calls, &sums);
        record.dropped_members = record.dropped_members.max(dropped.members);
        record.dropped_events = record.dropped_events.max(dropped.events);
        record.state = if running.is_empty() { State::Complete } else { State::Open };
        let latest = entries.iter().map(|entry| entry.process.ended_ns).max().unwrap_or(0);
        record.ended_ns = record.ended_ns.max(latest);
        record.write(self.run)?;
        report.messages.append(&mut lock(&self.shared.messages).take());
        Ok(())
    }
}

/// A rewrite that was not finished.
fn remove_temporary(run: &Path, name: &str) {
    // Usually there is none.
    let _ = std::fs::remove_file(run.join(format!(".{name}.tmp")));
}

/// All arenas of a live directory that processes have used.
fn open_arenas(directory: &Path) -> Result<BTreeMap<u64, Arc<Arena>>> {
    let mut arenas = BTreeMap::new();
    let entries = std::fs::read_dir(directory).map_err(|error| DrainError::io(directory, error))?;
    for name in entries.flatten().map(|entry| entry.file_name()) {
        let number = name.to_str().and_then(|name| name.strip_prefix('a')).and_then(|number| number.parse().ok());
        let Some(number) = number else { continue };
        // One that cannot be mapped was cut short while it was made: nothing was recorded in it.
        if let Ok(Some(arena)) = Arena::open(directory, number) {
            arenas.insert(number, Arc::new(arena));
        }
    }
    Ok(arenas)
}

/// The clock of the earlier supervisor, led on by the anchors in segments and, in the same boot, by a reading of our own.
fn resume_clock(directory: &Path, control: &ControlPage, arenas: &BTreeMap<u64, Arc<Arena>>, same_boot: bool) -> Clock {
    let kind = if control.get().clock == Kind::Tsc as u32 { Kind::Tsc } else { Kind::Monotonic };
    let births = arenas.values().flat_map(|arena| {
        (0..arena.slots_used()).filter(|slot| arena.slot_state(*slot) > process_state::CLAIMED).map(|slot| {
            let facts = arena.slot_facts(slot);
            (facts.born_ticks, facts.born_mono, facts.born_real)
        })
    });
    let birth = births.min().unwrap_or((0, 0, 0));
    let mut clock = Clock::resume(&directory.join("clock"), kind, birth);
    clock.assume_rate();
    let mut anchors: Vec<(u64, u64)> = arenas
        .values()
        .flat_map(|arena| arena.used_segments().into_iter().filter_map(|at| arena.segment_facts(at)))
        .filter(|facts| facts.state != segment_state::FREE)
        .map(|facts| (facts.anchor_ticks, facts.anchor_mono))
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
