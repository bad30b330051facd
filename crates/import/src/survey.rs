//! What is known of all files before the first event is written: clocks, names of processes, what the user said.

use std::any::Any;
use std::collections::BTreeMap;

use crate::clock::{Clock, ClockKind};
use crate::formats::discs;

/// Facts that files tell about each other.
#[derive(Debug, Default)]
pub struct Survey {
    /// `--tz`: seconds that local time is ahead of UTC.
    pub zone_seconds: Option<i32>,
    /// Clocks that a file or the run itself describes.
    pub clocks: BTreeMap<ClockKind, Clock>,
    /// Names of processes.
    pub names: BTreeMap<u32, String>,
    /// The day on which texts begin that tell none, in days since 1970-01-01.
    pub first_day: Option<i64>,
    /// Who made a thread, by its id: the thread that made it, and whether it belongs to the same process.
    pub makers: BTreeMap<u32, (u32, bool)>,
    /// The thread that lines of a file are of which name none, by the file's name.
    pub first_threads: BTreeMap<String, u32>,
    /// Folders of Tracekit.
    pub tracekit: crate::formats::tracekit::Folders,
    /// What was found without being told, a sentence each; printed, and kept in the run.
    pub notes: Vec<String>,
    /// What the files of result folders of the DISCS tools tell.
    pub discs: discs::Facts,
    /// What the first pass over a file found for the second, by the file's name.
    pub(crate) own: BTreeMap<String, Box<dyn Any>>,
}

impl Survey {
    /// Concludes what no single file tells. To be called once, between the passes.
    pub fn conclude(&mut self) {
        let found = self.discs.conclude(self.zone_seconds);
        self.notes.extend(found.notes);
        for (pid, name) in found.names {
            self.names.entry(pid).or_insert(name);
        }
        for (kind, clock) in found.clocks {
            self.clocks.entry(kind).or_insert(clock);
        }
    }

    /// Keeps what the first pass over a file found, in a form that its format alone knows.
    pub fn keep(&mut self, name: &str, facts: impl Any) {
        self.own.insert(name.to_owned(), Box::new(facts));
    }

    /// What [`Survey::keep`] was given.
    pub fn kept<T: Any>(&self, name: &str) -> Option<&T> {
        self.own.get(name)?.downcast_ref()
    }

    /// The clock of a kind; one that is described nowhere counts from the epoch, and says so.
    pub fn clock(&self, kind: ClockKind) -> Clock {
        match self.clocks.get(&kind) {
            Some(clock) => clock.clone(),
            None if kind == ClockKind::Realtime => Clock::utc("as written"),
            None => Clock::offset(kind, 0, None, "nothing says when it began: times count from 1970"),
        }
    }

    /// The clock of wall texts: the zone that was told or found, else UTC.
    pub fn local_clock(&self) -> Clock {
        match (self.zone_seconds, self.clocks.get(&ClockKind::LocalText)) {
            (Some(seconds), _) => {
                Clock::offset(ClockKind::LocalText, -i64::from(seconds) * 1_000_000_000, Some(0), "--tz")
            }
            (None, Some(clock)) => clock.clone(),
            (None, None) => {
                Clock::offset(ClockKind::LocalText, 0, None, "taken as UTC: nothing tells the time zone; --tz sets it")
            }
        }
    }
}
