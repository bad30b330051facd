//! What a thread does during a call: file I/O, waiting, or neither; and what kind of thing a path names.
//!
//! The supervisor's summary and the reports split a thread's time by this ([`ActivitySums`]). Time outside of all calls is computing, or time that
//! no hook sees; only the thread's CPU time can distinguish the two.

use crate::{Flow, IoCat, Operation};

/// What a path names, by the path alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FileKind {
    /// A file or directory with content of its own, or a device that holds data.
    Content,
    /// A pipe; a named one looks like a file.
    Pipe,
    /// A socket.
    Socket,
    /// A terminal.
    Terminal,
    /// What the kernel makes up when asked: `/proc`, `/sys`, `/dev/null` and its kin, event descriptors, memory.
    Kernel,
    /// No path is known.
    Unknown,
}

impl FileKind {
    /// The kind of a path as a trace holds it.
    pub fn of(path: &[u8]) -> FileKind {
        const TERMINALS: [&[u8]; 3] = [b"/dev/tty", b"/dev/pts/", b"/dev/console"];
        const MADE_UP: [&[u8]; 6] =
            [b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom", b"/dev/fd/"];
        let starts = |places: &[&[u8]]| places.iter().any(|place| path.starts_with(place));
        match path {
            b"" => FileKind::Unknown,
            _ if starts(&[b"pipe:["]) => FileKind::Pipe,
            _ if starts(&[b"socket:["]) => FileKind::Socket,
            _ if starts(&TERMINALS) => FileKind::Terminal,
            _ if starts(&MADE_UP) || starts(&[b"/proc/", b"/sys/"]) => FileKind::Kernel,
            // `anon_inode:[eventpoll]`, `memfd:name`, `/memfd:name (deleted)`.
            _ if starts(&[b"memfd:", b"/memfd:"]) => FileKind::Kernel,
            [b'/', ..] => FileKind::Content,
            _ if path.windows(2).any(|pair| pair == b":[") => FileKind::Kernel,
            _ => FileKind::Content,
        }
    }
}

/// What a thread was doing during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Activity {
    /// Reading, writing or synchronising files, or looking them up.
    FileIo,
    /// Waiting for a child to end, or to start its program.
    Child,
    /// Reading from or writing to a pipe.
    Pipe,
    /// Talking through a socket.
    Socket,
    /// Reading from or writing to a terminal.
    Terminal,
    /// Waiting until descriptors are ready.
    Poll,
    /// Sleeping.
    Sleep,
    /// Waiting for a thread.
    Thread,
    /// Waiting for a lock on a file.
    Lock,
}

impl Activity {
    /// All of them, in the order of their numbers.
    pub const ALL: [Activity; 9] = [
        Activity::FileIo,
        Activity::Child,
        Activity::Pipe,
        Activity::Socket,
        Activity::Terminal,
        Activity::Poll,
        Activity::Sleep,
        Activity::Thread,
        Activity::Lock,
    ];

    /// What reports call it.
    pub const fn label(self) -> &'static str {
        match self {
            Activity::FileIo => "file I/O",
            Activity::Child => "child process",
            Activity::Pipe => "pipe",
            Activity::Socket => "socket",
            Activity::Terminal => "terminal",
            Activity::Poll => "poll",
            Activity::Sleep => "sleep",
            Activity::Thread => "thread",
            Activity::Lock => "lock",
        }
    }

    /// The name of its field in manifests and JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Activity::FileIo => "file_io",
            Activity::Child => "child",
            word => word.label(),
        }
    }

    /// Whether the thread waited for another process or thread. Waiting for a device is file I/O.
    pub const fn is_waiting(self) -> bool {
        !matches!(self, Activity::FileIo)
    }

    /// What a call on a file of this kind is; nothing for calls that take no time of their own or compute in the kernel.
    pub fn of(operation: Operation, file: FileKind) -> Option<Activity> {
        match operation {
            Operation::Wait | Operation::WaitAny | Operation::Vfork | Operation::Shell => Some(Activity::Child),
            Operation::Poll => Some(Activity::Poll),
            Operation::Sleep => Some(Activity::Sleep),
            Operation::Join => Some(Activity::Thread),
            Operation::Lock => Some(Activity::Lock),
            Operation::Accept | Operation::Connect | Operation::Receive | Operation::ReceiveMany | Operation::Send => {
                Some(Activity::Socket)
            }
            Operation::Suspend => Some(Activity::FileIo),
            _ if operation.flow() != Flow::None || matches!(operation, Operation::Scan | Operation::Flush) => {
                match file {
                    FileKind::Content | FileKind::Unknown => Some(Activity::FileIo),
                    FileKind::Pipe => Some(Activity::Pipe),
                    FileKind::Socket => Some(Activity::Socket),
                    FileKind::Terminal => Some(Activity::Terminal),
                    FileKind::Kernel => None,
                }
            }
            _ if matches!(operation.io_cat(), IoCat::Metadata | IoCat::Sync) => {
                matches!(file, FileKind::Content | FileKind::Unknown).then_some(Activity::FileIo)
            }
            _ => None,
        }
    }
}

/// Time by activity, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivitySums([u64; Activity::ALL.len()]);

impl ActivitySums {
    /// Adds time.
    #[inline]
    pub fn add(&mut self, activity: Activity, ns: u64) {
        let sum = &mut self.0[activity as usize];
        *sum = sum.saturating_add(ns);
    }

    /// Adds what another part did.
    pub fn merge(&mut self, other: &ActivitySums) {
        Activity::ALL.into_iter().for_each(|activity| self.add(activity, other.get(activity)));
    }

    /// The time of one activity.
    pub fn get(&self, activity: Activity) -> u64 {
        self.0[activity as usize]
    }

    /// The time of all that is waiting.
    pub fn waiting(&self) -> u64 {
        let waits = Activity::ALL.into_iter().filter(|activity| activity.is_waiting());
        waits.fold(0u64, |sum, activity| sum.saturating_add(self.get(activity)))
    }

    /// The time in all calls.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns))
    }

    /// Activities with their times, the longest first.
    pub fn largest_first(&self) -> impl Iterator<Item = (Activity, u64)> {
        let mut order = Activity::ALL;
        order.sort_unstable_by_key(|activity| (core::cmp::Reverse(self.get(*activity)), *activity));
        let sums = *self;
        order.into_iter().map(move |activity| (activity, sums.get(activity))).take_while(|(_, ns)| *ns > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::find;

    #[test]
    fn paths_tell_what_they_name() {
        for (path, kind) in [
            ("/data/x", FileKind::Content),
            ("data/x", FileKind::Content),
            ("/dev/shm/torch_1", FileKind::Content),
            ("/dev/nvme0n1", FileKind::Content),
            ("/developer/x", FileKind::Content),
            ("/proc/self/maps", FileKind::Kernel),
            ("/dev/null", FileKind::Kernel),
            ("anon_inode:[eventpoll]", FileKind::Kernel),
            ("memfd:x", FileKind::Kernel),
            ("/memfd:x (deleted)", FileKind::Kernel),
            ("pipe:[12]", FileKind::Pipe),
            ("socket:[12]", FileKind::Socket),
            ("/dev/pts/3", FileKind::Terminal),
            ("", FileKind::Unknown),
        ] {
            assert_eq!(FileKind::of(path.as_bytes()), kind, "{path}");
        }
    }

    #[test]
    fn calls_are_activities() {
        let check = |call: &str, path: &str, expected: Option<Activity>| {
            let operation = find(call).expect("a call").operation;
            assert_eq!(Activity::of(operation, FileKind::of(path.as_bytes())), expected, "{call} {path}");
        };
        check("read", "/data/x", Some(Activity::FileIo));
        check("read", "", Some(Activity::FileIo));
        check("read", "pipe:[1]", Some(Activity::Pipe));
        check("fread", "socket:[1]", Some(Activity::Socket));
        check("read", "/dev/pts/0", Some(Activity::Terminal));
        check("read", "/proc/stat", None);
        check("open", "/data/x", Some(Activity::FileIo));
        check("fsync", "/data/x", Some(Activity::FileIo));
        check("fcntl", "pipe:[1]", None);
        check("flock", "/data/x", Some(Activity::Lock));
        check("waitpid", "", Some(Activity::Child));
        check("vfork", "", Some(Activity::Child));
        check("fork", "", None);
        check("poll", "", Some(Activity::Poll));
        check("epoll_wait", "anon_inode:[eventpoll]", Some(Activity::Poll));
        check("clock_nanosleep", "", Some(Activity::Sleep));
        check("pthread_join", "", Some(Activity::Thread));
        check("recvmsg", "socket:[3]", Some(Activity::Socket));
        check("mmap", "/data/x", None);
    }

    #[test]
    fn times_add_up() {
        let mut sums = ActivitySums::default();
        sums.add(Activity::Pipe, 5);
        sums.add(Activity::FileIo, 7);
        sums.merge(&sums.clone());
        assert_eq!((sums.get(Activity::Pipe), sums.waiting(), sums.total()), (10, 10, 24));
        let order: Vec<_> = sums.largest_first().collect();
        assert_eq!(order, [(Activity::FileIo, 14), (Activity::Pipe, 10)]);
        sums.add(Activity::Sleep, u64::MAX);
        assert_eq!(sums.total(), u64::MAX);
    }
}
