//! The loop of a collector: waits for the clock, for ends of processes, for sentinels and for the word to stop, and samples.
//!
//! `weft collect` runs it in the foreground, `weft run` in a thread of its own ([`Sampling`]) that opens nothing before the program has
//! run for a while, so that short programs do not pay for it.

mod crowd;
mod office;
mod sampling;
mod targets;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use weftline_format::manifest::{KernelRecord, SampleRecord, State, SupervisorRecord};

use crate::cgroup::CgroupSampler;
use crate::clock::{Clock, Moment};
use crate::energy::EnergySampler;
use crate::error::{CollectError, Result};
use crate::follow::{Follow, Follower, Group};
use crate::gpu::{DeviceSampler, GpuSampler};
use crate::host::HostSampler;
use crate::node;
use crate::own::Own;
use crate::read::raise_open_files;
use crate::roots::Roots;
use crate::writer::SampleWriter;

use crowd::{Crowd, is_crowded};
use office::Office;
pub use sampling::{Sampling, Stop};
use targets::Targets;

/// The shortest interval: below it a collector does little but wake up.
pub const SHORTEST: Duration = Duration::from_millis(1);
/// How often a collector that does not sample the host asks whether it may.
const OFFICE_NS: i64 = 2_000_000_000;

/// Control groups are sampled no more often than this: the kernel adds up all processes of a group for each look.
const GROUPS_NS: i64 = 1_000_000_000;
/// Control groups that are sampled at most.
const MOST_GROUPS: usize = 32;

/// What a collector is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run directory; it must exist.
    pub run: PathBuf,
    /// From sample to sample.
    pub interval: Duration,
    /// Which processes.
    pub follow: Follow,
    /// Ends when so much time has passed.
    pub duration: Option<Duration>,
    /// Samples the host as well, unless another collector of the run does.
    pub host: bool,
    /// Ends when nobody is left of the trees that it follows.
    pub until_gone: bool,
    /// Asks the kernel for its records of processes that end, which tell the CPU time of those that nobody could look at in time.
    pub exit_records: bool,
    /// Writes a manifest record of its own; a supervisor's thread leaves that to the supervisor.
    pub own_record: bool,
    /// Where `/proc` and `/sys` are.
    pub roots: Roots,
    /// The node's id.
    pub node: String,
    /// The stage of a workflow.
    pub stage: Option<String>,
    /// A host to measure the round trip to.
    pub peer: Option<String>,
    /// The command line, for the identity of the file.
    pub command: Vec<String>,
}

// What an event of the loop is about; ends of processes are `FIRST_PID` plus the pid.
const TIMER: u64 = 0;
const STOP: u64 = 1;
const SENTINEL: u64 = 2;
const FIRST_PID: u64 = 16;

/// Samples a host and processes into one file of a run directory.
#[derive(Debug)]
pub struct Collector {
    options: Options,
    own: Own,
    session: u32,
    began: Moment,
    stop: Stop,
    events: OwnedFd,
    clock: Clock,
    follower: Follower,
    targets: Targets,
    writer: SampleWriter,
    office: Option<Office>,
    asked_ns: i64,
    host: Option<Host>,
    groups: Vec<CgroupSampler>,
    groups_at: Moment,
    facts: Option<Receiver<serde_json::Map<String, serde_json::Value>>>,
    ticks: u64,
    skipped: u64,
    messages: Vec<String>,
    #[cfg(feature = "kernel")]
    kernel: Option<crate::kernel::recording::Recording>,
}

/// What is sampled for the node as a whole.
#[derive(Debug)]
struct Host {
    machine: HostSampler,
    energy: EnergySampler,
    devices: Vec<Box<dyn DeviceSampler>>,
    last: Moment,
}

impl Collector {
    /// Opens everything and takes the first look.
    pub fn start(options: Options) -> Result<Collector> {
        Collector::start_with(options, Stop::new()?)
    }

    fn start_with(options: Options, stop: Stop) -> Result<Collector> {
        if options.interval < SHORTEST {
            return Err(CollectError::Interval(options.interval));
        }
        let began = Moment::now();
        let own = Own::read();
        // Every followed process takes a few.
        let limit = raise_open_files();
        let follower = Follower::new(options.follow.clone(), &options.roots)?;
        let mut groups = Vec::new();
        for group in &options.follow.groups {
            if let Group::Path(path) = group {
                groups.push(CgroupSampler::open(&options.roots, path).map_err(|error| CollectError::io(path, error))?);
            }
        }
        let (writer, session) = SampleWriter::create(&options.run, &own, &options.command, began.real_ns)?;
        let events = epoll::create(CreateFlags::CLOEXEC).map_err(CollectError::system("an event queue"))?;
        let clock = Clock::start(options.interval, options.interval)
            .map_err(|source| CollectError::System { what: "a timer", source })?;
        let watch = |source: rustix::fd::BorrowedFd<'_>, data| {
            epoll::add(&events, source, EventData::new_u64(data), EventFlags::IN)
                .map_err(CollectError::system("an event queue"))
        };
        watch(clock.as_fd(), TIMER)?;
        watch(stop.as_fd(), STOP)?;
        if let Some(sentinels) = follower.sentinel_events() {
            watch(sentinels, SENTINEL)?;
        }
        let targets = Targets::new(&options.roots, &own, began, Crowd::new(limit), options.exit_records);
        let mut collector = Collector {
            facts: None,
            options,
            own,
            session,
            began,
            stop,
            events,
            clock,
            follower,
            targets,
            writer,
            office: None,
            asked_ns: i64::MIN,
            host: None,
            groups,
            groups_at: began,
            ticks: 0,
            skipped: 0,
            messages: Vec::new(),
            #[cfg(feature = "kernel")]
            kernel: None,
        };
        collector.look(&began);
        if collector.targets.is_empty() && collector.targets.crowd.outside() > 0 {
            let limit = collector.targets.crowd.limit();
            collector.discard();
            return Err(CollectError::NoRoom(limit));
        }
        collector.write_record(State::Open)?;
        Ok(collector)
    }

    /// What stops it.
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Has the kernel tell of every followed process, and ends that with itself.
    #[cfg(feature = "kernel")]
    pub fn add_kernel(&mut self, kernel: crate::kernel::recording::Recording) {
        for pid in self.targets.pids() {
            if let Err(error) = kernel.follow(pid) {
                self.messages.push(error.to_string());
            }
        }
        self.kernel = Some(kernel);
    }

    #[cfg(feature = "kernel")]
    fn follow_in_kernel(&mut self, pid: u32) {
        if let Some(Err(error)) = self.kernel.as_ref().map(|kernel| kernel.follow(pid)) {
            self.messages.push(error.to_string());
        }
    }

    #[cfg(not(feature = "kernel"))]
    fn follow_in_kernel(&mut self, _pid: u32) {}

    #[cfg(feature = "kernel")]
    fn kernel_record(&mut self) -> Option<KernelRecord> {
        self.kernel.take().map(crate::kernel::recording::Recording::finish)
    }

    #[cfg(not(feature = "kernel"))]
    fn kernel_record(&mut self) -> Option<KernelRecord> {
        None
    }

    /// The file that samples go to.
    pub fn file(&self) -> &Path {
        self.writer.path()
    }

    /// Whether this collector samples the host; another one of the same node and run may do that.
    pub fn samples_host(&self) -> bool {
        self.host.is_some()
    }

    /// What the user should know, each thing once.
    pub fn take_messages(&mut self) -> Vec<String> {
        self.messages.append(&mut self.follower.take_messages());
        self.messages.extend(self.targets.crowd.take_message());
        self.messages.extend(self.writer.take_trouble());
        std::mem::take(&mut self.messages)
    }

    /// Samples until it is told to stop, its time is over or nobody is left. `say` gets what the user should know.
    pub fn run(mut self, say: &mut dyn FnMut(&str)) -> SampleRecord {
        loop {
            let go_on = self.turn();
            for message in self.take_messages() {
                say(&message);
            }
            if !go_on {
                return self.finish();
            }
        }
    }

    /// Waits for something and does what is to be done; whether to go on.
    fn turn(&mut self) -> bool {
        let mut ready: [Event; 16] = [const { Event { flags: EventFlags::empty(), data: EventData::new_u64(0) } }; 16];
        let count = match epoll::wait(&self.events, &mut ready[..], None) {
            Ok(count) => count,
            Err(Errno::INTR) => return true,
            Err(error) => {
                self.messages.push(format!("sampling ends: {error}"));
                return false;
            }
        };
        let mut go_on = true;
        for event in &ready[..count] {
            match event.data.u64() {
                TIMER => go_on &= self.tick(),
                STOP => go_on = false,
                SENTINEL => self.greet(),
                data => self.end((data - FIRST_PID) as u32),
            }
        }
        go_on && !self.is_done()
    }

    fn is_done(&self) -> bool {
        self.options.until_gone && self.targets.is_empty() && !self.options.follow.trees.is_empty()
    }

    fn tick(&mut self) -> bool {
        let tick = match self.clock.tick() {
            Ok(Some(tick)) => tick,
            Ok(None) => return true,
            Err(error) => {
                self.messages.push(format!("sampling ends: {error}"));
                return false;
            }
        };
        self.ticks += 1;
        self.skipped += tick.skipped;
        self.look(&tick.at);
        let passed = Duration::from_nanos((tick.at.steady_ns - self.began.steady_ns).max(0) as u64);
        self.options.duration.is_none_or(|duration| passed < duration)
    }

    /// Samples everything.
    fn look(&mut self, at: &Moment) {
        // The host's files come first: processes take what is left of the descriptors.
        if self.options.host && self.host.is_none() && at.steady_ns.saturating_sub(self.asked_ns) >= OFFICE_NS {
            self.asked_ns = at.steady_ns;
            self.office = Office::take(&self.options.run, &self.own.host);
            if self.office.is_some() {
                self.open_host(*at);
            }
        }
        for pid in self.follower.discover(at.steady_ns) {
            self.add(pid);
        }
        if let Some(facts) = self.facts.as_ref().and_then(|facts| facts.try_recv().ok()) {
            self.writer.host_fact("node", at.real_ns, &facts);
            self.facts = None;
        }
        if let Some(host) = &mut self.host {
            let now = Moment::now();
            let interval = now.since(&host.last);
            host.machine.sample(interval, &mut self.writer);
            host.energy.sample(interval, &mut self.writer);
            let targets = &self.targets;
            for device in &mut host.devices {
                device.sample(interval, &|pid| targets.has(pid), &mut self.writer);
            }
            host.last = now;
        }
        let now = Moment::now();
        if now.steady_ns - self.groups_at.steady_ns >= GROUPS_NS {
            let (interval, writer) = (now.since(&self.groups_at), &mut self.writer);
            self.groups.retain_mut(|group| group.sample(interval, writer).is_ok());
            self.groups_at = now;
        }
        for pid in self.targets.sample(at, &mut self.writer) {
            self.end(pid);
        }
        self.writer.end_interval();
    }

    fn open_host(&mut self, now: Moment) {
        let roots = &self.options.roots;
        self.host = Some(Host {
            machine: HostSampler::new(roots),
            energy: EnergySampler::new(roots),
            devices: GpuSampler::detect(roots),
            last: now,
        });
        let (send, receive) = channel();
        let (roots, peer) = (roots.clone(), self.options.peer.clone());
        let (node, stage) = (self.options.node.clone(), self.options.stage.clone());
        let has_peer = peer.is_some();
        let gather = move || {
            let Ok(serde_json::Value::Object(mut facts)) = serde_json::to_value(node::facts(&roots, peer.as_deref()))
            else {
                return;
            };
            facts.insert("node".into(), node.into());
            if let Some(stage) = stage {
                facts.insert("stage".into(), stage.into());
            }
            // A collector that has ended wants no facts.
            let _ = send.send(facts);
        };
        if has_peer {
            // The round trip takes its time, and a name server may take longer.
            std::thread::spawn(gather);
        } else {
            // No thread without need: what one has read when it ends, `weft run` would take for its program's.
            gather();
        }
        self.facts = Some(receive);
    }

    fn add(&mut self, pid: u32) {
        match self.targets.add(pid, &self.events, FIRST_PID + u64::from(pid), &mut self.writer) {
            Ok(()) => {}
            Err(error) if is_crowded(&error) => {
                self.targets.crowd.turn_away(pid);
                self.follower.postponed(pid);
                return;
            }
            Err(_) => {
                self.follower.refused(pid);
                return;
            }
        }
        self.follow_in_kernel(pid);
        self.sample_group_of(pid);
    }

    /// What a process may use and whether it is throttled is told by its control group. The root is the machine itself.
    fn sample_group_of(&mut self, pid: u32) {
        let roots = &self.options.roots;
        let Ok(name) = CgroupSampler::name_of_process(roots, pid) else { return };
        let name = name.to_string_lossy();
        let is_known = self.groups.iter().any(|group| group.name() == name);
        if name != "/" && !is_known && self.groups.len() < MOST_GROUPS {
            let group = CgroupSampler::of_process(roots, pid);
            // Up to ten files, which must not be the last ones.
            self.groups.extend(group.into_iter().filter(|_| self.targets.crowd.has_room(&self.events)));
        }
    }

    /// A sentinel has come: its process is sampled at once.
    fn greet(&mut self) {
        let now = Moment::now();
        for pid in self.follower.new_sentinels(now.steady_ns) {
            self.add(pid);
        }
    }

    fn end(&mut self, pid: u32) {
        self.targets.end(pid, &mut self.writer);
        self.follower.ended(pid);
    }

    /// The last look, and the last write.
    fn finish(mut self) -> SampleRecord {
        self.look(&Moment::now());
        if let Some(facts) = self.facts.take().and_then(|facts| facts.recv_timeout(LAST_WORD).ok()) {
            self.writer.host_fact("node", Moment::now().real_ns, &facts);
        }
        let record = self.record_now();
        let kernel = self.kernel_record();
        let Collector { options, own, session, began, writer, .. } = self;
        let counts = writer.finish();
        let mut samples = SampleRecord { samples: counts.samples, ..record };
        if counts.lost > 0 {
            samples.lost = BTreeMap::from([("no space".to_owned(), counts.lost)]);
        }
        if options.own_record {
            let ended = Moment::now();
            let closed = SupervisorRecord {
                state: State::Complete,
                started_ns: began.real_ns,
                ended_ns: ended.real_ns,
                samples: Some(samples.clone()),
                kernel,
                ..own.record(session)
            };
            // On a full disk the one from the start stays, which says that the collector is at work.
            let _ = closed.write(&options.run);
        }
        samples
    }

    /// Leaves nothing: for a program that ended before there was anything to tell.
    fn discard(self) {
        self.writer.discard();
    }

    fn record_now(&self) -> SampleRecord {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let mut what = self.options.follow.describe();
        if self.host.is_some() {
            what.push_str(" and the host");
        }
        SampleRecord {
            file: self.writer.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
            node: self.options.node.clone(),
            stage: self.options.stage.clone(),
            what,
            interval_ns: self.options.interval.as_nanos() as u64,
            ticks: self.ticks,
            skipped_ticks: self.skipped,
            samples: 0,
            lost: BTreeMap::new(),
            processes: self.targets.followed,
            not_followed: self.targets.crowd.outside(),
            told_ends: self.targets.told_ends,
            unseen_ends: self.targets.unseen_ends,
            unseen_ns: self.targets.unseen_ns,
            cpu_ns: (cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec) as u64,
        }
    }

    fn write_record(&self, state: State) -> Result<()> {
        if !self.options.own_record {
            return Ok(());
        }
        let record = SupervisorRecord {
            state,
            started_ns: self.began.real_ns,
            samples: Some(self.record_now()),
            ..self.own.record(self.session)
        };
        Ok(record.write(&self.options.run)?)
    }
}

/// How long the end waits for facts of the node that are still being gathered.
const LAST_WORD: Duration = Duration::from_millis(200);
