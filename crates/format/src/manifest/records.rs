//! The records themselves: plain data, one field per fact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `run.json`: what was known when the run began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunManifest {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The run's id, unique everywhere.
    pub id: String,
    /// What the user calls it.
    pub name: String,
    /// The traced command.
    pub command: Vec<String>,
    /// The directory it was started in.
    pub cwd: String,
    /// When it began, RFC 3339 in UTC with nanoseconds, for people.
    pub created: String,
    /// The same, ns since the epoch, for programs.
    pub created_ns: i64,
    /// The host that began it.
    pub host: String,
    /// The node's id within a cluster; the host's name when nothing else is known.
    pub node: String,
    /// The stage of a workflow that this run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Who started the processes.
    pub launcher: Launcher,
    /// The version of the tool, with its revision where known.
    pub tool_version: String,
}

impl Default for RunManifest {
    fn default() -> Self {
        RunManifest {
            schema: super::SCHEMA,
            id: String::new(),
            name: String::new(),
            command: Vec::new(),
            cwd: String::new(),
            created: String::new(),
            created_ns: 0,
            host: String::new(),
            node: String::new(),
            stage: None,
            launcher: Launcher::default(),
            tool_version: String::new(),
        }
    }
}

/// The place of a process within a parallel job, as its launcher's variables tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Launcher {
    /// `slurm`, `pmi`, `openmpi`, `pmix`, `torchrun`, `flux`, `lsf`; empty when there is none.
    pub kind: String,
    /// Rank among all processes of the job.
    pub rank: Option<u32>,
    /// Rank on this node.
    pub local_rank: Option<u32>,
    /// Processes of the job.
    pub world_size: Option<u32>,
    /// The job.
    pub job_id: Option<String>,
    /// The node within the job.
    pub node_id: Option<String>,
}

/// Whether anything of a supervisor's processes is still to come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Processes may still be writing, or their supervisor died and recovery has not run yet.
    #[default]
    Open,
    /// All that will ever be there is there.
    Complete,
}

/// `run.d/<host>-<pid>-<start>.json`: what one supervisor knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SupervisorRecord {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The host it runs on.
    pub host: String,
    /// Its own process.
    pub pid: u32,
    /// Its process start time in clock ticks since boot.
    pub start: u64,
    /// A process may record itself several times for one run; 0 the first time.
    #[serde(skip_serializing_if = "is_zero")]
    pub session: u32,
    /// The kernel's boot id.
    pub boot: String,
    /// A note of a program without a supervisor, for the code that publishes its files.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Whether more is to come.
    pub state: State,
    /// When it began, ns since the epoch.
    pub started_ns: i64,
    /// When it ended; 0 while it runs.
    pub ended_ns: i64,
    /// The direct child's end.
    pub exit: Option<Exit>,
    /// Why tracing failed on our side, though the program ran; nothing when it did not. Such a run is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Wall time from start to the direct child's end.
    pub wall_ns: u64,
    /// User and system time of the whole tree that was waited for, without our own.
    pub cpu_ns: u64,
    /// User and system time that turning records into files took.
    pub drain_cpu_ns: u64,
    /// Readings of all clocks at the same moments, oldest first.
    pub clocks: Vec<ClockAnchor>,
    /// Every process image that was seen.
    pub processes: Vec<ProcessRecord>,
    /// Totals per call.
    pub calls: Vec<CallTotal>,
    /// Totals per span that programs told of themselves; those of many different ones are summed up as `…`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<SpanTotal>,
    /// The files that took most time, at most a few dozen.
    pub files: Vec<FileTotal>,
    /// Members dropped to keep within the size limit, and the events in them.
    pub dropped_members: u64,
    /// Events in those members.
    pub dropped_events: u64,
    /// What the kernel counted for the whole tree after it was waited for.
    pub tree_io: Option<IoCount>,
    /// The samples that it took of its host and of processes; nothing where it took none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleRecord>,
    /// Kernel events of the processes (`--kernel`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelRecord>,
}

impl SupervisorRecord {
    /// Whether this is the record of a collector, which samples and starts no program.
    pub fn only_samples(&self) -> bool {
        self.samples.is_some() && self.exit.is_none() && self.wall_ns == 0 && self.processes.is_empty()
    }
}

/// What the kernel's tracepoints told. Its events are counted here and nowhere else: hooks in the program saw most of them as well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelRecord {
    /// The file within the run directory; empty where there was no event.
    pub file: String,
    /// Events in the file.
    pub events: u64,
    /// Events that were lost, per reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// What this kernel could not tell, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// What followed processes did, by the path of their program.
    pub programs: BTreeMap<String, KernelTotals>,
    /// Requests of devices, for any process.
    pub devices: BTreeMap<String, KernelTotals>,
    /// User and system time that the writing took.
    pub cpu_ns: u64,
}

/// Calls and bytes as the kernel saw them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelTotals {
    /// Calls, io_uring requests, or requests of a device.
    pub calls: u64,
    /// Bytes that system calls read; of a device, bytes read.
    pub read: u64,
    /// Bytes that system calls wrote; of a device, bytes written.
    pub written: u64,
    /// Bytes read through io_uring.
    #[serde(skip_serializing_if = "no_bytes")]
    pub uring_read: u64,
    /// Bytes written through io_uring.
    #[serde(skip_serializing_if = "no_bytes")]
    pub uring_written: u64,
    /// Bytes of files that page faults brought into memory.
    #[serde(skip_serializing_if = "no_bytes")]
    pub faulted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn no_bytes(number: &u64) -> bool {
    *number == 0
}

/// What one sampler did. Its events are counted here and nowhere else: they are none of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleRecord {
    /// The file within the run directory; empty while it has none.
    pub file: String,
    /// The node's id, as its user calls it.
    pub node: String,
    /// The stage of a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// What was sampled, in words.
    pub what: String,
    /// The time from sample to sample.
    pub interval_ns: u64,
    /// How often everything was sampled.
    pub ticks: u64,
    /// Times at which nothing was sampled because the one before came so late.
    pub skipped_ticks: u64,
    /// Samples in the file.
    pub samples: u64,
    /// Samples that could not be written, per reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// Processes that were followed.
    pub processes: u64,
    /// Processes that should have been followed and could not be, because too many files were open.
    pub not_followed: u64,
    /// Of those that were gone before a last look, how many the kernel told the CPU time of; what they read and wrote last was not seen.
    pub told_ends: u64,
    /// How many others were gone before a last look.
    pub unseen_ends: u64,
    /// Time of such processes between their last sample and their end.
    pub unseen_ns: u64,
    /// User and system time that sampling took.
    pub cpu_ns: u64,
}

impl Default for SupervisorRecord {
    fn default() -> Self {
        SupervisorRecord {
            schema: super::SCHEMA,
            host: String::new(),
            pid: 0,
            start: 0,
            session: 0,
            boot: String::new(),
            note: String::new(),
            state: State::Open,
            started_ns: 0,
            ended_ns: 0,
            exit: None,
            failure: None,
            wall_ns: 0,
            cpu_ns: 0,
            drain_cpu_ns: 0,
            clocks: Vec::new(),
            processes: Vec::new(),
            calls: Vec::new(),
            spans: Vec::new(),
            files: Vec::new(),
            dropped_members: 0,
            dropped_events: 0,
            tree_io: None,
            samples: None,
            kernel: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// All clocks at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockAnchor {
    /// The processor's counter; 0 where it is not used.
    pub tsc: u64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: i64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: i64,
}

/// How a process ended: one of the two is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exit {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// What the kernel counts in `/proc/PID/io`: bytes that passed through read-like and write-like calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoCount {
    /// Bytes read.
    pub rchar: u64,
    /// Bytes written.
    pub wchar: u64,
}

/// The kernel's counters when an image began and when it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoSpan {
    /// When the image began.
    pub start: IoCount,
    /// When it ended, or was last seen.
    pub end: IoCount,
}

/// Bytes that the trace accounts for. Streams are counted at the stream, where the program asked for them, and so
/// differ from what their buffers made of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracedBytes {
    /// Read by POSIX calls.
    pub posix_read: u64,
    /// Written by POSIX calls.
    pub posix_write: u64,
    /// Read from stdio streams.
    pub stdio_read: u64,
    /// Written to stdio streams.
    pub stdio_write: u64,
    /// Read by calls of other kinds that the kernel counts.
    pub other_read: u64,
    /// Written by such calls.
    pub other_write: u64,
}

/// One process image: a program from its start or `exec` to its end or next `exec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessRecord {
    /// The process.
    pub pid: u32,
    /// Its parent.
    pub ppid: u32,
    /// Its process start time in clock ticks since boot.
    pub start: u64,
    /// What tells this image from the others of the same process.
    pub nonce: String,
    /// The inode of its pid namespace.
    pub pidns: u64,
    /// The host it ran on.
    pub host: String,
    /// Whether a fork made it: what it runs was executed by another.
    #[serde(skip_serializing_if = "is_false")]
    pub forked: bool,
    /// The executable.
    pub exe: String,
    /// The command line.
    pub command: Vec<String>,
    /// The rank within a parallel job.
    pub rank: Option<u32>,
    /// The trace file within the run directory; empty when it has none.
    pub file: String,
    /// Events in that file, metadata not counted.
    pub events: u64,
    /// Events that were not kept, per reason.
    pub drops: BTreeMap<String, u64>,
    /// The kernel's counters; nothing if they could not be read in time.
    pub io: Option<IoSpan>,
    /// What the kernel's counters contain of children that were waited for.
    pub reaped_io: Option<IoCount>,
    /// What the recorder itself read there: `io` leaves it out, the counters of a parent that waited for the process do not.
    #[serde(skip_serializing_if = "no_bytes")]
    pub recorder_read: u64,
    /// What the trace accounts for.
    pub traced: TracedBytes,
    /// The kernel's counters are from a look while it ran, because it was killed before it could tell them.
    pub sampled_io: bool,
    /// Ways of doing I/O that the trace cannot see byte for byte, in words: `io_uring`, `mmap`, ….
    #[serde(alias = "habits")]
    pub unseen_io: Vec<String>,
    /// Children that it waited for.
    pub reaped_children: u64,
    /// Whether its parent was seen to wait for it: then the parent's counters hold its own.
    #[serde(skip_serializing_if = "is_false")]
    pub waited_for: bool,
    /// How it ended, as far as known.
    pub exit: Option<Exit>,
    /// Why it could not be traced; nothing when it was.
    pub untraced: Option<String>,
    /// How many processes this stands for that could have been traced, had there been shared memory for them: of one program, refused for one
    /// reason. 0 for any other process.
    #[serde(skip_serializing_if = "no_bytes")]
    pub refused: u64,
    /// When the image began, ns since the epoch.
    pub started_ns: i64,
    /// When it ended; 0 when not known.
    pub ended_ns: i64,
    /// User and system time.
    pub cpu_ns: u64,
    /// User and system time of its main thread, from the start of the process; 0 when not known.
    #[serde(skip_serializing_if = "no_bytes")]
    pub main_cpu_ns: u64,
    /// Time that its main thread could have run and had no processor, likewise.
    #[serde(skip_serializing_if = "no_bytes")]
    pub main_queued_ns: u64,
    /// What its main thread spent in calls, ns by activity (`weftline_calls::Activity::key`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub main_ns: BTreeMap<String, u64>,
    /// The most memory it had, in bytes.
    pub max_rss: u64,
}

/// All calls of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallTotal {
    /// The call.
    pub name: String,
    /// Its category.
    pub cat: String,
    /// Whether the call waited for another process: a `read` from a pipe is separate from those from files.
    #[serde(skip_serializing_if = "is_false")]
    pub waits: bool,
    /// How often it was made.
    pub count: u64,
    /// How long the calls took together.
    pub time_ns: u64,
    /// Bytes they moved.
    pub bytes: u64,
}

/// All spans of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpanTotal {
    /// The name.
    pub name: String,
    /// Its category.
    pub cat: String,
    /// How many there were.
    pub count: u64,
    /// How long they took together; where they nest or overlap, more than the time that passed.
    pub time_ns: u64,
}

/// All calls on one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileTotal {
    /// The file.
    pub path: String,
    /// Calls that read.
    pub reads: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// How long all calls on it took together.
    pub time_ns: u64,
}
