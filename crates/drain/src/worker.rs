//! Jobs: some segments of one image, encoded, sealed, written and freed; and the threads that do them.
//!
//! Jobs are independent, so several workers can encode one process with several threads at once; the order of
//! members in a file is free. The poller itself does small jobs as long as no worker thread was needed yet.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use weftline_format::hash::path_hash;
use weftline_format::identity::Identity;
use weftline_format::line::LineBuf;
use weftline_format::member::{self, Deflater};
use weftline_recorder::layout::TAKEN_SHORT;

use crate::arena::SegmentAt;
use crate::budget::{Budget, lock};
use crate::encode::{Encoder, MEMBER_TEXT, MemberStats};
use crate::filter::Filter;
use crate::image::{Image, ImageKey};
use crate::journal::{Entry, Journal};
use crate::output::{HEAD, MemberNote, TraceFile};
use crate::overlap::Tail;
use crate::record::{self, LastLook};
use crate::stop::{self, Stop};
use crate::timeline::Timeline;
use crate::totals::FileSums;
use crate::{DrainError, Result, system};

/// Text of a whole image below which it goes to the file that short images share.
pub(crate) const SHORT_TEXT: usize = 64 << 10;

/// Encoding keeps up with a dozen busy threads of a program; more would only take processors from it.
const MOST_THREADS: usize = 4;

/// What all workers need.
pub(crate) struct Shared {
    pub run: PathBuf,
    pub filter: Filter,
    pub budget: Budget,
    pub journal: Mutex<Journal>,
    /// The file of short images. Each has one member in it, so none needs a number.
    pub short: Arc<Mutex<TraceFile>>,
    /// Nothing goes there.
    pub separate_files: bool,
    /// Sums per file of images that ended.
    pub files: Mutex<FileSums>,
    /// Things the user should hear, and what was told already.
    pub messages: Mutex<Messages>,
}

/// Messages for the user, each kind told once.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    new: Vec<String>,
    reported: HashSet<&'static str>,
}

impl Messages {
    /// Tells of a trouble unless one of its kind was told before.
    pub(crate) fn tell(&mut self, kind: &'static str, message: impl FnOnce() -> String) {
        if self.reported.insert(kind) {
            self.new.push(message());
        }
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.new)
    }
}

/// Some segments of an image.
pub(crate) struct Job {
    pub image: Arc<Image>,
    /// Each with what the thread's segment before ended with.
    pub segments: Vec<(SegmentAt, Tail)>,
    pub timeline: Timeline,
    /// The image is dead: what is not finished never will be.
    pub dead: bool,
    /// The image is dead and this is all that is left: what was last known of the process.
    pub last: Option<LastLook>,
}

/// A job that is done.
pub(crate) struct Done {
    pub key: ImageKey,
    pub segments: Vec<SegmentAt>,
    /// The image's journal entry when this was its last job.
    pub entry: Option<Entry>,
    /// The programs that it became or started and that could not be traced.
    pub untraced: Vec<Entry>,
    /// Only in tests: stopped as if killed.
    pub stopped: bool,
}

/// Does jobs.
pub(crate) struct Worker {
    encoder: Encoder,
    deflater: Deflater,
    sealed: Vec<u8>,
}

impl Worker {
    pub(crate) fn new() -> Worker {
        Worker { encoder: Encoder::new(), deflater: Deflater::new(), sealed: Vec::new() }
    }

    /// Does a job. Errors of the disk are counted and told, not returned: the program must not wait for them.
    pub(crate) fn work(&mut self, job: &Job, shared: &Shared) -> Result<Done> {
        let image = &job.image;
        let mut pinned: Vec<SegmentAt> = Vec::new();
        let mut sequence = 0;
        for (index, (at, tail)) in job.segments.iter().enumerate() {
            if pinned.is_empty() {
                sequence = lock(&image.numbers).take();
                self.encoder.begin(&image.identity_now(), sequence, shared.separate_files);
            }
            pinned.push(*at);
            self.encoder.segment(image, *at, tail, &job.timeline, &shared.filter, job.dead);
            let all = index + 1 == job.segments.len();
            if all || self.encoder.text().len() >= MEMBER_TEXT {
                let short = all && job.last.is_some() && !shared.separate_files && self.is_short(image);
                self.commit(image, &pinned, sequence, short, shared)?;
                pinned.clear();
            }
        }
        let segments = job.segments.iter().map(|(at, _)| *at).collect();
        let mut done = Done { key: image.key, segments, entry: None, untraced: Vec::new(), stopped: false };
        if let Some(last) = &job.last {
            self.fill_gaps(image, shared)?;
            // Read before the slot is given back.
            done.untraced = record::untraced(image, last);
            done.entry = Some(close(image, last, shared)?);
        }
        Ok(done)
    }

    fn is_short(&self, image: &Image) -> bool {
        self.encoder.text().len() < SHORT_TEXT && !lock(&image.file).exists()
    }

    /// Seals the encoder's text, writes it, and frees the segments it came from.
    fn commit(
        &mut self,
        image: &Image,
        pinned: &[SegmentAt],
        sequence: u64,
        short: bool,
        shared: &Shared,
    ) -> Result<()> {
        let stats = self.encoder.stats();
        if stats.events + stats.metadata > 0 {
            let file = if short { &shared.short } else { &image.file };
            let sequence = if short { HEAD } else { sequence };
            let taken_by = (1 + sequence) | if short { TAKEN_SHORT } else { 0 };
            for at in pinned {
                image.arena.set_taken_by(*at, taken_by);
            }
            stop::reached(Stop::Taken)?;
            self.sealed.clear();
            member::seal(self.encoder.text(), stats.events, sequence, &mut self.sealed, &mut self.deflater);
            match self.append(image, file, shared) {
                Ok(()) => {}
                Err(DrainError::Stopped) => return Err(DrainError::Stopped),
                Err(error) => {
                    if !short {
                        lock(&image.numbers).give_back(sequence);
                    }
                    return self.give_up(image, pinned, stats, &error, shared);
                }
            }
            stop::reached(Stop::Written)?;
            {
                let mut totals = lock(&image.totals);
                totals.merge(&self.encoder.take_totals());
                totals.events += u64::from(stats.events);
                totals.metadata += u64::from(stats.metadata);
            }
            release(image, pinned)?;
            let note = MemberNote { sequence, size: self.sealed.len() as u64, stats };
            if shared.budget.has_limit() && !short {
                lock(file).members.push(note);
            }
            if short {
                lock(&image.file).name.clone_from(&lock(file).name);
            }
            return Ok(());
        }
        lock(&image.totals).merge(&self.encoder.take_totals());
        lock(&image.numbers).give_back(sequence);
        release(image, pinned)
    }

    fn append(&mut self, image: &Image, file: &Arc<Mutex<TraceFile>>, shared: &Shared) -> Result<()> {
        let mut file_now = lock(file);
        let is_new = !file_now.exists();
        let mut line = LineBuf::new();
        if is_new {
            let identity = &image.identity;
            if Arc::ptr_eq(file, &shared.short) {
                line.define_host(
                    identity.pid,
                    identity.pid,
                    path_hash(identity.host.as_bytes()),
                    identity.host.as_bytes(),
                );
            } else {
                Identity { seq: HEAD, ..identity.clone() }.write(&mut line);
            }
        }
        let pid = image.info.birth.pid;
        let bytes = file_now.append(&shared.run, &self.sealed, line.as_bytes(), pid, &mut self.deflater)?;
        drop(file_now);
        shared.budget.add_bytes(bytes);
        if is_new && !Arc::ptr_eq(file, &shared.short) {
            shared.budget.add_file(file);
        }
        Ok(())
    }

    /// Writes empty members for the numbers that were given out in vain before others that are in the file: by a drain that
    /// was killed, or for segments of which nothing was wanted.
    fn fill_gaps(&mut self, image: &Image, shared: &Shared) -> Result<()> {
        let gaps = lock(&image.numbers).take_gaps();
        let (exists, trimmed) = {
            let file = lock(&image.file);
            (file.exists(), file.dropped.members > 0)
        };
        if !exists || trimmed {
            return Ok(());
        }
        for number in gaps {
            self.encoder.begin(&image.identity_now(), number, shared.separate_files);
            self.sealed.clear();
            member::seal(self.encoder.text(), 0, number, &mut self.sealed, &mut self.deflater);
            // After any other error readers will report a gap, on a disk that is full anyway.
            if let Err(DrainError::Stopped) = self.append(image, &image.file, shared) {
                return Err(DrainError::Stopped);
            }
        }
        Ok(())
    }

    /// The member cannot be written: what it holds is counted as lost and nowhere else, and the program goes on.
    fn give_up(
        &mut self,
        image: &Image,
        pinned: &[SegmentAt],
        stats: MemberStats,
        error: &DrainError,
        shared: &Shared,
    ) -> Result<()> {
        lock(&image.totals).merge(&self.encoder.take_totals().without_events());
        lock(&image.totals).disk_full += u64::from(stats.events) + u64::from(stats.metadata);
        lock(&shared.messages).tell("trace", || format!("events are being lost: {error}"));
        release(image, pinned)
    }
}

fn release(image: &Image, pinned: &[SegmentAt]) -> Result<()> {
    for (index, at) in pinned.iter().enumerate() {
        image.arena.release(*at);
        if index == 0 {
            stop::reached(Stop::OneReleased)?;
        }
    }
    Ok(())
}

/// Writes down what is known of an image whose last member is written, and gives its slot back.
fn close(image: &Image, last: &LastLook, shared: &Shared) -> Result<Entry> {
    stop::reached(Stop::Released)?;
    let entry = record::entry(image, last);
    match lock(&shared.journal).append(&entry) {
        Ok(()) => {}
        Err(DrainError::Stopped) => return Err(DrainError::Stopped),
        // The manifest that is written from memory has it; only a recovery after a kill would miss it.
        Err(error) => lock(&shared.messages).tell("journal", || error.to_string()),
    }
    stop::reached(Stop::Journaled)?;
    lock(&shared.files).merge_all(&lock(&image.totals).files);
    image.arena.free_slot(image.key.slot);
    Ok(entry)
}

/// What a worker thread can be asked for.
enum Task {
    Encode(Job),
    /// Bring the files back under the size limit.
    Trim,
}

struct Queue {
    tasks: VecDeque<Task>,
    done: Vec<Done>,
    /// Jobs waiting or being done.
    open: usize,
    closing: bool,
}

struct Pool {
    queue: Mutex<Queue>,
    work_there: Condvar,
    all_done: Condvar,
    shared: Arc<Shared>,
}

/// The worker threads.
pub(crate) struct Workers {
    pool: Arc<Pool>,
    threads: Vec<JoinHandle<()>>,
    /// Threads at most; asked for when the first one is needed, since the answer takes a dozen system calls.
    most: Option<usize>,
    own: Worker,
    /// Only in tests: as if killed.
    halted: bool,
}

impl Workers {
    /// `most` threads at most, by default one per processor up to four; with 0 every job is done at once by the caller.
    pub(crate) fn new(shared: Arc<Shared>, most: Option<usize>) -> Workers {
        let queue = Queue { tasks: VecDeque::new(), done: Vec::new(), open: 0, closing: false };
        let pool = Pool { queue: Mutex::new(queue), work_there: Condvar::new(), all_done: Condvar::new(), shared };
        Workers { pool: Arc::new(pool), threads: Vec::new(), most, own: Worker::new(), halted: false }
    }

    /// Gives a job to the workers. `small` ones are not worth a thread of their own.
    pub(crate) fn submit(&mut self, job: Job, small: bool) {
        if self.halted {
            return;
        }
        self.give(Task::Encode(job), small && self.threads.is_empty());
    }

    /// Asks for the size limit to be kept, unless that is being done.
    pub(crate) fn trim(&mut self) {
        if !self.halted && self.pool.shared.budget.begin_trim() {
            self.give(Task::Trim, false);
        }
    }

    fn give(&mut self, task: Task, at_once: bool) {
        if self.most == Some(0) || at_once {
            let done = do_task(&mut self.own, &task, &self.pool.shared);
            self.halted |= done.as_ref().is_some_and(|done| done.stopped);
            lock(&self.pool.queue).done.extend(done);
            return;
        }
        let waiting = {
            let mut queue = lock(&self.pool.queue);
            queue.tasks.push_back(task);
            queue.open += 1;
            queue.tasks.len()
        };
        self.pool.work_there.notify_one();
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
        let most = *self.most.get_or_insert_with(cores);
        if self.threads.is_empty() || (waiting > self.threads.len() && self.threads.len() < most) {
            self.start_thread();
        }
    }

    fn start_thread(&mut self) {
        let pool = Arc::clone(&self.pool);
        let body = move || run(&pool);
        let started =
            system::with_signals_blocked(|| std::thread::Builder::new().name("weft-drain".into()).spawn(body));
        match started {
            Ok(thread) => self.threads.push(thread),
            // No thread could be started: the caller does the work itself.
            Err(_) if self.threads.is_empty() => {
                while let Some(task) = lock(&self.pool.queue).tasks.pop_front() {
                    let done = do_task(&mut self.own, &task, &self.pool.shared);
                    finish_task(&self.pool, done);
                }
            }
            Err(_) => {}
        }
    }

    /// Jobs that are done since the last call.
    pub(crate) fn take_done(&self) -> Vec<Done> {
        std::mem::take(&mut lock(&self.pool.queue).done)
    }

    /// Jobs that are not done yet.
    pub(crate) fn open_jobs(&self) -> usize {
        lock(&self.pool.queue).open
    }

    /// Waits until all jobs are done.
    pub(crate) fn wait(&self) {
        let queue = lock(&self.pool.queue);
        drop(self.pool.all_done.wait_while(queue, |queue| queue.open > 0));
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        lock(&self.pool.queue).closing = true;
        self.pool.work_there.notify_all();
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so on its own.
            let _ = thread.join();
        }
    }
}

fn run(pool: &Pool) {
    let mut worker = Worker::new();
    loop {
        let task = {
            let queue = lock(&pool.queue);
            let waited = pool.work_there.wait_while(queue, |queue| queue.tasks.is_empty() && !queue.closing);
            let mut queue = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            match queue.tasks.pop_front() {
                Some(task) => task,
                None => return,
            }
        };
        let done = do_task(&mut worker, &task, &pool.shared);
        finish_task(pool, done);
    }
}

fn finish_task(pool: &Pool, done: Option<Done>) {
    let mut queue = lock(&pool.queue);
    queue.done.extend(done);
    queue.open -= 1;
    if queue.open == 0 {
        pool.all_done.notify_all();
    }
}

fn do_task(worker: &mut Worker, task: &Task, shared: &Shared) -> Option<Done> {
    match task {
        Task::Encode(job) => {
            // Errors of the disk were dealt with; what comes back here is a test's stop.
            let stopped =
                || Done { key: job.image.key, segments: Vec::new(), entry: None, untraced: Vec::new(), stopped: true };
            Some(worker.work(job, shared).unwrap_or_else(|_| stopped()))
        }
        Task::Trim => {
            if let Err(error) = shared.budget.enforce(&shared.run, &mut worker.deflater) {
                lock(&shared.messages).tell("trim", || format!("the size limit cannot be kept: {error}"));
            }
            None
        }
    }
}
