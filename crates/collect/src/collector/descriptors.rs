//! The budget of file descriptors, for when there are more processes than descriptors.
//!
//! A followed process takes about four. Some must stay free for short uses: the file of samples, `status` of a thread, a
//! process that is checked. The kernel gives out the lowest free number, so the number of a new descriptor shows how many are left.
//! A process that does not fit is not followed, and reported; it is tried again when another one has ended.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use rustix::io::Errno;

/// Descriptors that followed processes leave free.
const RESERVE: u64 = 12;
/// Processes that the message names.
const NAMED: usize = 8;

/// How many descriptors there are, and the processes that are not followed for lack of them.
#[derive(Debug)]
pub(super) struct DescriptorBudget {
    limit: u64,
    is_full: bool,
    outside: BTreeSet<u32>,
    reported: bool,
}

impl DescriptorBudget {
    /// `limit` is that of open files.
    pub(super) fn new(limit: u64) -> DescriptorBudget {
        DescriptorBudget { limit, is_full: false, outside: BTreeSet::new(), reported: false }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether the last attempt found no room, and no process has ended since: another attempt would only cost time.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether enough descriptors are free. A copy of any one gets the lowest number there is.
    pub(super) fn has_room(&self, any: impl AsFd) -> bool {
        let number = any.as_fd().try_clone_to_owned().map(|copy| u64::try_from(copy.as_raw_fd()));
        matches!(number, Ok(Ok(number)) if number.saturating_add(RESERVE) < self.limit)
    }

    pub(super) fn refuse(&mut self, pid: u32) {
        self.is_full = true;
        self.outside.insert(pid);
    }

    pub(super) fn admit(&mut self, pid: u32) {
        self.outside.remove(&pid);
    }

    /// A followed process has ended, and its descriptors are free.
    pub(super) fn released(&mut self) {
        self.is_full = false;
    }

    /// Processes that were never followed.
    pub(super) fn outside(&self) -> u64 {
        self.outside.len() as u64
    }

    /// Once, when the first processes were turned away.
    pub(super) fn take_message(&mut self) -> Option<String> {
        if self.reported || self.outside.is_empty() {
            return None;
        }
        self.reported = true;
        let named: Vec<String> = self.outside.iter().take(NAMED).map(u32::to_string).collect();
        let more = match self.outside.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "the limit of {} open files is reached; not followed until others end: processes {}{more}; raise it (`ulimit -n`) to follow all",
            self.limit,
            named.join(", ")
        ))
    }
}

/// Whether the system refused because too many files are open.
pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_outside_are_named_once() {
        let mut descriptors = DescriptorBudget::new(64);
        assert_eq!((descriptors.take_message(), descriptors.outside()), (None, 0));
        (1..=11).for_each(|pid| descriptors.refuse(pid));
        let message = descriptors.take_message().expect("told");
        assert!(message.contains("64 open files") && message.contains("processes 1, 2, 3"), "{message}");
        assert!(message.contains("8 and 3 more;"), "{message}");
        descriptors.refuse(12);
        assert_eq!(descriptors.take_message(), None, "once");
        descriptors.admit(3);
        assert_eq!((descriptors.outside(), descriptors.is_full()), (11, true));
        descriptors.released();
        assert!(!descriptors.is_full());
    }

    #[test]
    fn some_descriptors_stay_free() {
        let file = tempfile::tempfile().expect("a file");
        // Other tests of this process open files too; they are far fewer.
        assert!(DescriptorBudget::new(RESERVE + 500).has_room(&file));
        assert!(!DescriptorBudget::new(RESERVE).has_room(&file));
        assert!(
            is_out_of_descriptors(&io::Error::from(Errno::MFILE))
                && !is_out_of_descriptors(&io::Error::from(Errno::SRCH))
        );
    }
}
