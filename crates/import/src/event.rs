//! What readers give: processes and events, borrowed from their input.

/// Who a process is. The fields that a format does not have stay empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Process<'a> {
    /// The process.
    pub pid: u32,
    /// What a viewer calls it.
    pub name: &'a str,
    /// The parent process.
    pub ppid: u32,
    /// The executable.
    pub exe: &'a str,
    /// The command line; secrets in it are masked by the sink.
    pub command: &'a [&'a str],
    /// The rank within a parallel job.
    pub rank: Option<u32>,
    /// What tells it from other processes of the same pid: when it started, in a unit of the format's own; 0 where nothing does.
    pub start: u64,
}

/// One event. Times are nanoseconds since the epoch, on the clock of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'a> {
    /// What it is.
    pub shape: Shape,
    /// Its name.
    pub name: &'a str,
    /// Its category.
    pub cat: &'a str,
    /// The process; 0 for the host itself.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// When it began.
    pub start_ns: i64,
    /// Its arguments.
    pub args: &'a [(&'a str, Arg<'a>)],
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Something that lasted until then.
    Span {
        /// Its end.
        end_ns: i64,
    },
    /// Something that lasted, and that others on the same thread cross.
    Async {
        /// Its end.
        end_ns: i64,
    },
    /// A moment.
    Instant,
    /// Values over an interval; all arguments are numbers.
    Counter {
        /// The interval's end: the start where the value is of a moment.
        end_ns: i64,
    },
    /// Calls that somebody summed up: `dft_cnt` and its like among the arguments.
    Total {
        /// The end of the time that is summed up.
        end_ns: i64,
    },
    /// Facts about the process.
    Metadata,
}

impl Shape {
    /// The end of what lasted.
    pub fn end_ns(self) -> Option<i64> {
        match self {
            Shape::Span { end_ns } | Shape::Async { end_ns } | Shape::Counter { end_ns } | Shape::Total { end_ns } => {
                Some(end_ns)
            }
            Shape::Instant | Shape::Metadata => None,
        }
    }
}

/// The value of an argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arg<'a> {
    /// A number.
    Int(i64),
    /// A number that may be large.
    Unsigned(u64),
    /// A fraction. One that is not finite is left out.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// A text.
    Text(&'a [u8]),
    /// The path of a file: its argument is named `fhash`, and its definition is written once.
    Path(&'a [u8]),
    /// JSON, as it is.
    Json(&'a str),
}
