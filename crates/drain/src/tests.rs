//! The drain as a whole, against arenas that the tests fill themselves.

mod alone;
mod annotations;
mod contents;
mod glance;
mod kills;
mod limits;
mod planted;
mod pools;
mod shared;

use std::collections::BTreeMap;
use std::path::Path;

use weftline_calls::Call;
use weftline_format::damage::What;
use weftline_format::event::{Event, Phase, Value};
use weftline_format::manifest::SupervisorRecord;
use weftline_format::reader::{self, Trace};

use crate::arena::writer::{Program, call};
use crate::{Drain, DrainOptions, Live, LiveOptions, Place, RecoverOptions};

/// Recovery without threads of its own: places to stop at belong to one thread.
const ALONE: RecoverOptions = RecoverOptions {
    dry_run: false,
    force: false,
    workers: Some(0),
    believe_ended: false,
    wait_for_lock: None,
    only: None,
};

/// A drain over a new run directory, without threads of its own.
fn drain(run: &Path, options: DrainOptions) -> Drain {
    // On the disk, where tests look at it.
    let live =
        Live::create(run, &LiveOptions { run_id: "test".to_owned(), place: Place::Disk, ..LiveOptions::default() })
            .expect("a live directory");
    Drain::new(live, run, DrainOptions { workers: Some(0), ..options }).expect("a drain")
}

/// Looks until nothing happens any more: all dead images are written.
fn settle(drain: &mut Drain) {
    let quiet = std::time::Duration::from_millis(20);
    while drain.poll() < quiet {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Records `count` reads that are told apart by their offset, from `first` on.
fn reads(program: &mut Program, tid: u32, path: u32, first: i64, count: i64) {
    for offset in first..first + count {
        let mut record = call(Call::pread64);
        (record.path, record.fd, record.size, record.ret, record.offset) = (path, 3, 4096, 4096, offset);
        program.record(tid, &record);
    }
}

fn read_run(run: &Path) -> Trace {
    let trace = reader::read_run(run).expect("the run can be read");
    assert!(trace.damage.is_empty(), "{:?}", trace.damage);
    trace
}

/// Reads a run from which members were dropped.
fn read_trimmed(run: &Path) -> Trace {
    let mut trace = reader::read_run(run).expect("the run can be read");
    trace.damage.flaws.retain(|flaw| flaw.what != What::MissingSequence);
    assert!(trace.damage.flaws.is_empty(), "{:?}", trace.damage);
    trace
}

/// How often each offset of a `pread64` occurs in a run.
fn offsets(trace: &Trace) -> BTreeMap<i64, u32> {
    let mut found = BTreeMap::new();
    for event in trace.events.iter().filter(|event| event.name == "pread64") {
        *found.entry(number(event, "offset").expect("an offset")).or_default() += 1;
    }
    found
}

/// Every offset from 0 to `count` exactly once.
fn assert_exactly_once(run: &Path, count: i64, what: &str) {
    let found = offsets(&read_run(run));
    let wrong: Vec<_> = (0..count).filter(|offset| found.get(offset) != Some(&1)).take(5).collect();
    assert!(wrong.is_empty(), "{what}: offsets {wrong:?} … are missing or doubled");
    assert_eq!(found.len() as i64, count, "{what}");
}

fn number(event: &Event, key: &str) -> Option<i64> {
    event.arg(key).and_then(Value::as_i64)
}

fn record_of(run: &Path) -> SupervisorRecord {
    let (mut records, errors) = SupervisorRecord::read_all(run);
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(records.len(), 1);
    records.remove(0)
}

/// Lines that are not metadata.
fn count_events(trace: &Trace) -> u64 {
    trace.events.iter().filter(|event| event.phase != Phase::Metadata).count() as u64
}
