//! Spans that are written as two events: `B` and `E` on a thread's stack, `b` and `e` by category and id.
//!
//! The row of the first event gets the duration. Within a collector that is done at once. If the second event is in another task or
//! row group, both are [`Loose`] ends; [`Stitcher`] sees them in order and computes the durations that come too late for the
//! rows. Those are stored beside the rows.

use rustc_hash::FxHashMap;

/// A thread: process and thread id.
type Thread = (u32, i64);
/// An asynchronous span: the number of its file, category and id. Ids of two files have nothing to do with each other.
type AsyncKey = (usize, String, String);

/// A span that began: its row and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun<R> {
    row: R,
    ts: i64,
}

#[derive(Default)]
pub(super) struct Pairs {
    file: usize,
    open: FxHashMap<Thread, Vec<Begun<usize>>>,
    ends: Vec<(Thread, i64)>,
    async_open: FxHashMap<AsyncKey, Vec<Begun<usize>>>,
    async_ends: Vec<(AsyncKey, i64)>,
}

/// What a collector could not pair: first the ends, whose beginnings are in earlier rows, then the beginnings.
#[derive(Debug, Default)]
pub(crate) struct Loose {
    ends: Vec<(Thread, i64)>,
    begins: Vec<(Thread, Begun<usize>)>,
    async_ends: Vec<(AsyncKey, i64)>,
    async_begins: Vec<(AsyncKey, Begun<usize>)>,
}

impl Loose {
    /// The rows were sorted: where each one is now.
    pub(crate) fn moved(&mut self, places: &[u32]) {
        let begins = self.begins.iter_mut().map(|(_, begun)| begun);
        for begun in begins.chain(self.async_begins.iter_mut().map(|(_, begun)| begun)) {
            begun.row = places[begun.row] as usize;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.begins.is_empty() && self.async_ends.is_empty() && self.async_begins.is_empty()
    }
}

impl Pairs {
    pub(super) fn begin_file(&mut self, number: usize) {
        self.file = number;
    }

    pub(super) fn begin(&mut self, thread: Thread, row: usize, ts: i64) {
        self.open.entry(thread).or_default().push(Begun { row, ts });
    }

    /// The row of the span that ends, and its duration.
    pub(super) fn end(&mut self, thread: Thread, ts: i64) -> Option<(usize, i64)> {
        let begun = self.open.get_mut(&thread).and_then(Vec::pop);
        if begun.is_none() {
            self.ends.push((thread, ts));
        }
        begun.map(|begun| (begun.row, ts.saturating_sub(begun.ts)))
    }

    pub(super) fn async_begin(&mut self, cat: &str, id: String, row: usize, ts: i64) {
        self.async_open.entry((self.file, cat.to_owned(), id)).or_default().push(Begun { row, ts });
    }

    pub(super) fn async_end(&mut self, cat: &str, id: String, ts: i64) -> Option<(usize, i64)> {
        let key = (self.file, cat.to_owned(), id);
        let begun = self.async_open.get_mut(&key).and_then(Vec::pop);
        if begun.is_none() {
            self.async_ends.push((key, ts));
        }
        begun.map(|begun| (begun.row, ts.saturating_sub(begun.ts)))
    }

    pub(super) fn take(&mut self) -> Loose {
        let mut begins: Vec<_> = flatten(&mut self.open);
        begins.sort_by_key(|(_, begun)| begun.row);
        let mut async_begins: Vec<_> = flatten(&mut self.async_open);
        async_begins.sort_by_key(|(_, begun)| begun.row);
        Loose {
            ends: std::mem::take(&mut self.ends),
            begins,
            async_ends: std::mem::take(&mut self.async_ends),
            async_begins,
        }
    }
}

fn flatten<K: Clone + Eq + std::hash::Hash>(open: &mut FxHashMap<K, Vec<Begun<usize>>>) -> Vec<(K, Begun<usize>)> {
    open.drain().flat_map(|(key, stack)| stack.into_iter().map(move |begun| (key.clone(), begun))).collect()
}

/// A row: its group, and its place in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub group: usize,
    pub row: u32,
}

/// A duration that became known after its row was handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    pub at: Position,
    pub dur: i64,
    /// When the span ended.
    pub end: i64,
}

/// Pairs loose ends over row groups.
#[derive(Default)]
pub(crate) struct Stitcher {
    open: FxHashMap<Thread, Vec<Begun<Position>>>,
    async_open: FxHashMap<AsyncKey, Vec<Begun<Position>>>,
}

impl Stitcher {
    /// Takes the loose ends of the next group; `process` says what a collector's process is called there. `late` hears of durations.
    pub(crate) fn group(&mut self, group: usize, loose: Loose, process: &[u32], late: &mut impl FnMut(Late)) {
        let thread = |(id, tid): Thread| (process[id as usize], tid);
        for (key, ts) in loose.ends {
            if let Some(begun) = self.open.get_mut(&thread(key)).and_then(Vec::pop) {
                late(Late { at: begun.row, dur: ts.saturating_sub(begun.ts), end: ts });
            }
        }
        for (key, ts) in loose.async_ends {
            if let Some(begun) = self.async_open.get_mut(&key).and_then(Vec::pop) {
                late(Late { at: begun.row, dur: ts.saturating_sub(begun.ts), end: ts });
            }
        }
        let at = |begun: Begun<usize>| Begun { row: Position { group, row: begun.row as u32 }, ts: begun.ts };
        for (key, begun) in loose.begins {
            self.open.entry(thread(key)).or_default().push(at(begun));
        }
        for (key, begun) in loose.async_begins {
            self.async_open.entry(key).or_default().push(at(begun));
        }
    }
}
