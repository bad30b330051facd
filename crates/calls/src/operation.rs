//! The typed columns of the table: family, operation, and what follows from the operation.

/// The part of the C library that a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Calls on descriptors and paths.
    Posix,
    /// Calls on streams.
    Stdio,
    /// Calls on sockets alone; `read` and `write` on one are of [`Family::Posix`].
    Network,
    /// Calls that only wait: for descriptors to be ready, for time to pass, for a thread.
    Wait,
    /// Calls that make, replace, end and wait for processes.
    Process,
    /// Marks of the recorder itself.
    Weft,
}

impl Family {
    /// Families of calls, in the order of documents.
    pub const CALLS: [Family; 5] = [Family::Posix, Family::Stdio, Family::Network, Family::Wait, Family::Process];

    /// The category of its events.
    #[inline]
    pub const fn category(self) -> &'static str {
        match self {
            Family::Posix => "POSIX",
            Family::Stdio => "STDIO",
            Family::Network => "NETWORK",
            Family::Wait => "WAIT",
            Family::Process => "PROCESS",
            Family::Weft => "weft",
        }
    }
}

/// Which way a call moves bytes. Where it moves any, its result is how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Moves no file data.
    None,
    /// From the file.
    Read,
    /// To the file.
    Write,
    /// From the event's second file (`fhash2`) to its first (`fhash`).
    Both,
}

impl Flow {
    /// Whether bytes were read somewhere.
    #[inline]
    pub const fn reads(self) -> bool {
        matches!(self, Flow::Read | Flow::Both)
    }

    /// Whether bytes were written somewhere.
    #[inline]
    pub const fn writes(self) -> bool {
        matches!(self, Flow::Write | Flow::Both)
    }
}

/// What kind of I/O a call does. The numbers are those that DFAnalyzer's tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum IoCat {
    /// Moves bytes in.
    Read = 1,
    /// Moves bytes out.
    Write = 2,
    /// Asks for or changes what is known of files.
    Metadata = 3,
    /// Starts and ends processes.
    Process = 4,
    /// Talks to other processes.
    Ipc = 5,
    /// Anything else.
    Other = 6,
    /// Waits until bytes are safe.
    Sync = 7,
}

impl IoCat {
    /// All of them, in the order of their numbers.
    pub const ALL: [IoCat; 7] =
        [IoCat::Read, IoCat::Write, IoCat::Metadata, IoCat::Process, IoCat::Ipc, IoCat::Other, IoCat::Sync];

    /// What reports call it.
    pub const fn label(self) -> &'static str {
        match self {
            IoCat::Read => "read",
            IoCat::Write => "write",
            IoCat::Metadata => "metadata",
            IoCat::Process => "process",
            IoCat::Ipc => "ipc",
            IoCat::Other => "other",
            IoCat::Sync => "sync",
        }
    }

    /// The category of a number.
    pub fn from_number(number: u32) -> IoCat {
        number.checked_sub(1).and_then(|place| IoCat::ALL.get(place as usize)).copied().unwrap_or(IoCat::Other)
    }
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Reads from a descriptor.
    Read,
    /// Writes to a descriptor.
    Write,
    /// Copies between two files inside the kernel.
    Copy,
    /// Moves or copies between a pipe and a file inside the kernel, past the counters of `/proc/PID/io`.
    Splice,
    /// Hands memory to a pipe, past those counters as well.
    SpliceMemory,
    /// Reads from a stream, mostly from its buffer.
    StreamRead,
    /// Writes to a stream, mostly to its buffer.
    StreamWrite,
    /// Reads values from a stream; the result counts values, not bytes.
    Scan,
    /// Empties a stream's buffer.
    Flush,
    /// Chooses a stream's buffer.
    Buffering,
    /// Opens or makes a file.
    Open,
    /// Closes one or several files.
    Close,
    /// Asks for the attributes of a path.
    StatPath,
    /// Asks for the attributes of an open file.
    StatOpen,
    /// Asks whether a path may be used, or where it leads.
    Access,
    /// Changes the position in a file.
    Seek,
    /// Asks for the position in a file.
    Tell,
    /// Waits until bytes are safe.
    Sync,
    /// Waits for a lock on a file.
    Lock,
    /// Changes the directory from which relative paths start.
    ChangeDirectory,
    /// Any other call on names and attributes of files.
    Metadata,
    /// Maps files into memory, or ends that.
    Map,
    /// Says what will be needed.
    Advise,
    /// Makes or copies a descriptor without a path.
    Descriptor,
    /// Makes a pipe.
    Pipe,
    /// Makes a socket.
    Socket,
    /// Waits for a connection.
    Accept,
    /// Makes a connection.
    Connect,
    /// Takes bytes from a socket.
    Receive,
    /// Takes messages from a socket; the result counts messages, not bytes.
    ReceiveMany,
    /// Hands bytes to a socket.
    Send,
    /// Waits until descriptors are ready.
    Poll,
    /// Lets time pass.
    Sleep,
    /// Waits for a thread.
    Join,
    /// Talks to other processes.
    Ipc,
    /// Hands in requests whose results come later.
    Submit,
    /// Takes the result of such a request; whether it read or wrote is not known here.
    Result,
    /// Waits for such a result.
    Suspend,
    /// Makes a child.
    Fork,
    /// Makes a child and waits until it has a program of its own.
    Vfork,
    /// Makes a child with a program of its own.
    Spawn,
    /// Replaces the program.
    Exec,
    /// Ends the process.
    Exit,
    /// Runs a command in a shell and waits for it.
    Shell,
    /// Waits for a child.
    Wait,
    /// Waits for whichever child ends first. Apart from [`Operation::Wait`] because DFAnalyzer counts `wait` as a call on processes and
    /// `waitpid` as any other.
    WaitAny,
    /// Any other call on processes.
    Process,
    /// A call that the table does not have.
    Other,
    /// A mark of the recorder.
    Mark,
    /// The name of a thread.
    ThreadName,
}

impl Operation {
    /// Which way it moves bytes.
    #[inline]
    pub const fn flow(self) -> Flow {
        match self {
            Operation::Read | Operation::StreamRead | Operation::Receive => Flow::Read,
            Operation::Write | Operation::StreamWrite | Operation::SpliceMemory | Operation::Send => Flow::Write,
            Operation::Copy | Operation::Splice => Flow::Both,
            _ => Flow::None,
        }
    }

    /// DFAnalyzer's category. A copy counts as a write there; the sums of [`IoSums`](crate::IoSums) count both directions.
    #[inline]
    pub const fn io_cat(self) -> IoCat {
        match self {
            Operation::Read | Operation::StreamRead => IoCat::Read,
            Operation::Write
            | Operation::StreamWrite
            | Operation::Copy
            | Operation::Splice
            | Operation::SpliceMemory => IoCat::Write,
            Operation::Open
            | Operation::Close
            | Operation::StatPath
            | Operation::StatOpen
            | Operation::Access
            | Operation::Seek
            | Operation::Tell
            | Operation::Lock
            | Operation::ChangeDirectory
            | Operation::Metadata => IoCat::Metadata,
            Operation::Sync => IoCat::Sync,
            Operation::Pipe
            | Operation::Fork
            | Operation::Vfork
            | Operation::Spawn
            | Operation::Exec
            | Operation::Exit
            | Operation::Shell
            | Operation::WaitAny
            | Operation::Process => IoCat::Process,
            Operation::Socket
            | Operation::Accept
            | Operation::Connect
            | Operation::Receive
            | Operation::ReceiveMany
            | Operation::Send
            | Operation::Ipc => IoCat::Ipc,
            Operation::Scan
            | Operation::Flush
            | Operation::Buffering
            | Operation::Map
            | Operation::Advise
            | Operation::Descriptor
            | Operation::Submit
            | Operation::Result
            | Operation::Suspend
            | Operation::Poll
            | Operation::Sleep
            | Operation::Join
            | Operation::Wait
            | Operation::Other
            | Operation::Mark
            | Operation::ThreadName => IoCat::Other,
        }
    }

    /// Whether its bytes are in the kernel's `rchar` and `wchar`, with which the coverage ledger compares. Those of streams are, by
    /// the calls that fill and empty their buffers.
    #[inline]
    pub const fn is_counted_by_kernel(self) -> bool {
        !matches!(self.flow(), Flow::None)
            && !matches!(self, Operation::Splice | Operation::SpliceMemory | Operation::Receive | Operation::Send)
    }

    /// Whether its bytes pass through a stream's buffer.
    #[inline]
    pub const fn is_buffered(self) -> bool {
        matches!(self, Operation::StreamRead | Operation::StreamWrite)
    }

    /// Whether it is about content, names or attributes of files: what rules about files look at.
    #[inline]
    pub const fn is_on_files(self) -> bool {
        matches!(self, Operation::Flush | Operation::Buffering)
            || matches!(self.io_cat(), IoCat::Read | IoCat::Write | IoCat::Metadata | IoCat::Sync)
    }
}
