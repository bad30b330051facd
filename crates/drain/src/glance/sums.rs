//! Sums of one look. The number of names is bounded: all further names go to one sum.

use std::collections::HashMap;
use std::sync::Arc;

use weftline_calls::IoSums;

use super::{CallSeen, FileSeen, OTHERS, ProcessSeen, Seen};

/// Files, and annotations, that one look tells apart.
pub(super) const MOST_NAMES: usize = 4096;

/// Sums of one look over all arenas.
#[derive(Default)]
pub(super) struct Sums {
    calls: HashMap<(Arc<str>, Arc<str>), IoSums>,
    files: HashMap<Arc<str>, IoSums>,
    pub(super) processes: Vec<ProcessSeen>,
    /// Of images that are gone already.
    pub(super) events: u64,
    pub(super) unseen: u64,
}

impl Sums {
    pub(super) fn add_call(&mut self, name: &Arc<str>, category: &Arc<str>, activity: &IoSums) {
        let key = (Arc::clone(name), Arc::clone(category));
        if self.calls.len() < MOST_NAMES || self.calls.contains_key(&key) {
            self.calls.entry(key).or_default().merge(activity);
        } else {
            self.calls.entry((OTHERS.into(), "".into())).or_default().merge(activity);
        }
    }

    pub(super) fn add_file(&mut self, path: &Arc<str>, activity: &IoSums) {
        if self.files.len() < MOST_NAMES || self.files.contains_key(path) {
            self.files.entry(Arc::clone(path)).or_default().merge(activity);
        } else {
            self.files.entry(OTHERS.into()).or_default().merge(activity);
        }
    }

    /// Fills in what was summed up.
    pub(super) fn into_seen(self, seen: Seen) -> Seen {
        let mut processes = self.processes;
        processes.sort_by_key(|process| (process.pid, process.key));
        let sum = |count: fn(&ProcessSeen) -> u64| processes.iter().map(count).fold(0u64, u64::saturating_add);
        let mut calls: Vec<CallSeen> =
            self.calls.into_iter().map(|((name, category), activity)| CallSeen { name, category, activity }).collect();
        calls.sort_by(|a, b| (&a.name, &a.category).cmp(&(&b.name, &b.category)));
        let mut files: Vec<FileSeen> =
            self.files.into_iter().map(|(path, activity)| FileSeen { path, activity }).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Seen {
            events: self.events.saturating_add(sum(|process| process.events)),
            unseen: self.unseen.saturating_add(sum(|process| process.unseen)),
            processes,
            calls,
            files,
            ..seen
        }
    }
}
