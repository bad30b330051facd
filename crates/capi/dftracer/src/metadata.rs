//! Metadata of the process: one record `CM` for each entry, with its name and its value.

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int};
use std::sync::Mutex;

use weftline::front::c::text;
use weftline::front::{self, Args, Argument, EventHead, EventKind, Table};

use crate::session;

/// Tells one entry of it.
pub(crate) fn tell(table: &Table, key: &[u8], value: Argument<'_>) {
    let id = |word: &[u8]| text::name(table, word);
    let mut args = Args::new();
    args.put(id(b"name"), Argument::Text(key));
    args.put(id(b"value"), value);
    let now = front::now(table);
    let head =
        EventHead { kind: EventKind::Meta, name: id(b"CM"), category: id(b"dftracer"), start: now, end: now, id: 0 };
    front::emit(table, &head, args.as_bytes());
}

/// # Safety
/// `key` must be NULL or a C string.
unsafe fn tell_of_process(key: *const c_char, value: Argument<'_>) {
    // SAFETY: the caller's word.
    if let Some((table, key)) = session::recording().zip(unsafe { text::bytes(key) }) {
        tell(table, key, value);
    }
}

/// Tells an integer that belongs to the whole process.
#[unsafe(no_mangle)]
unsafe extern "C" fn set_app_metadata_int(key: *const c_char, value: c_int) {
    // SAFETY: as the header demands.
    unsafe { tell_of_process(key, Argument::Int(i64::from(value))) };
}

/// Tells a text that belongs to the whole process.
#[unsafe(no_mangle)]
unsafe extern "C" fn set_app_metadata_string(key: *const c_char, value: *const c_char) {
    // SAFETY: as the header demands.
    unsafe {
        let value = text::bytes(value).map_or(Argument::Null, Argument::Text);
        tell_of_process(key, value);
    }
}

/// Layers that were marked, and the epoch in which they were.
static USED: Mutex<(u32, BTreeSet<Vec<u8>>)> = Mutex::new((0, BTreeSet::new()));

/// Tells that a layer is in use; once for each name.
#[unsafe(no_mangle)]
unsafe extern "C" fn mark_used(name: *const c_char) {
    // SAFETY: the caller passes NULL or a C string.
    let Some((table, name)) = session::recording().zip(unsafe { text::bytes(name) }) else { return };
    let epoch = front::epoch(table);
    // Another thread may hold the lock, for ever in a child that was forked meanwhile: then the mark is told once more.
    let known = USED.try_lock().is_ok_and(|mut used| {
        if used.0 != epoch {
            *used = (epoch, BTreeSet::new());
        }
        !used.1.insert(name.to_vec())
    });
    if !known {
        tell(table, b"used", Argument::Text(name));
    }
}
