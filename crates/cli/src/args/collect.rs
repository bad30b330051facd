//! Arguments of `weft collect`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{PrivacyArgs, parse_duration, parse_step};

pub(crate) const EXAMPLES: &str = "Examples:
  weft collect --duration 60s
  weft collect --tree 4711 --interval 200ms -o runs/service
  weft collect --daemon -o runs/night --match '^ffmpeg$|^ffprobe$'
  weft collect --stop -o runs/night

Several of --tree, --match, --container, --cgroup and --pid-dir add up; with --pid-dir, --match
chooses among its files. Children of a followed process are followed too. Without these options
only the host is sampled.";

#[derive(Debug, Clone, Args)]
pub(crate) struct CollectArgs {
    /// Directory of the run; an existing run is joined [default: weft-runs/<run id>, or weft-runs/<time>-collect-<id>]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) privacy: PrivacyArgs,
    /// Time between samples [default: 500ms, or PROC_INTERVAL_MS]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub(crate) interval: Option<Duration>,
    /// Follow a process and all its descendants; end when none is left (may be repeated)
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tree: Vec<u32>,
    /// Follow processes with a matching name or command line, ignoring case [default: PROC_MATCH]
    #[arg(long = "match", value_name = "REGEX", value_parser = check_pattern)]
    pub(crate) matching: Option<String>,
    /// Follow the processes of a container, by its id or a prefix of it (may be repeated)
    #[arg(long, value_name = "ID")]
    pub(crate) container: Vec<String>,
    /// Follow the processes of a control group and sample the group itself (may be repeated)
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// Follow processes that have a file named by their pid in DIR, as `weft run --pid-dir` creates it [default: PROC_PID_DIR]
    #[arg(long, value_name = "DIR")]
    pub(crate) pid_dir: Option<PathBuf>,
    /// Sample only the followed processes, not the host
    #[arg(long)]
    pub(crate) no_host: bool,
    /// Also record kernel tracepoints of these processes: system calls, io_uring, page faults, block devices (root, or CAP_BPF and CAP_PERFMON)
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Name of this node [default: NODE_ID, or the host's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) node_id: Option<String>,
    /// Stage of the workflow [default: STAGE]
    #[arg(long, value_name = "NAME")]
    pub(crate) stage: Option<String>,
    /// Measure the round trip to this host once [default: VM_IP]
    #[arg(long, value_name = "HOST")]
    pub(crate) peer: Option<String>,
    /// Id of the run [default: RUN_ID, or a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = parse_step)]
    pub(crate) duration: Option<Duration>,
    /// Run in the background
    #[arg(long)]
    pub(crate) daemon: bool,
    /// File for the collector's process id [default: in run.d of the run]
    #[arg(long, value_name = "FILE")]
    pub(crate) pid_file: Option<PathBuf>,
    /// Stop the collectors of this host that sample into the run; exits with 1 if there is none, 3 if it had been killed
    #[arg(long, conflicts_with_all = ["daemon", "tree", "matching", "container", "cgroup", "duration"])]
    pub(crate) stop: bool,
    /// With --stop: stop the collectors of all runs in weft-runs [default: STOP_ALL]
    #[arg(long, requires = "stop")]
    pub(crate) all: bool,
    /// Print JSON: what is sampled at the start, the results at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// This is the process that `--daemon` started
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

/// A time between samples that can be kept.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    parse_duration(text).and_then(|interval| {
        if interval < weftline_collect::collector::SHORTEST {
            Err("1ms is the shortest interval".into())
        } else {
            Ok(interval)
        }
    })
}

fn check_pattern(text: &str) -> Result<String, String> {
    match weftline_collect::follow::pattern(text) {
        Ok(_) => Ok(text.to_owned()),
        // The first line repeats what the user wrote.
        Err(error) => Err(error.to_string().lines().last().unwrap_or("not a regular expression").to_owned()),
    }
}
