//! For front-ends of other languages: names made at run time, events by hand.
//!
//! A front-end asks [`crate::recorder::recording`] whether there is anything to do, reads [`now`] before and after, interns names (ids
//! hold for one [`epoch`]), packs arguments into a [`Payload`] and calls [`emit`].
#![allow(unsafe_code, reason = "calls through the recorder's table")]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

pub use crate::args::Args;
pub use weftline_recorder::annotation::{Argument, Event, Kind, MAX_PAYLOAD, Payload, Usage};
use weftline_recorder::table::on;
pub use weftline_recorder::table::{Table, binding, wants};

/// The recorder's clock.
#[inline(always)]
pub fn now(table: &Table) -> u64 {
    (table.ticks)()
}

/// Name ids hold as long as this stays the same.
#[inline(always)]
pub fn epoch(table: &Table) -> u32 {
    table.epoch.load(Ordering::Relaxed)
}

/// Does the table still record, with the name ids of that epoch? What was begun before may only be told if so.
#[inline(always)]
pub fn still(table: &Table, begun: u32) -> bool {
    table.on.load(Ordering::Relaxed) == on::ON && epoch(table) == begun
}

/// Name id of a text; 0 when the recorder has no room for it, which it counts.
pub fn intern(table: &Table, text: &[u8]) -> u32 {
    // SAFETY: a slice is a readable text of its length.
    unsafe { (table.intern)(text.as_ptr(), text.len()) }
}

/// What the calling thread and the process have used so far.
pub fn usage(table: &Table) -> Usage {
    let mut usage = Usage::default();
    // SAFETY: room for one reading.
    unsafe { (table.usage)(&raw mut usage) };
    usage
}

/// A reading of what was used, if the user wants spans to tell that.
#[inline(always)]
pub fn wanted_usage(table: &Table) -> Option<Usage> {
    (table.wants_usage.load(Ordering::Relaxed) != 0).then(|| usage(table))
}

/// Tells what was used since a reading: hands `put` keys and values, to add to the arguments of an event. With the feature `gpu` also how NVIDIA's GPUs
/// are used, where that is wanted and there are any.
#[cold]
pub fn used_since(table: &Table, from: Usage, mut put: impl FnMut(u32, Argument<'_>)) {
    let to = usage(table);
    put(0, Argument::Usage(from, to));
    // No process has no memory: in a sandbox nothing may be asked.
    #[cfg(feature = "gpu")]
    if to.rss != 0
        && let Some(gpu) = gpu(table)
    {
        put(intern(table, b"gpu_busy_pct"), Argument::UInt(u64::from(gpu.busy_pct)));
        put(intern(table, b"gpu_memory_bytes"), Argument::UInt(gpu.memory_bytes));
    }
}

/// By an address that the compiler does not know: what a library of others' might do in a case of its own is kept out of what calls this.
#[cfg(feature = "gpu")]
fn gpu(table: &Table) -> Option<crate::gpu::Reading> {
    std::hint::black_box(crate::gpu::now as fn(&Table) -> Option<crate::gpu::Reading>)(table)
}

/// From now on spans of this process tell the use of NVIDIA's GPUs, whether or not the program has loaded anything that knows them. False where there
/// is none that NVML would tell of.
#[cfg(feature = "gpu")]
pub fn ask_gpu(table: &Table) -> bool {
    table.wants_usage.fetch_or(wants::GPU, Ordering::Relaxed);
    gpu(table).is_some()
}

/// What an event tells besides its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// What kind of event.
    pub kind: Kind,
    /// Name id of its name.
    pub name: u32,
    /// Name id of its category; 0 for none.
    pub category: u32,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Id of an async span or a flow.
    pub id: u64,
}

/// Stores an event.
#[inline(always)]
pub fn emit(table: &Table, told: &Told, payload: &[u8]) {
    let event = Event {
        kind: told.kind as u32,
        name: told.name,
        category: told.category,
        length: payload.len() as u32,
        start: told.start,
        end: told.end,
        id: told.id,
        payload: payload.as_ptr(),
        borrowed: PhantomData,
    };
    // SAFETY: a complete event whose payload is a slice of the length given.
    unsafe { (table.event)(&raw const event) };
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// An id for an async span that no other one of this process has.
pub fn new_id() -> u64 {
    let count = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    u64::from(std::process::id()) << 40 | (count & 0xFF_FFFF_FFFF)
}

/// An id made from a text: whoever knows the text can end what another thread began.
pub fn id_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
