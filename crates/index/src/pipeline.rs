//! Gives tasks to threads and joins their results in the order of the files.
//!
//! Each thread has a [`Collector`] with local ids. Tasks commit in order: when a thread has a row group, it waits for its task's turn, remaps local ids to
//! global ids, and then passes the columns on without blocking others. So the ids, like everything else, depend only on the files and
//! not on which thread was faster.

mod tables;
mod work;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};

use weftline_format::damage::Damage;
use weftline_format::dialect::Dialect;

use crate::part::{Columns, GroupMeta};
use crate::progress::Progress;
use crate::rows::{Collector, Late, Wanted};
use crate::source::{self, FileNote, Spare, TraceFile, Work};
use crate::{IndexError, Result};

pub(crate) use tables::{Maps, Tables};
use work::Worker;

/// Takes row groups. They come in any order; `group` counts them.
pub(crate) trait Sink: Sync {
    /// What a thread keeps.
    type State: Send;
    /// A thread begins.
    fn begin(&self) -> Self::State;
    /// A row group. Columns that are given back lend their memory to the next one.
    fn take(&self, state: &mut Self::State, group: usize, columns: Columns, meta: GroupMeta) -> Result<Columns>;
}

/// What was found out about one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileInfo {
    pub dialect: Dialect,
    /// Rows.
    pub events: u64,
    /// Lines that defined hashes.
    pub definitions: u64,
    pub damage: Damage,
    /// The file could not be read to its end: why.
    pub unreadable: Option<String>,
}

/// What a pipeline leaves behind besides the row groups.
pub(crate) struct Gathered<S> {
    pub files: Vec<FileInfo>,
    pub tables: Tables,
    /// Durations that were known too late for their rows.
    pub late: Vec<Late>,
    pub states: Vec<S>,
    pub groups: usize,
}

/// What the threads share.
struct Shared {
    spare: Spare,
    state: Mutex<State>,
    turn: Condvar,
}

struct State {
    /// The task whose turn it is.
    turn: u64,
    tables: Tables,
    groups: usize,
    late: Vec<Late>,
    files: Vec<FileInfo>,
    stitching: work::Stitching,
    error: Option<IndexError>,
    /// The payload of a worker's panic: then no thread waits for its task.
    panic: Option<Box<dyn Any + Send>>,
}

impl State {
    fn has_failed(&self) -> bool {
        self.error.is_some() || self.panic.is_some()
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Waits until all tasks before this one have handed on their rows; nothing when work has failed.
    fn turn_of(&self, task: u64) -> Option<MutexGuard<'_, State>> {
        let mut state = lock(self);
        while state.turn != task && !state.has_failed() {
            state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (!state.has_failed()).then_some(state)
    }

    fn fail(&self, error: IndexError) {
        lock(self).error.get_or_insert(error);
        self.turn.notify_all();
    }
}

/// Threads that a machine has for this.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Reads all files and gives their row groups to a sink.
pub(crate) fn run<S: Sink>(
    files: &[TraceFile],
    threads: usize,
    wanted: Wanted,
    sink: &S,
    progress: &dyn Progress,
) -> Result<Gathered<S::State>> {
    let shared = Shared {
        spare: Spare::default(),
        state: Mutex::new(State {
            turn: 0,
            tables: Tables::default(),
            groups: 0,
            late: Vec::new(),
            files: vec![FileInfo::default(); files.len()],
            stitching: work::Stitching::default(),
            error: None,
            panic: None,
        }),
        turn: Condvar::new(),
    };
    // One task waits while each thread works on one: memory is bounded by the number of threads.
    let (send, receive) = mpsc::sync_channel::<(u64, Work, u64)>(1);
    let receive = Mutex::new(receive);
    let mut states = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                let (shared, receive) = (&shared, &receive);
                scope.spawn(move || {
                    let mut worker = Worker::new(files, wanted, shared, sink);
                    loop {
                        let task = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        let Ok((number, work, bytes)) = task else { break };
                        // A panic ends the work of all others, and goes on where they are joined.
                        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| worker.task(number, work))) {
                            lock(shared).panic.get_or_insert(panic);
                            shared.turn.notify_all();
                        }
                        progress.advance(bytes);
                    }
                    worker.finish()
                })
            })
            .collect();
        let mut number = 0;
        let mut give = |work, bytes| {
            let task = (number, work, bytes);
            number += 1;
            !lock(&shared).has_failed() && send.send(task).is_ok()
        };
        let mut note = |note: FileNote| {
            let mut state = lock(&shared);
            let info = &mut state.files[note.file];
            info.dialect = note.dialect;
            info.damage.join(note.damage);
            info.unreadable = info.unreadable.take().or(note.unreadable);
        };
        if let Err(error) = source::cut(files, &shared.spare, wanted.meta, &mut give, &mut note) {
            shared.fail(error);
        }
        // All tasks so far are done when it is the next one's turn; then it is known which files must be read again, and from where.
        let given = number;
        let broken = shared.turn_of(given).map(|mut state| std::mem::take(&mut state.stitching.broken));
        for (file, from) in broken.into_iter().flatten() {
            let task = (number, Work::Rest { file, from }, 0);
            number += 1;
            if send.send(task).is_err() {
                break;
            }
        }
        drop(send);
        for worker in workers {
            match worker.join() {
                Ok(state) => states.push(state),
                Err(panic) => resume_unwind(panic),
            }
        }
    });
    let mut state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(panic) = state.panic {
        resume_unwind(panic);
    }
    if let Some(error) = state.error {
        return Err(error);
    }
    state.stitching.judge(files, &mut state.files);
    state.tables.settle();
    Ok(Gathered { files: state.files, tables: state.tables, late: state.late, states, groups: state.groups })
}

/// Exchanges a collector's rows for columns with common ids.
fn columns_of(collector: &mut Collector, maps: &Maps, wanted: Wanted) -> (Columns, GroupMeta, crate::rows::Loose) {
    let (rows, mut loose) = collector.take();
    let (columns, meta, places) = crate::part::columns(rows, maps, wanted);
    places.iter().for_each(|places| loose.moved(places));
    (columns, meta, loose)
}
