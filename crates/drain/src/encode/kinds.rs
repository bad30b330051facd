//! What the lines of each call look like.

use std::sync::LazyLock;

use weftline_recorder::calls::{CALLS, Flow};
use weftline_recorder::elf::VERDICT_NAMES;

use crate::arena::RecordFacts;

/// What a call's line looks like, made from the table once: the table's own answers compare texts.
pub(crate) struct Kind {
    pub name: &'static str,
    pub category: &'static str,
    pub flow: Flow,
    /// What the record's detail is called.
    pub detail: Option<&'static str>,
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

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let role = |name: &str, shape: &str| match (name, shape) {
        (_, "mark") => Role::Mark,
        (_, "name") => Role::Name,
        (_, "open_at") => Role::Open,
        (_, "reap" | "reap_info") => Role::Reap,
        ("vfork", _) => Role::Vfork,
        ("posix_spawn" | "posix_spawnp", _) => Role::Spawn,
        (name, "by hand") if name.starts_with("exec") || name == "fexecve" => Role::Exec,
        _ => Role::Plain,
    };
    CALLS
        .iter()
        .map(|call| Kind {
            name: call.name,
            category: call.category,
            flow: call.flow(),
            detail: call.detail_name(),
            role: role(call.name, call.shape),
        })
        .collect()
});

pub(crate) fn kind_of(head: u32) -> Option<&'static Kind> {
    KINDS.get((head & 0xFFFF) as usize).filter(|kind| !kind.name.is_empty())
}

/// Why the program that a call starts cannot be traced, if so.
pub(crate) fn untraced_reason(kind: &Kind, record: &RecordFacts) -> Option<&'static str> {
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
