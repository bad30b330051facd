//! A clock that is moved by hand, and a collector that takes its turns by it: no time passes unless a test says so.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::event::{EventfdFlags, eventfd};
use weftline_collect::clock::{Clock, ClockReading, Deadlines, Tick};
use weftline_collect::collector::{Collector, Options};
use weftline_format::manifest::SampleRecord;

/// Stands still until it is moved. Copies are the same clock.
#[derive(Debug, Clone)]
pub(crate) struct HandClock {
    /// Readable while a tick is due, and holds how many deadlines have passed, as the kernel's timer does.
    due: Arc<OwnedFd>,
    hands: Arc<Mutex<Hands>>,
}

#[derive(Debug)]
struct Hands {
    now: ClockReading,
    deadlines: Option<Deadlines>,
    /// The deadline up to which `due` was told.
    reported_ns: i64,
    taken: bool,
}

impl HandClock {
    /// Begins at the machine's time, since real processes say when they started.
    pub(crate) fn new() -> HandClock {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as i64;
        let now = ClockReading { steady_ns: 1_000_000_000_000, real_ns: real };
        let due = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an event");
        let hands = Hands { now, deadlines: None, reported_ns: 0, taken: true };
        HandClock { due: Arc::new(due), hands: Arc::new(Mutex::new(hands)) }
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().expect("no panic")
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, time: Duration) {
        let hands = &mut *self.hands();
        let ns = time.as_nanos() as i64;
        hands.now.steady_ns += ns;
        hands.now.real_ns += ns;
        let Some(deadlines) = hands.deadlines else { return };
        let passed = (hands.now.steady_ns - hands.reported_ns) / deadlines.interval_ns;
        if passed > 0 {
            hands.reported_ns += passed * deadlines.interval_ns;
            hands.taken = false;
            rustix::io::write(&*self.due, &(passed as u64).to_ne_bytes()).expect("told");
        }
    }

    /// Somebody sets the machine's clock; the steady one does not care.
    pub(crate) fn set_forward(&self, ns: i64) {
        self.hands().now.real_ns += ns;
    }

    fn to_next_deadline(&self) -> Duration {
        let hands = self.hands();
        let next_ns = hands.deadlines.expect("started").next_ns;
        Duration::from_nanos((next_ns - hands.now.steady_ns).max(0) as u64)
    }

    fn is_due(&self) -> bool {
        !self.hands().taken
    }
}

impl Clock for HandClock {
    fn now(&self) -> ClockReading {
        self.hands().now
    }

    fn start(&mut self, interval: Duration) -> std::io::Result<()> {
        let mut hands = self.hands();
        hands.reported_ns = hands.now.steady_ns;
        hands.deadlines = Some(Deadlines::new(hands.now.steady_ns, interval));
        Ok(())
    }

    fn tick(&mut self) -> std::io::Result<Option<Tick>> {
        let mut count = [0; 8];
        if rustix::io::read(&*self.due, &mut count).is_err() {
            return Ok(None);
        }
        let hands = &mut *self.hands();
        hands.taken = true;
        let now = hands.now;
        Ok(hands.deadlines.as_mut().map(|deadlines| deadlines.take(u64::from_ne_bytes(count), now)))
    }
}

impl AsFd for HandClock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.due.as_fd()
    }
}

/// A collector whose turns the test takes, one after the other and in its own thread.
pub(crate) struct Stepped {
    pub(crate) clock: HandClock,
    pub(crate) collector: Collector<HandClock>,
    pub(crate) said: Vec<String>,
    /// Dropped with the test, before its watchman loses patience.
    _watched: Sender<()>,
}

impl Stepped {
    pub(crate) fn start(options: Options) -> Stepped {
        let clock = HandClock::new();
        let collector = Collector::start_on(clock.clone(), options).expect("a collector");
        let (watched, gone) = channel::<()>();
        let stop = collector.stopper();
        // A turn waits for something that has happened already. If the collector does not hear of it, it is not to wait for ever.
        std::thread::spawn(move || {
            if gone.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
                stop.stop();
            }
        });
        Stepped { clock, collector, said: Vec::new(), _watched: watched }
    }

    /// Does what is to be done; whether the collector goes on.
    pub(crate) fn turn(&mut self) -> bool {
        let goes_on = self.collector.turn();
        self.said.append(&mut self.collector.take_messages());
        goes_on
    }

    /// One tick, at its deadline; the time of it, and whether the collector goes on.
    pub(crate) fn tick(&mut self) -> (ClockReading, bool) {
        self.tick_late(Duration::ZERO)
    }

    /// One tick that is taken so long after the next deadline.
    pub(crate) fn tick_late(&mut self, late: Duration) -> (ClockReading, bool) {
        self.clock.pass(self.clock.to_next_deadline() + late);
        let mut goes_on = true;
        while goes_on && self.clock.is_due() {
            goes_on = self.turn();
        }
        (self.clock.now(), goes_on)
    }

    pub(crate) fn ticks(&mut self, count: usize) {
        for number in 0..count {
            assert!(self.tick().1, "it ended at tick {number} of {count}: {:?}", self.said);
        }
    }

    /// What it did and said.
    pub(crate) fn finish(self) -> (SampleRecord, Vec<String>) {
        (self.collector.finish(), self.said)
    }
}
