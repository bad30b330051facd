//! What is shown, as data: rates, not sums.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use weftline_drain::glance::window::{Hot, Window};
use weftline_drain::glance::{ProcessState, RunState, Seen};

use super::usage::Usage;

/// Calls, and files, that are kept for drawing: more than the tallest terminal shows.
const MOST_HOT: usize = 200;

/// A run at a moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Picture {
    pub(crate) run: String,
    pub(crate) state: State,
    /// Since the run began.
    pub(crate) elapsed_ns: u64,
    /// Processes that record now, and those that ended.
    pub(crate) running: usize,
    pub(crate) ended: u64,
    /// Of the last interval.
    pub(crate) interval_ns: u64,
    pub(crate) events_per_second: f64,
    /// Since the run began, by reason.
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) processes: Vec<Process>,
    /// Calls and files are those of the last seconds: so many …
    pub(crate) window_ns: u64,
    /// … and of the events in them, this part was read; of the others only the number is known.
    pub(crate) share_seen: f64,
    pub(crate) calls: Vec<Heat>,
    pub(crate) files: Vec<Heat>,
    pub(crate) notes: Vec<String>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Running,
    Unsupervised,
    Abandoned,
    Ended,
}

/// A process of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) ppid: u32,
    pub(crate) rank: Option<u32>,
    pub(crate) name: String,
    pub(crate) exe: String,
    pub(crate) ending: bool,
    /// Of one processor, by the kernel.
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) read_bytes_per_second: Option<f64>,
    pub(crate) write_bytes_per_second: Option<f64>,
    /// By those of its events that were read.
    pub(crate) traced_read_bytes_per_second: f64,
    pub(crate) traced_write_bytes_per_second: f64,
    pub(crate) events_per_second: f64,
    /// Records that could not be kept.
    pub(crate) dropped: u64,
}

/// A call or a file of the last seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Heat {
    pub(crate) name: String,
    /// Of each second, the time that was spent in it; over all threads, so more than a second is possible.
    pub(crate) time_share: f64,
    pub(crate) per_second: f64,
    pub(crate) read_bytes_per_second: f64,
    pub(crate) write_bytes_per_second: f64,
}

fn rate(count: u64, length_ns: u64) -> f64 {
    if length_ns == 0 { 0.0 } else { count as f64 * 1e9 / length_ns as f64 }
}

impl Picture {
    /// Puts together what the last look, the window and the kernel say.
    pub(crate) fn new(run: &str, seen: &Seen, window: &Window, usage: &HashMap<u32, Usage>, now_ns: i64) -> Picture {
        let frame = window.newest();
        let interval_ns = frame.map_or(0, |frame| frame.length_ns);
        let (events_seen, events) = window.events();
        let mut processes: Vec<Process> = Vec::new();
        for process in &seen.processes {
            let recorded = frame.and_then(|frame| frame.processes.get(&process.key)).copied().unwrap_or_default();
            let used = usage.get(&process.pid).copied().unwrap_or_default();
            let dropped = process.drops.iter().map(|(_, count)| count).sum();
            let row = Process {
                pid: if process.pid == 0 { process.own_pid } else { process.pid },
                ppid: process.ppid,
                rank: process.rank,
                name: process.name.to_string(),
                exe: process.exe.to_string(),
                ending: process.state == ProcessState::Ending,
                cpu_percent: used.cpu_ns.map(|ns| rate(ns, interval_ns) / 1e7),
                rss_bytes: used.rss_bytes,
                read_bytes_per_second: used.read_bytes.map(|bytes| rate(bytes, interval_ns)),
                write_bytes_per_second: used.write_bytes.map(|bytes| rate(bytes, interval_ns)),
                traced_read_bytes_per_second: rate(recorded.activity.read_bytes, interval_ns),
                traced_write_bytes_per_second: rate(recorded.activity.write_bytes, interval_ns),
                events_per_second: rate(recorded.events, interval_ns),
                dropped,
            };
            // What a process was before an exec is there until it is drained.
            match processes.iter_mut().find(|other| other.pid == row.pid) {
                Some(other) => other.become_one_with(row),
                None => processes.push(row),
            }
        }
        let covered = window.covers_ns();
        let heat = |hot: Vec<Hot>| hot.into_iter().map(|hot| Heat::new(&hot, covered)).collect();
        Picture {
            run: run.to_owned(),
            state: match seen.state {
                RunState::Running => State::Running,
                RunState::Unsupervised => State::Unsupervised,
                RunState::Abandoned => State::Abandoned,
                RunState::Ended => State::Ended,
            },
            elapsed_ns: u64::try_from(now_ns.saturating_sub(seen.started_ns)).unwrap_or(0),
            running: processes.iter().filter(|process| !process.ending).count(),
            ended: seen.ended,
            interval_ns,
            events_per_second: frame.map_or(0.0, |frame| rate(frame.events + frame.unseen, interval_ns)),
            drops: seen.drops.clone(),
            processes,
            window_ns: covered,
            share_seen: if events == 0 { 1.0 } else { events_seen as f64 / events as f64 },
            calls: heat(window.hottest_calls(MOST_HOT)),
            files: heat(window.hottest_files(MOST_HOT)),
            notes: seen.notes.clone(),
        }
    }
}

impl Process {
    /// Two images of one process are shown as one: the one that goes on, with what both did.
    fn become_one_with(&mut self, other: Process) {
        let (mut shown, past) = if self.ending { (other, std::mem::take(self)) } else { (std::mem::take(self), other) };
        shown.events_per_second += past.events_per_second;
        shown.traced_read_bytes_per_second += past.traced_read_bytes_per_second;
        shown.traced_write_bytes_per_second += past.traced_write_bytes_per_second;
        shown.dropped += past.dropped;
        *self = shown;
    }
}

impl Heat {
    fn new(hot: &Hot, covered_ns: u64) -> Heat {
        Heat {
            name: hot.name.to_string(),
            time_share: rate(hot.activity.time_ns, covered_ns) / 1e9,
            per_second: rate(hot.activity.calls, covered_ns),
            read_bytes_per_second: rate(hot.activity.read_bytes, covered_ns),
            write_bytes_per_second: rate(hot.activity.write_bytes, covered_ns),
        }
    }
}
