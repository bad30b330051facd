//! The loop of a collector: waits for the clock, for processes that end, for sentinel files and for a request to stop, and samples.
//!
//! `weft collect` runs it in the foreground, `weft run` in a thread of its own ([`Sampling`]) that opens nothing before the program has
//! run for a while, so that short programs do not pay for it.

mod descriptors;
mod ending;
mod groups;
mod lease;
mod node;
mod options;
mod sampling;
mod targets;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use weftline_format::manifest::{KernelRecord, SampleRecord, State};

use crate::clock::{Clock, ClockReading, KernelClock};
use crate::error::{CollectError, Result};
use crate::follow::Follower;
use crate::own::Own;
use crate::read::raise_open_files;
use crate::schedule::prefer_promptness;
use crate::writer::SampleWriter;

use descriptors::{DescriptorBudget, is_out_of_descriptors};
use groups::Groups;
use lease::SamplerLease;
use node::Node;
pub use options::Options;
pub use sampling::{Sampling, Stop};
use targets::Targets;

/// The shortest interval: below it a collector does little but wake up.
pub const SHORTEST: Duration = Duration::from_millis(1);
/// How often a collector that does not sample the host asks whether it may.
const LEASE_NS: i64 = 2_000_000_000;

/// What an event of the loop is about; ends of processes are `FIRST_PID` plus the pid.
mod about {
    pub(super) const TIMER: u64 = 0;
    pub(super) const STOP: u64 = 1;
    pub(super) const SENTINEL: u64 = 2;
    pub(super) const FIRST_PID: u64 = 16;
}

/// Samples a host and processes into one file of a run directory.
#[derive(Debug)]
pub struct Collector<C: Clock = KernelClock> {
    options: Options,
    own: Own,
    session: u32,
    began: ClockReading,
    stop: Stop,
    events: OwnedFd,
    clock: C,
    follower: Follower,
    targets: Targets,
    writer: SampleWriter,
    lease: Option<SamplerLease>,
    asked_ns: i64,
    node: Option<Node>,
    groups: Groups,
    ticks: u64,
    skipped: u64,
    messages: Vec<String>,
    #[cfg(feature = "kernel")]
    kernel: Option<crate::kernel::recording::Recording>,
}

impl Collector {
    /// Opens everything and takes the first look.
    pub fn start(options: Options) -> Result<Collector> {
        Collector::start_with(options, Stop::new()?)
    }

    fn start_with(options: Options, stop: Stop) -> Result<Collector> {
        let clock = KernelClock::new().map_err(|source| CollectError::System { what: "a timer", source })?;
        Collector::start_by(clock, options, stop)
    }
}

impl<C: Clock> Collector<C> {
    /// [`Collector::start`] by a clock of one's own.
    pub fn start_on(clock: C, options: Options) -> Result<Collector<C>> {
        Collector::start_by(clock, options, Stop::new()?)
    }

    fn start_by(mut clock: C, options: Options, stop: Stop) -> Result<Collector<C>> {
        if options.interval < SHORTEST {
            return Err(CollectError::Interval(options.interval));
        }
        let began = clock.now();
        let own = Own::read();
        // Every followed process takes a few.
        let limit = raise_open_files();
        let follower = Follower::new(options.follow.clone(), &options.roots)?;
        let groups = Groups::open(&options.follow.groups, &options.roots, began)?;
        let command = options.arguments.kept(options.command.iter().cloned());
        let (writer, session) = SampleWriter::create(&options.run, &own, &command, began.real_ns)?;
        let events = epoll::create(CreateFlags::CLOEXEC).map_err(CollectError::system("an event queue"))?;
        clock.start(options.interval).map_err(|source| CollectError::System { what: "a timer", source })?;
        let watch = |source: rustix::fd::BorrowedFd<'_>, data| {
            epoll::add(&events, source, EventData::new_u64(data), EventFlags::IN)
                .map_err(CollectError::system("an event queue"))
        };
        watch(clock.as_fd(), about::TIMER)?;
        watch(stop.as_fd(), about::STOP)?;
        if let Some(sentinels) = follower.sentinel_events() {
            watch(sentinels, about::SENTINEL)?;
        }
        let (descriptors, arguments) = (DescriptorBudget::new(limit), options.arguments);
        let targets = Targets::new(&options.roots, &own, began, descriptors, options.exit_records, arguments);
        let mut collector = Collector {
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
            lease: None,
            asked_ns: i64::MIN,
            node: None,
            groups,
            ticks: 0,
            skipped: 0,
            messages: Vec::new(),
            #[cfg(feature = "kernel")]
            kernel: None,
        };
        collector.look(&began);
        if collector.targets.is_empty() && collector.targets.descriptors.outside() > 0 {
            let limit = collector.targets.descriptors.limit();
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

    /// Records kernel events of every followed process, and stops that when it ends.
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
        self.node.is_some()
    }

    /// What the user should know, each thing once.
    pub fn take_messages(&mut self) -> Vec<String> {
        self.messages.append(&mut self.follower.take_messages());
        self.messages.extend(self.targets.descriptors.take_message());
        self.messages.extend(self.writer.take_trouble());
        std::mem::take(&mut self.messages)
    }

    /// Samples until it is stopped, its time is over or no process is left. `say` gets messages for the user.
    pub fn run(mut self, say: &mut dyn FnMut(&str)) -> SampleRecord {
        prefer_promptness();
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

    /// Waits for something and does what is to be done; whether to go on. [`Collector::run`] is nothing but turns.
    pub fn turn(&mut self) -> bool {
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
                about::TIMER => go_on &= self.tick(),
                about::STOP => go_on = false,
                about::SENTINEL => self.add_sentinels(),
                data => self.end((data - about::FIRST_PID) as u32),
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

    /// Samples everything. What is to be sampled at this moment comes first; whom to follow from now on, and writing, come after it.
    fn look(&mut self, at: &ClockReading) {
        // The host's files are opened first: processes take what is left of the descriptors.
        if self.options.host && self.node.is_none() && at.steady_ns.saturating_sub(self.asked_ns) >= LEASE_NS {
            self.asked_ns = at.steady_ns;
            self.lease = SamplerLease::take(&self.options.run, &self.own.host);
            if self.lease.is_some() {
                self.node = Some(Node::open(&self.options, *at));
            }
        }
        if let Some(node) = &mut self.node {
            let targets = &self.targets;
            node.sample(self.clock.now(), &|pid| targets.has(pid), &mut self.writer);
        }
        let gone = self.targets.sample(at, &self.clock, &mut self.writer);
        // Children of those that are gone are found while their parents are still known.
        for pid in self.follower.discover(at.steady_ns) {
            self.add(pid);
        }
        for pid in gone {
            self.end(pid);
        }
        self.groups.sample(self.clock.now(), &mut self.writer);
        if let Some(node) = &mut self.node {
            node.write_metadata(at, &mut self.writer);
        }
        self.writer.end_interval(at.steady_ns);
    }

    fn add(&mut self, pid: u32) {
        let reported_by = (&self.events, about::FIRST_PID + u64::from(pid));
        match self.targets.add(pid, reported_by, &self.clock, &mut self.writer) {
            Ok(()) => {}
            Err(error) if is_out_of_descriptors(&error) => {
                self.targets.descriptors.refuse(pid);
                self.follower.postponed(pid);
                return;
            }
            Err(_) => {
                self.follower.refused(pid);
                return;
            }
        }
        self.follow_in_kernel(pid);
        // Up to ten files, which must not be the last ones.
        let (descriptors, events) = (&self.targets.descriptors, &self.events);
        self.groups.add_of(pid, &self.options.roots, || descriptors.has_room(events));
    }

    /// A sentinel has come: its process is sampled at once.
    fn add_sentinels(&mut self) {
        for pid in self.follower.new_sentinels(self.clock.now().steady_ns) {
            self.add(pid);
        }
    }

    fn end(&mut self, pid: u32) {
        self.targets.end(pid, self.clock.now(), &mut self.writer);
        self.follower.ended(pid);
    }
}
