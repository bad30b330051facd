//! The size limit of a run on this node: when the files exceed it, the oldest members are dropped.
//!
//! The file that short images share is counted but never trimmed: its members are a few hundred bytes each.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use weftline_format::member::Deflater;

use crate::Result;
use crate::output::{Dropped, TraceFile};

/// What is left after dropping, in percent of the limit: dropping is rare then, and half-empty files are not rewritten twice.
const KEEP_PERCENT: u64 = 75;

/// Bytes written and the files they are in.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    limit: Option<u64>,
    written: AtomicU64,
    /// A worker is at it.
    trimming: AtomicBool,
    files: Mutex<Vec<Arc<Mutex<TraceFile>>>>,
}

impl Budget {
    pub(crate) fn new(limit: Option<u64>) -> Budget {
        Budget { limit, ..Budget::default() }
    }

    pub(crate) fn has_limit(&self) -> bool {
        self.limit.is_some()
    }

    /// A file came into being.
    pub(crate) fn add_file(&self, file: &Arc<Mutex<TraceFile>>) {
        if self.has_limit() {
            lock(&self.files).push(Arc::clone(file));
        }
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_exceeded(&self) -> bool {
        self.limit.is_some_and(|limit| self.written.load(Ordering::Relaxed) > limit)
    }

    /// Whether members must be dropped and no thread does so yet; the caller must do it then.
    pub(crate) fn begin_trim(&self) -> bool {
        self.is_exceeded() && !self.trimming.swap(true, Ordering::AcqRel)
    }

    /// Drops the oldest members until 75 % of the limit are left.
    pub(crate) fn enforce(&self, run: &std::path::Path, deflater: &mut Deflater) -> Result<()> {
        let result = self.drop_oldest(run, deflater);
        self.trimming.store(false, Ordering::Release);
        result
    }

    fn drop_oldest(&self, run: &std::path::Path, deflater: &mut Deflater) -> Result<()> {
        let Some(limit) = self.limit.filter(|_| self.is_exceeded()) else { return Ok(()) };
        let files: Vec<Arc<Mutex<TraceFile>>> = lock(&self.files).clone();
        let mut members: Vec<(i64, usize, u64, u64)> = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let file = lock(file);
            members.extend(file.members.iter().map(|note| (note.stats.to_ns, index, note.sequence, note.size)));
        }
        members.sort_unstable();
        let mut unwanted: Vec<Vec<u64>> = vec![Vec::new(); files.len()];
        let mut left = self.written.load(Ordering::Relaxed);
        for (_, index, sequence, size) in members {
            if left <= limit / 100 * KEEP_PERCENT {
                break;
            }
            left = left.saturating_sub(size);
            unwanted[index].push(sequence);
        }
        for (file, unwanted) in files.iter().zip(&unwanted).filter(|(_, unwanted)| !unwanted.is_empty()) {
            let saved = lock(file).drop_members(run, unwanted, deflater)?;
            self.written.fetch_sub(saved.min(self.written.load(Ordering::Relaxed)), Ordering::Relaxed);
        }
        Ok(())
    }

    /// All that was dropped.
    pub(crate) fn dropped(&self) -> Dropped {
        let mut all = Dropped::default();
        for file in lock(&self.files).iter() {
            all.merge(&lock(file).dropped);
        }
        all
    }
}

/// Locks; a worker that panicked has left plain data behind, which is as good as any.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
