//! Names, categories and keys: strings with their recorder ids.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use weftline::front::{self, Table};

/// A text that is used again and again.
#[derive(Debug)]
pub(crate) struct Name {
    text: Cow<'static, str>,
    /// The epoch in the upper half, the id in the lower: one word, so that they always belong together.
    known: AtomicU64,
}

impl Name {
    /// A text of this library.
    pub(crate) const fn fixed(text: &'static str) -> Name {
        Name { text: Cow::Borrowed(text), known: AtomicU64::new(0) }
    }

    /// A text of the program.
    pub(crate) fn new(text: String) -> Name {
        Name { text: Cow::Owned(text), known: AtomicU64::new(0) }
    }

    /// Its name id at the moment. An empty text has none.
    #[inline(always)]
    pub(crate) fn id(&self, table: &Table) -> u32 {
        let known = self.known.load(Ordering::Relaxed);
        let epoch = front::epoch(table);
        if (known >> 32) as u32 == epoch { known as u32 } else { self.intern(table, epoch) }
    }

    #[cold]
    fn intern(&self, table: &Table, epoch: u32) -> u32 {
        let id = if self.text.is_empty() { 0 } else { front::intern(table, self.text.as_bytes()) };
        self.known.store(u64::from(epoch) << 32 | u64::from(id), Ordering::Relaxed);
        id
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// What an event of one place in the program is called.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) name: Name,
    pub(crate) category: Name,
}

impl Site {
    pub(crate) fn new(name: String, category: String) -> Site {
        Site { name: Name::new(name), category: Name::new(category) }
    }

    /// Stores an event of this place.
    #[inline(always)]
    pub(crate) fn emit(&self, table: &Table, kind: front::EventKind, start: u64, end: u64, id: u64, payload: &[u8]) {
        let (name, category) = (self.name.id(table), self.category.id(table));
        front::emit(table, &front::EventHead { kind, name, category, start, end, id }, payload);
    }
}
