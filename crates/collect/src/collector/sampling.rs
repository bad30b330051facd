//! A collector in a thread, and how to stop it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use weftline_format::manifest::SampleRecord;

use super::{Collector, Options};
use crate::error::{CollectError, Result};
use crate::schedule::prefer_promptness;

/// Tells a collector to stop, from any thread.
#[derive(Debug, Clone)]
pub struct Stop {
    event: Arc<OwnedFd>,
}

impl Stop {
    pub(super) fn new() -> Result<Stop> {
        let event =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(CollectError::system("an event"))?;
        Ok(Stop { event: Arc::new(event) })
    }

    /// Asks for the end. The collector takes a last sample, writes what it has and returns.
    pub fn stop(&self) {
        // It fails only when it was called 2^64 times.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }

    /// Waits; whether the word came before the time was over.
    fn within(&self, time: Duration) -> bool {
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        matches!(poll(&mut [PollFd::new(&*self.event, PollFlags::IN)], Some(&time)), Ok(1..))
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// A collector in a thread of its own, beside a program that another thread supervises.
#[derive(Debug)]
pub struct Sampling {
    stop: Stop,
    thread: std::thread::JoinHandle<Result<Option<SampleRecord>>>,
}

impl Sampling {
    /// Starts the thread, which opens nothing before `quiet` is over.
    pub fn spawn(options: Options, quiet: Duration) -> Result<Sampling> {
        let stop = Stop::new()?;
        let word = stop.clone();
        let body = move || {
            if word.within(quiet) {
                return Ok(None);
            }
            prefer_promptness();
            let mut collector = Collector::start_with(options, word)?;
            while collector.turn() {}
            if collector.ticks == 0 {
                collector.discard();
                return Ok(None);
            }
            Ok(Some(collector.finish()))
        };
        let thread = std::thread::Builder::new().name("weft-samples".into()).spawn(body);
        let thread = thread.map_err(|source| CollectError::System { what: "a thread", source })?;
        Ok(Sampling { stop, thread })
    }

    /// Ends it; what it sampled, or nothing where the program ended before the first interval was over.
    pub fn finish(self) -> Result<Option<SampleRecord>> {
        self.stop.stop();
        self.thread.join().unwrap_or(Ok(None))
    }
}
