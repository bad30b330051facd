//! The made-up job: 64 data-parallel training processes on 8 hosts that read 5,000 files, compute, and save checkpoints.
//!
//! Everything comes from one random sequence, so the same numbers give the same trace. The processes take turns by their own clocks,
//! and a turn is one training step. The job's length does not depend on the number of events: more events are more steps in the same
//! time, so that the time buckets, processes, files and names of a trace stay the same at every size. Any process reads any file, so that
//! pairs of them grow in number with the steps; where the job is *sharded*, each has its own files, and those pairs stay the same too.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Ranks of the job; each is one process with a main thread and two loaders.
pub(crate) const PROCESSES: usize = 64;
/// Hosts that they run on, eight ranks each.
pub(crate) const HOSTS: usize = 8;
/// Files of the job: samples, then a log of each process and a checkpoint of each host.
pub(crate) const FILES: usize = 5_000;
const SAMPLES: usize = FILES - PROCESSES - HOSTS;
/// The job's start, ns since the epoch.
pub(crate) const ORIGIN_NS: i64 = 1_790_000_000_000_000_000;
/// Calls of one step in the mean; paces the steps so that the job takes its time whatever the number of events.
const CALLS_PER_STEP: i64 = 80;
const CHECKPOINTS: i64 = 10;

/// One call or span.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) process: usize,
    pub(crate) name: &'static str,
    pub(crate) cat: &'static str,
    /// 0 is the main thread, 1 and 2 are loaders.
    pub(crate) thread: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) file: Option<usize>,
    pub(crate) detail: Detail,
}

/// What a call has besides time and file.
#[derive(Debug, Clone)]
pub(crate) enum Detail {
    /// The first event of a process.
    Start,
    Open {
        fd: i64,
        flags: i64,
    },
    /// A call on a descriptor that returns a status.
    Handle {
        fd: i64,
    },
    Seek {
        fd: i64,
        offset: i64,
    },
    Data {
        fd: i64,
        count: i64,
        ret: i64,
        offset: Option<i64>,
    },
    Span {
        level: i64,
        epoch: i64,
        step: i64,
        image: Option<(i64, i64)>,
        extra: Extra,
    },
}

/// Arguments that no analyzer knows beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extra {
    None,
    /// Text with characters that JSON must escape.
    Note,
    /// A number with a fraction: thousandths.
    Loss(i64),
    /// An object.
    Optimizer,
}

pub(crate) const NOTE: &str = "shard \"7\" of C:\\data\tré-run\n";
pub(crate) const OPTIMIZER: &str = r#"{"lr":0.001,"betas":[0.9,0.999],"name":"adam"}"#;

/// A fixed random sequence.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 2) as i64 % limit
    }

    fn one_in(&mut self, count: i64) -> bool {
        self.below(count) == 0
    }

    /// A duration around `typical`; one in fifty is ten times as long, as it is when a disk or a lock is met.
    fn duration(&mut self, typical: i64) -> i64 {
        let usual = typical / 2 + self.below(typical);
        if self.one_in(50) { usual * 10 } else { usual }
    }
}

#[derive(Debug, Clone, Default)]
struct Process {
    started: bool,
    step: i64,
    checkpoints: i64,
}

/// The job, a turn at a time.
#[derive(Debug)]
pub(crate) struct Workload {
    random: Random,
    processes: Vec<Process>,
    /// Who is next: the smallest clock.
    order: BinaryHeap<Reverse<(i64, usize)>>,
    left: u64,
    sharded: bool,
    span_ns: i64,
    step_ns: i64,
    steps_per_epoch: i64,
}

impl Workload {
    pub(crate) fn new(events: u64, span_s: u32, sharded: bool) -> Workload {
        let span_ns = i64::from(span_s) * 1_000_000_000;
        let steps = (events as i64 / CALLS_PER_STEP / PROCESSES as i64).max(1);
        Workload {
            random: Random(events),
            processes: vec![Process::default(); PROCESSES],
            order: (0..PROCESSES).map(|process| Reverse((ORIGIN_NS + process as i64 * 1_370_411, process))).collect(),
            left: events,
            sharded,
            span_ns,
            step_ns: (span_ns / steps).max(1_000_000),
            steps_per_epoch: (steps / 5).max(1),
        }
    }

    /// Puts the calls of the next step into `calls`; says whether there were any.
    pub(crate) fn next_step(&mut self, calls: &mut Vec<Call>) -> bool {
        calls.clear();
        if self.left == 0 {
            return false;
        }
        let Some(Reverse((clock, process))) = self.order.pop() else { return false };
        let mut builder = StepBuilder { clock, process, sharded: self.sharded, calls, random: &mut self.random };
        let state = &mut self.processes[process];
        if !state.started {
            state.started = true;
            builder.call("start", "dftracer", 0, (clock, clock), None, Detail::Start);
        }
        builder.step(state.step, state.step / self.steps_per_epoch);
        state.step += 1;
        let saved = (clock - ORIGIN_NS) * CHECKPOINTS / self.span_ns;
        if process.is_multiple_of(PROCESSES / HOSTS) && saved > state.checkpoints {
            state.checkpoints = saved;
            builder.checkpoint(state.step, state.step / self.steps_per_epoch);
        }
        let pause = self.step_ns * 9 / 10 + builder.random.below(self.step_ns / 5 + 1);
        let next = builder.clock.max(clock + pause);
        builder.compute(next, state.step, state.step / self.steps_per_epoch);
        self.order.push(Reverse((next + 1_000, process)));
        calls.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= calls.len() as u64;
        true
    }
}

/// A step of one process in the making.
struct StepBuilder<'a> {
    clock: i64,
    process: usize,
    sharded: bool,
    calls: &'a mut Vec<Call>,
    random: &'a mut Random,
}

impl StepBuilder<'_> {
    fn call(
        &mut self,
        name: &'static str,
        cat: &'static str,
        thread: u32,
        time: (i64, i64),
        file: Option<usize>,
        detail: Detail,
    ) {
        let (start_ns, end_ns) = time;
        self.calls.push(Call { process: self.process, name, cat, thread, start_ns, end_ns, file, detail });
    }

    /// A call that takes about `typical` ns and moves the clock.
    fn io(&mut self, name: &'static str, cat: &'static str, thread: u32, typical: i64, file: usize, detail: Detail) {
        let (start, end) = (self.clock, self.clock + self.random.duration(typical));
        self.clock = end + 800 + self.random.below(4_000);
        self.call(name, cat, thread, (start, end), Some(file), detail);
    }

    fn step(&mut self, step: i64, epoch: i64) {
        let (begun, first) = (self.clock, self.calls.len());
        let mut done = begun;
        for thread in 1..=2 {
            self.clock = begun + self.random.below(90_000);
            self.sample(thread, step, epoch);
            done = done.max(self.clock);
        }
        self.clock = done;
        // The loaders work at the same time, and a tracer writes a call when it ends. The sort is stable: spans stand behind what they hold.
        self.calls[first..].sort_by_key(|call| call.end_ns);
        if self.random.one_in(4) {
            self.log();
        }
        let detail = Detail::Span { level: 1, epoch, step, image: None, extra: Extra::None };
        self.call("fetch.iter", "data_loader", 0, (begun, self.clock), None, detail);
    }

    /// One sample file read by a loader thread.
    fn sample(&mut self, thread: u32, step: i64, epoch: i64) {
        let file = if self.sharded {
            let shard = SAMPLES / PROCESSES;
            self.process * shard + self.random.below(shard as i64) as usize
        } else {
            self.random.below(SAMPLES as i64) as usize
        };
        let (fd, begun) = (12 + i64::from(thread) + self.random.below(6), self.clock);
        self.io("open64", "POSIX", thread, 40_000, file, Detail::Open { fd, flags: 524_288 });
        self.io("__fxstat64", "POSIX", thread, 3_000, file, Detail::Handle { fd });
        let opened = self.clock;
        self.io("lseek64", "POSIX", thread, 1_500, file, Detail::Seek { fd, offset: 0 });
        let positioned = self.random.one_in(3);
        let block = [4_096, 65_536, 131_072, 262_144][self.random.below(4) as usize];
        let (mut offset, reads) = (0, 16 + self.random.below(25));
        for read in 0..reads {
            // Headers and directories of the archive are small and of odd sizes.
            let count = if self.random.one_in(6) { 8 * (1 + self.random.below(200)) } else { block };
            let ret = if read + 1 == reads { self.random.below(count) } else { count };
            let typical = 2_000 + ret / 3;
            if positioned {
                let detail = Detail::Data { fd, count, ret, offset: Some(offset) };
                self.io("pread64", "POSIX", thread, typical, file, detail);
            } else {
                self.io("read", "POSIX", thread, typical, file, Detail::Data { fd, count, ret, offset: None });
            }
            offset += ret;
        }
        let sampled = self.clock;
        self.io("close", "POSIX", thread, 4_000, file, Detail::Handle { fd });
        let span = |level, extra| Detail::Span { level, epoch, step, image: Some((file as i64, offset)), extra };
        self.call("NPZReader.open", "reader", thread, (begun, opened), None, span(3, Extra::None));
        self.call("NPZReader.get_sample", "reader", thread, (opened, sampled), None, span(3, Extra::None));
        let extra = match self.random.below(200) {
            0 => Extra::Note,
            _ => Extra::None,
        };
        let done = self.clock + self.random.duration(300_000);
        self.call("FormatReader.preprocess", "reader", thread, (self.clock, done), None, span(3, extra));
        self.clock = done;
        self.call("TorchDataset.__getitem__", "data_loader", thread, (begun, done), None, span(2, Extra::None));
    }

    fn log(&mut self) {
        let (file, fd) = (SAMPLES + self.process, 4);
        for name in ["fwrite", "fwrite", "fflush"] {
            let count = 40 + self.random.below(90);
            let detail = match name {
                "fwrite" => Detail::Data { fd, count, ret: count, offset: None },
                _ => Detail::Handle { fd },
            };
            self.io(name, "STDIO", 0, 1_200, file, detail);
        }
    }

    /// What rank 0 of a host saves: the few `fsync` calls of the trace, close together in time.
    fn checkpoint(&mut self, step: i64, epoch: i64) {
        let (file, fd, begun) = (SAMPLES + PROCESSES + self.process * HOSTS / PROCESSES, 9, self.clock);
        self.io("open64", "POSIX", 0, 60_000, file, Detail::Open { fd, flags: 577 });
        for write in 0..40 {
            let count = 1 << 20;
            self.io("write", "POSIX", 0, 400_000, file, Detail::Data { fd, count, ret: count, offset: None });
            if write % 10 == 9 {
                self.io("fsync", "POSIX", 0, 9_000_000, file, Detail::Handle { fd });
            }
        }
        self.io("close", "POSIX", 0, 8_000, file, Detail::Handle { fd });
        let detail = Detail::Span { level: 1, epoch, step, image: None, extra: Extra::None };
        self.call("save_checkpoint", "checkpoint", 0, (begun, self.clock), None, detail);
    }

    /// What is left of the step, shared out among the spans of the model.
    fn compute(&mut self, until: i64, step: i64, epoch: i64) {
        let total = until - self.clock;
        for (name, cat, share) in [
            ("forward", "compute", 35),
            ("backward", "compute", 45),
            ("allreduce", "comm", 12),
            ("optimizer.step", "compute", 5),
        ] {
            let extra = match (name, self.random.below(100)) {
                ("forward", ..10) => Extra::Loss(self.random.below(9_000)),
                ("optimizer.step", 0) => Extra::Optimizer,
                _ => Extra::None,
            };
            let took = total * share / 100 + self.random.below(total / 200 + 1);
            let detail = Detail::Span { level: 1, epoch, step, image: None, extra };
            self.call(name, cat, 0, (self.clock, self.clock + took), None, detail);
            self.clock += took;
        }
    }
}

/// The host of a process.
pub(crate) fn host(process: usize) -> String {
    format!("node-{}", host_of(process))
}

pub(crate) fn host_of(process: usize) -> usize {
    process * HOSTS / PROCESSES
}

pub(crate) fn pid(process: usize) -> u32 {
    21_000 + process as u32 * 37
}

pub(crate) fn tid(process: usize, thread: u32) -> u32 {
    pid(process) + thread
}

/// What the job's files are called; some names need escapes.
pub(crate) fn path(file: usize) -> String {
    match file {
        _ if file >= SAMPLES + PROCESSES => format!("/p/lustre/job/checkpoint/host_{}.pt", file - SAMPLES - PROCESSES),
        _ if file >= SAMPLES => format!("/p/lustre/job/log/rank_{:02}.log", file - SAMPLES),
        _ if file.is_multiple_of(500) => format!("/p/lustre/job/data/train/\"odd\" näme\\{file}.npz"),
        _ => format!("/p/lustre/job/data/train/class_{:02}/img_{file:04}_of_{SAMPLES}.npz", file % 40),
    }
}
