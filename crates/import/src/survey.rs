//! What is known of all files before the first event is written: clocks, names of processes, what the user said.

use std::collections::BTreeMap;

use crate::clock::{Clock, ClockKind};

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
}

impl Survey {
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
