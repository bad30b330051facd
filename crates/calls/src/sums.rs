//! Sums over calls. The supervisor, the live view, reports, SQL and Python all use these, so their numbers agree.
//!
//! They are unsigned integers that saturate, so a sum does not depend on the order of its parts.

use crate::{IoCat, Operation};

/// Calls of one operation, or one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// Time spent in them, ns.
    pub time_ns: u64,
    /// Bytes that they moved; those of operations that move none are left out of the sums.
    pub bytes: u64,
}

impl Calls {
    /// One call, by its duration and result. Neither a negative duration nor an error number adds anything.
    #[inline]
    pub fn one(dur_ns: i64, result: i64) -> Calls {
        Calls { count: 1, time_ns: dur_ns.max(0) as u64, bytes: result.max(0) as u64 }
    }
}

/// Whose sums a call is added to. It matters for calls on two files ([`Flow::Both`](crate::Flow::Both)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A process, a thread, a slice of time: bytes were read and written.
    All,
    /// The event's file: bytes were written to it.
    File,
    /// The event's second file: bytes were read from it. Nothing is added for calls without two directions.
    SecondFile,
}

/// What was done to a file, by a process, in a slice of time …
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoSums {
    /// All calls.
    pub calls: u64,
    /// Of those: calls that read.
    pub reads: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Calls on names and attributes.
    pub metadata_calls: u64,
    /// Of those: calls that opened a file.
    pub opens: u64,
    /// Calls that waited until bytes were safe.
    pub syncs: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time in all calls, ns. A call in both directions counts once.
    pub time_ns: u64,
    /// Time in calls that read.
    pub read_ns: u64,
    /// Time in calls that wrote.
    pub write_ns: u64,
    /// Time in calls on names and attributes.
    pub metadata_ns: u64,
}

#[inline]
fn grow(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl IoSums {
    /// Adds calls to the sums of a process, a thread or a slice of time.
    #[inline]
    pub fn add(&mut self, operation: Operation, calls: Calls) {
        self.add_to(Side::All, operation, calls);
    }

    /// Adds calls to one side's sums.
    #[inline]
    pub fn add_to(&mut self, side: Side, operation: Operation, calls: Calls) {
        let flow = operation.flow();
        let copies = flow.reads() && flow.writes();
        if !copies && side == Side::SecondFile {
            return;
        }
        grow(&mut self.calls, calls.count);
        grow(&mut self.time_ns, calls.time_ns);
        if flow.reads() && !(copies && side == Side::File) {
            grow(&mut self.reads, calls.count);
            grow(&mut self.read_bytes, calls.bytes);
            grow(&mut self.read_ns, calls.time_ns);
        }
        if flow.writes() && !(copies && side == Side::SecondFile) {
            grow(&mut self.writes, calls.count);
            grow(&mut self.write_bytes, calls.bytes);
            grow(&mut self.write_ns, calls.time_ns);
        }
        match operation.io_cat() {
            IoCat::Metadata => {
                grow(&mut self.metadata_calls, calls.count);
                grow(&mut self.metadata_ns, calls.time_ns);
                if operation == Operation::Open {
                    grow(&mut self.opens, calls.count);
                }
            }
            IoCat::Sync => grow(&mut self.syncs, calls.count),
            _ => {}
        }
    }

    /// Adds what another part did.
    pub fn merge(&mut self, other: &IoSums) {
        grow(&mut self.calls, other.calls);
        grow(&mut self.reads, other.reads);
        grow(&mut self.writes, other.writes);
        grow(&mut self.metadata_calls, other.metadata_calls);
        grow(&mut self.opens, other.opens);
        grow(&mut self.syncs, other.syncs);
        grow(&mut self.read_bytes, other.read_bytes);
        grow(&mut self.write_bytes, other.write_bytes);
        grow(&mut self.time_ns, other.time_ns);
        grow(&mut self.read_ns, other.read_ns);
        grow(&mut self.write_ns, other.write_ns);
        grow(&mut self.metadata_ns, other.metadata_ns);
    }

    /// Bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }
}
