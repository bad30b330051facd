//! The last seconds of a run: looks summed up in frames of one interval, and frames in a window that slides.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{OTHERS, Seen};
use weftline_calls::IoSums;

/// Calls, and files, that a frame tells apart.
const MOST_NAMES: usize = 16_384;

/// What one process recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recorded {
    /// Its events, those that were not seen included.
    pub events: u64,
    /// What its calls did.
    pub activity: IoSums,
}

/// What was seen in one interval.
#[derive(Debug, Default)]
pub struct Frame {
    /// How long it is.
    pub length_ns: u64,
    /// Events that were seen.
    pub events: u64,
    /// Events that were recorded and not seen.
    pub unseen: u64,
    /// Each process, by its key.
    pub processes: HashMap<u128, Recorded>,
    calls: HashMap<Arc<str>, IoSums>,
    files: HashMap<Arc<str>, IoSums>,
}

impl Frame {
    /// Takes up a look.
    pub fn add(&mut self, seen: &Seen) {
        self.length_ns += seen.elapsed_ns;
        self.events += seen.events;
        self.unseen += seen.unseen;
        for process in &seen.processes {
            let recorded = self.processes.entry(process.key).or_default();
            recorded.events += process.events + process.unseen;
            recorded.activity.merge(&process.activity);
        }
        for call in &seen.calls {
            add(&mut self.calls, &call.name, &call.activity);
        }
        for file in &seen.files {
            add(&mut self.files, &file.path, &file.activity);
        }
    }
}

fn add(sums: &mut HashMap<Arc<str>, IoSums>, name: &Arc<str>, activity: &IoSums) {
    if sums.len() < MOST_NAMES || sums.contains_key(name) {
        sums.entry(Arc::clone(name)).or_default().merge(activity);
    } else {
        sums.entry(OTHERS.into()).or_default().merge(activity);
    }
}

/// A call or file with what it did in the window.
#[derive(Debug, Clone, PartialEq)]
pub struct Hot {
    /// Its name or path.
    pub name: Arc<str>,
    /// What it did.
    pub activity: IoSums,
}

/// The newest frames.
#[derive(Debug)]
pub struct Window {
    frames: VecDeque<Frame>,
    length_ns: u64,
}

impl Window {
    /// An empty one of that length.
    pub fn new(length_ns: u64) -> Window {
        Window { frames: VecDeque::new(), length_ns }
    }

    /// Takes a frame in, and lets those go that are too old.
    pub fn push(&mut self, frame: Frame) {
        self.frames.push_back(frame);
        while self.frames.len() > 1 && self.covers_ns() > self.length_ns.saturating_add(self.length_ns / 10) {
            self.frames.pop_front();
        }
    }

    /// How long its frames are together.
    pub fn covers_ns(&self) -> u64 {
        self.frames.iter().map(|frame| frame.length_ns).sum()
    }

    /// The frame that came last.
    pub fn newest(&self) -> Option<&Frame> {
        self.frames.back()
    }

    /// Events that were seen, and all.
    pub fn events(&self) -> (u64, u64) {
        self.frames.iter().fold((0, 0), |(seen, all), frame| (seen + frame.events, all + frame.events + frame.unseen))
    }

    /// Calls with the most time.
    pub fn hottest_calls(&self, most: usize) -> Vec<Hot> {
        hottest(self.frames.iter().map(|frame| &frame.calls), most)
    }

    /// Files with the most time.
    pub fn hottest_files(&self, most: usize) -> Vec<Hot> {
        hottest(self.frames.iter().map(|frame| &frame.files), most)
    }
}

/// Those that took the most time; among equals those with more calls, then by name, so that lines do not dance.
fn hottest<'a>(frames: impl Iterator<Item = &'a HashMap<Arc<str>, IoSums>>, most: usize) -> Vec<Hot> {
    let mut sums: HashMap<Arc<str>, IoSums> = HashMap::new();
    for frame in frames {
        for (name, activity) in frame {
            sums.entry(Arc::clone(name)).or_default().merge(activity);
        }
    }
    let mut list: Vec<Hot> = sums.into_iter().map(|(name, activity)| Hot { name, activity }).collect();
    list.sort_by(|a, b| {
        let key = |hot: &Hot| (hot.activity.time_ns, hot.activity.calls);
        key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
    });
    list.truncate(most);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length_ns: u64, calls: &[(&str, u64)]) -> Frame {
        let activity = |time_ns| IoSums { calls: 1, time_ns, ..IoSums::default() };
        let calls = calls.iter().map(|(name, time)| ((*name).into(), activity(*time))).collect();
        Frame { length_ns, events: 1, unseen: 1, calls, ..Frame::default() }
    }

    #[test]
    fn it_slides() {
        let mut window = Window::new(5_000);
        window.push(frame(1_000, &[("read", 900), ("old", 999)]));
        for _ in 0..5 {
            window.push(frame(1_000, &[("write", 10), ("read", 20), ("open", 10)]));
        }
        let names: Vec<(String, u64)> =
            window.hottest_calls(9).iter().map(|hot| (hot.name.to_string(), hot.activity.time_ns)).collect();
        assert_eq!(names, [("read".into(), 100), ("open".into(), 50), ("write".into(), 50)]);
        assert_eq!((window.covers_ns(), window.events()), (5_000, (5, 10)));
        assert_eq!(window.hottest_calls(1).len(), 1);
    }
}
