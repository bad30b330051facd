//! Writes kernel events to a file of the run directory, in a thread of its own.
//!
//! `<host>-<pid>-<start>.kernel.pfw.gz` is a trace file like any other. A member is written about once a second, so a collector that
//! is killed loses a second of it at most. Where the disk is full, members wait in memory up to a limit, then are dropped and counted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::time::{ClockId, clock_gettime};
use weftline_format::files;
use weftline_format::identity::Identity;
use weftline_format::line::LineBuf;
use weftline_format::manifest::{KERNEL_END, KernelRecord, KernelTotals};
use weftline_format::member::{self, Deflater};

use super::lanes::Lanes;
use super::{KernelError, KernelEvent, Options, Source, Tracer};
use crate::own::Own;

/// Text at which a member is closed.
const MEMBER_TEXT: usize = 1 << 20;
/// Age at which it is closed.
const MEMBER_AGE: Duration = Duration::from_secs(1);
/// Members that are kept in memory while they cannot be written.
const HELD: usize = 16 << 20;
/// How long events stay in the ring where it does not fill before.
const PAUSE: Duration = Duration::from_millis(50);

/// Tracepoints in place, and a thread that writes what they tell.
#[derive(Debug)]
pub struct Recording {
    tracer: Arc<Mutex<Tracer>>,
    stop: Arc<OwnedFd>,
    newcomers: Sender<u32>,
    path: PathBuf,
    thread: JoinHandle<KernelRecord>,
}

impl Recording {
    /// Attaches the tracepoints and starts the thread. No process is followed yet.
    pub fn start(options: &Options, run: &Path, own: &Own) -> Result<Recording, KernelError> {
        let tracer = Tracer::start(options)?;
        let writer = Writer::create(run, own)?;
        let path = writer.path.clone();
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let events = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        epoll::add(&events, &*stop, EventData::new_u64(STOP), EventFlags::IN).map_err(io::Error::from)?;
        // Edge-triggered: the ring is readable with its first event, and the kernel side only wakes where it fills.
        epoll::add(&events, &tracer, EventData::new_u64(RING), EventFlags::IN | EventFlags::ET)
            .map_err(io::Error::from)?;
        let tracer = Arc::new(Mutex::new(tracer));
        let (newcomers, receiver) = channel();
        let shared = Arc::clone(&tracer);
        let body = move || record(&shared, &events, &receiver, writer);
        let thread = std::thread::Builder::new().name("weft-kernel".into()).spawn(body)?;
        Ok(Recording { tracer, stop, newcomers, path, thread })
    }

    /// The file that events go to; it appears with the first of them.
    pub fn file(&self) -> &Path {
        &self.path
    }

    /// What this kernel does not tell.
    pub fn absent(&self) -> Vec<String> {
        self.with(|tracer| tracer.absent().to_vec())
    }

    /// Follows a process and its children; in effect when this returns.
    pub fn follow(&self, pid: u32) -> Result<(), KernelError> {
        self.with(|tracer| tracer.follow(pid))
    }

    /// Follows the children that this process makes from now on: call it before starting a program.
    pub fn follow_own_children(&self) -> Result<(), KernelError> {
        self.with(|tracer| tracer.follow_children(std::process::id()))
    }

    /// Children that this process makes from now on are not followed.
    pub fn leave_own_children(&self) {
        self.with(|tracer| tracer.unfollow(std::process::id()));
    }

    /// Takes pids to follow from another thread; they are followed within a twentieth of a second.
    pub fn newcomers(&self) -> Sender<u32> {
        self.newcomers.clone()
    }

    /// Ends it and returns what was recorded.
    pub fn finish(self) -> KernelRecord {
        // It fails only when it was called 2^64 times.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        self.thread.join().unwrap_or_default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut Tracer) -> T) -> T {
        act(&mut self.tracer.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

const STOP: u64 = 0;
const RING: u64 = 1;

/// The thread.
fn record(tracer: &Mutex<Tracer>, events: &OwnedFd, newcomers: &Receiver<u32>, mut writer: Writer) -> KernelRecord {
    let pause = Timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
    let mut going = true;
    while going {
        let mut ready: [Event; 2] = [const { Event { flags: EventFlags::empty(), data: EventData::new_u64(RING) } }; 2];
        let count = epoll::wait(events, &mut ready[..], Some(&pause)).unwrap_or(0);
        going = !ready[..count].iter().any(|event| event.data.u64() == STOP);
        let mut tracer = tracer.lock().unwrap_or_else(PoisonError::into_inner);
        for pid in newcomers.try_iter() {
            // The table is full: the kernel side counts what it cannot tell.
            let _ = tracer.follow(pid);
        }
        tracer.drain(&mut |event| writer.take(event));
        drop(tracer);
        writer.close_old_member();
    }
    let tracer = tracer.lock().unwrap_or_else(PoisonError::into_inner);
    let losses = tracer.losses();
    let mut record = writer.finish();
    for (reason, count) in [
        ("kernel events came faster than they were written", losses.ring_full),
        ("more processes or calls at once than the kernel side can hold", losses.table_full),
        ("calls of 32-bit programs", losses.foreign_calls),
    ] {
        if count > 0 {
            record.lost.insert(reason.into(), count);
        }
    }
    record.absent = tracer.absent().to_vec();
    record
}

/// The file and the totals.
struct Writer {
    path: PathBuf,
    file: File,
    own_pid: u32,
    about: Identity,
    lines: LineBuf,
    /// Paths and lanes that the current member has named.
    defined: HashSet<u64>,
    lanes: Lanes,
    opened: Instant,
    in_member: u32,
    sequence: u64,
    length: u64,
    sealed: Vec<u8>,
    sealed_events: u64,
    deflater: Deflater,
    record: KernelRecord,
    /// Programs of followed processes.
    programs: HashMap<u32, String>,
}

impl Writer {
    fn create(run: &Path, own: &Own) -> Result<Writer, KernelError> {
        let mut session = 0;
        let (path, file) = loop {
            let path = run.join(format!("{}{KERNEL_END}", own.stem(session)));
            match files::create(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => session += 1,
                Err(error) => return Err(KernelError::Write { path, error }),
            }
        };
        let about = Identity {
            name: own.host.clone(),
            host: own.host.clone(),
            boot: own.boot.clone(),
            nonce: format!("kernel-{}-{}-{session}", own.pid, own.start),
            ..Identity::default()
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Writer {
            path,
            file,
            own_pid: own.pid,
            about,
            lines: LineBuf::new(),
            defined: HashSet::new(),
            lanes: Lanes::default(),
            opened: Instant::now(),
            in_member: 0,
            sequence: 0,
            length: 0,
            sealed: Vec::new(),
            sealed_events: 0,
            deflater: Deflater::new(),
            record: KernelRecord { file: name, ..KernelRecord::default() },
            programs: HashMap::new(),
        })
    }

    fn take(&mut self, event: &KernelEvent<'_>) {
        // That we start the program is nothing that the program does: a run has no process of ours.
        if event.source == Source::Process && event.pid == self.own_pid {
            return;
        }
        self.count(event);
        if self.lines.is_empty() {
            if self.sequence == 0 {
                self.lines.open_array();
            }
            self.about.at_ns = event.start_ns;
            self.about.seq = self.sequence;
            self.about.write(&mut self.lines);
            self.opened = Instant::now();
        }
        let defined = &mut self.defined;
        event.encode(&mut self.lines, self.lanes.of(event), &mut |hash| defined.insert(hash));
        self.in_member += 1;
        if self.lines.len() >= MEMBER_TEXT {
            self.close_member();
        }
    }

    fn count(&mut self, event: &KernelEvent<'_>) {
        match (event.source, event.name) {
            (Source::Process, "fork") => {
                if let Some(program) = self.programs.get(&event.pid).cloned() {
                    self.programs.insert(event.result as u32, program);
                }
            }
            (Source::Process, "exec") => {
                let path = Path::new(OsStr::from_bytes(event.second_path.or(event.path).unwrap_or_default()));
                // As `/proc/PID/exe` has it, also where the process has ended meanwhile.
                let program = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                self.programs.insert(event.pid, program.to_string_lossy().into_owned());
            }
            (Source::Process, _) => drop(self.programs.remove(&event.pid)),
            (Source::Block, _) => {
                let totals = totals_of(&mut self.record.devices, event.device.unwrap_or_default());
                (totals.calls, totals.read, totals.written) =
                    (totals.calls + 1, totals.read + event.read, totals.written + event.written);
            }
            (source, _) => {
                let program = self.programs.entry(event.pid).or_insert_with(|| running_program(event.pid));
                let totals = totals_of(&mut self.record.programs, program);
                match source {
                    Source::Uring => {
                        totals.uring_read += event.read;
                        totals.uring_written += event.written;
                    }
                    Source::Fault => totals.faulted += event.missed,
                    _ => {
                        totals.read += event.read;
                        totals.written += event.written;
                    }
                }
                totals.calls += u64::from(source != Source::Fault);
            }
        }
    }

    fn close_old_member(&mut self) {
        if (!self.lines.is_empty() && self.opened.elapsed() >= MEMBER_AGE) || !self.sealed.is_empty() {
            self.close_member();
        }
    }

    fn close_member(&mut self) {
        if !self.lines.is_empty() && self.sealed.len() < HELD {
            member::seal(self.lines.as_bytes(), self.in_member, self.sequence, &mut self.sealed, &mut self.deflater);
            self.sequence += 1;
            self.sealed_events += u64::from(self.in_member);
            self.forget_lines();
        }
        // Whole or not at all: a torn member would hide those behind it.
        match self.file.write_all_at(&self.sealed, self.length) {
            Ok(()) => {
                self.length += self.sealed.len() as u64;
                self.record.events += self.sealed_events;
                self.sealed.clear();
                self.sealed_events = 0;
            }
            Err(_) => {
                // What was written of it is beyond the end again; where that fails too, readers cut a torn tail.
                let _ = self.file.set_len(self.length);
                if self.lines.len() >= MEMBER_TEXT {
                    *self.record.lost.entry("no space".into()).or_default() += u64::from(self.in_member);
                    self.forget_lines();
                }
            }
        }
    }

    fn forget_lines(&mut self) {
        self.lines.clear();
        self.defined.clear();
        self.in_member = 0;
    }

    fn finish(mut self) -> KernelRecord {
        self.close_member();
        let unwritten = self.sealed_events + u64::from(self.in_member);
        if unwritten > 0 {
            *self.record.lost.entry("no space".into()).or_default() += unwritten;
        }
        if self.length == 0 {
            // Nothing was recorded: no file is better than an empty one.
            let _ = std::fs::remove_file(&self.path);
            self.record.file.clear();
        }
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        self.record.cpu_ns = (cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec) as u64;
        self.record
    }
}

fn totals_of<'m>(map: &'m mut BTreeMap<String, KernelTotals>, key: &str) -> &'m mut KernelTotals {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), KernelTotals::default());
    }
    map.get_mut(key).expect("it was put there")
}

/// The program of a process that was followed after its exec.
fn running_program(pid: u32) -> String {
    std::fs::read_link(format!("/proc/{pid}/exe"))
        .map_or_else(|_| format!("process {pid}"), |path| path.to_string_lossy().into_owned())
}
