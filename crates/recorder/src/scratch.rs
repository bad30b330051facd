//! Scratch memory for paths.
//!
//! A hook may run on a signal handler's small alternate stack, where a path buffer does not fit. Cold code that needs one takes
//! one of these instead. A handler cannot wait for the thread that it interrupted, so a handler gets none; threads wait
//! for each other, for about the time of a system call.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::thread;

/// Room for the longest path, with its NUL.
pub const SIZE: usize = 4160;

/// A buffer and its lock.
pub struct Scratch {
    bytes: UnsafeCell<[u8; SIZE]>,
    /// Thread id of the holder.
    holder: AtomicU32,
}

// SAFETY: only the holder touches the bytes.
unsafe impl Sync for Scratch {}

/// For names that are read from the kernel and then interned.
pub static NAMES: Scratch = Scratch::new();
/// For paths of arena files; interning may need one while [`NAMES`] is held.
pub(crate) static FILES: Scratch = Scratch::new();

/// Turns to wait for another thread. Used up only if the holder was stopped in between.
const PATIENCE: u32 = 1 << 22;

impl Scratch {
    const fn new() -> Scratch {
        Scratch { bytes: UnsafeCell::new([0; SIZE]), holder: AtomicU32::new(0) }
    }

    /// Calls `f` with the bytes; `None` when this very thread holds them already, or another one does for ever.
    pub fn with<R>(&self, f: impl FnOnce(&mut [u8; SIZE]) -> R) -> Option<R> {
        let me = thread::state().tid();
        for _ in 0..PATIENCE {
            match self.holder.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    // SAFETY: we are the holder until zero is stored back.
                    let out = f(unsafe { &mut *self.bytes.get() });
                    self.holder.store(0, Ordering::Release);
                    return Some(out);
                }
                Err(holder) if holder == me => return None,
                Err(_) => core::hint::spin_loop(),
            }
        }
        None
    }
}

/// In a forked child the holder may be a thread that does not exist any more.
pub(crate) fn forked() {
    NAMES.holder.store(0, Ordering::Release);
    FILES.holder.store(0, Ordering::Release);
}
