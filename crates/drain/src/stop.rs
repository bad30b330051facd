//! Places where the drain may be killed, for tests.
//!
//! All that outlives a drain is in files and shared memory, and nothing is done on the way out. So stopping at a place with an
//! error is the same as being killed there, and a test can try every place.

/// A place between two steps that a later recovery must be able to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Segments say which member they go to; nothing is written.
    Taken,
    /// A part of the member is in the file.
    HalfWritten,
    /// The member is in the file; its segments are not freed.
    Written,
    /// One of its segments is freed.
    OneReleased,
    /// All segments of the image are freed; the journal does not know it.
    Released,
    /// The journal knows the image; its slot is still in use.
    Journaled,
    /// A part of the image's journal line is in the file.
    HalfJournaled,
    /// The file without its oldest members is written beside the old one.
    Trimmed,
    /// The manifest is written; the live directory is still there.
    Recorded,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn reached(_: Stop) -> crate::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(crate) use for_tests::{reached, set};

#[cfg(test)]
mod for_tests {
    use super::Stop;
    use crate::{DrainError, Result};
    use std::cell::Cell;

    thread_local! {
        static NEXT: Cell<Option<(Stop, u32)>> = const { Cell::new(None) };
    }

    /// Stops this thread's drain at the place when it comes there for the `nth` time (from 1).
    pub(crate) fn set(place: Option<(Stop, u32)>) {
        NEXT.set(place);
    }

    pub(crate) fn reached(place: Stop) -> Result<()> {
        match NEXT.get() {
            Some((wanted, 1)) if wanted == place => {
                NEXT.set(None);
                Err(DrainError::Stopped)
            }
            Some((wanted, nth)) if wanted == place => {
                NEXT.set(Some((wanted, nth - 1)));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
