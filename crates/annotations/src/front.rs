//! For front-ends of other languages: names made at run time, events with explicit times.
//!
//! A front-end asks [`crate::locate::recording`] whether there is anything to do, reads [`now`] before and after, interns names (ids
//! hold for one [`epoch`]), packs arguments into a [`Payload`] and calls [`emit`].
#![allow(unsafe_code, reason = "calls through the recorder's table")]

pub mod c;

use std::sync::atomic::{AtomicU64, Ordering};

pub use crate::args::Args;
pub use weftline_recorder::annotation::{Argument, Event, EventHead, EventKind, MAX_PAYLOAD, Payload, Usage};
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

/// Stores an event.
#[inline(always)]
pub fn emit(table: &Table, head: &EventHead, payload: &[u8]) {
    let event = Event::new(head, payload);
    // SAFETY: a complete event whose payload is a slice of the length given.
    unsafe { (table.event)(&raw const event) };
}

/// A span that has begun, of a front-end whose names are made at run time.
#[derive(Clone, Copy)]
pub struct OpenSpan {
    /// Who records it.
    pub table: &'static Table,
    /// Of its name and category.
    pub epoch: u32,
    /// Name id of its name.
    pub name: u32,
    category: u32,
    /// When it began.
    pub start: u64,
    usage: Option<Usage>,
}

impl OpenSpan {
    /// Begins a span now, with a name and a category of an epoch. What it used is read behind its beginning, so that it never uses more than
    /// there was.
    #[inline]
    pub fn begin(
        table: &'static Table,
        epoch: u32,
        (name, category): (u32, u32),
        usage: impl FnOnce(&Table) -> Option<Usage>,
    ) -> OpenSpan {
        OpenSpan { table, epoch, name, category, start: now(table), usage: usage(table) }
    }

    /// Whether it may still be told: see [`still`].
    #[inline]
    pub fn is_current(&self) -> bool {
        still(self.table, self.epoch)
    }

    /// Adds what was used since its beginning.
    pub fn put_usage(&self, args: &mut Args) {
        if let Some(from) = self.usage {
            used_since(self.table, from, |key, value| args.put(key, value));
        }
    }

    /// Tells something of it; the times are those of `kind`.
    pub fn tell(&self, kind: EventKind, (start, end): (u64, u64), id: u64, args: &Args) {
        emit(
            self.table,
            &EventHead { kind, name: self.name, category: self.category, start, end, id },
            args.as_bytes(),
        );
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// An id for an async span, unique in this process.
pub fn new_id() -> u64 {
    let count = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    u64::from(std::process::id()) << 40 | (count & 0xFF_FFFF_FFFF)
}

/// An id made from a string: any thread that knows the string can end the span.
pub fn id_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
