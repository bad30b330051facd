//! A lock for starting to record and binding hooks, which change state that all threads of the process share.
//!
//! Hooks must not use it. A thread that has to wait sleeps in short steps; one that waits for itself (a signal handler that
//! interrupted the holder) gives up after a while instead of waiting for ever.

use core::sync::atomic::{AtomicU32, Ordering};

use weftline_recorder::sys;

/// Pid of the holder's process; 0 when nobody holds it.
static HOLDER: AtomicU32 = AtomicU32::new(0);

/// Longest wait: two seconds, in steps of a millisecond.
const STEPS: u32 = 2000;
const STEP: i64 = 1_000_000;

/// The holder has exclusive access.
pub(crate) struct Exclusive(());

impl Exclusive {
    /// Waits until nobody else holds it; `None` when that does not happen.
    pub(crate) fn take() -> Option<Exclusive> {
        let me = sys::getpid();
        for _ in 0..STEPS {
            let holder = HOLDER.load(Ordering::Relaxed);
            // A holder in another process is one of before a fork, and does not exist here.
            if holder != me && HOLDER.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Some(Exclusive(()));
            }
            sys::nap(STEP);
        }
        None
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        HOLDER.store(0, Ordering::Release);
    }
}
