//! A run at a moment, as data: rates, not sums. What `weft top` draws and prints as JSON.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::window::{Hot, Window};
use super::{ProcessState, RunState, Seen};

/// Calls, and files, that are kept for drawing: more than the tallest terminal shows.
const MOST_HOT: usize = 200;

/// What the kernel says of one process over the last interval. Nothing where it does not tell, or not yet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Processor time.
    pub cpu_ns: Option<u64>,
    /// Memory.
    pub rss_bytes: Option<u64>,
    /// Bytes that its calls read.
    pub read_bytes: Option<u64>,
    /// Bytes that its calls wrote.
    pub write_bytes: Option<u64>,
}

/// A run at a moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Picture {
    /// Its name.
    pub run: String,
    /// Whether it goes on.
    pub state: State,
    /// Since the run began.
    pub elapsed_ns: u64,
    /// Processes that record now …
    pub running: usize,
    /// … and those that ended.
    pub ended: u64,
    /// Of the last interval.
    pub interval_ns: u64,
    /// Events, those that were not read included.
    pub events_per_second: f64,
    /// Since the run began, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Its processes.
    pub processes: Vec<Process>,
    /// Calls and files are those of the last seconds: so many …
    pub window_ns: u64,
    /// … and of the events in them, this part was read; of the others only the number is known.
    pub share_seen: f64,
    /// Calls, the hottest first.
    pub calls: Vec<Heat>,
    /// Files, likewise.
    pub files: Vec<Heat>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A supervisor drains it.
    Running,
    /// Its processes record by themselves.
    Unsupervised,
    /// Its supervisor is gone.
    Abandoned,
    /// Nothing of it runs any more.
    Ended,
}

/// A process of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// Its parent's.
    pub ppid: u32,
    /// Its rank within a parallel job.
    pub rank: Option<u32>,
    /// Its command line, shortened.
    pub name: String,
    /// Its executable.
    pub exe: String,
    /// It announced its end, or is gone.
    pub ending: bool,
    /// Of one processor, by the kernel.
    pub cpu_percent: Option<f64>,
    /// Memory, by the kernel.
    pub rss_bytes: Option<u64>,
    /// By the kernel.
    pub read_bytes_per_second: Option<f64>,
    /// By the kernel.
    pub write_bytes_per_second: Option<f64>,
    /// By those of its events that were read.
    pub traced_read_bytes_per_second: f64,
    /// Likewise.
    pub traced_write_bytes_per_second: f64,
    /// Events.
    pub events_per_second: f64,
    /// Records that could not be kept.
    pub dropped: u64,
}

/// A call or a file of the last seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heat {
    /// Its name or path.
    pub name: String,
    /// Of each second, the time that was spent in it; over all threads, so more than a second is possible.
    pub time_share: f64,
    /// Calls.
    pub per_second: f64,
    /// Bytes read.
    pub read_bytes_per_second: f64,
    /// Bytes written.
    pub write_bytes_per_second: f64,
}

fn rate(count: u64, length_ns: u64) -> f64 {
    if length_ns == 0 { 0.0 } else { count as f64 * 1e9 / length_ns as f64 }
}

impl Picture {
    /// Puts together what the last look, the window and the kernel say.
    pub fn new(run: &str, seen: &Seen, window: &Window, usage: &HashMap<u32, Usage>, now_ns: i64) -> Picture {
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
    /// Bytes read per second: by the kernel, or where it does not tell by the trace.
    pub fn read(&self) -> f64 {
        self.read_bytes_per_second.unwrap_or(self.traced_read_bytes_per_second)
    }

    /// Bytes written per second, likewise.
    pub fn write(&self) -> f64 {
        self.write_bytes_per_second.unwrap_or(self.traced_write_bytes_per_second)
    }

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

#[cfg(test)]
mod tests {
    use weftline_calls::IoSums;

    use super::super::ProcessSeen;
    use super::super::window::Frame;
    use super::*;

    fn image(key: u128, state: ProcessState, events: u64, read_bytes: u64) -> ProcessSeen {
        ProcessSeen {
            pid: 7,
            own_pid: 7,
            ppid: 1,
            name: format!("image {key}").into(),
            exe: "/bin/sh".into(),
            command: [].into(),
            rank: None,
            state,
            events,
            unseen: 0,
            activity: IoSums { read_bytes, ..IoSums::default() },
            drops: vec![("arena full", 1)],
            key,
        }
    }

    /// Sums of two seconds become rates, and what a process was before its exec counts with what it is.
    #[test]
    fn sums_become_rates() {
        let seen = Seen {
            at_ns: 9,
            elapsed_ns: 2_000_000_000,
            started_ns: 1_000,
            state: RunState::Running,
            processes: vec![image(1, ProcessState::Ending, 10, 100), image(2, ProcessState::Running, 30, 300)],
            ended: 4,
            events: 40,
            unseen: 40,
            calls: Vec::new(),
            files: Vec::new(),
            drops: BTreeMap::new(),
            notes: Vec::new(),
        };
        let (mut frame, mut window) = (Frame::default(), Window::new(5_000_000_000));
        frame.add(&seen);
        window.push(frame);
        let usage = HashMap::from([(7, Usage { cpu_ns: Some(1_000_000_000), ..Usage::default() })]);
        let picture = Picture::new("run", &seen, &window, &usage, 5_001_000);
        assert_eq!((picture.running, picture.ended, picture.elapsed_ns), (1, 4, 5_000_000));
        assert_eq!((picture.events_per_second, picture.share_seen), (40.0, 0.5));
        let [process] = picture.processes.as_slice() else { panic!("one process: {picture:?}") };
        assert_eq!((process.name.as_str(), process.dropped), ("image 2", 2));
        assert_eq!((process.events_per_second, process.read()), (20.0, 200.0));
        assert_eq!(process.cpu_percent, Some(50.0));
        assert_eq!(process.rss_bytes, None, "nobody told it");
    }
}
