//! The options of a collector.

use std::path::PathBuf;
use std::time::Duration;

use weftline_format::secrets::Arguments;

use crate::follow::Follow;
use crate::roots::Roots;

/// What a collector is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run directory; it must exist.
    pub run: PathBuf,
    /// From sample to sample.
    pub interval: Duration,
    /// Which processes.
    pub follow: Follow,
    /// Ends when so much time has passed.
    pub duration: Option<Duration>,
    /// Samples the host as well, unless another collector of the run does.
    pub host: bool,
    /// Ends when no process of the followed trees is left.
    pub until_gone: bool,
    /// Asks the kernel for its records of processes that end, which have the CPU time of those that vanished before their last sample.
    pub exit_records: bool,
    /// Writes a manifest record of its own; a supervisor's thread leaves that to the supervisor.
    pub own_record: bool,
    /// Where `/proc` and `/sys` are.
    pub roots: Roots,
    /// The node's id.
    pub node: String,
    /// The stage of a workflow.
    pub stage: Option<String>,
    /// A host to measure the round trip to.
    pub peer: Option<String>,
    /// The command line, for the identity of the file.
    pub command: Vec<String>,
    /// How much of it, and of the command lines of processes, is kept.
    pub arguments: Arguments,
}
