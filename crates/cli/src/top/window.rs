//! The last seconds of a run: looks summed up in frames of one interval, and frames in a window that slides.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use weftline_drain::glance::{Activity, OTHERS, Seen};

/// Calls, and files, that a frame tells apart.
const MOST_NAMES: usize = 16_384;

/// What one process recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recorded {
    pub(crate) events: u64,
    pub(crate) activity: Activity,
}

/// What was seen in one interval.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) length_ns: u64,
    pub(crate) events: u64,
    pub(crate) unseen: u64,
    /// Events count those that were not seen too.
    pub(crate) processes: HashMap<u128, Recorded>,
    calls: HashMap<Arc<str>, Activity>,
    files: HashMap<Arc<str>, Activity>,
}

impl Frame {
    pub(crate) fn add(&mut self, seen: &Seen) {
        self.length_ns += seen.elapsed_ns;
        self.events += seen.events;
        self.unseen += seen.unseen;
        for process in &seen.processes {
            let recorded = self.processes.entry(process.key).or_default();
            recorded.events += process.events + process.unseen;
            recorded.activity.add(&process.activity);
        }
        for call in &seen.calls {
            add(&mut self.calls, &call.name, &call.activity);
        }
        for file in &seen.files {
            add(&mut self.files, &file.path, &file.activity);
        }
    }
}

fn add(sums: &mut HashMap<Arc<str>, Activity>, name: &Arc<str>, activity: &Activity) {
    if sums.len() < MOST_NAMES || sums.contains_key(name) {
        sums.entry(Arc::clone(name)).or_default().add(activity);
    } else {
        sums.entry(OTHERS.into()).or_default().add(activity);
    }
}

/// A call or file with what it did in the window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hot {
    pub(crate) name: Arc<str>,
    pub(crate) activity: Activity,
}

/// The newest frames.
#[derive(Debug)]
pub(crate) struct Window {
    frames: VecDeque<Frame>,
    length_ns: u64,
}

impl Window {
    pub(crate) fn new(length_ns: u64) -> Window {
        Window { frames: VecDeque::new(), length_ns }
    }

    /// Takes a frame in, and lets those go that are too old.
    pub(crate) fn push(&mut self, frame: Frame) {
        self.frames.push_back(frame);
        while self.frames.len() > 1 && self.covers_ns() > self.length_ns.saturating_add(self.length_ns / 10) {
            self.frames.pop_front();
        }
    }

    pub(crate) fn covers_ns(&self) -> u64 {
        self.frames.iter().map(|frame| frame.length_ns).sum()
    }

    pub(crate) fn newest(&self) -> Option<&Frame> {
        self.frames.back()
    }

    /// Events that were seen, and all.
    pub(crate) fn events(&self) -> (u64, u64) {
        self.frames.iter().fold((0, 0), |(seen, all), frame| (seen + frame.events, all + frame.events + frame.unseen))
    }

    pub(crate) fn hottest_calls(&self, most: usize) -> Vec<Hot> {
        hottest(self.frames.iter().map(|frame| &frame.calls), most)
    }

    pub(crate) fn hottest_files(&self, most: usize) -> Vec<Hot> {
        hottest(self.frames.iter().map(|frame| &frame.files), most)
    }
}

/// Those that took the most time; among equals those with more calls, then by name, so that lines do not dance.
fn hottest<'a>(frames: impl Iterator<Item = &'a HashMap<Arc<str>, Activity>>, most: usize) -> Vec<Hot> {
    let mut sums: HashMap<Arc<str>, Activity> = HashMap::new();
    for frame in frames {
        for (name, activity) in frame {
            sums.entry(Arc::clone(name)).or_default().add(activity);
        }
    }
    let mut list: Vec<Hot> = sums.into_iter().map(|(name, activity)| Hot { name, activity }).collect();
    list.sort_by(|a, b| {
        let key = |hot: &Hot| (hot.activity.time_ns, hot.activity.count);
        key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
    });
    list.truncate(most);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length_ns: u64, calls: &[(&str, u64)]) -> Frame {
        let activity = |time_ns| Activity { count: 1, time_ns, ..Activity::default() };
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
