//! The supervisor's drain: polls the arenas, gives closed segments to the workers, and detects dead processes.

mod look;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weftline_format::manifest::{CallTotal, ClockAnchor, State, SupervisorRecord, record_stem};
use weftline_recorder::layout::{PIECE_SIZE, RECORDS_PER_SEGMENT, process_state};
use weftline_recorder::{clock, sys};

use crate::arena::{Arena, SegmentAt};
use crate::budget::{Budget, lock};
use crate::filter::{Filter, Patterns};
use crate::image::ImageKey;
use crate::journal::{Entry, Journal};
use crate::live::{self, Live, Settings};
use crate::output::TraceFile;
use crate::pool::Pool;
use crate::record::{self, LastLook};
use crate::room::Machine;
use crate::stop::{self, Stop};
use crate::totals::{FileSums, SpanSums, merge_calls};
use crate::watch::Watched;
use crate::worker::{Shared, Workers};
use crate::{DrainError, Result, system, timeline};

/// Records that make a member of about 1 MiB: three full segments.
pub(crate) const BATCH_RECORDS: u32 = 3 * RECORDS_PER_SEGMENT;
const POLL_LEAST: Duration = Duration::from_millis(1);
const POLL_MOST: Duration = Duration::from_millis(20);
/// Between two looks at how much memory is left.
const ROOM_LOOK: Duration = Duration::from_secs(1);
/// How long the end waits for processes that announced theirs.
const LAST_PATIENCE: Duration = Duration::from_millis(300);

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
    /// Its pid, as it sees itself; 0 for a child that was forked and has not run yet.
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
    /// Things the user should hear since the last [`Drain::take_messages`].
    pub messages: Vec<String>,
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
    /// Images that ended; their calls and spans are in the next two, their files in the workers' sums.
    entries: Vec<Entry>,
    /// Bytes of their names and command lines.
    entries_text: usize,
    /// Records of unknown processes in arenas that were returned to the pool.
    ownerless: u64,
    calls: Vec<CallTotal>,
    spans: SpanSums,
    record: SupervisorRecord,
    sleep: Duration,
    cpu_start: u64,
    /// On a tmpfs: when to look again how much memory arenas may take.
    next_room: Option<Instant>,
    stopped: bool,
}

impl Drain {
    /// Takes over a live directory, and makes the first arenas.
    pub fn new(mut live: Live, run: &Path, given: DrainOptions) -> Result<Drain> {
        let cpu_start = sys::clock(libc::CLOCK_PROCESS_CPUTIME_ID);
        let patterns = Patterns { include: given.include, exclude: given.exclude, ..Patterns::default() };
        let filter = Filter::new(&patterns)?;
        Settings { patterns, arguments: live.arguments, ..Settings::default() }.write(&live.directory)?;
        let host = live.host.clone();
        let shared = Arc::new(Shared {
            run: run.to_owned(),
            filter,
            budget: Budget::new(given.max_size),
            journal: Mutex::new(Journal::open(&live.directory.join("journal"))?),
            short: Arc::new(Mutex::new(TraceFile::new(short_name(&host.name, host.pid, host.start, live.session)))),
            separate_files: false,
            files: Mutex::default(),
            messages: Mutex::default(),
        });
        let record = SupervisorRecord {
            host: live.host.name.clone(),
            pid: live.host.pid,
            start: live.host.start,
            session: live.session,
            boot: live.host.boot.clone(),
            started_ns: live.started_ns,
            clocks: vec![clock_reading(&mut live)],
            ..SupervisorRecord::default()
        };
        let control = live.control.get();
        control.heartbeat.store(clock::monotonic(), Ordering::Relaxed);
        live::keep_room(&live.pointer);
        let mut pool = Pool::new(&live.directory, control);
        let in_memory = system::file_system(&live.directory).is_ok_and(|found| found.tmpfs);
        if in_memory {
            give_room(&live, &mut pool);
        }
        pool.refill(control, Instant::now())?;
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
            entries_text: 0,
            ownerless: 0,
            calls: Vec::new(),
            spans: SpanSums::default(),
            record,
            sleep: POLL_LEAST,
            cpu_start,
            next_room: in_memory.then(|| Instant::now() + ROOM_LOOK),
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
        if self.next_room.is_some_and(|due| now >= due) {
            self.next_room = Some(now + ROOM_LOOK);
            give_room(&self.live, &mut self.pool);
            // Existing mappings stay valid, but no new process finds the files. logind does this after a user's logout, unless configured otherwise.
            if !self.live.directory.join("ctl").exists() {
                let place = self.live.directory.display();
                let message =
                    || format!("{place} was removed (by logind's RemoveIPC?): programs that start now are not traced");
                lock(&self.shared.messages).tell("gone", message);
            }
        }
        let arenas: Vec<Arc<Arena>> = self.pool.used().map(Arc::clone).collect();
        for arena in &arenas {
            busy |= self.find_images(arena, now);
            busy |= self.find_closed(arena, now);
        }
        self.pool.grow(self.live.control.get());
        busy |= self.look_at_processes(now);
        for arena in arenas {
            let number = arena.number();
            drop(arena);
            self.retire_if_done(number, now);
        }
        if let Err(error) = self.pool.refill(self.live.control.get(), now) {
            let message = || format!("no room for shared memory, some programs may not be traced: {error}");
            lock(&self.shared.messages).tell("arena", message);
        }
        self.workers.trim();
        busy || claimed > 0
    }

    /// Drains what is left, writes the manifest, and removes the live directory unless processes go on recording.
    pub fn finish(mut self) -> Result<Outcome> {
        let survivors = self.drain_rest()?;
        let control = self.live.control.get();
        let losses: Vec<u64> = control.losses.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let ownerless = self.ownerless + self.ownerless_now();
        self.entries.extend(record::without_owner(&self.live.host.name, &losses, ownerless, self.pool.unreadable));
        for process in std::mem::take(&mut self.untraced) {
            self.entries.push(process.entry);
        }
        let timeline = self.live.clock.now();
        self.entries.extend(record::refused(&self.live.host.name, self.live.control.get(), &timeline));
        let mut files: FileSums = lock(&self.shared.files).clone();
        for watched in self.watched.values() {
            let last = LastLook {
                sampled: watched.sampled,
                seen_alive: watched.seen_alive,
                timeline: timeline.clone(),
                alive: true,
            };
            files.merge_all(&lock(&watched.image.totals).files);
            let entry = record::entry(&watched.image, &last);
            merge_calls(&mut self.calls, &entry.calls);
            self.spans.merge_totals(&entry.spans);
            self.entries.push(entry);
        }
        let dropped = self.shared.budget.dropped();
        let mut record = std::mem::take(&mut self.record);
        record::fill(&mut record, &self.entries, std::mem::take(&mut self.calls), &files, &self.spans);
        record.state = if survivors.is_empty() { State::Complete } else { State::Open };
        record.ended_ns = clock::read(libc::CLOCK_REALTIME) as i64;
        record.clocks.push(clock_reading(&mut self.live));
        record.dropped_members = dropped.members;
        record.dropped_events = dropped.events;
        record.drain_cpu_ns = sys::clock(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(self.cpu_start);
        live::give_room(&self.live.pointer);
        record.write(&self.run)?;
        stop::reached(Stop::Recorded)?;
        if survivors.is_empty() {
            // A program that put files of its own there finds them again: nothing of the run is in them.
            let _kept = live::remove(&self.live.directory, &self.live.pointer)?;
        } else {
            // Other processes see at once that nothing is drained any more.
            self.live.control.get().heartbeat.store(0, Ordering::Relaxed);
        }
        let filtered = self.entries.iter().map(|entry| entry.filtered).sum();
        let messages = self.take_messages();
        Ok(Outcome { record, survivors, filtered, messages })
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
            // A child forked just before the program ended may not have run yet.
            going |= self.children_to_come() && Instant::now() < deadline;
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
            .map(|watched| Survivor { pid: watched.image.info.birth.pid, exe: watched.image.identity.exe.clone() })
            .collect();
        if self.children_to_come() {
            survivors.push(Survivor { pid: 0, exe: String::new() });
        }
        survivors.sort_by_key(|survivor| survivor.pid);
        Ok(survivors)
    }

    /// Records in arenas that could not be given back of which nobody knows whose they were. Where processes still run, a child may have come that
    /// was not seen yet.
    fn ownerless_now(&self) -> u64 {
        let is_quiet = |number: u64| {
            self.watched.range(ImageKey::all_of(number)).next().is_none()
                && self.known.get(&number).is_none_or(|known| known.reserved.is_empty())
        };
        let quiet = self.pool.used().filter(|arena| is_quiet(arena.number()));
        quiet.map(|arena| arena.ownerless(|_, _| false)).sum()
    }

    /// Slots that were reserved by a fork and that the child has not taken yet.
    fn children_to_come(&self) -> bool {
        self.known.values().any(|known| !known.reserved.is_empty())
    }

    /// No arena may grow from now on.
    #[cfg(test)]
    pub(crate) fn use_up_room(&mut self) {
        self.next_room = None;
        self.pool.give_room(self.live.control.get(), 0);
    }

    fn has_living_claimer(&self) -> bool {
        let numbers: Vec<u64> = self.pool.used().map(|arena| arena.number()).collect();
        numbers.iter().any(|number| self.claimer_lives(*number))
    }
}

/// Tells all processes how many pieces may still be made.
fn give_room(live: &Live, pool: &mut Pool) {
    let used = pool.bytes();
    let pieces = Machine::here().allowance(&live.directory, used).saturating_sub(used) / PIECE_SIZE as u64;
    pool.give_room(live.control.get(), pieces as i64);
}

/// Name of the file that short images of one supervisor share.
pub(crate) fn short_name(host: &str, pid: u32, start: u64, session: u32) -> String {
    format!("{}.pfw.gz", record_stem(&format!("{host}-short"), pid, start, session))
}

fn clock_reading(live: &mut Live) -> ClockAnchor {
    live.clock.now();
    let (tsc, monotonic, _) = live.clock.newest();
    ClockAnchor { tsc, monotonic_ns: monotonic as i64, realtime_ns: monotonic as i64 + timeline::realtime_ahead() }
}
