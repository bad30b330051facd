//! The parts of the table of calls that the drain needs to write lines, by number.

use std::sync::LazyLock;

use weftline_calls::{CALLS, CallInfo, Operation, Shape};
use weftline_recorder::elf::VERDICT_NAMES;

use crate::arena::RecordCopy;

/// A call, and what its record's fields mean beyond what the table says.
pub(crate) struct CallKind {
    pub call: CallInfo,
    /// The category of its events.
    pub category: &'static str,
    pub role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// Marks of the recorder itself.
    Mark,
    /// A thread's name.
    Name,
    /// Opens a file: `extra` is the mode when it may create one.
    Open,
    /// Waits for a child: `ret` is its pid.
    Reap,
    Vfork,
    /// Replaces the image, `ret` is 0 unless it failed; `detail` says whether the new one can be traced.
    Exec,
    /// Makes a child with a new image: `ret` is its pid, `detail` as for exec.
    Spawn,
}

impl Role {
    pub(crate) fn of(call: &CallInfo) -> Role {
        match (call.operation, call.shape) {
            (Operation::Mark, _) => Role::Mark,
            (Operation::ThreadName, _) => Role::Name,
            (Operation::Vfork, _) => Role::Vfork,
            (Operation::Exec, _) => Role::Exec,
            (Operation::Spawn, _) => Role::Spawn,
            (_, Shape::open_at) => Role::Open,
            (_, Shape::reap | Shape::reap_info) => Role::Reap,
            _ => Role::Plain,
        }
    }
}

static KINDS: LazyLock<Vec<CallKind>> = LazyLock::new(|| {
    CALLS.iter().map(|call| CallKind { call: *call, category: call.category(), role: Role::of(call) }).collect()
});

#[inline]
pub(crate) fn kind_of(head: u32) -> Option<&'static CallKind> {
    KINDS.get((head & 0xFFFF) as usize).filter(|kind| !kind.call.name.is_empty())
}

/// Why the program that a call starts cannot be traced, if so.
pub(crate) fn untraced_reason(kind: &CallKind, record: &RecordCopy) -> Option<&'static str> {
    if !matches!(kind.role, Role::Exec | Role::Spawn) || record.detail == 0 {
        return None;
    }
    VERDICT_NAMES.get(record.detail as usize).copied()
}

/// Whether an open may make the file.
pub(crate) fn creates(flags: u32) -> bool {
    let flags = flags as i32;
    flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
}
