//! The arguments of `weft list`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::parse_duration;

pub(super) const EXAMPLES: &str = "Examples:
  weft list
  weft list --since 1d --failed
  weft list --json /scratch/me/weft-runs | jq '.[].directory'";

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Directories that hold runs, or runs themselves [default: weft-runs]
    #[arg(value_name = "DIR")]
    pub(crate) places: Vec<PathBuf>,
    /// Only runs that began within this time (90m, 12h, 1d)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) since: Option<Duration>,
    /// Only runs of programs that failed: a nonzero exit status, or a signal
    #[arg(long)]
    pub(crate) failed: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
