//! `weft_site`: a place in the program that makes events, with the recorder's ids of its strings.

use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};

use weftline::front::Table;
use weftline::front::c::text::{bytes, name};

/// `weft_name`: a text of the program and the name id that the recorder gave it.
#[repr(C)]
pub(crate) struct Name {
    text: *const c_char,
    /// The epoch in the upper half, the id in the lower: one word, so that they always belong together.
    known: AtomicU64,
}

impl Name {
    /// Its name id; `otherwise` stands for a text that is NULL.
    ///
    /// # Safety
    /// The text must be NULL or a C string.
    #[inline(always)]
    pub(crate) unsafe fn id(&self, table: &Table, epoch: u32, otherwise: &[u8]) -> u32 {
        let known = self.known.load(Ordering::Relaxed);
        if (known >> 32) as u32 == epoch {
            return known as u32;
        }
        // SAFETY: the caller's word.
        unsafe { self.intern(table, epoch, otherwise) }
    }

    #[cold]
    unsafe fn intern(&self, table: &Table, epoch: u32, otherwise: &[u8]) -> u32 {
        // SAFETY: the caller's word.
        let id = name(table, unsafe { bytes(self.text) }.unwrap_or(otherwise));
        self.known.store(u64::from(epoch) << 32 | u64::from(id), Ordering::Relaxed);
        id
    }
}

/// `weft_site`.
#[repr(C)]
pub(crate) struct Site {
    pub(crate) name: Name,
    pub(crate) category: Name,
}
