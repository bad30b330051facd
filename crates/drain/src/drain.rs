//! The supervisor's drain: looks at the arenas, gives closed segments to the workers, notices who died.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weftline_format::manifest::{ClockAnchor, State, SupervisorRecord};
use weftline_recorder::layout::{RECORDS_PER_SEGMENT, pool_state, process_state, segment_state};
use weftline_recorder::{clock, sys};

use crate::arena::{Arena, SegmentAt};
use crate::budget::{Budget, lock};
use crate::encode::tail_of;
use crate::filter::{Filter, Patterns};
use crate::image::{Image, ImageKey};
use crate::journal::{Entry, Journal};
use crate::live::{self, Live, Settings};
use crate::output::TraceFile;
use crate::pool::Pool;
use crate::record::{self, LastLook};
use crate::stop::{self, Stop};
use crate::totals::FileSums;
use crate::watch::{Watched, is_process, start_of};
use crate::worker::{Done, Job, Shared, Workers};
use crate::{DrainError, Result, procfs};

/// Records that make a member of about 1 MiB: three full segments.
pub(crate) const BATCH_RECORDS: u32 = 3 * RECORDS_PER_SEGMENT;
/// Segments that wait at most for company.
const BATCH_SEGMENTS: usize = 8;
/// With so few free segments an arena is short of them: what is closed is encoded at once.
pub(crate) const SHORT_OF_SEGMENTS: u32 = 4;
/// Jobs with fewer records are done by the poller itself.
const SMALL_JOB: u32 = 1024;
const POLL_LEAST: Duration = Duration::from_millis(1);
const POLL_MOST: Duration = Duration::from_millis(20);
/// Between two looks for threads that ended without a word, in an arena that is short of segments.
const THREAD_LOOK: Duration = Duration::from_millis(20);
/// A slot reserved by a fork whose parent died: so long the child has to come.
const CHILD_PATIENCE: Duration = Duration::from_secs(1);
/// An arena claimed by a process that died before it had a slot.
const CLAIM_PATIENCE: Duration = Duration::from_secs(10);
/// How long the end waits for processes that announced theirs.
const LAST_PATIENCE: Duration = Duration::from_millis(300);

/// Threads of an image, and processes, that are remembered for what comes after them.
const MOST_TAILS: usize = 4096;
const MOST_STARTS: usize = 100_000;

/// What the drain is to write.
#[derive(Clone, Debug, Default)]
pub struct DrainOptions {
    /// Only events on these paths (globs), and events without a path.
    pub include: Vec<String>,
    /// No events on these paths.
    pub exclude: Vec<String>,
    /// Bytes of trace files on this node; beyond it the oldest members are dropped.
    pub max_size: Option<u64>,
    /// Worker threads at most; by default the number of processors, up to four.
    pub workers: Option<usize>,
}

/// A process that outlives the drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its pid, as it sees itself.
    pub pid: u32,
    /// Its executable.
    pub exe: String,
}

/// What a finished drain knows.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The manifest as it was written to `run.d`.
    pub record: SupervisorRecord,
    /// Processes that go on recording; the run stays open until they are gone and recovered.
    pub survivors: Vec<Survivor>,
    /// Events that were left out because of `include` and `exclude`.
    pub filtered: u64,
}

/// What the poller remembers of an arena.
#[derive(Default)]
struct Known {
    generations: u64,
    /// Slots that are claimed but not in use yet, and since when.
    reserved: Vec<(u32, Instant)>,
    /// Per piece: segments that wait or are being encoded.
    taken: Vec<u64>,
    since: Option<Instant>,
    next_thread_look: Option<Instant>,
}

impl Known {
    fn taken(&mut self, at: SegmentAt) -> &mut u64 {
        let piece = usize::from(at.piece);
        if self.taken.len() <= piece {
            self.taken.resize(piece + 1, 0);
        }
        &mut self.taken[piece]
    }
}

/// A program that could not be traced but whose process is still watched for its bytes.
struct Untraced {
    entry: Entry,
    pid: u32,
    born_boot: u64,
    next_sample: Instant,
}

/// Drains one live directory.
pub struct Drain {
    live: Live,
    run: PathBuf,
    pool: Pool,
    shared: Arc<Shared>,
    workers: Workers,
    watched: BTreeMap<ImageKey, Watched>,
    known: HashMap<u64, Known>,
    untraced: Vec<Untraced>,
    /// Start times of processes by pid and namespace.
    starts: HashMap<(u32, u64), u64>,
    entries: Vec<Entry>,
    record: SupervisorRecord,
    sleep: Duration,
    cpu_start: u64,
    stopped: bool,
}

impl Drain {
    /// Takes over a live directory, and makes the first arenas.
    pub fn new(mut live: Live, run: &Path, given: DrainOptions) -> Result<Drain> {
        let cpu_start = sys::clock(libc::CLOCK_PROCESS_CPUTIME_ID);
        let patterns = Patterns { include: given.include, exclude: given.exclude };
        let filter = Filter::new(&patterns)?;
        Settings { patterns }.write(&live.directory)?;
        let host = live.host.clone();
        let shared = Arc::new(Shared {
            run: run.to_owned(),
            filter,
            budget: Budget::new(given.max_size),
            journal: Mutex::new(Journal::open(&live.directory.join("journal"))?),
            short: Arc::new(Mutex::new(TraceFile::new(short_name(&host.name, host.pid, host.start)))),
            files: Mutex::default(),
            messages: Mutex::default(),
        });
        let record = SupervisorRecord {
            host: live.host.name.clone(),
            pid: live.host.pid,
            start: live.host.start,
            boot: live.host.boot.clone(),
            started_ns: live.started_ns,
            clocks: vec![clock_reading(&mut live)],
            ..SupervisorRecord::default()
        };
        let control = live.control.get();
        control.heartbeat.store(clock::monotonic(), Ordering::Relaxed);
        let mut pool = Pool::new(&live.directory, control.clock);
        pool.refill(control, 0, Instant::now())?;
        Ok(Drain {
            workers: Workers::new(Arc::clone(&shared), given.workers),
            live,
            run: run.to_owned(),
            pool,
            shared,
            watched: BTreeMap::new(),
            known: HashMap::new(),
            untraced: Vec::new(),
            starts: HashMap::new(),
            entries: Vec::new(),
            record,
            sleep: POLL_LEAST,
            cpu_start,
            stopped: false,
        })
    }

    /// The live directory, for `WEFT_LIVE`.
    pub fn directory(&self) -> &Path {
        self.live.directory()
    }

    /// The manifest in the making: the supervisor fills in what only it knows (exit, times, the tree's bytes) before
    /// [`Drain::finish`].
    pub fn record_mut(&mut self) -> &mut SupervisorRecord {
        &mut self.record
    }

    /// Things the user should hear since the last call, each told once.
    pub fn take_messages(&mut self) -> Vec<String> {
        lock(&self.shared.messages).take()
    }

    /// Looks once at everything; how long to sleep until the next look.
    pub fn poll(&mut self) -> Duration {
        let busy = self.look();
        self.sleep = if busy { POLL_LEAST } else { (self.sleep * 2).min(POLL_MOST) };
        self.sleep
    }

    /// One look; whether anything happened or is under way.
    fn look(&mut self) -> bool {
        if self.stopped {
            return false;
        }
        let now = Instant::now();
        self.live.control.get().heartbeat.store(clock::monotonic(), Ordering::Relaxed);
        self.live.clock.now();
        let done = self.workers.take_done();
        let mut busy = !done.is_empty() || self.workers.open_jobs() > 0;
        for done in done {
            self.settle(done, now);
        }
        if self.stopped {
            return false;
        }
        let claimed = self.pool.look(self.live.control.get(), now);
        let arenas: Vec<Arc<Arena>> = self.pool.used().map(Arc::clone).collect();
        for arena in &arenas {
            busy |= self.find_images(arena, now);
            busy |= self.find_closed(arena, now);
        }
        busy |= self.look_at_processes(now);
        for arena in arenas {
            let number = arena.number();
            drop(arena);
            self.retire_if_done(number, now);
        }
        if let Err(error) = self.pool.refill(self.live.control.get(), claimed, now) {
            let message = || format!("no room for shared memory, programs may go untraced: {error}");
            lock(&self.shared.messages).tell("arena", message);
        }
        self.workers.trim();
        busy || claimed > 0
    }

    /// Finds slots that came into use.
    fn find_images(&mut self, arena: &Arc<Arena>, now: Instant) -> bool {
        let known = self.known.entry(arena.number()).or_default();
        known.since.get_or_insert(now);
        let generations = arena.header().generations.load(Ordering::Acquire);
        let mut found = false;
        if generations != known.generations {
            known.generations = generations;
            known.reserved.clear();
            known.reserved.extend((0..arena.slots_used()).filter_map(|slot| {
                let generation = arena.slot_facts(slot).generation;
                let key = ImageKey { arena: arena.number(), slot, generation };
                let in_use = arena.slot_state(slot) != process_state::FREE;
                (in_use && !self.watched.contains_key(&key)).then_some((slot, now))
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
        let (claimer, child) = (arena.slot_facts(slot).ppid, arena.pid_outside(slot));
        let may_come =
            waited < CHILD_PATIENCE || [claimer, child].iter().any(|pid| *pid != 0 && procfs::stat(*pid).is_some());
        if !may_come {
            arena.free_slot(slot);
        }
        may_come
    }

    fn add_image(&mut self, arena: &Arc<Arena>, slot: u32, now: Instant) {
        let timeline = self.live.clock.timeline();
        let host = &self.live.host;
        let facts = arena.slot_facts(slot);
        let process = (facts.pid, facts.pid_namespace);
        // An image that was gone before we looked has the start of the one before its exec, if we saw that.
        let earlier = self.starts.get(&process).copied().filter(|_| facts.parent_slot == 0);
        let start = start_of(arena, slot, host).or(earlier);
        let image = Arc::new(Image::read(arena, slot, host, &timeline, start));
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
    fn find_closed(&mut self, arena: &Arc<Arena>, now: Instant) -> bool {
        let known = self.known.entry(arena.number()).or_default();
        let mut any = false;
        for (piece, _) in arena.segment_pieces() {
            let mut bits = arena.header().pieces[piece].closed.load(Ordering::Acquire);
            while bits != 0 {
                let at = SegmentAt { piece: piece as u8, index: bits.trailing_zeros() as u8 };
                bits &= bits - 1;
                let taken = known.taken(at);
                if *taken >> at.index & 1 == 0
                    && let Some(facts) = arena.segment_facts(at)
                    && let Some(watched) = self.watched.get_mut(&ImageKey {
                        arena: arena.number(),
                        slot: facts.slot,
                        generation: facts.generation,
                    })
                {
                    *taken |= 1 << at.index;
                    watched.waiting.push(at);
                    watched.waiting_records += facts.taken;
                    any = true;
                }
            }
        }
        let short = arena.free_segments() <= SHORT_OF_SEGMENTS;
        if short {
            self.take_from_ended_threads(arena, now);
        }
        let ready: Vec<ImageKey> = self
            .watched
            .iter()
            .filter(|(key, watched)| key.arena == arena.number() && is_worth_it(watched, short))
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
        if known.next_thread_look.is_some_and(|moment| now < moment) {
            return;
        }
        known.next_thread_look = Some(now + THREAD_LOOK);
        for at in arena.used_segments() {
            let taken = known.taken(at);
            let Some(facts) = arena.segment_facts(at) else { continue };
            let key = ImageKey { arena: arena.number(), slot: facts.slot, generation: facts.generation };
            if *taken >> at.index & 1 == 0
                && facts.state == segment_state::ACTIVE
                && let Some(watched) = self.watched.get_mut(&key)
                && watched.has_lost_thread(&self.live.host, facts.tid)
            {
                *taken |= 1 << at.index;
                watched.waiting.push(at);
                watched.waiting_records += facts.taken;
            }
        }
    }

    /// Gives a batch of an image's waiting segments to the workers. `last`: all of them, and the image is finished.
    fn give_out(&mut self, key: ImageKey, last: bool) {
        let Some(watched) = self.watched.get_mut(&key) else { return };
        let arena = &watched.image.arena;
        let sequence = |at: &SegmentAt| arena.segment_facts(*at).map_or(0, |facts| facts.sequence);
        watched.waiting.sort_by_key(sequence);
        let (mut records, mut segments) = (0, Vec::new());
        while !watched.waiting.is_empty() && (last || records < BATCH_RECORDS) {
            let at = watched.waiting.remove(0);
            let Some(facts) = arena.segment_facts(at) else { continue };
            records += facts.taken;
            let before = watched.tails.remove(&facts.tid).unwrap_or_default();
            if watched.tails.len() >= MOST_TAILS {
                watched.tails.clear();
            }
            watched.tails.insert(facts.tid, tail_of(arena, at, facts.taken));
            segments.push((at, before));
        }
        watched.waiting_records = watched.waiting_records.saturating_sub(records);
        watched.open_jobs += 1;
        watched.closing = last;
        let timeline = self.live.clock.now();
        let last = last.then(|| LastLook { sampled: watched.sampled, timeline: timeline.clone(), alive: false });
        let small = last.is_some() && records < SMALL_JOB;
        self.workers
            .submit(Job { image: Arc::clone(&watched.image), segments, timeline, dead: watched.dead, last }, small);
    }

    /// Looks who died, and finishes what can be finished.
    fn look_at_processes(&mut self, now: Instant) -> bool {
        let mut dead = Vec::new();
        for (key, watched) in &mut self.watched {
            watched.look(&self.live.host, &self.live.directory, now);
            watched.sample(&self.live.host, now);
            if watched.dead && !watched.closing {
                dead.push(*key);
            }
        }
        for key in &dead {
            self.bury(*key);
        }
        self.look_at_untraced(now);
        !dead.is_empty()
    }

    /// Gives out what is left of a dead image.
    fn bury(&mut self, key: ImageKey) {
        let Some(watched) = self.watched.get_mut(&key) else { return };
        let arena = Arc::clone(&watched.image.arena);
        let known = self.known.entry(key.arena).or_default();
        for at in arena.used_segments() {
            let taken = known.taken(at);
            if *taken >> at.index & 1 == 0
                && let Some(facts) = arena.segment_facts(at)
                && (facts.slot, facts.generation) == (key.slot, key.generation)
                && facts.state != segment_state::FREE
            {
                *taken |= 1 << at.index;
                watched.waiting.push(at);
                watched.waiting_records += facts.taken;
            }
        }
        drop(arena);
        while self.watched.get(&key).is_some_and(|watched| watched.waiting_records > BATCH_RECORDS) {
            self.give_out(key, false);
        }
        if self.watched.get(&key).is_some_and(|watched| watched.open_jobs == 0) {
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
                if let (Some(io), Some(end)) = (&mut process.entry.process.io, sampled) {
                    io.end = end;
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
        self.entries.push(entry);
    }

    fn note_in_journal(&self, entry: &Entry) {
        if let Err(error) = lock(&self.shared.journal).append(entry) {
            lock(&self.shared.messages).tell("journal", || error.to_string());
        }
    }

    /// Takes note of a job that is done.
    fn settle(&mut self, done: Done, now: Instant) {
        self.stopped |= done.stopped;
        if let Some(known) = self.known.get_mut(&done.key.arena) {
            for at in &done.segments {
                *known.taken(*at) &= !(1 << at.index);
            }
        }
        let Some(watched) = self.watched.get_mut(&done.key) else { return };
        watched.open_jobs -= 1;
        let Some(entry) = done.entry else { return };
        self.entries.push(entry);
        let own = (watched.image.facts.pid, watched.pid(&self.live.host).unwrap_or(0), watched.image.facts.born_boot);
        self.watched.remove(&done.key);
        for entry in done.untraced {
            // Once now, in case nobody is here when it ends; the later line counts.
            self.note_in_journal(&entry);
            // What the image became is seen under the image's pid; a child under its own, if it is in our namespace.
            let (pid, born_boot) = match entry.process.pid {
                pid if pid == own.0 => (own.1, own.2),
                pid => (pid, u64::MAX / 2),
            };
            self.untraced.push(Untraced { entry, pid, born_boot, next_sample: now });
        }
    }

    /// Gives an arena back when all its processes are gone.
    fn retire_if_done(&mut self, number: u64, now: Instant) {
        let in_use = self.watched.keys().any(|key| key.arena == number);
        let Some(known) = self.known.get(&number).filter(|known| !in_use && known.reserved.is_empty()) else { return };
        let Some(arena) = self.pool.used().find(|arena| arena.number() == number) else { return };
        if arena.header().generations.load(Ordering::Acquire) != known.generations {
            return;
        }
        if known.generations == 0 {
            let waited = known.since.map_or(Duration::ZERO, |since| now.duration_since(since));
            if waited < CLAIM_PATIENCE || self.claimer_lives(number) {
                return;
            }
        }
        if self.pool.retire(self.live.control.get(), number) {
            self.known.remove(&number);
        }
    }

    fn claimer_lives(&self, number: u64) -> bool {
        let word = self.live.control.get().pool.get(number as usize).map_or(0, |word| word.load(Ordering::Acquire));
        let pid = word.wrapping_sub(pool_state::CLAIMED);
        word > pool_state::CLAIMED && u32::try_from(pid).is_ok_and(|pid| procfs::stat(pid).is_some())
    }

    /// Drains what is left, writes the manifest, and removes the live directory unless processes go on recording.
    pub fn finish(mut self) -> Result<Outcome> {
        let survivors = self.drain_rest()?;
        let control = self.live.control.get();
        let losses: Vec<u64> = control.losses.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        self.entries.extend(record::without_owner(&self.live.host.name, &losses));
        for process in std::mem::take(&mut self.untraced) {
            self.entries.push(process.entry);
        }
        let timeline = self.live.clock.now();
        let mut files: FileSums = lock(&self.shared.files).clone();
        for watched in self.watched.values() {
            let last = LastLook { sampled: watched.sampled, timeline: timeline.clone(), alive: true };
            files.merge_all(&lock(&watched.image.totals).files);
            self.entries.push(record::entry(&watched.image, &last));
        }
        let dropped = self.shared.budget.dropped();
        let mut record = std::mem::take(&mut self.record);
        record::fill(&mut record, &self.entries, Some(&files));
        record.state = if survivors.is_empty() { State::Complete } else { State::Open };
        record.ended_ns = clock::read(libc::CLOCK_REALTIME) as i64;
        record.clocks.push(clock_reading(&mut self.live));
        record.dropped_members = dropped.members;
        record.dropped_events = dropped.events;
        record.drain_cpu_ns = sys::clock(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(self.cpu_start);
        record.write(&self.run)?;
        stop::reached(Stop::Recorded)?;
        if survivors.is_empty() {
            live::remove(&self.live.directory, &self.live.pointer)?;
        } else {
            // Whoever looks sees at once that nobody drains any more.
            self.live.control.get().heartbeat.store(0, Ordering::Relaxed);
        }
        let filtered = self.entries.iter().map(|entry| entry.filtered).sum();
        Ok(Outcome { record, survivors, filtered })
    }

    /// Drains until only the living are left; who they are.
    fn drain_rest(&mut self) -> Result<Vec<Survivor>> {
        let deadline = Instant::now() + LAST_PATIENCE;
        self.pool.close(self.live.control.get());
        let mut first = true;
        loop {
            self.look();
            self.workers.wait();
            if self.stopped {
                return Err(DrainError::Stopped);
            }
            let (host, live) = (&self.live.host, &self.live.directory);
            let mut going = false;
            for watched in self.watched.values_mut() {
                let state = watched.image.arena.slot_state(watched.image.key.slot);
                let leaving = state != process_state::LIVE;
                if !watched.dead && (first || leaving) {
                    watched.dead = !watched.is_alive(host, live, true);
                }
                going |= watched.dead || (leaving && Instant::now() < deadline);
            }
            let starting = self.pool.used().any(|arena| arena.header().generations.load(Ordering::Acquire) == 0);
            going |= starting && Instant::now() < deadline && self.has_living_claimer();
            first = false;
            if !going && self.workers.open_jobs() == 0 {
                break;
            }
            if self.watched.values().all(|watched| !watched.dead) {
                std::thread::sleep(POLL_LEAST);
            }
        }
        let mut survivors: Vec<Survivor> = self
            .watched
            .values()
            .map(|watched| Survivor { pid: watched.image.facts.pid, exe: watched.image.identity.exe.clone() })
            .collect();
        survivors.sort_by_key(|survivor| survivor.pid);
        Ok(survivors)
    }

    fn has_living_claimer(&self) -> bool {
        let numbers: Vec<u64> = self.pool.used().map(|arena| arena.number()).collect();
        numbers.iter().any(|number| self.claimer_lives(*number))
    }
}

/// Name of the file that short images of one supervisor share.
pub(crate) fn short_name(host: &str, pid: u32, start: u64) -> String {
    format!("{host}-short-{pid}-{start}.pfw.gz")
}

fn is_worth_it(watched: &Watched, short_of_segments: bool) -> bool {
    !watched.closing
        && !watched.waiting.is_empty()
        && (watched.waiting_records >= BATCH_RECORDS || watched.waiting.len() >= BATCH_SEGMENTS || short_of_segments)
}

fn clock_reading(live: &mut Live) -> ClockAnchor {
    live.clock.now();
    let (tsc, monotonic, _) = live.clock.newest();
    let ahead = clock::read(libc::CLOCK_REALTIME) as i64 - clock::monotonic() as i64;
    ClockAnchor { tsc, monotonic_ns: monotonic as i64, realtime_ns: monotonic as i64 + ahead }
}
