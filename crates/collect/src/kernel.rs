//! Kernel tracepoints: file system calls of followed processes, io_uring, page faults that read files, requests of block devices.
//!
//! This sees what hooks in the C library cannot: static programs, Go, raw system calls, mapped files, the disk below the page cache.
//! It needs CAP_BPF and CAP_PERFMON (root has both) and a kernel that describes its types (5.11 or newer), and neither tracefs nor
//! kprobes. The kernel side is `bpf/weft.bpf.c`, which `build.rs` compiles.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | one event and its line |
//! | `error` | why kernel tracing cannot start |
//! | `record` | what comes out of the ring |
//! | `translate` | from records to events: names, paths, times |
//! | `calls` | the table of system calls |
//! | `files` | paths of open files |
//! | `devices` | names of block devices |
//! | [`lanes`] | tracks for overlapping requests |
//! | `anchors` | from the monotonic clock to the epoch |
//! | [`recording`] | a thread that writes events into a run directory |

mod anchors;
mod calls;
mod devices;
mod error;
pub mod event;
mod files;
pub mod lanes;
mod record;
pub mod recording;
mod translate;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use aya::maps::{Array, HashMap, Map, MapData, RingBuf};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use error::KernelError;
pub use event::{KernelEvent, Request, Source};

use translate::Translator;

/// How to trace.
#[derive(Debug, Clone)]
pub struct Options {
    /// Size of the ring between kernel and user space; a power of two, at least a page. Events that do not fit are dropped and counted.
    pub ring_bytes: u32,
    /// Whether to record requests of block devices, of all processes.
    pub block: bool,
    /// Whether to record page faults that read files.
    pub faults: bool,
    /// Where `/proc` is.
    pub proc: PathBuf,
    /// Where `/sys` is.
    pub sys: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options { ring_bytes: 8 << 20, block: true, faults: true, proc: "/proc".into(), sys: "/sys".into() }
    }
}

/// Lost events, counted by the kernel side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that did not fit into the ring.
    pub ring_full: u64,
    /// Calls or processes that did not fit into a table.
    pub table_full: u64,
    /// Calls of 32-bit programs, whose numbers are not known here.
    pub foreign_calls: u64,
}

/// A tracepoint and the programs for it: the first that the kernel accepts is used.
struct Hook {
    tracepoint: &'static str,
    programs: &'static [&'static str],
    /// What is not seen without it; nothing where nothing is seen at all.
    without: Option<&'static str>,
}

const HOOKS: &[Hook] = &[
    // Programs are attached in this order: the set of followed processes is known before calls are reported.
    Hook { tracepoint: "sched_process_exit", programs: &["exited"], without: None },
    Hook { tracepoint: "sched_process_exec", programs: &["executed"], without: None },
    Hook { tracepoint: "sched_process_fork", programs: &["forked"], without: None },
    Hook { tracepoint: "sys_exit", programs: &["exit_call"], without: None },
    Hook { tracepoint: "sys_enter", programs: &["enter_call"], without: None },
    Hook {
        tracepoint: "io_uring_complete",
        programs: &["uring_completed_values", "uring_completed"],
        without: Some("io_uring"),
    },
    Hook { tracepoint: "io_uring_submit_req", programs: &["uring_submitted"], without: Some("io_uring") },
];

const FAULT_HOOKS: &[Hook] = &[
    Hook { tracepoint: "page_fault_user", programs: &["faulted"], without: Some("page faults") },
    Hook { tracepoint: "mm_filemap_add_to_page_cache", programs: &["page_added"], without: Some("page faults") },
];

const BLOCK_HOOKS: &[Hook] = &[
    Hook { tracepoint: "block_rq_complete", programs: &["block_completed"], without: Some("block devices") },
    Hook { tracepoint: "block_rq_issue", programs: &["block_issued"], without: Some("block devices") },
];

/// How a process is followed: values of the map `followed`.
const FOLLOW_SELF: u8 = 1;
const FOLLOW_CHILDREN: u8 = 2;

/// Tracepoints in place. They are taken away when this is dropped, or when the process ends.
pub struct Tracer {
    /// Keeps the programs attached.
    _programs: Ebpf,
    ring: RingBuf<MapData>,
    ring_fd: OwnedFd,
    followed: HashMap<MapData, u32, u8>,
    losses: Array<MapData, u64>,
    translator: Translator,
    absent: Vec<String>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("losses", &self.losses()).field("absent", &self.absent).finish_non_exhaustive()
    }
}

impl Tracer {
    /// Attaches the tracepoints. No process is followed yet.
    pub fn start(options: &Options) -> Result<Tracer, KernelError> {
        error::check(&options.proc)?;
        let types = Btf::from_sys_fs().map_err(|_| KernelError::NoTypes { path: error::TYPES.into() })?;
        let page_shift = rustix::param::page_size().trailing_zeros();
        let wake_at = u64::from(options.ring_bytes / 4);
        let mut programs = EbpfLoader::new()
            .btf(Some(&types))
            .set_max_entries("ring", options.ring_bytes)
            .set_global("page_shift", &page_shift, true)
            .set_global("wake_at", &wake_at, true)
            .load(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/weft.bpf.o")))
            .map_err(|error| failed("the programs", &error))?;
        let mut rules: Array<_, u32> = take(&mut programs, "calls")?;
        for (number, call) in calls::all() {
            rules.set(number, calls::rule(call), 0).map_err(|error| failed("the table of calls", &error))?;
        }
        let followed = take(&mut programs, "followed")?;
        let losses = take(&mut programs, "losses")?;
        let (ring, ring_fd) = take_ring(&mut programs)?;
        let mut absent = Vec::new();
        let wanted = [(HOOKS, true), (FAULT_HOOKS, options.faults), (BLOCK_HOOKS, options.block)];
        for hook in wanted.iter().filter(|(_, wanted)| *wanted).flat_map(|(hooks, _)| hooks.iter()) {
            match (attach(&mut programs, hook, &types), hook.without) {
                (Ok(()), _) => {}
                (Err(error), Some(without)) => {
                    absent.push(format!("{without}: {}: {}", hook.tracepoint, error::chain(&error)));
                }
                (Err(error), None) => return Err(failed(&format!("tracepoint {}", hook.tracepoint), &error)),
            }
        }
        let translator = Translator::new(&options.proc, &options.sys);
        Ok(Tracer { _programs: programs, ring, ring_fd, followed, losses, translator, absent })
    }

    /// Follows a process and the children that it makes from now on.
    pub fn follow(&mut self, pid: u32) -> Result<(), KernelError> {
        self.translator.follow(pid);
        self.followed.insert(pid, FOLLOW_SELF, 0).map_err(|error| failed(&format!("process {pid}"), &error))
    }

    /// Follows the children that a process makes from now on, but not itself: call it before starting a program.
    pub fn follow_children(&mut self, pid: u32) -> Result<(), KernelError> {
        self.translator.follow(pid);
        self.followed.insert(pid, FOLLOW_CHILDREN, 0).map_err(|error| failed(&format!("process {pid}"), &error))
    }

    /// No longer follows a process; its children stay followed.
    pub fn unfollow(&mut self, pid: u32) {
        // Where it has ended the kernel side removed it.
        let _ = self.followed.remove(&pid);
    }

    /// Whether a process is followed, by [`Tracer::follow`] or by its parent's fork, and has not ended.
    pub fn follows(&self, pid: u32) -> bool {
        self.followed.get(&pid, 0).is_ok_and(|how| how == FOLLOW_SELF)
    }

    /// Hands over all events that are there, after waiting for some at most that long. Returns how many.
    pub fn poll(&mut self, timeout: Duration, take: &mut dyn FnMut(&KernelEvent<'_>)) -> Result<u64, KernelError> {
        let limit = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.ring_fd, PollFlags::IN)], Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(KernelError::Wait(error.into())),
        }
        Ok(self.drain(take))
    }

    /// Hands over all events that are there.
    pub fn drain(&mut self, take: &mut dyn FnMut(&KernelEvent<'_>)) -> u64 {
        self.translator.refresh_clock();
        let mut translated = 0;
        while let Some(item) = self.ring.next() {
            if let Some(record) = record::parse(&item) {
                translated += u64::from(self.translator.translate(&record, take));
            }
        }
        translated
    }

    /// Events that were lost.
    pub fn dropped(&self) -> u64 {
        let losses = self.losses();
        losses.ring_full + losses.table_full
    }

    /// What was lost, by reason.
    pub fn losses(&self) -> Losses {
        let count = |reason: u32| self.losses.get(&reason, 0).unwrap_or(0);
        Losses { ring_full: count(0), table_full: count(1), foreign_calls: count(2) }
    }

    /// What this kernel does not tell, each with the reason.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }
}

/// Readable while events wait in the ring.
impl AsFd for Tracer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring_fd.as_fd()
    }
}

fn attach(programs: &mut Ebpf, hook: &Hook, types: &Btf) -> Result<(), ProgramError> {
    let mut result = Ok(());
    for name in hook.programs {
        let program: &mut BtfTracePoint =
            programs.program_mut(name).expect("the object holds every program of the table").try_into()?;
        result = program.load(hook.tracepoint, types).and_then(|()| program.attach().map(drop));
        if result.is_ok() {
            break;
        }
    }
    result
}

fn take<T: TryFrom<Map, Error = aya::maps::MapError>>(programs: &mut Ebpf, name: &str) -> Result<T, KernelError> {
    let map = programs.take_map(name).expect("the object holds every map");
    T::try_from(map).map_err(|error| failed(&format!("map {name}"), &error))
}

fn take_ring(programs: &mut Ebpf) -> Result<(RingBuf<MapData>, OwnedFd), KernelError> {
    let map = programs.take_map("ring").expect("the object holds every map");
    let Map::RingBuf(data) = &map else {
        return Err(KernelError::Attach { what: "map ring".into(), reason: "it is no ring".into() });
    };
    let fd = data.fd().as_fd().try_clone_to_owned()?;
    let ring = RingBuf::try_from(map).map_err(|error| failed("map ring", &error))?;
    Ok((ring, fd))
}

fn failed(what: &str, error: &(dyn std::error::Error + 'static)) -> KernelError {
    let reason = error::chain(error);
    if error::is_refusal(error) {
        return KernelError::Refused { reason: format!("{what}: {reason}") };
    }
    KernelError::Attach { what: what.into(), reason }
}

#[cfg(test)]
mod tests;
