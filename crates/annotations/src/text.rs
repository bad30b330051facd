//! Strings that are interned once: names, categories, keys.

use std::sync::atomic::{AtomicU64, Ordering};

use weftline_recorder::table::Table;

use crate::front;

/// A text that is part of the program, and the name id that the recorder gave it.
#[derive(Debug)]
pub struct Text {
    text: &'static str,
    /// The epoch in the upper half, the id in the lower: one word, so that they always belong together.
    known: AtomicU64,
}

impl Text {
    /// Not interned yet.
    pub const fn new(text: &'static str) -> Text {
        Text { text, known: AtomicU64::new(0) }
    }

    /// The text.
    pub fn as_str(&self) -> &'static str {
        self.text
    }

    /// Its name id.
    #[inline(always)]
    pub(crate) fn id(&self, table: &Table) -> u32 {
        let known = self.known.load(Ordering::Relaxed);
        let epoch = table.epoch.load(Ordering::Relaxed);
        if (known >> 32) as u32 == epoch { known as u32 } else { self.intern(table, epoch) }
    }

    #[cold]
    fn intern(&self, table: &Table, epoch: u32) -> u32 {
        let id = front::intern(table, self.text.as_bytes());
        self.known.store(u64::from(epoch) << 32 | u64::from(id), Ordering::Relaxed);
        id
    }
}
